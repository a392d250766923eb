//! Bodies that are held for inspection, and the limit on their memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use weir_core::keyed_hash::PrefixLengths;

use crate::parts::peak::Peak;
use crate::shared::counters::{Own, WorkerCounters};

/// Maximum size of all held bodies of one worker.
const HELD_BYTES_MAX: u64 = 256 << 20;
/// Maximum size of the held bodies of one client.
const CLIENT_BYTES_MAX: u64 = HELD_BYTES_MAX / 8;
/// IPv6 clients are counted by their /64 network.
const CLIENT_PREFIX: PrefixLengths = PrefixLengths { v4: 32, v6: 64 };

/// The release of bodies counts for the system if they were at least this much. The allocator keeps less anyway.
const RELEASED_BYTES_MIN: u64 = 32 << 20;

/// The memory limit for held bodies of one worker.
#[derive(Debug, Default)]
pub struct HeldRoom(Rc<RefCell<HeldTotals>>);

#[derive(Debug, Default)]
struct HeldTotals {
    bytes: u64,
    by_client: HashMap<Option<IpAddr>, u64>,
    /// Notices when much of it is released.
    peak: Peak,
    counted: Option<Own<WorkerCounters>>,
}

impl HeldTotals {
    /// Reserves memory. Returns false if the limit is reached.
    fn add(&mut self, client: Option<IpAddr>, bytes: u64) -> bool {
        self.bytes += bytes;
        if let Some(counted) = &self.counted {
            counted.waf_held_bytes.add(bytes);
        }
        let of_client = self.by_client.entry(client).or_default();
        *of_client += bytes;
        *of_client <= CLIENT_BYTES_MAX && self.bytes <= HELD_BYTES_MAX
    }

    /// Whether so much more can be reserved.
    fn has_room(&self, client: Option<IpAddr>, bytes: u64) -> bool {
        let of_client = self.by_client.get(&client).copied().unwrap_or_default();
        of_client.saturating_add(bytes) <= CLIENT_BYTES_MAX
            && self.bytes.saturating_add(bytes) <= HELD_BYTES_MAX
    }

    fn give_back(&mut self, client: Option<IpAddr>, bytes: u64) {
        let Some(of_client) = self.by_client.get_mut(&client) else { return };
        debug_assert!(*of_client >= bytes, "room is given back once");
        *of_client = of_client.saturating_sub(bytes);
        let before = self.bytes;
        self.bytes = self.bytes.saturating_sub(bytes);
        if *of_client == 0 {
            self.by_client.remove(&client);
        }
        let is_released = self.peak.is_released((before, self.bytes), RELEASED_BYTES_MIN);
        if let Some(counted) = &self.counted {
            counted.waf_held_bytes.subtract(bytes);
            counted.memory_releases.add(u64::from(is_released));
        }
    }
}

impl HeldRoom {
    /// Counts the held bytes, and the releases of many of them, from now on.
    pub fn count(&self, counted: Own<WorkerCounters>) {
        self.0.borrow_mut().counted = Some(counted);
    }

    /// An empty body of this client.
    pub fn body(&self, client: Option<IpAddr>) -> HeldBody {
        let client = client.map(|address| CLIENT_PREFIX.of(address));
        let held = HeldBytes { bytes: 0, client, taken: Rc::clone(&self.0) };
        HeldBody { bytes: Arc::default(), behind: Vec::new(), held }
    }
}

/// The reserved memory of a held body. Dropping it returns the memory.
#[derive(Debug)]
pub struct HeldBytes {
    bytes: u64,
    client: Option<IpAddr>,
    taken: Rc<RefCell<HeldTotals>>,
}

impl HeldBytes {
    /// Reserves more memory. Returns false if a limit is reached.
    pub fn add(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        self.taken.borrow_mut().add(self.client, bytes)
    }

    /// Increases the reservation to this many bytes. Returns false if a limit is reached; never decreases it.
    pub fn raise_to(&mut self, bytes: u64) -> bool {
        bytes <= self.bytes || self.add(bytes - self.bytes)
    }

    /// As [`Self::raise_to`], but reserves nothing if a limit would be reached.
    pub fn raise_if_room(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let has_room = more == 0 || self.taken.borrow().has_room(self.client, more);
        has_room && self.raise_to(bytes)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.taken.borrow_mut().give_back(self.client, self.bytes);
        }
    }
}

/// A held body.
#[derive(Debug)]
pub struct HeldBody {
    /// An inspection elsewhere reads it, too.
    bytes: Arc<Vec<u8>>,
    /// What has arrived while it does.
    behind: Vec<u8>,
    held: HeldBytes,
}

impl HeldBody {
    /// Appends received data. Returns false if a limit is reached; the data is appended in any case. While an inspection elsewhere
    /// reads the data, it is kept apart: see [`Self::join`].
    pub fn push(&mut self, data: &[u8]) -> bool {
        match Arc::get_mut(&mut self.bytes) {
            Some(bytes) if self.behind.is_empty() => bytes.extend_from_slice(data),
            _ => self.behind.extend_from_slice(data),
        }
        self.held.add(data.len() as u64)
    }

    /// Appends what was kept apart. If an inspection still reads the data, that is copied.
    pub fn join(&mut self) {
        if !self.behind.is_empty() {
            Arc::make_mut(&mut self.bytes).append(&mut self.behind);
        }
    }

    /// The received data, without what is kept apart.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The received data, for an inspection elsewhere.
    pub fn shared(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.bytes)
    }

    /// An empty reservation of the same client, for further memory.
    pub fn beside(&self) -> HeldBytes {
        let HeldBytes { client, taken, .. } = &self.held;
        HeldBytes { bytes: 0, client: *client, taken: Rc::clone(taken) }
    }

    /// A second reservation for the data, while an inspection that nobody waits for may still read it.
    pub fn again(&self) -> HeldBytes {
        let mut again = self.beside();
        // The data is there already, so limits do not matter.
        let _ = again.raise_to(self.held.bytes);
        again
    }

    /// Takes the reservation: the data is used up at once, but an inspection elsewhere may still read it.
    pub fn take_reservation(&mut self) -> HeldBytes {
        let none = self.beside();
        std::mem::replace(&mut self.held, none)
    }

    /// The reservation alone: the data is not needed any more.
    pub fn into_held(self) -> HeldBytes {
        self.held
    }

    /// The data and its reservation: it lasts while the member receives the data. An inspection elsewhere may still read the
    /// data.
    pub fn into_parts(self) -> (Arc<Vec<u8>>, HeldBytes) {
        (self.bytes, self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::counters::PerWorker;

    #[test]
    fn room_comes_back() {
        let room = HeldRoom::default();
        let piece = vec![b'x'; CLIENT_BYTES_MAX as usize];
        let address = |number: u8| Some(IpAddr::from([10, 0, 0, number]));
        let mut first = room.body(address(0));
        assert!(first.push(&piece));
        assert!(!first.push(b"y"), "its share is taken");
        assert_eq!(first.bytes().len(), piece.len() + 1, "it is there all the same");
        let mut beside = room.body(address(0));
        assert!(!beside.push(b"y"), "another of the same client");
        let mut decoding = beside.beside();
        assert!(!decoding.raise_if_room(1), "nothing is reserved");
        assert_eq!(room.0.borrow().bytes, piece.len() as u64 + 2);
        assert!(!decoding.raise_to(1));
        drop((beside, decoding));
        let mut others: Vec<_> = (1..8).map(|number| room.body(address(number))).collect();
        assert!(others[1..].iter_mut().all(|other| other.push(&piece)));
        assert!(!others[0].push(&piece), "no room for all");
        let again = first.again();
        let held = first.into_held();
        assert!(!others[0].push(b"z"));
        let all = room.0.borrow().bytes;
        drop(held);
        assert_eq!(room.0.borrow().bytes, all - again.bytes, "it was reserved twice");
        assert_eq!(again.bytes, piece.len() as u64 + 1);
        drop(again);
        drop(others);
        let mut later = room.body(address(0)).beside();
        assert!(later.raise_if_room(CLIENT_BYTES_MAX) && later.raise_if_room(1));
        assert!(!later.raise_if_room(CLIENT_BYTES_MAX + 1));
        assert_eq!(room.0.borrow().bytes, CLIENT_BYTES_MAX);
        drop(later);
        let taken = room.0.borrow();
        assert_eq!((taken.bytes, taken.by_client.len()), (0, 0));
    }

    #[test]
    fn an_inspection_shares_the_data() {
        let room = HeldRoom::default();
        let mut body = room.body(None);
        body.push(b"abc");
        let shared = body.shared();
        assert!(body.push(b"de") && body.push(b"f"));
        assert_eq!((body.bytes(), &shared[..]), (&b"abc"[..], &b"abc"[..]));
        assert!(Arc::ptr_eq(&body.bytes, &shared), "it is not copied");
        drop(shared);
        assert!(body.push(b"g"));
        body.join();
        body.join();
        assert_eq!(body.bytes(), b"abcdefg", "in order");
        let shared = body.shared();
        let (bytes, held) = body.into_parts();
        assert!(Arc::ptr_eq(&bytes, &shared), "it is not copied");
        assert_eq!((&bytes[..], held.bytes), (&b"abcdefg"[..], 7));
    }

    #[test]
    fn data_that_an_inspection_never_gave_back_is_joined_all_the_same() {
        let mut body = HeldRoom::default().body(None);
        body.push(b"abc");
        let shared = body.shared();
        body.push(b"de");
        body.join();
        assert_eq!((body.bytes(), &shared[..]), (&b"abcde"[..], &b"abc"[..]));
    }

    #[test]
    fn the_release_of_much_is_counted_once() {
        let counters = PerWorker::<WorkerCounters>::new(1);
        let room = HeldRoom::default();
        room.count(counters.own(0));
        let counted = || {
            let WorkerCounters { waf_held_bytes, memory_releases, .. } = counters.of(0);
            (waf_held_bytes.get(), memory_releases.get())
        };
        let body = |bytes: u64| {
            let mut body = room.body(None);
            body.push(&vec![b'x'; bytes as usize]);
            body
        };
        drop(body(RELEASED_BYTES_MIN - 1));
        assert_eq!(counted(), (0, 0), "little");
        let pieces: Vec<HeldBody> = (0..4).map(|_| body(RELEASED_BYTES_MIN / 4)).collect();
        for (left, body) in (0..4).rev().zip(pieces) {
            drop(body);
            let is_most = u64::from(left <= 1);
            assert_eq!(counted(), (left * RELEASED_BYTES_MIN / 4, is_most), "{left} are left");
        }
        drop(body(RELEASED_BYTES_MIN));
        assert_eq!(counted(), (0, 2));
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let room = HeldRoom::default();
        let address = |text: &str| Some(text.parse().expect("an address"));
        let mut one = room.body(address("2001:db8::1"));
        let mut other = room.body(address("2001:db8::2"));
        assert!(one.push(&vec![b'x'; CLIENT_BYTES_MAX as usize]));
        assert!(!other.push(b"x"));
    }
}
