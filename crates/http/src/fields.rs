//! Fields with a meaning for intermediaries, and the forwarding of fields.

use crate::chars::{is_alike, is_word};
use crate::message::{Field, FieldId};

/// Facts about a field from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) id: FieldId,
    /// Whether the field is forwarded, unless a later decision forbids it.
    pub(crate) forward: bool,
}

impl Kind {
    /// The facts for this id.
    pub(crate) const fn of(id: FieldId) -> Self {
        let forward = matches!(
            id,
            FieldId::Other
                | FieldId::Credentials
                | FieldId::Challenge
                | FieldId::Date
                | FieldId::Expect
                | FieldId::MaxForwards
                | FieldId::Proxy
                | FieldId::Trailer
        );
        Self { id, forward }
    }
}

/// Distinguishes the fields of [`FieldId`] from all others.
///
/// A name that differs from one of them only by other characters instead of hyphens is not that field, but is
/// not forwarded either: members that see names as CGI variables would take it for the field.
#[inline]
pub(crate) fn classify(name: &[u8]) -> Kind {
    match (name.len(), name[0] | 0x20) {
        (2, b't') => known(name, b"te", FieldId::Te),
        (4, b'd') => known(name, b"date", FieldId::Date),
        (4, b'h') => known(name, b"host", FieldId::Host),
        (5, b'p') => known(name, b"proxy", FieldId::Proxy),
        (6, b'e') => known(name, b"expect", FieldId::Expect),
        (7, b't') => known(name, b"trailer", FieldId::Trailer),
        (7, b'u') => known(name, b"upgrade", FieldId::Upgrade),
        (10, b'c') => known(name, b"connection", FieldId::Connection),
        (10, b'k') => known(name, b"keep-alive", FieldId::KeepAlive),
        (12, b'm') => known(name, b"max-forwards", FieldId::MaxForwards),
        (13, b'a') => looked_at(name, b"authorization", FieldId::Credentials),
        (14, b'c') => known(name, b"content-length", FieldId::ContentLength),
        (14, b'h') => known(name, b"http2-settings", FieldId::Http2Settings),
        (15, b'p') => looked_at(name, b"persistent-auth", FieldId::Challenge),
        (16, b'w') => looked_at(name, b"www-authenticate", FieldId::Challenge),
        (18, b'p') => looked_at(name, b"proxy-authenticate", FieldId::Challenge),
        (19, b'p') => looked_at(name, b"proxy-authorization", FieldId::Credentials),
        (16, b'p') => known(name, b"proxy-connection", FieldId::ProxyConnection),
        (17, b't') => known(name, b"transfer-encoding", FieldId::TransferEncoding),
        _ => Kind::of(FieldId::Other),
    }
}

/// `id` if `name` is `spelling`. Other spellings are ordinary fields.
fn looked_at<const LENGTH: usize>(name: &[u8], spelling: &[u8; LENGTH], id: FieldId) -> Kind {
    Kind::of(if is_word(name, spelling) { id } else { FieldId::Other })
}

/// `id` if `name` is `spelling`.
fn known<const LENGTH: usize>(name: &[u8], spelling: &[u8; LENGTH], id: FieldId) -> Kind {
    if is_word(name, spelling) {
        Kind::of(id)
    } else {
        Kind { id: FieldId::Other, forward: !looks_like(name, spelling) }
    }
}

/// [`is_alike`], for the few names that pass the earlier checks.
#[cold]
#[inline(never)]
fn looks_like(name: &[u8], spelling: &[u8]) -> bool {
    is_alike(name, spelling)
}

/// Prevents every field called `name` from being forwarded.
pub(crate) fn withhold_named(fields: &mut [Field], input: &[u8], name: &[u8]) {
    for field in fields {
        if field.name.len() == name.len() && field.name.of(input).eq_ignore_ascii_case(name) {
            field.forward = false;
        }
    }
}

/// Prevents every field with this id from being forwarded.
pub(crate) fn withhold(fields: &mut [Field], id: FieldId) {
    for field in fields {
        field.forward &= field.id != id;
    }
}

/// Whether a field is allowed in a trailer section (RFC 9110 section 6.5.1): not if it frames, routes, controls,
/// authenticates or describes the content, or names the client or a proxy. Other characters count as hyphens, as in
/// [`classify`].
pub(crate) fn may_be_trailer(name: &[u8]) -> bool {
    const REFUSED: [&str; 33] = [
        "accept-ranges",
        "age",
        "allow",
        "authentication-info",
        "authorization",
        "cache-control",
        "connection",
        "cookie",
        "date",
        "early-data",
        "etag",
        "expect",
        "expires",
        "forwarded",
        "host",
        "http2-settings",
        "keep-alive",
        "last-modified",
        "location",
        "max-forwards",
        "pragma",
        "proxy",
        "range",
        "retry-after",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "vary",
        "via",
        "www-authenticate",
        "x-real-ip",
    ];
    const REFUSED_PREFIXES: [&str; 5] = ["content-", "if-", "proxy-", "sec-", "x-forwarded-"];
    let refused = REFUSED.iter().any(|refused| is_alike(name, refused.as_bytes()));
    let refused_prefix = REFUSED_PREFIXES.iter().any(|prefix| {
        name.get(..prefix.len()).is_some_and(|start| is_alike(start, prefix.as_bytes()))
    });
    !refused && !refused_prefix
}

/// Words at whose beginning the name of a client's trailer is refused.
const CLAIM_STARTS: [&str; 64] = [
    "access",
    "account",
    "admin",
    "anonymous",
    "appengine",
    "assertion",
    "auth",
    "azure",
    "baggage",
    "caller",
    "cert",
    "claim",
    "client",
    "connecting",
    "consumer",
    "cookie",
    "credential",
    "cron",
    "customer",
    "email",
    "entitle",
    "envoy",
    "forward",
    "group",
    "host",
    "ident",
    "impersonat",
    "inbound",
    "internal",
    "jwt",
    "kerberos",
    "krb",
    "ldap",
    "logged",
    "login",
    "logon",
    "method",
    "middleware",
    "oidc",
    "original",
    "override",
    "passw",
    "permission",
    "prefix",
    "principal",
    "privilege",
    "rewrite",
    "role",
    "saml",
    "scope",
    "script",
    "sendfile",
    "session",
    "socket",
    "spiffe",
    "subject",
    "subrequest",
    "tenant",
    "token",
    "trace",
    "trust",
    "user",
    "verif",
    "webauth",
];

/// Whole words that are refused there.
const CLAIM_WORDS: [&str; 38] = [
    "accel",
    "addr",
    "address",
    "api",
    "backend",
    "city",
    "continent",
    "country",
    "csrf",
    "debug",
    "dn",
    "domain",
    "geo",
    "https",
    "ip",
    "key",
    "latitude",
    "longitude",
    "mtls",
    "org",
    "path",
    "port",
    "proto",
    "protocol",
    "query",
    "region",
    "remote",
    "scheme",
    "secret",
    "ssl",
    "sso",
    "sub",
    "timezone",
    "tls",
    "uid",
    "uri",
    "url",
    "xsrf",
];

/// Texts that are refused anywhere in a name, because words may have no hyphens: `RemoteUser`, `xuser`.
const CLAIM_PARTS: [&str; 6] = ["user", "client", "forward", "authoriz", "authent", "country"];

/// Whether a trailer of a client may reach a member that merges trailers into the head: not if its name looks like a
/// statement that members believe of a proxy: about the client, its user and rights, the connection, or the target.
/// Such names have no register, so their words are compared: `X-Original-URL`, `True-Client-IP`, `CF-Connecting-IP`,
/// `Remote-User`, `X-SSL-Client-S-DN`.
pub(crate) fn may_be_trailer_of_client(name: &[u8]) -> bool {
    let starts_with = |word: &[u8], start: &str| {
        word.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start.as_bytes()))
    };
    let mut words = name.split(|byte| !byte.is_ascii_alphanumeric());
    let joined = |part: &str| contains_ignoring_case(name, part.as_bytes());
    !CLAIM_PARTS.into_iter().any(joined)
        && words.all(|word| {
            !CLAIM_STARTS.iter().any(|start| starts_with(word, start))
                && !CLAIM_WORDS.iter().any(|refused| word.eq_ignore_ascii_case(refused.as_bytes()))
        })
}

fn contains_ignoring_case(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// The values of the fields called `name`, in the order received.
pub fn values<'a>(
    fields: &'a [Field],
    input: &'a [u8],
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(|field| field.name.of(input).eq_ignore_ascii_case(name.as_bytes()))
        .map(|field| field.value.of(input))
}

/// The values of the forwarded fields called `name`.
pub fn forwarded_values<'a>(
    fields: &'a [Field],
    input: &'a [u8],
    name: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| field.forward && field.name.of(input).eq_ignore_ascii_case(name))
        .map(move |field| field.value.of(input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_fields_are_told_by_name() {
        for (name, id, forward) in [
            ("Host", FieldId::Host, false),
            ("hOST", FieldId::Host, false),
            ("content-LENGTH", FieldId::ContentLength, false),
            ("Transfer-Encoding", FieldId::TransferEncoding, false),
            ("connection", FieldId::Connection, false),
            ("Keep-Alive", FieldId::KeepAlive, false),
            ("Proxy-Connection", FieldId::ProxyConnection, false),
            ("TE", FieldId::Te, false),
            ("Upgrade", FieldId::Upgrade, false),
            ("HTTP2-Settings", FieldId::Http2Settings, false),
            ("Trailer", FieldId::Trailer, true),
            ("Expect", FieldId::Expect, true),
            ("Max-Forwards", FieldId::MaxForwards, true),
            ("Max_Forwards", FieldId::Other, false),
            ("Max.Forwards", FieldId::Other, false),
            ("Proxy", FieldId::Proxy, true),
            ("prOXY", FieldId::Proxy, true),
            ("Proxi", FieldId::Other, true),
            ("Proxy.Connection", FieldId::Other, false),
            ("dATE", FieldId::Date, true),
            ("Dato", FieldId::Other, true),
            ("Content_Length", FieldId::Other, false),
            ("transfer_encoding", FieldId::Other, false),
            ("transfer.encoding", FieldId::Other, false),
            ("Content!Length", FieldId::Other, false),
            ("Content|Length", FieldId::Other, false),
            ("Content0Length", FieldId::Other, true),
            ("Content-Lengt_", FieldId::Other, true),
            ("Authorization", FieldId::Credentials, true),
            ("proxy-authorization", FieldId::Credentials, true),
            ("Proxy_Authorization", FieldId::Other, true),
            ("WWW-authenticate", FieldId::Challenge, true),
            ("Proxy-Authenticate", FieldId::Challenge, true),
            ("Persistent-Auth", FieldId::Challenge, true),
            ("Persistent-Also", FieldId::Other, true),
            ("Hosts", FieldId::Other, true),
            ("Hest", FieldId::Other, true),
            ("X-Forwarded-For", FieldId::Other, true),
        ] {
            assert_eq!(classify(name.as_bytes()), Kind { id, forward }, "{name}");
        }
    }

    #[test]
    fn trailers_of_clients_that_may_travel() {
        for name in [
            "X-Original-URL",
            "X_Original_URL",
            "x.rewrite.url",
            "True-Client-IP",
            "CF-Connecting-IP",
            "Fastly-Client-IP",
            "X-Cluster-Client-IP",
            "Client-IP",
            "X-Client",
            "X-ProxyUser-Ip",
            "Remote-User",
            "RemoteUser",
            "Remote-Groups",
            "Remote-Addr",
            "X-User",
            "X-WEBAUTH-USER",
            "X-Authenticated-Userid",
            "X-Auth-Request-Email",
            "X-HTTP-Method-Override",
            "X-Host",
            "X-Scheme",
            "X-Url-Scheme",
            "Front-End-Https",
            "SSL-Client-Verify",
            "X-SSL-Client-S-DN",
            "X-Amzn-Oidc-Identity",
            "X-Api-Key",
            "X-Tenant-Id",
            "X-Roles",
            "traceparent",
            "baggage",
            "X-Internal",
            "X-Amzn-Oidc-Data",
            "OIDC_CLAIM_sub",
            "X-Script-Name",
            "X-Prefix",
            "X-Verified",
            "X-Trusted",
            "X-Krb5",
            "X-Login",
            "X-Sub",
            "X-Accel-Redirect",
            "X-Sendfile",
            "X-Webauth-Name",
            "X-Consumer-ID",
            "X-Credential-Identifier",
            "X-Azure-SocketIP",
            "X-Appengine-Cron",
            "X-Appengine-Inbound-Appid",
            "X-Middleware-Subrequest",
            "X-Envoy-Peer-Metadata",
            "CF-IPCountry",
            "CF-Region",
            "X-Path-Info",
        ] {
            assert!(!may_be_trailer_of_client(name.as_bytes()), "{name}");
        }
        for name in [
            "X-Checksum",
            "Digest",
            "Repr-Digest",
            "x-amz-checksum-crc32",
            "x-amz-trailer-signature",
            "Signature-Input",
            "Server-Timing",
            "grpc-status",
            "grpc-message",
            "X-Plain",
            "X-Length",
        ] {
            assert!(may_be_trailer_of_client(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn trailers_that_may_travel() {
        for (name, allowed) in [
            ("X-Checksum", true),
            ("grpc-status", true),
            ("Server-Timing", true),
            ("Content-Length", false),
            ("content_length", false),
            ("content.length", false),
            ("Proxy", false),
            ("Early_Data", false),
            ("X.Forwarded~For", false),
            ("Content-MD5", false),
            ("Transfer-Encoding", false),
            ("Host", false),
            ("If-Match", false),
            ("X-Forwarded-For", false),
            ("Set-Cookie", false),
            ("Authorization", false),
            ("Trailer", false),
        ] {
            assert_eq!(may_be_trailer(name.as_bytes()), allowed, "{name}");
        }
    }
}
