//! Records of requests: the decisions about each request, and the result.
//!
//! While a request is processed, the worker takes notes ([`recorder`]). At the end of the request, the worker sends the
//! [`record`](record::Record) to the control plane, which stores and shows the latest records. Without recording there is no
//! extra cost: one byte states both whether a request is recorded and whether it is logged.

pub mod record;
pub mod recorder;
