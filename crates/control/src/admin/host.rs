//! Checks the `Host` field of requests.
//!
//! The owner of a domain can point its name at the address of this listener (DNS rebinding). A page of that domain may
//! then read all responses, because the browser takes the listener for the page's own server. Such requests carry the
//! domain's name in `Host`, which the page cannot change. So over TCP, weir answers only for addresses, for
//! `localhost`, and for the names in `admin.host_names`; over TLS also for the names in its certificates.
//!
//! | status | reason |
//! |---|---|
//! | 400 | `Host` is missing (HTTP/1.1), repeated, or neither an address nor a name |
//! | 421 | another name, over TCP |

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use weir_config::snapshot::AdminSettings;

use super::context::Context;
use super::peer::Peer;
use super::problem::Problem;

/// The maximum length of a domain name (RFC 1035 section 2.3.4).
const NAME_LENGTH_MAX: usize = 253;

/// Refuses requests whose `Host` is not a name of this listener.
pub(super) fn check(context: &Context, peer: &Peer, request: &Request) -> Result<(), Problem> {
    let asked = asked_host(request.version(), request.uri(), request.headers());
    let asked = asked.map_err(|error| {
        Problem::bad_request(error)
            .help("send one Host header with the address that you connect to")
    })?;
    let Some(Host::Name(name)) = asked.filter(|_| matches!(peer, Peer::Network(_))) else {
        return Ok(());
    };
    let table = context.observed.table();
    if is_known(&name, &table.snapshot.admin, peer.is_secure()) {
        return Ok(());
    }
    if context.observed.admin.last_refusal.is_due() {
        let what = format_args!(
            "was asked for by the name `{name}` and refused: \
             if it is meant, put it into admin.host_names"
        );
        context.events.warning("admin listener", what);
    }
    let detail = format_args!("the admin listener does not answer for the name `{name}`");
    let help = format!(
        "ask it by its address or as localhost, or put the name into the configuration: \
         `admin: {{ host_names: [ {name} ] }}`"
    );
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).help(help))
}

/// The host that a client has requested.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    Address,
    /// In lower case, without a final dot.
    Name(String),
}

/// The requested host. `None`: absent, which only HTTP/1.0 permits; browsers always send it.
fn asked_host(
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Host>, &'static str> {
    const MALFORMED: &str = "the Host header is neither an address nor a name";
    let mut fields = headers.get_all(header::HOST).iter();
    let field = match (fields.next(), fields.next()) {
        (_, Some(_)) => return Err("the request has more than one Host header"),
        (None, None) if version >= Version::HTTP_11 => {
            return Err("the request has no Host header");
        }
        (None, None) => None,
        (Some(field), None) => {
            let text = field.to_str().map_err(|_| MALFORMED)?;
            Some(parse(text).ok_or(MALFORMED)?)
        }
    };
    // The authority of an absolute target overrides `Host` (RFC 9112 section 3.2.2).
    let target = uri.authority().map(|authority| parse(authority.as_str()).ok_or(MALFORMED));
    match target.transpose()? {
        Some(target) if field.as_ref().is_some_and(|field| *field != target) => {
            Err("the target and the Host header name different hosts")
        }
        Some(target) => Ok(Some(target)),
        None => Ok(field),
    }
}

/// Parses an address or a name, with or without a port.
fn parse(text: &str) -> Option<Host> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (None, port)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (Some(&text[..end]), &text[end..])
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return None;
    }
    let Some(host) = host else {
        return Some(Host::Address);
    };
    if host.parse::<Ipv4Addr>().is_ok() {
        return Some(Host::Address);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.bytes().all(is_plain) {
        return None;
    }
    Some(Host::Name(name.to_ascii_lowercase()))
}

/// Whether the listener answers for a name: over TLS also for the names of its certificates.
fn is_known(name: &str, settings: &AdminSettings, is_secure: bool) -> bool {
    let identities = settings.tls.iter().flat_map(|tls| &tls.identities);
    let mut certified = identities.flat_map(|identity| &identity.names);
    name == "localhost"
        || settings.host_names.iter().any(|known| known == name)
        || is_secure && certified.any(|known| is_for(known, name))
}

/// Whether a name of a certificate matches this name.
fn is_for(certified: &str, name: &str) -> bool {
    let below = |domain: &str| name.split_once('.').is_some_and(|(_, rest)| rest == domain);
    certified == name || certified.strip_prefix("*.").is_some_and(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_certificates() {
        for (certified, name, expected) in [
            ("weir.example", "weir.example", true),
            ("weir.example", "a.weir.example", false),
            ("*.weir.example", "a.weir.example", true),
            ("*.weir.example", "weir.example", false),
            ("*.weir.example", "a.b.weir.example", false),
        ] {
            assert_eq!(is_for(certified, name), expected, "{certified} {name}");
        }
    }

    #[test]
    fn hosts() {
        let name = |name: &str| Some(Host::Name(name.to_owned()));
        let check =
            |text: &str, expected: Option<Host>| assert_eq!(parse(text), expected, "{text}");
        for address in ["127.0.0.1", "127.0.0.1:9900", "10.0.0.1:", "[::1]", "[::1]:9900"] {
            check(address, Some(Host::Address));
        }
        check("localhost:9900", name("localhost"));
        check("LocalHost.", name("localhost"));
        check("weir.example:80", name("weir.example"));
        check("my_host-1", name("my_host-1"));
        // Browsers convert these into addresses, so only other clients send them unchanged.
        check("127.1", name("127.1"));
        check("2130706433", name("2130706433"));
        check("0x7f.0.0.1", name("0x7f.0.0.1"));
        check("127.0.0.1.", name("127.0.0.1"));
        let long = "x".repeat(NAME_LENGTH_MAX + 1);
        for bad in [
            "",
            ":",
            ":80",
            ".",
            "[::1",
            "[::1]x",
            "[::1]:x",
            "[::g]",
            "[]",
            "::1",
            "a:b",
            "a:80:80",
            "user@127.0.0.1",
            "127.0.0.1/",
            "a b",
            "a\tb",
            "a,b",
            "ü",
            "[::1%2]",
            "*",
            &long,
        ] {
            check(bad, None);
        }
    }
}
