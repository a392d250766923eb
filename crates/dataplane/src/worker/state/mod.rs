//! The state of connections and of waiting requests. Here is what it decides by itself; what also concerns transactions or the rest of
//! the worker is in `client`, `member` and the files next to this folder.

pub mod backlog;
pub mod bound_connections;
pub mod client;
pub mod client_http2;
pub mod clients;
pub mod destination;
pub mod frames;
pub mod handshake_place;
pub mod http2_memory;
pub mod listener;
pub mod lost_stream;
pub mod member;
pub mod member_http2;
pub mod members;
pub mod pending;
pub mod stage;
pub mod streams;
pub mod waiting_requests;
