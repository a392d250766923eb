//! `type: fast_l4` and `packet_path`: packets that the kernel forwards by programs of weir's.

use serde_json::{Value, json};

use crate::address::{ListenAddress, PortRange, SourceAddress};
use crate::decode::{
    Context, Decode, Invalid, OneOrMany, Registry, ScalarKind, Shown, Spanned, decode_scalar,
    decode_text,
};
use crate::scalar::{Auto, Duration, MINUTE, SECOND, Whole, WordOr, whole};
use crate::shapes::Network;
use crate::tree::{Node, NodeValue};

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

/// How long a flow may rest; looked at once a second.
type FlowTimeout = Duration<SECOND, FLOW_TIMEOUT_MS_MAX>;

section! {
    /// How packets are forwarded (`type: fast_l4`).
    FastL4Profile at "profiles.fast_l4.NAME" {
        /// A flow without a packet of either end. It is then forgotten.
        default idle_timeout: FlowTimeout = Duration(5 * MINUTE);
        /// A TCP flow of which only the client has sent.
        default handshake_timeout: FlowTimeout = Duration(10 * SECOND);
        /// A TCP flow that both ends have closed, or one has reset.
        default closing_timeout: FlowTimeout = Duration(5 * SECOND);
        /// Whether both ends of a TCP flow get a reset when it is ended for its rest.
        default reset_on_timeout: bool = true;
        /// Whether both ends of a TCP flow get a reset when its member is down. A new SYN goes to another member in any case.
        default reset_on_service_down: bool = true;
        /// Whether a TCP flow may begin with another segment than a SYN: for forwarding, and for what was open before.
        default loose_initiation: bool = false;
        /// Largest MSS that the ends of a TCP flow may offer; larger ones are lowered to it. Default: left alone.
        optional mss_max: Whole<u16, 88, 65_495>;
        /// TTL (IPv6: hop limit) of packets that are forwarded. `decrement`: one less, as by a router. `keep`: as it came. Or a number.
        default ttl: TtlOr = TtlOr::Word(TtlWord::Decrement);
        /// Type of service (IPv6: traffic class) of packets that are forwarded, as a number; its two bits of ECN are left alone. Default: as it came.
        optional tos: Whole<u8, 0, 255>;
        /// Whether the member's address takes the place of the virtual server's. `false`: the packet keeps its destination and goes to the member as a router (or, without a pool, where the routing table says). Default: `true` with a pool and without `dsr`.
        optional translate_address: bool;
        /// Whether the member's port takes the place of the one that the client asked for.
        default translate_port: bool = true;
        /// Which address members see. `off`: the client's; their way to clients has to lead through this host. `auto`: the address of this host by which the member is reached. Or addresses, with ports if they are given. Ports are those outside `net.ipv4.ip_local_port_range` otherwise.
        default source: PacketSource = PacketSource::Off;
        /// Direct server return: the packet goes to the member unchanged but for its MAC address, and the member answers the client directly. Members are on a network of this host, and have the virtual server's address on a loopback device.
        default dsr: bool = false;
    }
    later []
}

section! {
    /// How packets reach virtual servers of `type: fast_l4`.
    PacketPath at "packet_path" {
        /// Network interfaces whose packets are looked at. `auto`: those that are up, and have an IP address and a hardware address.
        default interfaces: WordOr<Auto, Vec<Spanned<InterfaceName>>> = WordOr::Word(Auto);
        /// The ways that may be tried, the best first: `xdp` (in the driver), `tcx` (right above it), `proxy` (by sockets, as `type: tcp`). Which of them a virtual server gets is told at the start, at reloads, by `weir check --explain` and in `/status`.
        default rungs: Rungs = Rungs(vec![Rung::Xdp, Rung::Tcx, Rung::Proxy]);
        /// Tells several on one host apart: programs and tables are kept under `/sys/fs/bpf/weirgate/NAME`.
        default name: PathName = PathName("weir".into());
        /// Flows at a time. Beyond it new ones are dropped, and counted. Another number than before forgets all flows.
        default flows_max: Whole<u32, 1_024, FLOWS_MAX> = Whole(1 << 20);
        /// Flows with `dsr`, clients with persistence, sources with a rate, and fragmented packets, that are remembered of each; the oldest are forgotten. Another number than before forgets all flows.
        default remembered_max: Whole<u32, 1_024, FLOWS_MAX> = Whole(1 << 16);
        /// Sources whose packets are dropped before anything else looks at them, on all `interfaces`, whatever they are for. Virtual servers of other types and the host's own services are behind it as well.
        optional deny: Vec<Spanned<Network>>;
        /// Exceptions to `deny`: the longest prefix of both lists decides.
        optional allow: Vec<Spanned<Network>>;
        /// New flows per second of one source address (IPv6: of one /64). More are dropped, and counted. Default: no limit.
        optional connections_per_second_per_source: Whole<u32, 1, RATE_MAX>;
        /// New flows of a source at once after a rest. Default: those of one second.
        optional burst: Whole<u32, 1, RATE_MAX>;
        /// Addresses and ports of virtual servers of types `http` and `tcp` whose SYNs are answered with cookies before they reach a socket. Needs `xdp`, and `net.ipv4.tcp_syncookies=2`.
        optional syn_cookies: OneOrMany<Spanned<ListenAddress>>;
        /// What becomes of flows when weir ends. `detach`: they end with it, after `drain_timeout`. `keep`: the kernel goes on forwarding, and the next weir of this `name` takes them over; `weir l4 detach` ends that.
        default on_exit: OnExit = OnExit::Detach;
    }
    later []
}

choice! {
    /// What becomes of flows when weir ends.
    OnExit {
        /// They end with it.
        Detach = "detach",
        /// The kernel goes on forwarding.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// A way that packets may take.
    Rung {
        /// In the driver.
        Xdp = "xdp",
        /// Right above it.
        Tcx = "tcx",
        /// By sockets.
        Proxy = "proxy",
    }
    later [] maps []
}

/// The ways that may be tried.
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

impl Shown for Rungs {
    fn shown(&self) -> Value {
        self.0.iter().map(Shown::shown).collect()
    }
}

choice! {
    /// What becomes of TTL and hop limit, in a word.
    TtlWord {
        /// One less.
        Decrement = "decrement",
        /// As it came.
        Keep = "keep",
    }
    later [] maps []
}

/// What becomes of TTL and hop limit.
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

impl Shown for TtlOr {
    fn shown(&self) -> Value {
        match self {
            Self::Word(word) => word.shown(),
            Self::Set(number) => number.shown(),
        }
    }
}

/// Which packets a virtual server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketProtocol {
    Tcp,
    Udp,
    Any,
    Number(u8),
}

impl Decode for PacketProtocol {
    fn expected() -> String {
        "`tcp`, `udp`, `any` or the number of an IP protocol from 0 to 255".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let number = Whole::<u8, 0, 255>::schema(registry);
        json!({ "anyOf": [{ "enum": ["tcp", "udp", "any"] }, number] })
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
                    Some(number) => Ok(Self::Number(number)),
                    None => Err(Invalid::plainly()),
                }
            }
        })
    }
}

impl Shown for PacketProtocol {
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
    /// Addresses that members see, and their ports.
    PacketSourcePorts at "profiles.fast_l4.NAME.source" {
        /// An address or several. They have to lead to this host.
        required addresses: OneOrMany<Spanned<SourceAddress>>;
        /// Their ports. Default: those outside `net.ipv4.ip_local_port_range`.
        optional ports: PortRange;
    }
    later []
}

/// Which address members see.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PacketSource {
    Off,
    Auto,
    Addresses(Vec<Spanned<SourceAddress>>),
    Ports(PacketSourcePorts),
}

impl Decode for PacketSource {
    fn expected() -> String {
        "`off`, `auto`, an IP address without a port, a list of such, or a map with `addresses`"
            .into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let addresses = OneOrMany::<Spanned<SourceAddress>>::schema(registry);
        json!({ "anyOf": [{ "enum": ["off", "auto"] }, addresses, PacketSourcePorts::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match &node.value {
            NodeValue::Map(_) => PacketSourcePorts::decode(node, context).map(Self::Ports),
            NodeValue::Scalar(scalar) if scalar.text == "off" => Some(Self::Off),
            NodeValue::Scalar(scalar) if scalar.text == "auto" => Some(Self::Auto),
            NodeValue::Scalar(scalar) if scalar.kind() == ScalarKind::Boolean => {
                context.mismatch(node, &Self::expected(), Some("write off".into()));
                None
            }
            _ => OneOrMany::decode(node, context).map(|found| Self::Addresses(found.0)),
        }
    }
}

impl Shown for PacketSource {
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

impl Shown for Vec<Spanned<InterfaceName>> {
    fn shown(&self) -> Value {
        self.iter().map(|name| name.value.0.as_str()).collect()
    }
}

/// The name of a packet path: that of a folder, on a file system that takes no dots in names.
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

impl Shown for PathName {
    fn shown(&self) -> Value {
        self.0.as_str().into()
    }
}
