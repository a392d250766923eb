//! A request recorded in its log line for another inspection: `"request":{"head":"...","body":"..."}`.

use weir_waf::inspection::{Inspection, RecordedBody};
use weir_waf::seclang::Variable;

use crate::json::{put_text_key, put_whole_string};
use crate::redaction::Secrets;
use crate::redaction::message::{BodyKind, recorded_body, recorded_field, recorded_target};

/// Maximum size of a recorded request in a line in bytes: a body of 64 KiB in base64, and the head.
const REQUEST_BYTES_MAX: usize = 160 * 1024;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes the request, if requests are recorded. If it is too long, it is written without its body, or not at all.
pub fn put_recorded(out: &mut Vec<u8>, inspection: &Inspection, secrets: &Secrets<'_>) {
    let recorded = inspection.recorded_body();
    if recorded == RecordedBody::Off {
        return;
    }
    let start = out.len();
    for recorded in [recorded, RecordedBody::LeftOut] {
        put_text_key(out, "request");
        out.extend_from_slice(b"{\"head\":");
        put_whole_string(out, &head(inspection, secrets));
        put_member_target(out, inspection, secrets);
        put_body(out, inspection, recorded, secrets);
        out.push(b'}');
        if out.len() - start <= REQUEST_BYTES_MAX {
            return;
        }
        out.truncate(start);
    }
}

/// The request line and the fields, as the inspection received them.
fn head(inspection: &Inspection, secrets: &Secrets<'_>) -> Vec<u8> {
    let value = |variable| inspection.value(variable).unwrap_or_default();
    let target = recorded_target(value(Variable::RequestUriRaw), secrets);
    let (method, version) = (value(Variable::RequestMethod), value(Variable::RequestProtocol));
    let mut head = [method, b" ", &target, b" ", version, b"\r\n"].concat();
    for (name, value) in inspection.entries(Variable::RequestHeaders) {
        let value = recorded_field(name, value, secrets);
        head.extend_from_slice(&[name, b": ", &value, b"\r\n"].concat());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Writes the target that the member receives, if it differs from the received target.
fn put_member_target(out: &mut Vec<u8>, inspection: &Inspection, secrets: &Secrets<'_>) {
    let member = inspection.value(Variable::RequestUri).unwrap_or_default();
    if member != inspection.value(Variable::RequestUriRaw).unwrap_or_default() {
        put_text_key(out, "member_target");
        put_whole_string(out, &recorded_target(member, secrets));
    }
}

fn put_body(
    out: &mut Vec<u8>,
    inspection: &Inspection,
    recorded: RecordedBody<'_>,
    secrets: &Secrets<'_>,
) {
    let mut fields = inspection.entries(Variable::RequestHeaders);
    let is_encoded = fields.any(|(name, value)| {
        name.eq_ignore_ascii_case(b"content-encoding")
            && !value.is_empty()
            && !value.eq_ignore_ascii_case(b"identity")
    });
    let kind =
        BodyKind { media_type: inspection.header(b"content-type").unwrap_or_default(), is_encoded };
    let body = match recorded {
        RecordedBody::Whole(body) => recorded_body(body, kind, secrets),
        RecordedBody::LeftOut | RecordedBody::Off => None,
    };
    match body {
        Some(body) => {
            put_text_key(out, "body");
            out.push(b'"');
            put_base64(out, &body);
            out.push(b'"');
        }
        None => {
            put_text_key(out, "body_left_out");
            out.extend_from_slice(b"true");
        }
    }
}

/// Writes bytes as base64 (RFC 4648 section 4).
fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let is_padding = digit > group.len();
            let value = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if is_padding { b'=' } else { ALPHABET[value] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::put_base64;

    #[test]
    fn base64() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"\xff\xfe\xfd", "//79"),
        ] {
            let mut out = Vec::new();
            put_base64(&mut out, bytes);
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        }
    }
}
