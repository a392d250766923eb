//! The texts of a configuration's files, and the trees parsed from them.

use std::path::{Path, PathBuf};

use crate::diagnostic::Severity;
use crate::file::{self, Accepted, READ_TIME_MAX, ReadError};
use crate::places::PlaceNames;
use crate::tree::{self, Finding, Lines, Node, Source, Span};
use crate::without_number;

/// Maximum size of a configuration file.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// The texts of files as they were read.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    /// The directory for relative paths.
    pub directory: PathBuf,
    /// The files, the main file first.
    pub files: Vec<FileText>,
    /// Findings of reading and parsing.
    pub findings: Vec<(Severity, Finding)>,
    /// Whether a file could not be read, so its names are unknown.
    pub is_incomplete: bool,
    /// The number of values in all files.
    nodes: usize,
}

/// The text of one file.
#[derive(Debug, Clone)]
pub(crate) struct FileText {
    pub name: String,
    pub text: String,
}

/// The text; or its readable part and the finding about its encoding.
pub(crate) type Read = Result<String, (String, Finding)>;

impl Texts {
    /// Creates an empty collection for a main file of this name.
    pub fn beside(name: &str) -> Self {
        let directory = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
        Self { directory, files: Vec::new(), findings: Vec::new(), is_incomplete: false, nodes: 0 }
    }

    /// Adds a file and returns its tree.
    pub fn add(&mut self, name: String, read: Read) -> Option<Node> {
        let source = Source::file(self.files.len());
        let (text, root, findings) = match read {
            Ok(text) => {
                // A byte order mark is common in files from Windows editors, and has no meaning in UTF-8.
                let text = match text.strip_prefix('\u{feff}') {
                    Some(text) => text.to_owned(),
                    None => text,
                };
                let lines = Lines::new(&text);
                let (root, findings) = tree::parse_file(&lines, source, &mut self.nodes);
                (text, root, findings)
            }
            Err((shown, finding)) => {
                let finding = Finding { span: finding.span.of(source), ..finding };
                (shown, None, vec![finding])
            }
        };
        self.is_incomplete |= root.is_none() && !findings.is_empty();
        self.files.push(FileText { name, text });
        self.findings.extend(findings.into_iter().map(|finding| (Severity::Error, finding)));
        root
    }

    /// The names of the files, without pointers.
    pub fn names(&self) -> PlaceNames {
        let files = self.files.iter().map(|file| file.name.clone()).collect();
        PlaceNames { files, ..PlaceNames::default() }
    }
}

/// Reads the main file.
pub(crate) fn read(path: &Path) -> Read {
    let read = file::read_within(path, FILE_BYTES_MAX, Accepted::RegularOrPipe, READ_TIME_MAX);
    read.map_err(|error| whole(in_words(&error))).and_then(decoded)
}

/// Uses a text as the main file.
pub(crate) fn given(text: &str) -> Read {
    let is_large = u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX;
    if is_large { Err(whole(too_large())) } else { Ok(text.to_owned()) }
}

/// Uses bytes as the main file.
pub(crate) fn bytes(bytes: Vec<u8>) -> Read {
    let is_large = u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX;
    if is_large { Err(whole(too_large())) } else { decoded(bytes) }
}

/// An error about a whole file.
fn whole(message: String) -> (String, Finding) {
    (String::new(), Finding::new(Span::whole(Source::MAIN), message))
}

/// Decodes bytes as text.
pub(crate) fn decoded(bytes: Vec<u8>) -> Read {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let (valid_bytes, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(whole("the file is UTF-16; it must be UTF-8".to_owned()));
    }
    let before = String::from_utf8_lossy(&bytes[..valid_bytes]);
    let (index, last) = Lines::new(&before).iter().enumerate().last().unwrap_or((0, ""));
    let span = Span::at(index + 1, last.chars().count() + 1);
    let message = format!("the byte 0x{:02X} is not UTF-8", bytes[valid_bytes]);
    Err((String::from_utf8_lossy(bytes).into_owned(), Finding::new(span, message)))
}

fn in_words(error: &ReadError) -> String {
    match error {
        ReadError::Open(error) => format!("cannot open the file: {}", without_number(error)),
        ReadError::Read(error) => format!("cannot read the file: {}", without_number(error)),
        ReadError::NotAFile(what) => format!("this is {what}; name a file"),
        ReadError::TooLarge => too_large(),
        ReadError::Endless => "this has no end, reading it waits for more; name a file".into(),
        ReadError::Late => format!("the file was not read within {READ_TIME_MAX:?}"),
    }
}

fn too_large() -> String {
    format!("the file is larger than {} MiB", FILE_BYTES_MAX >> 20)
}
