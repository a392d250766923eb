//! Password checks: the queue for the checking threads, and remembered results.
//!
//! A check takes tens of milliseconds, so workers do not do it: separate threads take checks from a bounded queue, and
//! the request waits. A successful login is remembered for [`KNOWN_FOR_S`], so that a session costs one check.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::hmac;
use weir_core::passwords::TAG_BYTES;
use weir_core::policy::Login;

use crate::environment::Environment;

/// The time for which a successful password check is remembered, in seconds.
pub const KNOWN_FOR_S: u64 = 5 * 60;
/// Maximum number of checks that wait for a thread.
pub const CHECKS_MAX: usize = 128;
/// Maximum number of waiting checks per client address or IPv6 /64 network. A few addresses may share a counter.
pub const CHECKS_PER_CLIENT_MAX: u8 = 8;

/// Number of counters for clients, selected by a hash of the address.
const CLIENT_PLACES: usize = 1024;
/// Number of sets of remembered users.
const SETS: usize = 1024;
const PLACES: usize = 4;
/// Bits of the second word that hold the expiry in seconds.
const TIME_BITS: u32 = 24;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

// An expiry is distinguishable from a past time, and one client cannot fill the queue.
const _: () = assert!(KNOWN_FOR_S < TIME_MASK / 2 && (CHECKS_PER_CLIENT_MAX as usize) < CHECKS_MAX);

/// The password checks of all workers.
pub struct Logins {
    key: hmac::Key,
    known: KnownLogins,
    queue: SyncSender<Check>,
    waiting: Mutex<Receiver<Check>>,
    /// The number of checking threads.
    threads: AtomicUsize,
    clients: Box<[AtomicU8]>,
}

impl fmt::Debug for Logins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Logins")
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No result yet.
    Pending,
    /// The password is correct.
    Right,
    /// Wrong password, or no such user.
    Wrong,
}

/// A request's handle on its check. When it is dropped, the result is no longer needed.
#[derive(Debug)]
pub struct Ticket(Arc<AtomicU8>);

/// The tag of a user with a password.
pub type Tag = [u8; TAG_BYTES];

/// The reason why a password is not checked: the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckQueueFull;

const PENDING: u8 = 0;
const RIGHT: u8 = 1;
const WRONG: u8 = 2;

impl Ticket {
    /// The result.
    pub fn answer(&self) -> Answer {
        match self.0.load(SeqCst) {
            PENDING => Answer::Pending,
            RIGHT => Answer::Right,
            _ => Answer::Wrong,
        }
    }
}

/// A check that waits for a thread.
struct Check {
    login: Login,
    answer: Arc<AtomicU8>,
    logins: Arc<Logins>,
    place: usize,
}

impl Drop for Check {
    /// A request never waits forever, even if the checking thread failed.
    fn drop(&mut self) {
        let _ = self.answer.compare_exchange(PENDING, WRONG, SeqCst, SeqCst);
        self.logins.clients[self.place].fetch_sub(1, Relaxed);
    }
}

impl Logins {
    /// No users and no checking threads.
    pub fn new(outside: &Environment) -> Self {
        let (queue, waiting) = sync_channel(CHECKS_MAX);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &outside.random::<32>()),
            known: KnownLogins::default(),
            queue,
            waiting: Mutex::new(waiting),
            threads: AtomicUsize::new(0),
            clients: (0..CLIENT_PLACES).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// The tag of a login; `None`: there is no such user.
    pub fn tag(&self, login: &Login) -> Option<Tag> {
        login.tag(&self.key)
    }

    /// Whether this login was found correct recently.
    pub fn knows(&self, tag: &Tag, now_s: u64) -> bool {
        self.known.has(tag, now_s)
    }

    /// Remembers that a login is correct.
    pub fn remember(&self, tag: &Tag, now_s: u64) {
        self.known.put(tag, now_s);
    }

    /// Queues a check.
    ///
    /// # Errors
    /// The queue is full, in total or for this client, or there are no checking threads.
    pub fn ask(
        self: &Arc<Self>,
        login: Login,
        client: Option<IpAddr>,
    ) -> Result<Ticket, CheckQueueFull> {
        if self.threads.load(Relaxed) == 0 {
            return Err(CheckQueueFull);
        }
        let place = self.place(client);
        let answer = Arc::new(AtomicU8::new(PENDING));
        let before = self.clients[place].fetch_add(1, Relaxed);
        // From here on, dropping the check releases the place.
        let check = Check { login, answer: Arc::clone(&answer), logins: Arc::clone(self), place };
        if before >= CHECKS_PER_CLIENT_MAX {
            return Err(CheckQueueFull);
        }
        match self.queue.try_send(check) {
            Ok(()) => Ok(Ticket(answer)),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(CheckQueueFull),
        }
    }

    /// The counter of a client. A client cannot choose its counter, because the key of the hash is secret.
    fn place(&self, client: Option<IpAddr>) -> usize {
        let tag = match client.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => hmac::sign(&self.key, &address.octets()),
            Some(IpAddr::V6(address)) => hmac::sign(&self.key, &address.octets()[..8]),
            None => hmac::sign(&self.key, b""),
        };
        let bytes = tag.as_ref();
        usize::from(u16::from_be_bytes([bytes[0], bytes[1]])) % CLIENT_PLACES
    }

    /// The number of checking threads.
    pub fn threads(&self) -> usize {
        self.threads.load(Relaxed)
    }

    /// Sets the number of checking threads.
    pub fn set_threads(&self, count: usize) {
        self.threads.store(count, Relaxed);
    }

    /// Waits for a check and does it; checks that are no longer needed are skipped.
    pub fn check_one(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(check) = waiting.recv() else { return };
        drop(waiting);
        // The other reference belongs to the waiting request.
        if Arc::strong_count(&check.answer) > 1 {
            let is_right = check.login.check();
            check.answer.store(if is_right { RIGHT } else { WRONG }, SeqCst);
        }
    }
}

/// Successful logins by tag, two words each. A reader that races with two writers may combine halves of two tags; no
/// login has such a combination as its tag.
struct KnownLogins(Box<[[[AtomicU64; 2]; PLACES]]>);

impl Default for KnownLogins {
    fn default() -> Self {
        Self((0..SETS).map(|_| Default::default()).collect())
    }
}

/// A tag, split into the words of a place.
struct TagPlace {
    set: usize,
    first: u64,
    /// The second word without the time.
    second: u64,
}

impl TagPlace {
    fn of(tag: &Tag) -> Self {
        let word = |at: usize| {
            tag[at..at + 8].iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte))
        };
        let set = (word(16) % SETS as u64) as usize;
        Self { set, first: word(0), second: word(8) & !TIME_MASK }
    }
}

/// Seconds until the expiry; 0: expired, or more than any entry gets.
fn left_s(second: u64, now_s: u64) -> u64 {
    let left = second.wrapping_sub(now_s) & TIME_MASK;
    if left > KNOWN_FOR_S { 0 } else { left }
}

impl KnownLogins {
    fn has(&self, tag: &Tag, now_s: u64) -> bool {
        let cut = TagPlace::of(tag);
        self.0[cut.set].iter().any(|[first, second]| {
            let (first, second) = (first.load(Relaxed), second.load(Relaxed));
            first == cut.first && second & !TIME_MASK == cut.second && left_s(second, now_s) > 0
        })
    }

    /// Replaces the entry of the tag, or the entry that expires first.
    fn put(&self, tag: &Tag, now_s: u64) {
        let cut = TagPlace::of(tag);
        let places = &self.0[cut.set];
        let own = places.iter().position(|[first, _]| first.load(Relaxed) == cut.first);
        let left = |at: &usize| left_s(places[*at][1].load(Relaxed), now_s);
        let at = own.or_else(|| (0..PLACES).min_by_key(left)).unwrap_or_default();
        let until = now_s.wrapping_add(KNOWN_FOR_S) & TIME_MASK;
        places[at][0].store(cut.first, Relaxed);
        places[at][1].store(cut.second | until, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use weir_core::passwords::{Credentials, Users};
    use weir_core::policy::{Authenticator, CredentialsKind};

    use super::*;

    /// `ann` with this password, where `abc` is right.
    fn login(password: &str) -> Login {
        const FILE: &[u8] = b"ann:$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i\n";
        let users = Arc::new(Users::parse(FILE).expect("a user"));
        let by = Arc::new(Authenticator {
            name: "staff".into(),
            realm: "staff".into(),
            forwards: true,
            how: CredentialsKind::Password(Arc::clone(&users)),
        });
        let (user, password) = (Box::from(*b"ann"), password.as_bytes().into());
        Login::new(by, users, Credentials { user, password })
    }

    fn tag(number: u64) -> Tag {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &number.to_be_bytes());
        digest.as_ref().try_into().expect("32 bytes")
    }

    #[test]
    fn who_was_right_is_known_for_a_while() {
        // Also when the time wraps around.
        for now_s in [0, 1, 1_000, TIME_MASK - 10, TIME_MASK, TIME_MASK + 1, 1 << 40] {
            let known = KnownLogins::default();
            assert!(!known.has(&tag(1), now_s));
            known.put(&tag(1), now_s);
            for (after_s, expected) in [
                (0, true),
                (1, true),
                (KNOWN_FOR_S - 1, true),
                (KNOWN_FOR_S, false),
                (TIME_MASK / 2, false),
            ] {
                assert_eq!(known.has(&tag(1), now_s + after_s), expected, "{now_s} + {after_s}");
                assert!(!known.has(&tag(2), now_s + after_s));
            }
            known.put(&tag(1), now_s + 200);
            assert!(known.has(&tag(1), now_s + 200 + KNOWN_FOR_S - 1), "it is there once");
        }
    }

    #[test]
    fn the_newest_are_known() {
        let known = KnownLogins::default();
        let all = (SETS * PLACES * 4) as u64;
        for number in 0..all {
            known.put(&tag(number), number / 100);
        }
        let now_s = all / 100;
        assert!((0..all).filter(|number| known.has(&tag(*number), now_s)).count() <= SETS * PLACES);
        for number in all - 100..all {
            assert!(known.has(&tag(number), now_s), "{number}");
        }
        assert!((all..2 * all).all(|number| !known.has(&tag(number), now_s)));
    }

    #[test]
    fn checks_have_bounds() {
        let logins = Arc::new(Logins::new(&Environment::known()));
        let client = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        let ask = |number: u8| logins.ask(login("abc"), client(number));
        assert_eq!(ask(1).err(), Some(CheckQueueFull), "nobody checks");
        logins.set_threads(1);
        let own: Vec<Ticket> = (0..CHECKS_PER_CLIENT_MAX).map(|_| ask(1).expect("room")).collect();
        assert_eq!(ask(1).err(), Some(CheckQueueFull));
        let mut others = Vec::new();
        while let (Ok(ticket), true) = (ask(others.len() as u8 / 4 + 2), others.len() <= CHECKS_MAX)
        {
            others.push(ticket);
        }
        assert_eq!(own.len() + others.len(), CHECKS_MAX);
        assert!(own.iter().all(|ticket| ticket.answer() == Answer::Pending));
        for _ in 0..CHECKS_PER_CLIENT_MAX {
            logins.check_one();
        }
        assert!(own.iter().all(|ticket| ticket.answer() == Answer::Right));
        // There is room again, and abandoned checks are skipped.
        let wrong = logins.ask(login("abd"), client(1)).expect("room");
        let left = others.len();
        drop(others);
        for _ in 0..left {
            logins.check_one();
        }
        logins.check_one();
        assert_eq!(wrong.answer(), Answer::Wrong);
        assert!(logins.clients.iter().all(|count| count.load(Relaxed) == 0));
    }
}
