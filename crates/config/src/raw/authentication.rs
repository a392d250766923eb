//! `authentication`: how clients authenticate.

use crate::decode::{OneOrMany, Spanned};
use crate::scalar::{Duration, HOUR, MINUTE, Name, SECOND, Text};
use crate::shapes::{FieldName, FilePath, KeysUrl, ProbePath};

/// Longest accepted difference between the clocks of an issuer and of weir.
const LEEWAY_MS_MAX: u64 = 10 * MINUTE;

section! {
    /// How clients authenticate. Virtual servers and rules name it in `authenticate`; conditions read tokens as `jwt['NAME']`.
    Authentication at "authentication.NAME" {
        /// The kind of credentials.
        required kind as "type": AuthenticationType;
        /// The `realm` of `WWW-Authenticate`: the name that clients see. Default: the name of this section.
        optional realm: Text;
        /// Whether members get the client's credentials: the field or cookie with the token or password.
        default forward_credentials: bool = true;
        /// For `basic`, required: a file with users and hashes of their passwords, as written by `htpasswd -B`: bcrypt, or Argon2 (`$argon2id$…`). It is read with the configuration.
        optional users: FilePath;
        /// For `jwt`, required: the public keys of the token issuer.
        optional keys: TokenKeys;
        /// For `jwt`: accepted signature algorithms, one or several. Default: `RS256`, `ES256` and `EdDSA`. A key verifies only one algorithm. `none` and `HS256` are never accepted.
        optional algorithms: OneOrMany<Spanned<TokenAlgorithm>>;
        /// For `jwt`: accepted issuers (claim `iss`), one or several. Default: not checked.
        optional issuer: OneOrMany<Spanned<Text>>;
        /// For `jwt`: accepted audiences (claim `aud`); a token needs one of them. Default: not checked, so tokens that the issuer made for another service are accepted, too.
        optional audience: OneOrMany<Spanned<Text>>;
        /// For `jwt`: accepted clock difference between the issuer and weir, for `exp` and `nbf`.
        default leeway: Duration<0, LEEWAY_MS_MAX> = Duration(30 * SECOND);
        /// For `jwt`: the field with the token, with or without the prefix `Bearer`. Default: `Authorization: Bearer TOKEN`.
        optional header: FieldName;
        /// For `jwt`: the cookie with the token, instead of a field. Default: none.
        optional cookie: FieldName;
        /// For `external`, required: the pool of the authorisation service. weir asks it about each request.
        optional pool: Name;
        /// For `external`: the path of the request to the service, optionally with a query. The method is `GET`. The client's method, path and query, host, scheme and address are in `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host`, `X-Forwarded-Proto` and `X-Forwarded-For`.
        default path: ProbePath = ProbePath("/".into());
        /// For `external`: the fields of the client's request that the service gets. Default: all, except fields about the body (`Content-…`, `Expect`), conditions and ranges (`If-…`, `Range`), `Accept-Encoding`, and fields by which clients could deceive it (those of `add_headers` and `user_header`, `Forwarded`, `X-Real-IP`, `X-Original-…`, `X-Rewrite-URL`).
        optional request_headers: OneOrMany<Spanned<FieldName>>;
        /// For `external`: fields of the service's response that the member gets after the request was accepted. Client fields with these names are always removed. Default: none.
        optional add_headers: OneOrMany<Spanned<FieldName>>;
        /// For `external`: fields of the service's response that the client gets after the request was refused. Default: `Location`, `Set-Cookie`, `WWW-Authenticate`, `Content-Type`, `Cache-Control` and `Retry-After`.
        optional answer_headers: OneOrMany<Spanned<FieldName>>;
        /// For `external`: the field of the service's response with the user's name, for the access log and for `request.user` in rules that read the response. Default: none.
        optional user_header: FieldName;
        /// For `external`: the time for the complete response of the service, including the wait in its pool's queue.
        default timeout: Duration<10, { 10 * MINUTE }> = Duration(5 * SECOND);
        /// For `external`: what happens to a request if the service does not answer in time, cannot be reached, or answers with a status of 500 or more.
        default on_error: OnError = OnError::Deny;
        /// For `jwt`: the claim with the user's name, for `request.user` and the access log.
        default user_claim: Text = Text("sub".into());
    }
    later []
}

choice! {
    /// The kind of credentials.
    AuthenticationType {
        /// A signed JSON Web Token (RFC 7519).
        Jwt = "jwt",
        /// A name and a password (RFC 7617), checked against a file.
        Basic = "basic",
        /// Your own service decides about each request. A status of 200 to 299 accepts it. With 300 to 499 the client gets the service's response.
        External = "external",
    }
    later [] maps []
}

choice! {
    /// What happens to a request if the service does not decide about it.
    OnError {
        /// The client gets 503.
        Deny = "deny",
        /// The request is accepted, without fields of the service.
        Allow = "allow",
    }
    later [] maps []
}

choice! {
    /// Signature algorithms of tokens.
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
        /// A file with the keys, read with the configuration.
        optional file: FilePath;
        /// The URL of the keys: `https://`, or `http://` on this host. Until the first successful fetch, `authenticate` answers 503. If a later fetch fails, weir keeps its keys and writes an event.
        optional url: KeysUrl;
        /// For `url`: the interval between fetches.
        default refresh: Duration<SECOND, { 24 * HOUR }> = Duration(5 * MINUTE);
    }
    later []
}
