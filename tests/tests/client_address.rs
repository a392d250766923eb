//! The client's address: received from proxies in front of weir, and sent to members.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};

fn echo(client_address: &str) -> (Member, Proxy) {
    let member = Member::echo();
    let line = format!("client_address: {client_address}");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).virtual_server(&line));
    (member, proxy)
}

/// The head that the member received for a request with these headers, line by line.
fn lines(client: &mut Client, fields: &str) -> Vec<String> {
    client.send(format!("GET / HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
    client.response().assert_status(200).text().lines().map(str::to_owned).collect()
}

#[test]
fn members_are_told_of_the_client_as_configured() {
    let came =
        "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nX-Forwarded-Proto: https\r\n";
    let check = |settings: &str, expected: &[&str]| {
        let (_member, proxy) = echo(settings);
        let got = lines(&mut proxy.client(), came);
        for line in expected {
            assert!(got.iter().any(|got| got == line), "{settings}: {line} in {got:?}");
        }
    };
    check("{ x_forwarded_for: append }", &["X-Forwarded-For: 192.0.2.1, 127.0.0.1"]);
    check("{ x_forwarded_for: replace }", &["X-Forwarded-For: 127.0.0.1"]);
    check("{ x_forwarded_for: \"off\" }", &["X-Forwarded-For: 192.0.2.1"]);
    check(
        "{ x_forwarded_proto: true }",
        &["X-Forwarded-Proto: http", "X-Forwarded-Host: shop.example"],
    );
    let (_member, proxy) = echo("{ forwarded: append }");
    let got = lines(&mut proxy.client(), came);
    let forwarded = got.iter().find(|line| line.starts_with("Forwarded: ")).expect("a field");
    assert!(forwarded.starts_with("Forwarded: for=192.0.2.1, for=\"127.0.0.1:"), "{forwarded}");
    assert!(forwarded.ends_with("\";host=shop.example;proto=http"), "{forwarded}");
}

#[test]
fn only_trusted_proxies_are_believed() {
    let policy = "policies:\n  tell: { rules: [ { then: [ { set_header: { X-Client: \"${client.ip}\" } } ] } ] }";
    let start = |trust: &str| {
        let member = Member::echo();
        let line = format!("client_address: {{ trust: [ {trust} ] }}");
        let setup = Setup::new(&[member.address()]).virtual_server(&line);
        let proxy = Proxy::start(&setup.virtual_server("policies: [ tell ]").top(policy));
        (member, proxy)
    };
    let seen = |proxy: &Proxy, chain: &str| {
        let got = lines(&mut proxy.client(), &format!("X-Forwarded-For: {chain}\r\n"));
        got.iter()
            .find_map(|line| line.strip_prefix("X-Client: ").map(str::to_owned))
            .expect("a field")
    };
    let (_member, trusting) = start("127.0.0.0/8, 10.0.0.0/8");
    assert_eq!(seen(&trusting, "198.51.100.7"), "198.51.100.7");
    assert_eq!(
        seen(&trusting, "203.0.113.9, 198.51.100.7, 10.1.2.3"),
        "198.51.100.7",
        "forged on the left"
    );
    assert_eq!(seen(&trusting, "nonsense"), "127.0.0.1");
    let (_member, strict) = start("10.0.0.0/8");
    assert_eq!(seen(&strict, "198.51.100.7"), "127.0.0.1", "who connects is not trusted");
}

#[test]
fn the_proxy_protocol_is_taken_from_trusted_proxies() {
    let (_member, proxy) =
        echo("{ trust: [ 127.0.0.1/32 ], proxy_protocol: true, x_forwarded_for: replace }");
    let v2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x07\x7f\0\0\x01\x30\x39\0\x50";
    for header in [&b"PROXY TCP4 198.51.100.7 127.0.0.1 12345 80\r\n"[..], v2] {
        // In one piece and byte by byte.
        for step in [header.len(), 1] {
            let mut client = proxy.client();
            for piece in header.chunks(step) {
                client.send(piece);
            }
            let got = lines(&mut client, "");
            assert!(got.iter().any(|line| line == "X-Forwarded-For: 198.51.100.7"), "{got:?}");
        }
    }
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.reader().rest().is_empty(), "a trusted proxy has to begin with a header");
    let mut stranger = Client::connect_from(proxy.address(), [127, 0, 5, 1].into());
    stranger
        .send("PROXY TCP4 198.51.100.7 127.0.0.1 12345 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(stranger.response().status, 400, "from others it is no request");
}

#[test]
fn members_get_the_proxy_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let member = std::thread::spawn(move || {
        (0..2)
            .map(|_| {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut received = [0; 4_096];
                let mut length = 0;
                while !received[..length].ends_with(b"\r\n\r\n") {
                    length += stream.read(&mut received[length..]).expect("bytes");
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .expect("an answer");
                String::from_utf8_lossy(&received[..length]).into_owned()
            })
            .collect::<Vec<String>>()
    });
    let proxy = Proxy::start(&Setup::new(&[address]).pool("proxy_protocol: v1"));
    let mut client = proxy.client();
    for _ in 0..2 {
        assert_eq!(client.get("/").assert_status(200).text(), "ok");
    }
    for received in member.join().expect("the member") {
        let (line, request) = received.split_once("\r\n").expect("a line");
        assert!(line.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{line}");
        assert!(request.starts_with("GET / HTTP/1.1\r\n"), "{request}");
    }
}

#[test]
fn half_a_header_of_the_proxy_protocol_is_not_waited_for_for_ever() {
    let member = Member::echo();
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .http("header_timeout: 300ms")
            .virtual_server("client_address: { trust: [ 127.0.0.1/32 ], proxy_protocol: true }"),
    );
    for begun in [&b""[..], b"PROXY TCP4 198.51.100.7 ", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0"] {
        let mut client = proxy.client();
        client.send(begun);
        // The connection ends. Bytes received before that do not matter.
        let _ = client.reader().rest();
    }
    assert_eq!(member.request_count(), 0);
}

#[test]
fn what_is_appended_comes_behind_what_rules_and_trusted_proxies_say() {
    let trusting = "{ trust: [ 127.0.0.0/8 ], x_forwarded_for: append, forwarded: append, x_forwarded_proto: true }";
    let (_member, proxy) = echo(trusting);
    let came = "X-Forwarded-For: 198.51.100.7\r\nForwarded: for=198.51.100.7\r\n\
                X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nX_Forwarded_For: 10.0.0.1\r\n\
                X.Forwarded.For: 10.0.0.1\r\nX-Forwarded~For: 10.0.0.1\r\nX.Forwarded-Host: 10.0.0.1\r\n";
    let got = lines(&mut proxy.client(), came);
    let has = |line: &str| got.iter().any(|got| got == line);
    // The client is 198.51.100.7. weir's peer is a proxy at 127.0.0.1.
    assert!(has("X-Forwarded-For: 198.51.100.7, 127.0.0.1"), "{got:?}");
    assert!(
        got.iter().any(|line| line.starts_with("Forwarded: for=198.51.100.7, for=\"127.0.0.1:"))
    );
    assert!(has("X-Forwarded-Proto: https") && has("X-Forwarded-Host: shop.example"), "{got:?}");
    assert!(!got.iter().any(|line| line.contains("10.0.0.1")), "a look-alike: {got:?}");
    // weir replaces a value with an open quote, because the quote would include the appended element.
    let got = lines(&mut proxy.client(), "Forwarded: for=1.1.1.1;x=\"\r\n");
    assert!(got.iter().any(|line| line.starts_with("Forwarded: for=\"127.0.0.1:")), "{got:?}");
    let member = Member::echo();
    let setup = Setup::new(&[member.address()])
        .virtual_server("client_address: { x_forwarded_for: append }")
        .virtual_server("policies: [ p ]")
        .top("policies:\n  p: { strategy: all_match, rules: [ { when: 'request.path == \"/\"', then: [ { remove_header: X-Forwarded-For } ] }, { when: 'request.headers[\"x-set\"] == \"1\"', then: [ { set_header: { X-Forwarded-For: 192.0.2.9 } } ] } ] }");
    let proxy = Proxy::start(&setup);
    let told = |fields: &str| {
        let got = lines(&mut proxy.client(), fields);
        got.iter().find_map(|line| line.strip_prefix("X-Forwarded-For: ").map(str::to_owned))
    };
    assert_eq!(told("X-Forwarded-For: 6.6.6.6\r\n").as_deref(), Some("127.0.0.1"));
    assert_eq!(told("X-Set: 1\r\n").as_deref(), Some("192.0.2.9, 127.0.0.1"));
}

/// Waits until the access log has this number of lines. Returns the lines.
fn logged(proxy: &mut Proxy, count: usize) -> Vec<serde_json::Value> {
    let mut lines = Vec::new();
    weir_tests::eventually("the access log has its lines", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let json = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines = json.filter(|line: &serde_json::Value| line["status"].is_u64()).collect();
        lines.len() >= count
    });
    lines
}

#[test]
fn the_access_log_names_the_client_and_who_named_it() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()])
        .virtual_server("client_address: { trust: [ 127.0.0.0/8 ] }")
        .access_log();
    let mut proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    lines(&mut client, "X-Forwarded-For: 192.0.2.1\r\n");
    lines(&mut client, "");
    drop(client);
    let logged = logged(&mut proxy, 2);
    let named = logged.iter().find(|line| line["client"] == "192.0.2.1").expect("one of them");
    assert!(named["peer"].as_str().expect("the proxy").starts_with("127.0.0.1:"));
    let own = logged.iter().find(|line| line["client"] != "192.0.2.1").expect("the other");
    assert!(own["client"].as_str().expect("the client").starts_with("127.0.0.1:"));
    assert_eq!(own["peer"], serde_json::Value::Null);
}

#[test]
fn the_combined_log_begins_with_the_client() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()])
        .virtual_server("client_address: { trust: [ 127.0.0.0/8 ] }")
        .access_log_as("combined");
    let mut proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    lines(&mut client, "X-Forwarded-For: 192.0.2.1\r\nUser-Agent: one\r\n");
    lines(&mut client, "User-Agent: two\r\n");
    drop(client);
    weir_tests::eventually("both lines are there", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let of = |agent: &str| output.lines().find(|line| line.contains(agent)).map(str::to_owned);
        let (Some(one), Some(two)) = (of("\"one\""), of("\"two\"")) else { return false };
        assert!(
            one.starts_with("192.0.2.1 - - [") && one.contains("\"GET / HTTP/1.1\" 200"),
            "{one}"
        );
        assert!(two.starts_with("127.0.0.1 - - ["), "{two}");
        true
    });
}

#[test]
fn lines_have_the_form_that_the_file_gives() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()])
        .virtual_server("client_address: { trust: [ 127.0.0.0/8 ] }")
        .access_log_as(
            "{ text: \"<${client_ip}> '${method} ${target}' ${status} $$ ${request.headers['x-app']} ${tls_version} ${member} ${rules} \\\"${user_agent}\\\"\" }",
        );
    let mut proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    lines(&mut client, "X-Forwarded-For: 192.0.2.1\r\nX-App: a\"b 200\r\nUser-Agent: c d\r\n");
    lines(&mut client, "");
    proxy.client().send("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n").response().assert_status(400);
    let at = member.address();
    let expected = [
        format!("<192.0.2.1> 'GET /' 200 $ a\\x22b\\x20200 - {at} - \"c d\""),
        format!("<127.0.0.1> 'GET /' 200 $ - - {at} - \"-\""),
        "<127.0.0.1> '- -' 400 $ - - - - \"-\"".to_owned(),
    ];
    weir_tests::eventually("all is logged", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        expected.iter().all(|expected| output.lines().any(|line| line == expected))
    });
    let rules = "[ { name: seen, when: 'request.path == \"/\"', then: [ { trace: one } ] } ]";
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ test ]")
        .top(&format!("policies: {{ test: {{ rules: {rules} }} }}"))
        .access_log_as("{ json: [ status, \"request.headers['X-App']\", tls_cipher, rules, marks, method, body_bytes_sent ] }");
    proxy.reload_and_wait(&setup);
    let mut client = proxy.client();
    let length = {
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-App: \u{e9}\r\n\r\n");
        client.response().assert_status(200).body.len()
    };
    let line = format!(
        "{{\"status\":200,\"x-app\":\"\\u00c3\\u00a9\",\"rules\":[\"test/seen\"],\"marks\":[\"one\"],\"method\":\"GET\",\"body_bytes_sent\":{length}}}"
    );
    weir_tests::eventually("it is logged", weir_tests::STEP_TIMEOUT, || {
        proxy.process().output().lines().any(|it| it == line)
    });
}

/// The value of a header in a response, or in a request that the member echoes.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[test]
fn a_request_has_one_id_for_its_member_its_client_and_the_log() {
    let member = Member::echo();
    let start = |settings: &str| {
        let rule = "[ { when: 'request.path == \"/end\"', then: [ { respond: { status: 404 } } ] },\n\
                    { when: 'request.path == \"/own\"', then: [ { set_header: { X-Request-Id: mine } } ] } ]";
        let setup = Setup::new(&[member.address()])
            .virtual_server(settings)
            .virtual_server("policies: [ test ]")
            .top(&format!("policies: {{ test: {{ rules: {rule} }} }}"))
            .access_log();
        Proxy::start(&setup)
    };
    let ask = |proxy: &Proxy, path: &str, fields: &str| {
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        let response = client.response();
        let id = |name: &str| response.head.field(name).map(str::to_owned);
        let text = response.text();
        (id("x-request-id"), value(&text, "x-request-id").map(str::to_owned))
    };
    let is_made = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());

    // From an untrusted peer, the id is replaced.
    let mut proxy = start("request_id: {}");
    let (first, to_member) = ask(&proxy, "/", "X-Request-Id: forged\r\n");
    let first = first.expect("the client is told");
    assert!(is_made(&first), "{first}");
    assert_eq!(to_member.as_deref(), Some(&*first));
    let (second, _) = ask(&proxy, "/end", "");
    let second = second.expect("answers of weir's own have it, too");
    assert!(is_made(&second) && second != first, "{second}");
    assert_eq!(ask(&proxy, "/own", "").1.as_deref(), Some("mine"), "a rule's word stays");
    let ids: Vec<_> =
        logged(&mut proxy, 3).into_iter().map(|line| line["request_id"].clone()).collect();
    assert!(ids.contains(&first.into()) && ids.contains(&second.into()), "{ids:?}");

    // From a trusted proxy, the id is accepted if it is safe in logs and pages.
    let trusted = "client_address: { trust: [ 127.0.0.0/8 ] }\n    request_id: { header: X-Trace }";
    let mut proxy = start(trusted);
    let got = lines(&mut proxy.client(), "X-Trace: Root=1-67891233-abc\r\n");
    assert!(got.contains(&"X-Trace: Root=1-67891233-abc".to_owned()), "{got:?}");
    for unsound in ["a b", "<b>", "one\r\nX-Trace: two", ""] {
        let got = lines(&mut proxy.client(), &format!("X-Trace: {unsound}\r\n"));
        let sent: Vec<_> = got.iter().filter_map(|line| line.strip_prefix("X-Trace: ")).collect();
        let [id] = sent[..] else { panic!("{unsound:?}: {got:?}") };
        assert!(is_made(id), "{unsound:?}: {got:?}");
    }
    let ids: Vec<_> =
        logged(&mut proxy, 5).into_iter().map(|line| line["request_id"].clone()).collect();
    assert!(ids.contains(&"Root=1-67891233-abc".into()), "{ids:?}");

    // Without `respond`, clients do not receive the id.
    let proxy = start("request_id: { respond: false }");
    let (to_client, to_member) = ask(&proxy, "/", "");
    assert_eq!(to_client, None);
    assert!(is_made(&to_member.expect("the member is told")));
}
