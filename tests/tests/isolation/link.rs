//! A connection that is read and written at the same time, by one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use rustix::net::{AddressFamily, SocketType, socket};

/// Bytes read at a time.
const READ_BYTES: usize = 32 * 1024;
/// Receive buffer of who takes little at a time.
pub const NARROW_BYTES: usize = 8 * 1024;
/// What is kept of what came, to be told with a finding.
const RECENT_BYTES: usize = 4 * 1024;

/// How the other side has ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order.
    Fin,
    /// Broken off.
    Reset,
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    input: Vec<u8>,
    start: usize,
    out: Vec<u8>,
    out_at: usize,
    /// How the other side has ended it; what came before is in the input.
    end: Option<End>,
    /// Nothing that is sent arrives any more.
    is_deaf: bool,
    /// A write has met the reset, which the system tells once: reading meets an end then.
    was_reset: bool,
    /// When the last byte passed, in either direction.
    moved: Instant,
    /// Until when what has come stays where it is.
    holds_until: Option<Instant>,
    recent: Vec<u8>,
    /// Bytes that came.
    pub received: usize,
}

impl Link {
    /// Connects.
    pub fn connect(address: SocketAddr) -> std::io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Connects with a small receive buffer: who sends much has to wait.
    pub fn connect_narrow(address: SocketAddr) -> std::io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        set_socket_recv_buffer_size(&socket, NARROW_BYTES)?;
        rustix::net::connect(&socket, &address)?;
        Self::over(TcpStream::from(socket))
    }

    /// Over this socket.
    pub fn over(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            start: 0,
            out: Vec::new(),
            out_at: 0,
            end: None,
            is_deaf: false,
            was_reset: false,
            moved: Instant::now(),
            holds_until: None,
            recent: Vec::new(),
            received: 0,
        })
    }

    /// What has come and was not taken yet.
    pub fn input(&self) -> &[u8] {
        &self.input[self.start..]
    }

    /// So many bytes of the input are done with.
    pub fn take(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.input.len() {
            self.input.clear();
            self.start = 0;
        }
    }

    /// Bytes that wait to be sent.
    pub fn queued(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// Where bytes are put that are to be sent.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// How the other side has ended it, once all that came before has been taken.
    pub fn ended(&self) -> Option<End> {
        self.end.filter(|_| self.input().is_empty())
    }

    /// The same, whatever is left.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether what is sent still goes anywhere.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// How long nothing has passed.
    pub fn still(&self) -> Duration {
        self.moved.elapsed()
    }

    /// The last bytes that came.
    pub fn recent(&self) -> &[u8] {
        &self.recent
    }

    /// Sends as much as goes without waiting.
    pub fn flush(&mut self) {
        while self.queued() > 0 && !self.is_deaf {
            match self.stream.write(&self.out[self.out_at..]) {
                Ok(count) => {
                    self.out_at += count;
                    self.moved = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What the other side has sent before is still to be read.
                Err(error) => {
                    self.is_deaf = true;
                    self.was_reset |= error.kind() == ErrorKind::ConnectionReset;
                }
            }
        }
        self.out.clear();
        self.out_at = 0;
    }

    /// Reads nothing for so long.
    pub fn hold(&mut self, time: Duration) {
        self.holds_until = Some(Instant::now() + time);
    }

    /// How long nothing is read.
    fn held(&self) -> Option<Duration> {
        self.holds_until?.checked_duration_since(Instant::now())
    }

    /// Reads once, without waiting; whether anything came.
    pub fn fill(&mut self) -> bool {
        if self.end.is_some() || self.held().is_some() {
            return false;
        }
        if self.start > 0 {
            self.input.drain(..self.start);
            self.start = 0;
        }
        let length = self.input.len();
        self.input.resize(length + READ_BYTES, 0);
        let read = self.stream.read(&mut self.input[length..]);
        self.input.truncate(length + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) if self.was_reset => self.end = Some(End::Reset),
            Ok(0) => self.end = Some(End::Fin),
            Ok(count) => {
                self.moved = Instant::now();
                self.received += count;
                self.remember(length);
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return false;
            }
            Err(_) => self.end = Some(End::Reset),
        }
        true
    }

    fn remember(&mut self, from: usize) {
        let fresh = &self.input[from..];
        let fresh = &fresh[fresh.len().saturating_sub(RECENT_BYTES)..];
        let surplus = (self.recent.len() + fresh.len()).saturating_sub(RECENT_BYTES);
        self.recent.drain(..surplus.min(self.recent.len()));
        self.recent.extend_from_slice(fresh);
    }

    /// Sends what there is and waits until something comes, something can be sent, or the time is over.
    pub fn turn(&mut self, at_most: Duration) {
        self.flush();
        if self.fill() {
            return;
        }
        let mut flags = PollFlags::empty();
        let held = self.held();
        let at_most = held.map_or(at_most, |held| held.min(at_most));
        if self.end.is_none() && held.is_none() {
            flags |= PollFlags::IN;
        }
        if self.queued() > 0 {
            flags |= PollFlags::OUT;
        }
        if flags.is_empty() {
            return std::thread::sleep(at_most);
        }
        let timeout = Timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let mut polled = [PollFd::new(&self.stream, flags)];
        // Interrupted or not: the next turn sees what there is.
        let _ = poll(&mut polled, Some(&timeout));
        self.flush();
        self.fill();
    }

    /// Sends FIN behind what was sent.
    pub fn finish(&mut self) {
        // The other side may be gone.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Lets it close with a reset.
    pub fn reset(&mut self) {
        let _ = set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Sends what is left, half-closes, and waits until the other side has ended, too; what still comes is dropped.
    pub fn close_in_order(&mut self, at_most: Duration) {
        let until = Instant::now() + at_most;
        while self.queued() > 0 && !self.is_deaf && Instant::now() < until {
            self.turn(Duration::from_millis(20));
            let length = self.input().len();
            self.take(length);
        }
        self.finish();
        while self.end.is_none() && Instant::now() < until {
            self.turn(Duration::from_millis(20));
            let length = self.input().len();
            self.take(length);
        }
    }
}
