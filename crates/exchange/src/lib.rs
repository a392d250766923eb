//! The decisions of the data path, without sockets, clock or randomness.
//!
//! [`transaction`] decides; it acts through one interface, [`edge::Edge`]; [`parts`] has the data that both use.
//! [`session`] does the same for datagrams, with its own interface.
//! [`shared`] is the state that all workers and the control plane share, [`local`] the state of one worker.

#![forbid(unsafe_code)]

pub mod arena;
pub mod edge;
pub mod environment;
pub mod local;
pub mod parts;
pub mod session;
pub mod shared;
pub mod termination;
pub mod transaction;
