//! References: the text between `&` and `;`.

use super::characters::{is_char, is_name_byte, starts_name};

/// The kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// A character, by number or by a predefined name.
    Character(char),
    /// An entity. A document type may declare it.
    Entity,
    /// The number of a character that XML does not allow.
    Forbidden,
    Malformed,
}

/// Parses a reference.
pub(super) fn read(reference: &[u8]) -> Reference {
    match reference {
        b"lt" => Reference::Character('<'),
        b"gt" => Reference::Character('>'),
        b"amp" => Reference::Character('&'),
        b"apos" => Reference::Character('\''),
        b"quot" => Reference::Character('"'),
        [b'#', b'x', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        [first, rest @ ..]
            if starts_name(*first) && rest.iter().all(|byte| is_name_byte(*byte)) =>
        {
            Reference::Entity
        }
        _ => Reference::Malformed,
    }
}

fn number(digits: &[u8], radix: u32) -> Reference {
    let mut number = 0_u32;
    for digit in digits {
        let Some(digit) = char::from(*digit).to_digit(radix) else { return Reference::Malformed };
        number = number.saturating_mul(radix).saturating_add(digit);
    }
    match char::from_u32(number) {
        _ if digits.is_empty() => Reference::Malformed,
        Some(character) if is_char(character) => Reference::Character(character),
        _ => Reference::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read() {
        for (reference, expected) in [
            ("lt", Reference::Character('<')),
            ("apos", Reference::Character('\'')),
            ("#65", Reference::Character('A')),
            ("#0000000000065", Reference::Character('A')),
            ("#x1F600", Reference::Character('\u{1f600}')),
            ("#10", Reference::Character('\n')),
            ("#0", Reference::Forbidden),
            ("#xD800", Reference::Forbidden),
            ("#xFFFF", Reference::Forbidden),
            ("#99999999999999999999", Reference::Forbidden),
            ("#", Reference::Malformed),
            ("#x", Reference::Malformed),
            ("#X41", Reference::Malformed),
            ("#6a", Reference::Malformed),
            ("", Reference::Malformed),
            ("1a", Reference::Malformed),
            ("LT", Reference::Entity),
            ("nbsp", Reference::Entity),
        ] {
            assert_eq!(read(reference.as_bytes()), expected, "{reference}");
        }
    }
}
