//! Limits, and the room that they leave.

use std::sync::atomic::Ordering::Relaxed;

use weir_api::explanation::LimitTold;
use weir_config::snapshot::{KeyMeasure, LimitAction, LimitKey, Snapshot, VirtualServer};
use weir_core::clock::Clock;
use weir_exchange::parts::witness::ServerDecision;
use weir_exchange::shared::live::{LiveTable, LiveVirtualServer};

use crate::masks::Masks;

/// The limits that count a request: of its virtual server, then of rules. `live`: the state before the request.
pub fn of_request(
    decided: &mut ServerDecision<'_, '_>,
    live: &LiveTable,
    now: Clock,
    masks: &Masks,
) -> Vec<LimitTold> {
    let server = decided.traffic.settings();
    let mut told = Vec::new();
    if let Some(used) = live_of(live, server) {
        of_server(server, used, now, &mut told);
    }
    let of_rules = decided.decision.rate_limits.iter().map(|limit| *limit as usize);
    let all: Vec<usize> = server.limits.per_key.iter().copied().chain(of_rules).collect();
    told.extend(all.into_iter().filter_map(|index| per_key(index, decided, live, now, masks)));
    told
}

/// The limits on the connection of a request.
pub fn of_connection(server: &VirtualServer, live: &LiveTable, now: Clock) -> Vec<LimitTold> {
    let mut told = Vec::new();
    let Some(used) = live_of(live, server) else { return told };
    if let Some(max) = server.limits.connections_max {
        let open = used.connections.load(Relaxed);
        told.push(at_a_time("connections at a time", None, u64::from(open), u64::from(max)));
    }
    if let Some(rate) = &server.limits.connections {
        let room = used.used.connections.room(rate, now.now_us());
        told.push(rated("new connections", None, room, rate.burst(), false));
    }
    told
}

fn live_of<'a>(live: &'a LiveTable, server: &VirtualServer) -> Option<&'a LiveVirtualServer> {
    live.virtual_servers.iter().find(|it| it.name == server.name).map(|it| &**it)
}

fn of_server(
    server: &VirtualServer,
    live: &LiveVirtualServer,
    now: Clock,
    told: &mut Vec<LimitTold>,
) {
    if let Some(rate) = &server.limits.requests {
        let room = live.used.requests.room(rate, now.now_us());
        told.push(rated("requests", None, room, rate.burst(), false));
    }
    if let Some(max) = server.limits.requests_max {
        let under_way = live.used.requests_under_way.load(Relaxed);
        told.push(at_a_time("requests at a time", None, u64::from(under_way), u64::from(max)));
    }
}

fn per_key(
    index: usize,
    decided: &mut ServerDecision<'_, '_>,
    live: &LiveTable,
    now: Clock,
    masks: &Masks,
) -> Option<LimitTold> {
    let snapshot: &Snapshot = decided.traffic.snapshot();
    let limit = snapshot.key_limits.get(index)?;
    let mut text = Vec::new();
    let limits = decided.traffic.key_limits();
    let key = limits.key_of(limit, decided.facts, decided.evaluation, &mut text)?;
    let shown = match &limit.key {
        LimitKey::Address(_) => decided.facts.client.map(|client| client.ip().to_string()),
        LimitKey::Text(_) => Some(masks.target(&text)),
    };
    let live = live.key_limits.get(index)?;
    Some(match &limit.measure {
        KeyMeasure::Rate(rate) => {
            let room = live.room(key, rate, now.now_us());
            rated(
                &limit.name,
                shown,
                room,
                rate.burst(),
                matches!(limit.exceed, LimitAction::Delay { .. }),
            )
        }
        KeyMeasure::AtATime(max) => {
            at_a_time(&limit.name, shown, live.entered(key), u64::from(*max))
        }
    })
}

fn at_a_time(name: &str, key: Option<String>, taken: u64, max: u64) -> LimitTold {
    let room = max.saturating_sub(taken);
    LimitTold { name: name.into(), key, room, max, is_rate: false, is_exceeded: room == 0 }
}

/// `delays`: requests above the limit wait, so they do not exceed it.
fn rated(name: &str, key: Option<String>, room: u64, max: u64, delays: bool) -> LimitTold {
    let is_exceeded = room == 0 && !delays;
    LimitTold { name: name.into(), key, room, max, is_rate: true, is_exceeded }
}
