//! Invariants of the judgement what a body is.

use weir_waf::body::{
    Body, Call, LOOK_BYTES, Processor, Settings, arguments_in, call, encoding_of, is_binary,
    is_control, readings, significant,
};

/// A JSON text of this length is not taken for a part of a file.
const JSON_BYTES_MIN: usize = 16;

fn begins_json(text: &[u8]) -> bool {
    let mut reading = Body::new(Processor::Json, b"", &Settings::DEFAULT);
    reading.feed(text, &mut ());
    reading.failure().is_none()
}

/// Checks an input: a byte for the type, a byte for a cut, and the body.
pub fn check(input: &[u8]) {
    let [choice, cut, body @ ..] = input else { return };
    let types =
        ["", "image/png", "application/grpc", "application/x-protobuf", "application/x-git-x"];
    let content_type = types[usize::from(*choice) % types.len()];
    let look = &body[..body.len().min(LOOK_BYTES)];
    let text = significant(look);
    assert!(look.ends_with(text));
    // A shorter one may be chance among the bytes of a file.
    let is_long = text.len() >= JSON_BYTES_MIN && text.iter().all(u8::is_ascii_graphic);
    if is_long && text.starts_with(b"{\"") && begins_json(text) {
        assert!(!is_binary(content_type.as_bytes(), look), "{}", look.escape_ascii());
    }
    for (name, value) in arguments_in(look, &Settings::DEFAULT) {
        assert!(!name.is_empty() && !value.iter().any(|byte| is_control(*byte)));
    }
    let before = &look[..usize::from(*cut).min(look.len())];
    if call(before) == Call::No {
        assert_eq!(call(look), Call::No, "{}", look.escape_ascii());
    }
    if let Some(encoding) = encoding_of(look) {
        for reading in readings(encoding, body) {
            // At most three bytes for each unit of two bytes, or four for each of four.
            assert!(reading.len() <= body.len() * 2, "{}", look.escape_ascii());
            assert!(std::str::from_utf8(&reading).is_ok());
        }
    }
}
