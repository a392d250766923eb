//! Persistence by connection IDs of QUIC: which IDs members have given to their clients, for all workers.
//!
//! A member tells an ID of its own while a connection is made. A client whose address changes goes on using it, and its datagrams
//! begin a session at the same member, from another port of weir's: so the member sees the change, and has the new way
//! validated as QUIC wants it.
//!
//! An ID that a client gets later is told encrypted. Members that write their own name into each of their IDs are found by
//! that: `server_id` says where it stands.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use weir_config::snapshot::{ConnectionIdSettings, Pool};
use weir_core::datagram::quic::{CONNECTION_ID_BYTES_MAX, Header};
use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::persistence::source::Timeout;

use crate::shared::shared_table::{Losses, SourceTable};

/// How often what is remembered of a session that goes on is written anew, in parts of the timeout.
const NOTE_PART: u64 = 4;

/// Remembered IDs, and what they were made for.
#[derive(Debug)]
pub struct ConnectionIds {
    table: SourceTable,
    /// A bit for each length of an ID that members have given.
    lengths: AtomicU32,
    settings: ConnectionIdSettings,
    /// The members when the table was made.
    labels: Vec<Arc<str>>,
}

/// What a session knows of its member's IDs.
#[derive(Debug, Clone, Copy)]
pub struct Learned {
    bytes: [u8; CONNECTION_ID_BYTES_MAX],
    length: u8,
    noted_ms: u64,
}

impl ConnectionIds {
    /// For the members of a pool. `hash` has a key that nobody knows.
    pub fn new(settings: ConnectionIdSettings, pool: &Pool, hash: KeyedHash) -> Self {
        let timeout = Timeout::new(settings.timeout_ms);
        Self {
            table: SourceTable::new(settings.entries_max, hash, PrefixLengths::WHOLE, timeout),
            lengths: AtomicU32::new(0),
            settings,
            labels: pool.members.iter().map(|member| Arc::clone(&member.label)).collect(),
        }
    }

    /// Whether it would be made no different for these.
    pub fn is_for(&self, settings: ConnectionIdSettings, pool: &Pool) -> bool {
        self.settings == settings
            && self.labels.iter().eq(pool.members.iter().map(|member| &member.label))
    }

    /// Goes on with the IDs that `old` remembers, as far as their members are still there.
    pub fn take_over(&self, old: &Self, now_ms: u64) {
        if old.settings.server_id != self.settings.server_id {
            return;
        }
        let places: HashMap<&str, u32> =
            self.labels.iter().map(|label| &**label).zip(0..).collect();
        self.table.take_over(&old.table, now_ms, |member| {
            places.get(&**old.labels.get(member as usize)?).copied()
        });
        self.lengths.fetch_or(old.lengths.load(Relaxed), Relaxed);
    }

    /// See [`SourceTable::losses`].
    pub fn losses(&self) -> Losses {
        self.table.losses()
    }

    /// The member that has given the ID which a client's datagram has.
    pub fn find(&self, datagram: &[u8], now_ms: u64) -> Option<u32> {
        let header = Header::parse(datagram, 0).ok()?;
        let is_short = matches!(header, Header::Short { .. });
        // With a short header, where the ID begins: how long it is, its member alone knows.
        let bytes = if is_short { &datagram[1..] } else { header.destination().of(datagram) };
        if self.settings.server_id.is_some() {
            return self.table.find_bytes(self.server_id(bytes)?, now_ms);
        }
        if !is_short {
            return self.table.find_bytes(bytes, now_ms);
        }
        let lengths = self.lengths.load(Relaxed);
        let known = (1..=CONNECTION_ID_BYTES_MAX).filter(|length| lengths & 1 << length != 0);
        known
            .rev()
            .filter_map(|length| bytes.get(..length))
            .find_map(|id| self.table.find_bytes(id, now_ms))
    }

    /// A member has sent this: the ID that it tells is its own.
    pub fn learn(&self, datagram: &[u8], member: u32, now_ms: u64) -> Option<Learned> {
        // In the negotiation of versions a server says back what its client has chosen.
        let Ok(Header::Long(header)) = Header::parse(datagram, 0) else { return None };
        let whole = header.source.of(datagram);
        if !(1..=CONNECTION_ID_BYTES_MAX).contains(&whole.len()) {
            return None;
        }
        let id = match self.settings.server_id {
            Some(_) => self.server_id(whole)?,
            None => whole,
        };
        self.lengths.fetch_or(1 << id.len(), Relaxed);
        self.table.remember_bytes(id, member, now_ms);
        let mut bytes = [0; CONNECTION_ID_BYTES_MAX];
        bytes[..id.len()].copy_from_slice(id);
        Some(Learned { bytes, length: id.len() as u8, noted_ms: now_ms })
    }

    /// The session goes on: what it knows is not forgotten meanwhile.
    pub fn refresh(&self, learned: &mut Learned, member: u32, now_ms: u64) {
        if now_ms >= learned.noted_ms + self.settings.timeout_ms / NOTE_PART {
            learned.noted_ms = now_ms;
            let id = &learned.bytes[..usize::from(learned.length)];
            self.table.remember_bytes(id, member, now_ms);
        }
    }

    /// The member's name in an ID that begins so.
    fn server_id<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.settings.server_id?;
        let start = usize::from(place.offset);
        bytes.get(start..start + usize::from(place.length))
    }
}

#[cfg(test)]
mod tests {
    use weir_config::snapshot::ServerIdPlace;

    use super::*;

    fn pool() -> Arc<Pool> {
        let text = "virtual_servers: { v: { listen: \"127.0.0.1:8080\", type: udp, pool: p } }\n\
            pools: { p: { members: [ 127.0.0.1:1, 127.0.0.1:2 ] } }\n";
        let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
        Arc::clone(&config.snapshot(&weir_config::Resolutions::default()).pools[0])
    }

    fn ids(server_id: Option<ServerIdPlace>) -> ConnectionIds {
        let settings = ConnectionIdSettings { timeout_ms: 60_000, entries_max: 100, server_id };
        ConnectionIds::new(settings, &pool(), KeyedHash::new([7; 16]))
    }

    fn answer(id: &[u8]) -> Vec<u8> {
        let head = [&[0xC0, 0, 0, 0, 1, 0][..], &[id.len() as u8], id];
        head.concat()
    }

    #[test]
    fn what_names_no_connection_is_not_learned() {
        let ids = ids(None);
        assert!(ids.learn(&answer(b""), 1, 0).is_none(), "an empty ID");
        let negotiation = [&b"\x80\0\0\0\0\x00\x04four"[..], &[0, 0, 0, 1]].concat();
        assert!(ids.learn(&negotiation, 1, 0).is_none(), "a negotiation of versions");
        let mut unknown = answer(&[7; 21]);
        assert!(ids.learn(&unknown, 1, 0).is_none(), "longer than version 1 allows");
        unknown[1] = 0x0a;
        assert!(ids.learn(&unknown, 1, 0).is_none(), "longer than what is remembered");
        for length in 0..answer(b"four").len() {
            assert!(ids.learn(&answer(b"four")[..length], 1, 0).is_none(), "{length}");
        }
        assert_eq!(ids.find(&short(b"four"), 0), None);
    }

    fn short(id: &[u8]) -> Vec<u8> {
        [&[0x40][..], id, &[9; 30]].concat()
    }

    #[test]
    fn what_members_give_is_known_whatever_its_length() {
        let ids = ids(None);
        assert_eq!(ids.find(&short(b"eightbyt"), 0), None);
        assert!(ids.learn(&answer(b"eightbyt"), 1, 0).is_some());
        assert!(ids.learn(&answer(b"four"), 0, 0).is_some());
        assert_eq!(ids.find(&short(b"eightbyt"), 1), Some(1));
        assert_eq!(ids.find(&short(b"four"), 1), Some(0));
        assert_eq!(ids.find(&short(b"other"), 1), None);
        assert_eq!(ids.find(b"", 1), None);
        assert!(ids.learn(&short(b"four"), 1, 1).is_none(), "this tells none");
    }

    #[test]
    fn a_name_within_the_id_is_enough() {
        let ids = ids(Some(ServerIdPlace { offset: 1, length: 2 }));
        assert!(ids.learn(&answer(b"xAByyyy"), 1, 0).is_some());
        assert_eq!(ids.find(&short(b"qABother id"), 0), Some(1));
        assert_eq!(ids.find(&short(b"qACother id"), 0), None);
        assert_eq!(ids.find(&[0x40, 1], 0), None, "too short");
    }

    #[test]
    fn a_session_that_goes_on_is_not_forgotten() {
        let ids = ids(None);
        let mut learned = ids.learn(&answer(b"identity"), 1, 0).expect("an ID");
        for now_ms in (0..600_000).step_by(5_000) {
            ids.refresh(&mut learned, 1, now_ms);
        }
        assert_eq!(ids.find(&short(b"identity"), 640_000), Some(1));
        assert_eq!(ids.find(&short(b"identity"), 900_000), None);
    }

    #[test]
    fn a_reload_goes_on_with_members_that_stay() {
        let (old, new) = (ids(None), ids(None));
        old.learn(&answer(b"identity"), 1, 0);
        new.take_over(&old, 0);
        assert_eq!(new.find(&short(b"identity"), 0), Some(1));
    }
}
