//! The ways in which a member can fail a request.

use std::fmt;

use crate::termination::Termination;

/// The reason why a member did not serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFailure {
    /// This host has no descriptor, port or memory for a connection: not a failure of the member.
    NoSocket,
    /// The member cannot accept another connection now (the queue of a unix socket is full).
    Busy,
    /// The connection was refused or failed to open.
    Connect,
    /// The connection did not open in time.
    ConnectTimeout,
    /// The response head did not arrive in time, or the body stopped.
    Timeout,
    /// The connection ended or broke.
    Abort,
    /// The member sent invalid HTTP.
    Malformed,
}

impl MemberFailure {
    /// Whether it counts as a failure of the member.
    pub fn is_of_member(self) -> bool {
        !matches!(self, Self::NoSocket | Self::Busy)
    }

    /// The status for the client.
    pub fn status(self) -> u16 {
        match self {
            Self::NoSocket | Self::Busy => 503,
            Self::ConnectTimeout | Self::Timeout => 504,
            Self::Connect | Self::Abort | Self::Malformed => 502,
        }
    }

    /// The termination reason.
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

/// The loss of an exchange's member connection.
pub struct Loss {
    /// The reason.
    pub reason: MemberFailure,
    /// Whether certainly nothing of the request has reached the member.
    pub nothing_sent: bool,
    /// The data that was queued for the member.
    pub unsent: Vec<u8>,
    /// Whether the failure was already counted with another exchange of the connection.
    pub is_counted: bool,
    /// Whether all data of the response had arrived by its Content-Length. The client has a whole response then, however the
    /// member ended.
    pub is_whole: bool,
}

impl Loss {
    /// The loss of a connection over which something may have reached the member.
    pub fn of(reason: MemberFailure) -> Self {
        let unsent = Vec::new();
        Self { reason, nothing_sent: false, unsent, is_counted: false, is_whole: false }
    }
}

/// What is known of an exchange whose stream has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The member has not read the request.
    Unread,
    /// As [`Self::Unread`]: the SETTINGS of the member did not arrive in time, so its connection takes no further request.
    Unsettled,
    /// The member may have read the request.
    Begun,
    /// As [`Self::Begun`], and all data of the response has arrived by its Content-Length.
    Whole,
}

/// A failure that counts against a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The member answered with this status.
    Status(u16),
    /// The member did not serve a request.
    Failure(MemberFailure),
}

impl Blame {
    const FAILURES: [MemberFailure; 7] = [
        MemberFailure::NoSocket,
        MemberFailure::Busy,
        MemberFailure::Connect,
        MemberFailure::ConnectTimeout,
        MemberFailure::Timeout,
        MemberFailure::Abort,
        MemberFailure::Malformed,
    ];

    /// The number of a failure: a status, or an index from 1. Never 0.
    pub fn to_bits(self) -> u16 {
        match self {
            Self::Status(status) => status,
            Self::Failure(failure) => {
                let place = Self::FAILURES.iter().position(|known| *known == failure);
                place.map_or(1, |place| place as u16 + 1)
            }
        }
    }

    /// The failure with this number; `None`: no failure.
    pub fn from_bits(bits: u16) -> Option<Self> {
        match bits {
            0 => None,
            status @ 100.. => Some(Self::Status(status)),
            place => Self::FAILURES.get(usize::from(place) - 1).copied().map(Self::Failure),
        }
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Status(status) => return write!(formatter, "it answered {status}"),
            Self::Failure(MemberFailure::NoSocket | MemberFailure::Busy) => "it had no room",
            Self::Failure(MemberFailure::Connect) => "it took no connection",
            Self::Failure(MemberFailure::ConnectTimeout) => "it took no connection in time",
            Self::Failure(MemberFailure::Timeout) => "it did not answer in time",
            Self::Failure(MemberFailure::Abort) => {
                "its connection broke before the response was whole"
            }
            Self::Failure(MemberFailure::Malformed) => "its response was malformed",
        };
        formatter.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blames_have_numbers() {
        let failures = Blame::FAILURES.map(Blame::Failure);
        for blame in failures.into_iter().chain([Blame::Status(500), Blame::Status(599)]) {
            assert_eq!(Blame::from_bits(blame.to_bits()), Some(blame));
        }
        assert_eq!(Blame::from_bits(0), None);
        assert_eq!(Blame::from_bits(99), None);
    }
}
