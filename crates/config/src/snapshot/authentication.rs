//! Keys that tokens are verified with.

use std::sync::Arc;

use weir_core::jwt::TokenReader;

use super::HttpUrl;

/// A token reader whose keys are fetched.
#[derive(Debug, Clone)]
pub struct FetchedKeys {
    /// The name of the authentication in the file.
    pub name: Arc<str>,
    /// Gets the keys.
    pub reader: Arc<TokenReader>,
    /// Where they are.
    pub url: HttpUrl,
    /// How often they are fetched.
    pub refresh_ms: u64,
}
