//! A test whether a text contains any of a few literals, with vector instructions.
//!
//! Most texts contain none of the literals and need no further search. The test searches for parts that several literals
//! have in common, so that few parts are needed.

use aho_corasick::packed::{Config, Searcher};
use memchr::memmem;

use super::literals::commonness;

/// Maximum number of literals. The choice of the parts takes more than linear time.
const LITERALS_MAX: usize = 256;
/// Maximum number of parts that vector instructions can search for in one pass.
const PARTS_MAX: usize = 64;
/// Maximum length of a part, and minimum length of a literal.
const PART_BYTES_MAX: usize = 4;
const PART_BYTES_MIN: usize = 3;
/// Minimum length of a tested text. Shorter texts are searched faster than tested.
const TEXT_BYTES_MIN: usize = 64;

/// A searcher for parts. Each literal contains at least one of the parts.
#[derive(Debug)]
pub struct FewLiterals(Searcher);

impl FewLiterals {
    /// A searcher for literals in lower case; `None`: there are too many literals, or one is too short.
    pub fn new(literals: &[(&[u8], u16)]) -> Option<Self> {
        let mut left: Vec<&[u8]> = literals.iter().map(|(literal, _)| *literal).collect();
        left.sort_unstable();
        left.dedup();
        if left.len() > LITERALS_MAX || left.iter().any(|it| it.len() < PART_BYTES_MIN) {
            return None;
        }
        let mut parts = Vec::new();
        while !left.is_empty() && parts.len() < PARTS_MAX {
            let part = best_part(&left)?;
            left.retain(|literal| memmem::find(literal, part).is_none());
            parts.push(part);
        }
        let searcher = left.is_empty().then(|| Config::new().builder().extend(parts).build());
        searcher.flatten().map(Self)
    }

    /// Whether a text in lower case may contain one of the literals.
    pub fn may_be_in(&self, text: &[u8]) -> bool {
        text.len() < TEXT_BYTES_MIN || self.0.find(text).is_some()
    }
}

/// The part that occurs in many of these literals and in few texts.
fn best_part<'a>(literals: &[&'a [u8]]) -> Option<&'a [u8]> {
    let parts = literals.iter().flat_map(|it| it.windows(it.len().min(PART_BYTES_MAX)));
    parts.max_by_key(|part| {
        let count = literals.iter().filter(|literal| memmem::find(literal, part).is_some()).count();
        let common: usize = part.iter().map(|byte| usize::from(commonness(*byte))).sum();
        count * 1_000 / common.max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_literal_is_never_passed_over() {
        let words: [&[u8]; 5] = [b"java.lang.runtime", b"java.io.file", b"%uff", b"xml", b"clone"];
        let literals: Vec<(&[u8], u16)> = words.iter().map(|word| (*word, 0)).collect();
        let few = FewLiterals::new(&literals).expect("few");
        let prose = b"a text of many words, none of which is one of those that are looked for. ";
        assert!(!few.may_be_in(prose));
        assert!(few.may_be_in(b"short"));
        for word in words {
            for at in 0..=prose.len() {
                let text = [&prose[..at], word, &prose[at..]].concat();
                assert!(few.may_be_in(&text), "{}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn short_literals_and_many_are_not_few() {
        assert!(FewLiterals::new(&[(b"ab", 0)]).is_none());
        let many: Vec<String> = (0..300).map(|number| format!("literal{number}")).collect();
        let many: Vec<(&[u8], u16)> = many.iter().map(|it| (it.as_bytes(), 0)).collect();
        assert!(FewLiterals::new(&many).is_none());
    }
}
