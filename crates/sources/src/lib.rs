//! The sources of a configuration: files, and the overlay.
//!
//! A source owns what it has read: [`Files`] the documents of the configuration's files, [`Overlay`](overlay::Overlay) the
//! changes made at run time. [`Sources`] merges them in one order, and every value keeps its place. `weir_config` checks
//! the result, and does not know where values come from.
#![forbid(unsafe_code)]

mod documents;
mod files;
mod include;
mod join;
mod member_index;
mod members;
pub mod overlay;
mod source;
mod sources;
mod text;

use std::path::Path;

use serde_json::Value;
use weir_config::document::{Finding, Span};
use weir_config::{Diagnostic, LoadResult, Severity, describe};

pub use files::Files;
pub use include::{FILES_BYTES_MAX, FILES_MAX};
pub use sources::Sources;

use documents::Documents;
use overlay::Overlay;

/// Reads and checks a file and the files that it includes. Relative paths in them start at its directory.
pub fn load(path: &Path) -> LoadResult {
    Sources::new(&Files::read(path), &Overlay::default()).check()
}

/// Checks bytes from another source, for example from standard input. `name` stands for the file in diagnostics, and
/// relative paths start at its directory.
pub fn parse_bytes(name: &str, bytes: Vec<u8>) -> LoadResult {
    Sources::new(&Files::of_bytes(name, bytes), &Overlay::default()).check()
}

/// The value of a document that is not a configuration, in YAML or JSON. Words, numbers and `off` have the same meaning
/// as in a configuration. Files that it refers to are not read.
pub fn document(name: &str, bytes: Vec<u8>) -> Result<Value, Vec<Diagnostic>> {
    let mut documents = Documents::beside(name, &[]);
    let document = documents.add(name.to_owned(), text::decoded(bytes));
    match &document.root {
        Some(root) if document.findings.is_empty() => Ok(overlay::value_of(root)),
        Some(_) | None => {
            let places = documents.places();
            let mut findings = documents.findings;
            if findings.is_empty() {
                let empty = Finding::new(Span::at(1, 1), "the document is empty");
                findings.push((Severity::Error, empty));
            }
            Err(describe(findings, places))
        }
    }
}

#[cfg(test)]
mod tests;
