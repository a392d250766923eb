//! The streams of a connection: open streams, stored densely, and a memory of recently closed streams.
//!
//! | state (RFC 9113 section 5.1) | here |
//! |---|---|
//! | idle | an id above all used ids |
//! | open | neither half is [`Half::Ended`] |
//! | half-closed (local), (remote) | one half is [`Half::Ended`] |
//! | closed | not among the open streams; the reason for closing is remembered for a while |
//!
//! Streams are never reserved, because there is no server push.

use super::window::ReceiveWindow;

/// The progress of one side of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// The head of the message is expected; interim responses may precede it.
    Head,
    /// Data or trailers are expected.
    Body,
    /// END_STREAM was sent or received.
    Ended,
}

/// The kind of response that a client expects to its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A head, and a body if the status has one.
    Usual,
    /// Only a head: the request is HEAD.
    HeadOnly,
    /// A tunnel if the status is 2xx: the request is CONNECT.
    Tunnel,
}

/// The state of a stream that has data to send but no window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) since_ms: u64,
    /// Bytes sent since the start of the stall.
    pub(super) sent: u32,
}

/// The rest of a request that is accepted and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiscardedRequest {
    /// The time when the stream is reset.
    pub(super) until_ms: u64,
    /// Number of bytes whose window is still returned to the peer.
    pub(super) size_left: u32,
}

/// A stream that is open or half-closed.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// The caller's tag.
    pub(super) tag: u64,
    pub(super) opened_ms: u64,
    /// The state of the peer's side.
    pub(super) peer: Half,
    /// The state of our side.
    pub(super) ours: Half,
    pub(super) answer: Answer,
    /// Bytes that we may send; below 0 after the peer reduced its setting.
    pub(super) send_window: i64,
    pub(super) receive: ReceiveWindow,
    /// The number of bytes until the announced Content-Length is reached; `None`: no Content-Length.
    pub(super) body_left: Option<u64>,
    pub(super) interim_responses: u16,
    pub(super) stall: Option<Stall>,
    /// The rest of the request, if the response ended before the request and the caller has left the stream.
    pub(super) unwanted: Option<DiscardedRequest>,
}

impl Stream {
    /// Whether all data of the peer's message has arrived by its Content-Length, and only the end is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.peer == Half::Body && self.body_left == Some(0)
    }
}

/// The reason for the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// Both sides sent END_STREAM.
    Ended,
    /// The peer reset it.
    ByPeer,
    /// We reset or refused the stream: frames may be in flight.
    ByUs,
}

/// Maximum number of remembered streams, for each of two lists: streams that we reset, and streams that ended otherwise. A
/// frame on a stream that ended long ago is a connection error. A frame on a stream that we reset is none, because the peer
/// may not have known of the reset.
const REMEMBERED_MAX: usize = 128;

/// A ring of the latest values.
#[derive(Debug, Clone)]
struct Ring<T> {
    values: Vec<T>,
    /// The position of the oldest value, once the ring is full.
    next: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { values: Vec::new(), next: 0 }
    }
}

impl<T> Ring<T> {
    /// Adds a value. Returns the value that it replaces, if any.
    fn push(&mut self, value: T) -> Option<T> {
        if self.values.len() < REMEMBERED_MAX {
            self.values.push(value);
            return None;
        }
        let forgotten = std::mem::replace(&mut self.values[self.next], value);
        self.next = (self.next + 1) % REMEMBERED_MAX;
        Some(forgotten)
    }
}

/// The streams of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    /// The open streams, in arbitrary order.
    alive: Vec<Stream>,
    /// Positions in `alive` by hash of the id, with open addressing; [`VACANT`] for an empty slot. The size is a power
    /// of two, and at least twice the number of open streams.
    index: Vec<u32>,
    /// Streams that we reset.
    reset: Ring<u32>,
    /// The highest stream that we reset and that is not remembered any more. A lower stream that is in neither list may have
    /// been reset too.
    reset_forgotten: u32,
    /// Streams that ended, and whether the peer reset them.
    ended: Ring<(u32, CloseReason)>,
}

const VACANT: u32 = u32::MAX;

impl Streams {
    /// Number of open streams.
    pub(super) fn len(&self) -> usize {
        self.alive.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.alive.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.alive.iter_mut()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Stream> {
        let slot = self.slot(id)?;
        Some(&self.alive[self.index[slot] as usize])
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let slot = self.slot(id)?;
        Some(&mut self.alive[self.index[slot] as usize])
    }

    /// Adds a new stream.
    pub(super) fn insert(&mut self, stream: Stream) {
        debug_assert!(self.get(stream.id).is_none());
        let id = stream.id;
        self.alive.push(stream);
        if self.alive.len() * 2 > self.index.len() {
            self.rebuild();
        } else {
            self.enter(id, self.alive.len() - 1);
        }
    }

    /// Removes a stream, and remembers the reason for its end.
    pub(super) fn close(&mut self, id: u32, how: CloseReason) -> Option<Stream> {
        let slot = self.slot(id)?;
        let place = self.index[slot] as usize;
        self.vacate(slot);
        if place + 1 < self.alive.len() {
            let moved = self.alive[self.alive.len() - 1].id;
            if let Some(slot) = self.slot(moved) {
                self.index[slot] = place as u32;
            }
        }
        self.push_closed(id, how);
        Some(self.alive.swap_remove(place))
    }

    /// We reset a stream that is not open, possibly again.
    pub(super) fn remember_reset(&mut self, id: u32) {
        self.change_end(id, CloseReason::ByUs);
        if !self.reset.values.contains(&id) {
            self.push_closed(id, CloseReason::ByUs);
        }
    }

    /// Changes the remembered reason for the end of a stream. Returns whether the stream is remembered.
    fn change_end(&mut self, id: u32, how: CloseReason) -> bool {
        let end = self.ended.values.iter_mut().find(|(known, _)| *known == id);
        end.map(|end| end.1 = how).is_some()
    }

    fn push_closed(&mut self, id: u32, how: CloseReason) {
        if how != CloseReason::ByUs {
            self.ended.push((id, how));
        } else if let Some(forgotten) = self.reset.push(id) {
            self.reset_forgotten = self.reset_forgotten.max(forgotten);
        }
    }

    /// The peer resets a stream that is not open. If we had reset it, the peer now knows: later frames are errors.
    pub(super) fn note_reset_by_peer(&mut self, id: u32) {
        if self.closed(id) == Some(CloseReason::ByUs) && !self.change_end(id, CloseReason::ByPeer) {
            self.ended.push((id, CloseReason::ByPeer));
        }
    }

    /// The remembered reason for the end of a stream.
    pub(super) fn closed(&self, id: u32) -> Option<CloseReason> {
        if let Some((_, how)) = self.ended.values.iter().find(|(known, _)| *known == id) {
            return Some(*how);
        }
        let is_reset = id <= self.reset_forgotten || self.reset.values.contains(&id);
        is_reset.then_some(CloseReason::ByUs)
    }

    /// Removes every stream above `id`. A stream with a whole message stays, as its caller must learn of it.
    pub(super) fn close_above(&mut self, id: u32, how: CloseReason) {
        // From the end: a stream that moves into a vacated place was already checked.
        for place in (0..self.alive.len()).rev() {
            let found = self.alive[place].id;
            if found > id && !self.alive[place].is_whole() {
                self.close(found, how);
            }
        }
    }

    fn home(&self, id: u32) -> usize {
        const MULTIPLIER: u32 = 0x9e37_79b1;
        (id.wrapping_mul(MULTIPLIER) >> 16) as usize & (self.index.len() - 1)
    }

    #[inline]
    fn slot(&self, id: u32) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut slot = self.home(id);
        loop {
            match self.index[slot] {
                VACANT => return None,
                place if self.alive[place as usize].id == id => return Some(slot),
                _ => slot = (slot + 1) & (self.index.len() - 1),
            }
        }
    }

    fn enter(&mut self, id: u32, place: usize) {
        let mut slot = self.home(id);
        while self.index[slot] != VACANT {
            slot = (slot + 1) & (self.index.len() - 1);
        }
        self.index[slot] = place as u32;
    }

    /// Makes a slot vacant, and moves up the later entries that could not be found otherwise.
    fn vacate(&mut self, slot: usize) {
        let mask = self.index.len() - 1;
        let (mut hole, mut next) = (slot, (slot + 1) & mask);
        while self.index[next] != VACANT {
            let home = self.home(self.alive[self.index[next] as usize].id);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.index[hole] = VACANT;
    }

    #[cold]
    fn rebuild(&mut self) {
        const SLOTS_MIN: usize = 16;
        let slots = (self.alive.len() * 4).next_power_of_two().max(SLOTS_MIN);
        self.index.clear();
        self.index.resize(slots, VACANT);
        for place in 0..self.alive.len() {
            self.enter(self.alive[place].id, place);
        }
    }

    /// The allocated memory in bytes.
    pub(super) fn memory_size(&self) -> usize {
        self.alive.capacity() * size_of::<Stream>()
            + self.index.capacity() * size_of::<u32>()
            + self.reset.values.capacity() * size_of::<u32>()
            + self.ended.values.capacity() * size_of::<(u32, CloseReason)>()
    }

    /// Panics if the state is inconsistent.
    pub(super) fn check_invariants(&self) {
        for (place, stream) in self.alive.iter().enumerate() {
            let slot = self.slot(stream.id).expect("every stream is found");
            assert_eq!(self.index[slot] as usize, place);
            assert!(stream.peer != Half::Ended || stream.ours != Half::Ended);
            stream.receive.check_invariants();
        }
        assert_eq!(self.index.iter().filter(|place| **place != VACANT).count(), self.alive.len());
        assert!(self.reset.values.len().max(self.ended.values.len()) <= REMEMBERED_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u32) -> Stream {
        Stream {
            id,
            tag: 0,
            opened_ms: 0,
            peer: Half::Body,
            ours: Half::Head,
            answer: Answer::Usual,
            send_window: 0,
            receive: ReceiveWindow::new(1),
            body_left: None,
            interim_responses: 0,
            stall: None,
            unwanted: None,
        }
    }

    #[test]
    fn streams_are_found_whatever_came_and_went() {
        let mut streams = Streams::default();
        let mut model: Vec<u32> = Vec::new();
        let mut random = 1_u64;
        for step in 0..20_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let choice = (random >> 33) as usize;
            if model.len() < 120 && choice % 5 < 3 {
                let id = step * 2 + 1;
                streams.insert(stream(id));
                model.push(id);
            } else if !model.is_empty() {
                let id = model.swap_remove(choice % model.len());
                assert_eq!(streams.close(id, CloseReason::ByUs).map(|stream| stream.id), Some(id));
                assert_eq!(streams.closed(id), Some(CloseReason::ByUs));
                assert!(
                    streams.get(id).is_none() && streams.close(id, CloseReason::ByUs).is_none()
                );
            }
            assert!(model.iter().all(|id| streams.get(*id).is_some_and(|found| found.id == *id)));
            assert_eq!(streams.len(), model.len());
        }
        streams.check_invariants();
        assert!(streams.memory_size() < 64 * 1024);
        model.sort_unstable();
        let middle = model[model.len() / 2];
        streams.close_above(middle, CloseReason::ByUs);
        assert!(model.iter().all(|id| streams.get(*id).is_some() == (*id <= middle)));
        streams.check_invariants();
    }

    #[test]
    fn closed_streams_are_forgotten_in_the_end() {
        let mut streams = Streams::default();
        for id in 0..1000 {
            streams.insert(stream(id));
            streams.close(id, CloseReason::Ended);
        }
        assert_eq!(streams.closed(999), Some(CloseReason::Ended));
        assert_eq!(streams.closed(999 - REMEMBERED_MAX as u32), None);
        streams.remember_reset(999);
        streams.remember_reset(999);
        assert_eq!(streams.closed(999), Some(CloseReason::ByUs));
        streams.note_reset_by_peer(999);
        assert_eq!(streams.closed(999), Some(CloseReason::ByPeer), "it knew, and said so");
        streams.remember_reset(999);
        assert_eq!(streams.closed(999), Some(CloseReason::ByUs));
        // Neither ended streams nor later resets displace the streams that we reset.
        for id in 1000..2000 {
            streams.insert(stream(id));
            streams.close(id, if id % 2 == 0 { CloseReason::Ended } else { CloseReason::ByUs });
        }
        for (id, how) in
            [(999, Some(CloseReason::ByUs)), (1998, Some(CloseReason::Ended)), (2000, None)]
        {
            assert_eq!(streams.closed(id), how, "{id}");
        }
        assert_eq!(streams.closed(1001), Some(CloseReason::ByUs), "forgotten, and believed");
        streams.check_invariants();
    }
}
