//! What workers report about requests: log lines, spans, records and events.
//!
//! | part | content |
//! |---|---|
//! | [`access_log`] | one line for each request, connection or session |
//! | [`side_logs`] | entries for only a few requests: findings of the web application firewall ([`waf_log`]), and [`spans`] |
//! | [`records`] | the decisions about recent requests, for the admin API and explanations |
//! | [`reports`] | batches and events, as the control plane receives them |
//! | [`redaction`] | masks secrets in the WAF log, in spans, and where records and explanations are shown |
//! | [`protobuf`] | the encoding of spans |
//!
//! **Architecture invariant:** a worker never waits for its reports: a batch or record that its channel does not accept is
//! dropped and counted. This crate knows no worker and no socket; of the event loop, it uses only the dates.

#![forbid(unsafe_code)]

pub mod access_log;
mod json;
mod log_batch;
pub mod protobuf;
pub mod records;
pub mod redaction;
pub mod reports;
pub mod side_logs;
pub mod spans;
pub mod waf_log;
