//! Processing instructions, which are delivered as they are, and the XML declaration, which is parsed: `<?xml version="1.0"
//! encoding="utf-8"?>` (XML 1.0 section 2.8).

use super::super::charset::Charset;
use super::super::problem::Problem;
use super::characters::is_blank;

/// The encoding of non-ASCII bytes. In all of these encodings, ASCII bytes encode ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Encoding {
    #[default]
    Utf8,
    /// Each byte is one character.
    Bytes,
}

/// The current processing instruction.
#[derive(Debug, Clone, Default)]
pub(super) struct Instruction {
    is_declaration: bool,
    /// The text after `<?xml`, or a whole instruction: applications may store or run it (`<?php ... ?>`).
    text: Vec<u8>,
}

/// A complete instruction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CompleteInstruction {
    /// The XML declaration, with the document's encoding.
    Declaration(Encoding),
    /// The text of another instruction.
    Other(Vec<u8>),
}

impl Instruction {
    /// Begins an instruction. The target `xml`, in any case, is reserved for the XML declaration, which must begin the
    /// document.
    pub(super) fn begin(&mut self, target: &[u8], is_first: bool) -> Result<(), Problem> {
        self.is_declaration = target.eq_ignore_ascii_case(b"xml");
        if self.is_declaration && (target != b"xml" || !is_first) {
            return Err(Problem::XmlDeclaration);
        }
        self.text.clear();
        if !self.is_declaration {
            self.text.extend_from_slice(b"<?");
            self.text.extend_from_slice(target);
        }
        Ok(())
    }

    /// Adds a byte. The caller limits the number of bytes.
    pub(super) fn byte(&mut self, byte: u8) {
        self.text.push(byte);
    }

    /// Ends an instruction. The buffer includes the `?` before `>`.
    pub(super) fn end(&mut self, charset: Charset) -> Result<CompleteInstruction, Problem> {
        let mut text = std::mem::take(&mut self.text);
        if self.is_declaration {
            let text = text.strip_suffix(b"?").unwrap_or(&text);
            return read(text, charset).map(CompleteInstruction::Declaration);
        }
        text.push(b'>');
        Ok(CompleteInstruction::Other(text))
    }

    /// The text of an instruction that has not ended; empty: there is none.
    pub(super) fn rest(&self) -> &[u8] {
        if self.is_declaration { b"" } else { &self.text }
    }
}

/// Parses the text between `<?xml` and `?>`.
fn read(declaration: &[u8], stated: Charset) -> Result<Encoding, Problem> {
    let (version, rest) =
        pseudo_attribute(declaration, b"version").ok_or(Problem::XmlDeclaration)?;
    if !matches!(version, [b'1', b'.', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
    {
        return Err(Problem::XmlDeclaration);
    }
    let (encoding, rest) = match pseudo_attribute(rest, b"encoding") {
        Some((name, rest)) => (encoding(name, stated).ok_or(Problem::XmlEncoding)?, rest),
        None if matches!(stated, Charset::Ascii | Charset::Pairs { .. }) => (Encoding::Bytes, rest),
        None => (Encoding::Utf8, rest),
    };
    let rest = match pseudo_attribute(rest, b"standalone") {
        Some((b"yes" | b"no", rest)) => rest,
        Some(_) => return Err(Problem::XmlDeclaration),
        None => rest,
    };
    if rest.iter().all(|byte| is_blank(*byte)) {
        Ok(encoding)
    } else {
        Err(Problem::XmlDeclaration)
    }
}

/// The encoding with this name, if each ASCII byte is an ASCII character in it. Other charsets are only read if the head of the
/// request states the same, because the bytes were then looked at.
fn encoding(name: &[u8], stated: Charset) -> Option<Encoding> {
    match (Charset::named(name), stated) {
        (Charset::Utf8, _) if !name.is_empty() => Some(Encoding::Utf8),
        (Charset::Ascii, Charset::Utf8 | Charset::Ascii) => Some(Encoding::Bytes),
        (Charset::Utf16, Charset::Utf16) => Some(Encoding::Utf8),
        (pairs @ Charset::Pairs { .. }, _) if pairs == stated => Some(Encoding::Bytes),
        _ => None,
    }
}

/// Parses blanks, a name, `=` and a quoted value. Returns the value and the rest.
fn pseudo_attribute<'a>(bytes: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    let rest = bytes.get(blanks..).filter(|_| blanks > 0)?;
    let rest = rest.strip_prefix(name)?.trim_ascii_start();
    let (quote, rest) = rest.strip_prefix(b"=")?.trim_ascii_start().split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let end = memchr::memchr(*quote, rest)?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read() {
        for (declaration, expected) in [
            (" version=\"1.0\"", Ok(Encoding::Utf8)),
            (" version = '1.1' ", Ok(Encoding::Utf8)),
            (" version=\"1.0\" encoding=\"UTF-8\" standalone='yes'", Ok(Encoding::Utf8)),
            (" version=\"1.0\" encoding='ISO-8859-15'", Ok(Encoding::Bytes)),
            (" version=\"1.0\" encoding='windows-1252'", Ok(Encoding::Bytes)),
            (" version=\"1.0\" encoding='utf-7'", Err(Problem::XmlEncoding)),
            (" version=\"1.0\" encoding='UTF-16'", Err(Problem::XmlEncoding)),
            (" version=\"1.0\" encoding='iso-8859-'", Err(Problem::XmlEncoding)),
            (" version=\"1.0\" encoding=''", Err(Problem::XmlEncoding)),
            ("", Err(Problem::XmlDeclaration)),
            (" version=\"2.0\"", Err(Problem::XmlDeclaration)),
            (" version=\"1.\"", Err(Problem::XmlDeclaration)),
            (" encoding='utf-8'", Err(Problem::XmlDeclaration)),
            (" version=\"1.0\"encoding='utf-8'", Err(Problem::XmlDeclaration)),
            (" version=\"1.0\" standalone='maybe'", Err(Problem::XmlDeclaration)),
            (" version=\"1.0\" other='x'", Err(Problem::XmlDeclaration)),
            (" version=\"1.0", Err(Problem::XmlDeclaration)),
            ("version=\"1.0\"", Err(Problem::XmlDeclaration)),
        ] {
            assert_eq!(read(declaration.as_bytes(), Charset::Utf8), expected, "{declaration}");
        }
    }

    #[test]
    fn the_head_may_state_the_encoding() {
        let gbk = Charset::Pairs { has_kana: false };
        for (name, stated, expected) in [
            ("euc-kr", Charset::Utf8, Some(Encoding::Bytes)),
            ("utf-8", gbk, Some(Encoding::Utf8)),
            ("GBK", gbk, Some(Encoding::Bytes)),
            ("gb2312", gbk, Some(Encoding::Bytes)),
            ("gbk", Charset::Utf8, None),
            ("shift_jis", gbk, None),
            ("iso-8859-1", gbk, None),
            ("utf-16", Charset::Utf16, Some(Encoding::Utf8)),
            ("utf-16", Charset::Utf8, None),
            ("utf-7", Charset::Utf16, None),
            ("iso-8859-1", Charset::Utf16, None),
        ] {
            assert_eq!(encoding(name.as_bytes(), stated), expected, "{name} {stated:?}");
        }
        let without = " version=\"1.0\"";
        assert_eq!(read(without.as_bytes(), gbk), Ok(Encoding::Bytes));
    }
}
