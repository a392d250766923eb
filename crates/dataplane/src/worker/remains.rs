//! The remaining state of a worker without clients, for the simulation. No state must remain.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::KeyMeasure;

use super::Worker;
use super::world::World;

impl Worker {
    /// State that remains after the last client has disconnected. Idle connections to members are not included.
    pub fn remains(&self) -> Vec<String> {
        let mut remains = Vec::new();
        let mut look = |what: &str, count: usize| {
            if count > 0 {
                remains.push(format!("{count} {what}"));
            }
        };
        look("clients", self.router.world.clients.all.len());
        look("exchanges", self.router.exchanges.len());
        look("sessions of datagrams", self.udp.len());
        let busy = self.router.world.members.all.iter().filter(|(_, it)| it.is_busy()).count();
        look("member connections in use", busy);
        for (kind, count) in self.router.world.agenda.remains() {
            look(&format!("tasks: {kind:?}"), count);
        }
        look("bytes that HTTP/2 holds", self.router.world.clients.http2_memory.bytes() as usize);
        look("notes of requests", self.router.world.recorder.open());
        look("places under limits", self.router.world.tools.limit_places.len());
        look("requests that wait", self.router.world.waiting.len());
        look("inspections", self.router.world.tools.offloaded.left());
        look("inspections to go on with", usize::from(!self.router.inspections.are_none()));
        look(
            "inspections elsewhere",
            self.router.world.counted.waf_inspections_away.get() as usize,
        );
        look("copies under way", self.router.world.tools.unawaited_under_way as usize);
        look("bytes of encoders", self.router.world.tools.encoders.taken_bytes());
        look_at_counts(&self.router.world, &mut look);
        remains
    }

    /// HTTP/2 connections that have lost a part of their windows: no stream is open, but window for received bytes was not
    /// returned.
    pub fn lost_windows(&self) -> Vec<String> {
        let clients = self.router.world.clients.all.iter().filter_map(|(_, it)| {
            let http2 = it.http2.as_ref().filter(|http2| http2.has_nothing())?;
            Some((http2.frames.connection.unreleased_bytes(), "a client"))
        });
        let members = self.router.world.members.all.iter().filter_map(|(_, it)| {
            let http2 = it.http2.as_ref().filter(|http2| http2.streams.is_empty())?;
            Some((http2.frames.connection.unreleased_bytes(), &*it.member.live.label))
        });
        let lost = clients.chain(members).filter(|(bytes, _)| *bytes > 0);
        lost.map(|(bytes, of)| format!("{bytes} bytes of the window of {of}")).collect()
    }
}

fn look_at_counts(world: &World, look: &mut impl FnMut(&str, usize)) {
    let departed = &world.live.departed;
    let worker = &world.counted;
    look("clients that leave", worker.connections_leaving.get() as usize);
    look("members that leave", worker.member_connections_leaving.get() as usize);
    for server in world.live.virtual_servers.iter().cloned().chain(departed.virtual_servers()) {
        let (name, counters) = (&server.name, server.counters.of(world.id));
        look(
            &format!("connections of {name}"),
            counters.connections_open.get() as usize | server.connections.load(Relaxed) as usize,
        );
        look(
            &format!("requests of {name}"),
            counters.requests_active.get() as usize
                | server.used.requests_under_way.load(Relaxed) as usize,
        );
    }
    let pools = world.live.pools.iter().map(|pool| Arc::clone(&pool.pool));
    for pool in pools.chain(departed.pools()) {
        let since = pool.waiting_since_ms[world.id].load(Relaxed);
        let waiting = pool.waiting.load(Relaxed) as usize
            | pool.counters.of(world.id).queue_length.get() as usize
            | since as usize;
        look(&format!("requests that wait for {}", pool.name), waiting);
    }
    let mut open = 0;
    let members = world.live.pools.iter().flat_map(|pool| pool.members.iter().cloned());
    for member in members.chain(departed.members()) {
        let counters = member.counters.of(world.id);
        let occupied = member.occupancy.load(Relaxed) as usize;
        look(&format!("places at {}", member.label), occupied);
        look(&format!("requests at {}", member.label), counters.requests_active.get() as usize);
        open += counters.connections_open.get() as usize;
    }
    if open != world.members.all.len() {
        look(
            &format!("member connections are counted instead of {}", world.members.all.len()),
            open,
        );
    }
    for (limit, live) in world.live.snapshot.key_limits.iter().zip(&world.live.key_limits) {
        if matches!(limit.measure, KeyMeasure::AtATime(_)) {
            look("clients under limits", live.clients(0));
        }
    }
}
