//! State shared by all threads: the key, the counters, the findings.

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
        /// Kinds of events. A run in which a kind does not occur proves nothing about it.
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
    Replaced: "bodies with replaced text",
    LetIn: "requests that a service lets in",
    Denied: "requests that a service refuses",
    ServiceFailed: "questions to a service that fails",
    ServiceLeft: "questions that are given up",
    Copies: "copies of requests",
    CopiesLeft: "copies without a response",
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
    MemberUnended: "whole responses without the end of their stream",
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
    InspectedElsewhere: "inspections that another thread goes on with",
    InspectionsKept: "inspections that go on by turns",
    MemberStates: "members that go or come back",
    MemberLists: "pools that get other members",
    Reloads: "reloads",
    Records: "records of requests",
    Recoveries: "recoveries from a panic",
    Drains: "ends in order",
}

/// The number of events of each kind.
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

    /// Counts several events.
    pub fn count_many(&self, kind: Kind, count: u64) {
        self.0[kind as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// The number of events of a kind.
    pub fn get(&self, kind: Kind) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// Adds the numbers of another run.
    pub fn add(&self, other: &Self) {
        for (count, more) in self.0.iter().zip(&other.0) {
            count.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The kinds that did not occur, except those that are impossible in this environment.
    pub fn missing(&self, impossible: &[Kind]) -> Vec<&'static str> {
        let impossible: Vec<&str> = impossible.iter().map(|kind| TEXTS[*kind as usize]).collect();
        let never = self.all().filter(|(_, count)| *count == 0).map(|(text, _)| text);
        never.filter(|text| !impossible.contains(text)).collect()
    }

    /// A report of all numbers.
    pub fn told(&self) -> String {
        let counts: Vec<String> =
            self.all().map(|(text, count)| format!("{text} {count}")).collect();
        counts.join("; ")
    }
}

/// A finding.
#[derive(Debug)]
pub struct Finding {
    /// The description.
    pub what: String,
    /// The exchange in which the finding was observed.
    pub id: Option<Id>,
    /// The last bytes received before the finding.
    pub received: Vec<u8>,
}

impl Finding {
    /// A finding in this exchange.
    pub fn new(what: impl Into<String>, id: Id) -> Self {
        Self { what: what.into(), id: Some(id), received: Vec::new() }
    }

    /// Adds the last received bytes.
    pub fn with(mut self, received: &[u8]) -> Self {
        self.received = received.to_vec();
        self
    }
}

/// State shared by all threads.
#[derive(Debug)]
pub struct World {
    /// The seed of all random decisions.
    pub seed: u64,
    /// The key of blocks.
    pub key: Key,
    /// The sizes and times.
    pub profile: Profile,
    /// The clock.
    pub clock: Clock,
    /// The counters of events.
    pub tally: Tally,
    /// The members' availability, and the persistence of clients.
    pub keeping: Keeping,
    /// The number of exchanges that each thread has started.
    begun: [AtomicU64; THREADS_MAX],
    /// Numbers of requests with their counts of arrivals at members. The table is small, so it only covers requests in
    /// flight, approximately.
    seen: Vec<AtomicU64>,
    /// The number of members that have reported a request as unprocessed.
    unread: Mutex<HashMap<Id, u32>>,
    /// Outcomes that are valid only if enough members report the request as unprocessed: exchange, description, required
    /// number.
    suspects: Mutex<Vec<(Id, String, u32)>>,
    /// Unsolicited responses of members.
    pub surplus: Surplus,
    /// Tunnels of HTTP/2 clients that have ended at their members.
    ended: Mutex<HashSet<Id>>,
    /// Range of the exchanges of each thread that a finding has made invalid.
    spoilt: [[AtomicU64; 2]; THREADS_MAX],
    /// Number of the first exchanges of each thread that weir may have broken off in a crash.
    broken_off: [AtomicU64; THREADS_MAX],
    findings: Mutex<Findings>,
    findings_max: usize,
    stopping: AtomicBool,
    /// Whether weir is about to be killed. Observations from then on prove nothing.
    closing: AtomicBool,
    /// Whether weir is draining.
    draining: AtomicBool,
}

#[derive(Debug, Default)]
struct Findings {
    texts: Vec<String>,
    /// The exchanges with findings. Further findings in them are consequences of the first.
    ids: HashSet<Id>,
}

/// Number of requests whose arrivals are counted at a time.
const SEEN_MAX: usize = 1 << 14;
/// Number of bits of a count of arrivals.
const ARRIVALS_BITS: u32 = 8;

impl World {
    /// The initial state. The run ends after this number of findings.
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

    /// The number of exchanges that a thread has started.
    pub fn begun_by(&self, thread: usize) -> u64 {
        self.begun[thread].load(Ordering::Relaxed)
    }

    /// Starts an exchange of a thread. Returns the number of its earlier exchanges, which is part of the exchange's number.
    pub fn next(&self, thread: usize) -> u64 {
        self.begun[thread].fetch_add(1, Ordering::Relaxed)
    }

    /// The number of exchanges that all threads have started.
    pub fn begun(&self) -> u64 {
        self.begun.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether an exchange with this number was started.
    pub fn is_known(&self, id: Id) -> bool {
        let (thread, count) = origin(id);
        count < self.begun[thread].load(Ordering::Relaxed)
    }

    /// The plan of a started exchange; `None`: not started.
    pub fn plan(&self, id: Id) -> Option<Plan> {
        self.is_known(id).then(|| Plan::of(self.seed, &self.profile, id))?
    }

    /// Checks that an incomplete message contains only blocks of one exchange. `own`: that exchange, if it is known.
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

    /// Counts the arrival of a request at a member. Returns the number of its arrivals.
    pub fn arrived(&self, id: Id) -> u64 {
        let hashed = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
        let place = &self.seen[hashed as usize];
        let before = place.load(Ordering::Acquire);
        let is_same = before >> ARRIVALS_BITS == id.0;
        let count = if is_same { (before & ((1 << ARRIVALS_BITS) - 1)) + 1 } else { 1 };
        place.store(id.0 << ARRIVALS_BITS | count, Ordering::Release);
        count
    }

    /// Records that a member reports a request as unprocessed.
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

    /// Records an outcome that is valid only if this number of members report the request as unprocessed. They may report
    /// that later.
    pub fn suspect(&self, id: Id, what: String, unread: u32) {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        suspects.push((id, what, unread));
    }

    /// Reports the recorded outcomes that are not valid. Call this when all members have seen all arrivals.
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

    /// Records that a tunnel has ended at its member.
    pub fn end(&self, id: Id) {
        let is_awaited =
            Place::of(id).is_some_and(|place| place.client == Version::Http2 && !place.is_fragile);
        if is_awaited {
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// Whether a tunnel has ended at its member. Removes the record.
    pub fn has_ended(&self, id: Id) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Records that weir is about to be killed.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Records that weir is draining: it finishes exchanges in flight and accepts no connections.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether weir is draining.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Records that weir has broken off all exchanges in flight.
    pub fn crash(&self) {
        for broken in &self.broken_off {
            broken.store(u64::MAX, Ordering::Release);
        }
    }

    /// Records that a thread opens a connection: exchanges before it were possibly broken off, exchanges on it are not.
    pub fn begin_session(&self, thread: usize) {
        let begun = self.begun[thread].load(Ordering::Relaxed);
        let broken = &self.broken_off[thread];
        let _ = broken.compare_exchange(u64::MAX, begun, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Starts the next part of the run.
    pub fn go_on(&self) {
        self.closing.store(false, Ordering::Release);
        self.stopping.store(self.has_enough(), Ordering::Release);
    }

    /// Whether the run has to end.
    pub fn is_over(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether the maximum number of findings is reached.
    pub fn has_enough(&self) -> bool {
        self.locked().texts.len() >= self.findings_max
    }

    fn locked(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Invalidates the exchanges that a thread has started since `since`: they are consequences of a finding.
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
