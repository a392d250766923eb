//! Runs a supposed request through the data path's code, and describes the result.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_api::asked::Asked;
use weir_api::explanation::{
    Considered, Explanation, Field, Listener, Outcome, PolicyTold, PoolTold, RequestTold,
};
use weir_config::snapshot::Address;
use weir_core::clock::Clock;
use weir_core::policy::Decision;
use weir_exchange::arena::{Arena, Key, OfExchange};
use weir_exchange::environment::Environment;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::gate;
use weir_exchange::local::surroundings::Sources;
use weir_exchange::local::table::{LocalServer, LocalTable};
use weir_exchange::parts::account::LogOutput;
use weir_exchange::parts::arrival::{Arrival, Registration, RequestOrigin};
use weir_exchange::parts::deferred_work::DeferredWork;
use weir_exchange::parts::end::End;
use weir_exchange::parts::inspection::InspectionState;
use weir_exchange::parts::inspection_report::InspectionOutcome as WafOutcome;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::reply::Reply;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::transaction_ends::NextClientState;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::shared::logins::Answer;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::stages;
use weir_http::h1::{HeadLimits, ParseProgress, RequestError, parse_request, parse_response};
use weir_http::message::{Method, RequestHead, ResponseHead, Scheme, Version};
use weir_telemetry::records::record::Notes as Recorded;
use weir_waf::inspection::Verdict;

use crate::balancing;
use crate::decision_witness::DecisionWitness;
use crate::dry_edge::{DryEdge, MemberSearch, Notes};
use crate::firewall;
use crate::limits;
use crate::listener::{self, ReceivingServer};
use crate::masks::Masks;
use crate::recorded_request::limits as limits_of;
use crate::rules::{self, RuleTexts};
use crate::supposed_request::{NoRequest, ReceivedRequest, Url, arrive, peer};

/// Maximum number of steps of a request that waits; a request with more would never end.
const STEPS_MAX: usize = 64;

/// The time of an explanation, and its sources of time and random numbers.
#[derive(Clone, Copy)]
pub struct Moment {
    /// The time.
    pub clock: Clock,
    /// The time of day, and random numbers.
    pub sources: Sources,
    /// The CPU time of this thread in microseconds.
    pub cpu_us: fn() -> u64,
}

/// The reason why there is no explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainError(pub String);

impl std::fmt::Display for ExplainError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ExplainError {}

/// Explains a request in the current state, which is not changed.
///
/// # Errors
/// The request is ambiguous or invalid.
pub fn explain(
    live: &LiveTable,
    asked: &Asked,
    moment: Moment,
) -> Result<Explanation, ExplainError> {
    let url = Url::parse(&asked.url).map_err(ExplainError)?;
    let found = listener::find(&live.snapshot, asked, &url).map_err(ExplainError)?;
    let outside = Environment { clock: moment.clock, fill_randomly: moment.sources.fill_randomly };
    let copy = live.copied(found.index, &outside);
    let table = LocalTable::new(&copy, None, 0);
    let name = &live.snapshot.virtual_servers[found.index].name;
    let server = table.server(name).ok_or_else(|| ExplainError(format!("`{name}` is gone")))?;
    let received = match arrive(asked, &url, server) {
        Ok(received) => received,
        Err(NoRequest::Unclear(why)) => return Err(ExplainError(why)),
        Err(NoRequest::Malformed(error)) => {
            let told = (answered(error), refused(live, found.index, error));
            return Ok(malformed(live, asked, &url, found, told));
        }
        Err(NoRequest::Reset(error)) => {
            let termination = "client_malformed".into();
            let outcome = Outcome::Closed { termination, is_reset: true };
            let remark =
                format!("the message of HTTP/2 is malformed, and its stream is reset: {error}");
            return Ok(malformed(live, asked, &url, found, (outcome, remark)));
        }
    };
    let fields = &live.snapshot.authenticating.credential_fields;
    let masks = Masks::of(&received.head, &received.input, fields);
    let known = RequestSource::Supposed;
    let trial = Trial { live, asked, url: &url, moment, masks: &masks, received: &received, known };
    Ok(trial.explain(&found, server))
}

/// Decides about a recorded request again, by the configuration in force: as if all members were up and idle, and all limits
/// unused. The live state does not change.
///
/// # Errors
/// The record lacks a part of the request's head, or the virtual server was removed.
pub fn explain_again(
    live: &LiveTable,
    notes: &Recorded,
    moment: Moment,
) -> Result<Explanation, ExplainError> {
    let unexplained = |why: &str| ExplainError(why.into());
    if notes.is_head_cut {
        return Err(unexplained("only a part of its head was kept"));
    }
    let name = notes.entered.as_deref().unwrap_or_default();
    let mut servers = live.snapshot.virtual_servers.iter();
    let gone = || ExplainError(format!("virtual server {name} is gone"));
    let index = servers.position(|server| *server.name == *name).ok_or_else(gone)?;
    let outside = Environment { clock: moment.clock, fill_randomly: moment.sources.fill_randomly };
    let rested = live.copied_at_rest(index, &outside);
    let table = LocalTable::new(&rested, None, 0);
    let server = table.server(name).ok_or_else(gone)?;
    let mut head = RequestHead::new();
    let read = parse_request(&notes.head, &limits_of(notes), server.http.target, &mut head);
    if !matches!(read, Ok(ParseProgress::Complete { .. })) {
        return Err(unexplained("its head is not accepted any more"));
    }
    head.version = notes.version.unwrap_or(head.version);
    let input = notes.head.clone();
    let asked = asked_of(notes, &head, &input, name);
    let url = Url::parse(&asked.url).map_err(ExplainError)?;
    let masks = Masks::of(&head, &input, &notes.credential_fields);
    let received = ReceivedRequest { head, input, body: Vec::new() };
    let address = notes.listen.map(Address::Socket);
    let found = ReceivingServer { index, address, because: "it was recorded there".into() };
    let trial = Trial {
        live: &rested,
        asked: &asked,
        url: &url,
        moment,
        masks: &masks,
        received: &received,
        known: RequestSource::Seen(notes),
    };
    Ok(trial.explain(&found, server))
}

/// The recorded request in the form of a supposed one.
fn asked_of(notes: &Recorded, head: &RequestHead, input: &[u8], server: &str) -> Asked {
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let scheme = if notes.tls.is_some() { "https" } else { "http" };
    let authority = text(head.authority(input));
    let host = if authority.is_empty() { "unknown".into() } else { authority };
    let target = text(head.target.of(input));
    let path = if target.starts_with('/') { &*target } else { "/" };
    Asked {
        url: format!("{scheme}://{host}{path}"),
        method: Some(text(head.method_text.of(input))),
        headers: Vec::new(),
        body: None,
        from: notes.peer.map(|peer| peer.ip()),
        http2: notes.version == Some(Version::Http2),
        virtual_server: Some(server.to_owned()),
    }
}

/// The error response to a malformed request.
fn answered(error: RequestError) -> Outcome {
    let is_by_form = matches!(error, RequestError::Path(error) if error.is_by_form());
    let termination = match error.status() {
        414 | 431 => "client_limit",
        _ if is_by_form => "path_refused",
        _ => "client_malformed",
    };
    let (status, termination) = (error.status(), termination.into());
    Outcome::Answer { status, termination, headers: Vec::new(), body: None }
}

/// The explanation of a malformed request, which ends before any decision.
fn malformed(
    live: &LiveTable,
    asked: &Asked,
    url: &Url,
    found: ReceivingServer,
    (outcome, remark): (Outcome, String),
) -> Explanation {
    let masks = Masks::default();
    Explanation {
        request: RequestTold {
            method: masks.text(asked.method.as_deref().unwrap_or("GET").as_bytes()),
            url: masks.target(asked.url.as_bytes()),
            version: if asked.http2 { "2" } else { "1.1" }.into(),
            peer: peer(asked).ip().to_string(),
            // Fields are not shown, because their secrets cannot be recognised.
            headers: Vec::new(),
            body_bytes: asked.body.as_ref().map_or(0, String::len),
        },
        listener: listener_told(live, &found, url, &url.host),
        connection_policies: Vec::new(),
        virtual_servers: Vec::new(),
        firewall: None,
        balancing: None,
        outcome,
        remarks: vec![remark],
    }
}

/// Why a request is refused before any decision, and the key that decides about it.
fn refused(live: &LiveTable, index: usize, error: RequestError) -> String {
    let RequestError::Path(path) = error else {
        return format!("the request is malformed: {error}");
    };
    match path.key() {
        Some(key) => format!(
            "the request is refused: {error}; servers read such paths differently: `{key}` of virtual server \
             `{}` says how its members do",
            live.snapshot.virtual_servers[index].name
        ),
        None => format!("the request is malformed: {error}"),
    }
}

fn listener_told(
    live: &LiveTable,
    found: &ReceivingServer,
    url: &Url,
    server_name: &str,
) -> Listener {
    let is_secure = url.scheme == Scheme::Https;
    let tls = if is_secure { listener::tls(live, found.index, server_name) } else { None };
    Listener {
        virtual_server: live.snapshot.virtual_servers[found.index].name.to_string(),
        address: found.address.as_ref().map(ToString::to_string),
        because: found.because.clone(),
        tls,
        limits: Vec::new(),
    }
}

/// The origin of a request.
#[derive(Clone, Copy)]
enum RequestSource<'a> {
    /// A supposed request, with its body and a typical connection.
    Supposed,
    /// A recorded request, with its real connection. Its body was not stored.
    Seen(&'a Recorded),
}

/// A request in a dry run.
struct Trial<'a> {
    live: &'a LiveTable,
    asked: &'a Asked,
    url: &'a Url,
    moment: Moment,
    masks: &'a Masks,
    received: &'a ReceivedRequest,
    known: RequestSource<'a>,
}

impl Trial<'_> {
    /// The name in SNI.
    fn server_name(&self) -> &str {
        match self.known {
            RequestSource::Seen(Recorded { tls: Some(seen), .. }) => &seen.server_name,
            _ => &self.url.host,
        }
    }

    fn peer(&self) -> Option<SocketAddr> {
        match self.known {
            RequestSource::Supposed => Some(peer(self.asked)),
            RequestSource::Seen(notes) => notes.peer,
        }
    }

    /// What a request with credentials that authenticate a connection means for the reuse of connections.
    fn bound(&self, sought: &MemberSearch) -> Option<String> {
        if !self.received.head.unusual.binds_connection {
            return None;
        }
        let pool = self.live.snapshot.pools.iter().find(|pool| *pool.name == *sought.pool)?;
        let told = match (pool.reuse.binds, pool.http2) {
            (false, _) => {
                "`reuse`: the credentials authenticate a connection, but the pool shares it (`connection_authentication: share`)"
            }
            (true, true) => {
                "`reuse`: the credentials authenticate a connection, so the request gets one of its own (HTTP/2)"
            }
            (true, false) => {
                "`reuse`: the credentials authenticate a connection, so it belongs to this client connection until either closes"
            }
        };
        Some(told.into())
    }

    fn explain(&self, found: &ReceivingServer, server: &Rc<LocalServer>) -> Explanation {
        let tls = self.tls(server);
        let whence = RequestOrigin {
            peer: self.peer(),
            listen: found.address.as_ref().and_then(|address| address.socket()),
            tls: tls.clone(),
            entry: None,
        };
        let mut tools = Tools::new(self.moment.cpu_us, self.moment.sources);
        tools.cpu_us = self.moment.cpu_us;
        let (connection_policies, turned_away) =
            self.connection(server, &whence, tls.as_deref(), &mut tools);
        let observed = DecisionWitness::new(self.live, self.masks, self.moment.clock);
        let mut dry = DryEdge::new(tools, self.moment.clock, self.masks, observed);
        let mut remarks = Vec::new();
        let outcome = match turned_away {
            Some(outcome) => outcome,
            None => self.run(server, whence, tls.as_deref(), &mut dry, &mut remarks),
        };
        let (_, observed, notes) = dry.into_parts();
        remarks.extend(notes.lines.iter().map(|line| format!("a rule logs: {line}")));
        if notes.is_told_to_continue {
            remarks.push("the client is told to send its body: 100 (Continue)".into());
        }
        remarks.extend(notes.sought.as_ref().and_then(|sought| self.bound(sought)));
        let clock = self.moment.clock;
        let balancing = notes
            .sought
            .as_ref()
            .and_then(|sought| balancing::of(self.live, &sought.pool, sought.preference, clock));
        let settings = server.settings();
        Explanation {
            request: self.request(),
            listener: Listener {
                limits: limits::of_connection(settings, self.live, clock),
                ..listener_told(self.live, found, self.url, self.server_name())
            },
            connection_policies,
            outcome: with_member(outcome, &balancing),
            virtual_servers: observed.considered,
            firewall: observed.firewall,
            balancing,
            remarks,
        }
    }

    fn request(&self) -> RequestTold {
        let ReceivedRequest { head, input, body } = self.received;
        let headers = head.fields.iter().map(|field| {
            let (name, value) = (field.name.of(input), field.value.of(input));
            Field { name: self.masks.text(name), value: self.masks.field(name, value) }
        });
        RequestTold {
            method: self.masks.text(head.method_text.of(input)),
            url: self.masks.target(self.asked.url.as_bytes()),
            version: if self.asked.http2 { "2" } else { "1.1" }.into(),
            peer: peer(self.asked).ip().to_string(),
            headers: headers.collect(),
            body_bytes: body.len(),
        }
    }

    /// The TLS of the request's connection.
    fn tls(&self, server: &LocalServer) -> Option<Rc<ClientTls>> {
        let tls = server.tls.as_ref().filter(|_| self.url.scheme == Scheme::Https)?;
        if let RequestSource::Seen(Recorded { tls: Some(seen), .. }) = self.known {
            return Some(Rc::new(ClientTls::seen_before(seen, Some(tls.lets_in.clone()))));
        }
        let is_name = self.url.host.parse::<std::net::IpAddr>().is_err();
        let name = if is_name { &*self.url.host } else { "" };
        Some(Rc::new(ClientTls::supposed(name, Some(tls.lets_in.clone()))))
    }

    /// Describes the policies of the connection, and the outcome if they refuse it.
    fn connection(
        &self,
        server: &LocalServer,
        whence: &RequestOrigin,
        tls: Option<&ClientTls>,
        tools: &mut Tools,
    ) -> (Vec<PolicyTold>, Option<Outcome>) {
        let Some(gate) = &server.gate else { return (Vec::new(), None) };
        let from = gate::ConnectionAddresses { client: whence.peer, server: whence.listen };
        let named = tls.map(|tls| gate::Moment::Named(tls.facts()));
        let mut told = Vec::new();
        for moment in [gate::Moment::Accepted].into_iter().chain(named) {
            let (mut decision, mut scratch, mut held) =
                (Decision::default(), Vec::new(), Vec::new());
            let at = (0, self.moment.clock, tools.sources);
            let ended = gate.ask(moment, from, at, &mut decision, (&mut scratch, &mut held));
            let snapshot = &server.snapshot;
            let telling = RuleTexts { snapshot, masks: self.masks, followed: &decision.followed };
            told.extend(rules::for_connection(gate.policies(moment), &telling));
            if let Some(ended) = ended {
                let termination = ended.why.as_str().into();
                return (told, Some(Outcome::Closed { termination, is_reset: ended.must_reset }));
            }
        }
        (told, None)
    }

    /// Runs the request, and describes the outcome.
    fn run(
        &self,
        server: &Rc<LocalServer>,
        whence: RequestOrigin,
        tls: Option<&ClientTls>,
        dry: &mut DryEdge<'_, DecisionWitness<'_>>,
        remarks: &mut Vec<String>,
    ) -> Outcome {
        let ReceivedRequest { head, input, body } = self.received;
        let is_misdirected = tls.is_some_and(|tls| server.is_misdirected(tls, head, input));
        let arrival = Arrival {
            head,
            input,
            server,
            from: Some(whence),
            is_early: false,
            is_bound: false,
            is_misdirected,
            may_go_on: true,
        };
        let mut transactions = Arena::<OfExchange, Transaction>::default();
        let key = transactions.next_key();
        let registration = Registration {
            key,
            client: Key::NOTHING,
            stream: None,
            logged: LogOutput::Nothing,
            log_request: Vec::new(),
        };
        let verdict = stages::begin(dry, &mut transactions, &arrival, registration, Vec::new());
        let Some(Transaction::Http(mut exchange)) = transactions.remove(key) else {
            return closed("stopped", false);
        };
        if dry.witness.considered.is_empty() {
            dry.witness.considered.push(plain(server, self.peer()));
        }
        exchange.enter(dry, head, verdict);
        let mut body = (!head.framing.is_empty()).then_some(&**body);
        if let (RequestSource::Seen(_), Some(_)) = (self.known, body) {
            body = None;
            leave_body_out(&mut exchange, dry, remarks);
        }
        for _ in 0..STEPS_MAX {
            if exchange.ends.is_over()
                || dry.notes.is_queued
                || !continue_request(&mut exchange, dry, &mut body, remarks)
            {
                break;
            }
        }
        self.note_judged(&exchange, dry);
        outcome(&exchange, dry)
    }

    /// Notes a request that was inspected and whose response is inspected too.
    fn note_judged(&self, exchange: &Exchange, dry: &mut DryEdge<'_, DecisionWitness<'_>>) {
        let judged = match exchange.inspection.state() {
            Some(InspectionState::Passed(_, _, judged) | InspectionState::Passing(_, judged)) => {
                judged
            }
            _ => return,
        };
        let Some(judged) = judged else { return };
        let inspection = &judged.inspection;
        let result = match judged.unjudged {
            Some(limit) => WafOutcome::Unjudged { limit, is_blocked: false },
            None => WafOutcome::of(&Verdict::Pass, inspection, false),
        };
        dry.witness.firewall =
            Some(firewall::told(inspection, judged.terms.mode, (result, 0), self.masks));
    }
}

/// Continues without the body of a request, which was not stored.
fn leave_body_out(
    exchange: &mut Exchange,
    dry: &mut DryEdge<'_, DecisionWitness<'_>>,
    remarks: &mut Vec<String>,
) {
    if matches!(
        exchange.inspection.state(),
        Some(InspectionState::Reading(_) | InspectionState::Following(_))
    ) {
        remarks.push("its body was not kept: the firewall is not asked about it again".into());
    }
    let is_read = matches!(exchange.inspection.state(), Some(InspectionState::Reading(_)));
    if !is_read && !exchange.ends.is_over() && exchange.takes_body() {
        exchange.client_data(dry, (b"", &Pieces::part(0)), End::No);
    }
}

/// Simulates the event that a request waits for. False: no such event can be simulated.
fn continue_request(
    exchange: &mut Exchange,
    dry: &mut DryEdge<'_, DecisionWitness<'_>>,
    body: &mut Option<&[u8]>,
    remarks: &mut Vec<String>,
) -> bool {
    if let Some(deferred) =
        std::mem::take(&mut weir_exchange::edge::Edge::tools(dry).deferred_work).pop()
    {
        if let DeferredWork::Begin(order) = deferred {
            let pool = &order.pool.settings().name;
            remarks.push(order.action.request_told(pool));
            if order.parent.is_some() {
                let child = Key::from_bits(2 << 32).unwrap_or(Key::NOTHING);
                stages::child_began(exchange.ends.context.as_deref_mut(), child);
                stages::child_ended(exchange, dry, Some(child), Some(Box::new(success())));
            }
        }
        return true;
    }
    if exchange.ends.phase.wait_state().waits() {
        check_passwords(exchange, remarks);
        exchange.resume(dry);
        return true;
    }
    match body.take_if(|_| exchange.takes_body()) {
        Some(data) => {
            exchange.client_data(dry, (data, &Pieces::whole(data.len())), End::Data);
            true
        }
        None => false,
    }
}

/// Checks the passwords that a request waits for, with the configured hashes.
fn check_passwords(exchange: &Exchange, remarks: &mut Vec<String>) {
    let context = exchange.ends.context.as_deref();
    let Some(checks) = context.and_then(|it| Some(&it.stage_work.as_deref()?.checks)) else {
        return;
    };
    for check in checks.iter().filter(|it| it.ticket.answer() == Answer::Pending) {
        check.logins.check_one();
    }
    for check in checks {
        let is_right = check.ticket.answer() == Answer::Right;
        let told = if is_right { "right" } else { "wrong" };
        remarks.push(format!("`{}`: the password is {told}", check.by.name));
    }
}

/// A successful response to a request of weir's own.
fn success() -> Reply {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    let limits = HeadLimits { head_size_max: 4_096, headers_max: 8 };
    let mut head = ResponseHead::new();
    let parsed = parse_response(&text, &limits, Method::Get, &mut head);
    debug_assert!(parsed.is_ok(), "{parsed:?}");
    Reply { head, text, body: Some(Vec::new()), body_bytes: 0, is_whole: true }
}

/// The decision of a virtual server without rules.
fn plain(server: &LocalServer, peer: Option<SocketAddr>) -> Considered {
    let pool = server.pool.live().name.to_string();
    let because = "the pool of the virtual server".to_owned();
    Considered {
        virtual_server: server.live.name.to_string(),
        client: peer.map(|peer| peer.ip().to_string()),
        client_from: "the connection".into(),
        limits: Vec::new(),
        policies: Vec::new(),
        rewrites: Vec::new(),
        authentication: Vec::new(),
        verdict: format!("has no rules and no limits: goes to pool {pool}"),
        pool: Some(PoolTold { name: pool, because, is_drawn: false }),
        persistence: None,
    }
}

fn closed(termination: &str, is_reset: bool) -> Outcome {
    Outcome::Closed { termination: termination.into(), is_reset }
}

/// The outcome of a request.
fn outcome(exchange: &Exchange, dry: &mut DryEdge<'_, DecisionWitness<'_>>) -> Outcome {
    let notes = &mut dry.notes;
    let termination = notes.ended.map_or("complete", |why| why.as_str());
    if let Some(answer) = notes.answer.take() {
        note_pool(exchange, notes);
        let (status, headers, body) = (answer.status, answer.headers, answer.body);
        return Outcome::Answer { status, termination: termination.into(), headers, body };
    }
    if let Some(NextClientState::Cut { termination, must_reset }) = &exchange.ends.over {
        return closed(termination.as_str(), *must_reset);
    }
    note_pool(exchange, notes);
    let pool = &exchange.ends.tries.pool;
    let name = pool.settings().name.to_string();
    if notes.is_queued {
        let waiting = pool.live.waiting.load(std::sync::atomic::Ordering::Relaxed);
        let length_max = pool.settings().queue.map_or(0, |queue| queue.length_max);
        return Outcome::Queue { pool: name, waiting, length_max };
    }
    let Some(sent) = notes.sent.take() else { return closed(termination, false) };
    Outcome::Member {
        pool: name,
        member: None,
        request_line: sent.request_line,
        headers: sent.headers,
        body_bytes: sent.body_bytes,
        response_policies: std::mem::take(&mut dry.witness.response_policies),
    }
}

/// Records the pool of a request that has searched for a member or was about to.
fn note_pool(exchange: &Exchange, notes: &mut Notes) {
    let looked =
        notes.is_queued || notes.ended == Some(weir_exchange::termination::Termination::NoMember);
    if notes.sought.is_none() && looked {
        let tries = &exchange.ends.tries;
        let pool = tries.pool.settings().name.to_string();
        notes.sought = Some(MemberSearch { pool, member: None, preference: tries.preference });
    }
}

/// Adds the member to an outcome if the member is certain.
fn with_member(outcome: Outcome, balancing: &Option<weir_api::explanation::Balancing>) -> Outcome {
    match outcome {
        Outcome::Member { pool, request_line, headers, body_bytes, response_policies, .. } => {
            let member = balancing.as_ref().and_then(|it| it.member.clone());
            Outcome::Member { pool, member, request_line, headers, body_bytes, response_policies }
        }
        other => other,
    }
}
