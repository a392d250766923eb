//! One socket: its state and its data.

use std::io::IoSlice;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use weir_tls::Session;

use crate::bounds::READ_BUFFER_BYTES;
use crate::kernel::Descriptor;
use crate::output::Output;
use crate::pace::Straight;
use crate::pipes::{Drain, Pipes};
use crate::timers::Entry;
use crate::token::{Owner, Token};

/// Where a socket is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket in this slot.
    Free,
    /// Accepts connections.
    Listening,
    /// Wakes the loop; read by the handler.
    Waking,
    /// Receives datagrams.
    Datagrams,
    /// Being opened.
    Connecting,
    /// Open.
    Open,
    /// Sends the queued data, then closes.
    Closing,
    /// Sends the queued data, then its end, then drops arriving data until the peer's end.
    Lingering,
    /// Sends the queued data, then closes with a reset when the peer has everything.
    Resetting,
    /// A write failed; this is handled after the current event.
    Broken(Errno),
    /// A write failed; earlier data of the peer is delivered, then the handler gets the error.
    Draining(Errno),
}

impl State {
    /// Whether the handler has finished the socket.
    pub fn is_leaving(self) -> bool {
        matches!(self, Self::Closing | Self::Lingering | Self::Resetting)
    }

    /// Whether the handler gets arriving data.
    pub fn is_delivered(self) -> bool {
        matches!(self, Self::Open | Self::Draining(_))
    }
}

#[derive(Debug)]
pub struct Socket {
    pub fd: Option<Descriptor>,
    pub owner: Owner,
    pub generation: u32,
    pub state: State,
    /// There may be something to read.
    pub readable: bool,
    /// The kernel said that the peer's end, an error or urgent data is near: short reads prove nothing.
    pub alert: bool,
    /// The handler has paused the delivery of data.
    pub paused: bool,
    /// Bytes that are read of it at once: see [`Self::is_read_as_usual`].
    pub read_bytes_max: u32,
    /// Whether it is in `EventLoop::ready`.
    pub in_ready: bool,
    pub output: Option<Box<Output>>,
    /// State for TLS.
    pub secure: Option<Box<Secure>>,
    /// Arriving data may go directly to another socket.
    pub straight: Option<Box<Straight>>,
    /// The number of bytes that the kernel has accepted; for a listener, the turn after the last accept.
    pub sent_bytes: u64,
    /// The part of them that the peer had acknowledged at the last query.
    pub taken_bytes: u64,
    /// When the peer was last seen to take bytes.
    pub progress_ms: u64,
    /// State of a finished socket.
    pub leaving: Leaving,
    pub timer: Entry,
}

/// How a socket is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As much at a time as fits in the buffer.
    Usual,
    /// At most this many bytes per turn, so that other sockets get their turn: the handler needs time for the data.
    Slices(usize),
    /// Arriving data may go directly to this socket: the handler only counts it. The handler may still receive data,
    /// and sends it there. Nothing else is sent there meanwhile, and both sockets are plain.
    Straight(Token),
}

impl Socket {
    /// From now on it is read like that.
    pub fn read_as(&mut self, reading: Reading) {
        self.straight = None;
        self.read_bytes_max = match reading {
            Reading::Usual => READ_BUFFER_BYTES as u32,
            Reading::Slices(bytes) => bytes.clamp(1, READ_BUFFER_BYTES) as u32,
            Reading::Straight(_) if self.secure.is_some() => READ_BUFFER_BYTES as u32,
            Reading::Straight(sink) => {
                self.straight = Some(Box::new(Straight::to(sink)));
                u32::MAX
            }
        };
    }

    /// Whether nothing is to be known before it is read: most are.
    #[inline(always)]
    pub fn is_read_as_usual(&self) -> bool {
        self.read_bytes_max as usize == READ_BUFFER_BYTES
    }

    /// Whether it is not read: it is paused, or has ended.
    pub fn is_not_read(&self) -> bool {
        self.paused
            || self.state == State::Open && self.straight.as_ref().is_some_and(|it| it.has_ended())
    }

    /// Whether it is read in slices.
    pub fn is_read_in_slices(&self) -> bool {
        (self.read_bytes_max as usize) < READ_BUFFER_BYTES
    }

    /// Bytes that are read of it at once, where they are read.
    pub fn bytes_at_once(&self) -> usize {
        (self.read_bytes_max as usize).min(READ_BUFFER_BYTES)
    }

    /// Whether it accepts data of all clients of an address.
    pub fn is_listener(&self) -> bool {
        self.state == State::Listening || matches!(self.owner, Owner::DatagramListener(_))
    }

    /// There may be something to deliver without a word from the kernel.
    pub fn has_records(&self) -> bool {
        self.secure.as_ref().is_some_and(|secure| secure.has_records)
    }
}

/// A finished socket's part of [`Socket`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Leaving {
    /// A peer with queued bytes that makes no progress for this long is given up.
    pub timeout_ms: u32,
    /// When everything queued had been sent.
    pub since_ms: u64,
    /// When the peer last sent something.
    pub heard_ms: u64,
    /// The bytes that it has sent meanwhile.
    pub dropped_bytes: u32,
}

/// A secure socket's part of [`Socket`].
#[derive(Debug)]
pub struct Secure {
    pub session: Session,
    /// Received data that was not used yet: part of a record, or data from before a pause.
    pub input: Vec<u8>,
    /// There may be whole records in `input`.
    pub has_records: bool,
    /// More data was received than is being delivered.
    pub has_more: bool,
    /// The peer has said that it will send nothing more.
    pub has_ended: bool,
    /// We have said so.
    pub is_closed: bool,
}

/// The result of one read.
pub enum Read {
    Bytes(usize),
    End,
    Nothing,
    Failure(Errno),
}

impl Socket {
    /// Records readiness from an event.
    #[inline(always)]
    pub fn note(&mut self, flags: EventFlags) {
        let alerts = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR | EventFlags::PRI;
        if flags.intersects(alerts) {
            (self.readable, self.alert) = (true, true);
        } else if flags.contains(EventFlags::IN) {
            self.readable = true;
        }
    }

    /// Receives once into `scratch`, and notes whether there may be more.
    #[inline(always)]
    pub fn receive(&mut self, scratch: &mut [u8], flags: RecvFlags) -> Read {
        let Some(fd) = &self.fd else {
            return Read::Nothing;
        };
        let mut outcome = fd.receive(scratch, flags);
        while outcome == Err(Errno::INTR) {
            outcome = fd.receive(scratch, flags);
        }
        match outcome {
            Ok(count) if count > 0 => {
                // A short read emptied the socket, and the next byte makes a new edge. But if the peer's end came
                // together with the data, its edge has passed already; the same holds for data behind urgent data, at
                // which a read stops.
                self.readable = (count == scratch.len()) | self.alert;
                Read::Bytes(count)
            }
            outcome => self.received_nothing(outcome),
        }
    }

    /// The meaning of a read without bytes.
    #[inline(never)]
    fn received_nothing(&mut self, outcome: Result<usize, Errno>) -> Read {
        self.readable = false;
        match outcome {
            Ok(_) => Read::End,
            Err(Errno::AGAIN) => Read::Nothing,
            Err(error) => Read::Failure(error),
        }
    }

    /// One non-blocking write; a full socket counts as nothing written.
    pub fn write(&self, parts: &[IoSlice<'_>], flags: SendFlags) -> Result<usize, Errno> {
        let flags = flags | SendFlags::NOSIGNAL;
        let Some(fd) = &self.fd else {
            return Err(Errno::BADF);
        };
        loop {
            match fd.send(parts, flags) {
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Sends the queued data, a pipe first, as far as the socket accepts it. Returns whether it accepted any.
    pub fn send_queued(&mut self, output: &mut Output, pipes: &mut Pipes) -> Result<bool, Errno> {
        let before_bytes = self.sent_bytes;
        if let (Some(pipe), Some(fd)) = (output.pipe.take(), &self.fd) {
            let (sent, drained) = pipe.drain(fd);
            self.sent_bytes += sent as u64;
            match drained {
                Drain::All(pipe) => pipes.give(pipe),
                Drain::Rest(rest) => {
                    output.pipe = Some(rest);
                    return Ok(sent > 0);
                }
                Drain::Failure(rest, error) => {
                    output.pipe = Some(rest);
                    return Err(error);
                }
            }
        }
        if !output.pending().is_empty() {
            let count = self.write(&[IoSlice::new(output.pending())], SendFlags::empty())?;
            output.advance(count);
            self.sent_bytes += count as u64;
        }
        Ok(self.sent_bytes > before_bytes)
    }

    /// Asks the kernel how much the peer has not acknowledged, and whether it has acknowledged some since the last
    /// query.
    pub fn note_taken(&mut self) -> (u64, bool) {
        let waiting = self.fd.as_ref().map_or(0, Descriptor::unacknowledged_bytes);
        let taken = self.sent_bytes.saturating_sub(waiting);
        let took_more = taken > self.taken_bytes;
        self.taken_bytes = self.taken_bytes.max(taken);
        (waiting, took_more)
    }
}

#[cfg(all(test, not(feature = "simulation"), target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_no_larger_than_today() {
        let (size, today) = (size_of::<Socket>(), 128);
        assert!(
            size <= today,
            "a socket has {size} bytes, and it had {today}: box what few sockets need"
        );
        assert!(size == today, "a socket has {size} bytes now: lower the number here from {today}");
    }
}
