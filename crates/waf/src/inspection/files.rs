//! The contents of uploaded files, as far as rules inspect them.
//!
//! A file is judged by its bytes, and by what its name and type claim. JSON, and text and XML without a file name that a
//! person gave, are values like those of fields: frameworks bind them to parameters. Documents that browsers run (HTML,
//! SVG, XML) are inspected whole. In images and other media, only the places are inspected where code may begin: servers run
//! such files if they can be made to include them. Other files are not inspected: texts and archives of programs are usual
//! uploads.

mod code;
mod media;
mod names;
mod program;

use crate::body::{encoding_of, is_control, readings, significant};
use media::MediaScan;
use names::{DOCUMENTS, MEDIA, MEDIA_TYPES, extension};
pub(super) use names::{Upload, upload_of};

/// Number of bytes that show what a file is, behind blanks and a byte order mark.
const START_BYTES_MAX: usize = 64;
/// Number of bytes of media that are looked at together, so that small pieces are not moved often.
const LOOK_BYTES_MIN: usize = 2 * code::WINDOW_BYTES;

/// What of a file is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Not known before its first bytes.
    #[default]
    Unknown,
    /// The values in it.
    Json,
    Xml,
    Text,
    /// The whole content.
    Document,
    /// The places where code may begin.
    Media,
    Nothing,
}

/// A file that is arriving, and what was found in the files before.
#[derive(Debug, Default)]
pub(super) struct FileScan {
    media_type: Vec<u8>,
    field: Vec<u8>,
    file_name: Vec<u8>,
    kind: Kind,
    /// The content of a document, or the end of other content.
    content: Vec<u8>,
    media: MediaScan,
    /// The found contents: the kind, the field, and the bytes.
    pub(super) found: Vec<(Kind, Vec<u8>, Vec<u8>)>,
    /// The number of bytes of all files that were not kept.
    pub(super) passed_bytes: u64,
}

impl FileScan {
    /// Takes a header line of a part. The type of a part is the last one before its content.
    pub fn header(&mut self, line: &[u8]) {
        const NAME: &[u8] = b"content-type:";
        if let Some((name, value)) = line.split_at_checked(NAME.len())
            && name.eq_ignore_ascii_case(NAME)
        {
            self.media_type = value.trim_ascii().to_ascii_lowercase();
        }
    }

    /// A part that is no file has ended.
    pub fn field(&mut self) {
        self.media_type.clear();
    }

    pub fn start(&mut self, field: &[u8], file_name: &[u8]) {
        self.field = field.to_vec();
        self.file_name = file_name.to_ascii_lowercase();
        self.kind = Kind::Unknown;
        self.content.clear();
        self.media = MediaScan::default();
    }

    /// Starts a body that is a file in media. Its content is in a field of this name.
    pub fn start_media(&mut self, field: &[u8]) {
        self.start(field, b"");
        self.kind = Kind::Media;
    }

    pub fn content(&mut self, bytes: &[u8]) {
        self.content.extend_from_slice(bytes);
        if self.kind == Kind::Unknown {
            self.drop_blanks();
            let Some(kind) = self.kind_of(false) else { return };
            self.kind = kind;
        }
        self.look(false);
    }

    pub fn end(&mut self) {
        if self.kind == Kind::Unknown {
            self.kind = self.kind_of(true).unwrap_or(Kind::Nothing);
        }
        self.look(true);
        if !matches!(self.kind, Kind::Media | Kind::Nothing) && !self.content.is_empty() {
            let content = std::mem::take(&mut self.content);
            self.found.push((self.kind, std::mem::take(&mut self.field), content));
        }
        self.field();
    }

    /// Drops the blanks and the byte order mark in front: they say nothing, and kept they would be read again with each
    /// piece that arrives. Control characters are parts of binary formats, and of texts in UTF-16.
    fn drop_blanks(&mut self) {
        let dropped = self.content.len() - significant(&self.content).len();
        let controls = self.content[..dropped].iter().position(|byte| is_control(*byte));
        let dropped = controls.unwrap_or(dropped);
        self.passed_bytes += dropped as u64;
        self.content.drain(..dropped);
    }

    /// The kind of a file by its beginning; `None`: more bytes are needed.
    fn kind_of(&self, is_whole: bool) -> Option<Kind> {
        let start = self.content.as_slice();
        if start.len() < START_BYTES_MAX && !is_whole {
            return None;
        }
        let look = start.get(..START_BYTES_MAX).unwrap_or(start);
        match encoding_of(look) {
            // In another encoding, only documents matter.
            Some(encoding) => {
                let readings = readings(encoding, look);
                let kinds = readings.iter().map(|it| self.kind_of_text(significant(it)));
                let is_document = |kind: &Kind| !matches!(kind, Kind::Media | Kind::Nothing);
                let kind = kinds.into_iter().find(is_document);
                Some(kind.unwrap_or_else(|| self.kind_of_text(start)))
            }
            None => Some(self.kind_of_text(start)),
        }
    }

    fn kind_of_text(&self, start: &[u8]) -> Kind {
        let is_type = |words: &[&str]| {
            words
                .iter()
                .any(|word| memchr::memmem::find(&self.media_type, word.as_bytes()).is_some())
        };
        let extension = extension(&self.file_name);
        // Programs name parts without a file of their own so.
        let is_unnamed = extension.is_empty();
        let is_one_of = |list: &[&str]| list.iter().any(|it| it.as_bytes() == extension);
        let is_xml = |is_unnamed: bool| {
            let is_page = is_type(&["svg", "html", "xsl"]);
            (is_type(&["xml"]) && is_unnamed && !is_page) || (extension == b"xml" && !is_page)
        };
        let is_json = matches!(start.first(), Some(b'{' | b'['));
        match start.first() {
            _ if is_type(&["json"]) || (is_json && (is_unnamed || extension == b"json")) => {
                Kind::Json
            }
            Some(b'<') if is_xml(is_unnamed) => Kind::Xml,
            Some(b'<') if !code::begins_file(start) || is_one_of(&DOCUMENTS) => Kind::Document,
            _ if is_type(&["html", "svg", "xml"]) || is_one_of(&DOCUMENTS) => Kind::Document,
            _ if is_unnamed && self.media_type.starts_with(b"text/") => Kind::Text,
            _ if is_unnamed || is_one_of(&MEDIA) || is_type(&MEDIA_TYPES) => Kind::Media,
            _ => Kind::Nothing,
        }
    }

    /// Looks at media, and drops what is not needed any more.
    fn look(&mut self, is_end: bool) {
        match self.kind {
            Kind::Media => self.look_at_media(is_end),
            Kind::Nothing => {
                self.passed_bytes += self.content.len() as u64;
                self.content.clear();
            }
            _ => {}
        }
    }

    fn look_at_media(&mut self, is_end: bool) {
        let content = std::mem::take(&mut self.content);
        let (found, kept) = match content.len() < LOOK_BYTES_MIN && !is_end {
            true => (Vec::new(), 0),
            false => self.media.look(&content, is_end),
        };
        self.found.extend(found.into_iter().map(|it| (Kind::Media, self.field.clone(), it)));
        self.passed_bytes += kept as u64;
        self.content = content;
        self.content.drain(..kept);
    }
}

#[cfg(test)]
mod tests;
