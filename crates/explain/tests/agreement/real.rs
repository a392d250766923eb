//! Requests that are really decided about, by the live state itself. Only their members are not there.

use weir_core::clock::Clock;
use weir_dataplane::records::record::Notes;
use weir_dataplane::records::recorder::{Begun, Recorder};
use weir_exchange::arena::{Arena, Key, OfExchange};
use weir_exchange::edge::{Edge, Flow, Lag, Passing, Reach, Release, Side, Turn};
use weir_exchange::local::around::Sources;
use weir_exchange::local::table::LocalTable;
use weir_exchange::parts::account::Logged;
use weir_exchange::parts::arrival::{Arrival, Registration, Whence};
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::ends::{After, Ends};
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::messages::{HeadKind, Message, OutHead, OwnAnswer, Sending};
use weir_exchange::parts::notice::Notice;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{Need, Request};
use weir_exchange::parts::stream_end::StreamEnd;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::witness::{Step, Witness};
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::exchange::Exchange;
use weir_explain::Asked;
use weir_explain::asked::{NoRequest, Url};
use weir_explain::explanation::Explanation;

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
    pub notes: Option<Box<Notes>>,
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
    let mut world = World { tools, clock, seen: Seen::default(), recorder };
    let received = match asked.receive(&url, &server.limits, server.http.target) {
        Ok(received) => received,
        Err(NoRequest::Malformed(error)) => {
            let ended = Ended::Answered(error.status(), "client_malformed");
            let really = Really { followed: Vec::new(), firewall: None, ended, notes: None };
            return (really, None, world.tools);
        }
        Err(NoRequest::Unclear(why)) => panic!("{why}"),
    };
    let (head, input) = (&received.head, &received.input);
    let listen = format!("127.0.0.1:{}", url.port.expect("a port")).parse().expect("an address");
    let from = Whence { peer: Some(asked.peer()), listen: Some(listen), tls: None, entry: None };
    let arrival = Arrival {
        head,
        input,
        server,
        from: Some(from),
        is_early: false,
        is_misdirected: false,
        may_go_on: true,
    };
    let mut transactions = Arena::<OfExchange, Transaction>::default();
    let key = transactions.next_key();
    let registration = Registration {
        key,
        client: Key::NOTHING,
        stream: None,
        logged: Logged::Nothing,
        log_request: Vec::new(),
    };
    let (peer, listen) = (Some(asked.peer()), Some(listen));
    let begun = Begun { key, head, input, server, peer, listen, tls: None };
    assert!(world.recorder.begin(&begun, clock), "it is recorded");
    let begin = Exchange::begin;
    let verdict = begin(&mut world, &mut transactions, &arrival, registration, Vec::new());
    let Some(Transaction::Http(mut exchange)) = transactions.remove(key) else { unreachable!() };
    exchange.enter(&mut world, head, verdict);
    while exchange.ends.parked.waits() && !world.seen.is_queued {
        exchange.go_on(&mut world);
    }
    if !exchange.is_over() && exchange.takes_body() {
        let body = &received.body;
        exchange.client_data(&mut world, (body, &Pieces::whole(body.len())), End::Data);
    }
    if let Some(remembered) = &exchange.ends.remembered {
        world.seen.followed.clone_from(&remembered.followed);
    }
    let is_over = exchange.is_over();
    let ended = world.ended(&exchange);
    let Seen { followed, firewall, .. } = world.seen;
    let notes = world.recorder.take(key);
    let really = Really { followed, firewall, ended, notes };
    (really, (!is_over).then_some(exchange), world.tools)
}

#[derive(Default)]
struct Seen {
    followed: Vec<u32>,
    firewall: Option<(String, i64)>,
    member: Option<u32>,
    request_line: String,
    status: Option<u16>,
    why: Option<Termination>,
    is_queued: bool,
}

struct World {
    tools: Tools,
    clock: Clock,
    seen: Seen,
    recorder: Recorder,
}

impl World {
    fn ended(&self, exchange: &Exchange) -> Ended {
        let why = self.seen.why.map_or("", Termination::as_str);
        if let Some(status) = self.seen.status {
            return Ended::Answered(status, why);
        }
        if let Some(After::Cut { termination, must_reset }) = &exchange.ends.over {
            return Ended::Closed(termination.as_str(), *must_reset);
        }
        let pool = &exchange.ends.tries.pool;
        let name = pool.settings().name.to_string();
        if self.seen.is_queued {
            return Ended::Queued(name);
        }
        let member = self.seen.member.expect("it has a member");
        Ended::Member(AtMember {
            pool: name,
            member: pool.settings().members[member as usize].label.to_string(),
            request_line: self.seen.request_line.clone(),
        })
    }
}

impl Witness for World {
    fn note(&mut self, step: Step<'_, '_>) {
        if let Step::Inspected { inspection, outcome, .. } = &step {
            self.seen.firewall = Some((outcome.name().into(), inspection.score()));
        }
        self.recorder.note(step, self.clock);
    }
}

impl Edge for World {
    fn head(&mut self, _: &mut Ends, _: &OutHead<'_>, _: HeadKind, _: bool) -> Message {
        self.tools.scratch.take()
    }

    fn send(&mut self, _: &mut Ends, head: Message, _: &Sending<'_>) {
        self.tools.scratch.give(head);
    }

    fn answer(&mut self, _: &mut Ends, answer: &OwnAnswer<'_>) {
        self.seen.status = Some(answer.status);
    }

    fn hold(&mut self, _: &mut Ends, _: (&[u8], &Pieces), _: End<'_>) {}

    fn let_on(&mut self, _: &mut Ends) -> Option<(Vec<u8>, OwnedEnd)> {
        None
    }

    fn connect(
        &mut self,
        ends: &mut Ends,
        member: u32,
        _: Need,
        _: bool,
    ) -> Result<(), MemberFailure> {
        self.seen.member = Some(member);
        ends.attempt.connection = Key::from_bits(1 << 32);
        Ok(())
    }

    fn ask(&mut self, ends: &mut Ends, request: &mut Request, _: (&[u8], &Pieces), _: End<'_>) {
        request.send();
        self.seen.request_line = match ends.tries.pool.settings().http2 {
            true => {
                let of = |name: &[u8]| {
                    let found = request.lines().find(|line| line.0 == name);
                    String::from_utf8_lossy(found.expect("it is there").1).into_owned()
                };
                format!("{} {} HTTP/2", of(b":method"), of(b":path"))
            }
            false => {
                let line = request.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
                String::from_utf8_lossy(line).into_owned()
            }
        };
        // Ids of sessions are masked.
        self.seen.request_line = self.seen.request_line.replace("=abcdef", "=***");
    }

    fn ask_again(&mut self, _: &mut Ends, _: &mut Request, _: &[u8]) {
        unreachable!("no member fails");
    }

    fn reach(&mut self, ends: &Ends, _: &Request) -> Option<Reach> {
        ends.attempt.connection?;
        Some(Reach { awaits_settings: false, is_connecting: false, timeout_ms: 1_000 })
    }

    fn release(&mut self, ends: &mut Ends, _: Release) -> bool {
        ends.attempt.connection = None;
        false
    }

    fn is_dry(&mut self, _: &Ends) -> bool {
        true
    }

    fn pass(&mut self, _: &mut Ends, _: Side, _: Passing<'_>) {}

    fn half_close(&mut self, _: &mut Ends, _: Side) {}

    fn lag(&mut self, _: &Ends, _: Side) -> Lag {
        Lag::None
    }

    fn flow(&mut self, _: &mut Ends, _: Side, _: Flow) {}

    fn due(&mut self, _: &mut Ends, _: Side, _: Option<u64>) {}

    fn patience_until_ms(&mut self, _: &Ends, _: Side, _: u64) -> u64 {
        0
    }

    fn line_up(&mut self, ends: &mut Ends, _: bool) -> bool {
        let pool = &ends.tries.pool;
        self.seen.is_queued = pool.settings().queue.is_some() && !pool.is_down(self.clock);
        self.seen.is_queued
    }

    fn delay(&mut self, _: &Ends, _: u64) {}

    fn finish(&mut self, ends: &mut Ends, why: Termination, _: StreamEnd) {
        self.seen.why = Some(why);
        if let Some(remembered) = &ends.remembered {
            self.seen.followed.clone_from(&remembered.followed);
        }
    }

    fn tell(&mut self, _: Notice<'_>) {}

    fn turn(&self) -> Turn {
        Turn { worker: 0, clock: self.clock, is_draining: false }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    fn recycle(&mut self, _: Vec<u8>) {}
}
