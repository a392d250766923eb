//! weir's ends of connections, as its event loop uses them.

use std::io::IoSlice;
use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::connection::Direction;
use super::pipe::DirectionEnd;
use super::{Network, PANIC_AS_TOLD, State};

/// Percentage of short sends that send nothing, because the kernel has no memory for them.
const NO_MEMORY_PERCENT: usize = 10;

/// The kind of a descriptor.
#[derive(Debug, Clone, Copy)]
pub enum DescriptorKind {
    /// A listener for this address.
    Listener(SocketAddr),
    /// The connection with this number.
    Stream(u32),
    /// The datagram socket with this number.
    Datagrams(u32),
}

/// A descriptor of the kernel in memory.
#[derive(Debug)]
pub struct End {
    network: Network,
    what: DescriptorKind,
}

impl End {
    pub(super) fn listener(network: Network, address: SocketAddr) -> Self {
        Self { network, what: DescriptorKind::Listener(address) }
    }

    pub(super) fn stream(network: Network, id: u32) -> Self {
        Self { network, what: DescriptorKind::Stream(id) }
    }

    pub(super) fn datagrams(network: Network, id: u32) -> Self {
        Self { network, what: DescriptorKind::Datagrams(id) }
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    pub(super) fn what(&self) -> DescriptorKind {
        self.what
    }

    /// Makes a call on a stream. Data may arrive immediately before it.
    fn on_stream<T>(
        &self,
        call: impl FnOnce(&mut State, u32) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let DescriptorKind::Stream(id) = self.what else { return Err(Errno::NOTCONN) };
        let mut state = self.network.0.borrow_mut();
        if state.is_time_to_panic() {
            drop(state);
            std::panic::panic_any(PANIC_AS_TOLD);
        }
        let stirs = state.weather.stirs_percent;
        if state.random.percent(stirs) {
            for direction in [Direction::In, Direction::Out] {
                let connection = state.connection(id);
                if !connection.is_connecting && connection.pipe(direction).is_moving {
                    state.travel(id, direction);
                }
            }
        }
        call(&mut state, id)
    }

    /// Accepts the next connection of a listener.
    pub fn accept(&self) -> Result<(Self, SocketAddr), Errno> {
        let DescriptorKind::Listener(address) = self.what else { return Err(Errno::INVAL) };
        let mut state = self.network.0.borrow_mut();
        let fails = state.weather.accept_failures_permille;
        let is_failure = state.random.below(1_000) < fails;
        let listener = state.listeners.get_mut(&address).ok_or(Errno::INVAL)?;
        if listener.backlog.is_empty() {
            return Err(Errno::AGAIN);
        }
        if is_failure {
            const ERRORS: [Errno; 4] =
                [Errno::MFILE, Errno::NOBUFS, Errno::CONNABORTED, Errno::INTR];
            return Err(ERRORS[state.random.below(ERRORS.len())]);
        }
        let id = listener.backlog.pop_front().ok_or(Errno::AGAIN)?;
        state.open += 1;
        let connection = state.connection(id);
        (connection.is_in_backlog, connection.ours.is_open) = (false, true);
        Ok((Self::stream(self.network.clone(), id), connection.peer))
    }

    /// Sends as much as there is room for, or less.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
        self.on_stream(|state, id| {
            let connection = state.connection(id);
            if let Some(error) = connection.ours.error.take() {
                return Err(error);
            }
            if connection.ours.was_reset || connection.ours.has_shut {
                return Err(Errno::PIPE);
            }
            if connection.is_connecting {
                return Err(Errno::NOTCONN);
            }
            let total: usize = parts.iter().map(|part| part.len()).sum();
            let mut count = connection.outward.free().min(total);
            if count > 1 && state.random.percent(state.weather.short_sends_percent) {
                count = 1 + state.random.below(count);
                if state.random.percent(NO_MEMORY_PERCENT) {
                    // Room becomes available at once, and weir's end receives an event.
                    count = 0;
                    state.set_moving(id, Direction::Out);
                }
            }
            let connection = state.connection(id);
            connection.ours.wants_room |= count < total;
            state.narrate(id, |_| {
                let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                format!("weir sends {count} of {total}: {}", excerpt(&all[..count]))
            });
            let connection = state.connection(id);
            let mut left = count;
            for part in parts {
                let length = left.min(part.len());
                connection.outward.flight.push(&part[..length]);
                left -= length;
            }
            if let Some(unasked) = connection.unasked.as_mut().filter(|_| count > 0) {
                unasked.is_ignored |= unasked.is_known;
                unasked.is_crossed |= !unasked.is_known;
            }
            if count > 0 {
                state.set_moving(id, Direction::Out);
            }
            if count == 0 && total > 0 { Err(Errno::AGAIN) } else { Ok(count) }
        })
    }

    /// Receives arrived data.
    pub fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        self.on_stream(|state, id| {
            let connection = state.connection(id);
            let arrived = &mut connection.inward.arrived;
            let count = arrived.len().min(buffer.len());
            if count == 0 {
                if connection.inward.had_fin {
                    // After FIN nothing is read, not even a later reset.
                    return Ok(0);
                }
                if let Some(error) = connection.ours.error.take() {
                    return Err(error);
                }
                let has_ended = connection.ours.was_reset
                    || connection.inward.ending == DirectionEnd::FinArrived;
                state.narrate(id, |_| format!("weir receives an end: {has_ended}"));
                return if has_ended { Ok(0) } else { Err(Errno::AGAIN) };
            }
            if !flags.contains(RecvFlags::TRUNC) {
                buffer[..count].copy_from_slice(&arrived.as_slice()[..count]);
            }
            if !flags.contains(RecvFlags::PEEK) {
                arrived.take(count);
                if let Some(unasked) = &mut connection.unasked {
                    unasked.is_known |= count > unasked.before;
                    unasked.before = unasked.before.saturating_sub(count);
                }
                if connection.inward.can_move() {
                    state.set_moving(id, Direction::In);
                }
            }
            state.narrate(id, |_| format!("weir receives {}", excerpt(&buffer[..count])));
            Ok(count)
        })
    }

    /// Sends FIN.
    pub fn shut_write(&self) -> Result<(), Errno> {
        self.on_stream(|state, id| {
            let connection = state.connection(id);
            if connection.ours.was_reset || connection.is_connecting {
                return Err(Errno::NOTCONN);
            }
            connection.ours.has_shut = true;
            state.narrate(id, |_| "weir shuts".to_owned());
            let connection = state.connection(id);
            if connection.outward.ending == DirectionEnd::None {
                connection.outward.ending = DirectionEnd::Fin;
                state.set_moving(id, Direction::Out);
            }
            // The connection is writable according to epoll now, because it was shut.
            state.tell(id);
            Ok(())
        })
    }

    /// Makes a close of this end send a reset.
    pub fn reset_on_close(&self) {
        if let DescriptorKind::Stream(id) = self.what {
            self.network.0.borrow_mut().connection(id).ours.resets = true;
        }
    }

    /// Returns and clears the pending error.
    pub fn take_error(&self) -> Result<(), Errno> {
        self.on_stream(|state, id| state.connection(id).ours.error.take().map_or(Ok(()), Err))
    }

    /// Whether data has arrived that was not received.
    pub fn has_unread(&self) -> bool {
        self.on_stream(|state, id| Ok(!state.connection(id).inward.arrived.is_empty()))
            .unwrap_or(false)
    }

    /// The number of bytes in flight.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.on_stream(|state, id| Ok(state.connection(id).outward.flight.len() as u64))
            .unwrap_or(0)
    }
}

/// The size and the first bytes of some data.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    format!("{} bytes: {}", bytes.len(), bytes[..bytes.len().min(200)].escape_ascii())
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.network.0.borrow_mut();
        state.open -= 1;
        match self.what {
            DescriptorKind::Stream(id) => {
                state.connection(id).watch = None;
                state.narrate(id, |it| format!("weir closes, reset: {}", it.ours.resets));
                state.close(id, Direction::Out);
            }
            DescriptorKind::Datagrams(id) => state.datagrams.close(id),
            DescriptorKind::Listener(address) => {
                let backlog = state.listeners.remove(&address).map(|it| it.backlog);
                for id in backlog.unwrap_or_default() {
                    state.connection(id).is_in_backlog = false;
                    state.connection(id).ours.resets = true;
                    state.close(id, Direction::Out);
                }
            }
        }
    }
}
