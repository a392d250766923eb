//! Clients and members whose every byte names its exchange, and who look at every byte that weir hands them.
//!
//! What an exchange is follows from the seed and its number ([`plan`]); its number stands in every 16 bytes of it
//! ([`tag`]). Clients check that what they get is their own member's response, whole where it is called so, or a response
//! of weir's own in its exact form (`answer`); members check the same of requests (`arrival`). Both read with readers
//! of their own.
//!
//! Sessions ([`client::session`], [`member::serve`]) are futures over any [`link::Stream`] and any [`clock::Clock`]: over
//! sockets a thread runs one of them, in a simulation one thread runs them all. They wait nowhere but in
//! [`link::Stream::poll_wait`], need no waker, and may be polled at any time. What they find is in the [`world::World`]
//! that they share. [`settings`] has the configuration of weir that they expect.
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
