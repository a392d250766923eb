//! Authentication by password, from the view of users and members.

use weir_tests::client::{Client, Response};
use weir_tests::jwt::Issuer;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require};

/// The bcrypt hash of `abc`, from jBCrypt's tests.
const ABC: &str = "$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i";
/// The Argon2 hash of `password`, from the tests of the reference implementation.
const PASSWORD: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
/// An expensive hash without a known password.
const DEAR: &str = "$2a$12$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i";

const ANN: &str = "Authorization: Basic YW5uOmFiYw==\r\n";
const ANN_WRONG: &str = "Authorization: Basic YW5uOmFiZA==\r\n";
const BOB: &str = "Authorization: Basic Ym9iOnBhc3N3b3Jk\r\n";
const EVE: &str = "Authorization: Basic ZXZlOmFiYw==\r\n";

fn file(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("users");
    std::fs::write(&path, text).expect("a file");
    path.to_string_lossy().into_owned()
}

fn setup(member: &Member, users: &str, more: &str, rules: &str) -> Setup {
    let policies = if rules.is_empty() { "" } else { "policies: [ test ]" };
    let top = format!(
        "authentication:\n  staff: {{ type: basic, users: {users}, realm: Staff only{more} }}\n{rules}"
    );
    let mut setup = Setup::new(&[member.address()]).access_log();
    if !policies.is_empty() {
        setup = setup.virtual_server(policies);
    }
    setup.top(top.trim_end())
}

fn send(client: &mut Client, path: &str, fields: &str) -> Response {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.response()
}

fn get(proxy: &Proxy, path: &str, fields: &str) -> Response {
    send(&mut proxy.client(), path, fields)
}

#[test]
fn users_of_a_file_are_let_in() {
    let folder = TempDir::new("passwords");
    let users = file(&folder, &format!("# staff\nann:{ABC}\nbob:{PASSWORD}\n"));
    let member = Member::echo();
    let of = |more: &str| setup(&member, &users, more, "").virtual_server("authenticate: staff");
    let mut proxy = Proxy::start(&of(""));
    for fields in ["", ANN_WRONG, EVE, "Authorization: Bearer abc\r\n"] {
        let refused = get(&proxy, "/", fields);
        let challenge = refused.assert_status(401).head.field("www-authenticate");
        assert_eq!(challenge, Some("Basic realm=\"Staff only\", charset=\"UTF-8\""), "{fields}");
    }
    assert!(member.requests().is_empty());
    // Each password is checked once and then cached, for the same connection and for others.
    let mut client = proxy.client();
    for fields in [ANN, BOB, ANN, BOB] {
        let text = send(&mut client, "/", fields).assert_status(200).text();
        assert!(text.contains(fields), "{text}");
        get(&proxy, "/", fields).assert_status(200);
    }
    send(&mut client, "/", ANN_WRONG).assert_status(401);
    send(&mut client, "/", ANN).assert_status(200);
    // weir forwards the body only after the check of the password.
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n{ANN}\r\nhello"));
    assert!(client.response().assert_status(200).text().ends_with("hello"));
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n{ANN_WRONG}\r\nhello"));
    client.response().assert_status(401);
    assert!(
        member.requests().iter().all(|request| !request.head.has_token("authorization", "nobody"))
    );
    eventually("the log tells who it was, and of nobody else", STEP_TIMEOUT, || {
        let log = proxy.process().output();
        let lines = |part: &str| log.lines().filter(|line| line.contains(part)).count();
        lines("\"user\":\"ann\"") == 6
            && lines("\"user\":\"bob\"") == 4
            && lines("\"user\":") == 10
            && lines("\"authenticate staff: the user or the password is wrong\"") == 4
    });
    assert_eq!(proxy.metric("weir_virtual_server_requests_unauthenticated_total", &[]), 6.0);

    // The reload changes the password, so the cached one is invalid. Members no longer receive passwords.
    file(&folder, &format!("ann:{PASSWORD}\n"));
    proxy.reload_and_wait(&of(", forward_credentials: false"));
    get(&proxy, "/", ANN).assert_status(401);
    get(&proxy, "/", BOB).assert_status(401);
    let text =
        get(&proxy, "/", "Authorization: Basic YW5uOnBhc3N3b3Jk\r\n").assert_status(200).text();
    assert!(!text.contains("Authorization"), "{text}");
}

#[test]
fn nothing_that_rules_decide_is_for_a_stranger() {
    let folder = TempDir::new("passwords-rules");
    let users = file(&folder, &format!("ann:{ABC}\n"));
    let member = Member::echo();
    let rules = r#"policies:
  test:
    strategy: all_match
    rules:
      - { when: "request.path == '/public'", then: [ { respond: { body: "for all" } } ] }
      - { then: [ { authenticate: staff } ] }
      - { when: "request.user == 'ann'", then: [ { set_response_header: { X-Secret: "of ann" } }, { set_header: { X-User: "${request.user}" } } ] }
      - { when: "request.path == '/own'", then: [ { respond: { body: "for ${request.user}" } } ] }
      - { when: "response.status > 0", then: [ { set_response_header: { X-Seen: "<${request.user}>" } } ] }"#;
    let proxy = Proxy::start(&setup(&member, &users, "", rules));
    assert_eq!(get(&proxy, "/public", ANN_WRONG).assert_status(200).text(), "for all");
    for path in ["/", "/own"] {
        for fields in ["", ANN_WRONG, EVE] {
            let refused = get(&proxy, path, fields);
            refused.assert_status(401);
            assert!(!refused.text().contains("for"), "{path} {fields}");
            assert_eq!(refused.head.field("x-secret"), None, "{path} {fields}");
            assert_eq!(refused.head.field("x-seen"), Some("<>"), "{path} {fields}");
        }
    }
    assert!(member.requests().is_empty());
    // First during the check, then with the cached result.
    for _ in 0..2 {
        let own = get(&proxy, "/own", ANN);
        assert_eq!(own.assert_status(200).text(), "for ann");
        let passed = get(&proxy, "/", ANN);
        assert!(passed.assert_status(200).text().contains("X-User: ann\r\n"));
        for response in [own, passed] {
            assert_eq!(response.head.field("x-secret"), Some("of ann"));
            assert_eq!(response.head.field("x-seen"), Some("<ann>"));
        }
    }
}

#[test]
fn a_token_beside_it_neither_hides_a_password_nor_lends_a_user() {
    require!("openssl");
    let folder = TempDir::new("passwords-token");
    let users = file(&folder, &format!("ann:{ABC}\n"));
    let member = Member::echo();
    let keys = folder.path().join("keys.json");
    let issuer = Issuer::new("passwords-issuer");
    std::fs::write(&keys, issuer.key_set()).expect("a file");
    let rules = format!(
        r#"  login: {{ type: jwt, keys: {{ file: {} }}, cookie: t }}
policies:
  test:
    strategy: all_match
    rules:
      - {{ then: [ {{ authenticate: staff }} ] }}
      - {{ when: "request.user == 'ann'", then: [ {{ set_response_header: {{ X-Secret: "of ann" }} }}, {{ trace: "${{request.user}}" }} ] }}
      - {{ when: "request.path != '/one'", then: [ {{ authenticate: login }} ] }}"#,
        keys.display()
    );
    let mut proxy = Proxy::start(&setup(&member, &users, "", &rules));
    let nameless = format!("Cookie: t={}\r\n", issuer.eddsa(r#"{"exp":4102444800}"#));
    for (path, cookie) in [("/", ""), ("/", "Cookie: t=a.b.c\r\n"), ("/", &*nameless), ("/one", "")]
    {
        for password in [ANN_WRONG, EVE] {
            let refused = get(&proxy, path, &format!("{password}{cookie}"));
            assert_eq!(refused.assert_status(401).head.field("x-secret"), None, "{path} {cookie}");
        }
    }
    // weir sends this response of its own before the check ends, so it contains nothing about the user.
    let mut client = proxy.client();
    client.send(format!("OPTIONS /one HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n{ANN_WRONG}\r\n"));
    let own = client.response();
    assert_eq!(own.assert_status(204).head.field("x-secret"), None);
    assert!(member.requests().is_empty());
    // The user is that of the correct password. The token without a name does not change it.
    let let_in = get(&proxy, "/", &format!("{ANN}{nameless}"));
    assert_eq!(let_in.assert_status(200).head.field("x-secret"), Some("of ann"));
    eventually("the log tells of the one that was let in", STEP_TIMEOUT, || {
        let log = proxy.process().output();
        let lines = |part: &str| log.lines().filter(|line| line.contains(part)).count();
        lines("\"user\":") == 1 && lines("\"marks\":[\"ann\"]") == 1
    });
}

#[test]
fn too_many_checks_are_refused_and_known_users_are_not() {
    let folder = TempDir::new("passwords-many");
    let users = file(&folder, &format!("bob:{PASSWORD}\nann:{DEAR}\n"));
    let member = Member::named("a");
    let proxy = Proxy::start(&setup(&member, &users, "", "").virtual_server("authenticate: staff"));
    get(&proxy, "/", BOB).assert_status(200);
    // With one client's requests, at least one thread is busy, and the number of queued checks is limited.
    let mut clients: Vec<Client> = (0..16).map(|_| proxy.client()).collect();
    for client in &mut clients {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{ANN}\r\n"));
    }
    let refused = || proxy.metric("weir_virtual_server_password_checks_refused_total", &[]);
    eventually("some are refused", STEP_TIMEOUT, || refused() >= 8.0);
    get(&proxy, "/", BOB).assert_status(200);
    // The other clients disconnect, and their checks are dropped.
    drop(clients);
    eventually("there is room again", STEP_TIMEOUT, || get(&proxy, "/", EVE).status == 401);
    assert_eq!(member.requests().len(), 2);
}

#[test]
fn mistakes_are_told_with_their_lines() {
    let folder = TempDir::new("passwords-check");
    let check = |users: &str, section: &str| {
        let path = file(&folder, users);
        let section = section.replace("FILE", &path);
        let text = format!(
            "virtual_servers: {{ a: {{ listen: \"127.0.0.1:1\", pool: p, authenticate: x }} }}\npools: {{ p: {{ members: [ \"127.0.0.1:2\" ] }} }}\nauthentication: {{ x: {section} }}\n"
        );
        let config = folder.path().join("weir.yaml");
        std::fs::write(&config, text).expect("a file");
        let mut command = std::process::Command::new(weir_tests::proxy::weir_binary());
        let output = command.arg("check").arg(&config).output().expect("weir runs");
        assert!(!output.status.success(), "{users} {section}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let basic = "{ type: basic, users: FILE }";
    let good = format!("ann:{ABC}\n");
    for (users, section, expected) in [
        ("ann:$apr1$a$b\n", basic, "users:1: the hash is of MD5, which weir does not take"),
        ("# a\nann:secret\n", basic, "users:2: the part after the `:` is not a hash"),
        ("ann\n", basic, "users:1: there is no `:` between user and hash"),
        ("", basic, "users: there is no user in it"),
        (&good, "{ type: basic }", "an authentication of type basic lacks `users`"),
        (
            &good,
            "{ type: basic, users: FILE, leeway: 1s }",
            "`leeway` does not apply to an authentication of type basic",
        ),
        (
            &good,
            "{ type: jwt, users: FILE, keys: { url: \"https://a/\" } }",
            "`users` does not apply to an authentication of type jwt",
        ),
    ] {
        let told = check(users, section);
        assert!(told.contains(expected), "{users} {section}: {told}");
        assert!(!told.contains("secret"), "{told}");
    }
}
