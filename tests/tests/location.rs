//! `rewrite_location`: URLs in headers contain the virtual server's name for clients, and the member's own name for members.

use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{apache, http2, require, tls, tools};

/// A member that responds with a Location from the request's `X-Say`, and with the Destination that it received.
fn member() -> Member {
    Member::streaming(|exchange| {
        let say = exchange.request.head.field("x-say").unwrap_or("/").to_owned();
        let told = exchange.request.head.field("destination").unwrap_or("none").to_owned();
        exchange.send(format!(
            "HTTP/1.1 201 Created\r\nLocation: {say}\r\nX-Told: {told}\r\nContent-Length: 0\r\n\r\n"
        ))?;
        Ok(Then::KeepAlive)
    })
}

/// The Location that the client receives for a member's Location. The request has `Host: shop.example:8080`.
fn location(proxy: &Proxy, say: &str) -> String {
    let mut client = proxy.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: shop.example:8080\r\nX-Say: {say}\r\n\r\n"));
    let response = client.response();
    response.assert_status(201).head.field("location").expect("a Location").to_owned()
}

/// The Destination that the member receives for a client's Destination.
fn destination(proxy: &Proxy, method: &str, to: &str) -> String {
    let mut client = proxy.client();
    client.send(format!(
        "{method} /a HTTP/1.1\r\nHost: shop.example:8080\r\nDestination: {to}\r\n\r\n"
    ));
    client.response().assert_status(201).head.field("x-told").expect("X-Told").to_owned()
}

#[test]
fn locations_that_name_the_member_name_the_virtual_server() {
    let member = member();
    let at = member.address();
    let port = at.port();
    let rule = "policies: { test: { rules: [ { then: [ { rewrite_host: inner.example } ] } ] } }";
    let setup = Setup::new(&[at]).virtual_server("policies: [ test ]").top(rule);
    let proxy = Proxy::start(&setup.clone().http("rewrite_location: true"));
    let own = "http://shop.example:8080/b?c=http://inner.example/#d";
    for (say, expected) in [
        ("http://inner.example/b?c=http://inner.example/#d".to_owned(), own),
        ("HTTP://Inner.Example:80/b?c=http://inner.example/#d".to_owned(), own),
        (format!("http://inner.example:{port}/b?c=http://inner.example/#d"), own),
        (format!("http://{at}/b?c=http://inner.example/#d"), own),
        ("http://inner.example".to_owned(), "http://shop.example:8080"),
        ("http://inner.example?b".to_owned(), "http://shop.example:8080?b"),
    ] {
        assert_eq!(location(&proxy, &say), expected, "{say}");
    }
    for other in [
        "/b",
        "b",
        "//inner.example/b",
        "https://inner.example/b",
        "http://inner.example:8080/b",
        "http://inner.example.other/b",
        "http://shop.example:8080/b",
        "http://other.example/b",
        "http://127.0.0.1/b",
        "ftp://inner.example/b",
    ] {
        assert_eq!(location(&proxy, other), other);
    }
    let off = Proxy::start(&setup);
    assert_eq!(location(&off, "http://inner.example/b"), "http://inner.example/b");
}

/// Rules for the request or the response run first, and `rewrite_location` changes their result.
#[test]
fn locations_of_rules_are_looked_at_as_well() {
    let (member, other) = (member(), member());
    let rule = "policies: { test: { strategy: all_match, rules: [ \
        { when: 'request.path == \"/early\"', then: [ { set_response_header: { Location: \"${request.query['to']}\" } } ] }, \
        { when: 'request.path == \"/late\" && response.status == 201', then: [ { set_response_header: { Location: \"${request.query['to']}\" } } ] }, \
        { when: 'request.path == \"/moved\"', then: [ { redirect: { to: \"${request.query['to']}\" } } ] } ] } }";
    let setup = Setup::new(&[member.address()]).virtual_server("policies: [ test ]").top(rule);
    let proxy = Proxy::start(&setup.http("rewrite_location: true"));
    let location = |path: &str, to: &str| {
        let mut client = proxy.client();
        client.send(format!("GET {path}?to={to} HTTP/1.1\r\nHost: shop.example:8080\r\n\r\n"));
        client.response().head.field("location").expect("a Location").to_owned()
    };
    let own = format!("http://{}/b", member.address());
    for path in ["/early", "/late"] {
        assert_eq!(location(path, &own), "http://shop.example:8080/b", "{path}");
        for kept in ["http://other.example/b", "/b", &format!("http://{}/b", other.address())] {
            assert_eq!(location(path, kept), *kept, "{path}");
        }
    }
    assert_eq!(location("/moved", &own), own, "a redirect stays as it is");
}

#[test]
fn destinations_that_name_the_virtual_server_name_the_member() {
    let member = member();
    let rule = "policies: { test: { rules: [ { then: [ { rewrite_host: inner.example } ] } ] } }";
    let setup = Setup::new(&[member.address()]).virtual_server("policies: [ test ]").top(rule);
    let proxy = Proxy::start(&setup.clone().http("http2: true, rewrite_location: true"));
    let (asked, told) = ("http://shop.example:8080/b%20c", "http://inner.example/b%20c");
    for method in ["COPY", "MOVE"] {
        assert_eq!(destination(&proxy, method, asked), told);
        for other in ["/b", "https://shop.example:8080/b", "http://shop.example/b", "http://x/b"] {
            assert_eq!(destination(&proxy, method, other), other);
        }
    }
    assert_eq!(destination(&proxy, "PROPFIND", asked), asked);
    let mut client = http2::Peer::connect(proxy.address());
    let fields = [("destination", "http://test/b"), ("x-say", "http://inner.example/b")];
    let stream = client.request("COPY", "/a", &fields, true);
    let response = client.response(stream);
    assert_eq!(response.field("x-told"), Some("http://inner.example/b"));
    assert_eq!(response.field("location"), Some("http://test/b"));
    let off = Proxy::start(&setup);
    assert_eq!(destination(&off, "COPY", asked), asked);
}

/// The head of the response to a request for `https://shop.example`.
fn curl(proxy: &Proxy, arguments: &[&str], path: &str) -> String {
    let mut command = tls::curl(proxy.address(), "shop.example");
    command.args(["--dump-header", "-", "--output", "/dev/null"]).args(arguments);
    tools::run(command.arg(format!("https://shop.example{path}"))).to_ascii_lowercase()
}

#[test]
fn schemes_follow_the_side_that_has_tls() {
    require!("curl");
    let member = member();
    let say = |it: &str| format!("X-Say: {it}");
    let (plain, secure) = (say("http://shop.example/b"), say("https://shop.example/b"));
    // A client with TLS and a member without.
    let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop(""));
    let outer = Proxy::start(&setup.http("rewrite_location: true"));
    let head = curl(&outer, &["--header", &plain], "/");
    assert!(head.contains("\nlocation: https://shop.example/b\r\n"), "{head}");
    let copy = ["--request", "COPY", "--header", "Destination: https://shop.example/b"];
    let head = curl(&outer, &copy, "/");
    assert!(head.contains("\nx-told: http://shop.example/b\r\n"), "{head}");
    // A client without TLS and a member with TLS.
    let behind = Setup::new(&[member.address()]).virtual_server(&tls::shop(""));
    let behind = Proxy::start(&behind);
    let trust =
        format!("tls: {{ ca: {}, server_name: shop.example }}", tls::file("authorities.crt"));
    let inner =
        Proxy::start(&Setup::new(&[behind.address()]).pool(&trust).http("rewrite_location: true"));
    let mut client = inner.client();
    client.send(format!(
        "COPY / HTTP/1.1\r\nHost: shop.example\r\n{secure}\r\nDestination: http://shop.example/c\r\n\r\n"
    ));
    let response = client.response();
    assert_eq!(response.head.field("location"), Some("http://shop.example/b"));
    assert_eq!(response.head.field("x-told"), Some("https://shop.example/c"));
}

/// Apache httpd requires its own scheme, host and port in a Destination, and responds with 502 otherwise.
#[test]
fn webdav_copies_and_moves_behind_tls() {
    require!("apache2", "curl");
    let (lease, folder) = (Lease::new(), TempDir::new("webdav"));
    let at = folder.path().display();
    let dav =
        format!("DavLockDB {at}/lock\n<Directory {at}>\nRequire all granted\nDav On\n</Directory>");
    let _apache = apache::start(&lease, &folder, &["dav", "dav_fs"], &dav);
    let setup = Setup::new(&[lease.address()]).virtual_server(&tls::shop(""));
    let statuses = |proxy: &Proxy| {
        let put = folder.write("body", "text").display().to_string();
        let status = |arguments: &[&str], path: &str| {
            let head = curl(proxy, arguments, path);
            let line = head.lines().rfind(|line| line.starts_with("http/")).expect("a status line");
            line.split(' ').nth(1).expect("a status").to_owned()
        };
        let to = |method: &str, path: &str| {
            let destination = format!("Destination: https://shop.example{path}");
            status(&["--request", method, "--header", &destination], "/a")
        };
        let _ = status(&["--upload-file", &put], "/a");
        [to("COPY", "/b"), to("MOVE", "/c"), status(&[], "/b"), status(&[], "/c")]
    };
    let without = Proxy::start(&setup);
    assert_eq!(statuses(&without), ["502", "502", "404", "404"]);
    let proxy = Proxy::start(&setup.http("rewrite_location: true"));
    assert_eq!(statuses(&proxy), ["201", "201", "200", "200"]);
    let body = folder.path().join("body").display().to_string();
    let head = curl(&proxy, &["--upload-file", &body], "/new");
    assert!(head.contains("\nlocation: https://shop.example/new\r\n"), "{head}");
}
