//! Charsets of bodies. Rules inspect bytes, so what matters of a charset is which characters its ASCII bytes stand for.

/// What a Content-Type value says of the charset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Charset {
    /// Nothing, or UTF-8.
    #[default]
    Utf8,
    /// Each ASCII byte is an ASCII character, or a letter or digit in a longer one (UHC).
    Ascii,
    /// An ASCII byte that is no quote, blank, angle bracket or ampersand may be the second one of a character: `\` and `]`, too.
    Pairs {
        /// Whether bytes from 0xa0 to 0xdf are characters of their own (Shift JIS).
        has_kana: bool,
    },
    /// UTF-16, which can be converted.
    Utf16,
    /// A charset that rules cannot read, or several that contradict each other.
    Unreadable,
}

/// Names in lower case. `*` stands for the members of a family: one or two letters or digits.
const NAMES: [(Charset, &[&str]); 5] = [
    (Charset::Utf8, &["utf-8", "utf8", "us-ascii", "ascii", "unicode-1-1-utf-8"]),
    (
        Charset::Ascii,
        &[
            "latin1",
            "iso-8859-*",
            "iso8859-*",
            "iso_8859-*",
            "iso-8859-8-i",
            "iso-8859-8-e",
            "windows-125*",
            "cp125*",
            "windows-874",
            "cp874",
            "tis-620",
            "koi8-*",
            "ibm866",
            "cp866",
            "macintosh",
            "x-mac-cyrillic",
            "euc-kr",
            "ks_c_5601-1987",
            "ksc5601",
            "windows-949",
            "ms949",
            "cp949",
            "euc-jp",
            "x-euc-jp",
        ],
    ),
    (
        Charset::Pairs { has_kana: false },
        &[
            "gbk",
            "x-gbk",
            "gb2312",
            "gb_2312-80",
            "gb18030",
            "ms936",
            "cp936",
            "windows-936",
            "big5",
            "x-x-big5",
            "big5-hkscs",
            "ms950",
            "cp950",
        ],
    ),
    (
        Charset::Pairs { has_kana: true },
        &["shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "ms932", "cp932"],
    ),
    (Charset::Utf16, &["utf-16", "utf-16le", "utf-16be"]),
];

impl Charset {
    /// The charset of a body with this Content-Type. Every charset that a server could find in the value counts.
    pub(crate) fn of(content_type: &[u8]) -> Self {
        const NAME: &[u8] = b"charset";
        let text = content_type.to_ascii_lowercase();
        let found = memchr::memmem::find_iter(&text, NAME).filter_map(|at| {
            let behind = text[at + NAME.len()..].trim_ascii_start();
            match behind.split_first() {
                Some((b'=', value)) => Self::of_value(value),
                // RFC 2231: the value is encoded, or split into several parameters.
                Some((b'*', _)) => Some(Self::Unreadable),
                // Another word that contains `charset`.
                _ => None,
            }
        });
        found.reduce(Self::and).unwrap_or_default()
    }

    /// The charset with this name.
    pub(super) fn named(name: &[u8]) -> Self {
        Self::of_value(&name.to_ascii_lowercase()).unwrap_or_default()
    }

    /// Whether rules can read fields in this charset.
    pub(crate) fn is_readable(self) -> bool {
        !matches!(self, Self::Utf16 | Self::Unreadable)
    }

    /// The charset of a text that servers may read in either of two.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Utf8 | Self::Ascii, Self::Utf8 | Self::Ascii) => Self::Ascii,
            _ => Self::Unreadable,
        }
    }

    fn of_value(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii_start();
        // An empty name is not a charset.
        if matches!(value, [] | [b';', ..]) {
            return None;
        }
        let value = value.strip_prefix(b"\"").unwrap_or(value).trim_ascii_start();
        let is_end = |byte: &u8| matches!(byte, b';' | b',' | b'"') || byte.is_ascii_whitespace();
        let name = value.split(is_end).next().unwrap_or_default();
        let is_named = |known: &&str| match known.strip_suffix('*') {
            Some(family) => name.strip_prefix(family.as_bytes()).is_some_and(is_member),
            None => name == known.as_bytes(),
        };
        let found = NAMES.iter().find(|(_, names)| names.iter().any(is_named));
        Some(found.map_or(Self::Unreadable, |(charset, _)| *charset))
    }
}

fn is_member(number: &[u8]) -> bool {
    (1..=2).contains(&number.len()) && number.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_of_values() {
        use Charset::{Ascii, Pairs, Unreadable, Utf8, Utf16};
        let (pairs, kana) = (Pairs { has_kana: false }, Pairs { has_kana: true });
        for (content_type, expected) in [
            ("", Utf8),
            ("text/plain", Utf8),
            ("text/plain; charset=utf-8", Utf8),
            ("text/plain; charset=\"UTF-8\"", Utf8),
            ("text/plain;Charset = us-ascii;x=y", Utf8),
            ("text/plain; charset=ISO-8859-15", Ascii),
            ("text/plain; charset=iso-8859-8-i", Ascii),
            ("text/plain; charset=windows-1252", Ascii),
            ("text/plain; charset=windows-874", Ascii),
            ("text/plain; charset=TIS-620", Ascii),
            ("text/plain; charset=KOI8-R", Ascii),
            ("text/plain; charset=EUC-KR", Ascii),
            ("text/plain; charset=euc-jp", Ascii),
            ("text/plain; charset=utf-8; charset=latin1", Ascii),
            ("text/plain; charset=GBK", pairs),
            ("text/plain; charset=gb18030", pairs),
            ("text/plain; charset=Big5", pairs),
            ("text/plain; charset=shift_jis", kana),
            ("text/plain; charset=gbk; charset=GB2312", pairs),
            ("text/plain; charset=gbk; charset=shift_jis", Unreadable),
            ("text/plain; charset=gbk; charset=utf-8", Unreadable),
            ("text/plain; charset=", Utf8),
            ("text/plain; charset=;x=y", Utf8),
            ("text/plain; charset", Utf8),
            ("multipart/form-data; boundary=charset", Utf8),
            ("text/plain; charset=utf-16", Utf16),
            ("text/plain; charset=UTF-16LE", Utf16),
            ("text/plain; charset=utf-7", Unreadable),
            ("text/plain; charset=ibm037", Unreadable),
            ("text/plain; charset=iso-2022-kr", Unreadable),
            ("text/plain; charset=hz-gb-2312", Unreadable),
            ("text/plain; charset=johab", Unreadable),
            ("text/plain; charset=iso-8859-", Unreadable),
            ("text/plain; charset=utf-8; charset=utf-16", Unreadable),
            ("text/plain; charset=utf-16; charset=utf-8", Unreadable),
            ("text/plain; charset*=us-ascii''utf-16", Unreadable),
            ("text/plain charset= \"utf-16", Utf16),
            ("text/plain;x=\"charset=utf-7\"", Unreadable),
            ("text/plain; charset='utf-16'", Unreadable),
            ("text/plain; charset=\"\"utf-16", Unreadable),
            ("text/plain; charset=x", Unreadable),
        ] {
            assert_eq!(Charset::of(content_type.as_bytes()), expected, "{content_type}");
        }
        for (charset, names) in NAMES {
            assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
            assert_eq!(Charset::named(names[0].to_ascii_uppercase().as_bytes()), charset);
        }
        assert!(Charset::named(b"").is_readable() && pairs.is_readable() && !Utf16.is_readable());
    }
}
