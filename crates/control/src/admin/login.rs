//! Authentication: by a bearer token (RFC 6750) or a client certificate.
//!
//! A token has 256 random bits, and the configuration contains only its SHA-256 hash. A slow hash is for passwords that
//! people choose; such a token cannot be guessed. Without credentials, the kind of peer determines the rights
//! ([`Peer::role`]). A token always has precedence, even over the unix socket, where it can only reduce the rights.
//!
//! | status | reason |
//! |---|---|
//! | 400 | several `Authorization` headers |
//! | 401 | an unknown token, another scheme; a certificate of no known user, where a role is needed |
//! | 429 | the source has had too many failed logins |

use aws_lc_rs::digest::{SHA256, digest};
use axum::http::{HeaderMap, header};
use weir_config::snapshot::{AdminSettings, AdminUser};

use super::peer::{Caller, NetworkPeer, Peer};
use super::problem::Problem;
use crate::events::Events;
use crate::observed_state::ObservedState;

/// The reason for refusing a certificate.
const STRANGER: &str = "no user has a name that is in the client certificate";

/// The credentials of a request.
enum Credentials<'a> {
    None,
    Token(&'a [u8]),
    /// The names in a client certificate.
    Certificate(&'a [String]),
    /// A scheme other than `Bearer`.
    Other,
}

impl Credentials<'_> {
    fn token_hash(&self) -> Option<[u8; 32]> {
        let Self::Token(token) = self else { return None };
        digest(&SHA256, token).as_ref().try_into().ok()
    }
}

/// Identifies the user of a request.
pub(super) fn log_in(
    observed: &ObservedState,
    events: &Events,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Caller, Problem> {
    let credentials = credentials(peer, headers)?;
    let caller_of = |user, role, token_hash| {
        let (peer, is_stranger) = (peer.of_request(headers), false);
        Caller { user, role, peer, token_hash, is_stranger }
    };
    if matches!(credentials, Credentials::None) {
        return Ok(caller_of(None, peer.role(), None));
    }
    let table = observed.table();
    let user = user_of(&table.snapshot.admin, &credentials);
    if user.is_err() && matches!(credentials, Credentials::Certificate(_)) {
        // A browser or a probe shows it unasked: what needs no rights is answered all the same.
        let (peer, token_hash) = (peer.clone(), None);
        return Ok(Caller { user: None, role: None, peer, token_hash, is_stranger: true });
    }
    may_log_in(observed, peer)?;
    match user {
        Ok(user) => {
            let (user, role) = (Some(user.name.clone()), Some(user.role));
            Ok(caller_of(user, role, credentials.token_hash()))
        }
        Err(why) => Err(failed(observed, events, peer, why)),
    }
}

/// Why a stranger's certificate does not suffice.
pub(super) fn refuse_stranger(observed: &ObservedState, events: &Events, peer: &Peer) -> Problem {
    match may_log_in(observed, peer) {
        Err(problem) => problem,
        Ok(()) => failed(observed, events, peer, STRANGER),
    }
}

/// Refuses sources with too many failed logins.
fn may_log_in(observed: &ObservedState, peer: &Peer) -> Result<(), Problem> {
    let shared = &observed.admin;
    if let Peer::Network(NetworkPeer { address, .. }) = peer {
        let may = shared.sources.may_log_in(address.ip(), shared.now_us());
        may.map_err(|wait| {
            shared.requests_limited.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Problem::too_many("too many failed logins from this address", wait)
        })?;
    }
    Ok(())
}

/// Counts a failed login, and tells of it.
fn failed(observed: &ObservedState, events: &Events, peer: &Peer, why: &str) -> Problem {
    let shared = &observed.admin;
    if let Peer::Network(NetworkPeer { address, .. }) = peer {
        shared.sources.failed(address.ip(), shared.now_us());
    }
    shared.logins_failed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    if let Some(count) = shared.last_failure.count() {
        let source = match peer {
            Peer::Network(peer) => peer.address.ip().to_string(),
            Peer::Local(_) => peer.to_string(),
        };
        let others = match count - 1 {
            0 => String::new(),
            others => format!("; {others} more since the last such event"),
        };
        let what = format_args!("refused a login from {source}: {why}{others}");
        events.warning("admin listener", what);
    }
    Problem::wrong_credentials(why)
        .help("`weir token new` makes a token; the configuration has its hash")
}

fn credentials<'a>(peer: &'a Peer, headers: &'a HeaderMap) -> Result<Credentials<'a>, Problem> {
    let mut fields = headers.get_all(header::AUTHORIZATION).iter();
    match (fields.next(), fields.next()) {
        (Some(_), Some(_)) => Err(Problem::bad_request("several `Authorization` headers")),
        (Some(field), None) => {
            Ok(token(field.as_bytes()).map_or(Credentials::Other, Credentials::Token))
        }
        (None, _) => Ok(match peer {
            Peer::Network(NetworkPeer { certificate: Some(names), .. }) => {
                Credentials::Certificate(names)
            }
            _ => Credentials::None,
        }),
    }
}

/// The token of `Bearer TOKEN`.
fn token(field: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = field.split_at_checked("Bearer ".len())?;
    let token = rest.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

fn user_of<'a>(
    settings: &'a AdminSettings,
    credentials: &Credentials<'_>,
) -> Result<&'a AdminUser, &'static str> {
    match credentials {
        Credentials::Token(_) => {
            let hash = credentials.token_hash();
            hash.and_then(|hash| settings.user_of_token(&hash)).ok_or("the token is unknown")
        }
        Credentials::Certificate(names) => settings.user_of_certificate(names).ok_or(STRANGER),
        Credentials::Other | Credentials::None => {
            Err("another scheme than `Authorization: Bearer TOKEN`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_the_field() {
        for (field, expected) in [
            ("Bearer weir_abc", Some("weir_abc")),
            ("bearer  weir_abc ", Some("weir_abc")),
            ("BEARER x", Some("x")),
            ("Bearer ", None),
            ("Bearer", None),
            ("Basic YTpi", None),
            ("weir_abc", None),
            ("", None),
        ] {
            assert_eq!(token(field.as_bytes()), expected.map(str::as_bytes), "{field:?}");
        }
    }
}
