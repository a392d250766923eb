//! Transformations: steps applied to a value before an operator compares it (SecLang's `t:`).
//!
//! They follow the reference manual of ModSecurity 3 and the regression tests of CRS 4. If ModSecurity and Coraza differ,
//! the function documents which of them it follows, and why.
//!
//! Nearly all transformations leave nearly all values unchanged. So each transformation first searches for a byte that it
//! could change, in a loop that the compiler can vectorise. Without such a byte, it writes nothing. Every transformation is
//! linear in its input, and [`Transformation::output_len_max`] bounds its output.

mod best_fit;
mod case;
mod command_line;
mod comments;
mod css;
mod digests;
mod digits;
mod encodings;
mod escapes;
mod html;
mod javascript;
mod nulls;
mod path;
mod replace;
mod scan;
mod steps;
mod url;
mod utf8;
mod whitespace;

pub(crate) use steps::Steps;

#[cfg(test)]
mod tests;

/// A step applied to a value before an operator compares it (SecLang's `t:`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Transformation {
    /// Decodes Base64, up to the first byte outside its alphabet.
    Base64Decode,
    /// Decodes Base64 (also its URL alphabet), and skips bytes outside the alphabet.
    Base64DecodeExt,
    /// Encodes as Base64 with padding.
    Base64Encode,
    /// Removes shell obfuscation: removes quotes, carets and backslashes, replaces separators by one space, and converts
    /// letters to lower case.
    CmdLine,
    /// Replaces each run of whitespace by one space.
    CompressWhitespace,
    /// Decodes CSS 2 escapes.
    CssDecode,
    /// Decodes ANSI C escapes.
    EscapeSeqDecode,
    /// Decodes pairs of hexadecimal digits, up to the first other byte.
    HexDecode,
    /// Encodes as pairs of lower-case hexadecimal digits.
    HexEncode,
    /// Decodes HTML character references.
    HtmlEntityDecode,
    /// Decodes JavaScript escapes.
    JsDecode,
    /// The length in bytes, in decimal digits.
    Length,
    /// Converts ASCII letters to lower case.
    Lowercase,
    /// The MD5 digest, 16 raw bytes.
    Md5,
    /// Resolves `//`, `.` and `..` in a path.
    NormalizePath,
    /// Like [`Self::NormalizePath`], with `\` as a second separator.
    NormalizePathWin,
    /// Removes comments of C, HTML, SQL and the shell.
    RemoveComments,
    /// Removes the marks that open and close comments, but not the text between them.
    RemoveCommentsChar,
    /// Removes NUL bytes.
    RemoveNulls,
    /// Removes whitespace.
    RemoveWhitespace,
    /// Replaces each C comment by one space.
    ReplaceComments,
    /// Replaces NUL bytes by spaces.
    ReplaceNulls,
    /// The SHA-1 digest, 20 raw bytes.
    Sha1,
    /// Decodes SQL hexadecimal strings such as `0x414243`.
    SqlHexDecode,
    /// Removes whitespace at both ends.
    Trim,
    /// Removes whitespace at the start.
    TrimLeft,
    /// Removes whitespace at the end.
    TrimRight,
    /// Converts ASCII letters to upper case.
    Uppercase,
    /// Decodes percent-encoding, and `+` as a space.
    UrlDecode,
    /// Like [`Self::UrlDecode`], and also decodes `%uXXXX` of IIS.
    UrlDecodeUni,
    /// Encodes with percent-encoding, and spaces as `+`.
    UrlEncode,
    /// Replaces non-ASCII UTF-8 characters by `%uXXXX`.
    Utf8ToUnicode,
}

impl Transformation {
    const ALL: [Self; 32] = [
        Self::Base64Decode,
        Self::Base64DecodeExt,
        Self::Base64Encode,
        Self::CmdLine,
        Self::CompressWhitespace,
        Self::CssDecode,
        Self::EscapeSeqDecode,
        Self::HexDecode,
        Self::HexEncode,
        Self::HtmlEntityDecode,
        Self::JsDecode,
        Self::Length,
        Self::Lowercase,
        Self::Md5,
        Self::NormalizePath,
        Self::NormalizePathWin,
        Self::RemoveComments,
        Self::RemoveCommentsChar,
        Self::RemoveNulls,
        Self::RemoveWhitespace,
        Self::ReplaceComments,
        Self::ReplaceNulls,
        Self::Sha1,
        Self::SqlHexDecode,
        Self::Trim,
        Self::TrimLeft,
        Self::TrimRight,
        Self::Uppercase,
        Self::UrlDecode,
        Self::UrlDecodeUni,
        Self::UrlEncode,
        Self::Utf8ToUnicode,
    ];

    /// Number of transformations. The value of each variant is below it.
    pub const COUNT: usize = Self::ALL.len();

    /// All transformations, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// The transformation with this SecLang name, in any case. The British spellings `normalisePath` and `normalisePathWin`
    /// are also accepted.
    pub fn from_name(name: &str) -> Option<Self> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("normalisePath") {
            return Some(Self::NormalizePath);
        }
        if is("normalisePathWin") {
            return Some(Self::NormalizePathWin);
        }
        Self::all().find(|transformation| is(transformation.name()))
    }

    /// The SecLang name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base64Decode => "base64Decode",
            Self::Base64DecodeExt => "base64DecodeExt",
            Self::Base64Encode => "base64Encode",
            Self::CmdLine => "cmdLine",
            Self::CompressWhitespace => "compressWhitespace",
            Self::CssDecode => "cssDecode",
            Self::EscapeSeqDecode => "escapeSeqDecode",
            Self::HexDecode => "hexDecode",
            Self::HexEncode => "hexEncode",
            Self::HtmlEntityDecode => "htmlEntityDecode",
            Self::JsDecode => "jsDecode",
            Self::Length => "length",
            Self::Lowercase => "lowercase",
            Self::Md5 => "md5",
            Self::NormalizePath => "normalizePath",
            Self::NormalizePathWin => "normalizePathWin",
            Self::RemoveComments => "removeComments",
            Self::RemoveCommentsChar => "removeCommentsChar",
            Self::RemoveNulls => "removeNulls",
            Self::RemoveWhitespace => "removeWhitespace",
            Self::ReplaceComments => "replaceComments",
            Self::ReplaceNulls => "replaceNulls",
            Self::Sha1 => "sha1",
            Self::SqlHexDecode => "sqlHexDecode",
            Self::Trim => "trim",
            Self::TrimLeft => "trimLeft",
            Self::TrimRight => "trimRight",
            Self::Uppercase => "uppercase",
            Self::UrlDecode => "urlDecode",
            Self::UrlDecodeUni => "urlDecodeUni",
            Self::UrlEncode => "urlEncode",
            Self::Utf8ToUnicode => "utf8toUnicode",
        }
    }

    /// Writes the transformed input to `output`, which must be empty. Returns `false` if the input does not change; `output`
    /// then stays empty.
    pub fn apply(self, input: &[u8], output: &mut Vec<u8>) -> bool {
        debug_assert!(output.is_empty(), "the output of another value would come first");
        match self {
            Self::Base64Decode => encodings::base64_decode(input, output),
            Self::Base64DecodeExt => encodings::base64_decode_forgiving(input, output),
            Self::Base64Encode => encodings::base64_encode(input, output),
            Self::CmdLine => command_line::normalize(input, output),
            Self::CompressWhitespace => whitespace::compress(input, output),
            Self::CssDecode => css::decode(input, output),
            Self::EscapeSeqDecode => escapes::decode(input, output),
            Self::HexDecode => encodings::hex_decode(input, output),
            Self::HexEncode => encodings::hex_encode(input, output),
            Self::HtmlEntityDecode => html::decode(input, output),
            Self::JsDecode => javascript::decode(input, output),
            Self::Length => digests::length(input, output),
            Self::Lowercase => case::lower(input, output),
            Self::Md5 => digests::md5(input, output),
            Self::NormalizePath => path::normalize(input, output),
            Self::NormalizePathWin => path::normalize_windows(input, output),
            Self::RemoveComments => comments::remove(input, output),
            Self::RemoveCommentsChar => comments::remove_marks(input, output),
            Self::RemoveNulls => nulls::remove(input, output),
            Self::RemoveWhitespace => whitespace::remove(input, output),
            Self::ReplaceComments => comments::replace_by_space(input, output),
            Self::ReplaceNulls => nulls::replace_by_space(input, output),
            Self::Sha1 => digests::sha1(input, output),
            Self::SqlHexDecode => encodings::sql_hex_decode(input, output),
            Self::Trim => whitespace::trim(input, output),
            Self::TrimLeft => whitespace::trim_start(input, output),
            Self::TrimRight => whitespace::trim_end(input, output),
            Self::Uppercase => case::upper(input, output),
            Self::UrlDecode => url::decode(input, output),
            Self::UrlDecodeUni => url::decode_with_unicode(input, output),
            Self::UrlEncode => url::encode(input, output),
            Self::Utf8ToUnicode => utf8::to_percent_u(input, output),
        }
    }

    /// Maximum number of bytes that [`Self::apply`] writes for an input of `input_len` bytes. Only the encoders, and for
    /// short inputs the length and the digests, write more bytes than they read.
    pub const fn output_len_max(self, input_len: usize) -> usize {
        match self {
            // Two bytes become one `%uXXXX`; one byte becomes one `%XX`.
            Self::Utf8ToUnicode | Self::UrlEncode => input_len.saturating_mul(3),
            Self::HexEncode => input_len.saturating_mul(2),
            Self::Base64Encode => input_len.div_ceil(3).saturating_mul(4),
            Self::Length => digests::LENGTH_DIGITS_MAX,
            Self::Md5 => digests::MD5_LEN,
            Self::Sha1 => digests::SHA1_LEN,
            _ => input_len,
        }
    }
}
