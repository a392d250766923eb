//! Facts about the message and the connection from the fields of a head, for requests and responses.

use crate::chars::{is_word, list, trim_ows};
use crate::connection_authentication;
use crate::fields::{withhold, withhold_named};
use crate::flaws::{Flaw, Flaws};
use crate::h1::error::FramingError;
use crate::message::{Field, FieldId, Framing, Span, Version};

/// The largest Content-Length, and the largest sum of chunk sizes. Members that count in signed
/// 64-bit numbers understand every length up to it alike.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX as u64;

/// Maximum number of field names that the Connection fields of one head may nominate. Each costs a walk over the
/// fields, so the sender must not choose their number.
pub const NOMINATIONS_MAX: u32 = 32;

/// Facts that are collected from the fields, complete at the end of the section.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FieldSummary {
    pub(crate) content_length: Option<u64>,
    /// The body marks its own end: by Transfer-Encoding, or a body of HTTP/2 without a known length.
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) connection_upgrade: bool,
    pub(crate) connection_te: bool,
    /// The Upgrade field's value, if there is exactly one and it is not empty.
    pub(crate) upgrade: Option<Span>,
    upgrade_seen: bool,
    trailer_seen: bool,
    /// A challenge asks for credentials that hold for the whole connection.
    pub(crate) challenges_connection: bool,
    /// The number of field names in Connection, known or not.
    pub(crate) nominations: u32,
}

impl FieldSummary {
    /// Processes a field that is not [`FieldId::Other`].
    pub(crate) fn note(
        &mut self,
        field: &Field,
        input: &[u8],
        version: Version,
    ) -> Result<(), FramingError> {
        let value = field.value.of(input);
        match field.id {
            FieldId::ContentLength => self.note_content_length(value),
            FieldId::TransferEncoding => self.note_transfer_encoding(value, version),
            FieldId::Connection => self.note_connection(value),
            FieldId::Upgrade => {
                self.upgrade = (!self.upgrade_seen && !value.is_empty()).then_some(field.value);
                self.upgrade_seen = true;
                Ok(())
            }
            FieldId::Trailer => {
                self.trailer_seen = true;
                Ok(())
            }
            FieldId::Challenge => {
                self.note_challenge(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Accepts the value that caused an error in [`note`](Self::note), if its meaning is clear and the flaw is in
    /// `taken`: then it is added to `flaws`. Only for responses of members.
    #[cold]
    pub(crate) fn overlook(
        &mut self,
        error: FramingError,
        value: &[u8],
        taken: Flaws,
        flaws: &mut Flaws,
    ) -> Result<(), FramingError> {
        let flaw = self.read_flawed(error, value).filter(|flaw| taken.have(*flaw));
        flaws.add(flaw.ok_or(error)?);
        Ok(())
    }

    /// Accepts the value if its meaning is clear, and returns its flaw.
    fn read_flawed(&mut self, error: FramingError, value: &[u8]) -> Option<Flaw> {
        match error {
            FramingError::ContentLength => {
                self.content_length = Some(parse_repeated_length(value)?);
                Some(Flaw::RepeatedContentLength)
            }
            FramingError::ContentLengthRepeated => {
                let is_same = parse_repeated_length(value)? == self.content_length?;
                is_same.then_some(Flaw::RepeatedContentLength)
            }
            // A length after a transfer coding, or a transfer coding after a length. Each must be valid by itself.
            FramingError::Both if self.content_length.is_none() => {
                self.content_length = Some(parse_repeated_length(value)?);
                Some(Flaw::BothFramings)
            }
            FramingError::Both if !self.chunked && is_word(value, b"chunked") => {
                self.chunked = true;
                Some(Flaw::BothFramings)
            }
            FramingError::TransferEncoding if is_chunked_alone(value) => {
                self.chunked = true;
                Some(Flaw::RepeatedChunked)
            }
            _ => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn note_challenge(&mut self, value: &[u8]) {
        self.challenges_connection |= connection_authentication::is_by_challenge(value);
    }

    fn note_content_length(&mut self, value: &[u8]) -> Result<(), FramingError> {
        if self.content_length.is_some() {
            return Err(FramingError::ContentLengthRepeated);
        }
        if self.chunked {
            return Err(FramingError::Both);
        }
        self.content_length = Some(parse_content_length(value).ok_or(FramingError::ContentLength)?);
        Ok(())
    }

    fn note_transfer_encoding(
        &mut self,
        value: &[u8],
        version: Version,
    ) -> Result<(), FramingError> {
        if version == Version::Http10 {
            return Err(FramingError::TransferEncodingInHttp10);
        }
        if self.content_length.is_some() {
            return Err(FramingError::Both);
        }
        if self.chunked || !is_word(value, b"chunked") {
            return Err(FramingError::TransferEncoding);
        }
        self.chunked = true;
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) -> Result<(), FramingError> {
        // The value of nearly all messages.
        if is_word(value, b"keep-alive") {
            self.keep_alive = true;
            return Ok(());
        }
        self.note_options(value)
    }

    #[inline(never)]
    fn note_options(&mut self, value: &[u8]) -> Result<(), FramingError> {
        for option in list(value) {
            if is_word(option, b"close") {
                self.close = true;
            } else if is_word(option, b"keep-alive") {
                self.keep_alive = true;
            } else if is_word(option, b"upgrade") {
                self.connection_upgrade = true;
            } else if is_word(option, b"te") {
                self.connection_te = true;
            } else {
                self.nominations += 1;
            }
        }
        if self.nominations > NOMINATIONS_MAX { Err(FramingError::Nominations) } else { Ok(()) }
    }

    /// The framing according to the fields alone.
    pub(crate) fn framing(&self) -> Option<Framing> {
        if self.chunked { Some(Framing::Chunked) } else { self.content_length.map(Framing::Length) }
    }

    /// Whether an Upgrade field was seen.
    pub(crate) fn upgrade_seen(&self) -> bool {
        self.upgrade_seen
    }

    /// Whether a Trailer field announces trailers.
    pub(crate) fn announces_trailers(&self) -> bool {
        self.trailer_seen
    }

    /// Whether the sender keeps the connection open (RFC 9112 section 9.3).
    pub(crate) fn is_persistent(&self, version: Version) -> bool {
        !self.close && (version >= Version::Http11 || self.keep_alive)
    }

    /// Prevents the fields that Connection nominates from being forwarded (RFC 9110 section 7.6.1), and
    /// Trailer if no trailer section can follow. Host and the framing fields are not affected:
    /// the serialisers write them from the message, not from the fields.
    #[inline]
    pub(crate) fn withhold_hop_by_hop(&self, fields: &mut [Field], input: &[u8]) {
        if self.trailer_seen && !self.chunked {
            withhold(fields, FieldId::Trailer);
        }
        if self.nominations > 0 {
            withhold_nominated(fields, input);
        }
    }
}

fn withhold_nominated(fields: &mut [Field], input: &[u8]) {
    for index in 0..fields.len() {
        if fields[index].id == FieldId::Connection {
            let value = fields[index].value.of(input);
            for option in list(value) {
                withhold_named(fields, input, option);
            }
        }
    }
}

/// `1*DIGIT` up to [`CONTENT_LENGTH_MAX`].
pub(crate) fn parse_content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut length = 0;
    for byte in value {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 || length > CONTENT_LENGTH_MAX / 10 {
            return None;
        }
        length = length * 10 + digit;
    }
    (length <= CONTENT_LENGTH_MAX).then_some(length)
}

/// A number, or a list that repeats the same number.
fn parse_repeated_length(value: &[u8]) -> Option<u64> {
    let mut lengths =
        value.split(|byte| *byte == b',').map(|it| parse_content_length(trim_ows(it)));
    let first = lengths.next()??;
    lengths.all(|length| length == Some(first)).then_some(first)
}

/// Whether a value of Transfer-Encoding names `chunked` and nothing else, once or more often.
fn is_chunked_alone(value: &[u8]) -> bool {
    let mut codings = value.split(|byte| *byte == b',').map(trim_ows);
    codings.all(|coding| is_word(coding, b"chunked"))
}

/// Whether the client offered the protocol in the Upgrade field of a member's 101. RFC 9110 section 7.8 forbids a
/// server to switch to another protocol.
pub fn upgrade_was_offered(offered: &[u8], chosen: &[u8]) -> bool {
    let mut chosen = list(chosen).peekable();
    chosen.peek().is_some()
        && chosen.all(|protocol| list(offered).any(|offer| offer.eq_ignore_ascii_case(protocol)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_lengths() {
        for (value, expected) in [
            ("0", Some(0)),
            ("42", Some(42)),
            ("007", Some(7)),
            ("9223372036854775807", Some(CONTENT_LENGTH_MAX)),
            ("9223372036854775808", None),
            ("18446744073709551616", None),
            ("99999999999999999999999999", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("1,1", None),
            ("1 1", None),
            ("0x10", None),
            ("1e3", None),
            ("1.0", None),
            ("\u{0661}", None),
        ] {
            assert_eq!(parse_content_length(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn repeated_lengths() {
        for (value, expected) in [
            ("2", Some(2)),
            ("2,2", Some(2)),
            ("2, 2\t,2", Some(2)),
            ("2,02", Some(2)),
            ("2,3", None),
            ("2,", None),
            (",2", None),
            ("2,,2", None),
            ("2 2", None),
            ("2,+2", None),
            ("", None),
            (",", None),
        ] {
            assert_eq!(parse_repeated_length(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn offered_upgrades() {
        assert!(upgrade_was_offered(b"websocket", b"WebSocket"));
        assert!(upgrade_was_offered(b"a/1, b", b"b"));
        assert!(!upgrade_was_offered(b"a/1, b", b"a"));
        assert!(!upgrade_was_offered(b"websocket", b""));
        assert!(!upgrade_was_offered(b"websocket", b"websocket, h2c"));
    }
}
