//! Datagrams between the kernel and the loop: receiving and sending in batches, and their buffers.

mod inbox;
mod messages;
mod outbox;

pub(crate) use inbox::Inbox;
pub(crate) use messages::{UDP_GRO, forget_errors, receive, send, took_too_long};
pub(crate) use outbox::{Outbox, OutgoingTrain};

/// Maximum number of messages in one batch of a listener.
pub const BATCH_MAX: usize = 32;

/// State for datagrams. A loop creates it with its first datagram socket.
#[derive(Debug)]
pub(crate) struct DatagramState {
    pub inbox: Inbox,
    pub outbox: Outbox,
    /// The number of datagrams that the kernel did not accept since the last query.
    pub lost: u64,
}

impl DatagramState {
    pub fn new() -> Self {
        Self { inbox: Inbox::new(), outbox: Outbox::default(), lost: 0 }
    }

    /// Replaces the inbox after a panic of the handler that was using it.
    pub fn restore(&mut self) {
        if self.inbox.is_lent() {
            self.inbox = Inbox::new();
        }
    }
}
