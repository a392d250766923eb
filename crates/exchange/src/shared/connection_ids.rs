//! Persistence by QUIC connection IDs: a table, shared by all workers, of the IDs that members have given to their
//! clients.
//!
//! A member sends its own ID during the handshake. A client whose address changes continues to use it. Its datagrams
//! then begin a new session at the same member, from another port of weir: the member sees the change, and validates
//! the new path as QUIC requires.
//!
//! Later IDs are sent encrypted. Members that put a server ID into each of their connection IDs are recognised by that:
//! `server_id` sets its position.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use weir_config::snapshot::{ConnectionIdSettings, Pool};
use weir_core::datagram::quic::{CONNECTION_ID_BYTES_MAX, Header};
use weir_core::keyed_hash::{KeyedHash, PrefixLengths};
use weir_core::persistence::source::Timeout;

use crate::shared::shared_table::{Losses, SourceTable};

/// How often the entry of an active session is renewed, in parts of the timeout.
const NOTE_PART: u64 = 4;

/// How long an unused ID of a member is remembered. A first packet does not prove that its sender can receive at that
/// address, so entries that strangers cause expire soon and are displaced first.
const UNUSED_MS: u64 = 10_000;

/// Remembered IDs, and the settings of the table.
#[derive(Debug)]
pub struct ConnectionIds {
    table: SourceTable,
    /// The lengths of IDs that members have given: one bit per length.
    lengths: AtomicU32,
    settings: ConnectionIdSettings,
    /// The labels of the members when the table was created.
    labels: Vec<Arc<str>>,
}

/// A connection ID that leads to a member.
#[derive(Debug, Clone)]
pub struct KnownId {
    bytes: [u8; CONNECTION_ID_BYTES_MAX],
    length: u8,
    /// The member.
    pub label: Arc<str>,
    /// The last time when the entry was written for the whole timeout; `None`: never.
    noted_ms: Option<u64>,
}

impl KnownId {
    fn new(id: &[u8], label: &Arc<str>) -> Self {
        let mut bytes = [0; CONNECTION_ID_BYTES_MAX];
        bytes[..id.len()].copy_from_slice(id);
        Self { bytes, length: id.len() as u8, label: Arc::clone(label), noted_ms: None }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether the client has used the ID, as far as its session knows.
    pub fn is_used(&self) -> bool {
        self.noted_ms.is_some()
    }

    /// Whether both are the same ID.
    pub fn is(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.label == other.label
    }
}

impl ConnectionIds {
    /// A table for the members of a pool. `hash` has a secret key.
    pub fn new(settings: ConnectionIdSettings, pool: &Pool, hash: KeyedHash) -> Self {
        let timeout = Timeout::new(settings.timeout_ms);
        Self {
            table: SourceTable::new(settings.entries_max, hash, PrefixLengths::WHOLE, timeout),
            lengths: AtomicU32::new(0),
            settings,
            labels: pool.members.iter().map(|member| Arc::clone(&member.label)).collect(),
        }
    }

    /// Whether the table fits these settings and this pool, so that it can be kept.
    pub fn is_for(&self, settings: ConnectionIdSettings, pool: &Pool) -> bool {
        self.settings == settings
            && self.labels.iter().eq(pool.members.iter().map(|member| &member.label))
    }

    /// The table, and the labels of its members by their numbers in the table.
    pub fn parts(&self) -> (&SourceTable, &[Arc<str>]) {
        (&self.table, &self.labels)
    }

    /// The lengths of IDs that members have given: one bit per length.
    pub fn lengths(&self) -> u32 {
        self.lengths.load(Relaxed)
    }

    /// Adds the lengths of IDs from another table.
    pub fn add_lengths(&self, lengths: u32) {
        self.lengths.fetch_or(lengths, Relaxed);
    }

    /// Copies the IDs of `old` whose members are still configured.
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

    /// The member that gave the connection ID in a client's first datagram.
    pub fn find(&self, datagram: &[u8], now_ms: u64) -> Option<u32> {
        self.search(datagram, |id| self.table.find_bytes(id, now_ms)).map(|(_, member)| member)
    }

    /// The entry of a datagram's ID within a session, with the member's number. A client's own datagram does not extend
    /// the timeout: [`Self::refresh`] does.
    pub fn look(&self, datagram: &[u8], now_ms: u64) -> Option<(KnownId, u32)> {
        // During a handshake, the client's packets contain an ID of the client's choice, which may contain any server ID.
        if self.settings.server_id.is_some() && is_long(datagram) {
            return None;
        }
        let (id, member) = self.search(datagram, |id| self.table.peek_bytes(id, now_ms))?;
        let label = self.labels.get(member as usize)?;
        Some((KnownId::new(id, label), member))
    }

    /// Whether a datagram has this ID.
    pub fn has(&self, datagram: &[u8], id: &KnownId) -> bool {
        let Some(bytes) = destination(datagram) else { return false };
        match self.settings.server_id {
            Some(_) => self.server_id(bytes) == Some(id.bytes()),
            None if is_long(datagram) => bytes == id.bytes(),
            None => bytes.starts_with(id.bytes()),
        }
    }

    /// Finds the entry of the connection ID in a client's datagram.
    fn search<'d>(
        &self,
        datagram: &'d [u8],
        find: impl Fn(&[u8]) -> Option<u32>,
    ) -> Option<(&'d [u8], u32)> {
        let bytes = destination(datagram)?;
        let found = |id: &'d [u8]| Some((id, find(id)?));
        if self.settings.server_id.is_some() {
            return found(self.server_id(bytes)?);
        }
        if is_long(datagram) {
            return (bytes.len() <= CONNECTION_ID_BYTES_MAX).then(|| found(bytes)).flatten();
        }
        let lengths = self.lengths.load(Relaxed);
        let known = (1..=CONNECTION_ID_BYTES_MAX).filter(|length| lengths & 1 << length != 0);
        known.rev().filter_map(|length| bytes.get(..length)).find_map(found)
    }

    /// Learns from a datagram of a member: its connection ID belongs to that member. The ID is remembered for a short time,
    /// and longer once a client uses it ([`Self::refresh`]).
    pub fn learn(&self, datagram: &[u8], label: &Arc<str>, now_ms: u64) -> Option<KnownId> {
        // In version negotiation, a server repeats the ID that its client has chosen.
        let Ok(Header::Long(header)) = Header::parse(datagram, 0) else { return None };
        let whole = header.source.of(datagram);
        if !(1..=CONNECTION_ID_BYTES_MAX).contains(&whole.len()) {
            return None;
        }
        let member = self.number(label)?;
        let id = match self.settings.server_id {
            // There are at most as many names as members; a name may pass to another member.
            Some(_) => {
                let name = self.server_id(whole)?;
                self.table.remember_bytes(name, member, now_ms);
                name
            }
            None => {
                let timeout_ms = UNUSED_MS.min(self.settings.timeout_ms);
                self.table.suggest_bytes(whole, member, now_ms, Timeout::new(timeout_ms));
                whole
            }
        };
        let length = 1 << id.len();
        if self.lengths.load(Relaxed) & length == 0 {
            self.lengths.fetch_or(length, Relaxed);
        }
        Some(KnownId::new(id, label))
    }

    /// The client still uses this ID: extends its entry.
    pub fn refresh(&self, id: &mut KnownId, now_ms: u64) {
        let every_ms = self.settings.timeout_ms / NOTE_PART;
        if id.noted_ms.is_some_and(|noted_ms| now_ms < noted_ms + every_ms) {
            return;
        }
        id.noted_ms = Some(now_ms);
        if let Some(member) = self.number(&id.label) {
            self.table.remember_bytes(id.bytes(), member, now_ms);
        }
    }

    fn number(&self, label: &str) -> Option<u32> {
        let place = self.labels.iter().position(|own| **own == *label)?;
        u32::try_from(place).ok()
    }

    /// The server ID of the member in a connection ID that begins with `bytes`.
    fn server_id<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.settings.server_id?;
        let start = usize::from(place.offset);
        bytes.get(start..start + usize::from(place.length))
    }
}

fn is_long(datagram: &[u8]) -> bool {
    !matches!(Header::parse(datagram, 0), Ok(Header::Short { .. }))
}

/// The connection ID in a client's datagram. With a short header: all bytes from the start of the ID, because only the
/// member knows the length of the ID.
fn destination(datagram: &[u8]) -> Option<&[u8]> {
    match Header::parse(datagram, 0).ok()? {
        Header::Short { .. } => datagram.get(1..),
        header => Some(header.destination().of(datagram)),
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

    /// A member with this number sends a datagram.
    fn tell(ids: &ConnectionIds, datagram: &[u8], member: usize, now_ms: u64) -> Option<KnownId> {
        ids.learn(datagram, &ids.labels[member], now_ms)
    }

    /// A member sends an ID, and its client uses it.
    fn give(ids: &ConnectionIds, id: &[u8], member: usize, now_ms: u64) -> KnownId {
        let mut known = tell(ids, &answer(id), member, now_ms).expect("an ID");
        ids.refresh(&mut known, now_ms);
        known
    }

    fn answer(id: &[u8]) -> Vec<u8> {
        let head = [&[0xC0, 0, 0, 0, 1, 0][..], &[id.len() as u8], id];
        head.concat()
    }

    #[test]
    fn what_names_no_connection_is_not_learned() {
        let ids = ids(None);
        assert!(tell(&ids, &answer(b""), 1, 0).is_none(), "an empty ID");
        let negotiation = [&b"\x80\0\0\0\0\x00\x04four"[..], &[0, 0, 0, 1]].concat();
        assert!(tell(&ids, &negotiation, 1, 0).is_none(), "a negotiation of versions");
        let mut unknown = answer(&[7; 21]);
        assert!(tell(&ids, &unknown, 1, 0).is_none(), "longer than version 1 allows");
        unknown[1] = 0x0a;
        assert!(tell(&ids, &unknown, 1, 0).is_none(), "longer than what is remembered");
        for length in 0..answer(b"four").len() {
            assert!(tell(&ids, &answer(b"four")[..length], 1, 0).is_none(), "{length}");
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
        assert!(tell(&ids, &answer(b"eightbyt"), 1, 0).is_some());
        assert!(tell(&ids, &answer(b"four"), 0, 0).is_some());
        assert_eq!(ids.find(&short(b"eightbyt"), 1), Some(1));
        assert_eq!(ids.find(&short(b"four"), 1), Some(0));
        assert_eq!(ids.find(&short(b"other"), 1), None);
        assert_eq!(ids.find(b"", 1), None);
        assert!(tell(&ids, &short(b"four"), 1, 1).is_none(), "this tells none");
    }

    #[test]
    fn a_name_within_the_id_is_enough() {
        let ids = ids(Some(ServerIdPlace { offset: 1, length: 2 }));
        assert!(tell(&ids, &answer(b"xAByyyy"), 1, 0).is_some());
        assert_eq!(ids.find(&short(b"qABother id"), 0), Some(1));
        assert_eq!(ids.find(&short(b"qACother id"), 0), None);
        assert_eq!(ids.find(&[0x40, 1], 0), None, "too short");
    }

    #[test]
    fn a_session_that_goes_on_is_not_forgotten() {
        let ids = ids(None);
        let mut known = give(&ids, b"identity", 1, 0);
        for now_ms in (0..600_000).step_by(5_000) {
            ids.refresh(&mut known, now_ms);
        }
        assert_eq!(ids.find(&short(b"identity"), 640_000), Some(1));
        assert_eq!(ids.find(&short(b"identity"), 900_000), None);
    }

    #[test]
    fn a_reload_goes_on_with_members_that_stay() {
        let (old, new) = (ids(None), ids(None));
        give(&old, b"identity", 1, 0);
        new.take_over(&old, 0);
        assert_eq!(new.find(&short(b"identity"), 0), Some(1));
    }

    #[test]
    fn what_no_client_uses_is_soon_forgotten() {
        let ids = ids(None);
        assert!(tell(&ids, &answer(b"identity"), 1, 0).is_some());
        assert!(ids.look(&short(b"identity"), UNUSED_MS).is_some());
        assert!(ids.look(&short(b"identity"), 2 * UNUSED_MS).is_none());
        // Learned again it does not end sooner, nor does it move to another member.
        give(&ids, b"identity", 1, 0);
        assert!(tell(&ids, &answer(b"identity"), 0, 0).is_some());
        assert_eq!(ids.find(&short(b"identity"), 50_000), Some(1));
    }

    #[test]
    fn strangers_push_no_connection_out_that_is_in_use() {
        const LIVE: u64 = 80;
        let ids = ids(None);
        let id = |number: u64| number.to_be_bytes();
        let mut live: Vec<KnownId> =
            (0..LIVE).map(|number| give(&ids, &id(number), 1, 0)).collect();
        // A hundred times the capacity, while the live ones are refreshed.
        for second in 0..60 {
            let now_ms = 1_000 * second;
            for stranger in 0..1_000 {
                let id = id(LIVE + 1_000 * second + stranger);
                assert!(tell(&ids, &answer(&id), 0, now_ms).is_some());
            }
            live.iter_mut().for_each(|known| ids.refresh(known, now_ms));
        }
        assert!(ids.losses().displaced > 10_000, "{:?}", ids.losses());
        for number in 0..LIVE {
            assert_eq!(ids.find(&short(&id(number)), 60_000), Some(1), "{number}");
        }
    }

    #[test]
    fn an_id_is_told_apart_from_others() {
        let ids = ids(None);
        let known = give(&ids, b"identity", 1, 0);
        assert!(ids.has(&short(b"identity"), &known));
        assert!(!ids.has(&short(b"identitx"), &known));
        assert!(!ids.has(&[0x40, b'i'], &known) && !ids.has(b"", &known));
        let long = [&[0xC0, 0, 0, 0, 1, 8][..], b"identity", &[0]].concat();
        assert!(ids.has(&long, &known));
        let longer = [&[0xC0, 0, 0, 0, 1, 9][..], b"identity+", &[0]].concat();
        assert!(!ids.has(&longer, &known));
        let (found, member) = ids.look(&long, 0).expect("it is known");
        assert!(found.is(&known) && member == 1);
    }

    #[test]
    fn a_name_in_an_id_of_the_clients_own_choice_moves_nobody() {
        let ids = ids(Some(ServerIdPlace { offset: 1, length: 2 }));
        give(&ids, b"xAByyyy", 1, 0);
        let long = [&[0xC0, 0, 0, 0, 1, 7][..], b"qABzzzz", &[0]].concat();
        assert!(ids.look(&long, 0).is_none());
        assert_eq!(ids.find(&long, 0), Some(1), "it decides where a session begins");
        assert!(ids.look(&short(b"qABzzzz"), 0).is_some());
    }
}
