//! Injection found by tokenising: SQL and script.
//!
//! Both detectors answer SecLang's operators `@detectSQLi` and `@detectXSS`. Neither looks for strings: a value is read the way a database or
//! a browser would read it, from each place in which an application may have put it, and it is an injection when it leaves that
//! place and goes on with something that has an effect.
//!
//! **Architecture invariant:** each detector reads its input a bounded number of times, from left to right, and allocates nothing.

pub mod html;
pub mod sql;

#[cfg(test)]
mod tests;

pub use html::{detect_script, may_be_script};
pub use sql::{FINGERPRINT_CHARS_MAX, Fingerprint, detect_sql, may_be_sql};
