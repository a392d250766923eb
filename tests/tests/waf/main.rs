//! The web application firewall over sockets: blocked requests, the bytes that members receive, and the log.

mod blocking;
mod bodies;
mod checks;
mod content;
mod cookies;
mod encoded;
mod long;
mod memory;
mod recording;
mod responses;
mod sameness;
mod setup;
