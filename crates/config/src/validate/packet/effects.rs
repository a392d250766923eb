//! Keys of `fast_l4` without an effect for a virtual server's protocol.

use std::sync::Arc;

use super::sentences;
use crate::decode::Context;
use crate::document::Span;
use crate::profile::ProfileOr;
use crate::raw;
use crate::raw::packet::FastL4Profile;
use crate::snapshot::packet::PacketProtocol;

/// Warns about settings in the virtual server itself that have no effect. A named profile may be used by several
/// virtual servers, so its settings get a remark instead.
pub(super) fn missing(
    raw: &raw::VirtualServer,
    profile: &FastL4Profile,
    protocol: PacketProtocol,
    context: &mut Context,
) -> Vec<Arc<str>> {
    if matches!(protocol, PacketProtocol::Tcp | PacketProtocol::Any) {
        return Vec::new();
    }
    let name = match raw.fast_l4.as_ref().map(|choice| &choice.value) {
        None => return Vec::new(),
        Some(ProfileOr::Inline(_)) => None,
        Some(ProfileOr::Name(name)) => Some(name),
    };
    let keys = of_tcp(profile);
    let Some(name) = name else {
        for (key, span) in keys {
            let message = format!("`{key}` is about TCP, and has no effect on protocol {protocol}");
            context.warning_help(span, message, "remove it");
        }
        return Vec::new();
    };
    let keys: Vec<String> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
    let verb = match keys.len() {
        0 => return Vec::new(),
        1 => "is",
        _ => "are",
    };
    let keys = keys.join(", ");
    let name = crate::quote::clip(&name.0);
    sentences(vec![format!(
        "{keys} of the profile {name} {verb} about TCP, without effect on protocol {protocol}"
    )])
}

/// Keys about TCP in the profile.
fn of_tcp(profile: &FastL4Profile) -> Vec<(&'static str, Span)> {
    // This pattern makes a new key a compile error until it is handled here.
    let FastL4Profile {
        idle_timeout: _,
        handshake_timeout,
        closing_timeout,
        reset_on_timeout,
        reset_on_service_down,
        loose_initiation,
        mss_max,
        ttl: _,
        tos: _,
        translate_address: _,
        translate_port: _,
        source: _,
        dsr: _,
    } = profile;
    [
        ("handshake_timeout", handshake_timeout.given.then_some(handshake_timeout.span)),
        ("closing_timeout", closing_timeout.given.then_some(closing_timeout.span)),
        ("reset_on_timeout", reset_on_timeout.given.then_some(reset_on_timeout.span)),
        (
            "reset_on_service_down",
            reset_on_service_down.given.then_some(reset_on_service_down.span),
        ),
        ("loose_initiation", loose_initiation.given.then_some(loose_initiation.span)),
        ("mss_max", mss_max.as_ref().map(|mss| mss.span)),
    ]
    .into_iter()
    .filter_map(|(key, span)| Some((key, span?)))
    .collect()
}
