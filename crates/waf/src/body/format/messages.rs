//! Formats of messages, which have no mark of their own: they are recognised only where the type names them.

use crate::transformation::Transformation;

/// The number of characters of Base64 that hold the bytes before a message of gRPC, and the first one behind.
const BASE64_BYTES_MIN: usize = 8;
/// Maximum length of a message of gRPC that is taken for one.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Whether the bytes begin messages in the format that the type names.
pub(super) fn begins(content_type: &[u8], look: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    let has = |word: &[u8]| memchr::memmem::find(&essence, word).is_some();
    if essence.starts_with(b"application/grpc") {
        call(look) == Call::Yes
    } else if has(b"protobuf") || has(b"x-proto") {
        // Letters alone may happen to be fields.
        look.iter().any(|byte| super::is_control(*byte)) && are_fields(look)
    } else if essence.starts_with(b"application/x-git-") {
        are_packets(look)
    } else {
        false
    }
}

/// Whether a body is a gRPC call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// It begins with a message.
    Yes,
    /// It does not.
    No,
    /// More bytes are needed.
    Unknown,
}

/// Whether the bytes begin a gRPC call: each message has a flag and its length before it, and an uncompressed message
/// begins with a field of Protocol Buffers. `grpc-web-text` has the same in Base64.
pub fn call(look: &[u8]) -> Call {
    let text = look.iter().take_while(|byte| is_base64(**byte)).count();
    if text < BASE64_BYTES_MIN {
        return if text == look.len() && text > 0 { Call::Unknown } else { frames(look) };
    }
    let mut bytes = Vec::new();
    let is_changed = Transformation::Base64Decode.apply(&look[..text / 4 * 4], &mut bytes);
    if is_changed { frames(&bytes) } else { Call::No }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn frames(look: &[u8]) -> Call {
    let mut rest = look;
    let mut answer = Call::Unknown;
    while let [flag, rest_of_head @ ..] = rest {
        if !matches!(flag, 0 | 1 | 0x80 | 0x81) {
            return Call::No;
        }
        let [a, b, c, d, message @ ..] = rest_of_head else { return answer };
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        let is_field = match message.split_first() {
            None if length > 0 => return answer,
            Some((first, _)) if *flag == 0 && length > 0 => begins_tag(*first),
            _ => true,
        };
        if length > MESSAGE_BYTES_MAX || !is_field {
            return Call::No;
        }
        answer = Call::Yes;
        rest = message.get(length as usize..).unwrap_or_default();
    }
    answer
}

/// Whether the first byte may begin a tag. The number of a field above 15 goes on in the next byte.
fn begins_tag(byte: u8) -> bool {
    if byte & 0x80 == 0 { is_tag(u64::from(byte)) } else { matches!(byte & 7, 0 | 1 | 2 | 5) }
}

/// Whether a number is a tag of Protocol Buffers: a field, and a kind of value that is in use.
fn is_tag(tag: u64) -> bool {
    tag >> 3 > 0 && matches!(tag & 7, 0 | 1 | 2 | 5)
}

/// Whether the bytes are fields of Protocol Buffers, the last of which may be cut.
fn are_fields(look: &[u8]) -> bool {
    let mut rest = look;
    while !rest.is_empty() {
        let Some(tag) = number(&mut rest) else { return rest.is_empty() };
        if !is_tag(tag) {
            return false;
        }
        let length = match tag & 7 {
            0 => match number(&mut rest) {
                Some(_) => 0,
                None => return rest.is_empty(),
            },
            1 => 8,
            5 => 4,
            _ => match number(&mut rest) {
                Some(length) => length,
                None => return rest.is_empty(),
            },
        };
        if length > u64::from(MESSAGE_BYTES_MAX) {
            return false;
        }
        rest = rest.get(length as usize..).unwrap_or_default();
    }
    true
}

/// Takes a number in pieces of seven bits. `None`: the bytes end before, or it has too many; then some are left.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        *rest = behind;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Whether the bytes are packets of Git's protocol: four hexadecimal digits tell the length of each. The first packet is
/// complete within the look, unless it is longer.
fn are_packets(look: &[u8]) -> bool {
    let length = look.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
    let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok());
    match length {
        Some(0..=3) => true,
        Some(length) => match look.get(length..) {
            Some([]) | None => true,
            Some(next) => {
                next.starts_with(b"PACK")
                    || next[..next.len().min(4)].iter().all(u8::is_ascii_hexdigit)
            }
        },
        None => false,
    }
}
