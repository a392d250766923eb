//! What commands of the control plane change about the listeners and sessions of UDP.

use weir_config::snapshot::ListenPoint;
use weir_event_loop::{Datagrams, Descriptor, EventLoop};

use crate::worker::udp::Udp;
use crate::worker::world::World;

impl Udp {
    /// Adds a listener received from the control plane.
    pub fn add_listener(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        socket: Descriptor,
        address: ListenPoint,
    ) {
        if let Err(error) = self.side.listeners.add(io, world, socket, address.clone()) {
            let error = format!("listener {address}: {error}");
            world.notices.tell_of_socket(io.now_ms(), &error);
        }
    }

    /// Applies a table without these addresses.
    pub fn apply(
        &mut self,
        io: &mut EventLoop,
        world: &mut World,
        removed: &[ListenPoint],
        leave_by_ms: u64,
    ) {
        self.side.idle_sockets.clear(io);
        let settings = &world.live.snapshot.data_plane;
        io.room.set_session_share(settings.udp_descriptors_percent);
        self.side.listeners.fresh.clear();
        let now_ms = io.now_ms();
        self.side.listeners.closed.retain(|(_, until_ms)| now_ms < *until_ms);
        self.side.listeners.refresh(world);
        self.side.listeners.retire(removed, leave_by_ms);
        self.step(io, world);
    }

    /// Stops reading from listeners, because another process reads them. Sessions still send answers through them.
    pub fn leave_unread(&self, io: &mut EventLoop) {
        for (_, listener) in self.side.listeners.all.iter() {
            Datagrams::of(io).leave_unread(listener.token);
        }
    }

    /// Closes removed listeners that have no sessions or whose deadline has passed. Returns the time of the next check.
    pub fn step(&mut self, io: &mut EventLoop, world: &mut World) -> Option<u64> {
        let now_ms = io.now_ms();
        let mut next_ms: Option<u64> = None;
        for index in (0..self.side.listeners.leaving.len()).rev() {
            let (key, leave_by_ms) = self.side.listeners.leaving[index];
            if leave_by_ms <= now_ms {
                self.end(io, world, |session| session.source.listener == key);
            }
            if self.side.listeners.get(key).is_some_and(|listener| listener.sessions > 0) {
                next_ms = Some(next_ms.map_or(leave_by_ms, |at_ms| at_ms.min(leave_by_ms)));
            } else {
                Datagrams::of(io).flush();
                self.side.listeners.close(io, key);
            }
        }
        self.note_sockets(io, world);
        next_ms
    }
}
