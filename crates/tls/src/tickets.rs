//! Session tickets: the encrypted state of a session, which the client stores (RFC 5077, RFC 8446 section 4.6.1).
//!
//! A ticket is `name (16) | nonce (12) | time and state, sealed with AES-256-GCM | tag (16)`. The name identifies the key.
//! The time is the creation of the ticket in seconds since 1970: the ticket is accepted for [`LIFETIME_S`], whatever its
//! key.
//!
//! weir's own keys are random. A key is replaced after [`ROTATION_S`] and deleted two replacements later, so that recorded
//! traffic cannot be decrypted with keys that are stolen later. Keys from a file are shared by all instances with the file,
//! and change with it. Each key has one purpose (a virtual server with its accepted client certificates): a ticket from
//! another server, or from before a change, cannot bypass a required client certificate.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hmac, rand};
use rustls::server::ProducesTickets;

/// Time in seconds for which a ticket is accepted.
pub const LIFETIME_S: u64 = 12 * 60 * 60;
/// Time in seconds after which weir's own key is replaced.
pub const ROTATION_S: u64 = 6 * 60 * 60;
/// Size of a secret in bytes.
pub const SECRET_BYTES: usize = 32;

const NAME_BYTES: usize = 16;
const TIME_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
/// Maximum time in seconds by which the creation of a ticket may be in the future, because of other clocks.
const CLOCK_SKEW_S: u64 = 5 * 60;
/// Maximum number of own keys: the current one, and earlier ones whose tickets may still be valid.
const OWN_KEYS_MAX: usize = 1 + (LIFETIME_S / ROTATION_S) as usize;

/// The ticket keys for one purpose.
pub struct TicketKeys {
    purpose: Box<[u8]>,
    /// Whether the keys are random and rotated by this process.
    is_own: bool,
    ring: ArcSwap<Ring>,
}

/// The accepted keys. The first one encrypts tickets.
#[derive(Clone)]
struct Ring {
    keys: Vec<Arc<TicketKey>>,
    since_s: u64,
}

struct TicketKey {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
    /// The secret from which name and key are derived.
    secret: [u8; SECRET_BYTES],
}

/// The secrets of random keys, for the next process after an upgrade. They can decrypt all sessions with tickets.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnSecrets {
    /// The time at which the first key came into use, in seconds since 1970.
    pub since_s: u64,
    /// The secrets. The first one is of the key that encrypts tickets.
    pub secrets: Vec<[u8; SECRET_BYTES]>,
}

impl fmt::Debug for OwnSecrets {
    /// Does not write the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnSecrets").field("since_s", &self.since_s).finish_non_exhaustive()
    }
}

/// An error: the system provides no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRandomNumbers;

impl TicketKey {
    fn new(secret: &[u8; SECRET_BYTES], purpose: &[u8]) -> Result<Arc<Self>, NoRandomNumbers> {
        let derived_from = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |what: &[u8]| hmac::sign(&derived_from, &[what, purpose].concat());
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&derive(b"weir ticket name 1 ").as_ref()[..NAME_BYTES]);
        let key = derive(b"weir ticket key 1 ");
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref()).map_err(|_| NoRandomNumbers)?;
        Ok(Arc::new(Self { name, key: LessSafeKey::new(key), secret: *secret }))
    }

    fn random(purpose: &[u8]) -> Result<Arc<Self>, NoRandomNumbers> {
        let mut secret = [0; SECRET_BYTES];
        rand::fill(&mut secret).map_err(|_| NoRandomNumbers)?;
        Self::new(&secret, purpose)
    }

    fn seal(&self, state: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let mut ticket =
            Vec::with_capacity(NAME_BYTES + NONCE_LEN + TIME_BYTES + state.len() + TAG_BYTES);
        ticket.extend_from_slice(&self.name);
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        ticket.extend_from_slice(&nonce);
        let start = ticket.len();
        ticket.extend_from_slice(&now_s.to_be_bytes());
        ticket.extend_from_slice(state);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let data = Aad::from(self.name);
        let tag = self.key.seal_in_place_separate_tag(nonce, data, &mut ticket[start..]).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    /// Decrypts a ticket of this key. Returns its time and its state.
    fn open(&self, ticket: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (nonce, sealed) = ticket[NAME_BYTES..].split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(self.name), &mut sealed).ok()?;
        let (time, state) = opened.split_first_chunk::<TIME_BYTES>()?;
        Some((u64::from_be_bytes(*time), state.to_vec()))
    }
}

impl TicketKeys {
    /// Random keys, which are rotated.
    pub fn own(purpose: &[u8]) -> Result<Self, NoRandomNumbers> {
        let purpose: Box<[u8]> = purpose.into();
        let keys = vec![TicketKey::random(&purpose)?];
        let ring = ArcSwap::from_pointee(Ring { keys, since_s: now_s() });
        Ok(Self { purpose, is_own: true, ring })
    }

    /// Keys from these secrets. The first one encrypts tickets; all are accepted.
    pub fn shared(purpose: &[u8], secrets: &[[u8; SECRET_BYTES]]) -> Result<Self, NoRandomNumbers> {
        let purpose: Box<[u8]> = purpose.into();
        let keys: Result<_, _> =
            secrets.iter().map(|secret| TicketKey::new(secret, &purpose)).collect();
        let ring = ArcSwap::from_pointee(Ring { keys: keys?, since_s: 0 });
        Ok(Self { purpose, is_own: false, ring })
    }

    /// The secrets of random keys; `None`: the keys are from a file.
    pub fn own_secrets(&self) -> Option<OwnSecrets> {
        let ring = self.ring.load();
        let secrets = || ring.keys.iter().map(|key| key.secret).collect();
        self.is_own.then(|| OwnSecrets { since_s: ring.since_s, secrets: secrets() })
    }

    /// Uses the secrets of the previous process, so that its tickets are accepted. Keys from a file do not change.
    pub fn continue_with(&self, former: &OwnSecrets) -> Result<(), NoRandomNumbers> {
        if !self.is_own || former.secrets.is_empty() {
            return Ok(());
        }
        let secrets = former.secrets.iter().take(OWN_KEYS_MAX);
        let keys: Result<_, _> =
            secrets.map(|secret| TicketKey::new(secret, &self.purpose)).collect();
        self.ring.store(Arc::new(Ring { keys: keys?, since_s: former.since_s.min(now_s()) }));
        Ok(())
    }

    fn seal(&self, state: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let mut ring = self.ring.load();
        if self.is_own && now_s >= ring.since_s.saturating_add(ROTATION_S) {
            self.rotate(now_s);
            ring = self.ring.load();
        }
        ring.keys.first()?.seal(state, now_s)
    }

    /// Adds a new key at the front. Of several simultaneous calls, one succeeds.
    fn rotate(&self, now_s: u64) {
        let ring = self.ring.load();
        // Without random numbers, the previous key stays in use.
        let Ok(key) = TicketKey::random(&self.purpose) else { return };
        let mut keys = vec![key];
        // After a long time without new tickets, all tickets of the earlier keys have expired.
        if now_s < ring.since_s.saturating_add(ROTATION_S + LIFETIME_S) {
            keys.extend(ring.keys.iter().take(OWN_KEYS_MAX - 1).cloned());
        }
        let next = Arc::new(Ring { keys, since_s: now_s });
        self.ring.compare_and_swap(&ring, next);
    }

    fn open(&self, ticket: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let name = ticket.get(..NAME_BYTES)?;
        let ring = self.ring.load();
        let key = ring.keys.iter().find(|key| key.name == *name)?;
        let (made_s, state) = key.open(ticket)?;
        let is_alive = made_s <= now_s.saturating_add(CLOCK_SKEW_S)
            && now_s <= made_s.saturating_add(LIFETIME_S);
        is_alive.then_some(state)
    }
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, now_s())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(cipher, now_s())
    }
}

impl fmt::Debug for TicketKeys {
    /// Does not write the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").field("is_own", &self.is_own).finish_non_exhaustive()
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_800_000_000;

    fn aged(keys: &TicketKeys, since_s: u64) {
        let keys_now = keys.ring.load().keys.clone();
        keys.ring.store(Arc::new(Ring { keys: keys_now, since_s }));
    }

    #[test]
    fn a_ticket_comes_back_until_its_time_is_over() {
        let keys = TicketKeys::shared(b"shop", &[[1; 32]]).expect("keys");
        let ticket = keys.seal(b"state", NOON).expect("a ticket");
        let check = |at_s: u64, expected: bool| {
            assert_eq!(keys.open(&ticket, at_s).is_some(), expected, "{at_s}");
        };
        check(NOON, true);
        check(NOON - CLOCK_SKEW_S, true);
        check(NOON - CLOCK_SKEW_S - 1, false);
        check(NOON + LIFETIME_S, true);
        check(NOON + LIFETIME_S + 1, false);
        assert_eq!(keys.open(&ticket, NOON).as_deref(), Some(&b"state"[..]));
        assert_ne!(keys.seal(b"state", NOON).expect("a ticket"), ticket, "no two are the same");
    }

    #[test]
    fn what_was_changed_or_made_elsewhere_is_nothing() {
        let keys = TicketKeys::shared(b"shop", &[[1; 32]]).expect("keys");
        let ticket = keys.seal(b"state", NOON).expect("a ticket");
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.open(&changed, NOON), None, "{at}");
            assert_eq!(keys.open(&ticket[..at], NOON), None, "{at}");
        }
        let opens = |purpose: &[u8], secrets: &[[u8; 32]]| {
            let other = TicketKeys::shared(purpose, secrets).expect("keys");
            other.open(&ticket, NOON).is_some()
        };
        assert!(opens(b"shop", &[[1; 32]]), "another instance with the key");
        assert!(opens(b"shop", &[[2; 32], [1; 32]]), "a key that makes none any more");
        assert!(!opens(b"shop", &[[2; 32]]));
        assert!(!opens(b"admin", &[[1; 32]]), "another virtual server");
    }

    #[test]
    fn another_process_continues_with_own_keys() {
        let before = TicketKeys::own(b"shop").expect("keys");
        let first = before.seal(b"first", now_s()).expect("a ticket");
        before.rotate(now_s());
        let second = before.seal(b"second", now_s()).expect("a ticket");
        let secrets = before.own_secrets().expect("own ones");
        let after = TicketKeys::own(b"shop").expect("keys");
        assert_eq!(after.open(&first, now_s()), None);
        after.continue_with(&secrets).expect("keys");
        assert_eq!(after.open(&first, now_s()).as_deref(), Some(&b"first"[..]));
        assert_eq!(after.open(&second, now_s()).as_deref(), Some(&b"second"[..]));
        assert_eq!(after.own_secrets(), Some(secrets.clone()));
        let other = TicketKeys::own(b"other clients").expect("keys");
        other.continue_with(&secrets).expect("keys");
        assert_eq!(other.open(&first, now_s()), None, "it is for another purpose");
        let of_file = TicketKeys::shared(b"shop", &[[1; 32]]).expect("keys");
        assert_eq!(of_file.own_secrets(), None);
        of_file.continue_with(&secrets).expect("keys");
        assert_eq!(of_file.open(&first, now_s()), None);
    }

    #[test]
    fn own_keys_are_changed_and_forgotten() {
        let keys = TicketKeys::own(b"shop").expect("keys");
        aged(&keys, NOON);
        let first = keys.seal(b"first", NOON).expect("a ticket");
        let mut now_s = NOON;
        for round in 1..=4 {
            now_s += ROTATION_S;
            let ticket = keys.seal(b"later", now_s).expect("a ticket");
            assert_ne!(ticket[..NAME_BYTES], first[..NAME_BYTES]);
            assert!(keys.ring.load().keys.len() <= OWN_KEYS_MAX);
            let is_alive = round * ROTATION_S <= LIFETIME_S;
            assert_eq!(keys.open(&first, now_s).is_some(), is_alive, "{round}");
            assert!(keys.open(&ticket, now_s).is_some());
        }
        let ring = keys.ring.load();
        assert!(ring.keys.iter().all(|key| key.name != first[..NAME_BYTES]), "the key is gone");
        // After a long time without new tickets, all earlier keys have expired.
        keys.seal(b"much later", now_s + 10 * LIFETIME_S).expect("a ticket");
        assert_eq!(keys.ring.load().keys.len(), 1);
    }
}
