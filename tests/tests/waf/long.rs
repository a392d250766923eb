//! Inspections that take more than a turn of a worker go on elsewhere, with the same verdicts.

use std::sync::{Mutex, mpsc};

use weir_testing::encode;
use weir_tests::http2::{Frame, Http2Member, Peer, flag, kind};
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

use crate::setup::{Rules, ask, counted, get, guarded, lines, wait_for_lines, with_type};

/// JSON of about 200 kB. The last text comes behind the others.
fn json(last: &str) -> String {
    let mut body = "[".to_owned();
    for number in 0..100 {
        body += &format!("\"{}\",", format!("part no. {number}, a spare part. ").repeat(80));
    }
    format!("{body}\"{last}\"]")
}

const ATTACK: &str = "1' UNION SELECT user, password FROM users--";

/// The number of inspections that took more than a turn.
fn long_inspections(proxy: &Proxy) -> f64 {
    proxy.metric("weir_waf_long_inspections_total", &[])
}

#[test]
fn verdicts_come_from_elsewhere_and_others_are_served() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: block }").top("data_plane: { workers: 1 }");
    let mut proxy = Proxy::start(&setup);
    let mut other = proxy.client();
    let harmless = json("no more");
    let [mut one, mut attacker] = [&harmless, &json(ATTACK)].map(|body| {
        let mut client = proxy.client();
        client.send(with_type("/", "application/json", body));
        client
    });
    // Both may still be judged.
    other.get("/").assert_status(200);
    let response = one.response();
    response.assert_status(200);
    assert!(response.text().ends_with(&harmless), "the member got all of it");
    attacker.response().assert_status(403);
    assert!(long_inspections(&proxy) >= 2.0);
    assert_eq!(proxy.metric("weir_waf_lost_inspections_total", &[]), 0.0);
    assert_eq!(proxy.metric("weir_waf_long_inspections_pending", &[]), 0.0);
    let told = wait_for_lines(&mut proxy, 1);
    assert_eq!(told[0]["outcome"], "blocked");
    assert_eq!(member.request_count(), 2);
}

#[test]
fn encoded_bodies_are_read_elsewhere() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: block }").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    for (count, (last, status)) in (1..).zip([("no more", 200), (ATTACK, 403)]) {
        let numbers: String = (0..500).map(|number| format!("{number},")).collect();
        let body = encode("gzip", format!("[{numbers}\"{last}\"]").as_bytes());
        let head = format!(
            "POST / HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\n\
             Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        ask(&proxy, [head.as_bytes(), &body].concat()).assert_status(status);
        assert!(long_inspections(&proxy) >= f64::from(count));
    }
    assert_eq!(proxy.metric("weir_waf_held_bytes", &[]), 0.0);
    assert_eq!(member.request_count(), 1);
}

const UNIONS: &str = r#"
SecRule ARGS_GET:q "@contains union" "id:1,phase:1,deny,status:403,msg:'in the head'"
SecRule ARGS_GET:q "@contains select" "id:2,phase:2,deny,status:403,msg:'with the body'"
"#;

#[test]
fn a_long_head_is_judged_elsewhere_before_services_and_members() {
    let (member, rules) = (Member::echo(), Rules::new(UNIONS));
    let service = Member::script("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let setup = guarded(&member, &rules.key("mode: block"))
        .http("head_size_max: 64KiB")
        .virtual_server("authenticate: portal")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .top("authentication:\n  portal: { type: external, pool: service, path: /verify }")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let filling = "x".repeat(30_000);
    // What rules find in the head, no service gets; what they find when the body is there, no member gets.
    let cases = [("shoes", 200, (1, 1)), ("a+union", 403, (1, 1)), ("a+select", 403, (2, 1))];
    for (count, (text, status, requests)) in (1..).zip(cases) {
        let target = format!("/?a={filling}&q={text}");
        ask(&proxy, with_type(&target, "application/json", "{\"a\":1}")).assert_status(status);
        assert!(long_inspections(&proxy) >= f64::from(count), "{text}");
        assert_eq!((service.request_count(), member.request_count()), requests, "{text}");
    }
}

#[test]
fn what_is_only_detected_is_logged_when_its_inspection_is_back() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: detect }").top("data_plane: { workers: 1 }");
    let mut proxy = Proxy::start(&setup);
    ask(&proxy, with_type("/", "application/json", &json(ATTACK))).assert_status(200);
    let told = wait_for_lines(&mut proxy, 1);
    assert_eq!(told[0]["outcome"], "detected");
    eventually("the memory is given back", STEP_TIMEOUT, || {
        proxy.metric("weir_waf_held_bytes", &[]) == 0.0
    });
}

#[test]
fn a_client_that_leaves_while_it_is_judged_leaves_its_line_behind() {
    let member = Member::echo();
    let setup =
        guarded(&member, "waf: { mode: block }").record("all").top("data_plane: { workers: 1 }");
    let mut proxy = Proxy::start(&setup);
    const CLIENTS: usize = 8;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = proxy.client();
            client.send(with_type("/", "application/json", &json(ATTACK)));
            client
        })
        .collect();
    eventually("all are judged for long", STEP_TIMEOUT, || {
        long_inspections(&proxy) >= CLIENTS as f64
    });
    clients.into_iter().for_each(weir_tests::client::Client::reset);
    // Some may have their verdict already.
    let told = wait_for_lines(&mut proxy, CLIENTS);
    let is_known =
        |line: &serde_json::Value| line["outcome"] == "unfinished" || line["outcome"] == "blocked";
    assert!(told.iter().all(is_known), "{told:#?}");
    eventually("all are back", STEP_TIMEOUT, || {
        proxy.metric("weir_waf_held_bytes", &[]) == 0.0
            && proxy.metric("weir_waf_long_inspections_pending", &[]) == 0.0
    });
    ask(&proxy, with_type("/", "application/json", &json("no more"))).assert_status(200);
    assert_eq!(member.request_count(), 1);
    eventually("the last one is told", STEP_TIMEOUT, || lines(&mut proxy).len() == CLIENTS + 1);
}

const LEAKS: &str = r#"
SecRule RESPONSE_HEADERS:X-Debug "@contains secret" "id:1,phase:3,deny,status:503,msg:'a field'"
SecRule RESPONSE_BODY "@contains ORA-00933" "id:2,phase:4,deny,status:504,msg:'an error of a data base'"
"#;

/// A page of so many bytes; `leak`: it ends with an error of a data base.
fn page(bytes: usize, last: &str) -> String {
    let mut page = "part of a page, ".repeat(bytes / 16);
    page += if last == "leak" { "ORA-00933: not ended" } else { last };
    page
}

/// A member whose responses are pages as their path says: `/FRAMING/BYTES/LAST`. With the framing `head`, the head is long, too.
fn pages() -> Member {
    Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        let parts: Vec<&str> = target.trim_start_matches('/').split('/').collect();
        let [framing, bytes, last] = parts[..] else { panic!("{target}") };
        let is_head = exchange.request.method() == "HEAD";
        let bytes = bytes.parse().expect("a number");
        let page = if is_head { String::new() } else { page(bytes, last) };
        let mut text = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n".to_owned();
        match framing {
            "chunked" => {
                text += "Transfer-Encoding: chunked\r\n\r\n";
                for chunk in page.as_bytes().chunks(5_000) {
                    let chunk = String::from_utf8_lossy(chunk);
                    text += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
                }
                text += "0\r\n\r\n";
            }
            "head" => {
                let debug = if last == "leak" { "a secret" } else { "nothing" };
                let filling = "x".repeat(30_000);
                let length = page.len();
                text += &format!(
                    "X-Filling: {filling}\r\nX-Debug: {debug}\r\nContent-Length: {length}\r\n\r\n{page}"
                );
            }
            "eof" => text += &format!("\r\n{page}"),
            _ => text += &format!("Content-Length: {}\r\n\r\n{page}", page.len()),
        }
        exchange.send(text)?;
        Ok(if framing == "eof" { Then::Close } else { Then::KeepAlive })
    })
}

fn screened(member: &Member, rules: &Rules, mode: &str) -> Setup {
    guarded(member, &rules.key(&format!("mode: {mode}, responses: {{ size_max: 128KiB }}")))
        .http("head_size_max: 64KiB")
        .top("data_plane: { workers: 1 }")
}

#[test]
fn verdicts_on_responses_come_from_elsewhere_and_others_are_served() {
    let (member, rules) = (pages(), Rules::new(LEAKS));
    let mut proxy = Proxy::start(&screened(&member, &rules, "block"));
    let mut other = proxy.client();
    let (mut blocked, mut moved) = (0, 0.0);
    for (framing, bytes, last, status) in [
        ("length", 100_000, "fine", 200),
        ("length", 100_000, "leak", 504),
        ("chunked", 100_000, "fine", 200),
        ("chunked", 100_000, "leak", 504),
        ("eof", 100_000, "fine", 200),
        ("eof", 100_000, "leak", 504),
        ("head", 100, "fine", 200),
        ("head", 100, "leak", 503),
        ("head", 100_000, "fine", 200),
        // The rest of a long page passes behind the verdict on its begin.
        ("length", 2_000_000, "leak", 200),
        ("chunked", 2_000_000, "leak", 200),
        ("eof", 2_000_000, "leak", 200),
        ("head", 2_000_000, "fine", 200),
    ] {
        let response = ask(&proxy, get(&format!("/{framing}/{bytes}/{last}")));
        response.assert_status(status);
        let is_whole = response.body == page(bytes, last).as_bytes();
        assert_eq!(is_whole, status == 200, "{framing} {bytes} {last}: {}", response.body.len());
        other.get("/length/100/short").assert_status(200);
        blocked += usize::from(status != 200);
        let so_far = long_inspections(&proxy);
        assert!(so_far > moved, "{framing} {bytes} {last}: {so_far}");
        moved = so_far;
    }
    assert_eq!(moved, 16.0, "what is long, and nothing short");
    assert_eq!(proxy.metric("weir_waf_long_inspections_pending", &[]), 0.0);
    assert_eq!(proxy.metric("weir_waf_held_bytes", &[]), 0.0);
    let told = wait_for_lines(&mut proxy, blocked);
    assert!(told.iter().all(|line| line["outcome"] == "blocked"), "{told:#?}");
    assert_eq!((counted(&proxy, "blocked"), counted(&proxy, "inspected")), (4.0, 26.0));
}

#[test]
fn a_response_without_a_body_waits_for_the_verdict_on_its_head() {
    let (member, rules) = (pages(), Rules::new(LEAKS));
    let proxy = Proxy::start(&screened(&member, &rules, "block"));
    let mut client = proxy.client();
    for (last, status) in [("fine", 200), ("fine", 200), ("leak", 503)] {
        client.send(get(&format!("/head/0/{last}")).replace("GET", "HEAD"));
        assert_eq!(client.head_response().status, status);
    }
    // Its head, and what there is of it.
    assert_eq!(long_inspections(&proxy), 5.0);
}

#[test]
fn long_responses_of_http2_wait_with_their_windows() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let path = peer.streams[&stream].path().to_owned();
            let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
            let [bytes, last] = parts[..] else { panic!("{path}") };
            let page = page(bytes.parse().expect("a number"), last);
            peer.headers(stream, &[(":status", "200"), ("content-type", "text/html")], false);
            // The client may have got its answer.
            let _ = peer.body(stream, page.as_bytes(), true);
        }
        Ok(())
    });
    let rules = Rules::new(LEAKS);
    let waf = rules.key("mode: block, responses: { size_max: 128KiB }");
    let setup = Setup::new(&[member.address()]).virtual_server(&waf);
    let setup = setup.http("http2: true").pool("http2: true").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    for (bytes, last, status) in
        [(100_000, "fine", 200), (100_000, "leak", 504), (2_000_000, "leak", 200)]
    {
        let message = peer.get(&format!("/{bytes}/{last}"));
        assert_eq!(message.status(), status, "{bytes} {last}");
        let is_whole = message.body == page(bytes, last).as_bytes();
        assert_eq!(is_whole, status == 200, "{bytes} {last}: {}", message.body.len());
    }
    // Streams of one connection, of which each waits for its own verdict.
    let streams: Vec<u32> = (0..4)
        .map(|number| {
            let path = format!("/100000/{}", if number % 2 == 0 { "fine" } else { "leak" });
            peer.request("GET", &path, &[("user-agent", "test"), ("accept", "*/*")], true)
        })
        .collect();
    for (number, stream) in streams.into_iter().enumerate() {
        let status = peer.response(stream).status();
        assert_eq!(status, if number % 2 == 0 { 200 } else { 504 }, "no. {number}");
    }
    assert_eq!(long_inspections(&proxy), 7.0);
    eventually("all is given back", STEP_TIMEOUT, || {
        proxy.metric("weir_waf_held_bytes", &[]) == 0.0
    });
}

#[test]
fn a_response_that_is_only_watched_does_not_wait() {
    let (member, rules) = (pages(), Rules::new(LEAKS));
    let mut proxy = Proxy::start(&screened(&member, &rules, "detect"));
    for path in ["/length/100000/leak", "/head/100/leak", "/length/2000000/fine"] {
        ask(&proxy, get(path)).assert_status(200);
    }
    let told = wait_for_lines(&mut proxy, 2);
    assert!(told.iter().all(|line| line["outcome"] == "detected"), "{told:#?}");
    eventually("the memory is given back", STEP_TIMEOUT, || {
        proxy.metric("weir_waf_held_bytes", &[]) == 0.0
    });
}

#[test]
fn a_client_that_leaves_while_its_response_is_judged_leaves_nothing_behind() {
    let (member, rules) = (pages(), Rules::new(LEAKS));
    let proxy = Proxy::start(&screened(&member, &rules, "block"));
    for _ in 0..5 {
        let mut client = proxy.client();
        client.send(get("/length/100000/leak"));
        client.reset();
    }
    eventually("all are back", STEP_TIMEOUT, || {
        proxy.metric("weir_waf_held_bytes", &[]) == 0.0
            && proxy.metric("weir_waf_long_inspections_pending", &[]) == 0.0
    });
    ask(&proxy, get("/length/100000/fine")).assert_status(200);
}

/// The head of a response that is longer than a frame.
fn long_head(stream: u32, lines: &[(&[u8], &[u8])]) -> [Frame; 2] {
    let block = Frame::headers(stream, lines, false).payload;
    let (first, rest) = block.split_at(16_000);
    [
        Frame::new(kind::HEADERS, 0, stream, first),
        Frame::new(kind::CONTINUATION, flag::END_HEADERS, stream, rest),
    ]
}

/// The first bytes of a body show whether it is that of a call. The verdict on an early response may have to come first.
#[test]
fn a_claimed_call_waits_for_the_verdict_on_its_early_response() {
    let (answered, is_answered) = mpsc::sync_channel::<()>(1);
    let answered = Mutex::new(answered);
    let member = Http2Member::new(&[], move |peer, _| {
        while let Some(stream) = peer.next_request() {
            let is_leak = peer.streams[&stream].path() == "/leak";
            let debug: &[u8] = if is_leak { b"a secret" } else { b"nothing" };
            let filling = b"x".repeat(25_000);
            let lines: [(&[u8], &[u8]); 4] = [
                (b":status", b"200"),
                (b"content-type", b"application/grpc"),
                (b"x-filling", &filling),
                (b"x-debug", debug),
            ];
            for frame in long_head(stream, &lines) {
                peer.send(&frame);
            }
            let _ = answered.lock().expect("one member").send(());
        }
        Ok(())
    });
    let rules = Rules::new(LEAKS);
    let waf = rules.key("mode: block, responses: { size_max: 64KiB }");
    // The built-in rules need bodies, so they look at what claims to be a call.
    let waf = waf.replace("rules: \"", "rules: [ builtin, \"").replace("\",", "\" ],");
    let setup = Setup::new(&[member.address()]).virtual_server(&waf).pool("http2: true");
    let setup = setup.http("http2: true, head_size_max: 64KiB").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut peer = Peer::connect(proxy.address());
    let call = [("content-type", "application/grpc"), ("user-agent", "test"), ("accept", "*/*")];
    for _ in 0..5 {
        for (path, data, is_fine) in [
            ("/call", &b"\0\0\0\0\x02\x08\x01"[..], true),
            ("/call", &b"{\"a\":\"attack\"}"[..], false),
            ("/leak", &b"\0\0\0\0\x02\x08\x01"[..], false),
        ] {
            let stream = peer.request("POST", path, &call, false);
            is_answered.recv().expect("the member answers");
            peer.data(stream, data, false);
            if is_fine {
                assert_eq!(peer.response_head(stream).status(), 200);
                peer.settle();
                assert_eq!(peer.streams[&stream].reset, None);
                continue;
            }
            let message = peer.response(stream);
            let is_blocked = matches!(message.status(), 400 | 503) || message.reset.is_some();
            assert!(is_blocked, "{path}: {message:?}");
        }
    }
    assert!(long_inspections(&proxy) >= 15.0);
}
