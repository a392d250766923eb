//! Authentication, from the view of clients and members.

use std::process::Command;
use std::sync::{Arc, Mutex};

use weir_tests::client::Response;
use weir_tests::jwt::{Issuer, base64url};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require};

const LONG_AFTER: &str = r#""exp":32503680000"#;

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn get(proxy: &Proxy, path: &str, fields: &str) -> Response {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.response()
}

#[test]
fn a_virtual_server_lets_in_who_has_a_token() {
    require!("openssl");
    let issuer = Issuer::new("jwt");
    let keys = issuer.folder.path().join("keys.json");
    std::fs::write(&keys, issuer.key_set()).expect("a file");
    let member = Member::echo();
    let section = format!(
        "authentication:\n  api:\n    type: jwt\n    realm: shop api\n    keys: {{ file: {} }}\n    issuer: https://login.example/\n    audience: [ shop ]\n    leeway: 0s",
        keys.display()
    );
    let setup = Setup::new(&[member.address()])
        .access_log()
        .virtual_server("authenticate: api")
        .top(&section);
    let mut proxy = Proxy::start(&setup);

    let refused = get(&proxy, "/", "");
    let challenge = |response: &Response| {
        response.assert_status(401);
        response.head.field("www-authenticate").map(str::to_owned)
    };
    assert_eq!(challenge(&refused).as_deref(), Some("Bearer realm=\"shop api\""));

    let claims = |sub: &str, rest: &str| {
        format!(r#"{{"iss":"https://login.example/","aud":["x","shop"],"sub":"{sub}",{rest}}}"#)
    };
    for token in
        [issuer.rs256(&claims("ann", LONG_AFTER)), issuer.eddsa(&claims("ann", LONG_AFTER))]
    {
        // The second time, the verified token is cached.
        for _ in 0..2 {
            let echoed = get(&proxy, "/", &bearer(&token));
            let text = echoed.assert_status(200).text();
            assert!(text.contains(&bearer(&token)), "the member gets the token: {text}");
        }
    }
    let old = issuer.rs256(&claims("ann", r#""exp":1000"#));
    let expected = "Bearer realm=\"shop api\", error=\"invalid_token\", error_description=\"the token has expired\"";
    assert_eq!(challenge(&get(&proxy, "/", &bearer(&old))).as_deref(), Some(expected));
    let elsewhere = format!(r#"{{"iss":"https://login.example/","aud":"other",{LONG_AFTER}}}"#);
    let elsewhere = challenge(&get(&proxy, "/", &bearer(&issuer.rs256(&elsewhere)))).unwrap();
    assert!(elsewhere.contains("another audience"), "{elsewhere}");
    let unsigned = format!(
        "{}.{}.",
        base64url(br#"{"alg":"none"}"#),
        base64url(claims("ann", LONG_AFTER).as_bytes())
    );
    let unsigned = challenge(&get(&proxy, "/", &bearer(&unsigned))).unwrap();
    assert!(unsigned.contains("an algorithm that is not accepted"), "{unsigned}");
    assert_eq!(member.requests().len(), 4, "nobody else has come to the member");
    assert_eq!(proxy.metric("weir_virtual_server_requests_unauthenticated_total", &[]), 4.0);
    eventually("the log tells who it was", STEP_TIMEOUT, || {
        let log = proxy.process().output();
        log.lines().filter(|line| line.contains("\"user\":\"ann\"")).count() == 4
            && log.contains("\"marks\":[\"authenticate api: the token has expired\"]")
    });
}

#[test]
fn rules_read_claims_and_ask_on_some_paths_alone() {
    require!("openssl");
    let issuer = Issuer::new("jwt-rules");
    let keys = issuer.folder.path().join("keys.json");
    std::fs::write(&keys, issuer.key_set()).expect("a file");
    let member = Member::echo();
    let top = format!(
        r#"authentication:
  staff: {{ type: jwt, keys: {{ file: {} }}, cookie: session, user_claim: email, forward_credentials: false }}
policies:
  test:
    strategy: all_match
    rules:
      - when: "request.path.startsWith('/admin/')"
        then: [ {{ authenticate: staff }} ]
      - when: "request.path.startsWith('/admin/') && !('admins' in jwt['staff'].claims['groups'])"
        then: [ {{ respond: {{ status: 403 }} }} ]
      - when: "jwt['staff'].valid"
        then: [ {{ set_header: {{ X-User: "${{request.user}}", X-Sub: "${{jwt['staff'].claims['sub']}}" }} }} ]
      - then: [ {{ set_response_header: {{ X-Seen: "${{request.user}}" }} }} ]"#,
        keys.display()
    );
    let proxy = Proxy::start(
        &Setup::new(&[member.address()]).virtual_server("policies: [ test ]").top(&top),
    );
    let cookie = |groups: &str| {
        let claims =
            format!(r#"{{"sub":"7","email":"ann@a.example","groups":{groups},{LONG_AFTER}}}"#);
        format!("Cookie: a=b; session={}; c=d\r\n", issuer.eddsa(&claims))
    };
    let admin = cookie(r#"["users","admins"]"#);
    get(&proxy, "/", "").assert_status(200);
    get(&proxy, "/admin/", "").assert_status(401);
    get(&proxy, "/admin/", &cookie(r#"["users","no-admins"]"#)).assert_status(403);
    let response = get(&proxy, "/admin/", &admin);
    let text = response.assert_status(200).text();
    assert!(text.contains("X-User: ann@a.example\r\n") && text.contains("X-Sub: 7\r\n"), "{text}");
    assert!(text.contains("Cookie: a=b; c=d\r\n"), "{text}");
    assert_eq!(response.head.field("x-seen"), Some("ann@a.example"));
    // On this path, only conditions read the token, so the request keeps it.
    let text = get(&proxy, "/", &admin).assert_status(200).text();
    assert!(text.contains("X-User: \r\n") && text.contains("X-Sub: 7\r\n"), "{text}");
    assert!(text.contains("session="), "{text}");
}

#[test]
fn keys_are_fetched_and_stay_when_a_fetch_fails() {
    require!("openssl");
    let (first, second) = (Issuer::new("jwt-first"), Issuer::new("jwt-second"));
    // The issuer's response: status and body.
    let answer = Arc::new(Mutex::new((500, String::new())));
    let served = Arc::clone(&answer);
    let server = Member::new(move |exchange| {
        let (status, body) = served.lock().expect("no panic").clone();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        exchange.send(format!("{head}{body}"))?;
        Ok(Then::Close)
    });
    let member = Member::named("a");
    let top = format!(
        "authentication:\n  api: {{ type: jwt, keys: {{ url: \"http://{}/jwks.json\", refresh: 1s }} }}",
        server.address()
    );
    let setup = Setup::new(&[member.address()]).virtual_server("authenticate: api").top(&top);
    let mut proxy = Proxy::start(&setup);
    let claims = format!("{{{LONG_AFTER}}}");
    let tokens = [first.rs256(&claims), second.rs256(&claims)].map(|token| bearer(&token));
    // weir has no keys yet, so the response does not blame the token.
    get(&proxy, "/", &tokens[0]).assert_status(503);
    let becomes = |token: &str, status: u16| {
        eventually("the answer changes", STEP_TIMEOUT, || get(&proxy, "/", token).status == status);
    };
    let set = |status: u16, body: String| *answer.lock().expect("no panic") = (status, body);
    set(200, first.key_set());
    becomes(&tokens[0], 200);
    get(&proxy, "/", &tokens[1]).assert_status(401);
    // Later failures have no effect.
    for (status, body) in [(500, second.key_set()), (200, "{}".into()), (302, String::new())] {
        set(status, body);
        let failures = || proxy.metric("weir_token_key_fetches_total", &["\"failure\""]);
        let before = failures();
        eventually("a fetch fails", STEP_TIMEOUT, || failures() > before);
        get(&proxy, "/", &tokens[0]).assert_status(200);
        get(&proxy, "/", &tokens[1]).assert_status(401);
    }
    // The keys survive a reload.
    proxy.reload_and_wait(&setup);
    get(&proxy, "/", &tokens[0]).assert_status(200);
    set(200, second.key_set());
    becomes(&tokens[1], 200);
    get(&proxy, "/", &tokens[0]).assert_status(401);
    let events = proxy.process().output();
    assert!(
        events.contains("cannot be fetched: the server answers 500; until they are there"),
        "{events}"
    );
    assert!(events.contains("those fetched before stay in use"), "{events}");
    assert!(events.contains("can be fetched again"), "{events}");
}

#[test]
fn mistakes_are_told_with_their_places() {
    let folder = TempDir::new("authentication-check");
    std::fs::write(folder.path().join("oct.json"), r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#)
        .unwrap();
    let check = |section: &str, server: &str| {
        let text = format!(
            "virtual_servers: {{ a: {{ listen: \"127.0.0.1:1\", pool: p, {server} }} }}\npools: {{ p: {{ members: [ \"127.0.0.1:2\" ] }}, itself: {{ members: [ \"127.0.0.1:1\" ] }}, transparent: {{ source: client, members: [ \"127.0.0.1:3\" ] }} }}\nauthentication: {{ x: {section} }}\n"
        );
        let file = folder.path().join("weir.yaml");
        std::fs::write(&file, text).expect("a file");
        let output =
            Command::new(weir_binary()).arg("check").arg(&file).output().expect("weir runs");
        assert!(!output.status.success(), "{section} {server}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let jwt = "{ type: jwt, keys: { url: \"https://a.example/\" } }";
    for (section, server, expected) in [
        ("{ type: jwt }", "authenticate: x", "an authentication of type jwt lacks `keys`"),
        (
            "{ type: jwt, keys: { file: oct.json } }",
            "authenticate: x",
            "the key set has no key for RS256, ES256 or EdDSA",
        ),
        ("{ type: jwt, keys: { file: none.json } }", "authenticate: x", "cannot open"),
        ("{ type: jwt, keys: {} }", "authenticate: x", "has neither `file` nor `url`"),
        (
            "{ type: jwt, keys: { url: \"http://a.example/\" } }",
            "authenticate: x",
            "keys fetched without TLS could be changed",
        ),
        (
            "{ type: jwt, algorithms: HS256, keys: { url: \"https://a.example/\" } }",
            "authenticate: x",
            "`RS256`, `ES256` or `EdDSA`",
        ),
        (
            "{ type: external }",
            "authenticate: x",
            "an authentication of type external lacks `pool`",
        ),
        ("{ type: external, pool: q }", "authenticate: x", "pool `q` is not defined"),
        ("{ type: external, pool: p, path: verify }", "authenticate: x", "begins with `/`"),
        (
            "{ type: external, pool: p, path: /a%zz }",
            "authenticate: x",
            "`/a%zz` cannot be asked for",
        ),
        (
            "{ type: external, pool: p, realm: a }",
            "authenticate: x",
            "`realm` does not apply to an authentication of type external",
        ),
        (
            "{ type: jwt, pool: p, keys: { url: \"https://a.example/\" } }",
            "authenticate: x",
            "`pool` does not apply to an authentication of type jwt",
        ),
        (
            "{ type: external, pool: p, add_headers: [ Content-Length ] }",
            "authenticate: x",
            "the header `Content-Length` cannot be passed on",
        ),
        (
            "{ type: external, pool: p, answer_headers: X-* }",
            "authenticate: x",
            "the header `X-*` cannot be passed on",
        ),
        ("{ type: external, pool: itself }", "authenticate: x", "requests would go round for ever"),
        (
            "{ type: external, pool: transparent }",
            "authenticate: x",
            "connects from the addresses of clients",
        ),
        (jwt, "authenticate: y", "authentication `y` is not defined"),
        (jwt, "authenticate: x, type: tcp", "`authenticate`"),
    ] {
        let told = check(section, server);
        assert!(told.contains(expected), "{section} {server}: {told}");
    }
}
