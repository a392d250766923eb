//! Bodies that are encoded or truncated, or contradict the request head.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use weir_testing::encode;

use super::{
    BodyLength, Inspection, Limit, Mode, Options, Question, Request, Step, Turn, UnreadBody,
    Verdict, decoding_bytes_max, judge, judge_unread, may_read_later, read_first,
};
use crate::checks::{Check, Checks, Policy};
use crate::plan::{Files, RuleSet, Settings, View};

const RULES: &str = "SecRule ARGS|XML:/* \"@contains attack\" \"id:1,phase:2,deny,status:403\"
SecRule ARGS|ARGS_NAMES \"@contains '||1#\" \"id:2,phase:2,deny,status:403\"";
const DENIED: Verdict = Verdict::Deny { status: 403, rule: 1 };
const SHORT_DENIED: Verdict = Verdict::Deny { status: 403, rule: 2 };
const UNREAD: Verdict = Verdict::Exceeded(Limit::Body);
const TOO_LONG: Verdict = Verdict::Exceeded(Limit::BodyLength);
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MULTIPART: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=b");
/// Limit of the decoded body in these tests, in bytes.
const INFLATED_BYTES_MAX: u64 = 100_000;

struct Rules;

impl Files for Rules {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(RULES.into())
    }
}

/// The inspection of a request with these fields, before its body.
fn begun(fields: &[(&str, &str)], checks: Option<Checks>) -> Inspection {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut Rules).expect("rules");
    let view = View::new(Arc::new(rules), &Settings::default()).expect("a view");
    let headers: Vec<(&[u8], &[u8])> =
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    let request = Request {
        client: address,
        server: address,
        method: b"POST",
        received_target: b"/",
        target: b"/",
        protocol: b"HTTP/1.1",
        headers: &headers,
        changed_cookies: &[],
        body: BodyLength::Unknown,
        unique_id: b"1",
    };
    let options = Options {
        inflated_bytes_max: INFLATED_BYTES_MAX,
        checks: checks.map(Arc::new),
        ..Options::new(Mode::Block)
    };
    let mut inspection = Inspection::begin(Arc::new(view), &options, &request);
    assert_eq!(inspection.request_headers(), Verdict::Pass);
    inspection
}

/// The verdict on a body, and the reason if it could not be parsed. A body that is read later has the same.
fn judged(fields: &[(&str, &str)], body: &[u8]) -> (Verdict, Option<&'static str>) {
    let expected = judged_at_once(fields, body);
    for input_bytes_max in [0, 300, usize::MAX] {
        let found = judged_later(fields, body, input_bytes_max);
        assert_eq!(found, expected, "{fields:?}, {} bytes, {input_bytes_max}", body.len());
    }
    expected
}

/// Reads what must be read first, and the rest in turns.
fn judged_later(
    fields: &[(&str, &str)],
    body: &[u8],
    input_bytes_max: usize,
) -> (Verdict, Option<&'static str>) {
    let mut inspection = begun(fields, None);
    let turn = Turn { work_bytes_max: 0, input_bytes_max, ..Turn::WHOLE };
    let from = read_first(&mut inspection, body, input_bytes_max);
    let mut step = if from < body.len() {
        let unread = UnreadBody::Request { body: Arc::new(body.to_vec()), from, limit: None };
        judge_unread(inspection, unread, turn)
    } else {
        judge(inspection, Question::Body(None), turn)
    };
    loop {
        match step {
            Step::Done(inspection, verdict) => return (verdict, inspection.body_failure()),
            Step::More(unfinished) => step = unfinished.proceed(turn),
        }
    }
}

#[test]
fn a_body_that_nobody_has_read_is_left_out_of_the_record() {
    use super::body_recording::{BodyRecording, RecordedBody};
    let body = Arc::new(vec![b'x'; 5_000]);
    for from in [0, 4_990] {
        let mut inspection = begun(&[FORM], None);
        inspection.state.message.body.recording = Some(BodyRecording::default());
        inspection.body(&body[..from]);
        let turn = Turn { input_bytes_max: 0, ..Turn::WHOLE };
        let unread = UnreadBody::Request { body: Arc::clone(&body), from, limit: None };
        let Step::More(unfinished) = judge_unread(inspection, unread, turn) else {
            panic!("it has more input than a turn allows");
        };
        assert_eq!(unfinished.give_up().recorded_body(), RecordedBody::LeftOut, "{from}");
    }
}

fn judged_at_once(fields: &[(&str, &str)], body: &[u8]) -> (Verdict, Option<&'static str>) {
    let mut inspection = begun(fields, None);
    for piece in body.chunks(50) {
        inspection.body(piece);
    }
    inspection.end_body();
    assert_eq!(inspection.body_progress().decoding_bytes, 0, "nothing is left");
    (inspection.request_body(), inspection.body_failure())
}

#[test]
fn rules_judge_what_is_encoded() {
    let form = |coding, plain: &str| encode(coding, plain.as_bytes());
    let long = format!("a={}&b=attack", "harmless ".repeat(5_000));
    for (codings, outer, inner) in [
        ("gzip", "gzip", "identity"),
        ("x-gzip", "gzip", "identity"),
        ("deflate", "deflate", "identity"),
        ("deflate", "raw-deflate", "identity"),
        ("br", "br", "identity"),
        ("ZSTD", "zstd", "identity"),
        ("identity", "identity", "identity"),
        ("gzip, br", "br", "gzip"),
        ("zstd,identity, deflate", "deflate", "zstd"),
    ] {
        let fields = [FORM, ("Content-Encoding", codings)];
        for (plain, expected) in
            [("a=b", Verdict::Pass), ("a=b&c=an+%61ttack", DENIED), (&long, DENIED)]
        {
            let body = encode(outer, &form(inner, plain));
            assert_eq!(judged(&fields, &body).0, expected, "{codings}");
        }
    }
    let xml = encode("br", b"<a>attack</a>");
    let fields = [("content-type", "text/xml"), ("content-encoding", "br")];
    assert_eq!(judged(&fields, &xml).0, DENIED);
}

#[test]
fn what_cannot_be_decoded_is_no_pass() {
    let gzip = |plain: &[u8]| encode("gzip", plain);
    let of = |codings: &'static str| vec![FORM, ("Content-Encoding", codings)];
    let cut = |body: Vec<u8>, bytes| body[..body.len() - bytes].to_vec();
    let (first, second) = (gzip(b"a=b"), gzip(b"&c=d"));
    let long = vec![b'x'; INFLATED_BYTES_MAX as usize + 1];
    for (fields, body, expected) in [
        (of("gzip"), b"a=b".to_vec(), UNREAD),
        (of("gzip"), cut(first.clone(), 1), UNREAD),
        (of("gzip"), [&first[..], &second].concat(), UNREAD),
        (of("gzip"), [&first[..], b"&c=d"].concat(), UNREAD),
        (of("compress"), first.clone(), UNREAD),
        (of("gzip, gzip, gzip, gzip"), first.clone(), UNREAD),
        (of("br"), first.clone(), UNREAD),
        (of("gzip"), gzip(&long), TOO_LONG),
        (of("gzip"), Vec::new(), Verdict::Pass),
        // Rules inspect the part before the end.
        (of("gzip"), cut(gzip(b"a=attack"), 4), DENIED),
        (of("gzip"), gzip(&[b"a=attack&b=", &long[..]].concat()), DENIED),
    ] {
        assert_eq!(judged(&fields, &body).0, expected, "{fields:?}: {} bytes", body.len());
    }
    let second = |value: &'static str| [of("gzip"), of(value)[1..].to_vec()].concat();
    assert_eq!(judged(&second("gzip"), &gzip(&first)).0, UNREAD);
    assert_eq!(judged(&second("identity"), &first).0, UNREAD);
    let identity = [FORM, ("Content-Encoding", "identity"), ("Content-Encoding", "")];
    assert_eq!(judged(&identity, b"a=b").0, Verdict::Pass);
}

/// gzip with a file name in its header.
fn named(name: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut body = encode("gzip", plain);
    const HAS_NAME: u8 = 8;
    body[3] |= HAS_NAME;
    body.splice(10..10, [name, b"\0"].concat());
    body
}

/// A server that ignores Content-Encoding interprets the encoded bytes.
#[test]
fn what_is_read_without_decoding_is_judged() {
    let encoded = ("Content-Encoding", "gzip");
    for (name, expected) in [
        (&b"upload.txt"[..], Verdict::Pass),
        (b"&q=an attack&", DENIED),
        (b"&q=an+%61ttack", DENIED),
        (b"\xff&b=an attack\xff", DENIED),
        (b"x&user=admin&pass='||1#&z=", SHORT_DENIED),
        (b"x&pass='||1#\xff\xfe\x01", SHORT_DENIED),
        (b"x&user=ad&%27||1#&z", SHORT_DENIED),
    ] {
        let name_told = name.escape_ascii();
        let verdict = judged(&[FORM, encoded], &named(name, b"a=b")).0;
        assert_eq!(verdict, expected, "{name_told}");
    }
    let part = b"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nc\r\n--b--\r\n";
    assert_eq!(judged(&[MULTIPART, encoded], &named(b"x", part)).0, Verdict::Pass);
    let in_name = [b"\r\n", &part[..]].concat();
    assert_eq!(judged(&[MULTIPART, encoded], &named(&in_name, part)).0, UNREAD);
    // JSON that is also a deflate block: its trailing blanks are the end of the block.
    let both = (0..1_000_000_u32).map(|number| format!("[{number}]\t ")).find(|json| {
        let mut inflater = crate::coding::Inflater::new(&[crate::coding::Coding::Deflate], 1_000);
        inflater.feed(json.as_bytes(), &mut |_| ()).is_ok() && inflater.finish(&mut |_| ()).is_ok()
    });
    let (verdict, reason) =
        judged(&[JSON, ("Content-Encoding", "deflate")], both.expect("one").as_bytes());
    assert_eq!(verdict, UNREAD);
    assert!(reason.is_some_and(|it| it.contains("different ways")), "{reason:?}");
}

#[test]
fn heads_that_servers_read_in_different_ways() {
    for (fields, body, expected) in [
        (
            vec![("Content-Type", "application/x-www-form-urlencoded; charset=utf-16")],
            "a=b",
            UNREAD,
        ),
        (vec![("Content-Type", "application/json; charset=ibm037")], "{}", UNREAD),
        (vec![("Content-Type", "application/json; charset=\"utf-8\"")], "{}", Verdict::Pass),
        (
            vec![("Content-Type", "application/x-www-form-urlencoded;charset=utf-7")],
            "a=attack",
            DENIED,
        ),
        (vec![FORM, FORM], "a=b", UNREAD),
        (vec![("Content-Type", ""), FORM], "a=b", UNREAD),
        (vec![FORM, ("Content-Type", "")], "a=b", UNREAD),
    ] {
        assert_eq!(judged(&fields, body.as_bytes()).0, expected, "{fields:?}");
    }
}

#[test]
fn rules_judge_the_part_of_a_body_that_is_there() {
    for (kind, part, expected) in [
        (FORM, "a=b&c=att", TOO_LONG),
        (FORM, "a=b&c=attack", DENIED),
        (JSON, "{\"a\":\"b\",\"c", TOO_LONG),
        (JSON, "{\"a\":\"attack\",\"c", DENIED),
        (MULTIPART, "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nc", TOO_LONG),
        (MULTIPART, "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nattack", DENIED),
    ] {
        let mut inspection =
            begun(&[kind, ("Host", "a")], Some(Checks::default()).filter(|_| kind != FORM));
        inspection.body(part.as_bytes());
        inspection.cut_body(Limit::BodyLength);
        assert_eq!(inspection.request_body(), expected, "{part}");
    }
}

#[test]
fn bodies_without_a_length_are_measured() {
    let checks = |body_bytes_max, request_bytes_max| {
        let mut policy = Policy::default();
        policy.limits.body_bytes_max = body_bytes_max;
        policy.limits.request_bytes_max = request_bytes_max;
        Checks { policy, interface: None }
    };
    let refused = |check: Check| Verdict::Refused { check, status: check.status() };
    for (checks, expected) in [
        (checks(20, 1_000), Verdict::Pass),
        (checks(19, 1_000), refused(Check::BodyLength)),
        (checks(1_000, 70), refused(Check::RequestLength)),
    ] {
        let mut inspection = begun(&[FORM, ("Host", "a")], Some(checks));
        inspection.body(b"a=0123456789abcdefgh");
        inspection.end_body();
        assert_eq!(inspection.request_body(), expected);
    }
}

/// Bodies whose work is not known before they are read.
#[test]
fn bodies_that_take_long_are_not_read_first() {
    const BYTES_MAX: usize = 24 << 10;
    let production = Turn { input_bytes_max: BYTES_MAX, ..Turn::WHOLE };
    let short = format!("{{\"a\":[{}1]}}", "1,".repeat(100)).into_bytes();
    let wide = format!("{{\"{}\":[{}1]}}", "k".repeat(4_000), "1,".repeat(5_000)).into_bytes();
    let gzip = ("Content-Encoding", "gzip");
    for (fields, body, read_max) in [
        (vec![JSON], short.clone(), short.len()),
        // Each value has the long name.
        (vec![JSON], wide, 4_200),
        (vec![JSON, gzip], encode("gzip", &short), 0),
        (vec![FORM, gzip], encode("gzip", b"a=b"), 0),
    ] {
        let mut inspection = begun(&fields, None);
        assert!(may_read_later(&inspection));
        let from = read_first(&mut inspection, &body, BYTES_MAX);
        assert!(from <= read_max && (from == body.len() || from < read_max.max(1)), "{from}");
        let own = inspection.state.message.variables.texts.own_bytes();
        assert!(own < BYTES_MAX + (40 << 10), "{own} bytes");
        if from == body.len() {
            continue;
        }
        let unread = UnreadBody::Request { body: Arc::new(body), from, limit: None };
        let step = judge_unread(inspection, unread, production);
        assert!(matches!(step, Step::More(_)), "it is not begun");
    }
    // A form with files has to be read as it arrives.
    let mut inspection = begun(&[MULTIPART, gzip], None);
    assert!(!may_read_later(&inspection));
    let body = encode("gzip", b"--b\r\n");
    assert_eq!(read_first(&mut inspection, &body, 0), body.len());
}

#[test]
fn the_memory_for_decoding_later_is_known_before() {
    let of = |codings: &'static str| begun(&[FORM, ("Content-Encoding", codings)], None);
    assert_eq!(decoding_bytes_max(&begun(&[FORM], None), 1_000), 0);
    for codings in ["gzip", "zstd, gzip", "br"] {
        let plain = vec![b'x'; 60_000];
        let names: Vec<&str> = codings.split(", ").collect();
        let body = names.iter().fold(plain, |body, coding| encode(coding, &body));
        let mut inspection = of(codings);
        let bytes_max = decoding_bytes_max(&inspection, body.len() as u64);
        inspection.body(&body);
        let bytes = inspection.body_progress().decoding_bytes;
        assert!(bytes > 60_000 && bytes <= bytes_max, "{codings}: {bytes} of {bytes_max}");
    }
}
