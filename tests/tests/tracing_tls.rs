//! Traces to a collector over TLS: its certificate is checked, and a failure says why. Another weir with TLS stands in front of
//! the collector.

use serde_json::Value;
use weir_tests::member::Member;
use weir_tests::otlp::Collector;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually, tls};

/// A weir in front of a collector, with the certificate of `shop.example`.
fn front(collector: &Collector, more: &str) -> Proxy {
    Proxy::start(&Setup::new(&[collector.address()]).virtual_server(&tls::shop(more)))
}

/// A weir that traces each request, with these settings for the collector's TLS.
fn setup(front: &Proxy, member: &Member, settings: &str) -> Setup {
    let url = format!("https://{}/v1/traces", front.address());
    Setup::new(&[member.address()])
        .virtual_server("tracing: { sample: 100% }")
        .top(&format!("tracing: {{ otlp: \"{url}\", interval: 100ms, tls: {{ {settings} }} }}"))
}

/// Sends requests until the status says that traces cannot be sent for this reason.
#[track_caller]
fn fails_with(proxy: &Proxy, reason: &str) {
    let mut told = String::new();
    eventually(&format!("traces cannot be sent: {reason}"), STEP_TIMEOUT, || {
        proxy.client().get("/").assert_status(200);
        told = proxy.admin_get("/v1/status");
        told.contains(reason)
    });
    let status: Value = serde_json::from_str(&told).expect("JSON");
    let problems = status["problems"].as_array().expect("problems");
    let is_told = |it: &Value| it.to_string().contains(reason);
    assert!(problems.iter().any(is_told), "`weir status` has it among the problems: {problems:#?}");
}

#[test]
fn the_collectors_certificate_is_checked() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let front = front(&collector, "");
    let trusted = |more: &str| format!("ca: {}, {more}", tls::file("root.crt"));
    let stranger = format!("ca: {}, server_name: shop.example", tls::file("stranger.crt"));
    let mut proxy = Proxy::start(&setup(&front, &member, &stranger));
    fails_with(&proxy, "TLS failed: the certificate is not signed by a trusted authority");
    let log = proxy.process().says("TLS failed");
    let line = log.lines().find(|line| line.contains("TLS failed")).expect("an event");
    assert!(line.contains("cannot be sent to https://"), "{line}");
    proxy.reload_and_wait(&setup(&front, &member, &trusted("server_name: other.example")));
    fails_with(&proxy, "TLS failed: the certificate is not for this name");
    assert!(collector.requests().is_empty(), "nothing has come to the collector");

    proxy.reload_and_wait(&setup(&front, &member, &trusted("server_name: shop.example")));
    proxy.client().get("/traced").assert_status(200);
    eventually("the span comes", STEP_TIMEOUT, || {
        collector.spans().iter().any(|span| span.get("url.path") == "/traced")
    });
    eventually("the problem is over", STEP_TIMEOUT, || {
        !proxy.admin_get("/v1/status").contains("TLS failed")
    });
    proxy.process().says(" are sent to https://");
}

#[test]
fn a_collector_may_ask_for_a_client_certificate() {
    let (collector, member) = (Collector::new(), Member::named("ok"));
    let people =
        format!("client_certificates: {{ ca: {}, mode: require }}", tls::file("authorities.crt"));
    let front = front(&collector, &people);
    let plain = format!("ca: {}, server_name: shop.example", tls::file("root.crt"));
    let proxy = Proxy::start(&setup(&front, &member, &plain));
    fails_with(&proxy, "it requires a client certificate");
    assert!(collector.requests().is_empty(), "nothing has come to the collector");
    let certified = format!(
        "{plain}, certificate: {{ cert: {}, key: {} }}",
        tls::file("client.crt"),
        tls::file("client.key")
    );
    proxy.reload_and_wait(&setup(&front, &member, &certified));
    proxy.client().get("/traced").assert_status(200);
    eventually("the span comes", STEP_TIMEOUT, || {
        collector.spans().iter().any(|span| span.get("url.path") == "/traced")
    });
}
