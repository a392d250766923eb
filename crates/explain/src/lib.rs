//! Explains the way of a supposed request through the data path, step by step.
//!
//! [`explain`] runs [`weir_exchange::transaction`], the code of the workers, on a copy of the live state. The
//! environment of the transaction is a [`dry`] run: it opens no connection, and records each step. So an explanation
//! agrees with the data path, and has no effect on it.
//!
//! | part | content |
//! |---|---|
//! | [`asked`] | the request to explain, as a virtual server receives it |
//! | [`listener`] | the virtual server that receives the request, and the certificate |
//! | [`dry`] | the environment of the transaction |
//! | [`observed`] | the decisions, described while they are made |
//! | [`decided`], [`rules`], [`actions`], [`limits`], [`persistence`] | the decisions of a virtual server |
//! | [`firewall`] | the findings of the web application firewall |
//! | [`balancing`] | the members that the request can get |
//! | [`masks`] | the secrets to be masked |
//! | [`recorded`] | recorded requests |
//! | [`again`] | recorded requests, decided again |
//!
//! The request, the result and recorded requests have the types of [`weir_api`].
//!
//! **Architecture invariant:** no decision about a request is made here. All results for conditions, limits and members
//! come from the code that decides in the data path.

#![forbid(unsafe_code)]

pub mod actions;
pub mod again;
pub mod asked;
pub mod balancing;
pub mod decided;
pub mod dry;
pub mod firewall;
pub mod limits;
pub mod listener;
pub mod masks;
pub mod observed;
pub mod persistence;
pub mod recorded;
pub mod rules;
mod run;

pub use again::explain_recorded;
pub use run::{Moment, Unexplained, explain, explain_again};
