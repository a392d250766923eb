//! The configuration: files and overlay -> spanned tree -> raw types -> validated [`snapshot::Snapshot`].
//!
//! [`load`] reads a file and reports all its mistakes. A loaded configuration is valid, but may contain host names:
//! [`Config::host_names`] lists them, and [`Config::snapshot`] makes the immutable snapshot with the addresses that a
//! resolver found.
//!
//! **Architecture invariant:** nothing here uses the network or resolves a name. Only the configuration's files are
//! opened, and files that they name or that rules include, each within bounds of size and time ([`file`]), so checking
//! a configuration is safe anywhere.
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
mod endpoint;
pub mod file;
mod files;
mod hints;
pub mod host_addresses;
mod host_rights;
mod host_uses;
mod include;
mod key_types;
mod one_of;
pub mod overlay;
pub mod own_doors;
pub mod parts;
mod places;
mod profile;
mod quote;
mod rate;
mod raw;
mod rule_cache;
pub mod rule_files;
mod scalar;
mod schema;
mod secret;
mod shapes;
pub mod snapshot;
pub mod system_authorities;
mod texts;
mod tree;
mod validate;
mod variants;
mod writer;

use std::io;
use std::path::Path;

pub use config::{Config, Resolutions, Summary};
pub use decode::{DIAGNOSTICS_MAX, NAME_BYTES_MAX, check_name};
pub use diagnostic::{Colour, Diagnostic, Excerpt, Position, Severity, render_json, render_text};
pub use files::{Files, Loaded};
pub use hints::nearest;
pub use include::{FILES_BYTES_MAX, FILES_MAX};
pub use raw::waf::TIME_MAX_MS as WAF_TIME_MAX_MS;
pub use schema::{json_schema, reference_markdown};
pub use texts::FILE_BYTES_MAX;
pub use tree::{NODE_DEPTH_MAX, NODES_MAX};

use overlay::Overlay;

/// Reads and checks a file and the files that it includes. Relative paths in them start at its directory.
pub fn load(path: &Path) -> Loaded {
    Files::read(path).check(&Overlay::default())
}

/// Checks a text. `name` stands for the file in diagnostics, and relative paths start at its
/// directory.
pub fn parse(name: &str, text: &str) -> Loaded {
    Files::of_text(name, text).check(&Overlay::default())
}

/// Checks a text from another source, for example from standard input. Otherwise as [`parse`].
pub fn parse_bytes(name: &str, bytes: Vec<u8>) -> Loaded {
    Files::of_bytes(name, bytes).check(&Overlay::default())
}

/// The value of a document that is not a configuration, in YAML or JSON. Words, numbers and `off` have the same meaning
/// as in a configuration.
pub fn document(name: &str, bytes: Vec<u8>) -> Result<serde_json::Value, Vec<Diagnostic>> {
    files::document(name, bytes)
}

/// `Permission denied` instead of `Permission denied (os error 13)`.
fn without_number(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}
