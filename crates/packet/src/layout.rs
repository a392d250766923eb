//! Keys and values of the maps, byte by byte as in `bpf/maps.h`. Different sizes are refused when maps are
//! opened; different offsets fail the tests of packets.

use std::net::{IpAddr, Ipv6Addr};

/// The version of this layout. Pinned maps of another version are not taken over.
pub const VERSION: u32 = 8;

/// `VIRTUAL_SERVERS_MAX`.
pub const SERVERS: u32 = crate::plan::VIRTUAL_SERVERS_MAX as u32;

/// `RING_SLOTS`.
pub const RING_SLOTS: usize = 65_537;

/// `struct ring`.
pub const RING_BYTES: usize = (RING_SLOTS + 1) * 4;

pub type FlowKeyBytes = [u8; 40];
pub type FlowBytes = [u8; 88];
pub type SettingsBytes = [u8; 24];
pub type ServerBytes = [u8; 32];
pub type MemberBytes = [u8; 32];
pub type TotalsBytes = [u8; 40];
pub type ListenerKeyBytes = [u8; 20];
/// Without the length at the beginning.
pub type PrefixKeyBytes = [u8; 20];
pub type PrefixValueBytes = [u8; 8];
/// Without the length at the beginning.
pub type PolicyKeyBytes = [u8; 20];
pub type SourceKeyBytes = [u8; 8];
pub type SourceValueBytes = [u8; 20];
pub type CookieKeyBytes = [u8; 20];
pub type VlanBytes = [u8; 8];
pub type DeviceBytes = [u8; 12];
pub type RingBytes = [u8; RING_BYTES];

/// Concatenates bytes.
struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    fn new() -> Self {
        Self { bytes: [0; N], at: 0 }
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    fn end(self) -> [u8; N] {
        debug_assert_eq!(self.at, N);
        self.bytes
    }
}

/// The bytes at an offset.
pub fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[offset..offset + N]);
    part
}

/// The form of an address in programs: IPv4 addresses are mapped into IPv6.
pub fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address with this form in programs.
pub fn address_of(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}

/// The packets that an entry of the flow table applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowKey {
    pub source: IpAddr,
    pub target: IpAddr,
    pub source_port: u16,
    pub target_port: u16,
    pub protocol: u8,
}

impl FlowKey {
    pub fn encode(&self) -> FlowKeyBytes {
        Writer::new()
            .put(&address_bytes(self.source))
            .put(&address_bytes(self.target))
            .put(&self.source_port.to_be_bytes())
            .put(&self.target_port.to_be_bytes())
            .put(&[self.protocol, 0, 0, 0])
            .end()
    }

    pub fn decode(bytes: &[u8]) -> Self {
        Self {
            source: address_of(at(bytes, 0)),
            target: address_of(at(bytes, 16)),
            source_port: u16::from_be_bytes(at(bytes, 32)),
            target_port: u16::from_be_bytes(at(bytes, 34)),
            protocol: bytes[36],
        }
    }
}

/// A bit of [`FlowEntry::flags`].
pub const FLOW_REVERSE: u16 = 1;

/// Bits of [`FlowEntry::state`].
pub const STATE_FIN: u8 = 1;
pub const STATE_RST: u8 = 2;
pub const STATES_OF_ENDS: u8 = STATE_FIN | STATE_RST;

/// One direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEntry {
    pub source: IpAddr,
    pub target: IpAddr,
    pub source_port: u16,
    pub target_port: u16,
    pub member: u32,
    pub flags: u16,
    pub state: u8,
    pub acknowledged: u32,
    pub sent: u32,
    pub created_ns: u64,
    pub seen_ns: u64,
    pub packets: u64,
    pub bytes: u64,
}

impl FlowEntry {
    /// Whether both belong to the same flow, and not to a later one with the same key.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.created_ns, self.member, self.flags) == (other.created_ns, other.member, other.flags)
            && (self.source_port, self.target_port) == (other.source_port, other.target_port)
    }

    pub fn decode(bytes: &[u8]) -> Self {
        let word = |offset| u64::from_ne_bytes(at(bytes, offset));
        Self {
            source: address_of(at(bytes, 0)),
            target: address_of(at(bytes, 16)),
            source_port: u16::from_be_bytes(at(bytes, 32)),
            target_port: u16::from_be_bytes(at(bytes, 34)),
            member: u32::from_ne_bytes(at(bytes, 36)),
            flags: u16::from_ne_bytes(at(bytes, 40)),
            state: bytes[46],
            acknowledged: u32::from_be_bytes(at(bytes, 48)),
            sent: u32::from_ne_bytes(at(bytes, 52)),
            created_ns: word(56),
            seen_ns: word(64),
            packets: word(72),
            bytes: word(80),
        }
    }

    pub fn is_reverse(&self) -> bool {
        self.flags & FLOW_REVERSE != 0
    }

    /// The key of the other direction, for a flow of this protocol.
    pub fn other_key(&self, protocol: u8) -> FlowKey {
        FlowKey {
            source: self.target,
            target: self.source,
            source_port: self.target_port,
            target_port: self.source_port,
            protocol,
        }
    }
}

/// Bits of [`Settings::flags`].
pub const HAS_PREFIXES: u32 = 1;
pub const HAS_POLICY: u32 = 2;
pub const HAS_COOKIES: u32 = 4;
pub const HAS_DIRECT: u32 = 8;
pub const HAS_RATE: u32 = 16;
pub const HAS_ANY_PORT: u32 = 32;
pub const HAS_ANY_PROTOCOL: u32 = 64;

/// The counts of one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    pub flags: u32,
    pub cpus: u32,
    pub rate_interval_ns: u64,
    pub rate_burst_ns: u64,
}

impl Settings {
    pub fn encode(&self) -> SettingsBytes {
        Writer::new()
            .put(&self.flags.to_ne_bytes())
            .put(&self.cpus.to_ne_bytes())
            .put(&self.rate_interval_ns.to_ne_bytes())
            .put(&self.rate_burst_ns.to_ne_bytes())
            .end()
    }
}

/// Bits of [`Server::flags`].
pub const SERVER_NEXT_HOP: u32 = 2;
pub const SERVER_DIRECT: u32 = 4;
pub const SERVER_TTL_KEEP: u32 = 8;
pub const SERVER_TTL_SET: u32 = 16;
pub const SERVER_TOS_SET: u32 = 32;
pub const SERVER_ROUTE: u32 = 64;
pub const SERVER_LOOSE: u32 = 128;
pub const SERVER_RING: u32 = 256;
pub const SERVER_PASS: u32 = 512;
pub const SERVER_CLIENTS: u32 = 1024;

/// A virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Server {
    pub identity: u64,
    pub persistence_ns: u64,
    pub flags: u32,
    pub route: u32,
    pub sources: u32,
    pub mss_max: u16,
    pub ttl: u8,
    pub tos: u8,
}

impl Server {
    pub fn encode(&self) -> ServerBytes {
        Writer::new()
            .put(&self.identity.to_ne_bytes())
            .put(&self.persistence_ns.to_ne_bytes())
            .put(&self.flags.to_ne_bytes())
            .put(&self.route.to_ne_bytes())
            .put(&self.sources.to_ne_bytes())
            .put(&self.mss_max.to_ne_bytes())
            .put(&[self.ttl, self.tos])
            .end()
    }

    /// Sets in an encoded server whether there is a ring. Returns whether this changed the server.
    pub fn set_ring(bytes: &mut ServerBytes, has_ring: bool) -> bool {
        let flags = u32::from_ne_bytes(at(bytes, 16));
        let changed = if has_ring { flags | SERVER_RING } else { flags & !SERVER_RING };
        bytes[16..20].copy_from_slice(&changed.to_ne_bytes());
        changed != flags
    }

    /// The identity of an encoded server.
    pub fn identity_of(bytes: &ServerBytes) -> u64 {
        u64::from_ne_bytes(at(bytes, 0))
    }
}

/// [`Member::state`].
pub const MEMBER_FREE: u8 = 0;
pub const MEMBER_UP: u8 = 1;
pub const MEMBER_DRAINING: u8 = 2;
pub const MEMBER_DOWN: u8 = 3;

/// A member of one virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    pub identity: u64,
    pub address: IpAddr,
    pub server: u32,
    pub port: u16,
    pub state: u8,
    /// The number of the source address that it sees, among its virtual server's, from 1; 0: any.
    pub source: u8,
}

impl Member {
    pub fn encode(&self) -> MemberBytes {
        Writer::new()
            .put(&self.identity.to_ne_bytes())
            .put(&address_bytes(self.address))
            .put(&self.server.to_ne_bytes())
            .put(&self.port.to_be_bytes())
            .put(&[self.state, self.source])
            .end()
    }

    pub fn decode(bytes: &MemberBytes) -> Self {
        Self {
            identity: u64::from_ne_bytes(at(bytes, 0)),
            address: address_of(at(bytes, 8)),
            server: u32::from_ne_bytes(at(bytes, 24)),
            port: u16::from_be_bytes(at(bytes, 28)),
            state: bytes[30],
            source: bytes[31],
        }
    }
}

/// Adds up a `struct totals`.
pub fn totals_of(bytes: &TotalsBytes) -> crate::Totals {
    let word = |offset| u64::from_ne_bytes(at(bytes, offset));
    crate::Totals {
        flows: word(0),
        packets_in: word(8),
        bytes_in: word(16),
        packets_out: word(24),
        bytes_out: word(32),
    }
}

/// A `struct totals`.
pub fn totals_bytes(totals: &crate::Totals) -> TotalsBytes {
    [totals.flows, totals.packets_in, totals.bytes_in, totals.packets_out, totals.bytes_out]
        .into_iter()
        .fold(Writer::new(), |writer, word| writer.put(&word.to_ne_bytes()))
        .end()
}

/// The key of a virtual server's address. Port 0 means any port, protocol 0 any protocol.
pub fn listener_key(address: IpAddr, port: u16, protocol: u8, epoch: u32) -> ListenerKeyBytes {
    Writer::new()
        .put(&address_bytes(address))
        .put(&port.to_be_bytes())
        .put(&[protocol, epoch as u8])
        .end()
}

/// The epoch of a listener's key.
pub fn listener_epoch(key: &ListenerKeyBytes) -> u32 {
    u32::from(key[19])
}

/// `PREFIX_V6`.
const PREFIX_V6: u32 = 2;

/// The epoch and the family of an address, in the form of prefix keys.
fn epoch_and_family(address: IpAddr, epoch: u32) -> u32 {
    epoch | if address.is_ipv6() { PREFIX_V6 } else { 0 }
}

/// The epoch of a prefix key.
pub fn prefix_epoch(key: &PrefixKeyBytes) -> u32 {
    u32::from(key[0]) & !PREFIX_V6
}

/// The epoch of a policy key.
pub fn policy_epoch(key: &PolicyKeyBytes) -> u32 {
    u32::from_ne_bytes(at(key, 0)) & 1
}

/// The length of a prefix in the form of programs.
pub fn mapped_length(prefix: crate::plan::Prefix) -> u32 {
    u32::from(prefix.length) + if prefix.address.is_ipv4() { 96 } else { 0 }
}

/// The key of a virtual server's prefix.
pub fn prefix_key(address: IpAddr, port: u16, protocol: u8, epoch: u32) -> PrefixKeyBytes {
    Writer::new()
        .put(&[epoch_and_family(address, epoch) as u8, protocol])
        .put(&port.to_be_bytes())
        .put(&address_bytes(address))
        .end()
}

/// The virtual server of a prefix, and the length of the prefix.
pub fn prefix_value(server: u32, length: u32) -> PrefixValueBytes {
    Writer::new().put(&server.to_ne_bytes()).put(&length.to_ne_bytes()).end()
}

/// `SCOPE_SERVER`.
const SCOPE_SERVER: u32 = 2;

/// The key of a prefix to allow or deny: for all, or as a client of the virtual server with this number.
pub fn policy_key(address: IpAddr, epoch: u32, server: Option<u32>) -> PolicyKeyBytes {
    let of_server = server.map_or(0, |number| (number + 1) << SCOPE_SERVER);
    let scope = epoch_and_family(address, epoch) | of_server;
    Writer::new().put(&scope.to_ne_bytes()).put(&address_bytes(address)).end()
}

/// The number of a source translation address of an entry of `servers`.
pub fn source_key(server: u32, number: u32) -> SourceKeyBytes {
    Writer::new().put(&server.to_ne_bytes()).put(&number.to_ne_bytes()).end()
}

/// The entry of `servers` that a key of a source belongs to.
pub fn source_server(key: &SourceKeyBytes) -> u32 {
    u32::from_ne_bytes(at(key, 0))
}

/// A source translation address.
pub fn source_value(source: &crate::plan::SourceAddress) -> SourceValueBytes {
    Writer::new()
        .put(&address_bytes(source.address))
        .put(&source.port_first.to_ne_bytes())
        .put(&source.port_last.to_ne_bytes())
        .end()
}

/// The key of an address and port with SYN cookies.
pub fn cookie_key(address: std::net::SocketAddr, epoch: u32) -> CookieKeyBytes {
    Writer::new()
        .put(&address_bytes(address.ip()))
        .put(&address.port().to_be_bytes())
        .put(&(epoch as u16).to_ne_bytes())
        .end()
}

/// The epoch of a key of SYN cookies.
pub fn cookie_epoch(key: &CookieKeyBytes) -> u32 {
    u32::from(u16::from_ne_bytes(at(key, 18)))
}

/// `DEVICES`.
pub const DEVICES: u32 = 4_096;

/// `DEVICE_SENDS`.
const DEVICE_SENDS: u16 = 1;

/// A `struct device`.
pub fn device_bytes(index: u32, hardware: [u8; 6], sends: bool) -> DeviceBytes {
    let flags = if sends { DEVICE_SENDS } else { 0 };
    Writer::new().put(&index.to_ne_bytes()).put(&flags.to_ne_bytes()).put(&hardware).end()
}

/// `VLAN_OF_DEVICE`.
pub const VLAN_OF_DEVICE: u32 = 0x8000_0000;

/// A `struct vlan_key` or `struct vlan_value`.
pub fn vlan_bytes(device: u32, tag: u32) -> VlanBytes {
    Writer::new().put(&device.to_ne_bytes()).put(&tag.to_ne_bytes()).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maps' layout and use when the version was last raised.
    const HEADER: (u32, u64) = (8, 5_593_746_132_963_003_133);

    /// The headers without comments and space, hashed by FNV-1a. Programs of two versions must agree on places and locks of
    /// the flow table, too.
    fn fingerprint() -> u64 {
        let mut text =
            concat!(include_str!("../bpf/maps.h"), include_str!("../bpf/table.h")).to_owned();
        while let Some((before, rest)) = text.split_once("/*") {
            text = before.to_owned() + rest.split_once("*/").expect("a comment's end").1;
        }
        let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Maps outlive the program that created them. A program with a different layout must not take
    /// them over.
    #[test]
    fn other_maps_are_of_another_version() {
        assert_eq!(
            (VERSION, fingerprint()),
            HEADER,
            "bpf/maps.h or bpf/table.h is another: raise VERSION unless what is pinned is used as it was, and keep both here"
        );
    }
}
