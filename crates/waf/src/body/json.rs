//! JSON (RFC 8259), parsed strictly and without recursion. Every leaf becomes an argument.
//!
//! The name of a leaf is its path, `json.a.b`, with decoded keys (for arrays, see [`JsonNames`]). The name of a top-level
//! value is `json`. Values are as in ModSecurity and Coraza: strings are decoded, numbers, `true` and `false` are their
//! text, and `null` is empty. Unlike there, empty arrays and objects below the top become arguments with an empty value, so
//! that rules inspect their keys. The names of all leaves together are at most [`NAMES_PER_BYTE`] times as long as the body.

mod number;
mod path;
mod text;

use super::differences::{Difference, Differences};
use super::limits::Limits;
use super::problem::{Failure, Problem};
use super::sink::Sink;
use number::Number;
pub use path::JsonNames;
use path::{ClosedContainer, Path};
use text::{Step, Text};

/// Maximum number of bytes of the names of all leaves for each byte of the body. The name of a leaf is its whole path, so names are
/// together many times as long as short leaves in a long path. Programs send numbers in paths of up to about 150 bytes.
const NAMES_PER_BYTE: u64 = 100;
/// The number of bytes of names that is always allowed.
const NAMES_BYTES_FREE: u64 = 64 << 10;

/// An incremental parser.
#[derive(Debug, Clone)]
pub struct Json {
    limits: Limits,
    names: JsonNames,
    path: Path,
    text: Text,
    state: State,
    arguments: u32,
    /// The number of bytes of the names of all arguments.
    names_bytes: u64,
    offset: u64,
    differences: Differences,
    repeated_key: Option<Vec<u8>>,
    failure: Option<Failure>,
}

/// The expected input.
#[derive(Debug, Clone, Copy)]
enum State {
    /// The top-level value, possibly after a byte order mark, with the number of bytes of the mark read so far.
    Start(usize),
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Text {
        is_key: bool,
    },
    Number(Number),
    /// The rest of a literal, and the value of the literal.
    Literal(&'static [u8], &'static [u8]),
    /// Only blanks.
    Done,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Json {
    /// A parser before the first byte.
    pub fn new(names: JsonNames, limits: Limits) -> Self {
        Self {
            limits,
            names,
            path: Path::new(names, limits.name_bytes_max),
            text: Text::default(),
            state: State::Start(0),
            arguments: 0,
            names_bytes: 0,
            offset: 0,
            differences: Differences::NONE,
            repeated_key: None,
            failure: None,
        }
    }

    /// Parses the next piece of the body, which may be split anywhere.
    pub fn feed(&mut self, bytes: &[u8], to: &mut impl Sink) {
        let mut rest = bytes;
        while self.failure.is_none() && !rest.is_empty() {
            let plain = match self.state {
                State::Text { .. } => self.text.plain(rest),
                _ => 0,
            };
            let (run, others) = rest.split_at(plain);
            if !run.is_empty() {
                self.plain(run, to);
                rest = others;
            } else if let Some((byte, others)) = others.split_first() {
                match self.byte(*byte, to) {
                    Ok(()) => self.offset += 1,
                    Err(problem) => self.fail(problem, to),
                }
                rest = others;
            }
        }
    }

    /// Ends the body. An empty body is valid.
    pub fn finish(&mut self, to: &mut impl Sink) {
        if self.failure.is_some() || self.offset == 0 {
            return;
        }
        if let State::Number(number) = self.state
            && number.is_whole()
            && self.path.depth() == 0
            && let Err(problem) = self.leaf_text(to)
        {
            return self.fail(problem, to);
        }
        if !matches!(self.state, State::Done) {
            self.fail(Problem::Unfinished, to);
        }
    }

    /// The problem that ended the parsing, if any.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The length of the path to the current value, with the key that is being read.
    pub fn path_bytes(&self) -> usize {
        let key = match self.state {
            State::Text { is_key: true } => self.text.bytes(),
            _ => b"",
        };
        self.path.name().len() + key.len()
    }

    /// The differences found so far.
    pub fn differences(&self) -> Differences {
        if self.text.lone_surrogate() {
            self.differences.with(Difference::LoneSurrogate)
        } else {
            self.differences
        }
    }

    /// The name of the first repeated key, with its path.
    pub fn repeated_key(&self) -> Option<&[u8]> {
        self.repeated_key.as_deref()
    }

    fn text_bytes_max(&self, is_key: bool) -> u32 {
        if is_key { self.limits.name_bytes_max } else { self.limits.value_bytes_max }
    }

    /// Adds literal bytes of a string.
    fn plain(&mut self, run: &[u8], to: &mut impl Sink) {
        let is_key = matches!(self.state, State::Text { is_key: true });
        let taken = self.text.append(run, self.text_bytes_max(is_key));
        self.offset += taken as u64;
        if taken < run.len() {
            self.fail(full(is_key), to);
        }
    }

    fn byte(&mut self, byte: u8, to: &mut impl Sink) -> Result<(), Problem> {
        match self.state {
            State::Text { is_key } => match self.text.byte(byte, self.text_bytes_max(is_key)) {
                Step::More => Ok(()),
                Step::Full => Err(full(is_key)),
                Step::Wrong(problem) => Err(problem),
                Step::End if is_key => self.key(),
                Step::End => self.leaf_text(to),
            },
            State::Number(number) => match number.next(byte) {
                Some(number) => {
                    self.state = State::Number(number);
                    let taken = self.text.append(&[byte], self.limits.value_bytes_max);
                    if taken == 0 { Err(Problem::ValueLimit) } else { Ok(()) }
                }
                None if number.is_whole() => {
                    self.leaf_text(to)?;
                    self.structure(byte, to)
                }
                None => Err(Problem::JsonNumber),
            },
            State::Literal(rest, value) => match rest.split_first() {
                Some((expected, rest)) if *expected == byte => {
                    self.state = State::Literal(rest, value);
                    if rest.is_empty() { self.leaf(value, to) } else { Ok(()) }
                }
                _ => Err(Problem::JsonSyntax),
            },
            _ => self.structure(byte, to),
        }
    }

    /// Parses a byte outside strings, numbers and literals.
    fn structure(&mut self, byte: u8, to: &mut impl Sink) -> Result<(), Problem> {
        match (self.state, byte) {
            (State::Start(seen), _)
                if BYTE_ORDER_MARK.get(seen) == Some(&byte) && seen as u64 == self.offset =>
            {
                self.state = State::Start(seen + 1);
                if seen + 1 == BYTE_ORDER_MARK.len() {
                    self.differences.add(Difference::ByteOrderMark);
                }
                Ok(())
            }
            (State::Start(1 | 2), _) => Err(Problem::JsonSyntax),
            (_, b' ' | b'\t' | b'\n' | b'\r') => Ok(()),
            (State::Done, _) => Err(Problem::JsonTrailing),
            (State::ValueOrEnd | State::CommaOrEnd, b']') => self.close(true, to),
            (State::KeyOrEnd | State::CommaOrEnd, b'}') => self.close(false, to),
            (State::Start(_) | State::Value | State::ValueOrEnd, _) => self.value(byte),
            (State::Key | State::KeyOrEnd, b'"') => self.begin(State::Text { is_key: true }),
            (State::Colon, b':') => self.begin(State::Value),
            (State::CommaOrEnd, b',') => {
                self.begin(if self.path.is_in_array() { State::Value } else { State::Key })
            }
            _ => Err(Problem::JsonSyntax),
        }
    }

    fn begin(&mut self, state: State) -> Result<(), Problem> {
        self.text.clear();
        self.state = state;
        Ok(())
    }

    /// Parses the first byte of a value.
    fn value(&mut self, byte: u8) -> Result<(), Problem> {
        let state = match byte {
            b'"' => State::Text { is_key: false },
            b'{' => State::KeyOrEnd,
            b'[' => State::ValueOrEnd,
            b't' => State::Literal(b"rue", b"true"),
            b'f' => State::Literal(b"alse", b"false"),
            b'n' => State::Literal(b"ull", b""),
            _ => State::Number(Number::start(byte).ok_or(Problem::JsonSyntax)?),
        };
        if !self.path.element() {
            return Err(Problem::NameLimit);
        }
        self.begin(state)?;
        match state {
            State::KeyOrEnd | State::ValueOrEnd => {
                if self.path.depth() >= usize::from(self.limits.depth_max) {
                    return Err(Problem::DepthLimit);
                }
                self.path.open(byte == b'[');
            }
            State::Number(_) if self.text.append(&[byte], self.limits.value_bytes_max) == 0 => {
                return Err(Problem::ValueLimit);
            }
            _ => {}
        }
        Ok(())
    }

    fn key(&mut self) -> Result<(), Problem> {
        let named = self.path.key(self.text.bytes());
        self.text.clear();
        if named.is_repeated {
            self.differences.add(Difference::DuplicateKey);
            self.repeated_key.get_or_insert_with(|| self.path.name().to_vec());
        }
        self.state = State::Colon;
        if named.fits { Ok(()) } else { Err(Problem::NameLimit) }
    }

    fn close(&mut self, is_array: bool, to: &mut impl Sink) -> Result<(), Problem> {
        match self.path.close(is_array) {
            None => Err(Problem::JsonSyntax),
            Some(ClosedContainer { elements: 0, .. }) if self.path.depth() > 0 => {
                self.leaf(b"", to)
            }
            Some(ClosedContainer { elements, is_array: true })
                if elements > 0 && self.names == JsonNames::Coraza =>
            {
                self.leaf(elements.to_string().as_bytes(), to)
            }
            Some(_) => {
                self.end_value();
                Ok(())
            }
        }
    }

    /// Delivers the string or number as a leaf.
    fn leaf_text(&mut self, to: &mut impl Sink) -> Result<(), Problem> {
        let text = std::mem::take(&mut self.text);
        let result = self.leaf(text.bytes(), to);
        self.text = text;
        result
    }

    fn leaf(&mut self, value: &[u8], to: &mut impl Sink) -> Result<(), Problem> {
        self.end_value();
        if self.arguments >= self.limits.arguments_max {
            return Err(Problem::ArgumentsLimit);
        }
        self.names_bytes += self.path.name().len() as u64;
        if self.names_bytes > NAMES_BYTES_FREE.saturating_add(NAMES_PER_BYTE * self.offset) {
            return Err(Problem::NamesLimit);
        }
        self.arguments += 1;
        to.argument(self.path.name(), value);
        Ok(())
    }

    fn end_value(&mut self) {
        self.state = if self.path.depth() == 0 { State::Done } else { State::CommaOrEnd };
    }

    /// Ends the parsing with a problem. A partial string or name is delivered.
    fn fail(&mut self, problem: Problem, to: &mut impl Sink) {
        self.failure = Some(Failure { problem, offset: self.offset });
        let has_room = self.arguments < self.limits.arguments_max;
        let is_named = self.path.name().len() > path::TOP.len();
        match self.state {
            _ if !has_room => {}
            State::Text { is_key: true } => {
                let _ = self.path.key(self.text.bytes());
                to.argument(self.path.name(), b"");
            }
            State::Text { is_key: false } | State::Number(_) => {
                to.argument(self.path.name(), self.text.bytes())
            }
            State::Value if self.path.is_in_array() => {}
            State::Colon
            | State::Value
            | State::ValueOrEnd
            | State::KeyOrEnd
            | State::Literal(..)
                if is_named =>
            {
                to.argument(self.path.name(), b"");
            }
            _ => {}
        }
    }
}

fn full(is_key: bool) -> Problem {
    if is_key { Problem::NameLimit } else { Problem::ValueLimit }
}

#[cfg(test)]
mod tests;
