//! Boundaries at the start of a line, where they are valid, and elsewhere, where they are only recorded.

use memchr::memmem::Finder;

/// Maximum number of blanks and quotes between the dashes and the boundary in a line that is reported as an attempted
/// boundary.
const BLANKS_MAX: u8 = 8;

/// Compares the beginning of a line, byte by byte, with the delimiter: `--` and the boundary.
#[derive(Debug, Clone)]
pub(super) struct LineStart {
    delimiter: Vec<u8>,
    state: State,
    /// The beginning of the line: dashes, blanks and a part of the boundary.
    prefix: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// This number of bytes matches the delimiter.
    Delimiter(usize),
    /// This number of blanks or quotes follows the dashes.
    Blanks(u8),
    /// After blanks, this number of bytes matches the delimiter.
    Alike(usize),
}

/// The result of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// The line may be a boundary.
    Open,
    /// The line begins with the boundary.
    Boundary,
    /// The line begins with the boundary, but has blanks or quotes before it.
    Alike,
    /// The line is not a boundary. The byte is not part of the prefix.
    Other,
}

impl LineStart {
    pub(super) fn new(boundary: &[u8]) -> Self {
        let delimiter = [b"--", boundary].concat();
        Self { prefix: Vec::with_capacity(delimiter.len()), delimiter, state: State::Delimiter(0) }
    }

    pub(super) fn delimiter(&self) -> &[u8] {
        &self.delimiter
    }

    /// Starts a new line.
    pub(super) fn reset(&mut self) {
        self.prefix.clear();
        self.state = State::Delimiter(0);
    }

    /// The part of the line read so far.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(super) fn byte(&mut self, byte: u8) -> Match {
        let is_blank = matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'"');
        let continues = |at: usize| self.delimiter.get(at) == Some(&byte);
        let state = match self.state {
            State::Delimiter(at) if continues(at) => State::Delimiter(at + 1),
            State::Delimiter(2) if is_blank => State::Blanks(1),
            State::Blanks(_) if continues(2) => State::Alike(3),
            State::Blanks(blanks) if is_blank && blanks < BLANKS_MAX => State::Blanks(blanks + 1),
            State::Alike(at) if continues(at) => State::Alike(at + 1),
            _ => return Match::Other,
        };
        self.state = state;
        self.prefix.push(byte);
        match state {
            State::Delimiter(at) if at == self.delimiter.len() => Match::Boundary,
            State::Alike(at) if at == self.delimiter.len() => Match::Alike,
            _ => Match::Open,
        }
    }
}

/// Searches for the delimiter within a line that arrives in pieces.
#[derive(Debug, Clone)]
pub(super) struct Search {
    finder: Finder<'static>,
    /// The end of the line so far. It is shorter than the delimiter.
    tail: Vec<u8>,
    is_found: bool,
}

impl Search {
    pub(super) fn new(delimiter: &[u8]) -> Self {
        Self { finder: Finder::new(delimiter).into_owned(), tail: Vec::new(), is_found: false }
    }

    /// Starts a new line.
    pub(super) fn reset(&mut self) {
        self.tail.clear();
    }

    /// Whether the delimiter was found in this line.
    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }

    /// Searches the next bytes of the line.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.is_found {
            return;
        }
        let tail_max = self.finder.needle().len() - 1;
        self.tail.extend_from_slice(bytes.get(..tail_max).unwrap_or(bytes));
        self.is_found = self.finder.find(&self.tail).is_some() || self.finder.find(bytes).is_some();
        if bytes.len() >= tail_max {
            self.tail.clear();
            self.tail.extend_from_slice(bytes.get(bytes.len() - tail_max..).unwrap_or_default());
        } else {
            let surplus = self.tail.len().saturating_sub(tail_max);
            self.tail.drain(..surplus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Match {
        let mut start = LineStart::new(b"aab");
        for byte in line {
            match start.byte(*byte) {
                Match::Open => {}
                other => return other,
            }
        }
        Match::Open
    }

    #[test]
    fn lines_are_compared() {
        for (line, expected) in [
            (&b""[..], Match::Open),
            (b"--aa", Match::Open),
            (b"--aab", Match::Boundary),
            (b"--aabc", Match::Boundary),
            (b"--aac", Match::Other),
            (b"-aab", Match::Other),
            (b"---aab", Match::Other),
            (b"--  \"aab", Match::Alike),
            (b"-- a", Match::Open),
            (b"-- aaa", Match::Other),
            (b"--         aab", Match::Other),
            (b"--\r\n", Match::Other),
        ] {
            assert_eq!(read(line), expected, "{:?}", line.escape_ascii().to_string());
        }
    }

    #[test]
    fn the_delimiter_is_found_across_pieces() {
        for (line, expected) in [
            (&b"x--aab"[..], true),
            (b"--aab", true),
            (b"-----aabxx", true),
            (b"--aa", false),
            (b"--a-aab--aac", false),
        ] {
            for first in 0..=line.len() {
                for second in first..=line.len() {
                    let mut search = Search::new(b"--aab");
                    [&line[..first], &line[first..second], &line[second..]]
                        .iter()
                        .for_each(|piece| search.feed(piece));
                    assert_eq!(search.is_found(), expected, "{line:?} {first} {second}");
                }
            }
        }
        let mut search = Search::new(b"--aab");
        search.feed(b"--a");
        search.reset();
        search.feed(b"ab");
        assert!(!search.is_found());
        for _ in 0..100 {
            search.feed(b"-");
        }
        assert!(search.tail.len() < b"--aab".len());
    }
}
