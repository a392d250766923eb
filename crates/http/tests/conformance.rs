//! The conformance tables of `cases/`: each case as a whole, cut at every position, and checked against all invariants.

mod cases;
mod invariants;

use cases::body::{self, BodyExpected};
use cases::flaws::{self, BodyRefused, HeadExpected};
use cases::{RequestExpected, ResponseExpected, requests, responses};
use invariants::LIMITS;
use invariants::body::{End, decode, decode_of_member};
use weir_http::edits::{FieldEdits, RequestEdits};
use weir_http::flaws::Flaws;
use weir_http::h1::{
    ParseProgress, Persistence, ResponseForward, parse_request, parse_response,
    parse_response_of_member, write_request_head, write_response_head,
};
use weir_http::message::{Framing, Method, RequestHead, ResponseHead, Version};
use weir_http::path::TargetForm;

/// Minimum number of cases for requests, and for responses.
const CASES_MIN: usize = 150;

/// Runs `check` on every case, and reports all failures.
fn check_all<C>(
    cases: &[C],
    describe: impl Fn(&C) -> String,
    check: impl Fn(&C) + std::panic::RefUnwindSafe,
) where
    C: std::panic::RefUnwindSafe,
{
    let failed: Vec<String> = cases
        .iter()
        .filter(|case| std::panic::catch_unwind(|| check(case)).is_err())
        .map(describe)
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases failed:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

#[test]
fn requests_become_what_the_table_says() {
    let cases = requests();
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    check_all(
        &cases,
        |case| format!("{} ({}): {}", case.name, case.section, case.received.escape_ascii()),
        |case| {
            let mut head = RequestHead::new();
            let outcome = parse_request(&case.received, &LIMITS, TargetForm::default(), &mut head);
            match &case.expected {
                RequestExpected::Partial => assert_eq!(outcome, Ok(ParseProgress::Partial)),
                RequestExpected::Refused { status, error } => {
                    assert_eq!(outcome, Err(*error));
                    assert_eq!(error.status(), *status);
                }
                RequestExpected::Sent { head: expected, keep_alive } => {
                    assert_eq!(
                        outcome,
                        Ok(ParseProgress::Complete { length: case.received.len() })
                    );
                    assert_eq!(head.keep_alive, *keep_alive);
                    let mut sent = Vec::new();
                    write_request_head(&head, &case.received, &RequestEdits::NONE, &mut sent);
                    assert_eq!(
                        sent.escape_ascii().to_string(),
                        expected.escape_ascii().to_string()
                    );
                }
            }
        },
    );
}

#[test]
fn responses_become_what_the_table_says() {
    let cases = responses();
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    check_all(
        &cases,
        |case| format!("{} ({}): {}", case.name, case.section, case.received.escape_ascii()),
        |case| {
            let mut head = ResponseHead::new();
            let outcome = parse_response(&case.received, &LIMITS, case.method, &mut head);
            match &case.expected {
                ResponseExpected::Partial => assert_eq!(outcome, Ok(ParseProgress::Partial)),
                ResponseExpected::Refused(error) => assert_eq!(outcome, Err(*error)),
                ResponseExpected::Sent { head: expected, framing, keep_alive } => {
                    assert_eq!(
                        outcome,
                        Ok(ParseProgress::Complete { length: case.received.len() })
                    );
                    assert_eq!((head.framing, head.keep_alive), (*framing, *keep_alive));
                    let client_version = Version::Http11;
                    let persistence = if head.status == 101 {
                        Persistence::Upgrade
                    } else {
                        Persistence::KeepAlive
                    };
                    let framing = framing.toward(client_version);
                    let mut sent = Vec::new();
                    let forward =
                        ResponseForward { framing, client_version, persistence, date: case.date };
                    write_response_head(
                        &head,
                        &case.received,
                        &forward,
                        &FieldEdits::NONE,
                        &mut sent,
                    );
                    assert_eq!(
                        sent.escape_ascii().to_string(),
                        expected.escape_ascii().to_string()
                    );
                }
            }
        },
    );
}

#[test]
fn bodies_become_what_the_table_says() {
    check_all(
        &body::cases(),
        |case| format!("{} ({}): {}", case.name, case.section, case.received.escape_ascii()),
        |case| {
            let received = &case.received;
            let outcome = decode(case.framing, case.size_max, received, Some(received.len()));
            match &case.expected {
                BodyExpected::Refused(error) => assert_eq!(outcome.end, End::Refused(*error)),
                BodyExpected::TrailersRefused(error) => {
                    assert_eq!(outcome.end, End::TrailersRefused(*error))
                }
                BodyExpected::Open { data, may_end_at_eof } => {
                    assert_eq!(outcome.data, *data);
                    assert_eq!(outcome.end, End::Open { may_end_at_eof: *may_end_at_eof });
                }
                BodyExpected::Whole { data, trailers, left } => {
                    assert_eq!(outcome.data, *data);
                    let owned = |(name, value): &(&str, &str)| {
                        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
                    };
                    let trailers = trailers.iter().map(owned).collect();
                    assert_eq!(
                        outcome.end,
                        End::Ended { consumed: received.len() - left, trailers }
                    );
                }
            }
        },
    );
}

/// Responses that a strict recipient refuses, and the responses that clients receive if the flaws are tolerated.
#[test]
fn flawed_responses_become_what_the_table_says() {
    check_all(
        &flaws::heads(),
        |case| format!("{}: {}", case.name, case.received.escape_ascii()),
        |case| {
            let received = &case.received;
            let strict = parse_response(received, &LIMITS, case.method, &mut ResponseHead::new());
            assert_eq!(strict, Err(case.strict));
            let (mut head, mut repaired) = (ResponseHead::new(), Vec::new());
            let parse = |taken, head: &mut ResponseHead, repaired: &mut Vec<u8>| {
                parse_response_of_member(received, &LIMITS, case.method, taken, repaired, head)
            };
            assert_eq!(parse(Flaws::NONE, &mut head, &mut repaired), Err(case.strict));
            let outcome = parse(Flaws::ALL, &mut head, &mut repaired);
            let (expected, flaws) = match &case.lenient {
                HeadExpected::Refused(error) => return assert_eq!(outcome, Err(*error)),
                HeadExpected::Sent { flaws, head: expected, framing, keep_alive } => {
                    assert_eq!(outcome, Ok(ParseProgress::Complete { length: received.len() }));
                    assert_eq!((head.framing, head.keep_alive), (*framing, *keep_alive));
                    (*expected, *flaws)
                }
            };
            assert_eq!(head.flaws, flaws);
            let forward = ResponseForward {
                framing: head.framing,
                client_version: Version::Http11,
                persistence: Persistence::KeepAlive,
                date: None,
            };
            let text = if repaired.is_empty() { received } else { &repaired };
            let mut sent = Vec::new();
            write_response_head(&head, text, &forward, &FieldEdits::NONE, &mut sent);
            assert_eq!(sent.escape_ascii().to_string(), expected.escape_default().to_string());
            // The response is accepted if exactly these flaws are tolerated.
            assert_eq!(parse(flaws, &mut head, &mut repaired), outcome);
            for flaw in flaws.iter() {
                let others = Flaws::ALL.without(Flaws::NONE.with(flaw));
                assert!(parse(others, &mut head, &mut repaired).is_err(), "without {flaw:?}");
            }
        },
    );
}

#[test]
fn flawed_bodies_become_what_the_table_says() {
    let refusal = |end: &End| match end {
        End::Refused(error) => Some(BodyRefused::Body(*error)),
        End::TrailersRefused(error) => Some(BodyRefused::Trailers(*error)),
        _ => None,
    };
    check_all(
        &flaws::bodies(),
        |case| format!("{}: {}", case.name, case.received.escape_ascii()),
        |case| {
            let received = &case.received;
            let strict = decode(Framing::Chunked, None, received, Some(received.len()));
            assert_eq!(refusal(&strict.end), Some(case.strict));
            let decode =
                |taken| decode_of_member(Framing::Chunked, taken, received, Some(received.len()));
            assert_eq!(decode(Flaws::NONE).0, strict);
            let (outcome, found) = decode(Flaws::ALL);
            let (flaws, data, trailers) = match &case.lenient {
                flaws::BodyExpected::Refused(error) => {
                    return assert_eq!(refusal(&outcome.end), Some(*error));
                }
                flaws::BodyExpected::Whole { flaws, data, trailers } => (*flaws, *data, trailers),
            };
            let owned = |(name, value): &(&str, &str)| {
                (name.as_bytes().to_vec(), value.as_bytes().to_vec())
            };
            let trailers = trailers.iter().map(owned).collect();
            assert_eq!((outcome.data.as_slice(), found), (data.as_bytes(), flaws));
            assert_eq!(outcome.end, End::Ended { consumed: received.len(), trailers });
            assert_eq!(decode(flaws), (outcome, flaws));
            for flaw in flaws.iter() {
                let others = Flaws::ALL.without(Flaws::NONE.with(flaw));
                assert!(refusal(&decode(others).0.end).is_some(), "without {flaw:?}");
            }
        },
    );
}

#[test]
fn invariants_hold_for_every_request() {
    check_all(
        &requests(),
        |case| format!("{} ({})", case.name, case.section),
        |case| invariants::request::check(&case.received),
    );
}

#[test]
fn invariants_hold_for_every_response() {
    check_all(
        &responses(),
        |case| format!("{} ({})", case.name, case.section),
        |case| {
            for method in [case.method, Method::Get, Method::Head] {
                invariants::response::check(&case.received, method);
            }
        },
    );
    check_all(
        &flaws::heads(),
        |case| case.name.to_owned(),
        |case| {
            for method in [Method::Get, Method::Head] {
                invariants::response::check(&case.received, method);
            }
        },
    );
}

#[test]
fn invariants_hold_for_every_body() {
    check_all(
        &body::cases(),
        |case| format!("{} ({})", case.name, case.section),
        |case| {
            invariants::body::check(case.framing, case.size_max, &case.received);
            invariants::body::check_chunked(&case.received);
            invariants::body::check_trailers(&case.received);
        },
    );
    check_all(
        &flaws::bodies(),
        |case| case.name.to_owned(),
        |case| {
            invariants::body::check_chunked(&case.received);
            invariants::body::check_trailers(&case.received);
        },
    );
}
