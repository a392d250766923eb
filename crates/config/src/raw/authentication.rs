//! `authentication`: how clients show who they are.

use crate::decode::{OneOrMany, Spanned};
use crate::scalar::{Duration, HOUR, MINUTE, SECOND, Text};
use crate::shapes::{FieldName, FilePath, KeysUrl};

/// Longest time that the clocks of an issuer and of weir may differ.
const LEEWAY_MS_MAX: u64 = 10 * MINUTE;

section! {
    /// How clients show who they are. Virtual servers and rules name it in `authenticate`; conditions read tokens as `jwt['NAME']`.
    Authentication at "authentication.NAME" {
        /// What clients show.
        required kind as "type": AuthenticationType;
        /// What clients are told that it protects (`realm` of `WWW-Authenticate`). Default: its name.
        optional realm: Text;
        /// Whether members get what a client that was let in has shown: the field or cookie with it.
        default forward_credentials: bool = true;
        /// Of `basic`: a file with users and hashes of their passwords, as `htpasswd -B` writes it: bcrypt, or Argon2 (`$argon2id$…`). Read with the configuration. Needed there.
        optional users: FilePath;
        /// Of `jwt`: the public keys of whoever issues the tokens. Needed there.
        optional keys: TokenKeys;
        /// Of `jwt`: how tokens may be signed, one or several. Default: `RS256`, `ES256` and `EdDSA`. A key verifies one of them and no other; `none` and `HS256` are never taken.
        optional algorithms: OneOrMany<Spanned<TokenAlgorithm>>;
        /// Of `jwt`: who may have issued a token (its `iss`), one or several. Default: not looked at.
        optional issuer: OneOrMany<Spanned<Text>>;
        /// Of `jwt`: whom a token must be meant for (its `aud`), one of these. Default: not looked at, so that a token which the issuer has made for another service is taken, too.
        optional audience: OneOrMany<Spanned<Text>>;
        /// Of `jwt`: how far the clocks of issuer and weir may differ, for `exp` and `nbf`.
        default leeway: Duration<0, LEEWAY_MS_MAX> = Duration(30 * SECOND);
        /// Of `jwt`: the field that has the token, with or without `Bearer` ahead. Default: `Authorization: Bearer TOKEN`.
        optional header: FieldName;
        /// Of `jwt`: the cookie that has the token, in place of a field.
        optional cookie: FieldName;
        /// Of `jwt`: the claim that names the user, for `request.user` and the access log.
        default user_claim: Text = Text("sub".into());
    }
    later []
}

choice! {
    /// What clients show.
    AuthenticationType {
        /// A JSON Web Token that somebody has signed (RFC 7519).
        Jwt = "jwt",
        /// A name and a password (RFC 7617), which are in a file.
        Basic = "basic",
    }
    later [] maps []
}

choice! {
    /// How tokens are signed.
    TokenAlgorithm {
        /// RSA, PKCS #1 v1.5, with SHA-256.
        Rs256 = "RS256",
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// EdDSA on Ed25519.
        EdDsa = "EdDSA",
    }
    later [] maps []
}

section! {
    /// Public keys as a JWK Set (RFC 7517): `file` or `url`.
    TokenKeys at "authentication.NAME.keys" {
        /// A file with them, read with the configuration.
        optional file: FilePath;
        /// Where they are fetched: `https://`, or `http://` of this host. Until they are there for the first time, `authenticate` answers 503. A fetch that fails keeps the keys that are there, and is told in the event log.
        optional url: KeysUrl;
        /// Of `url`: how often they are fetched anew.
        default refresh: Duration<SECOND, { 24 * HOUR }> = Duration(5 * MINUTE);
    }
    later []
}
