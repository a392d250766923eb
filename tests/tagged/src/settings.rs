//! The configuration of weir that the sessions require, with small changes for reloads.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::keeping::SPARE;
use crate::member::Role;
use crate::place::Server;

/// Rules that inspect every body of a request or response. Some bodies exceed the limits.
const GUARD: &str = concat!(
    "mode: block, rules: \"",
    env!("CARGO_MANIFEST_DIR"),
    "/rules.conf\", checks: off, body_size_max: 64KiB, responses: { size_max: 8KiB }"
);

/// The authorisation service. It responds later than this only if it never does.
const PORTAL: &str = "authentication:
  portal: { type: external, pool: service, path: /verify, add_headers: X-User, timeout: 10s }
";

/// A text that occurs in bodies, and its replacement, which does not. Every byte of a body may begin a match of the pattern, so some
/// bytes of each are held back.
pub const REPLACED: [&str; 2] = ["ab", "<->"];
const REPLACING: &str = r#"  replacing:
    rules:
      - then:
          - replace_response_body: { types: [ text/plain ], regex: "[0-9a-f]{1,8}weirgate", to: "", match_size_max: 64B }
          - replace_response_body: { types: [ text/plain ], strings: { ab: "<->" } }
"#;
const COPYING: &str = "  copying: { rules: [ { then: [ { mirror: { pool: copies } } ] } ] }\n";

/// The addresses of all listeners.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The virtual servers for clients. [`Server::Http1`] is one of them.
    pub servers: Vec<(Server, SocketAddr)>,
    /// The HTTP/1 members.
    pub http1: [SocketAddr; 2],
    /// The HTTP/2 members.
    pub http2: [SocketAddr; 2],
    /// The members of the rough server: one for HTTP/1, one for HTTP/2.
    pub rough: [SocketAddr; 2],
    /// The member of relayed connections.
    pub relay: SocketAddr,
    /// The HTTP/1 member of the fallback pool.
    pub spare: SocketAddr,
    /// The authorisation service.
    pub service: SocketAddr,
    /// The HTTP/1 member that gets copies of requests.
    pub copies: SocketAddr,
    /// An address without a listener.
    pub refusing: SocketAddr,
    /// The virtual server behind [`Server::Chain`], if that is one of the servers.
    pub inner: Option<Inner>,
}

/// The virtual server with TLS, to which only weir connects.
#[derive(Debug, Clone)]
pub struct Inner {
    /// The address.
    pub listen: SocketAddr,
    /// The certificate and key in the form of `tls.certificates`.
    pub certificates: String,
}

impl Addresses {
    /// The addresses and roles of all members.
    pub fn roles(&self) -> Vec<(SocketAddr, Role)> {
        let [rough1, rough2] = self.rough;
        let mut roles = Vec::new();
        roles.extend((0..).zip(self.http1).map(|(number, it)| (it, Role::Http1(number))));
        roles.extend((0..).zip(self.http2).map(|(number, it)| (it, Role::Http2(number))));
        roles.extend([(rough1, Role::Http1(0)), (rough2, Role::RoughHttp2)]);
        roles.extend([(self.relay, Role::Relay), (self.spare, Role::Http1(SPARE))]);
        roles.extend([(self.service, Role::Service), (self.copies, Role::Copies)]);
        roles
    }

    /// Whether this is a member of the rough server.
    pub fn is_rough(&self, address: &str) -> bool {
        self.rough.iter().any(|it| it.to_string() == address)
    }

    /// The address of a virtual server, if it exists.
    pub fn server(&self, server: Server) -> Option<SocketAddr> {
        self.servers.iter().find(|(it, _)| *it == server).map(|(_, address)| *address)
    }
}

const HTTP: &str = "half_closed: wait, http2: true, request_trailers: forward, body_size_max: 16MiB, body_timeout: 10s, header_timeout: 10s";
const ROUGH: &str = "http2: true, request_trailers: forward, response_body_timeout: 1s, body_size_max: 16MiB, body_timeout: 1s, header_timeout: 1s";

/// Keys of a virtual server that only receives requests from other virtual servers.
const HANDED_OVER: &str = "http: { half_closed: wait, request_trailers: forward, body_size_max: 16MiB, body_timeout: 10s }";

const POLICIES: &str = r#"policies:
  http2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: http2 } ] }
  queue2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: queue2 } ] }
  kept2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: kept2 } ] }
  limits2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: limits2 } ] }
  rough2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: rough2 } ] }
  what:
    rules:
      - when: 'request.path.startsWithAny(["/1/redirect/", "/2/redirect/"])'
        then: [ { redirect: { to: "https://${request.host}${request.target}", status: 301 } } ]
      - when: 'request.path.startsWithAny(["/1/respond/", "/2/respond/"])'
        then:
          - respond:
              status: 403
              body: "no ${request.query['q']} here\n"
              content_type: text/weir
              headers: { X-Refused: "${request.query['q']}" }
      - { when: 'request.path.startsWithAny(["/1/close/", "/2/close/"])', then: [ close ] }
      - { when: 'request.path.startsWithAny(["/1/reset/", "/2/reset/"])', then: [ reset ] }
      - when: 'request.path.startsWithAny(["/1/rewrite/", "/2/rewrite/"])'
        then:
          - rewrite_path: { regex: "^/(.)/rewrite/", to: "/$1/rewritten/" }
          - rewrite_query: "from=${request.query['q']}"
          - rewrite_host: inner.test
          - set_header: { X-Set: "${request.query['q']}" }
          - remove_header: X-Tag-1
          - remove_cookie: b
          - set_response_header: { X-Answered: "${request.query['q']}" }
          - remove_response_header: X-Tag-1
      - when: 'request.path.startsWithAny(["/1/limited/", "/2/limited/"])'
        then: [ { rate_limit: { requests_per_second: 5 } } ]
      - when: 'request.path.startsWithAny(["/1/delayed/", "/2/delayed/"])'
        then: [ { rate_limit: { prefix_v4: 0, requests_per_second: 10, exceed: delay, delay_max: 500ms, entries_max: 99 } } ]
      - when: 'request.path.startsWithAny(["/1/shut/", "/2/shut/"])'
        then: [ { rate_limit: { requests_per_second: 2, exceed: close, entries_max: 99 } } ]
"#;

/// Keys of a pool that retries every request that may be retried.
const TRIED_AGAIN: &str = "retries: 3, retry_budget: { per_second_min: 100000 }";

/// Keys of a virtual server with low limits.
const LIMITS: &str = "limits: { connections: 1, requests: 4, requests_per_second: 200, burst: 50, \
    per_key: [ { requests_per_second: 10, exceed: delay, delay_max: 400ms, entries_max: 99 }, \
    { requests: 3, entries_max: 99 } ] }";
/// Keys of the members behind those limits.
const NARROW: &str = "connections_max: 2, requests_per_second_max: 50";

/// Balancing methods.
const BALANCES: [&str; 7] = [
    "round_robin",
    "least_connections",
    "least_response_time",
    "random_two",
    "source_address",
    "{ hash: \"${request.path}\" }",
    "round_robin",
];

/// Keys of a pool with a monitor. Probes of monitors make its members unavailable and available.
const MONITORED: &str = "slow_start: 5s, monitors: [ { type: tcp, interval: 1h } ]";

/// Policies that hand over requests to another virtual server. One of them changes the request without effect.
const OVER_TO_PACKED: &str = r#"  over-to-packed:
    rules:
      - when: 'request.method == "GET"'
        then: [ { remove_header: X-Nobody-Sends-It }, { virtual_server: packed } ]
      - then: [ { virtual_server: packed } ]
"#;
const OVER_TO_RULED: &str = r#"  over-to-ruled:
    rules:
      - then:
          - remove_response_header: X-Nobody-Sends-It
          - remove_header: X-Nobody-Sends-It
          - virtual_server: ruled
"#;

const CHAIN_POLICY: &str = r#"  chain2:
    rules:
      - { when: 'request.path.startsWith("/2/")', then: [ { pool: chain2 } ] }
"#;

/// The configuration with these addresses, and one of several small changes.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Addresses of all listeners.
    pub addresses: &'a Addresses,
    /// The number of the change. Consecutive numbers give different configurations.
    pub change: usize,
}

impl Settings<'_> {
    fn idle(&self) -> &'static str {
        ["60s", "61s"][self.change % 2]
    }

    /// Whether virtual servers hand over their requests.
    fn hands_over(&self) -> bool {
        self.change / 2 % 2 == 1
    }

    /// With a handover, adds a virtual server with this name and these settings. Returns the settings of the first virtual
    /// server.
    fn behind(&self, name: &str, rest: String, lines: &mut Vec<String>) -> String {
        if !self.hands_over() {
            return rest;
        }
        lines.push(format!("{name}: {{ {rest}, {HANDED_OVER} }}"));
        format!("policies: [ over-to-{name} ]")
    }

    /// The section `policies`.
    pub fn policies(&self) -> String {
        let mut policies = POLICIES.to_owned();
        if self.addresses.inner.is_some() {
            policies += CHAIN_POLICY;
        }
        for (server, policy, is_used) in [
            (Server::Compressed, OVER_TO_PACKED, self.hands_over()),
            (Server::Policies, OVER_TO_RULED, self.hands_over()),
            (Server::Asked, COPYING, true),
            (Server::Rewritten, REPLACING, true),
        ] {
            if is_used && self.addresses.server(server).is_some() {
                policies += policy;
            }
        }
        policies
    }

    /// The `http` settings of the first virtual server, [`Server::Http1`].
    pub fn first_http(&self) -> String {
        format!("{HTTP}, idle_timeout: {}", self.idle())
    }

    /// The members of the first virtual server's pool, which is named `members`.
    pub fn first_members(&self) -> &[SocketAddr] {
        // In some configurations, a member is missing.
        let count = if self.change % 5 == 3 { 1 } else { 2 };
        &self.addresses.http1[..count]
    }

    /// The other virtual servers, one line each.
    pub fn further_servers(&self) -> Vec<String> {
        let http = format!("http: {{ {} }}", self.first_http());
        let level = ["1", "5"][self.change / 2 % 2];
        let mut lines = Vec::new();
        for (server, listen) in &self.addresses.servers {
            let (name, rest) = match server {
                Server::Http1 => continue,
                Server::Http2 => ("http2", format!("pool: http2, {http}")),
                Server::Policies => {
                    let rest = "pool: members, policies: [ http2, what ]".to_owned();
                    ("policies", format!("{}, {http}", self.behind("ruled", rest, &mut lines)))
                }
                Server::Compressed => {
                    let gzip = format!("gzip: {{ level: {level} }}, min_size: 256B, level_min: 1");
                    let compression = format!("compression: {{ {gzip} }}");
                    let rest = format!("pool: members, policies: [ http2 ], {compression}");
                    ("compressed", format!("{}, {http}", self.behind("packed", rest, &mut lines)))
                }
                Server::Queue => ("queue", format!("pool: queue1, policies: [ queue2 ], {http}")),
                Server::Rough => {
                    ("rough", format!("pool: rough1, policies: [ rough2 ], http: {{ {ROUGH} }}"))
                }
                Server::Relay => ("relay", "type: tcp, pool: relay".to_owned()),
                Server::Chain => ("chain", format!("pool: chain1, policies: [ chain2 ], {http}")),
                Server::Kept => {
                    let persistence = "persistence: { type: cookie }";
                    ("kept", format!("pool: kept1, policies: [ kept2 ], {persistence}, {http}"))
                }
                Server::Limits => {
                    let small = http.replace("16MiB", "1KiB");
                    let rest = format!("pool: limits1, policies: [ limits2 ], {LIMITS}, {small}");
                    ("limits", rest)
                }
                Server::Guarded => {
                    let unjudged = ["pass", "block"][self.change % 2];
                    let guard = format!("waf: {{ {GUARD}, unjudged: {unjudged} }}");
                    ("guarded", format!("pool: members, policies: [ http2 ], {guard}, {http}"))
                }
                Server::Asked => {
                    let rest = "pool: members, authenticate: portal, policies: [ http2, copying ]";
                    ("asked", format!("{rest}, {http}"))
                }
                Server::Rewritten => {
                    let rest = "pool: members, policies: [ http2, replacing ]";
                    let compressed = format!("compression: {{ gzip: {{ level: {level} }} }}, ");
                    let compressed = if self.hands_over() { &compressed } else { "" };
                    ("rewritten", format!("{rest}, {compressed}{http}"))
                }
                Server::Sourced => {
                    let persistence =
                        "persistence: { type: source_address, timeout: 24h, entries_max: 99 }";
                    ("sourced", format!("pool: sourced, {persistence}, {http}"))
                }
            };
            lines.push(format!("{name}: {{ listen: \"{listen}\", {rest} }}"));
        }
        if let Some(Inner { listen, certificates }) = &self.addresses.inner {
            let tls = format!("tls: {{ certificates: [ {certificates} ] }}");
            let rest = format!("pool: members, policies: [ http2 ], {http}, {tls}");
            lines.push(format!("inner: {{ listen: \"{listen}\", {rest} }}"));
        }
        lines
    }

    /// The other pools, one line each.
    pub fn further_pools(&self) -> Vec<String> {
        let limited = |pair: [SocketAddr; 2]| {
            pair.map(|it| format!("{{ address: \"{it}\", connections_max: 2 }}")).join(", ")
        };
        let Addresses { http1, http2, rough, relay, spare, refusing, .. } = self.addresses;
        let Addresses { service, copies, .. } = self.addresses;
        let narrow = |pair: [SocketAddr; 2]| {
            pair.map(|it| format!("{{ address: \"{it}\", {NARROW} }}")).join(", ")
        };
        // In some configurations, the members are in another order, which must have no effect.
        let ordered = |[one, other]: [SocketAddr; 2]| match self.change % 4 {
            0 | 1 => [one, other],
            _ => [other, one],
        };
        let (narrow1, narrow2) = (narrow(ordered(*http1)), narrow(ordered(*http2)));
        let (queue1, queue2) = (limited(ordered(*http1)), limited(ordered(*http2)));
        let both = |[one, other]: [SocketAddr; 2]| format!("\"{one}\", \"{other}\"");
        let (kept1, kept2) = (both(ordered(*http1)), both(ordered(*http2)));
        let ([one, other], [rough1, rough2]) = (http2, rough);
        let http2 = match self.change % 5 {
            // In some configurations, a member is missing, or an unreachable one is added.
            4 => one.to_string(),
            1 | 2 => format!("{one}, {refusing}, {other}"),
            _ => format!("{one}, {other}"),
        };
        let reuse = ["", "reuse: { requests_max: 5 }, ", "reuse: { idle_per_worker: 0 }, "];
        let reuse = reuse[self.change % 3];
        let balance = BALANCES[self.change % BALANCES.len()];
        let timeout = ["5s", "20ms"][self.change % 2];
        let queue = |half_closed| {
            let queue = format!("timeout: {timeout}, length_max: 6, half_closed: {half_closed}");
            format!("queue: {{ {queue} }}, retries: 2, balance: {balance}")
        };
        let (stays, leaves) = (queue("wait"), queue("leave"));
        let passive = "passive: { failures: 3, eject: 300ms }";
        let budget = "retry_budget: { share: 50%, per_second_min: 10 }";
        let timeouts = format!(
            "connect_timeout: 1s, response_timeout: 1s, {passive}, {budget}, balance: {balance}"
        );
        let mut pools = vec![
            format!("http2: {{ http2: true, {reuse}{TRIED_AGAIN}, members: [ {http2} ] }}"),
            format!("queue1: {{ {stays}, members: [ {queue1} ] }}"),
            format!("queue2: {{ http2: true, {leaves}, members: [ {queue2} ] }}"),
            format!("rough1: {{ {timeouts}, members: [ \"{refusing}\", \"{rough1}\" ] }}"),
            format!(
                "rough2: {{ http2: true, {timeouts}, members: [ \"{refusing}\", \"{rough2}\" ] }}"
            ),
            format!("relay: {{ members: [ \"{relay}\" ] }}"),
            format!("kept1: {{ {MONITORED}, fallback: spare, members: [ {kept1} ] }}"),
            format!("spare: {{ members: [ \"{spare}\" ] }}"),
            format!("kept2: {{ http2: true, {MONITORED}, members: [ {kept2} ] }}"),
            format!("limits1: {{ members: [ {narrow1} ] }}"),
            format!("limits2: {{ http2: true, members: [ {narrow2} ] }}"),
            format!("sourced: {{ {MONITORED}, members: [ {kept1} ] }}"),
        ];
        if self.addresses.server(Server::Asked).is_some() {
            // Only whoever asks the service gives up a question that it does not answer.
            let keys = "response_timeout: 1h";
            pools.push(format!("service: {{ {keys}, members: [ \"{service}\" ] }}"));
            pools.push(format!("copies: {{ response_timeout: 2s, members: [ \"{copies}\" ] }}"));
        }
        if let Some(Inner { listen, .. }) = &self.addresses.inner {
            let tls = "tls: { verify: false }";
            pools.push(format!("chain1: {{ {tls}, members: [ \"{listen}\" ] }}"));
            pools.push(format!("chain2: {{ {tls}, http2: true, members: [ \"{listen}\" ] }}"));
        }
        pools
    }

    /// The whole file. `top`: other top-level lines, such as `admin`, `log` and `data_plane`.
    pub fn yaml(&self, top: &str) -> String {
        let portal = self.addresses.server(Server::Asked).map_or("", |_| PORTAL);
        let mut text = format!("{top}\n{portal}{}virtual_servers:\n", self.policies());
        if let Some(listen) = self.addresses.server(Server::Http1) {
            let http = self.first_http();
            let _ = writeln!(
                text,
                "  main: {{ listen: \"{listen}\", pool: members, http: {{ {http} }} }}"
            );
        }
        for line in self.further_servers() {
            let _ = writeln!(text, "  {line}");
        }
        let members: Vec<String> = self.first_members().iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "pools:\n  members: {{ members: [ {} ] }}", members.join(", "));
        for line in self.further_pools() {
            let _ = writeln!(text, "  {line}");
        }
        text
    }
}
