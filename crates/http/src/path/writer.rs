//! Computation of the member's path.

use super::{Backslash, EncodedSlashes, Nul, Parameters, PathError, Slashes, Spellings};
use crate::chars::{PATH, PathByte, hex_value, is_segment_delimiter, is_unreserved, push_escape};

/// The treatment of dot-segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    /// Removed as in RFC 3986 section 5.2.4.
    Remove,
    /// Like `Remove`, but refused if another order of merging slashes, decoding and removing would result in another path.
    /// For a path whose dot-segments the member gets.
    RemoveUnambiguous,
    /// Refused.
    Refuse,
}

const ENCODED_SLASH: &[u8] = b"%2F";

/// Writes the member's path, and overwrites `out`. Returns whether the path for decisions may differ.
pub(super) fn write_member_path(
    path: &[u8],
    spellings: Spellings,
    dots: Dots,
    out: &mut Vec<u8>,
) -> Result<bool, PathError> {
    out.clear();
    let Some((b'/', mut rest)) = path.split_first() else {
        return Err(PathError::Character);
    };
    out.push(b'/');
    let mut writer = Writer::new(out, spellings, dots);
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (*byte, PATH[usize::from(*byte)]) {
            (b'/', _) => writer.separate()?,
            (b';', _) => writer.parameter()?,
            (b'\\', _) => writer.backslash()?,
            (b'%', _) => {
                let [high, low, tail @ ..] = rest else {
                    return Err(PathError::Escape);
                };
                let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low)) else {
                    return Err(PathError::Escape);
                };
                rest = tail;
                writer.escape(high << 4 | low)?;
            }
            (_, PathByte::Plain | PathByte::Mark) => writer.push(*byte),
            (_, PathByte::Special) => writer.push_escape(*byte),
            (_, PathByte::Query | PathByte::End | PathByte::Refused) => {
                return Err(PathError::Character);
            }
        }
    }
    writer.end_segment(Position::Last)?;
    Ok(writer.decided_differs)
}

/// Whether a segment is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Inner,
    Last,
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    spellings: Spellings,
    dots: Dots,
    /// The position in `out` of the slash before the current segment.
    segment_start: usize,
    /// The position in `out` where the parameters of the segment start; with [`Parameters::Remove`] they are not written.
    parameters_start: Option<usize>,
    /// Whether the segment contains an encoded slash.
    has_encoded_slash: bool,
    decided_differs: bool,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut Vec<u8>, spellings: Spellings, dots: Dots) -> Self {
        Self {
            out,
            spellings,
            dots,
            segment_start: 0,
            parameters_start: None,
            has_encoded_slash: false,
            decided_differs: false,
        }
    }

    fn is_skipping(&self) -> bool {
        self.parameters_start.is_some() && self.spellings.parameters == Parameters::Remove
    }

    fn push(&mut self, byte: u8) {
        if !self.is_skipping() {
            self.out.push(byte);
        }
    }

    fn push_escape(&mut self, byte: u8) {
        if !self.is_skipping() {
            push_escape(byte, self.out);
        }
    }

    /// Handles a slash in any spelling.
    fn separate(&mut self) -> Result<(), PathError> {
        self.end_segment(Position::Inner)?;
        self.segment_start = self.out.len();
        self.parameters_start = None;
        self.has_encoded_slash = false;
        self.out.push(b'/');
        Ok(())
    }

    fn escape(&mut self, decoded: u8) -> Result<(), PathError> {
        match decoded {
            b'/' => return self.encoded_slash(),
            b'\\' => return self.backslash(),
            0 if self.spellings.nul == Nul::Refuse => return Err(PathError::Nul),
            _ if is_unreserved(decoded) => self.push(decoded),
            _ => {
                self.decided_differs |= is_segment_delimiter(decoded);
                self.push_escape(decoded);
            }
        }
        Ok(())
    }

    fn encoded_slash(&mut self) -> Result<(), PathError> {
        match self.spellings.encoded_slashes {
            EncodedSlashes::Refuse => Err(PathError::EncodedSlash),
            EncodedSlashes::Decode => self.separate(),
            EncodedSlashes::Keep if self.is_skipping() => Ok(()),
            // Servers that remove parameters do not see this slash; other servers see it.
            EncodedSlashes::Keep if self.parameters_start.is_some() => Err(PathError::EncodedSlash),
            EncodedSlashes::Keep => {
                (self.has_encoded_slash, self.decided_differs) = (true, true);
                self.out.extend_from_slice(ENCODED_SLASH);
                Ok(())
            }
        }
    }

    fn backslash(&mut self) -> Result<(), PathError> {
        match self.spellings.backslash {
            Backslash::Refuse => return Err(PathError::Backslash),
            Backslash::Slash => return self.separate(),
            Backslash::Keep => self.push_escape(b'\\'),
        }
        Ok(())
    }

    fn parameter(&mut self) -> Result<(), PathError> {
        if self.spellings.parameters == Parameters::Refuse {
            return Err(PathError::Parameters);
        }
        self.parameters_start.get_or_insert(self.out.len());
        if !self.is_skipping() {
            self.decided_differs = true;
            self.out.push(b';');
        }
        Ok(())
    }

    /// Removes the current segment from `out` if it is a dot-segment, or an empty segment that must not stay.
    fn end_segment(&mut self, position: Position) -> Result<(), PathError> {
        let name_end = self.parameters_start.unwrap_or(self.out.len());
        let name = &self.out[self.segment_start + 1..name_end];
        let has_parameters = name_end < self.out.len();
        if self.has_encoded_slash && pieces(name).any(is_dots) {
            return Err(PathError::EncodedSlash);
        }
        let is_empty = name.is_empty() || (self.has_encoded_slash && name.ends_with(ENCODED_SLASH));
        if has_parameters && (is_dots(name) || (is_empty && position == Position::Inner)) {
            return Err(PathError::Parameters);
        }
        match name {
            b"" if position == Position::Inner && !has_parameters => self.end_empty_segment(),
            b"." | b".." if self.dots == Dots::Refuse => return Err(PathError::DotSegment),
            b"." => self.remove_segment(position),
            b".." => {
                self.out.truncate(self.segment_start);
                self.segment_start = self.parent()?;
                self.remove_segment(position);
            }
            _ => {}
        }
        Ok(())
    }

    fn end_empty_segment(&mut self) {
        if self.spellings.slashes == Slashes::Merge || self.segment_start == 0 {
            self.out.truncate(self.segment_start);
        } else {
            self.decided_differs = true;
        }
    }

    fn remove_segment(&mut self, position: Position) {
        self.out.truncate(self.segment_start);
        if position == Position::Last {
            self.out.push(b'/');
        }
    }

    /// The position in `out` where the last segment starts.
    fn parent(&self) -> Result<usize, PathError> {
        let Some(start) = memchr::memrchr(b'/', self.out) else { return Ok(0) };
        let name = &self.out[start + 1..];
        let is_ambiguous = name.is_empty() || memchr::memmem::find(name, ENCODED_SLASH).is_some();
        if is_ambiguous && self.dots == Dots::RemoveUnambiguous {
            return Err(PathError::DotSegment);
        }
        Ok(start)
    }
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// The parts between encoded slashes.
fn pieces(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(name);
    std::iter::from_fn(move || {
        let now = rest?;
        let at = memchr::memmem::find(now, ENCODED_SLASH);
        rest = at.map(|at| &now[at + ENCODED_SLASH.len()..]);
        Some(at.map_or(now, |at| &now[..at]))
    })
}
