//! State shared by all threads: the key, the counts, the findings.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Moment};
use crate::keeping::Keeping;
use crate::message::{Request, path_block};
use crate::place::{Place, THREADS_MAX, Version, origin};
use crate::plan::Plan;
use crate::profile::Profile;
use crate::surplus::Surplus;
use crate::tag::{Id, Key, Part};

macro_rules! kinds {
    ($($name:ident: $text:literal,)+) => {
        /// Kinds of events. Each must happen in a run, or the run proves nothing about it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $(#[doc = $text] $name,)+ }

        const TEXTS: &[&str] = &[$($text,)+];
    };
}

kinds! {
    Http1ToHttp1: "HTTP/1 to HTTP/1, whole",
    Http1ToHttp2: "HTTP/1 to HTTP/2, whole",
    Http2ToHttp1: "HTTP/2 to HTTP/1, whole",
    Http2ToHttp2: "HTTP/2 to HTTP/2, whole",
    Tls: "through TLS, whole",
    Cut: "responses cut",
    Silence: "ended without a response",
    Own301: "redirects",
    Own400: "400",
    Own403: "403",
    Own408: "408",
    Own413: "413",
    Own417: "417",
    Own429: "429",
    Own431: "431",
    Own501: "501",
    Own502: "502",
    Own503: "503",
    Own504: "504",
    Refused: "streams refused",
    Rewritten: "rewritten",
    Gzip: "gzip",
    Brotli: "br",
    Zstd: "zstd",
    Uncompressed: "compression not wanted, or not worth it",
    Uploads: "uploads with a length",
    ChunkedUploads: "uploads in chunks",
    CutUploads: "uploads cut",
    RequestTrailers: "trailers of requests",
    ResponseTrailers: "trailers of responses",
    Continues: "100",
    Hints: "103",
    Pipelined: "pipelined",
    Old: "HTTP/1.0",
    Early: "early answers",
    LeftUnread: "uploads that members answered, kept, and left unread",
    Again: "requests tried again",
    ClientAborts: "broken off by clients",
    HalfClosed: "half-closed by clients",
    MemberSilent: "members without a response",
    MemberCut: "responses broken off by members",
    MemberGarbled: "malformed responses of members",
    SurplusBehind: "responses of members with more behind them",
    SurplusIdle: "members that say something unasked",
    Http1WebSocketToHttp1: "WebSocket, HTTP/1 to HTTP/1",
    Http1WebSocketToHttp2: "WebSocket, HTTP/1 to HTTP/2",
    Http2WebSocketToHttp1: "WebSocket, HTTP/2 to HTTP/1",
    Http2WebSocketToHttp2: "WebSocket, HTTP/2 to HTTP/2",
    TunnelBroken: "WebSockets broken off",
    Relayed: "relayed connections, whole",
    RelayBroken: "relayed connections broken off",
    Spliced: "bytes of tunnels that went by a pipe",
    Kept: "clients kept by a cookie",
    KeptSource: "clients kept by their address",
    KeptDrained: "clients kept at members that take nobody else",
    Moved: "clients whose member takes them no more",
    Nobody: "503 as no member takes requests",
    ConnectionRefused: "connections of HTTP/2 above the limit",
    ManyConnections: "connections above the limit",
    Delayed: "requests held back",
    RequestsLimited: "requests above a limit",
    QueueTimeouts: "requests that waited in vain",
    RapidResets: "requests reset as soon as they were made",
    Floods: "floods of HTTP/2 that end their connection",
    NegativeWindows: "windows that became negative",
    LateSettings: "members of HTTP/2 that say late what they take",
    OtherStreamsMax: "members of HTTP/2 that take another number of streams",
    Retiring: "members of HTTP/2 that take no more on a connection",
    Unread: "requests behind the last that a member takes",
    Spare: "requests that a spare serves",
    Ejections: "members ejected",
    Retries: "further members tried",
    MemberStates: "members that go or come back",
    Reloads: "reloads",
    Records: "records of requests",
    Recoveries: "recoveries from a panic",
    Drains: "ends in order",
}

/// Number of events of each kind.
#[derive(Debug)]
pub struct Tally([AtomicU64; TEXTS.len()]);

impl Default for Tally {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Tally {
    /// Counts one event.
    pub fn count(&self, kind: Kind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TEXTS.iter().zip(&self.0).map(|(text, count)| (*text, count.load(Ordering::Relaxed)))
    }

    /// Counts this many events.
    pub fn count_many(&self, kind: Kind, count: u64) {
        self.0[kind as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// The count of a kind.
    pub fn get(&self, kind: Kind) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// Adds the counts of another run.
    pub fn add(&self, other: &Self) {
        for (count, more) in self.0.iter().zip(&other.0) {
            count.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Kinds that never happened, except those impossible in this environment.
    pub fn missing(&self, impossible: &[Kind]) -> Vec<&'static str> {
        let impossible: Vec<&str> = impossible.iter().map(|kind| TEXTS[*kind as usize]).collect();
        let never = self.all().filter(|(_, count)| *count == 0).map(|(text, _)| text);
        never.filter(|text| !impossible.contains(text)).collect()
    }

    /// All counts.
    pub fn told(&self) -> String {
        let counts: Vec<String> =
            self.all().map(|(text, count)| format!("{text} {count}")).collect();
        counts.join("; ")
    }
}

/// A finding.
#[derive(Debug)]
pub struct Finding {
    /// Its description.
    pub what: String,
    /// The exchange in which it was observed.
    pub id: Option<Id>,
    /// The last received bytes there.
    pub received: Vec<u8>,
}

impl Finding {
    /// In this exchange.
    pub fn new(what: impl Into<String>, id: Id) -> Self {
        Self { what: what.into(), id: Some(id), received: Vec::new() }
    }

    /// With the last received bytes.
    pub fn with(mut self, received: &[u8]) -> Self {
        self.received = received.to_vec();
        self
    }
}

/// State shared by all threads.
#[derive(Debug)]
pub struct World {
    /// The source of all randomness.
    pub seed: u64,
    /// The key of blocks.
    pub key: Key,
    /// Sizes and times.
    pub profile: Profile,
    /// The clock.
    pub clock: Clock,
    /// Counts.
    pub tally: Tally,
    /// The members' availability, and the clients kept at them.
    pub keeping: Keeping,
    /// Exchanges that each thread has begun.
    begun: [AtomicU64; THREADS_MAX],
    /// Number of a request, and how often members have seen it; approximate, because it only covers
    /// requests under way.
    seen: Vec<AtomicU64>,
    /// How often members have reported a request as unprocessed.
    unread: Mutex<HashMap<Id, u32>>,
    /// Observations that are right if that happened often enough.
    suspects: Mutex<Vec<(Id, String, u32)>>,
    /// Unsolicited responses of members.
    pub surplus: Surplus,
    /// Tunnels of HTTP/2 clients that have ended for their members.
    ended: Mutex<HashSet<Id>>,
    /// The exchanges of each thread, as a range of counts, that a finding has ended.
    spoilt: [[AtomicU64; 2]; THREADS_MAX],
    /// Exchanges of each thread, from the first on, that weir has broken off if they were under
    /// way.
    broken_off: [AtomicU64; THREADS_MAX],
    findings: Mutex<Findings>,
    findings_max: usize,
    stopping: AtomicBool,
    /// weir is about to be ended: observations from here on prove nothing.
    closing: AtomicBool,
    /// weir was told to stop after the last request.
    draining: AtomicBool,
}

#[derive(Debug, Default)]
struct Findings {
    texts: Vec<String>,
    /// Further findings in these follow from the first.
    ids: HashSet<Id>,
}

/// Requests whose arrivals are counted at a time.
const SEEN_MAX: usize = 1 << 14;
/// Bits of a count of arrivals.
const ARRIVALS_BITS: u32 = 8;

impl World {
    /// The initial state; it ends after this many findings.
    pub fn new(seed: u64, findings_max: usize, profile: Profile, clock: Clock) -> Self {
        Self {
            seed,
            key: Key::new(seed),
            profile,
            clock,
            tally: Tally::default(),
            keeping: Keeping::default(),
            begun: std::array::from_fn(|_| AtomicU64::new(0)),
            seen: (0..SEEN_MAX).map(|_| AtomicU64::new(0)).collect(),
            unread: Mutex::default(),
            suspects: Mutex::default(),
            surplus: Surplus::default(),
            ended: Mutex::default(),
            spoilt: std::array::from_fn(|_| [0, 0].map(AtomicU64::new)),
            broken_off: std::array::from_fn(|_| AtomicU64::new(0)),
            findings: Mutex::default(),
            findings_max,
            stopping: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        }
    }

    /// The current time.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Counts one event.
    pub fn count(&self, kind: Kind) {
        self.tally.count(kind);
    }

    /// How many exchanges a thread has begun.
    pub fn begun_by(&self, thread: usize) -> u64 {
        self.begun[thread].load(Ordering::Relaxed)
    }

    /// The count from which a thread's next exchange gets its number.
    pub fn next(&self, thread: usize) -> u64 {
        self.begun[thread].fetch_add(1, Ordering::Relaxed)
    }

    /// Exchanges begun by all threads.
    pub fn begun(&self) -> u64 {
        self.begun.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether an exchange with this number has begun.
    pub fn is_known(&self, id: Id) -> bool {
        let (thread, count) = origin(id);
        count < self.begun[thread].load(Ordering::Relaxed)
    }

    /// The plan of an exchange that has begun.
    pub fn plan(&self, id: Id) -> Option<Plan> {
        self.is_known(id).then(|| Plan::of(self.seed, &self.profile, id))?
    }

    /// Whether bytes too few to be parsed contain no block of another exchange.
    pub fn check_rest(&self, rest: &[u8], own: Option<Id>) -> Result<(), String> {
        let owners = self.key.owners(rest, |id| self.is_known(id));
        let of = own.or(owners.first().copied());
        match owners.iter().all(|id| Some(*id) == of) {
            true => Ok(()),
            false => {
                Err(format!("blocks of {owners:?} in what was cut: \"{}\"", rest.escape_ascii()))
            }
        }
    }

    /// A request has arrived at a member: returns how often it has now.
    pub fn arrived(&self, id: Id) -> u64 {
        let hashed = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
        let place = &self.seen[hashed as usize];
        let before = place.load(Ordering::Acquire);
        let is_same = before >> ARRIVALS_BITS == id.0;
        let count = if is_same { (before & ((1 << ARRIVALS_BITS) - 1)) + 1 } else { 1 };
        place.store(id.0 << ARRIVALS_BITS | count, Ordering::Release);
        count
    }

    /// A request has arrived at a member that reports it as unprocessed.
    pub fn leave_unread(&self, request: &Request) -> Result<(), String> {
        let block = path_block(&request.target).unwrap_or_default();
        let named = self.key.read(block).and_then(|(id, ..)| self.plan(id));
        let plan = named.ok_or_else(|| format!("a request of no exchange: {request:?}"))?;
        self.count(Kind::Unread);
        self.keeping.left_unread(&plan);
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner).entry(plan.id).or_default() +=
            1;
        Ok(())
    }

    /// A request's outcome is right if this many members have left it unprocessed, which they may
    /// still have to see.
    pub fn suspect(&self, id: Id, what: String, unread: u32) {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        suspects.push((id, what, unread));
    }

    /// All members have seen all arrivals: outcomes without the unprocessed reports become
    /// findings.
    pub fn convict(&self) {
        for (id, of) in self.surplus.convicted() {
            self.found(&Finding::new(format!("a client got what was said behind {of}"), id));
        }
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, what, needed) in suspects.drain(..) {
            if unread.get(&id).is_none_or(|count| *count < needed) {
                self.found(&Finding::new(what, id));
            }
        }
    }

    /// A member has received all of a tunnel.
    pub fn end(&self, id: Id) {
        let is_awaited =
            Place::of(id).is_some_and(|place| place.client == Version::Http2 && !place.is_fragile);
        if is_awaited {
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// Whether it has; succeeds once.
    pub fn has_ended(&self, id: Id) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// The run is over.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// weir is about to be ended.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// weir was told to stop when all exchanges under way are over, and accepts no more
    /// connections.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether it was.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// weir has broken off everything under way, on all connections.
    pub fn crash(&self) {
        for broken in &self.broken_off {
            broken.store(u64::MAX, Ordering::Release);
        }
    }

    /// A thread begins a connection: its broken-off exchanges are over.
    pub fn begin_session(&self, thread: usize) {
        let begun = self.begun[thread].load(Ordering::Relaxed);
        let broken = &self.broken_off[thread];
        let _ = broken.compare_exchange(u64::MAX, begun, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Another part of the run begins.
    pub fn go_on(&self) {
        self.closing.store(false, Ordering::Release);
        self.stopping.store(self.has_enough(), Ordering::Release);
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether there were enough findings.
    pub fn has_enough(&self) -> bool {
        self.locked().texts.len() >= self.findings_max
    }

    fn locked(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread has a finding, and abandons all that it has begun since: their effects are no
    /// findings.
    pub fn spoil(&self, thread: usize, since: u64) {
        let [from, to] = &self.spoilt[thread];
        to.store(self.begun[thread].load(Ordering::Relaxed), Ordering::Release);
        from.store(since, Ordering::Release);
    }

    fn is_spoilt(&self, id: Id) -> bool {
        let (thread, count) = origin(id);
        let [from, to] = self.spoilt[thread].each_ref().map(|it| it.load(Ordering::Acquire));
        (from..to).contains(&count) || count < self.broken_off[thread].load(Ordering::Acquire)
    }

    /// Records a finding.
    pub fn found(&self, finding: &Finding) {
        let is_closing = self.closing.load(Ordering::Acquire);
        if is_closing || finding.id.is_some_and(|id| self.is_spoilt(id)) {
            return;
        }
        let mut text = format!("seed {}: {}", self.seed, finding.what);
        if let Some(id) = finding.id {
            let name = self.key.text(id, Part::Path, 0, 1);
            let _ = write!(
                text,
                "\n  exchange {id}, {name}: {:?}",
                Plan::of(self.seed, &self.profile, id)
            );
        }
        if !finding.received.is_empty() {
            let _ = write!(text, "\n  received at last: \"{}\"", finding.received.escape_ascii());
            let sights = self.key.sights(&finding.received, |id| self.is_known(id));
            let _ = write!(text, "\n  whose blocks stand there:\n{sights}");
        }
        let mut findings = self.locked();
        let is_new = finding.id.is_none_or(|id| findings.ids.insert(id));
        if is_new && findings.texts.len() < self.findings_max {
            if self.profile.is_told {
                eprintln!("{text}");
            }
            findings.texts.push(text);
        }
        if findings.texts.len() >= self.findings_max {
            self.stop();
        }
    }

    /// All findings.
    pub fn findings(&self) -> Vec<String> {
        self.locked().texts.clone()
    }
}
