//! Persistence: clients that stay at their member, and the events that move them.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use weir_tests::client::{Client, Response};
use weir_tests::http2::Peer;
use weir_tests::jar::Jar;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

/// Length of a token. The pool's id is its first part.
const TOKEN_BYTES: usize = 30;
const POOL_ID_BYTES: usize = 8;

/// A policy that sends requests for images to another pool.
const SWITCHING: &str = "policies:\n  switch: { rules: [ { when: 'request.path.endsWith(\".png\")', then: [ { pool: images } ] } ] }";

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

fn members() -> [Member; 4] {
    NAMES.map(Member::named)
}

fn setup(members: &[Member], persistence: &str) -> Setup {
    let addresses: Vec<SocketAddr> = members.iter().map(Member::address).collect();
    Setup::new(&addresses)
        .virtual_server("persistence: test")
        .top(&format!("persistence:\n  test: {persistence}"))
}

/// The response to a GET request on a new connection.
fn get(proxy: &Proxy, fields: &str) -> Response {
    get_path(proxy, "/", fields)
}

fn get_path(proxy: &Proxy, path: &str, fields: &str) -> Response {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
    let response = client.response();
    response.assert_status(200);
    response
}

/// The `NAME=value` of the cookie that a response sets.
fn cookie(response: &Response) -> Option<String> {
    response
        .head
        .field("set-cookie")
        .map(|cookie| cookie.split(';').next().unwrap_or_default().to_owned())
}

/// The `state_dir` for the key of cookies, so that no test writes elsewhere.
fn state(directory: &TempDir) -> String {
    format!("state_dir: {}", directory.path().display())
}

#[test]
fn an_inserted_cookie_names_nobody_and_keeps_its_client() {
    let directory = TempDir::new("persistence");
    let members = members();
    let proxy = Proxy::start(&setup(&members, "{ type: cookie }").top(&state(&directory)));
    let mut seen = BTreeSet::new();
    for _ in 0..8 {
        let first = get(&proxy, "");
        let cookie = cookie(&first).expect("a cookie");
        let (name, value) = cookie.split_once('=').expect("name and value");
        assert_eq!(name, "WEIR");
        assert_eq!(value.len(), TOKEN_BYTES, "{cookie}");
        let field = first.head.field("set-cookie").expect("a cookie");
        assert!(
            field.contains("Path=/") && field.contains("HttpOnly") && !field.contains("Secure"),
            "{field}"
        );
        seen.insert((first.text(), value.to_owned()));
        for _ in 0..5 {
            let again = get(&proxy, &format!("Cookie: a=b; {cookie}\r\n"));
            assert_eq!(again.text(), first.text());
            assert_eq!(
                again.head.field("set-cookie"),
                None,
                "set only when absent, invalid or re-picked"
            );
        }
    }
    assert_eq!(seen.len(), 4, "a token for each member, the same for all its clients: {seen:?}");
}

#[test]
fn members_do_not_get_the_inserted_cookie() {
    let directory = TempDir::new("persistence");
    let member = Member::echo();
    let proxy = Proxy::start(
        &setup(std::slice::from_ref(&member), "{ type: cookie }").top(&state(&directory)),
    );
    let cookie = cookie(&get(&proxy, "")).expect("a cookie");
    let text = get(&proxy, &format!("Cookie: a=b; {cookie}; c=d\r\n")).text();
    assert!(text.contains("Cookie: a=b; c=d\r\n"), "{text}");
    let text = get(&proxy, &format!("Cookie: {cookie}\r\n")).text();
    assert!(!text.contains("Cookie"), "{text}");
}

#[test]
fn a_cookie_survives_restart_and_reload_and_holds_on_a_second_weir() {
    let directory = TempDir::new("persistence");
    let keys = directory.path().join("keys");
    std::fs::write(&keys, format!("{}\n", "5a".repeat(32))).expect("a key file");
    let members = members();
    let with_file = setup(&members, &format!("{{ type: cookie, key_file: {} }}", keys.display()));
    let own = setup(&members, "{ type: cookie }").top(&state(&directory));
    for setup in [&with_file, &own] {
        let first = Proxy::start(setup);
        let response = get(&first, "");
        let (name, cookie) = (response.text(), cookie(&response).expect("a cookie"));
        let again = |proxy: &Proxy| {
            for _ in 0..4 {
                assert_eq!(get(proxy, &format!("Cookie: {cookie}\r\n")).text(), name);
            }
        };
        first.reload_and_wait(setup);
        again(&first);
        let second = Proxy::start(setup);
        again(&second);
        drop(first);
        again(&Proxy::start(setup));
    }
}

#[test]
fn forged_and_foreign_cookies_are_replaced() {
    let directory = TempDir::new("persistence");
    let members = members();
    let proxy =
        Proxy::start(&setup(&members, "{ type: cookie, name: STICKY }").top(&state(&directory)));
    for value in ["", "x", "AAAAAAAAAAAAAAAAAAAAAA", &"A".repeat(4_000), "one", "127.0.0.1"] {
        let response = get(&proxy, &format!("Cookie: STICKY={value}\r\n"));
        assert!(cookie(&response).is_some_and(|cookie| cookie.starts_with("STICKY=")), "{value}");
    }
}

/// A setup with the pool of [`setup`] and a pool for images.
fn two_pools(members: &[Member], images: &[Member], persistence: &str) -> Setup {
    let images: Vec<String> =
        images.iter().map(|member| format!("\"{}\"", member.address())).collect();
    setup(members, persistence)
        .also_pool(&format!("images: {{ members: [ {} ] }}", images.join(", ")))
        .virtual_server("policies: [ switch ]")
        .top(SWITCHING)
}

#[test]
fn a_client_stays_with_its_member_in_each_of_two_pools() {
    let directory = TempDir::new("persistence");
    let (members, images) = (members(), ["i1", "i2", "i3"].map(Member::named));
    let setup = two_pools(&members, &images, "{ type: cookie }").top(&state(&directory));
    let proxy = Proxy::start(&setup);
    let mut seen = BTreeSet::new();
    for _ in 0..12 {
        let mut jar = Jar::default();
        let page = jar.get(proxy.address(), "/").text();
        assert_eq!(jar.only("WEIR").len(), TOKEN_BYTES);
        let image = jar.get(proxy.address(), "/a.png").text();
        assert_eq!(jar.only("WEIR").len(), 2 * TOKEN_BYTES + 1, "{jar:?}");
        let settled = jar.clone();
        for _ in 0..4 {
            assert_eq!(jar.get(proxy.address(), "/b.png").text(), image);
            assert_eq!(jar.get(proxy.address(), "/").text(), page);
        }
        assert_eq!(jar, settled, "nothing is set again");
        seen.insert((page, image));
    }
    assert!(seen.len() > 4, "a member of one pool says nothing of the other: {seen:?}");
}

/// With separate cookies, responses that cross do not overwrite each other's cookie.
#[test]
fn a_pool_can_have_a_cookie_of_its_own() {
    let directory = TempDir::new("persistence");
    let (members, images) = (members(), ["i1", "i2", "i3"].map(Member::named));
    let [a, b, c] = images.each_ref().map(Member::address);
    let rule = "{ when: 'request.path == \"/a.png\"', then: [ { pool: images }, { persistence: images } ] }";
    let setup = setup(&members, "{ type: cookie }")
        .top("  images: { type: cookie, name: IMAGES }")
        .also_pool(&format!("images: {{ members: [ \"{a}\", \"{b}\", \"{c}\" ] }}"))
        .virtual_server("policies: [ switch ]")
        .top(&format!("policies:\n  switch: {{ rules: [ {rule} ] }}"))
        .top(&state(&directory));
    let proxy = Proxy::start(&setup);
    for _ in 0..6 {
        let (mut jar, mut at_once) = (Jar::default(), Jar::default());
        let page = jar.get(proxy.address(), "/").text();
        let image = at_once.get(proxy.address(), "/a.png").text();
        jar.set("IMAGES", at_once.only("IMAGES"));
        let settled = jar.clone();
        for _ in 0..4 {
            assert_eq!(jar.get(proxy.address(), "/").text(), page);
            assert_eq!(jar.get(proxy.address(), "/a.png").text(), image);
        }
        assert_eq!(jar, settled);
    }
}

#[test]
fn a_pool_that_stands_in_leaves_its_clients_the_members_that_they_had() {
    let directory = TempDir::new("persistence");
    let (members, sorry) = (members(), Member::named("sorry"));
    let with = |state_of_all: &str| {
        let member = |setup: Setup, member: &Member| {
            let address = member.address();
            setup.member(&format!("{{ address: {address}, state: {state_of_all} }}"))
        };
        members
            .iter()
            .fold(Setup::new(&[]), member)
            .pool("fallback: sorry")
            .also_pool(&format!("sorry: {{ members: [ \"{}\" ] }}", sorry.address()))
            .virtual_server("persistence: test")
            .top("persistence:\n  test: { type: cookie }")
            .top(&state(&directory))
    };
    let proxy = Proxy::start(&with("enabled"));
    let mut jars: Vec<Jar> = vec![Jar::default(); 8];
    let mut ask = || -> Vec<String> {
        jars.iter_mut().map(|jar| jar.get(proxy.address(), "/").text()).collect()
    };
    let before = ask();
    proxy.reload_and_wait(&with("disabled"));
    assert!(ask().iter().all(|name| name == "sorry"));
    proxy.reload_and_wait(&with("enabled"));
    assert_eq!(ask(), before);
}

/// Cookies of earlier versions: tokens without the pool's id, and cookies with the pool's id in their name.
#[test]
fn former_cookies_keep_their_clients_and_are_renewed() {
    let directory = TempDir::new("persistence");
    let (members, images) = (members(), ["i1", "i2", "i3"].map(Member::named));
    let plain = setup(&members, "{ type: cookie }").top(&state(&directory));
    let switching = two_pools(&members, &images, "{ type: cookie }").top(&state(&directory));
    let proxy = Proxy::start(&plain);
    for _ in 0..6 {
        proxy.reload_and_wait(&plain);
        let mut jar = Jar::default();
        let page = jar.get(proxy.address(), "/").text();
        let now = jar.only("WEIR").to_owned();
        let (id, tag) = now.split_at(POOL_ID_BYTES);
        let mut by_token = Jar::default();
        by_token.set("WEIR", tag);
        let mut by_name = Jar::default();
        by_name.set(&format!("WEIR-{id}"), tag);
        for setup in [&plain, &switching] {
            proxy.reload_and_wait(setup);
            for former in [&by_token, &by_name] {
                let mut jar = former.clone();
                assert_eq!(jar.get(proxy.address(), "/").text(), page, "{former:?}");
                assert!(jar.field().ends_with(&format!("WEIR={now}")), "{jar:?}");
                assert_eq!(cookie(&jar.get(proxy.address(), "/")), None);
            }
        }
        // A request for the other pool comes first. Afterwards weir still knows the member of the page.
        let mut jar = by_token;
        let image = jar.get(proxy.address(), "/a.png").text();
        assert_eq!(jar.get(proxy.address(), "/").text(), page);
        assert_eq!(jar.only("WEIR").len(), 2 * TOKEN_BYTES + 1, "{jar:?}");
        assert_eq!(jar.get(proxy.address(), "/a.png").text(), image);
    }
}

#[test]
fn members_get_no_cookie_of_ours_whatever_its_name_and_pool() {
    let directory = TempDir::new("persistence");
    let echo = [Member::echo()];
    let with = |persistence: &str| {
        two_pools(&echo, &echo, persistence).http("http2: true").top(&state(&directory))
    };
    let proxy = Proxy::start(&with("{ type: cookie, name: OLD }"));
    let mut jar = Jar::default();
    jar.get(proxy.address(), "/a.png");
    jar.get(proxy.address(), "/");
    let tokens = jar.only("OLD").to_owned();
    let (page, image) = tokens.split_once('.').expect("two tokens");
    let former = |token: &str| {
        let (id, tag) = token.split_at(POOL_ID_BYTES);
        format!("NEW-{id}={tag}")
    };
    let ours = [
        format!("NEW={tokens}"),
        format!("NEW={image}"),
        format!("NEW={page}"),
        "NEW=forged".to_owned(),
        former(page),
        former(image),
        format!("OLD={tokens}"),
        format!("OLD={image}"),
    ];
    let theirs = ["a=1", "NEWS=2", "NEW-frontend=3", "b=4"];
    let all: Vec<&str> =
        [&theirs[..2], &ours.each_ref().map(String::as_str), &theirs[2..]].concat();
    proxy.reload_and_wait(&with("{ type: cookie, name: NEW }"));
    let check = |what: &str, seen: &str, expected: &[&str]| {
        let seen: Vec<&str> = seen
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(name, _)| name.eq_ignore_ascii_case("cookie"))
            .flat_map(|(_, value)| value.split("; "))
            .collect();
        assert_eq!(seen, expected, "{what}");
    };
    let check_all = |expected: &[&str]| {
        for path in ["/", "/a.png"] {
            let one = format!("Cookie: {}\r\n", all.join("; "));
            check("one field", &get_path(&proxy, path, &one).text(), expected);
            let many: String = all.iter().map(|cookie| format!("cookie:{cookie}\r\n")).collect();
            check("a field each", &get_path(&proxy, path, &many).text(), expected);
            let mut peer = Peer::connect(proxy.address());
            let crumbs: Vec<(&str, &str)> = all.iter().map(|cookie| ("cookie", *cookie)).collect();
            let stream = peer.request("GET", path, &crumbs, true);
            let response = peer.response(stream);
            check("crumbs", &response.assert_status(200).text(), expected);
        }
    };
    check_all(&theirs);
    let nothing: String = ours.iter().map(|cookie| format!("Cookie: {cookie}\r\n")).collect();
    check("ours alone", &get(&proxy, &nothing).text(), &[]);
    proxy.reload_and_wait(&with("{ type: cookie, name: NEW, to_member: true }"));
    check_all(&all);
}

/// A persistence that is defined in a virtual server is not the top-level persistence with the same name.
#[test]
fn settings_in_place_are_no_others() {
    let directory = TempDir::new("persistence");
    let members = members();
    let addresses = members.each_ref().map(Member::address);
    let rule = "{ when: 'request.path == \"/user\"', then: [ { persistence: main } ] }";
    let setup = Setup::new(&addresses)
        .virtual_server("persistence: { type: cookie }")
        .virtual_server("policies: [ p ]")
        .top(&format!("policies:\n  p: {{ rules: [ {rule} ] }}"))
        .top("persistence:\n  main: { type: hash, of: \"${request.headers['x-user']}\" }")
        .top(&state(&directory));
    let proxy = Proxy::start(&setup);
    let names: BTreeSet<String> = (0..8)
        .map(|_| {
            let response = get_path(&proxy, "/user", "X-User: a\r\n");
            assert_eq!(cookie(&response), None);
            response.text()
        })
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(cookie(&get(&proxy, "")).is_some());
}

#[test]
fn a_client_moves_when_its_member_goes_down_and_then_stays() {
    let directory = TempDir::new("persistence");
    let mut members: Vec<Option<Member>> = members().into_iter().map(Some).collect();
    let addresses: Vec<SocketAddr> = members.iter().flatten().map(Member::address).collect();
    let setup = Setup::new(&addresses)
        .virtual_server("persistence: test")
        .top("persistence:\n  test: { type: cookie }")
        .top(&state(&directory))
        .pool("monitors: [ { type: tcp, interval: 500ms, fall: 2, rise: 1 } ]");
    let proxy = Proxy::start(&setup);
    for address in &addresses {
        proxy.wait_for_member_state(*address, "up", weir_tests::STEP_TIMEOUT);
    }
    let first = get(&proxy, "");
    let place = NAMES.iter().position(|name| *name == first.text()).expect("a member");
    members[place] = None;
    proxy.wait_for_member_state(addresses[place], "down", weir_tests::STEP_TIMEOUT);
    let old = cookie(&first).expect("a cookie");
    let moved = get(&proxy, &format!("Cookie: {old}\r\n"));
    assert_ne!(moved.text(), first.text());
    let new = cookie(&moved).expect("a renewed cookie");
    assert_ne!(new, old);
    let back = Member::on(addresses[place], true, |exchange| exchange.answer("back"));
    proxy.wait_for_member_state(addresses[place], "up", weir_tests::STEP_TIMEOUT);
    for _ in 0..4 {
        assert_eq!(
            get(&proxy, &format!("Cookie: {new}\r\n")).text(),
            moved.text(),
            "who moved stays"
        );
    }
    drop(back);
}

#[test]
fn a_source_address_is_remembered_over_connections_and_workers() {
    let members = members();
    let setup =
        setup(&members, "{ type: source_address, timeout: 60s }").top("data_plane: { workers: 2 }");
    let proxy = Proxy::start(&setup);
    let names: BTreeSet<String> = (0..40).map(|_| get(&proxy, "").text()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let others: BTreeSet<String> = (2..42)
        .map(|host| {
            let mut client = Client::connect_from(proxy.address(), [127, 0, 7, host].into());
            client.get("/").assert_status(200).text()
        })
        .collect();
    assert_eq!(others.len(), 4, "forty clients reach all members: {others:?}");
    assert!(proxy.has_used_all_workers());
}

#[test]
fn a_hash_of_the_request_picks_the_member_and_falls_back_when_there_is_none() {
    let members = members();
    let setup =
        setup(&members, "{ type: hash, of: \"${request.headers['x-user']}\", fallback: address }")
            .top("  address: { type: source_address }");
    let proxy = Proxy::start(&setup);
    let of = |user: &str| {
        let names: BTreeSet<String> =
            (0..5).map(|_| get(&proxy, &format!("X-User: {user}\r\n")).text()).collect();
        assert_eq!(names.len(), 1, "{user}: {names:?}");
        names.into_iter().next().expect("one")
    };
    let spread: BTreeSet<String> = (0..40).map(|user| of(&format!("user-{user}"))).collect();
    assert_eq!(spread.len(), 4, "{spread:?}");
    let without: BTreeSet<String> = (0..10).map(|_| get(&proxy, "").text()).collect();
    assert_eq!(without.len(), 1, "{without:?}");
}

#[test]
fn sessions_of_the_application_are_followed_by_cookie_or_path() {
    let members = members();
    let passive =
        Proxy::start(&setup(&members, "{ type: cookie, mode: passive, name: APPSESSION }"));
    let of = |fields: &str| -> BTreeSet<String> {
        (0..6).map(|_| get(&passive, fields).text()).collect()
    };
    assert_eq!(of("Cookie: APPSESSION=abc\r\n").len(), 1);
    assert_eq!(get(&passive, "Cookie: APPSESSION=abc\r\n").head.field("set-cookie"), None);
    assert!(of("").len() > 1, "without a session, the balancing decides");
    let path = Proxy::start(&setup(&members, "{ type: path_parameter }"));
    let names: BTreeSet<String> = (0..6)
        .map(|number| {
            get_path(&path, &format!("/shop/{number};jsessionid=E4A7.node1?x=1"), "").text()
        })
        .chain((0..6).map(|_| get(&path, "Cookie: JSESSIONID=E4A7.node1\r\n").text()))
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_draining_member_keeps_its_clients_and_gets_no_new_ones() {
    let directory = TempDir::new("persistence");
    let [one, two] = ["one", "two"].map(Member::named);
    let with = |wanted: &str| {
        Setup::new(&[two.address()])
            .member(&format!("{{ address: {}, state: {wanted} }}", one.address()))
            .virtual_server("persistence: test")
            .top("persistence:\n  test: { type: cookie }")
            .top(&state(&directory))
    };
    let proxy = Proxy::start(&with("enabled"));
    let mut kept = None;
    for _ in 0..8 {
        let response = get(&proxy, "");
        if response.text() == "one" {
            kept = cookie(&response);
        }
    }
    let kept = kept.expect("some client is at the first member");
    proxy.reload_and_wait(&with("drain"));
    for _ in 0..8 {
        assert_eq!(get(&proxy, "").text(), "two");
        assert_eq!(get(&proxy, &format!("Cookie: {kept}\r\n")).text(), "one");
    }
    proxy.reload_and_wait(&with("disabled"));
    let moved = get(&proxy, &format!("Cookie: {kept}\r\n"));
    assert_eq!(moved.text(), "two");
    assert!(cookie(&moved).is_some_and(|cookie| cookie != kept));
}

#[test]
fn a_member_of_weight_0_keeps_its_clients_and_gets_no_new_ones() {
    let directory = TempDir::new("persistence");
    let [one, two] = ["one", "two"].map(Member::named);
    let with = |weight: u16| {
        Setup::new(&[two.address()])
            .member(&format!("{{ address: {}, weight: {weight} }}", one.address()))
            .virtual_server("persistence: test")
            .top("persistence:\n  test: { type: cookie }")
            .top(&state(&directory))
    };
    let proxy = Proxy::start(&with(1));
    let at_one = |response: Response| (response.text() == "one").then(|| cookie(&response))?;
    let kept = (0..8).find_map(|_| at_one(get(&proxy, "")));
    let kept = kept.expect("some client is at the first member");
    proxy.reload_and_wait(&with(0));
    for _ in 0..8 {
        assert_eq!(get(&proxy, "").text(), "two");
        assert_eq!(get(&proxy, &format!("Cookie: {kept}\r\n")).text(), "one");
    }
    proxy.reload_and_wait(&with(1));
    let texts: Vec<String> = (0..8).map(|_| get(&proxy, "").text()).collect();
    assert!(texts.iter().any(|text| text == "one"), "{texts:?}");
}

/// With `across_virtual_servers`, a client stays at its member when it uses another virtual server.
#[test]
fn a_source_address_is_remembered_across_virtual_servers_if_that_is_wanted() {
    let members = members();
    let addresses = members.each_ref().map(Member::address);
    let names = |across: bool| {
        let other = Lease::new();
        let proxy = Proxy::start(
            &Setup::new(&addresses)
                .virtual_server("persistence: by-source")
                .also_listen(other.address())
                .top(&format!(
                    "persistence:\n  by-source: {{ type: source_address, across_virtual_servers: {across} }}"
                ))
                .top("data_plane: { workers: 1 }"),
        );
        let mut pairs = Vec::new();
        for host in 1..9 {
            let ask = |address| {
                let mut client = Client::connect_from(address, [127, 0, 7, host].into());
                client.get("/").assert_status(200).text()
            };
            pairs.push((ask(proxy.address()), ask(other.address()), ask(proxy.address())));
        }
        pairs
    };
    assert!(names(true).iter().all(|(first, other, again)| first == other && first == again));
    let apart = names(false);
    assert!(apart.iter().all(|(first, _, again)| first == again));
    assert!(apart.iter().any(|(first, other, _)| first != other), "{apart:?}");
}

#[test]
fn our_own_cookie_stays_with_us_and_comes_with_upgrades() {
    let directory = TempDir::new("persistence");
    let member = weir_tests::websocket::echo_member();
    let rules = "policies:\n  p: { rules: [ { when: 'request.path == \"/off\"', then: [ { persistence: \"off\" } ] }, { when: 'request.path == \"/member\"', then: [ { member: \"ADDRESS\" } ] } ] }";
    let rules = rules.replace("ADDRESS", &member.address().to_string());
    let setup = setup(std::slice::from_ref(&member), "{ type: cookie, name: SRV }")
        .virtual_server("policies: [ p ]")
        .top(&rules)
        .top(&state(&directory));
    let proxy = Proxy::start(&setup);
    let cookie = cookie(&get(&proxy, "")).expect("a cookie");
    for path in ["/", "/off", "/member"] {
        let seen = get_path(&proxy, path, &format!("Cookie: a=1; {cookie}\r\n")).text();
        assert!(seen.contains("Cookie: a=1\r\n") && !seen.contains("SRV"), "{path}: {seen}");
    }
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    let answer = client.head_response();
    assert_eq!(answer.status, 101);
    assert!(answer.head.field("set-cookie").is_some_and(|cookie| cookie.starts_with("SRV=")));
}
