//! Sections whose keys depend on a `type`: which types take a key, and the check of the keys that a file has.

use crate::decode::{Context, KeyInfo, Section};
use crate::document::Span;
use crate::key_types::Types;

/// Most types that a message names.
const TYPES_NAMED_MAX: usize = 4;

/// A fixed set of words, declared by `choice!`.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// All of them, in order of declaration.
    const ALL: &'static [Self];

    /// The word in the file.
    fn word(self) -> &'static str;
}

/// A type on which keys depend.
pub(crate) trait Kind: Choice {
    /// What has the type, in words that fit before "of type tcp".
    const OF: &'static str;

    /// What to do about a key that this type does not take, and `takers` do, in the order of the declaration of the key.
    fn remedy(self, _key: &str, takers: &[Self]) -> String {
        use_one_of(takers)
    }
}

/// The advice to use a type that takes the key. Of many types, it names the first one.
pub(crate) fn use_one_of<K: Kind>(takers: &[K]) -> String {
    let words: Vec<String> = takers.iter().map(|taker| format!("`{}`", taker.word())).collect();
    let others = match &words[1..] {
        [] => String::new(),
        [middle @ .., last] if words.len() <= TYPES_NAMED_MAX => {
            let middle: String = middle.iter().map(|word| format!(", {word}")).collect();
            format!("{middle} or {last}")
        }
        _ => ", for example".to_owned(),
    };
    format!("remove it, or use `type: {}`{others}", takers[0].word())
}

/// The types that take a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Takers<K: 'static> {
    All,
    /// These, which are at least one.
    Only(&'static [K]),
}

impl<K: Choice> Takers<K> {
    pub fn include(self, kind: K) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
        }
    }
}

/// A key that a file has.
pub(crate) struct PresentKey<K: 'static> {
    pub key: &'static str,
    pub span: Span,
    pub takers: Takers<K>,
}

/// A section whose keys depend on a type, declared by `variants!`. The type is a key of the section or of one around it.
pub(crate) trait Variants: Section {
    type Kind: Kind;

    /// The types that take each of [`Section::KEYS`].
    const TAKERS: &'static [Takers<Self::Kind>];

    /// The place of each of [`Section::KEYS`] that is given.
    fn places(&self) -> Vec<Option<Span>>;

    /// The keys that are given.
    fn given(&self) -> impl Iterator<Item = PresentKey<Self::Kind>> {
        let keys = Self::KEYS.iter().zip(Self::TAKERS).zip(self.places());
        keys.filter_map(|((key, takers), span)| {
            Some(PresentKey { key, span: span?, takers: *takers })
        })
    }

    /// Whether a type takes a key of this section.
    fn takes(key: &str, kind: Self::Kind) -> bool {
        let mut keys = Self::KEYS.iter().zip(Self::TAKERS);
        keys.any(|(known, takers)| *known == key && takers.include(kind))
    }
}

/// Reports the keys that the type would ignore. Returns whether there are none.
pub(crate) fn keys_fit<S: Variants>(section: &S, kind: S::Kind, context: &mut Context) -> bool {
    let mut fits = true;
    for PresentKey { key, span, takers } in section.given() {
        let Takers::Only(kinds) = takers else { continue };
        if kinds.contains(&kind) {
            continue;
        }
        let message = format!("`{key}` does not apply to {} of type {}", S::Kind::OF, kind.word());
        context.error_help(span, message, kind.remedy(key, kinds));
        fits = false;
    }
    fits
}

/// Adds to each key of a section which types take it.
pub(crate) fn with_types<S: Variants>(mut keys: Vec<KeyInfo>) -> Vec<KeyInfo> {
    for (key, takers) in keys.iter_mut().zip(S::TAKERS) {
        let all = S::Kind::ALL.iter().copied();
        let (takers, others): (Vec<_>, Vec<_>) = all.partition(|kind| takers.include(*kind));
        let words = |kinds: Vec<S::Kind>| kinds.into_iter().map(Choice::word).collect();
        key.types = Some(Types { of: S::Kind::OF, takers: words(takers), others: words(others) });
    }
    keys
}

/// Whether a section has a key `type`. For assertions about declarations.
pub(crate) const fn have_type(keys: &[&str]) -> bool {
    let mut index = 0;
    while index < keys.len() {
        if matches!(keys[index].as_bytes(), b"type") {
            return true;
        }
        index += 1;
    }
    false
}

/// Whether the lists together have all numbers below `count`. For assertions about declarations.
pub(crate) const fn have_all(count: usize, lists: &[&[usize]]) -> bool {
    let mut number = 0;
    while number < count {
        let mut found = false;
        let mut list = 0;
        while list < lists.len() {
            let mut place = 0;
            while place < lists[list].len() {
                found |= lists[list][place] == number;
                place += 1;
            }
            list += 1;
        }
        if !found {
            return false;
        }
        number += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    choice! {
        /// Types of a test.
        Shape {
            /// Has a radius.
            Round = "round",
            /// Has a side.
            Square = "square",
            /// Has nothing of its own.
            Dot = "dot",
        }
        later [] maps []
    }

    impl Kind for Shape {
        const OF: &'static str = "a figure";
    }

    variants! {
        /// A section of a test.
        Figure at "figures.NAME" by Shape {
            /// The type.
            required kind as "type" for all: Shape;
            /// A key of one type.
            optional radius for [Round]: bool;
            /// A key of another one.
            default side for [Square]: bool = true;
            /// A key of two types.
            optional fill for [Round, Square]: bool;
            /// A key of all types.
            optional colour for all: bool;
        }
        plain [Dot]
        later []
    }

    #[test]
    fn each_key_knows_its_types() {
        let takers = [("type", 3), ("radius", 1), ("side", 1), ("fill", 2), ("colour", 3)];
        for (key, count) in takers {
            let takes = Shape::ALL.iter().filter(|kind| Figure::takes(key, **kind));
            assert_eq!(takes.count(), count, "{key}");
        }
        assert!(!Figure::takes("color", Shape::Dot));
    }

    #[test]
    fn only_given_keys_are_reported() {
        let check = |figure: &Figure, kind: Shape, expected: &[&str]| {
            let mut context = Context::default();
            assert_eq!(keys_fit(figure, kind, &mut context), expected.is_empty());
            let found = context.finish().0.into_iter().map(|(_, finding)| {
                format!("{} -> {}", finding.message, finding.suggestion.unwrap_or_default())
            });
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        let given = || crate::decode::Spanned { given: true, ..Figure::absent().side };
        check(&Figure::absent(), Shape::Dot, &[]);
        let figure = Figure { fill: Some(given()), side: given(), ..Figure::absent() };
        check(&figure, Shape::Square, &[]);
        check(
            &figure,
            Shape::Round,
            &[
                "`side` does not apply to a figure of type round -> remove it, or use `type: square`",
            ],
        );
        check(
            &figure,
            Shape::Dot,
            &[
                "`side` does not apply to a figure of type dot -> remove it, or use `type: square`",
                "`fill` does not apply to a figure of type dot -> remove it, or use `type: round` or `square`",
            ],
        );
    }

    #[test]
    fn declarations_are_asserted() {
        assert!(have_type(&["path", "type"]));
        assert!(!have_type(&["typed", "kind"]));
        assert!(have_all(3, &[&[2], &[], &[0, 1]]));
        assert!(!have_all(3, &[&[2], &[0, 0]]));
    }
}
