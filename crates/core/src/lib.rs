//! The decisions of the data path: rules, members, health, queues, retries.
//!
//! **Architecture invariant:** nothing in this crate opens a socket, reads a clock, draws a random
//! number or holds global state. Time, randomness and the state of other cores are parameters, so every state machine
//! here runs in a test with a seed and a fake clock.
#![forbid(unsafe_code)]

pub mod admin_state;
pub mod balance;
pub mod body_edit;
pub mod clock;
pub mod datagram;
pub mod expression;
pub mod jwt;
pub mod keyed_hash;
pub mod limit;
pub mod monitor;
pub mod passwords;
pub mod persistence;
pub mod policy;
pub mod priority;
pub mod queue;
pub mod retry;
pub mod slow_start;
pub mod time_zone;
pub mod unseen;
