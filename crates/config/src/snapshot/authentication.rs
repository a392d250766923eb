//! Keys for the verification of tokens.

use std::sync::Arc;

use weir_core::jwt::TokenReader;
use weir_http::secret_names::CredentialFields;

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

/// What all authentications need.
#[derive(Debug, Clone, Default)]
pub struct AuthenticationNeeds {
    /// Whether any of them needs passwords.
    pub checks_passwords: bool,
    /// The fields of requests in which they find credentials.
    pub credential_fields: CredentialFields,
}
