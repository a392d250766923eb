//! Removes secrets from logs: passwords, tokens, cookies.
//!
//! | text | shown as |
//! |---|---|
//! | a value with a secret name | `***` |
//! | a match within a value with a secret name | `***` |
//! | `name=value` with a secret name inside another value, as in a referrer | `name=***` up to the end of that value |
//! | a secret of the request anywhere else, 4 bytes or more, in any case | `***` |
//!
//! If the search for secrets takes too long, the whole text is masked.

pub mod message;

use std::borrow::Cow;
use std::cell::Cell;

use weir_waf::inspection::{Inspection, MatchedValue};
use weir_waf::seclang::Variable;

/// The replacement of a secret.
pub const MASK: &[u8] = b"***";

/// Minimum length of a secret that is searched for in other texts. Shorter values would be found everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// Maximum number of byte comparisons in the search for the secrets of one request.
const WORK_BYTES_MAX: usize = 4 << 20;

/// Maximum number of times that a name is percent-decoded.
const DECODINGS_MAX: usize = 3;

/// Substrings that make a name secret, in any case.
const SECRET_PARTS: [&[u8]; 12] = [
    b"password",
    b"passwd",
    b"pwd",
    b"secret",
    b"token",
    b"api_key",
    b"apikey",
    b"session",
    b"auth",
    b"card",
    b"cvv",
    b"ssn",
];

/// A secret name that counts only as a separate word.
const SECRET_WORD: &[u8] = b"pin";

/// Texts up to this length are searched byte by byte, without preparation.
const SHORT_BYTES_MAX: usize = 256;

/// Fields with secret values that [`is_secret_name`] does not recognize.
const SECRET_FIELDS: [&[u8]; 4] =
    [b"authorization", b"proxy-authorization", b"cookie", b"set-cookie"];

/// Whether the value of an argument of this name is a secret. The name may be percent-encoded.
pub fn is_secret_name(name: &[u8]) -> bool {
    let mut name = Cow::Borrowed(name);
    for _ in 0..DECODINGS_MAX {
        if has_secret_part(&name) {
            return true;
        }
        match decoded(&name) {
            Some(once_more) => name = Cow::Owned(once_more),
            None => return false,
        }
    }
    has_secret_part(&name)
}

/// Whether a text contains a substring.
fn contains(text: &[u8], part: &[u8]) -> bool {
    if text.len() <= SHORT_BYTES_MAX {
        return text.windows(part.len()).any(|window| window == part);
    }
    memchr::memmem::find(text, part).is_some()
}

fn has_secret_part(name: &[u8]) -> bool {
    let folded: Vec<u8> = name.iter().map(|byte| fold(*byte)).collect();
    let has = |part: &&[u8]| contains(&folded, part);
    SECRET_PARTS.iter().any(has) || has_word(name, &folded)
}

/// The lower-case byte. Other separators become `_`, because servers treat them as equal.
fn fold(byte: u8) -> u8 {
    match byte {
        b'-' | b'.' | b' ' | b'+' => b'_',
        other => other.to_ascii_lowercase(),
    }
}

/// Whether the secret word stands alone, as in `pin`, `card_pin`, `userPin`.
fn has_word(name: &[u8], folded: &[u8]) -> bool {
    let is_bound = |left: Option<&u8>, right: Option<&u8>| match (left, right) {
        (Some(left), Some(right)) => {
            let is_camel = left.is_ascii_lowercase() && right.is_ascii_uppercase();
            is_camel || !left.is_ascii_alphabetic() || !right.is_ascii_alphabetic()
        }
        _ => true,
    };
    let length = SECRET_WORD.len();
    let mut places = (0..folded.len()).filter(|at| folded[*at..].starts_with(SECRET_WORD));
    places.any(|at| {
        let before = at.checked_sub(1).and_then(|before| name.get(before));
        is_bound(before, name.get(at)) && is_bound(name.get(at + length - 1), name.get(at + length))
    })
}

/// The text percent-decoded once; `None`: it contains no escapes.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    text.contains(&b'%').then_some(())?;
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = match byte {
            b'%' => escape(behind).unwrap_or((byte, behind)),
            byte => (byte, behind),
        };
        out.push(byte);
        rest = behind;
    }
    (out.len() < text.len()).then_some(out)
}

/// The byte of an escape after its `%`, such as `70` or `u0070`, and the text after the escape.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = match text.strip_prefix(b"u00").or_else(|| text.strip_prefix(b"U00")) {
        Some(digits) => digits,
        None => text,
    };
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    Some(((digit(0)? * 16 + digit(1)?) as u8, &digits[2..]))
}

/// Whether a field's value is a secret.
pub fn is_secret_field(name: &[u8]) -> bool {
    SECRET_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field)) || is_secret_name(name)
}

/// Whether a variable's value is a secret. The variable includes the name within a collection: `ARGS:password`.
fn is_secret_variable(variable: &[u8]) -> bool {
    let Some(colon) = variable.iter().position(|byte| *byte == b':') else { return false };
    let name = &variable[colon + 1..];
    match &variable[..colon] {
        // `XML:/*` is the text of a document without the names of its elements, so it may contain a secret.
        b"REQUEST_COOKIES" | b"XML" => true,
        b"REQUEST_HEADERS" | b"RESPONSE_HEADERS" => is_secret_field(name),
        b"ARGS" | b"ARGS_GET" | b"ARGS_POST" | b"FILES" | b"MULTIPART_PART_HEADERS" => {
            is_secret_name(name)
        }
        b"MATCHED_VARS" => is_secret_variable(name),
        _ => false,
    }
}

/// Whether a variable is derived from other variables.
fn is_derived(variable: &[u8]) -> bool {
    variable.starts_with(b"TX:") || variable.starts_with(b"MATCHED_VAR")
}

/// A request target in which the values of secret parameters are masked.
pub fn target(target: &[u8]) -> Vec<u8> {
    let query_at = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(query_at);
    let mut out = Vec::with_capacity(target.len());
    put_segments(&mut out, path, b'/');
    if let Some((mark, query)) = query.split_first() {
        out.push(*mark);
        put_segments(&mut out, query, b'&');
    }
    out
}

fn put_segments(out: &mut Vec<u8>, text: &[u8], separator: u8) {
    for (index, segment) in text.split(|byte| *byte == separator).enumerate() {
        if index > 0 {
            out.push(separator);
        }
        let shown = without_pair(segment, |name| name);
        out.extend_from_slice(&shown.unwrap_or(Cow::Borrowed(segment)));
    }
}

/// The text up to the first `name=value` with a secret name, with the value masked; `None`: there is no such pair. `name_in`
/// extracts the name from the text before `=`.
fn without_pair(text: &[u8], name_in: fn(&[u8]) -> &[u8]) -> Option<Cow<'static, [u8]>> {
    let mut start = 0;
    for piece in text.split(|byte| matches!(byte, b'?' | b'&' | b';')) {
        if let Some(equals) = piece.iter().position(|byte| *byte == b'=')
            && is_secret_name(name_in(&piece[..equals]))
        {
            return Some(Cow::Owned([&text[..start + equals + 1], MASK].concat()));
        }
        start += piece.len() + 1;
    }
    None
}

/// The data and values of a match, without secrets.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// The rule's data about the match.
    pub data: Cow<'a, [u8]>,
    /// The matched values.
    pub values: Vec<Cow<'a, [u8]>>,
}

/// The secret values of one request.
pub struct Secrets<'a> {
    /// The values, longest first.
    values: Vec<&'a [u8]>,
    /// Whether a secret starts with a byte. The index is the byte in lower case.
    first: [bool; 256],
    /// The number of byte comparisons left.
    work: Cell<usize>,
}

impl<'a> Secrets<'a> {
    /// The secrets in the variables of an inspection.
    pub fn of(inspection: &'a Inspection) -> Self {
        let named = |variable, is_secret: fn(&[u8]) -> bool| {
            let entries = inspection.entries(variable);
            entries.filter(move |(name, _)| is_secret(name)).map(|(_, value)| value)
        };
        let fields = named(Variable::RequestHeaders, is_secret_field)
            .chain(named(Variable::ResponseHeaders, is_secret_field));
        let values = named(Variable::ArgsGet, is_secret_name)
            .chain(named(Variable::ArgsPost, is_secret_name))
            .chain(named(Variable::RequestCookies, |_| true))
            .chain(fields.flat_map(with_credentials));
        Self::from_values(values)
    }

    /// The secrets among these values: those that are long enough to be searched for.
    pub fn from_values(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut values: Vec<&[u8]> =
            values.filter(|value| value.len() >= SECRET_BYTES_MIN).collect();
        values.sort_unstable_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
        values.dedup();
        let mut first = [false; 256];
        for value in &values {
            first[usize::from(value[0].to_ascii_lowercase())] = true;
        }
        Self { values, first, work: Cell::new(WORK_BYTES_MAX) }
    }

    /// A text with masked secrets. The start of a secret at the end of the text is masked too, because the text may be
    /// truncated.
    pub fn without<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let (mut out, mut from, mut at) = (Vec::new(), 0, 0);
        while at < text.len() {
            let Some(length) = self.length_at(&text[at..]) else {
                at += 1;
                continue;
            };
            out.extend_from_slice(&text[from..at]);
            out.extend_from_slice(MASK);
            at += length;
            from = at;
        }
        if self.work.get() == 0 && !text.is_empty() {
            return Cow::Borrowed(MASK);
        }
        if from == 0 {
            return Cow::Borrowed(text);
        }
        out.extend_from_slice(&text[from..]);
        Cow::Owned(out)
    }

    /// The length of the secret at the start of a text; `None`: the text does not start with a secret.
    fn length_at(&self, text: &[u8]) -> Option<usize> {
        if !self.first[usize::from(text[0].to_ascii_lowercase())] {
            return None;
        }
        let lengths = self.values.iter().map(|value| {
            let bytes = value.iter().zip(text);
            let same = bytes.take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count();
            self.work.set(self.work.get().saturating_sub(same + 1));
            let is_whole = same == value.len();
            let is_cut = same == text.len() && same >= SECRET_BYTES_MIN;
            (is_whole || is_cut).then_some(same)
        });
        // The search ends when it takes too long. The whole text is masked then.
        let mut lengths = lengths.take_while(|_| self.work.get() > 0);
        lengths.find_map(|length| length)
    }

    /// Data and values of a match with masked secrets.
    pub fn shown<'t>(&self, data: &'t [u8], values: &'t [MatchedValue]) -> Shown<'t> {
        let told: Vec<Option<Cow<'_, [u8]>>> =
            values.iter().map(|it| masked(&it.variable, &it.value)).collect();
        let is_named = |it: &MatchedValue| matches!(variable(&it.variable), Cow::Owned(_));
        let has_secret =
            told.iter().any(Option::is_some) || values.iter().any(is_named) || names_secret(data);
        let values = values.iter().zip(told).map(|(it, masked)| match masked {
            Some(masked) => Cow::Owned(self.without(&masked).into_owned()),
            None if has_secret && is_derived(&it.variable) => Cow::Borrowed(MASK),
            None => self.without(&it.value),
        });
        let values = values.collect();
        let data = match has_secret && !data.is_empty() {
            true => Cow::Borrowed(MASK),
            false => self.without(data),
        };
        Shown { data, values }
    }
}

impl Secrets<'_> {
    /// The detail of a check's finding, with masked secrets. Examples of places: `parameter id`, `cookie a`, `header Host`,
    /// `query`.
    pub fn of_finding(&self, place: &str, detail: &[u8]) -> Vec<u8> {
        let (kind, name) = place.split_once(' ').unwrap_or((place, ""));
        let is_secret = match kind {
            "cookie" => true,
            "header" => is_secret_field(name.as_bytes()),
            "parameter" => is_secret_name(name.as_bytes()),
            _ => false,
        };
        if is_secret {
            return MASK.to_vec();
        }
        let mut shown = Vec::with_capacity(detail.len());
        put_segments(&mut shown, detail, if kind == "query" { b'&' } else { b'/' });
        self.without(&shown).into_owned()
    }
}

/// A field's value, and the credentials after the scheme: `abc` in `Bearer abc`.
pub fn with_credentials(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let behind = value.iter().position(|byte| *byte == b' ').map(|at| &value[at + 1..]);
    std::iter::once(value).chain(behind)
}

/// The masked form of a value that is secret or contains a pair with a secret name; `None`: no masking is necessary.
fn masked(variable: &[u8], value: &[u8]) -> Option<Cow<'static, [u8]>> {
    if variable.starts_with(b"&") {
        return None;
    }
    if variable.split(|byte| *byte == b':').next()?.ends_with(b"_NAMES") {
        return is_document(value).then_some(Cow::Borrowed(MASK));
    }
    // In JSON, XML and bodies that cannot be parsed, a name can be anywhere.
    let is_body = variable == b"REQUEST_BODY" && is_secret_name(value);
    if is_body || is_secret_variable(variable) {
        return Some(Cow::Borrowed(MASK));
    }
    without_pair(value, last_word)
}

/// Whether a parameter name is a document that contains a secret, such as JSON sent as a form.
fn is_document(name: &[u8]) -> bool {
    const MARKS: &[u8] = b"\"'<>{}\r\n";
    name.iter().any(|byte| MARKS.contains(byte)) && is_secret_name(name)
}

/// A variable. A name that is a document with a secret is masked.
pub fn variable(variable: &[u8]) -> Cow<'_, [u8]> {
    match variable.iter().position(|byte| *byte == b':') {
        Some(colon) if is_document(&variable[colon + 1..]) => {
            Cow::Owned([&variable[..=colon], MASK].concat())
        }
        _ => Cow::Borrowed(variable),
    }
}

/// The place of a finding. A name that is a document with a secret is masked.
pub fn place(place: &str) -> Cow<'_, [u8]> {
    match place.split_once(' ') {
        Some((kind, name)) if is_document(name.as_bytes()) => {
            Cow::Owned([kind.as_bytes(), b" ", MASK].concat())
        }
        _ => Cow::Borrowed(place.as_bytes()),
    }
}

/// The last word of a text: in `select password from users where id` it is `id`.
fn last_word(text: &[u8]) -> &[u8] {
    let is_bound = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'(' | b',' | b'"' | b'\'');
    let start = text.iter().rposition(is_bound).map_or(0, |at| at + 1);
    &text[start..]
}

/// Whether a text contains the name of a secret variable: `found within ARGS:password: x`.
fn names_secret(text: &[u8]) -> bool {
    let words = text.split(|byte| matches!(byte, b' ' | b'"' | b'\''));
    words.map(without_punctuation).any(is_secret_variable)
}

/// A word without the colons and commas at its end.
fn without_punctuation(word: &[u8]) -> &[u8] {
    let last = word.iter().rposition(|byte| !matches!(byte, b':' | b','));
    &word[..last.map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests;
