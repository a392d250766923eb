//! The buffer for a batch of received datagrams.

use std::net::{Ipv4Addr, SocketAddr};

use weir_core::datagram::{Flow, Train};

use super::BATCH_MAX;

/// Size of the buffer of one message, in bytes: the maximum size of UDP data, and so of a train.
pub(crate) const SLOT_BYTES: usize = 65_536;

/// The properties of a received message, except for its bytes.
#[derive(Debug, Clone, Copy)]
struct ReceivedMessage {
    flow: Option<Flow>,
    length: usize,
    /// The size of each datagram in the message.
    size: usize,
}

const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const NOTHING: ReceivedMessage =
    ReceivedMessage { flow: Some(Flow { client: NOBODY, local: None }), length: 0, size: 1 };

/// The buffer for a batch of messages. Pages that have never been written use no memory.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    arrivals: Vec<ReceivedMessage>,
}

impl Inbox {
    /// An inbox for one batch.
    pub fn new() -> Self {
        Self { bytes: vec![0; BATCH_MAX * SLOT_BYTES], arrivals: vec![NOTHING; BATCH_MAX] }
    }

    /// Whether this is a placeholder, because the inbox is in use.
    pub fn is_lent(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// The buffer of each message.
    pub fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(SLOT_BYTES)
    }

    /// Records a received message: its sender, its length, and the size of its datagrams if there are several.
    pub fn note(&mut self, slot: usize, flow: Option<Flow>, length: usize, size: Option<usize>) {
        let size = size.filter(|size| *size > 0).unwrap_or(length).max(1);
        let arrival = ReceivedMessage { flow, length: length.min(SLOT_BYTES), size };
        if let Some(noted) = self.arrivals.get_mut(slot) {
            *noted = arrival;
        }
    }

    /// The first `count` messages.
    pub fn trains(&self, count: usize) -> impl Iterator<Item = (Option<Flow>, Train<'_>)> {
        let slots = self.bytes.chunks_exact(SLOT_BYTES).zip(&self.arrivals).take(count);
        slots.map(|(bytes, arrival)| {
            let train = Train { bytes: &bytes[..arrival.length], size: arrival.size };
            (arrival.flow, train)
        })
    }
}
