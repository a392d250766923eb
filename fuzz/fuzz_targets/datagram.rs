//! What is read of a datagram: connection IDs of QUIC, lines, attributes, bytes, and answers of DNS. No panic, and nothing but
//! what stands there.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weir_core::expression::{DataSets, Facts, Fields, Phase, Purpose, Scope, Slots, Template};
use weir_core::monitor::dns::Question;
use weir_core::persistence::quic::{Destination, ID_BYTES_MAX, destination, source};
use weir_http::message::{RequestHead, Scheme};

const TEXTS: [&str; 3] =
    ["${datagram.line('Call-ID')}", "${datagram.radius(44)}", "${datagram.bytes(2, 8)}"];

/// The templates, and what they read.
static COMPILED: LazyLock<(Vec<Template>, Slots)> = LazyLock::new(|| {
    let (data, mut slots) = (DataSets::default(), Slots::new());
    let compile = |text: &&str| {
        let mut scope = Scope { phase: Phase::Request, data: &data, slots: &mut slots };
        Template::compile(text, Purpose::Plain, &mut scope).expect("a template")
    };
    let templates = TEXTS.iter().map(compile).collect();
    (templates, slots)
});

fn is_within(input: &[u8], part: &[u8]) -> bool {
    part.is_empty() || input.windows(part.len()).any(|window| window == part)
}

fuzz_target!(|input: &[u8]| {
    match destination(input) {
        Some(Destination::Whole(id)) => assert!(id.len() <= ID_BYTES_MAX && is_within(input, id)),
        Some(Destination::Begins(rest)) => assert_eq!(rest, &input[1..]),
        None => {}
    }
    if let Some(id) = source(input) {
        assert!((1..=ID_BYTES_MAX).contains(&id.len()) && is_within(input, id));
    }
    let question = Question::new("a.example", 1).expect("a name");
    let id = input.first().map_or(0, |byte| u16::from(*byte));
    let _ = question.judge(input, id, 0, Some([192, 0, 2, 1].into()));

    let (templates, slots) = &*COMPILED;
    let mut fields = Fields::new(std::sync::Arc::new(slots.clone()));
    let head = RequestHead::default();
    let facts = Facts {
        request: &head,
        request_input: input,
        client: None,
        server: None,
        scheme: Scheme::Http,
        tls: None,
        response: None,
    };
    let mut made = templates.iter().map(|template| {
        let mut out = Vec::new();
        fields.begin(facts).render(template, &mut out);
        out
    });
    let (line, attribute) = (made.next().unwrap_or_default(), made.next().unwrap_or_default());
    assert!(is_within(input, &line) && !line.contains(&b'\n'));
    assert!(is_within(input, &attribute) && attribute.len() <= 253);
    let digits = made.next().unwrap_or_default();
    assert!(digits.len() == if input.len() >= 10 { 16 } else { 0 });
});
