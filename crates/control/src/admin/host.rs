//! Checks the `Host` field of requests.
//!
//! The owner of a domain can point its name at the address of this listener (DNS rebinding). A page of that domain may
//! then read all responses, since the browser takes the listener for the page's own server. Such requests have the
//! domain's name in `Host`, which the page cannot change: over TCP, weir answers for addresses, for `localhost`, and for
//! the names in `admin.host_names`.
//!
//! | status | reason |
//! |---|---|
//! | 400 | `Host` is missing (HTTP/1.1), repeated, or neither an address nor a name |
//! | 421 | another name, over TCP |

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use super::{Context, Peer};

/// At most one event about refused names in this time.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

/// RFC 1035 section 2.3.4.
const NAME_LENGTH_MAX: usize = 253;

/// The time of the last report of a refused name.
#[derive(Debug, Default)]
pub(super) struct LastRefusal(Mutex<Option<Instant>>);

impl LastRefusal {
    /// Whether a report is due.
    fn is_due(&self) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = told.is_none_or(|told| told.elapsed() >= REFUSAL_INTERVAL);
        if is_due {
            *told = Some(Instant::now());
        }
        is_due
    }
}

/// Lets requests pass that are meant for this listener.
pub(super) async fn check(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let table = context.observed.table();
    let names = &table.snapshot.admin_host_names;
    let judged = match asked_host(request.version(), request.uri(), request.headers()) {
        Err(problem) => Err(Refusal::Malformed(problem)),
        Ok(Some(Host::Name(name))) if peer == Peer::Network && !is_known(&name, names) => {
            Err(Refusal::Unknown(name))
        }
        Ok(_) => Ok(()),
    };
    match judged {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            if let Refusal::Unknown(name) = &refusal
                && context.last_refusal.is_due()
            {
                let what = format_args!(
                    "was asked for by the name `{name}` and refused: \
                     if it is meant, put it into admin.host_names"
                );
                context.events.warning("admin listener", what);
            }
            Problem::from(refusal).into_response()
        }
    }
}

/// Why a request is not for this listener.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Malformed(&'static str),
    Unknown(String),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed(error) => Self {
                status: StatusCode::BAD_REQUEST,
                error: error.into(),
                help: Some("send one Host field with the address that you connect to".into()),
            },
            Refusal::Unknown(name) => Self {
                status: StatusCode::MISDIRECTED_REQUEST,
                error: format!("the admin listener does not answer for the name `{name}`"),
                help: Some(format!(
                    "ask it by its address or as localhost, or put the name into the configuration: \
                     `admin: {{ host_names: [ {name} ] }}`"
                )),
            },
        }
    }
}

/// The host that a client has requested.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    Address,
    /// In lower case, without a dot at its end.
    Name(String),
}

/// The requested host; `None`: HTTP/1.0 may omit it; browsers never do.
fn asked_host(
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Host>, &'static str> {
    const MALFORMED: &str = "the Host field is neither an address nor a name";
    let mut fields = headers.get_all(header::HOST).iter();
    let field = match (fields.next(), fields.next()) {
        (_, Some(_)) => return Err("the request has more than one Host field"),
        (None, None) if version >= Version::HTTP_11 => return Err("the request has no Host field"),
        (None, None) => None,
        (Some(field), None) => {
            let text = field.to_str().map_err(|_| MALFORMED)?;
            Some(parse(text).ok_or(MALFORMED)?)
        }
    };
    // A target in absolute form says it again, and counts (RFC 9112 section 3.2.2).
    let target = uri.authority().map(|authority| parse(authority.as_str()).ok_or(MALFORMED));
    match target.transpose()? {
        Some(target) if field.as_ref().is_some_and(|field| *field != target) => {
            Err("the target and the Host field name different hosts")
        }
        Some(target) => Ok(Some(target)),
        None => Ok(field),
    }
}

/// An address or a name, with a port or without one.
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

fn is_known(name: &str, names: &[String]) -> bool {
    name == "localhost" || names.iter().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Browsers turn these into addresses; a client that sends them unchanged is no browser.
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
