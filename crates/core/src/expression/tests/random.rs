//! 100,000 random expressions of every type on random requests: compiled ones agree with the simple
//! evaluator.

use std::sync::Arc;

use super::reference::{Found, Model, Reference};
use crate::expression::testing::{Sample, data_sets, pools, slots};
use crate::expression::{Condition, Fields, Phase, Scope, Value, parser};
use weir_testing::Random;

const CASES: usize = 100_000;
/// Expressions that are compiled before fields are made for them.
const BATCH: usize = 1000;
/// Consecutive expressions on the same request, which share cached values.
const CASES_PER_REQUEST: usize = 10;
const REQUESTS: usize = 300;

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len())]
}

/// Some of the choices, each possibly several times.
fn some_of<T: Copy>(random: &mut Random, count_max: usize, choices: &[T]) -> Vec<T> {
    (0..random.below(count_max + 1)).map(|_| one_of(random, choices)).collect()
}

const HEADERS: [(&str, &str); 7] = [
    ("X-A", "1"),
    ("x-a", "/a"),
    ("X-A", ""),
    ("X-B", "AbC"),
    ("x-b", "x, y"),
    ("Accept", "\u{e4}/*"),
    ("X-C", "a.example"),
];
const COOKIES: [(&str, &str); 5] =
    [("s", "1"), ("s", "2"), ("t", "\"b\""), ("T", ""), ("u", "/a/b")];
const SET_COOKIES: [(&str, &str); 5] = [
    ("Set-Cookie", "s=1; Path=/"),
    ("set-cookie", "s = 2 ;T=3"),
    ("Set-Cookie", "T=;s=4"),
    ("Set-Cookie", "t"),
    ("Set-Cookie", "u=a=b; Secure"),
];
const QUERY: [(&str, &str); 8] = [
    ("q", "1"),
    ("q", "a+b"),
    ("%71", "%2Fa"),
    ("r", "%zz%4"),
    ("r", ""),
    ("x+y", "GET"),
    ("s", "%c3%a4"),
    ("s", "A%42"),
];

fn model(random: &mut Random) -> Model {
    Model {
        method: one_of(random, &["GET", "POST", "get", "PROPFIND"]),
        path: one_of(
            random,
            &[
                ("/", "/", "/"),
                ("/a", "/a", "/a"),
                ("/a/b", "/a/b", "/a/b"),
                ("/a/./c/../b", "/a/b", "/a/b"),
                ("/api/%7ejoe.png", "/api/~joe.png", "/api/~joe.png"),
                ("/admin%3fx%3a", "/admin%3Fx:", "/admin%3Fx%3A"),
                ("//A//", "/A/", "/A/"),
                ("/a;b=c/b;d", "/a/b", "/a;b=c/b;d"),
            ],
        ),
        query: random.percent(70).then(|| some_of(random, 4, &QUERY)),
        host: one_of(
            random,
            &[
                ("a.example", "a.example"),
                ("A.Example:8080", "a.example"),
                ("b.", "b"),
                ("H1.example.:1", "h1.example"),
                ("[2001:DB8::1]:80", "[2001:db8::1]"),
                ("10.0.0.1", "10.0.0.1"),
            ],
        ),
        headers: some_of(random, 5, &HEADERS),
        cookies: (0..random.below(3)).map(|_| some_of(random, 3, &COOKIES)).collect(),
        client: one_of(
            random,
            &[
                Some("10.0.0.1:1"),
                Some("192.0.2.1:2"),
                Some("192.0.2.80:443"),
                Some("[::ffff:10.9.9.9]:1"),
                Some("[2001:db8::1]:40000"),
                Some("[::1]:1"),
                None,
            ],
        )
        .map(|address| address.parse().unwrap()),
        status: one_of(random, &[200, 301, 404, 503]),
        response_headers: {
            let mut headers = some_of(random, 3, &HEADERS);
            headers.extend(some_of(random, 2, &SET_COOKIES));
            headers
        },
        has_token: random.percent(60),
    }
}

const TEXTS: [&str; 19] = [
    "",
    "a",
    "b",
    "x",
    "/",
    "/a",
    "/a/b",
    "GET",
    "a.example",
    "b",
    "1",
    "2",
    "AbC",
    "10.0.0.1",
    "-12",
    "\u{e4}",
    "'",
    "\\",
    "\n",
];
const NAMES: [&str; 10] = ["x-a", "X-B", "Accept", "host", "cookie", "q", "r", "s", "x y", "T"];
const CLAIM_NAMES: [&str; 5] = ["sub", "groups", "level", "exp", "none"];
const ADDRESSES: [&str; 5] = ["10.0.0.1", "192.0.2.1", "::1", "2001:db8::1", "::ffff:10.9.9.9"];
const NETWORKS: [&str; 7] = [
    "10.0.0.0/8",
    "192.0.2.0/25",
    "0.0.0.0/0",
    "::/0",
    "2001:db8::/32",
    "192.0.2.80/32",
    "10.9.9.9",
];
const PATTERNS: [&str; 8] =
    ["", "^/a", "b$", "a|x", "^[A-Z]+$", "(?i)abc", "\\d+", "^(/[^/]*){2}$"];

fn literal(random: &mut Random) -> String {
    let text = one_of(random, &TEXTS);
    quote(random, text)
}

/// A literal of the text, in one of the ways to write it.
fn quote(random: &mut Random, text: &str) -> String {
    let quote = one_of(random, &["'", "\"", "'''"]);
    let mut literal = quote.to_owned();
    for char in text.chars() {
        match char {
            '\n' => literal += one_of(random, &["\\n", "\\012", "\\x0a"]),
            '\\' | '\'' | '"' => literal.extend(['\\', char]),
            char if random.percent(5) => literal += &format!("\\u{:04x}", char as u32),
            char => literal.push(char),
        }
    }
    literal + quote
}

fn list(random: &mut Random, choices: &[&str]) -> String {
    // Beyond the size of a small set now and then.
    let texts = some_of(random, 12, choices);
    let literals: Vec<String> = texts.iter().map(|text| quote(random, text)).collect();
    format!("[{}]", literals.join(", "))
}

/// Possible claims of a token.
fn claim(random: &mut Random) -> String {
    let (reader, name) = (one_of(random, &["api", "api", "other"]), one_of(random, &CLAIM_NAMES));
    format!("jwt['{reader}'].claims[{}]", quote(random, name))
}

/// A header, parameter, cookie or claim that the request may have.
fn named(random: &mut Random) -> String {
    if random.percent(15) {
        return claim(random);
    }
    let map = one_of(random, &["headers", "query", "cookies"]);
    let name = match map {
        // A space cannot be in a header's name.
        "headers" => one_of(random, &NAMES[..8]),
        _ => one_of(random, &NAMES),
    };
    let group = if map == "headers" && random.percent(30) { "response" } else { "request" };
    if map == "cookies" && random.percent(30) {
        return format!("response.cookies[{}]", quote(random, name));
    }
    if map == "headers" && random.percent(30) {
        return format!("{group}.headers.all({})[{}]", quote(random, name), random.below(3));
    }
    format!("{group}.{map}[{}]", quote(random, name))
}

fn text(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 10 } else { 15 }) {
        0..=2 => literal(random),
        3..=5 => one_of(
            random,
            &[
                "request.method",
                "request.path",
                "request.raw_path",
                "request.raw_query",
                "request.target",
                "request.host",
                "request.scheme",
                "request.version",
                "request.user",
                "tls.sni",
                "tls.client_certificate.subject",
                "tls.client_certificate.serial",
                "tls.client_certificate.uris[0]",
                "member.name",
                "member.pool",
                "time.date",
                "time.clock",
            ],
        )
        .into(),
        6..=9 => named(random),
        10 => format!("({}).{}", text(random, depth - 1), made(random)),
        11 => format!("data['targets'][{}]", text(random, depth - 1)),
        12 => format!("string({})", integer(random, depth - 1)),
        13 => format!("string({})", address(random, depth - 1)),
        _ => choice(random, depth, text),
    }
}

/// Functions from text to text.
fn made(random: &mut Random) -> &'static str {
    one_of(
        random,
        &[
            "lowerAscii()",
            "part('/', 1)",
            "part('a', 0)",
            "segment(1)",
            "substring(1)",
            "substring(1, 3)",
            "replace('a', 'bc')",
            "urlDecode()",
            "base64Decode()",
        ],
    )
}

fn integer(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 5 } else { 10 }) {
        0 | 1 => {
            one_of(random, &["0", "1", "2", "404", "0x1bb", "-1", "9223372036854775807"]).into()
        }
        2 => "client.port".into(),
        3 => "server.port".into(),
        4 => one_of(
            random,
            &[
                "response.status",
                "time.hour",
                "time.minute",
                "time.weekday",
                "time.day",
                "time.month",
                "time.year",
                "random(1)",
                "member.port",
                "pools['web'].up_members",
                "pools['web'].connections",
                "request.headers.all('x-a').size()",
            ],
        )
        .into(),
        5 => format!("size({})", text(random, depth - 1)),
        6 => format!("int({})", text(random, depth - 1)),
        7 => format!("-({})", integer(random, depth - 1)),
        8 => {
            let operator = one_of(random, &["+", "-", "*", "/", "%"]);
            let (left, right) = (integer(random, depth - 1), integer(random, depth - 1));
            format!("(({left}) {operator} ({right}))")
        }
        _ => choice(random, depth, integer),
    }
}

fn address(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 3 } else { 4 }) {
        0 | 1 => "client.ip".into(),
        2 => one_of(random, &["server.ip", "member.ip"]).into(),
        _ => choice(random, depth, address),
    }
}

fn choice(random: &mut Random, depth: usize, value: fn(&mut Random, usize) -> String) -> String {
    let condition = boolean(random, depth - 1);
    let (yes, no) = (value(random, depth - 1), value(random, depth - 1));
    format!("({condition} ? {yes} : {no})")
}

fn boolean(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return leaf(random);
    }
    match random.below(9) {
        0..=2 => comparison(random, depth),
        3 | 4 => text_test(random, depth),
        5 => format!("!({})", boolean(random, depth - 1)),
        6 | 7 => {
            let operator = one_of(random, &[" && ", " || "]);
            let sides: Vec<String> =
                (0..2 + random.below(3)).map(|_| boolean(random, depth - 1)).collect();
            format!("({})", sides.join(operator))
        }
        _ => choice(random, depth, boolean),
    }
}

fn leaf(random: &mut Random) -> String {
    match random.below(12) {
        0 => one_of(random, &["true", "false"]).into(),
        10 => one_of(random, &["jwt['api'].valid", "jwt['other'].valid"]).into(),
        11 => {
            let name = one_of(random, &CLAIM_NAMES);
            match random.percent(50) {
                true => format!("{} in jwt['api'].claims", quote(random, name)),
                false => format!("{} in {}", text(random, 0), claim(random)),
            }
        }
        1 => {
            let map = one_of(random, &["headers", "query", "cookies"]);
            let name = one_of(random, &NAMES[..8]);
            format!("{} in request.{map}", quote(random, name))
        }
        2 => format!("{} in response.headers", quote(random, "x-a")),
        3 => format!("client.ip in {}", list(random, &NETWORKS)),
        4 => "client.ip in data['office']".into(),
        _ => text_test(random, 0),
    }
}

fn text_test(random: &mut Random, depth: usize) -> String {
    let depth = depth.saturating_sub(1);
    let subject = text(random, depth);
    let name = one_of(random, &["startsWith", "endsWith", "contains"]);
    match random.below(8) {
        7 => format!("{subject} in request.headers.all('{}')", one_of(random, &NAMES[..5])),
        0 => format!("{subject}.{name}({})", text(random, depth)),
        1 => format!("{subject}.{name}({})", literal(random)),
        2 => format!("{subject}.{name}Any({})", list(random, &TEXTS)),
        3 => format!("{subject}.{name}Any(data['{}'])", one_of(random, &["blocked", "prefixes"])),
        4 => {
            let pattern = one_of(random, &PATTERNS);
            format!("{subject}.matches({})", quote(random, pattern))
        }
        5 => format!("{subject} in {}", list(random, &TEXTS)),
        _ => {
            format!("{subject} in data['{}']", one_of(random, &["blocked", "prefixes", "targets"]))
        }
    }
}

fn comparison(random: &mut Random, depth: usize) -> String {
    let depth = depth - 1;
    let any = one_of(random, &["==", "!=", "<", "<=", ">", ">="]);
    let equality = one_of(random, &["==", "!="]);
    match random.below(9) {
        0..=2 => format!("{} {any} {}", text(random, depth), text(random, depth)),
        3 => format!("{} {any} {}", integer(random, depth), integer(random, depth)),
        4 => format!("{} in [1, 404, 2, 443]", integer(random, depth)),
        5 => format!("({}) {equality} ({})", boolean(random, depth), boolean(random, depth)),
        6 => format!("{} {equality} {}", address(random, depth), address(random, depth)),
        7 => {
            let literal = one_of(random, &ADDRESSES);
            format!("{} {equality} {}", quote(random, literal), address(random, depth))
        }
        _ => {
            let network = one_of(random, &NETWORKS);
            let network = quote(random, network);
            format!("cidr({network}).containsIP({})", address(random, depth))
        }
    }
}

enum Compiled {
    Condition(Condition),
    Value(Value),
}

fn compile(text: &str, is_condition: bool, scope: &mut Scope<'_>) -> Compiled {
    let compiled = if is_condition {
        Condition::compile(text, scope).map(Compiled::Condition)
    } else {
        Value::compile(text, scope).map(Compiled::Value)
    };
    compiled.unwrap_or_else(|error| panic!("{text}: {error} at {:?}", error.range))
}

#[test]
fn compiled_expressions_agree_with_the_plain_evaluator() {
    let mut random = Random::new(4);
    let models: Vec<Model> = (0..REQUESTS).map(|_| model(&mut random)).collect();
    let samples: Vec<Sample> = models
        .iter()
        .map(|model| {
            let mut sample = Sample::with_response(&model.request(), &model.response());
            sample.client = model.client;
            sample
        })
        .collect();
    let (data, pools) = (data_sets(), pools());
    let mut slots = slots();
    let mut reference = Reference::default();
    let (mut held, mut conditions) = (0, 0);
    for _ in 0..CASES / BATCH {
        let mut scope = Scope {
            phase: Phase::Response,
            has_datagrams: false,
            data: &data,
            pools: &pools,
            slots: &mut slots,
        };
        let batch: Vec<(String, Compiled)> = (0..BATCH)
            .map(|_| {
                let depth = random.below(4);
                let (text, is_condition) = match random.below(10) {
                    0..=5 => (boolean(&mut random, depth), true),
                    6 | 7 => (text(&mut random, depth), false),
                    8 => (integer(&mut random, depth), false),
                    _ => (address(&mut random, depth), false),
                };
                let compiled = compile(&text, is_condition, &mut scope);
                (text, compiled)
            })
            .collect();
        let mut fields = Fields::new(Arc::new(slots.clone()));
        for cases in batch.chunks(CASES_PER_REQUEST) {
            let number = random.below(REQUESTS);
            let mut evaluation = fields.begin(samples[number].facts());
            for (text, compiled) in cases {
                let node = parser::parse(text).unwrap();
                let expected = reference.evaluate(&node, &models[number]);
                match compiled {
                    Compiled::Condition(condition) => {
                        let holds = evaluation.holds(condition);
                        assert_eq!(Found::Boolean(holds), expected, "{text}\n{:?}", models[number]);
                        held += usize::from(holds);
                        conditions += 1;
                    }
                    Compiled::Value(value) => {
                        let mut out = Vec::new();
                        evaluation.value(value, &mut out);
                        assert_eq!(out, expected.text(), "{text}\n{:?}", models[number]);
                    }
                }
            }
        }
    }
    // Conditions that always hold, or never, would compare nothing.
    let percent = 100 * held / conditions;
    assert!((30..70).contains(&percent), "{percent}% of {conditions} hold");
}
