//! The index never misses a candidate: every pattern that matches a text is among the operators that may match it.

use regex_syntax::hir::{Class, Hir, HirKind};
use weir_testing::Random;

use super::*;
use crate::plan::compile::needs_of;
use crate::seclang::Pattern;

/// Patterns whose needs are easily derived wrongly.
const PATTERNS: [&str; 58] = [
    "abc",
    "(?i)select",
    "(?i)SeLeCt.*FROM",
    "(?i)[A-F]{4}[0-9]",
    "(?i)[^a]bc[^d]",
    "(?-i)Mixed(?i)Case",
    "a|",
    "|abc",
    "abc(?:def|)ghi",
    "(?:abc|de?f|)x",
    "(?:foo)?bar",
    "(?:foo)*bar(?:baz)+",
    "(?:ab){2,3}",
    "(?:ab){0,1}(?:cd){0}ef",
    "(?:(?:a+b)*c)+d",
    "(?:(?:x{2}){2}y)?z",
    "((a)|(b(c)))d",
    "^abc$",
    "^$",
    "^",
    "\\A(?:abc|def)\\z",
    "\\babc\\b",
    "\\bx\\b",
    "\\Babc",
    "a\\b ",
    "\\xff\\xfe",
    "\\xffabc|abc\\x80",
    "(?i)\\xc3\\xbcber",
    "[\\x80-\\xff]{3}",
    "[^\\x00-\\x7f]abc",
    "\\x00abc",
    "abc\\x00",
    "ab\\x00",
    "[\\x00-\\x08]",
    "[\\s\\x0b]or[\\s\\x0b]",
    "['\"`](?:[^'\"`]*)['\"`]",
    "b[\"'\\\\]*a[\"'\\\\]*s[\"'\\\\]*h",
    "(?i)b[\"']*\\x5c?a[\"']*\\x5c?t|rm[\\s,]",
    "<[^>]*script",
    "(?i)<(?:a|b|br|img)[\\s/>]",
    "\\$\\{[^}]+\\}",
    "[#-&]x|[(-/]y",
    "(?:\\(|\\[)\\d+(?:\\)|\\])",
    "\\.{2,3}[/\\\\]",
    "(?:^|[/;\\x5c])\\.{2,3}[/;\\x5c]",
    "--[^\\n]*\\n",
    "/\\*[\\s\\S]*?\\*/",
    "(?:[a-c][d-f]){3}",
    "[abcdefgh]{2}[ijklmnop]",
    "(?:one|two|three|four)(?:five|six|seven)(?:eight|nine)",
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
    "(?:abcdefgh|abcdefgi|abcdefgj)k",
    "org\\.apache\\.(?:commons|struts)",
    ".",
    ".{3}",
    "(?s).a.b.",
    "[^\\w]x[^\\w]",
    "(?:a?){3}b",
];

/// Further bytes for texts, in addition to those that patterns match.
const NOISE: &[u8] = b"aAbBxX0 '\"`\\/;|&$<>(){}[].-_\n\t\0\x80\xc3\xbc\xff";
const TEXTS_EACH: usize = 200;
/// Maximum nesting depth, above the depth of every pattern.
const DEPTH_MAX: usize = 100;
/// Maximum number of repetitions above the required number.
const MORE_MAX: usize = 3;

fn parsed(pattern: &Pattern) -> Hir {
    let mut parser = regex_syntax::ParserBuilder::new();
    let parser = parser.unicode(false).utf8(false).dot_matches_new_line(true);
    parser.build().parse(pattern.as_str()).expect("a pattern")
}

/// Writes a text that the pattern matches, unless its anchors prevent the match.
fn write(pattern: &Hir, random: &mut Random, depth: usize, text: &mut Vec<u8>) {
    assert!(depth < DEPTH_MAX);
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => {
            let ranges = class.ranges();
            if !ranges.is_empty() {
                let range = ranges[random.below(ranges.len())];
                let count = usize::from(range.end() - range.start()) + 1;
                text.push(range.start() + random.below(count) as u8);
            }
        }
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            let range = ranges[random.below(ranges.len())];
            text.extend_from_slice(range.start().to_string().as_bytes());
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map_or(usize::MAX, |max| max as usize);
            let count = (repetition.min as usize + random.below(MORE_MAX)).min(most);
            (0..count).for_each(|_| write(&repetition.sub, random, depth + 1, text));
        }
        HirKind::Capture(capture) => write(&capture.sub, random, depth + 1, text),
        HirKind::Concat(parts) => {
            parts.iter().for_each(|part| write(part, random, depth + 1, text));
        }
        HirKind::Alternation(parts) => {
            write(&parts[random.below(parts.len())], random, depth + 1, text);
        }
    }
}

fn noise(random: &mut Random, text: &mut Vec<u8>) {
    let count = if random.percent(50) { 0 } else { random.below(12) };
    text.extend((0..count).map(|_| NOISE[random.below(NOISE.len())]));
}

/// A text: a match of one pattern, between matches of other patterns and noise.
fn text(parts: &[Hir], own: usize, random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    noise(random, &mut text);
    for _ in 0..=random.below(2) {
        let part = if random.percent(70) { own } else { random.below(parts.len()) };
        write(&parts[part], random, 0, &mut text);
        noise(random, &mut text);
    }
    // Cuts the text, or adds a byte.
    if random.percent(20) && !text.is_empty() {
        let at = random.below(text.len());
        if random.percent(50) {
            text.remove(at);
        } else {
            text.truncate(at);
        }
    }
    text
}

fn all(needs: &[OperatorNeeds]) -> OperatorIndex {
    OperatorIndex::new(needs, vec![u64::MAX; needs.len().div_ceil(64)].into())
}

fn looked_at(index: &OperatorIndex, stage: Stage, text: &[u8]) -> Vec<u64> {
    let mut padded = text.to_ascii_lowercase();
    padded.extend([0; PADDING_BYTES]);
    let mut operators = vec![0; index.known.len()];
    index.look(&padded, stage, &index.known, &mut operators);
    operators
}

#[test]
fn no_candidate_is_lost() {
    let patterns: Vec<Pattern> =
        PATTERNS.iter().map(|pattern| Pattern::new(pattern).expect(pattern)).collect();
    let parts: Vec<Hir> = patterns.iter().map(parsed).collect();
    let needs: Vec<OperatorNeeds> = patterns
        .iter()
        .enumerate()
        .map(|(at, pattern)| OperatorNeeds { by_kind: needs_of(pattern), is_late: at % 3 == 0 })
        .collect();
    let index = all(&needs);
    let mut random = Random::new(1);
    let (mut matches, mut spared) = (0, 0);
    for own in 0..patterns.len() {
        for _ in 0..TEXTS_EACH {
            let text = text(&parts, own, &mut random);
            let row = looked_at(&index, Stage::Response, &text);
            for (number, pattern) in patterns.iter().enumerate() {
                let may_match = has_bit(&row, number as u16);
                if !may_match {
                    spared += 1;
                }
                if number == own || !may_match {
                    let is_match = pattern.is_match(&text).expect("few steps");
                    matches += usize::from(is_match);
                    assert!(may_match || !is_match, "{} in {text:?}", PATTERNS[number]);
                }
            }
        }
    }
    // Ensures that the test is meaningful: most texts match, and the index excludes most operators.
    let texts = patterns.len() * TEXTS_EACH;
    assert!(matches * 2 > texts, "{matches} of {texts} texts match");
    assert!(spared * 3 > texts * patterns.len(), "{spared} are spared");
}

#[test]
fn late_operators_are_found_behind_the_request() {
    let needs = |pattern: &str, is_late| OperatorNeeds {
        by_kind: needs_of(&Pattern::new(pattern).expect(pattern)),
        is_late,
    };
    let index = all(&[needs("early", false), needs("later", true)]);
    for (stage, expected) in [(Stage::Request, 0b01), (Stage::Response, 0b11)] {
        assert_eq!(looked_at(&index, stage, b"EARLY and LATER"), [expected], "{stage:?}");
        assert_eq!(looked_at(&index, stage, b"neither"), [0], "{stage:?}");
    }
}

#[test]
fn only_wanted_operators_are_candidates() {
    let needs = OperatorNeeds {
        by_kind: needs_of(&Pattern::new("abc").expect("a pattern")),
        is_late: false,
    };
    let index = all(&[needs.clone(), needs.clone()]);
    let mut padded = b"abc".to_vec();
    padded.extend([0; PADDING_BYTES]);
    for (index, wanted) in
        [(index, [0b10]), (OperatorIndex::new(&[needs.clone(), needs], [0b10].into()), [0b11])]
    {
        let mut operators = [0];
        index.look(&padded, Stage::Request, &wanted, &mut operators);
        assert_eq!(operators, [0b10]);
    }
}

#[test]
fn texts_of_each_kind_have_candidates_of_their_own() {
    // In texts without quotes, no byte may separate the letters.
    let needs = OperatorNeeds {
        by_kind: needs_of(&Pattern::new("b[\"']*a[\"']*s[\"']*h").expect("a pattern")),
        is_late: false,
    };
    let index = all(&[needs]);
    for (text, expected) in [
        (&b"bash"[..], 1),
        (b"basic habits", 0),
        (b"b'a's'h", 1),
        (b"bsah", 0),
        (b"it's basic habits", 1),
    ] {
        let found = looked_at(&index, Stage::Request, text);
        assert_eq!(found, [expected], "{}", String::from_utf8_lossy(text));
    }
}
