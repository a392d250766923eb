//! UDP members and clients, and UDP ports for the program under test.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::STEP_TIMEOUT;

/// Ports below those that the kernel assigns for port 0.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// Interval at which a member checks whether it has to stop.
const LOOK: Duration = Duration::from_millis(20);

/// A UDP port that no other scenario uses during the lease. The lease holds the TCP port of the same number: a UDP
/// socket would receive a part of the datagrams.
#[derive(Debug)]
pub struct UdpLease {
    _holder: TcpListener,
    address: SocketAddr,
}

impl UdpLease {
    /// Leases a port on 127.0.0.1.
    #[track_caller]
    pub fn new() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let count = PORTS.end - PORTS.start;
        let start = (std::process::id() as u16).wrapping_mul(37) % count;
        for _ in 0..count {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let port = PORTS.start + (start.wrapping_add(step)) % count;
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let Ok(holder) = TcpListener::bind(address) else { continue };
            // The port must be free on every address, for listeners there.
            if UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], port))).is_ok() {
                return Self { _holder: holder, address };
            }
        }
        panic!("no free port of UDP")
    }

    /// The leased address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Default for UdpLease {
    fn default() -> Self {
        Self::new()
    }
}

/// Sender and payload of a datagram.
pub type Seen = (SocketAddr, Vec<u8>);

/// A member in its own thread. A closure returns the answers to each datagram.
#[derive(Debug)]
pub struct DatagramMember {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Seen>>>,
    thread: Option<JoinHandle<()>>,
}

impl DatagramMember {
    /// A member that sends the answers from the closure.
    #[track_caller]
    pub fn new(answers: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), answers)
    }

    /// A member at this address that sends the answers from the closure.
    #[track_caller]
    pub fn at(
        address: SocketAddr,
        answers: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind(address).expect("a port of UDP");
        socket.set_read_timeout(Some(LOOK)).expect("a timeout");
        let address = socket.local_addr().expect("an address");
        let (stopping, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
        let (is_stopping, sees): (_, Arc<Mutex<Vec<_>>>) =
            (Arc::clone(&stopping), Arc::clone(&seen));
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while !is_stopping.load(Ordering::Acquire) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let bytes = &buffer[..length];
                sees.lock().expect("no panic").push((from, bytes.to_vec()));
                for answer in answers(bytes) {
                    // The other side may have closed.
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Self { address, stopping, seen, thread: Some(thread) }
    }

    /// A member that answers with its name and the received text.
    #[track_caller]
    pub fn echo(name: &'static str) -> Self {
        Self::new(move |bytes| vec![[name.as_bytes(), b" ", bytes].concat()])
    }

    /// A member that receives datagrams and never answers.
    #[track_caller]
    pub fn silent() -> Self {
        Self::new(|_| Vec::new())
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Senders and payloads of all received datagrams.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}

impl Drop for DatagramMember {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client with its own port.
#[derive(Debug)]
pub struct DatagramClient {
    socket: UdpSocket,
}

impl DatagramClient {
    /// A client of this server.
    #[track_caller]
    pub fn of(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port of UDP");
        socket.connect(server).expect("the server's address");
        socket.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
        Self { socket }
    }

    /// A client that was answered, after a reload that has brought the server: each worker takes it up in its own time, and
    /// what comes before is lost.
    #[track_caller]
    pub fn answered(server: SocketAddr, text: &str) -> (Self, String) {
        const PATIENCE: Duration = Duration::from_secs(1);
        let begun = Instant::now();
        while begun.elapsed() < STEP_TIMEOUT {
            let client = Self::of(server);
            client.send(text);
            if let Some(answer) = client.receive_within(PATIENCE) {
                return (client, String::from_utf8_lossy(&answer).into_owned());
            }
        }
        panic!("nobody answers at {server}");
    }

    /// The client's address.
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("an address")
    }

    /// Sends a datagram.
    #[track_caller]
    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        // The next call reports an earlier ICMP error.
        let sent = self.socket.send(bytes.as_ref()).or_else(|_| self.socket.send(bytes.as_ref()));
        sent.expect("sending");
    }

    /// Receives the next datagram.
    #[track_caller]
    pub fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_536];
        let length = self.socket.recv(&mut buffer).expect("a datagram in time");
        buffer.truncate(length);
        buffer
    }

    /// Sends a text and returns the answer.
    #[track_caller]
    pub fn ask(&self, text: &str) -> String {
        self.send(text);
        String::from_utf8_lossy(&self.receive()).into_owned()
    }

    /// The datagram that arrives within this time; `None` otherwise.
    #[track_caller]
    pub fn receive_within(&self, time: Duration) -> Option<Vec<u8>> {
        self.socket.set_read_timeout(Some(time)).expect("a timeout");
        let mut buffer = vec![0; 65_536];
        let received = self.socket.recv(&mut buffer);
        self.socket.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
        match received {
            Ok(length) => {
                buffer.truncate(length);
                Some(buffer)
            }
            Err(error) if is_silence(&error) => None,
            Err(error) => panic!("receiving: {error}"),
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
    )
}
