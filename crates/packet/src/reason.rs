//! Why packets were dropped, answered or passed to the kernel.

/// Declares the reasons in the order of `enum reason` in `bpf/reasons.h`; a test compares the two.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $verdict:ident;)*) => {
        /// The reason why a packet was not simply forwarded. Counters of virtual servers and members count forwarded
        /// packets.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All reasons, in the order of the programs' counters.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in metrics and texts.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The treatment of the packet.
            pub fn verdict(self) -> PacketVerdict {
                match self { $(Self::$name => PacketVerdict::$verdict,)* }
            }
        }
    };
}

/// The treatment of a packet that was not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketVerdict {
    /// It was passed to the kernel unchanged.
    Passed,
    /// It was dropped.
    Dropped,
    /// It was dropped, and its sender got an answer.
    Answered,
}

reasons! {
    /// No virtual server and no flow matches, or the VLAN is unknown: a packet for the host itself.
    NotOurs = "not_ours", Passed;
    /// Not IP, or a multicast or broadcast.
    NotIp = "not_ip", Passed;
    /// The headers are truncated, or there are too many extension headers.
    Unparsed = "unparsed", Passed;
    /// A fragment other than the first, whose first fragment was not seen.
    FragmentWithoutFirst = "fragment_without_first", Passed;
    /// TTL or hop limit has run out: the kernel answers.
    TtlExceeded = "ttl_exceeded", Passed;
    /// The neighbour's hardware address is unknown yet: the second program has the kernel ask for it.
    NeighbourUnresolved = "neighbour_unresolved", Passed;
    /// The outgoing device accepts no packets from XDP: the second program sends the packet.
    OtherDevice = "other_device", Passed;
    /// An ICMP error about an unknown flow.
    IcmpWithoutFlow = "icmp_without_flow", Passed;
    /// The route leads to this host itself, or to a device without hardware addresses.
    NotForwarded = "not_forwarded", Passed;
    /// The frame is for another hardware address than the interface's: that of a bridge, a macvlan or another host.
    OtherHardware = "other_hardware", Passed;
    /// A source in `deny`.
    Denied = "denied", Dropped;
    /// Its virtual server lists its clients (`allowed_clients`), and not this source.
    ClientNotAllowed = "client_not_allowed", Dropped;
    /// The source exceeds its rate of new flows.
    SourceRate = "source_rate", Dropped;
    /// Its virtual server has no member that takes new flows.
    NoMember = "no_member", Dropped;
    /// The member is down.
    MemberDown = "member_down", Dropped;
    /// The flow table is full: new flows are dropped, existing ones continue.
    FlowsFull = "flows_full", Dropped;
    /// No source port is free among those tried.
    SourcePortsExhausted = "source_ports_exhausted", Dropped;
    /// For its member, the packet is indistinguishable from a flow of another client or virtual server, or its flow ended while it was processed.
    FlowConflict = "flow_conflict", Dropped;
    /// TCP without a flow, and not a SYN.
    NotSyn = "not_syn", Dropped;
    /// The routing table has no route, or forbids it.
    NoRoute = "no_route", Dropped;
    /// Forwarding is off at the interface: set `net.ipv4.ip_forward` or `net.ipv6.conf.all.forwarding`.
    ForwardingOff = "forwarding_off", Dropped;
    /// Too large for the outgoing interface, without an ICMP error: a fragment other than the first.
    TooBig = "too_big", Dropped;
    /// An IPv4 source route, which is refused.
    SourceRoute = "source_route", Dropped;
    /// The packet could not be changed: no room in its buffer.
    NotChanged = "not_changed", Dropped;
    /// Larger than the MTU of the path: its sender got "packet too big" (IPv4: "fragmentation needed").
    TooBigAnswered = "too_big_answered", Answered;
    /// A SYN that was answered with a cookie.
    SynCookie = "syn_cookie", Answered;
}
