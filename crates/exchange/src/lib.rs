//! What becomes of a request: the decisions of the data path, without sockets, clock or chance.
//!
//! [`transaction`] decides; what it asks of the world is one contract, [`edge::Edge`]; [`parts`] is the data that both
//! speak of. [`session`] does the same for datagrams, over a contract of its own.
//! [`shared`] is what all workers and the control plane know of the configuration in force, [`local`] what one
//! worker has of it.

#![forbid(unsafe_code)]

pub mod arena;
pub mod edge;
pub mod local;
pub mod outside;
pub mod parts;
pub mod session;
pub mod shared;
pub mod termination;
pub mod transaction;
