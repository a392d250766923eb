//! Connections of clients and members.

use std::io;
use std::task::Poll;

use weir_event_loop::memory::{self, Peer, Readiness};
use weir_tagged::clock::Moment;
use weir_tagged::link::{Stream, Unasked};

use crate::tasks::Waits;

/// The simulated time.
pub fn now() -> Moment {
    Moment(memory::now_us())
}

/// A task's end of a connection.
#[derive(Debug)]
pub struct Connection {
    peer: Peer,
    task: u32,
    waits: Waits,
}

impl Connection {
    /// The connection of this task.
    pub fn new(peer: Peer, task: u32, waits: Waits) -> Self {
        Self { peer, task, waits }
    }
}

impl Stream for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.peer.read(into)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.peer.write(bytes)
    }

    fn finish(&mut self) {
        self.peer.finish();
    }

    fn reset_on_close(&mut self) {
        self.peer.reset_on_close();
    }

    fn is_delivered(&self) -> bool {
        self.peer.is_delivered()
    }

    fn take_nothing(&mut self, takes_nothing: bool) {
        self.peer.take_nothing(takes_nothing);
    }

    fn say_unasked(&mut self, tail: &[u8], surplus: &[u8]) -> bool {
        self.peer.say_unasked(tail, surplus)
    }

    fn unasked(&self) -> Option<Unasked> {
        let unasked = self.peer.unasked()?;
        Some(match (unasked.is_ignored, unasked.is_crossed) {
            (true, _) => Unasked::Ignored,
            (false, true) => Unasked::Crossed,
            (false, false) => Unasked::Heeded,
        })
    }

    fn poll_wait(&mut self, wants_read: bool, wants_write: bool, until: Moment) -> Poll<()> {
        let wants = Readiness { read: wants_read, write: wants_write };
        if now() >= until || self.peer.is_ready(wants, self.task) {
            return Poll::Ready(());
        }
        self.waits.wait(self.task, until.0);
        Poll::Pending
    }
}

/// Waits until this time.
pub async fn sleep(task: u32, waits: &Waits, until_us: u64) {
    std::future::poll_fn(|_| {
        if memory::now_us() >= until_us {
            return Poll::Ready(());
        }
        waits.wait(task, until_us);
        Poll::Pending
    })
    .await;
}
