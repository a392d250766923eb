//! Requests in flight during reloads that change their rules, members and queues.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use weir_tests::client::Client;
use weir_tests::jar::Jar;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-First: 1\r\nX-Second: 2\r\n\r\n";

fn panics(proxy: &Proxy) -> f64 {
    proxy.metric("weir_worker_panics_total", &[])
}

/// The indices of expressions differ between configurations.
#[test]
fn rules_of_the_request_judge_its_response_whatever_is_in_force_by_then() {
    let (member, gate) = Member::gated("done");
    let rules = "policies:\n  p:\n    strategy: all_match\n    rules:\n      \
                 - { when: 'response.headers[\"x-none\"] == \"1\"', then: [ { trace: never } ] }\n      \
                 - { when: 'request.headers[\"x-first\"] == \"1\"', then: [ { set_response_header: { X-Told: \"${request.headers['x-second']} ${response.status}\" } } ] }\n      \
                 - { then: [ { replace_response_header: { Content-Length: { regex: a, to: b } } } ] }";
    let rules = rules.replace(
        "{ replace_response_header: { Content-Length: { regex: a, to: b } } }",
        "{ rewrite_location: { regex: \"^a\", to: b } }",
    );
    let with = Setup::new(&[member.address()]).virtual_server("policies: [ p ]").top(&rules);
    let other = "policies:\n  p: { rules: [ { when: 'response.headers[\"content-length\"] == \"4\"', then: [ { set_response_header: { X-Other: \"${response.headers['content-length']}\" } } ] } ] }";
    let others = Setup::new(&[member.address()]).virtual_server("policies: [ p ]").top(other);
    let none = Setup::new(&[member.address()]);
    let proxy = Proxy::start(&with);
    let mut clients: Vec<Client> = (0..3).map(|_| proxy.client()).collect();
    clients[0].send(REQUEST);
    member.wait_for_requests(1);
    proxy.reload_and_wait(&others);
    clients[1].send(REQUEST);
    member.wait_for_requests(2);
    proxy.reload_and_wait(&none);
    clients[2].send(REQUEST);
    member.wait_for_requests(3);
    gate.open();
    let told: Vec<_> = clients
        .iter_mut()
        .map(|client| {
            let response = client.response();
            response.assert_status(200);
            let field = |name| response.head.field(name).map(str::to_owned);
            (field("x-told"), field("x-other"))
        })
        .collect();
    let expected = [(Some("2 200".into()), None), (None, Some("4".into())), (None, None)];
    assert_eq!(told, expected);
    assert_eq!(panics(&proxy), 0.0);
}

/// Queued requests go to the members that exist when they are sent. Each request is counted at the member that received it.
#[test]
fn members_come_go_and_change_places_while_requests_wait() {
    let (most, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let held = Arc::new(AtomicBool::new(false));
    let under_way: Vec<Arc<AtomicUsize>> = (0..3).map(|_| Arc::default()).collect();
    let members: Vec<Member> = under_way
        .iter()
        .map(|under_way| {
            let (under_way, most) = (Arc::clone(under_way), Arc::clone(&most));
            let (held, count) = (Arc::clone(&held), Arc::clone(&count));
            Member::new(move |exchange| {
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Some requests take longer than the time without their member.
                let is_long = count.fetch_add(1, Ordering::SeqCst) % 8 == 0;
                thread::sleep(Duration::from_millis(if is_long { 150 } else { 15 }));
                while held.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(2));
                }
                under_way.fetch_sub(1, Ordering::SeqCst);
                exchange.answer("done")
            })
        })
        .collect();
    let setup = |order: &[usize]| {
        order.iter().fold(
            Setup::new(&[])
                .pool("queue: { length_max: 1000, timeout: 20s }")
                .virtual_server("persistence: sticky")
                .top("persistence:\n  sticky: { type: source_address }")
                .top("data_plane: { workers: 2 }")
                .access_log(),
            |setup, &index| {
                let address = members[index].address();
                setup.member(&format!("{{ address: {address}, connections_max: 2 }}"))
            },
        )
    };
    let proxy = Proxy::start(&setup(&[0, 1]));
    let address = proxy.address();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..16)
        .map(|number| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let mut client = Client::connect_from(address, [127, 0, 8, number + 1].into());
                while !is_over.load(Ordering::Acquire) {
                    client.get("/").assert_status(200);
                }
            })
        })
        .collect();
    for order in [&[2, 0, 1][..], &[1], &[1, 2], &[2, 1, 0], &[0], &[0, 1]] {
        proxy.reload_and_wait(&setup(order));
        thread::sleep(Duration::from_millis(60));
    }
    is_over.store(true, Ordering::Release);
    for client in clients {
        client.join().expect("only good answers");
    }
    assert_eq!(panics(&proxy), 0.0);
    assert!(most.load(Ordering::SeqCst) <= 2, "{most:?} at once");
    // The counters are correct: exactly four requests can be in flight.
    let occupied = |count: usize| {
        let mut inside: Vec<Client> = (0..count).map(|_| proxy.client()).collect();
        for client in &mut inside {
            client.send(REQUEST);
        }
        inside
    };
    held.store(true, Ordering::Release);
    let mut last = occupied(4);
    weir_tests::eventually("four are under way", weir_tests::STEP_TIMEOUT, || {
        under_way.iter().map(|count| count.load(Ordering::SeqCst)).collect::<Vec<_>>() == [2, 2, 0]
    });
    let mut fifth = occupied(1);
    weir_tests::eventually("the fifth waits", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 1.0
    });
    held.store(false, Ordering::Release);
    for client in last.iter_mut().chain(&mut fifth) {
        client.response().assert_status(200);
    }
}

/// The limits of a member, a pool and a virtual server that one reload removes and the next one restores count earlier
/// requests that are still in flight.
#[test]
fn what_comes_back_knows_what_is_under_way() {
    let (busy, gate) = Member::gated("busy");
    let other = Member::named("other");
    let queue = "queue: { length_max: 10, timeout: 20s }";
    let limited = format!("{{ address: {}, connections_max: 1 }}", busy.address());
    let gone = Setup::new(&[other.address()]).pool(queue);
    let with_member = Setup::new(&[]).pool(queue).member(&limited);
    let with_pool = (gone.clone().without_pool())
        .virtual_server("pool: fresh")
        .also_pool(&format!("fresh: {{ members: [ {limited} ], {queue} }}"));
    for with in [with_member, with_pool] {
        gate.shut();
        let proxy = Proxy::start(&with);
        let before = busy.request_count();
        let mut first = proxy.client();
        first.send(REQUEST);
        busy.wait_for_requests(before + 1);
        proxy.reload_and_wait(&gone);
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "other");
        proxy.reload_and_wait(&with);
        let mut second = proxy.client();
        second.send(REQUEST);
        weir_tests::eventually("it waits", weir_tests::STEP_TIMEOUT, || {
            proxy.metric("weir_pool_queue_requests", &[]) == 1.0
        });
        assert_eq!(busy.request_count(), before + 1);
        gate.open();
        first.response().assert_status(200);
        second.response().assert_status(200);
    }
}

/// The limits of a restored virtual server count earlier requests that are still in flight.
#[test]
fn a_virtual_server_that_comes_back_knows_what_is_under_way() {
    for limits in [
        "limits: { requests: 1 }",
        "limits: { per_key: [ { key: \"${request.headers['x-tenant']}\", requests: 1 } ] }",
    ] {
        let (busy, gate) = Member::gated("busy");
        let limited = Setup::new(&[busy.address()]).virtual_server(limits);
        let gone = Setup::new(&[busy.address()]).named("other");
        let proxy = Proxy::start(&limited);
        let request = "GET / HTTP/1.1\r\nHost: test\r\nX-Tenant: one\r\n\r\n";
        let mut first = proxy.client();
        first.send(request);
        busy.wait_for_requests(1);
        proxy.reload_and_wait(&gone);
        proxy.reload_and_wait(&limited);
        let mut second = proxy.client();
        second.send(request);
        second.response().assert_status(429);
        gate.open();
        first.response().assert_status(200);
        weir_tests::eventually("it is free", weir_tests::STEP_TIMEOUT, || {
            second.send(request);
            second.response().status == 200
        });
    }
}

/// A queued request goes to a member that a reload adds.
#[test]
fn a_new_member_serves_those_who_wait() {
    let (busy, gate) = Member::gated("busy");
    let fresh = Member::named("fresh");
    let setup = |fresh: Option<SocketAddr>| {
        let setup = Setup::new(&[])
            .pool("queue: { length_max: 10, timeout: 20s }")
            .virtual_server("persistence: sticky")
            .top("persistence:\n  sticky: { type: source_address }")
            .access_log();
        let setup = setup.member(&format!("{{ address: {}, connections_max: 1 }}", busy.address()));
        fresh.into_iter().fold(setup, |setup, fresh| setup.member(&fresh.to_string()))
    };
    let proxy = Proxy::start(&setup(None));
    let mut first = proxy.client();
    first.send(REQUEST);
    busy.wait_for_requests(1);
    let mut waiting = proxy.client();
    waiting.send(REQUEST);
    weir_tests::eventually("it waits", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 1.0
    });
    proxy.reload_and_wait(&setup(Some(fresh.address())));
    assert_eq!(waiting.response().assert_status(200).text(), "fresh");
    gate.open();
    first.response().assert_status(200);
}

/// A client has sent a part of a head to a virtual server that a reload removes. Its request goes to the pool that the old
/// rules select, not to the pool that has the same index in the new configuration.
#[test]
fn half_a_head_for_a_virtual_server_that_is_gone() {
    let names = ["own", "chosen", "foreign"].map(Member::named);
    let [own, chosen, foreign] = [0, 1, 2].map(|index: usize| names[index].address());
    let (listen, stays) = (Lease::new(), Lease::new());
    let proxy = Proxy::start(&Setup::new(&[own]).top("data_plane: { workers: 1 }"));
    let admin = proxy.admin_address();
    let (listen_at, stays_at) = (listen.address(), stays.address());
    let text = |servers: &str| {
        format!(
            "admin: {{ listen: \"{admin}\" }}\nlog: {{ access: {{ to: stdout, format: \"off\" }} }}\n{servers}"
        )
    };
    let both = text(&format!(
        "virtual_servers:\n  gone: {{ listen: \"{listen_at}\", pool: own, policies: [ p ] }}\n  \
         stays: {{ listen: \"{stays_at}\", pool: foreign }}\n\
         policies:\n  p: {{ rules: [ {{ when: 'request.path == \"/x\"', then: [ {{ pool: chosen }} ] }} ] }}\n\
         pools:\n  foreign: {{ members: [ \"{foreign}\" ] }}\n  own: {{ members: [ \"{own}\" ] }}\n  chosen: {{ members: [ \"{chosen}\" ] }}\n"
    ));
    let one = text(&format!(
        "virtual_servers:\n  stays: {{ listen: \"{stays_at}\", pool: foreign }}\n\
         pools:\n  a: {{ members: [ \"{foreign}\" ] }}\n  b: {{ members: [ \"{foreign}\" ] }}\n  foreign: {{ members: [ \"{foreign}\" ] }}\n"
    ));
    let reload = |text: &str| {
        let before = proxy.reloads("success");
        proxy.reload_text(text);
        weir_tests::eventually("it is in force", weir_tests::STEP_TIMEOUT, || {
            proxy.reloads("success") > before
        });
    };
    reload(&both);
    drop((listen, stays));
    let mut client = Client::connect(listen_at);
    client.send("GET /x HTTP/1.1\r\nHo");
    // When a later connection has its response, weir has accepted this connection and read its bytes.
    assert_eq!(Client::connect(listen_at).get("/x").text(), "chosen");
    reload(&one);
    client.send("st: a\r\n\r\n");
    let answer = client.response();
    assert_eq!((answer.status, answer.text().as_str()), (200, "chosen"));
    assert_eq!(panics(&proxy), 0.0);
}

/// A drained member is the only one of its pool. Its clients stay, and others go to the fallback pool.
#[test]
fn a_drained_pool_keeps_its_clients_before_its_fallback() {
    let (web, sorry) = (Member::named("web"), Member::named("sorry"));
    let setup = |state: &str| {
        Setup::new(&[])
            .member(&format!("{{ address: {}, state: {state} }}", web.address()))
            .pool("fallback: sorry")
            .also_pool(&format!("sorry: {{ members: [ \"{}\" ] }}", sorry.address()))
            .virtual_server("persistence: sticky")
            .top("persistence:\n  sticky: { type: source_address }")
    };
    let proxy = Proxy::start(&setup("enabled"));
    let ask = |host: u8| {
        let mut client = Client::connect_from(proxy.address(), [127, 0, 8, host].into());
        client.get("/").assert_status(200).text()
    };
    assert_eq!(ask(1), "web");
    proxy.reload_and_wait(&setup("drain"));
    let seen: BTreeSet<String> = (0..5).map(|_| ask(1)).collect();
    assert_eq!(seen, BTreeSet::from(["web".to_owned()]));
    assert_eq!(ask(2), "sorry");
}

/// A drained member is full. Its clients go to the fallback pool instead of failing.
#[test]
fn a_drained_pool_that_is_full_is_not_the_end() {
    let (web, gate) = Member::gated("web");
    let sorry = Member::named("sorry");
    let setup = |state: &str| {
        Setup::new(&[])
            .member(&format!(
                "{{ address: {}, state: {state}, connections_max: 1 }}",
                web.address()
            ))
            .pool("fallback: sorry")
            .also_pool(&format!("sorry: {{ members: [ \"{}\" ] }}", sorry.address()))
            .virtual_server("persistence: sticky")
            .top("persistence:\n  sticky: { type: source_address }")
    };
    let proxy = Proxy::start(&setup("enabled"));
    let mut first = proxy.client();
    first.send(REQUEST);
    web.wait_for_requests(1);
    proxy.reload_and_wait(&setup("drain"));
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "sorry");
    gate.open();
    first.response().assert_status(200);
    weir_tests::eventually("there is a place again", weir_tests::STEP_TIMEOUT, || {
        proxy.client().get("/").assert_status(200).text() == "web"
    });
}

/// A request waits in the queue for a retry at another member than the failed one. It does not delay other requests.
#[test]
fn a_retry_that_waits_holds_up_nobody() {
    let breaks = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&breaks);
    let free = Member::new(move |exchange| {
        if exchange.request.head.field("x-break").is_some() && once.load(Ordering::Acquire) {
            return Ok(weir_tests::member::Then::Close);
        }
        exchange.answer("free")
    });
    let (busy, gate) = Member::gated("busy");
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 100, priority: 1 }}", free.address()))
        .member(&format!("{{ address: {}, connections_max: 1, priority: 1 }}", busy.address()))
        .pool("queue: { length_max: 10, timeout: 20s }")
        .top("data_plane: { workers: 1 }")
        .access_log();
    let proxy = Proxy::start(&setup);
    let ask = |fields: &str| {
        let mut client = proxy.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        client
    };
    // One of the first two requests is at the busy member and remains there.
    let mut first: Vec<Client> = (0..2).map(|_| ask("")).collect();
    busy.wait_for_requests(1);
    let mut retried = ask("X-Break: 1\r\n");
    weir_tests::eventually("it waits", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 1.0
    });
    for _ in 0..5 {
        assert_eq!(ask("").response().assert_status(200).text(), "free");
    }
    gate.open();
    assert_eq!(retried.response().assert_status(200).text(), "busy");
    for client in &mut first {
        client.response().assert_status(200);
    }
}

/// Rules and pools are added, removed and restored. Clients with a cookie stay at their members in each pool.
#[test]
fn a_policy_with_a_second_pool_moves_nobody() {
    const CLIENTS: usize = 12;
    let directory = TempDir::new("reload");
    let pages = ["one", "two", "three", "four"].map(Member::named);
    let images = ["i1", "i2", "i3", "i4"].map(Member::named);
    let setup = || {
        Setup::new(&pages.each_ref().map(Member::address))
            .virtual_server("persistence: sticky")
            .top("persistence:\n  sticky: { type: cookie }")
            .top("data_plane: { workers: 2 }")
            .top(&format!("state_dir: {}", directory.path().display()))
    };
    let plain = setup();
    let switching = |rules: &str| {
        let [a, b, c, d] = images.each_ref().map(Member::address);
        setup()
            .virtual_server("policies: [ switch ]")
            .also_pool(&format!("images: {{ members: [ \"{a}\", \"{b}\", \"{c}\", \"{d}\" ] }}"))
            .top(&format!("policies:\n  switch: {{ rules: [ {rules} ] }}"))
    };
    let by_path = "{ when: 'request.path.endsWith(\".png\")', then: [ { pool: images } ] }";
    let more = format!("{{ when: 'request.path == \"/old\"', then: [ close ] }}, {by_path}");
    let proxy = Proxy::start(&plain);
    let mut jars: Vec<Jar> = vec![Jar::default(); CLIENTS];
    let mut ask = |path: &str| -> Vec<String> {
        let answers = jars.iter_mut().map(|jar| {
            let answer = jar.get(proxy.address(), path).text();
            jar.only("WEIR");
            answer
        });
        answers.collect()
    };
    let at_pages = ask("/");
    proxy.reload_and_wait(&switching(by_path));
    assert_eq!(ask("/"), at_pages);
    let at_images = ask("/a.png");
    assert!(at_images.iter().all(|name| name.starts_with('i')), "{at_images:?}");
    for setup in [switching(&more), plain, switching(by_path)] {
        proxy.reload_and_wait(&setup);
        assert_eq!(ask("/"), at_pages);
    }
    assert_eq!(ask("/a.png"), at_images, "also in a pool that was away");
    assert_eq!(ask("/"), at_pages);
    assert_eq!(panics(&proxy), 0.0);
}
