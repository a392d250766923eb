//! Pipes move bytes from socket to socket without a copy through this process (splice(2)).
//!
//! | state | holds | operations |
//! |---|---|---|
//! | [`Empty`] | nothing | filled from a socket, returned to the pool |
//! | [`Filled`] | bytes of one connection | drained into a socket, dropped |
//!
//! Each operation consumes the pipe and returns it in its new state. The pool accepts only [`Empty`] pipes, and a [`Filled`]
//! pipe is closed on drop, so a reused pipe cannot contain bytes of another connection. Only an empty pipe is filled. So
//! EAGAIN means that the source has no data, never that the pipe is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::io::Errno;

use crate::bounds::Bulk;
use crate::kernel::{Descriptor, Kernel, Pipe};

/// Maximum number of open pipes per event loop.
const PIPES_MAX: usize = 256;
/// One pipe may be open per this many descriptors of the limit.
const DESCRIPTORS_PER_PIPE: usize = 64;
/// The descriptors that a pipe uses.
pub const DESCRIPTORS_OF_A_PIPE: usize = 2;
/// Maximum number of empty pipes that stay open for reuse.
const SPARES_MAX: usize = 16;
/// Pause after a failure to open a pipe.
const REST_MS: u64 = 1_000;

/// An open pipe. It counts as open until it is dropped.
#[derive(Debug)]
struct Open {
    pipe: Pipe,
    count: Arc<AtomicUsize>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Relaxed);
    }
}

/// An empty pipe.
#[derive(Debug)]
pub struct Empty(Open);

/// A pipe with bytes of one connection. On drop it is closed, and the bytes are discarded.
#[derive(Debug)]
pub struct Filled {
    open: Open,
    bytes: usize,
}

/// The result of filling a pipe.
#[derive(Debug)]
pub enum Fill {
    /// The pipe was filled.
    Bytes(Filled),
    /// The socket has no data, or none before urgent data.
    Nothing(Empty),
    /// The peer has ended its sending side, possibly after urgent data.
    End(Empty),
    /// The socket failed.
    Failure(Empty, Errno),
    /// This socket's data cannot be spliced; it can still be read.
    Unable(Empty),
}

/// The state of a pipe after draining.
#[derive(Debug)]
pub enum Drain {
    /// The pipe is empty.
    All(Empty),
    /// The socket accepts no more at present.
    Rest(Filled),
    /// The socket failed.
    Failure(Filled, Errno),
}

impl Empty {
    /// Moves received data of a socket into the pipe, at most `bytes_max`.
    pub fn fill(self, from: &Descriptor, bytes_max: usize) -> Fill {
        loop {
            return match self.0.pipe.fill(from, bytes_max) {
                Ok(0) => Fill::End(self),
                Ok(bytes) => Fill::Bytes(Filled { open: self.0, bytes }),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Fill::Nothing(self),
                // Errors of the call itself: splice is not supported or not permitted, or there is not enough memory.
                Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::NOMEM) => {
                    Fill::Unable(self)
                }
                Err(error) => Fill::Failure(self, error),
            };
        }
    }
}

impl Filled {
    /// The number of bytes in the pipe.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Moves bytes until the pipe is empty or the socket is full, because only a full socket later reports room. Returns the
    /// number of bytes that the socket accepted.
    pub fn drain(mut self, to: &Descriptor) -> (usize, Drain) {
        let all = self.bytes;
        while self.bytes > 0 {
            match self.open.pipe.drain(to, self.bytes) {
                Ok(count) if count > 0 => self.bytes = self.bytes.saturating_sub(count),
                Err(Errno::INTR) => {}
                Ok(_) | Err(Errno::AGAIN) => return (all - self.bytes, Drain::Rest(self)),
                Err(error) => return (all - self.bytes, Drain::Failure(self, error)),
            }
        }
        (all, Drain::All(Empty(self.open)))
    }
}

/// The pipes of an event loop.
#[derive(Debug)]
pub struct Pipes {
    /// Thresholds for bulk data, which is moved by pipes.
    pub bulk: Bulk,
    spares: Vec<Empty>,
    /// The number of open pipes, including spares.
    open: Arc<AtomicUsize>,
    open_max: usize,
    /// No pipe is opened before this time.
    rests_until_ms: u64,
}

impl Pipes {
    /// A pool without open pipes. Its maximum follows from the limit on descriptors.
    pub fn within(descriptors_max: usize, bulk: Bulk) -> Self {
        Self {
            bulk,
            spares: Vec::new(),
            open: Arc::default(),
            open_max: open_max(descriptors_max),
            rests_until_ms: 0,
        }
    }

    /// Returns an empty pipe; `None`: the maximum is reached, or the kernel offers none or only a small one.
    pub fn take(&mut self, kernel: &Kernel, now_ms: u64) -> Option<Empty> {
        if let Some(spare) = self.spares.pop() {
            return Some(spare);
        }
        if self.open.load(Relaxed) >= self.open_max || now_ms < self.rests_until_ms {
            return None;
        }
        match kernel.pipe() {
            Ok(pipe) => {
                self.open.fetch_add(1, Relaxed);
                Some(Empty(Open { pipe, count: Arc::clone(&self.open) }))
            }
            Err(_) => {
                // Until the next attempt, bytes are copied instead.
                self.rests_until_ms = now_ms + REST_MS;
                None
            }
        }
    }

    /// Returns an empty pipe to the pool.
    pub fn give(&mut self, pipe: Empty) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(pipe);
        }
    }

    /// The number of open pipes.
    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Sets the maximum number of open pipes.
    #[cfg(test)]
    pub fn limit(&mut self, open_max: usize) {
        self.open_max = open_max;
    }
}

/// The maximum number of pipes for a limit on descriptors.
pub fn open_max(descriptors_max: usize) -> usize {
    (descriptors_max / DESCRIPTORS_PER_PIPE).min(PIPES_MAX)
}
