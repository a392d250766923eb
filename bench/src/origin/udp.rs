//! The origin over UDP: servers that answer each query with the requested size.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::Serialize;

use super::next_address;
use crate::datagram::{DATAGRAM_BYTES_MAX, answer};
use crate::pinning::{PinError, pin_thread};

/// Maximum number of events per wait.
const EVENTS_MAX: usize = 128;
/// Maximum number of queries that one server answers before the next server's turn.
const QUERIES_PER_TURN_MAX: usize = 64;
/// Longest interval between two turns of the loop. Each turn checks whether the thread must end.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Size of the receive buffer; the kernel may grant less.
const RECEIVE_BYTES: usize = 4 << 20;

/// The settings of an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpSettings {
    /// Address of the first server. With port 0 the system chooses one.
    pub listen: SocketAddr,
    /// Number of servers. Their addresses are consecutive, and all use the same port.
    pub servers: usize,
    /// Number of threads, each with its own sockets.
    pub threads: usize,
    /// Cores for the threads, in turn; empty: any.
    pub cores: Vec<usize>,
}

/// The counts of an origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UdpCounts {
    /// Number of answered queries.
    pub queries: u64,
    /// Number of datagrams that are not queries.
    pub malformed: u64,
    /// Number of answers that the kernel did not accept.
    pub unsent: u64,
}

#[derive(Debug, Default)]
struct UdpThreadCounters {
    queries: AtomicU64,
    malformed: AtomicU64,
    unsent: AtomicU64,
    stop: AtomicBool,
}

/// A running origin. Dropping it ends it.
#[derive(Debug)]
pub struct UdpOrigin {
    addresses: Vec<SocketAddr>,
    shared: Arc<UdpThreadCounters>,
    threads: Vec<JoinHandle<()>>,
}

impl UdpOrigin {
    /// Starts serving.
    pub fn start(settings: &UdpSettings) -> io::Result<Self> {
        let mut settings = settings.clone();
        let mut origin =
            Self { addresses: Vec::new(), shared: Arc::default(), threads: Vec::new() };
        for thread in 0..settings.threads {
            let (own, shared) = (settings.clone(), origin.shared.clone());
            let (begun, outcome) = mpsc::channel();
            let work = move || match prepare(&own, thread) {
                Ok(server) => {
                    // The receiver is gone if the start failed in another thread.
                    let _ = begun.send(Ok(server.addresses.clone()));
                    if let Err(error) = server.serve(&shared) {
                        eprintln!("weir bench origin: thread {thread}: {error}");
                    }
                }
                Err(error) => drop(begun.send(Err(error))),
            };
            let name = format!("answers-{thread}");
            origin.threads.push(std::thread::Builder::new().name(name).spawn(work)?);
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
    pub fn counts(&self) -> UdpCounts {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let UdpThreadCounters { queries, malformed, unsent, .. } = &*self.shared;
        UdpCounts { queries: of(queries), malformed: of(malformed), unsent: of(unsent) }
    }
}

impl Drop for UdpOrigin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panicked thread has printed its message to standard error.
            let _ = thread.join();
        }
    }
}

/// One thread's sockets.
struct Server {
    sockets: Vec<UdpSocket>,
    addresses: Vec<SocketAddr>,
    poll: OwnedFd,
}

fn prepare(settings: &UdpSettings, thread: usize) -> io::Result<Server> {
    pin_thread(&settings.cores, thread).map_err(|PinError { core, source }| {
        io::Error::other(format!("core {core} cannot be used: {source}"))
    })?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut server = Server { sockets: Vec::new(), addresses: Vec::new(), poll };
    let mut address = settings.listen;
    for index in 0..settings.servers {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
        let socket = bind(address, settings.threads > 1).map_err(named)?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&server.poll, &socket, data, epoll::EventFlags::IN)?;
        address = socket.local_addr()?;
        server.addresses.push(address);
        server.sockets.push(socket);
        address.set_ip(next_address(address.ip()));
    }
    Ok(server)
}

/// Binds a socket. With several threads it is shared (SO_REUSEPORT), and the kernel spreads the flows.
fn bind(address: SocketAddr, is_shared: bool) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    if is_shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket.into())
}

impl Server {
    fn serve(&self, shared: &UdpThreadCounters) -> io::Result<()> {
        let turn = Timespec { tv_sec: 0, tv_nsec: i64::from(TURN_MAX.subsec_nanos()) };
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while !shared.stop.load(Relaxed) {
            events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut events), Some(&turn)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let epoll::Event { data, .. } = *event;
                answer_all(&self.sockets[data.u64() as usize], shared);
            }
        }
        Ok(())
    }
}

/// Answers the waiting queries of a server, up to a limit. Further queries cause the next event.
fn answer_all(socket: &UdpSocket, shared: &UdpThreadCounters) {
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    for _ in 0..QUERIES_PER_TURN_MAX {
        // No more queries, or an ICMP error from a client's closed port. Neither ends the server.
        let Ok((length, client)) = socket.recv_from(&mut buffer) else { return };
        let counter = match answer(&mut buffer, length) {
            None => &shared.malformed,
            Some(length) => match socket.send_to(&buffer[..length], client) {
                Ok(_) => &shared.queries,
                Err(_) => &shared.unsent,
            },
        };
        counter.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::udp::{UdpPlan, run};
    use crate::load::{ErrorKind, Extent, NoObserver};

    fn plan(targets: &[SocketAddr]) -> UdpPlan {
        UdpPlan {
            targets: targets.to_vec(),
            flows: 8,
            queries_per_flow: None,
            query_bytes: 48,
            answer_bytes: 128,
            extent: Extent::Requests(500),
            rate: None,
            warm_up: Duration::ZERO,
            timeout: Duration::from_secs(5),
            sources: Vec::new(),
            threads: 1,
            cores: Vec::new(),
            network_namespace: None,
            stop: Arc::default(),
        }
    }

    fn origin(threads: usize) -> UdpOrigin {
        let listen = "127.0.0.1:0".parse().expect("an address");
        let settings = UdpSettings { listen, servers: 3, threads, cores: Vec::new() };
        UdpOrigin::start(&settings).expect("an origin")
    }

    #[test]
    fn load_and_origin_agree_to_the_query() {
        for (threads, queries_per_flow, flows) in
            [(1, None, 8), (2, Some(1), 500), (1, Some(7), 72)]
        {
            let origin = origin(2);
            let plan = UdpPlan { queries_per_flow, threads, ..plan(origin.addresses()) };
            let outcome = run(&plan, &mut NoObserver).expect("a load");
            assert_eq!((outcome.requests, outcome.errors), (500, 0), "{outcome:?}");
            assert_eq!(origin.counts(), UdpCounts { queries: 500, ..UdpCounts::default() });
            assert_eq!(outcome.bytes, 500 * 128);
            assert_eq!(outcome.latency_us.count, 500);
            let opened = outcome.connections_opened;
            assert!((flows..=flows + 8).contains(&opened), "{queries_per_flow:?}: {opened}");
        }
    }

    #[test]
    fn a_rate_is_kept_and_counted_from_when_queries_were_due() {
        let origin = origin(1);
        let extent = Extent::Time(Duration::from_millis(300));
        let warm_up = Duration::from_millis(50);
        let plan = UdpPlan { rate: Some(1_000.0), extent, warm_up, ..plan(origin.addresses()) };
        let outcome = run(&plan, &mut NoObserver).expect("a load");
        assert_eq!(outcome.errors, 0, "{outcome:?}");
        assert_eq!(outcome.requests + outcome.unsent, 300, "{outcome:?}");
        assert!(outcome.warm_up_requests >= 40, "{outcome:?}");
        let all = outcome.requests + outcome.warm_up_requests;
        assert_eq!(origin.counts().queries, all);
    }

    #[test]
    fn answers_that_do_not_come_are_lost_and_counted() {
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let timeout = Duration::from_millis(50);
        let targets = [silent.local_addr().expect("its address")];
        let plan = UdpPlan { timeout, extent: Extent::Requests(20), ..plan(&targets) };
        let outcome = run(&plan, &mut NoObserver).expect("a load");
        assert_eq!((outcome.requests, outcome.errors), (0, 20));
        assert_eq!(outcome.errors_by_kind.get(&ErrorKind::Lost), Some(&20), "{outcome:?}");
    }

    #[test]
    fn a_port_that_nobody_has_is_an_error_and_the_load_ends() {
        let free = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let targets = [free.local_addr().expect("its address")];
        drop(free);
        let outcome = run(&plan(&targets), &mut NoObserver).expect("a load");
        assert_eq!((outcome.requests, outcome.errors), (0, 500), "{outcome:?}");
        assert!(outcome.errors_by_kind.contains_key(&ErrorKind::Connect), "{outcome:?}");
    }

    #[test]
    fn a_stray_datagram_gets_no_answer() {
        let origin = origin(1);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.send_to(b"hello", origin.addresses()[0]).expect("sending");
        let mut buffer = [0; 64];
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a limit");
        while origin.counts().malformed == 0 {
            assert!(socket.recv(&mut buffer).is_err(), "an answer to what is no query");
        }
        assert!(socket.recv(&mut buffer).is_err());
    }
}
