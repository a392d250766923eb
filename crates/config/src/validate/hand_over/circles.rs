//! Cycles of hand-overs, and chains that are too long.

use super::{HandOver, Server};
use crate::decode::Context;
use crate::quote::clip;
use crate::snapshot::{HAND_OVERS_MAX, ListenPoint, VirtualServer};

/// Reports cycles and chains that are too long. Returns true if there are none.
pub(super) fn refuse(servers: &[Server<'_>], context: &mut Context) -> bool {
    let (order, left) = from_the_ends(servers);
    if let Some(first) = left.iter().position(|is_left| *is_left) {
        refuse_circle(servers, first, &left, context);
        return false;
    }
    refuse_long_ways(servers, &order, context)
}

/// The indexes of virtual servers, each after those to which it hands requests over; and flags for those in or before a
/// cycle.
fn from_the_ends(servers: &[Server<'_>]) -> (Vec<usize>, Vec<bool>) {
    let mut left = vec![true; servers.len()];
    let mut ways: Vec<usize> = servers.iter().map(|server| server.to.len()).collect();
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); servers.len()];
    for (place, server) in servers.iter().enumerate() {
        server.to.iter().for_each(|(to, _)| from[*to].push(place));
    }
    let mut order: Vec<usize> = (0..servers.len()).filter(|place| ways[*place] == 0).collect();
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        next += 1;
        left[place] = false;
        for &before in &from[place] {
            ways[before] -= 1;
            if ways[before] == 0 {
                order.push(before);
            }
        }
    }
    (order, left)
}

/// Reports a cycle: each remaining virtual server hands requests over to another remaining one.
fn refuse_circle(servers: &[Server<'_>], first: usize, left: &[bool], context: &mut Context) {
    let mut way: Vec<usize> = Vec::new();
    let mut at = first;
    loop {
        let Some((to, over)) = servers[at].to.iter().find(|(to, _)| left[*to]) else { return };
        way.push(at);
        if let Some(start) = way.iter().position(|place| place == to) {
            let names = way[start..].iter().chain([to]).map(|place| servers[*place].name);
            let message = format!("requests would be handed round for ever: {}", shown(names));
            let help = "remove one of these `virtual_server` actions, or name a `pool`";
            return context.error_help(over.span, message, help);
        }
        at = *to;
    }
}

/// Reports chains that are too long. `order`: each virtual server after all its targets.
fn refuse_long_ways(servers: &[Server<'_>], order: &[usize], context: &mut Context) -> bool {
    // For each virtual server, the maximum number of further hand-overs, and the next virtual server of that chain.
    let mut longest: Vec<(usize, Option<usize>)> = vec![(0, None); servers.len()];
    for &place in order {
        for (index, (to, _)) in servers[place].to.iter().enumerate() {
            let length = longest[*to].0 + 1;
            if length > longest[place].0 {
                longest[place] = (length, Some(index));
            }
        }
    }
    let all = longest.iter().enumerate();
    let Some((mut at, (length, _))) = all.max_by_key(|(_, (length, _))| *length) else {
        return true;
    };
    let length = *length;
    if length <= HAND_OVERS_MAX {
        return true;
    }
    let mut way = vec![at];
    let mut span = None;
    while let Some(index) = longest[at].1 {
        let (to, over) = servers[at].to[index];
        // This chain has too many steps.
        if way.len() <= HAND_OVERS_MAX + 1 {
            span = Some(over.span);
        }
        way.push(to);
        at = to;
    }
    if let Some(span) = span {
        let names = way.iter().map(|place| servers[*place].name);
        let message = format!(
            "requests may be handed on {length} times, at most {HAND_OVERS_MAX} are possible: {}",
            shown(names)
        );
        context.error_help(span, message, "hand them to the last one directly");
    }
    false
}

/// Reports hand-overs whose requests would come back: because a member of the target has the address of a virtual
/// server that hands over, or because a redirect to TLS answers requests that came over TLS. `leads_to`: the pool of a
/// virtual server with a member at such an address.
pub(super) fn refuse_loops<'a>(
    servers: &[Server<'_>],
    leads_to: &dyn Fn(&VirtualServer, &ListenPoint) -> Option<&'a str>,
    context: &mut Context,
) {
    for server in servers {
        let Some(entry) = server.built else { continue };
        let mut reached: Vec<(usize, &HandOver)> = server.to.clone();
        let mut looked_at = 0;
        while let Some(&(at, over)) = reached.get(looked_at) {
            looked_at += 1;
            let found = servers[at].built.and_then(|other| {
                let points = entry.listen.iter();
                points.filter_map(|point| Some((leads_to(other, point)?, point))).next()
            });
            if server.raw.tls.is_some() && servers[at].raw.https_redirect.value.settings().is_some()
            {
                refuse_redirect(server, &servers[at], over, context);
                break;
            }
            if let Some((pool, point)) = found {
                let message = format!(
                    "virtual server `{}` listens on `{point}`, which a member of the pool `{}` of `{}` has: \
                     requests would go round for ever",
                    clip(server.name),
                    clip(pool),
                    clip(servers[at].name)
                );
                context.error_help(
                    over.span,
                    message,
                    "change the listener's or the member's port",
                );
                break;
            }
            for &(next, _) in &servers[at].to {
                if !reached.iter().any(|(known, _)| *known == next) {
                    reached.push((next, over));
                }
            }
        }
    }
}

/// Reports a virtual server that would redirect to itself.
fn refuse_redirect(
    server: &Server<'_>,
    other: &Server<'_>,
    over: &HandOver,
    context: &mut Context,
) {
    let message = format!(
        "`{}` has `https_redirect`, and requests of `{}`, which has `tls`, are handed to it: they would be redirected for ever",
        clip(other.name),
        clip(server.name)
    );
    let help = "set `https_redirect` for the virtual server that listens without TLS";
    context.error_help(over.span, message, help);
}

/// A chain of names, as text.
fn shown<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{}`", clip(name))).collect();
    names.join(" -> ")
}
