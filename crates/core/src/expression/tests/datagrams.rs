//! Values read from datagrams: their meaning, and where they are refused.

use crate::expression::testing::Sample;
use crate::expression::{
    Condition, DatagramFacts, ExpressionError, Phase, Purpose, Scope, Template,
};

const SIP: &[u8] = b"BYE sip:b@example SIP/2.0\r\n\
    Via: SIP/2.0/UDP a\r\n\
    i: one@example\r\n\
    Call-ID: two@example\r\n\
    Subject: I know\r\n you are there\r\n\
    Empty:\r\n\r\n";
const RADIUS: &[u8] = b"\x04\x01\x00\x26aaaaaaaaaaaaaaaa\x2c\x05one\x1a\x0d\0\0\0\x09\x01\x07a=b,c";
const QUIC_LONG: &[u8] = b"\xc0\x00\x00\x00\x01\x03\xab\xcd\xef\x00rest";
const QUIC_SHORT: &[u8] = b"\x40\x01\x02\x03\x04\x05";

fn render(bytes: &'static [u8], template: &str) -> String {
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    sample.datagram = Some(DatagramFacts { bytes, quic_id_bytes: 4 });
    let compiled = Template::compile(template, Purpose::Plain, &mut sample.scope())
        .unwrap_or_else(|error| panic!("{template}: {error}"));
    assert!(compiled.reads_datagram() && !compiled.reads_request(), "{template}");
    let mut out = Vec::new();
    sample.evaluate(|evaluation| {
        evaluation.render(&compiled, &mut out);
        // Once more, from cached values.
        let mut again = Vec::new();
        evaluation.render(&compiled, &mut again);
        assert_eq!(out, again, "{template}");
    });
    String::from_utf8(out).expect("a text")
}

#[test]
fn values() {
    for (bytes, template, expected) in [
        (QUIC_SHORT, "${datagram.bytes(0, 2)}-${datagram.bytes(5, 1)}", "4001-05"),
        (QUIC_SHORT, "${datagram.bytes(5, 2)}${datagram.bytes(65535, 1024)}", ""),
        (SIP, "${sip.headers['Call-ID']}", "one@example"),
        (SIP, "${sip.headers['I']}|${sip.headers['v']}", "one@example|SIP/2.0/UDP a"),
        (SIP, "${sip.headers['subject']}", "I know you are there"),
        (SIP, "${sip.headers['None']}", ""),
        (SIP, "${'empty' in sip.headers ? 'is' : 'no'}${'x' in sip.headers ? 'is' : 'no'}", "isno"),
        (RADIUS, "${radius.attributes[44]}", "one"),
        (RADIUS, "${radius.vendor_attribute(9, 1)}${radius.vendor_attribute(9, 2)}", "a=b,c"),
        (
            RADIUS,
            "${44 in radius.attributes ? 'is' : 'no'}${1 in radius.attributes ? 'is' : 'no'}",
            "isno",
        ),
        (RADIUS, "${radius.attributes[44].size()}", "3"),
        (QUIC_LONG, "${quic.connection_id}", "abcdef"),
        (QUIC_SHORT, "${quic.connection_id}", "01020304"),
        (&QUIC_SHORT[..4], "${quic.connection_id}", ""),
        // A datagram of another protocol has none of them.
        (SIP, "${radius.attributes[44]}", ""),
        (RADIUS, "${sip.headers['Call-ID']}", ""),
        (b"", "${datagram.bytes(0, 1)}${quic.connection_id}${radius.attributes[1]}", ""),
    ] {
        assert_eq!(render(bytes, template), expected, "{template}");
    }
}

/// Without a datagram, values are empty and nothing fails.
#[test]
fn values_without_a_datagram() {
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for text in [
        "datagram.bytes(0, 1) == ''",
        "!('a' in sip.headers)",
        "radius.attributes[1] == ''",
        "quic.connection_id == ''",
    ] {
        let condition = Condition::compile(text, &mut sample.scope()).expect(text);
        assert!(sample.evaluate(|evaluation| evaluation.holds(&condition)), "{text}");
    }
}

fn error(text: &str, has_datagrams: bool) -> ExpressionError {
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let Sample { data, pools, slots, .. } = &mut sample;
    let mut scope = Scope { phase: Phase::Request, has_datagrams, data, pools, slots };
    match Condition::compile(text, &mut scope) {
        Err(error) => error,
        Ok(_) => panic!("no error: {text}"),
    }
}

#[test]
fn datagrams_are_not_everywhere() {
    for (text, name) in [
        ("datagram.bytes(0, 1) == ''", "datagram"),
        ("sip.headers['a'] == ''", "sip"),
        ("'a' in sip.headers", "sip"),
        ("radius.attributes[44] == ''", "radius"),
        ("radius.vendor_attribute(9, 1) == ''", "radius"),
        ("quic.connection_id == ''", "quic"),
    ] {
        let found = error(text, false);
        let message = format!("`{name}` is read from datagrams, and there is no datagram here");
        assert_eq!(found.message, message, "{text}");
        assert_eq!(&text[found.range], name);
        let help = found.help.expect("what it is for");
        assert!(help.contains("`type: udp` only"), "{help}");
    }
}

#[test]
fn mistakes() {
    for (text, expected) in [
        ("datagram.bytes(0) == ''", "`bytes` takes two arguments, not 1"),
        ("datagram.bytes(-1, 1) == ''", "an offset is from 0 to 65535, not -1"),
        ("datagram.bytes(0, 0) == ''", "a length is from 1 to 1024, not 0"),
        ("datagram.bytes(0, 1025) == ''", "a length is from 1 to 1024, not 1025"),
        ("datagram.bytes('0', 1) == ''", "an offset must be a literal integer"),
        (
            "datagram.bytes == ''",
            "datagram has no field `bytes`; it is called with two numbers: `datagram.bytes(…, …)`",
        ),
        (
            "datagram.byte(0, 1) == ''",
            "a group of fields has no method `byte`; did you mean `bytes`?",
        ),
        ("datagram == ''", "`==` cannot compare a group of fields with text"),
        (
            "!datagram",
            "a boolean is wanted here, and this is a group of fields; for example `datagram.bytes(…, …)`",
        ),
        ("sip.header['a'] == ''", "sip has no field `header`; did you mean `headers`?"),
        (
            "sip.headers.to == ''",
            "sip.headers is read by a name in brackets; write `sip.headers['to']`",
        ),
        ("sip.headers['a b'] == ''", "no header can be called `a b`"),
        ("radius.attributes['44'] == ''", "the number of an attribute must be a literal integer"),
        ("radius.attributes[0] == ''", "the number of an attribute is from 1 to 255, not 0"),
        ("256 in radius.attributes", "the number of an attribute is from 1 to 255, not 256"),
        (
            "radius.attributes.a == ''",
            "radius.attributes is read by a number in brackets; write `radius.attributes[44]`",
        ),
        (
            "'44' in radius.attributes",
            "text cannot be in a map; write a number: `44 in radius.attributes`",
        ),
        ("44 in sip.headers", "an integer cannot be in a map"),
        (
            "radius.vendor_attribute(16777216, 1) == ''",
            "the number of a vendor is from 1 to 16777215, not 16777216",
        ),
        (
            "connection_id == ''",
            "nothing is called `connection_id`; did you mean `quic.connection_id`?",
        ),
    ] {
        assert_eq!(error(text, true).to_string(), expected, "{text}");
    }
}
