//! Pipes: bytes go from socket to socket without a copy through this program (splice(2)).
//!
//! | state | holds | operations |
//! |---|---|---|
//! | [`Empty`] | nothing | filled from a socket, given back to the pool |
//! | [`Filled`] | bytes of one connection | drained into a socket, dropped |
//!
//! Each step takes the pipe and returns it in its new state. The pool takes only [`Empty`] pipes, and a dropped [`Filled`]
//! one is closed: a reused pipe cannot carry bytes of one connection to another.
//! A pipe is filled only when it is empty. So EAGAIN means that the source has no data, never that the pipe is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::io::Errno;

use crate::kernel::{Descriptor, Kernel, Pipe};

/// Pipes that a loop may have open, where its limit of descriptors is large.
const PIPES_MAX: usize = 256;
/// One pipe per this many descriptors, unless configured otherwise.
const DESCRIPTORS_PER_PIPE: usize = 64;
/// Descriptors of a pipe.
pub const DESCRIPTORS_OF_A_PIPE: usize = 2;
/// Empty pipes that are kept open.
const SPARES_MAX: usize = 16;
/// After a pipe could not be opened, no other is tried for this long.
const REST_MS: u64 = 1_000;

/// An open pipe. It is counted until it is closed.
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

/// A pipe with nothing in it.
#[derive(Debug)]
pub struct Empty(Open);

/// A pipe with bytes of one connection in it; dropped, they are gone and it is closed.
#[derive(Debug)]
pub struct Filled {
    open: Open,
    bytes: usize,
}

/// The result of filling a pipe.
#[derive(Debug)]
pub enum Fill {
    /// Bytes came.
    Bytes(Filled),
    /// The socket has no data now, or none before urgent data.
    Nothing(Empty),
    /// Its peer has ended, perhaps behind urgent data.
    End(Empty),
    /// It is broken.
    Failure(Empty, Errno),
    /// Its bytes cannot be moved; it can still be read.
    Unable(Empty),
}

/// The state of a pipe after draining.
#[derive(Debug)]
pub enum Drain {
    /// Nothing is in it.
    All(Empty),
    /// The socket takes no more now.
    Rest(Filled),
    /// The socket is broken.
    Failure(Filled, Errno),
}

impl Empty {
    /// Moves received data of a socket, at most `bytes_max`.
    pub fn fill(self, from: &Descriptor, bytes_max: usize) -> Fill {
        loop {
            return match self.0.pipe.fill(from, bytes_max) {
                Ok(0) => Fill::End(self),
                Ok(bytes) => Fill::Bytes(Filled { open: self.0, bytes }),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Fill::Nothing(self),
                // These are of the call: it is not allowed, not there, or has no memory.
                Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::NOMEM) => {
                    Fill::Unable(self)
                }
                Err(error) => Fill::Failure(self, error),
            };
        }
    }
}

impl Filled {
    /// Bytes in it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Moves data until the pipe is empty or the socket is full: only a full socket reports when it has room again.
    /// Returns how many bytes it accepted.
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

/// The pipes of a loop.
#[derive(Debug)]
pub struct Pipes {
    spares: Vec<Empty>,
    /// Open pipes, spares among them.
    open: Arc<AtomicUsize>,
    open_max: usize,
    /// None can be opened before.
    rests_until_ms: u64,
}

impl Pipes {
    /// None is open, and as many may be as suits a limit of descriptors.
    pub fn within(descriptors_max: usize) -> Self {
        Self {
            spares: Vec::new(),
            open: Arc::default(),
            open_max: open_max(descriptors_max),
            rests_until_ms: 0,
        }
    }

    /// A pipe; `None`: the limit is reached, or the kernel has none, or only small ones.
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
                // Bytes are copied meanwhile: nothing is lost by it.
                self.rests_until_ms = now_ms + REST_MS;
                None
            }
        }
    }

    /// Takes a pipe back, to be used by any connection.
    pub fn give(&mut self, pipe: Empty) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(pipe);
        }
    }

    /// Pipes that are open.
    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Sets how many may be open.
    #[cfg(test)]
    pub fn limit(&mut self, open_max: usize) {
        self.open_max = open_max;
    }
}

/// Pipes that there may be within a limit of descriptors.
pub fn open_max(descriptors_max: usize) -> usize {
    (descriptors_max / DESCRIPTORS_PER_PIPE).min(PIPES_MAX)
}
