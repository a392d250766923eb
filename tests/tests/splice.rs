//! Relayed connections and tunnels with much data, which the kernel moves between the sockets (splice). Each connection has
//! different bytes, so that bytes of another connection are detected.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::SendFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use weir_tests::client::Client;
use weir_tests::member::{Member, Then};
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, reset};
use weir_tests::{STEP_TIMEOUT, eventually, require};

const MIB: u64 = 1 << 20;
/// Distance between the bytes of two connections in the pattern. It is not a multiple of the pattern's period.
const APART: u64 = 77_777;
/// More bytes than all socket buffers hold if neither end reads.
const STUCK_BYTES: u64 = 32 * MIB;

fn relay(members: &[SocketAddr]) -> Setup {
    Setup::new(members).virtual_server("type: tcp").access_log()
}

fn spliced(proxy: &Proxy) -> f64 {
    proxy.metric("weir_spliced_bytes_total", &[])
}

/// A client's request to a member: the number of the connection, which determines its bytes, and their number.
#[derive(Debug, Clone, Copy)]
struct Order {
    number: u64,
    size: u64,
}

impl Order {
    const BYTES: usize = 16;

    fn offset(self) -> u64 {
        self.number * APART
    }

    fn bytes(self) -> Vec<u8> {
        [self.number.to_be_bytes(), self.size.to_be_bytes()].concat()
    }

    fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let mut words = [[0; 8]; 2];
        stream.read_exact(words.as_flattened_mut())?;
        let [number, size] = words.map(u64::from_be_bytes);
        Ok(Self { number, size })
    }

    /// Sends the bytes of the order.
    fn send(self, stream: &mut impl Write) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        let mut sent = 0;
        while sent < self.size {
            let count = (self.size - sent).min(buffer.len() as u64) as usize;
            pattern::fill(&mut buffer[..count], self.offset() + sent);
            stream.write_all(&buffer[..count])?;
            sent += count as u64;
        }
        Ok(())
    }

    /// Sends the bytes with a byte of urgent data in the middle, and then FIN.
    fn send_around_a_mark(self, stream: &mut TcpStream) -> io::Result<()> {
        let first = Self { size: self.size / 2, ..self };
        first.send(stream)?;
        rustix::net::send(&*stream, b"!", SendFlags::OOB)?;
        let mut rest = vec![0; (self.size - first.size) as usize];
        pattern::fill(&mut rest, self.offset() + first.size);
        stream.write_all(&rest)?;
        stream.shutdown(Shutdown::Write)
    }

    /// Receives until the end or an error. Returns the checker, the number of bytes, and the error.
    fn receive(self, stream: &mut impl Read) -> (Checker, u64, Option<ErrorKind>) {
        let mut checker = Checker::beginning_at(self.offset());
        let mut buffer = vec![0; 64 * 1024];
        let mut received = 0;
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return (checker, received, None),
                Ok(count) => {
                    checker.take(&buffer[..count]);
                    received += count as u64;
                }
                Err(error) => return (checker, received, Some(error.kind())),
            }
        }
    }

    /// Panics unless exactly these bytes and an orderly end are received.
    #[track_caller]
    fn expect(self, stream: &mut impl Read) {
        let (checker, _, error) = self.receive(stream);
        assert_eq!(error, None, "{} after {}", self.number, checker.verdict());
        checker.assert_whole(self.offset() + self.size);
    }
}

/// A member that sends the ordered bytes and FIN, and then reads until the client's end.
fn serving() -> StreamMember {
    StreamMember::new(|mut stream| {
        Order::read(&mut stream)?.send(&mut stream)?;
        stream.shutdown(Shutdown::Write)?;
        while stream.read(&mut [0; 4096])? > 0 {}
        Ok(())
    })
}

fn ask(proxy: &Proxy, order: Order) -> Client {
    let mut client = proxy.client();
    client.send(order.bytes());
    client
}

/// Sends the ordered bytes and receives as many at the same time.
fn both_ways(mut stream: TcpStream) -> io::Result<()> {
    let order = Order::read(&mut stream)?;
    let mut writing = stream.try_clone()?;
    let writer = thread::spawn(move || {
        order.send(&mut writing).and_then(|()| writing.shutdown(Shutdown::Write))
    });
    order.expect(&mut stream);
    writer.join().expect("the writer")
}

#[test]
fn bytes_both_ways_at_once_are_moved_as_they_are() {
    let member = StreamMember::new(both_ways);
    let mut proxy = Proxy::start(&relay(&[member.address()]));
    let order = Order { number: 3, size: 64 * MIB };
    let mut client = ask(&proxy, order);
    let mut writing = client.stream().try_clone().expect("a second handle");
    let writer = thread::spawn(move || {
        order.send(&mut writing).expect("sending");
        writing.shutdown(Shutdown::Write).expect("the end");
    });
    order.expect(client.stream());
    writer.join().expect("the writer");
    let (up, down) = (order.size + Order::BYTES as u64, order.size);
    let line = format!("\"bytes_received\":{up},\"bytes_sent\":{down},");
    eventually("the line is there", STEP_TIMEOUT, || proxy.process().output().contains(&line));
    assert!(spliced(&proxy) >= down as f64, "{} of {}", spliced(&proxy), up + down);
    assert_eq!(proxy.metric("weir_member_sent_bytes_total", &[]), up as f64);
    assert_eq!(proxy.metric("weir_member_received_bytes_total", &[]), down as f64);
}

/// Urgent data (MSG_OOB) is not a part of the stream. The bytes after it are, even if they are the last ones.
#[test]
fn urgent_data_is_left_out_and_neither_stalls_nor_cuts_what_is_around_it() {
    const TUNNELS: u64 = 8;
    let member = StreamMember::new(|mut stream| {
        let order = Order::read(&mut stream)?;
        let mut writing = stream.try_clone()?;
        let writer = thread::spawn(move || order.send_around_a_mark(&mut writing));
        order.expect(&mut stream);
        writer.join().expect("the writer")
    });
    let proxy = Proxy::start(&relay(&[member.address()]));
    for number in 0..TUNNELS {
        // The urgent byte is in the middle of many bytes, or near their end.
        let order = Order { number, size: if number % 2 == 0 { 8 * MIB } else { 600_000 } };
        let mut client = ask(&proxy, order);
        let mut writing = client.stream().try_clone().expect("a second handle");
        let writer = thread::spawn(move || order.send_around_a_mark(&mut writing));
        order.expect(client.stream());
        writer.join().expect("the writer").expect("the member takes all");
    }
    assert!(spliced(&proxy) > 0.0);
}

#[test]
fn a_tunnel_behind_an_upgrade_is_moved_too() {
    const SIZE: u64 = 16 * MIB;
    let order = Order { number: 1, size: SIZE };
    let member = Member::new(move |exchange| {
        exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n",
        )?;
        let mut all = Vec::new();
        order.send(&mut all)?;
        exchange.send(&all)?;
        Ok(Then::Close)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n");
    assert_eq!(client.head_response().status, 101);
    let mut checker = Checker::beginning_at(order.offset());
    checker.take(&client.reader().rest());
    checker.assert_whole(order.offset() + SIZE);
    assert!(spliced(&proxy) > 0.0);
}

#[test]
fn little_is_copied() {
    let member = serving();
    let proxy = Proxy::start(&relay(&[member.address()]));
    for number in 0..20 {
        let order = Order { number, size: 16_384 };
        let mut client = ask(&proxy, order);
        order.expect(client.stream());
    }
    assert_eq!(spliced(&proxy), 0.0);
}

#[test]
fn an_end_comes_behind_all_that_was_sent_and_the_other_half_goes_on() {
    // The member sends its own bytes when the client has ended.
    let member = StreamMember::new(|mut stream| {
        let order = Order::read(&mut stream)?;
        // The member starts to read late, so that weir holds bytes when the client's FIN arrives.
        thread::sleep(Duration::from_millis(300));
        order.expect(&mut stream);
        Order { number: order.number + 1, ..order }.send(&mut stream)
    });
    let proxy = Proxy::start(&relay(&[member.address()]));
    let order = Order { number: 5, size: 24 * MIB };
    let mut client = ask(&proxy, order);
    order.send(client.stream()).expect("sending");
    client.finish();
    Order { number: 6, ..order }.expect(client.stream());
    assert!(spliced(&proxy) > 0.0);
}

/// Waits until weir forwards no more bytes, after it has forwarded some.
#[track_caller]
fn wait_until_stuck(proxy: &Proxy) {
    let (mut last, mut since) = (0.0, Instant::now());
    eventually("nothing more goes through", STEP_TIMEOUT, || {
        let now = proxy.metric("weir_member_received_bytes_total", &[]);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        now > 0.0 && since.elapsed() > Duration::from_millis(300)
    });
}

#[test]
fn a_member_that_breaks_in_mid_flow_resets_its_client_behind_what_it_had_sent() {
    let (breaks, broken) = std::sync::mpsc::channel::<()>();
    let broken = std::sync::Mutex::new(broken);
    let member = StreamMember::new(move |mut stream| {
        let order = Order::read(&mut stream)?;
        stream.set_nonblocking(true)?;
        // The member sends until its socket is full, and then waits for a signal.
        let sent = order.send(&mut stream);
        assert!(sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
        let _ = broken.lock().expect("no panic").recv_timeout(STEP_TIMEOUT);
        reset(stream);
        Ok(())
    });
    let proxy = Proxy::start(&relay(&[member.address()]));
    let order = Order { number: 9, size: 4 * STUCK_BYTES };
    let mut client = ask(&proxy, order);
    // The client reads only the first bytes, so that the kernel moves much data, and then stops.
    let mut first = vec![0; 8 * MIB as usize];
    // After the reset, weir drops the bytes that it has not sent, so fewer bytes may arrive.
    client.stream().set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let mut taken = 0;
    while taken < first.len() {
        match client.stream().read(&mut first[taken..]) {
            Ok(count) => taken += count,
            Err(_) => break,
        }
    }
    breaks.send(()).expect("the member waits");
    client.stream().set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
    let (_, rest, error) = order.receive(client.stream());
    assert_eq!(error, Some(ErrorKind::ConnectionReset), "after {taken} and {rest} bytes");
    let mut checker = Checker::beginning_at(order.offset());
    checker.take(&first[..taken]);
    checker.assert_whole(order.offset() + taken as u64);
}

/// The member receives the bytes and the FIN, and then the reset.
#[test]
fn a_client_that_breaks_behind_its_end_breaks_at_its_member() {
    for size in [10, 2 * MIB] {
        let (told, tells) = std::sync::mpsc::channel();
        let member = StreamMember::new(move |mut stream| {
            let order = Order::read(&mut stream)?;
            thread::sleep(Duration::from_millis(100));
            let (checker, _, error) = order.receive(&mut stream);
            assert_eq!(error, None, "the end comes first");
            checker.assert_whole(order.offset() + order.size);
            told.send(None).expect("the client waits");
            let until = Instant::now() + STEP_TIMEOUT;
            let mut error = None;
            while error.is_none() && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
                error = stream.take_error()?;
            }
            told.send(error.map(|error| error.kind())).expect("the client waits");
            Ok(())
        });
        let mut proxy = Proxy::start(&relay(&[member.address()]));
        let order = Order { number: 4, size };
        let mut client = ask(&proxy, order);
        order.send(client.stream()).expect("sending");
        client.finish();
        assert_eq!(tells.recv_timeout(STEP_TIMEOUT).expect("the end"), None);
        client.reset();
        let error = tells.recv_timeout(2 * STEP_TIMEOUT).expect("a break");
        // The error of a socket that has received FIN before the reset.
        assert_eq!(error, Some(ErrorKind::BrokenPipe), "{size} bytes");
        eventually("the line is there", STEP_TIMEOUT, || {
            proxy.process().output().contains("\"termination\":\"client_abort\"")
        });
        eventually("the member's connection is gone", STEP_TIMEOUT, || {
            proxy.metric("weir_member_connections_leaving", &[]) == 0.0
        });
    }
}

#[test]
fn what_broken_connections_leave_reaches_no_other() {
    const ROUNDS: u64 = 12;
    let member = serving();
    let proxy = Proxy::start(&relay(&[member.address()]));
    for number in 0..ROUNDS {
        // Neither side reads until weir holds bytes. Then the client resets the connection.
        let stuck = ask(&proxy, Order { number, size: STUCK_BYTES });
        wait_until_stuck(&proxy);
        stuck.reset();
        let order = Order { number: ROUNDS + number, size: 4 * MIB };
        let mut client = ask(&proxy, order);
        order.expect(client.stream());
    }
    assert!(spliced(&proxy) > 0.0);
}

#[test]
fn more_tunnels_than_pipes_pass_their_own_bytes() {
    require!("prlimit");
    const CLIENTS: u64 = 48;
    let member = serving();
    // This limit allows 8 pipes per worker.
    let setup = relay(&[member.address()]).descriptors(512);
    let mut proxy = Proxy::start(&setup);
    let before = proxy.process().descriptors();
    let orders: Vec<_> = (0..CLIENTS).map(|number| Order { number, size: STUCK_BYTES }).collect();
    let mut clients: Vec<_> = orders.iter().map(|order| ask(&proxy, *order)).collect();
    wait_until_stuck(&proxy);
    let grown = proxy.process().descriptors().saturating_sub(before);
    println!("{grown} descriptors more for {CLIENTS} tunnels");
    thread::scope(|scope| {
        for (order, client) in orders.iter().zip(&mut clients) {
            scope.spawn(move || {
                order.expect(client.stream());
                client.finish();
            });
        }
    });
    assert!(spliced(&proxy) > 0.0);
    drop(clients);
    proxy.wait_for_open_connections("main", 0.0);
}

/// Checks that this number of bytes arrives in both directions, for several concurrent clients.
#[track_caller]
fn pass_both_ways(proxy: &Proxy, size: u64) {
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                let order = Order { number, size };
                let mut client = ask(proxy, order);
                let mut writing = client.stream().try_clone().expect("a second handle");
                let writer = thread::spawn(move || {
                    order.send(&mut writing).expect("sending");
                    writing.shutdown(Shutdown::Write).expect("the end");
                });
                order.expect(client.stream());
                writer.join().expect("the writer");
            });
        }
    });
    proxy.wait_for_open_connections("main", 0.0);
}

/// Pipes that consume all pipe memory of an unprivileged user.
fn pipes_of_all_memory() -> Vec<(OwnedFd, OwnedFd)> {
    const BYTES: usize = 1 << 20;
    let soft = std::fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").expect("the bound");
    let pages = soft.trim().parse::<usize>().expect("a number of pages");
    assert!(pages > 0, "there is no bound to be met");
    let pipe = || {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let bytes = rustix::pipe::fcntl_setpipe_size(&write, BYTES).expect("as large as it may be");
        (bytes, (read, write))
    };
    let (mut taken, mut pipes) = (0, Vec::new());
    while taken <= pages * rustix::param::page_size() {
        let (bytes, pipe) = pipe();
        taken += bytes;
        pipes.push(pipe);
    }
    pipes
}

/// Above `fs.pipe-user-pages-soft`, an unprivileged user gets only small pipes.
#[test]
fn where_the_kernel_gives_small_pipes_alone_bytes_are_copied() {
    require!("setpriv");
    if !rustix::process::geteuid().is_root() {
        return weir_tests::tools::skip("who is not root has a bound of its own");
    }
    let member = StreamMember::new(both_ways);
    let unprivileged = ["--bounding-set", "-sys_resource,-sys_admin", "--"];
    let proxy = Proxy::start(&relay(&[member.address()]).started_by("setpriv", &unprivileged));
    let pipes = pipes_of_all_memory();
    pass_both_ways(&proxy, 8 * MIB);
    assert_eq!(spliced(&proxy), 0.0);
    drop(pipes);
    eventually("bytes are moved again", STEP_TIMEOUT, || {
        pass_both_ways(&proxy, 8 * MIB);
        spliced(&proxy) > 0.0
    });
}

/// EMFILE: the limit on descriptors is lowered while connections are open.
#[test]
fn without_a_descriptor_for_a_pipe_bytes_are_copied() {
    let member = StreamMember::new(both_ways);
    let mut proxy = Proxy::start(&relay(&[member.address()]));
    let pid = Pid::from_raw(proxy.process().pid() as i32).expect("a process");
    let limit = |current| {
        let limits = getrlimit(Resource::Nofile);
        prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(current), ..limits })
            .expect("another limit")
    };
    let order = Order { number: 7, size: 8 * MIB };
    pass_both_ways(&proxy, 1_000);
    let mut client = proxy.client();
    member.wait_for_open(1);
    let before = limit(3);
    client.send(order.bytes());
    let mut writing = client.stream().try_clone().expect("a second handle");
    let writer = thread::spawn(move || {
        order.send(&mut writing).expect("sending");
        writing.shutdown(Shutdown::Write).expect("the end");
    });
    order.expect(client.stream());
    writer.join().expect("the writer");
    limit(before.current.expect("a limit"));
    assert_eq!(spliced(&proxy), 0.0);
    eventually("bytes are moved again", STEP_TIMEOUT, || {
        pass_both_ways(&proxy, 8 * MIB);
        spliced(&proxy) > 0.0
    });
}

#[test]
fn reloads_and_the_end_of_the_process_let_it_pass() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let member = StreamMember::new(move |mut stream| {
        let order = Order::read(&mut stream)?;
        let mut part = vec![0; MIB as usize];
        for at in (0..order.size).step_by(part.len()) {
            pattern::fill(&mut part, order.offset() + at);
            stream.write_all(&part)?;
            counter.fetch_add(1, Ordering::AcqRel);
        }
        stream.shutdown(Shutdown::Write)?;
        while stream.read(&mut [0; 4096])? > 0 {}
        Ok(())
    });
    let setup = relay(&[member.address()]);
    let mut proxy = Proxy::start(&setup);
    let order = Order { number: 2, size: 64 * MIB };
    let mut client = ask(&proxy, order);
    let passed = |count| {
        eventually("bytes pass", STEP_TIMEOUT, || sent.load(Ordering::Acquire) >= count);
    };
    passed(1);
    let reader = {
        let mut stream = client.stream().try_clone().expect("a second handle");
        let (begins, begin) = std::sync::mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            begin.recv().expect("to begin");
            order.expect(&mut stream);
        });
        (begins, thread)
    };
    // The transfer has started, and the client has not read any byte.
    for _ in 0..3 {
        proxy.reload_and_wait(&setup);
    }
    proxy.process().signal(Signal::TERM);
    reader.0.send(()).expect("the reader waits");
    reader.1.join().expect("the reader");
    client.finish();
    assert!(proxy.process().wait(STEP_TIMEOUT).success());
}
