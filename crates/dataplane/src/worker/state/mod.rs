//! The state of connections and of waiting requests. Here is what it decides by itself; what also concerns transactions or the rest of
//! the worker is in `client`, `member` and the files next to this folder.

pub mod bound_connections;
pub mod client;
pub mod client_end;
pub mod client_step;
pub mod clients;
pub mod destination;
pub mod drain_deadlines;
pub mod handshake_place;
pub mod http2_memory;
pub mod listener;
pub mod lost_stream;
pub mod member;
pub mod members;
pub mod stage;
pub mod waiting_requests;
