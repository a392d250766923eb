//! Sets of transformations, and the transformations that may change a given value.

use super::Transformation;

/// A set of transformations, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps(u32);

const _: () = assert!(Transformation::COUNT <= 32);

impl Steps {
    /// The set of these transformations.
    pub fn of(steps: &[Transformation]) -> Self {
        Self(steps.iter().fold(0, |bits, step| bits | bit(*step)))
    }

    /// Whether the set contains this transformation.
    pub fn has(self, step: Transformation) -> bool {
        self.0 & bit(step) != 0
    }

    /// The union with another set.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without this transformation.
    pub fn without(self, step: Transformation) -> Self {
        Self(self.0 & !bit(step))
    }

    /// If this set may change a value, the set that may change the lower-case value ([`Transformation::Lowercase`]).
    pub fn of_lowercase(self) -> Self {
        Self(self.0 | bit(Transformation::Uppercase)).without(Transformation::Lowercase)
    }

    /// Whether the sets have no common element.
    pub fn is_disjoint(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// The transformations that may change a value; all others leave it unchanged.
    pub fn that_may_change(value: &[u8]) -> Self {
        let first = if value.first() == Some(&b'.') { DOT_FIRST } else { 0 };
        Self(value.iter().fold(ALWAYS | first, |bits, byte| bits | BY_BYTE[usize::from(*byte)]))
    }
}

const fn bit(step: Transformation) -> u32 {
    1 << step as u32
}

/// Transformations that may change a value with any bytes.
const ALWAYS: u32 = bit(Transformation::Base64Decode)
    | bit(Transformation::Base64DecodeExt)
    | bit(Transformation::Base64Encode)
    | bit(Transformation::HexDecode)
    | bit(Transformation::HexEncode)
    | bit(Transformation::Length)
    | bit(Transformation::Md5)
    | bit(Transformation::Sha1)
    | bit(Transformation::SqlHexDecode)
    | bit(Transformation::UrlEncode);

/// Transformations that may change a path if it begins with a dot.
const DOT_FIRST: u32 = bit(Transformation::NormalizePath) | bit(Transformation::NormalizePathWin);

/// For each byte, the transformations that may change a value with this byte.
static BY_BYTE: [u32; 256] = {
    let mut by_byte = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        by_byte[byte] = by(byte as u8);
        byte += 1;
    }
    by_byte
};

const fn by(byte: u8) -> u32 {
    use Transformation as T;
    let mut bits = match byte {
        b'%' | b'+' => bit(T::UrlDecode) | bit(T::UrlDecodeUni),
        b'&' => bit(T::HtmlEntityDecode),
        b'\\' => {
            bit(T::CssDecode)
                | bit(T::EscapeSeqDecode)
                | bit(T::JsDecode)
                | bit(T::CmdLine)
                | bit(T::NormalizePathWin)
        }
        b'/' => {
            bit(T::NormalizePath)
                | bit(T::NormalizePathWin)
                | bit(T::RemoveComments)
                | bit(T::RemoveCommentsChar)
                | bit(T::ReplaceComments)
        }
        b'*' => bit(T::RemoveComments) | bit(T::RemoveCommentsChar) | bit(T::ReplaceComments),
        b'-' | b'#' | b'<' => bit(T::RemoveComments) | bit(T::RemoveCommentsChar),
        b'A'..=b'Z' => bit(T::Lowercase) | bit(T::CmdLine),
        b'a'..=b'z' => bit(T::Uppercase),
        b'"' | b'\'' | b'^' | b',' | b';' => bit(T::CmdLine),
        0 => bit(T::RemoveNulls) | bit(T::ReplaceNulls),
        0x80..=0xff => bit(T::Utf8ToUnicode),
        _ => 0,
    };
    // Some multi-byte characters are whitespace.
    if byte <= b' ' || byte >= 0x80 {
        bits |= bit(T::CmdLine)
            | bit(T::CompressWhitespace)
            | bit(T::RemoveWhitespace)
            | bit(T::Trim)
            | bit(T::TrimLeft)
            | bit(T::TrimRight);
    }
    bits
}

#[cfg(test)]
mod tests {
    use weir_testing::Random;

    use super::*;

    #[test]
    fn what_may_not_change_a_value_does_not() {
        let pieces: [&[u8]; 44] = [
            b"a",
            b"Z",
            b"0",
            b" ",
            b"  ",
            b"\t",
            b"\n",
            b"\0",
            b"\xa0",
            b"\xc2\xa0",
            b"\xc3\xbc",
            b"\xff",
            b"%",
            b"%41",
            b"%u0041",
            b"+",
            b"&",
            b"&lt;",
            b"&#65",
            b"\\",
            b"\\x41",
            b"\\u0041",
            b"\\n",
            b"/",
            b"//",
            b"/.",
            b"..",
            b".",
            b"./",
            b"*",
            b"/*",
            b"*/",
            b"--",
            b"<!--",
            b"-->",
            b"#",
            b"'",
            b"\"",
            b"^",
            b",",
            b";",
            b"(",
            b"0x41",
            b"=",
        ];
        let mut random = Random::new(1);
        let mut unchanged = 0;
        for _ in 0..20_000 {
            let count = random.below(4);
            let value: Vec<u8> =
                (0..count).flat_map(|_| pieces[random.below(pieces.len())].to_vec()).collect();
            let may_change = Steps::that_may_change(&value);
            for step in Transformation::all().filter(|step| !may_change.has(*step)) {
                let mut output = Vec::new();
                let changed = step.apply(&value, &mut output) && output != value;
                assert!(!changed, "{} of {value:?}", step.name());
                unchanged += 1;
            }
        }
        assert!(unchanged > 100_000);
    }
}
