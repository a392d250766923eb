//! How requests of one client keep going to one member.

use std::sync::Arc;

use weir_core::expression::{Reads, Template};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::persistence::keys::Keys;
use weir_core::policy::Secure;
use weir_http::cookies::SetCookie;

use super::ConnectionIdSettings;

/// How requests of one client keep going to one member.
#[derive(Debug, Clone)]
pub struct Persistence {
    /// Its name; of an inline one `virtual_servers.` and the virtual server's.
    pub name: Arc<str>,
    /// The way to identify clients.
    pub kind: PersistenceKind,
    /// The next persistence: an index into [`Snapshot::persistence`].
    pub fallback: Option<usize>,
}

/// The way to identify clients.
#[derive(Debug, Clone)]
pub enum PersistenceKind {
    /// A cookie of weir's own.
    Insert(InsertedCookie),
    /// A cookie of the application.
    Passive {
        /// The name.
        name: Arc<str>,
    },
    /// The client's address or its destination address, stored in a table.
    Address(RememberedAddress),
    /// A value of the response or the request, remembered.
    Learned(Learned),
    /// The connection ID of QUIC that its member has given it, remembered.
    ConnectionIds(ConnectionIdSettings),
    /// The value of a template, hashed.
    Hash(Template),
    /// A parameter in the path, or the cookie of the same name in upper case.
    PathParameter {
        /// The name of the parameter.
        name: Arc<str>,
        /// The name of the cookie.
        cookie: Arc<str>,
    },
}

impl PersistenceKind {
    /// Whether members are picked by a key of the request.
    pub fn is_keyed(&self) -> bool {
        match self {
            Self::Passive { .. } | Self::Hash(_) | Self::PathParameter { .. } => true,
            Self::Insert(_) | Self::Address(_) | Self::Learned(_) | Self::ConnectionIds(_) => false,
        }
    }

    /// The values that the identifying text reads, if there is one.
    pub fn reads(&self) -> Option<Reads> {
        match self {
            Self::Hash(of) | Self::Learned(Learned { of, .. }) => Some(of.reads()),
            _ => None,
        }
    }

    /// Whether virtual servers with the same pool share the table.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Address(remembered) => remembered.table.across_virtual_servers,
            Self::Learned(learned) => learned.table.across_virtual_servers,
            _ => false,
        }
    }
}

/// A cookie of weir's own.
#[derive(Debug, Clone)]
pub struct InsertedCookie {
    /// The cookie but for its value and Secure.
    pub cookie: SetCookie,
    /// Whether it is for TLS only.
    pub secure: Secure,
    /// Whether members get it.
    pub to_member: bool,
    /// From a file that the configuration names; `None`: weir's own.
    pub keys: Option<Arc<Keys>>,
}

/// An address that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RememberedAddress {
    /// The kind of address.
    pub of: AddressOf,
    /// How much of it counts.
    pub prefix: PrefixLengths,
    /// The table.
    pub table: TableSettings,
}

/// The two ends of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressOf {
    /// The client's.
    Client,
    /// The address that the client has connected to.
    Server,
}

/// A value that is remembered.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The text that identifies a client.
    pub of: Template,
    /// The text learned from a response; `None`: the value of `of` for the request is learned.
    pub learn: Option<Template>,
    /// The table.
    pub table: TableSettings,
}

/// The remembered value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSettings {
    /// After the last request.
    pub timeout_ms: u64,
    /// Maximum number of entries.
    pub entries_max: u32,
    /// Virtual servers with the same pool share it.
    pub across_virtual_servers: bool,
}
