//! The origin: the servers behind the products, as in the vendors' reports.
//!
//! It responds from memory. Each core has one thread with its own listeners, on the event loop of the data path. A
//! request may ask for a delay or fault (`/128?delay_ms=20`, `/128?fault=reset`), or the origin makes faults on its own
//! ([`Settings::faults`]).

mod answer;
mod counts;
mod faults;
mod objects;
mod server;
mod udp;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use counts::Counts;
pub use faults::{Fault, FaultKind};
pub use objects::OBJECT_BYTES_MAX;
pub use udp::{UdpCounts, UdpOrigin, UdpSettings};
use weir_event_loop::sockets::{self, Endpoint};
use weir_event_loop::{EventLoop, ListenOptions, Owner, OwnerKey, Turns, descriptors};

use counts::ThreadCounts;
use objects::{Blocks, Kind, Object};
use server::Server;

use crate::pinning::{PinError, pin_thread};

/// Maximum number of servers of an origin.
pub const SERVERS_MAX: usize = 1_024;

/// The default share of `.html` objects that gzip saves: 75% compressible, as in the report of 2009.
pub const HTML_SAVING: f64 = 0.75;

/// CRC-32 of an `.html` object of this size, from an origin with [`HTML_SAVING`].
pub fn html_crc32(bytes: u64) -> u32 {
    let (blocks, object) = (Blocks::new(HTML_SAVING), Object { bytes, kind: Kind::Html });
    let mut checksum = crc32fast::Hasher::new();
    let mut at = 0;
    while at < bytes {
        let run = blocks.run(object, at, usize::MAX);
        checksum.update(run);
        at += run.len() as u64;
    }
    checksum.finalize()
}

/// The settings of an origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Address of the first server. With port 0 the system chooses one.
    pub listen: SocketAddr,
    /// Number of servers. Their addresses are consecutive, and all use the same port.
    pub servers: usize,
    /// Number of threads, each with its own listeners.
    pub threads: usize,
    /// Cores for the threads, in turn; empty: any.
    pub cores: Vec<usize>,
    /// Delay of every response.
    pub delay: Duration,
    /// Faults to make.
    pub faults: Vec<Fault>,
    /// The share of `.html` objects that gzip saves, from 0 to 0.95.
    pub html_saving: f64,
}

/// A running origin. Dropping it ends it.
#[derive(Debug)]
pub struct Origin {
    addresses: Vec<SocketAddr>,
    counts: Vec<Arc<ThreadCounts>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The message of a started thread: its addresses, or the reason why it cannot serve.
type ThreadStart = io::Result<Vec<SocketAddr>>;

impl Origin {
    /// Starts serving.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        if settings.listen.port() != 0
            && sockets::is_taken(Endpoint::Socket(settings.listen), ListenOptions::default())
        {
            let text = format!("{}: another process listens there", settings.listen);
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        let blocks = Arc::new(Blocks::new(settings.html_saving));
        let counts: Vec<_> =
            (0..settings.threads).map(|_| Arc::new(ThreadCounts::new(settings.servers))).collect();
        let mut origin = Self {
            addresses: Vec::new(),
            counts: counts.clone(),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        let mut settings = settings.clone();
        for thread in 0..settings.threads {
            let (begun, outcome) = mpsc::channel();
            let server =
                Server::new(&settings, blocks.clone(), counts.clone(), thread, origin.stop.clone());
            let (own, name) = (settings.clone(), format!("origin-{thread}"));
            let started = std::thread::Builder::new()
                .name(name)
                .spawn(move || serve(&own, thread, server, &begun))?;
            origin.threads.push(started);
            let ended = || Err(io::Error::other("an origin thread ended at once"));
            origin.addresses = outcome.recv().unwrap_or_else(|_| ended())?;
            // Further threads listen on the port of the first thread.
            settings.listen = origin.addresses[0];
        }
        Ok(origin)
    }

    /// The addresses of the servers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        sum(&self.counts)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panicked thread has printed its message to standard error.
            let _ = thread.join();
        }
    }
}

fn sum(threads: &[Arc<ThreadCounts>]) -> Counts {
    let mut counts = Counts::default();
    for thread in threads {
        counts.add(thread);
    }
    counts
}

/// The main function of an origin thread.
fn serve(
    settings: &Settings,
    thread: usize,
    mut server: Server,
    begun: &mpsc::Sender<ThreadStart>,
) {
    let prepared = prepare(settings, thread);
    let (result, io) = match prepared {
        Ok((io, addresses)) => (Ok(addresses), Some(io)),
        Err(error) => (Err(error), None),
    };
    // The receiver exists: the starter waits for this message.
    let _ = begun.send(result);
    if let Some(mut io) = io
        && let Err(error) = Turns::precise().run(&mut io, &mut server)
    {
        server.note_failure(&error);
    }
}

fn prepare(settings: &Settings, thread: usize) -> io::Result<(EventLoop, Vec<SocketAddr>)> {
    descriptors::isolate(None)?;
    pin_thread(&settings.cores, thread).map_err(|PinError { core, source }| {
        io::Error::other(format!("core {core} cannot be used: {source}"))
    })?;
    let mut io = EventLoop::new()?;
    let mut addresses = Vec::new();
    let mut address = settings.listen;
    for server in 0..settings.servers {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
        let listener = listen(address).map_err(named)?;
        let bound = rustix::net::getsockname(&listener)?;
        address = SocketAddr::try_from(bound).map_err(|_| io::Error::other("no address"))?;
        addresses.push(address);
        io.add(listener.into(), Owner::Listener(OwnerKey::new(server as u64)))?;
        address.set_ip(next_address(address.ip()));
    }
    Ok((io, addresses))
}

fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let mut sockets = sockets::listen(Endpoint::Socket(address), 1, ListenOptions::default())?;
    sockets.pop().ok_or_else(|| io::Error::other("no socket"))
}

fn next_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(u32::from(address).wrapping_add(1).into()),
        IpAddr::V6(address) => IpAddr::V6(u128::from(address).wrapping_add(1).into()),
    }
}
