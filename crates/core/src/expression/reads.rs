//! The values that an expression reads, which must be available where it is evaluated.

use std::ops::BitOr;

/// The kinds of values that one or several expressions read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// `request.*`
    pub request: bool,
    /// `response.*`
    pub response: bool,
    /// Values of a datagram.
    pub datagram: bool,
    /// `tls.sni`, which a client sends in its first message.
    pub server_name: bool,
    /// Other values of `tls`, which need a handshake.
    pub handshake: bool,
    /// `random(…)`: each evaluation may differ.
    pub random: bool,
}

impl BitOr for Reads {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            request: self.request | other.request,
            response: self.response | other.response,
            datagram: self.datagram | other.datagram,
            server_name: self.server_name | other.server_name,
            handshake: self.handshake | other.handshake,
            random: self.random | other.random,
        }
    }
}

impl FromIterator<Self> for Reads {
    fn from_iter<T: IntoIterator<Item = Self>>(all: T) -> Self {
        all.into_iter().fold(Self::default(), |all, one| all | one)
    }
}
