//! Reads rule files, the files that they include, and the files that rules name.

use std::collections::BTreeSet;

use crate::seclang::{self, Directive, DirectiveKind, Place, Problem};

/// Maximum nesting depth of includes.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Maximum number of rule files. A file is counted once for each include.
pub const FILES_MAX: usize = 1_000;

/// Reads files for the compiler, because this crate has no I/O.
pub trait Files {
    /// The files that a path, or a pattern with `*`, selects, relative to `beside`; empty: there are none.
    fn find(&mut self, beside: &str, pattern: &str) -> Vec<String>;
    /// The content of a file.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;
}

/// The directives of these files and of their included files, in order.
pub fn directives(paths: &[String], files: &mut dyn Files) -> Result<Vec<Directive>, Vec<Problem>> {
    let mut reading = SourceReader {
        files,
        open: BTreeSet::new(),
        read: 0,
        found: Vec::new(),
        problems: Vec::new(),
    };
    for path in paths {
        let place = Place { file: path.as_str().into(), line: 1 };
        reading.file(path, &place);
    }
    if reading.problems.is_empty() { Ok(reading.found) } else { Err(reading.problems) }
}

struct SourceReader<'a> {
    files: &'a mut dyn Files,
    /// The files that are being read, to detect cycles.
    open: BTreeSet<String>,
    /// The number of files read, at most one above the limit.
    read: usize,
    found: Vec<Directive>,
    problems: Vec<Problem>,
}

impl SourceReader<'_> {
    fn problem(&mut self, place: &Place, message: String, help: Option<&str>) {
        let help = help.map(str::to_owned);
        self.problems.push(Problem { place: place.clone(), message, help });
    }

    /// Whether another file may be read. The first file above the limit is reported.
    fn has_room(&mut self, path: &str, named_at: &Place) -> bool {
        if self.read == FILES_MAX {
            let message = format!("`{path}` is one file of rules too many: {FILES_MAX} are read");
            self.problem(named_at, message, Some("join files, or name fewer"));
        }
        self.read = (self.read + 1).min(FILES_MAX + 1);
        self.read <= FILES_MAX
    }

    /// Reads a file whose name is at this place.
    fn file(&mut self, path: &str, named_at: &Place) {
        if !self.has_room(path, named_at) {
            return;
        }
        if self.open.len() >= INCLUDE_DEPTH_MAX || !self.open.insert(path.to_owned()) {
            let message = format!("`{path}` includes itself, or files go too deep");
            return self.problem(named_at, message, Some("include each file once"));
        }
        match self.files.read(path) {
            Err(reason) => {
                self.problem(named_at, format!("`{path}` cannot be read: {reason}"), None)
            }
            Ok(bytes) => match seclang::parse(path, &String::from_utf8_lossy(&bytes)) {
                Err(problems) => self.problems.extend(problems),
                Ok(directives) => self.take(path, directives),
            },
        }
        self.open.remove(path);
    }

    fn take(&mut self, path: &str, directives: Vec<Directive>) {
        for directive in directives {
            let DirectiveKind::Include(pattern, is_optional) = &directive.kind else {
                self.found.push(directive);
                continue;
            };
            if self.read > FILES_MAX {
                return;
            }
            let named = self.files.find(path, pattern);
            if named.is_empty() && !is_optional {
                let help = Some("correct the path, or use IncludeOptional");
                self.problem(&directive.place, format!("there is no file `{pattern}`"), help);
            }
            for name in named {
                self.file(&name, &directive.place);
            }
        }
    }
}
