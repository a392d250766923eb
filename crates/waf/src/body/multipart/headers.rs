//! The header lines of a part.

use super::super::charset::Charset;
use super::super::differences::Difference;
use super::super::limits::{self, Limits};
use super::super::media_type::Processor;
use super::super::problem::Problem;
use super::super::sink::Sink;
use super::disposition::{self, Disposition};
use super::flags::{Findings, MultipartFlag};

/// Text types without a parser, by the beginning of their names.
const TEXT: [&str; 5] =
    ["text/", "multipart/", "message/", "application/http", "application/graphql"];

/// Collects the header lines of a part.
#[derive(Debug, Clone, Default)]
pub(super) struct Headers {
    /// The complete lines. A folded line may continue the last line.
    lines: Vec<Vec<u8>>,
    /// The current line.
    line: Vec<u8>,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Header,
    /// The empty line that ends the header.
    Empty,
}

impl Headers {
    /// Starts another part.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.line.clear();
    }

    /// Adds bytes of a line. Returns the number of bytes added.
    pub(super) fn push(&mut self, bytes: &[u8], limits: &Limits) -> usize {
        limits::append(&mut self.line, bytes, limits.part_header_bytes_max)
    }

    /// Ends a line at LF. The LF is not part of the line.
    pub(super) fn end_line(
        &mut self,
        limits: &Limits,
        findings: &mut Findings,
    ) -> Result<Line, Problem> {
        let is_crlf = self.line.ends_with(b"\r");
        findings.line_end(is_crlf);
        let mut line = std::mem::take(&mut self.line);
        if is_crlf {
            line.pop();
        }
        if line.is_empty() {
            return Ok(Line::Empty);
        }
        if line.contains(&b'\r') {
            findings.differ(Difference::BareCarriageReturn);
        }
        let has_nul = line.contains(&0);
        if has_nul {
            findings.differ(Difference::NulInHeader);
        }
        let result = self.add(line, limits, findings);
        if has_nul { Err(Problem::PartHeader) } else { result.map(|()| Line::Header) }
    }

    fn add(
        &mut self,
        line: Vec<u8>,
        limits: &Limits,
        findings: &mut Findings,
    ) -> Result<(), Problem> {
        if matches!(line.first(), Some(b' ' | b'\t'..=b'\r')) {
            return self.fold(&line, limits, findings);
        }
        if self.lines.len() >= usize::from(limits.part_headers_max) {
            return Err(Problem::PartHeadersLimit);
        }
        let colon = memchr::memchr(b':', &line);
        let name = line.get(..colon.unwrap_or(0)).unwrap_or_default();
        let is_valid = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        self.lines.push(line);
        if is_valid { Ok(()) } else { Err(Problem::PartHeader) }
    }

    /// Appends a folded line to the previous line.
    fn fold(
        &mut self,
        line: &[u8],
        limits: &Limits,
        findings: &mut Findings,
    ) -> Result<(), Problem> {
        findings.flag(MultipartFlag::HeaderFolding);
        let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
        let (fold, text) = line.split_at(blanks);
        if text.is_empty() || !fold.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            findings.flag(MultipartFlag::InvalidHeaderFolding);
        }
        let before = self.lines.last_mut().ok_or(Problem::PartHeader)?;
        let taken = limits::append(before, b" ", limits.part_header_bytes_max)
            + limits::append(before, text, limits.part_header_bytes_max);
        if taken < text.len() + 1 { Err(Problem::PartHeaderLimit) } else { Ok(()) }
    }

    /// The Content-Disposition of the part. Only forms require one.
    pub(super) fn disposition(
        &self,
        is_form: bool,
        findings: &mut Findings,
    ) -> Result<Disposition, Problem> {
        self.note_repeated(findings);
        if let Some(encoding) = self.value(b"content-transfer-encoding") {
            let is_identity = [&b"7bit"[..], b"8bit", b"binary"]
                .iter()
                .any(|name| encoding.eq_ignore_ascii_case(name));
            if !is_identity && (is_form || !self.is_of_file()) {
                findings.differ(Difference::TransferEncoding);
            }
        }
        match self.value(b"content-disposition") {
            Some(value) => disposition::read(value, is_form, findings),
            None if is_form => Err(Problem::PartDisposition),
            None => Ok(Disposition::default()),
        }
    }

    /// Whether the type is not a text type. A part without a name is then a file.
    pub(super) fn is_of_file(&self) -> bool {
        let Some(kind) = self.value(b"content-type") else { return false };
        let start = kind.to_ascii_lowercase();
        let is_text = TEXT.iter().any(|known| start.starts_with(known.as_bytes()));
        !is_text && Processor::of(kind) == Processor::None
    }

    /// Whether rules can read a value of this part.
    pub(super) fn has_readable_charset(&self) -> bool {
        let mut types =
            self.lines.iter().filter(|line| name(line).eq_ignore_ascii_case(b"content-type"));
        types.all(|line| Charset::of(line).is_readable())
    }

    fn note_repeated(&self, findings: &mut Findings) {
        for (index, line) in self.lines.iter().enumerate() {
            let name = name(line);
            if self
                .lines
                .iter()
                .skip(index + 1)
                .any(|other| self::name(other).eq_ignore_ascii_case(name))
            {
                let is_disposition = name.eq_ignore_ascii_case(b"content-disposition");
                let difference = if is_disposition {
                    Difference::DispositionRepeated
                } else {
                    Difference::HeaderRepeated
                };
                findings.differ(difference);
            }
        }
    }

    /// The value of the first line with this name, without blanks at its ends.
    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let line = self.lines.iter().find(|line| self::name(line).eq_ignore_ascii_case(name))?;
        Some(line.get(name.len() + 1..)?.trim_ascii())
    }

    pub(super) fn deliver(&self, part: &[u8], to: &mut impl Sink) {
        for line in &self.lines {
            to.part_header(part, line);
        }
    }
}

fn name(line: &[u8]) -> &[u8] {
    line.get(..memchr::memchr(b':', line).unwrap_or(line.len())).unwrap_or_default()
}
