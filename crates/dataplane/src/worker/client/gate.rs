//! Access control for connections: policies that run before a handshake or a request.

use std::rc::Rc;

use weir_exchange::arena::ClientKey;
use weir_exchange::edge::Edge as _;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::gate::{ConnectionAddresses, Moment, TurnedAway};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::policy::log_policy_lines;
use weir_telemetry::access_log::PolicyFields;

use crate::worker::client::own_response::{UnforwardedRequest, log_decided};
use crate::worker::edge::WorkerEdge;
use crate::worker::state::client::Client;

/// Whether policies allow a new connection; if not, the connection is ended. A connection that starts with a PROXY header is
/// checked after the header.
pub fn admits_connection(edge: &mut WorkerEdge<'_>, key: ClientKey) -> bool {
    let is_known = |it: &Client| !it.awaits_proxy;
    !edge.world.clients.all.get(key).is_some_and(is_known) || ask(edge, key, Moment::Accepted, "")
}

/// As [`admits_connection`], for a client that has sent this server name.
pub fn admits_server_name(edge: &mut WorkerEdge<'_>, key: ClientKey, name: &str) -> bool {
    let has_gate = |it: &Client| it.server.gate.is_some();
    if !edge.world.clients.all.get(key).is_some_and(has_gate) {
        return true;
    }
    let tls = ClientTls::asked(name);
    ask(edge, key, Moment::Named(tls.facts()), name)
}

fn ask(edge: &mut WorkerEdge<'_>, key: ClientKey, moment: Moment<'_>, name: &str) -> bool {
    let Some(client) = edge.world.clients.all.get_mut(key) else { return false };
    let server = Rc::clone(&client.server);
    let Some(gate) = &server.gate else { return true };
    if gate.policies(moment).is_empty() {
        return true;
    }
    if server.snapshot.slots.read_server() {
        client.destination.learn(edge.io, client.token);
    }
    let whence =
        ConnectionAddresses { client: client.address(), server: client.destination.address() };
    let when = (edge.world.id, edge.io.clock(), edge.world.tools.sources);
    let tools = &mut edge.world.tools;
    let mut decision = tools.decision.take().unwrap_or_default();
    let mut scratch = tools.scratch.take();
    let mut held = std::mem::take(&mut tools.limit_places);
    let scratches = (&mut *scratch, &mut held);
    let turned_away = gate.ask(moment, whence, when, &mut decision, scratches);
    if let Some(client) = edge.world.clients.all.get_mut(key) {
        client.held.take(&mut held);
    }
    edge.world.tools.scratch.give(scratch);
    edge.world.tools.limit_places = held;
    log_policy_lines(edge, &decision);
    if let Some(turned_away) = turned_away {
        let rules = &decision.followed;
        let decided =
            PolicyFields { rules, rule_names: &server.snapshot.rules, ..PolicyFields::default() };
        turn_away(edge, key, turned_away, name, decided);
    }
    decision.clear();
    edge.tools().decision = Some(decision);
    turned_away.is_none()
}

/// Counts, logs and ends a connection that a policy refuses.
fn turn_away(
    edge: &mut WorkerEdge<'_>,
    key: ClientKey,
    TurnedAway { why, must_reset }: TurnedAway,
    name: &str,
    decided: PolicyFields<'_>,
) {
    let Some(client) = edge.world.clients.all.get_mut(key) else { return };
    client.handshake = None;
    let counters = &client.server.counters;
    match why {
        Termination::RateLimit => counters.connections_limited.add(1),
        _ => counters.connections_ended_by_policy.add(1),
    }
    let mut about = Vec::new();
    edge.world.log.connection_part(name, &mut about);
    log_decided(
        edge,
        key,
        UnforwardedRequest { about: &about, ..UnforwardedRequest::default() },
        decided,
        why,
    );
    edge.cut_client(key, must_reset);
}
