//! The control plane: all work that requests do not wait for.
//!
//! One thread with a single-threaded tokio runtime ([`supervisor`]) probes the members ([`monitors`]), refreshes the
//! addresses of host names ([`names`]), OCSP responses ([`ocsp`]) and keys of tokens ([`token_keys`]), gets certificates
//! ([`weir_acme`]), answers on the admin listener ([`admin`]), and activates new configurations: files that are read again,
//! and versions of the [`overlay`]. Separate threads write the request logs ([`logs`]) and weir's own events
//! ([`events`]), because a write to a full pipe blocks, and send spans ([`span_export`]).
//!
//! **Architecture invariant:** the data path never waits for anything here. The control plane reaches it only through
//! its handle and its live table; workers report over bounded channels, and drop reports when these are full.
#![forbid(unsafe_code)]

pub mod admin;
pub mod board;
pub mod events;
pub mod explanations;
pub mod figures;
pub mod file_digests;
mod findings;
pub mod firewall;
pub mod foretold;
mod freed_memory;
pub(crate) mod health;
mod key_log;
mod last_members;
pub mod log_writer;
pub mod logs;
mod losses;
pub mod member_state;
pub mod metrics;
pub mod monitors;
pub mod names;
pub mod observed_state;
pub mod ocsp;
pub mod overlay;
mod own_keys;
pub mod packets;
pub mod printable;
mod problems;
mod rates;
pub mod reloads;
pub mod requests;
mod sandbox;
mod service_manager;
mod span_export;
mod status;
pub mod supervisor;
#[cfg(test)]
mod testing;
pub mod time;
pub mod token_keys;
pub mod trial;
pub mod upgrade;
mod wording;

pub use weir_event_loop::clock_state;
