//! Invariants of request heads.

use weir_http::edits::RequestEdits;
use weir_http::h1::{
    HeadLimits, HeadScan, ParseProgress, RequestError, parse_request, write_request_head,
};
use weir_http::message::{FieldId, Framing, Method, RequestHead};
use weir_http::path::{PathForm, RawBytes, TargetForm};

use super::{
    LIMITS, assert_clean_head, assert_nominated_stay, count_fields, cuts, forwarded, oracle, paths,
};

/// Checks all invariants, with the usual limits and with limits that the input exceeds.
pub fn check(input: &[u8]) {
    let tight = HeadLimits { head_size_max: input.len() as u32 / 2, headers_max: 3 };
    for limits in [LIMITS, tight] {
        check_cuts(input, &limits);
    }
    for form in paths::forms() {
        let mut head = RequestHead::new();
        let taken = parse_request(input, &LIMITS, paths::encoding(form), &mut head);
        if let Ok(ParseProgress::Complete { length }) = taken {
            assert!(length <= input.len());
            check_head(&head, input, form);
            check_forwarding(&head, input, form);
            oracle::check_request(&head, &input[..length]);
        }
    }
}

/// Checks that neither cuts nor the use of a scan change the outcome.
fn check_cuts(input: &[u8], limits: &HeadLimits) {
    let mut head = RequestHead::new();
    let whole = parse_request(input, limits, TargetForm::default(), &mut head);
    let (method, target) = (head.method, head.target);
    let mut scan = HeadScan::request();
    let mut by_scan = None;
    let mut by_parse = None;
    for cut in cuts(input.len()) {
        let outcome = parse_request(&input[..cut], limits, TargetForm::default(), &mut head);
        if scan.scan(&input[..cut], limits) && by_scan.is_none() {
            assert_ne!(outcome, Ok(ParseProgress::Partial), "the scan promised more at {cut}");
            by_scan = Some(outcome);
        }
        if outcome != Ok(ParseProgress::Partial) && by_parse.is_none() {
            by_parse = Some(outcome);
        }
        if outcome.is_ok_and(|parsed| matches!(parsed, ParseProgress::Complete { .. })) {
            assert!(by_scan.is_some(), "the scan missed the end at {cut}");
            assert_eq!((head.method, head.target), (method, target));
        }
    }
    assert_eq!(by_parse.unwrap_or(Ok(ParseProgress::Partial)), whole, "in pieces");
    assert!(
        by_scan.is_none() || by_scan == Some(whole),
        "through the scan: {by_scan:?}, not {whole:?}"
    );
}

pub fn check_head(head: &RequestHead, input: &[u8], form: PathForm) {
    assert_ne!(head.framing, Framing::UntilClose);
    paths::check(head, input, form);
    assert!(head.upgrade.is_none() || head.unusual.has_upgrade || head.extended_connect);
    assert!(
        !(head.unusual.has_upgrade || head.unusual.binds_connection || head.unusual.reflects)
            || head.unusual.is_any
    );
    assert!(!head.announces_trailers || head.unusual.may_need_edits);
    let counts_forwards = matches!(head.method, Method::Options | Method::Trace);
    assert!(head.max_forwards.is_none() || counts_forwards);
    assert!(!head.expect_continue || !head.framing.is_empty());
    assert!(head.authority(input).starts_with(head.host(input)));
    assert_nominated_stay(&head.fields, input);
    for field in &head.fields {
        let may_travel = match field.id {
            FieldId::Other | FieldId::Credentials | FieldId::Challenge => true,
            FieldId::Date | FieldId::Expect | FieldId::Trailer => true,
            FieldId::MaxForwards => head.max_forwards.is_none(),
            _ => false,
        };
        assert!(may_travel || !field.forward);
    }
}

/// Checks that the member's request has the same meaning as the client's.
pub fn check_forwarding(head: &RequestHead, input: &[u8], form: PathForm) {
    let mut sent = b"before".to_vec();
    write_request_head(head, input, &RequestEdits::NONE, &mut sent);
    let sent = sent.strip_prefix(b"before").expect("appended");
    assert_clean_head(sent);
    assert_eq!(count_fields(sent, "Host"), 1);
    let framing_fields =
        count_fields(sent, "Content-Length") + count_fields(sent, "Transfer-Encoding");
    assert_eq!(framing_fields, usize::from(head.framing != Framing::None));

    let limits = HeadLimits { head_size_max: u32::MAX, headers_max: u16::MAX };
    let mut again = RequestHead::new();
    // No byte of the target needs encoding.
    let strict = TargetForm { path: form, raw_bytes: RawBytes::Refuse };
    let outcome = parse_request(sent, &limits, strict, &mut again);
    assert_eq!(
        outcome,
        Ok::<_, RequestError>(ParseProgress::Complete { length: sent.len() }),
        "{}",
        sent.escape_ascii()
    );
    assert_eq!(again.method, head.method);
    assert_eq!(again.method_text.of(sent), head.method_text.of(input));
    assert_eq!(again.member_path(sent), head.member_path(input));
    assert_eq!(again.path(sent), head.path(input));
    assert_eq!(again.query(sent), head.query(input));
    assert_eq!(again.authority(sent), head.authority(input));
    assert_eq!(again.framing, head.framing);
    assert_eq!(again.expect_continue, head.expect_continue);
    assert_eq!(again.max_forwards, head.max_forwards.map(|hops| hops.saturating_sub(1)));
    assert_eq!(again.te_trailers, head.te_trailers);
    assert_eq!(again.upgrade.map(|span| span.of(sent)), head.upgrade.map(|span| span.of(input)));
    assert!(again.keep_alive);
    assert_eq!(forwarded(&again.fields, sent), forwarded(&head.fields, input));

    // The written value is already decremented, and would be decremented again.
    again.max_forwards = head.max_forwards;
    let mut twice = Vec::new();
    write_request_head(&again, sent, &RequestEdits::NONE, &mut twice);
    assert_eq!(twice, sent, "serialising is not stable");
}
