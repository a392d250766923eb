//! Files that rules name, and files that files include.

use std::collections::BTreeSet;

use crate::seclang::{self, Directive, DirectiveKind, Place, Problem};

/// Deepest chain of files that include files.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Most files of rules, each counted as often as it is included.
pub const FILES_MAX: usize = 1_000;

/// What reads files for rules: this crate reads none itself.
pub trait Files {
    /// The files that a path, or a pattern with `*`, means beside this file; none if there are none.
    fn find(&mut self, beside: &str, pattern: &str) -> Vec<String>;
    /// A file's bytes.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;
}

/// The directives of these files, and of those that they include, in their order.
pub fn directives(paths: &[String], files: &mut dyn Files) -> Result<Vec<Directive>, Vec<Problem>> {
    let mut reading =
        Reading { files, open: BTreeSet::new(), read: 0, found: Vec::new(), problems: Vec::new() };
    for path in paths {
        let place = Place { file: path.as_str().into(), line: 1 };
        reading.file(path, &place);
    }
    if reading.problems.is_empty() { Ok(reading.found) } else { Err(reading.problems) }
}

struct Reading<'a> {
    files: &'a mut dyn Files,
    /// Files that are being read.
    open: BTreeSet<String>,
    /// How many files were read, up to one too many.
    read: usize,
    found: Vec<Directive>,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn problem(&mut self, place: &Place, message: String, help: Option<&str>) {
        let help = help.map(str::to_owned);
        self.problems.push(Problem { place: place.clone(), message, help });
    }

    /// Whether one more file may be read; the first that may not is told of.
    fn has_room(&mut self, path: &str, named_at: &Place) -> bool {
        if self.read == FILES_MAX {
            let message = format!("`{path}` is one file of rules too many: {FILES_MAX} are read");
            self.problem(named_at, message, Some("join files, or name fewer"));
        }
        self.read = (self.read + 1).min(FILES_MAX + 1);
        self.read <= FILES_MAX
    }

    /// Reads a file that something at this place names.
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
