//! Query strings. Names and values are decoded into one buffer.
//!
//! The syntax is the same as in [`super::urlencoded`].

use super::limits::Limits;
use super::problem::Problem;

/// The arguments of a query string. A reused value does not allocate its buffers again.
#[derive(Debug, Clone, Default)]
pub struct Query {
    buffer: Vec<u8>,
    pairs: Vec<Pair>,
    bad_escapes: u64,
    problem: Option<Problem>,
}

/// The position of an argument in the buffer.
#[derive(Debug, Clone, Copy)]
struct Pair {
    start: usize,
    value_start: usize,
    end: usize,
}

impl Query {
    /// An empty query.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a query string without its `?`, and replaces the previous arguments.
    pub fn read(&mut self, query: &[u8], separator: u8, limits: &Limits) {
        self.buffer.clear();
        self.pairs.clear();
        self.bad_escapes = 0;
        self.problem = None;
        for piece in query.split(|byte| *byte == separator).filter(|piece| !piece.is_empty()) {
            if self.pairs.len() >= limits.arguments_max as usize {
                self.problem = Some(Problem::ArgumentsLimit);
                return;
            }
            self.read_piece(piece, limits);
            if self.problem.is_some() {
                return;
            }
        }
    }

    fn read_piece(&mut self, piece: &[u8], limits: &Limits) {
        let equals = memchr::memchr(b'=', piece).unwrap_or(piece.len());
        let (name, value) = piece.split_at(equals);
        let start = self.buffer.len();
        self.decode(name);
        let name_end_max = start + limits.name_bytes_max as usize;
        if self.buffer.len() > name_end_max {
            self.buffer.truncate(name_end_max);
            self.problem = Some(Problem::NameLimit);
        }
        let value_start = self.buffer.len();
        if self.problem.is_none() {
            self.decode(value.get(1..).unwrap_or_default());
        }
        let end_max = value_start + limits.value_bytes_max as usize;
        if self.buffer.len() > end_max {
            self.buffer.truncate(end_max);
            self.problem = Some(Problem::ValueLimit);
        }
        self.pairs.push(Pair { start, value_start, end: self.buffer.len() });
    }

    fn decode(&mut self, encoded: &[u8]) {
        let mut rest = encoded;
        while let Some(at) = memchr::memchr2(b'%', b'+', rest) {
            let (run, others) = rest.split_at(at);
            self.buffer.extend_from_slice(run);
            let (byte, behind) = match others {
                [b'%', behind @ ..] => match escape(behind) {
                    Some((byte, behind)) => (byte, behind),
                    None => {
                        self.bad_escapes += 1;
                        (b'%', behind)
                    }
                },
                [_, behind @ ..] => (b' ', behind),
                [] => break,
            };
            self.buffer.push(byte);
            rest = behind;
        }
        self.buffer.extend_from_slice(rest);
    }

    /// The names and values, in the order of the query.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|pair| {
            let slice = |start, end| self.buffer.get(start..end).unwrap_or_default();
            (slice(pair.start, pair.value_start), slice(pair.value_start, pair.end))
        })
    }

    /// The number of `%` without two hexadecimal digits, up to the problem if there is one.
    pub fn bad_escapes(&self) -> u64 {
        self.bad_escapes
    }

    /// The problem that ended the parsing, if any.
    pub fn problem(&self) -> Option<Problem> {
        self.problem
    }
}

/// The byte encoded by two hexadecimal digits, and the rest.
pub(super) fn escape(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, behind) = bytes.split_first_chunk::<2>()?;
    Some((hex_digit(digits[0])? << 4 | hex_digit(digits[1])?, behind))
}

/// The value of a hexadecimal digit.
pub(super) const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
