//! The distribution of requests to the members of a pool: methods, priorities, queues, responses without a member.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_tests::client::Client;
use weir_tests::gate::Gate;
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};

/// The number of responses from each member.
fn shares(proxy: &Proxy, path: &str, count: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..count {
        let name = proxy.client().get(path).assert_status(200).text();
        *shares.entry(name).or_default() += 1;
    }
    shares
}

fn addresses(members: &[Member]) -> Vec<SocketAddr> {
    members.iter().map(Member::address).collect()
}

#[test]
fn every_method_reaches_all_members_and_follows_weights_where_it_has_them() {
    let members = ["one", "two", "three"].map(Member::named);
    for method in ["round_robin", "least_connections", "least_response_time", "random_two"] {
        let setup = Setup::new(&addresses(&members)[1..])
            .member(&format!("{{ address: {}, weight: 4 }}", members[0].address()))
            .pool(&format!("balance: {method}"));
        let shares = shares(&Proxy::start(&setup), "/", 120);
        assert_eq!(shares.len(), 3, "{method}: {shares:?}");
        if method == "round_robin" {
            assert!((70..=90).contains(&shares["one"]), "{shares:?}");
        }
    }
}

#[test]
fn a_hash_gives_the_same_path_the_same_member_on_every_weir() {
    let members = ["one", "two", "three", "four"].map(Member::named);
    let setup = Setup::new(&addresses(&members)).pool("balance: { hash: request.path }");
    let (first, second) = (Proxy::start(&setup), Proxy::start(&setup));
    let mut used = BTreeSet::new();
    for number in 0..40 {
        let path = format!("/object/{number}");
        let names: BTreeSet<String> = [&first, &second, &first]
            .iter()
            .map(|proxy| proxy.client().get(&path).assert_status(200).text())
            .collect();
        assert_eq!(names.len(), 1, "{path}: {names:?}");
        used.extend(names);
    }
    assert_eq!(used.len(), 4);
}

#[test]
fn the_source_address_decides_without_a_table() {
    let members = ["one", "two", "three", "four"].map(Member::named);
    let proxy = Proxy::start(&Setup::new(&addresses(&members)).pool("balance: source_address"));
    let mut used = BTreeSet::new();
    for host in 1..40 {
        let names: BTreeSet<String> = (0..3)
            .map(|_| {
                let mut client = Client::connect_from(proxy.address(), [127, 0, 8, host].into());
                client.get("/").assert_status(200).text()
            })
            .collect();
        assert_eq!(names.len(), 1, "{host}: {names:?}");
        used.extend(names);
    }
    assert_eq!(used.len(), 4, "{used:?}");
}

#[test]
fn lower_priorities_stand_by_until_they_are_needed() {
    let [one, two, spare] = ["one", "two", "spare"].map(Member::named);
    let member =
        |member: &Member, rest: &str| format!("{{ address: {}, {rest} }}", member.address());
    let with = |state: &str, least: u8| {
        Setup::new(&[])
            .member(&member(&one, &format!("priority: 10, state: {state}")))
            .member(&member(&two, "priority: 10"))
            .member(&member(&spare, "priority: 5"))
            .pool(&format!("priority: {{ active_members_min: {least} }}"))
    };
    let proxy = Proxy::start(&with("enabled", 2));
    assert_eq!(shares(&proxy, "/", 20).keys().collect::<Vec<_>>(), ["one", "two"]);
    proxy.reload_and_wait(&with("disabled", 2));
    assert_eq!(shares(&proxy, "/", 20).keys().collect::<Vec<_>>(), ["spare", "two"]);
    proxy.reload_and_wait(&with("disabled", 1));
    assert_eq!(shares(&proxy, "/", 20).keys().collect::<Vec<_>>(), ["two"]);
}

#[test]
fn another_pool_serves_while_nobody_is_up_and_else_a_page_says_so() {
    let spare = Member::named("spare");
    let down = "monitors: [ { type: tcp, interval: 1s, fall: 1 } ]";
    let nobody = weir_tests::ports::Lease::new();
    let setup = Setup::new(&[nobody.address()]).pool(down);
    let proxy = Proxy::start(
        &setup
            .clone()
            .pool("fallback: spare")
            .also_pool(&format!("spare: {{ members: [ {} ] }}", spare.address())),
    );
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "spare");
    let page = "maintenance: { body: \"<h1>Back soon</h1>\" }";
    let proxy =
        Proxy::start(&setup.pool(page).virtual_server("error_pages: { 5xx: { body: other } }"));
    let response = proxy.client().get("/");
    assert_eq!(response.assert_status(503).text(), "<h1>Back soon</h1>");
    assert_eq!(response.head.field("content-type"), Some("text/html; charset=utf-8"));
}

#[test]
fn clients_are_sent_elsewhere_while_nobody_is_up() {
    let nobody = weir_tests::ports::Lease::new();
    let setup = Setup::new(&[nobody.address()])
        .pool("monitors: [ { type: tcp, interval: 1s, fall: 1 } ]")
        .pool("maintenance: { redirect: \"https://status.example/shop\" }");
    let proxy = Proxy::start(&setup);
    let response = proxy.client().get("/a?b");
    assert_eq!(
        response.assert_status(302).head.field("location"),
        Some("https://status.example/shop")
    );
    proxy.client().post("/", b"body").assert_status(302);
}

/// A client whose request is in flight until it sends the rest of the body.
fn hold(proxy: &Proxy, more: &str) -> Client {
    let mut client = proxy.client();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n{more}\r\n"));
    client
}

#[test]
fn a_full_pool_spills_over_but_keeps_the_clients_that_it_has() {
    let (member, spare) = (Member::named("first"), Member::named("spare"));
    let line = |address| format!("{{ address: {address}, connections_max: 3 }}");
    let setup = Setup::new(&[])
        .member(&line(member.address()))
        .also_pool(&format!("spare: {{ members: [ {} ] }}", spare.address()))
        .virtual_server("persistence: kept")
        .top("persistence:\n  kept: { type: cookie, name: at, secure: false }");
    let active = |proxy: &Proxy, count: f64| {
        weir_tests::eventually("requests are under way", weir_tests::STEP_TIMEOUT, || {
            proxy.metric("weir_member_requests_active", &["\"members\""]) == count
        });
    };
    let spills = "spillover: { pool: spare, connections: 1 }";
    let proxy = Proxy::start(&setup.clone().pool(spills));
    let response = proxy.client().get("/");
    assert_eq!(response.assert_status(200).text(), "first");
    let cookie = response.head.field("set-cookie").and_then(|it| it.split(';').next());
    let cookie = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
    active(&proxy, 0.0);
    let mut holding = hold(&proxy, "");
    active(&proxy, 1.0);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "spare");
    let mut kept = proxy.client();
    kept.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{cookie}\r\n"));
    assert_eq!(kept.response().assert_status(200).text(), "first");
    holding.send("body");
    assert_eq!(holding.response().assert_status(200).text(), "first");
    active(&proxy, 0.0);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "first");
    // Without a number, the pool's limit is the sum of its members' limits, also for clients with persistence.
    let proxy = Proxy::start(&setup.pool("spillover: { pool: spare }"));
    let mut holding: Vec<Client> = (0..3).map(|_| hold(&proxy, &cookie)).collect();
    active(&proxy, 3.0);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "spare");
    let mut kept = proxy.client();
    kept.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{cookie}\r\n"));
    assert_eq!(kept.response().assert_status(200).text(), "spare");
    for client in &mut holding {
        client.send("body");
        client.response().assert_status(200);
    }
    active(&proxy, 0.0);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "first");
}

#[test]
fn a_pool_that_is_down_does_not_spill_over() {
    let (spare, stand_in) = (Member::named("spare"), Member::named("stand-in"));
    let nobody = weir_tests::ports::Lease::new();
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 3 }}", nobody.address()))
        .pool("monitors: [ { type: tcp, interval: 1s, fall: 1 } ]")
        .also_pool(&format!("spare: {{ members: [ {} ] }}", spare.address()))
        .also_pool(&format!("stand_in: {{ members: [ {} ] }}", stand_in.address()));
    for spills in ["spillover: { pool: spare }", "spillover: { pool: spare, connections: 1 }"] {
        let setup = setup.clone().pool(spills);
        let page = setup.clone().pool("maintenance: { body: \"back soon\" }");
        let response = Proxy::start(&page).client().get("/");
        assert_eq!(response.assert_status(503).text(), "back soon", "{spills}");
        let response = Proxy::start(&setup.pool("fallback: stand_in")).client().get("/");
        assert_eq!(response.assert_status(200).text(), "stand-in", "{spills}");
    }
}

#[test]
fn error_pages_take_the_place_of_short_answers() {
    let member = Member::script("nonsense");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()]).pool("retries: 0").virtual_server(
            "error_pages: { 502: { body: sorry, content_type: text/plain }, 4xx: { body: \"<p>no</p>\" } }",
        ),
    );
    let response = proxy.client().get("/");
    assert_eq!(response.assert_status(502).text(), "sorry");
    assert_eq!(response.head.field("content-type"), Some("text/plain"));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_eq!(client.response().assert_status(400).text(), "<p>no</p>");
}

#[test]
fn responses_tell_how_long_they_took_where_that_is_wanted() {
    let member = Member::new(|exchange| {
        thread::sleep(Duration::from_millis(30));
        exchange.answer("late")
    });
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).virtual_server("server_timing: true"));
    let response = proxy.client().get("/");
    let timing = response.head.field("server-timing").expect("a field");
    let member_ms: f64 = timing.rsplit("dur=").next().and_then(|ms| ms.parse().ok()).expect(timing);
    assert!(member_ms >= 25.0, "{timing}");
}

/// The members count their concurrent requests. No member may exceed its limit, and no request may be rejected.
#[test]
fn requests_wait_for_a_member_instead_of_being_turned_away() {
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Gate::default());
    let (seen, under_way, shut) = (Arc::clone(&most), Arc::clone(&now), Arc::clone(&gate));
    let member = Member::new(move |exchange| {
        seen.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        shut.pass();
        under_way.fetch_sub(1, Ordering::SeqCst);
        exchange.answer("done")
    });
    let member_line = format!("{{ address: {}, connections_max: 3 }}", member.address());
    let setup = Setup::new(&[])
        .member(&member_line)
        .pool("queue: { length_max: 100, timeout: 60s }")
        .top("data_plane: { workers: 2 }");
    let proxy = Proxy::start(&setup);
    let address = proxy.address();
    let clients: Vec<_> = (0..24)
        .map(|number| {
            thread::spawn(move || {
                let mut client = Client::connect(address);
                // With and without a body.
                let response =
                    if number % 2 == 0 { client.get("/") } else { client.post("/", b"body") };
                response.assert_status(200);
            })
        })
        .collect();
    weir_tests::eventually("all but three wait", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_pool_queue_requests", &[]) == 21.0
    });
    gate.open();
    for client in clients {
        client.join().expect("an answer");
    }
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?} at once");
    assert_eq!(proxy.metric("weir_pool_queued_total", &[]), 21.0);
    assert!(proxy.has_used_all_workers());
}

#[test]
fn a_queue_has_an_end_in_time_and_length() {
    let (member, gate) = Member::gated("slow");
    let member_line = format!("{{ address: {}, connections_max: 1 }}", member.address());
    let setup = Setup::new(&[]).member(&member_line).top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup.pool("queue: { length_max: 2, timeout: 300ms }"));
    let mut first = proxy.client();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    weir_tests::eventually("the member is busy", weir_tests::STEP_TIMEOUT, || {
        member.request_count() == 1
    });
    let mut waiting: Vec<Client> = (0..4).map(|_| proxy.client()).collect();
    let begun = Instant::now();
    for client in &mut waiting {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut waiting {
        client.response().assert_status(503);
    }
    assert!(begun.elapsed() >= Duration::from_millis(280), "two waited: {:?}", begun.elapsed());
    gate.open();
    first.response().assert_status(200);
    assert_eq!(member.request_count(), 1);
}

#[test]
fn a_client_that_goes_away_leaves_the_queue() {
    let (member, gate) = Member::gated("slow");
    let member_line = format!("{{ address: {}, connections_max: 1 }}", member.address());
    let setup = Setup::new(&[]).member(&member_line).top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup.pool("queue: { timeout: 60s }"));
    let mut first = proxy.client();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    weir_tests::eventually("the member is busy", weir_tests::STEP_TIMEOUT, || {
        member.request_count() == 1
    });
    let mut gone = proxy.client();
    gone.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut last = proxy.client();
    last.send("GET /last HTTP/1.1\r\nHost: a\r\n\r\n");
    let waiting = || proxy.metric("weir_pool_queue_requests", &[]);
    weir_tests::eventually("two wait", weir_tests::STEP_TIMEOUT, || waiting() >= 2.0);
    gone.reset();
    weir_tests::eventually("one waits", weir_tests::STEP_TIMEOUT, || waiting() == 1.0);
    gate.open();
    first.response().assert_status(200);
    last.response().assert_status(200);
    let targets: Vec<String> =
        member.requests().iter().map(|request| request.target().to_owned()).collect();
    assert_eq!(targets, ["/", "/last"]);
}

#[test]
fn a_member_gets_no_more_requests_per_second_than_it_may() {
    let [one, two] = ["one", "two"].map(Member::named);
    let limited = format!("{{ address: {}, requests_per_second_max: 10 }}", one.address());
    let proxy = Proxy::start(&Setup::new(&[two.address()]).member(&limited));
    let begun = Instant::now();
    let shares = shares(&proxy, "/", 60);
    // A burst of a second's requests, and those of the time that has passed. Without the limit it would be half of all.
    let most = 10 + (10.0 * begun.elapsed().as_secs_f64()) as usize;
    assert!(shares["one"] <= most, "{shares:?}, {most} allowed");
}

/// The number of responses from each member, over one connection for speed.
fn shares_at_once(proxy: &Proxy, count: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    let mut client = proxy.client();
    for _ in 0..count {
        *shares.entry(client.get("/").assert_status(200).text()).or_default() += 1;
    }
    shares
}

#[test]
fn a_member_that_came_up_gets_its_share_little_by_little() {
    let is_well = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let shown = Arc::clone(&is_well);
    let one = Member::new(move |exchange| {
        if exchange.request.target() != "/healthz" || shown.load(Ordering::Relaxed) {
            return exchange.answer("one");
        }
        exchange.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").map(|()| Then::KeepAlive)
    });
    let two = Member::named("two");
    let proxy = Proxy::start(
        &Setup::new(&[one.address(), two.address()])
            .pool("slow_start: 6s")
            .pool("monitors: [ { type: http, path: /healthz, interval: 500ms, rise: 1, fall: 2 } ]")
            .top("data_plane: { workers: 1 }"),
    );
    let wait = |state: &str| {
        proxy.wait_for_member_state(one.address(), state, weir_tests::STEP_TIMEOUT);
    };
    wait("up");
    proxy.wait_for_member_state(two.address(), "up", weir_tests::STEP_TIMEOUT);
    is_well.store(false, Ordering::Relaxed);
    wait("down");
    // The slow start begins later than this, so less of it has passed than is measured.
    let came_up = Instant::now();
    is_well.store(true, Ordering::Relaxed);
    wait("up");
    let early = shares_at_once(&proxy, 30);
    let is_early = came_up.elapsed() < Duration::from_secs(2);
    let share = early.get("one").copied().unwrap_or(0);
    // After a third of the slow start, the member has a third of its weight, which is a quarter of the requests.
    assert!(!is_early || share <= 9, "{early:?} after {:?}", came_up.elapsed());
    weir_tests::eventually("the shares are equal", weir_tests::STEP_TIMEOUT, || {
        shares_at_once(&proxy, 40).get("one") == Some(&20)
    });
}

#[test]
fn retries_stay_within_their_budget() {
    let one = Member::named("one");
    // A member that no longer listens.
    let dead = {
        let mut dead = Member::named("dead");
        let address = dead.address();
        dead.kill();
        address
    };
    let setup = || Setup::new(&[one.address(), dead]).top("data_plane: { workers: 1 }");
    let failed = |proxy: &Proxy| {
        let mut client = proxy.client();
        (0..40).filter(|_| client.get("/").status == 502).count()
    };
    assert_eq!(failed(&Proxy::start(&setup())), 0);
    let tight = setup().pool("retry_budget: { share: 10%, per_second_min: 0 }");
    let failed = failed(&Proxy::start(&tight));
    // Half of the requests try the dead member first, and each tenth request allows one retry.
    assert!((14..=20).contains(&failed), "{failed} of 40");
}

/// A member with errors is ejected, gets one trial request later, and is restored when that succeeds.
#[test]
fn a_member_that_fails_is_ejected_and_tried_with_one_request() {
    let is_well = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let shown = Arc::clone(&is_well);
    let one = Member::new(move |exchange| {
        if shown.load(Ordering::Relaxed) {
            return exchange.answer("one");
        }
        exchange.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").map(|()| Then::KeepAlive)
    });
    let two = Member::named("two");
    let proxy = Proxy::start(
        &Setup::new(&[one.address(), two.address()])
            .pool("passive: { failures: 3, window: 10s, eject: 300ms, eject_max: 600ms }")
            .top("data_plane: { workers: 1 }"),
    );
    let ejections = || proxy.metric("weir_member_ejections_total", &[]) as usize;
    let mut client = proxy.client();
    let begun = Instant::now();
    let mut failed = 0;
    while ejections() < 1 {
        failed += usize::from(client.get("/").status == 500);
    }
    assert_eq!(failed, 3);
    // Each trial is a single request. Its failure ejects the member again.
    let mut trials = 0;
    weir_tests::eventually("three trials", weir_tests::STEP_TIMEOUT, || {
        trials += usize::from(client.get("/").status == 500);
        trials == 3
    });
    // The trials come after 0.3 s and then every 0.6 s, each after the one before.
    assert!(begun.elapsed() >= Duration::from_millis(1_450), "{:?}", begun.elapsed());
    assert_eq!(ejections(), 1 + trials);
    is_well.store(true, Ordering::Relaxed);
    weir_tests::eventually("it is back", weir_tests::STEP_TIMEOUT, || {
        shares_at_once(&proxy, 20).get("one").copied() == Some(10)
    });
}

#[test]
fn members_that_refuse_do_not_attract_requests() {
    let good = Member::named("good");
    let (first, second) = (Lease::new(), Lease::new());
    let setup = Setup::new(&[first.address(), second.address(), good.address()])
        .pool("balance: least_response_time");
    let proxy = Proxy::start(&setup);
    drop((first, second));
    // Each failure doubles the member's estimated response time, which soon exceeds that of the other member. If they
    // attracted requests, hardly any would be served.
    weir_tests::eventually("twenty in a row are served", weir_tests::STEP_TIMEOUT, || {
        (0..20).all(|_| proxy.client().get("/").status == 200)
    });
}

#[test]
fn a_slow_upload_is_not_held_against_the_member() {
    let members = ["one", "two"].map(|name| {
        Member::new(move |exchange| {
            thread::sleep(Duration::from_millis(20));
            exchange.answer(name)
        })
    });
    let setup = Setup::new(&addresses(&members)).pool("balance: least_response_time");
    let proxy = Proxy::start(&setup);
    let mut slow = proxy.client();
    slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    thread::sleep(Duration::from_millis(600));
    slow.send("def");
    let uploaded_to = slow.response().assert_status(200).text();
    // Both members are equally slow, so this one gets some of four requests. With an estimate of 600 ms it gets none.
    let address = proxy.address();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(address);
                (0..10).map(|_| client.get("/").assert_status(200).text()).collect::<Vec<_>>()
            })
        })
        .collect();
    let served = clients.into_iter().flat_map(|client| client.join().expect("answers"));
    let count = served.filter(|name| *name == uploaded_to).count();
    assert!(count > 0, "{uploaded_to} gets none of 40");
}

#[test]
fn a_retry_waits_for_a_place_too() {
    let live = Member::new(|exchange| {
        thread::sleep(Duration::from_millis(30));
        exchange.answer("live")
    });
    let dead = Lease::new();
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", live.address()))
        .member(&format!("{{ address: {}, connections_max: 1 }}", dead.address()))
        .pool("queue: { length_max: 100, timeout: 60s }")
        .top("data_plane: { workers: 2 }");
    let proxy = Proxy::start(&setup);
    drop(dead);
    let address = proxy.address();
    let clients: Vec<_> =
        (0..12).map(|_| thread::spawn(move || Client::connect(address).get("/").status)).collect();
    for client in clients {
        assert_eq!(client.join().expect("an answer"), 200);
    }
}

/// Each turn of the event loop tries one queued request, even if many requests before it wait for another member.
#[test]
fn who_tries_again_is_not_kept_waiting_by_those_who_wait_for_another_member() {
    let gates: [Arc<Gate>; 4] = Default::default();
    let [failing, holding, moving, ending] = gates.clone();
    let wide = Member::new(move |exchange| match exchange.request.target() {
        "/fail" => {
            failing.pass();
            Ok(Then::Close)
        }
        "/hold" => {
            holding.pass();
            exchange.answer("wide")
        }
        _ => exchange.answer("wide"),
    });
    let narrow = Member::new(move |exchange| match exchange.request.target() {
        "/move" => {
            moving.pass();
            Ok(Then::Close)
        }
        _ => {
            ending.pass();
            exchange.answer("narrow")
        }
    });
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 70 }}", wide.address()))
        .member(&format!("{{ address: {}, connections_max: 1 }}", narrow.address()))
        .pool("queue: { length_max: 200, timeout: 60s }")
        .pool("retry_budget: { share: 50%, per_second_min: 1000 }")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let ask = |path: &str| {
        let mut client = proxy.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client
    };
    let waiting = |count: f64| {
        weir_tests::eventually("so many wait", weir_tests::STEP_TIMEOUT, || {
            proxy.metric("weir_pool_queue_requests", &[]) == count
        });
    };
    // The first request may go to either member.
    let mut mover = ask("/move");
    weir_tests::eventually("a member has it", weir_tests::STEP_TIMEOUT, || {
        narrow.request_count() + wide.request_count() == 1
    });
    if narrow.request_count() == 0 {
        mover.response().assert_status(200);
        mover = ask("/move");
    }
    narrow.wait_for_requests(1);
    let before = wide.request_count();
    let failed: Vec<Client> = (0..70).map(|_| ask("/fail")).collect();
    wide.wait_for_requests(before + 70);
    gates[0].open();
    waiting(70.0);
    let mut held: Vec<Client> = (0..70).map(|_| ask("/hold")).collect();
    wide.wait_for_requests(before + 140);
    gates[2].open();
    // One held request uses the connection that `mover` left. `mover` is in the queue behind the other 69 requests.
    narrow.wait_for_requests(2);
    waiting(70.0);
    gates[1].open();
    assert_eq!(mover.response().assert_status(200).text(), "wide");
    gates[3].open();
    for client in &mut held {
        client.response().assert_status(200);
    }
    drop(failed);
}

#[test]
fn the_length_of_a_queue_holds_over_all_workers_and_who_breaks_off_leaves_it() {
    let (member, gate) = Member::gated("done");
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", member.address()))
        .pool("queue: { length_max: 5, timeout: 60s, half_closed: leave }")
        .top("data_plane: { workers: 2 }");
    let proxy = Proxy::start(&setup);
    let mut idle = proxy.clients_of_each_worker(5).into_iter();
    let mut ask = || {
        let mut client = idle.next().expect("ten are enough");
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client
    };
    let waiting = |count: f64| {
        weir_tests::eventually("so many wait", weir_tests::STEP_TIMEOUT, || {
            proxy.metric("weir_pool_queue_requests", &[]) == count
        });
    };
    let mut first = ask();
    member.wait_for_requests(1);
    let mut inside: Vec<Client> = (0..5).map(|_| ask()).collect();
    waiting(5.0);
    ask().response().assert_status(503);
    // Two clients disconnect.
    inside.drain(..2).for_each(Client::reset);
    waiting(3.0);
    inside.extend([ask(), ask()]);
    waiting(5.0);
    gate.open();
    first.response().assert_status(200);
    for client in &mut inside {
        client.response().assert_status(200);
    }
    assert_eq!(member.request_count(), 6, "who left asked for nothing");
}

/// Requests after which the client half-closes its connection.
const LAST_REQUESTS: [&str; 3] = [
    "GET /half HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    "POST /half HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
];

/// All these clients must get a response, although they half-close with `half_close` while the member is full.
#[track_caller]
fn check_half_closed(half_close: impl Fn(&Proxy, &mut Client, usize)) {
    let (member, gate) = Member::gated("done");
    let setup = Setup::new(&[])
        .member(&format!("{{ address: {}, connections_max: 1 }}", member.address()))
        .pool("queue: { timeout: 60s }")
        .http("half_closed: wait")
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut first = proxy.client();
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    member.wait_for_requests(1);
    let mut waiting = Vec::new();
    for (request, number) in LAST_REQUESTS.iter().zip(1..) {
        let mut client = proxy.client();
        client.send(request);
        half_close(&proxy, &mut client, number);
        waiting.push(client);
        // The worker has processed the half-close when it responds to this malformed request.
        proxy.client().send("no request\r\n\r\n").response().assert_status(400);
    }
    gate.open();
    first.response().assert_status(200);
    for (client, request) in waiting.iter_mut().zip(LAST_REQUESTS) {
        let response = client.try_response(false).expect(request);
        assert_eq!(response.assert_status(200).text(), "done", "{request:?}");
        client.assert_closed();
    }
    let whole = member.requests().iter().filter(|request| request.body == b"body").count();
    assert_eq!((member.request_count(), whole), (4, 2));
}

#[test]
fn a_client_that_half_closes_while_it_waits_gets_its_answer() {
    check_half_closed(|proxy, client, number| {
        weir_tests::eventually("it waits", weir_tests::STEP_TIMEOUT, || {
            proxy.metric("weir_pool_queued_total", &[]) == number as f64
        });
        client.finish();
    });
}

#[test]
fn a_client_that_half_closes_before_it_waits_gets_its_answer() {
    check_half_closed(|_, client, _| {
        client.finish();
    });
}

#[test]
fn a_pool_may_be_filled_later() {
    let member = Member::named("one");
    let proxy = Proxy::start(&Setup::new(&[]));
    assert_eq!(proxy.client().get("/").status, 503);
    proxy.reload_and_wait(&Setup::new(&[member.address()]));
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "one");
}

/// A setup that distributes requests among pools. Each pool has one of these members and its name.
fn split(members: &[(&str, &Member)], weights: &str, more: &str) -> Setup {
    let mut setup = Setup::new(&[members[0].1.address()])
        .virtual_server("policies: [ canary ]")
        .virtual_server(more)
        .top(&format!(
            "policies: {{ canary: {{ rules: [ {{ then: [ {{ pool: {{ {weights} }} }} ] }} ] }} }}"
        ));
    for (name, member) in members {
        setup = setup.also_pool(&format!("{name}: {{ members: [ {} ] }}", member.address()));
    }
    setup
}

#[test]
fn a_rule_shares_requests_out_among_pools() {
    let [blue, green] = ["blue", "green"].map(Member::named);
    let members = [("blue", &blue), ("green", &green)];
    let proxy = Proxy::start(&split(&members, "blue: 3, green: 1", "server_timing: false"));
    let shared = shares(&proxy, "/", 400);
    assert_eq!(shared.values().sum::<usize>(), 400);
    // Within seven standard deviations.
    assert!((40..=160).contains(&shared["green"]), "{shared:?}");
    proxy.reload_and_wait(&split(&members, "blue: 1, green: 0", "server_timing: false"));
    assert_eq!(shares(&proxy, "/", 40), BTreeMap::from([("blue".to_owned(), 40)]));
}

#[test]
fn a_client_stays_in_the_pool_that_it_was_given() {
    let [blue, green] = ["blue", "green"].map(Member::named);
    let members = [("blue", &blue), ("green", &green)];
    let cookie = "persistence: { type: cookie, name: V }";
    let start = |weights: &str| split(&members, weights, cookie);
    let proxy = Proxy::start(&start("blue: 1, green: 1"));
    let ask = |cookie: &str| {
        let mut client = proxy.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: test\r\n{cookie}\r\n"));
        let response = client.response();
        let set = response.head.field("set-cookie").and_then(|set| set.split(';').next());
        (response.assert_status(200).text(), set.map(|set| format!("Cookie: {set}\r\n")))
    };
    // Until there is a client for each pool.
    let mut cookies = BTreeMap::new();
    for _ in 0..200 {
        let (pool, cookie) = ask("");
        cookies.insert(pool, cookie.expect("a new client gets a cookie"));
        if cookies.len() == 2 {
            break;
        }
    }
    let check_all = || {
        for (pool, cookie) in &cookies {
            for _ in 0..20 {
                assert_eq!(ask(cookie), (pool.clone(), None), "{cookie}");
            }
        }
    };
    assert_eq!(cookies.len(), 2);
    check_all();
    // Clients stay at their pool when the weights change or become zero.
    proxy.reload_and_wait(&start("blue: 99, green: 1"));
    check_all();
    proxy.reload_and_wait(&start("blue: 1, green: 0"));
    check_all();
    assert_eq!(ask("").0, "blue");
}

#[test]
fn a_key_gives_a_client_the_same_pool_on_every_weir() {
    let [blue, green] = ["blue", "green"].map(Member::named);
    let members = [("blue", &blue), ("green", &green)];
    let user = "persistence: { type: hash, of: \"${request.headers['x-user']}\" }";
    let setup = split(&members, "blue: 1, green: 1", user);
    let (one, other) = (Proxy::start(&setup), Proxy::start(&setup));
    let ask = |proxy: &Proxy, user: usize| {
        let mut client = proxy.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: test\r\nX-User: {user}\r\n\r\n"));
        client.response().assert_status(200).text()
    };
    let mut counts = BTreeMap::<String, usize>::new();
    for user in 0..60 {
        let pool = ask(&one, user);
        assert_eq!(ask(&one, user), pool);
        assert_eq!(ask(&other, user), pool);
        *counts.entry(pool).or_default() += 1;
    }
    assert_eq!(counts.len(), 2, "{counts:?}");
}

#[test]
fn a_pool_that_is_down_has_no_share() {
    let blue = Member::named("blue");
    let setup = split(&[("blue", &blue)], "blue: 1, red: 1000", "server_timing: false");
    let red = "red: { members: [ { address: 127.0.0.1:9, state: disabled } ] }";
    let proxy = Proxy::start(&setup.also_pool(red));
    assert_eq!(shares(&proxy, "/", 60), BTreeMap::from([("blue".to_owned(), 60)]));
}
