//! `authentication`: how clients authenticate.

use crate::decode::{OneOrMany, Spanned};
use crate::scalar::{Duration, HOUR, MINUTE, Name, SECOND, Text};
use crate::shapes::{FieldName, FilePath, KeysUrl, ProbePath};
use crate::variants::Kind;

/// Longest accepted difference between the clocks of an issuer and of weir.
const LEEWAY_MS_MAX: u64 = 10 * MINUTE;

variants! {
    /// How clients authenticate. Virtual servers and rules refer to an entry with `authenticate`; conditions read tokens as `jwt['NAME']`.
    Authentication at "authentication.NAME" by AuthenticationType {
        /// The type of credentials.
        required kind as "type" for all: AuthenticationType;
        /// The `realm` of `WWW-Authenticate`: the name that clients see. Default: the name of this entry.
        optional realm for [Jwt, Basic]: Text;
        /// `true`: members get the header or cookie with the client's token or password. `false`: weir removes it.
        default forward_credentials for [Jwt, Basic]: bool = true;
        /// Required. A file with users and hashes of their passwords, as written by `htpasswd -B`: bcrypt, or Argon2 (`$argon2id$…`). weir reads it with the configuration.
        optional users for [Basic]: FilePath;
        /// Required. The public keys of the token issuer.
        optional keys for [Jwt]: TokenKeys;
        /// Accepted signature algorithms, one or several. Default: `RS256`, `ES256` and `EdDSA`. A key verifies only one algorithm. `none` and `HS256` are never accepted.
        optional algorithms for [Jwt]: OneOrMany<Spanned<TokenAlgorithm>>;
        /// Accepted issuers (claim `iss`), one or several. Default: not checked.
        optional issuer for [Jwt]: OneOrMany<Spanned<Text>>;
        /// Accepted audiences (claim `aud`); a token needs one of them. Default: not checked, so tokens issued for another service are accepted, too.
        optional audience for [Jwt]: OneOrMany<Spanned<Text>>;
        /// Tolerated clock difference between the issuer and weir, for `exp` and `nbf`.
        default leeway for [Jwt]: Duration<0, LEEWAY_MS_MAX> = Duration(30 * SECOND);
        /// The header with the token, with or without the prefix `Bearer`. Default: `Authorization`, with the prefix `Bearer`.
        optional header for [Jwt]: FieldName;
        /// The cookie with the token, instead of a header. Default: none.
        optional cookie for [Jwt]: FieldName;
        /// Required. The pool of the authorisation service. weir sends it a request of its own for each client request.
        optional pool for [External]: Name;
        /// The path of the request to the service, optionally with a query. The method is `GET`. The client's method, path and query, host, scheme and address are in `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host`, `X-Forwarded-Proto` and `X-Forwarded-For`.
        default path for [External]: ProbePath = ProbePath("/".into());
        /// The headers of the client's request that the service gets. Default: all, except headers about the body (`Content-…`, `Expect`), conditions and ranges (`If-…`, `Range`), `Accept-Encoding`, and headers with which clients could deceive the service (those of `add_headers` and `user_header`, `Forwarded`, `X-Real-IP`, `X-Original-…`, `X-Rewrite-URL`).
        optional request_headers for [External]: OneOrMany<Spanned<FieldName>>;
        /// Headers of the service's response that weir adds to an accepted request for the member. weir always removes client headers with these names. Default: none.
        optional add_headers for [External]: OneOrMany<Spanned<FieldName>>;
        /// Headers of the service's response that the client gets if the service refuses the request. Default: `Location`, `Set-Cookie`, `WWW-Authenticate`, `Content-Type`, `Cache-Control` and `Retry-After`.
        optional answer_headers for [External]: OneOrMany<Spanned<FieldName>>;
        /// The header of the service's response with the user's name, for the access log and for `request.user` in rules that read the response. Default: none.
        optional user_header for [External]: FieldName;
        /// Maximum time for the complete response of the service, including the wait in its pool's queue. After it, `on_error` applies.
        default timeout for [External]: Duration<10, { 10 * MINUTE }> = Duration(5 * SECOND);
        /// Treatment of a request if the service does not respond in time, cannot be reached, or responds with a status of 500 or more.
        default on_error for [External]: OnError = OnError::Deny;
        /// The claim with the user's name, for `request.user` and the access log.
        default user_claim for [Jwt]: Text = Text("sub".into());
    }
    later []
}

choice! {
    /// The type of credentials.
    AuthenticationType {
        /// A signed JSON Web Token (RFC 7519).
        Jwt = "jwt",
        /// A name and a password (RFC 7617), checked against a file.
        Basic = "basic",
        /// Your own service decides about each request. With a status of 200 to 299, the request is accepted. With 300 to 499, it is refused, and the client gets the service's response. With any other result, `on_error` applies.
        External = "external",
    }
    later [] maps []
}

impl Kind for AuthenticationType {
    const OF: &'static str = "an authentication";
}

choice! {
    /// Treatment of a request if the service does not decide about it.
    OnError {
        /// The client gets 503.
        Deny = "deny",
        /// The request is accepted, without headers of the service.
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
        /// The URL of the keys: `https://`, or `http://` on this host. Until the first successful fetch, `authenticate` responds with 503. If a later fetch fails, weir keeps the previous keys and writes an event.
        optional url: KeysUrl;
        /// For `url`: the interval between fetches.
        default refresh: Duration<SECOND, { 24 * HOUR }> = Duration(5 * MINUTE);
    }
    later []
}
