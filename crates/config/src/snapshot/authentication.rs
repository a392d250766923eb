//! Keys for the verification of tokens.

use std::sync::Arc;

use weir_core::jwt::TokenReader;

use super::HttpUrl;

/// A token reader with keys that are fetched by URL.
#[derive(Debug, Clone)]
pub struct FetchedKeys {
    /// The name of the authentication in the file.
    pub name: Arc<str>,
    /// The reader, which receives the keys.
    pub reader: Arc<TokenReader>,
    /// The URL of the keys.
    pub url: HttpUrl,
    /// The interval between fetches.
    pub refresh_ms: u64,
}
