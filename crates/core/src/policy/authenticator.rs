//! Authentications, as rules and virtual servers require them.

use std::sync::Arc;

use aws_lc_rs::hmac;

use crate::jwt::TokenPlace;
use crate::passwords::{Credentials, TAG_BYTES, Users};

/// Accepts requests with valid credentials; others get a response.
#[derive(Debug)]
pub struct Authenticator {
    /// The key in the file.
    pub name: Arc<str>,
    /// The realm for clients; safe within quotes.
    pub realm: Box<str>,
    /// Whether credentials are forwarded to members.
    pub forwards: bool,
    /// The kind of credentials that are required.
    pub how: CredentialsKind,
}

/// The kind of credentials.
#[derive(Debug)]
pub enum CredentialsKind {
    /// By a token.
    Token {
        /// The index of the token's reader in the snapshot's expressions.
        reader: u32,
        /// The place of the token in the request.
        place: TokenPlace,
        /// The claim with the user name.
        user_claim: Box<str>,
    },
    /// By user name and password (RFC 7617).
    Password(Arc<Users>),
}

impl Authenticator {
    /// The challenge for a client without a valid password.
    pub fn basic_challenge(&self) -> String {
        format!("Basic realm=\"{}\", charset=\"UTF-8\"", self.realm)
    }
}

/// A user name and a password that must be checked before any decision takes effect.
#[derive(Debug, Clone)]
pub struct Login {
    /// The authentication that requires them.
    pub by: Arc<Authenticator>,
    users: Arc<Users>,
    credentials: Credentials,
}

impl Login {
    /// A login with these credentials, to be checked against these users.
    pub fn new(by: Arc<Authenticator>, users: Arc<Users>, credentials: Credentials) -> Self {
        Self { by, users, credentials }
    }

    /// Whether the password is correct. Slow on purpose.
    pub fn check(&self) -> bool {
        self.users.check(&self.credentials.user, &self.credentials.password)
    }

    /// The tag of user name and password: see [`Users::tag`].
    pub fn tag(&self, key: &hmac::Key) -> Option<[u8; TAG_BYTES]> {
        self.users.tag(key, &self.credentials.user, &self.credentials.password)
    }
}
