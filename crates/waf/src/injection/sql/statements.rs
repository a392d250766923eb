//! Statements other than SELECT: the required words after the first word.

use super::selection::Weight;
use super::token::{Class, Verb};
use super::tokens::Tokens;

/// Maximum number of tokens after the first word that a pattern inspects.
const AHEAD: usize = 5;

/// A pattern's condition on one token.
#[derive(Clone, Copy)]
enum Is {
    Class(Class),
    /// The name of a table, a user, or another object.
    Name,
    /// An assigned name or variable, or a name followed by `=`.
    Operand,
    /// The end of the statement.
    Over,
    /// This word.
    Word(&'static [u8]),
    /// A name that contains a dot or an underscore.
    TechnicalName,
}

use Is::{Name, Operand, Over, TechnicalName, Word};
use Weight::{Likely, Sure};

/// The statements. The first matching pattern decides.
const PATTERNS: &[(Verb, &[Is], Weight)] = &[
    (Verb::Insert, &[Is::Class(Class::Into), Name, Is::Class(Class::Values)], Sure),
    (Verb::Insert, &[Is::Class(Class::Into), Name, Is::Class(Class::Open)], Sure),
    (Verb::Insert, &[Is::Class(Class::Into), Name, Is::Class(Class::Select)], Sure),
    (Verb::Insert, &[Is::Class(Class::Into), Name, Is::Class(Class::Set)], Sure),
    (Verb::Insert, &[Is::Class(Class::Into), Name, Word(b"using")], Sure),
    (Verb::Update, &[Name, Is::Class(Class::Set), Operand, Is::Class(Class::Compare)], Sure),
    (Verb::Delete, &[Is::Class(Class::From), Name, Is::Class(Class::Where)], Sure),
    (Verb::Delete, &[Is::Class(Class::From), Name, Over], Likely),
    (Verb::Define, &[Is::Class(Class::Object), Name, Over], Likely),
    (Verb::Define, &[Is::Class(Class::Object), Name, Is::Class(Class::Open), Name, Name], Sure),
    (Verb::Define, &[Is::Class(Class::Object), Name, Word(b"add")], Likely),
    (Verb::Define, &[Is::Class(Class::Object), Name, Word(b"identified")], Sure),
    (Verb::Define, &[Is::Class(Class::Object), Name, Word(b"with")], Likely),
    (Verb::Define, &[Is::Class(Class::Object), Name, Is::Class(Class::As)], Likely),
    (Verb::Define, &[Is::Class(Class::Object), Name, Is::Class(Class::Set)], Likely),
    (Verb::Define, &[Name, Over], Likely),
    (Verb::Execute, &[Is::Class(Class::Weapon)], Sure),
    (Verb::Execute, &[Is::Class(Class::Open), Is::Class(Class::Variable)], Sure),
    (Verb::Execute, &[Is::Class(Class::Open), Is::Class(Class::Text)], Likely),
    (Verb::Execute, &[Is::Class(Class::Open), Is::Class(Class::Function)], Sure),
    (Verb::Execute, &[Word(b"immediate"), Is::Class(Class::Text)], Sure),
    (Verb::Execute, &[TechnicalName, Is::Class(Class::Text)], Sure),
    (Verb::Execute, &[TechnicalName, Is::Class(Class::Variable)], Sure),
    (Verb::Execute, &[Name, Is::Class(Class::Text)], Likely),
    (Verb::Execute, &[Name, Is::Class(Class::Open)], Likely),
    (Verb::Execute, &[Name, Over], Likely),
    (Verb::Declare, &[Is::Class(Class::Variable)], Sure),
    (Verb::Wait, &[Is::Class(Class::Delay), Is::Class(Class::Text)], Sure),
    (Verb::Wait, &[Is::Class(Class::Delay), Is::Class(Class::Variable)], Sure),
    (Verb::Grant, &[Name, Is::Class(Class::To), Name, Over], Likely),
    (Verb::Grant, &[Name, Is::Class(Class::Join), Name, Is::Class(Class::To)], Sure),
    (Verb::Grant, &[Is::Class(Class::All), Name, Is::Class(Class::Join)], Sure),
    (Verb::Load, &[Name, Is::Class(Class::File), Is::Class(Class::Text)], Sure),
    (Verb::Copy, &[Name, Is::Class(Class::From), Is::Class(Class::Text)], Sure),
    (Verb::Copy, &[Name, Is::Class(Class::To), Is::Class(Class::Text)], Sure),
    (Verb::Copy, &[Name, Is::Class(Class::From), Word(b"program")], Sure),
    (Verb::Copy, &[Name, Is::Class(Class::To), Word(b"program")], Sure),
    (Verb::Copy, &[Is::Class(Class::Open), Is::Class(Class::Select)], Sure),
    (Verb::Backup, &[Is::Class(Class::Object), Name, Is::Class(Class::To)], Sure),
    (Verb::Backup, &[Is::Class(Class::Object), Name, Is::Class(Class::From), Word(b"disk")], Sure),
    (Verb::Bulk, &[Word(b"insert"), Name, Is::Class(Class::From), Is::Class(Class::Text)], Sure),
    (Verb::Shutdown, &[Over], Likely),
    (Verb::Shutdown, &[Word(b"with"), Word(b"nowait")], Sure),
    (Verb::Attach, &[Is::Class(Class::Object), Is::Class(Class::Text), Is::Class(Class::As)], Sure),
    (Verb::Prepare, &[Name, Is::Class(Class::From), Is::Class(Class::Text)], Sure),
    (Verb::Prepare, &[Name, Is::Class(Class::From), Is::Class(Class::Variable)], Sure),
    (Verb::Handler, &[Name, Word(b"open")], Likely),
    (Verb::Handler, &[Name, Word(b"read")], Likely),
    (Verb::Block, &[Is::Class(Class::Weapon), Is::Class(Class::Open)], Sure),
    (Verb::Block, &[Is::Class(Class::Verb(Verb::Declare))], Sure),
    (Verb::Block, &[Is::Class(Class::Verb(Verb::Wait))], Sure),
    (Verb::Block, &[Is::Class(Class::Text), Over], Likely),
];

/// Parses the tokens after the first word of a statement.
pub(super) fn read(verb: Verb, tokens: &mut Tokens<'_>) -> Weight {
    let mut following: [Option<(Class, &[u8])>; AHEAD] = [None; AHEAD];
    let mut places = following.iter_mut();
    let mut place = places.next();
    while let Some(slot) = place.take() {
        let token = tokens.next();
        let word = tokens.bytes(&token);
        if is_filler(token.class, word) {
            place = Some(slot);
            continue;
        }
        *slot = Some((token.class, word));
        place = places.next();
    }
    let holds = |pattern: &[Is]| {
        pattern.iter().zip(&following).all(|(is, token)| token.is_some_and(|token| is.holds(token)))
    };
    PATTERNS
        .iter()
        .find(|(of, pattern, _)| *of == verb && holds(pattern))
        .map_or(Weight::None, |(_, _, weight)| *weight)
}

/// Words to skip after the first word: IF EXISTS, IGNORE, OR REPLACE.
fn is_filler(class: Class, word: &[u8]) -> bool {
    const FILLERS: &[&[u8]] = &[
        b"if",
        b"ignore",
        b"low_priority",
        b"delayed",
        b"quick",
        b"only",
        b"concurrent",
        b"local",
        b"temporary",
        b"temp",
        b"unique",
    ];
    matches!(class, Class::Not | Class::Exists)
        || FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler))
}

impl Is {
    fn holds(self, (class, word): (Class, &[u8])) -> bool {
        match self {
            Is::Class(wanted) => class == wanted,
            Name => class.is_name(),
            Operand => class.is_name() || class == Class::Variable,
            Over => matches!(class, Class::End | Class::Semicolon | Class::Comment),
            Word(wanted) => word.eq_ignore_ascii_case(wanted),
            TechnicalName => class.is_name() && word.iter().any(|byte| matches!(byte, b'.' | b'_')),
        }
    }
}
