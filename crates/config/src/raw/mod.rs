//! The language as it is written: every key that a file can have, declared once.
//!
//! Doc comments here are the text of the reference in `docs/configuration.md` and of the JSON
//! Schema. What a section alone cannot know (does the pool exist?) is checked in `validate`.

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
pub(crate) mod udp;
pub(crate) mod waf;

pub(crate) use balance::{Balance, BalanceOr};
pub(crate) use log::{AccessLogFormat, Log};

use crate::address::{AdminName, ListenAddress};
use crate::decode::{Named, NamedItem, OneOrMany, Section as _, Spanned};
use crate::destination::ListenOn;
use crate::profile::ProfileOr;
use crate::scalar::WordOr;
use crate::scalar::{
    Auto, Duration, GIB, HOUR, KIB, MIB, MINUTE, Name, Off, Percent, SECOND, Size, Text, Whole,
};
use crate::shapes::{
    ByStatus, Connections, FieldName, FilePath, HttpsRedirect, Network, StatusCode, UtcOffset,
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

/// Longest wait for first probes: somebody waits for the start or the reload.
const FIRST_PROBES_WAIT_MS_MAX: u64 = 10 * MINUTE;

/// Any timeout that must pass at least a little time.
pub(crate) type Timeout = Duration<1, TIMEOUT_MS_MAX>;
/// A timeout that may be none at all.
pub(crate) type TimeoutOrZero = Duration<0, TIMEOUT_MS_MAX>;
/// A port to connect to.
pub(crate) type Port = Whole<u16, 1, 65_535>;

section! {
    /// The whole file.
    File at "" {
        /// The admin listener: metrics and status.
        optional admin: Admin;
        /// Threads and draining.
        optional data_plane: DataPlane;
        /// What a start or a reload does before members with monitors are known.
        optional first_probes: FirstProbes;
        /// Logs.
        optional log: Log;
        /// Settings that are used by name in several places.
        optional profiles: Profiles;
        /// How packets reach virtual servers of `type: fast_l4`.
        optional packet_path: packet::PacketPath;
        /// What clients reach, by name.
        required virtual_servers: Named<VirtualServer>;
        /// The members that serve alike, by name.
        optional pools: Named<Pool>;
        /// What is done with requests and responses, by name.
        optional policies: Named<policy::Policy>;
        /// Lists that conditions and templates look into, by name.
        optional data_sets: Named<policy::DataSet>;
        /// How clients are kept at members, by name.
        optional persistence: Named<persistence::Persistence>;
        /// The time zone of `time` in [expressions](expressions.md#time): `UTC`, or how far the clock there is from UTC, such as `"+01:00"`. It does not change with summer time.
        default time_zone: UtcOffset = UtcOffset::default();
        /// How clients show who they are, by name.
        optional authentication: Named<authentication::Authentication>;
        /// Where weir keeps what must survive a restart: the key of inserted cookies.
        default state_dir: FilePath = FilePath("/var/lib/weir".into());
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
    /// The listeners for operators. Nothing that serves clients reaches them.
    Admin at "admin" {
        /// Where `/metrics` and `/status` are served, an address or several: say a unix socket for `weir member`, which can change what members take, and an address for a scraper, which can only read. Use loopback or a unix socket: who reaches it, reads everything.
        required listen: OneOrMany<crate::decode::Spanned<ListenAddress>>;
        /// Names that it may be asked for by over TCP, in the `Host` field, beside addresses and `localhost`: one or several. Any other name is refused with 421: a page in a browser may have pointed its own name at this address.
        optional host_names: OneOrMany<crate::decode::Spanned<AdminName>>;
    }
    later []
}

section! {
    /// How the data path runs.
    DataPlane at "data_plane" {
        /// Worker threads. `auto`: one per core that the process may use. Fixed at start; a reload does not change it.
        default workers: WordOr<Auto, Whole<u16, 1, WORKERS_MAX>> = WordOr::Word(Auto);
        /// How long requests under way may go on when a virtual server or member is removed, or the process stops.
        default drain_timeout: TimeoutOrZero = Duration(60 * SECOND);
    }
    later []
}

section! {
    /// What a start or a reload does before members with monitors are known. A member gets no traffic before its first probe has passed; so a configuration is put in force when each of its new pools has a usable member, and all members that are new to it have had their first probe (beside a usable member, 400 ms are enough). Until then probes that fail are repeated, names without an address are asked for again, the configuration before serves, and at a start, connections wait.
    FirstProbes at "first_probes" {
        /// The longest wait. A new pool whose members are all down takes all of it. `0s`: not at all.
        default wait: Duration<0, FIRST_PROBES_WAIT_MS_MAX> = Duration(5 * SECOND);
        /// What a pool without a usable member does then with members that have not answered a probe.
        default then: AfterFirstProbes = AfterFirstProbes::Serve;
    }
    later []
}

choice! {
    /// What a pool does with members that have not answered a probe in time.
    AfterFirstProbes {
        /// They get traffic until their probes fail.
        Serve = "serve",
        /// They get none before a probe has passed: 503.
        Refuse = "refuse",
    }
    later [] maps []
}

section! {
    /// Settings by name. A key that takes a profile takes its name or the same map inline.
    Profiles at "profiles" {
        /// HTTP limits and timeouts for `virtual_servers.NAME.http`.
        optional http: Named<HttpProfile>;
        /// How clients are served over TLS, for `virtual_servers.NAME.tls`.
        optional tls: Named<tls::Tls>;
        /// Which responses are compressed, for `virtual_servers.NAME.compression`.
        optional compression: Named<compression::Compression>;
        /// How requests are inspected, for `virtual_servers.NAME.waf`.
        optional waf: Named<waf::Waf>;
        /// Timeouts of relayed connections, for `virtual_servers.NAME.tcp`.
        optional tcp: Named<tcp::TcpProfile>;
        /// How packets are forwarded, for `virtual_servers.NAME.fast_l4`.
        optional fast_l4: Named<packet::FastL4Profile>;
        /// Sessions of datagrams, for `virtual_servers.NAME.udp`.
        optional udp: Named<udp::UdpProfile>;
    }
    later []
}

section! {
    /// An address that clients reach.
    VirtualServer at "virtual_servers.NAME" {
        /// Where clients connect: addresses, each with a port or a range of ports (`10.0.0.1:8000-8100`), 1024 ports in all at most. Of `type: fast_l4` also networks, and any port: `10.0.0.0/24:*`, `[2001:db8::]/64:443`, `0.0.0.0/0:*`; the longest prefix wins. No two virtual servers share an address, but one of UDP and one of TCP.
        required listen: OneOrMany<crate::decode::Spanned<ListenOn>>;
        /// `disabled`: it is checked and keeps its addresses, but does not listen. `weir status` shows it.
        default state: VirtualServerState = VirtualServerState::Enabled;
        /// Whether it may listen on an address that this host does not have yet, such as one that moves between two hosts. What connects to it before then gets nowhere.
        default free_bind: bool = false;
        /// A new connection stays with the kernel until the client has sent something, or for this long (in whole seconds, rounded up; then it is taken as usual). That saves work per connection. Not for protocols in which the server speaks first: they would wait. Default: connections are taken at once.
        optional defer_accept: Duration<SECOND, DEFER_ACCEPT_MS_MAX>;
        /// The protocol. `http`: requests. `tcp`: whole connections, whose bytes are relayed as they are. `udp`: datagrams, which are relayed as they are. `fast_l4`: packets, which the kernel forwards by a program of weir's; where that cannot be, connections of TCP are relayed as with `tcp`.
        default kind as "type": VirtualServerType = VirtualServerType::Http;
        /// The pool that gets the requests, or with `type: tcp` the connections, with `type: udp` the datagrams; beside `by_server_name` those that ask for no name or for another one. Without it such connections are refused. A virtual server that only redirects (`https_redirect`) or answers, refuses or chooses by rules (`policies`) needs none: what no rule answers or gives to a pool gets 503, and of `type: tcp` is reset.
        either pool: Name = "by_server_name|forward|policies|connection_policies|https_redirect";
        /// Of `type: fast_l4`, in place of a pool: `route`: packets go where the routing table of this host says.
        optional forward: Forward;
        /// Of `type: fast_l4`: which packets it takes. `any` and numbers: at any port (`*`); a virtual server of the protocol itself comes first.
        default protocol: packet::PacketProtocol = packet::PacketProtocol::Tcp;
        /// Of `type: fast_l4`: how packets are forwarded: a profile's name, or the settings inline.
        optional fast_l4: ProfileOr<packet::FastL4Profile>;
        /// Of `type: tcp`: pools by the name that clients ask for in the first message of TLS (SNI), an exact name before a wildcard. Without `tls` nothing is decrypted: the members do that.
        optional by_server_name: Vec<crate::decode::Spanned<tcp::ServerNamePool>>;
        /// Of `type: tcp`: timeouts: a profile's name, or the settings inline.
        optional tcp: ProfileOr<tcp::TcpProfile>;
        /// Of `type: udp`: how datagrams belong together: a profile's name, or the settings inline.
        optional udp: ProfileOr<udp::UdpProfile>;
        /// HTTP limits and timeouts: a profile's name, or the settings inline.
        optional http: ProfileOr<HttpProfile>;
        /// How clients are served over TLS: a profile's name, or the settings inline. Default: without TLS.
        optional tls: ProfileOr<tls::Tls>;
        /// Which responses are compressed: a profile's name, or the settings inline. Default: none.
        optional compression: ProfileOr<compression::Compression>;
        /// How requests are inspected by the web application firewall: a profile's name, or the settings inline. Default: not at all.
        optional waf: ProfileOr<waf::Waf>;
        /// Tells browsers to come over TLS alone (a `Strict-Transport-Security` field in each response). Needs `tls`.
        optional hsts: tls::Hsts;
        /// Whether every request is answered with a redirect to the same address over TLS: `true` (status 308, port 443), or `{ status: 301, port: 8443 }`.
        default https_redirect: HttpsRedirect = HttpsRedirect::Plainly(false);
        /// How much is served.
        optional limits: limit::Limits;
        /// Policies, by name, in the order in which they are followed. Of `type: tcp`, once for each connection, when its pool is chosen: they read `client`, `server` and `tls`, without `tls` here `tls.sni` alone.
        optional policies: Vec<crate::decode::Spanned<Name>>;
        /// Of `type: http` and `tcp`: policies, by name, that say who may connect. They are followed once for each connection, before its handshake and any request: when it is accepted (and the PROXY protocol has been read), and those that read `tls.sni` when the client has said which name it wants. They read `client`, `server` and with `tls` here `tls.sni`; of the actions they can have `rate_limit` (`connections`, `connections_per_second`), `log`, `close` and `reset`.
        optional connection_policies: Vec<crate::decode::Spanned<Name>>;
        /// Who is let in: the name of an authentication. Its clients are asked before the rules of `policies` are followed; a request that does not show who it is from gets 401. To ask on some paths only, use the action `authenticate`.
        optional authenticate: Name;
        /// How clients are kept at members: the name of a persistence, or the settings inline.
        optional persistence: ProfileOr<persistence::Persistence>;
        /// Who the client is, and what members are told of it.
        optional client_address: ClientAddress;
        /// What each request is called, for members, clients and logs: `{}` for the defaults. Default: logs alone have a name for it.
        optional request_id: request_id::RequestId;
        /// Pages in place of weir's own short answers, by status (`503`) or class (`5xx`).
        optional error_pages: ByStatus<Page>;
        /// Whether responses tell how long they took, in a `Server-Timing` field.
        default server_timing: bool = false;
    }
    later []
}

choice! {
    /// Whether a virtual server serves.
    VirtualServerState {
        /// It does.
        Enabled = "enabled",
        /// It does not listen.
        Disabled = "disabled",
    }
    later [] maps []
}

choice! {
    /// Protocol of a virtual server.
    VirtualServerType {
        /// HTTP/1.1 and 1.0.
        Http = "http",
        /// Any protocol over TCP, or over TLS.
        Tcp = "tcp",
        /// Any protocol over UDP.
        Udp = "udp",
        /// Packets, of any protocol.
        FastL4 = "fast_l4",
    }
    later [] maps []
}

choice! {
    /// Where packets go without a pool.
    Forward {
        /// Where the routing table says.
        Route = "route",
    }
    later [] maps []
}

section! {
    /// Who the client is when others are in between, and what members are told of it.
    ClientAddress at "virtual_servers.NAME.client_address" {
        /// Addresses and networks of proxies in front whose word on the client is taken. Default: nobody's.
        optional trust: Vec<crate::decode::Spanned<Network>>;
        /// The field that trusted proxies tell the client's address in; it is read from the right, past those who are trusted.
        default header: FieldName = FieldName("X-Forwarded-For".into());
        /// Whether trusted proxies begin each connection with the PROXY protocol (version 1 or 2). From others it is refused.
        default proxy_protocol: bool = false;
        /// `X-Forwarded-For` for members. `append`: behind what is there comes the other end of the connection. `replace`: the client's address alone. `off`: left as it came.
        default x_forwarded_for: Forwarding = Forwarding::Off;
        /// `X-Forwarded-Proto` and `X-Forwarded-Host` for members, in place of those that came; the former stays if it came from `trust`.
        default x_forwarded_proto: bool = false;
        /// `Forwarded` (RFC 7239) for members, in the manner of `x_forwarded_for`.
        default forwarded: Forwarding = Forwarding::Off;
    }
    later []
}

choice! {
    /// What becomes of a list of client addresses.
    Forwarding {
        /// The client is added at its end.
        Append = "append",
        /// The client alone is in it.
        Replace = "replace",
        /// It goes as it came.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// HTTP limits and timeouts of the client side.
    HttpProfile at "profiles.http.NAME" {
        /// Largest head (request line and fields) of a request or response, and largest trailer section. A request beyond it gets 431.
        default head_size_max: Size<KIB, HEAD_SIZE_BYTES_MAX> = Size(32 * KIB);
        /// Most fields in one head or trailer section. A request beyond it gets 431.
        default headers_max: Whole<u16, 1, HEADERS_MAX> = Whole(128);
        /// Largest request body; a larger one gets 413. Bodies are streamed, never held, so `off` costs no memory.
        default body_size_max: WordOr<Off, Size<0, BODY_SIZE_BYTES_MAX>> = WordOr::Word(Off);
        /// From the first byte of a request head to its last.
        default header_timeout: Timeout = Duration(10 * SECOND);
        /// A request body under way without a byte of progress, or a response of which the client takes nothing. gRPC and event streams have `tunnel_timeout` instead.
        default body_timeout: Timeout = Duration(30 * SECOND);
        /// A response under way without a byte from its member. gRPC and event streams (`text/event-stream`) have `tunnel_timeout` instead.
        default response_body_timeout: Timeout = Duration(5 * MINUTE);
        /// A client connection between two requests.
        default idle_timeout: Timeout = Duration(60 * SECOND);
        /// A tunnel (WebSocket), an event stream or a gRPC call without a byte in either direction.
        default tunnel_timeout: Timeout = Duration(HOUR);
        /// HTTP/2 for clients that want it: over TLS those that choose `h2` by ALPN, without TLS those that begin with its preface (h2c by prior knowledge). Default: on with `tls`, off without.
        optional http2: bool;
        /// Requests that an HTTP/2 client may have under way at once on a connection.
        default http2_streams_max: Whole<u32, 1, HTTP2_STREAMS_MAX> = Whole(100);
        /// What becomes of fields that a client sends behind its body (trailers). `drop`: members do not get them. `forward`: they do, but for those that frame, route or authenticate, and those that a rule sets, removes or replaces in the head.
        default request_trailers: RequestTrailers = RequestTrailers::Drop;
        /// What members and rules see of a request's path. `keep`: members get it as it came, rules see what servers make of it. Or settings for its parts. Default: one path for members and rules, on which servers of all usual kinds agree.
        optional path: path::PathOr;
        /// Whether a request is refused (400) whose target has bytes that RFC 3986 wants encoded: those above 0x7F, `"`, `<` and `>`. Otherwise they are percent-encoded: rules and members see `%C3%A9` for `é`.
        default strict: bool = false;
        /// Whether a `Location` that names the member which answered, by the host it was asked for or by its address, is changed to name the virtual server as the client did, with its scheme. `Destination` of `COPY` and `MOVE` (WebDAV) follows the other way round.
        default rewrite_location: bool = false;
    }
    later []
}

choice! {
    /// What becomes of fields behind a request's body.
    RequestTrailers {
        /// They end at weir.
        Drop = "drop",
        /// They go on as far as they may.
        Forward = "forward",
    }
    later [] maps []
}

section! {
    /// Members that serve alike.
    Pool at "pools.NAME" {
        /// How the member of a request is picked. `round_robin`: in turn, by weight. `least_connections`: the one with the fewest requests under way in proportion to its weight.
        default balance: BalanceOr = BalanceOr::Method(Balance::RoundRobin);
        /// The servers. An empty list is a pool that is yet to be filled.
        required members: crate::decode::List<crate::decode::Spanned<member::MemberEntry>>;
        /// Active health checks, each of them against every member. With monitors, a member gets traffic once its first probe has passed; without, it is always taken to be up.
        optional monitors: Vec<crate::decode::Spanned<monitor::Monitor>>;
        /// Takes a member out on the evidence of traffic. Default: off.
        optional passive: Passive;
        /// Idle member connections that are kept for further requests.
        optional reuse: Reuse;
        /// Further members that a request may try when one cannot be reached. Only requests that are safe to repeat.
        default retries: Whole<u8, 0, RETRIES_MAX> = Whole(1);
        /// Statuses from 400 to 599 by which a member has failed a request, such as 502 and 503: another member is tried, within `retries` and `retry_budget`. Only requests that are safe to repeat and that weir has kept, and only before anything of a response has gone out. If nobody else can serve, the client gets the response.
        optional retry_on: Vec<crate::decode::Spanned<StatusCode>>;
        /// Whether requests that are not safe to repeat (POST, PATCH) are tried again by `retry_on`, too. The member that has answered may have done what they ask for.
        default retry_non_idempotent: bool = false;
        /// Until a member has accepted a connection; then another member is tried.
        default connect_timeout: Timeout = Duration(5 * SECOND);
        /// From the end of the request to the response head; then the client gets 504.
        default response_timeout: Timeout = Duration(60 * SECOND);
        /// How members are spoken to over TLS. Default: without TLS.
        optional tls: tls::PoolTls;
        /// Whether members are spoken to by HTTP/2, which gRPC needs: many requests share a connection then. With `tls` they must agree to it by ALPN, without they must expect it (h2c by prior knowledge).
        default http2: bool = false;
        /// Where connections to members come from: a local address; several, which connections get in turn; `{ addresses: …, ports: 40000-49999 }`; or `client`: the client's own address, for which members must answer by way of this host, and weir needs CAP_NET_RAW or CAP_NET_ADMIN. Default: the system picks it.
        optional source: source::SourceOr;
        /// When members of lower priority get traffic.
        optional priority: Priority;
        /// How long a member that came up takes to get its full share.
        optional slow_start: Timeout;
        /// Requests wait here while all members have all the connections that they may have. Default: they get 503.
        optional queue: Queue;
        /// The pool that gets the requests while no member of this one is up.
        optional fallback: Name;
        /// The pool that gets the requests which this one has no room for. Clients that persistence keeps at a member stay there.
        optional spillover: Spillover;
        /// With several monitors: how many of them must pass for a member to be up. Default: all.
        optional monitors_min: Whole<u8, 1, 255>;
        /// Retries at most in proportion to requests.
        optional retry_budget: RetryBudget;
        /// The page for clients while no member is up, with status 503; or `{ redirect: URL }`: where they are sent.
        optional maintenance: Maintenance;
        /// Whether members are told the client's address with the PROXY protocol. Connections are then not shared by clients.
        default proxy_protocol: ProxyProtocol = ProxyProtocol::Off;
        /// What is taken from members though it is malformed, beyond what always is (the same Content-Length several times, Content-Length beside chunks, spaces behind the size of a chunk). Default: nothing; the client gets 502. What clients get is well-formed; a status that `unknown_status` takes passes as it is. `bare_line_feeds` and `control_characters` are about HTTP/1.
        optional lenient: Vec<crate::decode::Spanned<Leniency>>;
    }
    later []
}

choice! {
    /// Something malformed that is taken from members.
    Leniency {
        /// Lines that end in LF without CR.
        BareLineFeeds = "bare_line_feeds",
        /// Control characters in values and in the reason phrase; a space takes their place.
        ControlCharacters = "control_characters",
        /// A status from 600 to 999; it goes on as it is, and counts as 5xx.
        UnknownStatus = "unknown_status",
    }
    later [] maps []
}

section! {
    /// When members of lower priority get traffic.
    Priority at "pools.NAME.priority" {
        /// With fewer members of the highest priorities up than this, those of the next are used as well.
        default active_members_min: Whole<u16, 1, 65_535> = Whole(1);
    }
    later []
}

section! {
    /// Requests that wait for a member.
    Queue at "pools.NAME.queue" {
        /// Requests that wait at a time, over all workers; one more gets 503.
        default length_max: Whole<u32, 1, QUEUE_LENGTH_MAX> = Whole(1_000);
        /// How long one waits; then it gets 503.
        default timeout: Timeout = Duration(5 * SECOND);
        /// What becomes of one whose client ends its sending meanwhile. `wait`: it is answered in its turn. `leave`: its place goes to others. A browser whose page was closed looks like that, and so does a client that sends nothing more and waits.
        default half_closed: HalfClosed = HalfClosed::Wait;
    }
    later []
}

choice! {
    /// What becomes of a request that waits when its client has ended its sending.
    HalfClosed {
        /// It is answered in its turn.
        Wait = "wait",
        /// Its place goes to others.
        Leave = "leave",
    }
    later [] maps []
}

section! {
    /// Retries at most in proportion to requests.
    RetryBudget at "pools.NAME.retry_budget" {
        /// Retries for so many of the requests of the last ten seconds.
        default share: Percent = Percent(20);
        /// Retries per second and worker in any case.
        default per_second_min: Whole<u32, 0, 1_000_000> = Whole(10);
    }
    later []
}

section! {
    /// A page.
    Page at "virtual_servers.NAME.error_pages.STATUS" {
        /// Its text.
        optional body: Text;
        /// A file with its text, read with the configuration.
        optional file: FilePath;
        /// Its `Content-Type`. Default: by the file's name, else `text/html; charset=utf-8`.
        optional content_type: Text;
    }
    later []
}

section! {
    /// Where requests go that a pool has no room for. A pool of which no member is up is not full: `fallback` stands in for it, or `maintenance` answers.
    Spillover at "pools.NAME.spillover" {
        /// The pool that gets them.
        required pool: Name;
        /// With so many requests (connections, for `type: tcp`) under way at the members of this pool, over all workers, the next ones go there. Workers that decide at the same moment may exceed it by one each. Default: when every member has all that its own limit (`connections_max`) allows.
        optional connections: Connections;
    }
    later []
}

section! {
    /// What clients get while no member is up.
    Maintenance at "pools.NAME.maintenance" {
        /// A page's text.
        optional body: Text;
        /// A file with its text, read with the configuration.
        optional file: FilePath;
        /// The page's `Content-Type`. Default: by the file's name, else `text/html; charset=utf-8`.
        optional content_type: Text;
        /// In place of a page: clients are sent to this URL, with status 302.
        optional redirect: Text;
    }
    later []
}

choice! {
    /// What a member is told of the client's address.
    ProxyProtocol {
        /// Nothing.
        Off = "off",
        /// Version 1, a line of text.
        V1 = "v1",
        /// Version 2, binary.
        V2 = "v2",
    }
    later [] maps []
}

section! {
    /// Passive marking: consecutive failures (no connection, 5xx, malformed response) take a member out for a while.
    Passive at "pools.NAME.passive" {
        /// Failures in a row.
        default failures: Whole<u16, 1, PASSIVE_FAILURES_MAX> = Whole(5);
        /// The failures must fall into this time.
        default window: Timeout = Duration(10 * SECOND);
        /// How long the member then gets no traffic.
        default eject: Timeout = Duration(30 * SECOND);
        /// Each ejection in a row lasts twice as long as the one before, up to this. Default: ten times `eject`.
        optional eject_max: Timeout;
        /// Members that are ejected at a time, at most so much of the pool, but always one.
        default ejected_share_max: Percent = Percent(50);
    }
    later []
}

section! {
    /// Idle member connections kept for reuse (connection multiplexing).
    Reuse at "pools.NAME.reuse" {
        /// Kept per worker and member. 0: every request opens a connection.
        default idle_per_worker: Whole<u32, 0, IDLE_CONNECTIONS_MAX> = Whole(256);
        /// Closed when unused for this long. Keep it below the member's own keep-alive timeout.
        default idle_timeout: Timeout = Duration(30 * SECOND);
        /// Closed after this many requests.
        default requests_max: Whole<u32, 1, REQUESTS_MAX> = Whole(100_000);
    }
    later []
}
