//! Distributed tracing, from the view of clients, members and a collector.

use weir_tests::http2::{Http2Member, Peer};
use weir_tests::member::{Member, Request, Then};
use weir_tests::otlp::{Collector, Span};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::websocket::{WebSocket, echo_member};
use weir_tests::{STEP_TIMEOUT, eventually};

use rustix::process::Signal;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn setup(collector: &Collector, members: &[&Member], tracing: &str) -> Setup {
    let members: Vec<_> = members.iter().map(|member| member.address()).collect();
    Setup::new(&members)
        .access_log()
        .virtual_server(&format!("tracing: {{ {tracing} }}"))
        .top(&collector.section(""))
}

/// The trace id, span id and flags in the only `traceparent` of a request.
fn told(request: &Request) -> (String, String, String) {
    let fields = request.head.fields.iter();
    let values: Vec<&str> = fields
        .filter(|(name, _)| name.eq_ignore_ascii_case("traceparent"))
        .map(|(_, value)| value.as_str())
        .collect();
    let [value] = values[..] else { panic!("not one field: {values:?}") };
    parts(value)
}

fn parts(value: &str) -> (String, String, String) {
    let parts: Vec<&str> = value.split('-').collect();
    let ["00", trace, span, flags] = parts[..] else { panic!("{value}") };
    assert!(trace.len() == 32 && span.len() == 16, "{value}");
    (trace.to_owned(), span.to_owned(), flags.to_owned())
}

fn send(proxy: &Proxy, path: &str, fields: &str) -> u16 {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example:81\r\n{fields}\r\n"));
    client.response().status
}

/// The span of the request, and the spans of its attempts in order.
fn family(spans: &[Span]) -> (&Span, Vec<&Span>) {
    let servers: Vec<&Span> = spans.iter().filter(|span| span.is_server()).collect();
    let [server] = servers[..] else { panic!("not one request: {spans:#?}") };
    let mut attempts: Vec<&Span> = spans.iter().filter(|span| span.is_client()).collect();
    attempts.sort_by_key(|span| span.get("http.request.resend_count").parse().unwrap_or(0));
    for attempt in &attempts {
        assert_eq!((&attempt.trace_id, &attempt.parent), (&server.trace_id, &server.id));
        assert!(attempt.start >= server.start && attempt.end <= server.end, "{spans:#?}");
    }
    (server, attempts)
}

/// Waits until the access log has this number of lines. Returns the lines.
fn lines(proxy: &mut Proxy, count: usize) -> Vec<serde_json::Value> {
    let parse = |output: String| {
        let lines = output.lines().filter(|line| line.starts_with('{'));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()
    };
    eventually("lines are written", STEP_TIMEOUT, || {
        parse(proxy.process().output()).len() >= count
    });
    parse(proxy.process().output())
}

#[test]
fn a_request_has_a_span_and_its_attempt_another() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let setup = setup(&collector, &[&member], "sample: 100%").virtual_server("request_id: {}");
    let mut proxy = Proxy::start(&setup);
    let fields = "User-Agent: probe/1\r\n";
    assert_eq!(send(&proxy, "/cart?id=7&token=s3cret&x=1", fields), 200);
    let spans = collector.wait_for(2);
    let (server, attempts) = family(&spans);
    let seen = told(&member.requests()[0]);
    assert_eq!(seen, (server.trace_id.clone(), attempts[0].id.clone(), "01".into()));
    assert_eq!((server.name.as_str(), server.parent.as_str(), server.flags), ("GET", "", 0x101));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/cart"),
        ("url.query", "id=7&token=***&x=1"),
        ("url.scheme", "http"),
        ("server.address", "shop.example"),
        ("server.port", "81"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
        ("network.peer.address", "127.0.0.1"),
        ("network.local.port", &proxy.address().port().to_string()),
        ("user_agent.original", "probe/1"),
        ("http.response.status_code", "200"),
        ("weir.virtual_server", "main"),
        ("weir.member", &member.address().to_string()),
        ("weir.retries", "0"),
        ("weir.termination", "complete"),
        ("error.type", ""),
    ] {
        assert_eq!(server.get(key), value, "{key}: {server:#?}");
    }
    assert!(!format!("{spans:?}").contains("s3cret"));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("server.address", "127.0.0.1"),
        ("server.port", &member.address().port().to_string()),
        ("weir.member", &member.address().to_string()),
        ("http.request.resend_count", ""),
    ] {
        assert_eq!(attempts[0].get(key), value, "{key}");
    }
    assert!(attempts[0].events.contains(&"response".to_owned()), "{:?}", attempts[0].events);
    let resource = collector.resource();
    assert_eq!(resource["service.name"], "weir");
    assert!(!resource["service.instance.id"].is_empty());
    let request = &collector.requests()[0];
    assert_eq!(request.head.start, "POST /v1/traces HTTP/1.1");
    assert_eq!(request.head.field("content-type"), Some("application/x-protobuf"));
    let line = &lines(&mut proxy, 1)[0];
    assert_eq!(line["trace_id"], server.trace_id.as_str());
    assert_eq!(line["span_id"], server.id.as_str());
    assert_eq!(line["request_id"], server.get("weir.request_id"));
    eventually("it is counted", STEP_TIMEOUT, || {
        proxy.metric("weir_trace_spans_exported_total", &[]) == 2.0
    });
    assert_eq!(proxy.metric("weir_trace_spans_dropped_total", &[]), 0.0);
}

#[test]
fn a_trusted_context_is_continued_and_no_other() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let proxy = Proxy::start(&setup(
        &collector,
        &[&member],
        "sample: 0.001%, trust: [ 127.0.0.1, 192.0.2.0/24 ]",
    ));
    let sampled = format!("00-{TRACE}-{SPAN}-01");
    let state = "tracestate: a=b\r\ntracestate: c=d\r\n";
    let ask = |fields: &str| {
        let before = member.request_count();
        assert_eq!(send(&proxy, "/", fields), 200);
        member.requests().remove(before)
    };
    let states = |request: &Request| {
        let fields = request.head.fields.iter();
        let states = fields.filter(|(name, _)| name.eq_ignore_ascii_case("tracestate"));
        states.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let request = ask(&format!("traceparent: {sampled}\r\n{state}"));
    let (trace, span, flags) = told(&request);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    assert_ne!(span, SPAN);
    assert_eq!(states(&request), ["a=b", "c=d"]);
    let spans = collector.wait_for(2);
    let (server, attempts) = family(&spans);
    assert_eq!((server.parent.as_str(), server.flags), (SPAN, 0x301));
    assert_eq!((server.state.as_str(), attempts[0].state.as_str()), ("a=b,c=d", "a=b,c=d"));

    // Not sampled, with a flag of level 2. Both are preserved.
    let request = ask(&format!("traceparent: 00-{TRACE}-{SPAN}-02\r\n{state}"));
    let (trace, span, flags) = told(&request);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "02"));
    assert_ne!(span, SPAN);
    assert_eq!(states(&request).len(), 2);

    // An invalid or repeated header starts a new trace, and `tracestate` is removed.
    for fields in [
        format!("traceparent: {sampled}\r\ntraceparent: {sampled}\r\n"),
        format!("traceparent: ff-{TRACE}-{SPAN}-01\r\n"),
        format!("traceparent: {}\r\n", sampled.to_uppercase()),
        String::new(),
    ] {
        let request = ask(&format!("{fields}{state}"));
        let (trace, _, flags) = told(&request);
        assert_ne!(trace, TRACE, "{fields}");
        assert_eq!(flags, "00", "{fields}");
        assert!(states(&request).is_empty(), "{fields}");
    }
    // weir continues the trace of a later version with version 00.
    let request = ask(&format!("traceparent: cc-{TRACE}-{SPAN}-ff-more\r\n"));
    assert_eq!((told(&request).0.as_str(), told(&request).2.as_str()), (TRACE, "01"));
    collector.wait_for(4);
}

#[test]
fn a_client_that_is_not_trusted_begins_no_trace() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let setup = setup(&collector, &[&member], "sample: 100%, trust: [ 192.0.2.1 ]");
    let mut proxy = Proxy::start(&setup);
    let forged = format!("traceparent: 00-{TRACE}-{SPAN}-00\r\nTraceState: a=b\r\n");
    assert_eq!(send(&proxy, "/", &forged), 200);
    let request = &member.requests()[0];
    let (trace, _, flags) = told(request);
    assert_ne!(trace, TRACE);
    assert_eq!(flags, "01");
    assert_eq!(request.head.field("tracestate"), None);
    let spans = collector.wait_for(2);
    assert_eq!((family(&spans).0.parent.as_str(), spans[0].state.as_str()), ("", ""));
    assert_eq!(lines(&mut proxy, 1)[0]["trace_id"], trace.as_str());

    // Without `tracing`, the headers are forwarded unchanged.
    let other = Member::named("ok");
    let proxy = Proxy::start(&Setup::new(&[other.address()]));
    assert_eq!(send(&proxy, "/", &forged), 200);
    let request = &other.requests()[0];
    assert_eq!(told(request), (TRACE.into(), SPAN.into(), "00".into()));
    assert_eq!(request.head.field("tracestate"), Some("a=b"));
}

#[test]
fn each_attempt_has_a_span_that_its_member_knows() {
    let bad = Member::new(|exchange| {
        exchange.send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")?;
        Ok(Then::KeepAlive)
    });
    let gone = Member::new(|_| Ok(Then::Reset));
    let (collector, good, nobody) = (Collector::new(), Member::named("ok"), Lease::new());
    let setup = setup(&collector, &[], "sample: 100%")
        .member(&format!("\"{}\"", nobody.address()))
        .member(&format!("\"{}\"", gone.address()))
        .member(&format!("\"{}\"", bad.address()))
        .member(&format!("\"{}\"", good.address()))
        .pool("retries: 3")
        .pool("retry_on: [ 503 ]")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    // With round robin, the next request starts with the first member if the last member served the previous request.
    let whole = || {
        let spans = collector.spans();
        let last = spans.iter().find(|it| it.get("http.request.resend_count") == "3")?;
        Some(spans.iter().filter(|it| it.trace_id == last.trace_id).cloned().collect::<Vec<_>>())
    };
    for _ in 0..2 {
        assert_eq!(send(&proxy, "/", ""), 200);
    }
    eventually("a request has tried all", STEP_TIMEOUT, || whole().is_some());
    let spans = whole().expect("it was there");
    assert_eq!(spans.len(), 5, "{spans:#?}");
    let (server, attempts) = family(&spans);
    assert_eq!(server.get("weir.retries"), "3");
    let shown: Vec<_> = attempts
        .iter()
        .map(|it| {
            (it.get("weir.member"), it.get("http.response.status_code"), it.get("error.type"))
        })
        .collect();
    let [nobody, gone_at, bad_at, good_at] =
        [nobody.address(), gone.address(), bad.address(), good.address()].map(|it| it.to_string());
    assert_eq!(
        shown,
        [
            (&*nobody, "", "member_connect"),
            (&*gone_at, "", "member_abort"),
            (&*bad_at, "503", "503"),
            (&*good_at, "200", ""),
        ]
    );
    assert!(
        attempts[..3].iter().all(|it| it.is_error) && !attempts[3].is_error && !server.is_error
    );
    for (attempt, member) in attempts[1..].iter().zip([&gone, &bad, &good]) {
        let requests = member.requests();
        assert!(requests.iter().any(|request| told(request).1 == attempt.id), "{attempt:#?}");
    }
    let mut ids: Vec<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[test]
fn http2_on_both_sides() {
    let member = Http2Member::new(&[], |peer, _| {
        while let Some(stream) = peer.next_request() {
            let request = peer.response(stream);
            let told = request.field("traceparent").unwrap_or_default().to_owned();
            peer.answer_with(stream, told.as_bytes())?;
        }
        Ok(())
    });
    let collector = Collector::new();
    let setup = Setup::new(&[member.address()])
        .http("http2: true")
        .pool("http2: true")
        .virtual_server("tracing: { sample: 100%, trust: [ 127.0.0.1 ] }")
        .top(&collector.section(""));
    let proxy = Proxy::start(&setup);
    let mut client = Peer::connect(proxy.address());
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let mut answers = Vec::new();
    for fields in [&[("traceparent", parent.as_str()), ("tracestate", "a=b")][..], &[]] {
        let stream = client.request("GET", "/h2", fields, true);
        answers.push(parts(&client.response(stream).text()));
    }
    assert_eq!(answers[0].0, TRACE);
    assert_ne!(answers[1].0, TRACE);
    let spans = collector.wait_for(4);
    for (trace, span, _) in &answers {
        let of_it: Vec<Span> = spans.iter().filter(|it| it.trace_id == *trace).cloned().collect();
        let (server, attempts) = family(&of_it);
        assert_eq!((&attempts[0].id, server.get("network.protocol.version")), (span, "2"));
        assert_eq!(server.get("url.path"), "/h2");
    }
}

#[test]
fn a_share_of_traces_is_recorded_and_members_know_which() {
    const REQUESTS: usize = 400;
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let proxy = Proxy::start(&setup(&collector, &[&member], "sample: 50%"));
    let mut client = proxy.client();
    for _ in 0..REQUESTS {
        client.get("/").assert_status(200);
    }
    let told: Vec<_> = member.requests().iter().map(told).collect();
    let sampled: Vec<_> = told.iter().filter(|(_, _, flags)| flags == "01").collect();
    // Within nine standard deviations: a chance of 10^-18.
    assert!((REQUESTS / 2).abs_diff(sampled.len()) < 90, "{}", sampled.len());
    let spans = collector.wait_for(sampled.len() * 2);
    for (trace, span, _) in sampled {
        let of_it: Vec<Span> = spans.iter().filter(|it| it.trace_id == *trace).cloned().collect();
        assert_eq!(family(&of_it).1[0].id, *span);
    }
}

#[test]
fn answers_of_weirs_own_and_failures_have_spans() {
    let (collector, nobody) = (Collector::new(), Lease::new());
    let rules = "policies:\n  test:\n    rules:\n      - when: \"request.path == '/old'\"\n        then: [ { redirect: { to: \"/new\", status: 301 } } ]";
    let setup = Setup::new(&[nobody.address()])
        .virtual_server("tracing: { sample: 100% }")
        .virtual_server("policies: [ test ]")
        .pool("retries: 0")
        .top(rules)
        .top(&collector.section(""));
    let proxy = Proxy::start(&setup);
    assert_eq!(send(&proxy, "/old", ""), 301);
    let spans = collector.wait_for(1);
    let (server, attempts) = family(&spans);
    assert!(attempts.is_empty() && !server.is_error);
    assert_eq!(server.get("weir.termination"), "policy");
    assert_eq!(server.get("http.response.status_code"), "301");
    assert_eq!(send(&proxy, "/", ""), 502);
    let spans = collector.wait_for(3);
    let (server, attempts) = family(&spans[1..]);
    assert!(server.is_error && attempts[0].is_error);
    assert_eq!((server.get("error.type"), attempts.len()), ("member_connect", 1));
}

#[test]
fn a_websocket_is_one_span_until_its_end() {
    let (collector, member) = (Collector::new(), echo_member());
    let setup = setup(&collector, &[&member], "sample: 100%").top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut socket = WebSocket::connect(proxy.address());
    assert_eq!(socket.echo("hello").unwrap(), "hello");
    // With one worker, spans are sent in the order in which their requests end: this request has ended, but not the
    // WebSocket.
    assert_ne!(send(&proxy, "/after", ""), 101);
    let before = collector.wait_for(2);
    assert_eq!(family(&before).0.get("url.path"), "/after");
    assert!(socket.close());
    let spans = collector.wait_for(4).split_off(2);
    let (server, attempts) = family(&spans);
    assert!(server.start < family(&before).0.start && server.end > family(&before).0.end);
    assert_eq!(server.get("http.response.status_code"), "101");
    assert_eq!(attempts[0].get("http.response.status_code"), "101");
    assert_eq!(told(&member.requests()[0]).1, attempts[0].id);
}

#[test]
fn requests_of_weirs_own_belong_to_the_trace() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let (copies, service) = (Member::named("thrown away"), Member::named("allowed"));
    let section = "authentication:\n  portal: { type: external, pool: service, path: /verify }\npolicies:\n  test:\n    rules:\n      - then: [ { mirror: { pool: copies } } ]";
    let setup = setup(&collector, &[&member], "sample: 100%, trust: [ 127.0.0.1 ]")
        .virtual_server("policies: [ test ]")
        .virtual_server("authenticate: portal")
        .also_pool(&format!("copies: {{ members: [ \"{}\" ] }}", copies.address()))
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .top(section);
    let proxy = Proxy::start(&setup);
    let fields = format!("traceparent: 00-{TRACE}-{SPAN}-01\r\ntracestate: a=b\r\n");
    assert_eq!(send(&proxy, "/", &fields), 200);
    let spans = collector.wait_for(4);
    let server = spans.iter().find(|span| span.is_server()).expect("the request");
    for (kind, member) in [("", &member), ("mirror", &copies), ("authorisation", &service)] {
        let of_it = |span: &&Span| span.is_client() && span.get("weir.request") == kind;
        let span = spans.iter().find(of_it).unwrap_or_else(|| panic!("{kind}: {spans:#?}"));
        assert_eq!((&span.parent, span.trace_id.as_str()), (&server.id, TRACE));
        let request = &member.requests()[0];
        assert_eq!(told(request), (TRACE.into(), span.id.clone(), "01".into()));
        assert_eq!(request.head.field("tracestate"), Some("a=b"), "{kind}");
        assert_eq!(span.get("http.response.status_code"), "200", "{kind}");
    }
    // Unsampled requests still carry the trace id.
    let fields = format!("traceparent: 00-{TRACE}-{SPAN}-00\r\n");
    assert_eq!(send(&proxy, "/", &fields), 200);
    eventually("the copy comes", STEP_TIMEOUT, || copies.request_count() == 2);
    for member in [&member, &copies, &service] {
        let (trace, _, flags) = told(&member.requests()[1]);
        assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "00"));
    }
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn a_collector_that_is_not_there_harms_no_request() {
    let (collector, member, nobody) = (Collector::new(), Member::named("ok"), Lease::new());
    let to = |address: &str, more: &str| {
        Setup::new(&[member.address()])
            .virtual_server("tracing: { sample: 100% }")
            .top(&format!("tracing: {{ otlp: \"http://{address}\", interval: 100ms{more} }}"))
    };
    let proxy = Proxy::start(&to(&nobody.address().to_string(), ""));
    let mut client = proxy.client();
    for _ in 0..50 {
        client.get("/").assert_status(200);
    }
    let problem = format!("traces cannot be sent to http://{}: ", nobody.address());
    eventually("it is told", STEP_TIMEOUT, || proxy.admin_get("/v1/status").contains(&problem));
    client.get("/").assert_status(200);
    // After a reload, the new collector gets the queued spans.
    proxy.reload_and_wait(&to(&collector.address().to_string(), ", headers: { X-Tenant: a }"));
    collector.wait_for(102);
    assert_eq!(collector.requests()[0].head.field("x-tenant"), Some("a"));
    eventually("it is good", STEP_TIMEOUT, || !proxy.admin_get("/v1/status").contains(&problem));
    // Without `tracing`, nothing is sent.
    proxy.reload_and_wait(&Setup::new(&[member.address()]));
    let before = member.request_count();
    assert_eq!(send(&proxy, "/", ""), 200);
    assert_eq!(member.requests()[before].head.field("traceparent"), None);
    assert_eq!(proxy.metric("weir_trace_spans_exported_total", &[]), 102.0);
}

#[test]
fn a_collector_that_is_not_ready_is_asked_again_and_then_given_up() {
    let collector = Collector::answering(|exchange, number| {
        exchange.send(match number {
            0 | 1 => "HTTP/1.1 503 Later\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
            // The collector rejects one of the spans.
            2 => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\x0a\x07\x08\x01\x12\x03bad",
            3 => "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n",
            _ => "HTTP/1.1 429 Slowly\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        })
    });
    let member = Member::named("ok");
    let proxy = Proxy::start(&setup(&collector, &[&member], "sample: 100%"));
    let dropped =
        |reason: &str| proxy.metric("weir_trace_spans_dropped_total", &[&format!("\"{reason}\"")]);
    let wait_for = |reason: &str, count: f64| {
        eventually(reason, STEP_TIMEOUT, || dropped(reason) == count);
    };
    assert_eq!(send(&proxy, "/", ""), 200);
    wait_for("refused", 1.0);
    assert_eq!(proxy.metric("weir_trace_spans_exported_total", &[]), 1.0);
    let requests = collector.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
    let status = proxy.admin_get("/v1/status");
    assert!(status.contains("refuses 1 spans: bad"), "{status}");
    assert_eq!(send(&proxy, "/", ""), 200);
    wait_for("refused", 3.0);
    assert_eq!(send(&proxy, "/", ""), 200);
    wait_for("failed", 2.0);
    assert_eq!(collector.requests().len(), 9);
    assert_eq!(dropped("full"), 0.0);
}

#[test]
fn what_waits_at_the_end_is_sent() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let section = format!("tracing: {{ otlp: \"http://{}\", interval: 60s }}", collector.address());
    let setup =
        Setup::new(&[member.address()]).virtual_server("tracing: { sample: 100% }").top(&section);
    let mut proxy = Proxy::start(&setup);
    assert_eq!(send(&proxy, "/", ""), 200);
    assert!(collector.requests().is_empty());
    proxy.process().signal(Signal::TERM);
    assert!(proxy.process().wait(STEP_TIMEOUT).success());
    assert_eq!(collector.wait_for(2).len(), 2);

    // Shutdown does not wait for a collector that never answers.
    let silent = Collector::answering(|_, _| {
        std::thread::sleep(10 * STEP_TIMEOUT);
        Ok(())
    });
    let section = format!("tracing: {{ otlp: \"http://{}\", interval: 60s }}", silent.address());
    let setup =
        Setup::new(&[member.address()]).virtual_server("tracing: { sample: 100% }").top(&section);
    let mut proxy = Proxy::start(&setup);
    assert_eq!(send(&proxy, "/", ""), 200);
    proxy.process().signal(Signal::TERM);
    assert!(proxy.process().wait(STEP_TIMEOUT).success());
}
