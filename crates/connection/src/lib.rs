//! Connections of clients and members as values: bytes become events, and what a transaction sends becomes bytes.
//!
//! | part | content |
//! |---|---|
//! | [`wire`] | what a connection asks of its socket |
//! | [`client`] | connections of clients: HTTP/1, HTTP/2 |
//! | [`member`] | connections to members |
//! | [`frames`] | outgoing frames of HTTP/2, for both |
//! | [`body`] | outgoing bodies of HTTP/1, for both |
//! | [`backlog`] | body data that waits |
//! | [`joining`] | data of small frames that are received together, for both |
//!
//! **Architecture invariant:** a connection knows no event loop, no worker and no transaction. It neither waits nor calls back:
//! it takes bytes, says what they mean, and writes to its [`Wire`](wire::Wire).

#![forbid(unsafe_code)]

pub mod backlog;
pub mod body;
pub mod client;
pub mod frames;
pub mod joining;
pub mod member;
#[cfg(test)]
mod testing;
pub mod wire;
