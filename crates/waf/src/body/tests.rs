use super::testing::{Event, argument};
use super::*;

/// The values that a body delivers.
fn read(content_type: &str, bytes: &[u8]) -> (Vec<Event>, Body) {
    let mut events = Vec::new();
    let processor = Processor::of(content_type.as_bytes());
    let mut body = Body::new(processor, content_type.as_bytes(), &Settings::default());
    assert_eq!(body.processor(), processor);
    bytes.chunks(3).for_each(|piece| body.feed(piece, &mut events));
    body.finish(&mut events);
    (events, body)
}

#[test]
fn bodies_are_read_by_their_processors() {
    let multipart = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n";
    let header =
        Event::PartHeader("a".to_owned(), "Content-Disposition: form-data; name=a".to_owned());
    for (content_type, bytes, expected) in [
        ("application/x-www-form-urlencoded", &b"a=1"[..], vec![argument(b"a", b"1")]),
        ("multipart/form-data; boundary=x", multipart, vec![header, argument(b"a", b"1")]),
        ("application/json", b"{\"a\":1}", vec![argument(b"json.a", b"1")]),
        (
            "text/xml",
            b"<a b='1'>2</a>",
            vec![Event::Attribute("1".to_owned()), Event::Text("2".to_owned())],
        ),
        ("text/plain", b"a=1", vec![]),
    ] {
        let (events, body) = read(content_type, bytes);
        assert_eq!((events, body.failure()), (expected, None), "{content_type}");
        assert!(body.differences().is_empty(), "{content_type}");
    }
}

#[test]
fn problems_and_differences_are_told() {
    for (content_type, bytes, problem, difference) in [
        ("application/x-www-form-urlencoded", &b"a=%"[..], None, Some(Difference::InvalidEscape)),
        ("multipart/form-data", b"--x", Some(Problem::BoundaryMissing), None),
        (
            "application/json",
            b"{\"a\":1,\"a\":2",
            Some(Problem::Unfinished),
            Some(Difference::DuplicateKey),
        ),
        ("text/xml", b"<!DOCTYPE a><b>", Some(Problem::Unfinished), Some(Difference::DocumentType)),
    ] {
        let (_, body) = read(content_type, bytes);
        assert_eq!(body.failure().map(|failure| failure.problem), problem, "{content_type}");
        assert_eq!(body.differences().iter().next(), difference, "{content_type}");
    }
}

#[test]
fn an_empty_body_has_no_problem() {
    for processor in Processor::ALL {
        let mut body = Body::new(processor, b"multipart/form-data; boundary=x", &Settings::DEFAULT);
        body.finish(&mut ());
        assert_eq!(body.failure(), None, "{processor:?}");
    }
}
