//! Datagrams to clients, which are sent at the end of the turn.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_core::datagram::{Flow, Train};

use crate::token::Token;

/// Maximum number of stored bytes before they are sent.
const OUTBOX_BYTES_MAX: usize = 256 * 1024;
const OUTBOX_TRAINS_MAX: usize = 256;

const NOWHERE: Flow =
    Flow { client: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0), local: None };

/// A train to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutgoingTrain<'a> {
    pub flow: Flow,
    bytes: &'a [u8],
    size: usize,
}

impl<'a> OutgoingTrain<'a> {
    /// A placeholder in a batch.
    pub const NOTHING: Self = Self { flow: NOWHERE, bytes: b"", size: 1 };

    /// The datagrams.
    pub fn train(&self) -> Train<'a> {
        Train { bytes: self.bytes, size: self.size }
    }

    /// A train for a client.
    pub fn to_client(flow: Flow, train: Train<'a>) -> Self {
        Self { flow, bytes: train.bytes, size: train.size }
    }

    /// A train for the member to which the socket is connected.
    pub fn to_member(train: Train<'a>) -> Self {
        Self { flow: NOWHERE, bytes: train.bytes, size: train.size }
    }

    /// One datagram of a train.
    pub fn alone(whole: &Self, bytes: &'a [u8]) -> Self {
        Self { flow: whole.flow, bytes, size: bytes.len().max(1) }
    }
}

#[derive(Debug)]
struct Entry {
    listener: Token,
    flow: Flow,
    start: usize,
    length: usize,
    size: usize,
}

/// Trains that are stored until the end of the turn.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a train. Returns whether a limit is reached, so that the outbox must be sent.
    pub fn push(&mut self, listener: Token, flow: Flow, train: Train<'_>) -> bool {
        for part in train.parts() {
            let (start, length) = (self.bytes.len(), part.bytes.len());
            self.bytes.extend_from_slice(part.bytes);
            self.entries.push(Entry { listener, flow, start, length, size: part.size });
        }
        self.bytes.len() >= OUTBOX_BYTES_MAX || self.entries.len() >= OUTBOX_TRAINS_MAX
    }

    /// Fills a batch with trains for one listener, in order, starting at this index. Returns the listener and the number of
    /// trains; `None`: no trains are left.
    pub fn batch<'a>(
        &'a self,
        at: usize,
        into: &mut [OutgoingTrain<'a>],
    ) -> Option<(Token, usize)> {
        let listener = self.entries.get(at)?.listener;
        let entries = self.entries[at..].iter().take_while(|entry| entry.listener == listener);
        let mut count = 0;
        for (place, entry) in into.iter_mut().zip(entries) {
            let bytes = &self.bytes[entry.start..entry.start + entry.length];
            *place = OutgoingTrain { flow: entry.flow, bytes, size: entry.size };
            count += 1;
        }
        Some((listener, count))
    }

    /// Removes all trains.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}
