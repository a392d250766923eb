//! New flows during the end of an old one.

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
    path.maps.flows.insert(key.encode(), forward, 0).expect("a flow");
    path.maps.flows.insert(reverse_key.encode(), reverse, 0).expect("its other half");
    let mut ended = Vec::new();
    path.walk(now()).0.judge(key, FlowEntry::decode(&before), &mut ended).expect("a look");
    assert!(ended.is_empty());
    for key in [key, reverse_key] {
        assert!(path.maps.flow(crate::maps::Table::Flows, &key).expect("maps").is_some());
    }
    // Half of a flow whose other half is gone for long is removed as well.
    path.maps.flows.remove(&reverse_key.encode()).expect("it is there");
    path.maps.flows.insert(key.encode(), before, 0).expect("a flow");
    path.walk(now()).0.judge(key, FlowEntry::decode(&before), &mut ended).expect("a look");
    assert!(path.maps.flow(crate::maps::Table::Flows, &key).expect("maps").is_none());
}
