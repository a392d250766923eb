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
pub(crate) use log::Log;
pub(crate) use log_format::AccessLogFormat;

use crate::decode::{NamedItem, NamedMap, OneOrMany, Section as _, Spanned};
use crate::destination::ListenOn;
use crate::document::Span;
use crate::profile::ProfileOr;
use crate::scalar::WordOr;
use crate::scalar::{
    Auto, Duration, GIB, HOUR, KIB, MIB, MINUTE, Name, Off, Percent, SECOND, Size, Text, Whole,
};
use crate::shapes::{
    ByStatus, Connections, FailureStatus, FieldName, FilePath, HttpsRedirect, Network,
    ReportedValue, Share, ZoneChoice,
};
use crate::snapshot;
use crate::variants::{Choice as _, Kind};

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
const HTTP2_BUDGET_MAX: u64 = 1_000_000;
/// The memory for HTTP/2 of a worker: 1 MiB to 64 GiB.
const HTTP2_MEMORY_BYTES_MIN: u64 = 1 << 20;
const HTTP2_MEMORY_BYTES_MAX: u64 = 64 << 30;
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
    /// The top level of the configuration.
    File at "" {
        /// The admin listeners: the API, metrics and users.
        optional admin: admin::Admin;
        /// Threads and draining.
        optional data_plane: DataPlane;
        /// First probes of members at a start or reload.
        optional first_probes: FirstProbes;
        /// Logs.
        optional log: Log;
        /// The extent of [metrics](observability.md#metrics).
        optional metrics: Metrics;
        /// Certificates from an authority, by ACME.
        optional acme: acme::Acme;
        /// The target of traces: an OpenTelemetry collector.
        optional exporting as "tracing": tracing::Exporting;
        /// Records of recent requests, for [`weir explain ID`](explain.md#a-request-of-the-past) and `weir requests`. Default: weir keeps no records, and requests have no extra cost.
        optional recent_requests: RecentRequests;
        /// Settings with a name, for use in several places.
        optional profiles: Profiles;
        /// Packet forwarding for virtual servers of `type: fast_l4`.
        optional packet_path: packet::PacketPath;
        /// Virtual servers, by name: the addresses that clients connect to.
        either virtual_servers: NamedMap<VirtualServer> = "include";
        /// Pools of members, by name.
        optional pools: NamedMap<Pool>;
        /// Policies, by name: rules for requests and responses.
        optional policies: NamedMap<policy::Policy>;
        /// Data sets, by name: lists and maps for conditions and templates.
        optional data_sets: NamedMap<policy::DataSet>;
        /// Persistence settings, by name: they keep a client on one member.
        optional persistence: NamedMap<persistence::Persistence>;
        /// The time zone of `time` in [expressions](expressions.md#time). A zone name includes daylight saving time. weir reads a zone from `/usr/share/zoneinfo` (package `tzdata`) when it loads the configuration.
        default time_zone: ZoneChoice = ZoneChoice::default();
        /// Authentication settings, by name.
        optional authentication: NamedMap<authentication::Authentication>;
        /// The directory for data that must survive a restart: the key of inserted cookies, certificates by [ACME](#acme), and the [overlay](operating.md#change-the-configuration-while-weir-serves).
        default state_dir: FilePath = FilePath(default_state_dir());
        /// Further configuration files. Each path names a file, or a directory: weir then reads all its `*.yaml` files except hidden ones, sorted by name. An included file cannot include others. See [several files](#several-files).
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
            let pools = || Spanned { value: NamedMap::default(), span, given };
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
        /// Maximum time for open requests and connections to end after a virtual server or member is removed, or when weir stops.
        default drain_timeout: TimeoutOrZero = Duration(60 * SECOND);
        /// Maximum share of the descriptors for clients that UDP sessions (`type: udp`) use, per worker. Further sessions are refused until others end, so that UDP clients cannot keep out the connections of other virtual servers. See [descriptors](operating.md#descriptors).
        default udp_descriptors_max: Percent<100> = Percent(50);
        /// Memory of each worker for what HTTP/2 clients make it hold beyond 64 KiB for each of their connections: parts of responses that they do not read, parts of requests that members do not take, and heads of requests under way beyond 2 KiB each. If it is used up, the connections that hold most lose it, those that read nothing first. See [memory](http2.md#memory). Also in effect after a reload.
        default http2_memory: Size<HTTP2_MEMORY_BYTES_MIN, HTTP2_MEMORY_BYTES_MAX> = Size(32 << 20);
        /// Landlock sandbox: the kernel does not let worker threads, and threads for long inspections, open files, so an exploited bug in a parser cannot read or write them. Fixed at start; a reload does not change it. See [sandbox](operating.md#sandbox).
        default sandbox: Sandbox = Sandbox::Auto;
    }
    later []
}

choice! {
    /// The sandbox of worker threads.
    Sandbox {
        /// On if the kernel supports it (Linux 5.13 or newer, with Landlock).
        Auto = "auto",
        /// Always on; without such a kernel, weir does not start.
        On = "on",
        /// No sandbox.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// The extent of [metrics](observability.md#metrics).
    Metrics at "metrics" {
        /// Whose response times have a histogram. A reload applies it; histograms then begin at 0.
        default latency_histograms: LatencyHistograms = LatencyHistograms::Pool;
    }
    later []
}

choice! {
    /// Whose response times have a histogram.
    LatencyHistograms {
        /// Pools: `weir_pool_response_duration_seconds`.
        Pool = "pool",
        /// Pools, and also each member: `weir_member_response_duration_seconds`, 23 further series per member. Requests then update a second histogram.
        Member = "member",
    }
    later [] maps []
}

section! {
    /// First probes at a start or reload. A new configuration takes effect when each new member has been probed once and each pool with new members has a usable member, at the latest after `wait`. A member is usable if it is up and takes new clients. If a pool has a usable member, weir waits at most 400 ms for its other members. If a pool has none, weir repeats failed probes, and resolves again host names that had no address. During a reload, the previous configuration continues to serve. During a start, the kernel accepts connections, and they wait.
    FirstProbes at "first_probes" {
        /// Maximum wait. weir waits the full time if all members of a new pool are down. `0s`: no wait.
        default wait: Duration<0, FIRST_PROBES_WAIT_MS_MAX> = Duration(5 * SECOND);
        /// Treatment of members whose first probe has no result, if their pool has no usable member after `wait`. A member is usable if it is up and takes new clients. A member with a failed probe gets no requests until one has passed.
        default then: AfterFirstProbes = AfterFirstProbes::Serve;
    }
    later []
}

section! {
    /// Records of recent requests, in memory. In addition to the numbers below, a limit of about 16 MiB applies to all records together, half of it for slow requests. weir drops the oldest records first.
    RecentRequests at "recent_requests" {
        /// Maximum number of records, besides those of slow requests.
        default keep: Whole<u32, 1, RECORDS_MAX> = Whole(1_000);
        /// The share of requests to record. `off`: only slow requests.
        default sample: WordOr<Off, Share> = WordOr::Value(Share(100_000));
        /// Requests that take at least this long count as slow. weir always records them, whatever `sample` is, and keeps the last 200 of them in a separate list. `off`: no request counts as slow.
        default slow: WordOr<Off, Duration<1, TIMEOUT_MS_MAX>> = WordOr::Value(Duration(SECOND));
    }
    later []
}

choice! {
    /// Treatment of members whose first probe has no result in time.
    AfterFirstProbes {
        /// These members get requests until a probe fails.
        Serve = "serve",
        /// These members get no requests before a probe has passed; clients get 503.
        Refuse = "refuse",
    }
    later [] maps []
}

section! {
    /// Settings with a name. A key that takes a profile accepts its name, or the same map inline.
    Profiles at "profiles" {
        /// HTTP limits and timeouts for `virtual_servers.NAME.http`.
        optional http: NamedMap<HttpProfile>;
        /// TLS toward clients, for `virtual_servers.NAME.tls`.
        optional tls: NamedMap<tls::Tls>;
        /// Compression of responses, for `virtual_servers.NAME.compression`.
        optional compression: NamedMap<compression::Compression>;
        /// The web application firewall, for `virtual_servers.NAME.waf`.
        optional waf: NamedMap<waf::Waf>;
        /// Timeouts of relayed connections, for `virtual_servers.NAME.tcp`.
        optional tcp: NamedMap<tcp::TcpProfile>;
        /// Packet forwarding, for `virtual_servers.NAME.fast_l4`.
        optional fast_l4: NamedMap<packet::FastL4Profile>;
        /// UDP sessions, for `virtual_servers.NAME.udp`.
        optional udp: NamedMap<udp::UdpProfile>;
    }
    later []
}

variants! {
    /// Addresses that clients connect to, with the settings for their traffic. Without `listen`, a virtual server gets requests only from other virtual servers.
    VirtualServer at "virtual_servers.NAME" by VirtualServerType {
        /// The addresses to listen on, each with a port or a range of ports (`10.0.0.1:8000-8100`), at most 1024 ports in total. With `type: fast_l4`, an entry can also be a network, and `*` stands for any port: `10.0.0.0/24:*`, `[2001:db8::]/64:443`, `0.0.0.0/0:*`; the longest matching prefix wins. Two virtual servers cannot have the same address and port, unless their protocols (TCP, UDP, `protocol`) or their `interfaces` differ. Required, unless other virtual servers hand requests to this one (action `virtual_server`).
        optional listen for all: ReportedValue<OneOrMany<crate::decode::Spanned<ListenOn>>>;
        /// The state of the virtual server.
        default state for all: VirtualServerState = VirtualServerState::Enabled;
        /// Network interfaces, VLAN devices included, on which clients can connect. On other interfaces the virtual server does not listen. Virtual servers with different `interfaces` can have the same address and port. Responses leave by the interface on which the client connected. Default: all interfaces.
        optional interfaces for [Http, Tcp, Udp]: Vec<crate::decode::Spanned<packet::InterfaceName>>;
        /// `true`: the virtual server can listen on an address that this host does not have yet, for example an address that moves between two hosts. Clients cannot connect until the host has the address.
        default free_bind for [Http, Tcp, Udp]: bool = false;
        /// The kernel holds a new connection until the client has sent data (`TCP_DEFER_ACCEPT`). After this time, rounded up to whole seconds, the connection is accepted as usual. This saves CPU per connection. Do not use it for protocols in which the server speaks first. Default: connections are accepted at once.
        optional defer_accept for [Http, Tcp]: Duration<SECOND, DEFER_ACCEPT_MS_MAX>;
        /// The protocol.
        default kind as "type" for all: VirtualServerType = VirtualServerType::Http;
        /// The pool for requests (with `type: tcp` for connections, with `type: udp` for datagrams). With `by_server_name`, this pool serves clients without SNI or with a name that is not listed; without `pool`, these clients are refused. A virtual server needs no pool if it only redirects (`https_redirect`), if rules of `policies` respond to requests, refuse them or select a pool, or if `connection_policies` end its connections. Without a pool, a request that no rule handles gets 503, and a connection (`type: tcp`) is reset.
        either pool for all: Name = "by_server_name|forward|policies|connection_policies|https_redirect";
        /// Instead of a pool: the forwarding of packets.
        optional forward for [FastL4]: Forward;
        /// The IP protocol of the packets. With a number, the port in `listen` must be `*`. A virtual server for a specific protocol takes precedence over `any`.
        default protocol for [FastL4]: packet::PacketProtocol = packet::PacketProtocol::Tcp;
        /// How packets are forwarded. A profile's name, or the settings inline. Default: the default of each setting.
        optional fast_l4 for [FastL4]: ProfileOr<packet::FastL4Profile>;
        /// Pools by the server name in the client's ClientHello (SNI). An exact name takes precedence over a wildcard. Without `tls`, weir does not decrypt connections; the members terminate TLS.
        optional by_server_name for [Tcp]: Vec<crate::decode::Spanned<tcp::ServerNamePool>>;
        /// Timeouts of relayed connections. A profile's name, or the settings inline. Default: the default of each setting.
        optional tcp for [Tcp]: ProfileOr<tcp::TcpProfile>;
        /// Which datagrams form a session. A profile's name, or the settings inline. Default: the default of each setting.
        optional udp for [Udp]: ProfileOr<udp::UdpProfile>;
        /// HTTP limits and timeouts. A profile's name, or the settings inline. Default: the default of each setting.
        optional http for [Http]: ProfileOr<HttpProfile>;
        /// TLS toward clients. A profile's name, or the settings inline. Default: no TLS.
        optional tls for [Http, Tcp]: ProfileOr<tls::Tls>;
        /// Compression of responses. A profile's name, or the settings inline. Default: none.
        optional compression for [Http]: ProfileOr<compression::Compression>;
        /// The web application firewall for requests. A profile's name, or the settings inline. Default: none.
        optional waf for [Http]: ProfileOr<waf::Waf>;
        /// Tells browsers to use only TLS for this host (a `Strict-Transport-Security` header in each response). Needs `tls`.
        optional hsts for [Http]: tls::Hsts;
        /// Redirects every request to the same URL over TLS: `true` (status 308, port 443), or `{ status: 301, port: 8443 }`.
        default https_redirect for [Http]: HttpsRedirect = HttpsRedirect::Plainly(false);
        /// The addresses and networks of the clients that may connect, at most 1024 entries. weir resets connections of others (`http`, `tcp`; before the TLS handshake) and drops their datagrams (`udp`) and packets (`fast_l4`). The address is that of the connection, or the one in a trusted PROXY header; headers such as `X-Forwarded-For` do not count. For `http` and `tcp`, this is short for a rule of `connection_policies`, which runs first. A reload does not end connections, sessions and flows. Default: all clients.
        optional allowed_clients for all: Vec<crate::decode::Spanned<Network>>;
        /// Limits on connections and requests.
        optional limits for [Http, Tcp, Udp]: limit::Limits;
        /// Policies, by name, in the order in which they run. With `type: tcp`, they run once per connection, before the pool is selected. They can then read `client`, `server` and `tls`; if the virtual server has no `tls`, the only readable field of `tls` is `tls.sni`. Default: none.
        optional policies for [Http, Tcp]: Vec<crate::decode::Spanned<Name>>;
        /// Policies, by name, that allow or refuse connections. They run once per connection, before the TLS handshake: when weir has accepted the connection and read its PROXY header, if any. If they read `tls.sni`, they run when weir has received the ClientHello. They can read `client`, `server` and, if the virtual server has `tls`, `tls.sni`. Their actions are `rate_limit` (`connections`, `connections_per_second`), `log`, `close` and `reset`. Default: none.
        optional connection_policies for [Http, Tcp]: Vec<crate::decode::Spanned<Name>>;
        /// The authentication that clients need: the name of an entry in `authentication`. Until the client is authenticated, the results of rules do not take effect, except limits, hand-overs and the action `log`. A request without valid credentials is refused: with 401, or with `type: external` by the response of the service. To authenticate only some paths, use the action `authenticate`. Default: no authentication.
        optional authenticate for [Http]: Name;
        /// Persistence: keeps a client on one member. The name of an entry in `persistence`, or the settings inline. Default: none.
        optional persistence for all: ProfileOr<persistence::Persistence>;
        /// Determines the client's address behind trusted proxies, and sends it to members.
        optional client_address for [Http, Tcp]: ClientAddress;
        /// An ID of each request, for members, clients and logs: `{}` for the defaults. Default: only the logs have an ID.
        optional request_id for [Http]: request_id::RequestId;
        /// Distributed tracing of requests (W3C Trace Context, OpenTelemetry): `{}` for the defaults. Needs the top-level section `tracing`. Default: requests are not traced, and `traceparent` stays unchanged.
        optional tracing for [Http]: tracing::Tracing;
        /// Pages that replace weir's own short responses, by status (`503`) or class (`5xx`). Default: none.
        optional error_pages for [Http]: ByStatus<Page>;
        /// `true`: each response has a `Server-Timing` header with its duration.
        default server_timing for [Http]: bool = false;
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
    /// The state of a virtual server.
    VirtualServerState {
        /// The virtual server listens.
        Enabled = "enabled",
        /// The virtual server does not listen. `weir check` still checks it, and no other virtual server can have its addresses. `weir status` shows it.
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
        /// Packets of any IP protocol. The kernel forwards them with an eBPF program of weir (Linux 6.6 or newer). Where packets cannot be forwarded, weir relays TCP and UDP with sockets, as with `tcp` and `udp` (see `packet_path.rungs`).
        FastL4 = "fast_l4",
    }
    later [] maps []
}

impl Kind for VirtualServerType {
    const OF: &'static str = "a virtual server";

    fn remedy(self, key: &str, takers: &[Self]) -> String {
        let taker = takers[0];
        let why = match (self, taker) {
            (Self::Http, _) | (_, Self::Udp | Self::FastL4) => {
                return format!("remove it, or set `type: {}`", taker.word());
            }
            (Self::FastL4, _) if key == "interfaces" => {
                "`packet_path.interfaces` says whose packets are looked at"
            }
            (Self::Tcp, _) => "connections are relayed, requests are not seen",
            (Self::Udp, _) => "datagrams are relayed as they are",
            (Self::FastL4, _) => "packets are forwarded, connections are not opened",
        };
        format!("remove it: {why}")
    }
}

choice! {
    /// Where packets go without a pool.
    Forward {
        /// By the routing table of this host.
        Route = "route",
    }
    later [] maps []
}

variants! {
    /// The client's address behind trusted proxies, and the headers that send it to members.
    ClientAddress at "virtual_servers.NAME.client_address" by VirtualServerType {
        /// Addresses and networks of trusted proxies: only they can set the client's address. Default: none.
        optional trust for all: Vec<crate::decode::Spanned<Network>>;
        /// The header in which trusted proxies send the client's address. weir takes the rightmost address in it that is not in `trust`.
        default header for [Http]: FieldName = FieldName("X-Forwarded-For".into());
        /// `true`: trusted proxies begin each connection with a PROXY header (version 1 or 2). weir closes a connection from a trusted proxy without this header. From other addresses, weir does not accept the header: with `type: http`, it is a malformed request (400); with `type: tcp`, it is relayed as data.
        default proxy_protocol for all: bool = false;
        /// `X-Forwarded-For` in requests to members.
        default x_forwarded_for for [Http]: Forwarding = Forwarding::Off;
        /// `true`: requests to members have `X-Forwarded-Proto` and `X-Forwarded-Host`. They replace headers of the client with these names; only an `X-Forwarded-Proto` from an address in `trust` is kept.
        default x_forwarded_proto for [Http]: bool = false;
        /// `Forwarded` (RFC 7239) in requests to members.
        default forwarded for [Http]: Forwarding = Forwarding::Off;
    }
    plain [Tcp, Udp, FastL4]
    later []
}

choice! {
    /// Treatment of a list of client addresses.
    Forwarding {
        /// weir adds the address of the connection's peer at the end.
        Append = "append",
        /// weir sends only the client's address.
        Replace = "replace",
        /// The header stays unchanged.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// HTTP limits and timeouts of the client side.
    HttpProfile at "profiles.http.NAME" {
        /// Maximum size of a head (request line or status line, and headers) and of a trailer section. A larger request head gets 431.
        default head_size_max: Size<KIB, HEAD_SIZE_BYTES_MAX> = Size(32 * KIB);
        /// Maximum number of headers in one head or trailer section. A request with more gets 431.
        default headers_max: Whole<u16, 1, HEADERS_MAX> = Whole(128);
        /// Maximum size of a request body; a larger one gets 413. `off`: no limit. Large bodies need no additional memory, because weir streams them.
        default body_size_max: WordOr<Off, Size<0, BODY_SIZE_BYTES_MAX>> = WordOr::Word(Off);
        /// Maximum time for a request head, from its first byte to its last. After it, the client gets 408.
        default header_timeout: Timeout = Duration(10 * SECOND);
        /// Maximum time without progress while a client sends a request body or reads a response. gRPC calls (HTTP/2 at the client and in the pool) and event streams use `tunnel_timeout` instead.
        default body_timeout: Timeout = Duration(30 * SECOND);
        /// Maximum time without progress while a member sends a response. gRPC, gRPC-Web and event streams (`text/event-stream`) use `tunnel_timeout` instead.
        default response_body_timeout: Timeout = Duration(5 * MINUTE);
        /// Maximum time that a client connection is idle between two requests.
        default idle_timeout: Timeout = Duration(60 * SECOND);
        /// Maximum time without a byte in either direction on a tunnel (WebSocket), an event stream or a gRPC call.
        default tunnel_timeout: Timeout = Duration(HOUR);
        /// HTTP/2 toward clients: over TLS for clients that select `h2` by ALPN; without TLS for clients that begin with the HTTP/2 connection preface (h2c with prior knowledge). Default: `true` with `tls`, otherwise `false`.
        optional http2: bool;
        /// Maximum number of open requests of a client on one HTTP/2 connection.
        default http2_streams_max: Whole<u32, 1, HTTP2_STREAMS_MAX> = Whole(100);
        /// Budgets against floods on an HTTP/2 connection. Default: see there.
        optional http2_budgets: Http2Budgets;
        /// `true`: members get requests with the method `TRACE` (or `TRACK`), which ask for the request itself as the response. The response would show headers that rules set for members. `false`: such requests get 405, also `trace` in other letters, which some members take for it. With `Max-Forwards: 0` they always get 405.
        default trace: bool = false;
        /// `true`: members are offered the protocols of `Upgrade` in a request with a body, too (`docker exec` and `docker attach` need it). `false`: members get such a request without `Upgrade`. If weir does not offer a client's `Upgrade`, `marks` in the access log have the reason.
        default upgrade_with_body: bool = true;
        /// Trailers of requests (headers after the body).
        default request_trailers: RequestTrailers = RequestTrailers::Drop;
        /// Normalisation of the request path for members and rules. `keep`: members get the original path (raw bytes are percent-encoded), and rules see the normalised path. A map: settings for single elements of the path. Default: members and rules get the same normalised path.
        optional path: path::PathOr;
        /// For bytes in a request's target that RFC 3986 requires to be percent-encoded: bytes above 0x7F, `"`, `<` and `>`. `true`: the request gets 400. `false`: weir encodes these bytes; rules and members get `%C3%A9` for `é`.
        default strict: bool = false;
        /// `true`: weir rewrites a `Location` that points to the member itself, so that it has the scheme and host that the client used. In WebDAV requests (`COPY`, `MOVE`), weir rewrites a `Destination` that points to the virtual server, so that it has the scheme and host of the member. See [redirects of members](traffic-management.md#redirects-of-members).
        default rewrite_location: bool = false;
        /// Treatment of an HTTP/1 client that ends its sending direction (FIN, or close_notify of TLS) while its request is pending or its response is silent. A client that closes its connection sends the same. Tunnels, such as WebSockets, are not affected.
        default half_closed: HalfClosed = HalfClosed::Leave;
    }
    later []
}

section! {
    /// Budgets of each HTTP/2 connection for work of the client without use. Each has a number that may come at once, and a refill per second. When one is used up, the connection ends with GOAWAY (ENHANCE_YOUR_CALM), and the access log has `client_flood`. Other proxies bundle many clients into one connection: raise the budgets for them.
    Http2Budgets at "profiles.http.NAME.http2_budgets" {
        /// Streams that the client cancels early: one that it resets within 10 ms of opening it counts fully, one that it resets within a second counts as a twenty-fifth part (calls with short deadlines). Each stream that ends well gives one back.
        default resets: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(200);
        /// Number of early cancelled streams that the budget regains per second.
        default resets_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(20);
        /// Streams that weir resets because of client errors. Each stream that ends well gives one back.
        default client_errors: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(50);
        /// Number of streams with client errors that the budget regains per second.
        default client_errors_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(10);
        /// Streams beyond `http2_streams_max`.
        default refused_streams: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(200);
        /// Number of refused streams that the budget regains per second.
        default refused_streams_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(20);
        /// Frames on closed streams.
        default closed_streams: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(5_000);
        /// Number of frames on closed streams that the budget regains per second.
        default closed_streams_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(500);
        /// SETTINGS frames.
        default settings: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(20);
        /// Number of SETTINGS frames that the budget regains per second.
        default settings_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(1);
        /// PING frames. Each DATA frame gives one back.
        default pings: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(50);
        /// Number of PING frames that the budget regains per second.
        default pings_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(5);
        /// PRIORITY, PRIORITY_UPDATE and frames of unknown types. Each stream gives four back.
        default priorities: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(500);
        /// Number of PRIORITY frames and unknown ones that the budget regains per second.
        default priorities_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(20);
        /// WINDOW_UPDATE frames. Each DATA frame that weir sends gives four back, each stream two.
        default window_updates: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(1_000);
        /// Number of WINDOW_UPDATE frames that the budget regains per second.
        default window_updates_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(100);
        /// DATA frames without data. Each DATA frame with data gives one back.
        default empty_data: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(100);
        /// Number of empty DATA frames that the budget regains per second.
        default empty_data_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(10);
        /// DATA frames of less than 16 bytes that do not end their stream. Longer ones give one back for each 16 bytes.
        default tiny_data: Whole<u32, 1, HTTP2_BUDGET_MAX> = Whole(20_000);
        /// Number of short DATA frames that the budget regains per second.
        default tiny_data_per_second: Whole<u32, 0, HTTP2_BUDGET_MAX> = Whole(10_000);
    }
    later []
}

choice! {
    /// Treatment of trailers of requests.
    RequestTrailers {
        /// Members do not get trailers.
        Drop = "drop",
        /// Members get trailers, except headers for framing, routing and authentication; headers whose names suggest a statement about the client, its user, the connection or the target (`True-Client-IP`, `X-Original-URL`, `Remote-User`); and headers that a rule or weir adds, sets, removes or replaces in the head.
        Forward = "forward",
    }
    later [] maps []
}

variants! {
    /// A pool of equivalent members.
    Pool at "pools.NAME" by VirtualServerType {
        /// The load balancing method.
        default balance for all: BalanceOr = BalanceOr::Method(Balance::RoundRobin);
        /// The servers. The list may be empty, for a pool that is filled later.
        required members for all: crate::decode::List<crate::decode::Spanned<member::MemberEntry>>;
        /// Active health checks of each member. With monitors, a member gets traffic after its first probe has passed (exception: `first_probes.then: serve`). Without monitors, a member always counts as up.
        optional monitors for all: Vec<crate::decode::Spanned<monitor::Monitor>>;
        /// Takes a member out of service if requests to it fail. Default: off.
        optional passive for all: Passive;
        /// Idle connections to members, kept for further requests.
        optional reuse for [Http]: Reuse;
        /// Maximum number of other members that weir tries if the member of a request fails. A request of which nothing has been sent can always be retried; other requests only if weir still has everything that it has sent, and if they are safe to repeat (idempotent: GET, HEAD, PUT, DELETE, OPTIONS, TRACE).
        default retries for all: Whole<u8, 0, RETRIES_MAX> = Whole(1);
        /// Response statuses from 400 to 599 after which weir tries another member, for example 502 and 503, within `retries` and `retry_budget`. Conditions: the request is safe to repeat, weir still has everything that it has sent of the request (up to 16 KiB, at most 4 KiB from one read), and the client has received nothing of a response. If no other member can take the request, the client gets this response. Default: none.
        optional retry_on for [Http]: Vec<crate::decode::Spanned<FailureStatus>>;
        /// `true`: `retry_on` also applies to requests that are not safe to repeat (POST, PATCH). The first member may already have executed such a request.
        default retry_non_idempotent for [Http]: bool = false;
        /// Maximum time until a member accepts a connection. After it, weir tries another member (see `retries`).
        default connect_timeout for [Http, Tcp, FastL4]: Timeout = Duration(5 * SECOND);
        /// Maximum time from the end of the request to the response head. After it, the client gets 504.
        default response_timeout for [Http]: Timeout = Duration(60 * SECOND);
        /// TLS toward members. Default: no TLS.
        optional tls for [Http, Tcp]: tls::PoolTls;
        /// `true`: weir connects to members by HTTP/2. Many requests then share one connection. gRPC needs it. With `tls`, members must select `h2` by ALPN. Without `tls`, they must accept h2c with prior knowledge.
        default http2 for [Http]: bool = false;
        /// The source address of connections to members: one local address; several, which weir uses in turn; a map with addresses and ports (`{ addresses: …, ports: 40000-49999 }`); or `client`: the address of the client connection, or from its PROXY header. This needs CAP_NET_RAW or CAP_NET_ADMIN, and members must route their responses through this host. Default: the kernel selects the address.
        optional source for all: source::SourceOr;
        /// Activation of members with lower `priority`.
        optional priority for all: Priority;
        /// After a member comes up, its traffic rises to its full share within this time. Default: the member gets its full share at once.
        optional slow_start for all: Timeout;
        /// A queue for requests while all members have reached their limits. Default: such requests get 503.
        optional queue for [Http, Tcp, FastL4]: Queue;
        /// The pool that is used while no member of this pool is up. Default: no other pool; clients get the response of `maintenance`; without one, a short 503.
        optional fallback for all: Name;
        /// The pool for further requests when this pool is full. A client with persistence stays with its member until that member reaches its limit.
        optional spillover for all: Spillover;
        /// Number of monitors that must pass for a member to be up. Default: all.
        optional monitors_min for all: Whole<u8, 1, 255>;
        /// Limits retries in proportion to requests.
        optional retry_budget for all: RetryBudget;
        /// The page for clients while no member is up, with status 503; or `{ redirect: URL }`, a redirect for clients.
        optional maintenance for [Http]: Maintenance;
        /// The PROXY protocol to members, which tells them the address of the client connection (or the one from the client's PROXY header, never one from HTTP headers). With it, each connection to a member serves only one client.
        default proxy_protocol for [Http, Tcp, Udp]: ProxyProtocol = ProxyProtocol::Off;
        /// Malformed responses to accept from members. weir always accepts these: the same `Content-Length` several times, `Content-Length` together with `Transfer-Encoding: chunked`, and spaces after the size of a chunk. For any other malformed response, the client gets 502. weir always sends well-formed responses; only a status accepted by `unknown_status` is passed on unchanged. Default: none.
        optional lenient for [Http]: Vec<crate::decode::Spanned<Leniency>>;
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
        /// `Transfer-Encoding: chunked` in several lines, or several times in one (HTTP/1). The body is chunked once.
        RepeatedChunked = "repeated_chunked",
    }
    later [] maps []
}

section! {
    /// Activation of members with lower `priority`.
    Priority at "pools.NAME.priority" {
        /// Minimum number of members that are up at the highest priority. If fewer are up, weir also uses the members of the next lower priority, and so on.
        default active_members_min: Whole<u16, 1, 65_535> = Whole(1);
    }
    later []
}

section! {
    /// The queue of requests that wait for a member.
    Queue at "pools.NAME.queue" {
        /// Maximum number of waiting requests, over all workers; further ones get 503.
        default length_max: Whole<u32, 1, QUEUE_LENGTH_MAX> = Whole(1_000);
        /// Maximum time that a request waits; then it gets 503.
        default timeout: Timeout = Duration(5 * SECOND);
        /// Replaces `half_closed` of the `http` profile while a request waits in this queue. `leave` gives up the place at once, without a grace. Default: as the `http` profile says.
        optional half_closed: HalfClosed;
    }
    later []
}

choice! {
    /// Treatment of a client that half-closes its connection while it waits for a response.
    HalfClosed {
        /// The client gets its response, whenever it comes.
        Wait = "wait",
        /// The client has left if nothing of its response flows for a second: weir ends the request, and the member's connection or stream.
        Leave = "leave",
    }
    later [] maps []
}

section! {
    /// Limits retries in proportion to requests.
    RetryBudget at "pools.NAME.retry_budget" {
        /// Maximum number of retries, as a share of the requests of the last ten seconds.
        default share: Percent = Percent(20);
        /// Retries per second and worker that are always allowed.
        default per_second_min: Whole<u32, 0, 1_000_000> = Whole(10);
    }
    later []
}

section! {
    /// A page that replaces a short response of weir.
    Page at "virtual_servers.NAME.error_pages.STATUS" {
        /// The text of the page.
        optional body: Text;
        /// A file with the text, read with the configuration.
        optional file: FilePath;
        /// The `Content-Type` of the page. Default: the type of the file name's extension, otherwise `text/html; charset=utf-8`.
        optional content_type: Text;
    }
    later []
}

section! {
    /// The pool for requests when this pool is full. If no member is up, requests do not spill over: `fallback` or `maintenance` applies.
    Spillover at "pools.NAME.spillover" {
        /// The pool for the further requests.
        required pool: Name;
        /// Maximum number of open requests (with `type: tcp`: connections) at the members of this pool, over all workers; further ones spill over. Workers that decide at the same moment can each exceed the number by one. Default: requests spill over when every member has reached its `connections_max`.
        optional connections: Connections;
    }
    later []
}

section! {
    /// The response for clients while no member is up.
    Maintenance at "pools.NAME.maintenance" {
        /// The text of the page.
        optional body: Text;
        /// A file with the text of the page, read with the configuration.
        optional file: FilePath;
        /// The `Content-Type` of the page. Default: the type of the file name's extension, otherwise `text/html; charset=utf-8`.
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
    /// Passive health checks: consecutive failures (no connection, timeout, aborted connection, malformed response, 5xx) take a member out of service for a while.
    Passive at "pools.NAME.passive" {
        /// Number of consecutive failures that eject a member.
        default failures: Whole<u16, 1, PASSIVE_FAILURES_MAX> = Whole(5);
        /// The failures must occur within this time.
        default window: Timeout = Duration(10 * SECOND);
        /// Duration of an ejection. After it, the member gets one request as a test.
        default eject: Timeout = Duration(30 * SECOND);
        /// Maximum duration of an ejection. Each consecutive ejection lasts twice as long as the one before. Default: ten times `eject`.
        optional eject_max: Timeout;
        /// Maximum share of the pool's members that may be ejected at the same time. If the share is less than one member, one member may be ejected. `0%`: no member is ejected.
        default ejected_share_max: Percent = Percent(50);
    }
    later []
}

section! {
    /// Idle connections to members, kept for reuse (connection multiplexing).
    Reuse at "pools.NAME.reuse" {
        /// Maximum number of idle connections per worker and member. 0: every request opens a connection.
        default idle_per_worker: Whole<u32, 0, IDLE_CONNECTIONS_MAX> = Whole(256);
        /// An idle connection is closed after this time. Keep it below the member's own keep-alive timeout.
        default idle_timeout: Timeout = Duration(30 * SECOND);
        /// A connection is closed after this many requests.
        default requests_max: Whole<u32, 1, REQUESTS_MAX> = Whole(100_000);
        /// Treatment of connections on which a member authenticates users by NTLM, Negotiate or Kerberos (HTTP/1). See [members that authenticate connections](authentication.md#members-that-authenticate-connections).
        default connection_authentication: ConnectionAuthentication = ConnectionAuthentication::Bind;
    }
    later []
}

choice! {
    /// Treatment of connections on which a member authenticates users.
    ConnectionAuthentication {
        /// Such a connection belongs to one client connection until either closes.
        Bind = "bind",
        /// Such a connection is reused for requests of any client. Only for members that authenticate every request by itself: others take a client for the user who logged in before.
        Share = "share",
    }
    later [] maps []
}
