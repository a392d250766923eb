//! Compiled operators.

use std::net::IpAddr;

use super::literals::{ByteSet, commonness};
use super::template::CompiledTemplate;
use crate::injection;
use crate::seclang::Pattern;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

/// A compiled operator.
#[derive(Debug, Clone)]
pub struct CompiledOperator {
    pub kind: Comparison,
    /// The number in the operator index; `None`: not indexed, always evaluated.
    pub number: Option<u16>,
}

/// The comparison of a value.
#[derive(Debug, Clone)]
pub enum Comparison {
    Rx(Pattern),
    /// A pattern that is compiled for each request.
    RxTemplate(CompiledTemplate),
    Pm(AhoCorasick),
    Number(Relation, CompiledTemplate),
    Text(TextComparison, CompiledTemplate),
    /// The allowed bytes, one bit each.
    ByteRange([u64; 4]),
    UrlEncoding,
    Utf8Encoding,
    Addresses(Box<[(IpAddr, u8)]>),
    Sqli,
    Xss,
    Xxe,
    Always,
    Never,
}

impl Comparison {
    /// Whether the operator matches a text; `None`: the result depends on more than the text, or may need much time.
    pub fn matches(&self, text: &[u8]) -> Option<bool> {
        match self {
            Self::Rx(Pattern::Linear(regex)) => Some(regex.is_match(text)),
            Self::Pm(words) => Some(words.is_match(text)),
            Self::ByteRange(allowed) => Some(has_other_bytes(text, allowed)),
            Self::UrlEncoding => Some(has_bad_escape(text)),
            Self::Utf8Encoding => Some(std::str::from_utf8(text).is_err()),
            Self::Sqli => Some(injection::detect_sql(text).is_some()),
            Self::Xss => Some(injection::detect_script(text)),
            Self::Xxe => Some(injection::detect_definition(text).is_some()),
            Self::Rx(Pattern::Backtracking(_))
            | Self::RxTemplate(_)
            | Self::Number(..)
            | Self::Text(..)
            | Self::Addresses(_)
            | Self::Always
            | Self::Never => None,
        }
    }
}

/// Whether a text contains a byte that is not allowed.
pub fn has_other_bytes(bytes: &[u8], allowed: &[u64; 4]) -> bool {
    bytes.iter().any(|byte| allowed[usize::from(byte >> 6)] >> (byte & 63) & 1 == 0)
}

/// Whether a text contains a percent sign without two hexadecimal digits after it.
pub fn has_bad_escape(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'%', bytes).any(|at| {
        let digits = bytes.get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// The comparison of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Equal,
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl Relation {
    /// Whether two numbers have this relation.
    pub fn holds(self, value: i64, wanted: i64) -> bool {
        match self {
            Self::Equal => value == wanted,
            Self::AtLeast => value >= wanted,
            Self::Above => value > wanted,
            Self::AtMost => value <= wanted,
            Self::Below => value < wanted,
        }
    }
}

/// The comparison of a value with the argument, both as texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextComparison {
    Equal,
    /// The value is part of the argument.
    Within,
    Contains,
    ContainsWord,
    BeginsWith,
    EndsWith,
}

impl TextComparison {
    /// Whether the value and the argument have this relation.
    pub fn holds(self, value: &[u8], argument: &[u8]) -> bool {
        match self {
            Self::Equal => value == argument,
            Self::Within => has_part(argument, value),
            Self::Contains => has_part(value, argument),
            Self::ContainsWord => has_word(value, argument),
            Self::BeginsWith => value.starts_with(argument),
            Self::EndsWith => value.ends_with(argument),
        }
    }
}

/// A set of bytes of which every matching value contains at least one; `None`: unknown. Not called for operators that have
/// literals.
pub fn bytes_needed(comparison: &Comparison) -> Option<ByteSet> {
    let those = |is_needed: &dyn Fn(u8) -> bool| {
        let mut set = [0; 4];
        let needed = (0..=u8::MAX).filter(|byte| is_needed(*byte));
        needed.for_each(|byte| set[usize::from(byte >> 6)] |= 1 << (byte & 63));
        set
    };
    Some(match comparison {
        Comparison::ByteRange(allowed) => allowed.map(|word| !word),
        Comparison::UrlEncoding => those(&|byte| byte == b'%'),
        Comparison::Utf8Encoding => those(&|byte| !byte.is_ascii()),
        Comparison::Sqli => those(&injection::may_be_sql),
        Comparison::Xss => those(&injection::may_be_script),
        Comparison::Xxe => those(&injection::may_be_definition),
        _ => return None,
    })
}

/// Maximum product of the lengths of two texts for a search byte by byte. Above it, a searcher is faster.
const FEW_STEPS_MAX: usize = 16 << 10;

/// Whether a text contains another text.
fn has_part(text: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else { return true };
    if text.len().saturating_mul(part.len()) > FEW_STEPS_MAX {
        return memchr::memmem::find(text, part).is_some();
    }
    // A pair of bytes near the beginning of the part. The first of them is rare.
    let before = rarest_of(part);
    let (Some(rare), Some(second)) = (part.get(before), part.get(before + 1)) else {
        return memchr::memchr(*first, text).is_some();
    };
    let is_at = |at: usize| {
        let start = at.checked_sub(before).and_then(|start| text.get(start..));
        text.get(at) == Some(rare) && start.is_some_and(|start| start.starts_with(part))
    };
    let has_pair = |block: &[u8; PAIRS_COUNT + 1]| {
        let is_pair = |(one, other)| u8::from(one == rare) & u8::from(other == second);
        block[..PAIRS_COUNT].iter().zip(&block[1..]).map(is_pair).fold(0, |any, it| any | it) != 0
    };
    let Some(last) = text.len().checked_sub(PAIRS_COUNT + 1) else {
        return (0..text.len()).any(is_at);
    };
    (0..last).step_by(PAIRS_COUNT).chain([last]).any(|at| {
        let block = text.get(at..).and_then(|rest| rest.first_chunk());
        block.is_some_and(has_pair) && (at..at + PAIRS_COUNT).any(is_at)
    })
}

/// Number of pairs of bytes that are compared at a time. The compiler makes vector instructions of the comparison.
const PAIRS_COUNT: usize = 16;

/// The position of the rarest of the first bytes of a text, not counting its last byte.
fn rarest_of(part: &[u8]) -> usize {
    let places = 0..part.len().saturating_sub(1).min(8);
    places.min_by_key(|at| commonness(part[*at])).unwrap_or(0)
}

fn has_word(value: &[u8], word: &[u8]) -> bool {
    let is_part =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    memchr::memmem::find_iter(value, word).any(|at| {
        let before = at.checked_sub(1).and_then(|before| value.get(before));
        !is_part(before) && !is_part(value.get(at + word.len()))
    })
}

/// An automaton that searches for these words, ignoring case.
pub fn words(words: &[Box<[u8]>]) -> Result<AhoCorasick, String> {
    AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(words)
        .map_err(|error| format!("the words cannot be searched for: {error}"))
}

/// Whether a network contains an address.
pub fn is_within(address: IpAddr, (network, length): (IpAddr, u8)) -> bool {
    let differing = match (address.to_canonical(), network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u32::from(one) ^ u32::from(other)).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            (u128::from(one) ^ u128::from(other)).leading_zeros()
        }
        _ => return false,
    };
    differing >= u32::from(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared() {
        use TextComparison::{BeginsWith, Contains, ContainsWord, EndsWith, Equal, Within};
        for (how, value, argument, expected) in [
            (Equal, "a", "a", true),
            (Equal, "a", "ab", false),
            (Within, "GET", "GET POST", true),
            (Within, "GETS", "GET POST", false),
            (Contains, "abc", "b", true),
            (Contains, "abc", "", true),
            (Contains, "aab", "ab", true),
            (Contains, "aa", "aab", false),
            (Within, "/via/", "/date/ /via/", true),
            (Within, "", "a", true),
            (ContainsWord, "a bc d", "bc", true),
            (ContainsWord, "a abc bc_", "bc", false),
            (ContainsWord, "bcbc bc", "bc", true),
            (BeginsWith, "abc", "ab", true),
            (EndsWith, "abc", "bc", true),
            (EndsWith, "abc", "b", false),
        ] {
            let holds = how.holds(value.as_bytes(), argument.as_bytes());
            assert_eq!(holds, expected, "{how:?} {value} {argument}");
        }
    }

    #[test]
    fn parts_are_found_at_every_position() {
        let mut random = weir_testing::Random::new(3);
        let mut word =
            |length: usize| -> Vec<u8> { (0..length).map(|_| b"/ab-x"[random.below(5)]).collect() };
        let (mut found, mut total) = (0, 0);
        for length in 0..70 {
            for part in 1..12 {
                let (text, part) = (word(length), word(part));
                let expected = memchr::memmem::find(&text, &part).is_some();
                assert_eq!(has_part(&text, &part), expected, "{text:?} {part:?}");
                for at in 0..=length {
                    let text = [&text[..at], &part, &text[at..]].concat();
                    assert!(has_part(&text, &part), "{text:?} {part:?}");
                }
                (found, total) = (found + u32::from(expected), total + 1);
            }
        }
        assert!(found > 100 && total - found > 100, "{found} of {total}");
    }

    #[test]
    fn addresses_are_of_networks() {
        for (address, network, length, expected) in [
            ("10.1.2.3", "10.0.0.0", 8, true),
            ("11.1.2.3", "10.0.0.0", 8, false),
            ("::ffff:10.1.2.3", "10.0.0.0", 8, true),
            ("10.1.2.3", "0.0.0.0", 0, true),
            ("::1", "0.0.0.0", 0, false),
            ("2001:db8::1", "2001:db8::", 32, true),
            ("::1", "::1", 128, true),
        ] {
            let (address, network) = (address.parse().unwrap(), network.parse().unwrap());
            assert_eq!(is_within(address, (network, length)), expected, "{address} {network}");
        }
    }
}
