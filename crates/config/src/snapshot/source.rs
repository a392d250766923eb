//! Where connections to members come from.

use std::net::IpAddr;
use std::sync::Arc;

/// `source:` of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// The system picks address and port.
    #[default]
    System,
    /// From these addresses in turn.
    Addresses(Arc<SourceAddresses>),
    /// From the client's address, and a port that the system picks.
    Client,
}

/// Addresses of this host that connections come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceAddresses {
    /// At least one address, without duplicates.
    pub addresses: Vec<IpAddr>,
    /// The lowest and the highest of their ports; `None`: any that the system uses.
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

    /// Addresses of this host that it names, and their ports.
    pub fn addresses(&self) -> Option<&SourceAddresses> {
        match self {
            Self::Addresses(own) => Some(own),
            Self::System | Self::Client => None,
        }
    }

    /// Whether each connection comes from the address of its client.
    pub fn is_client(&self) -> bool {
        *self == Self::Client
    }
}
