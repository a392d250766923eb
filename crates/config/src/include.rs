//! `include`: further files of a configuration, and the merging of their sections.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::decode::{Context, Decode as _, OneOrMany, Spanned};
use crate::diagnostic::Severity;
use crate::file::{self, Accepted, READ_TIME_MAX, ReadError};
use crate::parts::{NAMED, PROFILES};
use crate::places::PlaceNames;
use crate::quote::clip;
use crate::shapes::FilePath;
use crate::texts::{FILE_BYTES_MAX, Texts, decoded};
use crate::tree::{Entry, Finding, Node, NodeValue, Source, Span};
use crate::without_number;

/// The key.
const KEY: &str = "include";

/// Maximum number of files of a configuration.
pub const FILES_MAX: usize = 1_000;

/// Maximum total size of a configuration's files.
pub const FILES_BYTES_MAX: u64 = 64 << 20;

/// The ending of files that are read from a directory.
const ENDING: &str = ".yaml";

/// Files of a directory with this ending are probably meant to be read.
const OTHER_ENDING: &str = ".yml";

const RELATIVE_PATHS: &str = "a relative path starts at the directory of the file that was given";

/// Reads the included files, and merges their sections into those of the main file.
pub(crate) fn include(root: Node, texts: &mut Texts) -> Node {
    let Some(node) = root.get(KEY) else { return root };
    let mut context = Context::default();
    let paths = OneOrMany::<Spanned<FilePath>>::decode(node, &mut context);
    let is_sound = !context.has_errors();
    let mut reader = Reader::new(texts);
    for path in paths.map_or_else(Vec::new, |paths| paths.0) {
        reader.path(&path);
    }
    let trees = reader.trees;
    let names = texts.names();
    let mut joiner = Joiner::new(&names);
    joiner.main(root);
    for tree in trees {
        joiner.tree(tree);
    }
    texts.findings.extend(joiner.findings);
    let mut root = joiner.root;
    // Mistakes in its form are reported with all others, when the whole tree is decoded.
    if let NodeValue::Map(entries) = &mut root.value
        && is_sound
    {
        entries.retain(|entry| entry.key != KEY);
    }
    root
}

/// Reads files within the limits of a configuration.
struct Reader<'a> {
    texts: &'a mut Texts,
    trees: Vec<Node>,
    /// Files by their real paths.
    known: HashMap<PathBuf, usize>,
    bytes_left: u64,
    deadline: Instant,
    is_over: bool,
}

impl<'a> Reader<'a> {
    fn new(texts: &'a mut Texts) -> Self {
        let main = texts.files.first();
        let own = main.map_or(0, |main| u64::try_from(main.text.len()).unwrap_or(u64::MAX));
        let path = main.and_then(|main| fs::canonicalize(&main.name).ok());
        Self {
            texts,
            trees: Vec::new(),
            known: path.map(|path| (path, 0)).into_iter().collect(),
            bytes_left: FILES_BYTES_MAX.saturating_sub(own),
            deadline: Instant::now() + READ_TIME_MAX,
            is_over: false,
        }
    }

    fn report(&mut self, severity: Severity, span: Span, message: String, help: &str) {
        self.texts.is_incomplete |= severity == Severity::Error;
        let finding = Finding::new(span, message).help(help);
        self.texts.findings.push((severity, finding));
    }

    /// Reads a file, or all files of a directory.
    fn path(&mut self, path: &Spanned<FilePath>) {
        let full = self.texts.directory.join(&path.value.0);
        match fs::metadata(&full) {
            Ok(metadata) if metadata.is_dir() => self.folder(&full, path.span),
            // The attempt to read it reports the reason.
            _ => self.file(&full, path.span),
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
            let help = "of a directory, files are read whose names end in `.yaml`";
            self.report(Severity::Warning, span, message, help);
        }
        if found.files.is_empty() {
            let message = format!("{shown} has no file *{ENDING}");
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
        if self.texts.files.len() >= FILES_MAX {
            self.is_over = true;
            let message = format!("the configuration has more than {FILES_MAX} files");
            return self.report(Severity::Error, span, message, "put several into one");
        }
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match self.known.insert(real, self.texts.files.len()) {
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
        let bytes_max = FILE_BYTES_MAX.min(self.bytes_left);
        match file::read_within(path, bytes_max, Accepted::Regular, left) {
            Ok(bytes) => self.take(shown, bytes),
            Err(error) => self.refuse(&shown, &error, span),
        }
    }

    fn take(&mut self, name: String, bytes: Vec<u8>) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes_left = self.bytes_left.saturating_sub(count);
        let (source, before) = (Source::file(self.texts.files.len()), self.texts.findings.len());
        match self.texts.add(name, decoded(bytes)) {
            Some(tree) => self.trees.push(tree),
            None if self.texts.findings.len() == before => {
                let (span, message) = (Span::at(1, 1).of(source), "the file is empty".to_owned());
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
            ReadError::TooLarge if self.bytes_left < FILE_BYTES_MAX => {
                self.is_over = true;
                let most = FILES_BYTES_MAX >> 20;
                let message = format!("the files of the configuration have more than {most} MiB");
                (message, "put long lists into files of `data_sets`")
            }
            ReadError::TooLarge => {
                let message = format!("{shown} is larger than {} MiB", FILE_BYTES_MAX >> 20);
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
struct Found {
    files: Vec<PathBuf>,
    /// Files that are probably meant, but are not read.
    others: Vec<PathBuf>,
}

fn list(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    // An empty path is the folder of this process.
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for entry in fs::read_dir(here)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let path = folder.join(&name);
        if text.starts_with('.') || path.is_dir() {
            continue;
        }
        if text.ends_with(ENDING) {
            found.files.push(path);
        } else if text.ends_with(OTHER_ENDING) {
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

/// Merges the sections of files. Sections with named entries are merged by name; any other section is in one file only.
struct Joiner<'a> {
    names: &'a PlaceNames,
    root: Node,
    /// Entries of sections by section and name.
    known: HashMap<(String, String), Span>,
    /// Places of sections in the root.
    places: HashMap<String, usize>,
    findings: Vec<(Severity, Finding)>,
}

impl<'a> Joiner<'a> {
    fn new(names: &'a PlaceNames) -> Self {
        let root = Node { span: Span::at(1, 1), value: NodeValue::Map(Vec::new()) };
        let (known, places) = (HashMap::new(), HashMap::new());
        Self { names, root, known, places, findings: Vec::new() }
    }

    fn error(&mut self, span: Span, message: String, help: String) {
        self.findings.push((Severity::Error, Finding::new(span, message).help(help)));
    }

    /// Adds the main file.
    fn main(&mut self, root: Node) {
        self.root.span = root.span;
        if let NodeValue::Map(entries) = root.value {
            for entry in entries {
                self.section(entry);
            }
        }
    }

    /// Adds an included file.
    fn tree(&mut self, tree: Node) {
        let NodeValue::Map(entries) = tree.value else {
            let message = "an included file must be a map of sections".to_owned();
            let help = "write sections as in the file that includes it: `pools:`, …".to_owned();
            return self.error(tree.span, message, help);
        };
        for entry in entries {
            if entry.key == KEY {
                let main = self.names.file(Source::MAIN);
                let message = "an included file cannot include others".to_owned();
                let help = format!("move it to `{KEY}` of {main}");
                self.error(entry.key_span, message, help);
            } else {
                self.section(entry);
            }
        }
    }

    fn section(&mut self, entry: Entry) {
        let depth = match &*entry.key {
            PROFILES => 2,
            key => usize::from(NAMED.contains(&key)),
        };
        let NodeValue::Map(all) = &mut self.root.value else { return };
        let Some(&at) = self.places.get(&entry.key) else {
            self.places.insert(entry.key.clone(), all.len());
            let key = entry.key.clone();
            note(&mut self.known, &key, &entry.value, depth);
            all.push(entry);
            return;
        };
        // The section is put back afterwards; meanwhile both can be borrowed.
        let empty = Node { span: all[at].value.span, value: NodeValue::Null };
        let mut first = std::mem::replace(&mut all[at].value, empty);
        let (name, first_span) = (entry.key.clone(), all[at].key_span);
        self.join(&name, (&mut first, first_span), entry, depth);
        let NodeValue::Map(all) = &mut self.root.value else { return };
        all[at].value = first;
    }

    /// Merges a section, or one kind of profiles, into the one with the same name.
    fn join(&mut self, path: &str, (first, place): (&mut Node, Span), entry: Entry, depth: usize) {
        if depth == 0 {
            return self.twice(path, place, entry.key_span);
        }
        let NodeValue::Map(others) = entry.value.value else {
            let message = format!("`{path}` must be a map from names to their settings");
            let help = "give it entries, or remove the key".to_owned();
            return self.error(entry.value.span, message, help);
        };
        // A value that is not a map is reported by the decoder.
        let NodeValue::Map(entries) = &mut first.value else { return };
        for other in others {
            let key = (path.to_owned(), other.key.clone());
            let below = format!("{path}.{}", other.key);
            match self.known.get(&key).copied() {
                None => {
                    self.known.insert(key, other.key_span);
                    note(&mut self.known, &below, &other.value, depth - 1);
                    entries.push(other);
                }
                Some(place) if depth == 1 => self.twice(&below, place, other.key_span),
                Some(place) => {
                    let same = entries.iter_mut().find(|entry| entry.key == other.key);
                    if let Some(same) = same {
                        self.join(&below, (&mut same.value, place), other, depth - 1);
                    }
                }
            }
        }
    }

    fn twice(&mut self, path: &str, first: Span, second: Span) {
        let place = self.names.in_words(first, second.source);
        let message = format!("`{}` is given twice; the first is in {place}", clip(path));
        let help = match path.contains('.') {
            true => "keep one of them, or give one another name".to_owned(),
            false => {
                let named = NAMED.map(|section| format!("`{section}`")).join(", ");
                format!("keep one of them: only {named} and `{PROFILES}` may be in several files")
            }
        };
        self.error(second, message, help);
    }
}

/// Records the entries of a section, down to this depth.
fn note(known: &mut HashMap<(String, String), Span>, path: &str, node: &Node, depth: usize) {
    let NodeValue::Map(entries) = &node.value else { return };
    if depth == 0 {
        return;
    }
    for entry in entries {
        known.insert((path.to_owned(), entry.key.clone()), entry.key_span);
        note(known, &format!("{path}.{}", entry.key), &entry.value, depth - 1);
    }
}
