//! Random configurations, as text, and random requests to them.

use std::fmt::Write as _;

use crate::Random;

const RULES_MAX: usize = 14;

const PATHS: [&str; 6] = ["/a", "/a/b.png", "/cart", "/old/x", "/api/1", "/login"];
const HOSTS: [&str; 3] = ["shop.example", "www.shop.example", "other.example"];

/// Sources of connections: the first one is in a network that rules ask for, the second one is a trusted proxy.
const SOURCES: [[u8; 4]; 4] = [[127, 1, 0, 1], [127, 9, 0, 2], [127, 2, 0, 1], [127, 3, 0, 1]];

const PERSISTENCES: [&str; 6] = [
    "{ type: cookie, name: WEIR }",
    "{ type: source_address, prefix_v4: 24, entries_max: 16 }",
    "{ type: hash, of: \"${request.headers['x-user']}\" }",
    "{ type: cookie, mode: passive, name: SID, fallback: p1 }",
    "{ type: learned, of: \"${request.query['s']}\", entries_max: 16 }",
    "{ type: path_parameter, fallback: p0 }",
];

/// Rules of a web application firewall that find something in some of the requests.
pub const WAF_RULES: &str = r#"
SecAction "id:1,phase:1,nolog,pass,setvar:tx.inbound_anomaly_score_threshold=5"
SecRule ARGS "@contains attack" "id:2,phase:2,deny,status:403,log,msg:'an attack'"
SecRule REQUEST_HEADERS:User-Agent "@contains bad" "id:3,phase:1,pass,log,msg:'a bad client'"
"#;

/// The size of a random configuration, and its addresses.
pub struct Shape<'a> {
    /// Number of virtual servers with an address: `v0`, `v1` and so on. `inner` has none: rules hand requests over to it.
    pub servers: usize,
    /// Number of pools, at least 2.
    pub pools: usize,
    /// Number of policies with random rules, at least 3.
    pub policies: usize,
    /// The rate of limits: keys and values.
    pub rate: &'a str,
    /// Whether some pools speak HTTP/2.
    pub has_http2_members: bool,
    /// The address of a virtual server.
    pub listen: &'a mut dyn FnMut(usize) -> String,
    /// The address of a member, by the number of its pool and its own.
    pub member: &'a mut dyn FnMut(usize, usize) -> String,
    /// Actions before each hand-over to `inner`: empty, or with a comma behind.
    pub before_inner: &'a str,
    /// Further keys of a virtual server: empty, or beginning with a comma. The last call is for `inner`.
    pub further: &'a mut dyn FnMut(&mut Random) -> String,
}

/// The text of a random configuration, from `virtual_servers` to `policies`.
pub fn configuration(shape: &mut Shape<'_>, random: &mut Random) -> String {
    let mut text = String::from("virtual_servers:\n");
    for number in 0..shape.servers {
        let (pool, limits) = (random.below(shape.pools), limits(shape, random));
        let mut policies: Vec<String> = (0..shape.policies).map(|it| format!("r{it}")).collect();
        // Three on average, whatever there are.
        policies.retain(|_| random.below(shape.policies) < 3);
        policies.insert(random.below(policies.len() + 1), "over".into());
        let persistence = match random.below(3) {
            0 => String::new(),
            _ => format!(", persistence: p{}", random.below(PERSISTENCES.len())),
        };
        let listen = (shape.listen)(number);
        let further = (shape.further)(random);
        let policies = policies.join(", ");
        let _ = writeln!(
            text,
            "  v{number}: {{ listen: \"{listen}\", pool: q{pool}{persistence}, policies: [ {policies} ]{limits}, client_address: {{ x_forwarded_for: append, trust: [ 127.9.0.0/16 ] }}{further} }}"
        );
    }
    let further = (shape.further)(random);
    let _ = writeln!(text, "  inner: {{ pool: q0, policies: [ last ], persistence: p1{further} }}");
    text.push_str("persistence:\n");
    for (number, of) in PERSISTENCES.iter().enumerate() {
        let _ = writeln!(text, "  p{number}: {of}");
    }
    text.push_str("pools:\n");
    for number in 0..shape.pools {
        pool(number, shape, random, &mut text);
    }
    text.push_str("policies:\n  last: { rules: [ { when: 'request.path == \"/a\"', then: [ { set_header: { X-Inner: \"yes\" } } ] }, { then: [ { pool: q1 } ] } ] }\n");
    let inner = format!("{}{{ virtual_server: inner }}", shape.before_inner);
    let _ = writeln!(
        text,
        "  over: {{ rules: [ {{ when: 'request.path == \"/cart\" && request.host == \"other.example\"', then: [ {inner} ] }} ] }}"
    );
    for number in 0..shape.policies {
        let strategy = ["first_match", "all_match"][random.below(2)];
        let _ = writeln!(text, "  r{number}:\n    strategy: {strategy}\n    rules:");
        for _ in 0..1 + random.below(RULES_MAX) {
            let (when, then) = (condition(random), actions(shape, random));
            let _ = writeln!(text, "      - {{ when: '{when}', then: [ {then} ] }}");
        }
    }
    text
}

fn pool(number: usize, shape: &mut Shape<'_>, random: &mut Random, text: &mut String) {
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
        let mut keys = format!("address: \"{}\"", (shape.member)(number, member));
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
    let fallback = match number + 1 < shape.pools && random.percent(30) {
        true => format!(", fallback: q{}", number + 1),
        false => String::new(),
    };
    let is_http2 = shape.has_http2_members && random.percent(20);
    let http2 = if is_http2 { ", http2: true" } else { "" };
    let members = members.join(", ");
    let _ = writeln!(
        text,
        "  q{number}: {{ balance: {balance}, members: [ {members} ]{queue}{fallback}{http2} }}"
    );
}

fn limits(shape: &Shape<'_>, random: &mut Random) -> String {
    let rate = shape.rate;
    let per_key = format!(
        "per_key: [ {{ key: \"${{request.headers['x-user']}}\", {rate}, entries_max: 16 }} ]"
    );
    match random.below(5) {
        0 => format!(", limits: {{ {rate} }}"),
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
        7 => "cidr(\"127.1.0.0/16\").containsIP(client.ip)".to_owned(),
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

fn actions(shape: &Shape<'_>, random: &mut Random) -> String {
    let pool = random.below(shape.pools);
    let rate = shape.rate;
    match random.below(24) {
        0..=6 => format!("{{ pool: q{pool} }}"),
        7 => "{ rewrite_path: { regex: \"^/old/(.*)\", to: \"/new/$1\" } }".into(),
        8 => "{ set_header: { X-User-Copy: \"${request.headers['x-user']}\" } }".into(),
        9 => "{ redirect: { to: \"https://new.example${request.target}\", status: 301 } }".into(),
        10 => "{ respond: { status: 410, body: \"gone\" } }".into(),
        11 => "{ set_response_header: { X-Seen: \"yes\" } }".into(),
        12 => format!("{{ persistence: p{} }}", random.below(PERSISTENCES.len())),
        13 => "{ persistence: \"off\" }".into(),
        14 => {
            format!("{{ rate_limit: {{ key: \"${{request.path}}\", {rate}, entries_max: 16 }} }}")
        }
        15 => format!("{}{{ virtual_server: inner }}", shape.before_inner),
        16 => ["close", "reset"][random.below(2)].into(),
        17 => format!("{{ pool: {{ q{pool}: 1, q{}: 2 }} }}", (pool + 1) % shape.pools),
        _ => "{ rewrite_query: \"x=${request.method}\" }, { add_header: { X-Seen: again } }".into(),
    }
}

/// A random request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The path, with parameters.
    pub path: String,
    /// The query, with its question mark, or empty.
    pub query: &'static str,
    /// The method; `None`: the usual one.
    pub method: Option<&'static str>,
    /// Header lines without line ends; one of them is `Host`.
    pub headers: Vec<String>,
    /// The body, of the type of forms.
    pub body: Option<&'static str>,
    /// The source of its connection.
    pub from: [u8; 4],
    /// Whether it comes by HTTP/2.
    pub is_http2: bool,
}

/// Draws a request. `cookie`: a pair of weir's own, which some requests have.
pub fn request(cookie: Option<String>, random: &mut Random) -> Request {
    let path = PATHS[random.below(PATHS.len())];
    let query = ["", "", "?s=ab", "?q=attack", "?s=cd&q=x"][random.below(5)];
    let parameter = ["", "", "", ";jsessionid=abcdef"][random.below(4)];
    let mut headers = Vec::new();
    if random.percent(50) {
        headers.push(format!("X-User: {}", ["ann", "bob", "eve"][random.below(3)]));
    }
    if random.percent(30) {
        headers.push("Cookie: SID=0123456789; theme=dark".into());
    }
    if random.percent(40) {
        headers.extend(cookie.map(|pair| format!("Cookie: {pair}")));
    }
    if random.percent(20) {
        headers.push("User-Agent: bad".into());
    }
    if random.percent(20) {
        headers.push("X-Forwarded-For: 127.1.2.3, 127.9.0.1".into());
    }
    headers.push(format!("Host: {}", HOSTS[random.below(HOSTS.len())]));
    let body = random.percent(20).then(|| ["a=b", "a=attack"][random.below(2)]);
    if body.is_some() {
        headers.push("Content-Type: application/x-www-form-urlencoded".into());
    }
    Request {
        path: format!("{path}{parameter}"),
        query,
        method: random.percent(10).then_some("PUT"),
        headers,
        body,
        from: SOURCES[random.below(SOURCES.len())],
        is_http2: random.percent(20),
    }
}
