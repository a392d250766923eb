//! Where a batch of datagrams is received.

use std::net::{Ipv4Addr, SocketAddr};

use weir_core::datagram::{Flow, Train};

use super::BATCH_MAX;

/// Size of one message: the most that UDP can carry, and so the longest train.
pub(crate) const SLOT_BYTES: usize = 65_536;

/// Facts about a message besides its bytes.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    flow: Option<Flow>,
    length: usize,
    /// The size of each datagram in it.
    size: usize,
}

const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const NOTHING: Arrival =
    Arrival { flow: Some(Flow { client: NOBODY, local: None }), length: 0, size: 1 };

/// Room for a batch of messages. Pages that nothing was received in are not there.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    arrivals: Vec<Arrival>,
}

impl Inbox {
    /// An inbox for one batch.
    pub fn new() -> Self {
        Self { bytes: vec![0; BATCH_MAX * SLOT_BYTES], arrivals: vec![NOTHING; BATCH_MAX] }
    }

    /// Whether this is the placeholder of an inbox that is in use.
    pub fn is_lent(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// The room of each message.
    pub fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(SLOT_BYTES)
    }

    /// Records a received message: its sender, its length, and the size of its datagrams if they are several.
    pub fn note(&mut self, slot: usize, flow: Option<Flow>, length: usize, size: Option<usize>) {
        let size = size.filter(|size| *size > 0).unwrap_or(length).max(1);
        let arrival = Arrival { flow, length: length.min(SLOT_BYTES), size };
        if let Some(noted) = self.arrivals.get_mut(slot) {
            *noted = arrival;
        }
    }

    /// The first messages, up to this count.
    pub fn trains(&self, count: usize) -> impl Iterator<Item = (Option<Flow>, Train<'_>)> {
        let slots = self.bytes.chunks_exact(SLOT_BYTES).zip(&self.arrivals).take(count);
        slots.map(|(bytes, arrival)| {
            let train = Train { bytes: &bytes[..arrival.length], size: arrival.size };
            (arrival.flow, train)
        })
    }
}
