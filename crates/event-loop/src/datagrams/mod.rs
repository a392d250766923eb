//! Datagrams on their way between the kernel and the loop: how they are read and sent in batches, and where they stay
//! meanwhile.

mod inbox;
mod messages;
mod outbox;

pub(crate) use inbox::Inbox;
pub(crate) use messages::{UDP_GRO, forget_errors, receive, send, took_too_long};
pub(crate) use outbox::{Outbox, Outgoing};

/// Messages that are read of a listener at once, or sent to one.
pub(crate) const BATCH_MAX: usize = 32;

/// State for datagrams; a loop has it after its first socket for datagrams.
#[derive(Debug)]
pub(crate) struct Desk {
    pub inbox: Inbox,
    pub outbox: Outbox,
    /// Datagrams that the kernel did not accept, since the last query.
    pub lost: u64,
}

impl Desk {
    pub fn new() -> Self {
        Self { inbox: Inbox::new(), outbox: Outbox::default(), lost: 0 }
    }

    /// After a panic: the handler that looked at the inbox has not given it back.
    pub fn restore(&mut self) {
        if self.inbox.is_lent() {
            self.inbox = Inbox::new();
        }
    }
}
