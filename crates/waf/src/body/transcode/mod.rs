//! Texts in encodings in which ASCII characters are not their bytes: UTF-16, UTF-32 and EBCDIC.
//!
//! XML parsers recognise these encodings by the first bytes, whatever the head of the request says, and some JSON parsers do.
//! So rules judge the text after it was converted to UTF-8.

mod ebcdic;

/// The number of characters that decide about an encoding.
const CHARACTERS_LOOKED_AT: usize = 64;

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-16, with the low byte first or last.
    Utf16 {
        /// Whether the low byte is first.
        is_little: bool,
    },
    /// UTF-32, with the low byte first or last.
    Utf32 {
        /// Whether the low byte is first.
        is_little: bool,
    },
    /// A code page of EBCDIC.
    Ebcdic,
}

const ALL: [Encoding; 4] = [
    Encoding::Utf32 { is_little: true },
    Encoding::Utf32 { is_little: false },
    Encoding::Utf16 { is_little: true },
    Encoding::Utf16 { is_little: false },
];

/// The encoding of a text, by its first bytes. `None`: it is none of these, or no text.
pub fn encoding_of(look: &[u8]) -> Option<Encoding> {
    let by_units = ALL.into_iter().find(|encoding| encoding.fits(look));
    by_units.or_else(|| ebcdic::fits(look).then_some(Encoding::Ebcdic))
}

/// The text in UTF-8, without a byte order mark. Code pages of EBCDIC differ in few characters, so the text is read by
/// several; equal results come once.
pub fn readings(encoding: Encoding, text: &[u8]) -> Vec<Vec<u8>> {
    match encoding {
        Encoding::Ebcdic => ebcdic::readings(text),
        _ => {
            let characters = encoding.characters(text).skip_while(|it| *it == MARK);
            vec![characters.collect::<String>().into_bytes()]
        }
    }
}

/// The byte order mark.
const MARK: char = '\u{feff}';

impl Encoding {
    /// The code units of a text.
    fn units(self, text: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let (size, is_little) = match self {
            Self::Utf16 { is_little } => (2, is_little),
            Self::Utf32 { is_little } => (4, is_little),
            Self::Ebcdic => (1, true),
        };
        text.chunks_exact(size).map(move |bytes| {
            let add = |unit: u32, byte: &u8| unit << 8 | u32::from(*byte);
            if is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
        })
    }

    /// The characters of a text. Invalid code units become U+FFFD.
    fn characters(self, text: &[u8]) -> Box<dyn Iterator<Item = char> + '_> {
        let units = self.units(text);
        match self {
            Self::Utf16 { .. } => Box::new(
                char::decode_utf16(units.map(|unit| unit as u16))
                    .map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)),
            ),
            _ => Box::new(
                units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
            ),
        }
    }

    /// Whether the first characters are those of a text: after a mark, many of them are in ASCII; without a mark, nearly all,
    /// or the first ones if these begin a document.
    fn fits(self, look: &[u8]) -> bool {
        let looked_at: Vec<char> = self.characters(look).take(CHARACTERS_LOOKED_AT).collect();
        let (has_mark, looked_at) = match looked_at.split_first() {
            Some((&MARK, rest)) => (true, rest),
            _ => (false, &looked_at[..]),
        };
        let Some(first) = looked_at.iter().find(|it| !it.is_whitespace()) else { return false };
        let is_plain = |it: &char| it.is_ascii_graphic() || it.is_ascii_whitespace();
        let plain = looked_at.iter().filter(|it| is_plain(it)).count();
        let begins_document =
            matches!(first, '<' | '{' | '[' | '"') && looked_at.iter().take(2).all(is_plain);
        match has_mark {
            true => begins_document || plain * 3 >= looked_at.len(),
            false => begins_document || (looked_at.len() > 1 && plain * 10 >= looked_at.len() * 9),
        }
    }
}

#[cfg(test)]
mod tests;
