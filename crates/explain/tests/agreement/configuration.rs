//! Random configurations.

use std::fmt::Write as _;
use std::sync::Arc;

use weir_config::snapshot::{Record, Snapshot, Unjudged, Waf};
use weir_core::policy::WafMode;
use weir_testing::Random;
use weir_waf::body::Limits;
use weir_waf::inspection::CommonTexts;
use weir_waf::plan::{Files, RuleSet, Settings, View};

/// Virtual servers that clients reach: `v0`, `v1`.
pub const SERVERS: usize = 3;

const POOLS: usize = 5;
const POLICIES: usize = 5;
const RULES_MAX: usize = 14;

pub const PATHS: [&str; 6] = ["/a", "/a/b.png", "/cart", "/old/x", "/api/1", "/login"];
pub const HOSTS: [&str; 3] = ["shop.example", "www.shop.example", "other.example"];

const PERSISTENCES: [&str; 6] = [
    "{ type: cookie, name: WEIR }",
    "{ type: source_address, prefix_v4: 24, entries_max: 16 }",
    "{ type: hash, of: \"${request.headers['x-user']}\" }",
    "{ type: cookie, mode: passive, name: SID, fallback: p1 }",
    "{ type: learned, of: \"${request.query['s']}\", entries_max: 16 }",
    "{ type: path_parameter, fallback: p0 }",
];

const RULES: &str = r#"
SecAction "id:1,phase:1,nolog,pass,setvar:tx.inbound_anomaly_score_threshold=5"
SecRule ARGS "@contains attack" "id:2,phase:2,deny,status:403,log,msg:'an attack'"
SecRule REQUEST_HEADERS:User-Agent "@contains bad" "id:3,phase:1,pass,log,msg:'a bad client'"
"#;

struct OneFile;

impl Files for OneFile {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(RULES.into())
    }
}

/// A configuration, and its text.
pub fn draw(random: &mut Random) -> (String, Snapshot) {
    let text = text(random);
    let parsed = weir_config::parse("random.yaml", &text);
    let config = parsed.config.unwrap_or_else(|| panic!("{:#?}\n{text}", parsed.diagnostics));
    let mut snapshot = config.snapshot(&weir_config::Resolutions::default());
    let modes = [WafMode::Block, WafMode::Detect];
    for server in &mut snapshot.virtual_servers {
        if random.percent(50) {
            server.waf = Some(waf(modes[random.below(modes.len())]));
        }
    }
    (text, snapshot)
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
        body_bytes_max: 10_000,
        body_timeout_ms: 60_000,
        cookies: None,
        responses: None,
        work_bytes_max: 1 << 20,
        time_max_ms: 1_000,
        unjudged: Unjudged::Block,
        record: Record::Off,
    })
}

fn text(random: &mut Random) -> String {
    let mut text = String::from("virtual_servers:\n");
    for number in 0..SERVERS {
        let (pool, limits) = (random.below(POOLS), limits(random));
        let mut policies: Vec<String> = (0..POLICIES).map(|it| format!("r{it}")).collect();
        policies.retain(|_| random.percent(60));
        policies.insert(random.below(policies.len() + 1), "over".into());
        let persistence = match random.below(3) {
            0 => String::new(),
            _ => format!(", persistence: p{}", random.below(PERSISTENCES.len())),
        };
        let port = 8_000 + number;
        let policies = policies.join(", ");
        let _ = writeln!(
            text,
            "  v{number}: {{ listen: \"127.0.0.1:{port}\", pool: q{pool}{persistence}, policies: [ {policies} ]{limits}, client_address: {{ x_forwarded_for: append, trust: [ 10.9.0.0/16 ] }} }}"
        );
    }
    let _ = writeln!(text, "  inner: {{ pool: q0, policies: [ last ], persistence: p1 }}");
    text.push_str("persistence:\n");
    for (number, of) in PERSISTENCES.iter().enumerate() {
        let _ = writeln!(text, "  p{number}: {of}");
    }
    text.push_str("pools:\n");
    for number in 0..POOLS {
        pool(number, random, &mut text);
    }
    text.push_str("policies:\n  last: { rules: [ { when: 'request.path == \"/a\"', then: [ { set_header: { X-Inner: \"yes\" } } ] }, { then: [ { pool: q1 } ] } ] }\n");
    text.push_str("  over: { rules: [ { when: 'request.path == \"/cart\" && request.host == \"other.example\"', then: [ { virtual_server: inner } ] } ] }\n");
    for number in 0..POLICIES {
        let strategy = ["first_match", "all_match"][random.below(2)];
        let _ = writeln!(text, "  r{number}:\n    strategy: {strategy}\n    rules:");
        for _ in 0..1 + random.below(RULES_MAX) {
            let (when, then) = (condition(random), actions(random));
            let _ = writeln!(text, "      - {{ when: '{when}', then: [ {then} ] }}");
        }
    }
    text
}

fn pool(number: usize, random: &mut Random, text: &mut String) {
    let balance = [
        "round_robin",
        "least_connections",
        "least_response_time",
        "random_two",
        "source_address",
        "{ hash: \"${request.path}\" }",
    ];
    let balance = balance[random.below(balance.len())];
    let mut members = Vec::new();
    let is_narrow = random.percent(40);
    for member in 0..1 + random.below(4) {
        let mut keys = format!("address: \"10.0.{number}.{member}:80\"");
        if random.percent(30) {
            let _ = write!(keys, ", weight: {}", 1 + random.below(3));
        }
        if is_narrow || random.percent(10) {
            let _ = write!(keys, ", connections_max: {}", 1 + random.below(2));
        }
        if random.percent(15) {
            keys.push_str(", priority: 1");
        }
        members.push(format!("{{ {keys} }}"));
    }
    let queue = if is_narrow && random.percent(70) {
        ", queue: { length_max: 2, timeout: 1s }"
    } else {
        ""
    };
    // Each stands in for none before it: no circle.
    let fallback = match number + 1 < POOLS && random.percent(30) {
        true => format!(", fallback: q{}", number + 1),
        false => String::new(),
    };
    let http2 = if random.percent(20) { ", http2: true" } else { "" };
    let members = members.join(", ");
    let _ = writeln!(
        text,
        "  q{number}: {{ balance: {balance}, members: [ {members} ]{queue}{fallback}{http2} }}"
    );
}

fn limits(random: &mut Random) -> String {
    let per_key = "per_key: [ { key: \"${request.headers['x-user']}\", requests_per_second: 2, burst: 2, entries_max: 16 } ]";
    match random.below(5) {
        0 => ", limits: { requests_per_second: 1, burst: 2 }".into(),
        1 => format!(", limits: {{ {per_key} }}"),
        2 => ", limits: { requests: 2 }".into(),
        _ => String::new(),
    }
}

fn condition(random: &mut Random) -> String {
    let path = PATHS[random.below(PATHS.len())];
    let host = HOSTS[random.below(HOSTS.len())];
    let one = |random: &mut Random| match random.below(9) {
        0 => format!("request.path == \"{path}\""),
        1 => format!("request.path.startsWith(\"{}\")", &path[..2 + random.below(path.len() - 1)]),
        2 => "request.path.endsWith(\".png\")".to_owned(),
        3 => format!("request.host == \"{host}\""),
        4 => "\"x-user\" in request.headers".to_owned(),
        5 => "request.cookies[\"SID\"] != \"\"".to_owned(),
        6 => "request.method == \"POST\"".to_owned(),
        7 => "cidr(\"10.1.0.0/16\").containsIP(client.ip)".to_owned(),
        _ => "request.query[\"s\"].size() > 1".to_owned(),
    };
    let first = one(random);
    match random.below(5) {
        0 => format!("{first} && {}", one(random)),
        1 => format!("{first} || {}", one(random)),
        2 => format!("!({first})"),
        _ => first,
    }
}

fn actions(random: &mut Random) -> String {
    let pool = random.below(POOLS);
    match random.below(24) {
        0..=6 => format!("{{ pool: q{pool} }}"),
        7 => "{ rewrite_path: { regex: \"^/old/(.*)\", to: \"/new/$1\" } }".into(),
        8 => "{ set_header: { X-User-Copy: \"${request.headers['x-user']}\" } }".into(),
        9 => "{ redirect: { to: \"https://new.example${request.target}\", status: 301 } }".into(),
        10 => "{ respond: { status: 410, body: \"gone\" } }".into(),
        11 => "{ set_response_header: { X-Seen: \"yes\" } }".into(),
        12 => format!("{{ persistence: p{} }}", random.below(PERSISTENCES.len())),
        13 => "{ persistence: \"off\" }".into(),
        14 => "{ rate_limit: { key: \"${request.path}\", requests_per_second: 2, burst: 2, entries_max: 16 } }".into(),
        15 => "{ virtual_server: inner }".into(),
        16 => ["close", "reset"][random.below(2)].into(),
        17 => format!("{{ pool: {{ q{pool}: 1, q{}: 2 }} }}", (pool + 1) % POOLS),
        _ => "{ rewrite_query: \"x=${request.method}\" }, { add_header: { X-Seen: again } }".into(),
    }
}
