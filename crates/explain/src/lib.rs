//! Why a request goes where it goes: what the data path decides about a supposed request, told step by step.
//!
//! [`explain`] has the request decided by [`weir_exchange::transaction`], as a worker has, on a copy of the live state. The
//! surroundings of the transaction are a [`dry`] run: they open no connection, and note each step. So an explanation cannot
//! disagree with the data path, and changes nothing of it.
//!
//! | part | what |
//! |---|---|
//! | [`asked`] | the request to explain |
//! | [`explanation`] | the result, for people and programs |
//! | [`listener`] | which virtual server it comes to, and which certificate it gets |
//! | [`dry`] | the surroundings of the transaction |
//! | [`decided`], [`rules`], [`actions`], [`limits`], [`persistence`] | what a virtual server decides |
//! | [`firewall`] | what the web application firewall finds |
//! | [`balancing`] | which members it can get |
//! | [`masks`] | what is not shown |
//! | [`recorded`], [`told`] | requests of the past, as they were recorded |
//!
//! **Architecture invariant:** nothing here decides about a request. What is told of a condition, a limit or a member is what
//! the code says that decides.

#![forbid(unsafe_code)]

pub mod actions;
pub mod asked;
pub mod balancing;
pub mod decided;
pub mod dry;
pub mod explanation;
pub mod firewall;
pub mod limits;
pub mod listener;
pub mod masks;
pub mod persistence;
pub mod recorded;
pub mod rules;
mod run;
pub mod told;

pub use asked::Asked;
pub use explanation::Explanation;
pub use run::{Moment, Unexplained, explain};
