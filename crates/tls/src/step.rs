//! The results of a session's steps.

use crate::error::TlsError;

/// The result of processing received bytes.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// More input is needed.
    More,
    /// Plaintext, in the bytes that were looked at.
    Data {
        /// The index of the first byte.
        start: usize,
        /// One past its last.
        end: usize,
    },
    /// The handshake is complete, or early data is accepted: [`crate::Session::established`] has the results. Data that
    /// waited for it is encrypted.
    Established,
    /// After [`Step::Established`] with early data: the handshake is complete. Earlier data may be a replay by an
    /// attacker; data from now on is the client's.
    Confirmed,
    /// The peer will send nothing more.
    Ended,
    /// The session has ended. The output may contain an alert.
    Failed(TlsError),
}
