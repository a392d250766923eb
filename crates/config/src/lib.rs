//! The configuration: documents -> merged tree -> raw types -> validated [`snapshot::Snapshot`].
//!
//! A [`document::Document`] is a text as a tree whose values know their places. Sources, which this crate does not know,
//! own documents and merge them. [`MergedValues::check`] checks the result and reports all its mistakes, with their places. A
//! loaded configuration is valid, but may contain host names: [`Config::host_names`] lists them, and [`Config::snapshot`]
//! makes the immutable snapshot with the addresses that a resolver found.
//!
//! **Architecture invariant:** nothing here uses the network or resolves a name. Only files that the configuration names or
//! that rules include are opened, each within bounds of size and time ([`file`]), so checking a configuration is safe
//! anywhere.
#![forbid(unsafe_code)]

#[macro_use]
mod section;

mod address;
mod conceal;
mod config;
mod decode;
mod destination;
mod diagnostic;
pub mod document;
#[cfg(test)]
mod documentation_tests;
mod endpoint;
pub mod file;
mod hints;
pub mod host_addresses;
mod host_rights;
mod host_uses;
mod key_types;
pub mod members;
mod merged_values;
mod one_of;
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
pub mod source_keys;
pub mod system_authorities;
mod validate;
mod variants;

pub use conceal::without_secrets;
pub use config::{Config, Resolutions, Summary};
pub use decode::{DIAGNOSTICS_MAX, NAME_BYTES_MAX, check_name};
pub use diagnostic::{Colour, Diagnostic, Excerpt, Position, Severity, render_json, render_text};
pub use endpoint::Endpoint;
pub use hints::nearest;
pub use merged_values::{LoadResult, MergedValues, describe};
pub use places::{Places, Pointers, escaped};
pub use quote::clip;
pub use raw::waf::TIME_MAX_MS as WAF_TIME_MAX_MS;
pub use rule_cache::RuleCache;
pub use schema::{json_schema, reference_markdown};

use document::{Document, SourceId};

/// Checks a text that includes no other. `name` stands for its file in diagnostics, and relative paths start at the
/// directory of `name`.
pub fn parse(name: &str, text: &str) -> LoadResult {
    let document = Document::read(name.to_owned(), SourceId::MAIN, text.to_owned(), 0);
    MergedValues::of_one(document).check()
}
