//! A weir with a large random configuration, its members, and what it tells.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};
use weir_testing::Random;
use weir_testing::configurations::{Request, Shape, WAF_RULES, configuration};
use weir_tests::STEP_TIMEOUT;
use weir_tests::client::Client;
use weir_tests::http2::Peer;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

/// Number of virtual servers with an address.
pub const SERVERS: usize = 40;

/// Number of pools, and of policies. The policies have about 300 rules.
const POOLS: usize = 40;

/// A rate that gives nothing back during the test, so that an explanation still holds when its request comes.
const RATE: &str = "requests_per_second: 1/h, burst: 40";

/// The result for the client.
#[derive(Debug, Default)]
pub struct Seen {
    /// The status; `None`: no response.
    pub status: Option<u16>,
    /// The body.
    pub body: String,
}

/// A weir with a large random configuration.
pub struct Bed {
    admin: Client,
    servers: Vec<Lease>,
    members: Vec<(usize, Member)>,
    log: BufReader<File>,
    /// The id of the last request.
    last: String,
    /// The last persistence cookie of weir, for a later request.
    pub cookie: Option<String>,
    proxy: Proxy,
    _files: TempDir,
}

impl Bed {
    /// Starts it.
    pub fn new(random: &mut Random) -> Self {
        let files = TempDir::new("explained");
        let (rules, log) = (files.write("rules.conf", WAF_RULES), files.write("access.log", ""));
        let servers: Vec<Lease> = (0..SERVERS).map(|_| Lease::new()).collect();
        let (mut members, mut calls) = (Vec::new(), 0);
        let mut shape = Shape {
            servers: SERVERS,
            pools: POOLS,
            policies: POOLS,
            rate: RATE,
            has_http2_members: false,
            before_inner: "{ waf: \"off\" }, ",
            listen: &mut |number| servers[number].address().to_string(),
            member: &mut |pool, _| {
                members.push((pool, member()));
                members[members.len() - 1].1.address().to_string()
            },
            further: &mut |random| {
                calls += 1;
                let waf = |mode| format!("waf: {{ mode: {mode}, rules: [ {} ] }}", rules.display());
                // Requests are handed to `inner` without an inspection before.
                if calls > SERVERS {
                    return format!(", {}", waf("block"));
                }
                let waf = waf(["block", "detect", "\"off\""][random.below(3)]);
                format!(", http: {{ http2: true }}, {waf}")
            },
        };
        let text = configuration(&mut shape, random);
        let proxy = Proxy::start(&Setup::new(&[]).admin_socket());
        let before = proxy.reloads("success");
        proxy.reload_text(&format!(
            "admin: {{ listen: \"{}\" }}\nlog: {{ access: {{ to: {}, format: json }}, waf: {{ to: {} }} }}\n\
             recent_requests: {{ keep: 20, slow: \"off\" }}\n{text}",
            proxy.admin_address(),
            log.display(),
            files.path().join("waf.log").display(),
        ));
        weir_tests::eventually("the large configuration is in force", STEP_TIMEOUT, || {
            proxy.reloads("success") > before
        });
        let log = BufReader::new(File::open(log).expect("the access log"));
        let admin = proxy.admin_client();
        Self {
            proxy,
            admin,
            servers,
            members,
            log,
            last: String::new(),
            cookie: None,
            _files: files,
        }
    }

    /// Asks the admin listener. Returns the status and the answer.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.admin.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let response = self.admin.response();
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// Drains a member, or puts one back into service. The connection to the admin listener is a new one: each lives for a
    /// while only.
    pub fn change_a_member(&mut self, random: &mut Random) {
        self.admin = self.proxy.admin_client();
        let (pool, member) = &self.members[random.below(self.members.len())];
        let path = format!("/v1/pools/q{pool}/members/{}/state", member.address());
        let state = ["drain", "disabled", "enabled", "enabled"][random.below(4)];
        let (status, answer) = self.ask("PUT", &path, &json!({ "state": state, "last": true }));
        assert_eq!(status, 200, "{answer:#}");
    }

    /// The explanation of a request that comes next.
    pub fn explain(&mut self, server: usize, request: &Request) -> Value {
        let Request { path, query, method, headers, body, is_http2, .. } = request;
        let asked = json!({
            "url": format!("http://{}{path}{query}", self.servers[server].address()),
            "method": method,
            "headers": headers,
            "body": body,
            "from": source(request),
            "http2": is_http2,
        });
        let (status, explained) = self.ask("POST", "/v1/explain", &asked);
        assert_eq!(status, 200, "{asked:#} {explained:#}");
        explained
    }

    /// Sends a request.
    pub fn send(&mut self, server: usize, request: &Request) -> Seen {
        let address = self.servers[server].address();
        let (seen, cookie) = match request.is_http2 {
            true => send_http2(address, request),
            false => send_http1(address, request),
        };
        let pair = cookie.as_deref().and_then(|field| field.split(';').next());
        self.cookie = pair.map(str::to_owned);
        seen
    }

    /// Waits until the last request is recorded. Returns its id.
    pub fn recorded(&mut self) -> String {
        let before = self.last.clone();
        weir_tests::eventually("the request is recorded", STEP_TIMEOUT, || {
            let (_, list) = self.ask("GET", "/v1/requests?limit=1", &Value::Null);
            self.last = list["items"][0]["id"].as_str().unwrap_or_default().to_owned();
            self.last != before && !self.last.is_empty()
        });
        self.last.clone()
    }

    /// The next lines of the access log, by the ids of their requests.
    pub fn log_lines(&mut self, count: usize) -> HashMap<String, Value> {
        let (mut lines, mut text) = (HashMap::new(), String::new());
        weir_tests::eventually("the access log has its lines", STEP_TIMEOUT, || {
            while self.log.read_line(&mut text).expect("the access log") > 0 && text.ends_with('\n')
            {
                let line: Value = serde_json::from_str(&text).expect("a line of JSON");
                lines.insert(line["request_id"].as_str().expect("an id").to_owned(), line);
                text.clear();
            }
            lines.len() >= count
        });
        lines
    }

    /// The record of a request, with the second decision about it.
    pub fn why(&mut self, id: &str) -> Value {
        let (status, why) =
            self.ask("GET", &format!("/v1/requests/{id}/explanation"), &Value::Null);
        assert_eq!(status, 200, "{why:#}");
        why
    }
}

/// A member that answers with its address and the request line.
fn member() -> Member {
    Member::new(|exchange| {
        let address = exchange.stream().local_addr()?;
        let text = format!("{address}\n{}", exchange.request.head.start);
        exchange.answer(text)
    })
}

/// The source of a request's connection.
fn source(request: &Request) -> IpAddr {
    match request.is_http2 {
        true => IpAddr::from([127, 0, 0, 1]),
        false => IpAddr::from(request.from),
    }
}

fn method(request: &Request) -> &'static str {
    let usual = if request.body.is_some() { "POST" } else { "GET" };
    request.method.unwrap_or(usual)
}

fn send_http1(address: SocketAddr, request: &Request) -> (Seen, Option<String>) {
    let Request { path, query, headers, body, .. } = request;
    let length = body.map(|body| format!("Content-Length: {}\r\n", body.len()));
    let mut client = Client::connect_from(address, source(request));
    client.send(format!(
        "{} {path}{query} HTTP/1.1\r\n{}\r\n{}\r\n{}",
        method(request),
        headers.join("\r\n"),
        length.unwrap_or_default(),
        body.unwrap_or_default()
    ));
    let Ok(response) = client.try_response(false) else { return (Seen::default(), None) };
    let cookie = response.head.field("set-cookie").map(str::to_owned);
    (Seen { status: Some(response.status), body: response.text() }, cookie)
}

fn send_http2(address: SocketAddr, request: &Request) -> (Seen, Option<String>) {
    let Request { path, query, headers, body, .. } = request;
    let target = format!("{path}{query}");
    let mut lines = vec![
        (":method".to_owned(), method(request)),
        (":scheme".into(), "http"),
        (":path".into(), &target),
    ];
    for line in headers {
        let (name, value) = line.split_once(": ").expect("a header line");
        let name = name.to_ascii_lowercase();
        lines.push((if name == "host" { ":authority".into() } else { name }, value));
    }
    // Pseudo-header fields come first.
    lines.sort_by_key(|(name, _)| !name.starts_with(':'));
    let length = body.map(|body| body.len().to_string());
    lines.extend(length.iter().map(|length| ("content-length".to_owned(), &**length)));
    let lines: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (&**name, *value)).collect();
    let mut peer = Peer::connect(address);
    let stream = peer.new_stream();
    peer.headers(stream, &lines, body.is_none());
    if let Some(body) = body {
        peer.data(stream, body.as_bytes(), true);
    }
    let is_over = |peer: &Peer| {
        peer.closed || peer.streams.get(&stream).is_some_and(|it| it.ended || it.reset.is_some())
    };
    peer.pump_until("a response, or an end", is_over);
    let Some(message) = peer.streams.get(&stream).filter(|it| it.ended && it.reset.is_none())
    else {
        return (Seen::default(), None);
    };
    let cookie = message.field("set-cookie").map(str::to_owned);
    (Seen { status: Some(message.status()), body: message.text() }, cookie)
}
