//! The configuration: file -> spanned tree -> raw types -> validated [`snapshot::Snapshot`].
//!
//! [`load`] reads a file and reports all its mistakes. A loaded configuration is valid, but may contain host names:
//! [`Config::host_names`] lists them, and [`Config::snapshot`] makes the immutable snapshot with the addresses that a
//! resolver found.
//!
//! **Architecture invariant:** nothing here uses the network or resolves a name. Only the configuration file is opened,
//! and files that it names or that rules include, each within bounds of size and time ([`file`]), so
//! checking a configuration is safe anywhere.
#![forbid(unsafe_code)]

#[macro_use]
mod section;

mod address;
mod conceal;
mod config;
mod decode;
mod destination;
mod diagnostic;
#[cfg(test)]
mod documentation_tests;
pub mod file;
mod hints;
pub mod parts;
mod profile;
mod quote;
mod rate;
mod raw;
pub mod rule_files;
mod scalar;
mod schema;
mod secret;
mod shapes;
pub mod snapshot;
mod tree;
mod validate;

use std::io;
use std::path::Path;

pub use config::{Config, Resolutions, Summary};
pub use decode::{DIAGNOSTICS_MAX, NAME_BYTES_MAX};
pub use diagnostic::{Colour, Diagnostic, Excerpt, Position, Severity, render_json, render_text};
pub use hints::nearest;
pub use schema::{json_schema, reference_markdown};
pub use tree::{NODE_DEPTH_MAX, NODES_MAX};

use conceal::Concealed;
use decode::{Context, Decode as _};
use file::{Accepted, READ_TIME_MAX, ReadError};
use parts::Parts;
use tree::{Finding, Lines, Span};

/// Largest configuration file.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// The result of loading a configuration file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// All findings, in the file's order.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` when at least one of the findings is an error.
    pub config: Option<Config>,
}

/// Reads and checks a file. Relative paths in it start at its directory.
pub fn load(path: &Path) -> Loaded {
    let name = path.display().to_string();
    let bytes = match read(path) {
        Ok(bytes) => bytes,
        Err(reason) => return Loaded::refused(&name, "", None, reason),
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => parse(&name, text),
        Err(error) => not_utf8(&name, &bytes, error.valid_up_to()),
    }
}

/// Checks a text. `name` stands for the file in diagnostics, and relative paths start at its
/// directory.
pub fn parse(name: &str, text: &str) -> Loaded {
    // A byte order mark is common in files from Windows' editors, and means nothing in UTF-8.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Loaded::refused(name, "", None, too_large());
    }
    let lines = Lines::new(text);
    let (root, findings) = tree::parse(&lines);
    let mut context = Context::default();
    let broken = root.is_none() && !findings.is_empty();
    for Finding { span, message, suggestion } in findings {
        context.report(Severity::Error, span, message, suggestion);
    }
    let mut config = None;
    if let Some(root) = root {
        if let Some(file) = raw::File::decode(&root, &mut context).map(raw::File::with_nobody) {
            let directory = Path::new(name).parent().unwrap_or(Path::new(""));
            config = validate::validate(&file, directory, &mut context);
            if let Some(config) = &mut config {
                config.parts = Parts::of(&root);
                config.name_file(name);
            }
        }
    } else if !broken {
        context.error_help(
            Span::at(1, 1),
            "the configuration is empty",
            "it needs at least `virtual_servers` and `pools`: see examples/minimal.yaml",
        );
    }
    let (findings, dropped) = context.finish();
    let mut lines = Concealed::new(&lines);
    let mut diagnostics: Vec<Diagnostic> = findings
        .into_iter()
        .map(|(severity, finding)| diagnostic(name, &mut lines, severity, finding))
        .collect();
    if dropped > 0 {
        diagnostics.push(Diagnostic {
            severity: Severity::Error,
            message: format!("{dropped} more findings are not shown"),
            file: name.to_owned(),
            position: None,
            excerpt: None,
            suggestion: None,
        });
    }
    Loaded { diagnostics, config }
}

impl Loaded {
    /// A file that cannot be decoded at all.
    fn refused(name: &str, source: &str, span: Option<Span>, message: String) -> Self {
        let lines = Lines::new(source);
        let mut lines = Concealed::new(&lines);
        let finding = Finding { span: span.unwrap_or(Span::at(1, 1)), message, suggestion: None };
        let mut diagnostic = diagnostic(name, &mut lines, Severity::Error, finding);
        if span.is_none() {
            diagnostic.position = None;
            diagnostic.excerpt = None;
        }
        Self { diagnostics: vec![diagnostic], config: None }
    }
}

fn diagnostic(
    name: &str,
    lines: &mut Concealed<'_>,
    severity: Severity,
    finding: Finding,
) -> Diagnostic {
    let Span { line, column, length } = finding.span;
    Diagnostic {
        severity,
        message: finding.message,
        file: name.to_owned(),
        position: Some(finding.span.position()),
        excerpt: lines.get(line).map(|text| Excerpt::cut(text, column, length)),
        suggestion: finding.suggestion,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let read = file::read_within(path, FILE_BYTES_MAX, Accepted::RegularOrPipe, READ_TIME_MAX);
    read.map_err(|error| match error {
        ReadError::Open(error) => format!("cannot open the file: {}", without_number(&error)),
        ReadError::Read(error) => format!("cannot read the file: {}", without_number(&error)),
        ReadError::NotAFile(what) => format!("this is {what}; name a file"),
        ReadError::TooLarge => too_large(),
        ReadError::Endless => "this has no end, reading it waits for more; name a file".into(),
        ReadError::Late => format!("the file was not read within {READ_TIME_MAX:?}"),
    })
}

/// `Permission denied` instead of `Permission denied (os error 13)`.
fn without_number(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

fn too_large() -> String {
    format!("the file is larger than {} MiB", FILE_BYTES_MAX >> 20)
}

fn not_utf8(name: &str, bytes: &[u8], valid_bytes: usize) -> Loaded {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let message = "the file is UTF-16; it must be UTF-8".to_owned();
        return Loaded::refused(name, "", None, message);
    }
    let text = String::from_utf8_lossy(bytes);
    let before = String::from_utf8_lossy(&bytes[..valid_bytes]);
    let (index, last) = Lines::new(&before).iter().enumerate().last().unwrap_or((0, ""));
    let span = Span::at(index + 1, last.chars().count() + 1);
    let message = format!("the byte 0x{:02X} is not UTF-8", bytes[valid_bytes]);
    Loaded::refused(name, &text, Some(span), message)
}
