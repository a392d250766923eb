//! Virtual servers of `type: tcp` relay whole connections.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::pattern::{self, Checker};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, echo, reset};
use weir_tests::{STEP_TIMEOUT, eventually, require, tls};

const MIB: u64 = 1 << 20;

fn relay(members: &[SocketAddr]) -> Setup {
    Setup::new(members).virtual_server("type: tcp").access_log()
}

fn ended(proxy: &Proxy, termination: &str) -> f64 {
    let label = format!("termination=\"{termination}\"");
    proxy.metric("weir_virtual_server_relayed_connections_total", &["\"main\"", &label])
}

/// Waits until the log has more than `before` lines with this text. Returns the lines.
#[track_caller]
fn logged(proxy: &mut Proxy, before: usize, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    eventually(&format!("a line has {text}"), STEP_TIMEOUT, || {
        let output = proxy.process().output();
        found = output.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
        found.len() > before
    });
    found
}

fn send_pattern(stream: &mut impl Write, size: u64) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut sent = 0;
    while sent < size {
        let count = (size - sent).min(buffer.len() as u64) as usize;
        pattern::fill(&mut buffer[..count], sent);
        stream.write_all(&buffer[..count])?;
        sent += count as u64;
    }
    Ok(())
}

fn check_pattern(stream: &mut impl Read) -> io::Result<Checker> {
    let mut checker = Checker::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(checker),
            count => checker.take(&buffer[..count]),
        }
    }
}

/// Whether weir has reset the connection.
fn is_reset(client: &mut Client) -> bool {
    let mut rest = Vec::new();
    let end = client.stream().read_to_end(&mut rest);
    matches!(&end, Err(error) if error.kind() == io::ErrorKind::ConnectionReset)
}

/// Whether a connection is reset, possibly before the connect call has returned.
fn is_turned_away(proxy: &Proxy) -> bool {
    Client::try_connect(proxy.address()).map_or(true, |mut client| is_reset(&mut client))
}

#[track_caller]
fn read_exact(client: &mut Client, expected: &str) {
    let mut got = vec![0; expected.len()];
    client.stream().read_exact(&mut got).expect("bytes of the member");
    assert_eq!(String::from_utf8_lossy(&got), expected);
}

#[test]
fn bytes_pass_both_ways_at_once() {
    const SIZE: u64 = 48 * MIB;
    let member = StreamMember::new(|stream| {
        let mut reading = stream.try_clone()?;
        let writer = thread::spawn(move || {
            let mut stream = stream;
            send_pattern(&mut stream, SIZE).and_then(|()| stream.shutdown(Shutdown::Write))
        });
        check_pattern(&mut reading)?;
        writer.join().expect("the writer")
    });
    let mut proxy = Proxy::start(&relay(&[member.address()]));
    proxy.settle();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let mut client = proxy.client();
            thread::spawn(move || {
                let mut writing = client.stream().try_clone().expect("a second handle");
                let writer = thread::spawn(move || {
                    send_pattern(&mut writing, SIZE).expect("sending");
                    writing.shutdown(Shutdown::Write).expect("the end");
                });
                let checker = check_pattern(client.stream()).expect("receiving");
                checker.assert_whole(SIZE);
                writer.join().expect("the writer");
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("a client"));
    proxy.settle();
    let all = (3 * SIZE) as f64;
    // The harness's test connection also received a part of the pattern.
    for metric in ["weir_virtual_server_received_bytes_total", "weir_member_sent_bytes_total"] {
        assert_eq!(proxy.metric(metric, &[]), all, "{metric}");
    }
    let line = format!("\"status\":0,\"bytes_received\":{SIZE},\"bytes_sent\":{SIZE},");
    let lines = logged(&mut proxy, 2, &line);
    for line in lines {
        assert!(line.ends_with("\"termination\":\"complete\"}"), "{line}");
        assert!(line.contains(&format!("\"member\":\"{}\"", member.address())), "{line}");
    }
    assert!(ended(&proxy, "complete") >= 3.0);
    assert_eq!(proxy.metric("weir_virtual_server_requests_total", &[]), 0.0);
}

#[test]
fn each_half_ends_by_itself() {
    let member = StreamMember::new(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        // The client has half-closed and waits.
        stream.write_all(format!("{} bytes", all.len()).as_bytes())
    });
    let proxy = Proxy::start(&relay(&[member.address()]));
    let mut client = proxy.client();
    client.send("hello").finish();
    assert_eq!(String::from_utf8_lossy(&client.reader().rest()), "5 bytes");
    // The client may half-close before the member is connected.
    let mut client = proxy.client();
    client.finish();
    assert_eq!(String::from_utf8_lossy(&client.reader().rest()), "0 bytes");
    // The reverse: the member half-closes first and continues to read.
    let (heard, hears) = std::sync::mpsc::channel();
    let member = StreamMember::new(move |mut stream| {
        // The harness's test connection has already been closed, so a write may fail.
        let _ = stream.write_all(b"bye").and_then(|()| stream.shutdown(Shutdown::Write));
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let _ = heard.send(all);
        Ok(())
    });
    let proxy = Proxy::start(&relay(&[member.address()]));
    assert_eq!(hears.recv_timeout(STEP_TIMEOUT).expect("the first connection"), b"");
    let mut client = proxy.client();
    assert_eq!(String::from_utf8_lossy(&client.reader().rest()), "bye");
    client.send("still here").finish();
    assert_eq!(hears.recv_timeout(STEP_TIMEOUT).expect("the rest"), b"still here");
    proxy.settle();
    assert!(ended(&proxy, "complete") >= 1.0);
}

/// Checks weir's memory until `done` returns true.
#[track_caller]
fn assert_flat(proxy: &mut Proxy, before: u64, done: impl Fn() -> bool) {
    let deadline = Instant::now() + 10 * STEP_TIMEOUT;
    let mut peak = before;
    while !done() {
        assert!(Instant::now() < deadline, "it does not get on");
        peak = peak.max(proxy.process().resident_bytes());
        thread::sleep(Duration::from_millis(20));
    }
    let grown = peak.saturating_sub(before);
    assert!(grown < 8 * MIB, "{grown} bytes more");
}

#[test]
fn a_slow_side_stops_the_other_and_fills_no_memory() {
    const SIZE: u64 = 96 * MIB;
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let member = StreamMember::new(move |mut stream| {
        let mut first = [0; 1];
        if stream.read(&mut first)? == 0 {
            return Ok(());
        }
        let mut buffer = vec![0; 64 * 1024];
        for at in (0..SIZE).step_by(buffer.len()) {
            pattern::fill(&mut buffer, at);
            stream.write_all(&buffer)?;
            counter.fetch_add(buffer.len() as u64, Ordering::AcqRel);
        }
        Ok(())
    });
    let mut proxy = Proxy::start(&relay(&[member.address()]));
    proxy.settle();
    let before = proxy.process().resident_bytes();
    let mut client = proxy.client();
    client.send("x");
    let mut last = (u64::MAX, Instant::now());
    let mut still = |now: u64| {
        if last.0 != now {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_millis(500)
    };
    eventually("the member is stopped", STEP_TIMEOUT, || {
        let now = sent.load(Ordering::Acquire);
        now > 0 && still(now)
    });
    assert!(sent.load(Ordering::Acquire) < SIZE / 2, "the kernel's buffers at most");
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let reader = thread::spawn(move || {
        let checker = check_pattern(client.stream()).expect("all of it");
        is_done.store(true, Ordering::Release);
        checker
    });
    assert_flat(&mut proxy, before, || done.load(Ordering::Acquire));
    reader.join().expect("the reader").assert_whole(SIZE);
}

/// An address without a listener.
fn nobody() -> SocketAddr {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let address = getsockname(&socket).expect("an address").try_into().expect("an address of IP");
    // The socket reserves the port until the process ends, so no other test can listen on it.
    std::mem::forget(socket);
    address
}

#[test]
fn another_member_is_tried_and_nothing_is_lost() {
    let member = StreamMember::echo("here ");
    let setup = relay(&[nobody(), nobody(), member.address()]).pool("retries: 2");
    let proxy = Proxy::start(&setup);
    for number in 0..9 {
        let mut client = proxy.client();
        let text = format!("said at once {number}");
        client.send(&text).finish();
        assert_eq!(String::from_utf8_lossy(&client.reader().rest()), format!("here {text}"));
    }
    assert!(proxy.metric("weir_pool_retries_total", &[]) >= 6.0);
    assert!(proxy.metric("weir_member_failures_total", &["\"connect\""]) >= 6.0);
    assert_eq!(ended(&proxy, "member_connect"), 0.0);
}

/// A member whose accept queue is full, so that it does not answer SYNs. Also returns the connections that fill the queue.
fn hung() -> (SocketAddr, Vec<OwnedFd>) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};
    let socket = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket")
    };
    let listener = socket();
    bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    listen(&listener, 0).expect("a listener");
    let mut held = vec![listener];
    let address = TcpListener::from(held[0].try_clone().expect("a second handle")).local_addr();
    let address = address.expect("an address");
    for _ in 0..2 {
        held.push(socket());
        let _ = connect(held.last().expect("the last"), &address);
    }
    (address, held)
}

#[test]
fn a_member_that_does_not_answer_in_time_is_passed_over() {
    let (member, (hung, _held)) = (StreamMember::line("here "), hung());
    let setup = relay(&[hung, member.address()]).pool("connect_timeout: 300ms");
    let mut proxy = Proxy::start(&setup.pool("retries: 1"));
    for number in 0..4 {
        let mut client = proxy.client();
        client.send(format!("said at once {number}\n"));
        read_exact(&mut client, &format!("here said at once {number}\n"));
    }
    let lines = logged(&mut proxy, 1, "\"retries\":1,");
    // The member's connect timeout applies.
    for line in lines {
        let (_, rest) = line.split_once("\"connect_us\":").expect("a time");
        let waited = rest.split(',').next().and_then(|time| time.parse::<u64>().ok());
        assert!(waited.is_some_and(|us| us >= 290_000), "{line}");
    }
    assert_eq!(ended(&proxy, "member_connect"), 0.0);
}

#[test]
fn passive_marking_takes_a_member_out_that_cannot_be_reached() {
    let member = StreamMember::echo("here");
    let dead = nobody();
    let setup = relay(&[dead, member.address()]).pool("passive: { failures: 2, eject: 1m }");
    let proxy = Proxy::start(&setup);
    for _ in 0..8 {
        let mut client = proxy.client();
        client.finish();
        assert_eq!(client.reader().rest(), b"here");
    }
    proxy.wait_for_member_state(dead, "ejected", STEP_TIMEOUT);
}

#[test]
fn without_a_member_the_client_is_reset_and_that_is_told() {
    let mut proxy = Proxy::start(&relay(&[nobody(), nobody()]));
    proxy.settle();
    let (before, lines) = (ended(&proxy, "member_connect"), proxy.process().output());
    let lines = lines.matches("member_connect").count();
    assert!(is_turned_away(&proxy));
    assert_eq!(ended(&proxy, "member_connect"), before + 1.0);
    let lines = logged(&mut proxy, lines, "\"termination\":\"member_connect\"");
    assert!(lines.last().is_some_and(|line| line.contains("\"retries\":1")), "{lines:?}");
    // If the monitors have taken all members down, weir does not try to connect.
    let dead = nobody();
    let monitored = relay(&[dead]).pool("monitors: [ { type: tcp, interval: 1s, fall: 1 } ]");
    let mut proxy = Proxy::start(&monitored);
    proxy.wait_for_member_state(dead, "down", STEP_TIMEOUT);
    proxy.settle();
    let before = ended(&proxy, "no_member");
    assert!(is_turned_away(&proxy));
    assert_eq!(ended(&proxy, "no_member"), before + 1.0);
    logged(&mut proxy, before as usize, "\"termination\":\"no_member\"");
    assert_eq!(proxy.metric("weir_virtual_server_responses_total", &[]), 0.0);
}

#[test]
fn a_fallback_pool_takes_the_connections_while_nobody_is_up() {
    let (spare, dead) = (StreamMember::echo("spare"), nobody());
    let setup = relay(&[dead])
        .pool("monitors: [ { type: tcp, interval: 1s, fall: 1 } ]")
        .pool("fallback: spare")
        .also_pool(&format!("spare: {{ members: [ {} ] }}", spare.address()));
    let proxy = Proxy::start(&setup);
    proxy.wait_for_member_state(dead, "down", STEP_TIMEOUT);
    let mut client = proxy.client();
    client.finish();
    assert_eq!(client.reader().rest(), b"spare");
}

#[test]
fn a_full_pool_spills_over_until_there_is_room_again() {
    let (first, spare) = (StreamMember::echo("first"), StreamMember::echo("spare"));
    let setup = relay(&[first.address()])
        .pool("spillover: { pool: spare, connections: 2 }")
        .also_pool(&format!("spare: {{ members: [ {} ] }}", spare.address()));
    let proxy = Proxy::start(&setup);
    proxy.settle();
    eventually("nothing is under way", STEP_TIMEOUT, || {
        proxy.metric("weir_member_requests_active", &[]) == 0.0
    });
    let mut clients = Vec::new();
    for name in ["first", "first", "spare", "spare"] {
        let mut client = proxy.client();
        read_exact(&mut client, name);
        clients.push(client);
    }
    let mut one = clients.remove(0);
    one.finish();
    assert_eq!(one.reader().rest(), b"");
    eventually("there is room", STEP_TIMEOUT, || {
        proxy.metric("weir_member_requests_active", &["\"members\""]) < 2.0
    });
    read_exact(&mut proxy.client(), "first");
}

#[test]
fn what_breaks_on_one_side_breaks_on_the_other() {
    let (broken, breaks) = std::sync::mpsc::channel();
    let member = StreamMember::new(move |mut stream| {
        stream.write_all(b"part")?;
        let mut first = [0; 5];
        match stream.read(&mut first) {
            Ok(5) if &first == b"reset" => reset(stream),
            Ok(5) => {
                let end = stream.read(&mut first).map_err(|error| error.kind());
                let _ = broken.send(end);
            }
            _ => {}
        }
        Ok(())
    });
    let mut proxy = Proxy::start(&relay(&[member.address()]));
    proxy.settle();
    // The harness's test connection closed without reading, which may count as either termination.
    let before = ended(&proxy, "client_abort");
    let mut client = proxy.client();
    read_exact(&mut client, "part");
    client.send("reset");
    assert!(is_reset(&mut client), "a part must not look like the whole");
    logged(&mut proxy, 0, "\"termination\":\"member_abort\"");
    let mut client = proxy.client();
    read_exact(&mut client, "part");
    client.send("stays");
    // The member has received the bytes.
    settled_bytes(&proxy, 10.0);
    client.reset();
    let end = breaks.recv_timeout(STEP_TIMEOUT).expect("an end");
    assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    logged(&mut proxy, before as usize, "\"termination\":\"client_abort\"");
    assert_eq!(ended(&proxy, "member_abort"), 1.0);
    assert_eq!(ended(&proxy, "client_abort"), before + 1.0);
}

/// Number of attempts at an event that occurs in most attempts, but not in all.
const TRIES: usize = 40;

#[test]
fn a_reset_that_a_send_meets_first_is_passed_on() {
    let member = StreamMember::new(|mut stream| {
        stream.write_all(b"part")?;
        // weir is about to send more bytes than it received in one read.
        let count = stream.read(&mut [0; 1])?;
        if count > 0 {
            reset(stream);
        }
        Ok(())
    });
    let mut proxy = Proxy::start(&relay(&[member.address()]).top("data_plane: { workers: 1 }"));
    for number in 0..TRIES {
        let mut client = proxy.client();
        read_exact(&mut client, "part");
        proxy.process().while_stopped(|| client.send(vec![b'x'; 300_000]));
        assert!(is_reset(&mut client), "try {number}: a part must not look like the whole");
    }
}

/// Waits until members were sent this number of bytes in total.
#[track_caller]
fn settled_bytes(proxy: &Proxy, bytes: f64) {
    eventually("the member has been sent the bytes", STEP_TIMEOUT, || {
        proxy.metric("weir_member_sent_bytes_total", &[]) == bytes
    });
}

#[test]
fn an_idle_connection_ends_and_a_busy_one_does_not() {
    let member = StreamMember::echo("");
    let mut proxy =
        Proxy::start(&relay(&[member.address()]).virtual_server("tcp: { idle_timeout: 3s }"));
    proxy.settle();
    let mut client = proxy.client();
    for _ in 0..12 {
        thread::sleep(Duration::from_millis(300));
        client.send("x");
        read_exact(&mut client, "x");
    }
    let started = Instant::now();
    assert!(is_reset(&mut client));
    assert!(started.elapsed() >= Duration::from_millis(2_900), "{:?}", started.elapsed());
    member.wait_for_open(0);
    let lines = logged(&mut proxy, 0, "\"termination\":\"idle_timeout\"");
    assert!(lines[0].contains("\"bytes_received\":12,\"bytes_sent\":12"), "{lines:?}");
    assert_eq!(ended(&proxy, "idle_timeout"), 1.0);
}

/// weir receives no byte for longer than the timeout, because the client reads slowly.
#[test]
fn a_side_that_is_slow_to_take_is_not_idle() {
    const SIZE: u64 = 24 * MIB;
    let member = StreamMember::new(|mut stream| {
        send_pattern(&mut stream, SIZE)?;
        stream.shutdown(Shutdown::Write)?;
        echo(&mut stream)
    });
    let setup = relay(&[member.address()]).virtual_server("tcp: { idle_timeout: 1500ms }");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    let mut checker = Checker::default();
    let mut buffer = vec![0; 32 * 1024];
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(6) {
        let count = client.stream().read(&mut buffer).expect("it goes on");
        checker.take(&buffer[..count]);
        thread::sleep(Duration::from_millis(100));
    }
    loop {
        match client.stream().read(&mut buffer).expect("it goes on") {
            0 => break,
            count => checker.take(&buffer[..count]),
        }
    }
    checker.assert_whole(SIZE);
}

#[test]
fn limits_on_connections() {
    let member = StreamMember::echo("in");
    let setup = relay(&[member.address()]).virtual_server("limits: { connections: 2 }");
    let mut proxy = Proxy::start(&setup);
    proxy.settle();
    let mut kept: Vec<Client> = (0..2).map(|_| proxy.client()).collect();
    kept.iter_mut().for_each(|client| read_exact(client, "in"));
    assert!(is_turned_away(&proxy));
    logged(&mut proxy, 0, "\"termination\":\"connection_limit\"");
    assert_eq!(proxy.metric("weir_virtual_server_connections_refused_total", &[]), 1.0);
    drop(kept);
    proxy.settle();
    read_exact(&mut proxy.client(), "in");

    let limit = "limits: { per_key: [ { connections: 1 } ] }";
    let proxy = Proxy::start(&relay(&[member.address()]).virtual_server(limit));
    proxy.settle();
    let one = [127, 0, 7, 1].into();
    let mut first = Client::connect_from(proxy.address(), one);
    read_exact(&mut first, "in");
    Client::connect_from(proxy.address(), one).assert_closed();
    read_exact(&mut Client::connect_from(proxy.address(), [127, 0, 7, 2].into()), "in");
    assert_eq!(proxy.metric("weir_virtual_server_connections_limited_total", &[]), 1.0);
}

#[test]
fn connections_wait_for_a_member_that_is_full() {
    let member = StreamMember::echo("in");
    let setup = relay(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", member.address()))
        .pool("queue: { length_max: 1, timeout: 60s }");
    let mut proxy = Proxy::start(&setup);
    proxy.settle();
    let mut first = proxy.client();
    read_exact(&mut first, "in");
    let mut second = proxy.client();
    second.send("waited");
    eventually("it waits", STEP_TIMEOUT, || proxy.metric("weir_pool_queue_requests", &[]) == 1.0);
    assert!(is_turned_away(&proxy), "there is no room in the queue");
    logged(&mut proxy, 0, "\"termination\":\"no_member\"");
    assert_eq!(proxy.metric("weir_member_requests_active", &[]), 1.0);
    first.finish();
    read_exact(&mut second, "inwaited");
    // A client that disconnects leaves the queue.
    let third = proxy.client();
    eventually("it waits", STEP_TIMEOUT, || proxy.metric("weir_pool_queue_requests", &[]) == 1.0);
    third.reset();
    eventually("it does not", STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 0.0
    });
    let short = setup.clone().pool("connect_timeout: 1s");
    let short = short.virtual_server("tcp: { idle_timeout: 1m }");
    proxy.reload_and_wait(&short);
    read_nothing_new(&mut second);
}

/// Checks that the connection still works and has received nothing else.
#[track_caller]
fn read_nothing_new(client: &mut Client) {
    client.send("again");
    read_exact(client, "again");
}

#[test]
fn reloads_do_not_touch_connections() {
    let (old, new) = (StreamMember::echo("old"), StreamMember::echo("new"));
    let proxy = Proxy::start(&relay(&[old.address()]));
    let mut client = proxy.client();
    read_exact(&mut client, "old");
    proxy.reload_and_wait(&relay(&[new.address()]));
    read_nothing_new(&mut client);
    let mut another = proxy.client();
    read_exact(&mut another, "new");
    // The connections also survive a change of the virtual server to HTTP.
    let http = Member::named("http");
    proxy.reload_and_wait(&Setup::new(&[http.address()]));
    read_nothing_new(&mut client);
    read_nothing_new(&mut another);
    let mut of_http = proxy.client();
    assert_eq!(of_http.get("/").assert_status(200).text(), "http");
    // Requests of HTTP clients never reach a member of a relay.
    proxy.reload_and_wait(&relay(&[new.address()]));
    let before = new.connection_count();
    of_http.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(of_http.reader().rest().is_empty());
    assert_eq!(new.connection_count(), before);
    read_nothing_new(&mut client);
}

#[test]
fn sigterm_lets_connections_end_and_cuts_them_at_the_deadline() {
    let member = StreamMember::echo("in");
    let mut proxy = Proxy::start(&relay(&[member.address()]));
    let mut client = proxy.client();
    read_exact(&mut client, "in");
    proxy.process().signal(Signal::TERM);
    eventually("new connections are refused", STEP_TIMEOUT, || {
        Client::try_connect(proxy.address()).is_err()
    });
    read_nothing_new(&mut client);
    client.finish();
    assert!(client.reader().rest().is_empty());
    assert!(proxy.process().wait(STEP_TIMEOUT).success());

    let short = relay(&[member.address()]).top("data_plane: { drain_timeout: 1s }");
    let mut proxy = Proxy::start(&short);
    let mut client = proxy.client();
    read_exact(&mut client, "in");
    proxy.process().signal(Signal::TERM);
    assert!(is_reset(&mut client));
    proxy.process().wait(STEP_TIMEOUT);
    logged(&mut proxy, 0, "\"termination\":\"stopped\"");
}

#[test]
fn the_proxy_protocol_both_ways() {
    let member = StreamMember::new(|mut stream| {
        let mut line = [0; 128];
        let count = stream.read(&mut line)?;
        stream.write_all(&line[..count])?;
        echo(&mut stream)
    });
    let trust = "client_address: { trust: [ 127.0.0.1 ], proxy_protocol: true }";
    let setup = relay(&[member.address()])
        .virtual_server(trust)
        .virtual_server("tcp: { hello_timeout: 2s }")
        .pool("proxy_protocol: v1");
    let mut proxy = Proxy::start(&setup);
    let port = proxy.address().port();
    let mut client = proxy.client();
    for part in ["PROXY TCP4 198.51.", "100.7 127.0.0.1 12345 80\r", "\nhello"] {
        client.send(part);
        thread::sleep(Duration::from_millis(30));
    }
    let told = format!("PROXY TCP4 198.51.100.7 127.0.0.1 12345 {port}\r\n");
    read_exact(&mut client, &told);
    read_exact(&mut client, "hello");
    client.finish();
    logged(&mut proxy, 0, "\"client\":\"198.51.100.7:12345\"");
    // A PROXY header without data. The member sends first.
    let mut client = proxy.client();
    client.send("PROXY TCP4 198.51.100.8 127.0.0.1 1 80\r\n");
    read_exact(&mut client, &format!("PROXY TCP4 198.51.100.8 127.0.0.1 1 {port}\r\n"));
    // weir ignores the addresses in a header from an untrusted peer.
    let mut stranger = Client::connect_from(proxy.address(), [127, 0, 7, 3].into());
    stranger.send("PROXY TCP4 198.51.100.9 127.0.0.1 1 80\r\n");
    read_exact(&mut stranger, "PROXY TCP4 127.0.7.3 ");
    for garbage in ["GET / HTTP/1.1\r\n\r\n", "PROXY TCP9 \r\n"] {
        let mut client = proxy.client();
        client.send(garbage);
        assert!(is_reset(&mut client), "{garbage:?}");
    }
    assert_eq!(ended(&proxy, "client_malformed"), 2.0);
    let mut silent = proxy.client();
    silent.send("PROXY TCP4 ");
    assert!(is_reset(&mut silent));
    logged(&mut proxy, 0, "\"termination\":\"hello_timeout\"");
    assert_eq!(ended(&proxy, "hello_timeout"), 1.0);
}

#[test]
fn tls_ends_here_for_any_protocol() {
    require!("openssl");
    let member = StreamMember::line("220 plain: ");
    let setup = relay(&[member.address()]).virtual_server(&tls::shop(""));
    let mut proxy = Proxy::start(&setup);
    let text = tls::s_client_text(proxy.address(), &["-quiet"], b"EHLO there\r\n");
    assert!(text.contains("220 plain: EHLO there"), "{text}");
    let lines = logged(&mut proxy, 0, "\"server_name\":\"shop.example\"");
    assert!(lines[0].contains("\"bytes_received\":12,\"bytes_sent\":23"), "{lines:?}");
    assert_eq!(proxy.metric("weir_virtual_server_tls_handshakes_total", &["full"]), 1.0);
    // Bytes that are not TLS are not forwarded.
    let before = member.connection_count();
    let mut stranger = proxy.client();
    stranger.send("EHLO there\r\n");
    let mut told = Vec::new();
    stranger.stream().read_to_end(&mut told).expect("an end");
    assert_eq!(told, [21, 3, 3, 0, 2, 2, 10], "the alert unexpected_message");
    assert_eq!(member.connection_count(), before);
}

#[test]
fn large_streams_through_tls_on_both_sides() {
    require!("curl");
    // The member is another weir: HTTP over TLS behind a relay that decrypts and encrypts again.
    let web = Member::new(|exchange| {
        let body = std::mem::take(&mut exchange.request.body);
        exchange.answer(body)
    });
    let inner = Proxy::start(&Setup::new(&[web.address()]).virtual_server(&tls::shop("")));
    let pool =
        format!("tls: {{ ca: {}, server_name: shop.example }}", tls::file("authorities.crt"));
    let outer = Proxy::start(&relay(&[inner.address()]).virtual_server(&tls::shop("")).pool(&pool));
    let body: Vec<u8> = (0..12_000_000_u32).map(|number| (number % 251) as u8).collect();
    let directory = weir_tests::temp::TempDir::new("relay-tls");
    let (file, got) = (directory.path().join("body"), directory.path().join("got"));
    std::fs::write(&file, &body).expect("a file");
    let data = format!("@{}", file.display());
    let output = got.display().to_string();
    tls::get(outer.address(), "/", &["--data-binary", &data, "-H", "Expect:", "-o", &output]);
    assert!(std::fs::read(&got).expect("what came back") == body);
    // Without TLS from the client, only the connection to the member is encrypted.
    let plain = Proxy::start(&relay(&[inner.address()]).pool(&pool));
    assert!(plain.client().post("/", &body[..3_000_000]).body == body[..3_000_000]);
}

#[test]
fn clients_are_kept_at_their_members() {
    let members = ["a", "b", "c"].map(StreamMember::echo);
    let addresses = members.each_ref().map(StreamMember::address);
    let answer = |proxy: &Proxy, from: [u8; 4]| {
        let mut client = Client::connect_from(proxy.address(), from.into());
        client.finish();
        String::from_utf8_lossy(&client.reader().rest()).into_owned()
    };
    for setup in [
        relay(&addresses).virtual_server("persistence: { type: source_address }"),
        relay(&addresses).pool("balance: source_address"),
        relay(&addresses).pool("balance: { hash: client.ip }"),
        relay(&addresses).virtual_server("persistence: { type: hash, of: \"${client.ip}\" }"),
    ] {
        let proxy = Proxy::start(&setup);
        let mut seen = std::collections::BTreeSet::new();
        for host in 1..=12 {
            let first = answer(&proxy, [127, 0, 8, host]);
            for _ in 0..3 {
                assert_eq!(answer(&proxy, [127, 0, 8, host]), first, "{setup:?}");
            }
            seen.insert(first);
        }
        assert!(seen.len() > 1, "{seen:?}: {setup:?}");
    }
    let sticky = relay(&addresses).virtual_server("persistence: { type: source_address }");
    let proxy = Proxy::start(&sticky);
    let answers: Vec<String> = (0..4).map(|_| answer(&proxy, [127, 0, 8, 20])).collect();
    assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
    assert!(proxy.metric("weir_virtual_server_persistence_kept_total", &[]) >= 3.0);
}

#[test]
fn status_speaks_of_connections() {
    let member = StreamMember::echo("in");
    let proxy = Proxy::start(&relay(&[member.address()]));
    let mut client = proxy.client();
    client.finish();
    assert_eq!(client.reader().rest(), b"in");
    proxy.settle();
    let status: serde_json::Value =
        serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON");
    let server = &status["virtual_servers"][0];
    assert_eq!(server["type"], "tcp");
    assert_eq!(server["pools"], serde_json::json!(["members"]));
    assert!(server["relayed"]["complete"].as_u64() >= Some(1), "{server}");
    let weir = weir_tests::proxy::weir_binary();
    let mut command = std::process::Command::new(weir);
    let text = weir_tests::tools::run(command.args(["status", "--admin", &proxy.admin_address()]));
    assert!(text.contains("  ended        "), "{text}");
    assert!(!text.contains("  requests     "), "{text}");
}

/// weir must forward the whole stream even if one side no longer reads.
#[test]
fn a_client_that_sends_and_goes_is_heard_to_the_end() {
    let (heard, hears) = std::sync::mpsc::channel();
    let member = StreamMember::new(move |mut stream| {
        let mut all = Vec::new();
        thread::sleep(Duration::from_millis(100));
        stream.read_to_end(&mut all)?;
        let _ = heard.send(all.len());
        Ok(())
    });
    let proxy = Proxy::start(&relay(&[member.address()]));
    hears.recv_timeout(STEP_TIMEOUT).expect("the first connection");
    let mut stream = TcpStream::connect(proxy.address()).expect("a connection");
    stream.write_all(&vec![b'x'; 3_000_000]).expect("all of it");
    drop(stream);
    assert_eq!(hears.recv_timeout(STEP_TIMEOUT).expect("the lines"), 3_000_000);
}
