//! Records of requests: what was decided about each, and what became of it.
//!
//! A worker notes the facts of a request while it decides ([`recorder`]), and hands the [`record`](record::Record) over when
//! the request is over. The control plane keeps the last ones and shows them. A worker that records nothing spends nothing:
//! whether a request is recorded stands in the same byte as whether it is logged.

pub mod record;
pub mod recorder;
