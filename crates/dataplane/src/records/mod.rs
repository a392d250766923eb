//! Records of requests: the decisions about each request, and its result.
//!
//! A worker notes the facts of a request while it decides ([`recorder`]), and sends the [`record`](record::Record) to
//! the control plane at the end of the request. The control plane keeps and shows the last records. Without recording
//! there is no extra cost: one byte says both whether a request is recorded and whether it is logged.

pub mod record;
pub mod recorder;
