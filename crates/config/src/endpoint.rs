//! The address of a server that weir connects to.

use crate::snapshot::Address;

/// An address, or a name that has addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A literal address.
    Literal(Address),
    /// A host name to resolve, in lower case, as the resolver and the `Host` field get it.
    Name {
        /// The name.
        host: String,
        /// The port; 0: that of the client's connection.
        port: u16,
    },
}

impl Endpoint {
    /// The host name; `None`: it is an address.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name { host, .. } => Some(host),
            Self::Literal(_) => None,
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Literal(address) => formatter.write_str(&address.label()),
            Self::Name { host, port: 0 } => formatter.write_str(host),
            Self::Name { host, port } => write!(formatter, "{host}:{port}"),
        }
    }
}
