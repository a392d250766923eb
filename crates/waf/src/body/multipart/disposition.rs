//! The Content-Disposition of a part (RFC 7578 section 4.2), parsed as in ModSecurity.

use super::super::differences::Difference;
use super::super::problem::Problem;
use super::super::query::hex_digit;
use super::flags::{Findings, MultipartFlag};

/// A parsed Content-Disposition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Disposition {
    pub(super) name: Option<Vec<u8>>,
    pub(super) file_name: Option<Vec<u8>>,
    /// `filename*`, decoded.
    pub(super) file_name_extended: Option<Vec<u8>>,
}

const KIND: &[u8] = b"form-data";

/// Parses the value of the header. If a parameter is repeated, the first is used.
pub(super) fn read(
    value: &[u8],
    is_form: bool,
    findings: &mut Findings,
) -> Result<Disposition, Problem> {
    let mut disposition = Disposition::default();
    let mut rest = behind_kind(value, is_form, findings).ok_or(Problem::PartDisposition)?;
    loop {
        rest = skip_blanks(rest);
        match rest.split_first() {
            None => break,
            Some((b';', behind)) => rest = skip_blanks(behind),
            Some(_) => return Err(Problem::PartDisposition),
        }
        let (name, behind) = parameter_name(rest, findings)?;
        rest = parameter(name, behind, &mut disposition, findings)?;
    }
    match (&disposition.file_name, &disposition.file_name_extended) {
        (Some(_), Some(_)) => findings.differ(Difference::FileNameExtended),
        (None, Some(_)) => findings.differ(Difference::FileNameExtendedAlone),
        _ => {}
    }
    Ok(disposition)
}

/// The text after `form-data`, or after any type if the body is not a form.
fn behind_kind<'a>(value: &'a [u8], is_form: bool, findings: &mut Findings) -> Option<&'a [u8]> {
    if !is_form {
        let is_of_kind = |byte: &u8| super::super::media_type::is_token_byte(*byte);
        return value.get(value.iter().take_while(|byte| is_of_kind(byte)).count()..);
    }
    let (kind, rest) = value.split_at_checked(KIND.len())?;
    if kind != KIND {
        findings.differ(Difference::ParameterCase);
    }
    kind.eq_ignore_ascii_case(KIND).then_some(rest)
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    bytes.get(blanks..).unwrap_or_default()
}

/// Parses the name of a parameter. Returns the name and the text after `=`.
fn parameter_name<'a>(
    bytes: &'a [u8],
    findings: &mut Findings,
) -> Result<(&'a [u8], &'a [u8]), Problem> {
    let end = bytes
        .iter()
        .position(|byte| matches!(byte, b'=' | b';' | b' ' | b'\t'))
        .unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at(end);
    let equals = skip_blanks(rest);
    let behind =
        equals.strip_prefix(b"=").filter(|_| !name.is_empty()).ok_or(Problem::PartDisposition)?;
    let start = skip_blanks(behind);
    if equals.len() != rest.len() || start.len() != behind.len() {
        findings.differ(Difference::ParameterBlanks);
    }
    Ok((name, start))
}

/// Parses and stores a value. Returns the rest.
fn parameter<'a>(
    name: &[u8],
    bytes: &'a [u8],
    disposition: &mut Disposition,
    findings: &mut Findings,
) -> Result<&'a [u8], Problem> {
    let lower = name.to_ascii_lowercase();
    let (value, rest) = match (lower.as_slice(), bytes.first()) {
        (_, None) => return Err(Problem::PartDisposition),
        (b"filename*", _) => extended(bytes)?,
        (b"filename", Some(b'"')) if has_escaped_quotes_alone(bytes) => unescaped(bytes),
        (_, Some(quote @ (b'"' | b'\''))) => quoted(*quote, bytes, findings),
        _ => token(bytes, findings),
    };
    let (place, repeated) = match lower.as_slice() {
        b"name" => (&mut disposition.name, Difference::NameRepeated),
        b"filename" => (&mut disposition.file_name, Difference::FileNameRepeated),
        b"filename*" => (&mut disposition.file_name_extended, Difference::FileNameRepeated),
        _ => {
            findings.differ(Difference::ParameterUnknown);
            return Ok(rest);
        }
    };
    if name != lower {
        findings.differ(Difference::ParameterCase);
    }
    if place.is_some() {
        findings.differ(repeated);
    }
    place.get_or_insert(value);
    Ok(rest)
}

/// Whether backslashes of a quoted value only escape quotes, as of curl, and whoever ends the value at the first quote finds
/// no parameter in the rest.
fn has_escaped_quotes_alone(bytes: &[u8]) -> bool {
    let (mut rest, mut has_escape) = (bytes.get(1..).unwrap_or_default(), false);
    loop {
        rest = match rest {
            [b'\\', b'"', behind @ ..] => {
                has_escape = true;
                behind
            }
            [b'"', behind @ ..] => return has_escape && matches!(behind, [] | [b';', ..]),
            [b'\\', ..] | [] => return false,
            [b';' | b'=', ..] if has_escape => return false,
            [_, behind @ ..] => behind,
        };
    }
}

/// The value with its escaped quotes, and the rest.
fn unescaped(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    quoted(b'"', bytes, &mut Findings::default())
}

/// Parses a quoted value. A backslash escapes the quote and itself. Elsewhere it is literal, as in the paths sent by old
/// browsers.
fn quoted<'a>(quote: u8, bytes: &'a [u8], findings: &mut Findings) -> (Vec<u8>, &'a [u8]) {
    if quote == b'\'' {
        findings.flag(MultipartFlag::InvalidQuoting);
        findings.differ(Difference::SingleQuotes);
    }
    let mut value = Vec::new();
    let mut rest = bytes.get(1..).unwrap_or_default();
    loop {
        rest = match rest {
            [b'\\', byte, behind @ ..] if *byte == quote || *byte == b'\\' => {
                findings.differ(Difference::Backslash);
                value.push(*byte);
                behind
            }
            [byte, behind @ ..] if *byte == quote => {
                if matches!(behind.first(), Some(byte) if !matches!(byte, b';' | b' ' | b'\t')) {
                    findings.flag(MultipartFlag::InvalidQuoting);
                }
                return (value, behind);
            }
            [byte, behind @ ..] => {
                if *byte == b'\\' {
                    findings.differ(Difference::Backslash);
                }
                value.push(*byte);
                behind
            }
            [] => {
                findings.flag(MultipartFlag::InvalidQuoting);
                findings.differ(Difference::QuoteUnclosed);
                return (value, rest);
            }
        };
    }
}

fn token<'a>(bytes: &'a [u8], findings: &mut Findings) -> (Vec<u8>, &'a [u8]) {
    let end = bytes
        .iter()
        .position(|byte| !super::super::media_type::is_token_byte(*byte))
        .unwrap_or(bytes.len());
    let (value, rest) = bytes.split_at(end);
    if value.contains(&b'\'') {
        findings.flag(MultipartFlag::InvalidQuoting);
        findings.differ(Difference::SingleQuotes);
    }
    (value.to_vec(), rest)
}

/// Parses `charset'language'value` (RFC 8187). Decodes the value and ignores the charset.
fn extended(bytes: &[u8]) -> Result<(Vec<u8>, &[u8]), Problem> {
    let malformed = Problem::PartDisposition;
    let (charset, rest) = bytes.split_at(memchr::memchr(b'\'', bytes).ok_or(malformed)?);
    let is_charset = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&+-^_`{}~".contains(byte);
    let rest = rest
        .get(1..)
        .filter(|_| !charset.is_empty() && charset.iter().all(is_charset))
        .ok_or(malformed)?;
    let language_end = memchr::memchr(b'\'', rest).ok_or(malformed)?;
    let mut rest = rest.get(language_end + 1..).unwrap_or_default();
    let mut value = Vec::new();
    loop {
        rest = match rest {
            [] | [b';' | b' ' | b'\t', ..] => return Ok((value, rest)),
            [b'%', high, low, behind @ ..] => {
                let (high, low) =
                    (hex_digit(*high).ok_or(malformed)?, hex_digit(*low).ok_or(malformed)?);
                value.push(high << 4 | low);
                behind
            }
            [byte, behind @ ..]
                if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(byte) =>
            {
                value.push(*byte);
                behind
            }
            _ => return Err(malformed),
        };
    }
}
