//! The language as it is written: every key that a file can have, declared once.
//!
//! Doc comments here are the text of the reference in `docs/configuration.md` and of the JSON
//! Schema. What a section alone cannot know (does the pool exist?) is checked in `validate`.

pub(crate) mod acme;
pub(crate) mod admin;
pub(crate) mod authentication;
mod balance;
pub(crate) mod checks;
pub(crate) mod compression;
pub(crate) mod limit;
pub(crate) mod log;
pub(crate) mod log_format;
pub(crate) mod member;
pub(crate) mod monitor;
pub(crate) mod packet;
pub(crate) mod path;
pub(crate) mod persistence;
pub(crate) mod policy;
pub(crate) mod request_id;
pub(crate) mod source;
pub(crate) mod tcp;
pub(crate) mod tls;
pub(crate) mod tracing;
pub(crate) mod udp;
pub(crate) mod waf;

use std::path::PathBuf;

pub(crate) use balance::{Balance, BalanceOr};
pub(crate) use log::{AccessLogFormat, Log};

use crate::decode::{Named, NamedItem, OneOrMany, Section as _, Spanned};
use crate::destination::ListenOn;
use crate::profile::ProfileOr;
use crate::scalar::WordOr;
use crate::scalar::{
    Auto, Duration, GIB, HOUR, KIB, MIB, MINUTE, Name, Off, Percent, SECOND, Size, Text, Whole,
};
use crate::shapes::{
    ByStatus, Connections, FieldName, FilePath, HttpsRedirect, Network, Share, StatusCode, Tried,
    ZoneChoice,
};
use crate::snapshot;
use crate::tree::Span;

/// Most worker threads.
const WORKERS_MAX: u64 = 1024;
/// Longest of any timeout: a day.
const TIMEOUT_MS_MAX: u64 = 24 * HOUR;
/// Largest head: it is held in memory as a whole.
const HEAD_SIZE_BYTES_MAX: u64 = MIB;
/// Most fields of a head.
const HEADERS_MAX: u64 = 10_000;
/// As many as the codec has room for.
const HTTP2_STREAMS_MAX: u64 = 10_000;
/// Largest limit on a body that can be given; `off` has none.
const BODY_SIZE_BYTES_MAX: u64 = 1024 * GIB;
/// Most members that one request may try after the first.
const RETRIES_MAX: u64 = 16;
/// Most failures in a row that passive marking can wait for.
const PASSIVE_FAILURES_MAX: u64 = 10_000;
/// Most idle connections of one worker to one member.
const IDLE_CONNECTIONS_MAX: u64 = 100_000;
/// Most requests over one member connection.
const REQUESTS_MAX: u64 = 1_000_000_000;
/// Most requests that wait for a member of one pool.
const QUEUE_LENGTH_MAX: u64 = 10_000_000;

/// Longest time that the kernel keeps a connection back on which nothing has come.
const DEFER_ACCEPT_MS_MAX: u64 = MINUTE;

/// The folder of state, as packages make it.
pub(crate) fn default_state_dir() -> PathBuf {
    "/var/lib/weir".into()
}

/// Longest wait for first probes: somebody waits for the start or the reload.
const FIRST_PROBES_WAIT_MS_MAX: u64 = 10 * MINUTE;

/// Most records of requests.
const RECORDS_MAX: u64 = 100_000;

/// Any timeout that must pass at least a little time.
pub(crate) type Timeout = Duration<1, TIMEOUT_MS_MAX>;
/// A timeout that may be none at all.
pub(crate) type TimeoutOrZero = Duration<0, TIMEOUT_MS_MAX>;
/// A port to connect to.
pub(crate) type Port = Whole<u16, 1, 65_535>;

section! {
    /// The whole file.
    File at "" {
        /// The admin listeners: the API, metrics and users.
        optional admin: admin::Admin;
        /// Threads and draining.
        optional data_plane: DataPlane;
        /// First probes of members at a start or reload.
        optional first_probes: FirstProbes;
        /// Logs.
        optional log: Log;
        /// Certificates from an authority, by ACME.
        optional acme: acme::Acme;
        /// Where traces of requests go.
        optional exporting as "tracing": tracing::Exporting;
        /// Records of recent requests, for [`weir explain ID`](explain.md#a-request-of-the-past) and `weir requests`. Absent: none are kept, and requests cost nothing more.
        optional recent_requests: RecentRequests;
        /// Settings with a name, for use in several places.
        optional profiles: Profiles;
        /// Packet forwarding for virtual servers of `type: fast_l4`.
        optional packet_path: packet::PacketPath;
        /// Virtual servers, by name: the addresses that clients connect to.
        either virtual_servers: Named<VirtualServer> = "include";
        /// Pools of members, by name.
        optional pools: Named<Pool>;
        /// Policies, by name: rules for requests and responses.
        optional policies: Named<policy::Policy>;
        /// Data sets, by name: lists for conditions and templates.
        optional data_sets: Named<policy::DataSet>;
        /// Persistence settings, by name: they keep a client on one member.
        optional persistence: Named<persistence::Persistence>;
        /// The time zone of `time` in [expressions](expressions.md#time): `UTC`, a name with its summer time, for example `Europe/Berlin`, or an offset from UTC, for example `"+01:00"`. A name is read from `/usr/share/zoneinfo` (package `tzdata`) when the configuration is loaded.
        default time_zone: ZoneChoice = ZoneChoice::default();
        /// Authentication settings, by name.
        optional authentication: Named<authentication::Authentication>;
        /// The folder for data that must survive a restart: the key of inserted cookies, certificates by [ACME](#acme), and the [overlay](operating.md#change-the-configuration-while-weir-serves).
        default state_dir: FilePath = FilePath(default_state_dir());
        /// Further files of the configuration: paths of files, or of directories, of which all files `*.yaml` are read, in the order of their names. An included file cannot include others. See [several files](#several-files).
        optional include: OneOrMany<Spanned<FilePath>>;
    }
    later []
}

impl File {
    /// With a pool that has no name and no member, for virtual servers that lead to none by themselves.
    pub fn with_nobody(mut self) -> Self {
        let servers = self.virtual_servers.iter().flat_map(|servers| &servers.value.0);
        let leads_nowhere = |server: &VirtualServer| {
            matches!(server.kind.value, VirtualServerType::Http | VirtualServerType::Tcp)
                && server.pool.is_none()
                && server.by_server_name.is_none()
                && server.forward.is_none()
        };
        if servers.filter_map(|item| item.value.as_ref()).any(leads_nowhere) {
            let nobody = NamedItem {
                name: snapshot::NOBODY.to_owned(),
                name_span: Span::at(1, 1),
                value: Some(Pool::absent()),
            };
            let (span, given) = (Span::at(1, 1), false);
            let pools = || Spanned { value: Named::default(), span, given };
            self.pools.get_or_insert_with(pools).value.0.push(nobody);
        }
        self
    }
}

section! {
    /// Threads and draining.
    DataPlane at "data_plane" {
        /// Worker threads. `auto`: one per core that the process may use. Fixed at start; a reload does not change it.
        default workers: WordOr<Auto, Whole<u16, 1, WORKERS_MAX>> = WordOr::Word(Auto);
        /// How long open requests may continue when a virtual server or member is removed, or when weir stops.
        default drain_timeout: TimeoutOrZero = Duration(60 * SECOND);
        /// Whether the kernel keeps worker threads from opening any file (Landlock), so that a defect in what they parse opens none. Fixed at start; a reload does not change it. See [sandbox](operating.md#sandbox).
        default sandbox: Sandbox = Sandbox::Auto;
    }
    later []
}

choice! {
    /// Whether worker threads are kept from files.
    Sandbox {
        /// If the kernel can do it (Linux 5.13 or newer, with Landlock).
        Auto = "auto",
        /// Always; without such a kernel weir does not start.
        On = "on",
        /// No.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// First probes at a start or reload. A member gets no traffic before its first probe has passed. Therefore a configuration takes effect only when each new pool has a usable member, and each new member has been probed once. If a pool has a usable member, weir waits at most 400 ms for its other members. Until then, weir repeats failed probes and resolves names without an address again. During a reload, the previous configuration continues to serve; during a start, connections wait.
    FirstProbes at "first_probes" {
        /// The longest wait. weir waits the full time if all members of a new pool are down. `0s`: no wait.
        default wait: Duration<0, FIRST_PROBES_WAIT_MS_MAX> = Duration(5 * SECOND);
        /// Treatment of members that have not answered a probe, if a pool has no usable member after `wait`.
        default then: AfterFirstProbes = AfterFirstProbes::Serve;
    }
    later []
}

section! {
    /// Records of recent requests, in memory. Beside `keep`, all records together have at most 16 MiB; the oldest give way.
    RecentRequests at "recent_requests" {
        /// Records that are kept.
        default keep: Whole<u32, 1, RECORDS_MAX> = Whole(1_000);
        /// The share of requests that are recorded. `off`: only slow ones.
        default sample: WordOr<Off, Share> = WordOr::Value(Share(100_000));
        /// Requests that take at least this long count as slow: they are recorded in any case, and the last 200 of them are kept apart. `off`: none count as slow.
        default slow: WordOr<Off, Duration<1, TIMEOUT_MS_MAX>> = WordOr::Value(Duration(SECOND));
    }
    later []
}

choice! {
    /// How a pool treats members that have not answered a probe in time.
    AfterFirstProbes {
        /// They get requests until their probes fail.
        Serve = "serve",
        /// They get no requests before a probe has passed; clients get 503.
        Refuse = "refuse",
    }
    later [] maps []
}

section! {
    /// Settings with a name. A key that takes a profile accepts its name, or the same map inline.
    Profiles at "profiles" {
        /// HTTP limits and timeouts for `virtual_servers.NAME.http`.
        optional http: Named<HttpProfile>;
        /// TLS toward clients, for `virtual_servers.NAME.tls`.
        optional tls: Named<tls::Tls>;
        /// Compression of responses, for `virtual_servers.NAME.compression`.
        optional compression: Named<compression::Compression>;
        /// The web application firewall, for `virtual_servers.NAME.waf`.
        optional waf: Named<waf::Waf>;
        /// Timeouts of relayed connections, for `virtual_servers.NAME.tcp`.
        optional tcp: Named<tcp::TcpProfile>;
        /// Packet forwarding, for `virtual_servers.NAME.fast_l4`.
        optional fast_l4: Named<packet::FastL4Profile>;
        /// Sessions of datagrams, for `virtual_servers.NAME.udp`.
        optional udp: Named<udp::UdpProfile>;
    }
    later []
}

section! {
    /// An address that clients connect to.
    VirtualServer at "virtual_servers.NAME" {
        /// The addresses to listen on, each with a port or a range of ports (`10.0.0.1:8000-8100`), at most 1024 ports in total. With `type: fast_l4` also networks, and any port: `10.0.0.0/24:*`, `[2001:db8::]/64:443`, `0.0.0.0/0:*`; the longest prefix wins. Two virtual servers cannot share an address, except one for UDP and one for TCP. Required, unless rules of other virtual servers hand requests to this one (action `virtual_server`).
        optional listen: Tried<OneOrMany<crate::decode::Spanned<ListenOn>>>;
        /// Whether the virtual server serves.
        default state: VirtualServerState = VirtualServerState::Enabled;
        /// Network interfaces, VLAN devices included, on which clients can connect. On other interfaces the virtual server does not listen. Virtual servers with different `interfaces` can have the same address and port. Responses leave by the interface on which the client connected. Default: all interfaces.
        optional interfaces: Vec<crate::decode::Spanned<packet::InterfaceName>>;
        /// Whether the virtual server may listen on an address that this host does not have yet, for example an address that moves between two hosts. Clients cannot connect until the host has the address.
        default free_bind: bool = false;
        /// The kernel holds a new connection until the client has sent data, or until this time has passed (in whole seconds, rounded up; the connection is then accepted as usual). This saves CPU per connection. Do not use it for protocols in which the server speaks first. Default: connections are accepted at once.
        optional defer_accept: Duration<SECOND, DEFER_ACCEPT_MS_MAX>;
        /// The protocol.
        default kind as "type": VirtualServerType = VirtualServerType::Http;
        /// The pool for requests (with `type: tcp` for connections, with `type: udp` for datagrams). With `by_server_name`, it serves clients that send no server name or an unlisted one; without `pool`, these clients are refused. A virtual server needs no pool if it only redirects (`https_redirect`), or if rules (`policies`) answer, refuse or select a pool. Requests that no rule handles then get 503; connections with `type: tcp` are reset.
        either pool: Name = "by_server_name|forward|policies|connection_policies|https_redirect";
        /// `fast_l4` only, instead of a pool: the way of the packets.
        optional forward: Forward;
        /// `fast_l4` only: the IP protocol of the packets. A number needs any port (`*`). A virtual server for a specific protocol takes precedence over `any`.
        default protocol: packet::PacketProtocol = packet::PacketProtocol::Tcp;
        /// `fast_l4` only: how packets are forwarded. A profile's name, or the settings inline. Default: the defaults of each setting.
        optional fast_l4: ProfileOr<packet::FastL4Profile>;
        /// `tcp` only: pools by the server name in the client's first TLS message (SNI). An exact name takes precedence over a wildcard. Without `tls`, nothing is decrypted: the members terminate TLS.
        optional by_server_name: Vec<crate::decode::Spanned<tcp::ServerNamePool>>;
        /// `tcp` only: timeouts. A profile's name, or the settings inline. Default: the defaults of each setting.
        optional tcp: ProfileOr<tcp::TcpProfile>;
        /// `udp` only: which datagrams form a session. A profile's name, or the settings inline. Default: the defaults of each setting.
        optional udp: ProfileOr<udp::UdpProfile>;
        /// HTTP limits and timeouts. A profile's name, or the settings inline. Default: the defaults of each setting.
        optional http: ProfileOr<HttpProfile>;
        /// TLS toward clients. A profile's name, or the settings inline. Default: no TLS.
        optional tls: ProfileOr<tls::Tls>;
        /// Compression of responses. A profile's name, or the settings inline. Default: none.
        optional compression: ProfileOr<compression::Compression>;
        /// The web application firewall for requests. A profile's name, or the settings inline. Default: none.
        optional waf: ProfileOr<waf::Waf>;
        /// Tells browsers to use only TLS for this host (a `Strict-Transport-Security` field in each response). Needs `tls`.
        optional hsts: tls::Hsts;
        /// Answers every request with a redirect to the same address over TLS: `true` (status 308, port 443), or `{ status: 301, port: 8443 }`.
        default https_redirect: HttpsRedirect = HttpsRedirect::Plainly(false);
        /// Limits on connections and requests.
        optional limits: limit::Limits;
        /// Policies, by name, in the order in which they run. With `type: tcp`, they run once per connection, before the pool is selected. They can then read `client`, `server` and `tls`; without `tls` on the virtual server only `tls.sni`. Default: none.
        optional policies: Vec<crate::decode::Spanned<Name>>;
        /// For `type: http` and `tcp`: policies, by name, that allow or refuse connections. They run once per connection, before the handshake and any request: when the connection is accepted (and the PROXY header has been read), or, if they read `tls.sni`, when the client has sent the server name. They can read `client`, `server` and, if the virtual server has `tls`, `tls.sni`. Their actions are `rate_limit` (`connections`, `connections_per_second`), `log`, `close` and `reset`. Default: none.
        optional connection_policies: Vec<crate::decode::Spanned<Name>>;
        /// The authentication that clients need, by name. It runs before the rules of `policies`. A request without valid credentials gets 401. To authenticate only some paths, use the action `authenticate`. Default: clients need none.
        optional authenticate: Name;
        /// Persistence: keeps a client on one member. The name of a persistence, or the settings inline. Default: none.
        optional persistence: ProfileOr<persistence::Persistence>;
        /// Finds the client's address behind proxies, and sends it to members.
        optional client_address: ClientAddress;
        /// An id of each request, for members, clients and logs: `{}` for the defaults. Default: only the logs have an id.
        optional request_id: request_id::RequestId;
        /// Distributed tracing of requests (W3C Trace Context, OpenTelemetry): `{}` for the defaults. Needs `tracing` of the file. Default: requests are not traced, and `traceparent` stays unchanged.
        optional tracing: tracing::Tracing;
        /// Pages that replace weir's own short responses, by status (`503`) or class (`5xx`). Default: none.
        optional error_pages: ByStatus<Page>;
        /// Whether responses have a `Server-Timing` field with their duration.
        default server_timing: bool = false;
    }
    later []
}

impl VirtualServer {
    /// Where it listens, and where the file says so; `None`: nowhere, or that is unsound.
    pub fn listens_on(&self) -> Option<(&[Spanned<ListenOn>], Span)> {
        let listen = self.listen.as_ref()?;
        listen.value.0.as_ref().map(|all| (&all.0[..], listen.span))
    }
}

choice! {
    /// Whether a virtual server serves.
    VirtualServerState {
        /// It listens and serves.
        Enabled = "enabled",
        /// It is checked and keeps its addresses, but does not listen. `weir status` shows it.
        Disabled = "disabled",
    }
    later [] maps []
}

choice! {
    /// Protocol of a virtual server.
    VirtualServerType {
        /// Requests by HTTP/1.0, HTTP/1.1 or HTTP/2.
        Http = "http",
        /// Connections of any protocol over TCP or TLS. Their bytes are relayed unchanged.
        Tcp = "tcp",
        /// Datagrams of any protocol. They are relayed unchanged.
        Udp = "udp",
        /// Packets of any protocol. The kernel forwards them by an eBPF program of weir. Where that is impossible, TCP connections are relayed as with `tcp`.
        FastL4 = "fast_l4",
    }
    later [] maps []
}

choice! {
    /// Where packets go without a pool.
    Forward {
        /// Along the routing table of this host.
        Route = "route",
    }
    later [] maps []
}

section! {
    /// Finds the client's address behind proxies, and sends it to members.
    ClientAddress at "virtual_servers.NAME.client_address" {
        /// Addresses and networks of trusted proxies: only they can set the client's address. Default: none.
        optional trust: Vec<crate::decode::Spanned<Network>>;
        /// The field in which trusted proxies send the client's address. weir reads it from the right and skips trusted addresses.
        default header: FieldName = FieldName("X-Forwarded-For".into());
        /// Whether trusted proxies begin each connection with a PROXY header (version 1 or 2). A connection of a trusted proxy without it is closed. From other addresses, the header is not accepted: over HTTP, it is a malformed request.
        default proxy_protocol: bool = false;
        /// `X-Forwarded-For` for members.
        default x_forwarded_for: Forwarding = Forwarding::Off;
        /// `X-Forwarded-Proto` and `X-Forwarded-Host` for members. They replace fields of the same name; `X-Forwarded-Proto` from an address in `trust` stays.
        default x_forwarded_proto: bool = false;
        /// `Forwarded` (RFC 7239) for members.
        default forwarded: Forwarding = Forwarding::Off;
    }
    later []
}

choice! {
    /// What happens to a list of client addresses.
    Forwarding {
        /// weir adds the address of the connection's peer at the end.
        Append = "append",
        /// weir sends only the client's address.
        Replace = "replace",
        /// The field stays unchanged.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// HTTP limits and timeouts of the client side.
    HttpProfile at "profiles.http.NAME" {
        /// Largest head (request line and fields) of a request or response, and largest trailer section. A larger request head gets 431.
        default head_size_max: Size<KIB, HEAD_SIZE_BYTES_MAX> = Size(32 * KIB);
        /// Most fields in one head or trailer section. A request with more gets 431.
        default headers_max: Whole<u16, 1, HEADERS_MAX> = Whole(128);
        /// Largest request body; a larger one gets 413. `off`: no limit; as bodies are streamed, this costs no memory.
        default body_size_max: WordOr<Off, Size<0, BODY_SIZE_BYTES_MAX>> = WordOr::Word(Off);
        /// The time for a request head, from its first byte to its last.
        default header_timeout: Timeout = Duration(10 * SECOND);
        /// Longest pause of a client while it sends a request body or reads a response. gRPC and event streams use `tunnel_timeout` instead.
        default body_timeout: Timeout = Duration(30 * SECOND);
        /// Longest pause of a member while it sends a response. gRPC and event streams (`text/event-stream`) use `tunnel_timeout` instead.
        default response_body_timeout: Timeout = Duration(5 * MINUTE);
        /// How long a client connection may be idle between two requests.
        default idle_timeout: Timeout = Duration(60 * SECOND);
        /// How long a tunnel (WebSocket), an event stream or a gRPC call may be idle in both directions.
        default tunnel_timeout: Timeout = Duration(HOUR);
        /// HTTP/2 toward clients: over TLS for clients that select `h2` by ALPN; without TLS for clients that send its preface (h2c with prior knowledge). Default: on with `tls`, off without.
        optional http2: bool;
        /// Most open requests of an HTTP/2 client on one connection.
        default http2_streams_max: Whole<u32, 1, HTTP2_STREAMS_MAX> = Whole(100);
        /// Fields after a request body (trailers).
        default request_trailers: RequestTrailers = RequestTrailers::Drop;
        /// How the path of a request is normalised for members and rules. `keep`: members get the original path, rules see the path as servers resolve it. Or settings for parts of the path. Default: members and rules get one path that all common servers resolve alike.
        optional path: path::PathOr;
        /// Whether a request gets 400 if its target has bytes that RFC 3986 requires to be encoded: bytes above 0x7F, `"`, `<` and `>`. Otherwise weir percent-encodes them: rules and members get `%C3%A9` for `é`.
        default strict: bool = false;
        /// Whether weir rewrites a `Location` that points to the answering member (by the `Host` that the member received, or by its address). The new `Location` has the scheme and host that the client used. For WebDAV, the `Destination` of `COPY` and `MOVE` is rewritten in the other direction.
        default rewrite_location: bool = false;
    }
    later []
}

choice! {
    /// What happens to trailers of requests.
    RequestTrailers {
        /// Members do not get them.
        Drop = "drop",
        /// Members get them, except fields for framing, routing and authentication, and fields that a rule sets, removes or replaces in the head.
        Forward = "forward",
    }
    later [] maps []
}

section! {
    /// A pool of equivalent members.
    Pool at "pools.NAME" {
        /// How a member is selected for a request.
        default balance: BalanceOr = BalanceOr::Method(Balance::RoundRobin);
        /// The servers. The list may be empty, for a pool that is filled later.
        required members: crate::decode::List<crate::decode::Spanned<member::MemberEntry>>;
        /// Active health checks of each member. With monitors, a member gets traffic after its first probe has passed. Without monitors, it always counts as up.
        optional monitors: Vec<crate::decode::Spanned<monitor::Monitor>>;
        /// Takes a member out of service if requests to it fail. Default: off.
        optional passive: Passive;
        /// Idle connections to members, kept for further requests.
        optional reuse: Reuse;
        /// How many further members a request may try if a member cannot be reached. Only for requests that are safe to repeat.
        default retries: Whole<u8, 0, RETRIES_MAX> = Whole(1);
        /// Response statuses from 400 to 599 that count as a failure, for example 502 and 503. weir then tries another member, within `retries` and `retry_budget`. This applies only to requests that are safe to repeat, if weir still has the whole request, and before any part of a response has been sent. If no other member can serve, the client gets the response. Default: none.
        optional retry_on: Vec<crate::decode::Spanned<StatusCode>>;
        /// Whether `retry_on` also repeats requests that are not safe to repeat (POST, PATCH). The first member may already have executed such a request.
        default retry_non_idempotent: bool = false;
        /// The time for a member to accept a connection. After it, another member is tried.
        default connect_timeout: Timeout = Duration(5 * SECOND);
        /// The time from the end of the request to the response head. After it, the client gets 504.
        default response_timeout: Timeout = Duration(60 * SECOND);
        /// TLS toward members. Default: no TLS.
        optional tls: tls::PoolTls;
        /// Whether members are contacted by HTTP/2. Many requests then share one connection. gRPC needs it. With `tls`, members must select it by ALPN; without, they must accept h2c with prior knowledge.
        default http2: bool = false;
        /// The source of connections to members: a local address; several, used in turn; `{ addresses: …, ports: 40000-49999 }`; or `client`: the client's own address. `client` needs CAP_NET_RAW or CAP_NET_ADMIN, and members must route their responses through this host. Default: the system selects the address.
        optional source: source::SourceOr;
        /// When members of lower priority get traffic.
        optional priority: Priority;
        /// How long a member takes to reach its full share of the traffic after it has come up. Default: it gets its full share at once.
        optional slow_start: Timeout;
        /// Requests wait here while all members have reached their connection limit. Default: such requests get 503.
        optional queue: Queue;
        /// The pool that serves while no member of this pool is up. Default: none: clients get the page of `maintenance`, or 503.
        optional fallback: Name;
        /// The pool that serves requests for which this pool has no room. Clients with persistence stay at their member.
        optional spillover: Spillover;
        /// How many monitors must pass for a member to be up. Default: all.
        optional monitors_min: Whole<u8, 1, 255>;
        /// Limits retries in proportion to requests.
        optional retry_budget: RetryBudget;
        /// The page for clients while no member is up, with status 503. Or `{ redirect: URL }`: clients are redirected.
        optional maintenance: Maintenance;
        /// Whether members get the client's address by the PROXY protocol. If they do, each connection to a member serves only one client.
        default proxy_protocol: ProxyProtocol = ProxyProtocol::Off;
        /// Malformed responses that are accepted from members. Some are always accepted: the same Content-Length several times, Content-Length together with chunks, spaces after the size of a chunk. Default: no others; the client gets 502. weir always sends well-formed responses; only a status accepted by `unknown_status` is passed on unchanged.
        optional lenient: Vec<crate::decode::Spanned<Leniency>>;
    }
    later []
}

choice! {
    /// A flaw of responses that is accepted.
    Leniency {
        /// Lines that end in LF without CR (HTTP/1).
        BareLineFeeds = "bare_line_feeds",
        /// Control characters in values and in the reason phrase; they become spaces (HTTP/1).
        ControlCharacters = "control_characters",
        /// A status from 600 to 999; it is passed on unchanged, and counts as 5xx.
        UnknownStatus = "unknown_status",
    }
    later [] maps []
}

section! {
    /// When members of lower priority get traffic.
    Priority at "pools.NAME.priority" {
        /// If fewer members of the highest priorities are up, members of the next priority are used as well.
        default active_members_min: Whole<u16, 1, 65_535> = Whole(1);
    }
    later []
}

section! {
    /// The queue of requests that wait for a member.
    Queue at "pools.NAME.queue" {
        /// Most waiting requests, over all workers; further ones get 503.
        default length_max: Whole<u32, 1, QUEUE_LENGTH_MAX> = Whole(1_000);
        /// How long a request may wait; then it gets 503.
        default timeout: Timeout = Duration(5 * SECOND);
        /// What happens to a waiting request whose client half-closes the connection. A browser half-closes when its page is closed; other clients half-close and wait for the response.
        default half_closed: HalfClosed = HalfClosed::Wait;
    }
    later []
}

choice! {
    /// What happens to a waiting request whose client half-closes the connection.
    HalfClosed {
        /// It keeps its place and is answered.
        Wait = "wait",
        /// It loses its place.
        Leave = "leave",
    }
    later [] maps []
}

section! {
    /// Limits retries in proportion to requests.
    RetryBudget at "pools.NAME.retry_budget" {
        /// The share of the requests of the last ten seconds that may be retried.
        default share: Percent = Percent(20);
        /// Retries per second and worker that are always allowed.
        default per_second_min: Whole<u32, 0, 1_000_000> = Whole(10);
    }
    later []
}

section! {
    /// A page.
    Page at "virtual_servers.NAME.error_pages.STATUS" {
        /// The text of the page.
        optional body: Text;
        /// A file with the text, read with the configuration.
        optional file: FilePath;
        /// Its `Content-Type`. Default: by the file's name, else `text/html; charset=utf-8`.
        optional content_type: Text;
    }
    later []
}

section! {
    /// The pool for requests when this pool is full. If no member is up, requests do not spill over: `fallback` or `maintenance` applies.
    Spillover at "pools.NAME.spillover" {
        /// The pool that serves them.
        required pool: Name;
        /// When this many requests (with `type: tcp`: connections) are open at the members of this pool, over all workers, further ones spill over. Workers that decide at the same moment may each exceed it by one. Default: when every member has reached its `connections_max`.
        optional connections: Connections;
    }
    later []
}

section! {
    /// The response for clients while no member is up.
    Maintenance at "pools.NAME.maintenance" {
        /// A page's text.
        optional body: Text;
        /// A file with its text, read with the configuration.
        optional file: FilePath;
        /// The page's `Content-Type`. Default: by the file's name, else `text/html; charset=utf-8`.
        optional content_type: Text;
        /// Instead of a page: the URL to which clients are redirected, with status 302.
        optional redirect: Text;
    }
    later []
}

choice! {
    /// How members get the client's address.
    ProxyProtocol {
        /// Members do not get the address.
        Off = "off",
        /// Version 1, a line of text.
        V1 = "v1",
        /// Version 2, binary.
        V2 = "v2",
    }
    later [] maps []
}

section! {
    /// Passive health checks: consecutive failures (no connection, 5xx, malformed response) take a member out of service for a while.
    Passive at "pools.NAME.passive" {
        /// Failures in a row.
        default failures: Whole<u16, 1, PASSIVE_FAILURES_MAX> = Whole(5);
        /// The failures must occur within this time.
        default window: Timeout = Duration(10 * SECOND);
        /// How long the member then gets no traffic.
        default eject: Timeout = Duration(30 * SECOND);
        /// Each further ejection in a row lasts twice as long, up to this time. Default: ten times `eject`.
        optional eject_max: Timeout;
        /// Largest share of the pool's members that may be ejected at the same time. One member may always be ejected.
        default ejected_share_max: Percent = Percent(50);
    }
    later []
}

section! {
    /// Idle connections to members, kept for reuse (connection multiplexing).
    Reuse at "pools.NAME.reuse" {
        /// Idle connections per worker and member. 0: every request opens a connection.
        default idle_per_worker: Whole<u32, 0, IDLE_CONNECTIONS_MAX> = Whole(256);
        /// An idle connection is closed after this time. Keep it below the member's own keep-alive timeout.
        default idle_timeout: Timeout = Duration(30 * SECOND);
        /// A connection is closed after this many requests.
        default requests_max: Whole<u32, 1, REQUESTS_MAX> = Whole(100_000);
    }
    later []
}
