//! HTTP/2 (RFC 9113) for clients and servers, without any I/O.
//!
//! A [`Connection`] reads bytes and returns events. Its replies and the caller's frames are appended to a buffer of the
//! caller. A received header list is a [`HeaderBlock`](hpack::HeaderBlock), which [`message`] converts to the head that all
//! versions share.
//!
//! | part | module |
//! |---|---|
//! | header compression (RFC 7541) | [`hpack`] |
//! | frames and their sizes | [`frame`] |
//! | settings | `settings` |
//! | facts about a header line | `line` |
//! | streams, windows, budgets against floods | `streams`, `window`, `limits` |
//! | the state machine | [`Connection`] |
//! | heads and trailers | [`message`] |
//!
//! ```
//! use weir_http::edits::FieldEdits;
//! use weir_http::h1::{OwnResponse, Persistence};
//! use weir_http::h2::hpack::HeaderBlock;
//! use weir_http::h2::message::{RequestForward, read_request, write_own_response, write_request};
//! use weir_http::h2::{Answer, Connection, Event, Limits, SendKind};
//! use weir_http::message::{RequestHead, Scheme, Version};
//! use weir_http::path::TargetForm;
//!
//! let (mut client, mut server) =
//!     (Connection::client(Limits::DEFAULT), Connection::server(Limits::DEFAULT));
//! let (mut sent, mut answered, mut block) = (Vec::new(), Vec::new(), HeaderBlock::new());
//! client
//!     .open_stream(Answer::Usual, true, &mut sent, |lines| {
//!         lines.field(b":method", b"GET");
//!         lines.field(b":scheme", b"https");
//!         lines.field(b":authority", b"example.com");
//!         lines.field(b":path", b"/a/../b?c");
//!     })
//!     .unwrap();
//!
//! let (mut head, mut rest) = (RequestHead::new(), sent.as_slice());
//! let stream = loop {
//!     let received = server.receive(rest, 0, &mut block, &mut answered).unwrap();
//!     rest = &rest[received.consumed..];
//!     if let Event::Headers { stream, end_stream, .. } = received.event {
//!         read_request(&mut block, end_stream, TargetForm::default(), &mut head).unwrap();
//!         break stream;
//!     }
//! };
//! assert_eq!((head.path(block.text()), head.version), (&b"/b"[..], Version::Http2));
//!
//! let response = OwnResponse {
//!     status: 204,
//!     fields: &[],
//!     edits: &FieldEdits::NONE,
//!     body: b"",
//!     client_version: Version::Http2,
//!     persistence: Persistence::KeepAlive,
//!     head_only: false,
//! };
//! server
//!     .send_headers(stream, SendKind::Response, true, &mut answered, |lines| {
//!         write_own_response(&response, lines)
//!     })
//!     .unwrap();
//! assert_eq!(server.stream_count(), 0);
//! ```

mod connection;
mod error;
mod error_code;
pub mod frame;
pub mod hpack;
mod limits;
mod line;
pub mod message;
mod priority;
mod settings;
mod streams;
mod window;

pub use connection::{
    Connection, Event, HeadersKind, ReceiveResult, ResetBy, Role, SendKind, end_with_data, is_whole,
};
pub use error::{ConnectionError, Flood, Misbehaviour, OpenError, SendError};
pub use error_code::ErrorCode;
pub use limits::{Allowance, Limits, STREAMS_MAX, TINY_DATA_SIZE};
pub use priority::Priority;
pub use settings::PeerSettings;
pub use streams::Answer;
