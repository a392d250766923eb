//! Monitors of every type, and the effect of their results on traffic.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weir_tests::member::{Member, Then};
use weir_tests::namespaces::Namespaces;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{eventually, require};

/// Longer than any monitor here needs to change a member's state.
const CHANGE_TIMEOUT: Duration = weir_tests::STEP_TIMEOUT;

/// Two failures in a row, because on a busy machine a single probe may take longer than the interval.
const PACE: &str = "interval: 500ms, rise: 1, fall: 2";

fn wait(proxy: &Proxy, member: SocketAddr, state: &str) {
    proxy.wait_for_member_state(member, state, CHANGE_TIMEOUT);
}

/// A member that responds to `/healthz` with the status that the test sets, and to other requests with its name.
fn with_health(name: &'static str) -> (Member, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let shown = Arc::clone(&status);
    let member = Member::new(move |exchange| {
        if exchange.request.target() != "/healthz" {
            return exchange.answer(name);
        }
        let status = shown.load(Ordering::Relaxed);
        let answer = format!("HTTP/1.1 {status} Health\r\nContent-Length: 0\r\n\r\n");
        exchange.send(answer).map(|()| Then::KeepAlive)
    });
    (member, status)
}

#[test]
fn a_script_decides() {
    let folder = TempDir::new("monitors");
    let flag = folder.write("in-service", "");
    let line = format!("test -e {} || {{ echo out of service >&2; exit 1; }}", flag.display());
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).pool(&format!(
        "monitors: [ {{ type: script, command: [ /bin/sh, -c, '{line}' ], {PACE} }} ]"
    )));
    wait(&proxy, member.address(), "up");
    proxy.client().get("/").assert_status(200);
    std::fs::remove_file(&flag).expect("the flag");
    wait(&proxy, member.address(), "down");
    proxy.client().get("/").assert_status(503);
    let report = proxy.admin_get("/v1/pools/members");
    assert!(report.contains("the script ended with 1: out of service"), "{report}");
    folder.write("in-service", "");
    wait(&proxy, member.address(), "up");
}

/// A script without capabilities that cannot gain any, as under the systemd unit.
#[test]
fn a_script_works_without_privileges() {
    require!("setpriv");
    let member = Member::named("one");
    let status = "grep -q \"^$1:.$2$\" /proc/self/status";
    let line = format!(
        "is() {{ {status} || {{ echo not $1 >&2; exit 1; }}; }}; is NoNewPrivs 1; is CapEff 0*; is CapBnd 0*"
    );
    let unprivileged = ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--"];
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .pool(&format!(
                "monitors: [ {{ type: script, command: [ /bin/sh, -c, '{line}' ], {PACE} }} ]"
            ))
            .started_by("setpriv", &unprivileged),
    );
    wait(&proxy, member.address(), "up");
    proxy.client().get("/").assert_status(200);
}

/// Waits until `is_it` is true for the admin API's description of the pool in the namespace `adc`.
fn watch(namespaces: &Namespaces, what: &str, is_it: impl Fn(&str) -> bool) {
    eventually(what, CHANGE_TIMEOUT, || {
        is_it(&namespaces.output("adc", "curl -s 127.0.0.1:9090/v1/pools/p || true"))
    });
}

/// A member is down when its host does not answer echo requests. If the kernel forbids echo requests, the states remain.
#[test]
fn echoes_decide() {
    require!("curl");
    let Some(namespaces) = Namespaces::make() else { return };
    let allow = |range: &str| {
        namespaces.shell("adc", &format!("echo {range} > /proc/sys/net/ipv4/ping_group_range"));
    };
    allow("0 2147483647");
    let folder = TempDir::new("icmp");
    let text = format!(
        "admin: {{ listen: 127.0.0.1:9090 }}\n\
         virtual_servers: {{ v: {{ listen: \"10.77.1.1:8080\", pool: p }} }}\n\
         pools: {{ p: {{ members: [ 10.77.2.2:80, \"[::1]:80\" ], monitors: [ {{ type: icmp, {PACE} }} ] }} }}\n"
    );
    let file = folder.write("weir.yaml", &text);
    let ip = weir_tests::tools::find("ip").expect("ip");
    let (weir, file) = (weir_binary().to_string_lossy(), file.to_string_lossy());
    let words = ["netns", "exec", &namespaces.name("adc"), &weir, "run", &file];
    let process = Process::start(&ip, &words, &folder.path().join("output.log"));
    let up = |count| {
        move |said: &str| {
            let pool: serde_json::Value = serde_json::from_str(said).unwrap_or_default();
            let members = pool["members"].as_array().cloned().unwrap_or_default();
            members.iter().filter(|member| member["state"] == "up").count() == count
        }
    };
    watch(&namespaces, "both answer", up(2));
    namespaces.shell("server", "ip link set dev link down");
    watch(&namespaces, "one has gone", up(1));
    namespaces.shell("server", "ip link set dev link up");
    watch(&namespaces, "it is back", up(2));
    allow("1 0");
    let local = "keep their verdicts: cannot probe: ICMP is not allowed";
    eventually("weir says so", CHANGE_TIMEOUT, || process.output().contains(local));
    watch(&namespaces, "both are kept", up(2));
}

/// A server on another port of the member's host that answers `PING` with `+PONG` while it is healthy.
fn redis(is_well: &Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let is_well = Arc::clone(is_well);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut asked = [0; 6];
            if stream.read_exact(&mut asked).is_ok() && &asked == b"PING\r\n" {
                let is_well = is_well.load(Ordering::Relaxed);
                let answer = if is_well { "+PONG\r\n" } else { "-LOADING\r\n" };
                // An error means that weir has closed the probe.
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

#[test]
fn a_plain_conversation_on_another_port_decides() {
    let is_well = Arc::new(AtomicBool::new(true));
    let port = redis(&is_well).port();
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).pool(&format!(
        r#"monitors: [ {{ type: tcp, port: {port}, send: "PING\r\n", receive: "+PONG", {PACE} }} ]"#
    )));
    wait(&proxy, member.address(), "up");
    is_well.store(false, Ordering::Relaxed);
    wait(&proxy, member.address(), "down");
    is_well.store(true, Ordering::Relaxed);
    wait(&proxy, member.address(), "up");
}

/// A UDP service whose reply is `answer` of the datagram and of the service's health.
fn datagrams(is_well: &Arc<AtomicBool>, answer: fn(&[u8], bool) -> Option<Vec<u8>>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    let is_well = Arc::clone(is_well);
    thread::spawn(move || {
        let mut asked = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut asked) {
            if let Some(answer) = answer(&asked[..length], is_well.load(Ordering::Relaxed)) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    address
}

/// Checks that the member is up while the service is healthy, and down otherwise.
fn follows(is_well: &AtomicBool, monitor: &str) {
    let member = Member::named("one");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()]).pool(&format!("monitors: [ {{ {monitor}, {PACE} }} ]")),
    );
    for well in [true, false, true] {
        is_well.store(well, Ordering::Relaxed);
        wait(&proxy, member.address(), if well { "up" } else { "down" });
        proxy.client().get("/").assert_status(if well { 200 } else { 503 });
    }
}

#[test]
fn an_answered_datagram_decides() {
    let is_well = Arc::new(AtomicBool::new(true));
    let port = datagrams(&is_well, |asked, is_well| {
        (asked == b"\0ping").then(|| if is_well { b"\xffpong".into() } else { b"busy".into() })
    });
    let port = port.port();
    let send = "send: { hex: \"00 70696e67\" }";
    follows(&is_well, &format!("type: udp, port: {port}, {send}, receive: {{ hex: ff70 }}"));
    is_well.store(true, Ordering::Relaxed);
    follows(&is_well, &format!("type: udp, port: {port}, {send}, receive: pong, answer: optional"));
}

/// A missing reply passes with `answer: optional`. A closed port always fails.
#[test]
fn silence_passes_where_no_answer_is_needed() {
    let is_well = Arc::new(AtomicBool::new(true));
    let port = datagrams(&is_well, |_, _| None).port();
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let closed_port = closed.local_addr().expect("an address").port();
    drop(closed);
    for (port, answer, state) in
        [(port, "optional", "up"), (port, "required", "down"), (closed_port, "optional", "down")]
    {
        let member = Member::named("one");
        let proxy = Proxy::start(&Setup::new(&[member.address()]).pool(&format!(
            "monitors: [ {{ type: udp, port: {port}, send: a, answer: {answer}, {PACE} }} ]"
        )));
        wait(&proxy, member.address(), state);
    }
}

#[test]
fn an_answer_of_dns_decides() {
    let is_well = Arc::new(AtomicBool::new(true));
    // The reply contains the query's question. An unhealthy service returns SERVFAIL.
    let port = datagrams(&is_well, |asked, is_well| {
        let mut answer = asked.to_vec();
        answer[2] |= 0x80;
        answer[3] = if is_well { 0x80 } else { 0x82 };
        if is_well {
            // One answer record: the name of the question, type A, TTL 60 s, 192.0.2.10.
            answer[7] = 1;
            answer.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x0a");
        }
        Some(answer)
    });
    let dns = format!("type: dns, port: {}, name: shop.example", port.port());
    follows(&is_well, &dns);
    is_well.store(true, Ordering::Relaxed);
    follows(&is_well, &format!("{dns}, value: 192.0.2.10"));
}

#[test]
fn an_answer_drains_a_member_but_for_its_persistent_clients() {
    let ((one, status), (two, _)) = (with_health("one"), with_health("two"));
    let folder = TempDir::new("monitors");
    let proxy = Proxy::start(
        &Setup::new(&[one.address(), two.address()])
            .virtual_server("persistence: { type: cookie }")
            .top(&format!("state_dir: {}", folder.path().display()))
            .pool(&format!(
                "monitors: [ {{ type: http, path: /healthz, drain_on: {{ status: 404 }}, {PACE} }} ]"
            )),
    );
    wait(&proxy, one.address(), "up");
    wait(&proxy, two.address(), "up");
    let cookie_of = |name: &str| {
        let mut answers = (0..20).map(|_| proxy.client().get("/"));
        let response = answers.find(|response| response.text() == name).expect("its turn comes");
        let field = response.head.field("set-cookie").expect("a cookie").to_owned();
        field.split(';').next().expect("its value").to_owned()
    };
    let cookie = cookie_of("one");
    status.store(404, Ordering::Relaxed);
    wait(&proxy, one.address(), "draining");
    for _ in 0..6 {
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "two");
        let mut client = proxy.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
        assert_eq!(client.response().text(), "one");
    }
    status.store(200, Ordering::Relaxed);
    wait(&proxy, one.address(), "up");
    let mut names = (0..20).map(|_| proxy.client().get("/").text());
    assert!(names.any(|name| name == "one"));
}

#[test]
fn a_reverse_monitor_is_up_while_its_probe_fails() {
    let (member, status) = with_health("one");
    status.store(500, Ordering::Relaxed);
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).pool(&format!(
            "monitors: [ {{ type: http, path: /healthz, reverse: true, {PACE} }} ]"
        )));
    wait(&proxy, member.address(), "up");
    status.store(200, Ordering::Relaxed);
    wait(&proxy, member.address(), "down");
}

#[test]
fn some_of_several_monitors_are_enough() {
    let (member, status) = with_health("one");
    let is_well = Arc::new(AtomicBool::new(true));
    let port = redis(&is_well).port();
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .pool(&format!(
                "monitors: [ {{ type: http, path: /healthz, {PACE} }}, \
                 {{ type: tcp, port: {port}, send: \"PING\\r\\n\", receive: \"+PONG\", {PACE} }} ]"
            ))
            .pool("monitors_min: 1"),
    );
    wait(&proxy, member.address(), "up");
    status.store(500, Ordering::Relaxed);
    let failed = || {
        let report = proxy.admin_get("/v1/pools/members");
        report.contains("status 500")
    };
    weir_tests::eventually("one of the monitors fails", CHANGE_TIMEOUT, failed);
    wait(&proxy, member.address(), "up");
    proxy.client().get("/").assert_status(200);
    is_well.store(false, Ordering::Relaxed);
    wait(&proxy, member.address(), "down");
}

/// A member that responds only to connections with a PROXY header.
fn proxied_member() -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let headers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&headers);
    // The thread ends with the test's process.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                let mut received = Vec::new();
                let mut part = [0; 1_024];
                while !received.ends_with(b"\r\n\r\n") || received.len() < 40 {
                    match stream.read(&mut part) {
                        Ok(length) if length > 0 => received.extend_from_slice(&part[..length]),
                        _ => return,
                    }
                }
                let start = received.windows(4).position(|part| part == b"GET ");
                let start = start.expect("a request");
                if start > 0 {
                    seen.lock().expect("no panic").push(received[..start].to_vec());
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            });
        }
    });
    (address, headers)
}

#[test]
fn probes_speak_the_proxy_protocol_where_the_pool_does() {
    for (version, expected) in
        [("v1", &b"PROXY UNKNOWN\r\n"[..]), ("v2", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")]
    {
        let (address, headers) = proxied_member();
        let setup = Setup::new(&[address])
            .pool(&format!("proxy_protocol: {version}"))
            .pool("monitors: [ { type: http, path: /, interval: 500ms } ]");
        let proxy = Proxy::start(&setup);
        proxy.wait_for_member_state(address, "up", weir_tests::STEP_TIMEOUT);
        proxy.client().get("/").assert_status(200);
        let headers = headers.lock().expect("no panic");
        assert!(headers.iter().any(|header| header == expected), "{version}: {headers:?}");
    }
}
