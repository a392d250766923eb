//! A comparison with `httparse`, a lenient parser. It must accept every accepted input, with the same result.

use weir_http::message::{Field, RequestHead, ResponseHead};

use super::LIMITS;

const FIELDS_MAX: usize = LIMITS.headers_max as usize;

/// Checks a request head. `head`: the result of parsing the whole input.
pub fn check_request(head: &RequestHead, input: &[u8]) {
    // `httparse` supports neither minor versions above 1 nor targets that are not UTF-8.
    if has_higher_minor_version(input) || str::from_utf8(head.target.of(input)).is_err() {
        return;
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut witness = httparse::Request::new(&mut fields);
    let outcome = witness.parse(input);
    assert_eq!(outcome, Ok(httparse::Status::Complete(input.len())), "{}", input.escape_ascii());
    assert_eq!(witness.method.map(str::as_bytes), Some(head.method_text.of(input)));
    assert_eq!(witness.path.map(str::as_bytes), Some(head.target.of(input)));
    assert_eq!(witness.version, Some(head.version as u8));
    check_fields(&head.fields, input, witness.headers);
}

/// Checks a response head. `head`: the result of parsing the whole input.
pub fn check_response(head: &ResponseHead, input: &[u8]) {
    if has_higher_minor_version(input) {
        return;
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut witness = httparse::Response::new(&mut fields);
    let outcome = witness.parse(input);
    assert_eq!(outcome, Ok(httparse::Status::Complete(input.len())), "{}", input.escape_ascii());
    assert_eq!(witness.code, Some(head.status));
    assert_eq!(witness.version, Some(head.version as u8));
    check_fields(&head.fields, input, witness.headers);
}

fn has_higher_minor_version(input: &[u8]) -> bool {
    let is_higher =
        |window: &[u8]| window.starts_with(b"HTTP/1.") && !matches!(window[7], b'0' | b'1');
    let start = &input[input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..];
    let line = start.split(|byte| *byte == b'\r').next().unwrap_or_default();
    line.windows(8).any(is_higher)
}

fn check_fields(fields: &[Field], input: &[u8], witness: &[httparse::Header<'_>]) {
    assert_eq!(fields.len(), witness.len());
    for (field, seen) in std::iter::zip(fields, witness) {
        assert_eq!(seen.name.as_bytes(), field.name.of(input));
        assert_eq!(seen.value, field.value.of(input));
    }
}
