//! Operators as they are evaluated.

use std::net::IpAddr;

use super::literals::ByteSet;
use super::template::CompiledTemplate;
use crate::injection;
use crate::seclang::Pattern;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

/// An operator, and its number among those that are chosen beforehand.
#[derive(Debug, Clone)]
pub struct CompiledOperator {
    pub kind: Comparison,
    /// Its number in the index of what a text has to have; `None`: it is not in there.
    pub number: Option<u16>,
}

/// How a value is compared.
#[derive(Debug, Clone)]
pub enum Comparison {
    Rx(Pattern),
    /// The pattern is made for each request.
    RxTemplate(CompiledTemplate),
    Pm(AhoCorasick),
    Number(Relation, CompiledTemplate),
    Text(TextComparison, CompiledTemplate),
    /// A bit for each byte that may be there.
    ByteRange([u64; 4]),
    UrlEncoding,
    Utf8Encoding,
    Addresses(Box<[(IpAddr, u8)]>),
    Sqli,
    Xss,
    Always,
    Never,
}

/// How numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Equal,
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl Relation {
    /// Whether it holds.
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

/// How texts are compared: the value with the argument.
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
    /// Whether it holds.
    pub fn holds(self, value: &[u8], argument: &[u8]) -> bool {
        match self {
            Self::Equal => value == argument,
            Self::Within => memchr::memmem::find(argument, value).is_some(),
            Self::Contains => memchr::memmem::find(value, argument).is_some(),
            Self::ContainsWord => has_word(value, argument),
            Self::BeginsWith => value.starts_with(argument),
            Self::EndsWith => value.ends_with(argument),
        }
    }
}

/// Bytes of which a value has one if such an operator holds for it; `None`: nothing is known. Those with texts of their own are not asked.
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
        _ => return None,
    })
}

fn has_word(value: &[u8], word: &[u8]) -> bool {
    let is_part =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    memchr::memmem::find_iter(value, word).any(|at| {
        let before = at.checked_sub(1).and_then(|before| value.get(before));
        !is_part(before) && !is_part(value.get(at + word.len()))
    })
}

/// An automaton that finds the first of these words, in whatever case.
pub fn words(words: &[Box<[u8]>]) -> Result<AhoCorasick, String> {
    AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(words)
        .map_err(|error| format!("the words cannot be searched for: {error}"))
}

/// Whether an address is of a network.
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
