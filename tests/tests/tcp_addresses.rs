//! Listening addresses of virtual servers of `type: tcp`, ports of members, and source addresses of connections to members.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Instant;

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::namespaces::Namespaces;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require};

/// A port below the ephemeral range, so that it is usually free.
const FIRST_PORT: u16 = 8_000;

/// A port in the ephemeral range.
const SOURCE_PORT: u16 = 40_000;

/// A loopback address that is unique among the tests of all processes.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 | (high & 63), low, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Serves an address: sends `LOCAL REMOTE` on each connection and then echoes.
fn serve(address: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(address).expect("a member's address");
    let address = listener.local_addr().expect("the member's address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
                stream.write_all(format!("{local} {remote}\n").as_bytes())?;
                weir_tests::stream::echo(&mut stream)
            });
        }
    });
    address
}

fn member() -> SocketAddr {
    serve("127.0.0.1:0".parse().expect("an address"))
}

/// Both addresses of the connection, as the member reported them.
fn ends(client: &mut Client) -> (SocketAddr, SocketAddr) {
    let mut line = String::new();
    BufReader::new(client.stream()).read_line(&mut line).expect("a line of the member");
    let (local, remote) = line.trim_end().split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
    (local.parse().expect("the member's end"), remote.parse().expect("weir's end"))
}

fn tcp(members: &[SocketAddr]) -> Setup {
    Setup::new(members).virtual_server("type: tcp").top("data_plane: { workers: 1 }").access_log()
}

/// Whether the kernel supports port ranges of sockets. Otherwise prints the reason for the skip.
fn has_port_ranges() -> bool {
    let release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let is_new_enough = (numbers.next(), numbers.next()) >= (Some(6), Some(3));
    if !is_new_enough {
        weir_tests::tools::skip("`ports` of `source` need Linux 6.3");
    }
    is_new_enough
}

/// The output of `weir run` for a configuration that prevents the start.
fn not_started(configuration: &str) -> String {
    let directory = TempDir::new("refused");
    let file = directory.write("weir.yaml", configuration);
    let log = directory.path().join("output.log");
    let mut process = Process::start(weir_binary(), &["run", &file.to_string_lossy()], &log);
    assert!(!process.wait(STEP_TIMEOUT).success(), "{}", process.output());
    process.output()
}

#[test]
fn members_without_a_port_get_the_port_of_a_range_that_the_client_chose() {
    let (virtual_server, member) = (own_address(), own_address());
    let ports = [FIRST_PORT, FIRST_PORT + 1, FIRST_PORT + 2];
    for port in ports {
        serve(SocketAddr::from((member, port)));
    }
    let last = FIRST_PORT + 2;
    let range = format!(
        "range: {{ listen: \"{virtual_server}:{FIRST_PORT}-{last}\", type: tcp, pool: range }}"
    );
    let pool = format!(
        "range: {{ members: [ {member} ], monitors: [ {{ type: tcp, port: {last}, interval: 200ms }} ] }}"
    );
    let echo = self::member();
    let setup = tcp(&[echo]).also_virtual_server(&range).also_pool(&pool);
    let mut proxy = Proxy::start(&setup);
    for port in ports {
        let to = SocketAddr::from((virtual_server, port));
        let (local, _) = ends(&mut Client::connect(to));
        assert_eq!(local, SocketAddr::from((member, port)));
    }
    let label = format!("member=\"{member}\"");
    eventually("the connections are counted", STEP_TIMEOUT, || {
        proxy.metric("weir_member_requests_total", &["\"range\"", &label]) == 3.0
    });
    let logged = format!("\"member\":\"{member}\"");
    eventually("the connections are logged", STEP_TIMEOUT, || {
        proxy.process().output().matches(&logged).count() == 3
    });
    // A reload that moves the range keeps the ports that are in both ranges.
    let next = last + 1;
    let moved = range.replace(&format!("{FIRST_PORT}-{last}"), &format!("{last}-{next}"));
    let mut kept = Client::connect(SocketAddr::from((virtual_server, last)));
    ends(&mut kept);
    serve(SocketAddr::from((member, next)));
    proxy.reload_and_wait(&tcp(&[echo]).also_virtual_server(&moved).also_pool(&pool));
    for port in [last, next] {
        let (local, _) = ends(&mut Client::connect(SocketAddr::from((virtual_server, port))));
        assert_eq!(local.port(), port);
    }
    kept.send("still there").finish();
    assert_eq!(String::from_utf8_lossy(&kept.reader().rest()), "still there");
    eventually("the ports that went are closed", STEP_TIMEOUT, || {
        TcpStream::connect((virtual_server, FIRST_PORT)).is_err()
    });
}

#[test]
fn a_thousand_ports_are_listened_on() {
    let virtual_server = own_address();
    let last = FIRST_PORT + 1023;
    let echo = member();
    let line = format!(
        "range: {{ listen: \"{virtual_server}:{FIRST_PORT}-{last}\", type: tcp, pool: members }}"
    );
    let proxy = Proxy::start(&tcp(&[echo]).also_virtual_server(&line));
    for port in [FIRST_PORT, FIRST_PORT + 500, last] {
        ends(&mut Client::connect(SocketAddr::from((virtual_server, port))));
    }
    assert!(TcpStream::connect((virtual_server, last + 1)).is_err());
    drop(proxy);
}

#[test]
fn connections_come_from_several_addresses_in_turn_and_from_their_ports() {
    if !has_port_ranges() {
        return;
    }
    // The test needs a namespace in which nothing else uses ports of the ranges, because a port that is bound on any address
    // is not assigned.
    if let Some(namespaces) = Namespaces::make() {
        namespaces.within("adc", connect_from_several_addresses);
    }
}

fn connect_from_several_addresses() {
    let own = [own_address(), own_address()];
    let echo = member();
    let (first, last, next, end) = (SOURCE_PORT, SOURCE_PORT + 7, SOURCE_PORT + 8, SOURCE_PORT + 9);
    let sources =
        format!("source: {{ addresses: [ {}, {} ], ports: {first}-{last} }}", own[0], own[1]);
    let proxy = Proxy::start(&tcp(&[echo]).pool(&sources));
    let mut clients: Vec<Client> = (0..8).map(|_| proxy.client()).collect();
    let from: Vec<SocketAddr> = clients.iter_mut().map(|client| ends(client).1).collect();
    for address in own {
        let count = from.iter().filter(|from| from.ip() == IpAddr::from(address)).count();
        assert_eq!(count, 4, "{from:?}");
    }
    assert!(from.iter().all(|from| (first..=last).contains(&from.port())), "{from:?}");
    drop(clients);
    // All ports of one address are in use, so weir uses the other address.
    let sources =
        format!("source: {{ addresses: [ {}, {} ], ports: {next}-{end} }}", own[0], own[1]);
    proxy.reload_and_wait(&tcp(&[echo]).pool(&sources));
    let mut clients: Vec<Client> = (0..4).map(|_| proxy.client()).collect();
    for client in &mut clients {
        ends(client);
    }
    // All ports are in use, so one more connection is reset, possibly before the connect call has returned.
    if let Ok(mut client) = Client::try_connect(proxy.address()) {
        let mut rest = Vec::new();
        let end = client.stream().read_to_end(&mut rest);
        assert!(end.is_err() && rest.is_empty(), "{end:?} {rest:?}");
    }
    let failures = proxy.metric("weir_member_failures_total", &[]);
    assert_eq!(failures, 0.0, "the member has not failed");
}

#[test]
fn a_list_of_sources_needs_no_ports() {
    let own = [own_address(), own_address()];
    let proxy =
        Proxy::start(&tcp(&[member()]).pool(&format!("source: [ {}, {} ]", own[0], own[1])));
    let from: Vec<IpAddr> = (0..4).map(|_| ends(&mut proxy.client()).1.ip()).collect();
    assert_eq!(from.iter().filter(|from| **from == own[0]).count(), 2, "{from:?}");
}

#[test]
fn ports_that_the_system_does_not_use_are_an_error_at_start_and_at_reload() {
    let sources = format!("source: {{ addresses: {}, ports: 1024-1033 }}", own_address());
    let (listen, echo) = (Lease::new(), member());
    let text = format!(
        "virtual_servers:\n  a: {{ listen: \"{}\", type: tcp, pool: p }}\npools:\n  p:\n    members: [ \"{echo}\" ]\n    {sources}\n",
        listen.address()
    );
    let said = not_started(&text);
    let expected = "pool p: `source`: the ports 1024-1033 do not lie within";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("sysctl net.ipv4.ip_local_port_range=\"1024 "), "{said}");
    let mut proxy = Proxy::start(&tcp(&[echo]));
    proxy.reload_and_fail(&tcp(&[echo]).pool(&sources));
    proxy.process().says("`source`: the ports 1024-1033 do not lie within");
    ends(&mut proxy.client());
}

#[test]
fn an_address_that_the_host_lacks_is_listened_on_if_asked_for() {
    // An address of TEST-NET-2, which no host has.
    let server = |keys: &str| {
        format!(
            "later: {{ listen: \"198.51.100.9:{FIRST_PORT}\", type: tcp, pool: members{keys} }}"
        )
    };
    let echo = member();
    let mut proxy = Proxy::start(&tcp(&[echo]));
    proxy.reload_and_fail(&tcp(&[echo]).also_virtual_server(&server("")));
    let said = proxy.process().says("virtual server later: cannot listen on 198.51.100.9:8000: ");
    assert!(said.contains("with `free_bind: true` it may come later"), "{said}");
    proxy.reload_and_wait(&tcp(&[echo]).also_virtual_server(&server(", free_bind: true")));
    ends(&mut proxy.client());
}

#[test]
fn a_deferred_connection_is_taken_when_its_client_has_said_something_or_in_time() {
    let accepted =
        |proxy: &Proxy| proxy.metric("weir_virtual_server_connections_total", &["\"main\""]);
    let echo = member();
    let deferred = |time: &str| tcp(&[echo]).virtual_server(&format!("defer_accept: {time}"));
    let proxy = Proxy::start(&deferred("60s"));
    eventually("the one that looked whether anybody listens is over", STEP_TIMEOUT, || {
        accepted(&proxy) == 1.0
    });
    let mut silent = proxy.client();
    let mut speaks = proxy.client();
    speaks.send("hello");
    ends(&mut speaks);
    // The silent connection is older but not accepted yet.
    assert_eq!(accepted(&proxy), 2.0);
    silent.send("me too");
    ends(&mut silent);
    assert_eq!(accepted(&proxy), 3.0);
    // A reload also changes the setting of existing listeners.
    proxy.reload_and_wait(&deferred("1s"));
    let begun = Instant::now();
    ends(&mut proxy.client());
    assert!(begun.elapsed().as_millis() >= 500, "after {:?}", begun.elapsed());
    proxy.reload_and_wait(&tcp(&[echo]));
    let mut clients: Vec<Client> = (0..10).map(|_| proxy.client()).collect();
    for client in &mut clients {
        ends(client);
    }
    assert_eq!(accepted(&proxy), 14.0);
}

/// A virtual server on all addresses, with these keys for it and for its pool.
fn on_every_address(lease: &Lease, member: SocketAddr, keys: &str, pool: &str) -> Setup {
    let port = lease.address().port();
    Setup::new(&[member])
        .also_virtual_server(&format!("every: {{ listen: \"0.0.0.0:{port}\", pool: every{keys} }}"))
        .also_pool(&format!("every: {{ members: [ \"{member}\" ]{pool} }}"))
}

#[test]
fn members_are_told_the_address_that_the_client_reached_on_a_listener_for_all() {
    let lease = Lease::on_every_address();
    let reached = SocketAddr::from((own_address(), lease.address().port()));
    let member = weir_tests::stream::StreamMember::line("");
    let setup = on_every_address(&lease, member.address(), ", type: tcp", ", proxy_protocol: v1");
    let _proxy = Proxy::start(&setup);
    let mut client = Client::connect(reached);
    let from = client.stream().local_addr().expect("the client's address");
    let expected =
        format!("PROXY TCP4 {} {} {} {}\r\n", from.ip(), reached.ip(), from.port(), reached.port());
    assert_eq!(String::from_utf8_lossy(&client.reader().rest()), expected);
}

#[test]
fn rules_see_the_address_that_the_client_reached_on_a_listener_for_all() {
    let lease = Lease::on_every_address();
    let port = lease.address().port();
    let setup = on_every_address(&lease, member(), ", policies: [ where ]", "").top(
        "policies: { where: { rules: [ { then: [ { respond: { status: 200, body: \"${server.ip} ${server.port}\" } } ] } ] } }",
    );
    let _proxy = Proxy::start(&setup);
    for address in [own_address(), Ipv4Addr::LOCALHOST] {
        let mut client = Client::connect(SocketAddr::from((address, port)));
        for _ in 0..2 {
            assert_eq!(client.get("/").text(), format!("{address} {port}"));
        }
    }
}

/// The shell commands in the first code block after a heading of `docs/layer-4.md`.
fn commands_of(heading: &str) -> String {
    let text = include_str!("../../docs/layer-4.md");
    let (_, section) = text.split_once(&format!("{heading}\n")).expect("the heading");
    let (_, block) = section.split_once("```sh\n").expect("a block of shell");
    block.split("```").next().expect("its end").to_owned()
}

const AS_CLIENT: &str = "
virtual_servers:
  a: { listen: 10.77.1.1:8080, type: tcp, pool: p }
  b: { listen: 10.77.1.1:8081, pool: p }
pools:
  p: { members: [ 10.77.2.2:9000 ], source: client }
";

#[test]
fn members_see_the_clients_own_address() {
    require!("nft");
    let Some(namespaces) = Namespaces::make() else { return };
    namespaces.shell("adc", &commands_of("### The client's own address"));
    let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
    namespaces.within("server", || serve(at("10.77.2.2:9000")));
    let directory = TempDir::new("as-client");
    let file = directory.write("weir.yaml", AS_CLIENT);
    let ip = weir_tests::tools::find("ip").expect("ip");
    let weir = [weir_binary().to_string_lossy(), "run".into(), file.to_string_lossy()];
    let adc = namespaces.name("adc");
    let words = ["netns", "exec", &adc, &weir[0], &weir[1], &weir[2]];
    let mut process = Process::start(&ip, &words, &directory.path().join("output.log"));
    eventually("weir serves", STEP_TIMEOUT, || {
        assert!(process.exited().is_none(), "{}", process.output());
        namespaces.within("client", || TcpStream::connect("10.77.1.1:8080").is_ok())
    });
    for _ in 0..3 {
        let mut client = namespaces.within("client", || Client::connect(at("10.77.1.1:8080")));
        let own = client.stream().local_addr().expect("the client's address");
        let (local, remote) = ends(&mut client);
        assert_eq!(local, at("10.77.2.2:9000"));
        assert_eq!(remote.ip(), own.ip(), "the member sees the client");
        // Much data in both directions.
        let sent = vec![b'x'; 3 << 20];
        let mut writing = client.stream().try_clone().expect("a second handle");
        let writer = thread::spawn(move || {
            writing.write_all(&sent).and_then(|()| writing.shutdown(Shutdown::Write))
        });
        assert_eq!(client.reader().rest().len(), 3 << 20);
        writer.join().expect("the writer").expect("sending");
    }
    process.kill();
}

#[test]
fn without_the_capability_the_clients_address_is_an_error_at_start() {
    require!("setpriv");
    if !rustix::process::geteuid().is_root() {
        return weir_tests::tools::skip("only root can give capabilities up");
    }
    let (listen, echo) = (Lease::new(), member());
    let directory = TempDir::new("no-capability");
    let text = format!(
        "virtual_servers: {{ a: {{ listen: \"{}\", type: tcp, pool: p }} }}\npools: {{ p: {{ members: [ \"{echo}\" ], source: client }} }}\n",
        listen.address()
    );
    let file = directory.write("weir.yaml", &text);
    let (weir, file) = (weir_binary().to_string_lossy(), file.to_string_lossy());
    let setpriv = weir_tests::tools::find("setpriv").expect("setpriv");
    let words = ["--bounding-set", "-net_admin,-net_raw", "--", &weir, "run", &file];
    let mut process = Process::start(&setpriv, &words, &directory.path().join("output.log"));
    assert!(!process.wait(STEP_TIMEOUT).success(), "{}", process.output());
    let expected = "pool p: `source`: `client`: connecting from other hosts' addresses needs root, CAP_NET_RAW or CAP_NET_ADMIN";
    assert!(process.output().contains(expected), "{}", process.output());
}

/// If an HTTP pool uses the client's source address, its connections are not shared between clients.
#[test]
fn connections_that_come_from_a_client_serve_no_other() {
    if !rustix::process::geteuid().is_root() {
        return weir_tests::tools::skip("`source: client` needs a capability");
    }
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).pool("source: client"));
    let mut clients = [proxy.client(), proxy.client()];
    for _ in 0..2 {
        for client in &mut clients {
            client.get("/").assert_status(200);
        }
    }
    assert_eq!(proxy.metric("weir_member_connections_total", &[]), 4.0);
    assert_eq!(proxy.metric("weir_member_connections_idle", &[]), 0.0);
}
