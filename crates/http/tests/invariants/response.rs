//! Invariants of response heads.

use weir_http::edits::FieldEdits;
use weir_http::flaws::{Flaw, Flaws};
use weir_http::h1::{
    HeadLimits, HeadScan, ParseProgress, Persistence, ResponseError, ResponseForward,
    parse_response, parse_response_of_member, write_response_head,
};
use weir_http::message::{Framing, Method, ResponseHead, Version};

use super::{
    LIMITS, assert_clean_head, assert_nominated_stay, count_fields, cuts, forwarded, oracle,
};

/// The time at which every response is received.
const DATE: &[u8] = b"Sat, 21 Nov 2026 12:00:00 GMT";

/// Checks all invariants of a response to a request with `method`.
pub fn check(input: &[u8], method: Method) {
    let tight = HeadLimits { head_size_max: input.len() as u32 / 2, headers_max: 3 };
    let lines = Flaws::USUAL.with(Flaw::BareLineFeed);
    for limits in [LIMITS, tight] {
        for taken in [Flaws::NONE, Flaws::USUAL, lines, Flaws::ALL] {
            check_cuts(input, &limits, method, taken);
        }
    }
    check_lenient(input, method);
    let mut head = ResponseHead::new();
    if let Ok(ParseProgress::Complete { length }) =
        parse_response(input, &LIMITS, method, &mut head)
    {
        assert!(length <= input.len());
        assert!((100..=599).contains(&head.status));
        assert!(head.framing != Framing::UntilClose || !head.keep_alive);
        assert_nominated_stay(&head.fields, input);
        oracle::check_response(&head, &input[..length]);
        for client_version in [Version::Http10, Version::Http11] {
            check_forwarding(&head, input, method, client_version);
        }
    }
}

/// Checks that tolerance for flaws does not change a head without flaws, and that no flaw is forwarded.
fn check_lenient(input: &[u8], method: Method) {
    let mut strict = ResponseHead::new();
    let parsed = parse_response(input, &LIMITS, method, &mut strict);
    for taken in [Flaws::NONE, Flaws::USUAL, Flaws::ALL] {
        let (mut head, mut repaired) = (ResponseHead::new(), Vec::new());
        let outcome =
            parse_response_of_member(input, &LIMITS, method, taken, &mut repaired, &mut head);
        let Ok(ParseProgress::Complete { length }) = outcome else {
            assert!(!matches!(parsed, Ok(ParseProgress::Complete { .. })), "sound, and refused");
            assert!(taken != Flaws::NONE || outcome == parsed);
            continue;
        };
        assert!(length <= input.len());
        assert_eq!(head.flaws.without(taken), Flaws::NONE);
        if parsed.is_ok() {
            assert_eq!(outcome, parsed);
            assert!(head.flaws.is_empty() && repaired.is_empty());
            assert_eq!(format!("{head:?}"), format!("{strict:?}"));
            continue;
        }
        assert!(!head.flaws.is_empty(), "{:?} for no flaw", parsed);
        assert!(!head.flaws.have(Flaw::BothFramings) || !head.keep_alive);
        let text = if repaired.is_empty() { &input[..length] } else { &repaired };
        for client_version in [Version::Http10, Version::Http11] {
            check_forwarding(&head, text, method, client_version);
        }
    }
}

/// The flaw that remains in the response to the client.
pub fn unknown_status(head: &ResponseHead) -> Flaws {
    if head.status > 599 { Flaws::NONE.with(Flaw::UnknownStatus) } else { Flaws::NONE }
}

fn check_cuts(input: &[u8], limits: &HeadLimits, method: Method, taken: Flaws) {
    let mut head = ResponseHead::new();
    let mut repaired = Vec::new();
    let mut parse_response =
        |input: &[u8], limits: &HeadLimits, method, head: &mut ResponseHead| {
            let outcome: Result<ParseProgress, ResponseError> =
                parse_response_of_member(input, limits, method, taken, &mut repaired, head);
            outcome
        };
    let whole = parse_response(input, limits, method, &mut head);
    let mut scan = HeadScan::section_of_member(taken);
    let mut by_scan = None;
    let mut by_parse = None;
    for cut in cuts(input.len()) {
        let outcome = parse_response(&input[..cut], limits, method, &mut head);
        if scan.scan(&input[..cut], limits) && by_scan.is_none() {
            assert_ne!(outcome, Ok(ParseProgress::Partial), "the scan promised more at {cut}");
            by_scan = Some(outcome);
        }
        if outcome != Ok(ParseProgress::Partial) && by_parse.is_none() {
            by_parse = Some(outcome);
        }
        if outcome.is_ok_and(|parsed| matches!(parsed, ParseProgress::Complete { .. })) {
            assert!(by_scan.is_some(), "the scan missed the end at {cut}");
        }
    }
    assert_eq!(by_parse.unwrap_or(Ok(ParseProgress::Partial)), whole, "in pieces");
    assert!(
        by_scan.is_none() || by_scan == Some(whole),
        "through the scan: {by_scan:?}, not {whole:?}"
    );
}

/// Checks that the client's response has the same meaning as the member's.
pub fn check_forwarding(
    head: &ResponseHead,
    input: &[u8],
    method: Method,
    client_version: Version,
) {
    let framing = head.framing.toward(client_version);
    let persistence = match head.status {
        101 => Persistence::Upgrade,
        _ if framing == Framing::UntilClose => Persistence::Close,
        _ => Persistence::KeepAlive,
    };
    let date = (head.status >= 200).then_some(DATE);
    let forward = ResponseForward { framing, client_version, persistence, date };
    let mut sent = Vec::new();
    write_response_head(head, input, &forward, &FieldEdits::NONE, &mut sent);
    assert_clean_head(&sent);
    let framing_fields =
        count_fields(&sent, "Content-Length") + count_fields(&sent, "Transfer-Encoding");
    assert!(framing_fields <= 1);
    assert!(count_fields(&sent, "Connection") <= 1);
    assert!(date.is_none() || count_fields(&sent, "Date") >= 1);

    let limits = HeadLimits { head_size_max: u32::MAX, headers_max: u16::MAX };
    let mut again = ResponseHead::new();
    let taken = unknown_status(head);
    let outcome =
        parse_response_of_member(&sent, &limits, method, taken, &mut Vec::new(), &mut again);
    assert_eq!(
        outcome,
        Ok(ParseProgress::Complete { length: sent.len() }),
        "{}",
        sent.escape_ascii()
    );
    assert_eq!(again.status, head.status);
    if head.version != Version::Http2 {
        assert_eq!(again.reason.of(&sent), head.reason.of(input));
    }
    assert_eq!(again.framing, framing);
    if head.framing == Framing::None {
        assert_eq!(again.content_length, head.content_length);
    }
    assert_eq!(again.keep_alive, framing != Framing::UntilClose && head.status != 101);
    assert_eq!(again.upgrade.map(|span| span.of(&sent)), head.upgrade.map(|span| span.of(input)));
    let trailer = |(name, _): &(&[u8], &[u8])| {
        framing == Framing::Chunked || !name.eq_ignore_ascii_case(b"trailer")
    };
    let mut expected = forwarded(&head.fields, input);
    expected.retain(trailer);
    let is_dated = expected.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"date"));
    expected.extend(date.filter(|_| !is_dated).map(|date| (&b"Date"[..], date)));
    assert_eq!(forwarded(&again.fields, &sent), expected);
}
