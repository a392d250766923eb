//! The recorder of a worker, which takes notes about requests and sends their records.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::{AccessFormat, RecentRequests, SHARE_OF_ALL};
use weir_core::clock::Clock;
use weir_core::policy::End;
use weir_exchange::arena::ExchangeKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::pool::{LocalPool, Preference};
use weir_exchange::local::table::LocalServer;
use weir_exchange::local::traffic;
use weir_exchange::parts::account::LogOutput;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::inspection_report::InspectionOutcome;
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::parts::witness::{self, Step};
use weir_http::message::{FieldId, RequestHead, Version};
use weir_http::secret_names::CredentialFields;
use weir_waf::inspection::Inspection;

use crate::access_log::Entry;
use crate::records::record::{
    Amounts, Candidate, FailedAttempt, Firewall, Id, MemberSearch, Notes, Record, RecordedDecision,
    RecordedVerdict,
};
use crate::redaction::Secrets;

/// Maximum size of a recorded head in bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Maximum number of recorded members of a pool.
pub const CANDIDATES_MAX: usize = 32;

/// Maximum number of recorded pools, and of failed members, of one request.
const STEPS_MAX: usize = 8;

/// Maximum number of recorded rules, and of checks, of the firewall for one request.
const FINDINGS_MAX: usize = 20;

/// The sending end of the queue of records. While the queue is full, records are dropped and counted.
#[derive(Debug, Clone)]
pub struct RecordSender {
    /// The queue.
    pub records: SyncSender<Box<Record>>,
    /// The number of dropped records.
    pub dropped: Arc<AtomicU64>,
}

/// Takes notes about the requests of one worker, and sends their records.
pub struct Recorder {
    /// Whether and how new requests are logged and recorded.
    pub logged: LogOutput,
    format: AccessFormat,
    settings: Option<RecentRequests>,
    /// Whether a client follows all requests.
    is_followed: bool,
    /// The accumulated share of sampled requests. A request is sampled when the sum reaches [`SHARE_OF_ALL`].
    share: u32,
    /// The notes of requests in progress.
    open: HashMap<ExchangeKey, Box<Notes>>,
    /// Requests that the firewall is inspecting.
    inspected: HashMap<InspectionId, ExchangeKey>,
    /// The request in its first stages, whose steps do not contain the key of the exchange. `None`: no request is in these
    /// stages, or the request has no notes.
    current: Option<ExchangeKey>,
    sender: Option<RecordSender>,
}

/// An inspection by the firewall. It is identified by the address of its request id in memory, because clients of a trusted
/// proxy can send the same id at the same time.
struct InspectionId(Rc<str>);

impl PartialEq for InspectionId {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for InspectionId {}

impl Hash for InspectionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}

/// A new request.
pub struct RequestStart<'a> {
    /// The exchange.
    pub key: ExchangeKey,
    /// The head.
    pub head: &'a RequestHead,
    /// The bytes that the head refers to.
    pub input: &'a [u8],
    /// The virtual server that received the request.
    pub server: &'a LocalServer,
    /// The peer address of the connection.
    pub peer: Option<SocketAddr>,
    /// The address that the client connected to.
    pub listen: Option<SocketAddr>,
    /// The TLS properties of the connection.
    pub tls: Option<&'a ClientTls>,
}

/// A request that is refused before any decision.
#[derive(Clone, Copy)]
pub struct RefusedRequest<'a> {
    /// The part of its head that was read, and the bytes that it refers to.
    pub head: Option<(&'a RequestHead, &'a [u8])>,
    /// The virtual server that received it.
    pub server: &'a LocalServer,
    /// The peer address of the connection.
    pub peer: Option<SocketAddr>,
    /// The address that the client connected to, if known.
    pub listen: Option<SocketAddr>,
    /// The TLS properties of the connection.
    pub tls: Option<&'a ClientTls>,
}

/// A finished transaction, for its record.
pub enum FinishedTransaction<'a> {
    /// A transaction, with the key of its notes, if it has any.
    Begun(ExchangeKey),
    /// A request that was refused.
    Refused(RefusedRequest<'a>),
    /// A connection or a session without requests.
    NoRequest,
}

impl Recorder {
    /// Creates a recorder that is off. Without a sender, it stays off.
    pub fn new(sender: Option<RecordSender>) -> Self {
        Self {
            logged: LogOutput::Nothing,
            format: AccessFormat::Off,
            settings: None,
            is_followed: false,
            share: 0,
            open: HashMap::new(),
            inspected: HashMap::new(),
            current: None,
            sender,
        }
    }

    /// Applies the settings for records. `format`: the format of the access log.
    pub fn set(&mut self, settings: Option<RecentRequests>, format: AccessFormat) {
        (self.settings, self.format) = (settings, format);
        self.choose();
    }

    /// Starts or stops recording all requests.
    pub fn follow(&mut self, is_followed: bool) {
        self.is_followed = is_followed;
        self.choose();
    }

    fn choose(&mut self) {
        let records = self.sender.is_some() && (self.settings.is_some() || self.is_followed);
        self.logged = LogOutput::of(self.format, records);
    }

    /// Starts the notes of a request if a record may be needed. Returns whether notes are taken.
    pub fn begin(&mut self, begun: &RequestStart<'_>, clock: Clock) -> bool {
        let is_sampled = self.samples();
        let may_be_slow = self.settings.is_some_and(|it| it.slow_us.is_some());
        self.current = None;
        if !is_sampled && !may_be_slow && !self.is_followed {
            return false;
        }
        let mut notes = Box::new(Notes { is_sampled, ..Notes::default() });
        let RequestStart { key, head, input, server, .. } = *begun;
        write_head(head, input, &mut notes);
        notes.peer = begun.peer;
        notes.listen = begun.listen;
        notes.tls = begun.tls.map(ClientTls::seen);
        notes.entered = Some(Arc::clone(&server.live.name));
        notes.snapshot = Arc::downgrade(&server.snapshot);
        notes.content = server.pool.content();
        notes.credential_fields = server.snapshot.authenticating.credential_fields.clone();
        if server.traffic.is_none() {
            notes.sought.push(sought(&server.pool.now(), Preference::Any, clock));
        }
        self.open.insert(key, notes);
        self.current = Some(key);
        true
    }

    /// Ends the first stages of a request. Later steps contain the key of the exchange.
    pub fn begun(&mut self) {
        self.current = None;
    }

    fn samples(&mut self) -> bool {
        let Some(settings) = &self.settings else { return false };
        self.share += settings.share;
        let is_sampled = self.share >= SHARE_OF_ALL;
        self.share -= if is_sampled { SHARE_OF_ALL } else { 0 };
        is_sampled
    }

    /// Whether any request has notes.
    #[inline]
    pub fn is_noting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Adds a step of a transaction to its notes.
    pub fn note(&mut self, step: Step<'_, '_>, clock: Clock) {
        match step {
            Step::Decided(decided) => {
                let Some(notes) = self.current.and_then(|key| self.open.get_mut(&key)) else {
                    return;
                };
                note_decided(notes, &decided, clock);
            }
            Step::Inspects(terms) => {
                if let Some(key) = self.current {
                    self.inspected.insert(InspectionId(Rc::clone(&terms.request_id)), key);
                }
            }
            Step::Inspected { terms, inspection, outcome, status } => {
                let id = InspectionId(Rc::clone(&terms.request_id));
                let Some(key) = self.inspected.get(&id) else { return };
                if let Some(notes) = self.open.get_mut(key) {
                    let mode = terms.mode.name();
                    let fields = &notes.credential_fields;
                    let found = firewall(mode, (inspection, fields), outcome, status);
                    notes.firewall = Some(found);
                }
            }
            Step::Seeks(ends) => {
                if let Some(notes) = self.notes_with_room(ends.key) {
                    let tries = &ends.tries;
                    notes.sought.push(sought(&tries.pool, tries.preference, clock));
                }
            }
            Step::Failed { ends, member, why } => {
                if let Some(notes) = self.notes_with_room(ends.key) {
                    notes.failed.extend(failed(ends, member, why, clock));
                }
            }
        }
    }

    fn notes_with_room(&mut self, key: ExchangeKey) -> Option<&mut Notes> {
        let notes = self.open.get_mut(&key)?;
        let is_full = notes.sought.len().max(notes.failed.len()) >= STEPS_MAX;
        (!is_full).then_some(notes)
    }

    /// Sends the record of a finished transaction, if the request was sampled, slow or followed.
    pub fn finish(
        &mut self,
        finished: &FinishedTransaction<'_>,
        entry: &Entry<'_>,
        id: Id,
        unix_ms: u64,
    ) {
        let notes = match finished {
            FinishedTransaction::Begun(key) => self.take(*key),
            FinishedTransaction::Refused(refused) => self.notes_of_refused(refused),
            FinishedTransaction::NoRequest => None,
        };
        let slow_us = self.settings.and_then(|it| it.slow_us);
        let is_slow = slow_us.is_some_and(|slow_us| entry.total_us >= slow_us);
        let is_sampled = notes.as_ref().is_some_and(|notes| notes.is_sampled);
        // A transaction without notes is not an ordinary request, and a long duration is normal for it.
        let is_slow = is_slow && notes.is_some();
        if !is_slow && !is_sampled && !self.is_followed {
            return;
        }
        let Some(sender) = &self.sender else { return };
        let record = Box::new(record(entry, id, unix_ms, (is_sampled, is_slow), notes));
        if sender.records.try_send(record).is_err() {
            sender.dropped.fetch_add(1, Relaxed);
        }
    }

    /// The notes of a refused request; `None`: it is not sampled.
    fn notes_of_refused(&mut self, refused: &RefusedRequest<'_>) -> Option<Box<Notes>> {
        let is_sampled = self.samples();
        if !is_sampled && !self.is_followed {
            return None;
        }
        let mut notes = Notes { is_sampled, is_refused: true, ..Notes::default() };
        if let Some((head, input)) = refused.head {
            write_request_line(head, input, &mut notes);
        }
        notes.peer = refused.peer;
        notes.listen = refused.listen;
        notes.tls = refused.tls.map(ClientTls::seen);
        notes.entered = Some(Arc::clone(&refused.server.live.name));
        notes.snapshot = Arc::downgrade(&refused.server.snapshot);
        notes.content = refused.server.pool.content();
        notes.credential_fields = refused.server.snapshot.authenticating.credential_fields.clone();
        Some(Box::new(notes))
    }

    /// Removes and returns the notes of a request; `None`: there are none.
    pub fn take(&mut self, key: ExchangeKey) -> Option<Box<Notes>> {
        let notes = self.open.remove(&key)?;
        if !self.inspected.is_empty() {
            self.inspected.retain(|_, other| *other != key);
        }
        Some(notes)
    }

    /// Drops all notes, because all connections are closed.
    pub fn forget(&mut self) {
        self.open.clear();
        self.inspected.clear();
        self.current = None;
    }

    /// The number of requests with notes.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

/// Writes a head in the syntax of HTTP/1, up to the maximum size.
fn write_head(head: &RequestHead, input: &[u8], notes: &mut Notes) {
    let out = &mut notes.head;
    // A head of HTTP/1.0 may lack `Host`, so it could not be parsed as HTTP/1.1.
    let version: &[u8] = match head.version {
        Version::Http10 => b" HTTP/1.0\r\n",
        Version::Http11 | Version::Http2 => b" HTTP/1.1\r\n",
    };
    let line = [head.method_text.of(input), b" ", head.target.of(input), version];
    let field = |name: &[u8], value: &[u8]| name.len() + value.len() + 4;
    let authority = head.authority(input);
    let has_host = head.fields.iter().any(|field| field.id == FieldId::Host);
    let host = (!has_host && !authority.is_empty()).then_some((&b"Host"[..], authority));
    let fields = head.fields.iter().map(|it| (it.name.of(input), it.value.of(input)));
    let fields = host.into_iter().chain(fields);
    let needed = line.iter().map(|part| part.len()).sum::<usize>()
        + fields.clone().map(|(name, value)| field(name, value)).sum::<usize>()
        + 2;
    out.reserve_exact(needed.min(HEAD_BYTES_MAX));
    let mut room = HEAD_BYTES_MAX - 2;
    let mut put = |parts: &[&[u8]]| {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let Some(left) = room.checked_sub(bytes) else { return false };
        room = left;
        parts.iter().for_each(|part| out.extend_from_slice(part));
        true
    };
    let mut is_whole = put(&line);
    if is_whole {
        for (name, value) in fields {
            is_whole &= put(&[name, b": ", value, b"\r\n"]);
        }
    }
    out.extend_from_slice(b"\r\n");
    notes.is_head_cut = !is_whole;
    notes.version = Some(head.version);
    notes.has_body = !head.framing.is_empty();
}

/// Writes the request line of a refused request, if it was read. Its headers may be incomplete or malformed, so their secrets
/// cannot be masked.
fn write_request_line(head: &RequestHead, input: &[u8], notes: &mut Notes) {
    let (method, target) = (head.method_text.of(input), head.target.of(input));
    let bytes = method.len() + 1 + target.len();
    let is_text =
        |part: &[u8]| !part.is_empty() && part.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    if !is_text(method) || !is_text(target) || bytes > HEAD_BYTES_MAX {
        return;
    }
    notes.head = [method, target].join(&b' ');
    notes.is_head_cut = true;
    notes.version = Some(head.version);
}

fn note_decided(notes: &mut Notes, decided: &witness::ServerDecision<'_, '_>, clock: Clock) {
    if notes.decided.len() >= STEPS_MAX {
        return;
    }
    let traffic = decided.traffic;
    let snapshot = traffic.snapshot();
    let verdict = match decided.verdict {
        traffic::RoutingVerdict::Forward(route) => {
            let pool = traffic.pool(route.pool);
            notes.sought.push(sought(&pool, route.preference, clock));
            RecordedVerdict::Forward {
                pool: Arc::clone(&pool.settings().name),
                delay_us: route.not_before_us.saturating_sub(clock.now_us()),
            }
        }
        traffic::RoutingVerdict::HandedOver { to, .. } => {
            let to = snapshot.virtual_servers.get(*to).map(|server| Arc::clone(&server.name));
            RecordedVerdict::HandedOver(to.unwrap_or_else(|| "".into()))
        }
        traffic::RoutingVerdict::End { .. } => {
            RecordedVerdict::Ended(match &decided.decision.end {
                Some(End::Answer { status, .. }) => *status,
                _ => 0,
            })
        }
        traffic::RoutingVerdict::Misdirected => RecordedVerdict::Misdirected,
        traffic::RoutingVerdict::Limited { retry_after_s } => {
            RecordedVerdict::Limited(*retry_after_s)
        }
        traffic::RoutingVerdict::LimitClosed => RecordedVerdict::LimitClosed,
        traffic::RoutingVerdict::Failed(_) => RecordedVerdict::Unsendable,
    };
    notes.decided.push(RecordedDecision {
        virtual_server: Arc::clone(&traffic.settings().name),
        client: decided.facts.client,
        followed: decided.decision.followed.to_vec(),
        verdict,
    });
}

/// The current state of a pool.
fn sought(pool: &LocalPool, preference: Preference, clock: Clock) -> MemberSearch {
    let eligible = pool.eligible(clock);
    // The first 64 members as bits. They include all recorded ones, except a preferred member with a higher index.
    let first = eligible.iter().filter(|member| **member < u64::BITS);
    let first = first.fold(0_u64, |bits, member| bits | 1 << member);
    let is_eligible = |member: u32| match member {
        0..u64::BITS => first >> member & 1 == 1,
        _ => eligible.contains(&member),
    };
    let preferred = match preference {
        Preference::Member(member) => Some(member),
        Preference::Any | Preference::Key(_) => None,
    };
    let shown = (0..)
        .zip(&pool.members)
        .filter(|(member, _)| (*member as usize) < CANDIDATES_MAX || preferred == Some(*member));
    let candidates: Vec<Candidate> = shown
        .map(|(member, local)| {
            let live = &local.live;
            let configured = pool.settings().members[member as usize].state;
            Candidate {
                member: Arc::clone(&live.label),
                health: live.health(),
                state: live.state(configured),
                is_ejected: live.ejected_until_ms(clock.now_ms()).is_some(),
                occupancy: live.occupancy.load(Relaxed),
                is_eligible: is_eligible(member),
            }
        })
        .collect();
    let left_out = pool.members.len() - candidates.len();
    MemberSearch { pool: Arc::clone(&pool.settings().name), preference, candidates, left_out }
}

fn failed(
    ends: &TransactionEnds,
    member: u32,
    why: MemberFailure,
    clock: Clock,
) -> Option<FailedAttempt> {
    let pool = &ends.tries.pool;
    let local = pool.members.get(member as usize)?;
    let try_us = ends.account.times.try_us;
    Some(FailedAttempt {
        pool: Arc::clone(&pool.settings().name),
        member: Arc::clone(&local.live.label),
        why,
        after_us: try_us.saturating_sub(ends.account.begun_us),
        took_us: clock.now_us().saturating_sub(try_us),
    })
}

fn firewall(
    mode: &'static str,
    (inspection, fields): (&Inspection, &CredentialFields),
    outcome: InspectionOutcome,
    status: u16,
) -> Firewall {
    let secrets = Secrets::of(inspection, fields);
    let logged = inspection.matches().iter().filter(|found| found.is_logged);
    let rules = logged
        .take(FINDINGS_MAX)
        .map(|found| (found.id, secrets.shown_text(&found.message).into_owned().into()));
    let checks = inspection.findings().iter().take(FINDINGS_MAX);
    Firewall {
        mode,
        outcome: outcome.name(),
        status,
        score: inspection.score(),
        rules: rules.collect(),
        checks: checks.map(|finding| finding.check.name()).collect(),
    }
}

fn record(
    entry: &Entry<'_>,
    id: Id,
    unix_ms: u64,
    (is_sampled, is_slow): (bool, bool),
    notes: Option<Box<Notes>>,
) -> Record {
    let decided = &entry.decided;
    let marks = decided.marks.iter().flat_map(|marks| marks.iter());
    let rules = decided.rules.iter().filter_map(|rule| decided.rule_names.get(*rule as usize));
    Record {
        id,
        begun_unix_ms: unix_ms.saturating_sub(entry.total_us / 1_000),
        is_sampled,
        is_slow,
        client: entry.client,
        peer: entry.peer,
        virtual_server: entry.server.into(),
        entered_at: decided.entered_at.map(Into::into),
        pool: entry.pool.filter(|pool| !pool.is_empty()).map(Into::into),
        member: entry.member.map(Into::into),
        tls: entry.tls.ok().flatten().map(|tls| (tls.version.into(), tls.cipher.into())),
        status: entry.status,
        amounts: Amounts {
            bytes_received: entry.bytes_received,
            bytes_sent: entry.bytes_sent,
            retries: entry.retries,
            queue_us: entry.queue_us,
            connect_us: entry.connect_us,
            first_byte_us: entry.first_byte_us,
            total_us: entry.total_us,
        },
        marks: marks.map(Into::into).collect(),
        rules: rules.cloned().collect(),
        persistence: decided.persistence,
        user: decided.user.into(),
        termination: entry.termination,
        notes,
    }
}
