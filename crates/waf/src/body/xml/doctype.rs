//! Document type declarations (XML 1.0 section 2.8), which are skipped. Entities and external references are recorded, but
//! never used.

use super::super::differences::{Difference, Differences};
use super::characters::{is_blank, is_forbidden, is_name_byte};

/// The parser that skips a declaration, from `<!DOCTYPE` on.
#[derive(Debug, Clone)]
pub(super) struct Doctype {
    state: State,
    words: Words,
    is_entity: bool,
    is_external: bool,
    has_subset: bool,
    differences: Differences,
}

/// The result of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The declaration continues.
    More,
    /// The declaration has ended.
    End,
    Wrong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// After `<!DOCTYPE`.
    Start,
    /// Outside the internal subset.
    Outside,
    /// Between `[` and `]`.
    Subset,
    /// After `%`.
    ParameterReference,
    /// After `<` in the subset.
    Open,
    /// After `<!`.
    Bang,
    /// After `<!-`.
    CommentOpen,
    /// In a comment, after this number of dashes.
    Comment(u8),
    /// In a processing instruction, with whether the last byte was `?`.
    Instruction(bool),
    /// In a markup declaration, `<!NAME`.
    Markup,
    /// In a quoted string, inside or outside a markup declaration.
    Quoted { quote: u8, in_markup: bool },
}

impl Doctype {
    pub(super) fn new() -> Self {
        Self {
            state: State::Start,
            words: Words::default(),
            is_entity: false,
            is_external: false,
            has_subset: false,
            differences: Differences::NONE.with(Difference::DocumentType),
        }
    }

    /// The differences found so far.
    pub(super) fn differences(&self) -> Differences {
        self.differences
    }

    pub(super) fn byte(&mut self, byte: u8) -> Step {
        if is_forbidden(byte) {
            return Step::Wrong;
        }
        let state = match (self.state, byte) {
            (State::Start, _) if is_blank(byte) => State::Outside,
            (State::Outside | State::Markup, _) => return self.words(byte),
            (State::Quoted { quote, in_markup }, _) => match (byte == quote, in_markup) {
                (false, _) => self.state,
                (true, true) => State::Markup,
                (true, false) => State::Outside,
            },
            (State::Subset, _) if is_blank(byte) => State::Subset,
            (State::Subset, b'<') => State::Open,
            (State::Subset, b'%') => {
                self.differences.add(Difference::EntityReference);
                State::ParameterReference
            }
            (State::Subset, b']') => State::Outside,
            (State::ParameterReference, b';') => State::Subset,
            (State::ParameterReference, _) if is_name_byte(byte) => State::ParameterReference,
            (State::Open, b'!') => State::Bang,
            (State::Open, b'?') => State::Instruction(false),
            (State::Bang, b'-') => State::CommentOpen,
            (State::Bang, _) if byte.is_ascii_uppercase() => {
                self.words = Words::default();
                (self.is_entity, self.is_external) = (false, false);
                let _ = self.words.byte(byte);
                State::Markup
            }
            (State::CommentOpen, b'-') => State::Comment(0),
            (State::Comment(0 | 1), b'-') => self.dash(),
            (State::Comment(2), b'>') => State::Subset,
            (State::Comment(0 | 1), _) => State::Comment(0),
            (State::Instruction(true), b'>') => State::Subset,
            (State::Instruction(_), _) => State::Instruction(byte == b'?'),
            _ => return Step::Wrong,
        };
        self.state = state;
        Step::More
    }

    fn dash(&self) -> State {
        if self.state == State::Comment(0) { State::Comment(1) } else { State::Comment(2) }
    }

    /// Parses a byte outside quotes.
    fn words(&mut self, byte: u8) -> Step {
        let in_markup = self.state == State::Markup;
        match self.words.byte(byte) {
            Some((0, word)) if in_markup => self.is_entity = word.is(b"ENTITY"),
            // The second word of `<!DOCTYPE name SYSTEM`, the third word of `<!ENTITY name SYSTEM`.
            Some((index, word)) if index == 1 + usize::from(in_markup) => {
                let is_external = word.is(b"SYSTEM") || word.is(b"PUBLIC");
                if in_markup {
                    self.is_external = is_external;
                } else if is_external {
                    self.differences.add(Difference::EntityExternal);
                }
            }
            _ => {}
        }
        match byte {
            b'"' | b'\'' => self.state = State::Quoted { quote: byte, in_markup },
            b'[' if !in_markup && !self.has_subset => {
                self.has_subset = true;
                self.state = State::Subset;
            }
            b'>' if in_markup => {
                if self.is_entity {
                    let kind = if self.is_external {
                        Difference::EntityExternal
                    } else {
                        Difference::EntityInternal
                    };
                    self.differences.add(kind);
                }
                self.state = State::Subset;
            }
            b'>' => return Step::End,
            b'<' | b'[' | b']' => return Step::Wrong,
            _ => {}
        }
        Step::More
    }
}

/// Splits a declaration into words. The `%` of a parameter entity is not a word.
#[derive(Debug, Clone, Default)]
struct Words {
    word: Word,
    count: usize,
}

/// The beginning of a word, long enough for all keywords.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    bytes: [u8; 7],
    length: usize,
}

impl Word {
    fn is(&self, keyword: &[u8]) -> bool {
        self.bytes.get(..self.length) == Some(keyword)
    }
}

impl Words {
    /// The word that ends before this byte, and the number of the words before it.
    fn byte(&mut self, byte: u8) -> Option<(usize, Word)> {
        if is_name_byte(byte) {
            if let Some(place) = self.word.bytes.get_mut(self.word.length) {
                *place = byte;
            }
            self.word.length = self.word.length.saturating_add(1);
            return None;
        }
        if self.word.length == 0 {
            return None;
        }
        let index = self.count;
        self.count += 1;
        Some((index, std::mem::take(&mut self.word)))
    }
}
