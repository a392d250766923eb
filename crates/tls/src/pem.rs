//! PEM files (RFC 7468), read strictly: every byte belongs to a block, to white space or to a comment.
//!
//! Other readers skip what they do not recognise, so a block behind a byte order mark, or on the line where another one
//! ends, is missing without a sign: a revocation list that is skipped lets its revoked clients in. Here such a file is
//! an error with its line.
//!
//! Comments are lines of text, as `openssl x509 -text`, `openssl pkcs12` and lists of authorities have them, unless they
//! look like a part of a block: a damaged marker, or base64.

use std::fmt;

use rustls::pki_types::pem::{PemObject as _, SectionKind};

/// Maximum length of text from the file in an error message.
const SHOWN_BYTES_MAX: usize = 40;

/// Lines outside blocks with at least this many characters of base64 together, and no others, are probably part of a block.
const BASE64_LINE_BYTES_MIN: usize = 32;

const BOM: &[u8] = b"\xef\xbb\xbf";
const DASHES: &[u8] = b"-----";

/// A block of a PEM file.
pub struct Block {
    /// The label between `BEGIN` and the hyphens.
    pub label: Label,
    /// The line of `BEGIN`, from 1.
    pub line: usize,
    /// The decoded contents.
    pub content: Vec<u8>,
}

/// The labels of blocks that some file may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Label {
    /// `CERTIFICATE`, and `X509 CERTIFICATE`, its name in old files.
    Certificate,
    /// `PRIVATE KEY`, `RSA PRIVATE KEY`, `EC PRIVATE KEY`.
    Key(SectionKind),
    /// `X509 CRL`.
    RevocationList,
    /// `EC PARAMETERS`, which OpenSSL writes before a key that states them too, and `DH PARAMETERS`, which only key exchange
    /// without elliptic curves needs.
    Parameters,
}

impl Label {
    fn of(text: &str) -> Result<Self, Mistake> {
        Ok(match text {
            "CERTIFICATE" | "X509 CERTIFICATE" => Self::Certificate,
            "PRIVATE KEY" => Self::Key(SectionKind::PrivateKey),
            "RSA PRIVATE KEY" => Self::Key(SectionKind::RsaPrivateKey),
            "EC PRIVATE KEY" => Self::Key(SectionKind::EcPrivateKey),
            "X509 CRL" => Self::RevocationList,
            "EC PARAMETERS" | "DH PARAMETERS" => Self::Parameters,
            "ENCRYPTED PRIVATE KEY" => return Err(Mistake::Encrypted),
            _ => return Err(Mistake::OtherBlock(text.to_owned())),
        })
    }

    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certificate => "a certificate",
            Self::Key(_) => "a private key",
            Self::RevocationList => "a revocation list (X509 CRL)",
            Self::Parameters => "a list of parameters",
        }
    }
}

/// The reason why a PEM file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PemError {
    /// The line, from 1.
    pub line: usize,
    /// The mistake.
    pub what: Mistake,
}

/// A mistake in a line of a PEM file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// A byte order mark of UTF-8.
    ByteOrderMark,
    /// The file is UTF-16.
    Utf16,
    /// The file is not PEM but DER.
    Der,
    /// The line has bytes that no text has.
    Binary,
    /// The line has five hyphens, but neither begins nor ends a block.
    Marker,
    /// A block begins or ends on the same line as another one.
    Glued,
    /// Base64 outside a block.
    Outside,
    /// The block that begins here has no end.
    NoEnd,
    /// The end is of a block with another label, or no block has begun.
    OtherEnd,
    /// A block begins before the end of the one that began in this line.
    Nested(usize),
    /// A line in a block that is not base64.
    NotBase64,
    /// The base64 of the block that begins here was cut, or has bytes behind its end.
    BadBase64,
    /// The block that begins here is empty.
    Empty,
    /// A private key is encrypted.
    Encrypted,
    /// A block has this label, which no file of weir has.
    OtherBlock(String),
    /// A block of this kind, in a file that has another kind.
    Misplaced(&'static str, &'static str),
    /// A second private key.
    SecondKey,
    /// The contents of the block that begins here cannot be used.
    Content(String),
}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByteOrderMark => {
                "there is a byte order mark (EF BB BF); save the file as UTF-8 without one"
            }
            Self::Utf16 => "the file is UTF-16; save it as ASCII or UTF-8",
            Self::Der => {
                "the file is DER; write it in PEM, as `openssl x509 -inform DER -in FILE` does"
            }
            Self::Binary => "these are bytes, not text; write PEM here",
            Self::Marker => {
                "this looks like the begin or the end of a block, but is none; \
                 write `-----BEGIN …-----` or `-----END …-----` alone on a line, in capitals, with five hyphens"
            }
            Self::Glued => {
                "a block begins on the line where another one ends; put a line break between them"
            }
            Self::Outside => "this looks like base64, but no block has begun",
            Self::NoEnd => "the block that begins here has no end; the file may be cut",
            Self::OtherEnd => "this is the end of a block that has not begun",
            Self::Nested(line) => {
                return write!(f, "a block begins before the end of that of line {line}");
            }
            Self::NotBase64 => "this line of a block is not base64",
            Self::BadBase64 => "the base64 of the block that begins here is cut or damaged",
            Self::Empty => "the block that begins here is empty",
            Self::Encrypted => "the private key is encrypted",
            Self::OtherBlock(label) if label == "TRUSTED CERTIFICATE" => {
                "the block is a TRUSTED CERTIFICATE, whose trust settings only OpenSSL knows; \
                 `openssl x509 -in FILE` writes it as a CERTIFICATE"
            }
            Self::OtherBlock(label) => {
                return write!(f, "the block is of the kind {label}, which has no use here; remove it");
            }
            Self::Misplaced(found, wanted) => {
                return write!(f, "the block is {found}, where {wanted} should be");
            }
            Self::SecondKey => "this is a second private key; keep the one of the certificate",
            Self::Content(why) => why,
        })
    }
}

/// All blocks of a PEM file, in order.
///
/// # Errors
/// The first line that is not part of a block, white space or a comment.
pub fn blocks(text: &[u8]) -> Result<Vec<Block>, PemError> {
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(PemError { line: 1, what: Mistake::Utf16 });
    }
    // The tag of SEQUENCE, and a length of several bytes.
    if matches!(text, [0x30, 0x81..=0x84, ..]) {
        return Err(PemError { line: 1, what: Mistake::Der });
    }
    let mut reader = Reader::default();
    for (index, line) in lines(text).enumerate() {
        reader.line(index + 1, line)?;
    }
    match reader.open {
        Some(open) => Err(PemError { line: open.line, what: Mistake::NoEnd }),
        None => Ok(reader.blocks),
    }
}

/// The lines of a text, which end in LF, CRLF or CR.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            rest = None;
            return Some(text);
        };
        let behind = if text[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
        rest = Some(&text[behind..]);
        Some(&text[..end])
    })
}

/// A block whose end was not read yet.
struct Open {
    label: Label,
    /// The label as it is written.
    text: String,
    line: usize,
    base64: Vec<u8>,
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    open: Option<Open>,
    /// The first of the lines of base64 that came last outside blocks, and the number of their characters.
    outside: Option<(usize, usize)>,
}

/// What a line is.
enum Line<'a> {
    Begin(&'a str),
    End(&'a str),
    Other,
}

impl Reader {
    fn line(&mut self, number: usize, line: &[u8]) -> Result<(), PemError> {
        let line = line.trim_ascii();
        let here = |what| PemError { line: number, what };
        match (marker(line).map_err(here)?, &mut self.open) {
            (Line::Begin(text), None) => {
                let (text, label) = (text.to_owned(), Label::of(text).map_err(here)?);
                self.outside = None;
                self.open = Some(Open { label, text, line: number, base64: Vec::new() });
                Ok(())
            }
            (Line::Begin(_), Some(open)) => Err(here(Mistake::Nested(open.line))),
            (Line::End(text), Some(open)) if text == open.text => self.close(),
            (Line::End(_), _) => Err(here(Mistake::OtherEnd)),
            (Line::Other, Some(open)) => open.add(line).map_err(here),
            (Line::Other, None) => {
                comment(line).map_err(here)?;
                self.outside(number, line)
            }
        }
    }

    /// Counts base64 outside blocks. Empty lines and `#` comments do not end it.
    fn outside(&mut self, number: usize, line: &[u8]) -> Result<(), PemError> {
        let is_rule = line.iter().all(|byte| *byte == b'=');
        if line.starts_with(b"#") || is_rule {
            return Ok(());
        }
        if !line.iter().all(|byte| is_base64(*byte)) {
            self.outside = None;
            return Ok(());
        }
        let (first, before) = self.outside.unwrap_or((number, 0));
        let count = before + line.len();
        self.outside = Some((first, count));
        match count >= BASE64_LINE_BYTES_MIN {
            true => Err(PemError { line: first, what: Mistake::Outside }),
            false => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), PemError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let Open { label, line, .. } = open;
        let content = open.content().map_err(|what| PemError { line, what })?;
        self.blocks.push(Block { label, line, content });
        Ok(())
    }
}

impl Open {
    fn add(&mut self, line: &[u8]) -> Result<(), Mistake> {
        // RFC 1421: only encrypted keys have header lines.
        if line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED") {
            return Err(Mistake::Encrypted);
        }
        let text = line.iter().filter(|byte| !matches!(byte, b' ' | b'\t'));
        let before = self.base64.len();
        self.base64.extend(text);
        if self.base64[before..].iter().all(|byte| is_base64(*byte)) {
            return Ok(());
        }
        if line.starts_with(BOM) || find(line, BOM) {
            return Err(Mistake::ByteOrderMark);
        }
        Err(Mistake::NotBase64)
    }

    /// The decoded contents.
    fn content(&self) -> Result<Vec<u8>, Mistake> {
        if self.base64.is_empty() {
            return Err(Mistake::Empty);
        }
        // `=` fills up the last four characters; none follow.
        let filled = self.base64.iter().rev().take_while(|byte| **byte == b'=').count();
        let text = &self.base64[..self.base64.len() - filled];
        if filled > 2 || text.contains(&b'=') || !self.base64.len().is_multiple_of(4) {
            return Err(Mistake::BadBase64);
        }
        // The library's decoder takes the same time for all keys. It does not know all labels.
        let label = match self.label {
            Label::Key(_) => "PRIVATE KEY",
            _ => "CERTIFICATE",
        };
        let mut whole = format!("-----BEGIN {label}-----\n").into_bytes();
        whole.extend_from_slice(&self.base64);
        whole.extend_from_slice(format!("\n-----END {label}-----\n").as_bytes());
        let decoded = <(SectionKind, Vec<u8>)>::from_pem_slice(&whole);
        decoded.map(|(_, content)| content).map_err(|_| Mistake::BadBase64)
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Reads the begin or the end of a block.
fn marker(line: &[u8]) -> Result<Line<'_>, Mistake> {
    if find(line, BOM) && find(line, DASHES) {
        return Err(Mistake::ByteOrderMark);
    }
    // A comment that shows a marker, and a line that separates comments.
    if line.starts_with(b"#") || line.iter().all(|byte| *byte == b'-') || !find(line, DASHES) {
        return Ok(Line::Other);
    }
    let inner = line.strip_prefix(DASHES).and_then(|line| line.strip_suffix(DASHES));
    let inner = inner.ok_or(Mistake::Marker)?;
    if find(inner, b"----------BEGIN ") {
        return Err(Mistake::Glued);
    }
    let is_label = |label: &[u8]| {
        !label.is_empty()
            && label.len() <= SHOWN_BYTES_MAX
            && label.iter().all(|byte| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b' ' | b'#')
            })
            && label.trim_ascii() == label
    };
    let (is_begin, label) = match (inner.strip_prefix(b"BEGIN "), inner.strip_prefix(b"END ")) {
        (Some(label), _) => (true, label),
        (None, Some(label)) => (false, label),
        (None, None) => return Err(Mistake::Marker),
    };
    let label = std::str::from_utf8(label).ok().filter(|label| is_label(label.as_bytes()));
    let label = label.ok_or(Mistake::Marker)?;
    Ok(if is_begin { Line::Begin(label) } else { Line::End(label) })
}

/// Whether a line outside blocks is a comment: text that is not part of a damaged block.
fn comment(line: &[u8]) -> Result<(), Mistake> {
    if line.starts_with(b"#") {
        return Ok(());
    }
    if find(line, BOM) {
        return Err(Mistake::ByteOrderMark);
    }
    if line.contains(&0) {
        return Err(Mistake::Utf16);
    }
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(Mistake::Binary);
    }
    // Text editors make other dashes of hyphens, and hands write too few.
    let text = String::from_utf8_lossy(line).to_uppercase();
    let is_dash = |character: char| matches!(character, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    let bare = text.trim_matches(is_dash);
    let is_dashed = bare.len() < text.len();
    if is_dashed && (bare.starts_with("BEGIN ") || bare.starts_with("END ")) {
        return Err(Mistake::Marker);
    }
    Ok(())
}

fn find(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests;
