//! Facts about a single header line (RFC 9113 sections 8.2 and 8.3). They are determined when the line is first decoded, and
//! stored in the table. So a repeated line is not checked again.

use crate::chars::{find_control, is_ows, token_length};
use crate::fields::{Kind, classify};
use crate::message::FieldId;

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:protocol`
    Protocol,
    /// `:status`
    Status,
    /// Any other name that starts with a colon.
    UnknownPseudo,
    /// An empty name, an invalid token, or a name with upper-case letters.
    Malformed,
    /// A connection-specific field of HTTP/1.
    Connection,
    /// TE, whose only valid value is `trailers`.
    Te,
    /// Cookie, which may be split into several lines.
    Cookie,
    /// Any other field.
    Field(Kind),
}

impl Name {
    /// The kind of `name`.
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            [b':', rest @ ..] => match rest {
                b"method" => Self::Method,
                b"scheme" => Self::Scheme,
                b"authority" => Self::Authority,
                b"path" => Self::Path,
                b"protocol" => Self::Protocol,
                b"status" => Self::Status,
                _ => Self::UnknownPseudo,
            },
            b"" => Self::Malformed,
            b"cookie" => Self::Cookie,
            _ if token_length(name) != name.len() => Self::Malformed,
            _ if name.iter().any(u8::is_ascii_uppercase) => Self::Malformed,
            _ => Self::of_field(classify(name)),
        }
    }

    fn of_field(kind: Kind) -> Self {
        match kind.id {
            FieldId::Connection
            | FieldId::KeepAlive
            | FieldId::ProxyConnection
            | FieldId::TransferEncoding
            | FieldId::Upgrade => Self::Connection,
            FieldId::Te => Self::Te,
            _ => Self::Field(kind),
        }
    }

    /// The kind of the name of a static table entry.
    pub(super) const fn of_static(index: usize) -> Self {
        let (id, forward) = match index {
            1 => return Self::Authority,
            2 | 3 => return Self::Method,
            4 | 5 => return Self::Path,
            6 | 7 => return Self::Scheme,
            8..=14 => return Self::Status,
            32 => return Self::Cookie,
            57 => return Self::Connection,
            23 | 49 => (FieldId::Credentials, true),
            48 | 61 => (FieldId::Challenge, true),
            28 => (FieldId::ContentLength, false),
            33 => (FieldId::Date, true),
            35 => (FieldId::Expect, true),
            38 => (FieldId::Host, false),
            47 => (FieldId::MaxForwards, true),
            _ => (FieldId::Other, true),
        };
        Self::Field(Kind { id, forward })
    }

    /// Whether the name starts with a colon.
    pub(super) fn is_pseudo(self) -> bool {
        matches!(
            self,
            Self::Method
                | Self::Scheme
                | Self::Authority
                | Self::Path
                | Self::Protocol
                | Self::Status
                | Self::UnknownPseudo
        )
    }
}

/// The flaw of a value, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// No flaw.
    Sound,
    /// A control character other than the tab. Section 8.2.1 forbids only some; RFC 9110 section 5.5 permits none of them,
    /// and our HTTP/1 parser accepts none.
    Control,
    /// Whitespace at its start or end.
    Space,
}

impl Value {
    /// The flaw of `value`.
    pub(super) fn of(value: &[u8]) -> Self {
        if find_control(value, 0).is_some() {
            return Self::Control;
        }
        match value {
            [first, .., last] if is_ows(*first) || is_ows(*last) => Self::Space,
            [only] if is_ows(*only) => Self::Space,
            _ => Self::Sound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chars::is_token_byte;

    fn is_name(name: &[u8]) -> bool {
        let is_name_byte = |byte: &u8| is_token_byte(*byte) && !byte.is_ascii_uppercase();
        !name.is_empty() && name.iter().all(is_name_byte)
    }

    #[test]
    fn every_byte_of_a_name_is_judged() {
        for byte in 0..=255 {
            for name in
                [&[byte][..], &[b'x', byte], &[b'x', byte, b'-', b'a', b'a', b'a', b'a', b'a']]
            {
                let expected = is_name(name);
                let found = Name::of(name);
                assert_eq!(
                    matches!(found, Name::Field(_)),
                    expected,
                    "{}: {found:?}",
                    name.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn every_byte_of_a_value_is_judged() {
        for byte in 0..=255_u8 {
            let is_control = byte.is_ascii_control() && byte != b'\t';
            let within = if is_control { Value::Control } else { Value::Sound };
            assert_eq!(Value::of(&[b'a', byte, b'b']), within, "{byte}");
            let at_end = if is_ows(byte) { Value::Space } else { within };
            for value in [&[byte][..], &[byte, b'a'], &[b'a', byte]] {
                assert_eq!(Value::of(value), at_end, "{byte}");
            }
        }
        assert_eq!(Value::of(b""), Value::Sound);
    }
}
