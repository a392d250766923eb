//! The part of the WebSocket handshake that exists only in HTTP/1.1: a key, and the answer to it.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use weir_http::h1::upgrade_was_offered;
use weir_http::message::{Method, RequestHead};

/// The protocol name in Upgrade and in extended CONNECT.
pub const PROTOCOL: &[u8] = b"websocket";

/// Length of a key in bytes (RFC 6455 section 4.1).
pub const KEY_BYTES: usize = 16;
const KEY_TEXT_BYTES: usize = 24;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text that a server appends to the key before hashing (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A WebSocket handshake of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handshake {
    /// An Upgrade (RFC 6455) with this key in Base64.
    Upgrade(Box<[u8; KEY_TEXT_BYTES]>),
    /// By an extended CONNECT (RFC 8441), which has no key.
    Connect,
}

impl Handshake {
    /// The WebSocket handshake in a head, if there is one. An Upgrade must be a GET with one valid key, because HTTP/1
    /// members accept no other, and no body.
    pub fn of(head: &RequestHead, input: &[u8]) -> Option<Self> {
        if !upgrade_was_offered(head.upgrade?.of(input), PROTOCOL) {
            return None;
        }
        if head.extended_connect {
            return Some(Self::Connect);
        }
        let is_key = |name: &[u8]| name.eq_ignore_ascii_case(b"sec-websocket-key");
        let mut keys = head.fields.iter().filter(|field| is_key(field.name.of(input)));
        let (key, further) = (keys.next()?.value.of(input), keys.next());
        let is_sound = head.method == Method::Get && head.framing.is_empty() && further.is_none();
        let text = key.try_into().ok().filter(|text| is_sound && is_base64_of_a_key(text))?;
        Some(Self::Upgrade(Box::new(text)))
    }
}

/// Whether the text is 16 bytes in Base64. The last four bits of its last letter are ignored.
fn is_base64_of_a_key(text: &[u8; KEY_TEXT_BYTES]) -> bool {
    let (letters, padding) = text.split_at(KEY_TEXT_BYTES - 2);
    padding == b"==" && letters.iter().all(|letter| ALPHABET.contains(letter))
}

/// Writes the Sec-WebSocket-Accept that answers a key (RFC 6455 section 4.2.2).
pub fn write_accept(key: &[u8; KEY_TEXT_BYTES], out: &mut Vec<u8>) {
    let mut text = [0; KEY_TEXT_BYTES + GUID.len()];
    text[..KEY_TEXT_BYTES].copy_from_slice(key);
    text[KEY_TEXT_BYTES..].copy_from_slice(GUID);
    write_base64(digest(&SHA1_FOR_LEGACY_USE_ONLY, &text).as_ref(), out);
}

/// Writes a new Sec-WebSocket-Key: `random` in Base64 (RFC 4648 section 4).
pub fn write_key(random: [u8; KEY_BYTES], out: &mut Vec<u8>) {
    write_base64(&random, out);
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let [first, second, third] =
            [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = first << 16 | second << 8 | third;
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_http::h1::{HeadLimits, ParseProgress, parse_request};
    use weir_http::path::TargetForm;

    use super::*;

    #[test]
    fn base64_as_rfc_4648_section_10_has_it() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in cases {
            let mut out = Vec::new();
            write_base64(plain.as_bytes(), &mut out);
            assert_eq!(out, encoded.as_bytes(), "{plain}");
        }
    }

    #[test]
    fn the_answer_of_rfc_6455_section_1_3() {
        let mut out = Vec::new();
        write_accept(b"dGhlIHNhbXBsZSBub25jZQ==", &mut out);
        assert_eq!(out, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_taken_for_a_handshake() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let asked = |start: &str, upgrade: &str, fields: &str| {
            let text = format!(
                "{start} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: {upgrade}\r\n{fields}\r\n"
            );
            let mut head = RequestHead::new();
            let limits = HeadLimits { head_size_max: 4096, headers_max: 100 };
            let parsed = parse_request(text.as_bytes(), &limits, TargetForm::default(), &mut head);
            assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })), "{text}: {parsed:?}");
            Handshake::of(&head, text.as_bytes())
        };
        let with = |key: &str| format!("Sec-WebSocket-Key: {key}\r\n");
        let sound = Some(Handshake::Upgrade(Box::new(*b"dGhlIHNhbXBsZSBub25jZQ==")));
        for (start, upgrade, fields, expected) in [
            ("GET /", "websocket", with(key), sound.clone()),
            ("GET /", "raw, WebSocket", with(key), sound.clone()),
            ("GET /", "websocket", with(key) + "Content-Length: 0\r\n", sound),
            ("GET /", "raw", with(key), None),
            ("POST /", "websocket", with(key), None),
            ("GET /", "websocket", with(key) + "Content-Length: 5\r\n", None),
            ("GET /", "websocket", String::new(), None),
            ("GET /", "websocket", with(key) + &with(key), None),
            ("GET /", "websocket", with("dGhlIHNhbXBsZSBub25jZQ"), None),
            ("GET /", "websocket", with("dGhlIHNhbXBsZSBub25jZ==="), None),
            ("GET /", "websocket", with("dGhlIHNhbXBsZSBub25j-Q=="), None),
        ] {
            assert_eq!(asked(start, upgrade, &fields), expected, "{start} {upgrade} {fields:?}");
        }
    }

    #[test]
    fn keys_differ_and_are_of_16_bytes() {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        write_key([1; KEY_BYTES], &mut one);
        write_key([2; KEY_BYTES], &mut other);
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[22..]), (24, &b"=="[..]));
    }
}
