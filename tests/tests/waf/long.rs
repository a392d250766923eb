//! Inspections that take more than a turn of a worker go on elsewhere, with the same verdicts.

use weir_testing::encode;
use weir_tests::member::Member;
use weir_tests::proxy::Proxy;
use weir_tests::{STEP_TIMEOUT, eventually};

use crate::setup::{ask, guarded, lines, wait_for_lines, with_type};

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

#[test]
fn a_long_head_is_judged_elsewhere_before_services_and_members() {
    let member = Member::echo();
    let service = Member::script("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let setup = guarded(&member, "waf: { mode: block, checks: off }")
        .http("head_size_max: 64KiB")
        .virtual_server("authenticate: portal")
        .also_pool(&format!("service: {{ members: [ \"{}\" ] }}", service.address()))
        .top("authentication:\n  portal: { type: external, pool: service, path: /verify }")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let filling = "x".repeat(30_000);
    for (text, status) in [("shoes", 200), ("1'+UNION+SELECT+user,password+FROM+users--", 403)] {
        let target = format!("/?a={filling}&q={text}");
        ask(&proxy, with_type(&target, "application/json", "{\"a\":1}")).assert_status(status);
    }
    assert!(long_inspections(&proxy) >= 2.0);
    assert_eq!((service.request_count(), member.request_count()), (1, 1));
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
