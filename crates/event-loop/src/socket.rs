//! A socket: its state and its data.

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

/// The state of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket in this slot.
    Free,
    /// Accepts connections.
    Listening,
    /// Wakes the loop. The handler reads it.
    Waking,
    /// Receives datagrams.
    Datagrams,
    /// The connection is being opened.
    Connecting,
    /// The connection is open.
    Open,
    /// Sends the queued data, then closes.
    Closing,
    /// Sends the queued data and FIN, then drops arriving data until the peer's FIN.
    Lingering,
    /// Sends the queued data, then closes with a reset when the peer has acknowledged everything.
    Resetting,
    /// A write failed. It is handled after the current event.
    Broken(Errno),
    /// A write failed. Data that arrived before is delivered, then the handler receives the error.
    Draining(Errno),
}

impl State {
    /// The state of an open descriptor, which follows from its role.
    pub fn of(owner: Owner) -> Self {
        match owner {
            Owner::Control => Self::Waking,
            Owner::Listener(_) => Self::Listening,
            Owner::Client(_) | Owner::Member(_) => Self::Open,
            Owner::DatagramListener(_) | Owner::Session(_) | Owner::Nobody => Self::Datagrams,
        }
    }

    /// The events that the kernel reports of a socket that is registered in this state.
    pub fn events(self) -> EventFlags {
        match self {
            // EXCLUSIVE: if several workers share one listener (unix sockets), a connection wakes only one of them.
            // Level-triggered: accepting can pause and resume without bookkeeping.
            Self::Listening => EventFlags::IN | EventFlags::EXCLUSIVE,
            // Level-triggered: data that remains after a socket's share of the turn is reported again without bookkeeping.
            Self::Waking | Self::Datagrams => EventFlags::IN,
            _ => {
                let ends = EventFlags::PRI | EventFlags::RDHUP;
                EventFlags::IN | EventFlags::OUT | ends | EventFlags::ET
            }
        }
    }

    /// Whether the handler has finished with the socket.
    pub fn is_leaving(self) -> bool {
        matches!(self, Self::Closing | Self::Lingering | Self::Resetting)
    }

    /// Whether arriving data is delivered to the handler.
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
    /// Whether data, FIN or an error may be readable.
    pub readable: bool,
    /// Whether the kernel has reported FIN, an error or urgent data. A short read then does not mean that the socket is
    /// empty.
    pub alert: bool,
    /// Whether the handler has paused the delivery of data.
    pub paused: bool,
    /// Maximum size of a read in bytes; see [`Self::is_read_as_usual`].
    pub read_bytes_max: u32,
    /// Whether the socket is in the list of sockets that need attention.
    pub in_ready: bool,
    pub output: Option<Box<Output>>,
    /// State for TLS.
    pub secure: Option<Box<Secure>>,
    /// State for moving arriving data directly to another socket.
    pub straight: Option<Box<Straight>>,
    /// The number of bytes that the kernel has accepted; for a listener, the turn after the last accept.
    pub sent_bytes: u64,
    /// The number of these bytes that the peer had acknowledged at the last query.
    pub taken_bytes: u64,
    /// The time of the peer's last known progress in receiving data.
    pub progress_ms: u64,
    /// State of a finished socket.
    pub leaving: LingeringClose,
    pub timer: Entry,
}

/// How a socket is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Each read receives as much available data as fits into the buffer.
    Usual,
    /// At most this many bytes per turn, because the handler needs much time for the data, and other sockets must not wait.
    Slices(usize),
    /// Arriving data may be moved directly to this socket, and the handler receives only the number of bytes. Data that the
    /// handler does receive must be sent to this socket, and in this mode nothing else is sent to it. Both sockets are
    /// plain.
    Straight(Token),
}

impl Socket {
    /// Sets how the socket is read.
    pub fn read_as(&mut self, reading: ReadMode) {
        self.straight = None;
        self.read_bytes_max = match reading {
            ReadMode::Usual => READ_BUFFER_BYTES as u32,
            ReadMode::Slices(bytes) => bytes.clamp(1, READ_BUFFER_BYTES) as u32,
            ReadMode::Straight(_) if self.secure.is_some() => READ_BUFFER_BYTES as u32,
            ReadMode::Straight(sink) => {
                self.straight = Some(Box::new(Straight::to(sink)));
                u32::MAX
            }
        };
    }

    /// Whether the socket is read with the default settings, as most sockets are.
    #[inline(always)]
    pub fn is_read_as_usual(&self) -> bool {
        self.read_bytes_max as usize == READ_BUFFER_BYTES
    }

    /// Whether the socket is not read at present: it is paused, or its FIN was reported.
    pub fn is_not_read(&self) -> bool {
        self.paused
            || self.state == State::Open && self.straight.as_ref().is_some_and(|it| it.has_ended())
    }

    /// Whether reads are limited to slices.
    pub fn is_read_in_slices(&self) -> bool {
        (self.read_bytes_max as usize) < READ_BUFFER_BYTES
    }

    /// Size of a single read in bytes.
    pub fn bytes_at_once(&self) -> usize {
        (self.read_bytes_max as usize).min(READ_BUFFER_BYTES)
    }

    /// Whether the socket is a listener for connections or datagrams.
    pub fn is_listener(&self) -> bool {
        self.state == State::Listening || matches!(self.owner, Owner::DatagramListener(_))
    }

    /// Whether the socket belongs to a session of datagrams, or rests between two.
    pub fn is_of_session(&self) -> bool {
        self.state == State::Datagrams && !self.is_listener()
    }

    /// Whether data may be deliverable without an event from the kernel.
    pub fn has_records(&self) -> bool {
        self.secure.as_ref().is_some_and(|secure| secure.has_records)
    }
}

/// The part of [`Socket`] for a finished socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct LingeringClose {
    /// The socket is closed if a peer with queued data makes no progress for this time.
    pub timeout_ms: u32,
    /// The time when all queued data had been sent.
    pub since_ms: u64,
    /// The time of the last data from the peer.
    pub heard_ms: u64,
    /// The number of bytes that were dropped since the socket was finished.
    pub dropped_bytes: u32,
}

/// The part of [`Socket`] for a TLS socket.
#[derive(Debug)]
pub struct Secure {
    pub session: Session,
    /// Received data that was not processed yet: part of a record, or data from before a pause.
    pub input: Vec<u8>,
    /// Whether `input` may contain complete records.
    pub has_records: bool,
    /// Whether there is received data after the record that is being delivered.
    pub has_more: bool,
    /// Whether the peer has sent close_notify.
    pub has_ended: bool,
    /// Whether close_notify was sent.
    pub is_closed: bool,
}

/// The result of one read.
pub enum ReadResult {
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

    /// Receives once into `scratch`, and records whether more data may be available.
    #[inline(always)]
    pub fn receive(&mut self, scratch: &mut [u8], flags: RecvFlags) -> ReadResult {
        let Some(fd) = &self.fd else {
            return ReadResult::Nothing;
        };
        let mut outcome = fd.receive(scratch, flags);
        while outcome == Err(Errno::INTR) {
            outcome = fd.receive(scratch, flags);
        }
        match outcome {
            Ok(count) if count > 0 => {
                // A short read has emptied the socket, and the next byte causes another edge. But if FIN arrived together
                // with the data, its edge has passed already. The same holds for data after urgent data, because a read
                // stops there.
                self.readable = (count == scratch.len()) | self.alert;
                ReadResult::Bytes(count)
            }
            outcome => self.received_nothing(outcome),
        }
    }

    /// Interprets a read that returned no bytes.
    #[inline(never)]
    fn received_nothing(&mut self, outcome: Result<usize, Errno>) -> ReadResult {
        self.readable = false;
        match outcome {
            Ok(_) => ReadResult::End,
            Err(Errno::AGAIN) => ReadResult::Nothing,
            Err(error) => ReadResult::Failure(error),
        }
    }

    /// Makes one non-blocking write. A full socket counts as 0 written bytes.
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

    /// Sends the queued data, starting with the pipe, as far as the socket accepts it. Returns whether it accepted any.
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

    /// Queries the number of bytes that the peer has not acknowledged. Returns it, and whether the peer has acknowledged
    /// more since the last query.
    pub fn note_taken(&mut self) -> (u64, bool) {
        let waiting = self.fd.as_ref().map_or(0, Descriptor::unacknowledged_bytes);
        let taken = self.sent_bytes.saturating_sub(waiting);
        let took_more = taken > self.taken_bytes;
        self.taken_bytes = self.taken_bytes.max(taken);
        (waiting, took_more)
    }

    /// See [`EventLoop::patience_until_ms`](crate::EventLoop::patience_until_ms).
    pub fn patience_until_ms(&mut self, timeout_ms: u64, now_ms: u64) -> u64 {
        let (waiting, took_more) = self.note_taken();
        if self.output.is_some() {
            if took_more {
                self.progress_ms = now_ms;
            }
            self.progress_ms + timeout_ms
        } else if took_more && waiting > 0 {
            now_ms + timeout_ms
        } else {
            0
        }
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
