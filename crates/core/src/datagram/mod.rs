//! Datagrams: as they travel, and what can be read of them, which is enough of a protocol to keep what belongs together
//! on one member.
//!
//! Each reader takes the bytes of one datagram and answers with a [`Span`] of them, or with `None` (QUIC: an
//! error) where they are not of its protocol. None allocates, none looks at a byte more than a few times, and none
//! judges more of a datagram than it needs: the member is the one that speaks the protocol.

pub mod quic;
pub mod radius;
pub mod sip;
mod train;

use weir_http::message::Span;

pub use train::{Flow, TRAIN_BYTES_MAX, Train};

/// Bytes `start..end` of a datagram, which has at most 64 KiB.
fn span(start: usize, end: usize) -> Span {
    debug_assert!(start <= end && u32::try_from(end).is_ok());
    Span { start: start as u32, end: end as u32 }
}
