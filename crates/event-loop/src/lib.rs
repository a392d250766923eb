//! One thread's event loop: sockets in, completions out.
//!
//! The contract is completion-shaped, so that a ring-based driver can replace epoll without a
//! change above it: the loop reads into its own scratch buffer and hands the bytes over
//! ([`Handler::received`]); data that a socket does not accept at once is queued and sent later
//! ([`EventLoop::send`], [`Handler::drained`]).
//!
//! Its users are the data path, the load generator and the origin.
//!
//! **Architecture invariant:** nothing above this crate makes a system call on a connection.
//! Callbacks never nest: a call into the loop never calls the handler back.
//!
//! **Architecture invariant:** all system calls of the loop are in [`kernel`]. So the simulation can replace it by its
//! own kernel ([`memory`]), with its own time.

pub mod adopted;
mod bounds;
pub mod clock;
pub mod confine;
mod datagram_sockets;
mod datagrams;
pub mod descriptors;
mod event_loop;
mod handler;
pub mod kernel;
mod leaving;
#[cfg(feature = "simulation")]
pub mod memory;
mod output;
mod pace;
mod pipes;
pub mod random;
mod secure;
mod socket;
pub mod sockets;
mod straight;
pub mod synchronised;
mod table;
#[cfg(test)]
mod tests;
mod timers;
mod token;
mod turn;
mod wait;
pub mod wall_clock;

pub use datagram_sockets::Datagrams;
pub use event_loop::EventLoop;
pub use handler::Handler;
pub use kernel::Descriptor;
pub use socket::Reading;
pub use sockets::{Endpoint, ListenOptions, Source};
pub use token::{Owner, OwnerKey, Token};
pub use turn::accept_before_close;
