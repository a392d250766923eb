//! Members that authenticate connections (NTLM, Negotiate): a connection on which a user has logged in belongs to that user's
//! client connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use weir_tests::client::{Client, Response};
use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// More than a client that does not read takes.
const CUT_BYTES: usize = 600_000;

/// The steps of a login.
const LOGIN: [(&str, u16); 3] = [("", 401), ("NTLM TYPE1", 401), ("NTLM TYPE3 ", 200)];

/// A member that authenticates connections as IIS does: it names the user of its connection in each response. `challenge`:
/// what it says to a connection without one.
fn member_that_asks(challenge: &'static str) -> Member {
    let users: Mutex<HashMap<SocketAddr, String>> = Mutex::default();
    Member::new(move |exchange| {
        let connection = exchange.stream().peer_addr()?;
        let mut users = users.lock().expect("no handler panics");
        let said = exchange.request.head.field("authorization").unwrap_or_default().to_owned();
        let user = users.entry(connection).or_default();
        let mut more = format!("{challenge}\r\n");
        if let Some(name) = said.strip_prefix("NTLM TYPE3 ").filter(|_| user.as_str() == "?") {
            name.clone_into(user);
        } else if said.starts_with("NTLM TYPE1") {
            "?".clone_into(user);
            more = "WWW-Authenticate: NTLM CHALLENGE\r\n".into();
        }
        let is_in = !user.is_empty() && user != "?";
        let (status, more) = if is_in { ("200 OK", "") } else { ("401 Who", more.as_str()) };
        let body = format!("{user} at {connection}");
        exchange.send(format!(
            "HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))?;
        Ok(Then::KeepAlive)
    })
}

fn asking() -> Member {
    member_that_asks("WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM")
}

fn ask(client: &mut Client, credentials: &str) -> Response {
    let credentials = match credentials {
        "" => String::new(),
        _ => format!("Authorization: {credentials}\r\n"),
    };
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{credentials}\r\n"));
    client.response()
}

/// Logs a user in. Returns the last response.
fn log_in(client: &mut Client, user: &str) -> String {
    let mut text = String::new();
    for (credentials, status) in LOGIN {
        let credentials = match credentials {
            "NTLM TYPE3 " => format!("{credentials}{user}"),
            _ => credentials.to_owned(),
        };
        text = ask(client, &credentials).assert_status(status).text();
    }
    assert!(text.starts_with(user), "{text}");
    text
}

/// One worker, so that all clients would share one list of idle connections.
fn setup(members: &[SocketAddr]) -> Setup {
    Setup::new(members).top("data_plane: { workers: 1 }")
}

#[test]
fn a_login_belongs_to_one_client_connection() {
    let member = asking();
    let mut proxy = Proxy::start(&setup(&[member.address()]).access_log());
    let (mut ann, mut bob, mut nobody) = (proxy.client(), proxy.client(), proxy.client());
    let as_ann = log_in(&mut ann, "ann");
    assert!(ask(&mut nobody, "").assert_status(401).text().starts_with(" at"));
    let as_bob = log_in(&mut bob, "bob");
    for _ in 0..3 {
        assert_eq!(ask(&mut ann, "").assert_status(200).text(), as_ann);
        assert_eq!(ask(&mut bob, "").assert_status(200).text(), as_bob);
        assert!(ask(&mut nobody, "").assert_status(401).text().starts_with(" at"));
        assert_eq!(ann.post("/", b"data").assert_status(200).text(), as_ann);
        let mut newcomer = proxy.client();
        assert!(ask(&mut newcomer, "").assert_status(401).text().starts_with(" at"));
    }
    eventually("the log says so", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"reuse\":\"client\"")
    });
    drop((ann, bob, nobody));
    eventually("connections end with their clients", STEP_TIMEOUT, || {
        member.open_connections() == 0
    });
}

#[test]
fn a_login_goes_on_at_its_member_and_on_its_connection() {
    let members = [asking(), asking(), asking()];
    let addresses: Vec<_> = members.iter().map(Member::address).collect();
    for more in ["balance: round_robin", "proxy_protocol: off", "reuse: { idle_per_worker: 0 }"] {
        let proxy = Proxy::start(&setup(&addresses).pool(more));
        let mut clients: Vec<Client> = (0..6).map(|_| proxy.client()).collect();
        let users: Vec<String> = (0..6).map(|number| format!("user-{number}")).collect();
        let answers: Vec<String> = std::iter::zip(&mut clients, &users)
            .map(|(client, user)| log_in(client, user))
            .collect();
        for (client, answer) in std::iter::zip(&mut clients, &answers) {
            assert_eq!(&ask(client, "").assert_status(200).text(), answer, "{more}");
        }
    }
}

/// Credentials that come before any challenge, and other ways to say that a connection is authenticated.
#[test]
fn each_sign_of_such_an_authentication_binds_the_connection() {
    for (request, response) in [
        ("Authorization: Negotiate YII=", "X: y"),
        ("authorization: ntlm TlRM", "X: y"),
        ("Authorization: Kerberos YII=", "X: y"),
        ("Proxy-Authorization: NTLM TlRM", "X: y"),
        ("X: y", "WWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: NTLM"),
        ("X: y", "www-authenticate: Basic realm=\"a, b\", Negotiate YII="),
        ("X: y", "Proxy-Authenticate: NTLM"),
        ("X: y", "Persistent-Auth: true"),
    ] {
        let member = Member::new(move |exchange: &mut Exchange<'_>| {
            let connection = exchange.stream().peer_addr()?.to_string();
            let is_first = exchange.request.target() == "/first";
            let more = if is_first { response } else { "X: y" };
            let length = connection.len();
            exchange.send(format!(
                "HTTP/1.1 200 OK\r\n{more}\r\nContent-Length: {length}\r\n\r\n{connection}"
            ))?;
            Ok(Then::KeepAlive)
        });
        let proxy = Proxy::start(&setup(&[member.address()]));
        let (mut first, mut second) = (proxy.client(), proxy.client());
        first.send(format!("GET /first HTTP/1.1\r\nHost: a\r\n{request}\r\n\r\n"));
        let bound = first.response().assert_status(200).text();
        let others = second.get("/second").assert_status(200).text();
        assert_ne!(bound, others, "{request}, {response}");
        assert_eq!(first.get("/again").assert_status(200).text(), bound, "{request}, {response}");
        assert_eq!(second.get("/again").assert_status(200).text(), others);
        // Connections without such a sign are shared as ever.
        drop(second);
        assert_eq!(proxy.client().get("/third").assert_status(200).text(), others);
    }
}

/// The connection of a client that goes in the middle of an exchange is closed, and so is one that its member closes.
#[test]
fn a_bound_connection_ends_with_either_side() {
    let member = asking();
    let proxy = Proxy::start(&setup(&[member.address()]));
    let mut client = proxy.client();
    log_in(&mut client, "ann");
    member.close_connections();
    eventually("weir has seen the end", STEP_TIMEOUT, || {
        proxy.metric("weir_member_connections_idle", &[]) == 0.0
    });
    assert!(ask(&mut client, "").assert_status(401).text().starts_with(" at"));
    log_in(&mut client, "ann");
    client.reset();
    eventually("it is closed", STEP_TIMEOUT, || member.open_connections() == 0);
    assert!(ask(&mut proxy.client(), "").assert_status(401).text().starts_with(" at"));
}

/// A client whose response is cut gets a reset, but only after it has taken what was sent before. Its bound connections do not wait
/// for that.
#[test]
fn a_bound_connection_ends_with_a_response_that_is_cut() {
    let asks = asking();
    let cuts = Member::new(|exchange| {
        let body = "x".repeat(CUT_BYTES);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        exchange.send(format!("{head}{CUT_BYTES:x}\r\n{body}\r\n"))?;
        Ok(Then::Close)
    });
    let policies = "policies: { p: { rules: [ { when: 'request.path == \"/cut\"', then: [ { pool: cut } ] } ] } }";
    let setup = setup(&[asks.address()])
        .virtual_server("policies: [ p ]")
        .also_pool(&format!("cut: {{ members: [ \"{}\" ] }}", cuts.address()))
        .top(policies);
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    log_in(&mut client, "ann");
    // To a client of HTTP/1.0, the end of the connection would be the end of the response.
    client.send("GET /cut HTTP/1.0\r\nHost: a\r\n\r\n");
    cuts.wait_for_requests(1);
    eventually("it is closed", STEP_TIMEOUT, || asks.open_connections() == 0);
    assert_eq!(proxy.metric("weir_connections_leaving", &[]), 1.0);
}

/// A stream says nothing about whose it is, so clients with HTTP/2 get no connection that stays authenticated.
#[test]
fn clients_with_http2_leave_no_authenticated_connection_behind() {
    let member = asking();
    let proxy = Proxy::start(&setup(&[member.address()]).http("http2: true"));
    let mut peer = Peer::connect(proxy.address());
    for (credentials, _) in LOGIN {
        let stream = peer.request("GET", "/", &[("authorization", credentials)], true);
        peer.response(stream);
    }
    assert!(peer.get("/").assert_status(401).text().starts_with(" at"));
    assert!(ask(&mut proxy.client(), "").assert_status(401).text().starts_with(" at"));
}

#[test]
fn members_with_http2_get_credentials_on_a_connection_of_their_own() {
    let member = Http2Member::telling(&[]);
    let proxy = Proxy::start(&setup(&[member.address()]).pool("http2: true"));
    let mut client = proxy.client();
    client.get("/").assert_status(200);
    client.get("/").assert_status(200);
    assert_eq!(member.connection_count(), 1);
    for connections in [2, 3] {
        ask(&mut client, "Negotiate YII=").assert_status(200);
        assert_eq!(member.connection_count(), connections);
    }
    client.get("/").assert_status(200);
    assert_eq!(member.connection_count(), 3);
    eventually("they are closed", STEP_TIMEOUT, || member.open_connections() == 1);
}

#[test]
fn connections_are_shared_if_the_pool_says_so() {
    let member = asking();
    let pool = "reuse: { connection_authentication: share }";
    let proxy = Proxy::start(&setup(&[member.address()]).pool(pool));
    let mut client = proxy.client();
    let as_ann = log_in(&mut client, "ann");
    assert_eq!(ask(&mut proxy.client(), "").assert_status(200).text(), as_ann);
}

/// A copy has its request's credentials. So no other copy, and no request to that pool, gets its connection.
#[test]
fn copies_with_credentials_leave_no_authenticated_connection_behind() {
    let (member, copies) = (Member::echo(), Member::named("thrown away"));
    let policies = "policies: { p: { rules: [ { then: [ { mirror: { pool: copies } } ] } ] } }";
    let setup = setup(&[member.address()])
        .virtual_server("policies: [ p ]")
        .also_pool(&format!("copies: {{ members: [ \"{}\" ] }}", copies.address()))
        .top(policies);
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    for count in 1..=3 {
        ask(&mut client, "Negotiate YII=").assert_status(200);
        copies.wait_for_requests(count);
        assert_eq!(copies.connection_count(), count);
    }
    assert_eq!(member.connection_count(), 1);
    eventually("they are closed", STEP_TIMEOUT, || copies.open_connections() == 0);
}

/// What the member gets decides, not what the client has sent: rules may put the credentials on the request.
#[test]
fn credentials_that_rules_set_bind_the_connection() {
    let member = asking();
    let policies = "policies:
  copy:
    rules:
      - when: \"'x-auth' in request.headers\"
        then: [ { set_header: { Authorization: \"${request.headers['x-auth']}\" } } ]
";
    let setup = setup(&[member.address()]).virtual_server("policies: [ copy ]").top(policies);
    let proxy = Proxy::start(&setup);
    let by_rule = |client: &mut Client, credentials: &str| {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Auth: {credentials}\r\n\r\n"));
        client.response()
    };
    let (mut ann, mut nobody) = (proxy.client(), proxy.client());
    by_rule(&mut ann, "NTLM TYPE1").assert_status(401);
    let as_ann = by_rule(&mut ann, "NTLM TYPE3 ann").assert_status(200).text();
    assert!(ask(&mut nobody, "").assert_status(401).text().starts_with(" at"));
    assert_eq!(ask(&mut ann, "").assert_status(200).text(), as_ann);
    drop(ann);
    for _ in 0..3 {
        assert!(ask(&mut nobody, "").assert_status(401).text().starts_with(" at"));
        assert!(ask(&mut proxy.client(), "").assert_status(401).text().starts_with(" at"));
    }
}
