//! Values of any datagram: values in templates equal those of the parsers, and trains are split only between datagrams.
#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use weir_core::datagram::{TRAIN_BYTES_MAX, Train, quic, radius, sip};
use weir_core::expression::{
    DataSets, DatagramFacts, Facts, Fields, NoSurroundings, Phase, Purpose, Scope, Slots, Template,
};
use weir_http::message::{RequestHead, Scheme};

const TEXTS: [&str; 5] = [
    "${datagram.bytes(2, 8)}",
    "${sip.headers['Call-ID']}",
    "${radius.attributes[44]}",
    "${radius.vendor_attribute(9, 1)}",
    "${quic.connection_id}",
];
const QUIC_ID_BYTES: u8 = 8;

/// The compiled templates, and the slots for their values.
static COMPILED: LazyLock<(Vec<Template>, Arc<Slots>)> = LazyLock::new(|| {
    let (data, mut slots) = (DataSets::default(), Slots::new());
    let compile = |text: &&str| {
        let (phase, has_datagrams) = (Phase::Request, true);
        let mut scope =
            Scope { phase, has_datagrams, data: &data, pools: &BTreeMap::new(), slots: &mut slots };
        Template::compile(text, Purpose::Plain, &mut scope).expect("a template")
    };
    let templates = TEXTS.iter().map(compile).collect();
    (templates, Arc::new(slots))
});

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// The values of the parsers, in the order of [`TEXTS`].
fn expected(input: &[u8]) -> [Vec<u8>; 5] {
    let value = |found: Option<weir_http::message::Span>| {
        found.map_or(Vec::new(), |value| value.of(input).to_vec())
    };
    let mut call = Vec::new();
    if let Some(value) = sip::header(input, "call-id") {
        sip::unfold(value.span.of(input), &mut call);
    }
    let header = quic::Header::parse(input, usize::from(QUIC_ID_BYTES)).ok();
    [
        hex(input.get(2..10).unwrap_or_default()),
        call,
        value(radius::attribute(input, 44)),
        value(radius::vendor_attribute(input, 9, 1)),
        hex(header.map_or(b"", |header| header.destination().of(input))),
    ]
}

fn values(input: &[u8]) {
    let (templates, slots) = &*COMPILED;
    let mut fields = Fields::new(Arc::clone(slots));
    let head = RequestHead::default();
    let datagram = DatagramFacts { bytes: input, quic_id_bytes: QUIC_ID_BYTES };
    let facts = Facts {
        request: &head,
        request_input: b"",
        client: None,
        server: None,
        scheme: Scheme::Http,
        tls: None,
        response: None,
        datagram: Some(&datagram),
        around: &NoSurroundings,
        unix_s: None,
    };
    let mut evaluation = fields.begin(facts);
    for (template, expected) in templates.iter().zip(expected(input)) {
        let mut out = Vec::new();
        evaluation.render(template, &mut out);
        assert_eq!(out, expected);
    }
}

/// Checks a train of datagrams. The first two bytes are the length of each datagram.
fn train(input: &[u8]) {
    let [high, low, bytes @ ..] = input else { return };
    let size = usize::from(u16::from_be_bytes([*high, *low])).max(1);
    let train = Train { bytes, size };
    let all: Vec<&[u8]> = train.iter().collect();
    assert_eq!(all.len(), train.count());
    assert_eq!(all.concat(), bytes);
    let parts: Vec<Train<'_>> = train.parts().collect();
    assert!(parts.iter().all(|part| part.count() == 1 || part.bytes.len() <= TRAIN_BYTES_MAX));
    assert_eq!(parts.iter().flat_map(Train::iter).collect::<Vec<_>>(), all);
    for count in 0..=all.len().min(8) {
        let (head, tail) = train.split(count);
        let again = head.iter().chain(&tail).flat_map(Train::iter).collect::<Vec<_>>();
        assert_eq!(again, all);
    }
}

fuzz_target!(|input: &[u8]| {
    values(input);
    train(input);
});
