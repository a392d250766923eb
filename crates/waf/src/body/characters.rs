//! The characters of a body that is no form: UTF-16 is converted, and characters of two bytes are looked at.
//!
//! Parsers of forms divide bytes. Parsers of JSON and XML divide characters, so a character whose second byte is `\` or `]`
//! divides a text in another way than the bytes do. A body with one is refused: servers that read another charset than the
//! stated one see the bytes.

use std::borrow::Cow;

use super::charset::Charset;
use super::media_type::Processor;

/// A stage in front of a parser. The body may be split anywhere.
#[derive(Debug, Clone)]
pub(crate) struct Characters {
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// The bytes are passed on as they are.
    Plain,
    /// The first bytes decide whether it is UTF-16.
    Start {
        is_stated: bool,
        byte: Option<u8>,
    },
    Utf16(Utf16),
    Pairs(Pairs),
    Wrong(&'static str),
}

/// The reason for a body that cannot be read, as a sentence.
type Reason = &'static str;

const UNREADABLE: Reason = "The body has a charset that rules cannot read.";
const NOT_UTF_16: Reason = "The body is not in UTF-16, as its Content-Type says.";
const CUT: Reason = "The body ends within a character of UTF-16.";
const DIVIDED: Reason = "The body has a character that ends with `\\`, `]` or a byte that ends none, so servers read different texts.";

impl Characters {
    /// The stage for a body with this charset and parser.
    pub(crate) fn new(charset: Charset, processor: Processor) -> Self {
        let is_form = matches!(processor, Processor::UrlEncoded | Processor::Multipart);
        let is_document = matches!(processor, Processor::Json | Processor::Xml);
        let form = match charset {
            Charset::Unreadable => Form::Wrong(UNREADABLE),
            Charset::Utf16 if is_form => Form::Wrong(UNREADABLE),
            Charset::Utf16 => Form::Start { is_stated: true, byte: None },
            Charset::Pairs { has_kana } if !is_form => {
                Form::Pairs(Pairs { has_kana, is_document, ..Pairs::default() })
            }
            Charset::Utf8 if is_document => Form::Start { is_stated: false, byte: None },
            _ => Form::Plain,
        };
        Self { form }
    }

    /// Takes the next bytes. Returns those for the parser, or the reason why there are none.
    pub(crate) fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, Reason> {
        if let Form::Start { is_stated, byte } = self.form {
            let all: Cow<'a, [u8]> = match byte {
                None => bytes.into(),
                Some(byte) => [&[byte], bytes].concat().into(),
            };
            match *all {
                [] => return Ok(all),
                [byte] => {
                    self.form = Form::Start { is_stated, byte: Some(byte) };
                    return Ok(Cow::Borrowed(&[]));
                }
                [first, second, ..] => self.form = Form::of_start(is_stated, first, second),
            }
            return match all {
                Cow::Borrowed(all) => self.pass(all),
                Cow::Owned(all) => self.pass(&all).map(|it| it.into_owned().into()),
            };
        }
        self.pass(bytes)
    }

    /// Ends the body. Returns the last bytes for the parser.
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>, Reason> {
        match std::mem::replace(&mut self.form, Form::Plain) {
            Form::Start { is_stated: true, byte: Some(_) } => Err(NOT_UTF_16),
            Form::Start { byte, .. } => Ok(byte.into_iter().collect()),
            Form::Utf16(it) if it.byte.is_some() || it.high.is_some() => Err(CUT),
            _ => Ok(Vec::new()),
        }
    }

    /// Whether the parser gets UTF-8 instead of UTF-16.
    pub(crate) fn is_converted(&self) -> bool {
        matches!(self.form, Form::Utf16(_))
    }

    fn pass<'a>(&mut self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, Reason> {
        match &mut self.form {
            Form::Plain | Form::Start { .. } => Ok(bytes.into()),
            Form::Utf16(utf_16) => Ok(utf_16.convert(bytes).into()),
            Form::Pairs(pairs) => {
                if pairs.look(bytes) {
                    return Ok(bytes.into());
                }
                self.form = Form::Wrong(DIVIDED);
                Err(DIVIDED)
            }
            Form::Wrong(reason) => Err(reason),
        }
    }
}

impl Form {
    /// Without a byte order mark, only a body that is said to be in UTF-16 is, if its first character is in ASCII.
    fn of_start(is_stated: bool, first: u8, second: u8) -> Self {
        let is_little = match (first, second) {
            (0xff, 0xfe) => true,
            (0xfe, 0xff) => false,
            (1..=0x7f, 0) if is_stated => true,
            (0, 1..=0x7f) if is_stated => false,
            _ if is_stated => return Self::Wrong(NOT_UTF_16),
            _ => return Self::Plain,
        };
        Self::Utf16(Utf16 { is_little, is_behind_start: false, byte: None, high: None })
    }
}

#[derive(Debug, Clone)]
struct Utf16 {
    is_little: bool,
    is_behind_start: bool,
    /// The first byte of a unit.
    byte: Option<u8>,
    /// The first half of a pair of surrogates.
    high: Option<u16>,
}

impl Utf16 {
    fn convert(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = String::with_capacity(bytes.len());
        for byte in bytes {
            let Some(before) = self.byte.take() else {
                self.byte = Some(*byte);
                continue;
            };
            let unit = match self.is_little {
                true => u16::from_le_bytes([before, *byte]),
                false => u16::from_be_bytes([before, *byte]),
            };
            // The byte order mark is no character.
            if !std::mem::replace(&mut self.is_behind_start, true) && unit == 0xfeff {
                continue;
            }
            if matches!(unit, 0xd800..=0xdbff) {
                if self.high.replace(unit).is_some() {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
                continue;
            }
            let units = self.high.take().into_iter().chain([unit]);
            let characters = char::decode_utf16(units);
            text.extend(characters.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
        text.into_bytes()
    }
}

/// Looks at characters of two bytes.
#[derive(Debug, Clone, Default)]
struct Pairs {
    has_kana: bool,
    /// Whether the body is certainly JSON or XML.
    is_document: bool,
    /// Whether it may be, because it has a bracket or a brace.
    may_be_document: bool,
    is_divided: bool,
    is_second: bool,
}

impl Pairs {
    /// Whether the body up to the end of these bytes has the same parts in bytes and in characters.
    fn look(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            if std::mem::take(&mut self.is_second) {
                let is_usual = matches!(byte, b'0'..=b'9' | b'@'..=b'[' | b'^'..=b'~' | 0x80..);
                self.is_divided |= !is_usual;
                continue;
            }
            self.may_be_document |= matches!(byte, b'{' | b'[' | b'<');
            let is_kana = self.has_kana && matches!(byte, 0xa0..=0xdf);
            self.is_second = *byte > 0x80 && !is_kana;
        }
        !(self.is_divided && (self.is_document || self.may_be_document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Processor::{Content, Json, Multipart, UrlEncoded, Xml};

    const GBK: Charset = Charset::Pairs { has_kana: false };
    const KANA: Charset = Charset::Pairs { has_kana: true };

    /// What the parser gets, whole and in pieces of each length.
    fn read(charset: Charset, processor: Processor, body: &[u8]) -> Result<Vec<u8>, Reason> {
        let in_pieces = |size: usize| {
            let mut characters = Characters::new(charset, processor);
            let mut text = Vec::new();
            for piece in body.chunks(size) {
                text.extend_from_slice(&characters.take(piece)?);
            }
            text.extend(characters.finish()?);
            Ok(text)
        };
        let whole = in_pieces(usize::MAX);
        for size in 1..5 {
            assert_eq!(in_pieces(size), whole, "{} by {size}", body.escape_ascii());
        }
        whole
    }

    fn utf_16(text: &str, is_little: bool) -> Vec<u8> {
        let of = |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        text.encode_utf16().flat_map(of).collect()
    }

    #[test]
    fn utf_16_is_converted() {
        for (text, is_little) in [("{\"a\":\"ä😀\"}", true), ("{\"a\":\"ä😀\"}", false)] {
            let marked = utf_16(&format!("\u{feff}{text}"), is_little);
            for charset in [Charset::Utf8, Charset::Utf16] {
                assert_eq!(read(charset, Json, &marked), Ok(text.as_bytes().to_vec()));
            }
            let unmarked = utf_16(text, is_little);
            assert_eq!(read(Charset::Utf16, Xml, &unmarked), Ok(text.as_bytes().to_vec()));
            assert_eq!(read(Charset::Utf16, Content, &marked), Ok(text.as_bytes().to_vec()));
            assert_eq!(read(Charset::Utf8, Content, &marked), Ok(marked.clone()));
            assert_eq!(read(Charset::Utf8, Json, &unmarked), Ok(unmarked.clone()));
            assert_eq!(read(Charset::Utf16, UrlEncoded, &marked), Err(UNREADABLE));
            assert_eq!(read(Charset::Utf16, Multipart, &marked), Err(UNREADABLE));
            assert_eq!(read(Charset::Utf16, Json, &marked[..marked.len() - 1]), Err(CUT));
        }
        let broken = [&b"\xff\xfe"[..], &utf_16("a", true), b"\x00\xd8", b"\x01\xd8b\0\x02\xdc"];
        let expected = "a\u{fffd}\u{fffd}b\u{fffd}".as_bytes().to_vec();
        assert_eq!(read(Charset::Utf8, Xml, &broken.concat()), Ok(expected));
    }

    #[test]
    fn what_is_said_to_be_utf_16_has_to_be() {
        for body in [&b"{\"a\":1}"[..], b"x", b"\0\0", b"\xef\xbb\xbf<a/>"] {
            assert_eq!(read(Charset::Utf16, Json, body), Err(NOT_UTF_16));
            assert_eq!(read(Charset::Utf8, Json, body), Ok(body.to_vec()));
        }
        assert_eq!(read(Charset::Utf16, Json, b""), Ok(Vec::new()));
        assert_eq!(read(Charset::Unreadable, Content, b"x"), Err(UNREADABLE));
    }

    #[test]
    fn characters_that_end_with_a_sign_of_syntax_are_refused() {
        for (charset, processor, body, is_read) in [
            (GBK, Xml, &b"<a>\xd6\xd0\xce\xc4</a>"[..], true),
            (GBK, Xml, b"<a>\x81A\x81\x81\x81|</a>", true),
            (GBK, Xml, b"<a><![CDATA[\x81]]>", false),
            (GBK, Xml, b"<a b='\x81'>", false),
            (GBK, Xml, b"<a>\x81<b>", false),
            (GBK, Json, b"{\"a\":\"\x81\\\",\"", false),
            (GBK, Json, b"{\"a\":\"\xe3\x81\x82\\\"\"}", false),
            (GBK, Json, b"{\"a\":\"\x81\x81\\n\"}", true),
            (GBK, Json, b"{\"a\":\"\x810\x810\"}", true),
            (KANA, Xml, b"<a>\xb1</a>", true),
            (GBK, Xml, b"<a>\xb1</a>", false),
            (KANA, Json, b"\"\xb1\x83\\\"", false),
            (KANA, Content, b"\x95\\", true),
            (KANA, Content, b"\x95\\ {}", false),
            (KANA, Content, b"[] \x95\\", false),
            (KANA, UrlEncoded, b"a=\x95\\{", true),
            (KANA, Multipart, b"a=\x95\\{", true),
            (Charset::Ascii, Json, b"{\"a\":\"\x81\\\"\"}", true),
        ] {
            let expected = if is_read { Ok(body.to_vec()) } else { Err(DIVIDED) };
            assert_eq!(read(charset, processor, body), expected, "{}", body.escape_ascii());
        }
    }
}
