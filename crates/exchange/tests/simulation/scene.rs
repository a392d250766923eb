//! A small configuration, and its state while it is active.

use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::{Record, Responses, Snapshot, UnjudgedAction, Waf};
use weir_core::clock::Clock;
use weir_core::policy::WafMode;
use weir_exchange::environment::Environment;
use weir_exchange::local::pool::LocalPool;
use weir_exchange::local::table::{LocalServer, LocalTable};
use weir_exchange::shared::live::LiveTable;
use weir_waf::body::Limits;
use weir_waf::inspection::CommonTexts;
use weir_waf::plan::{Files, RuleSet, Settings, View};

/// The time at the start.
pub const BEGINNING_US: u64 = 1_000_000_000;
/// Maximum size of a request body in bytes.
pub const BODY_BYTES_MAX: usize = 32 * 1024;
/// The configuration of the queue.
const LINE: &str = "queue: { length_max: 4, timeout: 5s }";

/// A virtual server of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Forwards requests.
    Plain,
    /// Requests wait in a queue for the members, which have one place each.
    Queue,
    /// One request per second is permitted; others are delayed.
    Delayed,
    /// Relays connections.
    Relay,
    /// Requests are inspected before members receive them.
    Guarded,
    /// Requests are inspected, but members receive them in any case.
    Watched,
    /// Requests and responses are inspected before members and clients receive them.
    Screened,
    /// As [`Self::Screened`], but requests and responses without a verdict are passed on.
    Tolerant,
    /// Requests and responses are inspected, but members and clients receive them in any case.
    Observed,
    /// Text in response bodies is replaced, for which a part of each body is held back. Responses with status 304 are
    /// replaced.
    Rewritten,
    /// A service authorises each request.
    Asked,
    /// A service authorises each request. Another virtual server with its own limits handles it.
    HandedOver,
}

impl Server {
    /// All virtual servers.
    pub const ALL: [Self; 12] = [
        Self::Plain,
        Self::Queue,
        Self::Delayed,
        Self::Relay,
        Self::Guarded,
        Self::Watched,
        Self::Screened,
        Self::Tolerant,
        Self::Observed,
        Self::Rewritten,
        Self::Asked,
        Self::HandedOver,
    ];

    /// Whether requests are inspected.
    pub fn inspects(self) -> bool {
        matches!(
            self,
            Self::Guarded | Self::Watched | Self::Screened | Self::Tolerant | Self::Observed
        )
    }

    /// Whether a client that has ended its sending side behind its request has left, if nothing of its response flows for a while.
    pub fn gives_up_half_closed(self) -> bool {
        matches!(self, Self::Delayed | Self::Screened | Self::Asked)
    }

    /// The name in the configuration, before the version of the members.
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Queue => "queue",
            Self::Delayed => "delayed",
            Self::Relay => "relay",
            Self::Guarded => "guarded",
            Self::Watched => "watched",
            Self::Screened => "screened",
            Self::Tolerant => "tolerant",
            Self::Observed => "observed",
            Self::Rewritten => "rewritten",
            Self::Asked => "asked",
            Self::HandedOver => "entry",
        }
    }
}

/// The active configuration.
pub struct Scene {
    /// State shared by all workers.
    pub live: LiveTable,
    /// The state of the only worker.
    pub table: LocalTable,
}

/// Rules for texts that do not occur in bodies. Each byte of a body may be the start of a match.
const REWRITING: &str = r#"
  rewriting:
    strategy: all_match
    rules:
      - then:
          - set_response_header: { Content-Type: text/html }
          - replace_response_body: { regex: ".{1,8}weirgate", to: "", match_size_max: 64B }
          - replace_response_body: { strings: { weirgatE: "" } }
      - when: response.status == 304
        then: [ { respond: { status: 410, body: "gone" } } ]
"#;

/// The authorisation service.
const PORTAL: &str =
    "  portal: { type: external, pool: service, add_headers: X-User, timeout: 3s }\n";

thread_local! {
    static SNAPSHOT: Arc<Snapshot> = Arc::new(snapshot());
}

fn snapshot() -> Snapshot {
    let http =
        "http: { half_closed: wait, http2: true, request_trailers: forward, body_size_max: 32KiB }";
    let leaves = http.replace("half_closed: wait, ", "");
    let places = |first: u8| {
        let member = |host| format!("{{ address: \"10.0.0.{host}:80\", connections_max: 1 }}");
        format!("members: [ {}, {} ]", member(first), member(first + 1))
    };
    let free =
        |first: u8| format!("members: [ \"10.0.0.{first}:80\", \"10.0.0.{}:80\" ]", first + 1);
    let rate = "requests_per_second: 1, burst: 1, exceed: delay, delay_max: 1h, entries_max: 16";
    let delay = format!("limits: {{ per_key: [ {{ key: \"${{request.host}}\", {rate} }} ] }}");
    let places_at_a_time = "limits: { requests: 9, per_key: [ { key: \"${request.host}\", requests: 9, entries_max: 16 } ] }";
    let (mut servers, mut pools, mut over) = (String::new(), String::new(), String::new());
    for (version, http2) in [(1, "false"), (2, "true")] {
        let retries = "retries: 2, retry_on: [ 503 ], retry_budget: { per_second_min: 100000 }";
        let first = 10 * version;
        for (name, rest) in [
            ("plain", format!("pool: plain{version}, {http}")),
            ("queue", format!("pool: queue{version}, {http}")),
            ("delayed", format!("pool: plain{version}, {leaves}, {delay}")),
            ("relay", format!("type: tcp, pool: queue{version}")),
            ("guarded", format!("pool: queue{version}, {http}, {delay}")),
            ("watched", format!("pool: queue{version}, {http}")),
            ("screened", format!("pool: queue{version}, {leaves}")),
            ("tolerant", format!("pool: queue{version}, {http}")),
            ("observed", format!("pool: plain{version}, {http}")),
            ("rewritten", format!("pool: plain{version}, {http}, policies: [ rewriting ]")),
            ("asked", format!("pool: plain{version}, {leaves}, authenticate: portal")),
            (
                "entry",
                format!(
                    "pool: queue{version}, {http}, authenticate: portal, policies: [ over{version} ], {places_at_a_time}"
                ),
            ),
        ] {
            let port = servers.len() + 1;
            let listen = format!("listen: \"127.0.0.1:{port}\"");
            servers.push_str(&format!("  {name}{version}: {{ {listen}, {rest} }}\n"));
        }
        let http = "http: { half_closed: wait, request_trailers: forward, body_size_max: 32KiB }";
        servers.push_str(&format!(
            "  inner{version}: {{ pool: queue{version}, {http}, {places_at_a_time} }}\n"
        ));
        over.push_str(&format!("  over{version}: {{ rules: [ {{ then: [ {{ set_header: {{ X-Entered: yes }} }}, {{ virtual_server: inner{version} }} ] }} ] }}\n"));
        let (plain, queue) = (free(first), places(first + 2));
        pools.push_str(&format!("  plain{version}: {{ http2: {http2}, {retries}, {plain} }}\n"));
        pools.push_str(&format!(
            "  queue{version}: {{ http2: {http2}, {retries}, {LINE}, {queue} }}\n"
        ));
    }
    pools.push_str("  service: { members: [ 10.0.0.99:80 ] }\n");
    let text = format!(
        "virtual_servers:\n{servers}pools:\n{pools}policies:\n{REWRITING}\n{over}\nauthentication:\n{PORTAL}"
    );
    let parsed = weir_config::parse("simulation.yaml", &text);
    let config = parsed.config.unwrap_or_else(|| panic!("{:#?}\n{text}", parsed.diagnostics));
    let mut snapshot = config.snapshot(&weir_config::Resolutions::default());
    inspect(&mut snapshot);
    snapshot
}

/// Has virtual servers inspect requests and responses.
fn inspect(snapshot: &mut Snapshot) {
    let (guarded, watched) = (waf(WafMode::Block), waf(WafMode::Detect));
    let with_responses = |waf: &Waf, unjudged| {
        let (bytes_max, types) = (JUDGED_RESPONSE_BYTES_MAX, Vec::new());
        let responses = Some(Arc::new(Responses { bytes_max, types }));
        Some(Arc::new(Waf { responses, unjudged, ..waf.clone() }))
    };
    for server in &mut snapshot.virtual_servers {
        server.waf = match &*server.name {
            "guarded1" | "guarded2" => Some(Arc::clone(&guarded)),
            "watched1" | "watched2" => Some(Arc::clone(&watched)),
            "screened1" | "screened2" => with_responses(&guarded, UnjudgedAction::Block),
            "tolerant1" | "tolerant2" => with_responses(&guarded, UnjudgedAction::Pass),
            "observed1" | "observed2" => with_responses(&watched, UnjudgedAction::Block),
            _ => None,
        };
    }
}

/// Rules that require whole bodies of requests, and of short responses.
const RULES: &str = r#"
SecAction "id:1,phase:1,nolog,pass,ctl:forceRequestBodyVariable=On"
SecRule REQUEST_URI "@rx 7$" "id:2,phase:1,deny,status:403"
SecRule REQUEST_BODY_LENGTH "@eq 200" "id:3,phase:2,deny,status:403"
SecRule RESPONSE_CONTENT_LENGTH "@eq 200" "id:4,phase:3,deny,status:403"
SecRule RESPONSE_BODY "@eq 200" "id:5,phase:4,t:length,deny,status:403"
"#;

/// Maximum size of an inspected body in bytes.
pub const JUDGED_BYTES_MAX: usize = 10_000;
/// Maximum number of inspected bytes of a response.
const JUDGED_RESPONSE_BYTES_MAX: usize = 5_000;

struct OneFile;

impl Files for OneFile {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(RULES.into())
    }
}

fn waf(mode: WafMode) -> Arc<Waf> {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut OneFile).expect("sound rules");
    let view = View::new(Arc::new(rules), &Settings::default()).expect("nothing is absent");
    Arc::new(Waf {
        mode,
        common: Arc::new(CommonTexts::new(Arc::new(view))),
        checks: None,
        profile: None,
        exclusions: Vec::new(),
        limits: Limits::DEFAULT,
        body_bytes_max: JUDGED_BYTES_MAX as u64,
        files_bytes_max: 0,
        body_timeout_ms: 60_000,
        cookies: None,
        responses: None,
        work_bytes_max: 1 << 20,
        time_max_ms: 1_000,
        unjudged: UnjudgedAction::Block,
        record: Record::Off,
    })
}

impl Scene {
    /// The initial state.
    pub fn new() -> Self {
        let clock = Clock::at_us(BEGINNING_US);
        let outside = Environment { clock, fill_randomly: |bytes| bytes.fill(7) };
        let live = LiveTable::build(SNAPSHOT.with(Arc::clone), None, 1, &outside);
        live.enter_into_force(clock.now_ms());
        let table = LocalTable::new(&live, None, 0);
        Self { live, table }
    }

    /// The virtual server of this kind, with members that use HTTP/1 or HTTP/2.
    pub fn server(&self, server: Server, has_http2_members: bool) -> &Rc<LocalServer> {
        let version = if has_http2_members { 2 } else { 1 };
        let name = format!("{}{version}", server.name());
        self.table.server(&name).expect("the configuration has it")
    }

    /// All pools.
    pub fn pools(&self) -> Vec<Rc<LocalPool>> {
        self.table.pools().iter().map(|pool| pool.now()).collect()
    }
}
