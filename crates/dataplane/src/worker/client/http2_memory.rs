//! Ends clients with HTTP/2 that make the worker hold too much memory; see
//! [`Http2Memory`](crate::worker::state::http2_memory::Http2Memory).

use std::cmp::Reverse;

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_exchange::termination::Termination;

use crate::worker::router::Router;
use crate::worker::state::client::Client;
use crate::worker::state::clients::Clients;

/// The connections that hold memory, in the order in which they lose it: first those whose clients read nothing, and of these
/// the one that holds most.
fn holders(clients: &Clients, now_ms: u64) -> Vec<(bool, ClientKey)> {
    let held = |client: &Client| {
        let held = &client.http2.as_ref()?.held;
        (held.counted > 0).then(|| (held.is_still(now_ms), held.counted))
    };
    let mut holders: Vec<((bool, u64), ClientKey)> =
        clients.all.iter().filter_map(|(key, client)| Some((held(client)?, key))).collect();
    holders.sort_unstable_by_key(|(held, _)| Reverse(*held));
    holders.into_iter().map(|((is_still, _), key)| (is_still, key)).collect()
}

/// Ends connections at the end of a turn, until the rest is within the budget. They are reset: what they do not read must not wait
/// for them any longer.
pub fn heed(router: &mut Router, io: &mut EventLoop) {
    let now_ms = io.now_ms();
    let world = &mut router.world;
    if !world.clients.http2_memory.begin_look(&mut world.agenda, now_ms) {
        return;
    }
    for (is_still, key) in holders(&world.clients, now_ms) {
        if !router.world.clients.http2_memory.ends(is_still) {
            break;
        }
        let Some(client) = router.world.clients.all.get(key) else { continue };
        client.server.counters.http2_floods_memory.add(1);
        router.abandon_streams(io, key, Termination::ClientFlood);
        router.edge(io).reset_client(key);
    }
    router.world.clients.http2_memory.end_look(now_ms);
}
