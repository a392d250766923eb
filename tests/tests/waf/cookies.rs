//! Sealed cookies of the application: weir signs them for the client and restores them for the member.

use weir_tests::client::Response;
use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

use crate::setup::{ask, get, guarded, wait_for_lines};

/// A member that sets the cookies in its path (`/set/a=1/b=2`), and responds with the cookies of the request.
fn application() -> Member {
    Member::new(|exchange| {
        let cookies = exchange.request.target().strip_prefix("/set/").unwrap_or_default();
        let cookies = cookies.split('/').filter(|cookie| !cookie.is_empty());
        let lines: String =
            cookies.map(|cookie| format!("Set-Cookie: {cookie}; Path=/\r\n")).collect();
        let got = exchange.request.head.all("Cookie").collect::<Vec<_>>().join("|");
        let length = got.len();
        exchange
            .send(format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {length}\r\n\r\n{got}"))?;
        Ok(Then::KeepAlive)
    })
}

fn sealing(member: &Member, mode: &str, cookies: &str, folder: &TempDir) -> Setup {
    let waf = format!("waf: {{ mode: {mode}, cookies: {{ {cookies} }} }}");
    guarded(member, &waf).top(&format!("state_dir: {}", folder.path().display()))
}

/// The cookies that a response sets, as pairs of `NAME=value` and attributes.
fn set_cookies(response: &Response) -> Vec<(String, String)> {
    let divided = |line: &str| {
        let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
        (pair.to_owned(), attributes.trim().to_owned())
    };
    response.head.all("Set-Cookie").map(divided).collect()
}

fn with_cookies(cookies: &str) -> String {
    get("/").replace("Accept", &format!("Cookie: {cookies}\r\nAccept"))
}

#[test]
fn sealed_cookies_come_back_as_they_were_set() {
    let (member, folder) = (application(), TempDir::new("cookies"));
    let setup = sealing(&member, "block", "sealed: [ session, \"cart_*\" ]", &folder);
    let mut proxy = Proxy::start(&setup);
    let response = ask(&proxy, get("/set/session=alice/theme=dark/cart_1=x%20y"));
    let cookies = set_cookies(&response);
    let [session, theme, cart] = &cookies[..] else { panic!("{cookies:?}") };
    assert!(session.0.starts_with("session=alice."), "{session:?}");
    assert_eq!((&*theme.0, &*theme.1), ("theme=dark", "Path=/"));
    assert!(cart.0.starts_with("cart_1=x%20y."), "{cart:?}");
    let all = format!("{}; {}; {}", session.0, theme.0, cart.0);
    assert_eq!(ask(&proxy, with_cookies(&all)).text(), "session=alice; theme=dark; cart_1=x%20y");
    // A cookie that is not sealed belongs to the client.
    assert_eq!(ask(&proxy, with_cookies("theme=light")).text(), "theme=light");
    let forged = [
        "session=alice".to_owned(),
        session.0.replace("alice", "admin"),
        session.0.replace("session", "cart_1"),
        format!("{}; session=admin", session.0),
        "a=1; SESSION=admin".to_owned(),
        "a=1, session=admin".to_owned(),
        "cart.9=free".to_owned(),
    ];
    for cookies in &forged {
        assert_eq!(ask(&proxy, with_cookies(cookies)).status, 403, "{cookies}");
    }
    let lines = wait_for_lines(&mut proxy, forged.len());
    assert!(lines.iter().all(|line| line["check"] == "cookie_changed"), "{lines:#?}");
    // The key is stored, so earlier cookies remain valid.
    drop(proxy);
    let proxy = Proxy::start(&setup);
    assert_eq!(ask(&proxy, with_cookies(&session.0)).text(), "session=alice");
}

#[test]
fn members_get_opened_cookies_whatever_the_mode() {
    let (member, folder) = (application(), TempDir::new("cookies"));
    for mode in ["off", "detect", "block"] {
        let proxy = Proxy::start(&sealing(&member, mode, "sealed: [ \"*\" ]", &folder));
        let session = &set_cookies(&ask(&proxy, get("/set/session=alice")))[0].0;
        assert_eq!(ask(&proxy, with_cookies(session)).text(), "session=alice", "{mode}");
        // With `detect`, a forged cookie is forwarded unchanged.
        let forged = ask(&proxy, with_cookies("session=admin"));
        if mode == "block" {
            assert_eq!(forged.status, 403);
        } else {
            assert_eq!(forged.text(), "session=admin", "{mode}");
        }
    }
}

#[test]
fn keys_are_changed_without_anybody_noticing() {
    let (member, folder) = (application(), TempDir::new("cookies"));
    let key = |digit: &str| format!("{}\n", digit.repeat(64));
    let with_keys = |keys: &str| {
        let file = folder.write("keys", keys);
        sealing(
            &member,
            "block",
            &format!("sealed: [ session ], key_file: {}", file.display()),
            &folder,
        )
    };
    let proxy = Proxy::start(&with_keys(&key("1")));
    let session = &set_cookies(&ask(&proxy, get("/set/session=alice")))[0].0;
    proxy.reload_and_wait(&with_keys(&(key("2") + &key("1"))));
    assert_eq!(ask(&proxy, with_cookies(session)).text(), "session=alice");
    assert_ne!(&set_cookies(&ask(&proxy, get("/set/session=alice")))[0].0, session);
    proxy.reload_and_wait(&with_keys(&key("2")));
    assert_eq!(ask(&proxy, with_cookies(session)).status, 403);
}

#[test]
fn cookies_get_the_attributes_that_they_lack() {
    let (member, folder) = (application(), TempDir::new("cookies"));
    let cookies = "secure: true, http_only: true, same_site: lax";
    let setup = sealing(&member, "off", cookies, &folder)
        .virtual_server("persistence: sticky")
        .top("persistence: { sticky: { type: cookie } }");
    let proxy = Proxy::start(&setup);
    let response = ask(&proxy, get("/set/a=1;httponly/b=2"));
    let cookies = set_cookies(&response);
    let attributes = |name: &str| {
        let of_name = |(pair, _): &&(String, String)| pair.starts_with(name);
        cookies.iter().find(of_name).map(|(_, attributes)| attributes.as_str())
    };
    assert_eq!(attributes("a="), Some("httponly; Path=/; Secure; SameSite=Lax"));
    assert_eq!(attributes("b="), Some("Path=/; Secure; HttpOnly; SameSite=Lax"));
    assert_eq!(attributes("WEIR="), Some("Path=/; HttpOnly"), "weir's own has its own settings");
}

#[test]
fn cookies_that_policies_set_are_sealed_too() {
    let (member, folder) = (application(), TempDir::new("cookies"));
    let setup = sealing(&member, "block", "sealed: [ \"*\" ]", &folder)
        .virtual_server("policies: [ flavour ]")
        .top(
            "policies: { flavour: { rules: [ { when: \"request.path == '/set/'\", then: [ { set_cookie: \
             { name: flavour, value: plain } } ] } ] } }",
        );
    let proxy = Proxy::start(&setup);
    let flavour = &set_cookies(&ask(&proxy, get("/set/")))[0].0;
    assert!(flavour.starts_with("flavour=plain."), "{flavour}");
    assert_eq!(ask(&proxy, with_cookies(flavour)).text(), "flavour=plain");
}

/// Two applications with the same keys and cookie names do not accept each other's cookies, unless they are one.
#[test]
fn sealed_cookies_belong_to_one_application() {
    let (member, folder) = (application(), TempDir::new("applications"));
    for (application, status) in [("", 403), (", application: shop", 200)] {
        let other = weir_tests::ports::Lease::new();
        let waf = format!("waf: {{ mode: block, cookies: {{ sealed: [ role ]{application} }} }}");
        let setup = sealing(&member, "block", &format!("sealed: [ role ]{application}"), &folder)
            .also_virtual_server(&format!(
                "other: {{ listen: \"{}\", pool: members, {waf} }}",
                other.address()
            ));
        let proxy = Proxy::start(&setup);
        let cookies = set_cookies(&ask(&proxy, get("/set/role=admin")));
        let sealed = &cookies[0].0;
        assert_eq!(ask(&proxy, with_cookies(sealed)).assert_status(200).text(), "role=admin");
        let mut client = weir_tests::client::Client::connect(other.address());
        client.send(with_cookies(sealed));
        assert_eq!(client.response().status, status, "{application}");
    }
}
