//! The memory that clients with HTTP/2 make a worker hold: data of responses that they do not read, and of requests that
//! members do not take, and heads of requests under way. A few bytes of a client can bind a hundred responses, and a byte of a
//! compressed head can stand for 4 KiB, so all connections of a worker share a budget.
//!
//! Each connection may hold [`FREE_BYTES`] beside it, as a connection with HTTP/1 may. If the budget is used up, the
//! connection that holds most loses it, and first one whose client reads nothing. Clients that read are spared until twice the
//! budget is used.

use std::cmp::Reverse;

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::termination::Termination;

use crate::worker::Worker;
use crate::worker::agenda::Task;
use crate::worker::edge::WorkerEdge;
use crate::worker::state::client::Client;
use crate::worker::state::http2_memory::ConnectionMemory;
use crate::worker::state::streams::Stream;
use crate::worker::world::World;

/// What a connection holds beside the budget: about one read of a member, as with HTTP/1.
const FREE_BYTES: u64 = 64 * 1024;
/// What each head may take beside the budget: about as much as its exchange needs in any case.
const HEAD_FREE_BYTES: usize = 2 * 1024;
/// Memory of connections counts as released for the system if it was at least this much.
const RELEASED_BYTES_MIN: u64 = 8 << 20;
/// Interval between looks at all connections while none of them may lose its memory.
const LOOK_MS: u64 = 100;

/// Counts what a connection holds now, once its frames of this turn are sent.
pub fn count(edge: &mut WorkerEdge<'_>, key: ClientKey) {
    let Some(client) = edge.world.clients.get_mut(key) else { return };
    let Some(http2) = &mut client.http2 else { return };
    let queued = edge.io.sockets.queued(client.token);
    let unreleased = http2.frames.connection.unreleased_bytes();
    let bytes = (http2.held.bytes + queued) as u64 + unreleased;
    let counted = bytes.saturating_sub(FREE_BYTES);
    let before = std::mem::replace(&mut http2.held.counted, counted);
    if counted != before {
        change(edge.world, before, counted);
    }
}

fn change(world: &mut World, before: u64, after: u64) {
    let memory = &mut world.of_clients.http2_memory;
    let all_before = memory.bytes;
    memory.bytes = (memory.bytes + after).saturating_sub(before);
    let all = (all_before, memory.bytes);
    if memory.bytes > world.live.snapshot.data_plane.http2_memory_bytes {
        world.agenda.add_once(Task::BoundMemory);
    }
    let is_released = memory.peak.is_released(all, RELEASED_BYTES_MIN);
    world.counted.memory_releases.add(u64::from(is_released));
    world.counted.http2_memory_bytes.add(after);
    world.counted.http2_memory_bytes.subtract(before);
}

/// Counts a request's head, or its trailers, which have at most the size of a head: they stay in memory until the exchange ends.
pub fn count_head(stream: &mut Stream, held: &mut ConnectionMemory, text: &[u8]) {
    let counted = text.len().saturating_sub(HEAD_FREE_BYTES);
    stream.head_bytes += counted as u32;
    held.bytes += counted;
}

/// Counts the trailers of a request: they may have to wait until its member can take them.
pub fn count_trailers(world: &mut World, ends: &TransactionEnds, text: &[u8]) {
    let client = world.clients.find_mut(ends.caller.client());
    if let Some(http2) = client.and_then(|client| client.http2.as_mut())
        && let Some(stream) = ends.caller.stream().and_then(|stream| http2.streams.get_mut(stream))
    {
        count_head(stream, &mut http2.held, text);
    }
}

/// A connection is gone, with all that it held.
pub fn forget(world: &mut World, client: &Client) {
    let counted = client.http2.as_ref().map_or(0, |http2| http2.held.counted);
    if counted > 0 {
        change(world, counted, 0);
    }
}

/// The connections that hold memory, in the order in which they lose it: first those whose clients read nothing, and of these
/// the one that holds most.
fn holders(world: &World, now_ms: u64) -> Vec<(bool, ClientKey)> {
    let held = |client: &Client| {
        let held = &client.http2.as_ref()?.held;
        (held.counted > 0).then(|| (held.is_still(now_ms), held.counted))
    };
    let mut holders: Vec<((bool, u64), ClientKey)> =
        world.clients.iter().filter_map(|(key, client)| Some((held(client)?, key))).collect();
    holders.sort_unstable_by_key(|(held, _)| Reverse(*held));
    holders.into_iter().map(|((is_still, _), key)| (is_still, key)).collect()
}

/// Ends connections at the end of a turn, until the rest is within the budget.
pub fn heed(worker: &mut Worker, io: &mut EventLoop) {
    let bytes_max = worker.world.live.snapshot.data_plane.http2_memory_bytes;
    let hard_max = bytes_max.saturating_mul(2);
    let bytes = |world: &World| world.of_clients.http2_memory.bytes;
    if bytes(&worker.world) <= bytes_max {
        return;
    }
    worker.world.agenda.add_once(Task::BoundMemory);
    let now_ms = io.now_ms();
    if bytes(&worker.world) <= hard_max && now_ms < worker.world.of_clients.http2_memory.look_ms {
        return;
    }
    for (is_still, key) in holders(&worker.world, now_ms) {
        let bytes = bytes(&worker.world);
        if bytes <= bytes_max {
            return;
        }
        if !is_still && bytes <= hard_max {
            break;
        }
        end_holder(worker, io, key);
    }
    worker.world.of_clients.http2_memory.look_ms = now_ms + LOOK_MS;
}

/// Ends a connection that holds too much. It is reset: what it does not read must not wait for it any longer.
fn end_holder(worker: &mut Worker, io: &mut EventLoop, key: ClientKey) {
    let Some(client) = worker.world.clients.get(key) else { return };
    client.server.counters.http2_floods_memory.add(1);
    worker.abandon_streams(io, key, Termination::ClientFlood);
    worker.edge(io).reset_client(key);
}
