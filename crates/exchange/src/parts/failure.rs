//! How a member fails a request.

use crate::termination::Termination;

/// Why a member did not serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFailure {
    /// This host has no descriptor, port or memory for a connection; no fault of the member's.
    NoSocket,
    /// It has no room for another connection at the moment (a unix socket's queue).
    Busy,
    /// No connection.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// No response head in time, or a body that stopped.
    Timeout,
    /// The connection ended or broke.
    Abort,
    /// What it sent is no HTTP.
    Malformed,
}

impl MemberFailure {
    /// What its client is told.
    pub fn status(self) -> u16 {
        match self {
            Self::NoSocket | Self::Busy => 503,
            Self::ConnectTimeout | Self::Timeout => 504,
            Self::Connect | Self::Abort | Self::Malformed => 502,
        }
    }

    /// How an exchange ends for it.
    pub fn termination(self) -> Termination {
        match self {
            Self::NoSocket | Self::Busy | Self::Connect | Self::ConnectTimeout => {
                Termination::MemberConnect
            }
            Self::Timeout => Termination::MemberTimeout,
            Self::Abort => Termination::MemberAbort,
            Self::Malformed => Termination::MemberMalformed,
        }
    }
}

/// What became of the member connection of an exchange.
pub struct Loss {
    /// What happened.
    pub reason: MemberFailure,
    /// Nothing of the request can have reached the member.
    pub nothing_sent: bool,
    /// What was queued for it.
    pub unsent: Vec<u8>,
    /// It is held against the member already, with another exchange that shared the connection.
    pub is_counted: bool,
}
