//! The content of a part: a field, a file, or both.

use std::borrow::Cow;

use super::super::charset::Charset;
use super::super::limits::{self, Limits};
use super::super::sink::Sink;
use super::disposition::Disposition;

/// The current part.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    name: Vec<u8>,
    file_name: Option<Vec<u8>>,
    /// `filename*`, beside `filename`: some servers prefer it.
    other_file_name: Option<Vec<u8>>,
    kind: Kind,
    value: Vec<u8>,
    size_bytes: u64,
    has_data: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Field,
    File,
    /// `filename*` without `filename`: some servers treat the part as a file.
    Both,
}

impl Part {
    /// A part with this Content-Disposition; `None`: it has no name.
    pub(super) fn new(disposition: &mut Disposition) -> Option<Self> {
        let name = disposition.name.take().filter(|name| !name.is_empty())?;
        let disposition = std::mem::take(disposition);
        let kind = match (&disposition.file_name, &disposition.file_name_extended) {
            (Some(file_name), _) if !file_name.is_empty() => Kind::File,
            (None, Some(_)) => Kind::Both,
            _ => Kind::Field,
        };
        let (file_name, other_file_name) = names_of(disposition);
        Some(Self { name, file_name, other_file_name, kind, ..Self::default() })
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn has_file(&self) -> bool {
        self.kind != Kind::Field
    }

    /// Whether the part has content. An empty line counts as content.
    pub(super) fn has_data(&self) -> bool {
        self.has_data
    }

    pub(super) fn begin_data(&mut self) {
        self.has_data = true;
    }

    /// Whether servers disagree whether the part is a file or a field.
    pub(super) fn is_unclear(&self) -> bool {
        self.kind == Kind::Field && self.file_name.is_some() && self.size_bytes > 0
    }

    fn file_name(&self) -> &[u8] {
        self.file_name.as_deref().unwrap_or_default()
    }

    pub(super) fn start(&self, to: &mut impl Sink) {
        if self.kind == Kind::File {
            to.file_start(&self.name, self.file_name());
        }
    }

    /// Adds content. Returns the number of bytes added.
    pub(super) fn push(&mut self, bytes: &[u8], limits: &Limits, to: &mut impl Sink) -> usize {
        self.has_data = true;
        let taken = match self.kind {
            Kind::File => {
                to.file_content(bytes);
                bytes.len()
            }
            Kind::Field | Kind::Both => {
                limits::append(&mut self.value, bytes, limits.value_bytes_max)
            }
        };
        self.size_bytes += taken as u64;
        taken
    }

    /// A part of a body that is not a form, where parts need no name.
    pub(super) fn without_name(disposition: Disposition, is_of_file: bool) -> Self {
        let (file_name, other_file_name) = names_of(disposition);
        let is_file = is_of_file || file_name.as_ref().is_some_and(|it| !it.is_empty());
        let kind = if is_file { Kind::File } else { Kind::Field };
        Self { file_name, other_file_name, kind, ..Self::default() }
    }

    /// Delivers the file after its content, if the part is a file.
    pub(super) fn deliver_file(&self, to: &mut impl Sink) {
        if self.kind == Kind::Both {
            to.file_start(&self.name, self.file_name());
        }
        if self.kind == Kind::Both {
            to.file_content(&self.value);
        }
        if self.has_file() {
            to.file(&self.name, self.file_name(), self.size_bytes);
        }
        if let Some(other) = &self.other_file_name {
            to.other_file_name(&self.name, other);
        }
    }

    /// The value after its content, if the part is a value. Of a binary file that only some servers take for a field, it is
    /// the legible text.
    pub(super) fn value(&self) -> Option<Cow<'_, [u8]>> {
        let is_binary = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
        match self.kind {
            Kind::File => None,
            Kind::Both if self.value.iter().any(is_binary) => Some(legible(&self.value).into()),
            Kind::Field | Kind::Both => Some(Cow::Borrowed(&self.value)),
        }
    }

    /// Whether at least some servers treat the content as a value.
    pub(super) fn is_value(&self) -> bool {
        self.kind != Kind::File
    }

    /// Whether the part is the field `_charset_` with a charset that rules cannot read (HTML, form submission).
    pub(super) fn is_unreadable_charset(&self) -> bool {
        self.name.eq_ignore_ascii_case(b"_charset_")
            && self.is_value()
            && !Charset::named(&self.value).is_readable()
    }
}

/// The file name, and another one if there are two.
fn names_of(disposition: Disposition) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    match (disposition.file_name, disposition.file_name_extended) {
        (None, extended) => (extended, None),
        (name, extended) => (name, extended),
    }
}

/// Minimum length of a text in binary data that is unlikely to be random.
const LEGIBLE_BYTES_MIN: usize = 6;

/// The texts in binary data, one a line.
fn legible(bytes: &[u8]) -> Vec<u8> {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    let texts = bytes.split(|byte| !is_text(byte)).filter(|text| text.len() >= LEGIBLE_BYTES_MIN);
    texts.collect::<Vec<_>>().join(&b'\n')
}
