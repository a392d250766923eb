//! Document type declarations (XML 1.0 section 2.8), which are skipped. Entities and external references are recorded, but
//! never used. Those that do no harm are only kept, so that references to them are none either.

use super::super::differences::{Difference, Differences};
use super::characters::{is_blank, is_forbidden, is_name_byte};
use super::definitions::{is_of_ascii, is_plain_text, is_published};

/// Maximum length of an address or of the text of an entity that is known to do no harm.
const LITERAL_BYTES_MAX: usize = 1024;
/// Maximum length of the name of such an entity.
const NAME_BYTES_MAX: usize = 64;
/// Maximum number of such entities.
const ENTITIES_MAX: usize = 64;

/// The entities that do no harm.
#[derive(Debug, Clone, Default)]
pub(super) struct HarmlessEntities {
    /// Those that the document declares.
    names: Vec<Vec<u8>>,
    /// Whether a publisher of formats keeps the definition of the others.
    is_published: bool,
}

impl HarmlessEntities {
    /// Whether a reference to an entity does no harm.
    pub(super) fn has(&self, entity: &[u8]) -> bool {
        (self.is_published && !is_of_ascii(entity)) || self.names.iter().any(|it| it == entity)
    }
}

/// What a document type says of its external subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum External {
    None,
    /// It follows, as this quoted text.
    Literal(usize),
    Judged,
}

/// The parser that skips a declaration, from `<!DOCTYPE` on.
#[derive(Debug, Clone)]
pub(super) struct Doctype {
    state: State,
    words: Words,
    is_entity: bool,
    is_external: bool,
    is_parameter: bool,
    has_subset: bool,
    external: External,
    /// The name of an entity.
    name: Vec<u8>,
    /// The last quoted text, and the number of those in the declaration.
    literal: Vec<u8>,
    literals: usize,
    known: HarmlessEntities,
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
            is_parameter: false,
            has_subset: false,
            external: External::None,
            name: Vec::new(),
            literal: Vec::new(),
            literals: 0,
            known: HarmlessEntities::default(),
            differences: Differences::NONE.with(Difference::DocumentType),
        }
    }

    /// The differences found so far.
    pub(super) fn differences(&self) -> Differences {
        match self.external {
            External::Literal(_) => self.differences.with(Difference::EntityExternal),
            External::None | External::Judged => self.differences,
        }
    }

    /// The entities that do no harm.
    pub(super) fn known(self) -> HarmlessEntities {
        self.known
    }

    pub(super) fn byte(&mut self, byte: u8) -> Step {
        if is_forbidden(byte) {
            return Step::Wrong;
        }
        let state = match (self.state, byte) {
            (State::Start, _) if is_blank(byte) => State::Outside,
            (State::Outside | State::Markup, _) => return self.words(byte),
            (State::Quoted { quote, .. }, _) if byte != quote => {
                // One byte more shows that the text is too long.
                if self.literal.len() <= LITERAL_BYTES_MAX {
                    self.literal.push(byte);
                }
                self.state
            }
            (State::Quoted { in_markup: true, .. }, _) => State::Markup,
            (State::Quoted { in_markup: false, .. }, _) => {
                self.external_literal();
                State::Outside
            }
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
                (self.is_entity, self.is_external, self.is_parameter) = (false, false, false);
                self.name.clear();
                self.literals = 0;
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
        if in_markup && self.is_entity {
            self.is_parameter |= byte == b'%';
            // One byte more shows that the name is too long.
            if self.words.count == 1 && is_name_byte(byte) && self.name.len() <= NAME_BYTES_MAX {
                self.name.push(byte);
            }
        }
        match self.words.byte(byte) {
            Some((0, word)) if in_markup => self.is_entity = word.is(b"ENTITY"),
            // The second word of `<!DOCTYPE name SYSTEM`, the third word of `<!ENTITY name SYSTEM`.
            Some((index, word)) if index == 1 + usize::from(in_markup) => {
                let is_external = word.is(b"SYSTEM") || word.is(b"PUBLIC");
                if in_markup {
                    self.is_external = is_external;
                } else if is_external {
                    // `SYSTEM address`, `PUBLIC name address`.
                    self.external = External::Literal(1 + usize::from(word.is(b"PUBLIC")));
                }
            }
            _ => {}
        }
        match byte {
            b'"' | b'\'' => {
                self.literal.clear();
                self.literals += 1;
                self.state = State::Quoted { quote: byte, in_markup };
            }
            b'[' if !in_markup && !self.has_subset => {
                self.has_subset = true;
                self.state = State::Subset;
            }
            b'>' if in_markup => {
                if self.is_entity {
                    self.end_entity();
                }
                self.state = State::Subset;
            }
            b'>' => {
                // A name without an address leads nowhere.
                if self.external == External::Literal(2) && self.literals == 1 {
                    self.external = External::Judged;
                }
                return Step::End;
            }
            b'<' | b'[' | b']' => return Step::Wrong,
            _ => {}
        }
        Step::More
    }
}

impl Doctype {
    /// Judges the external subset, if the quoted text that has ended is its address.
    fn external_literal(&mut self) {
        if self.external != External::Literal(self.literals) {
            return;
        }
        self.external = External::Judged;
        if self.literal.len() <= LITERAL_BYTES_MAX && is_published(&self.literal) {
            self.known.is_published = true;
        } else {
            self.differences.add(Difference::EntityExternal);
        }
    }

    /// Keeps the entity that was declared, or records it.
    fn end_entity(&mut self) {
        let is_plain = !self.is_external
            && !self.is_parameter
            && (self.words.count, self.literals) == (2, 1)
            && self.name.len() <= NAME_BYTES_MAX
            && self.literal.len() <= LITERAL_BYTES_MAX
            && is_plain_text(&self.literal);
        if is_plain && self.known.names.len() < ENTITIES_MAX {
            return self.known.names.push(std::mem::take(&mut self.name));
        }
        self.differences.add(match self.is_external {
            true => Difference::EntityExternal,
            false => Difference::EntityInternal,
        });
    }
}

/// Splits a declaration into words. The `%` of a parameter entity is not a word.
#[derive(Debug, Clone, Default)]
struct Words {
    word: WordStart,
    count: usize,
}

/// The beginning of a word, long enough for all keywords.
#[derive(Debug, Clone, Copy, Default)]
struct WordStart {
    bytes: [u8; 7],
    length: usize,
}

impl WordStart {
    fn is(&self, keyword: &[u8]) -> bool {
        self.bytes.get(..self.length) == Some(keyword)
    }
}

impl Words {
    /// The word that ends before this byte, and the number of the words before it.
    fn byte(&mut self, byte: u8) -> Option<(usize, WordStart)> {
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
