//! Transactions without sockets: a driver that chooses what happens next, a fake world, and a model that looks on.
//!
//! | part | what |
//! |---|---|
//! | [`choices`] | who chooses: a seed, the bytes of a fuzzer, or one of all sequences |
//! | [`scene`], [`plan`] | a small configuration; what a request and its response are |
//! | [`world`] | [`Edge`](weir_exchange::edge::Edge) in memory: [`client`], [`asking`] and [`member`], [`line`] |
//! | [`router`], [`from_client`], [`from_member`], [`from_service`], [`from_worker`] | how a worker tells a transaction what happened |
//! | [`events`] | what can happen in a state, and no more |
//! | [`model`] | what must hold, whatever happened |
//!
//! The contract that the driver keeps is that of the workers of the data path (`crates/dataplane/src/worker/`).

#![allow(dead_code, reason = "each of those that include this uses a part")]

pub mod asking;
pub mod choices;
pub mod client;
pub mod events;
pub mod from_client;
pub mod from_member;
pub mod from_service;
pub mod from_worker;
pub mod line;
pub mod member;
pub mod model;
pub mod plan;
pub mod router;
pub mod run;
pub mod scene;
pub mod world;
