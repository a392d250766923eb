//! The documents of the admin API: the types of its requests and answers.
//!
//! The admin listener fills these types, and the commands read and print them. Their descriptions are those of the OpenAPI
//! document, so every key is declared and described once. This crate decides nothing and formats nothing for people.
//!
//! The two sides may have different versions. An answer may have further keys: the reader ignores them. It may also lack keys
//! that were added later, so types of answers that grow have `#[serde(default)]`. A request must not have unknown keys, because
//! a misspelled filter would select everything.
#![forbid(unsafe_code)]

pub mod asked;
pub mod certificate;
pub mod changes;
pub mod dashboard;
pub mod differences;
pub mod events;
pub mod explanation;
pub mod files;
pub mod finding;
pub mod flows;
pub mod health;
pub mod member;
pub mod member_state;
mod network;
pub mod packet_path;
pub mod page;
pub mod policy;
pub mod pool;
pub mod problem;
pub mod process;
pub mod rate;
pub mod recorded;
pub mod relayed;
pub mod reload;
pub mod reports;
pub mod responses;
pub mod sessions;
pub mod status;
pub mod upgrade;
pub mod versions;
pub mod virtual_server;
pub mod waf;
