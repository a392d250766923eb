//! `type: fast_l4` and `packet_path`: packets that the kernel forwards by eBPF programs of weir.

use serde_json::{Value, json};

use crate::address::{ListenAddress, PortRange, SourceAddress};
use crate::decode::{
    Context, Decode, Invalid, OneOrMany, Registry, ShownDefault, Spanned, decode_scalar,
    decode_text, words_schema,
};
use crate::document::{Node, NodeValue, ScalarKind};
use crate::hints::meant;
use crate::scalar::{Auto, Duration, MINUTE, SECOND, Whole, WordOr, whole};
use crate::shapes::Network;

/// Longest timeout of a flow: a week.
const FLOW_TIMEOUT_MS_MAX: u64 = 7 * 24 * 60 * MINUTE;

/// Most flows of a table.
const FLOWS_MAX: u64 = 1 << 24;

/// Most new flows per second of a source.
const RATE_MAX: u64 = 4_000_000;

/// Linux's IFNAMSIZ less its NUL.
const INTERFACE_NAME_BYTES_MAX: usize = 15;

/// Longest name of a packet path.
const PATH_NAME_BYTES_MAX: usize = 64;

/// How long a flow may be idle; checked once a second.
type FlowTimeout = Duration<SECOND, FLOW_TIMEOUT_MS_MAX>;

section! {
    /// How packets are forwarded (`type: fast_l4`).
    FastL4Profile at "profiles.fast_l4.NAME" {
        /// Maximum time without a packet from either end. After it, weir removes the flow.
        default idle_timeout: FlowTimeout = Duration(5 * MINUTE);
        /// Idle timeout of a TCP flow in which only the client has sent packets.
        default handshake_timeout: FlowTimeout = Duration(10 * SECOND);
        /// Idle timeout of a TCP flow after both ends have closed it, or one end has reset it.
        default closing_timeout: FlowTimeout = Duration(5 * SECOND);
        /// `true`: at an idle timeout, both ends of a TCP flow get a reset.
        default reset_on_timeout: bool = true;
        /// `true`: both ends of a TCP flow get a reset when its member goes down. With either value, a new SYN goes to another member.
        default reset_on_service_down: bool = true;
        /// `true`: a TCP flow may begin with a segment other than SYN. Use it for routing (`forward: route`), and for connections that were open before weir forwarded them.
        default loose_initiation: bool = false;
        /// Maximum MSS in SYN packets; weir lowers larger values to it. Default: unchanged.
        optional mss_max: Whole<u16, 88, 65_495>;
        /// TTL (IPv6: hop limit) of forwarded packets: a word or a number.
        default ttl: TtlOr = TtlOr::Word(TtlWord::Decrement);
        /// Type of service (IPv6: traffic class) of forwarded packets, as a number; the two ECN bits stay unchanged. Default: unchanged.
        optional tos: Whole<u8, 0, 255>;
        /// `true`: the destination address becomes the member's address. `false`: the packet keeps its destination, and the member is its next hop (without a pool, the routing table selects the next hop). Default: `true` if there is a pool and no `dsr`, otherwise `false`.
        optional translate_address: bool;
        /// `true`: the destination port becomes the member's port, if the destination address is translated.
        default translate_port: bool = true;
        /// The source address that members see (SNAT). `off`: the client's address; members must then route their responses through this host. `auto`: the address of this host on the route to the member. Otherwise one or several addresses, optionally with ports. Default ports: all ports outside `net.ipv4.ip_local_port_range`, because the kernel does not assign these to other programs.
        default source: PacketSource = PacketSource::Off;
        /// Direct server return: only the MAC addresses of the packet change, and the member answers the client directly. Members must be on a network of this host, and must have the virtual server's address on a loopback device.
        default dsr: bool = false;
    }
    later []
}

section! {
    /// Packet forwarding for virtual servers of `type: fast_l4`.
    PacketPath at "packet_path" {
        /// Network interfaces whose packets are processed. `auto`: all interfaces that are up and have an IP address and a hardware address.
        default interfaces: WordOr<Auto, Vec<Spanned<InterfaceName>>> = WordOr::Word(Auto);
        /// The forwarding methods, in order of preference. weir uses the first one that is available, and shows the method of each virtual server at the start, at reloads, in `weir check --explain` and in `/v1/status`. `xdp` and `tcx` need Linux 6.6.
        default rungs: Rungs = Rungs(vec![Rung::Xdp, Rung::Tcx, Rung::Proxy]);
        /// The name of this instance, if there are several on one host. weir keeps eBPF programs and tables under `/sys/fs/bpf/weirgate/NAME`.
        default name: PathName = PathName("weir".into());
        /// Maximum number of simultaneous flows. weir drops packets that would open further flows, and counts them. The table takes 387 bytes for each of them, from the start. If you change this number, a reload removes all flows.
        default flows_max: Whole<u32, 1_024, FLOWS_MAX> = Whole(1 << 18);
        /// Maximum number of entries in each of four tables: flows with `dsr`, clients with persistence, sources with a rate limit, and fragmented packets. A full table drops its oldest entries. If you change this number, a reload removes all flows.
        default remembered_max: Whole<u32, 1_024, FLOWS_MAX> = Whole(1 << 16);
        /// Sources whose packets are dropped before any other processing, on all `interfaces` and for all destinations. This also protects virtual servers of other types and the host's own services. Default: none.
        optional deny: Vec<Spanned<Network>>;
        /// Exceptions to `deny`. If an address matches both lists, the entry with the longer prefix applies, and `allow` if both are equal. Default: none.
        optional allow: Vec<Spanned<Network>>;
        /// Maximum number of new flows per second from one source address (IPv6: from one /64). weir drops packets that would open further flows, and counts them. Default: no limit.
        optional connections_per_second_per_source: Whole<u32, 1, RATE_MAX>;
        /// Maximum number of new flows from one source at once, after a pause. Default: the flows of one second.
        optional burst: Whole<u32, 1, RATE_MAX>;
        /// Addresses and ports of virtual servers of types `http` and `tcp`, each an IP address of this host and one port. weir answers SYNs to them with SYN cookies, before the SYNs reach a socket. Needs `xdp`, and `net.ipv4.tcp_syncookies=2`. Default: none.
        optional syn_cookies: OneOrMany<Spanned<ListenAddress>>;
        /// Treatment of flows when weir stops.
        default on_exit: OnExit = OnExit::Detach;
    }
    later []
}

choice! {
    /// Treatment of flows when weir stops.
    OnExit {
        /// The flows end, at the latest after `drain_timeout`.
        Detach = "detach",
        /// The kernel continues to forward the flows. The next weir process with this `name` takes them over; `weir l4 detach` ends them.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// A forwarding method for packets.
    Rung {
        /// In the network driver (XDP).
        Xdp = "xdp",
        /// After the driver, in the kernel's traffic control (tcx).
        Tcx = "tcx",
        /// In user space, with sockets, as with `type: tcp` and `udp`.
        Proxy = "proxy",
    }
    later [] maps []
}

/// The forwarding paths to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rungs(pub Vec<Rung>);

impl Decode for Rungs {
    fn expected() -> String {
        format!("a list of {}", Rung::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        Vec::<Rung>::schema(registry)
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        Vec::<Rung>::decode(node, context).map(Self)
    }
}

impl ShownDefault for Rungs {
    fn shown(&self) -> Value {
        self.0.iter().map(ShownDefault::shown).collect()
    }
}

choice! {
    /// Treatment of TTL and hop limit, as a word.
    TtlWord {
        /// One less, as a router does.
        Decrement = "decrement",
        /// Unchanged.
        Keep = "keep",
    }
    later [] maps []
}

/// What happens to TTL and hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TtlOr {
    Word(TtlWord),
    Set(Whole<u8, 1, 255>),
}

impl Decode for TtlOr {
    fn expected() -> String {
        "`decrement`, `keep` or a number from 1 to 255".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [TtlWord::schema(registry), Whole::<u8, 1, 255>::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| match scalar.text.as_str() {
            "decrement" => Ok(Self::Word(TtlWord::Decrement)),
            "keep" => Ok(Self::Word(TtlWord::Keep)),
            text => whole(text)
                .filter(|_| scalar.kind() == ScalarKind::Number)
                .and_then(|number| u8::try_from(number).ok())
                .filter(|number| *number > 0)
                .map(|number| Self::Set(Whole(number)))
                .ok_or_else(Invalid::plainly),
        })
    }
}

impl ShownDefault for TtlOr {
    fn shown(&self) -> Value {
        match self {
            Self::Word(word) => word.shown(),
            Self::Set(number) => number.shown(),
        }
    }
}

/// The IP protocol of a virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketProtocol {
    Tcp,
    Udp,
    Any,
    Number(u8),
}

impl Decode for PacketProtocol {
    fn expected() -> String {
        "`tcp`, `udp`, `any` or the number of an IP protocol from 1 to 255".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let number = Whole::<u8, 1, 255>::schema(registry);
        let words = words_schema(&[
            ("tcp", "TCP."),
            ("udp", "UDP."),
            ("any", "Every IP protocol; the port in `listen` must be `*`."),
        ]);
        json!({ "anyOf": [words, number] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        decode_scalar(node, context, |scalar| match scalar.text.as_str() {
            "tcp" => Ok(Self::Tcp),
            "udp" => Ok(Self::Udp),
            "any" => Ok(Self::Any),
            text => {
                let number = whole(text).filter(|_| scalar.kind() == ScalarKind::Number);
                match number.and_then(|number| u8::try_from(number).ok()) {
                    Some(TCP) => Ok(Self::Tcp),
                    Some(UDP) => Ok(Self::Udp),
                    Some(0) => Err(Invalid::plainly().help("for every protocol write any")),
                    Some(number) => Ok(Self::Number(number)),
                    None => match protocol_number(text) {
                        Some(number) => Err(Invalid::plainly().help(format!("write {number}"))),
                        None => Err(Invalid::plainly()),
                    },
                }
            }
        })
    }
}

/// The number of a common protocol, by its usual names.
fn protocol_number(name: &str) -> Option<u8> {
    const NUMBERS: [(&str, u8); 12] = [
        ("icmp", 1),
        ("igmp", 2),
        ("ipencap", 4),
        ("ipip", 4),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("ipv6-icmp", 58),
        ("icmpv6", 58),
        ("ospf", 89),
        ("vrrp", 112),
        ("sctp", 132),
    ];
    NUMBERS
        .into_iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map(|(_, number)| number)
}

impl ShownDefault for PacketProtocol {
    fn shown(&self) -> Value {
        match self {
            Self::Tcp => "tcp".into(),
            Self::Udp => "udp".into(),
            Self::Any => "any".into(),
            Self::Number(number) => (*number).into(),
        }
    }
}

section! {
    /// Source addresses that members see, and their ports.
    PacketSourcePorts at "profiles.fast_l4.NAME.source" {
        /// One or several addresses. They must be routed to this host.
        required addresses: OneOrMany<Spanned<SourceAddress>>;
        /// The source ports. Default: those outside `net.ipv4.ip_local_port_range`.
        optional ports: PortRange;
    }
    later []
}

/// The source address that members see.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PacketSource {
    Off,
    Auto,
    Addresses(Vec<Spanned<SourceAddress>>),
    Ports(PacketSourcePorts),
}

const SOURCE_WORDS: [&str; 2] = ["off", "auto"];

impl Decode for PacketSource {
    fn expected() -> String {
        "`off`, `auto`, an IP address without a port, a list of them, or a map with `addresses`"
            .into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let addresses = OneOrMany::<Spanned<SourceAddress>>::schema(registry);
        json!({ "anyOf": [{ "enum": SOURCE_WORDS }, addresses, PacketSourcePorts::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match &node.value {
            NodeValue::Map(_) => PacketSourcePorts::decode(node, context).map(Self::Ports),
            NodeValue::Scalar(scalar) if scalar.text == "off" => Some(Self::Off),
            NodeValue::Scalar(scalar) if scalar.text == "auto" => Some(Self::Auto),
            // A name with a dot is reported as an address that is none.
            NodeValue::Scalar(scalar) if !scalar.text.contains(['.', ':']) => {
                let meant = match scalar.text.as_str() {
                    "true" => Some("auto"),
                    "false" => Some("off"),
                    word => meant(word, SOURCE_WORDS),
                };
                let help = meant.map(|meant| format!("did you mean `{meant}`?"));
                context.mismatch(node, &Self::expected(), help);
                None
            }
            _ => OneOrMany::decode(node, context).map(|found| Self::Addresses(found.0)),
        }
    }
}

impl ShownDefault for PacketSource {
    fn shown(&self) -> Value {
        match self {
            Self::Off => "off".into(),
            Self::Auto => "auto".into(),
            Self::Addresses(addresses) => {
                addresses.iter().map(|address| address.value.0.to_string()).collect()
            }
            Self::Ports(_) => Value::Null,
        }
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterfaceName(pub String);

impl Decode for InterfaceName {
    fn expected() -> String {
        "the name of a network interface, such as eth0".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[!-.0-~]+$", "maxLength": INTERFACE_NAME_BYTES_MAX })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
            let is_name = !text.is_empty()
                && text.len() <= INTERFACE_NAME_BYTES_MAX
                && text.bytes().all(is_plain)
                && !matches!(text, "." | "..");
            if is_name { Ok(Self(text.to_owned())) } else { Err(Invalid::plainly()) }
        })
    }
}

impl ShownDefault for Vec<Spanned<InterfaceName>> {
    fn shown(&self) -> Value {
        self.iter().map(|name| name.value.0.as_str()).collect()
    }
}

/// The name of a packet path: a folder's name on a file system that allows no dots in names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathName(pub String);

impl Decode for PathName {
    fn expected() -> String {
        "a name of letters, digits, `-` and `_`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": PATH_NAME_BYTES_MAX })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            let is_name =
                !text.is_empty() && text.len() <= PATH_NAME_BYTES_MAX && text.bytes().all(is_plain);
            if is_name { Ok(Self(text.to_owned())) } else { Err(Invalid::plainly()) }
        })
    }
}

impl ShownDefault for PathName {
    fn shown(&self) -> Value {
        self.0.as_str().into()
    }
}
