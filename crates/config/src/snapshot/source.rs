//! Source addresses of connections to members.

use std::net::IpAddr;
use std::sync::Arc;

/// `source:` of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// The system selects address and port.
    #[default]
    System,
    /// These addresses in turn.
    Addresses(Arc<SourceAddresses>),
    /// The client's address, with a port selected by the system.
    Client,
}

/// Addresses of this host for connections to members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceAddresses {
    /// At least one address, without duplicates.
    pub addresses: Vec<IpAddr>,
    /// The lowest and highest port; `None`: the system's range.
    pub ports: Option<(u16, u16)>,
}

impl Source {
    /// Whether one of the addresses has the same family as `to`.
    pub fn reaches(&self, to: IpAddr) -> bool {
        match self {
            Self::System | Self::Client => true,
            Self::Addresses(own) => own.addresses.iter().any(|own| own.is_ipv4() == to.is_ipv4()),
        }
    }

    /// The addresses of this host, with their ports, if any are given.
    pub fn addresses(&self) -> Option<&SourceAddresses> {
        match self {
            Self::Addresses(own) => Some(own),
            Self::System | Self::Client => None,
        }
    }

    /// Whether connections use the address of their client.
    pub fn is_client(&self) -> bool {
        *self == Self::Client
    }
}
