//! Virtual servers of `type: udp`: the datagrams of a client go to one member, and its replies to the client.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::Signal;
use weir_tests::datagrams::{DatagramClient, DatagramMember, UdpLease};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// Time after which a missing datagram is certain.
const SILENCE: Duration = Duration::from_millis(300);

/// A proxy whose virtual server `dgrams` has `type: udp`.
struct Bed {
    proxy: Proxy,
    port: UdpLease,
    members: Vec<SocketAddr>,
}

/// A setup with these further keys of the virtual server and of its pool.
fn setup(port: &UdpLease, members: &[SocketAddr], server: &str, pool: &str) -> Setup {
    let listen = port.address();
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    // The harness needs a TCP virtual server to detect that weir serves.
    Setup::new(&[])
        .member("127.0.0.1:9")
        .access_log()
        .also_virtual_server(&format!(
            "dgrams: {{ listen: \"{listen}\", type: udp, pool: dgrams{server} }}"
        ))
        .also_pool(&format!("dgrams: {{ members: [ {} ]{pool} }}", members.join(", ")))
}

impl Bed {
    fn new(members: &[&DatagramMember], server: &str, pool: &str) -> Self {
        let members: Vec<SocketAddr> = members.iter().map(|member| member.address()).collect();
        Self::over(&members, server, pool)
    }

    fn over(members: &[SocketAddr], server: &str, pool: &str) -> Self {
        let port = UdpLease::new();
        let proxy = Proxy::start(&setup(&port, members, server, pool));
        Self { proxy, port, members: members.to_vec() }
    }

    fn client(&self) -> DatagramClient {
        DatagramClient::of(self.port.address())
    }

    fn count(&self, what: &str) -> f64 {
        self.proxy
            .metric("weir_virtual_server_datagrams_total", &["dgrams", &format!("\"{what}\"")])
    }

    fn ended(&self, termination: &str) -> f64 {
        let label = format!("termination=\"{termination}\"");
        self.proxy.metric("weir_virtual_server_relayed_connections_total", &["dgrams", &label])
    }

    #[track_caller]
    fn wait_for_sessions(&self, count: f64) {
        self.proxy.wait_for_open_connections("dgrams", count);
    }

    /// Waits until the access log has this number of lines with this text. Returns the lines.
    #[track_caller]
    fn logged(&mut self, text: &str, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        eventually(&format!("{count} lines have {text}"), STEP_TIMEOUT, || {
            let output = self.proxy.process().output();
            found = output.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
            found.len() >= count
        });
        found
    }
}

fn name(answer: &str) -> &str {
    answer.split(' ').next().unwrap_or_default()
}

#[test]
fn a_client_keeps_its_member_and_gets_its_answers_alone() {
    let members = [DatagramMember::echo("a"), DatagramMember::echo("b")];
    let bed = Bed::new(&[&members[0], &members[1]], "", "");
    let clients: Vec<DatagramClient> = (0..8).map(|_| bed.client()).collect();
    let mut names = vec![BTreeSet::new(); clients.len()];
    for round in 0..5 {
        for (number, client) in clients.iter().enumerate() {
            client.send(format!("{number}:{round}"));
        }
        for (number, client) in clients.iter().enumerate() {
            let answer = String::from_utf8(client.receive()).expect("text");
            assert!(answer.ends_with(&format!(" {number}:{round}")), "{answer}");
            names[number].insert(name(&answer).to_owned());
        }
    }
    assert!(names.iter().all(|names| names.len() == 1), "{names:?}");
    let all: BTreeSet<String> = names.into_iter().flatten().collect();
    assert_eq!(all.len(), 2, "both members serve");
    bed.wait_for_sessions(8.0);
    assert_eq!((bed.count("received"), bed.count("sent")), (40.0, 40.0));
    for member in &members {
        // Each session has its own port to the member.
        let ports: BTreeSet<SocketAddr> = member.seen().into_iter().map(|(from, _)| from).collect();
        let label = format!("member=\"{}\"", member.address());
        let open = bed.proxy.metric("weir_member_connections_open", &["dgrams", &label]);
        assert_eq!(ports.len() as f64, open);
    }
}

#[test]
fn an_idle_session_ends_and_is_logged() {
    let member = DatagramMember::echo("a");
    let mut bed = Bed::new(&[&member], ", udp: { idle_timeout: 200ms }", "");
    let client = bed.client();
    assert_eq!(client.ask("12345"), "a 12345");
    let line = bed.logged("\"termination\":\"idle_timeout\"", 1).remove(0);
    for part in [
        format!("\"client\":\"{}\"", client.address()),
        "\"virtual_server\":\"dgrams\",\"datagrams_received\":1,\"datagrams_sent\":1".to_owned(),
        format!("\"pool\":\"dgrams\",\"member\":\"{}\"", member.address()),
        "\"bytes_received\":5,\"bytes_sent\":7,\"retries\":0".to_owned(),
    ] {
        assert!(line.contains(&part), "{part}: {line}");
    }
    bed.wait_for_sessions(0.0);
    assert_eq!(bed.ended("idle_timeout"), 1.0);
    let label = format!("\"{}\"", member.address());
    assert_eq!(bed.proxy.metric("weir_member_connections_open", &["dgrams", &label]), 0.0);
    // The same client starts another session.
    assert_eq!(client.ask("again"), "a again");
}

const SHARED_SOCKETS: &str = ", udp: { datagrams: 1, sessions_per_socket_max: 3 }";

fn ports(member: &DatagramMember) -> Vec<SocketAddr> {
    member.seen().into_iter().map(|(from, _)| from).collect()
}

#[test]
fn a_socket_serves_several_queries_if_it_may() {
    let member = DatagramMember::echo("a");
    let bed = Bed::new(&[&member], SHARED_SOCKETS, "");
    let mut count = 0;
    eventually("a port is used a third time", STEP_TIMEOUT, || {
        let client = bed.client();
        assert_eq!(client.ask(&format!("query {count}")), format!("a query {count}"));
        count += 1;
        let ports = ports(&member);
        let uses = |port| ports.iter().filter(|it| *it == port).count();
        let most = ports.iter().map(uses).max().unwrap_or(0);
        assert!(most <= 3, "{ports:?}");
        most == 3
    });
    let label = format!("\"{}\"", member.address());
    assert_eq!(bed.proxy.metric("weir_member_connections_open", &["dgrams", &label]), 0.0);
}

#[test]
fn a_socket_on_which_more_came_serves_nobody_else() {
    // The member sends each reply twice.
    let member = DatagramMember::new(|bytes| vec![bytes.to_vec(), bytes.to_vec()]);
    let bed = Bed::new(&[&member], SHARED_SOCKETS, "");
    let begun = std::time::Instant::now();
    let mut count = 0;
    // For longer than the time before a socket is reused.
    while count < 20 || begun.elapsed() < SILENCE {
        let client = bed.client();
        let query = format!("query {count}");
        assert_eq!(client.ask(&query), query);
        count += 1;
    }
    let all = ports(&member);
    // The kernel may assign the same port again, which is rare.
    let distinct = all.iter().collect::<BTreeSet<_>>().len();
    assert!(distinct * 10 > all.len() * 9, "{distinct} ports for {} queries", all.len());
}

#[test]
fn each_query_goes_by_itself_and_ends_with_its_answer() {
    let members = [DatagramMember::echo("a"), DatagramMember::echo("b")];
    let mut bed = Bed::new(&[&members[0], &members[1]], ", udp: { datagrams: 1 }", "");
    let client = bed.client();
    let names: Vec<String> =
        (0..10).map(|query| name(&client.ask(&query.to_string())).to_owned()).collect();
    assert!(names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()), "{names:?}");
    bed.wait_for_sessions(0.0);
    assert_eq!(bed.ended("complete"), 10.0);
    bed.logged("\"termination\":\"complete\"", 10);
    // Several queries at once from one port: one session each.
    for query in 0..20 {
        client.send(format!("{query}"));
    }
    let answers: BTreeSet<Vec<u8>> = (0..20).map(|_| client.receive()).collect();
    assert_eq!(answers.len(), 20, "each query has its answer");
    bed.wait_for_sessions(0.0);
    assert_eq!(bed.ended("complete"), 30.0);
}

#[test]
fn what_gets_no_answer_is_over_at_once() {
    let member = DatagramMember::silent();
    let bed = Bed::new(&[&member], ", udp: { datagrams: 1, responses: 0 }", "");
    let client = bed.client();
    for line in 0..100 {
        client.send(format!("<34>line {line}"));
    }
    eventually("all lines are there", STEP_TIMEOUT, || member.seen().len() == 100);
    bed.wait_for_sessions(0.0);
    assert_eq!(bed.ended("complete"), 100.0);
    let lines: BTreeSet<Vec<u8>> = member.seen().into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines.len(), 100);
}

#[test]
fn a_query_goes_to_another_member_when_one_is_unreachable() {
    let (gone, member) = (UdpLease::new(), DatagramMember::echo("a"));
    let pool = ", passive: { failures: 3, eject: 1m }";
    let members = [gone.address(), member.address()];
    let bed = Bed::over(&members, ", udp: { datagrams: 1 }", pool);
    let client = bed.client();
    for query in 0..20 {
        assert_eq!(client.ask(&query.to_string()), format!("a {query}"));
    }
    bed.wait_for_sessions(0.0);
    assert_eq!(bed.ended("complete"), 20.0);
    assert_eq!(bed.proxy.metric("weir_pool_retries_total", &["dgrams"]), 3.0, "then it is ejected");
    let label = format!("\"{}\"", gone.address());
    let failures = ["dgrams", &label, "\"connect\""];
    assert_eq!(bed.proxy.metric("weir_member_failures_total", &failures), 3.0);
    assert_eq!(bed.members.len(), 2);
}

#[test]
fn a_member_that_never_answers_has_failed() {
    let member = DatagramMember::silent();
    let mut bed = Bed::new(
        &[&member],
        ", udp: { datagrams: 1, idle_timeout: 200ms }",
        ", passive: { failures: 2 }",
    );
    let client = bed.client();
    client.send("one");
    client.send("two");
    bed.logged("\"termination\":\"member_timeout\"", 2);
    let label = format!("\"{}\"", member.address());
    assert_eq!(bed.proxy.metric("weir_member_ejections_total", &["dgrams", &label]), 1.0);
}

#[test]
fn sessions_have_limits_in_all_and_per_client() {
    let member = DatagramMember::echo("a");
    let bed = Bed::new(&[&member], ", limits: { connections: 2 }", "");
    let clients = [bed.client(), bed.client(), bed.client()];
    assert_eq!(clients[0].ask("x"), "a x");
    assert_eq!(clients[1].ask("x"), "a x");
    clients[2].send("x");
    assert_eq!(clients[2].receive_within(SILENCE), None);
    assert_eq!((bed.count("refused"), bed.count("received")), (1.0, 2.0));
    let refused = "weir_virtual_server_connections_refused_total";
    assert_eq!(bed.proxy.metric(refused, &["dgrams"]), 1.0);
    assert_eq!(clients[0].ask("y"), "a y", "those that are there go on");

    let member = DatagramMember::echo("a");
    let bed = Bed::new(&[&member], ", limits: { per_key: [ { connections: 1 } ] }", "");
    let clients = [bed.client(), bed.client()];
    assert_eq!(clients[0].ask("x"), "a x");
    clients[1].send("x");
    assert_eq!(clients[1].receive_within(SILENCE), None);
    let limited = "weir_virtual_server_connections_limited_total";
    assert_eq!(bed.proxy.metric(limited, &["dgrams"]), 1.0);
}

#[test]
fn only_clients_of_the_listed_networks_have_sessions() {
    let member = DatagramMember::echo("a");
    let bed = Bed::new(&[&member], ", allowed_clients: [ 127.0.0.2, \"2001:db8::/32\" ]", "");
    let reload = |clients: &str| {
        let keys = format!(", allowed_clients: [ {clients} ]");
        bed.proxy.reload_and_wait(&setup(&bed.port, &bed.members, &keys, ""));
    };
    let clients = [bed.client(), bed.client()];
    clients[0].send("x");
    eventually("it is refused", STEP_TIMEOUT, || bed.count("refused") == 1.0);
    reload("127.0.0.0/8");
    assert_eq!(clients[0].ask("y"), "a y");
    reload("127.0.0.2");
    assert_eq!(clients[0].ask("z"), "a z", "a session that is open goes on");
    clients[1].send("x");
    eventually("it is refused", STEP_TIMEOUT, || bed.count("refused") == 2.0);
    let ended = "weir_virtual_server_connections_ended_by_policy_total";
    assert_eq!(bed.proxy.metric(ended, &["dgrams"]), 2.0);
    let seen: BTreeSet<_> = member.seen().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(seen, BTreeSet::from([b"y".to_vec(), b"z".to_vec()]));
}

#[test]
fn answers_are_bounded_by_what_was_asked() {
    let member = DatagramMember::new(|_| (0..10).map(|_| vec![b'x'; 100]).collect());
    let bed = Bed::new(&[&member], ", udp: { amplification_max: 3 }", "");
    let client = bed.client();
    client.send([b'q'; 100]);
    for _ in 0..3 {
        assert_eq!(client.receive(), [b'x'; 100]);
    }
    assert_eq!(client.receive_within(SILENCE), None);
    assert_eq!((bed.count("sent"), bed.count("answers_dropped")), (3.0, 7.0));
}

#[test]
fn a_reload_loses_no_session() {
    let members = [DatagramMember::echo("a"), DatagramMember::echo("b")];
    let bed = Bed::new(&[&members[0]], "", "");
    let clients: Vec<DatagramClient> = (0..20).map(|_| bed.client()).collect();
    for client in &clients {
        assert_eq!(client.ask("1"), "a 1");
    }
    // The reload removes the member of these sessions. New sessions use the other member.
    bed.proxy.reload_and_wait(&setup(&bed.port, &[members[1].address()], "", ""));
    for client in &clients {
        assert_eq!(client.ask("2"), "a 2");
    }
    assert_eq!(bed.client().ask("3"), "b 3");
}

/// Syslog lines get no reply. RADIUS requests get one reply each.
#[test]
fn reloads_lose_nothing_that_is_sent_once() {
    const RELOADS: usize = 5;
    const LINES: usize = 200;
    let collectors = [DatagramMember::silent(), DatagramMember::silent()];
    let addresses: Vec<SocketAddr> = collectors.iter().map(DatagramMember::address).collect();
    let once = ", udp: { datagrams: 1, responses: 0 }";
    let bed = Bed::over(&addresses, once, "");
    let client = bed.client();
    for round in 0..RELOADS {
        for line in 0..LINES {
            client.send(format!("<34>{round} line {line}"));
            // The reload happens while datagrams are in flight.
            if line == LINES / 2 {
                let count = 1 + round % 2;
                bed.proxy.reload_and_wait(&setup(&bed.port, &addresses[..count], once, ""));
            }
        }
    }
    let lines = || -> BTreeSet<Vec<u8>> {
        collectors.iter().flat_map(|it| it.seen()).map(|(_, line)| line).collect()
    };
    eventually("all lines are there", STEP_TIMEOUT, || lines().len() == RELOADS * LINES);

    let members = [DatagramMember::echo("a"), DatagramMember::echo("b")];
    let addresses: Vec<SocketAddr> = members.iter().map(DatagramMember::address).collect();
    let hash = ", balance: { hash: \"radius.attributes[44]\" }";
    let bed = Bed::over(&addresses, ", udp: { datagrams: 1 }", hash);
    for round in 0..RELOADS {
        let clients: Vec<DatagramClient> = (0..20).map(|_| bed.client()).collect();
        clients.iter().for_each(|client| client.send("request"));
        let count = 1 + round % 2;
        let next = setup(&bed.port, &addresses[..count], ", udp: { datagrams: 1 }", hash);
        bed.proxy.reload_and_wait(&next);
        for client in &clients {
            assert!(client.receive().ends_with(b" request"));
        }
    }
    bed.wait_for_sessions(0.0);
    assert_eq!(bed.ended("complete"), (20 * RELOADS) as f64);
}

#[test]
fn sessions_of_a_virtual_server_that_is_gone_end_in_their_time() {
    let member = DatagramMember::echo("a");
    let port = UdpLease::new();
    let with = setup(&port, &[member.address()], "", "").top("data_plane: { drain_timeout: 4s }");
    let mut proxy = Proxy::start(&with);
    let client = DatagramClient::of(port.address());
    assert_eq!(client.ask("1"), "a 1");
    let without =
        Setup::new(&[]).member("127.0.0.1:9").access_log().top("data_plane: { drain_timeout: 4s }");
    proxy.reload_and_wait(&without);
    assert_eq!(client.ask("2"), "a 2", "it goes on for a while");
    let other = DatagramClient::of(port.address());
    other.send("x");
    assert_eq!(other.receive_within(SILENCE), None, "nothing begins there");
    eventually("the session is cut", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"termination\":\"stopped\"")
    });
    client.send("3");
    assert_eq!(client.receive_within(SILENCE), None);
    // A later reload may restore the virtual server.
    proxy.reload_and_wait(&with);
    assert_eq!(DatagramClient::answered(port.address(), "4").1, "a 4");
}

const WORKERS: &str = "data_plane: { workers: 4, drain_timeout: 10m }";

/// Clients with sessions at the member. They are few, so that some worker has no session.
fn few_clients(port: &UdpLease) -> Vec<DatagramClient> {
    let clients: Vec<DatagramClient> = (0..3).map(|_| DatagramClient::of(port.address())).collect();
    for client in &clients {
        assert_eq!(client.ask("1"), "a 1");
    }
    clients
}

#[track_caller]
fn go_on(clients: &[DatagramClient], member: &DatagramMember, when: &str) {
    for round in 0..20 {
        for client in clients {
            assert_eq!(client.ask(&round.to_string()), format!("a {round}"), "{when}");
        }
    }
    let ports: BTreeSet<SocketAddr> = ports(member).into_iter().collect();
    assert_eq!(ports.len(), clients.len(), "{when}: no client has got another session");
}

#[test]
fn sessions_stay_at_their_workers_whatever_becomes_of_the_listener() {
    // A closed or added socket would change the kernel's distribution of clients.
    for _ in 0..3 {
        let (member, port) = (DatagramMember::echo("a"), UdpLease::new());
        let with = setup(&port, &[member.address()], "", "").top(WORKERS);
        let without = Setup::new(&[]).member("127.0.0.1:9").access_log().top(WORKERS);
        let mut proxy = Proxy::start(&with);
        let clients = few_clients(&port);
        proxy.reload_and_wait(&without);
        go_on(&clients, &member, "without the virtual server");
        proxy.reload_and_wait(&with);
        go_on(&clients, &member, "it is there again");
        proxy.process().signal(Signal::TERM);
        eventually("nothing begins any more", STEP_TIMEOUT, || {
            proxy.process().output().contains("drains")
        });
        go_on(&clients, &member, "while it drains");
    }
}

#[test]
fn the_port_of_a_removed_virtual_server_is_free_when_its_sessions_are_over() {
    let (member, port) = (DatagramMember::echo("a"), UdpLease::new());
    let server = ", udp: { idle_timeout: 3s }";
    let mut proxy = Proxy::start(&setup(&port, &[member.address()], server, "").top(WORKERS));
    let clients = few_clients(&port);
    proxy.reload_and_wait(&Setup::new(&[]).member("127.0.0.1:9").access_log().top(WORKERS));
    assert!(std::net::UdpSocket::bind(port.address()).is_err());
    eventually("the port is free", STEP_TIMEOUT, || {
        std::net::UdpSocket::bind(port.address()).is_ok()
    });
    assert!(proxy.process().output().matches("idle_timeout").count() >= clients.len());
}

/// Number of bytes in the receive queues of sockets with this port.
fn unread_bytes(port: u16) -> usize {
    let sockets = std::fs::read_to_string("/proc/net/udp").expect("the sockets of UDP");
    let of_port = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_port = of_port.filter(|words| words[1].ends_with(&format!(":{port:04X}")));
    let unread = of_port.filter_map(|words| words[4].split_once(':'));
    unread.map(|(_, bytes)| usize::from_str_radix(bytes, 16).expect("a number")).sum()
}

/// A reload removes one of two ports, while a session uses the other.
#[test]
fn what_comes_to_a_port_that_was_removed_takes_no_memory() {
    const COUNT: usize = 200;
    let (member, kept, gone) = (DatagramMember::echo("a"), UdpLease::new(), UdpLease::new());
    let listening = |listen: &str| {
        let server = format!("dgrams: {{ listen: [ {listen} ], type: udp, pool: dgrams }}");
        let pool = format!("dgrams: {{ members: [ {} ] }}", member.address());
        let setup = Setup::new(&[]).member("127.0.0.1:9").top(WORKERS);
        setup.also_virtual_server(&server).also_pool(&pool)
    };
    let both = listening(&format!("{}, {}", kept.address(), gone.address()));
    let mut proxy = Proxy::start(&both);
    let client = DatagramClient::of(kept.address());
    assert_eq!(client.ask("1"), "a 1");
    proxy.reload_and_wait(&listening(&kept.address().to_string()));
    let strangers: Vec<_> = (0..COUNT).map(|_| DatagramClient::of(gone.address())).collect();
    let long = "x".repeat(1_400);
    strangers.iter().for_each(|stranger| stranger.send(&long));
    assert!(unread_bytes(gone.address().port()) < 64 * 1024);
    assert_eq!(client.ask("2"), "a 2");
    // Another reload restores the port, with the same buffer as before.
    proxy.reload_and_wait(&both);
    let (client, answer) = DatagramClient::answered(gone.address(), "3");
    assert_eq!(answer, "a 3");
    proxy.process().while_stopped(|| (0..COUNT).for_each(|_| client.send("4")));
    (0..COUNT).for_each(|_| assert_eq!(client.receive(), b"a 4"));
}

#[test]
fn what_is_sent_to_all_hosts_begins_no_session() {
    let (member, port) = (DatagramMember::echo("a"), UdpLease::new());
    let number = port.address().port();
    let setup = Setup::new(&[])
        .member("127.0.0.1:9")
        .also_virtual_server(&format!(
            "dgrams: {{ listen: \"0.0.0.0:{number}\", type: udp, pool: dgrams }}"
        ))
        .also_pool(&format!("dgrams: {{ members: [ {} ] }}", member.address()));
    let proxy = Proxy::start(&setup);
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port of UDP");
    sender.set_broadcast(true).expect("a broadcast");
    sender.send_to(b"all", ("127.255.255.255", number)).expect("sending");
    let count = |what: &str| {
        let label = format!("\"{what}\"");
        proxy.metric("weir_virtual_server_datagrams_total", &["dgrams", &label])
    };
    // Each worker receives a copy of a broadcast.
    eventually("it is refused", STEP_TIMEOUT, || count("refused") >= 1.0);
    let client = DatagramClient::of(port.address());
    assert_eq!(client.ask("one"), "a one");
    assert_eq!(count("received"), 1.0);
    assert_eq!(member.seen().len(), 1);
}

#[test]
fn a_drain_waits_for_sessions_and_begins_none() {
    let member = DatagramMember::echo("a");
    let mut bed = Bed::new(&[&member], ", udp: { idle_timeout: 3s }", "");
    let client = bed.client();
    assert_eq!(client.ask("1"), "a 1");
    bed.proxy.process().signal(Signal::TERM);
    eventually("no new session", STEP_TIMEOUT, || {
        let other = bed.client();
        other.send("x");
        other.receive_within(Duration::from_millis(50)).is_none()
    });
    assert_eq!(client.ask("2"), "a 2", "what was under way goes on");
    bed.logged("\"termination\":\"idle_timeout\"", 1);
    bed.proxy.process().wait(STEP_TIMEOUT);
}

#[test]
fn answers_leave_from_the_address_that_was_asked() {
    let member = DatagramMember::echo("a");
    let port = UdpLease::new();
    let everywhere = SocketAddr::from(([0, 0, 0, 0], port.address().port()));
    let setup = Setup::new(&[])
        .member("127.0.0.1:9")
        .also_virtual_server(&format!(
            "dgrams: {{ listen: \"{everywhere}\", type: udp, pool: dgrams }}"
        ))
        .also_pool(&format!("dgrams: {{ members: [ {} ] }}", member.address()));
    let _proxy = Proxy::start(&setup);
    // The client's connected socket accepts datagrams only from the address that it sent to.
    for host in [1, 2, 3] {
        let asked = SocketAddr::from(([127, 0, 0, host], port.address().port()));
        assert_eq!(DatagramClient::of(asked).ask("x"), "a x", "{asked}");
    }
}

#[test]
fn members_are_told_of_the_client_in_the_first_datagram() {
    let member = DatagramMember::new(|bytes| vec![bytes.to_vec()]);
    let bed = Bed::new(&[&member], "", ", proxy_protocol: v2");
    let client = bed.client();
    let first = client.ask("hello");
    let header = &member.seen()[0].1;
    // Version 2 with PROXY; IPv4 with datagrams; 12 bytes of addresses.
    assert_eq!(&header[12..16], [0x21, 0x12, 0, 12]);
    assert_eq!(&header[16..24], [127, 0, 0, 1, 127, 0, 0, 1]);
    assert_eq!(header[24..26], client.address().port().to_be_bytes());
    assert_eq!(header[26..28], bed.port.address().port().to_be_bytes());
    assert!(first.ends_with("hello"));
    assert_eq!(client.ask("more"), "more");
}

#[test]
fn a_client_stays_at_its_member_by_its_address() {
    let members = [DatagramMember::echo("a"), DatagramMember::echo("b"), DatagramMember::echo("c")];
    let all = [&members[0], &members[1], &members[2]];
    for (server, pool) in [
        (", udp: { datagrams: 1 }", ", balance: source_address"),
        (", udp: { datagrams: 1 }, persistence: { type: source_address }", ""),
    ] {
        let bed = Bed::new(&all, server, pool);
        let names: BTreeSet<String> =
            (0..12).map(|_| name(&bed.client().ask("x")).to_owned()).collect();
        assert_eq!(names.len(), 1, "{server}{pool}: {names:?}");
    }
}

#[test]
fn least_connections_spreads_sessions() {
    let members = [DatagramMember::echo("a"), DatagramMember::echo("b")];
    let bed = Bed::new(&[&members[0], &members[1]], "", ", balance: least_connections");
    let clients: Vec<DatagramClient> = (0..10).map(|_| bed.client()).collect();
    let of_a = clients.iter().filter(|client| name(&client.ask("x")) == "a").count();
    assert_eq!(of_a, 5);
}

#[test]
fn values_of_the_payload_decide() {
    let members: Vec<DatagramMember> =
        ["a", "b", "c", "d"].into_iter().map(DatagramMember::echo).collect();
    let all: Vec<&DatagramMember> = members.iter().collect();
    let of_call = "${sip.headers['Call-ID']}";
    // With long sessions, weir would mistake a new client with a reused port for the earlier client.
    let sip =
        format!(", udp: {{ datagrams: 1 }}, persistence: {{ type: hash, of: \"{of_call}\" }}");
    let bed = Bed::new(&all, &sip, "");
    let mut used = BTreeSet::new();
    for call in 0..20 {
        let names: BTreeSet<String> = ["Call-ID", "i", "CALL-ID"]
            .into_iter()
            .map(|line| {
                let text = format!("INVITE sip:b SIP/2.0\r\nVia: x\r\n{line}: {call}@host\r\n\r\n");
                name(&bed.client().ask(&text)).to_owned()
            })
            .collect();
        assert_eq!(names.len(), 1, "call {call}: {names:?}");
        used.extend(names);
    }
    assert!(used.len() > 2, "{used:?}");

    let bed =
        Bed::new(&all, ", udp: { datagrams: 1 }", ", balance: { hash: \"radius.attributes[44]\" }");
    for session in 0..10_u8 {
        let request = |id: u8| {
            let mut out = vec![4, id, 0, 23];
            out.extend([0; 16]);
            out.extend([44, 3, session]);
            out
        };
        let answers: BTreeSet<u8> = (0..5)
            .map(|id| {
                let client = bed.client();
                client.send(request(id));
                client.receive()[0]
            })
            .collect();
        assert_eq!(answers.len(), 1, "session {session}");
    }
    // Without the value, the members are selected in turn.
    let names: BTreeSet<String> =
        (0..12).map(|_| name(&bed.client().ask("x")).to_owned()).collect();
    assert_eq!(names.len(), 4);
}

/// A QUIC server that only handles packet headers. It assigns a connection ID to each client.
fn quic_member(own: u8) -> DatagramMember {
    DatagramMember::new(move |packet| {
        if packet[0] & 0x80 == 0 {
            return vec![vec![0x40, own]];
        }
        let length = usize::from(packet[5]);
        let client_id = &packet[6..6 + length];
        let mut answer = vec![0xC0, 0, 0, 0, 1, 0, 8, 0x11, own];
        answer.extend(client_id.iter().chain(&[0; 6]).take(6));
        answer.push(own);
        vec![answer]
    })
}

/// An Initial packet with this connection ID of the server.
fn initial(id: &[u8]) -> Vec<u8> {
    let mut out = vec![0xC0, 0, 0, 0, 1, id.len() as u8];
    out.extend(id);
    out.extend([0, 0, 0]);
    out
}

fn short(id: &[u8]) -> Vec<u8> {
    [&[0x40][..], id, b"payload"].concat()
}

#[test]
fn a_client_of_quic_keeps_its_member_when_its_address_changes() {
    let members: Vec<DatagramMember> = (1..=4).map(quic_member).collect();
    let all: Vec<&DatagramMember> = members.iter().collect();
    let bed = Bed::new(&all, ", persistence: { type: quic }", "");
    let mut used = BTreeSet::new();
    let clients: Vec<(u8, Vec<u8>)> = (0..12_u8)
        .map(|number| {
            let client = bed.client();
            client.send(initial(&[number; 6]));
            let answer = client.receive();
            let (own, given) = (answer[15], answer[7..15].to_vec());
            used.insert(own);
            (own, given)
        })
        .collect();
    assert!(used.len() > 1);
    let check = |when: &str| {
        for (own, given) in &clients {
            for _ in 0..3 {
                // Another port, and possibly another worker.
                let moved = bed.client();
                moved.send(short(given));
                assert_eq!(moved.receive(), [0x40, *own], "{when}");
            }
        }
    };
    check("at once");
    let members: Vec<SocketAddr> = members.iter().map(DatagramMember::address).collect();
    bed.proxy.reload_and_wait(&setup(&bed.port, &members, ", persistence: { type: quic }", ""));
    check("after a reload");
}

/// Opens a connection of the client. Returns its member, and the connection ID that the member assigned.
fn connect(client: &DatagramClient, number: u8) -> (u8, Vec<u8>) {
    client.send(initial(&[number; 6]));
    let answer = client.receive();
    (answer[15], answer[7..15].to_vec())
}

#[test]
fn a_port_that_passes_to_another_client_of_quic_goes_where_that_belongs() {
    let members: Vec<DatagramMember> = (1..=2).map(quic_member).collect();
    let all: Vec<&DatagramMember> = members.iter().collect();
    let mut bed = Bed::new(&all, ", persistence: { type: quic }", "");
    let (port, other) = (bed.client(), bed.client());
    let (first, first_id) = connect(&port, 1);
    let (second, second_id) = connect(&other, 2);
    assert_ne!(first, second, "members are taken in turn");
    let ask = |id: &[u8], member: u8| {
        port.send(short(id));
        assert_eq!(port.receive(), [0x40, member]);
    };
    ask(&first_id, first);
    ask(&second_id, second);
    ask(&second_id, second);
    ask(&first_id, first);
    // Each time the previous session has ended, and the log contains both clients.
    bed.logged("\"termination\":\"client_abort\"", 2);
    bed.wait_for_sessions(2.0);
    // A packet with an unknown ID stays in the existing session.
    ask(b"8 bytes!", first);
    // The member with these IDs is removed and cannot receive packets, so the session of the port stays at its member.
    let members = [members[usize::from(first) - 1].address()];
    bed.proxy.reload_and_wait(&setup(&bed.port, &members, ", persistence: { type: quic }", ""));
    ask(&second_id, first);
    ask(&first_id, first);
}

#[test]
fn members_are_found_by_the_name_in_their_connection_ids() {
    let members: Vec<DatagramMember> = (1..=4).map(quic_member).collect();
    let all: Vec<&DatagramMember> = members.iter().collect();
    let place = "server_id: { offset: 1, length: 1 }";
    let bed = Bed::new(&all, &format!(", persistence: {{ type: quic, {place} }}"), "");
    let mut seen = BTreeSet::new();
    for number in 0..12_u8 {
        let client = bed.client();
        client.send(initial(&[number; 6]));
        seen.insert(client.receive()[15]);
    }
    for own in seen {
        for other in 0..5_u8 {
            // Connection IDs that the members never sent in clear text.
            let moved = bed.client();
            moved.send(short(&[other, own, 7, 7, 7, 7, 7, 7]));
            assert_eq!(moved.receive(), [0x40, own]);
        }
    }
}

#[test]
fn a_monitor_takes_a_member_out_that_does_not_answer_it() {
    let (well, unwell) = (DatagramMember::echo("a"), DatagramMember::silent());
    let monitors = ", monitors: [ { type: udp, send: ping, receive: \"a ping\", interval: 400ms, timeout: 400ms } ]";
    let bed = Bed::new(&[&well, &unwell], ", udp: { datagrams: 1 }", monitors);
    bed.proxy.wait_for_member_state(unwell.address(), "down", STEP_TIMEOUT);
    for query in 0..6 {
        assert_eq!(bed.client().ask(&query.to_string()), format!("a {query}"));
    }
}
