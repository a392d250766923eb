//! The web application firewall.
//!
//! **Architecture invariant:** no I/O, no clock, no random numbers. Rules, requests and the time that is left are handed in; verdicts come
//! out.
#![forbid(unsafe_code)]

pub mod body;
pub mod builtin;
pub mod checks;
pub mod coding;
pub mod injection;
pub mod inspection;
pub mod plan;
pub mod seclang;
pub mod transformation;
mod value;
