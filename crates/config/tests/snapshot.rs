//! The results of valid configurations.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_config::snapshot::{
    AccessFormat, Address, AfterFirstProbes, Balance, BodyMatch, Credentials, DataPlaneSettings,
    DnsProbe, DnsRcode, DnsRecord, DrainAnswer, FirstProbesSettings, GrpcProbe, HalfClosed,
    Http2Budgets, HttpProbe, HttpSettings, LdapProbe, Limits, LogSettings, LogTarget, Member,
    Monitor, MonitorKind, PassiveMarking, Pool, PoolSubstitutes, ProbeMethod, ProbeTls,
    RadiusProbe, RadiusReply, RedisProbe, RedisRole, RequestTrailers, ReuseSettings, Role, Sandbox,
    ScriptProbe, Secret, SmtpProbe, Snapshot, Source, SqlProbe, SqlQuery, TcpProbe, UdpProbe,
};
use weir_config::{Config, Resolutions, Summary, parse};
use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_core::monitor::{PassiveSettings, Schedule};
use weir_http::flaws::{Flaw, Flaws};
use weir_http::h2::Allowance;
use weir_http::path::{
    Backslash, EncodedSlashes, Nul, Parameters, PathForm, RawBytes, Slashes, Spellings, TargetForm,
};

fn config(text: &str) -> Config {
    let loaded = parse("dir/weir.yaml", text);
    assert_eq!(loaded.diagnostics, [], "{text}");
    loaded.config.expect("no findings, so a configuration")
}

fn snapshot(text: &str) -> Snapshot {
    config(text).snapshot(&Resolutions::new())
}

fn socket(text: &str) -> Address {
    Address::Socket(text.parse().expect(text))
}

/// One virtual server and one pool, its settings given.
fn with_pool(settings: &str) -> String {
    format!(
        "virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p }} }}\npools:\n  p:\n{settings}"
    )
}

fn pool(settings: &str) -> Pool {
    (*snapshot(&with_pool(settings)).pools[0]).clone()
}

const HTTP_DEFAULTS: HttpSettings = HttpSettings {
    head_size_max: 32 * 1024,
    headers_max: 128,
    body_size_max: None,
    header_timeout_ms: 10_000,
    body_timeout_ms: 30_000,
    response_body_timeout_ms: 300_000,
    idle_timeout_ms: 60_000,
    tunnel_timeout_ms: 3_600_000,
    http2: false,
    http2_streams_max: 100,
    trace: false,
    upgrade_with_body: true,
    request_trailers: RequestTrailers::Drop,
    target: TargetForm { path: SAFE, raw_bytes: RawBytes::Encode },
    rewrite_location: false,
    half_closed: HalfClosed::Leave,
    http2_budgets: HTTP2_BUDGETS,
};

const fn allowance(burst: u32, per_second: u32) -> Allowance {
    Allowance { burst, per_second }
}

const HTTP2_BUDGETS: Http2Budgets = Http2Budgets {
    resets: allowance(200, 20),
    client_errors: allowance(50, 10),
    refused_streams: allowance(200, 20),
    closed_streams: allowance(5_000, 500),
    settings: allowance(20, 1),
    pings: allowance(50, 5),
    priorities: allowance(500, 20),
    window_updates: allowance(1_000, 100),
    empty_data: allowance(100, 10),
    tiny_data: allowance(20_000, 10_000),
};

/// Without policies, nothing decides by the path, and encoded slashes pass.
const SAFE: PathForm = PathForm::Canonical(Spellings {
    slashes: Slashes::Merge,
    encoded_slashes: EncodedSlashes::Keep,
    backslash: Backslash::Refuse,
    parameters: Parameters::Keep,
    nul: Nul::Refuse,
});

#[test]
fn defaults() {
    let snapshot = snapshot(&with_pool("    members: [ 127.0.0.1:9001 ]"));
    assert_eq!(snapshot.admin.listen, []);
    let data_plane = DataPlaneSettings {
        workers: None,
        drain_timeout_ms: 60_000,
        udp_descriptors_percent: 50,
        sandbox: Sandbox::Auto,
        http2_memory_bytes: 32 << 20,
        member_histograms: false,
    };
    assert_eq!(snapshot.data_plane, data_plane);
    let first_probes = FirstProbesSettings { wait_ms: 5_000, then: AfterFirstProbes::Serve };
    assert_eq!(snapshot.first_probes, first_probes);
    assert!(snapshot.admin.host_names.is_empty());
    let log = LogSettings {
        access_format: AccessFormat::Json,
        given_format: None,
        access_to: LogTarget::Stdout,
        waf_to: LogTarget::Stdout,
        audit_to: None,
        spans_to: None,
        recent_requests: None,
    };
    assert_eq!(snapshot.log, log);
    let server = &snapshot.virtual_servers[0];
    assert_eq!(&*server.name, "a");
    assert_eq!(server.listen, [socket("127.0.0.1:80").into()]);
    assert_eq!(server.pool, 0);
    assert_eq!(server.http, HTTP_DEFAULTS);
    assert_eq!(server.limits, Limits::default());
    let pool = &snapshot.pools[0];
    assert!(matches!(pool.balance, Balance::Method(Method::RoundRobin)));
    let member = Member {
        address: socket("127.0.0.1:9001"),
        label: "127.0.0.1:9001".into(),
        name: None,
        weight: 1,
        connections_max: None,
        rate: None,
        priority: 0,
        state: AdminState::Enabled,
        monitors: None,
    };
    assert_eq!((&*pool.name, &pool.members), ("p", &vec![member]));
    assert_eq!((&pool.monitors, pool.passive), (&vec![], None));
    assert_eq!(pool.source, Source::System);
    let reuse = ReuseSettings {
        idle_per_worker: 256,
        idle_timeout_ms: 30_000,
        requests_max: 100_000,
        binds: true,
    };
    assert_eq!((pool.reuse, pool.retries.max), (reuse, 1));
    assert_eq!((pool.connect_timeout_ms, pool.response_timeout_ms), (5_000, 60_000));
    assert_eq!((pool.active_members_min, pool.slow_start_ms, pool.queue), (1, None, None));
    assert_eq!((&pool.instead, pool.retries.budget), (&PoolSubstitutes::default(), None));
}

#[test]
fn every_setting_arrives() {
    let text = r#"
admin: { listen: [ "unix:/run/weir.sock", 127.0.0.1:9900 ], host_names: [ Weir.Example., b ],
         users: { ann: { role: operate, token_hash: "sha256:1111111111111111111111111111111111111111111111111111111111111111" } } }
data_plane: { workers: 3, drain_timeout: 0s }
first_probes: { wait: 0s, then: refuse }
log: { access: { to: logs/access.log, format: combined }, audit: { to: /var/log/audit.log } }
profiles: { http: { tight: { head_size_max: 8KiB, headers_max: 50, body_size_max: 1MiB,
  header_timeout: 1s, body_timeout: 2s, response_body_timeout: 7s, idle_timeout: 3s, tunnel_timeout: 4m,
  request_trailers: forward, path: keep, strict: true, rewrite_location: true, trace: true, upgrade_with_body: false,
   half_closed: wait, http2_budgets: { resets: 1000 } } } }
virtual_servers:
  one: { listen: [ "[::1]:80", "unix:/run/one" ], type: http, pool: q, http: tight, limits: { connections: 7 } }
  two: { listen: 127.0.0.1:81, pool: p, http: { body_size_max: 0B } }
pools:
  p: { members: [ 127.0.0.1:9001 ] }
  q:
    balance: least_connections
    members: [ { address: "unix:/run/m", weight: 256, connections_max: 9 } ]
    passive: { failures: 1, window: 2s, eject: 3s }
    reuse: { idle_per_worker: 0, idle_timeout: 1s, requests_max: 5, connection_authentication: share }
    retries: 0
    connect_timeout: 250ms
    response_timeout: 1h
    source: 127.0.0.9
    lenient: [ bare_line_feeds, unknown_status, repeated_chunked ]
"#;
    let snapshot = snapshot(text);
    let admin = [Address::Unix("/run/weir.sock".into()), socket("127.0.0.1:9900")];
    assert_eq!(snapshot.admin.listen, admin);
    assert_eq!(snapshot.admin.host_names, ["weir.example", "b"]);
    let user = &snapshot.admin.users[0];
    assert_eq!(
        (&*user.name, user.role, &user.token_hashes[..]),
        ("ann", Role::Operate, &[[0x11; 32]][..])
    );
    assert_eq!(snapshot.log.audit_to, Some(LogTarget::File("/var/log/audit.log".into())));
    let first_probes = FirstProbesSettings { wait_ms: 0, then: AfterFirstProbes::Refuse };
    assert_eq!(snapshot.first_probes, first_probes);
    assert_eq!(snapshot.data_plane.workers, Some(3));
    assert_eq!(snapshot.data_plane.drain_timeout_ms, 0);
    assert_eq!(snapshot.log.access_format, AccessFormat::Combined);
    let log_file = LogTarget::File(PathBuf::from("dir/logs/access.log"));
    assert_eq!(snapshot.log.access_to, log_file, "relative to the configuration");
    let [one, two] = snapshot.virtual_servers.as_slice() else {
        panic!("two virtual servers");
    };
    assert_eq!(one.listen, [socket("[::1]:80").into(), Address::Unix("/run/one".into()).into()]);
    assert_eq!((one.pool, one.limits.connections_max), (1, Some(7)));
    let tight = HttpSettings {
        head_size_max: 8192,
        headers_max: 50,
        body_size_max: Some(1 << 20),
        header_timeout_ms: 1_000,
        body_timeout_ms: 2_000,
        response_body_timeout_ms: 7_000,
        idle_timeout_ms: 3_000,
        tunnel_timeout_ms: 240_000,
        http2: false,
        http2_streams_max: 100,
        trace: true,
        upgrade_with_body: false,
        request_trailers: RequestTrailers::Forward,
        target: TargetForm { path: PathForm::Keep, raw_bytes: RawBytes::Refuse },
        rewrite_location: true,
        half_closed: HalfClosed::Wait,
        http2_budgets: Http2Budgets { resets: allowance(1_000, 20), ..HTTP2_BUDGETS },
    };
    assert_eq!(one.http, tight);
    let none_but_empty = HttpSettings { body_size_max: Some(0), ..HTTP_DEFAULTS };
    assert_eq!(two.http, none_but_empty);
    let pool = &snapshot.pools[1];
    assert!(matches!(pool.balance, Balance::Method(Method::LeastConnections)));
    assert_eq!(&*pool.members[0].label, "unix:/run/m");
    assert_eq!((pool.members[0].weight, pool.members[0].connections_max), (256, Some(9)));
    let passive = PassiveMarking {
        counting: PassiveSettings { failures: 1, window_ms: 2_000, eject_ms: 3_000 },
        eject_max_ms: 30_000,
        ejected_share_max_percent: 50,
    };
    assert_eq!(pool.passive, Some(passive));
    let reuse =
        ReuseSettings { idle_per_worker: 0, idle_timeout_ms: 1_000, requests_max: 5, binds: false };
    assert_eq!(pool.reuse, reuse);
    assert_eq!(pool.retries.max, 0);
    assert_eq!((pool.connect_timeout_ms, pool.response_timeout_ms), (250, 3_600_000));
    let source = pool.source.addresses().expect("an address");
    assert_eq!(source.addresses, [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9))]);
    assert_eq!(source.ports, None);
    let lenient =
        Flaws::USUAL.with(Flaw::BareLineFeed).with(Flaw::UnknownStatus).with(Flaw::RepeatedChunked);
    assert_eq!((pool.lenient, snapshot.pools[0].lenient), (lenient, Flaws::USUAL));
}

/// The defaults.
const SCHEDULE: Schedule = Schedule {
    interval_ms: 5_000,
    timeout_ms: 2_000,
    rise: 2,
    fall: 3,
    jitter_percent: 10,
    up_delay_ms: 0,
};

/// The HTTP probe with the default settings.
fn http_probe() -> HttpProbe {
    HttpProbe {
        method: ProbeMethod::Get,
        path: "/".into(),
        host: None,
        fields: Vec::new(),
        credentials: None,
        body: Arc::default(),
        tls: None,
        expect_status: vec![(200, 399)],
        expect_body: None,
        drain_on: None,
    }
}

#[test]
fn monitors() {
    let settings = r#"
    members: [ 127.0.0.1:9001 ]
    monitors:
      - { type: tcp, port: 99, interval: 1s }
      - { type: http }
      - type: https
        path: /healthz?deep=1
        host: Shop.Example
        verify: false
        expect: { status: [ 200, "301-302" ], body: { regex: "^up" } }
        interval: 10s
        up_delay: 30s
        timeout: 10s
        rise: 1
        fall: 1
        jitter: 0%
      - { type: https, expect: { body: ok } }
      - { type: tcp, send: "PING\r\n", receive: "+PONG", drain_on: { body: LOADING }, reverse: true }
      - { type: http, drain_on: { status: 503 } }
      - { type: grpc, service: shop }
      - { type: grpcs, host: shop.example, port: 443, verify: false }
      - { type: script, command: [ /bin/sh, -c, "exit 0" ] }
"#;
    let (schedule, probe) = (SCHEDULE, http_probe());
    let monitor = |kind| Monitor { kind, schedule, port: None, is_reverse: false };
    let substring = |text: &str| BodyMatch::Substring(text.as_bytes().into());
    let verified = Some(ProbeTls { verify: true, name: None, is_upgrade: false });
    let regex = regex::bytes::Regex::new("^up").expect("a valid expression");
    let expected = [
        Monitor {
            schedule: Schedule { interval_ms: 1_000, timeout_ms: 1_000, ..schedule },
            port: Some(99),
            ..monitor(MonitorKind::Tcp(TcpProbe::default()))
        },
        monitor(MonitorKind::Http(probe.clone())),
        Monitor {
            schedule: Schedule {
                interval_ms: 10_000,
                timeout_ms: 10_000,
                rise: 1,
                fall: 1,
                jitter_percent: 0,
                up_delay_ms: 30_000,
            },
            ..monitor(MonitorKind::Http(HttpProbe {
                method: ProbeMethod::Get,
                path: "/healthz?deep=1".into(),
                host: Some("shop.example".into()),
                fields: Vec::new(),
                credentials: None,
                body: Arc::default(),
                tls: Some(ProbeTls {
                    verify: false,
                    name: Some("shop.example".into()),
                    is_upgrade: false,
                }),
                expect_status: vec![(200, 200), (301, 302)],
                expect_body: Some(BodyMatch::Regex(regex)),
                drain_on: None,
            }))
        },
        monitor(MonitorKind::Http(HttpProbe {
            tls: verified,
            expect_body: Some(substring("ok")),
            ..probe.clone()
        })),
        Monitor {
            is_reverse: true,
            ..monitor(MonitorKind::Tcp(TcpProbe {
                send: Some(b"PING\r\n"[..].into()),
                receive: Some(substring("+PONG")),
                drain_on: Some(substring("LOADING")),
                tls: None,
            }))
        },
        monitor(MonitorKind::Http(HttpProbe {
            drain_on: Some(DrainAnswer { status: Some(vec![(503, 503)]), body: None }),
            ..probe
        })),
        monitor(MonitorKind::Grpc(GrpcProbe { service: "shop".into(), host: None, tls: None })),
        Monitor {
            port: Some(443),
            ..monitor(MonitorKind::Grpc(GrpcProbe {
                service: "".into(),
                host: Some("shop.example".into()),
                tls: Some(ProbeTls {
                    verify: false,
                    name: Some("shop.example".into()),
                    is_upgrade: false,
                }),
            }))
        },
        monitor(MonitorKind::Script(ScriptProbe {
            command: ["/bin/sh", "-c", "exit 0"].map(Into::into).into(),
        })),
    ];
    assert_eq!(pool(settings).monitors, expected);
}

#[test]
fn monitors_with_requests_of_their_own() {
    let settings = r#"
    members: [ 127.0.0.1:9001 ]
    monitors:
      - { type: http, method: POST, headers: { X-Tenant: " a ", Accept: "" }, body: { hex: "00 ff" } }
      - { type: https, user: probe, password: 007, host: shop.example }
      - { type: tcp, tls: true }
      - { type: tcp, tls: true, host: shop.example, verify: false }
"#;
    let tls = |verify, name: Option<&str>| {
        let name = name.map(Into::into);
        Some(ProbeTls { verify, name, is_upgrade: false })
    };
    let field = |name: &str, value| (Arc::from(name), Secret::new(value));
    let expected = [
        MonitorKind::Http(HttpProbe {
            method: ProbeMethod::Post,
            fields: vec![field("X-Tenant", "a"), field("Accept", "")],
            body: b"\x00\xff"[..].into(),
            ..http_probe()
        }),
        MonitorKind::Http(HttpProbe {
            host: Some("shop.example".into()),
            credentials: Some(Credentials { user: "probe".into(), password: Secret::new("007") }),
            tls: tls(true, Some("shop.example")),
            ..http_probe()
        }),
        MonitorKind::Tcp(TcpProbe { tls: tls(true, None), ..TcpProbe::default() }),
        MonitorKind::Tcp(TcpProbe { tls: tls(false, Some("shop.example")), ..TcpProbe::default() }),
    ];
    let found: Vec<MonitorKind> =
        pool(settings).monitors.into_iter().map(|monitor| monitor.kind).collect();
    assert_eq!(found, expected);
}

#[test]
fn monitors_of_members() {
    let settings = r#"
    members:
      - 127.0.0.1:9001
      - { address: 127.0.0.1:9002, monitors: [ { type: icmp, interval: 5s }, { type: tcp } ] }
      - { address: 127.0.0.1:9003, monitors: [] }
    monitors: [ { type: http } ]
"#;
    let pool = pool(settings);
    let monitor = |kind| Monitor { kind, schedule: SCHEDULE, port: None, is_reverse: false };
    let of = |index: usize| pool.members[index].monitors(&pool.monitors).to_vec();
    assert_eq!(of(0), [monitor(MonitorKind::Http(http_probe()))]);
    let own = [MonitorKind::Icmp, MonitorKind::Tcp(TcpProbe::default())].map(monitor);
    assert_eq!((of(1), of(2)), (own.to_vec(), Vec::new()));
}

#[test]
fn monitors_of_services() {
    let settings = r#"
    members: [ 127.0.0.1:9001 ]
    monitors:
      - { type: icmp }
      - { type: redis }
      - { type: redis, password: a, role: replica, tls: true }
      - { type: smtp, name: weir.example, starttls: true, host: mail.example }
      - { type: ldap }
      - { type: ldap, user: cn=a, password: b, base: dc=c, attribute: cn }
      - { type: mysql }
      - { type: postgresql, user: a, database: b, query: SELECT 1, value: "1" }
      - { type: radius, user: a, password: b, secret: c, reply: any }
"#;
    let user = |user: &str, password: &str| {
        Some(Credentials { user: user.into(), password: Secret::new(password) })
    };
    let tls = ProbeTls { verify: true, name: None, is_upgrade: false };
    let mail = ProbeTls { name: Some("mail.example".into()), is_upgrade: true, ..tls.clone() };
    let nobody = SqlProbe { user: None, database: None, query: None, tls: None };
    let root = LdapProbe {
        credentials: None,
        base: "".into(),
        attribute: "objectClass".into(),
        tls: None,
    };
    let expected = [
        MonitorKind::Icmp,
        MonitorKind::Redis(RedisProbe { credentials: None, role: None, tls: None }),
        MonitorKind::Redis(RedisProbe {
            credentials: user("", "a"),
            role: Some(RedisRole::Replica),
            tls: Some(tls),
        }),
        MonitorKind::Smtp(SmtpProbe { name: "weir.example".into(), tls: Some(mail) }),
        MonitorKind::Ldap(root.clone()),
        MonitorKind::Ldap(LdapProbe {
            credentials: user("cn=a", "b"),
            base: "dc=c".into(),
            attribute: "cn".into(),
            ..root
        }),
        MonitorKind::Mysql(nobody.clone()),
        MonitorKind::Postgresql(SqlProbe {
            user: user("a", ""),
            database: Some("b".into()),
            query: Some(SqlQuery { text: "SELECT 1".into(), value: Some("1".into()) }),
            ..nobody
        }),
        MonitorKind::Radius(RadiusProbe {
            credentials: user("a", "b").expect("a user"),
            secret: Secret::new("c"),
            reply: RadiusReply::Any,
        }),
    ];
    let found: Vec<MonitorKind> =
        pool(settings).monitors.into_iter().map(|monitor| monitor.kind).collect();
    assert_eq!(found, expected);
}

#[test]
fn monitors_of_datagrams() {
    let settings = r#"
    members: [ 127.0.0.1:9001 ]
    monitors:
      - { type: udp, send: { hex: "00 fF01" }, receive: { hex: "02" }, answer: optional }
      - { type: udp, send: ping, drain_on: { body: late } }
      - { type: dns, name: shop.example, record: AAAA, value: "2001:DB8:0::1" }
      - { type: dns, name: ., record: NS, rcode: SERVFAIL }
"#;
    let expected = [
        MonitorKind::Udp(UdpProbe {
            send: [0, 255, 1].into(),
            receive: Some(BodyMatch::Substring([2].into())),
            drain_on: None,
            is_silence_fine: true,
        }),
        MonitorKind::Udp(UdpProbe {
            send: b"ping"[..].into(),
            receive: None,
            drain_on: Some(BodyMatch::Substring(b"late"[..].into())),
            is_silence_fine: false,
        }),
        MonitorKind::Dns(DnsProbe {
            name: "shop.example".into(),
            record: DnsRecord::Aaaa,
            rcode: DnsRcode::NoError,
            value: Some("2001:db8::1".into()),
        }),
        MonitorKind::Dns(DnsProbe {
            name: ".".into(),
            record: DnsRecord::Ns,
            rcode: DnsRcode::ServFail,
            value: None,
        }),
    ];
    let found: Vec<MonitorKind> =
        pool(settings).monitors.iter().map(|monitor| monitor.kind.clone()).collect();
    assert_eq!(found, expected);
}

#[test]
fn names_become_members() {
    let text = with_pool(
        "    members: [ { address: Web.example:80, weight: 2 }, 10.0.0.2:80, other.example:80, web.example:81 ]",
    );
    let config = config(&text);
    let names: Vec<&str> = config.host_names().collect();
    assert_eq!(names, ["other.example", "web.example"]);
    let expected_summary = Summary { virtual_servers: 1, disabled: 0, pools: 1, members: 4 };
    assert_eq!(config.summary(), expected_summary);

    let addresses = |texts: &[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    };
    let resolutions = Resolutions::from([
        (
            "web.example".to_owned(),
            addresses(&["10.0.0.3", "10.0.0.2", "::ffff:10.0.0.1", "10.0.0.3", "fd00::1"]),
        ),
        ("other.example".to_owned(), addresses(&["10.0.0.3", "10.0.0.4"])),
    ]);
    let show = |snapshot: &Snapshot| -> Vec<String> {
        let members = snapshot.pools[0].members.iter();
        members
            .map(|member| {
                let name = member.name.as_deref().unwrap_or("-");
                format!("{} {name} {}", member.label, member.weight)
            })
            .collect()
    };
    let expected = [
        "10.0.0.1:80 web.example 2",
        "10.0.0.3:80 web.example 2",
        "[fd00::1]:80 web.example 2",
        "10.0.0.2:80 - 1",
        "10.0.0.4:80 other.example 1",
        "10.0.0.1:81 web.example 1",
        "10.0.0.2:81 web.example 1",
        "10.0.0.3:81 web.example 1",
        "[fd00::1]:81 web.example 1",
    ];
    assert_eq!(show(&config.snapshot(&resolutions)), expected);
    assert_eq!(show(&config.snapshot(&Resolutions::new())), ["10.0.0.2:80 - 1"]);

    let from_v4 = self::config(&format!("{text}\n    source: 10.9.9.9"));
    let reachable = show(&from_v4.snapshot(&resolutions));
    assert_eq!(reachable.len(), expected.len() - 2, "no IPv6 from an IPv4 source");
}

#[test]
fn every_way_to_take_a_path_arrives() {
    let form = |path: &str| {
        let http = format!("http: {{ path: {path} }}");
        let text = format!(
            "virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p, {http} }} }}\n\
             pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}"
        );
        snapshot(&text).virtual_servers[0].http.target.path
    };
    let safe = Spellings { encoded_slashes: EncodedSlashes::Keep, ..Spellings::default() };
    for (path, expected) in [
        ("{}", safe),
        (
            "{ repeated_slashes: merge, encoded_slashes: refuse, backslashes: refuse }",
            Spellings::default(),
        ),
        ("{ parameters: keep, nul: refuse }", safe),
        ("{ repeated_slashes: keep }", Spellings { slashes: Slashes::Keep, ..safe }),
        (
            "{ encoded_slashes: decode }",
            Spellings { encoded_slashes: EncodedSlashes::Decode, ..safe },
        ),
        ("{ encoded_slashes: keep }", Spellings { encoded_slashes: EncodedSlashes::Keep, ..safe }),
        ("{ backslashes: slash }", Spellings { backslash: Backslash::Slash, ..safe }),
        ("{ backslashes: keep }", Spellings { backslash: Backslash::Keep, ..safe }),
        ("{ parameters: remove }", Spellings { parameters: Parameters::Remove, ..safe }),
        ("{ parameters: refuse }", Spellings { parameters: Parameters::Refuse, ..safe }),
        ("{ nul: keep }", Spellings { nul: Nul::Keep, ..safe }),
    ] {
        assert_eq!(form(path), PathForm::Canonical(expected), "{path}");
    }
    assert_eq!((form("{}"), form("keep")), (SAFE, PathForm::Keep));
}

#[test]
fn encoded_slashes_pass_where_nothing_decides_by_the_path() {
    let folder = std::env::temp_dir().join(format!("weir-slashes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in [
        ("path.conf", "SecRule REQUEST_FILENAME \"@beginsWith /a/\" \"id:1,phase:1,deny\"\n"),
        ("arguments.conf", "SecRule ARGS \"@contains a\" \"id:1,phase:2,deny\"\n"),
    ] {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    let exclusion = "exclusions: { a: { rule: 1003001, variable: \"ARGS:a\", path: /a } }";
    let policy = "policies: { r: { rules: [ { when: 'true', then: [ { pool: p } ] } ] }, \
                  h: { rules: [ { then: [ { virtual_server: b } ] } ] } }";
    let (keep, refuse) = (EncodedSlashes::Keep, EncodedSlashes::Refuse);
    for (a, b, expected) in [
        ("", "", [keep, keep]),
        ("policies: [ r ]", "", [refuse, keep]),
        // The one that gets requests takes paths like the one that hands them over.
        ("policies: [ h ]", "", [refuse, refuse]),
        ("policies: [ r ], http: { path: { encoded_slashes: keep } }", "", [keep, keep]),
        ("http: { path: { encoded_slashes: refuse } }", "http: shared", [refuse, keep]),
        ("policies: [ r ], http: shared", "http: shared", [refuse, keep]),
        ("http: decoding", "", [EncodedSlashes::Decode, keep]),
        ("waf: { mode: block }", "", [keep, keep]),
        (&format!("waf: {{ mode: block, {exclusion} }}"), "", [refuse, keep]),
        ("waf: { mode: block, rules: [ path.conf, builtin ] }", "", [refuse, keep]),
        ("waf: { mode: block, rules: [ arguments.conf, builtin ] }", "", [keep, keep]),
    ] {
        let more = |keys: &str| if keys.is_empty() { String::new() } else { format!(", {keys}") };
        let text = format!(
            "virtual_servers:\n  a: {{ listen: 127.0.0.1:80, pool: p{} }}\n  b: {{ listen: 127.0.0.1:81, pool: p{} }}\n\
             pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n\
             profiles: {{ http: {{ shared: {{}}, decoding: {{ path: {{ encoded_slashes: decode }} }} }} }}\n{policy}\n",
            more(a),
            more(b)
        );
        let file = folder.join("weir.yaml");
        let loaded = weir_config::parse(&file.display().to_string(), &text);
        let config = loaded.config.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.diagnostics));
        let snapshot = config.snapshot(&weir_config::Resolutions::default());
        let of = |server: &weir_config::snapshot::VirtualServer| match server.http.target.path {
            PathForm::Canonical(spellings) => spellings.encoded_slashes,
            PathForm::Keep => panic!("{a}"),
        };
        let found: Vec<EncodedSlashes> = snapshot.virtual_servers.iter().map(of).collect();
        assert_eq!(found, expected, "{a} | {b}");
    }
    std::fs::remove_dir_all(&folder).expect("removing what the test made");
}

#[test]
fn time_zones_have_names() {
    let file = |zone: &str| {
        format!(
            "time_zone: {zone}\nvirtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: p }} }}\n\
             pools: {{ p: {{ members: [ 127.0.0.1:81 ] }} }}\n"
        )
    };
    let loaded = |zone: &str| weir_config::parse("weir.yaml", &file(zone));
    let told = |zone: &str| -> Vec<String> {
        loaded(zone).diagnostics.into_iter().map(|it| it.message).collect()
    };
    let winter_s = 1_767_225_600;
    let offsets = |zone: &str| {
        let config = loaded(zone).config.expect("a sound one");
        let zone = config.snapshot(&weir_config::Resolutions::default()).time_zone.clone();
        [winter_s, winter_s + 182 * 86_400].map(|at_s| zone.offset_s(at_s))
    };
    assert_eq!(offsets("\"-05:30\""), [-19_800, -19_800]);
    assert_eq!(offsets("UTC"), [0, 0]);
    let wrong =
        "`time_zone` must be `UTC`, the name of a time zone, such as Europe/Berlin, or an offset";
    for zone in ["berlin", "../../etc/passwd", "Europe/", "\"+25:00\""] {
        assert!(told(zone)[0].starts_with(wrong), "{zone}: {:?}", told(zone));
    }
    if !std::path::Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
        assert!(
            told("Europe/Berlin")[0].starts_with("the time zone `Europe/Berlin` cannot be read")
        );
        return;
    }
    assert_eq!(offsets("Europe/Berlin"), [3_600, 7_200]);
    assert_eq!(
        told("Europe/Berln"),
        ["there is no time zone `Europe/Berln` in /usr/share/zoneinfo"]
    );
    assert!(told("Europe")[0].ends_with("cannot be read as a file"), "{:?}", told("Europe"));
}

#[test]
fn rules_know_where_they_stand() {
    let text = "virtual_servers: { v: { listen: 127.0.0.1:80, pool: p, policies: [ a, b ] } }\n\
        pools: { p: { members: [ 127.0.0.1:9001 ] } }\npolicies:\n  a:\n    rules:\n      \
        - { name: one, when: 'request.path == \"/a\"', then: [ close ] }\n      - then: [ reset ]\n  \
        b: { rules: [ { when: \"response.status == 404\", then: [ { set_response_header: { A: b } } ] } ] }\n";
    let config = weir_config::parse("folder/weir.yaml", text).config.expect("a configuration");
    let snapshot = config.snapshot(&weir_config::Resolutions::default());
    let places = snapshot.rules.iter().zip(&snapshot.rule_places);
    let told = places.map(|(name, place)| {
        (format!("{}/{}", name.policy, name.rule), place.to_string(), place.when.as_deref())
    });
    let expected = [
        ("a/one", "folder/weir.yaml:6:9", Some("request.path == \"/a\"")),
        ("a/2", "folder/weir.yaml:7:9", None),
        ("b/1", "folder/weir.yaml:8:17", Some("response.status == 404")),
    ];
    let expected = expected.map(|(name, place, when)| (name.to_owned(), place.to_owned(), when));
    assert_eq!(told.collect::<Vec<_>>(), expected);
}
