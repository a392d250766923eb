//! The way to end the stream of a transaction, if the client has not ended it.

use weir_http::h2::ErrorCode;

use crate::termination::Termination;

/// The way to end the stream of a transaction, if the client has not ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The response with this status is complete; the rest of the request is not needed.
    Answered(u16),
    /// A reset with this code.
    Broken(ErrorCode),
}

impl StreamEnd {
    /// The end of an exchange whose response is incomplete.
    pub fn of_broken(why: Termination) -> Self {
        Self::Broken(match why {
            Termination::ClientMalformed => ErrorCode::PROTOCOL_ERROR,
            Termination::ClientTimeout | Termination::ClientAbort => ErrorCode::CANCEL,
            Termination::ClientFlood => ErrorCode::ENHANCE_YOUR_CALM,
            Termination::MemberAbort
            | Termination::MemberTimeout
            | Termination::MemberMalformed
            | Termination::EncodingFailed
            | Termination::Stopped => ErrorCode::INTERNAL_ERROR,
            // A part must not look like the whole.
            _ => ErrorCode::CANCEL,
        })
    }

    /// The end of a tunnel.
    pub fn of_tunnel(why: Termination) -> Self {
        Self::Broken(match why {
            // Only further data of the client is refused.
            Termination::Complete => ErrorCode::NO_ERROR,
            _ => ErrorCode::CANCEL,
        })
    }
}
