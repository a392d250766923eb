//! Time per request of conditions, templates and rules: `cargo bench -p weir-core`; with the tests, each case runs
//! once. `cargo bench -p weir-core -- CASE COUNT` runs one case COUNT times, for callgrind (the difference of two
//! counts excludes the compilation of rules).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use weir_core::expression::{
    Condition, DataSets, Evaluation, Facts, Fields, NoSurroundings, Phase, Purpose, Scope, Slots,
    Template,
};
use weir_core::policy::RuleIndex;
use weir_http::h1::{HeadLimits, parse_request};
use weir_http::message::{RequestHead, Scheme};
use weir_http::path::TargetForm;

const REQUEST: &[u8] = b"GET /p3/photo.png?size=large HTTP/1.1\r\nHost: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: */*\r\nCookie: session=0123456789abcdef; theme=dark\r\n\r\n";

/// The cases and their work per request.
const CASES: [(&str, Case); 7] = [
    ("nothing", Case::Conditions(&[])),
    ("path", Case::Conditions(&["request.path.endsWith('.gif')"])),
    (
        "fields",
        Case::Conditions(&[
            "request.host == 'www.example.org'",
            "request.headers['x-user'] == 'joe'",
            "request.cookies['theme'] == 'light'",
            "request.query['size'] == 'small'",
            "client.ip in ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']",
        ]),
    ),
    ("regex", Case::Conditions(&["request.path.matches('^/p[0-9]+/[a-z]+\\\\.(gif|jpg)$')"])),
    ("client-ip", Case::Template("${client.ip}")),
    ("rules-10", Case::Rules(10)),
    ("rules-10000", Case::Rules(10_000)),
];

#[derive(Clone, Copy)]
enum Case {
    /// Evaluates these conditions.
    Conditions(&'static [&'static str]),
    /// Renders this template for a header.
    Template(&'static str),
    /// Queries an index over this many rules on hosts and path prefixes, and evaluates the candidates.
    Rules(usize),
}

/// The compiled input of a case.
struct Compiled {
    conditions: Vec<Condition>,
    template: Option<Template>,
    index: Option<RuleIndex>,
    fields: Fields,
}

impl Compiled {
    fn new(case: Case) -> Self {
        let (data, mut slots) = (DataSets::new(), Slots::new());
        let mut scope = Scope {
            phase: Phase::Request,
            has_datagrams: false,
            data: &data,
            pools: &BTreeMap::new(),
            slots: &mut slots,
        };
        let texts: Vec<String> = match case {
            Case::Conditions(texts) => texts.iter().map(|text| (*text).to_owned()).collect(),
            Case::Template(_) => Vec::new(),
            Case::Rules(count) => (0..count).map(rule).collect(),
        };
        let conditions: Vec<Condition> = texts
            .iter()
            .map(|text| Condition::compile(text, &mut scope).expect("a condition"))
            .collect();
        let template = match case {
            Case::Template(text) => {
                let template = Template::compile(text, Purpose::HeaderValue, &mut scope);
                Some(template.expect("a template"))
            }
            _ => None,
        };
        let index = matches!(case, Case::Rules(_))
            .then(|| RuleIndex::new(&conditions.iter().map(Some).collect::<Vec<_>>()));
        Self { conditions, template, index, fields: Fields::new(Arc::new(slots)) }
    }
}

/// A rule. One of the first ten matches the request; no other does.
fn rule(number: usize) -> String {
    if number.is_multiple_of(2) {
        format!("request.host == 'h{number}.example.com'")
    } else {
        format!("request.host != '' && request.path.startsWith('/p{number}/')")
    }
}

/// Runs a case `count` times. Returns the number of matching conditions, and the nanoseconds per request.
fn run(case: Case, count: u64) -> (u64, f64) {
    let mut head = RequestHead::new();
    let limits = HeadLimits { head_size_max: 4096, headers_max: 16 };
    assert!(parse_request(REQUEST, &limits, TargetForm::default(), &mut head).is_ok());
    let facts = Facts {
        request: &head,
        request_input: REQUEST,
        client: "203.0.113.77:40000".parse().ok(),
        server: "192.0.2.80:80".parse().ok(),
        scheme: Scheme::Http,
        tls: None,
        response: None,
        datagram: None,
        around: &NoSurroundings,
        unix_s: None,
    };
    let mut compiled = Compiled::new(case);
    let mut out = Vec::new();
    let mut candidates = Vec::new();
    let mut held = 0;
    let start = Instant::now();
    for _ in 0..count {
        let mut evaluation = compiled.fields.begin(black_box(facts));
        match (&compiled.index, &compiled.template) {
            (Some(index), _) => {
                let path = head.path(REQUEST);
                index.candidates(evaluation.host(), path, &mut candidates);
                let found = candidates.iter().map(|&rule| &compiled.conditions[rule as usize]);
                held += count_held(&mut evaluation, found);
            }
            (None, Some(template)) => {
                out.clear();
                evaluation.render(template, &mut out);
            }
            (None, None) => held += count_held(&mut evaluation, compiled.conditions.iter()),
        }
        black_box((&out, held));
    }
    (held, start.elapsed().as_nanos() as f64 / count as f64)
}

fn count_held<'c>(
    evaluation: &mut Evaluation<'_>,
    conditions: impl Iterator<Item = &'c Condition>,
) -> u64 {
    conditions.map(|condition| u64::from(evaluation.holds(condition))).sum()
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [name, count] = arguments.as_slice() {
        let (_, case) = CASES.iter().find(|(known, _)| known == name).expect("CASE is known");
        run(*case, count.parse().expect("COUNT is a number"));
        return;
    }
    // `cargo bench` passes this argument. Under `cargo test`, one round only shows that it works.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, count) = if is_bench { (9, 200_000) } else { (1, 1) };
    for (name, case) in CASES {
        let mut times_ns: Vec<f64> = (0..rounds)
            .map(|_| {
                let (held, time_ns) = run(case, count);
                assert_eq!(held, count * u64::from(matches!(case, Case::Rules(_))), "{name}");
                time_ns
            })
            .collect();
        times_ns.sort_by(f64::total_cmp);
        println!("{name:20} {:8.1} ns (median of {rounds})", times_ns[rounds / 2]);
    }
}
