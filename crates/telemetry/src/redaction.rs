//! Removes secrets from logs: passwords, tokens, cookies. The names of secrets are in [`weir_http::secret_names`].
//!
//! | text | shown as |
//! |---|---|
//! | a value with a secret name | `***` |
//! | a match within a value with a secret name | `***` |
//! | a secret within another value: a pair, a document, the user of a URL ([`within`]) | `***` in its place |
//! | a secret of the request anywhere else, 4 bytes or more, in any case | `***` |
//!
//! If the search for secrets takes too long, the whole text is masked.

pub mod message;
pub mod within;

use std::borrow::Cow;
use std::cell::Cell;

use weir_http::secret_names::{CredentialFields, is_secret_name, mentions_secret};
use weir_waf::inspection::{Inspection, MatchedValue};
use weir_waf::seclang::Variable;

use within::Kind;

/// The replacement of a secret.
pub const MASK: &[u8] = b"***";

/// Minimum length of a secret that is searched for in other texts. Shorter values would be found everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// Maximum number of byte comparisons in the search for the secrets of one request.
const WORK_BYTES_MAX: usize = 4 << 20;

/// Maximum number of bytes of values of one request that are searched for secrets within them, so as to find these in other
/// texts. Each text that is shown is searched in any case.
const SEARCHED_BYTES_MAX: usize = 256 << 10;

/// Whether a variable's value is a secret. The variable includes the name within a collection: `ARGS:password`.
fn is_secret_variable(variable: &[u8], fields: &CredentialFields) -> bool {
    let Some(colon) = variable.iter().position(|byte| *byte == b':') else { return false };
    let name = &variable[colon + 1..];
    match &variable[..colon] {
        // `XML:/*` is the text of a document without the names of its elements, so it may contain a secret.
        b"REQUEST_COOKIES" | b"XML" => true,
        b"REQUEST_HEADERS" | b"RESPONSE_HEADERS" => fields.is_secret(name),
        b"ARGS" | b"ARGS_GET" | b"ARGS_POST" | b"FILES" | b"MULTIPART_PART_HEADERS" => {
            is_secret_name(name)
        }
        b"MATCHED_VARS" => is_secret_variable(name, fields),
        _ => false,
    }
}

/// Whether a variable is derived from other variables.
fn is_derived(variable: &[u8]) -> bool {
    variable.starts_with(b"TX:") || variable.starts_with(b"MATCHED_VAR")
}

/// A request target in which secrets are masked: the values of parameters, and secrets within others.
pub fn target(target: &[u8]) -> Vec<u8> {
    let fields = CredentialFields::default();
    let shown = within::masked(target, &fields, Kind::Target);
    let target = shown.as_deref().unwrap_or(target);
    let query_at = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(query_at);
    let mut out = Vec::with_capacity(target.len());
    put_segments(&mut out, path, (b'/', Kind::Path), &fields);
    if let Some((mark, query)) = query.split_first() {
        out.push(*mark);
        put_segments(&mut out, query, (b'&', Kind::Text), &fields);
    }
    out
}

/// A text without the secrets within it.
pub fn text(text: &[u8]) -> Cow<'_, [u8]> {
    within::masked(text, &CredentialFields::default(), Kind::Text)
        .map_or(Cow::Borrowed(text), Cow::Owned)
}

fn put_segments(
    out: &mut Vec<u8>,
    text: &[u8],
    (separator, kind): (u8, Kind),
    fields: &CredentialFields,
) {
    for (index, segment) in text.split(|byte| *byte == separator).enumerate() {
        if index > 0 {
            out.push(separator);
        }
        let pair = without_pair(segment);
        let segment = pair.as_deref().unwrap_or(segment);
        out.extend_from_slice(within::masked(segment, fields, kind).as_deref().unwrap_or(segment));
    }
}

/// A segment up to the first `name=value` with a secret name, with the value masked; `None`: there is no such pair. All of the
/// text before `=` is the name.
fn without_pair(text: &[u8]) -> Option<Vec<u8>> {
    let mut start = 0;
    for piece in text.split(|byte| matches!(byte, b'?' | b'&' | b';')) {
        if let Some(equals) = piece.iter().position(|byte| *byte == b'=')
            && is_secret_name(&piece[..equals])
        {
            return Some([&text[..start + equals + 1], MASK].concat());
        }
        start += piece.len() + 1;
    }
    None
}

/// The data and values of a match, without secrets.
#[derive(Debug, PartialEq, Eq)]
pub struct MaskedMatch<'a> {
    /// The rule's data about the match.
    pub data: Cow<'a, [u8]>,
    /// The matched values.
    pub values: Vec<Cow<'a, [u8]>>,
}

/// The secret values of one request.
pub struct Secrets<'a> {
    /// The values, longest first.
    values: Vec<Cow<'a, [u8]>>,
    /// Whether a secret starts with a byte. The index is the byte in lower case.
    first: [bool; 256],
    /// The number of byte comparisons left.
    work: Cell<usize>,
    /// The fields in which the configuration finds credentials.
    fields: CredentialFields,
}

impl<'a> Secrets<'a> {
    /// The secrets in the variables of an inspection. `fields`: the fields in which the configuration finds credentials.
    pub fn of(inspection: &'a Inspection, fields: &CredentialFields) -> Self {
        let named = |variable, is_secret: fn(&[u8]) -> bool| {
            let entries = inspection.entries(variable);
            entries.filter(move |(name, _)| is_secret(name)).map(|(_, value)| value)
        };
        let headers = inspection
            .entries(Variable::RequestHeaders)
            .chain(inspection.entries(Variable::ResponseHeaders))
            .filter(|(name, _)| fields.is_secret(name));
        let values = named(Variable::ArgsGet, is_secret_name)
            .chain(named(Variable::ArgsPost, is_secret_name))
            .chain(named(Variable::RequestCookies, |_| true))
            .chain(headers.flat_map(|(_, value)| with_credentials(value)));
        let matched = inspection.matches().iter().flat_map(|found| &found.values);
        let others = matched.map(|it| &*it.value).chain(
            [Variable::RequestHeaders, Variable::ArgsGet, Variable::ArgsPost]
                .into_iter()
                .flat_map(|variable| inspection.entries(variable))
                .map(|(_, value)| value),
        );
        let mut left = SEARCHED_BYTES_MAX;
        let searched = others.take_while(|value| {
            left = left.saturating_sub(value.len() + 1);
            left > 0
        });
        let inner = searched.flat_map(|value| within::secrets_in(value, fields));
        Self::from_texts(values.map(Cow::Borrowed).chain(inner), fields)
    }

    /// The secrets among these values: those that are long enough to be searched for. `fields`: as in [`Self::of`].
    pub fn from_values(values: impl Iterator<Item = &'a [u8]>, fields: &CredentialFields) -> Self {
        Self::from_texts(values.map(Cow::Borrowed), fields)
    }

    fn from_texts(values: impl Iterator<Item = Cow<'a, [u8]>>, fields: &CredentialFields) -> Self {
        let mut values: Vec<Cow<'a, [u8]>> =
            values.filter(|value| value.len() >= SECRET_BYTES_MIN).collect();
        values.sort_unstable_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
        values.dedup();
        let mut first = [false; 256];
        for value in &values {
            first[usize::from(value[0].to_ascii_lowercase())] = true;
        }
        Self { values, first, work: Cell::new(WORK_BYTES_MAX), fields: fields.clone() }
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

    /// A text of the request without its secrets, and without those within it.
    pub fn shown_text<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        match self.within(text) {
            Some(masked) => Cow::Owned(self.without(&masked).into_owned()),
            None => self.without(text),
        }
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
    pub fn shown<'t>(&self, data: &'t [u8], values: &'t [MatchedValue]) -> MaskedMatch<'t> {
        let told: Vec<Option<Cow<'_, [u8]>>> =
            values.iter().map(|it| self.masked(&it.variable, &it.value)).collect();
        let is_named = |it: &MatchedValue| matches!(variable(&it.variable), Cow::Owned(_));
        let has_secret = told.iter().any(Option::is_some)
            || values.iter().any(is_named)
            || self.names_secret(data);
        let shown = values.iter().zip(told).map(|(it, masked)| match masked {
            Some(masked) => Cow::Owned(self.without(&masked).into_owned()),
            None if has_secret && is_derived(&it.variable) => Cow::Borrowed(MASK),
            None => self.without(&it.value),
        });
        let values = shown.collect();
        let data = match has_secret && !data.is_empty() {
            true => Cow::Borrowed(MASK),
            false => self.shown_text(data),
        };
        MaskedMatch { data, values }
    }
}

impl Secrets<'_> {
    /// Whether a field's value is a secret.
    pub fn is_field(&self, name: &[u8]) -> bool {
        self.fields.is_secret(name)
    }

    /// A text in which the secrets within it are masked; `None`: there are none.
    fn within(&self, text: &[u8]) -> Option<Vec<u8>> {
        within::masked(text, &self.fields, Kind::Text)
    }

    /// The masked form of a value that is secret or contains a secret; `None`: no masking is necessary.
    fn masked(&self, variable: &[u8], value: &[u8]) -> Option<Cow<'static, [u8]>> {
        if variable.starts_with(b"&") {
            return None;
        }
        if variable.split(|byte| *byte == b':').next()?.ends_with(b"_NAMES") {
            return is_document(value).then_some(Cow::Borrowed(MASK));
        }
        // In JSON, XML and bodies that cannot be parsed, a name can be anywhere.
        let is_body = variable == b"REQUEST_BODY" && mentions_secret(value);
        if is_body || is_secret_variable(variable, &self.fields) {
            return Some(Cow::Borrowed(MASK));
        }
        self.within(value).map(Cow::Owned)
    }

    /// Whether a text contains the name of a secret variable: `found within ARGS:password: x`.
    fn names_secret(&self, text: &[u8]) -> bool {
        let words = text.split(|byte| matches!(byte, b' ' | b'"' | b'\''));
        words.map(without_punctuation).any(|word| is_secret_variable(word, &self.fields))
    }

    /// The detail of a check's finding, with masked secrets. Examples of places: `parameter id`, `cookie a`, `header Host`,
    /// `query`.
    pub fn of_finding(&self, place: &str, detail: &[u8]) -> Vec<u8> {
        let (kind, name) = place.split_once(' ').unwrap_or((place, ""));
        let is_secret = match kind {
            "cookie" => true,
            "header" => self.fields.is_secret(name.as_bytes()),
            "parameter" => is_secret_name(name.as_bytes()),
            _ => false,
        };
        if is_secret {
            return MASK.to_vec();
        }
        let mut shown = Vec::with_capacity(detail.len());
        let kind = match kind {
            "query" => (b'&', Kind::Text),
            "path" => (b'/', Kind::Path),
            _ => return self.shown_text(detail).into_owned(),
        };
        put_segments(&mut shown, detail, kind, &self.fields);
        self.without(&shown).into_owned()
    }
}

/// A field's value, and the credentials after the scheme: `abc` in `Bearer abc`.
pub fn with_credentials(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let behind = value.iter().position(|byte| *byte == b' ').map(|at| &value[at + 1..]);
    std::iter::once(value).chain(behind)
}

/// Whether a parameter name is a document that contains a secret, such as JSON sent as a form.
fn is_document(name: &[u8]) -> bool {
    const MARKS: &[u8] = b"\"'<>{}\r\n";
    (name.iter().any(|byte| MARKS.contains(byte)) && mentions_secret(name))
        || within::masked(name, &CredentialFields::default(), Kind::Text).is_some()
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

/// A word without the colons and commas at its end.
fn without_punctuation(word: &[u8]) -> &[u8] {
    let last = word.iter().rposition(|byte| !matches!(byte, b':' | b','));
    &word[..last.map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests;
