//! Pairs of virtual servers with a hand-over, which must not bypass any check of either.

use std::collections::BTreeSet;

use weir_core::expression::AddressSet;

use super::{HandOver, Server};
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw;

/// Reports checks that a hand-over would bypass, for each pair of virtual servers.
pub(super) fn check(servers: &[Server<'_>], context: &mut Context) {
    for from in servers {
        let mut known = BTreeSet::new();
        for (place, over) in &from.to {
            let to = &servers[*place];
            refuse_waf_left_out(from, to, over, context);
            // One report per pair is sufficient.
            if known.insert(*place) {
                refuse_checks_of_connections(from, to, over.span, context);
            }
        }
    }
}

/// Reports a firewall that a hand-over would bypass: it runs after the policies that hand requests over.
fn refuse_waf_left_out(from: &Server<'_>, to: &Server<'_>, over: &HandOver, context: &mut Context) {
    if from.raw.waf.is_none() || over.leaves_out_waf {
        return;
    }
    let (from, name) = (clip(from.name), clip(to.name));
    let message = format!(
        "the web application firewall of `{from}` does not inspect requests that are handed to `{name}`"
    );
    let help = match to.raw.waf {
        Some(_) => format!(
            "`{name}` has its own `waf`: add `waf: off` before `virtual_server` if that is enough"
        ),
        None => format!("give `{name}` a `waf`, and add `waf: off` before `virtual_server`"),
    };
    context.error_help(over.span, message, help);
}

/// Refuses checks of connections that do not apply to requests from connections of the other virtual server.
fn refuse_checks_of_connections(
    from: &Server<'_>,
    to: &Server<'_>,
    span: Span,
    context: &mut Context,
) {
    let mut refuse = |what: &str, help: String| {
        let message = format!(
            "`{}` has {what}: requests that `{}` hands to it would come past that",
            clip(to.name),
            clip(from.name)
        );
        context.error_help(span, message, help);
    };
    let name = clip(to.name);
    if to.raw.tls.is_some() && !is_same_profile(from.raw.tls.as_ref(), to.raw.tls.as_ref()) {
        let help = format!(
            "name the same profile in `tls` of both, or hand requests to a virtual server without `tls`: \
             the settings of `{name}` can move there, and its rules can hand over to it as well"
        );
        refuse("`tls` of its own", help);
    }
    let before = policies(to.raw);
    if !before.is_empty() && before != policies(from.raw) {
        let help = format!(
            "name the same policies in `connection_policies` of both, or check requests by `policies` of `{name}`"
        );
        refuse("`connection_policies` of its own", help);
    }
    let before = allowed_clients(to.raw);
    if before.is_some() && before != allowed_clients(from.raw) {
        let help = format!("list the same in both, or check requests by `policies` of `{name}`");
        refuse("`allowed_clients` of its own", help);
    }
    if to.raw.listen.is_some()
        && let Some((limit, _)) = limits_of_connections(to.raw).first()
    {
        let help = format!(
            "limit requests (`requests`, `requests_per_second`), or let `{name}` listen nowhere and limit \
             connections where they come in"
        );
        refuse(&format!("the limit `{limit}` on connections"), help);
    }
    let (Some(from), Some(to)) = (from.built, to.built) else { return };
    if from.http.target != to.http.target {
        let message = format!(
            "`{}` and `{}` take paths differently: rules of `{}` would read others than it expects",
            clip(&from.name),
            clip(&to.name),
            clip(&to.name)
        );
        let help = "give `http.path` and `http.strict` the same values in both";
        context.error_help(span, message, help);
    }
}

/// Whether both use the same settings or profile.
fn is_same_profile<T>(
    one: Option<&Spanned<ProfileOr<T>>>,
    other: Option<&Spanned<ProfileOr<T>>>,
) -> bool {
    let name = |choice: Option<&Spanned<ProfileOr<T>>>| match choice.map(|it| &it.value) {
        Some(ProfileOr::Name(name)) => Some(name.0.clone()),
        _ => None,
    };
    name(one).is_some_and(|name_of_one| name(other) == Some(name_of_one))
}

fn policies(raw: &raw::VirtualServer) -> Vec<&str> {
    let names = raw.connection_policies.iter().flat_map(|names| names.iter());
    names.map(|name| name.value.0.as_str()).collect()
}

fn allowed_clients(raw: &raw::VirtualServer) -> Option<AddressSet> {
    crate::validate::allowed_clients::addresses(raw)
}

/// Limits on connections, and their places.
fn limits_of_connections(raw: &raw::VirtualServer) -> Vec<(&'static str, Span)> {
    let Some(limits) = &raw.limits else { return Vec::new() };
    let limits = &limits.value;
    let per_key = limits.per_key.iter().flat_map(|all| all.iter());
    let of_key = per_key.flat_map(|limit| {
        let connections = limit.connections.as_ref().map(|it| ("per_key.connections", it.span));
        let rate = limit.connections_per_second.as_ref();
        [connections, rate.map(|it| ("per_key.connections_per_second", it.span))]
    });
    let own = [
        limits.connections.as_ref().map(|it| ("connections", it.span)),
        limits.connections_per_second.as_ref().map(|it| ("connections_per_second", it.span)),
    ];
    own.into_iter().chain(of_key).flatten().collect()
}

/// Refuses keys about connections in a virtual server without a listener.
pub(super) fn refuse_keys_of_listeners(server: &Server<'_>, context: &mut Context) {
    let raw = server.raw;
    let mut keys: Vec<(String, Option<Span>)> = vec![
        ("interfaces".into(), raw.interfaces.as_ref().map(|it| it.span)),
        ("free_bind".into(), raw.free_bind.given.then_some(raw.free_bind.span)),
        ("defer_accept".into(), raw.defer_accept.as_ref().map(|it| it.span)),
        ("tls".into(), raw.tls.as_ref().map(|it| it.span)),
        ("connection_policies".into(), raw.connection_policies.as_ref().map(|it| it.span)),
        ("allowed_clients".into(), raw.allowed_clients.as_ref().map(|it| it.span)),
    ];
    let limits = limits_of_connections(raw).into_iter();
    keys.extend(limits.map(|(key, span)| (format!("limits.{key}"), Some(span))));
    if let Some(address) = &raw.client_address {
        let of_client = [
            ("trust", address.trust.as_ref().map(|it| it.span)),
            ("header", address.header.given.then_some(address.header.span)),
            ("proxy_protocol", address.proxy_protocol.given.then_some(address.proxy_protocol.span)),
        ];
        keys.extend(of_client.map(|(key, span)| (format!("client_address.{key}"), span)));
    }
    // A named profile may be used by other virtual servers that listen.
    if let Some(Spanned { value: ProfileOr::Inline(http), .. }) = &raw.http {
        let of_connection = [
            ("head_size_max", http.head_size_max.given.then_some(http.head_size_max.span)),
            ("headers_max", http.headers_max.given.then_some(http.headers_max.span)),
            ("header_timeout", http.header_timeout.given.then_some(http.header_timeout.span)),
            ("idle_timeout", http.idle_timeout.given.then_some(http.idle_timeout.span)),
            ("http2", http.http2.as_ref().map(|it| it.span)),
            (
                "http2_streams_max",
                http.http2_streams_max.given.then_some(http.http2_streams_max.span),
            ),
            ("http2_budgets", http.http2_budgets.as_ref().map(|it| it.span)),
        ];
        keys.extend(of_connection.map(|(key, span)| (format!("http.{key}"), span)));
    }
    for (key, span) in keys {
        if let Some(span) = span {
            let message = format!(
                "`{key}` has no effect: `{}` has no `listen`, and so no connections of its own",
                clip(server.name)
            );
            let help = "set it for the virtual servers that hand requests to this one";
            context.error_help(span, message, help);
        }
    }
}
