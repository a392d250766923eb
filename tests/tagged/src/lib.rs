//! Clients and members that name the exchange in every byte, and check every byte that weir passes
//! to them.
//!
//! The seed and its number determine an exchange ([`plan`]); its number is in every 16 bytes of it
//! ([`tag`]). Clients check that they receive their own member's response, complete if marked as
//! complete, or a response of weir's own in its exact form (`answer`); members check the same of
//! requests (`arrival`). Both use parsers of their own.
//!
//! Sessions ([`client::session`], [`member::serve`]) are futures over any [`link::Stream`] and any
//! [`clock::Clock`]: over sockets a thread runs one of them, in a simulation one thread runs them
//! all. They wait only in [`link::Stream::poll_wait`], need no waker, and may be polled at any
//! time. Their findings are in the shared [`world::World`]. [`settings`] has the configuration of
//! weir that they expect.
#![forbid(unsafe_code)]

mod accept;
mod answer;
mod arrival;
pub mod client;
pub mod clock;
mod flood;
mod http1;
mod http1_client;
mod http1_member;
mod http2;
mod http2_client;
mod http2_member;
mod http2_terms;
pub mod keeping;
pub mod link;
pub mod member;
mod message;
mod paced;
pub mod place;
pub mod plan;
pub mod profile;
mod relay;
mod script;
pub mod settings;
mod surplus;
pub mod tag;
mod tunnel;
pub mod world;
