//! Layer 7 features in front of real nginx servers, with real clients. The first scenario uses the
//! configuration of the comparative reports of 2009, as in `examples/advanced-l7.yaml`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir_tests::client::{Client, Response};
use weir_tests::nginx::Nginx;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{require, tools};

const CHANGE_TIMEOUT: Duration = weir_tests::STEP_TIMEOUT;

/// A body in which each line contains the object's name and the line's number.
fn object(name: &str, length: usize) -> Vec<u8> {
    let line = |number: usize| format!("{name} {number:08}\n").into_bytes();
    (0..).flat_map(line).take(length).collect()
}

fn put(nginx: &Nginx, path: &str, contents: &[u8]) {
    let file = nginx.files().join(path);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder");
    std::fs::write(file, contents).expect("the object");
}

fn member(response: &Response) -> String {
    response.head.field("x-member").expect("nginx says its name").to_owned()
}

/// The text of the example, with the addresses of this test.
fn example(proxy: &Proxy, members: &[Nginx]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/advanced-l7.yaml");
    let text = std::fs::read_to_string(path).expect("the example");
    let mut text = text
        .replace("127.0.0.1:9900", &proxy.admin_address())
        .replace("127.0.0.1:8080", &proxy.address().to_string());
    for (index, nginx) in members.iter().enumerate() {
        let before = format!("127.0.0.1:{}", 9_001 + index);
        assert!(text.contains(&before), "the example has a member {before}");
        text = text.replace(&before, &nginx.address().to_string());
    }
    text
}

#[test]
fn the_advanced_configuration_of_2009() {
    require!("nginx");
    let members = ["page-1", "page-2", "page-3", "image-1", "image-2"].map(Nginx::start);
    let page = object("page", 8_192);
    let shoes = object("shoes", 16_384);
    let logo = object("logo", 30_000);
    for nginx in &members {
        put(nginx, "page.html", &page);
        put(nginx, "store/catalogue/shoes.html", &shoes);
        put(nginx, "logo.png", &logo);
    }
    let proxy = Proxy::start(&Setup::new(&[members[0].address()]));
    let before = proxy.reloads("success");
    proxy.reload_text(&example(&proxy, &members));
    weir_tests::eventually("the example is in force", weir_tests::STEP_TIMEOUT, || {
        proxy.reloads("success") > before
    });
    let mut homes = BTreeSet::new();
    let mut images = BTreeSet::new();
    for host in 1..25 {
        let address = [127, 0, 6, host].into();
        let mut own = BTreeSet::new();
        // Each request uses a new connection, so that only persistence can select the same member again.
        let ask = |path: &str, expected: &[u8]| {
            let mut client = Client::connect_from(proxy.address(), address);
            let response = client.get(path);
            response.assert_status(200);
            assert!(response.body == expected, "{path} is what the member has");
            assert_eq!(response.head.field("server"), Some("weir"));
            member(&response)
        };
        for _ in 0..3 {
            own.insert(ask("/page.html", &page));
            own.insert(ask("/catalogue/shoes.html", &shoes));
            images.insert(ask("/logo.png", &logo));
        }
        assert_eq!(own.len(), 1, "127.0.6.{host} stays at one member: {own:?}");
        homes.extend(own);
        let mut client = Client::connect_from(proxy.address(), address);
        client.send("GET /seen HTTP/1.1\r\nHost: shop\r\nX-Internal: no\r\n\r\n");
        assert_eq!(client.response().text(), format!("127.0.6.{host}||/seen\n"));
    }
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(homes, named(&["page-1", "page-2", "page-3"]));
    assert_eq!(images, named(&["image-1", "image-2"]));
}

fn curl(arguments: &[&str]) -> String {
    let always = ["--silent", "--show-error", "--max-time", "60"];
    tools::run(Command::new("curl").args(always).args(arguments))
}

/// Persistence with curl's cookie jar, while a member dies and returns.
#[test]
fn curl_with_a_jar_stays_until_its_member_dies() {
    require!("nginx", "curl");
    let mut members = ["one", "two"].map(Nginx::start);
    let folder = TempDir::new("advanced-l7");
    let proxy = Proxy::start(
        &Setup::new(&members.each_ref().map(Nginx::address))
            .virtual_server("persistence: { type: cookie, max_age: 1h }")
            .top(&format!("state_dir: {}", folder.path().display()))
            .pool(
                "monitors: [ { type: http, path: /healthz, interval: 500ms, fall: 2, rise: 1 } ]",
            ),
    );
    let wait = |nginx: &Nginx, state: &str| {
        proxy.wait_for_member_state(nginx.address(), state, CHANGE_TIMEOUT);
    };
    members.iter().for_each(|nginx| wait(nginx, "up"));
    let jar = folder.path().join("jar").display().to_string();
    let ask = || curl(&["--cookie", &jar, "--cookie-jar", &jar, &proxy.url("/name")]);
    let home = ask();
    assert!((0..6).all(|_| ask() == home));
    let place = usize::from(home == "two\n");
    members[place].kill();
    wait(&members[place], "down");
    let next = ask();
    assert_ne!(next, home);
    members[place].restart();
    wait(&members[place], "up");
    assert!((0..6).all(|_| ask() == next), "a client that was moved is not moved back");
}

#[test]
fn nginx_spares_serve_while_the_preferred_ones_are_down() {
    require!("nginx", "curl");
    let mut members = ["first", "spare", "last"].map(Nginx::start);
    let [first, spare, last] = members.each_ref().map(Nginx::address);
    let proxy = Proxy::start(
        &Setup::new(&[spare])
            .member(&format!("{{ address: \"{first}\", priority: 9 }}"))
            .pool("monitors: [ { type: http, path: /healthz, interval: 500ms, fall: 2, rise: 1 } ]")
            .pool("fallback: last")
            .also_pool(&format!("last: {{ members: [ \"{last}\" ] }}")),
    );
    let ask = || curl(&[&proxy.url("/name")]);
    proxy.wait_for_member_state(first, "up", CHANGE_TIMEOUT);
    proxy.wait_for_member_state(spare, "up", CHANGE_TIMEOUT);
    assert!((0..4).all(|_| ask() == "first\n"));
    members[0].kill();
    proxy.wait_for_member_state(first, "down", CHANGE_TIMEOUT);
    assert!((0..4).all(|_| ask() == "spare\n"));
    members[1].kill();
    proxy.wait_for_member_state(spare, "down", CHANGE_TIMEOUT);
    assert!((0..4).all(|_| ask() == "last\n"));
    members[0].restart();
    proxy.wait_for_member_state(first, "up", CHANGE_TIMEOUT);
    assert!((0..4).all(|_| ask() == "first\n"));
}

#[test]
fn nginx_understands_the_proxy_protocol_that_it_gets() {
    require!("nginx");
    let nginx = Nginx::start("one");
    for version in ["v1", "v2"] {
        let socket = format!("unix:{}", nginx.proxied_socket().display());
        let proxy = Proxy::start(
            &Setup::new(&[]).member(&socket).pool(&format!("proxy_protocol: {version}")),
        );
        let mut client = Client::connect_from(proxy.address(), [127, 0, 6, 77].into());
        let own = client.stream().local_addr().expect("its address");
        assert_eq!(client.get("/").text(), format!("{} {}\n", own.ip(), own.port()), "{version}");
    }
}

/// curl with redirects and responses of weir, and nginx with rewritten requests.
#[test]
fn curl_follows_redirections_and_gets_what_was_rewritten() {
    require!("nginx", "curl");
    let nginx = Nginx::start("one");
    put(&nginx, "new/page.html", b"the page\n");
    let proxy = Proxy::start(
        &Setup::new(&[nginx.address()]).virtual_server("policies: [ doors ]").top(
            "policies:\n  doors:\n    rules:\n\
             \x20     - { when: 'request.path.startsWith(\"/moved/\")', then: [ { redirect: { to: \"/old/page.html\", status: 308 } } ] }\n\
             \x20     - { when: 'request.path.startsWith(\"/old/\")', then: [ { rewrite_path: { regex: \"^/old/(.*)$\", to: \"/new/$1\" } } ] }\n\
             \x20     - { when: 'request.path == \"/private\"', then: [ { respond: { status: 403, body: \"no\\n\" } } ] }",
        ),
    );
    assert_eq!(curl(&["--fail", "--location", &proxy.url("/moved/page.html")]), "the page\n");
    assert_eq!(curl(&["--write-out", "%{http_code}", &proxy.url("/private")]), "no\n403");
}
