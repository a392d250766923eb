//! Strict HTTP codecs, and the message type for all versions of HTTP.
//!
//! **Architecture invariant:** no I/O, no clock, no unsafe, and no allocation per message once the reused buffers have
//! grown. The codecs read slices, and return ranges of them and events.
#![forbid(unsafe_code)]

mod authority;
mod chars;
pub mod connection_authentication;
pub mod cookie_attributes;
pub mod cookies;
pub mod edited_head;
pub mod edits;
mod facts;
pub mod fields;
pub mod flaws;
pub mod forwarded;
pub mod h1;
pub mod h2;
mod ip_text;
pub mod media_types;
pub mod message;
pub mod origin;
pub mod path;
pub mod proxy_protocol;
pub mod query;
mod request_facts;
pub mod secret_names;
mod target;
pub mod trace_context;
mod usual_names;

pub use authority::is_authority;
pub use chars::{is_token, list, trim_ows};
pub use ip_text::write_ip;
