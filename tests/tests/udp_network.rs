//! Virtual servers of `type: udp` across networks: ICMP messages of routers, and members that receive the client's address
//! as the source.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use weir_tests::namespaces::Namespaces;
use weir_tests::process::Process;
use weir_tests::proxy::weir_binary;
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require};

/// weir in the namespace `adc`, and a member in `server` that replies with the source address of the datagram.
struct Bed {
    namespaces: Namespaces,
    process: Process,
    _directory: TempDir,
}

const VIRTUAL: &str = "10.77.1.1:5353";
const MEMBER: &str = "10.77.2.2:9000";
/// An address behind the member's host, which reports it as unreachable.
const UNREACHABLE: &str = "10.77.4.9:9000";
/// An address behind the member's host, on a path with an MTU of 600 bytes.
const NARROW: &str = "10.77.3.9:9000";

fn serve_member() {
    let socket = UdpSocket::bind(MEMBER).expect("the member's address");
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((_, from)) = socket.recv_from(&mut buffer) {
            // An error means that the other side has closed.
            let _ = socket.send_to(from.ip().to_string().as_bytes(), from);
        }
    });
}

impl Bed {
    /// Starts weir with these keys of the virtual server and the pool, after `prepare` in `adc`, and waits until it serves.
    fn new(server: &str, pool: &str, prepare: &str) -> Option<Self> {
        let namespaces = Namespaces::make()?;
        namespaces.shell("adc", prepare);
        namespaces.shell(
            "server",
            "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/icmp_ratelimit; \
             ip link add narrow type veth peer name beyond; \
             ip link set dev beyond up; \
             ip link set dev narrow mtu 600 up; ip addr add 10.77.3.1/24 dev narrow; \
             ip neigh add 10.77.3.9 lladdr 02:00:00:00:00:09 dev narrow; \
             ip route add unreachable 10.77.4.0/24",
        );
        namespaces.shell(
            "adc",
            "ip route add 10.77.3.0/24 via 10.77.2.2; ip route add 10.77.4.0/24 via 10.77.2.2",
        );
        namespaces.within("server", serve_member);
        let directory = TempDir::new("udp-network");
        let text = format!(
            "admin: {{ listen: 127.0.0.1:9090 }}\n\
             virtual_servers: {{ v: {{ listen: \"{VIRTUAL}\", type: udp, pool: p{server} }} }}\n\
             pools: {{ p: {{ {pool} }} }}\n"
        );
        let file = directory.write("weir.yaml", &text);
        let ip = weir_tests::tools::find("ip").expect("ip");
        let (weir, file) = (weir_binary().to_string_lossy(), file.to_string_lossy());
        let words = ["netns", "exec", &namespaces.name("adc"), &weir, "run", &file];
        let mut process = Process::start(&ip, &words, &directory.path().join("output.log"));
        eventually("weir serves", STEP_TIMEOUT, || {
            assert!(process.exited().is_none(), "{}", process.output());
            process.output().contains("serves")
        });
        Some(Self { namespaces, process, _directory: directory })
    }

    fn client(&self) -> UdpSocket {
        self.namespaces.within("client", || {
            let socket = UdpSocket::bind("10.77.1.2:0").expect("a port of UDP");
            let virtual_server: SocketAddr = VIRTUAL.parse().expect("an address");
            socket.connect(virtual_server).expect("the virtual server");
            socket.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
            socket
        })
    }

    /// The sum of the metric's lines with this name and this text.
    fn metric(&self, name: &str, part: &str) -> f64 {
        let get = |path: &str| {
            self.namespaces.output("adc", &format!("curl -s http://127.0.0.1:9090{path}"))
        };
        // The workers end their turns, in which they have counted a part.
        get("/v1/sessions?limit=1");
        let page = get("/metrics");
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(part));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.process.kill();
    }
}

fn ask(client: &UdpSocket) -> String {
    client.send(b"query").expect("sending");
    let mut buffer = [0; 2_048];
    let length = client.recv(&mut buffer).expect("an answer in time");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[test]
fn a_host_that_a_router_cannot_reach_has_failed() {
    require!("curl");
    let pool = format!(
        "members: [ \"{UNREACHABLE}\", \"{MEMBER}\" ], retries: 2, passive: {{ failures: 3, eject: 1m }}"
    );
    let Some(bed) = Bed::new(", udp: { datagrams: 1, idle_timeout: 20s }", &pool, ":") else {
        return;
    };
    for _ in 0..12 {
        assert_eq!(ask(&bed.client()), "10.77.2.1");
    }
    assert_eq!(bed.metric("weir_member_failures_total", ""), 3.0, "then it is ejected");
    assert_eq!(bed.metric("weir_member_ejections_total", ""), 1.0);
}

#[test]
fn a_packet_that_is_too_long_for_the_way_is_no_fault_of_the_member() {
    require!("curl");
    let pool = format!("members: [ \"{NARROW}\" ], passive: {{ failures: 1 }}");
    let Some(bed) = Bed::new("", &pool, ":") else { return };
    let client = bed.client();
    client.send(&[b'x'; 1_000]).expect("sending");
    // By then weir has received the ICMP message.
    eventually("a router says so", STEP_TIMEOUT, || {
        bed.metric("weir_datagrams_lost_total", "") >= 1.0
    });
    client.send(b"short").expect("sending");
    eventually("both have come", STEP_TIMEOUT, || {
        bed.metric("weir_virtual_server_datagrams_total", "what=\"received\"") >= 2.0
    });
    assert_eq!(bed.metric("weir_member_failures_total", ""), 0.0);
    assert_eq!(bed.metric("weir_virtual_server_connections_total", "\"v\""), 1.0, "one session");
    assert_eq!(bed.metric("weir_virtual_server_connections_open", ""), 1.0, "and it goes on");
    assert!(!bed.process.output().contains("ejected"), "{}", bed.process.output());
}

/// Addresses and routes of IPv6 between weir and the member's host, and routes with a hop limit of 1.
const HOPS: &str = "ip addr add fd77:2::1/64 dev servers nodad; \
                    ip route add 10.77.5.0/24 via 10.77.2.2 hoplimit 1; \
                    ip route add fd77:5::/64 via fd77:2::2 hoplimit 1";

#[test]
fn a_packet_that_is_too_long_on_its_way_is_no_fault_of_the_member() {
    require!("curl");
    // The member's host reports a closed port, which counts as a failure. A router's message does not.
    for (member, failures) in [("10.77.5.9:9", 0.0), ("[fd77:5::9]:9", 0.0), ("10.77.2.2:9", 1.0)] {
        let pool = format!("members: [ \"{member}\" ], passive: {{ failures: 1 }}");
        let Some(bed) = Bed::new(", udp: { datagrams: 9 }", &pool, HOPS) else { return };
        bed.namespaces.shell(
            "server",
            "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; \
             echo 0 > /proc/sys/net/ipv6/icmp/ratelimit; \
             ip addr add fd77:2::2/64 dev link nodad; \
             ip link add far type veth peer name farther; ip link set dev farther up; ip link set dev far up; \
             ip addr add fd77:5::1/64 dev far nodad; ip addr add 10.77.5.1/24 dev far",
        );
        let client = bed.client();
        for number in 1..=if failures > 0.0 { 1 } else { 3 } {
            client.send(b"query").expect("sending");
            eventually(&format!("{member} is told of, {number}"), STEP_TIMEOUT, || {
                let lost = bed.metric("weir_datagrams_lost_total", "");
                lost + bed.metric("weir_member_failures_total", "") >= f64::from(number)
            });
        }
        assert_eq!(bed.metric("weir_member_failures_total", ""), failures, "{member}");
        assert_eq!(bed.metric("weir_member_ejections_total", ""), failures, "{member}");
        assert_eq!(bed.metric("weir_virtual_server_connections_open", ""), 1.0 - failures);
    }
}

/// A Python script that sends a single datagram that is too long for a router, directly followed by trains of segments
/// (UDP_SEGMENT), several times. Each datagram starts with its number. The member's buffer holds all datagrams of a round.
const TRAINS: &str = r#"
import socket, time
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to.connect(("10.77.1.1", 5353))
number = 0
for _ in range(5):
    for count in (1, 20, 50):
        train = b"".join(b"%04d" % (number + at) + bytes(996) for at in range(count))
        to.sendmsg([train], [(socket.IPPROTO_UDP, 103, (1000).to_bytes(2, "little"))] if count > 1 else [])
        number += count
    time.sleep(0.2)
"#;

/// The number of datagrams in all trains.
const IN_TRAINS: usize = 350;

/// Whether a datagram was sent alone. Some of these are lost, because they are sent before the MTU of the path is known.
fn is_alone(number: u32) -> bool {
    number.is_multiple_of(71)
}

/// Receives datagrams until all trains are there and none arrives for a second. Returns their numbers.
fn numbers_at(member: &UdpSocket) -> Vec<u32> {
    let (mut numbers, mut buffer) = (Vec::new(), [0; 2_048]);
    let mut in_trains = 0;
    loop {
        let wait = if in_trains < IN_TRAINS { STEP_TIMEOUT } else { Duration::from_secs(1) };
        member.set_read_timeout(Some(wait)).expect("a timeout");
        let Ok(length) = member.recv(&mut buffer) else { return numbers };
        assert_eq!(length, 1_000);
        let number = std::str::from_utf8(&buffer[..4]).expect("digits");
        let number = number.parse().expect("a number");
        in_trains += usize::from(!is_alone(number));
        numbers.push(number);
    }
}

#[test]
fn trains_that_are_too_long_for_the_way_arrive_once() {
    require!("curl", "python3");
    let pool = format!("members: [ \"{NARROW}\" ], passive: {{ failures: 1 }}");
    // The kernel learns the MTU of the first path from a router. The second path has a configured MTU.
    for prepare in [":", "ip route add 10.77.3.9/32 via 10.77.2.2 mtu 600"] {
        let Some(bed) = Bed::new("", &pool, prepare) else { return };
        let client = bed.namespaces.name("client");
        bed.namespaces.shell("server", &format!("ip link set beyond netns {client}"));
        bed.namespaces.shell(
            "client",
            "ip link set beyond address 02:00:00:00:00:09 up; ip addr add 10.77.3.9/24 dev beyond",
        );
        let member = bed.namespaces.within("client", || UdpSocket::bind(NARROW).expect("a member"));
        let reader = std::thread::spawn(move || numbers_at(&member));
        bed.namespaces.shell("client", &format!("python3 -c '{TRAINS}'"));
        let mut numbers = reader.join().expect("the member");
        numbers.sort_unstable();
        let count = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "each comes once");
        let in_trains = numbers.iter().filter(|number| !is_alone(**number)).count();
        assert_eq!(in_trains, IN_TRAINS, "{numbers:?}");
        assert_eq!(bed.metric("weir_member_failures_total", ""), 0.0);
    }
}

/// The shell commands in the first code block after a heading of `docs/layer-4.md`.
fn commands_of(heading: &str) -> String {
    let text = include_str!("../../docs/layer-4.md");
    let (_, section) = text.split_once(&format!("{heading}\n")).expect("the heading");
    let (_, block) = section.split_once("```sh\n").expect("a block of shell");
    block.split("```").next().expect("its end").to_owned()
}

#[test]
fn members_see_the_clients_own_address() {
    require!("nft", "curl");
    let pool = format!("members: [ \"{MEMBER}\" ], source: client");
    let Some(bed) = Bed::new("", &pool, &commands_of("### The client's own address")) else {
        return;
    };
    for _ in 0..3 {
        let client = bed.client();
        for _ in 0..3 {
            assert_eq!(ask(&client), "10.77.1.2");
        }
    }
}
