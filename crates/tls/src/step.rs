//! What a session says of bytes.

use crate::error::TlsError;

/// What came of looking at received bytes.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing more can be done with what is here.
    More,
    /// Plaintext, in the bytes that were looked at.
    Data {
        /// Its first byte.
        start: usize,
        /// One past its last.
        end: usize,
    },
    /// The handshake is done, or as good as done where early data is accepted: [`crate::Session::established`] says with what.
    /// What was to be sent until then is sealed.
    Established,
    /// After [`Step::Established`] with early data: now the handshake is done. What came before may have been sent by
    /// somebody else, who had recorded it; what comes from now on is the client's.
    Confirmed,
    /// The peer will send nothing more.
    Ended,
    /// It is over. An alert may be in what is to be sent.
    Failed(TlsError),
}
