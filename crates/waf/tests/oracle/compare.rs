//! Runs a case in the engine, with and without precomputed decisions, in one go and in turns, and in the interpreter.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use weir_waf::inspection::{
    BodyLength, CommonTexts, Inspection, Limit, Mode, Options, Question, Request, Response, Turn,
    Verdict,
};
use weir_waf::plan::{Files, RuleSet, Settings, View};
use weir_waf::seclang::{Phase, parse};

use crate::generator::{Case, Sent, WORD_FILE, WORD_FILE_TEXT};
use crate::interpreter::{Held, Machine, Program, Words};
use crate::turns::{self, judged, judged_response, judged_with};

const FILE: &str = "rules.conf";
const CLIENT: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)), 4_711);
const SERVER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

/// The result of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    pub would_be: Option<Verdict>,
    pub is_audited: bool,
    pub held: Vec<Held>,
    /// The final values of `TX`. They are not compared for a request whose evaluation a rule has ended, because the engine
    /// sets some values at the start, even if the rules that set them are not reached.
    pub numbers: Vec<(String, i64)>,
}

/// A request and its response.
pub struct Exchange<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub protocol: &'a [u8],
    pub headers: &'a [(&'a [u8], &'a [u8])],
    pub body: &'a [u8],
    pub status: u16,
    pub answer_headers: &'a [(&'a [u8], &'a [u8])],
    pub answer: &'a [u8],
}

impl<'a> Exchange<'a> {
    fn request(&self) -> Request<'a> {
        Request {
            client: CLIENT,
            server: SERVER,
            method: self.method,
            received_target: self.target,
            target: self.target,
            protocol: self.protocol,
            headers: self.headers,
            body: BodyLength::Known(self.body.len() as u64),
            changed_cookies: &[],
            unique_id: b"foo-1",
        }
    }

    fn response(&self) -> Response<'a> {
        Response { status: self.status, protocol: b"HTTP/1.1", headers: self.answer_headers }
    }
}

/// The result of the engine.
pub fn by_engine(
    view: &Arc<View>,
    mode: Mode,
    exchange: &Exchange<'_>,
    names: &[String],
) -> Outcome {
    by_engine_in_turns(view, mode, exchange, names, Turn::WHOLE)
}

/// The result of the engine in these turns.
pub fn by_engine_in_turns(
    view: &Arc<View>,
    mode: Mode,
    exchange: &Exchange<'_>,
    names: &[String],
    turn: Turn,
) -> Outcome {
    let inspection = Inspection::begin(Arc::clone(view), &Options::new(mode), &exchange.request());
    outcome(inspection, exchange, names, turn)
}

/// The result of the engine if it has cached every text of the request.
pub fn by_engine_that_knows(
    view: &Arc<View>,
    mode: Mode,
    exchange: &Exchange<'_>,
    names: &[String],
) -> Outcome {
    let common = CommonTexts::new(Arc::clone(view));
    let fields = exchange.headers.iter().flat_map(|(name, value)| [*name, *value]);
    let arguments = exchange.target.split(|byte| matches!(byte, b'?' | b'&' | b'='));
    let texts = fields.chain(arguments).chain([exchange.method, exchange.target, exchange.body]);
    common.teach(&texts.collect::<Vec<_>>());
    let inspection = common.begin(&Options::new(mode), &exchange.request());
    outcome(inspection, exchange, names, Turn::WHOLE)
}

fn outcome(
    inspection: Inspection,
    exchange: &Exchange<'_>,
    names: &[String],
    turn: Turn,
) -> Outcome {
    let (mut inspection, verdict) = through(inspection, exchange, turn);
    inspection.logging();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let held = inspection.matches().iter().filter(|it| it.is_logged || it.is_audited);
    let held = held.map(|it| Held {
        id: it.id,
        message: text(&it.message),
        log_data: text(&it.log_data),
        values: it.values.iter().map(|it| (text(&it.variable), text(&it.value))).collect(),
        is_logged: it.is_logged,
        is_audited: it.is_audited,
    });
    Outcome {
        verdict,
        would_be: inspection.would_be().cloned(),
        is_audited: inspection.is_audited(),
        held: held.collect(),
        numbers: names.iter().map(|name| (name.clone(), inspection.number(name))).collect(),
    }
}

/// Evaluates the phases until a verdict.
fn through(inspection: Inspection, exchange: &Exchange<'_>, turn: Turn) -> (Inspection, Verdict) {
    let (inspection, verdict) = judged(inspection, Question::Head, turn);
    if verdict != Verdict::Pass {
        return (inspection, verdict);
    }
    let (mut inspection, verdict) = judged_with(inspection, exchange.body, turn);
    // A body that cannot be parsed does not end the evaluation.
    if !matches!(verdict, Verdict::Pass | Verdict::Exceeded(Limit::Body)) {
        return (inspection, verdict);
    }
    inspection.response(&exchange.response());
    let (inspection, verdict) = judged(inspection, Question::ResponseHead, turn);
    if verdict != Verdict::Pass {
        return (inspection, verdict);
    }
    judged_response(inspection, exchange.answer, turn)
}

/// The result of the interpreter.
pub fn by_interpreter(
    program: &Program,
    settings: &[(String, String)],
    mode: Mode,
    exchange: &Exchange<'_>,
) -> Outcome {
    let mut machine = Machine::new(program, settings, mode, &exchange.request());
    let mut verdict = Verdict::Pass;
    for phase in Phase::ALL.into_iter().take(4) {
        match phase {
            Phase::RequestBody => machine.body(exchange.body),
            Phase::ResponseHeaders => machine.response(&exchange.response()),
            Phase::ResponseBody => machine.response_content(exchange.answer),
            _ => {}
        }
        verdict = machine.phase(phase);
        if verdict != Verdict::Pass {
            break;
        }
    }
    let _ = machine.phase(Phase::Logging);
    let is_whole = verdict == Verdict::Pass && !machine.is_ended;
    let names = program.names.iter().filter(|_| is_whole);
    Outcome {
        verdict,
        would_be: machine.would_be.clone(),
        is_audited: machine.is_audited,
        numbers: names.map(|name| (name.clone(), machine.tx(name))).collect(),
        held: machine.held.into_iter().filter(|it| it.is_logged || it.is_audited).collect(),
    }
}

/// The result of a case.
pub enum Comparison {
    /// All agree. The number of rules that matched, for each request.
    Same(Vec<usize>),
    /// The engine refuses the rules.
    Refused(String),
    Different(String),
}

/// Compares all outcomes, in both modes.
pub fn compare(case: &Case) -> Comparison {
    let text = case.rules();
    let compiled = match RuleSet::compile(&[FILE.to_owned()], &mut InMemory(&text)) {
        Ok(compiled) => Arc::new(compiled),
        Err(problems) => return Comparison::Refused(format!("{problems:?}")),
    };
    let directives = parse(FILE, &text).expect("it has been compiled");
    let files = HashMap::from([(WORD_FILE.to_owned(), Words::of_file(WORD_FILE_TEXT.as_bytes()))]);
    let program = Program::new(&directives, files);
    let settings = Settings { variables: case.settings.clone() };
    let view = match View::new(Arc::clone(&compiled), &settings) {
        Ok(view) => Arc::new(view),
        Err(problems) => return Comparison::Refused(format!("{problems:?}")),
    };
    let plain = Arc::new(View::plain(compiled, &settings));
    let mut counts = Vec::new();
    for sent in &case.sent {
        match of_request(case, sent, &program, [&view, &plain]) {
            Ok(count) => counts.push(count),
            Err(what) => return Comparison::Different(what),
        }
    }
    Comparison::Same(counts)
}

/// Compares the outcomes for one request. Returns the number of matching rules.
fn of_request(
    case: &Case,
    sent: &Sent,
    program: &Program,
    [view, plain]: [&Arc<View>; 2],
) -> Result<usize, String> {
    let (target, body, headers) = (sent.target(), sent.content.bytes(), sent.all_headers());
    let exchange = Exchange {
        method: sent.method.as_bytes(),
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
        headers: &borrowed(&headers),
        body: body.as_bytes(),
        status: 200,
        answer_headers: &borrowed(&sent.answer_headers),
        answer: sent.answer.as_bytes(),
    };
    let mut count = 0;
    for mode in [Mode::Detect, Mode::Block] {
        let expected = by_interpreter(program, &case.settings, mode, &exchange);
        for (name, view) in [("View::new", view), ("View::plain", plain)] {
            let outcome = by_engine(view, mode, &exchange, &program.names);
            if let Some(what) = difference(&expected, &outcome, &program.unordered) {
                return Err(format!("{mode:?}, {name}: {what}"));
            }
        }
        let outcome = by_engine_that_knows(view, mode, &exchange, &program.names);
        if let Some(what) = difference(&expected, &outcome, &program.unordered) {
            return Err(format!("{mode:?}, with texts that were learned: {what}"));
        }
        let work_bytes_max = (target.len() * 37 % 700) as u64;
        for turn in [
            turns::SHORTEST,
            turns::of_work(work_bytes_max),
            // Rules are also left in the first turn.
            Turn { work_bytes_max: work_bytes_max / 3, ..Turn::WHOLE },
        ] {
            let outcome = by_engine_in_turns(view, mode, &exchange, &program.names, turn);
            if let Some(what) = difference(&expected, &outcome, &program.unordered) {
                return Err(format!("{mode:?}, {turn:?}: {what}"));
            }
        }
        count += expected.held.len();
    }
    Ok(count)
}

/// The difference between the engine's result and the expected result. `rules`: rules that inspect values without a defined
/// order.
/// defined order.
pub fn difference(
    expected: &Outcome,
    outcome: &Outcome,
    unordered: &BTreeSet<u64>,
) -> Option<String> {
    let comparable = |outcome: &Outcome| -> Outcome {
        let mut outcome = outcome.clone();
        for held in outcome.held.iter_mut().filter(|held| unordered.contains(&held.id)) {
            held.values.clear();
        }
        outcome
    };
    let (expected, mut outcome) = (comparable(expected), comparable(outcome));
    if expected.numbers.is_empty() {
        outcome.numbers.clear();
    }
    if expected == outcome {
        return None;
    }
    let mut what = String::new();
    for (name, of) in [("expected", &expected), ("engine", &outcome)] {
        let Outcome { verdict, would_be, is_audited, .. } = of;
        what += &format!("\n  {name}: {verdict:?}, {would_be:?}, audited: {is_audited}");
        let other = if std::ptr::eq(of, &expected) { &outcome } else { &expected };
        for held in of.held.iter().filter(|held| !other.held.contains(held)) {
            what += &format!("\n    {held:?}");
        }
        for number in of.numbers.iter().filter(|number| !other.numbers.contains(number)) {
            what += &format!("\n    {number:?}");
        }
    }
    Some(what)
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&[u8], &[u8])> {
    pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

/// A rule file, with a file of words.
struct InMemory<'a>(&'a str);

impl Files for InMemory<'_> {
    fn find(&mut self, _: &str, name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            FILE => Ok(self.0.as_bytes().to_vec()),
            WORD_FILE => Ok(WORD_FILE_TEXT.as_bytes().to_vec()),
            _ => Err("there is no such file".into()),
        }
    }
}
