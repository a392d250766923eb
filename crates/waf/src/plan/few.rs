//! Tests whether a text has any of a few literals, with vector instructions.
//!
//! Most texts have none of the literals and need no closer search. The test searches for parts shared by several
//! literals, so that there are few parts.

use aho_corasick::packed::{Config, Searcher};
use memchr::memmem;

use super::literals::commonness;

/// Maximum number of literals: choosing the parts takes more than linear time.
const LITERALS_MAX: usize = 256;
/// Maximum number of parts that vector instructions can search for at once.
const PARTS_MAX: usize = 64;
/// Maximum length of a part, and minimum length of a literal.
const PART_BYTES_MAX: usize = 4;
const PART_BYTES_MIN: usize = 3;
/// Shorter texts are not tested: searching them takes less time than the test.
const TEXT_BYTES_MIN: usize = 64;

/// Searcher of parts; each literal contains at least one part.
#[derive(Debug)]
pub struct Few(Searcher);

impl Few {
    /// A searcher for literals in lower case; `None` if there are too many or too short ones.
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

    /// Whether a text in lower case may have one of the literals.
    pub fn may_be_in(&self, text: &[u8]) -> bool {
        text.len() < TEXT_BYTES_MIN || self.0.find(text).is_some()
    }
}

/// The part that many of these literals have and few texts have.
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
        let few = Few::new(&literals).expect("few");
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
        assert!(Few::new(&[(b"ab", 0)]).is_none());
        let many: Vec<String> = (0..300).map(|number| format!("literal{number}")).collect();
        let many: Vec<(&[u8], u16)> = many.iter().map(|it| (it.as_bytes(), 0)).collect();
        assert!(Few::new(&many).is_none());
    }
}
