//! Derives the needs of a pattern: properties of every matching text. No match is missed by testing them.
//!
//! Three needs are tested, all at low cost: the length of the text, one of several literals (ignoring case), and one byte of
//! each of several sets. A pattern without known needs may match any text.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// Maximum number of alternative literals of a pattern.
const LITERALS_MAX: usize = 4_000;
/// Minimum length of a literal. Shorter literals occur in too many texts.
const LITERAL_BYTES_MIN: usize = 2;
/// Maximum length of a literal. The pattern itself checks the rest.
const LITERAL_BYTES_MAX: usize = 32;
/// Maximum number of byte sets.
const SETS_MAX: usize = 4;
/// Maximum size of a byte set. Larger sets match too many texts.
const SET_BYTES_MAX: u32 = 120;
/// Maximum number of texts that are compared with each other.
const COMPARED_MAX: usize = 100;
/// Maximum size of a byte set that is also represented as texts of one byte.
const EXACT_BYTES_MAX: usize = 8;
/// Maximum nesting depth of analysed patterns.
const DEPTH_MAX: usize = 200;

/// A set of bytes.
pub type ByteSet = [u64; 4];

/// The needs of a pattern: properties of every matching text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatternNeeds {
    /// Minimum length.
    pub length_min: usize,
    /// The text contains one of these literals, which are in lower case; empty: no literal is needed.
    pub literals: Vec<Box<[u8]>>,
    /// The text contains a byte of each of these sets.
    pub sets: Vec<ByteSet>,
}

/// The needs of this pattern for texts without the `absent` bytes; `None`: it matches none of these texts.
pub fn needs(pattern: &Hir, absent: &ByteSet) -> Option<PatternNeeds> {
    let known = PatternAnalysis { absent }.of(pattern, 0);
    if known.is_impossible() {
        return None;
    }
    let mut needs = known.needs;
    needs.sets.retain(|set| size(set) <= SET_BYTES_MAX);
    needs.sets.sort_by_key(size);
    needs.sets.dedup();
    needs.sets.truncate(SETS_MAX);
    Some(needs)
}

fn size(set: &ByteSet) -> u32 {
    set.iter().map(|word| word.count_ones()).sum()
}

/// Properties of a part of a pattern.
struct PatternProperties {
    needs: PatternNeeds,
    /// All texts that the part matches, in lower case; `None`: they are unknown or too many.
    exact: Option<Vec<Vec<u8>>>,
}

impl PatternProperties {
    fn nothing() -> Self {
        Self { needs: PatternNeeds::default(), exact: None }
    }

    fn exactly(texts: Vec<Vec<u8>>) -> Self {
        let mut known = Self { needs: PatternNeeds::default(), exact: Some(texts) };
        known.settle();
        known
    }

    /// Whether the part matches no text.
    fn is_impossible(&self) -> bool {
        self.exact.as_ref().is_some_and(Vec::is_empty)
    }

    /// Derives the needs from the exact texts.
    fn settle(&mut self) {
        let Some(texts) = &self.exact else { return };
        self.needs.length_min = texts.iter().map(Vec::len).min().unwrap_or(0);
        if texts.iter().all(|text| text.len() >= LITERAL_BYTES_MIN) {
            self.needs.literals = shortest(texts).map(clipped).collect();
        }
        if !texts.is_empty() && texts.iter().all(|text| !text.is_empty()) {
            // The rarest byte of each text.
            let mut set = [0u64; 4];
            for text in texts {
                let rarest = text.iter().copied().min_by_key(|byte| commonness(*byte));
                rarest.into_iter().for_each(|byte| add_both_cases(&mut set, byte));
            }
            self.needs.sets = vec![set];
        }
    }
}

/// The texts that contain no other text of the list. If there are many texts, all of them.
fn shortest(texts: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    let is_spare = |text: &&[u8]| {
        texts.len() <= COMPARED_MAX
            && texts.iter().any(|other| {
                other.len() < text.len() && memchr::memmem::find(text, other).is_some()
            })
    };
    texts.iter().map(Vec::as_slice).filter(move |text| !is_spare(text))
}

fn clipped(text: &[u8]) -> Box<[u8]> {
    text[..text.len().min(LITERAL_BYTES_MAX)].into()
}

/// Approximate sum of [`commonness`] of all bytes.
const COMMON_SUM: f64 = 500.0;
/// Number of bytes of a literal that are used to estimate its rarity.
const SURPRISING_BYTES: usize = 5;

/// Approximate frequency of a byte in ordinary texts.
pub fn commonness(byte: u8) -> u8 {
    match byte {
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 30,
        b' ' => 40,
        b'j' | b'k' | b'q' | b'v' | b'w' | b'x' | b'y' | b'z' => 6,
        b'a'..=b'z' => 14,
        b'0'..=b'9' => 8,
        b'.' | b'-' | b'/' | b'_' | b'=' | b'&' | b',' | b':' | b'%' => 5,
        _ => 1,
    }
}

fn add(set: &mut ByteSet, byte: u8) {
    set[usize::from(byte >> 6)] |= 1 << (byte & 63);
}

fn add_both_cases(set: &mut ByteSet, byte: u8) {
    add(set, byte.to_ascii_lowercase());
    add(set, byte.to_ascii_uppercase());
}

fn has(set: &ByteSet, byte: u8) -> bool {
    set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
}

/// The analysis of a pattern.
struct PatternAnalysis<'a> {
    /// The bytes that the texts lack.
    absent: &'a ByteSet,
}

impl PatternAnalysis<'_> {
    fn of(&self, pattern: &Hir, depth: usize) -> PatternProperties {
        if depth > DEPTH_MAX {
            return PatternProperties::nothing();
        }
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) => PatternProperties::exactly(vec![Vec::new()]),
            HirKind::Literal(literal) if literal.0.iter().any(|byte| has(self.absent, *byte)) => {
                PatternProperties::exactly(Vec::new())
            }
            HirKind::Literal(literal) => {
                PatternProperties::exactly(vec![literal.0.to_ascii_lowercase()])
            }
            HirKind::Class(class) => self.of_class(class),
            HirKind::Capture(capture) => self.of(&capture.sub, depth + 1),
            HirKind::Repetition(repetition) => self.of_repetition(repetition, depth),
            HirKind::Concat(parts) => self.of_concat(parts, depth),
            HirKind::Alternation(parts) => self.of_alternation(parts, depth),
        }
    }

    fn of_repetition(&self, repetition: &Repetition, depth: usize) -> PatternProperties {
        let part = self.of(&repetition.sub, depth + 1);
        let (min, max) = (repetition.min as usize, repetition.max);
        if max == Some(0) || (min == 0 && part.is_impossible()) {
            return PatternProperties::exactly(vec![Vec::new()]);
        }
        if part.is_impossible() {
            return part;
        }
        if min == 0 {
            return match part.exact {
                Some(mut texts) if max == Some(1) && texts.len() < LITERALS_MAX => {
                    texts.push(Vec::new());
                    PatternProperties::exactly(texts)
                }
                _ => PatternProperties::nothing(),
            };
        }
        if (min, max) == (1, Some(1)) {
            return part;
        }
        let mut needs = part.needs;
        // A part that matches a single text: the repetition contains the repeated text.
        if let Some([text]) = part.exact.as_deref()
            && (1..=LITERAL_BYTES_MAX).contains(&text.len().saturating_mul(min))
        {
            needs = PatternProperties::exactly(vec![text.repeat(min)]).needs;
        } else {
            needs.length_min = needs.length_min.saturating_mul(min);
        }
        PatternProperties { needs, exact: None }
    }

    fn of_class(&self, class: &Class) -> PatternProperties {
        let mut set = [0u64; 4];
        match class {
            Class::Bytes(class) => {
                for range in class.ranges() {
                    (range.start()..=range.end()).for_each(|byte| add(&mut set, byte));
                }
            }
            Class::Unicode(class) => {
                let is_ascii = class.ranges().iter().all(|range| range.end().is_ascii());
                if !is_ascii {
                    return PatternProperties::nothing();
                }
                for range in class.ranges() {
                    (range.start() as u8..=range.end() as u8).for_each(|byte| add(&mut set, byte));
                }
            }
        }
        set.iter_mut().zip(self.absent).for_each(|(word, absent)| *word &= !absent);
        // If the set has few bytes, ignoring case, they are also texts of one byte.
        let mut folded: Vec<u8> = (0..=255u8).filter(|byte| has(&set, *byte)).collect();
        folded.iter_mut().for_each(|byte| byte.make_ascii_lowercase());
        folded.sort_unstable();
        folded.dedup();
        let exact = (folded.len() <= EXACT_BYTES_MAX)
            .then(|| folded.iter().map(|byte| vec![*byte]).collect());
        PatternProperties {
            needs: PatternNeeds { length_min: 1, literals: Vec::new(), sets: vec![set] },
            exact,
        }
    }

    fn of_concat(&self, parts: &[Hir], depth: usize) -> PatternProperties {
        let mut needs = PatternNeeds::default();
        // The exact texts that end at this part, as long as they are few.
        let mut run: Option<Vec<Vec<u8>>> = Some(vec![Vec::new()]);
        let mut is_exact = true;
        let flush = |run: &mut Option<Vec<Vec<u8>>>, needs: &mut PatternNeeds| {
            if let Some(texts) = run.take() {
                let known = PatternProperties::exactly(texts).needs;
                needs.literals = better(std::mem::take(&mut needs.literals), known.literals);
                needs.sets.extend(known.sets);
            }
        };
        for part in parts {
            let known = self.of(part, depth + 1);
            if known.is_impossible() {
                return known;
            }
            needs.length_min = needs.length_min.saturating_add(known.needs.length_min);
            needs.literals = better(std::mem::take(&mut needs.literals), known.needs.literals);
            needs.sets.extend(known.needs.sets);
            let Some(texts) = known.exact else {
                is_exact = false;
                flush(&mut run, &mut needs);
                continue;
            };
            let before = run.take().unwrap_or_else(|| vec![Vec::new()]);
            let is_small = before.len() * texts.len() <= LITERALS_MAX
                && before.iter().map(Vec::len).max().unwrap_or(0) < LITERAL_BYTES_MAX * 4;
            if is_small {
                run = Some(product(&before, &texts));
            } else {
                is_exact = false;
                run = Some(before);
                flush(&mut run, &mut needs);
                run = Some(texts);
            }
        }
        if is_exact && let Some(texts) = run {
            return PatternProperties::exactly(texts);
        }
        flush(&mut run, &mut needs);
        PatternProperties { needs, exact: None }
    }

    fn of_alternation(&self, parts: &[Hir], depth: usize) -> PatternProperties {
        let known: Vec<PatternProperties> = parts
            .iter()
            .map(|part| self.of(part, depth + 1))
            .filter(|known| !known.is_impossible())
            .collect();
        let count: usize =
            known.iter().map(|it| it.exact.as_ref().map_or(usize::MAX / 1_024, Vec::len)).sum();
        if count <= LITERALS_MAX && known.iter().all(|it| it.exact.is_some()) {
            let texts = known.into_iter().filter_map(|it| it.exact).flatten();
            return PatternProperties::exactly(texts.collect());
        }
        let mut needs = PatternNeeds {
            length_min: known.iter().map(|it| it.needs.length_min).min().unwrap_or(0),
            ..PatternNeeds::default()
        };
        // A literal is needed only if each branch needs one. The same applies to byte sets.
        let literals: usize = known.iter().map(|it| it.needs.literals.len()).sum();
        if literals <= LITERALS_MAX && known.iter().all(|it| !it.needs.literals.is_empty()) {
            needs.literals = known.iter().flat_map(|it| it.needs.literals.clone()).collect();
            needs.literals.sort();
            needs.literals.dedup();
        }
        if known.iter().all(|it| !it.needs.sets.is_empty()) {
            // A byte in the smallest set of the branch that matches.
            let mut union = [0u64; 4];
            for it in &known {
                if let Some(set) = it.needs.sets.iter().min_by_key(|set| size(set)) {
                    union.iter_mut().zip(set).for_each(|(word, more)| *word |= more);
                }
            }
            needs.sets = vec![union];
        }
        PatternProperties { needs, exact: None }
    }
}

/// The better of two lists of alternative literals: the list whose literals occur in fewer texts, by estimate.
fn better(one: Vec<Box<[u8]>>, other: Vec<Box<[u8]>>) -> Vec<Box<[u8]>> {
    let often = |list: &Vec<Box<[u8]>>| -> f64 {
        let often = |text: &[u8]| {
            // Later bytes often follow from the first bytes.
            let bytes = text.iter().take(SURPRISING_BYTES);
            bytes.map(|byte| f64::from(commonness(*byte)) / COMMON_SUM).product::<f64>()
        };
        list.iter().map(|text| often(text)).sum()
    };
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other,
        (_, true) => one,
        _ if often(&one) <= often(&other) => one,
        _ => other,
    }
}

fn product(before: &[Vec<u8>], behind: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let joined =
        before.iter().flat_map(|one| behind.iter().map(move |two| [&one[..], two].concat()));
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(pattern: &str) -> PatternNeeds {
        let hir = regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .dot_matches_new_line(true)
            .build()
            .parse(pattern)
            .expect("a pattern");
        needs(&hir, &[0; 4]).expect("texts that it matches")
    }

    fn literals(pattern: &str) -> Vec<String> {
        let mut found: Vec<String> = of_text(pattern)
            .literals
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn literals_of_patterns() {
        for (pattern, expected) in [
            ("select", &["select"][..]),
            ("(?i)SeLect", &["select"]),
            ("(?i)union\\s+select", &["select"]),
            ("a(?:bc|de)f", &["abcf", "adef"]),
            ("foo|bar.*|b[ae]z", &["bar", "baz", "bez", "foo"]),
            ("foo|.*", &[]),
            ("(?:foo)?bar", &["bar"]),
            ("(?:foo)+x?", &["foo"]),
            ("^/etc/passwd$", &["/etc/passwd"]),
            ("[a-z]+", &[]),
            ("\\bx\\b", &[]),
        ] {
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn lengths_and_sets() {
        assert_eq!(of_text("ab{3}c?").length_min, 4);
        assert_eq!(of_text("a|bcd").length_min, 1);
        let quotes = of_text("['\"`][^x]*").sets;
        assert_eq!(quotes.len(), 1);
        assert_eq!(size(&quotes[0]), 3);
        assert!(of_text("[^a]").sets.is_empty());
    }
}
