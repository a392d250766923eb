//! Explains the way of a supposed request through the data path, step by step.
//!
//! [`explain`] runs [`weir_exchange::transaction`], the code of the workers, on a copy of the live state. The
//! environment of the transaction is a [`dry_edge`] run: it opens no connection, and records each step. So an explanation
//! agrees with the data path, and has no effect on it.
//!
//! | part | content |
//! |---|---|
//! | [`supposed_request`] | the request to explain, as a virtual server receives it |
//! | [`listener`] | the virtual server that receives the request, and the certificate |
//! | [`dry_edge`] | the environment of the transaction |
//! | [`decision_witness`] | the decisions, described while they are made |
//! | [`decisions`], [`rules`], [`actions`], [`limits`], [`persistence`] | the decisions of a virtual server |
//! | [`firewall`] | the findings of the web application firewall |
//! | [`balancing`] | the members that the request can get |
//! | [`masks`] | the secrets to be masked |
//! | [`recorded_request`] | recorded requests |
//! | [`second_decision`] | recorded requests, decided again |
//!
//! The request, the result and recorded requests have the types of [`weir_api`].
//!
//! **Architecture invariant:** no decision about a request is made here. All results for conditions, limits and members
//! come from the code that decides in the data path.

#![forbid(unsafe_code)]

pub mod actions;
pub mod balancing;
pub mod decision_witness;
pub mod decisions;
pub mod dry_edge;
pub mod firewall;
pub mod limits;
pub mod listener;
pub mod masks;
pub mod persistence;
pub mod recorded_request;
pub mod rules;
mod run;
pub mod second_decision;
pub mod supposed_request;

pub use run::{ExplainError, Moment, explain, explain_again};
pub use second_decision::explain_recorded;
