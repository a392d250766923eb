//! Access control for connections: policies that run before a handshake or a request.

use std::rc::Rc;

use weir_exchange::arena::ClientKey;
use weir_exchange::edge::Edge as _;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::gate::{Moment, TurnedAway, Whence};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::policy::tell_lines;
use weir_telemetry::access_log::Decided;

use crate::worker::client::own_response::{Of, log_decided};
use crate::worker::desk::Desk;
use crate::worker::state::client::Client;

/// Whether policies allow a new connection; if not, the connection is ended. A connection that starts with a PROXY header is
/// checked after the header.
pub fn lets_in(desk: &mut Desk<'_>, key: ClientKey) -> bool {
    let is_known = |it: &Client| !it.awaits_proxy;
    !desk.world.clients.get(key).is_some_and(is_known) || ask(desk, key, Moment::Accepted, "")
}

/// As [`lets_in`], for a client that has sent this server name.
pub fn lets_in_for(desk: &mut Desk<'_>, key: ClientKey, name: &str) -> bool {
    let has_gate = |it: &Client| it.server.gate.is_some();
    if !desk.world.clients.get(key).is_some_and(has_gate) {
        return true;
    }
    let tls = ClientTls::asked(name);
    ask(desk, key, Moment::Named(tls.facts()), name)
}

fn ask(desk: &mut Desk<'_>, key: ClientKey, moment: Moment<'_>, name: &str) -> bool {
    let Some(client) = desk.world.clients.get_mut(key) else { return false };
    let server = Rc::clone(&client.server);
    let Some(gate) = &server.gate else { return true };
    if gate.policies(moment).is_empty() {
        return true;
    }
    if server.snapshot.slots.read_server() {
        client.destination.learn(desk.io, client.token);
    }
    let whence = Whence { client: client.address(), server: client.destination.address() };
    let when = (desk.world.id, desk.io.clock(), desk.world.tools.sources);
    let tools = &mut desk.world.tools;
    let mut decision = tools.decision.take().unwrap_or_default();
    let mut scratch = tools.scratch.take();
    let mut held = std::mem::take(&mut tools.limit_places);
    let scratches = (&mut *scratch, &mut held);
    let turned_away = gate.ask(moment, whence, when, &mut decision, scratches);
    if let Some(client) = desk.world.clients.get_mut(key) {
        client.held.take(&mut held);
    }
    desk.world.tools.scratch.give(scratch);
    desk.world.tools.limit_places = held;
    tell_lines(desk, &decision);
    if let Some(turned_away) = turned_away {
        let rules = &decision.followed;
        let decided = Decided { rules, rule_names: &server.snapshot.rules, ..Decided::default() };
        turn_away(desk, key, turned_away, name, decided);
    }
    decision.clear();
    desk.tools().decision = Some(decision);
    turned_away.is_none()
}

/// Counts, logs and ends a connection that a policy refuses.
fn turn_away(
    desk: &mut Desk<'_>,
    key: ClientKey,
    TurnedAway { why, must_reset }: TurnedAway,
    name: &str,
    decided: Decided<'_>,
) {
    let Some(client) = desk.world.clients.get_mut(key) else { return };
    client.handshake = None;
    let counters = &client.server.counters;
    match why {
        Termination::RateLimit => counters.connections_limited.add(1),
        _ => counters.connections_ended_by_policy.add(1),
    }
    let mut about = Vec::new();
    desk.world.log.connection_part(name, &mut about);
    log_decided(desk, key, Of { about: &about, ..Of::default() }, decided, why);
    desk.cut_client(key, must_reset);
}
