//! Responses: inspected before the client receives them, held completely if rules inspect them, and never held if they are
//! streams.

use std::net::Shutdown;
use std::sync::mpsc;

use serde_json::Value;
use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

use crate::setup::{Rules, ask, counted, get, guarded, wait_for_lines};

const LEAKS: &str = r#"
SecRule RESPONSE_STATUS "@streq 500" "id:1,phase:3,deny,status:502,msg:'a status'"
SecRule RESPONSE_HEADERS:X-Debug "@contains secret" "id:2,phase:3,deny,status:503,msg:'a field'"
SecRule RESPONSE_BODY "@contains ORA-00933" "id:3,phase:4,deny,status:504,msg:'an error of a data base'"
SecRule ARGS "@contains attack" "id:4,phase:2,deny,status:403,msg:'an attack'"
"#;

/// A member that responds with the headers and the body in the path `/FIELD~FIELD~BODY`, in which `_` is a space.
fn member() -> Member {
    Member::new(|exchange| {
        let target = exchange.request.target().replace('_', " ");
        let parts: Vec<&str> = target.trim_start_matches('/').split('~').collect();
        let (fields, body) = parts.split_at(parts.len() - 1);
        let mut head = String::from("HTTP/1.1 200 OK\r\n");
        if fields.first() == Some(&"500") {
            head = "HTTP/1.1 500 Oops\r\n".into();
        }
        for field in fields.iter().filter(|field| field.contains(':')) {
            head += &format!("{field}\r\n");
        }
        let body = body[0];
        if fields.contains(&"chunked") {
            exchange.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"))?;
            for byte in body.as_bytes() {
                exchange.send(format!("1\r\n{}\r\n", char::from(*byte)))?;
            }
            exchange.send("0\r\n\r\n")?;
        } else if fields.contains(&"eof") {
            exchange.send(format!("{head}\r\n{body}"))?;
            return Ok(Then::Close);
        } else if fields.contains(&"cut") {
            exchange.send(format!("{head}Content-Length: 100\r\n\r\n{body}"))?;
            return Ok(Then::Reset);
        } else {
            exchange.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(Then::KeepAlive)
    })
}

fn leaks(member: &Member, rules: &Rules, more: &str) -> Setup {
    guarded(member, &rules.key(&format!("mode: block, responses: {{ {more} }}")))
}

#[test]
fn what_must_not_leave_is_answered_in_place_of() {
    let (member, rules) = (member(), Rules::new(LEAKS));
    let mut proxy = Proxy::start(&leaks(&member, &rules, "size_max: 64KiB"));
    let leak = "ORA-00933:_not_properly_ended";
    let cases = [
        ("/Content-Type:text/html~fine".to_owned(), 200),
        ("/500~Content-Type:text/html~fine".into(), 502),
        ("/X-Debug:no_secret~fine".into(), 503),
        (format!("/Content-Type:text/html~{leak}"), 504),
        (format!("/Content-Type:TEXT/Plain;charset=utf-8~{leak}"), 504),
        (format!("/Content-Type:application/json~chunked~{leak}"), 504),
        (format!("/Content-Type:text/html~eof~{leak}"), 504),
        // These responses are not inspected.
        (format!("/Content-Type:image/png~{leak}"), 200),
        (format!("/Content-Type:text/html~Content-Encoding:br~{leak}"), 200),
        // Browsers guess the type of a response without Content-Type, or with several.
        (format!("/{leak}"), 504),
        (format!("/Content-Type:image/png~Content-Type:text/html~{leak}"), 504),
    ];
    let mut client = proxy.client();
    for (target, status) in &cases {
        client.send(get(target));
        let response = client.response();
        assert_eq!(response.status, *status, "{target}");
        assert_eq!(response.text().contains("ORA"), *status == 200 && target.contains("ORA"));
        if response.head.has_token("Connection", "close") {
            client = proxy.client();
        }
    }
    let blocked = cases.iter().filter(|(_, status)| *status != 200).count();
    let lines = wait_for_lines(&mut proxy, blocked);
    assert!(lines.iter().all(|line| line["outcome"] == "blocked"), "{lines:#?}");
    assert_eq!(counted(&proxy, "blocked") as usize, blocked);
    assert_eq!(counted(&proxy, "inspected") as usize, cases.len());
}

#[test]
fn responses_arrive_as_they_were_sent() {
    let (member, rules) = (member(), Rules::new(LEAKS));
    let proxy = Proxy::start(&leaks(&member, &rules, "size_max: 1KiB"));
    let long = "x".repeat(5_000);
    for framing in ["", "chunked~", "eof~"] {
        for body in ["", "a", &"b".repeat(1_023), &"c".repeat(1_024), &long] {
            let response = ask(&proxy, get(&format!("/Content-Type:text/html~{framing}{body}")));
            assert_eq!((response.status, &*response.text()), (200, body), "{framing}");
        }
    }
    let mut client = proxy.client();
    client.send(get("/Content-Type:text/html~abc").replace("GET", "HEAD"));
    let head = client.head_response();
    assert_eq!((head.status, head.head.field("Content-Length")), (200, Some("3")));
    // Bytes beyond the maximum size are not inspected.
    let behind = format!("/Content-Type:text/html~{long}ORA-00933");
    assert_eq!(ask(&proxy, get(&behind)).status, 200);
}

#[test]
fn a_member_that_breaks_off_is_told_to_the_client() {
    let (member, rules) = (member(), Rules::new(LEAKS));
    let mut proxy = Proxy::start(&leaks(&member, &rules, "size_max: 1KiB").access_log());
    let response = ask(&proxy, get("/Content-Type:text/html~cut~half"));
    assert_eq!(response.status, 502, "nothing of it has gone out");
    assert!(!response.text().contains("half"));
    assert_eq!(ask(&proxy, get("/Content-Type:text/html~whole")).text(), "whole");
    eventually("the log tells it", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"termination\":\"member_abort\"")
    });
}

/// The log contains the number of bytes that the client has received: zero for a held response.
#[test]
fn a_client_that_leaves_while_its_response_is_held_has_got_none() {
    let (sender, receiver) = mpsc::sync_channel::<()>(1);
    let receiver = std::sync::Mutex::new(receiver);
    let member = Member::new(move |exchange| {
        exchange
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nhalf")?;
        // Until the client has disconnected.
        let _ = receiver.lock().expect("one client").recv();
        Ok(Then::Close)
    });
    let rules = Rules::new(LEAKS);
    let mut proxy = Proxy::start(&leaks(&member, &rules, "size_max: 1KiB").access_log());
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the response has begun", STEP_TIMEOUT, || {
        proxy.metric("weir_member_responses_total", &["2xx"]) == 1.0
    });
    client.reset();
    eventually("the log tells it", STEP_TIMEOUT, || {
        proxy.process().output().contains("\"termination\":\"client_abort\"")
    });
    drop(sender);
    let log = proxy.process().output();
    let line = log.lines().find(|line| line.contains("client_abort")).expect("a line");
    assert!(line.contains("\"status\":0,"), "{line}");
    assert!(line.contains("\"bytes_sent\":0,"), "{line}");
}

#[test]
fn event_streams_are_not_held() {
    let (sender, receiver) = mpsc::sync_channel::<&str>(1);
    let receiver = std::sync::Mutex::new(receiver);
    let member = Member::new(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        let events = receiver.lock().expect("one client");
        while let Ok(event) = events.recv() {
            exchange.send(event)?;
        }
        exchange.stream().shutdown(Shutdown::Write)?;
        Ok(Then::Close)
    });
    let rules = Rules::new(LEAKS);
    // Streams are not held even if their type is listed.
    let proxy = Proxy::start(&leaks(&member, &rules, "types: [ \"text/*\" ]"));
    let mut client = proxy.client();
    client.send(get("/"));
    for event in ["data: one\n\n", "data: ORA-00933\n\n"] {
        sender.send(event).expect("the member listens");
        let mut came = String::new();
        while !came.contains(event) {
            let mut buffer = [0; 1_024];
            let count = client.reader().some(&mut buffer).expect("the event");
            assert!(count > 0, "{came}");
            came += &String::from_utf8_lossy(&buffer[..count]);
        }
    }
    drop(sender);
}

#[test]
fn members_are_asked_for_what_can_be_read() {
    let (member, rules) = (member(), Rules::new(LEAKS));
    let setup = leaks(&member, &rules, "size_max: 64KiB").virtual_server("compression: {}");
    let proxy = Proxy::start(&setup);
    let long = "a".repeat(4_000);
    let request = |target: &str| get(target).replace("Accept:", "Accept-Encoding: gzip\r\nAccept:");
    let response = ask(&proxy, request(&format!("/Content-Type:text/html~{long}")));
    assert_eq!(response.head.field("Content-Encoding"), Some("gzip"));
    assert!(response.body.len() < 1_000);
    assert_eq!(
        ask(&proxy, request(&format!("/Content-Type:text/html~{long}ORA-00933"))).status,
        504
    );
    for request in member.requests() {
        assert_eq!(request.head.field("Accept-Encoding"), None);
    }
}

#[test]
fn both_sides_may_speak_http2() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let leaks = peer.streams[&stream].path() == "/leak";
            let fields = [(":status", "200"), ("content-type", "text/html")];
            peer.headers(stream, &fields, false);
            for byte in if leaks { "ORA-00933" } else { "fine" }.as_bytes().chunks(1) {
                peer.data(stream, byte, false);
            }
            peer.data(stream, b"", true);
        }
        Ok(())
    });
    let rules = Rules::new(LEAKS);
    let waf = rules.key("mode: block, responses: { size_max: 64KiB }");
    let setup = Setup::new(&[member.address()]).virtual_server(&waf).pool("http2: true");
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    for (path, status) in [("/", 200), ("/leak", 504), ("/", 200)] {
        client.send(get(path));
        assert_eq!(client.response().status, status, "{path}");
    }
}

/// A member may answer before the bytes arrive that show whether a body is that of a call. Its response is inspected all the
/// same, and what was no call is not taken for one.
#[test]
fn an_early_answer_to_what_claims_to_be_a_call_is_inspected() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let path = peer.streams[&stream].path().to_owned();
            let media_type = if path == "/page" { "text/html" } else { "application/grpc" };
            let debug = if path == "/leak" { "secret" } else { "none" };
            let fields = [(":status", "200"), ("content-type", media_type), ("x-debug", debug)];
            peer.headers(stream, &fields, false);
            if path == "/page" {
                peer.data(stream, b"ORA-00933", true);
            }
        }
        Ok(())
    });
    let rules = Rules::new(LEAKS);
    let setup = |unjudged: &str| {
        let keys = format!("mode: block, unjudged: {unjudged}, responses: {{ size_max: 64KiB }}");
        // The built-in rules need bodies, so they look at what claims to be a call.
        let waf =
            rules.key(&keys).replace("rules: \"", "rules: [ builtin, \"").replace("\",", "\" ],");
        Setup::new(&[member.address()]).virtual_server(&waf).http("http2: true").pool("http2: true")
    };
    let call = [("content-type", "application/grpc"), ("user-agent", "test"), ("accept", "*/*")];
    for (unjudged, path, status) in [
        ("block", "/leak", 503),
        ("pass", "/leak", 503),
        ("block", "/page", 400),
        ("pass", "/page", 504),
        ("block", "/call", 200),
    ] {
        let proxy = Proxy::start(&setup(unjudged));
        let mut peer = Peer::connect(proxy.address());
        let stream = peer.request("POST", path, &call, false);
        let head = peer.response_head(stream);
        assert_eq!(head.status(), status, "{unjudged} {path}");
        if path == "/call" {
            // The look goes on behind the head of the response.
            peer.data(stream, b"{\"a\":\"attack\"}", false);
            assert!(peer.response(stream).reset.is_some());
            let stream = peer.request("POST", path, &call, false);
            assert_eq!(peer.response_head(stream).status(), 200);
            peer.data(stream, b"\0\0\0\0\x02\x08\x01", false);
            peer.settle();
            assert_eq!(peer.streams[&stream].reset, None);
        }
    }
}

#[test]
fn only_detecting_lets_everything_leave() {
    let (member, rules) = (member(), Rules::new(LEAKS));
    let waf = rules.key("mode: detect, responses: { size_max: 64KiB }");
    let mut proxy = Proxy::start(&guarded(&member, &waf));
    let response = ask(&proxy, get("/Content-Type:text/html~ORA-00933"));
    assert_eq!((response.status, &*response.text()), (200, "ORA-00933"));
    let line = &wait_for_lines(&mut proxy, 1)[0];
    assert_eq!((&line["outcome"], &line["rule"]), (&"detected".into(), &3.into()));
}

/// A response is inspected regardless of the request's type, and even if the inspection of the request failed.
#[test]
fn each_response_is_judged_whatever_its_request_was() {
    let (member, rules) = (member(), Rules::new(LEAKS));
    let more = "mode: block, unjudged: pass, responses: { size_max: 64KiB }";
    let mut proxy = Proxy::start(&guarded(&member, &rules.key(more)));
    let post = |media_type: &str, body: &str| {
        format!(
            "POST /Content-Type:text/html~ORA-00933 HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for (media_type, body) in
        [("application/grpc", "x"), ("application/json", "{bad"), ("application/json", "{}")]
    {
        assert_eq!(ask(&proxy, post(media_type, body)).status, 504, "{media_type} {body}");
    }
    // If the response has no finding, the log contains the incomplete inspection of the request.
    let fine = post("application/json", "{bad").replace("ORA-00933", "fine");
    assert_eq!(ask(&proxy, fine).status, 200);
    let lines = wait_for_lines(&mut proxy, 4);
    let unjudged = lines.iter().find(|line| line["outcome"] == "unjudged").expect("one of them");
    assert_eq!(unjudged["limit"], "body");
    assert_eq!(counted(&proxy, "unjudged") as usize, 1);
}

#[test]
fn the_built_in_rules_know_leaks() {
    let bodies = std::sync::Mutex::new(std::collections::VecDeque::new());
    let bodies = std::sync::Arc::new(bodies);
    let next = std::sync::Arc::clone(&bodies);
    let member = Member::new(move |exchange| {
        let body: &str =
            next.lock().expect("no panic").pop_front().expect("a body for each request");
        let length = body.len();
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}"
        ))?;
        Ok(Then::KeepAlive)
    });
    let proxy = Proxy::start(&guarded(&member, "waf: { mode: block, checks: off, responses: {} }"));
    for (body, status) in [
        ("You have an error in your SQL syntax; check the manual", 403),
        ("SQLSTATE[42S02]: Base table or view not found", 403),
        ("ORA-00933: SQL command not properly ended", 403),
        ("<b>Warning</b>:  Undefined variable $x in <b>/var/www/a.php</b> on line <b>3</b>", 403),
        ("<?php echo $secret;", 403),
        ("oops\n    at com.example.Shop.buy(Shop.java:42)\n", 403),
        ("Traceback (most recent call last):\n  File", 403),
        ("<html><title>Index of /backup</title>", 403),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", 403),
        ("root:x:0:0:root:/root:/bin/bash\n", 403),
        ("uid=33(www-data) gid=33(www-data) groups", 403),
        ("<title>PHP 8.2.7 - phpinfo()</title>", 403),
        ("Learn SQL: the syntax of SELECT, and errors to avoid", 200),
        ("<p>Warning: the shop is closed on Monday</p>", 200),
        ("<?xml version=\"1.0\"?><feed/>", 200),
        ("look at com.example (today)", 200),
        ("<title>Index of books</title>", 200),
        ("-----BEGIN CERTIFICATE-----\nMII", 200),
        ("root: 3 items: 0: 1", 200),
        ("uid=33, gid=33", 200),
    ] {
        bodies.lock().expect("no panic").push_back(body);
        assert_eq!(ask(&proxy, get("/")).status, status, "{body}");
    }
}

#[test]
fn a_response_that_a_rule_drops_is_logged_without_a_status() {
    let rules = Rules::new(
        r#"
SecRule RESPONSE_HEADERS:X-Debug "@contains secret" "id:1,phase:3,drop"
SecRule RESPONSE_BODY "@contains ORA-00933" "id:2,phase:4,drop"
"#,
    );
    let member = member();
    let setup = leaks(&member, &rules, "size_max: 64KiB").access_log();
    let mut proxy = Proxy::start(&setup);
    for target in ["/X-Debug:no_secret~fine", "/Content-Type:text/html~ORA-00933"] {
        let mut client = proxy.client();
        client.send(get(target));
        client.assert_closed();
    }
    let mut ended = Vec::new();
    eventually("both are logged", STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        ended = lines.filter(|line| line["termination"] == "waf").collect();
        ended.len() == 2
    });
    let told = |line: &Value| line["status"] == 0 && line["bytes_sent"] == 0;
    assert!(ended.iter().all(told), "{ended:#?}");
}
