//! Sessions over sockets. Each has a thread, which waits in `poll`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use rustix::net::{AddressFamily, SocketType, socket};
use weir_tagged::clock::{Clock, Moment};
use weir_tagged::link::{Link, Stream};
use weir_tagged::world::World;

/// Receive buffer of a side that reads little at a time.
pub const NARROW_BYTES: usize = 8 * 1024;

/// A clock of the real time.
pub fn clock() -> Clock {
    let begun = Instant::now();
    Clock::new(move || Moment(begun.elapsed().as_micros() as u64))
}

/// Runs a session to its end. The session blocks in [`Stream::poll_wait`], so one poll completes it.
pub fn block_on<T>(session: impl Future<Output = T>) -> T {
    match pin!(session).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a session over sockets waits by itself"),
    }
}

/// Connects to a virtual server.
pub fn connect(address: SocketAddr, world: &World) -> io::Result<Link> {
    link(TcpStream::connect(address)?, world)
}

/// Connects with a small receive buffer, so that a sender of much data must wait.
pub fn connect_narrow(address: SocketAddr, world: &World) -> io::Result<Link> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_socket_recv_buffer_size(&socket, NARROW_BYTES)?;
    rustix::net::connect(&socket, &address)?;
    link(TcpStream::from(socket), world)
}

/// A connection over this socket.
pub fn link(stream: TcpStream, world: &World) -> io::Result<Link> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let socket = Socket { stream, clock: world.clock.clone() };
    Ok(Link::over(Box::new(socket), world))
}

#[derive(Debug)]
struct Socket {
    stream: TcpStream,
    clock: Clock,
}

impl Stream for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn finish(&mut self) {
        // An error means that the peer has closed.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn reset_on_close(&mut self) {
        let _ = set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    fn poll_wait(&mut self, wants_read: bool, wants_write: bool, until: Moment) -> Poll<()> {
        let time = until - self.clock.now();
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wants_read);
        flags.set(PollFlags::OUT, wants_write);
        if flags.is_empty() {
            // Without requested events, `poll` would still return at once after a hang-up.
            std::thread::sleep(time);
            return Poll::Ready(());
        }
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut polled = [PollFd::new(&self.stream, flags)];
        // The result does not matter: the session reads the state of the socket afterwards.
        let _ = poll(&mut polled, Some(&timeout));
        Poll::Ready(())
    }
}
