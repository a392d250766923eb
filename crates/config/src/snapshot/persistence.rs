//! Persistence: requests of one client go to the same member.

use std::sync::Arc;

use weir_core::expression::{Reads, Template};
use weir_core::keyed_hash::PrefixLengths;
use weir_core::persistence::keys::Keys;
use weir_core::policy::Secure;
use weir_http::cookies::SetCookie;

use super::ConnectionIdSettings;

/// A persistence: requests of one client go to the same member.
#[derive(Debug, Clone)]
pub struct Persistence {
    /// The name; an inline persistence is named `virtual_servers.` plus the virtual server's name.
    pub name: Arc<str>,
    /// The way to identify clients.
    pub kind: PersistenceKind,
    /// The next persistence: an index into [`Snapshot::persistence`].
    pub fallback: Option<usize>,
}

/// The way to identify clients.
#[derive(Debug, Clone)]
pub enum PersistenceKind {
    /// A cookie inserted by weir.
    Insert(InsertedCookie),
    /// A cookie of the application.
    Passive {
        /// The name.
        name: Arc<str>,
    },
    /// The client's address or its destination address, stored in a table.
    Address(RememberedAddress),
    /// A value of the response or the request, stored in a table.
    Learned(LearnedPersistence),
    /// QUIC connection IDs, as issued by members, stored in a table.
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
    /// Whether the member is selected by a key of the request.
    pub fn is_keyed(&self) -> bool {
        match self {
            Self::Passive { .. } | Self::Hash(_) | Self::PathParameter { .. } => true,
            Self::Insert(_) | Self::Address(_) | Self::Learned(_) | Self::ConnectionIds(_) => false,
        }
    }

    /// The values that the identifying text reads, if there is such a text.
    pub fn reads(&self) -> Option<Reads> {
        match self {
            Self::Hash(of) | Self::Learned(LearnedPersistence { of, .. }) => Some(of.reads()),
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

/// A cookie inserted by weir.
#[derive(Debug, Clone)]
pub struct InsertedCookie {
    /// The cookie without its value and `Secure`.
    pub cookie: SetCookie,
    /// Whether the cookie has `Secure`.
    pub secure: Secure,
    /// Whether members get the cookie.
    pub to_member: bool,
    /// Keys from a file of the configuration; `None`: weir's own keys.
    pub keys: Option<Arc<Keys>>,
}

/// Persistence by an address, stored in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RememberedAddress {
    /// The kind of address.
    pub of: AddressOf,
    /// The significant prefix of the address.
    pub prefix: PrefixLengths,
    /// The table.
    pub table: TableSettings,
}

/// The address that identifies clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressOf {
    /// The client's address.
    Client,
    /// The address that the client has connected to.
    Server,
}

/// Persistence by a text, stored in a table.
#[derive(Debug, Clone)]
pub struct LearnedPersistence {
    /// The text that identifies a client.
    pub of: Template,
    /// The text learned from a response; `None`: the value of `of` for the request is learned.
    pub learn: Option<Template>,
    /// The table.
    pub table: TableSettings,
}

/// Settings of a persistence table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSettings {
    /// Lifetime of an entry after the last request.
    pub timeout_ms: u64,
    /// Maximum number of entries.
    pub entries_max: u32,
    /// Whether virtual servers with the same pool share the table.
    pub across_virtual_servers: bool,
}
