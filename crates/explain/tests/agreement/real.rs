//! Requests that are really decided about, by the live state itself. Only their members are not there.

use weir_api::asked::Asked;
use weir_api::explanation::Explanation;
use weir_core::clock::Clock;
use weir_exchange::arena::{Arena, Key, OfExchange};
use weir_exchange::local::surroundings::Sources;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::account::LogOutput;
use weir_exchange::parts::arrival::{Arrival, Registration, RequestOrigin};
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::transaction_ends::NextClientState;
use weir_exchange::parts::witness::{Step, Witness};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::{Transaction, stages};
use weir_explain::dry_edge::{DryEdge, Notes};
use weir_explain::masks::Masks;
use weir_explain::supposed_request::{NoRequest, Url, arrive, peer};
use weir_telemetry::records::record;
use weir_telemetry::records::recorder::{Recorder, RequestStart};

/// The real result.
#[derive(Debug)]
pub struct Really {
    /// Rules that were followed, by their numbers.
    pub followed: Vec<u32>,
    /// The outcome of the firewall, and the score.
    pub firewall: Option<(String, i64)>,
    /// How it ended, or has got so far.
    pub ended: Ended,
    /// The record; `None`: the request was refused before.
    pub notes: Option<Box<record::Notes>>,
}

/// How a request ended, or has got so far.
#[derive(Debug)]
pub enum Ended {
    /// A member has it.
    Member(AtMember),
    /// It was answered.
    Answered(u16, &'static str),
    /// It waits.
    Queued(String),
    /// Its connection is closed, or reset.
    Closed(&'static str, bool),
}

/// A request at its member.
#[derive(Debug)]
pub struct AtMember {
    pub pool: String,
    pub member: String,
    pub request_line: String,
}

/// Tools that requests use one after another.
pub fn tools(sources: Sources) -> Tools {
    let mut tools = Tools::new(|| 0, sources);
    tools.notes_rules = true;
    tools
}

/// Decides about a request. What is returned with it holds its place at a member, and what it uses.
pub fn run(
    table: &LocalTable,
    asked: &Asked,
    explained: &Explanation,
    clock: Clock,
    tools: Tools,
) -> (Really, Option<Exchange>, Tools) {
    let url = Url::parse(&asked.url).expect("a URL");
    let server = table.server(&explained.listener.virtual_server).expect("it is there");
    let mut recorder = Recorder::new(None);
    recorder.follow(true);
    let received = match arrive(asked, &url, server) {
        Ok(received) => received,
        Err(NoRequest::Malformed(error)) => {
            let ended = Ended::Answered(error.status(), "client_malformed");
            let really = Really { followed: Vec::new(), firewall: None, ended, notes: None };
            return (really, None, tools);
        }
        Err(NoRequest::Unclear(why)) => panic!("{why}"),
        Err(NoRequest::Reset(error)) => panic!("{error}"),
    };
    let (head, input) = (&received.head, &received.input);
    let masks = Masks::of(head, input, &Default::default());
    let listen = format!("127.0.0.1:{}", url.port.expect("a port")).parse().expect("an address");
    let from =
        RequestOrigin { peer: Some(peer(asked)), listen: Some(listen), tls: None, entry: None };
    let arrival = Arrival {
        head,
        input,
        server,
        from: Some(from),
        is_early: false,
        is_bound: false,
        is_misdirected: false,
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
    let (peer, listen) = (Some(peer(asked)), Some(listen));
    let begun = RequestStart { key, head, input, server, peer, listen, tls: None };
    assert!(recorder.begin(&begun, clock), "it is recorded");
    let mut world =
        DryEdge::new(tools, clock, &masks, Recording { recorder, clock, firewall: None });
    let begin = stages::begin;
    let verdict = begin(&mut world, &mut transactions, &arrival, registration, Vec::new());
    let Some(Transaction::Http(mut exchange)) = transactions.remove(key) else { unreachable!() };
    exchange.enter(&mut world, head, verdict);
    while !exchange.ends.is_over()
        && exchange.ends.phase.wait_state().waits()
        && !world.notes.is_queued
    {
        exchange.resume(&mut world);
    }
    if !exchange.ends.is_over() && exchange.takes_body() {
        let body = &received.body;
        exchange.client_data(&mut world, (body, &Pieces::whole(body.len())), End::Data);
    }
    let (tools, mut recording, notes) = world.into_parts();
    let is_over = exchange.ends.is_over();
    let followed = match &exchange.ends.context {
        Some(context) => context.followed.clone(),
        None => notes.followed.clone(),
    };
    let (firewall, ended) = (recording.firewall, ended(&exchange, notes));
    let notes = recording.recorder.take(key);
    let really = Really { followed, firewall, ended, notes };
    (really, (!is_over).then_some(exchange), tools)
}

/// Records the decisions as a worker does.
struct Recording {
    recorder: Recorder,
    clock: Clock,
    /// The outcome of the firewall, and the score.
    firewall: Option<(String, i64)>,
}

impl Witness for Recording {
    fn note(&mut self, step: Step<'_, '_>) {
        if let Step::Inspected { inspection, outcome, .. } = &step {
            self.firewall = Some((outcome.name().into(), inspection.score()));
        }
        self.recorder.note(step, self.clock);
    }
}

fn ended(exchange: &Exchange, notes: Notes) -> Ended {
    if let Some(answer) = notes.answer {
        return Ended::Answered(answer.status, notes.ended.map_or("", Termination::as_str));
    }
    if let Some(NextClientState::Cut { termination, must_reset }) = &exchange.ends.over {
        return Ended::Closed(termination.as_str(), *must_reset);
    }
    let settings = exchange.ends.tries.pool.settings();
    let pool = settings.name.to_string();
    if notes.is_queued {
        return Ended::Queued(pool);
    }
    let member = notes.sought.and_then(|sought| sought.member).expect("it has a member");
    let member = settings.members[member as usize].label.to_string();
    let request_line = notes.sent.expect("the member is asked").request_line;
    Ended::Member(AtMember { pool, member, request_line })
}
