//! Trailers are subject to the same rules as heads, with both versions on both sides.

use weir_tests::client::Client;
use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::{Member, Request, Then};
use weir_tests::proxy::{Proxy, Setup};

/// Rules for heads, which must also apply to names that a CGI-like member treats as equal.
const RULES: &str = "policies:\n  p:\n    strategy: all_match\n    rules:\n      - then: [ \
    { set_header: { X-User: nobody } }, { remove_header: [ X-Secret ] }, { add_header: { X-Added: one } }, \
    { replace_header: { X-Role: { regex: admin, to: guest } } }, \
    { set_response_header: { X-Frame: deny } }, { remove_response_header: [ X-Internal ] }, \
    { replace_response_header: { X-Where: { regex: inner, to: outer } } } ]";

/// The fields that a client sends in the head and in the trailers.
const TRIED: [(&str, &str); 10] = [
    ("x-user", "root"),
    ("x_user", "root"),
    ("x.user", "root"),
    ("x-secret", "1"),
    ("x!secret", "1"),
    ("x-role", "admin"),
    ("x_role", "admin"),
    ("x-added", "two"),
    ("x-sum", "42"),
    ("proxy", "http://192.0.2.1"),
];

/// The fields of a member that weir must remove.
const TOLD: [(&str, &str); 8] = [
    ("x-frame", "allow"),
    ("x_frame", "allow"),
    ("x-internal", "1"),
    ("x.internal", "1"),
    ("x-where", "inner"),
    ("x|where", "inner"),
    ("x-back", "43"),
    ("set-cookie", "a=b"),
];

fn lines(fields: &[(&str, &str)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// A member that sends these fields in its head and in its trailers.
fn telling() -> Member {
    Member::new(|exchange| {
        let told = lines(&TOLD);
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{told}\r\n2\r\nok\r\n0\r\n{told}\r\n"
        ))?;
        Ok(Then::KeepAlive)
    })
}

/// A proxy with the rules whose member uses HTTP/1, or HTTP/2 through a second proxy.
fn with_rules(member: &Member, by_http2: bool, http: &[&str]) -> (Proxy, Option<Proxy>) {
    let forwarding = |setup: Setup| setup.http("http2: true").http("request_trailers: forward");
    let inner = by_http2.then(|| Proxy::start(&forwarding(Setup::new(&[member.address()]))));
    let address = inner.as_ref().map_or(member.address(), Proxy::address);
    let mut setup = Setup::new(&[address]).http("http2: true");
    for line in http {
        setup = setup.http(line);
    }
    let setup = setup.virtual_server("policies: [ p ]").top(RULES);
    let setup = if by_http2 { setup.pool("http2: true") } else { setup };
    (Proxy::start(&setup), inner)
}

type Pairs = Vec<(String, String)>;

/// The head and the trailers of the response to the client's fields over HTTP/1.
fn try_by_http1(proxy: &Proxy) -> (Pairs, Pairs) {
    let mut client = proxy.client();
    let tried = lines(&TRIED);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\
         Trailer: x-sum\r\n{tried}\r\n4\r\nbody\r\n0\r\n{tried}\r\n"
    ));
    let response = client.response();
    assert_eq!(response.assert_status(200).text(), "ok");
    (response.head.fields, response.trailers.fields)
}

/// The head and the trailers of the response to the client's fields over HTTP/2.
fn try_by_http2(proxy: &Proxy) -> (Pairs, Pairs) {
    let mut peer = Peer::connect(proxy.address());
    let fields = [&[("te", "trailers"), ("trailer", "x-sum")][..], &TRIED].concat();
    let stream = peer.request("POST", "/", &fields, false);
    peer.data(stream, b"body", false).headers(stream, &TRIED, true);
    let response = peer.response(stream);
    assert_eq!(response.assert_status(200).text(), "ok");
    (response.head, response.trailers)
}

/// The values of the given fields by name, for a recipient that normalises names as CGI does.
fn folded(fields: &[(String, String)], of: &[(&str, &str)]) -> Vec<String> {
    let fold = |name: &str| -> String {
        let fold =
            |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '_' };
        name.chars().map(fold).collect()
    };
    let concerns = |name: &str| of.iter().any(|(other, _)| fold(other) == fold(name));
    let told = fields.iter().filter(|(name, _)| concerns(name));
    told.map(|(name, value)| format!("{}={value}", fold(name))).collect()
}

fn check_request(request: &Request, trailers: &[&str], about: &str) {
    assert_eq!(request.body, b"body", "{about}");
    assert_eq!(
        folded(&request.head.fields, &TRIED),
        ["x_added=two", "x_sum=42", "x_user=nobody", "x_added=one", "x_role=guest"],
        "{about}: {request:?}"
    );
    assert_eq!(folded(&request.trailers.fields, &TRIED), trailers, "{about}: {request:?}");
    let is_announced = request.head.field("trailer").is_some();
    assert_eq!(is_announced, !trailers.is_empty(), "{about}");
}

fn check_response((head, trailers): &(Pairs, Pairs), about: &str) {
    assert_eq!(
        folded(head, &TOLD),
        ["x_back=43", "set_cookie=a=b", "x_frame=deny", "x_where=outer"],
        "{about}: {head:?}"
    );
    assert_eq!(folded(trailers, &TOLD), ["x_back=43"], "{about}: {trailers:?}");
}

#[test]
fn trailers_obey_the_rules_of_their_head_in_both_directions_and_versions() {
    for by_http2 in [false, true] {
        let member = telling();
        let (proxy, _inner) = with_rules(&member, by_http2, &["request_trailers: forward"]);
        // Each version twice, because state of one request must not affect the next one.
        for (round, by) in ["HTTP/1", "HTTP/2", "HTTP/1", "HTTP/2"].into_iter().enumerate() {
            let about = format!("{by}, member by HTTP/2: {by_http2}");
            let response = if by == "HTTP/1" { try_by_http1(&proxy) } else { try_by_http2(&proxy) };
            check_response(&response, &about);
            check_request(&member.requests()[round], &["x_sum=42"], &about);
        }
    }
}

#[test]
fn request_trailers_end_here_unless_they_are_asked_for() {
    for by_http2 in [false, true] {
        let member = telling();
        let (proxy, _inner) = with_rules(&member, by_http2, &[]);
        for (round, by) in ["HTTP/1", "HTTP/2"].into_iter().enumerate() {
            let about = format!("{by}, member by HTTP/2: {by_http2}");
            let response = if by == "HTTP/1" { try_by_http1(&proxy) } else { try_by_http2(&proxy) };
            check_response(&response, &about);
            check_request(&member.requests()[round], &[], &about);
        }
    }
}

/// Without rules, weir stores no state for trailers, and forwards all trailers that may be forwarded: none that says who the
/// client is or may do.
#[test]
fn trailers_without_rules() {
    let member = telling();
    let forwards = Setup::new(&[member.address()]).http("request_trailers: forward");
    for (setup, expected) in
        [(forwards, &["x_added=two", "x_sum=42"][..]), (Setup::new(&[member.address()]), &[])]
    {
        let proxy = Proxy::start(&setup);
        let (_, trailers) = try_by_http1(&proxy);
        assert_eq!(trailers.len(), TOLD.len() - 1, "{trailers:?}");
        let request = member.requests().pop().expect("a request");
        let got = folded(&request.trailers.fields, &TRIED);
        assert_eq!(got, expected, "{request:?}");
        assert!(folded(&request.trailers.fields, &[("proxy", "")]).is_empty(), "{request:?}");
    }
}

/// The rules also apply to the trailers of a queued request.
#[test]
fn trailers_of_a_request_that_waits() {
    let (member, gate) = Member::gated("done");
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", member.address()))
        .pool("queue: { timeout: 30s }")
        .http("http2: true")
        .http("request_trailers: forward")
        .virtual_server("policies: [ p ]")
        .top("data_plane: { workers: 1 }")
        .top(RULES);
    let proxy = Proxy::start(&setup);
    let mut first: Client = proxy.client();
    first.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    member.wait_for_requests(1);
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/", &[], false);
    peer.data(stream, b"body", false).headers(stream, &TRIED, true);
    weir_tests::eventually("it waits", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 1.0
    });
    gate.open();
    first.response().assert_status(200);
    peer.response(stream).assert_status(200);
    let request = member.requests().pop().expect("a request");
    assert_eq!(folded(&request.trailers.fields, &TRIED), ["x_sum=42"], "{request:?}");
}

#[test]
fn fields_are_removed_by_the_beginning_of_their_names() {
    let member = telling();
    let rules = "policies:\n  p: { rules: [ { then: [ { remove_header: 'X-Sec*' }, { remove_response_header: [ 'X-In*', 'x-fr*' ] } ] } ] }";
    let setup = Setup::new(&[member.address()]).http("http2: true");
    let setup = setup.http("request_trailers: forward").virtual_server("policies: [ p ]");
    let proxy = Proxy::start(&setup.top(rules));
    for by_http2 in [false, true] {
        let (head, trailers) = if by_http2 { try_by_http2(&proxy) } else { try_by_http1(&proxy) };
        for fields in [&head, &trailers] {
            let gone = [("x-internal", ""), ("x-frame", "")];
            assert_eq!(folded(fields, &gone), [""; 0], "by HTTP/2: {by_http2}");
            assert_eq!(folded(fields, &[("x-where", "")]).len(), 2, "by HTTP/2: {by_http2}");
        }
        let request = member.requests().pop().expect("a request");
        for fields in [&request.head.fields, &request.trailers.fields] {
            assert_eq!(folded(fields, &[("x-secret", "")]), [""; 0], "by HTTP/2: {by_http2}");
            assert!(!folded(fields, &[("x-sum", "")]).is_empty(), "by HTTP/2: {by_http2}");
        }
    }
}

/// A member of HTTP/2 that says that there is no body and ends with trailers. It tells of the trailers of requests.
fn bodiless(fields: &'static [(&'static str, &'static str)]) -> Http2Member {
    Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            let mut head = vec![(":status", "200")];
            if let Some((_, status)) = fields.iter().find(|(name, _)| *name == ":status") {
                head[0].1 = status;
            }
            head.extend(fields.iter().filter(|(name, _)| *name != ":status"));
            peer.headers(stream, &head, false);
            let seen = request.trailers.first().map_or("none", |(_, value)| value);
            let seen = seen.to_owned();
            peer.headers(
                stream,
                &[("grpc-status", "7"), ("x-seen", &seen), ("x-secret", "1")],
                true,
            );
        }
        Ok(())
    })
}

#[test]
fn no_body_is_not_the_end_of_a_response() {
    for (method, fields) in [
        ("POST", &[("content-type", "application/grpc"), ("content-length", "0")][..]),
        ("GET", &[("content-type", "text/plain"), ("content-length", "0")]),
        ("HEAD", &[("content-type", "text/plain"), ("content-length", "1000")]),
        ("HEAD", &[("content-type", "text/plain")]),
        ("GET", &[(":status", "204")]),
        ("GET", &[(":status", "304")]),
    ] {
        let member = bodiless(fields);
        for more in [
            "compression: {}",
            "server_timing: true",
            "request_trailers: forward",
            "policies:\n  p:\n    rules:\n      - then: [ { remove_response_header: [ X-Secret ] } ]",
        ] {
            let setup = Setup::new(&[member.address()]).http("http2: true").pool("http2: true");
            let with_rules = more.starts_with("policies");
            let setup = match more {
                "request_trailers: forward" => setup.http(more),
                _ if with_rules => setup.top(more).virtual_server("policies: [ p ]"),
                _ => setup.virtual_server(more),
            };
            let proxy = Proxy::start(&setup);
            let mut peer = Peer::connect(proxy.address());
            let accepts = [("accept-encoding", "gzip")];
            let stream = peer.request(method, "/", &accepts, true);
            let got = peer.response(stream);
            let about = format!("{method} {fields:?} {more}: {got:?}");
            assert!(got.ended && got.body.is_empty(), "{about}");
            let length = fields.iter().find(|(name, _)| *name == "content-length").map(|it| it.1);
            if more != "compression: {}" || method != "HEAD" {
                assert_eq!(got.field("content-length"), length, "{about}");
            }
            let has = |name: &str| got.trailers.iter().any(|(told, _)| told == name);
            assert!(has("grpc-status"), "{about}");
            assert_eq!(has("x-secret"), !with_rules, "{about}");
            // A client of HTTP/1 gets the same head, and no trailers.
            let mut client = proxy.client();
            for _ in 0..2 {
                client.send(format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n"));
                let plain = client.try_response(method == "HEAD").expect("a response");
                assert_eq!((plain.status, plain.body), (got.status(), Vec::new()), "{about}");
            }
        }
    }
}

#[test]
fn no_body_is_not_the_end_of_a_request() {
    let member = bodiless(&[("content-length", "0")]);
    let plain = Member::new(|exchange| {
        let seen = exchange.request.trailers.field("x-sum").unwrap_or("none").to_owned();
        exchange.send(format!("HTTP/1.1 200 OK\r\nX-Seen: {seen}\r\nContent-Length: 0\r\n\r\n"))?;
        Ok(Then::KeepAlive)
    });
    for (forwards, expected) in [("forward", "42"), ("drop", "none")] {
        for (address, by_http2) in [(member.address(), true), (plain.address(), false)] {
            let setup = Setup::new(&[address]).http("http2: true");
            let setup = setup.pool(&format!("http2: {by_http2}"));
            let setup = setup.http(&format!("request_trailers: {forwards}"));
            let proxy = Proxy::start(&setup);
            let mut peer = Peer::connect(proxy.address());
            for waits in [false, true] {
                let stream = peer.request("POST", "/", &[("content-length", "0")], false);
                if waits {
                    // The head is read before the trailers are sent.
                    peer.settle();
                }
                peer.headers(stream, &[("x-sum", "42")], true);
                let got = peer.response(stream);
                let seen = if by_http2 { &got.trailers } else { &got.head };
                let seen = seen.iter().find(|(name, _)| name == "x-seen").map(|it| it.1.as_str());
                // Without trailers to come, the request is whole at once.
                let expected = if forwards == "drop" { "none" } else { expected };
                assert_eq!(seen, Some(expected), "{forwards} {by_http2} {waits}: {got:?}");
                let stream = peer.request("POST", "/", &[("content-length", "0")], false);
                peer.data(stream, b"", true);
                assert_eq!(peer.response(stream).status(), 200);
            }
        }
    }
}

/// What members believe of a proxy does not come from a client by a trailer, whether or not rules concern it.
#[test]
fn trailers_that_name_the_client_or_the_target_end_here() {
    const CLAIMS: [(&str, &str); 8] = [
        ("x-original-url", "/admin"),
        ("x_rewrite_url", "/admin"),
        ("true-client-ip", "192.0.2.1"),
        ("cf-connecting-ip", "192.0.2.1"),
        ("remote-user", "root"),
        ("x-ssl-client-s-dn", "CN=root"),
        ("x-http-method-override", "DELETE"),
        ("x-sum", "42"),
    ];
    for by_http2 in [false, true] {
        let member = telling();
        let setup = Setup::new(&[member.address()]).http("http2: true");
        let proxy = Proxy::start(&setup.http("request_trailers: forward"));
        if by_http2 {
            let mut peer = Peer::connect(proxy.address());
            let stream = peer.request("POST", "/", &[], false);
            peer.data(stream, b"body", false).headers(stream, &CLAIMS, true);
            peer.response(stream).assert_status(200);
        } else {
            let mut client = proxy.client();
            let claims = lines(&CLAIMS);
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n{claims}\r\n"
            ));
            client.response().assert_status(200);
        }
        let request = member.requests().pop().expect("a request");
        assert_eq!(folded(&request.trailers.fields, &CLAIMS), ["x_sum=42"], "{request:?}");
    }
}
