//! The web application firewall, over sockets: what is blocked, what members get, what is told of it.

mod blocking;
mod bodies;
mod checks;
mod cookies;
mod encoded;
mod recording;
mod responses;
mod sameness;
mod setup;
