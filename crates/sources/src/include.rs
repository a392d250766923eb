//! `include`: reads further files of a configuration.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use weir_config::Severity;
use weir_config::document::{self, DOCUMENT_BYTES_MAX, Finding, Node, NodeValue, Span};
use weir_config::file::{self, AcceptedFiles, READ_TIME_MAX, ReadError, without_number};
use weir_config::source_keys::{INCLUDE, included};

use crate::documents::Documents;
use crate::join::Joiner;
use crate::text::decoded;

/// Maximum number of files of a configuration.
pub const FILES_MAX: usize = 1_000;

/// Maximum total size of a configuration's files.
pub const FILES_BYTES_MAX: u64 = 64 << 20;

const RELATIVE_PATHS: &str = "a relative path starts at the directory of the file that was given";

/// Reads the files that a main file includes, and joins their sections with its own.
pub(crate) fn include(root: Node, documents: &mut Documents) -> Node {
    let Some(included) = included(&root) else { return root };
    let mut reader = Reader::new(documents);
    for (path, span) in &included.paths {
        reader.path(path, *span);
    }
    let trees = reader.trees;
    let places = documents.places();
    let mut joiner = Joiner::new(&places);
    joiner.main(root);
    for tree in trees {
        joiner.tree(tree);
    }
    let (mut root, findings) = joiner.end();
    documents.findings.extend(findings);
    // Mistakes in its form are reported with all others, when the whole tree is decoded.
    if let NodeValue::Map(entries) = &mut root.value
        && included.is_sound
    {
        Arc::make_mut(entries).retain(|entry| entry.key != INCLUDE);
    }
    root
}

/// Reads files within the limits of a configuration.
struct Reader<'a> {
    documents: &'a mut Documents,
    trees: Vec<Node>,
    /// Files by their real paths.
    known: HashMap<PathBuf, usize>,
    bytes_left: u64,
    deadline: Instant,
    is_over: bool,
}

impl<'a> Reader<'a> {
    fn new(documents: &'a mut Documents) -> Self {
        let main = documents.all.first();
        let own = main.map_or(0, |main| u64::try_from(main.text.len()).unwrap_or(u64::MAX));
        let path = main.and_then(|main| fs::canonicalize(&main.name).ok());
        Self {
            documents,
            trees: Vec::new(),
            known: path.map(|path| (path, 0)).into_iter().collect(),
            bytes_left: FILES_BYTES_MAX.saturating_sub(own),
            deadline: Instant::now() + READ_TIME_MAX,
            is_over: false,
        }
    }

    fn report(&mut self, severity: Severity, span: Span, message: String, help: &str) {
        self.documents.is_incomplete |= severity == Severity::Error;
        let finding = Finding::new(span, message).help(help);
        self.documents.findings.push((severity, finding));
    }

    /// Reads a file, or all files of a directory.
    fn path(&mut self, path: &Path, span: Span) {
        let full = self.documents.directory.join(path);
        match fs::metadata(&full) {
            Ok(metadata) if metadata.is_dir() => self.folder(&full, span),
            // The attempt to read it reports the reason.
            _ => self.file(&full, span),
        }
    }

    fn folder(&mut self, path: &Path, span: Span) {
        let shown = path.display();
        let found = match list(path) {
            Ok(found) => found,
            Err(error) => {
                let message = format!("cannot read {shown}: {}", without_number(&error));
                self.report(Severity::Error, span, message, RELATIVE_PATHS);
                return;
            }
        };
        for other in &found.others {
            let message = format!("{} is not read", other.display());
            let endings = document::FORMATS.iter().map(|format| format!("`.{}`", format.ending));
            let endings = endings.collect::<Vec<_>>().join(" or ");
            let help = format!("of a directory, files are read whose names end in {endings}");
            self.report(Severity::Warning, span, message, &help);
        }
        if found.files.is_empty() {
            let endings = document::FORMATS.iter().map(|format| format!("*.{}", format.ending));
            let message =
                format!("{shown} has no file {}", endings.collect::<Vec<_>>().join(" or "));
            self.report(Severity::Warning, span, message, "remove it here, or add files");
        }
        for file in &found.files {
            self.file(file, span);
        }
    }

    fn file(&mut self, path: &Path, span: Span) {
        if self.is_over {
            return;
        }
        let shown = path.display().to_string();
        if self.documents.all.len() >= FILES_MAX {
            self.is_over = true;
            let message = format!("the configuration has more than {FILES_MAX} files");
            return self.report(Severity::Error, span, message, "put several into one");
        }
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match self.known.insert(real, self.documents.all.len()) {
            Some(0) => {
                let message = format!("{shown} includes itself");
                let help = "put the other files into a directory of their own";
                return self.report(Severity::Error, span, message, help);
            }
            Some(_) => {
                let message = format!("{shown} is included twice");
                return self.report(Severity::Error, span, message, "name it once");
            }
            None => {}
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let bytes_max = DOCUMENT_BYTES_MAX.min(self.bytes_left);
        match file::read_within(path, bytes_max, AcceptedFiles::Regular, left) {
            Ok(bytes) => self.take(shown, bytes),
            Err(error) => self.refuse(&shown, &error, span),
        }
    }

    fn take(&mut self, name: String, bytes: Vec<u8>) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes_left = self.bytes_left.saturating_sub(count);
        let document = self.documents.add(name, decoded(bytes));
        match &document.root {
            Some(tree) => self.trees.push(tree.clone()),
            None if document.findings.is_empty() => {
                let span = Span::at(1, 1).of(document.source);
                let message = "the file is empty".to_owned();
                self.report(Severity::Warning, span, message, "remove it, or include others");
            }
            None => {}
        }
    }

    fn refuse(&mut self, shown: &str, error: &ReadError, span: Span) {
        let (message, help) = match error {
            ReadError::Open(error) => {
                (format!("cannot open {shown}: {}", without_number(error)), RELATIVE_PATHS)
            }
            ReadError::TooLarge if self.bytes_left < DOCUMENT_BYTES_MAX => {
                self.is_over = true;
                let most = FILES_BYTES_MAX >> 20;
                let message = format!("the files of the configuration have more than {most} MiB");
                (message, "put long lists into files of `data_sets`")
            }
            ReadError::TooLarge => {
                let message = format!("{shown} is larger than {} MiB", DOCUMENT_BYTES_MAX >> 20);
                (message, "put long lists into files of `data_sets`")
            }
            ReadError::Late => {
                self.is_over = true;
                let message = format!("{shown}: files were not read within {READ_TIME_MAX:?}");
                (message, "put them on a faster disk")
            }
            other => (format!("cannot include {shown}: {other}"), "name a regular file"),
        };
        self.report(Severity::Error, span, message, help);
    }
}

/// The files of a directory, by kind, sorted by name.
#[derive(Default)]
struct DirectoryFiles {
    files: Vec<PathBuf>,
    /// Files that are probably meant, but are not read.
    others: Vec<PathBuf>,
}

fn list(folder: &Path) -> io::Result<DirectoryFiles> {
    let mut found = DirectoryFiles::default();
    // An empty path is the folder of this process.
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for entry in fs::read_dir(here)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let path = folder.join(&name);
        if text.starts_with('.') || path.is_dir() {
            continue;
        }
        let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
        if document::FORMATS.iter().any(|format| format.ending == ending) {
            found.files.push(path);
        } else if document::FORMATS.iter().any(|format| format.mistaken.contains(&ending)) {
            found.others.push(path);
        }
        // One file more than the maximum is an error.
        if found.files.len().max(found.others.len()) > FILES_MAX {
            break;
        }
    }
    found.files.sort();
    found.others.sort();
    Ok(found)
}
