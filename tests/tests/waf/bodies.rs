//! Bodies that weir holds until they are inspected and then sends completely, and bodies that it cannot inspect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weir_tests::http2::Peer;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

use crate::setup::{Rules, ask, counted, form, guarded, wait_for_any, wait_for_lines, with_type};

/// Rules that require the inspection of all bodies.
const EVERY_BODY: &str = r#"
SecAction "id:1,phase:1,nolog,pass,ctl:forceRequestBodyVariable=On"
SecRule REQUEST_BODY "@contains attack" "id:2,phase:2,deny,status:403,msg:'in the body'"
SecRule ARGS "@contains attack" "id:3,phase:2,deny,status:403,msg:'an argument'"
"#;

/// More bytes than sockets accept without a reader.
const LONG_BYTES: usize = 1_000_000;

#[test]
fn members_are_not_asked_before_the_body_is_judged() {
    let member = Member::echo();
    let rules = Rules::new(EVERY_BODY);
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    for (pieces, status) in [(["harm", "less"], 200), (["att", "ack"], 403)] {
        let before = member.connection_count();
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for piece in pieces {
            client.send(format!("{:x}\r\n{piece}\r\n", piece.len()));
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(member.connection_count(), before, "not before all of it is there");
        }
        client.send("0\r\n\r\n");
        let response = client.response();
        assert_eq!(response.status, status);
        assert_eq!(response.text().ends_with("harmless"), status == 200);
    }
    assert_eq!(member.request_count(), 1);
}

#[test]
fn what_rules_do_not_look_at_passes_as_it_comes() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let member = Member::streaming(move |exchange| {
        exchange.read_body(|bytes| {
            counter.fetch_add(bytes.len(), Ordering::Relaxed);
        })?;
        exchange.answer("done")
    });
    let rules = Rules::new("SecRule ARGS \"@contains attack\" \"id:3,phase:2,deny,status:403\"");
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    let mut client = proxy.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\nContent-Length: 10\r\n\r\nhello",
    );
    eventually("the member has the first half", STEP_TIMEOUT, || seen.load(Ordering::Relaxed) == 5);
    client.send("world");
    assert_eq!(client.response().text(), "done");
    // The query is inspected in every case.
    let attack = with_type("/?q=attack", "application/octet-stream", "x");
    assert_eq!(ask(&proxy, attack).status, 403);
}

/// In the mode `detect`, weir forwards bodies without holding them.
#[test]
fn what_is_only_detected_passes_while_it_is_judged() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let member = Member::streaming(move |exchange| {
        let awaited = exchange.request.head.field("expect").is_some();
        if awaited {
            exchange.send("HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        exchange.read_body(|bytes| {
            counter.fetch_add(bytes.len(), Ordering::Relaxed);
        })?;
        exchange.answer(if awaited { "awaited" } else { "done" })
    });
    let rules = Rules::new(EVERY_BODY);
    let mut proxy = Proxy::start(&guarded(&member, &rules.key("mode: detect")).http("http2: true"));
    let half = |count: usize| {
        eventually("the member has the first half", STEP_TIMEOUT, || {
            seen.load(Ordering::Relaxed) == count
        });
        seen.store(0, Ordering::Relaxed);
    };
    let mut client = proxy.client();
    for (first, second) in [("att", "ack"), ("harm", "less")] {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(format!("{:x}\r\n{first}\r\n", first.len()));
        half(first.len());
        client.send(format!("{:x}\r\n{second}\r\n0\r\n\r\n", second.len()));
        assert_eq!(client.response().text(), "done");
        seen.store(0, Ordering::Relaxed);
    }
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/", &[], false);
    peer.data(stream, b"att", false);
    half(3);
    peer.data(stream, b"ack", true);
    assert_eq!(peer.response(stream).text(), "done");
    // With `detect`, the member decides about `Expect: 100-continue`.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n");
    let interim = client.reader().head().expect("a head").expect("one more");
    assert!(interim.start.contains(" 100 "), "{interim:?}");
    client.send("attack");
    assert_eq!(client.response().text(), "awaited");
    for line in wait_for_lines(&mut proxy, 3) {
        assert_eq!((&line["outcome"], &line["rule"]), (&"detected".into(), &2.into()), "{line}");
        assert_eq!(line["blocked"], false);
    }
    assert_eq!(counted(&proxy, "inspected"), 4.0);
    assert_eq!(counted(&proxy, "detected"), 3.0);
}

#[test]
fn what_is_only_detected_passes_whatever_its_body_is() {
    let member = Member::new(|exchange| {
        let length = exchange.request.body.len();
        exchange.answer(length.to_string())
    });
    let rules = Rules::new(EVERY_BODY);
    let keys = "mode: detect, body_size_max: 16KiB";
    let mut proxy = Proxy::start(&guarded(&member, &rules.key(keys)));
    let mut client = proxy.client();
    // With an attack before the limit, and with one only after it.
    for (body, outcome) in [("attack", "unjudged"), ("", "unjudged")] {
        let long = format!("{body}{}attack", "x".repeat(100_000));
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
            long.len()
        ));
        assert_eq!(client.response().text(), long.len().to_string());
        let line = wait_for_any(&mut proxy, |line| line["outcome"] == outcome);
        assert_eq!((&line["limit"], &line["blocked"]), (&"body_length".into(), &false.into()));
    }
    client.send(with_type("/", "application/json", "{bad"));
    assert_eq!(client.response().text(), "4");
    let line = wait_for_any(&mut proxy, |line| line["limit"] == "body");
    assert_eq!((&line["outcome"], &line["blocked"]), (&"unjudged".into(), &false.into()));
    // If the client disconnects before the end of the body, findings in the head are still logged.
    let rules = Rules::new(
        "SecRule ARGS_GET \"@contains attack\" \"id:7,phase:1,pass,log,msg:'in the query'\"\nSecAction \"id:1,phase:1,nolog,pass,ctl:forceRequestBodyVariable=On\"",
    );
    let mut proxy = Proxy::start(&guarded(&member, &rules.key("mode: detect")));
    let mut client = proxy.client();
    client.send("POST /?q=attack HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nharm");
    client.reset();
    let line = wait_for_any(&mut proxy, |line| line["outcome"] == "unfinished");
    assert_eq!(line["rules"][0]["id"], 7, "{line}");
}

/// A member may respond before the body is complete, while weir still inspects the body.
#[test]
fn an_early_answer_does_not_end_what_only_detects() {
    let member = Member::streaming(|exchange| {
        exchange.answer("early")?;
        exchange.read_body(|_| {})?;
        Ok(Then::KeepAlive)
    });
    let rules = Rules::new(EVERY_BODY);
    let mut proxy = Proxy::start(&guarded(&member, &rules.key("mode: detect")));
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\natt");
    assert_eq!(client.response().text(), "early");
    drop(client);
    proxy.wait_for_open_connections("main", 0.0);
    assert_eq!(counted(&proxy, "inspected"), 1.0);
    assert_eq!(counted(&proxy, "detected"), 0.0);
    assert!(crate::setup::lines(&mut proxy).is_empty(), "half of a word is no finding");
}

/// Rules also have a time limit, because the cost of a byte depends on the rules.
#[test]
fn rules_that_take_too_long_do_not_judge() {
    let member = Member::named("member");
    let mut text = String::new();
    for number in 1..=300 {
        text += &format!(
            "SecRule ARGS \"@rx [a-m]{{3}}[n-z]+[0-9]{{{number}}}\" \"id:{number},phase:2,deny,status:403\"\n"
        );
    }
    let rules = Rules::new(&text);
    let value = "aan0".repeat(15_000);
    let values: Vec<String> = (0..14).map(|number| format!("{number}={number}{value}")).collect();
    let long = form("/", &values.join("&"));
    for (unjudged, status) in [("block", 403), ("pass", 200)] {
        let keys = format!("mode: block, time_max: 10ms, work_max: 10GiB, unjudged: {unjudged}");
        let mut proxy = Proxy::start(&guarded(&member, &rules.key(&keys)));
        assert_eq!(ask(&proxy, &long).status, status);
        assert_eq!(ask(&proxy, form("/", "q=shoes")).status, 200);
        let line = &wait_for_lines(&mut proxy, 1)[0];
        assert_eq!((&line["outcome"], &line["limit"]), (&"unjudged".into(), &"time".into()));
        let stopped = &line["stopped"];
        assert_eq!(stopped["phase"], 2);
        assert!(stopped["rule"].as_u64().is_some_and(|rule| (1..=300).contains(&rule)), "{line}");
        assert_eq!(line["blocked"], status == 403);
    }
}

#[test]
fn long_bodies_arrive_whole() {
    let member = Member::new(|exchange| {
        let body = &exchange.request.body;
        let is_right = body.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8);
        let text = format!("{} {is_right}", body.len());
        exchange.answer(text)
    });
    let rules = Rules::new(EVERY_BODY);
    let setup = guarded(&member, &rules.key("mode: block, body_size_max: 2MiB"));
    let proxy = Proxy::start(&setup.http("http2: true"));
    let body: Vec<u8> = (0..LONG_BYTES).map(|at| (at % 251) as u8).collect();
    let expected = format!("{LONG_BYTES} true");
    let mut client = proxy.client();
    for _ in 0..3 {
        assert_eq!(client.post("/", &body).text(), expected, "on one connection");
    }
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/", &[], false);
    peer.body(stream, &body, true).expect("weir takes it");
    assert_eq!(peer.response(stream).text(), expected);
    let mut chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body.chunks(10_007) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(ask(&proxy, chunked).text(), expected);
}

#[test]
fn too_long_bodies_are_not_judged() {
    let member = Member::new(|exchange| {
        let length = exchange.request.body.len();
        exchange.answer(length.to_string())
    });
    let rules = Rules::new(EVERY_BODY);
    let long = "x".repeat(100_000);
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    for (more, status, outcome) in [
        ("mode: block", 413, true),
        ("mode: block, unjudged: pass", 200, false),
        ("mode: detect", 200, false),
    ] {
        let mut proxy =
            Proxy::start(&guarded(&member, &rules.key(&format!("body_size_max: 10KiB, {more}"))));
        for request in [form("/", &long), chunked.clone()] {
            let response = ask(&proxy, request);
            assert_eq!(response.status, status, "{more}");
            assert!(status != 200 || response.text() == "100000", "{more}: {}", response.text());
        }
        for line in wait_for_lines(&mut proxy, 2) {
            assert_eq!(
                (&line["outcome"], &line["limit"]),
                (&"unjudged".into(), &"body_length".into())
            );
            assert_eq!(line["blocked"], outcome, "{line}");
        }
        assert_eq!(counted(&proxy, "unjudged"), 2.0);
        // A long body does not hide an attack in another part.
        let expected = if more.contains("block") { 403 } else { 200 };
        assert_eq!(ask(&proxy, form("/?q=attack", &long)).status, expected, "{more}");
    }
}

#[test]
fn malformed_bodies_are_not_judged() {
    let member = Member::echo();
    let rules = Rules::new(
        "SecRule REQUEST_HEADERS:Content-Type \"@beginsWith application/json\" \"id:9,phase:1,nolog,pass,ctl:requestBodyProcessor=JSON\"",
    );
    for (more, status) in [("mode: block", 400), ("mode: block, unjudged: pass", 200)] {
        let mut proxy = Proxy::start(&guarded(&member, &rules.key(more)));
        let json = |body: &str| with_type("/", "application/json", body);
        assert_eq!(ask(&proxy, json("{\"a\":")).status, status, "{more}");
        assert_eq!(ask(&proxy, json("{\"a\":1}")).status, 200, "{more}");
        let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
        assert_eq!(ask(&proxy, json(&deep)).status, status, "{more}");
        for line in wait_for_lines(&mut proxy, 2) {
            assert_eq!(line["limit"], "body", "{line}");
            assert!(line["reason"].as_str().is_some_and(|reason| reason.len() > 10), "{line}");
        }
    }
}

#[test]
fn clients_that_wait_are_told_to_go_on() {
    let member = Member::echo();
    let rules = Rules::new(EVERY_BODY);
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    let mut client = proxy.client();
    for (body, status) in [("harmless", 200), ("attacks!", 403)] {
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 8\r\n\r\n",
        );
        // weir sends 100 (Continue) before any part of the body has arrived.
        std::thread::sleep(Duration::from_millis(50));
        client.send(body);
        let response = client.response();
        assert_eq!((response.status, response.interim.len()), (status, 1), "{body}");
        assert!(!response.text().contains("Expect:"), "no member waits for what is here");
    }
}

#[test]
fn clients_that_break_off_are_not_passed_on() {
    let member = Member::echo();
    let rules = Rules::new(EVERY_BODY);
    let setup = guarded(&member, &rules.key("mode: block")).http("body_timeout: 300ms");
    let proxy = Proxy::start(&setup.http("http2: true"));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nharm";
    let mut client = proxy.client();
    client.send(head).finish();
    assert_eq!(client.response().status, 400);
    let mut client = proxy.client();
    client.send(head);
    client.reset();
    let mut client = proxy.client();
    client.send(head);
    assert_eq!(client.response().status, 408, "it took too long");
    let mut peer = Peer::connect(proxy.address());
    let stream = peer.request("POST", "/", &[], false);
    peer.data(stream, b"harm", false);
    assert_eq!(peer.response(stream).status(), 408);
    proxy.wait_for_open_connections("main", 1.0);
    assert_eq!(member.connection_count(), 0);
}

#[test]
fn what_was_found_before_a_body_broke_off_is_told() {
    let member = Member::echo();
    let rules = Rules::new(
        "SecRule ARGS_GET \"@contains attack\" \"id:7,phase:1,pass,log,msg:'in the query'\"\n\
         SecAction \"id:1,phase:1,nolog,pass,ctl:forceRequestBodyVariable=On\"",
    );
    let mut proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    for query in ["attack", "harmless"] {
        let mut client = proxy.client();
        let head = "Host: a\r\nContent-Length: 8\r\n\r\nharm";
        client.send(format!("POST /?q={query} HTTP/1.1\r\n{head}")).finish();
        assert_eq!(client.response().status, 400);
    }
    let line = &wait_for_lines(&mut proxy, 1)[0];
    assert_eq!((&line["outcome"], &line["blocked"]), (&"unfinished".into(), &false.into()));
    assert_eq!(line["rules"][0]["id"], 7, "{line}");
    assert_eq!(counted(&proxy, "inspected"), 2.0);
    assert_eq!(member.connection_count(), 0);
}

#[test]
fn requests_wait_for_their_turn_with_what_was_judged() {
    let (member, gate) = Member::gated("slow");
    let rules = Rules::new(EVERY_BODY);
    let waf = rules.key("mode: block");
    let place = format!("{{ address: \"{}\", connections_max: 1 }}", member.address());
    let setup = Setup::new(&[]).member(&place).virtual_server(&waf);
    let proxy = Proxy::start(&setup.pool("queue: { length_max: 10, timeout: 60s }"));
    let mut first = proxy.client();
    first.send(form("/first", "a=1"));
    let mut others: Vec<_> = (0..4).map(|_| proxy.client()).collect();
    for (number, client) in others.iter_mut().enumerate() {
        client.send(form("/", &format!("n={number}")));
    }
    gate.open();
    first.response().assert_status(200);
    for client in &mut others {
        client.response().assert_status(200);
    }
    let mut bodies: Vec<String> = member
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    bodies.sort();
    assert_eq!(bodies, ["a=1", "n=0", "n=1", "n=2", "n=3"]);
}

/// Bodies that servers may interpret differently than the rules are not inspected.
#[test]
fn bodies_that_cannot_be_looked_into_are_not_judged() {
    let member = Member::echo();
    let rules = Rules::new(EVERY_BODY);
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    let with = |fields: &str| {
        let length = "a=harmless".len();
        format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\na=harmless")
    };
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
    for (fields, status) in [
        (FORM.to_owned(), 200),
        (format!("{FORM}Content-Encoding: identity\r\n"), 200),
        (format!("{FORM}Content-Encoding: gzip\r\n"), 400),
        (format!("{FORM}Content-Type: image/png\r\n"), 400),
        (format!("Content-Type: image/png\r\n{FORM}"), 400),
        (format!("Content-Type:\r\n{FORM}"), 400),
        (FORM.replace("\r\n", "; charset=utf-16\r\n"), 400),
        (FORM.replace("\r\n", "; charset=iso-8859-1\r\n"), 200),
    ] {
        assert_eq!(ask(&proxy, with(&fields)).status, status, "{fields}");
    }
}

/// A type does not make a call, and HTTP/1.1 cannot carry one. So rules that require all bodies get this one.
#[test]
fn a_call_of_http1_is_held() {
    let member = Member::echo();
    let rules = Rules::new(EVERY_BODY);
    let proxy = Proxy::start(&guarded(&member, &rules.key("mode: block")));
    let call = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 8\r\n\r\na=attack";
    assert_eq!(ask(&proxy, call).status, 403);
    // A second Content-Type does not bypass the rules.
    let two = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
               Content-Type: application/grpc\r\nContent-Length: 8\r\n\r\na=attack";
    assert_eq!(ask(&proxy, two).status, 400);
    // A Content-Type that is not forwarded to the member does not bypass the rules.
    let nominated = "POST / HTTP/1.1\r\nHost: a\r\nConnection: content-type\r\n\
                     Content-Type: application/grpc\r\nContent-Length: 8\r\n\r\na=attack";
    assert_eq!(ask(&proxy, nominated).status, 403);
}

/// Files of a form have a limit of their own, which also holds for documents no more than the limit of a body does.
#[test]
fn files_have_a_limit_of_their_own() {
    let member = Member::new(|exchange| {
        let length = exchange.request.body.len();
        exchange.answer(length.to_string())
    });
    let rules = Rules::new(EVERY_BODY);
    let keys = "mode: block, body_size_max: 10KiB, files_size_max: 100KiB";
    let proxy = Proxy::start(&guarded(&member, &rules.key(keys)));
    let upload = |name: &str, bytes: usize| {
        let content = "\u{1}".repeat(bytes);
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{content}\r\n--b--\r\n"
        );
        let length = body.len();
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    for (name, bytes, status) in [
        ("a.jpg", 90_000, 200),
        ("a.bin", 90_000, 200),
        ("a.jpg", 105_000, 413),
        ("a.jpg", 200_000, 413),
        ("a.html", 90_000, 413),
    ] {
        assert_eq!(ask(&proxy, upload(name, bytes)).status, status, "{name} {bytes}");
    }
}

/// If there are too many arguments, the accepted ones and the body are still inspected.
#[test]
fn many_arguments_hide_nothing() {
    let member = Member::echo();
    let rules = Rules::new(EVERY_BODY);
    let setup = guarded(&member, &rules.key("mode: block, unjudged: pass, arguments_max: 10"));
    let mut proxy = Proxy::start(&setup);
    let many = "&a=b".repeat(20);
    for (path, body, status) in [
        (format!("/?q=c{many}"), "d=e", 200),
        (format!("/?q=attack{many}"), "d=e", 403),
        (format!("/?q=c{many}"), "d=attack", 403),
    ] {
        assert_eq!(ask(&proxy, form(&path, body)).status, status, "{path} {body}");
    }
    let told = wait_for_lines(&mut proxy, 3);
    assert_eq!(told.iter().filter(|line| line["limit"] == "arguments").count(), 1, "{told:#?}");
}

#[test]
fn bodies_have_to_be_whole_some_time() {
    let member = Member::echo();
    let waf = "waf: { mode: block, body_timeout: 1s }";
    let proxy = Proxy::start(&guarded(&member, waf).http("body_timeout: 10s"));
    let mut client = proxy.client();
    let request = form("/", "a=0123456789012345678901234567890123456789");
    let (head, body) = request.split_at(request.len() - 42);
    client.send(head);
    // Single bytes do not extend the timeout.
    for byte in body.as_bytes().chunks(1).take(8) {
        client.send(byte);
        std::thread::sleep(Duration::from_millis(200));
    }
    client.response().assert_status(408);
    assert_eq!(member.request_count(), 0);
    assert_eq!(ask(&proxy, &request).status, 200);
}
