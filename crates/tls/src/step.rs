//! The results of the steps of a session.

use crate::error::TlsError;

/// The result of processing received bytes.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// More input is needed.
    More,
    /// Plaintext, at this place in the input.
    Data {
        /// The index of the first byte.
        start: usize,
        /// The index after the last byte.
        end: usize,
    },
    /// The handshake is complete, or early data is accepted. [`crate::Session::established`] returns the results. Data that
    /// waited for this was encrypted.
    Established,
    /// The handshake is complete, after [`Step::Established`] with early data. The earlier data may be a replay by an
    /// attacker; data from here on comes from the client.
    Confirmed,
    /// The peer has sent close_notify.
    Ended,
    /// The session has failed. The output may contain an alert.
    Failed(TlsError),
}
