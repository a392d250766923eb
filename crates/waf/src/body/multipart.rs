//! `multipart/form-data` bodies (RFC 7578, RFC 2046), parsed strictly.
//!
//! Other multipart types, which some servers also treat as forms, are parsed in the same way. Their parts need no name: a
//! part without a name is a value if its type is text, and a file otherwise.
//!
//! A boundary is a line of its own. Facts for ModSecurity's MULTIPART variables are recorded as [`MultipartFlag`], input
//! that servers interpret differently as [`Difference`]; parsing continues after both. Input without a reliable
//! interpretation is a [`Problem`]. Values of fields are arguments. The content of files is counted and delivered in pieces.
//! A part is a file if its `filename` is not empty, as in ModSecurity. A part with `filename*` alone is delivered as file
//! and field, because servers disagree. A value in a charset that does not include ASCII is a problem; a file in such a
//! charset is not.

mod boundary;
mod delimiter;
mod disposition;
mod flags;
mod headers;
mod part;
mod state;

use super::differences::{Difference, Differences};
use super::limits::Limits;
use super::problem::{Failure, Problem};
use super::sink::Sink;
use delimiter::{LineStart, Match, Search};
use flags::Findings;
pub use flags::{MultipartFlag, MultipartFlags};
use headers::{Headers, Line};
use part::Part;
use state::{LineEnd, Place, Stage, UnmatchedBoundary};

/// An incremental parser.
#[derive(Debug, Clone)]
pub struct Multipart {
    limits: Limits,
    is_form: bool,
    findings: Findings,
    unmatched: UnmatchedBoundary,
    stage: Stage,
    place: Place,
    line_start: LineStart,
    search: Search,
    headers: Headers,
    part: Part,
    held: LineEnd,
    /// The bytes of the current line in front of the first boundary. A single one that is no data is a CR.
    preamble_line_bytes: u64,
    boundaries: u32,
    parts: u32,
    files: u32,
    arguments: u32,
    offset: u64,
    failure: Option<Failure>,
}

impl Multipart {
    /// A parser before the first byte. If the boundary is invalid, the parser has failed already.
    pub fn new(content_type: &[u8], limits: Limits) -> Self {
        let mut findings = Findings::default();
        let (boundary, failure) =
            match boundary::read(content_type, limits.boundary_bytes_max, &mut findings) {
                Ok(boundary) => (boundary, None),
                Err(problem) => (Vec::new(), Some(Failure { problem, offset: 0 })),
            };
        let line_start = LineStart::new(&boundary);
        Self {
            limits,
            is_form: boundary::is_form(content_type),
            findings,
            unmatched: UnmatchedBoundary::No,
            stage: Stage::Preamble,
            place: Place::Start,
            search: Search::new(line_start.delimiter()),
            line_start,
            headers: Headers::default(),
            part: Part::default(),
            held: LineEnd::Nothing,
            preamble_line_bytes: 0,
            boundaries: 0,
            parts: 0,
            files: 0,
            arguments: 0,
            offset: 0,
            failure,
        }
    }

    /// Parses the next piece of the body, which may be split anywhere.
    pub fn feed(&mut self, bytes: &[u8], to: &mut impl Sink) {
        let mut rest = bytes;
        while self.failure.is_none()
            && let Some((byte, behind)) = rest.split_first()
        {
            rest = match (self.stage, self.place) {
                (Stage::Epilogue, _) => {
                    if !rest.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                        self.findings.flag(MultipartFlag::DataAfter);
                    }
                    self.offset += rest.len() as u64;
                    &[]
                }
                (_, Place::Start) => self.start(*byte, rest, behind, to),
                (_, Place::Inside) => self.inside(rest, to),
                (_, Place::Tail { dashes, has_cr }) => {
                    self.tail(*byte, dashes, has_cr, to);
                    behind
                }
            };
        }
    }

    /// Ends the body. An empty body is valid.
    pub fn finish(&mut self, to: &mut impl Sink) {
        if self.failure.is_some() || self.offset == 0 || self.stage == Stage::Epilogue {
            return;
        }
        match self.place {
            // The line end after the final boundary is optional.
            Place::Tail { dashes: 2, .. } => return self.boundary(true, to),
            Place::Start => self.not_a_boundary(to),
            Place::Inside | Place::Tail { .. } => {}
        }
        self.flush_held(to);
        if self.boundaries == 0 {
            return self.fail(Problem::BoundaryNever, to);
        }
        self.findings.differ(Difference::FinalBoundaryMissing);
        self.fail(Problem::BoundaryFinal, to);
    }

    /// The problem that ended the parsing, if any.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The differences found so far.
    pub fn differences(&self) -> Differences {
        self.findings.differences
    }

    /// The flags for ModSecurity's variables.
    pub fn flags(&self) -> MultipartFlags {
        self.findings.flags
    }

    /// MULTIPART_STRICT_ERROR.
    pub fn strict_error(&self) -> bool {
        let is_odd = !self.findings.flags.and(MultipartFlags::STRICT).is_empty()
            || !self.findings.differences.and(Differences::STRICT).is_empty();
        is_odd || self.failure.is_some()
    }

    /// MULTIPART_UNMATCHED_BOUNDARY. 0: every line that looks like a boundary is a boundary. 1: another line looks like a
    /// boundary. 2: a boundary followed such a line.
    pub fn unmatched_boundary(&self) -> u8 {
        self.unmatched.number()
    }

    /// Parses a byte of a line that may be a boundary.
    fn start<'a>(
        &mut self,
        byte: u8,
        rest: &'a [u8],
        behind: &'a [u8],
        to: &mut impl Sink,
    ) -> &'a [u8] {
        match self.line_start.byte(byte) {
            Match::Open => {}
            Match::Boundary => self.place = Place::Tail { dashes: 0, has_cr: false },
            Match::Alike => {
                self.findings.differ(Difference::BoundaryPrefix);
                self.fail(Problem::BoundaryLine, to);
            }
            Match::Other => {
                self.not_a_boundary(to);
                return rest;
            }
        }
        self.offset += 1;
        behind
    }

    /// Treats the beginning of the line as content.
    fn not_a_boundary(&mut self, to: &mut impl Sink) {
        self.place = Place::Inside;
        let prefix = self.line_start.prefix().to_vec();
        if prefix.starts_with(b"--") {
            self.unmatched = UnmatchedBoundary::Yes;
        }
        self.offset -= prefix.len() as u64;
        self.flush_held(to);
        if !prefix.is_empty() && self.failure.is_none() {
            self.offset += self.content(&prefix, to);
        }
    }

    /// Parses bytes of a line that is not a boundary.
    fn inside<'a>(&mut self, rest: &'a [u8], to: &mut impl Sink) -> &'a [u8] {
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        if !run.is_empty() {
            self.offset += self.content(run, to);
        }
        match behind.split_first() {
            Some((_, behind)) if self.failure.is_none() => {
                self.end_line(to);
                behind
            }
            _ => behind,
        }
    }

    /// Parses content of a line. Returns the number of bytes taken.
    fn content(&mut self, bytes: &[u8], to: &mut impl Sink) -> u64 {
        match self.stage {
            Stage::Preamble | Stage::Epilogue => {
                if self.preamble_line_bytes > 0 || bytes != b"\r" {
                    self.findings.flag(MultipartFlag::DataBefore);
                }
                self.preamble_line_bytes += bytes.len() as u64;
                self.look(bytes);
                bytes.len() as u64
            }
            Stage::Headers => {
                let taken = self.headers.push(bytes, &self.limits);
                self.look(bytes.get(..taken).unwrap_or(bytes));
                if taken < bytes.len() {
                    self.offset += taken as u64;
                    self.fail(Problem::PartHeaderLimit, to);
                    return 0;
                }
                taken as u64
            }
            Stage::Data => {
                self.flush_held(to);
                let (bytes, cr) = match bytes.split_last() {
                    Some((b'\r', before)) => (before, LineEnd::Cr),
                    _ => (bytes, LineEnd::Nothing),
                };
                let taken = self.data(bytes, to);
                if self.failure.is_some() {
                    return taken;
                }
                self.held = cr;
                taken + u64::from(cr == LineEnd::Cr)
            }
        }
    }

    /// Searches the line for a boundary.
    fn look(&mut self, bytes: &[u8]) {
        self.search.feed(bytes);
        if self.search.is_found() {
            self.findings.differ(Difference::BoundaryInLine);
            if self.unmatched == UnmatchedBoundary::No {
                self.unmatched = UnmatchedBoundary::Yes;
            }
        }
    }

    /// Treats the end of the previous line as content.
    fn flush_held(&mut self, to: &mut impl Sink) {
        let bytes = std::mem::replace(&mut self.held, LineEnd::Nothing).bytes();
        self.offset -= bytes.len() as u64;
        self.offset += self.data(bytes, to);
    }

    /// Adds content of a part. Returns the number of bytes taken.
    fn data(&mut self, bytes: &[u8], to: &mut impl Sink) -> u64 {
        if self.failure.is_some() || bytes.is_empty() {
            return 0;
        }
        let taken = self.part.push(bytes, &self.limits, to);
        self.look(bytes.get(..taken).unwrap_or(bytes));
        if taken < bytes.len() {
            self.offset += taken as u64;
            self.fail(Problem::ValueLimit, to);
            return 0;
        }
        taken as u64
    }

    /// Handles LF at the end of a line that is not a boundary.
    fn end_line(&mut self, to: &mut impl Sink) {
        match self.stage {
            // Clients write CR LF before each boundary, also before the first one.
            Stage::Preamble if self.preamble_line_bytes == 1 => {}
            Stage::Preamble | Stage::Epilogue => self.findings.flag(MultipartFlag::DataBefore),
            Stage::Headers => match self.headers.end_line(&self.limits, &mut self.findings) {
                Ok(Line::Header) => {}
                Ok(Line::Empty) => self.end_headers(to),
                Err(problem) => self.fail(problem, to),
            },
            Stage::Data => {
                self.part.begin_data();
                self.held = if self.held == LineEnd::Cr { LineEnd::CrLf } else { LineEnd::Lf };
            }
        }
        if self.failure.is_none() {
            self.offset += 1;
        }
        self.begin_line();
    }

    fn begin_line(&mut self) {
        self.place = Place::Start;
        self.preamble_line_bytes = 0;
        self.line_start.reset();
        self.search.reset();
    }

    /// Parses a byte after a boundary.
    fn tail(&mut self, byte: u8, dashes: u8, has_cr: bool, to: &mut impl Sink) {
        match (byte, dashes, has_cr) {
            (b'-', 0 | 1, false) => self.place = Place::Tail { dashes: dashes + 1, has_cr },
            (b'\r', 0 | 2, false) => self.place = Place::Tail { dashes, has_cr: true },
            (b'\n', 0 | 2, _) => {
                self.findings.line_end(has_cr);
                self.boundary(dashes == 2, to);
            }
            _ => {
                self.findings.differ(match byte {
                    _ if has_cr => Difference::BareCarriageReturn,
                    b' ' | b'\t' => Difference::BoundaryPadding,
                    _ => Difference::BoundaryPrefix,
                });
                self.fail(Problem::BoundaryLine, to);
            }
        }
        if self.failure.is_none() {
            self.offset += 1;
        }
    }

    /// Completes a boundary: another part begins, or the body ends.
    fn boundary(&mut self, is_final: bool, to: &mut impl Sink) {
        match self.stage {
            Stage::Headers => {
                self.findings.flag(MultipartFlag::InvalidPart);
                self.findings.differ(Difference::BoundaryEarly);
                return self.fail(Problem::BoundaryLine, to);
            }
            Stage::Data if !self.part.has_data() => {
                self.findings.flag(MultipartFlag::InvalidPart);
                self.findings.differ(Difference::BoundaryEarly);
            }
            Stage::Data => self.findings.line_end(self.held == LineEnd::CrLf),
            Stage::Preamble | Stage::Epilogue => {}
        }
        if self.boundaries > 0 && self.unmatched == UnmatchedBoundary::Yes {
            self.unmatched = UnmatchedBoundary::Enclosed;
        }
        self.boundaries = self.boundaries.saturating_add(1);
        self.end_part(to);
        if self.failure.is_some() {
            return;
        }
        self.held = LineEnd::Nothing;
        self.begin_line();
        self.stage = if is_final { Stage::Epilogue } else { Stage::Headers };
        self.headers.clear();
        if !is_final {
            self.parts += 1;
            if self.parts > self.limits.parts_max {
                self.fail(Problem::PartsLimit, to);
            }
        }
    }

    /// Parses the empty line after a part's header.
    fn end_headers(&mut self, to: &mut impl Sink) {
        let part = match self.part_of_headers() {
            Ok(part) => part,
            Err(problem) => return self.fail(problem, to),
        };
        if part.name().len() > self.limits.name_bytes_max as usize {
            return self.fail(Problem::NameLimit, to);
        }
        self.headers.deliver(part.name(), to);
        if part.has_file() {
            self.files += 1;
            if self.files > self.limits.files_max {
                self.findings.flag(MultipartFlag::FileLimitExceeded);
            }
        }
        part.start(to);
        self.part = part;
        self.stage = Stage::Data;
    }

    /// The part that the header describes.
    fn part_of_headers(&mut self) -> Result<Part, Problem> {
        let mut disposition = self.headers.disposition(self.is_form, &mut self.findings)?;
        let part = match Part::new(&mut disposition) {
            Some(part) => part,
            None if self.is_form => {
                self.findings.flag(MultipartFlag::InvalidPart);
                return Err(Problem::PartName);
            }
            None => Part::without_name(disposition, self.headers.is_of_file()),
        };
        if part.is_value() && !self.headers.has_readable_charset() {
            return Err(Problem::PartCharset);
        }
        Ok(part)
    }

    /// Ends a part, at its end or at a problem.
    fn end_part(&mut self, to: &mut impl Sink) {
        if self.stage != Stage::Data {
            return;
        }
        let part = std::mem::take(&mut self.part);
        part.deliver_file(to);
        if part.is_unclear() {
            self.findings.differ(Difference::FileNameEmpty);
        }
        let Some(value) = part.value() else { return };
        if self.arguments >= self.limits.arguments_max {
            self.stage = Stage::Epilogue;
            return self.fail(Problem::ArgumentsLimit, to);
        }
        self.arguments += 1;
        to.argument(part.name(), &value);
        if part.is_unreadable_charset() {
            self.stage = Stage::Epilogue;
            self.fail(Problem::PartCharset, to);
        }
    }

    /// Ends the parsing with a problem, unless it has ended already. A partial part is delivered.
    fn fail(&mut self, problem: Problem, to: &mut impl Sink) {
        if self.failure.is_some() {
            return;
        }
        self.failure = Some(Failure { problem, offset: self.offset });
        match self.stage {
            Stage::Headers => self.headers.deliver(b"", to),
            Stage::Data => self.end_part(to),
            Stage::Preamble | Stage::Epilogue => {}
        }
    }
}

#[cfg(test)]
mod tests;
