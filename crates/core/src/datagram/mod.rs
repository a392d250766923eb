//! Datagrams and their readers, which read enough of a protocol to keep related datagrams on one member.
//!
//! Each reader takes the bytes of one datagram and returns a [`Span`] of them, or `None` (QUIC: an error) if the datagram
//! does not belong to its protocol. Readers do not allocate, read a byte only a few times, and check only the parts that
//! they need: the member implements the protocol.

pub mod quic;
pub mod radius;
pub mod sip;
mod train;

use weir_http::message::Span;

pub use train::{Flow, TRAIN_BYTES_MAX, Train};

/// The bytes `start..end` of a datagram, which has at most 64 KiB.
fn span(start: usize, end: usize) -> Span {
    debug_assert!(start <= end && u32::try_from(end).is_ok());
    Span { start: start as u32, end: end as u32 }
}
