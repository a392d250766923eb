//! New flows during the end of an old one, and other flows in its place.

use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;
use crate::layout::{FLOW_REVERSE, FlowBytes, FlowEntry, STATE_FIN};
use crate::plan::{Destination, Member, Prefix, Protocol, VirtualServer};

const CLIENT: &str = "198.51.100.7";
const VIRTUAL: &str = "192.0.2.1";
const MEMBER: &str = "10.0.2.10";
const OWN: &str = "10.0.2.1";

fn address(text: &str) -> std::net::IpAddr {
    text.parse().expect("an address")
}

/// One direction of a flow: the translation of its packets.
fn half(source: (&str, u16), target: (&str, u16), flags: u16, age: Duration) -> FlowBytes {
    let then = (now() - age).as_nanos() as u64;
    let mut bytes = [0; size_of::<FlowBytes>()];
    bytes[..16].copy_from_slice(&layout::address_bytes(address(source.0)));
    bytes[16..32].copy_from_slice(&layout::address_bytes(address(target.0)));
    bytes[32..34].copy_from_slice(&source.1.to_be_bytes());
    bytes[34..36].copy_from_slice(&target.1.to_be_bytes());
    bytes[40..42].copy_from_slice(&flags.to_ne_bytes());
    bytes[46] = STATE_FIN;
    bytes[47] = libc::IPPROTO_TCP as u8;
    bytes[56..64].copy_from_slice(&then.to_ne_bytes());
    bytes[64..72].copy_from_slice(&then.to_ne_bytes());
    bytes
}

/// A packet path that is detached on drop, even if the test fails.
struct Opened(Option<PacketPath>);

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let detached = path.detach();
            assert!(detached.is_ok() || std::thread::panicking(), "{detached:?}");
        }
    }
}

/// A sweep has read an ended flow; before it looks closer, its client begins another from the same
/// port.
#[test]
fn a_flow_that_begins_while_another_ends_under_its_key_stays() {
    if !rustix::process::geteuid().is_root() {
        return weir_testing::skip("maps need root");
    }
    let name = format!("weir-test-{}", std::process::id());
    let options = Options { flows_max: 1_024, ..Options::new(&name) };
    let mut opened = Opened(Some(PacketPath::open(&options).expect("maps")));
    let path = opened.0.as_mut().expect("it is open");
    let at = Destination { prefix: Prefix::host(address(VIRTUAL)), port: Some(80) };
    let mut server = VirtualServer::new("one", Protocol::Tcp, vec![at]);
    server.members.push(Member::new(address(MEMBER), Some(80)));
    path.apply(&Plan { virtual_servers: vec![server], ..Plan::default() }).expect("a plan");
    let protocol = libc::IPPROTO_TCP as u8;
    let key = FlowKey {
        source: address(CLIENT),
        target: address(VIRTUAL),
        source_port: 4_001,
        target_port: 80,
        protocol,
    };
    let minute = Duration::from_secs(60);
    let before = half((OWN, 20_001), (MEMBER, 80), 0, minute);
    let forward = half((OWN, 20_002), (MEMBER, 80), 0, Duration::ZERO);
    let reverse = half((VIRTUAL, 80), (CLIENT, 4_001), FLOW_REVERSE, Duration::ZERO);
    let reverse_key = FlowEntry::decode(&forward).other_key(protocol);
    path.maps.flows.insert(&key, &forward);
    path.maps.flows.insert(&reverse_key, &reverse);
    let mut ended = Vec::new();
    path.walk(now()).0.judge(key, FlowEntry::decode(&before), &mut ended).expect("a look");
    assert!(ended.is_empty());
    for key in [key, reverse_key] {
        assert!(path.maps.flow(crate::maps::Table::Flows, &key).expect("maps").is_some());
    }
    // Half of a flow whose other half is gone for long is removed as well.
    assert!(path.maps.flows.remove(&reverse_key, |_| true));
    assert!(path.maps.flows.remove(&key, |_| true));
    path.maps.flows.insert(&key, &before);
    path.walk(now()).0.judge(key, FlowEntry::decode(&before), &mut ended).expect("a look");
    assert!(path.maps.flow(crate::maps::Table::Flows, &key).expect("maps").is_none());
}

/// A process is killed between the two steps of a removal.
#[test]
fn a_half_removed_entry_is_freed_after_a_while() {
    if !rustix::process::geteuid().is_root() {
        return weir_testing::skip("maps need root");
    }
    let name = format!("weir-test-halved-{}", std::process::id());
    let options = Options { flows_max: 1_024, ..Options::new(&name) };
    let mut opened = Opened(Some(PacketPath::open(&options).expect("maps")));
    let path = opened.0.as_mut().expect("it is open");
    let key = FlowKey {
        source: address(CLIENT),
        target: address(VIRTUAL),
        source_port: 4_001,
        target_port: 80,
        protocol: libc::IPPROTO_TCP as u8,
    };
    path.maps.flows.insert(&key, &half((OWN, 20_001), (MEMBER, 80), 0, Duration::ZERO));
    path.maps.flows.remove_half(&key);
    let now = now();
    for (after_s, is_taken) in [(0, true), (5, true), (11, false)] {
        let now = now + Duration::from_secs(after_s);
        while !path.sweep(now).expect("a sweep").whole {}
        assert_eq!(path.maps.flows.tags_set() > 0, is_taken, "after {after_s} s");
    }
}

/// Number of packets that must meet another flow in the place of theirs.
const MEETINGS: u64 = 3;
/// Maximum duration of the wait for them.
const MEETINGS_TIME_MAX: Duration = Duration::from_secs(60);

const TCX_REDIRECT: u32 = 7;
const HARDWARE: &str = "02:00:00:00:0a:00";

/// A network namespace with a device, and a member behind it.
struct Namespace(String);

impl Namespace {
    fn new(name: String) -> Self {
        let namespace = Self(name);
        let name = &namespace.0;
        namespace.run(&format!("ip netns add {name}"));
        for words in [
            &format!("link add d0 address {HARDWARE} type veth peer name d1"),
            "link set d0 up",
            "link set d1 up",
            &format!("addr add {OWN}/24 dev d0"),
            &format!("neigh add {MEMBER} lladdr 02:00:00:00:05:01 dev d0 nud permanent"),
            "route add default dev d0",
        ] {
            namespace.run(&format!("ip -n {name} {words}"));
        }
        namespace.run(&format!("ip netns exec {name} sysctl -qw net.ipv4.ip_forward=1"));
        namespace
    }

    fn run(&self, words: &str) {
        let mut command = Command::new("sh");
        let status = command.args(["-c", words]).status().expect("it runs");
        assert!(status.success() || std::thread::panicking(), "{words}: {status}");
    }

    /// Moves the calling thread there.
    fn enter(&self) {
        let file = std::fs::File::open(format!("/var/run/netns/{}", self.0)).expect("it is there");
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(file.as_fd(), kind).expect("entering");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.run(&format!("ip netns del {}", self.0));
    }
}

/// An Ethernet frame with an acknowledgement of a TCP connection.
fn acknowledgement(key: &FlowKey) -> Vec<u8> {
    let v4 = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.octets(),
        std::net::IpAddr::V6(_) => panic!("IPv4 only"),
    };
    let mut frame = vec![2, 0, 0, 0, 0xa, 0, 2, 0, 0, 0, 0xc, 0, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 1, 0, 0, 64, key.protocol, 0, 0]);
    frame.extend([v4(key.source), v4(key.target)].concat());
    frame.extend([key.source_port.to_be_bytes(), key.target_port.to_be_bytes()].concat());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 16, 1, 0, 0, 0, 0, 0]);
    frame
}

/// Flows of two keys take turns in one place, while packets of one of them come.
#[test]
fn no_packet_gets_the_translation_of_another_flow_in_the_same_place() {
    if !rustix::process::geteuid().is_root() {
        return weir_testing::skip("maps need root");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return weir_testing::skip("two cores must change and read the table at once");
    }
    let name = format!("weir-test-reuse-{}", std::process::id());
    let namespace = Namespace::new(name.clone());
    namespace.enter();
    let options = Options { flows_max: 1_024, ..Options::new(&name) };
    let mut opened = Opened(Some(PacketPath::open(&options).expect("maps")));
    let path = opened.0.as_mut().expect("it is open");
    let at = Destination { prefix: Prefix::host(address(VIRTUAL)), port: Some(80) };
    let mut server = VirtualServer::new("one", Protocol::Tcp, vec![at]);
    server.members.push(Member::new(address(MEMBER), Some(80)));
    path.apply(&Plan { virtual_servers: vec![server], ..Plan::default() }).expect("a plan");
    let key_of = |source_port| FlowKey {
        source: address(CLIENT),
        target: address(VIRTUAL),
        source_port,
        target_port: 80,
        protocol: libc::IPPROTO_TCP as u8,
    };
    let PacketPath { object, maps, .. } = path;
    let flows = &maps.flows;
    // Where lookups begin, so that they need no tags.
    let first = |key: &FlowKey| flows.first_place_of(key);
    let key = (4_001..).map(key_of).find(|key| first(key) % 8 == 0).expect("a key");
    let is_beside = |other: &FlowKey| *other != key && first(other) == first(&key);
    let other = (4_001..).map(key_of).find(is_beside).expect("a key of the same place");
    let value = half((OWN, 20_001), (MEMBER, 80), 0, Duration::ZERO);
    let other_value = half((OWN, 20_002), (MEMBER, 81), 0, Duration::ZERO);
    let frame = acknowledgement(&key);
    let trial_options =
        TrialOptions { rung: Rung::Tcx, packet: &frame, interface: "d0", repeat: 1 };
    let is_over = AtomicBool::new(false);
    let ends = [&[10, 0, 2, 1, 10, 0, 2, 10][..], &20_001_u16.to_be_bytes(), &80_u16.to_be_bytes()]
        .concat();
    let (mut meetings, mut sent, mut others, mut failure) = (0, 0, 0, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (key, value) in [(&key, &value), (&other, &other_value)] {
                    flows.insert(key, value);
                    assert!(flows.remove(key, |_| true), "nobody else removes it");
                }
            }
        });
        let until = Instant::now() + MEETINGS_TIME_MAX;
        while meetings < MEETINGS && others == 0 && Instant::now() < until {
            let trial = match trial(object, &trial_options) {
                Ok(trial) => trial,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            };
            let is_own = trial.packet[26..38] == ends;
            if trial.verdict != TCX_REDIRECT {
                // It was translated, and then dropped because the place had another flow.
                meetings += u64::from(!is_own && trial.packet[26..38] != frame[26..38]);
            } else if is_own {
                sent += 1;
            } else {
                others += 1;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(others, 0, "packets with the translation of another flow");
    assert!(sent > 0 && meetings >= MEETINGS, "{sent} sent, {meetings} met another flow");
}
