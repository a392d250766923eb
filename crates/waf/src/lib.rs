//! The web application firewall.
//!
//! **Architecture invariant:** no I/O, no clock and no random numbers of its own. Callers pass in rules, requests and a
//! time source; the crate returns verdicts.
#![forbid(unsafe_code)]

pub mod body;
pub mod builtin;
pub mod checks;
pub mod coding;
pub mod crs;
pub mod exclusion;
mod hash;
pub mod injection;
pub mod inspection;
pub mod plan;
pub mod seclang;
pub mod transformation;
mod value;
