//! Persistence tables: values from members or clients, and client addresses.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_tests::client::{Client, Response};
use weir_tests::datagrams::{DatagramClient, DatagramMember, UdpLease};
use weir_tests::jar::Jar;
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::StreamMember;

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// A persistence that learns the session cookie of the application.
const BY_COOKIE: &str = "{ type: learned, of: \"${request.cookies['SESSION']}\", learn: \"${response.cookies['SESSION']}\" }";

/// An application that accepts only its own sessions.
fn shop(name: &'static str) -> Member {
    let made = AtomicUsize::new(0);
    Member::new(move |exchange| {
        let cookie = exchange.request.head.field("cookie").unwrap_or_default();
        if cookie.contains(&format!("SESSION={name}-")) {
            return exchange.answer(name);
        }
        let number = made.fetch_add(1, Ordering::Relaxed);
        let body = format!("new {name}");
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: theme=dark\r\nSet-Cookie: SESSION={name}-{number}; Path=/; HttpOnly\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))?;
        Ok(Then::KeepAlive)
    })
}

/// An application whose members share their sessions. Each sends its name and this header.
fn sharing(name: &'static str, field: &'static str) -> Member {
    Member::new(move |exchange| {
        let length = name.len();
        exchange
            .send(format!("HTTP/1.1 200 OK\r\n{field}Content-Length: {length}\r\n\r\n{name}"))?;
        Ok(Then::KeepAlive)
    })
}

fn setup(members: &[Member], persistence: &str) -> Setup {
    let addresses: Vec<SocketAddr> = members.iter().map(Member::address).collect();
    kept(Setup::new(&addresses), persistence)
}

fn kept(setup: Setup, persistence: &str) -> Setup {
    setup
        .virtual_server("persistence: test")
        .top("data_plane: { workers: 2 }")
        .top(&format!("persistence:\n  test: {persistence}"))
}

/// The response to a GET request on a new connection.
fn get(proxy: &Proxy, path: &str, fields: &str) -> Response {
    let mut client = proxy.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
    let response = client.response();
    response.assert_status(200);
    response
}

#[test]
fn a_session_that_a_member_has_set_is_followed() {
    let members = NAMES.map(shop);
    let proxy = Proxy::start(&setup(&members, BY_COOKIE));
    let mut reached = BTreeSet::new();
    for _ in 0..12 {
        let mut jar = Jar::default();
        let first = jar.get(proxy.address(), "/").text();
        let name = first.strip_prefix("new ").expect("a session").to_owned();
        for _ in 0..4 {
            assert_eq!(jar.get(proxy.address(), "/").text(), name, "{jar:?}");
        }
        reached.insert(name);
    }
    assert_eq!(reached.len(), 4, "twelve sessions reach all members: {reached:?}");
    assert_eq!(proxy.metric("weir_virtual_server_persistence_kept_total", &[]), 48.0);
    assert_eq!(proxy.metric("weir_virtual_server_persistence_moved_total", &[]), 0.0);
    // Without persistence, three of four requests reach another member.
    let proxy = Proxy::start(&Setup::new(&members.each_ref().map(Member::address)));
    let mut jar = Jar::default();
    let answers: Vec<String> = (0..4).map(|_| jar.get(proxy.address(), "/").text()).collect();
    assert!(answers[1..].iter().any(|answer| answer.starts_with("new ")), "{answers:?}");
}

/// Persistence as with BIG-IP's universal persistence and HAProxy's `stick store-response`, with values other than cookies.
#[test]
fn what_is_learned_and_what_finds_it_may_stand_anywhere() {
    for (of, learn, field, path, fields) in [
        (
            "${request.query['session']}",
            "${response.headers['x-session']}",
            "X-Session: abc\r\n",
            "/?session=abc",
            "",
        ),
        (
            "${request.headers['authorization'].substring(7)}",
            "${response.headers['x-token'].part(';', 0)}",
            "X-Token: t1; fresh\r\n",
            "/",
            "Authorization: Bearer t1\r\n",
        ),
        (
            "${request.host}/${request.path.segment(2)}",
            "${request.host}/${response.headers['location'].part('/', 2)}",
            "Location: /orders/77\r\n",
            "/orders/77",
            "",
        ),
    ] {
        let silent = [sharing("two", ""), sharing("three", ""), sharing("four", "")];
        let tells = sharing("one", field);
        let mut addresses: Vec<SocketAddr> = silent.iter().map(Member::address).collect();
        addresses.insert(2, tells.address());
        let persistence = format!("{{ type: learned, of: \"{of}\", learn: \"{learn}\" }}");
        let proxy = Proxy::start(&kept(Setup::new(&addresses), &persistence));
        let mut tries = 0..20;
        let told = tries.any(|_| get(&proxy, "/other/place", "").text() == "one");
        assert!(told, "{of}: balancing reaches the one that tells");
        for _ in 0..8 {
            assert_eq!(get(&proxy, path, fields).text(), "one", "{of}");
        }
    }
}

#[test]
fn what_clients_make_up_is_not_remembered() {
    let members = NAMES.map(shop);
    let small = BY_COOKIE.replace("type: learned,", "type: learned, entries_max: 1,");
    let proxy = Proxy::start(&setup(&members, &small));
    let mut jar = Jar::default();
    let name = jar.get(proxy.address(), "/").text().replace("new ", "");
    let mut reached = BTreeSet::new();
    for _ in 0..8 {
        reached.insert(get(&proxy, "/", "Cookie: SESSION=made-up\r\n").text());
    }
    assert!(reached.len() > 1, "balanced: {reached:?}");
    assert_eq!(jar.get(proxy.address(), "/").text(), name);
}

#[test]
fn without_a_response_to_learn_from_the_first_request_decides() {
    let members = NAMES.map(Member::named);
    let persistence = "{ type: learned, of: \"${request.headers['x-user']}\", fallback: address }";
    let setup = setup(&members, persistence).top("  address: { type: source_address }");
    let proxy = Proxy::start(&setup);
    let of = |user: &str| {
        let fields = format!("X-User: {user}\r\n");
        let names: BTreeSet<String> = (0..4).map(|_| get(&proxy, "/", &fields).text()).collect();
        assert_eq!(names.len(), 1, "{user}: {names:?}");
        names.into_iter().next().expect("one")
    };
    let spread: BTreeSet<String> = (0..12).map(|user| of(&format!("user-{user}"))).collect();
    assert_eq!(spread.len(), 4, "balanced, not hashed: {spread:?}");
    let without: BTreeSet<String> = (0..6).map(|_| get(&proxy, "/", "").text()).collect();
    assert_eq!(without.len(), 1, "{without:?}");
}

/// Waits until the access log has this number of lines with this client. Returns their persistence fields.
fn logged(proxy: &mut Proxy, client: &str, count: usize) -> Vec<String> {
    let mut verdicts = Vec::new();
    weir_tests::eventually("the access log has its lines", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let json = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        let lines = json.filter(|line: &serde_json::Value| {
            line["client"].as_str().is_some_and(|it| it.starts_with(client))
        });
        verdicts = lines.map(|line| line["persistence"].to_string()).collect();
        verdicts.len() >= count
    });
    verdicts
}

#[test]
fn a_session_moves_when_its_member_goes_down_and_then_stays() {
    // The members share their sessions, and set a cookie only for new sessions.
    let members = NAMES.map(|name| {
        Member::new(move |exchange| {
            let is_known = exchange.request.head.field("cookie").is_some();
            let cookie = if is_known { "" } else { "Set-Cookie: SESSION=abc\r\n" };
            let length = name.len();
            exchange.send(format!(
                "HTTP/1.1 200 OK\r\n{cookie}Content-Length: {length}\r\n\r\n{name}"
            ))?;
            Ok(Then::KeepAlive)
        })
    });
    let with = |down: Option<usize>| {
        let member = |setup: Setup, (place, member): (usize, &Member)| {
            let state = if down == Some(place) { "disabled" } else { "enabled" };
            setup.member(&format!("{{ address: {}, state: {state} }}", member.address()))
        };
        let members = members.iter().enumerate().fold(Setup::new(&[]), member);
        kept(members.access_log(), BY_COOKIE)
    };
    let mut proxy = Proxy::start(&with(None));
    let session = "Cookie: SESSION=abc\r\n";
    let first = get(&proxy, "/", "").text();
    assert_eq!(get(&proxy, "/", session).text(), first);
    let place = NAMES.iter().position(|name| *name == first).expect("a member");
    proxy.reload_and_wait(&with(Some(place)));
    let moved = get(&proxy, "/", session).text();
    assert_ne!(moved, first);
    proxy.reload_and_wait(&with(None));
    for _ in 0..4 {
        assert_eq!(get(&proxy, "/", session).text(), moved, "what has moved stays");
    }
    // Each worker writes its own lines, so the lines are not in the order of the requests.
    let mut verdicts = logged(&mut proxy, "127.0.0.1:", 7);
    verdicts.sort_unstable();
    let expected = ["kept", "kept", "kept", "kept", "kept", "moved", "new"];
    assert_eq!(verdicts, expected.map(|word| format!("\"{word}\"")));
    assert_eq!(proxy.metric("weir_virtual_server_persistence_moved_total", &[]), 1.0);
}

#[test]
fn a_reload_goes_on_with_what_was_learned() {
    let members = NAMES.map(shop);
    let proxy = Proxy::start(&setup(&members, BY_COOKIE));
    let mut jars = vec![Jar::default(); 8];
    let before: Vec<String> = jars
        .iter_mut()
        .map(|jar| jar.get(proxy.address(), "/").text().replace("new ", ""))
        .collect();
    let joined = shop("five");
    let turned: Vec<SocketAddr> =
        [&joined].into_iter().chain(members.iter().rev()).map(Member::address).collect();
    let larger =
        BY_COOKIE.replace("type: learned,", "type: learned, entries_max: 1000, timeout: 1h,");
    // The additional rule changes the indices of expressions.
    let rule = "policies:\n  first: { rules: [ { when: \"request.cookies['other'] == 'x'\", then: [ close ] } ] }";
    let next = kept(Setup::new(&turned), &larger).virtual_server("policies: [ first ]").top(rule);
    for next in [&setup(&members, BY_COOKIE), &next, &next] {
        proxy.reload_and_wait(next);
        for (jar, name) in jars.iter_mut().zip(&before) {
            assert_eq!(jar.get(proxy.address(), "/").text(), *name);
        }
    }
    let mut jar = Jar::default();
    let name = jar.get(proxy.address(), "/").text().replace("new ", "");
    assert_eq!(jar.get(proxy.address(), "/").text(), name, "it goes on learning");
}

#[test]
fn virtual_servers_share_what_was_learned_if_that_is_wanted() {
    let members = NAMES.map(shop);
    let found = |across: bool| {
        let shared = format!("type: learned, across_virtual_servers: {across},");
        let other = Lease::new();
        let setup = setup(&members, &BY_COOKIE.replace("type: learned,", &shared));
        let proxy = Proxy::start(&setup.also_listen(other.address()));
        let mut jars = vec![Jar::default(); 8];
        let all = jars.iter_mut().map(|jar| {
            let made = jar.get(proxy.address(), "/").text().replace("new ", "");
            jar.get(other.address(), "/").text() == made
        });
        all.filter(|is_same| *is_same).count()
    };
    assert_eq!(found(true), 8);
    assert!(found(false) < 8);
}

/// The persistence value `of` for connections and datagrams.
#[test]
fn connections_and_datagrams_have_values_too() {
    let members = ["a", "b", "c"].map(StreamMember::echo);
    let addresses = members.each_ref().map(StreamMember::address);
    let by_address = "{ type: learned, of: \"${client.ip}\" }";
    let relayed = kept(Setup::new(&addresses), by_address).virtual_server("type: tcp").access_log();
    let mut proxy = Proxy::start(&relayed);
    let mut reached = BTreeSet::new();
    for host in 1..=6 {
        let answer = || {
            let mut client = Client::connect_from(proxy.address(), [127, 0, 8, host].into());
            client.finish();
            String::from_utf8_lossy(&client.reader().rest()).into_owned()
        };
        let first = answer();
        assert_eq!([answer(), answer()], [first.clone(), first.clone()]);
        reached.insert(first);
    }
    assert_eq!(reached.len(), 3, "{reached:?}");
    let verdicts = logged(&mut proxy, "127.0.8.", 18);
    for (word, count) in [("\"new\"", 6), ("\"kept\"", 12)] {
        assert_eq!(verdicts.iter().filter(|verdict| *verdict == word).count(), count, "{word}");
    }

    let (port, members) = (UdpLease::new(), ["a", "b", "c"].map(DatagramMember::echo));
    let listen = port.address();
    let bed = datagrams(
        &listen.to_string(),
        &members,
        "{ type: learned, of: \"${sip.headers['Call-ID']}\" }",
    );
    let _proxy = Proxy::start(&bed);
    let mut reached = BTreeSet::new();
    for call in 0..6 {
        let text = format!("INVITE sip:b SIP/2.0\r\nVia: x\r\nCall-ID: {call}@host\r\n\r\n");
        let names: BTreeSet<String> = (0..3).map(|_| first_word(listen, &text)).collect();
        assert_eq!(names.len(), 1, "call {call}: {names:?}");
        reached.extend(names);
    }
    assert_eq!(reached.len(), 3, "{reached:?}");
}

fn datagrams(listen: &str, members: &[DatagramMember], persistence: &str) -> Setup {
    let members: Vec<String> = members.iter().map(|member| member.address().to_string()).collect();
    // The harness needs a TCP virtual server to detect that weir serves.
    Setup::new(&[])
        .member("127.0.0.1:9")
        .also_virtual_server(&format!(
            "dgrams: {{ listen: \"{listen}\", type: udp, udp: {{ datagrams: 1 }}, pool: dgrams, persistence: {persistence} }}"
        ))
        .also_pool(&format!("dgrams: {{ members: [ {} ] }}", members.join(", ")))
}

/// The name of the member that answers this text.
fn first_word(server: SocketAddr, text: &str) -> String {
    let answer = DatagramClient::of(server).ask(text);
    answer.split([' ', ':']).next().unwrap_or_default().to_owned()
}

/// Addresses of one listener, each with the number of its network.
fn asked(port: u16) -> Vec<(SocketAddr, u8)> {
    (1..=6)
        .flat_map(|net| [1, 2].map(|host| (SocketAddr::from(([127, 9, net, host], port)), net)))
        .collect()
}

/// Sends requests to each address several times. All addresses of a network must get the same member, and all members must
/// get some network.
fn by_net(port: u16, members: usize, ask: impl Fn(SocketAddr) -> String) {
    let mut homes: std::collections::BTreeMap<u8, String> = std::collections::BTreeMap::new();
    for _ in 0..2 {
        for (address, net) in asked(port) {
            let name = ask(address);
            let home = homes.entry(net).or_insert_with(|| name.clone());
            assert_eq!(*home, name, "{address}");
        }
    }
    let reached: BTreeSet<&String> = homes.values().collect();
    assert_eq!(reached.len(), members, "{homes:?}");
}

#[test]
fn clients_of_one_address_get_one_member_whoever_they_are() {
    let by_destination = "{ type: destination_address, prefix_v4: 24, timeout: 1h }";
    let every = |lease: &Lease, members: &[SocketAddr], kind: &str| {
        let port = lease.address().port();
        let members: Vec<String> = members.iter().map(|member| format!("\"{member}\"")).collect();
        Setup::new(&[])
            .member("127.0.0.1:9")
            .also_virtual_server(&format!(
                "every: {{ listen: \"0.0.0.0:{port}\", type: {kind}, pool: every, persistence: {by_destination} }}"
            ))
            .also_pool(&format!("every: {{ members: [ {} ] }}", members.join(", ")))
            .top("data_plane: { workers: 2 }")
    };
    let from = AtomicUsize::new(1);
    let client = |address| {
        let host = from.fetch_add(1, Ordering::Relaxed) as u8;
        Client::connect_from(address, [127, 0, 8, host].into())
    };

    let (lease, members) = (Lease::on_every_address(), ["a", "b", "c"].map(Member::named));
    let setup = every(&lease, &members.each_ref().map(Member::address), "http");
    let proxy = Proxy::start(&setup);
    let port = lease.address().port();
    by_net(port, 3, |address| client(address).get("/").assert_status(200).text());
    let before: Vec<String> =
        asked(port).iter().map(|(it, _)| client(*it).get("/").text()).collect();
    proxy.reload_and_wait(&setup);
    let after: Vec<String> =
        asked(port).iter().map(|(it, _)| client(*it).get("/").text()).collect();
    assert_eq!(before, after);
    drop(proxy);

    let (lease, members) = (Lease::on_every_address(), ["a", "b", "c"].map(StreamMember::echo));
    let setup = every(&lease, &members.each_ref().map(StreamMember::address), "tcp");
    let _proxy = Proxy::start(&setup);
    by_net(lease.address().port(), 3, |address| {
        let mut client = client(address);
        client.finish();
        String::from_utf8_lossy(&client.reader().rest()).into_owned()
    });

    let (port, members) = (UdpLease::new(), ["a", "b", "c"].map(DatagramMember::echo));
    let number = port.address().port();
    let _proxy = Proxy::start(&datagrams(&format!("0.0.0.0:{number}"), &members, by_destination));
    by_net(number, 3, |address| first_word(address, "x"));
}
