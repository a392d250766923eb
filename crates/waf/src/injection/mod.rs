//! Detection of SQL and script injection by tokenizing.
//!
//! Two detectors implement SecLang's operators `@detectSQLi` and `@detectXSS`. They do not search for strings: they
//! parse a value as a database or a browser would, in each context where an application may have inserted it. The value is
//! an injection if it breaks out of this context and continues with tokens that have an effect.
//!
//! The third, `@detectXXE`, is weir's own: it finds definitions in XML.
//!
//! **Architecture invariant:** each detector reads its input a bounded number of times, from left to right, and allocates no
//! memory.

pub mod html;
pub mod sql;
pub mod xml;

#[cfg(test)]
mod tests;

pub use html::{detect_script, may_be_script};
pub use sql::{FINGERPRINT_CHARS_MAX, Fingerprint, detect_sql, may_be_sql};
pub use xml::{detect_definition, may_be_definition};
