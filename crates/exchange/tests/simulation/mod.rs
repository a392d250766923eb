//! Transactions without sockets: a driver that chooses events, a simulated world, and a model that checks invariants.
//!
//! | part | content |
//! |---|---|
//! | [`choices`] | the source of choices: a seed, the bytes of a fuzzer, or all sequences in turn |
//! | [`scene`], [`plan`] | a small configuration; the content of a request and its response |
//! | [`world`] | [`Edge`](weir_exchange::edge::Edge) in memory: [`client`], [`asking`] and [`member`], [`line`] |
//! | [`router`], [`from_client`], [`from_inspector`], [`from_member`], [`from_service`], [`from_worker`] | report events to a transaction |
//! | [`events`] | the events that are possible in a state |
//! | [`model`] | the invariants of all runs |
//! | [`cells`] | the events that happen in each state |
//!
//! The driver obeys the same contract as the workers of the data path (`crates/dataplane/src/worker/`).

#![allow(dead_code, reason = "each of those that include this uses a part")]

pub mod asking;
pub mod cells;
pub mod choices;
pub mod client;
pub mod events;
pub mod from_client;
pub mod from_inspector;
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
