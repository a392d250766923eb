//! Keys that tokens are verified with.

use std::fmt;
use std::sync::Arc;

use weir_core::jwt::TokenReader;

/// A token reader whose keys are fetched.
#[derive(Debug, Clone)]
pub struct FetchedKeys {
    /// The name of the authentication in the file.
    pub name: Arc<str>,
    /// Gets the keys.
    pub reader: Arc<TokenReader>,
    /// Where they are.
    pub url: KeysUrl,
    /// How often they are fetched.
    pub refresh_ms: u64,
}

/// Where keys are fetched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeysUrl {
    /// Whether the scheme is `https`.
    pub is_secure: bool,
    /// Host and port as the URL has them.
    pub authority: String,
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl fmt::Display for KeysUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}
