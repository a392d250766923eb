//! Sessions of a running weir: relayed connections, tunnels and sessions of datagrams are listed, and end by commands or
//! when their member goes out of service.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use weir_tests::client::Client;
use weir_tests::datagrams::{DatagramClient, DatagramMember, UdpLease};
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::stream::StreamMember;
use weir_tests::temp::TempDir;
use weir_tests::websocket::{WebSocket, echo_member};
use weir_tests::{STEP_TIMEOUT, eventually};

fn weir(proxy: &Proxy, arguments: &[&str]) -> Output {
    let mut command = Command::new(weir_binary());
    command.args(arguments).env("WEIR_ADMIN", proxy.admin_address()).stdin(Stdio::null());
    command.output().expect("the built command")
}

/// Runs a command that succeeds. Returns its output.
#[track_caller]
fn run(proxy: &Proxy, arguments: &[&str]) -> String {
    let output = weir(proxy, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8 output")
}

/// The sessions that `weir sessions` lists with these options.
#[track_caller]
fn listed(proxy: &Proxy, options: &[&str]) -> Vec<Value> {
    let arguments: Vec<&str> = ["sessions", "--json"].iter().chain(options).copied().collect();
    let text = run(proxy, &arguments);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["items"].as_array().expect("a list").clone()
}

/// A client of a relayed connection that has had an answer.
fn relayed(from: SocketAddr, source: [u8; 4]) -> TcpStream {
    let mut client = Client::connect_from(from, source.into());
    let stream = client.stream().try_clone().expect("a stream");
    echoes(&stream, b"x");
    stream
}

#[track_caller]
fn echoes(mut stream: &TcpStream, sent: &[u8]) {
    stream.set_read_timeout(Some(STEP_TIMEOUT)).expect("a time");
    stream.write_all(sent).expect("sent");
    let mut got = vec![0; sent.len()];
    stream.read_exact(&mut got).expect("an echo");
    assert_eq!(got, sent);
}

#[track_caller]
fn is_reset(mut stream: &TcpStream) {
    let error = stream.read(&mut [0; 1]).expect_err("a reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
}

/// A member that sends every byte back.
fn echo() -> StreamMember {
    StreamMember::new(|mut stream| weir_tests::stream::echo(&mut stream))
}

/// A weir with a virtual server of each type: `main` (http), `relay` and `other` (tcp), `dgrams` (udp).
struct Bed {
    proxy: Proxy,
    relay: Lease,
    other: Lease,
    dgrams: UdpLease,
    members: [StreamMember; 2],
    _web: Member,
    _udp: DatagramMember,
}

impl Bed {
    fn new() -> Self {
        let (relay, other, dgrams) = (Lease::new(), Lease::new(), UdpLease::new());
        let members = [echo(), echo()];
        let (web, udp) = (echo_member(), DatagramMember::echo("u"));
        let server = |name: &str, listen: SocketAddr, kind: &str| {
            format!("{name}: {{ listen: \"{listen}\", type: {kind}, pool: {name} }}")
        };
        let pool = |name: &str, member: SocketAddr| format!("{name}: {{ members: [ {member} ] }}");
        let setup = Setup::new(&[web.address()])
            .admin_socket()
            .access_log()
            .also_virtual_server(&server("relay", relay.address(), "tcp"))
            .also_virtual_server(&server("other", other.address(), "tcp"))
            .also_virtual_server(&server("dgrams", dgrams.address(), "udp"))
            .also_pool(&pool("relay", members[0].address()))
            .also_pool(&pool("other", members[1].address()))
            .also_pool(&pool("dgrams", udp.address()));
        let proxy = Proxy::start(&setup);
        Self { proxy, relay, other, dgrams, members, _web: web, _udp: udp }
    }
}

#[test]
fn sessions_of_all_types_are_listed_and_ended_by_filter() {
    let mut bed = Bed::new();
    let first = relayed(bed.relay.address(), [127, 0, 9, 1]);
    let second = relayed(bed.relay.address(), [127, 0, 9, 2]);
    let other = relayed(bed.other.address(), [127, 0, 9, 1]);
    let mut socket = WebSocket::connect(bed.proxy.address());
    socket.echo("x").expect("an echo");
    let datagrams = DatagramClient::of(bed.dgrams.address());
    assert_eq!(datagrams.ask("x"), "u x");
    // A request is no session.
    bed.proxy.client().get("/").assert_status(200);
    let proxy = &bed.proxy;
    let count = |options: &[&str]| listed(proxy, options).len();
    let member = bed.members[0].address();
    for (options, expected) in [
        (&[][..], 5),
        (&["--type", "tcp"], 3),
        (&["--type", "tunnel"], 1),
        (&["--type", "udp"], 1),
        (&["--virtual-server", "relay"], 2),
        (&["--pool", "other"], 1),
        (&["--member", &member.to_string()], 2),
        (&["--member", "127.0.0.1"], 5),
        (&["--client", "127.0.9.0/24"], 3),
        (&["--client", "127.0.9.1"], 2),
        (&["--client", "127.0.9.1", "--pool", "relay"], 1),
        (&["--older-than", "1h"], 0),
        (&["--max", "2"], 2),
    ] {
        assert_eq!(count(options), expected, "{options:?}");
    }
    let one = &listed(proxy, &["--pool", "other"])[0];
    assert_eq!((&one["type"], &one["virtual_server"]), (&"tcp".into(), &"other".into()));
    assert_eq!(one["member"], bed.members[1].address().to_string());
    assert_eq!(one["client"], other.local_addr().expect("an address").to_string());
    assert_eq!((&one["bytes_received"], &one["bytes_sent"]), (&1.into(), &1.into()));
    let text = run(proxy, &["sessions", "--max", "2"]);
    assert!(text.ends_with("2 sessions, and more: see --max\n"), "{text}");

    assert_eq!(
        run(proxy, &["sessions", "end", "--client", "127.0.9.1", "--pool", "relay"]),
        "1 session ended\n"
    );
    is_reset(&first);
    echoes(&second, b"y");
    echoes(&other, b"y");
    assert_eq!(run(proxy, &["sessions", "end", "--type", "tunnel"]), "1 session ended\n");
    assert!(socket.echo("y").is_err(), "the tunnel is open");
    assert_eq!(run(proxy, &["sessions", "end", "--type", "udp"]), "1 session ended\n");
    proxy.wait_for_open_connections("dgrams", 0.0);
    assert_eq!(datagrams.ask("z"), "u z", "a further datagram begins a session");
    let label = member.to_string();
    assert_eq!(run(proxy, &["member", &label, "end-sessions"]), "1 session ended\n");
    is_reset(&second);
    echoes(&other, b"z");
    assert_eq!(run(proxy, &["sessions", "end", "--all"]), "2 sessions ended\n");
    is_reset(&other);
    assert_eq!(count(&[]), 0);
    let ended = |name: &str| {
        let labels = [&format!("\"{name}\""), "termination=\"operator\""];
        proxy.metric("weir_virtual_server_relayed_connections_total", &labels)
    };
    assert_eq!((ended("relay"), ended("other"), ended("dgrams")), (2.0, 1.0, 2.0));
    let output = bed.proxy.process();
    eventually("each end is logged", STEP_TIMEOUT, || {
        output.output().matches("\"termination\":\"operator\"").count() == 6
    });
}

#[test]
fn what_does_not_exist_or_is_not_allowed_ends_nothing() {
    let bed = Bed::new();
    let open = relayed(bed.relay.address(), [127, 0, 9, 1]);
    let member = bed.members[0].address().to_string();
    for (arguments, says) in [
        (&["sessions", "end", "--virtual-server", "rely"][..], "there is no virtual server `rely`"),
        (&["sessions", "--virtual-server", "rely"], "did you mean `relay`?"),
        (&["sessions", "--pool", "rely"], "did you mean `relay`?"),
        (&["sessions", "end", "--pool", "rely"], "there is no pool `rely`"),
        (&["sessions", "end", "--member", "10.9.9.9"], "there is no member `10.9.9.9`"),
        (&["sessions", "end", "--client", "10.0.0.1/8"], "`client`: "),
        (&["member", "other", &member, "end-sessions"], "there is no member"),
    ] {
        let output = weir(&bed.proxy, arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(told.contains(says), "{arguments:?}: {told}");
    }
    for arguments in [
        &["sessions", "end"][..],
        &["sessions", "end", "--all", "--type", "udp"],
        &["sessions", "--type", "http"],
        &["member", &member, "end-sessions", "--wait"],
    ] {
        assert_eq!(weir(&bed.proxy, arguments).status.code(), Some(2), "{arguments:?}");
    }
    echoes(&open, b"y");
}

#[test]
fn over_tcp_without_a_token_sessions_are_listed_and_not_ended() {
    let (relay, member) = (Lease::new(), echo());
    let (listen, to) = (relay.address(), member.address());
    let setup = Setup::new(&[to])
        .also_virtual_server(&format!("relay: {{ listen: \"{listen}\", type: tcp, pool: relay }}"))
        .also_pool(&format!("relay: {{ members: [ {to} ] }}"));
    let proxy = Proxy::start(&setup);
    let open = relayed(listen, [127, 0, 0, 1]);
    assert_eq!(listed(&proxy, &[]).len(), 1);
    let output = weir(&proxy, &["sessions", "end", "--all"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    echoes(&open, b"y");
}

#[test]
fn many_sessions_end_by_one_command() {
    let bed = Bed::new();
    // More than a worker ends in a turn.
    let open: Vec<TcpStream> =
        (0..300).map(|_| relayed(bed.relay.address(), [127, 0, 9, 1])).collect();
    let kept = relayed(bed.other.address(), [127, 0, 9, 1]);
    let ended = run(&bed.proxy, &["sessions", "end", "--virtual-server", "relay"]);
    assert_eq!(ended, "300 sessions ended\n");
    open.iter().for_each(is_reset);
    echoes(&kept, b"y");
    bed.members[0].wait_for_open(0);
}

#[test]
fn commands_that_end_sessions_are_audited() {
    let log = TempDir::new("sessions");
    let file = log.path().join("audit.log");
    let (relay, member) = (Lease::new(), echo());
    let (listen, to) = (relay.address(), member.address());
    let setup = Setup::new(&[to])
        .admin_socket()
        .audit_to(&file)
        .also_virtual_server(&format!("relay: {{ listen: \"{listen}\", type: tcp, pool: relay }}"))
        .also_pool(&format!("relay: {{ members: [ {to} ] }}"));
    let proxy = Proxy::start(&setup);
    let open = relayed(listen, [127, 0, 0, 1]);
    run(&proxy, &["sessions", "end", "--pool", "relay"]);
    is_reset(&open);
    eventually("the line of the audit log", STEP_TIMEOUT, || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().any(|line| {
            ["/v1/sessions/end", "\"pool\":\"relay\"", "\"sessions_ended\":1"]
                .iter()
                .all(|text| line.contains(text))
        })
    });
}

/// A weir that relays to one member.
struct Watched {
    proxy: Proxy,
    member: StreamMember,
}

/// A relay to this member with these keys of `tcp`.
fn watched(member: &StreamMember, tcp: &str) -> Setup {
    Setup::new(&[member.address()])
        .virtual_server("type: tcp")
        .virtual_server(&format!("tcp: {{ {tcp} }}"))
        .admin_socket()
        .access_log()
}

impl Watched {
    /// `tcp`: the keys of `tcp`; `pool`: a line of the pool.
    fn new(tcp: &str, pool: &str) -> Self {
        let member = echo();
        let proxy = Proxy::start(&watched(&member, tcp).pool(pool));
        // The harness's test connection is no session of the test.
        proxy.settle();
        Self { proxy, member }
    }

    fn client(&self) -> TcpStream {
        relayed(self.proxy.address(), [127, 0, 0, 1])
    }

    fn set(&self, state: &str) {
        let member = self.member.address().to_string();
        // It is the only member of its pool.
        let last: &[&str] = if state == "enable" { &[] } else { &["--last"] };
        run(&self.proxy, &[&["member", &member, state], last].concat());
    }

    fn reset_count(&self) -> f64 {
        let labels = ["\"main\"", "termination=\"member_down\""];
        self.proxy.metric("weir_virtual_server_relayed_connections_total", &labels)
    }
}

const RESETS: &str = "reset_on_service_down: true";

#[test]
fn sessions_of_a_disabled_member_are_reset_and_those_of_a_drained_one_stay() {
    let bed = Watched::new(RESETS, "retries: 0");
    let client = bed.client();
    bed.set("drain");
    echoes(&client, b"y");
    bed.set("disable");
    is_reset(&client);
    bed.member.wait_for_open(0);
    assert_eq!(bed.reset_count(), 1.0);
    bed.set("enable");
    let client = bed.client();
    echoes(&client, b"y");
    assert_eq!(bed.reset_count(), 1.0, "a member that is back keeps what it gets");
}

#[test]
fn sessions_stay_without_the_setting_and_a_reload_brings_it_to_them() {
    let bed = Watched::new("", "retries: 0");
    let client = bed.client();
    bed.set("disable");
    echoes(&client, b"y");
    assert_eq!(bed.reset_count(), 0.0);
    bed.proxy.reload_and_wait(&watched(&bed.member, RESETS));
    is_reset(&client);
    assert_eq!(bed.reset_count(), 1.0);
}

#[test]
fn sessions_of_a_removed_member_are_reset() {
    let bed = Watched::new(RESETS, "retries: 0");
    let client = bed.client();
    let other = echo();
    bed.proxy.reload_and_wait(&watched(&other, RESETS));
    is_reset(&client);
    echoes(&bed.client(), b"y");
    assert_eq!(bed.reset_count(), 1.0);
}

#[test]
fn sessions_of_a_member_that_goes_down_are_reset() {
    let mut health = Member::named("health");
    let port = health.address().port();
    let monitors = format!(
        "monitors: [ {{ type: http, port: {port}, interval: 2s, timeout: 2s, fall: 1, rise: 1 }} ]"
    );
    let bed = Watched::new(RESETS, &monitors);
    bed.proxy.wait_for_member_state(bed.member.address(), "up", STEP_TIMEOUT);
    let client = bed.client();
    echoes(&client, b"y");
    // The connection itself is sound: only the monitor finds the member down.
    health.kill();
    is_reset(&client);
    assert_eq!(bed.reset_count(), 1.0);
    bed.member.wait_for_open(0);
}
