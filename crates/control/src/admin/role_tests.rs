//! Each role and each route, over real sockets: unix, loopback, TLS with a token, TLS with a client certificate.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;
use weir_config::snapshot::{Address, Role};

use super::route::Route;
use super::table;
use super::testing::{JSON, Login, Running, write_certificates};
use super::token::Token;

/// Statuses that refuse a request for lack of rights.
const REFUSED: [u16; 2] = [401, 403];

/// The users of these tests: a token and a certificate for each role.
struct Users {
    running: Running,
    tokens: Vec<(Role, Token)>,
}

impl Users {
    /// A listener at this address, with `client_certificates` in this mode.
    async fn start(listen: &str, mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_certificates(
            directory.path(),
            &["cert-read", "cert-operate", "cert-admin", "nobody"],
        );
        let tokens: Vec<(Role, Token)> =
            Role::ALL.map(|role| (role, Token::generate().unwrap())).into();
        let users: String = tokens
            .iter()
            .map(|(role, token)| {
                let hash = token.hash();
                format!(
                    "    by-token-{role}: {{ role: {role}, token_hash: \"{hash}\" }}\n    \
                     by-cert-{role}: {{ role: {role}, certificate: cert-{role} }}\n"
                )
            })
            .collect();
        let text = format!(
            "admin:\n  listen: \"{listen}\"\n  tls:\n    \
             certificates: [ {{ cert: server.crt, key: server.key }} ]\n    \
             client_certificates: {{ ca: ca.crt, mode: {mode} }}\n  users:\n{users}\
             virtual_servers: {{ shop: {{ listen: \"127.0.0.1:0\", pool: web }} }}\n\
             pools: {{ web: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
        );
        let file = directory.path().join("weir.yaml");
        std::fs::write(&file, text).unwrap();
        let loaded = weir_sources::load(&file);
        let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        let address = snapshot.admin.listen[0].clone();
        let address = match address {
            Address::Unix(_) => Address::Unix(directory.path().join("admin.sock")),
            other => other,
        };
        Self { running: Running::with(snapshot, &address, directory).await, tokens }
    }

    fn token(&self, role: Role) -> &str {
        let found = self.tokens.iter().find(|(other, _)| *other == role);
        found.map(|(_, token)| token.expose()).unwrap()
    }
}

/// An existing path of this route.
fn path_of(route: &Route) -> String {
    let path = route.path.replace("{pool}", "web").replace("{member}", "127.0.0.1:9001");
    let name = if path.contains("/virtual-servers/") { "shop" } else { "x" };
    path.replace("{name}", name).replace("{number}", "1").replace("{id}", "x")
}

/// A body that the route accepts.
fn body_of(route: &Route) -> &'static str {
    match route.path {
        path if path.ends_with("/state") => r#"{"state":"enabled"}"#,
        path if path.ends_with("/end") => r#"{"all":true}"#,
        // This test has no supervisor that carries out transactions and reloads.
        "/v1/reload" => r#"{"x":1}"#,
        path if path.contains("/versions/") || path.ends_with("/changes") => r#"{"x":1}"#,
        _ => "{}",
    }
}

/// Asserts that the route accepts or refuses a request with these rights.
fn check(route: &Route, role: Option<Role>, status: u16, what: &str) {
    let may = route.role.is_none_or(|needed| role.is_some_and(|role| role >= needed));
    let name = format!("{} {} by {what}", route.method_name, route.path);
    assert_eq!(!REFUSED.contains(&status), may, "{name}: {status}");
    assert!(status < 500 && status != 415, "{name}: {status}");
}

fn parts(route: &Route) -> (String, String, &'static str, &'static str) {
    let (fields, body) = if route.is_change { (JSON, body_of(route)) } else { ("", "") };
    (route.method_name.to_uppercase(), path_of(route), fields, body)
}

#[tokio::test]
async fn over_tls_tokens_and_certificates_decide() {
    let users = Users::start("0.0.0.0:0", "request").await;
    for route in table::routes() {
        let (method, path, fields, body) = parts(&route);
        let ask = async |login: Login<'_>| {
            let request = (method.as_str(), path.as_str(), fields, body);
            users.running.send_by_tls(login, request).await.unwrap().status
        };
        check(&route, None, ask(Login::Nothing).await, "nobody");
        for role in Role::ALL {
            let status = ask(Login::Token(users.token(role))).await;
            check(&route, Some(role), status, &format!("a token of {role}"));
            let status = ask(Login::Certificate(&format!("cert-{role}"))).await;
            check(&route, Some(role), status, &format!("a certificate of {role}"));
        }
    }
    let names: Vec<_> = users
        .running
        .audit()
        .iter()
        .filter_map(|line| line["user"].as_str().map(str::to_owned))
        .collect();
    let changes = table::routes().iter().filter(|route| route.is_change).count();
    assert_eq!(names.len(), changes * 6, "of strangers nothing is written");
}

#[tokio::test]
async fn on_loopback_everybody_reads_and_tokens_allow_more() {
    let users = Users::start("127.0.0.1:0", "request").await;
    for route in table::routes() {
        let (method, path, fields, body) = parts(&route);
        let ask = async |login: &str| {
            let fields = format!("{fields}{login}");
            users.running.send(&method, &path, &fields, body).await.status
        };
        check(&route, Some(Role::Read), ask("").await, "nobody");
        for role in Role::ALL {
            let login = format!("Authorization: Bearer {}\r\n", users.token(role));
            check(&route, Some(role), ask(&login).await, &format!("a token of {role}"));
        }
    }
}

#[tokio::test]
async fn over_a_unix_socket_everything_is_allowed_and_tokens_allow_less() {
    let users = Users::start("unix:/run/weir-test.sock", "request").await;
    for route in table::routes() {
        let (method, path, fields, body) = parts(&route);
        let ask = async |login: &str| {
            let fields = format!("{fields}{login}");
            users.running.send(&method, &path, &fields, body).await.status
        };
        check(&route, Some(Role::Admin), ask("").await, "weir's user");
        for role in Role::ALL {
            let login = format!("Authorization: Bearer {}\r\n", users.token(role));
            check(&route, Some(role), ask(&login).await, &format!("a token of {role}"));
        }
        assert_eq!(ask("Authorization: Bearer weir_unknown\r\n").await, 401, "{path}");
    }
}

#[tokio::test]
async fn the_user_is_told_and_audited() {
    let users = Users::start("0.0.0.0:0", "request").await;
    let ask = async |login: Login<'_>, request| {
        users.running.send_by_tls(login, request).await.unwrap().parts()
    };
    let whoami = ("GET", "/v1/whoami", "", "");
    let (_, answer) = ask(Login::Token(users.token(Role::Operate)), whoami).await;
    assert_eq!((&answer["user"], &answer["role"]), (&json!("by-token-operate"), &json!("operate")));
    let (_, answer) = ask(Login::Certificate("cert-read"), whoami).await;
    assert_eq!((&answer["user"], &answer["role"]), (&json!("by-cert-read"), &json!("read")));
    let change = (
        "PUT",
        "/v1/pools/web/members/127.0.0.1:9001/state",
        JSON,
        r#"{"state":"drain","last":true}"#,
    );
    assert_eq!(ask(Login::Certificate("cert-operate"), change).await.0, 200);
    assert_eq!(ask(Login::Token(users.token(Role::Read)), change).await.0, 403);
    assert_eq!(ask(Login::Nothing, change).await.0, 401);
    let lines = users.running.audit();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["user"], &lines[0]["status"]), (&json!("by-cert-operate"), &json!(200)));
    assert_eq!((&lines[1]["user"], &lines[1]["status"]), (&json!("by-token-read"), &json!(403)));
    let told = users.running.lines();
    assert!(told[0].contains("by by-cert-operate (operate) from 127.0.0.1:"), "{told:?}");
}

#[tokio::test]
async fn wrong_credentials_are_refused_counted_and_limited() {
    let users = Users::start("0.0.0.0:0", "request").await;
    let status = ("GET", "/v1/status", "", "");
    let wrong = users.running.send_by_tls(Login::Token("weir_wrong"), status).await.unwrap();
    assert_eq!(wrong.status, 401);
    let challenge = wrong.field("www-authenticate").unwrap();
    assert_eq!(challenge, "Bearer realm=\"weir\", error=\"invalid_token\"");
    let none = users.running.send_by_tls(Login::Nothing, status).await.unwrap();
    assert_eq!((none.status, none.field("www-authenticate")), (401, Some("Bearer realm=\"weir\"")));
    let nobody = users.running.send_by_tls(Login::Certificate("nobody"), status).await.unwrap();
    assert_eq!(nobody.status, 401);
    let basic = ("GET", "/v1/status", "Authorization: Basic YTpi\r\n", "");
    assert_eq!(users.running.send_by_tls(Login::Nothing, basic).await.unwrap().status, 401);
    let mut limited = None;
    for _ in 0..20 {
        let answer = users.running.send_by_tls(Login::Token("weir_wrong"), status).await.unwrap();
        limited = (answer.status == 429).then_some(answer).or(limited);
    }
    let limited = limited.expect("the source is limited");
    let wait: u64 = limited.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=6).contains(&wait), "{wait}");
    let good = users.running.send_by_tls(Login::Token(users.token(Role::Read)), status).await;
    assert_eq!(good.unwrap().status, 429, "good tokens are not tried either: guesses must not be");
    let health = users.running.send_by_tls(Login::Nothing, ("GET", "/health", "", "")).await;
    assert_eq!(health.unwrap().status, 200);
    for open in ["/health", "/"] {
        let nobody = Login::Certificate("nobody");
        let answer = users.running.send_by_tls(nobody, ("GET", open, "", "")).await.unwrap();
        assert_eq!(answer.status, 200, "a stranger's certificate is no reason to refuse {open}");
    }
    assert_eq!(users.running.observed.admin.logins_failed.load(Relaxed), 10);
    let lines = users.running.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].ends_with("refused a login from 127.0.0.1: the token is unknown"),
        "{lines:?}"
    );
    assert!(!lines[0].contains("weir_wrong"), "{lines:?}");
}

#[tokio::test]
async fn certificates_can_be_required() {
    let users = Users::start("0.0.0.0:0", "require").await;
    let status = ("GET", "/v1/status", "", "");
    let token = Login::Token(users.token(Role::Admin));
    assert!(users.running.send_by_tls(token, status).await.is_err(), "no certificate");
    let answer = users.running.send_by_tls(Login::Certificate("cert-read"), status).await.unwrap();
    assert_eq!(answer.status, 200);
    let plain = users.running.send_plainly_to_tls().await;
    assert!(plain.is_empty() || !plain.contains("HTTP/1.1 200"), "{plain}");
}

#[tokio::test]
async fn all_answers_have_the_fields_that_protect_browsers() {
    let users = Users::start("127.0.0.1:0", "request").await;
    let origin = "Origin: http://rebound.example\r\n";
    for (method, path, fields, status) in [
        ("GET", "/v1/status", "", 200),
        ("GET", "/health", "", 200),
        ("GET", "/nothing", "", 404),
        ("DELETE", "/v1/status", "", 405),
        ("OPTIONS", "/v1/status", "", 405),
        ("GET", "/v1/status", origin, 403),
        ("OPTIONS", "/v1/status", origin, 403),
        ("GET", "/v1/status", "Origin: http://localhost\r\n", 200),
        ("GET", "/v1/status?x=1", "", 400),
        ("GET", "/v1/status", "Accept: text/html\r\n", 406),
        ("PUT", "/v1/pools/web/members/127.0.0.1:9001/state", "", 401),
    ] {
        let answer = users.running.send(method, path, fields, "").await;
        assert_eq!(answer.status, status, "{method} {path} {fields}");
        assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.field("cache-control"), Some("no-store"));
        assert!(answer.field("x-request-id").is_some_and(|id| id.len() > 9));
        assert!(answer.field("access-control-allow-origin").is_none());
        if status >= 400 {
            assert_eq!(answer.field("content-type"), Some("application/problem+json"));
        }
    }
}

#[tokio::test]
async fn requests_of_one_source_are_limited() {
    let users = Users::start("127.0.0.1:0", "request").await;
    let shared = &users.running.observed.admin;
    let source = "127.0.0.1".parse().unwrap();
    // Simulates requests over the socket, but faster.
    while shared.sources.request(source, shared.now_us()).is_ok() {}
    let mut limited = 0;
    for _ in 0..50 {
        while shared.sources.request(source, shared.now_us()).is_ok() {}
        let answer = users.running.send("GET", "/health", "", "").await;
        limited += u32::from(answer.status == 429 && answer.field("retry-after").is_some());
    }
    assert!(limited > 0);
    assert!(shared.requests_limited.load(Relaxed) >= u64::from(limited));
}
