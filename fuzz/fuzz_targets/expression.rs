//! Expressions: any text is refused with a valid position, or compiles and can be evaluated. A value for a header or a URI
//! contains only allowed characters. The rule index finds every condition that holds.
#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use weir_core::expression::{
    Condition, DataSet, DataSets, DatagramFacts, ExpressionError, Facts, Fields, NoSurroundings,
    Phase, Purpose, REPLACED_LENGTH_BYTES_MAX, ReplaceResult, Replacement, ReplacementError,
    ResponseFacts, Scope, Slots, Template, Value,
};
use weir_core::policy::RuleIndex;
use weir_http::h1::{HeadLimits, parse_request, parse_response};
use weir_http::message::{Method, RequestHead, ResponseHead, Scheme};
use weir_http::path::TargetForm;

const REQUEST: &[u8] =
    b"GET /a/%7Ejoe.png?q=a%0d%0a+b&r=%zz&s HTTP/1.1\r\nHost: Shop.Example:80\r\n\
    X-A: 1\r\nx-a: \xe4\tb\r\nCookie: sid=42; t=\"x\"\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nServer: a\r\n\r\n";

const DATAGRAM: DatagramFacts<'static> = DatagramFacts {
    bytes: b"BYE sip:a SIP/2.0\r\ni: b\r\nSubject: c\r\n d\r\n\r\n",
    quic_id_bytes: 8,
};

static DATA: LazyLock<DataSets> = LazyLock::new(|| {
    let mut data = DataSets::new();
    data.insert("blocked", DataSet::strings(["/a", "/b/", ".png"]));
    data.insert("prefixes", DataSet::strings(["/api/", "/a"]));
    data.insert("office", DataSet::addresses(["10.0.0.0/8", "::/1"]).expect("networks"));
    data.insert("targets", DataSet::map([("shop.example", "/x"), ("", "?")]));
    data
});

static POOLS: LazyLock<BTreeMap<&str, usize>> = LazyLock::new(|| BTreeMap::from([("web", 0)]));

struct Heads {
    request: RequestHead,
    response: ResponseHead,
}

static HEADS: LazyLock<Heads> = LazyLock::new(|| {
    let limits = HeadLimits { head_size_max: 4096, headers_max: 16 };
    let mut heads = Heads { request: RequestHead::new(), response: ResponseHead::new() };
    parse_request(REQUEST, &limits, TargetForm::default(), &mut heads.request).expect("a request");
    parse_response(RESPONSE, &limits, Method::Get, &mut heads.response).expect("a response");
    heads
});

fn facts() -> Facts<'static> {
    Facts {
        request: &HEADS.request,
        request_input: REQUEST,
        client: "10.0.0.1:40000".parse().ok(),
        server: "[2001:db8::1]:80".parse().ok(),
        scheme: Scheme::Http,
        tls: None,
        response: Some(ResponseFacts { head: &HEADS.response, input: RESPONSE, member: None }),
        datagram: Some(&DATAGRAM),
        around: &NoSurroundings,
        unix_s: None,
    }
}

fn check_error(error: &ExpressionError, text: &str) {
    assert!(text.get(error.range.clone()).is_some(), "{error} at {:?}", error.range);
    assert!(!error.to_string().contains('\n'), "{error}");
}

fn check_condition(text: &str) {
    let mut slots = Slots::new();
    let mut scope = Scope {
        phase: Phase::Response,
        has_datagrams: true,
        data: &DATA,
        pools: &POOLS,
        slots: &mut slots,
    };
    let condition = match Condition::compile(text, &mut scope) {
        Ok(condition) => condition,
        Err(error) => return check_error(&error, text),
    };
    let mut fields = Fields::new(Arc::new(slots));
    let mut evaluation = fields.begin(facts());
    let holds = evaluation.holds(&condition);
    assert_eq!(evaluation.holds(&condition), holds);
    assert!(condition.constant().is_none_or(|constant| constant == holds));
    let mut candidates = Vec::new();
    RuleIndex::new(&[Some(&condition)]).candidates(
        evaluation.host(),
        HEADS.request.path(REQUEST),
        &mut candidates,
    );
    assert!(!holds || candidates == [0]);
}

fn check_value(text: &str) {
    let mut slots = Slots::new();
    let mut scope = Scope {
        phase: Phase::Request,
        has_datagrams: true,
        data: &DATA,
        pools: &POOLS,
        slots: &mut slots,
    };
    match Value::compile(text, &mut scope) {
        Ok(value) => {
            assert!(!value.reads_response());
            Fields::new(Arc::new(slots)).begin(facts()).value(&value, &mut Vec::new());
        }
        Err(error) => check_error(&error, text),
    }
}

fn check_template(text: &str, purpose: Purpose) {
    let mut slots = Slots::new();
    let mut scope = Scope {
        phase: Phase::Response,
        has_datagrams: true,
        data: &DATA,
        pools: &POOLS,
        slots: &mut slots,
    };
    let template = match Template::compile(text, purpose, &mut scope) {
        Ok(template) => template,
        Err(error) => return check_error(&error, text),
    };
    let mut out = Vec::new();
    Fields::new(Arc::new(slots)).begin(facts()).render(&template, &mut out);
    if let Some(constant) = template.constant() {
        assert_eq!(out, constant);
    }
    match purpose {
        Purpose::Plain => {}
        Purpose::HeaderValue => {
            assert!(out.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t'));
        }
        Purpose::Uri => {
            assert!(
                out.iter().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(byte))
            );
        }
    }
}

/// Checks a replacement: the first line is a regular expression, the other lines are the replacement text.
fn check_replacement(text: &str) {
    let Some((regex, to)) = text.split_once('\n') else {
        return;
    };
    let mut slots = Slots::new();
    let replacement = match Replacement::compile(regex, to, &mut slots) {
        Ok(replacement) => replacement,
        Err(ReplacementError::Regex(error)) => return check_error(&error, regex),
        Err(ReplacementError::To(error)) => return check_error(&error, to),
    };
    let mut out = b">".to_vec();
    let path = HEADS.request.path(REQUEST);
    let outcome = Fields::new(Arc::new(slots)).begin(facts()).replace(&replacement, path, &mut out);
    assert!(out.starts_with(b">") && out.len() <= REPLACED_LENGTH_BYTES_MAX + 1);
    assert!(outcome == ReplaceResult::Yes || out == b">");
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    check_condition(text);
    check_value(text);
    for purpose in [Purpose::HeaderValue, Purpose::Uri, Purpose::Plain] {
        check_template(text, purpose);
    }
    check_replacement(text);
});
