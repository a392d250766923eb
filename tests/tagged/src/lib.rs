//! Clients and members that mark every byte with its exchange, and check every byte that weir forwards.
//!
//! The seed and the number of an exchange determine its plan ([`plan`]). Every 16 bytes of an exchange contain its number
//! ([`tag`]). A client checks that it receives the response of the member for its exchange, complete if the framing says so,
//! or a response of weir itself in its exact form (`answer`). Members check the requests in the same way (`arrival`). Both
//! have parsers that are independent of weir.
//!
//! Sessions ([`client::session`], [`member::serve`]) are futures over any [`link::Stream`] and any [`clock::Clock`]: with
//! sockets, each has a thread; in a simulation, one thread runs all of them. They wait only in [`link::Stream::poll_wait`],
//! need no waker, and may be polled at any time. Their findings are in the shared [`world::World`]. [`settings`] contains
//! the configuration of weir that they require.
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
mod service;
pub mod settings;
mod surplus;
pub mod tag;
mod tunnel;
pub mod world;
