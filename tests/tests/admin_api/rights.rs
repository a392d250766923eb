//! What callers of each role may see and change: no role but admin sees values of the configuration, nobody sees secrets of
//! requests, and only someone on this host introduces programs, files and sockets, or moves the audit log.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use weir_tests::client::{Client, Response};
use weir_tests::member::Member;
use weir_tests::otlp::Collector;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually};

use super::open::new_token;

/// A weir with a unix socket and a loopback address for its admin listener, and a user for each role.
struct Roles {
    proxy: Proxy,
    member: Member,
    lease: Lease,
    files: TempDir,
    users: String,
}

impl Roles {
    fn start() -> Self {
        let member = Member::echo();
        let (lease, files) = (Lease::new(), TempDir::new("rights"));
        // The place of the versions is that of the start.
        let state = format!("state_dir: {}", files.path().join("state").display());
        let setup = Setup::new(&[member.address()]).top(&state).admin_socket();
        let proxy = Proxy::start(&setup);
        let roles = ["read", "operate", "admin"];
        let users = roles.map(|role| new_token(&files.path().join(role), role, role)).concat();
        Self { proxy, member, lease, files, users }
    }

    fn path(&self, name: &str) -> String {
        self.files.path().join(name).to_string_lossy().into_owned()
    }

    /// The configuration: its admin listeners, logs, and these further lines.
    fn yaml(&self, server: &str, more: &str) -> String {
        format!(
            "state_dir: {}\nadmin:\n  listen: [ \"{}\", \"{}\" ]\n  users:\n{}\
             log:\n  access: {{ format: \"off\" }}\n  audit: {{ to: {} }}\n  waf: {{ to: {}, record: all }}\n\
             recent_requests: {{ sample: 100% }}\n\
             virtual_servers: {{ main: {{ listen: \"{}\", pool: members, {server} }} }}\n{more}",
            self.path("state"),
            self.proxy.admin_address(),
            self.lease.address(),
            self.users,
            self.path("audit.log"),
            self.path("waf.log"),
            self.proxy.address(),
        )
    }

    fn reload(&self, yaml: &str) {
        let before = self.proxy.reloads("success");
        self.proxy.reload_text(yaml);
        eventually("the configuration is in force", STEP_TIMEOUT, || {
            self.proxy.reloads("success") > before
        });
    }

    /// An answer of the admin listener. `role`: whose token is sent; `None`: none, over loopback.
    fn ask(&self, role: Option<&str>, path: &str, document: Option<&Value>) -> Response {
        let token = role.map(|role| {
            let token = std::fs::read_to_string(self.path(role)).expect("the token");
            format!("Authorization: Bearer {}\r\n", token.trim())
        });
        let mut client = Client::connect(self.lease.address());
        send(&mut client, &token.unwrap_or_default(), path, document)
    }

    /// An answer over the unix socket.
    fn ask_socket(&self, path: &str, document: Option<&Value>) -> Response {
        let socket = self.proxy.admin_address();
        let path_of_socket = socket.strip_prefix("unix:").expect("a socket");
        send(&mut Client::connect_unix(Path::new(path_of_socket)), "", path, document)
    }

    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

fn send(client: &mut Client, fields: &str, path: &str, document: Option<&Value>) -> Response {
    let body = document.map_or_else(String::new, Value::to_string);
    let (method, length) = match document {
        None => ("GET", String::new()),
        Some(_) => (
            "POST",
            format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()),
        ),
    };
    client
        .send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}{length}\r\n{body}"));
    client.response()
}

/// A text that is recognized in any output.
fn marked(number: usize) -> String {
    format!("Marked{number:02}Secret")
}

/// The bytes of a text in base64; other texts give bytes without a meaning.
fn from_base64(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

/// The marks in a text, and in the base64 texts in it.
fn marks_in(text: &str) -> Vec<String> {
    let mut found: Vec<String> =
        (0..100).map(marked).filter(|mark| text.contains(&**mark)).collect();
    for word in text.split('"').filter(|word| word.len() >= 16) {
        let text = String::from_utf8_lossy(&from_base64(word)).into_owned();
        found.extend((0..100).map(marked).filter(|mark| text.contains(&**mark)));
    }
    found
}

/// Names of arguments with secrets.
const NAMES: [&str; 11] = [
    "password",
    "pass",
    "_pass",
    "passphrase",
    "otp",
    "jwt",
    "sid",
    "kennwort",
    "credential",
    "private_key",
    "sig",
];

/// Puts marked secrets into the configuration, in its files and by changes.
fn configure(roles: &Roles) {
    let mark = marked;
    let member = roles.member.address();
    let monitors = |from: usize| {
        format!(
            "[ {{ type: http, path: \"/h?token={}\", headers: {{ X-Auth-Key: {} }} }}, \
             {{ type: tcp, send: \"AUTH {}\", receive: {} }}, {{ type: redis, password: {} }}, \
             {{ type: script, command: [ /bin/false, {} ] }}, {{ type: ldap, user: {}, password: {} }} ]",
            mark(from),
            mark(from + 1),
            mark(from + 2),
            mark(from + 3),
            mark(from + 4),
            mark(from + 5),
            mark(from + 6),
            mark(from + 7)
        )
    };
    let rule = |from: usize| {
        format!(
            "{{ name: keyed, when: \"request.headers['x-k'] == '{}'\", then: [ {{ set_header: {{ X-Upstream-Key: {} }} }} ] }}",
            mark(from),
            mark(from + 1)
        )
    };
    let more = format!(
        "policies: {{ keyed: {{ rules: [ {} ] }} }}\n\
         data_sets: {{ keys: {{ type: strings, items: [ {} ] }} }}\n\
         authentication: {{ portal: {{ type: external, pool: service, request_headers: [ X-Who ] }} }}\n\
         tracing: {{ otlp: \"http://127.0.0.1:1/{}\", headers: {{ X-Team: {} }} }}\n\
         pools:\n  members: {{ members: [ \"{member}\" ] }}\n  service: {{ members: [ \"{member}\" ] }}\n  \
         probed: {{ members: [ \"{member}\" ], monitors: {} }}\n",
        rule(0),
        mark(2),
        mark(3),
        mark(4),
        monitors(10)
    );
    let server = "authenticate: portal, policies: [ keyed ], waf: { mode: detect }";
    roles.reload(&roles.yaml(server, &more));
    let changes = json!({ "comment": "with secrets", "changes": [
        { "op": "set", "path": "/policies/keyed", "value": { "rules": [ {
            "name": "keyed", "when": format!("request.headers['x-k'] == '{}'", mark(20)),
            "then": [ { "set_header": { "X-Upstream-Key": mark(21) } } ] } ] } },
        { "op": "set", "path": "/tracing/headers/X-Team", "value": mark(22) },
        { "op": "set", "path": "/pools/more", "value": { "members": [ member.to_string() ], "monitors": [
            { "type": "http", "path": format!("/h?token={}", mark(23)), "headers": { "X-Auth-Key": mark(24) } },
            { "type": "script", "command": [ "/bin/false", mark(25) ] } ] } },
    ] });
    let made = roles.ask_socket("/v1/changes", Some(&changes));
    assert!(matches!(made.status, 200 | 202), "{}", made.text());
    let wrong =
        json!({ "changes": [ { "op": "set", "path": "/pools/more/retries", "value": mark(26) } ] });
    assert_eq!(roles.ask_socket("/v1/changes", Some(&wrong)).status, 409);
}

/// Sends requests with marked secrets in each place.
fn send_secrets(roles: &Roles) {
    let mark = marked;
    for (index, name) in NAMES.iter().enumerate() {
        let secret = mark(30 + index);
        let fields = format!(
            "Host: a.example\r\nUser-Agent: a\r\nAccept: */*\r\nAuthorization: Bearer {secret}\r\n\
             Cookie: c={secret}\r\nX-Who: {secret}\r\nX-Api-Key: {secret}\r\nReferer: http://a/?{name}={secret}\r\n"
        );
        let query =
            format!("GET /a;jsessionid={secret}/b?{name}={secret}&q=1 HTTP/1.1\r\n{fields}\r\n");
        roles.proxy.client().send(query).response().assert_status(200);
        for (kind, body) in [
            ("application/x-www-form-urlencoded", format!("q=1&{name}={secret}")),
            (
                "application/x-www-form-urlencoded",
                format!("q=1&{name}=1' UNION SELECT {secret} FROM users--"),
            ),
            ("application/json", json!({ "user": { *name: secret } }).to_string()),
        ] {
            let length = body.len();
            let head = format!(
                "POST /login HTTP/1.1\r\n{fields}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            roles.proxy.client().send(head).response().assert_status(200);
        }
    }
}

/// An attack beside a secret, so that the firewall tells the value.
const ATTACK: &str = "1' UNION SELECT a FROM users--";

/// Sends requests with marked secrets within other values. Returns how many.
fn send_secrets_within(roles: &Roles) -> usize {
    let mark = marked;
    let mut sent = 0;
    let mut send = |target: &str, field: &str, (kind, body): (&str, String)| {
        let (method, length) = (if body.is_empty() { "GET" } else { "POST" }, body.len());
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: a\r\nAccept: */*\r\n{field}\
             Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        roles.proxy.client().send(request).response().assert_status(200);
        sent += 1;
    };
    let form =
        |value: &str| ("application/x-www-form-urlencoded", format!("q=1&d={}", quoted(value)));
    let none = || ("text/plain", String::new());
    for (index, name) in
        ["password", "pincode", "sms_code", "mdp", "пароль", "密码"].iter().enumerate()
    {
        let secret = mark(50 + index);
        let json = json!({ *name: &secret, "q": ATTACK }).to_string();
        let nested = json!({ "d": &json }).to_string();
        for document in [
            &json,
            &nested,
            &format!("<a><{name}>{secret}</{name}><b>{ATTACK}</b></a>"),
            &format!("<a b=\"{ATTACK}\" {name}=\"{secret}\"/>"),
            &json!([{ "name": name, "value": &secret }, { "name": "q", "value": ATTACK }])
                .to_string(),
            &format!("mutation {{ login(q: \"{ATTACK}\", {name}: \"{secret}\") {{ id }} }}"),
            &format!("q: {ATTACK}\n{name}: {secret}"),
            &format!("http://bob:{secret}@h/?q={ATTACK}"),
        ] {
            send("/x", "", form(document));
            send(&format!("/x?a=1&d={}", quoted(document)), "", none());
            send("/x", &format!("X-Meta: {}\r\n", document.replace('\n', " ")), none());
            send("/x", &format!("Referer: http://h/?d={}\r\n", quoted(document)), none());
            send("/x", "", ("application/json", json!({ "query": document }).to_string()));
        }
    }
    sent
}

/// The text percent-encoded.
fn quoted(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn no_role_sees_secrets_of_the_configuration_or_of_requests() {
    let roles = Roles::start();
    configure(&roles);
    send_secrets(&roles);
    let within = send_secrets_within(&roles);
    let recorded = || {
        let all = roles.ask(Some("operate"), "/v1/requests?limit=1000", None).text();
        let all: Value = serde_json::from_str(&all).expect("JSON");
        all["items"].as_array().cloned().unwrap_or_default()
    };
    eventually("all requests are recorded", STEP_TIMEOUT, || {
        recorded().len() >= NAMES.len() * 4 + within
    });
    let waf_log = || std::fs::read_to_string(roles.path("waf.log")).unwrap_or_default();
    eventually("the WAF log has the requests", STEP_TIMEOUT, || {
        waf_log().lines().count() >= NAMES.len() * 4 + within
    });
    assert_eq!(marks_in(&waf_log()), Vec::<String>::new());

    let document = roles.ask(Some("read"), "/v1/openapi.json", None).text();
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let streams = |route: &Value| route["get"].to_string().contains("text/event-stream");
    let mut paths: Vec<String> = (document["paths"].as_object().expect("routes").iter())
        .filter(|(path, route)| {
            route.get("get").is_some() && !streams(route) && !path.contains('{')
        })
        .map(|(path, _)| path.clone())
        .collect();
    assert!(paths.iter().any(|path| path == "/v1/diff"), "{paths:?}");
    paths.extend(
        ["/v1/versions/1", "/v1/changes/1", "/v1/changes/2", "/v1/reloads/1", "/v1/pools/probed"]
            .map(str::to_owned),
    );
    let ids: Vec<String> =
        recorded().iter().filter_map(|it| it["id"].as_str().map(str::to_owned)).collect();
    paths.extend(ids.iter().map(|id| format!("/v1/requests/{id}")));
    let mut seen = 0;
    for role in [None, Some("read"), Some("operate")] {
        for path in &paths {
            let answer = roles.ask(role, path, None);
            seen += usize::from(answer.status == 200);
            assert_eq!(marks_in(&answer.text()), Vec::<String>::new(), "{role:?} {path}");
        }
    }
    assert!(seen > ids.len(), "{seen} answers of {}", paths.len());
    // The role admin sees values of the configuration, and no secret of a request either.
    for id in &ids {
        let path = format!("/v1/requests/{id}/explanation");
        let shown = marks_in(&roles.ask(Some("admin"), &path, None).text());
        let of_requests: Vec<&String> = shown.iter().filter(|it| ***it >= *marked(30)).collect();
        assert_eq!(of_requests, Vec::<&String>::new(), "{path}");
    }
    let diff = roles.ask(Some("admin"), "/v1/diff", None).text();
    assert!(diff.contains(&marked(20)), "the role admin sees values: {diff}");
    // By their names these are secrets, wherever they are: a header of a rule, one of a monitor, all of the collector.
    for number in [21, 22, 24] {
        assert!(!diff.contains(&marked(number)), "{number}: {diff}");
    }
}

/// A stream of the admin listener, read in the background.
struct Stream(Arc<Mutex<Vec<u8>>>);

impl Stream {
    fn open(roles: &Roles, role: &str, path: &str) -> Self {
        let token = std::fs::read_to_string(roles.path(role)).expect("the token");
        let mut stream = TcpStream::connect(roles.lease.address()).expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            token.trim()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let read = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                read.lock().expect("no panic").extend_from_slice(&buffer[..length]);
            }
        });
        let opened = Self(bytes);
        eventually("the stream begins", STEP_TIMEOUT, || opened.text().contains("\r\n\r\n"));
        assert!(opened.text().starts_with("HTTP/1.1 200 "), "{path}: {}", opened.text());
        opened
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned()
    }
}

#[test]
fn streams_and_spans_have_no_secrets_of_requests() {
    let mut roles = Roles::start();
    let member = roles.member.address();
    let collector = Collector::new();
    let more = format!(
        "authentication: {{ portal: {{ type: external, pool: members, request_headers: [ X-Who ] }} }}\n\
         {}\npools:\n  members: {{ members: [ \"{member}\" ] }}\n",
        collector.section(&format!(", headers: {{ X-Team: {} }}", marked(1)))
    );
    let server = "authenticate: portal, waf: { mode: detect }, tracing: { sample: 100% }";
    roles.reload(&roles.yaml(server, &more));
    let logs = ["operate", "admin"].map(|role| Stream::open(&roles, role, "/v1/logs"));
    let views = ["overview", "servers"]
        .map(|view| Stream::open(&roles, "read", &format!("/v1/dashboard?view={view}")));
    send_secrets(&roles);
    let count = NAMES.len() * 4;
    let servers = || collector.spans().iter().filter(|span| span.is_server()).count();
    eventually("all requests have a span", STEP_TIMEOUT, || servers() >= count);
    for stream in &logs {
        eventually("the stream has all requests", STEP_TIMEOUT, || {
            stream.text().matches("/login").count() >= NAMES.len() * 3
        });
        assert_eq!(marks_in(&stream.text()), Vec::<String>::new());
    }
    for stream in &views {
        assert_eq!(marks_in(&stream.text()), Vec::<String>::new());
    }
    for request in collector.requests() {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        assert_eq!(marks_in(&text), Vec::<String>::new(), "{text}");
    }
    // Events and what the program prints.
    let output = roles.proxy.process().output();
    assert_eq!(marks_in(&output), Vec::<String>::new(), "{output}");
}

#[test]
fn followers_of_events_see_no_lines_of_the_configuration() {
    let mut roles = Roles::start();
    let member = roles.member.address();
    let pools = format!("pools: {{ members: {{ members: [ \"{member}\" ] }} }}\n");
    // Nobody listens at the address of the keys.
    let keys = format!("http://{}/{}?key={}", Lease::new().address(), marked(1), marked(2));
    let jwt = format!("authentication: {{ api: {{ type: jwt, keys: {{ url: \"{keys}\" }} }} }}\n");
    roles.reload(&roles.yaml("authenticate: api", &format!("{jwt}{pools}")));
    roles.proxy.process().says("cannot be fetched");
    let output = roles.proxy.process().output();
    assert_eq!(marks_in(&output), Vec::<String>::new(), "{output}");

    let logs = ["operate", "admin"].map(|role| Stream::open(&roles, role, "/v1/logs"));
    let wrong = format!("server_tming: {}", marked(3));
    roles.proxy.reload_text(&roles.yaml(&wrong, &pools));
    // Who reads weir's own output may read the file as well.
    roles.proxy.process().says(&marked(3));
    for stream in &logs {
        eventually("the stream has the error", STEP_TIMEOUT, || {
            stream.text().contains("was not reloaded")
        });
        assert!(stream.text().contains(" has an error, which `weir check` shows"));
        assert_eq!(marks_in(&stream.text()), Vec::<String>::new(), "{}", stream.text());
    }
}

#[test]
fn only_someone_on_this_host_introduces_programs_files_and_sockets_or_moves_the_audit_log() {
    let roles = Roles::start();
    let member = roles.member.address();
    let page = roles.files.write("page.html", "known");
    let more = format!(
        "policies: {{ answering: {{ rules: [ {{ when: 'request.path == \"/page\"', then: [ {{ respond: {{ status: 200, file: {} }} }} ] }} ] }} }}\n\
         pools:\n  members: {{ members: [ \"{member}\" ] }}\n  probed: {{ members: [ \"{member}\" ], monitors: [ {{ type: script, command: [ /bin/true, known ] }} ] }}\n",
        page.display()
    );
    roles.reload(&roles.yaml("policies: [ answering ]", &more));
    let pool = |value: Value| {
        let mut pool = json!({ "members": [ member.to_string() ] });
        pool.as_object_mut().expect("a map").extend(value.as_object().expect("a map").clone());
        ("/pools/new", pool)
    };
    let script = |argument: &str| {
        pool(json!({ "monitors": [ { "type": "script", "command": [ "/bin/true", argument ] } ] }))
    };
    let answering = |file: &str| {
        let respond = json!({ "respond": { "status": 200, "file": file } });
        ("/policies/answering/rules", json!([ { "when": "true", "then": [ respond ] } ]))
    };
    let page = page.display().to_string();
    let refused = [
        script("other"),
        pool(json!({ "monitors": [ { "type": "redis", "password_file": page } ] })),
        pool(json!({ "members": [ "unix:/run/docker.sock" ] })),
        pool(json!({ "members": [ { "address": "unix:/run/docker.sock" } ] })),
        pool(json!({ "tls": { "ca": page } })),
        answering("/etc/passwd"),
        answering("/etc/hosts"),
        ("/log/audit", json!({ "to": roles.path("elsewhere.log") })),
        ("/log/audit", json!({ "to": { "syslog": "192.0.2.1:514" } })),
        ("/log/audit/to", json!("stdout")),
        ("/log", json!({ "access": { "format": "off" } })),
        ("/log/access/to", json!(roles.path("elsewhere.log"))),
        ("/log/access/to", json!({ "syslog": "unix:/dev/log" })),
        ("/data_sets", json!({ "read": { "type": "strings", "file": "/etc/passwd" } })),
        (
            "/virtual_servers/more",
            json!({ "listen": format!("unix:{}", roles.path("more.sock")), "pool": "members" }),
        ),
        ("/tracing", json!({ "otlp": "http://127.0.0.1:1/", "headers_file": page })),
        ("/data_plane/sandbox", json!("off")),
    ];
    for (path, value) in &refused {
        let change = json!({ "changes": [ { "op": "set", "path": path, "value": value } ] });
        let before = roles.audit().len();
        let answer = roles.ask(Some("admin"), "/v1/changes?dry_run=true", Some(&change));
        assert_eq!(answer.status, 409, "{path} {value}: {}", answer.text());
        let answer = roles.ask(Some("admin"), "/v1/changes", Some(&change));
        assert_eq!(answer.status, 409, "{path} {value}: {}", answer.text());
        assert!(answer.text().contains("unix socket of the admin listener"), "{}", answer.text());
        eventually("the audit log has both", STEP_TIMEOUT, || roles.audit().len() == before + 2);
    }
    // What is in use already may be used again, and everything else may change.
    let allowed = [
        script("known"),
        ("/pools/members/retries", json!(2)),
        (
            "/policies/page",
            json!({ "rules": [ { "when": "true", "then": [ { "respond": { "status": 200, "file": page } } ] } ] }),
        ),
    ];
    for (path, value) in &allowed {
        let change = json!({ "changes": [ { "op": "set", "path": path, "value": value } ] });
        let answer = roles.ask(Some("admin"), "/v1/changes", Some(&change));
        assert!(matches!(answer.status, 200 | 202), "{path} {value}: {}", answer.text());
    }
    let (path, value) = script("other");
    let change = json!({ "changes": [ { "op": "set", "path": path, "value": value } ] });
    let answer = roles.ask_socket("/v1/changes", Some(&change));
    assert!(matches!(answer.status, 200 | 202), "{}", answer.text());

    // Over the socket the audit log can be moved; its old target has the last word.
    let change = json!({ "changes": [ { "op": "set", "path": "/log/audit/to", "value": roles.path("moved.log") } ] });
    assert!(matches!(roles.ask_socket("/v1/changes", Some(&change)).status, 200 | 202));
    eventually("the old target is told", STEP_TIMEOUT, || {
        let lines = roles.audit();
        let last = lines.last().expect("a line");
        last["change"]["log.audit"]["after"] == roles.path("moved.log")
            && last["by"].as_str().is_some_and(|by| by.contains("version"))
    });
}
