//! An event loop for one thread: it performs the I/O on sockets, and reports completed operations to its handler.
//!
//! The interface is based on completions, so that an `io_uring` driver can replace epoll without changes in the code that
//! uses it: the loop reads into its own buffer and delivers the bytes ([`Handler::received`]). Data that a socket does not
//! accept at once is queued and sent later ([`EventLoop::send`], [`Handler::drained`]).
//!
//! [`EventLoop`] is what a handler may ask of the loop. [`Turns`] wait for events, and call the handler.
//!
//! The data path, the load generator and the origin server use it.
//!
//! **Architecture invariant:** only this crate makes system calls on connections. Callbacks never nest: a call into the loop
//! never calls the handler. A handler gets the [`EventLoop`], but never its [`Turns`].
//!
//! **Architecture invariant:** all system calls of the loop are in [`kernel`], so the simulation can replace them by its own
//! kernel ([`memory`]) with its own time.

pub mod adopted_sockets;
pub mod allocator;
pub mod batches;
mod bounds;
pub mod clock;
pub mod clock_state;
pub mod confine;
mod datagram_sockets;
mod datagrams;
pub mod descriptors;
pub mod error_text;
mod event_loop;
mod handler;
pub mod kernel;
mod lingering_close;
mod listening;
#[cfg(feature = "simulation")]
pub mod memory;
mod output;
mod pace;
mod pipes;
pub mod random;
mod reader;
mod secure;
mod sending;
mod socket;
mod socket_room;
pub mod sockets;
mod straight;
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
pub use listening::accept_before_close;
pub use output::SpareBuffers;
pub use socket::ReadMode;
pub use socket_room::SocketRoom;
pub use sockets::{Endpoint, ListenOptions, Source};
pub use table::Sockets;
pub use token::{Owner, OwnerKey, Token};
pub use turn::Turns;
