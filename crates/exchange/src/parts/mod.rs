//! What transactions are made of, and what they hand on: data. What they do is in [`crate::transaction`].

pub mod account;
pub mod arrival;
pub mod attempt;
pub mod considered;
pub mod encoding;
pub mod end;
pub mod ends;
pub mod failure;
pub mod held;
pub mod identity;
pub mod inspected;
pub mod inspecting;
pub mod messages;
pub mod notice;
pub mod pace;
pub mod parked;
pub mod pieces;
pub mod remembered;
pub mod request;
pub mod request_ids;
pub mod rewriting;
pub mod scratch;
pub mod stream_end;
pub mod tools;
pub mod tries;
pub mod websocket;
