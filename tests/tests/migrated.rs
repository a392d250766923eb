//! Configurations migrated from other products (`examples/migrated`), unchanged except for the addresses of members and
//! listeners.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_tests::client::{Client, Response};
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

/// The ports in the examples. The first one is that of the harness's virtual server.
const LISTEN: [u16; 7] = [8080, 8081, 8082, 8083, 8636, 8084, 8085];

/// A running example.
struct Migrated {
    proxy: Proxy,
    listen: Vec<SocketAddr>,
    text: String,
    _leases: Vec<Lease>,
    _folder: TempDir,
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

impl Migrated {
    /// Starts the example of this name, with these members from port 9001 on.
    fn start(name: &str, members: &[Member]) -> Self {
        let proxy = Proxy::start(&Setup::new(&[members[0].address()]));
        let leases: Vec<Lease> = LISTEN[1..].iter().map(|_| Lease::new()).collect();
        let own = std::iter::once(proxy.address());
        let listen: Vec<SocketAddr> = own.chain(leases.iter().map(Lease::address)).collect();
        let folder = TempDir::new("migrated");
        let file = examples().join("migrated").join(format!("{name}.yaml"));
        let example = std::fs::read_to_string(file).expect("the example");
        let mut text = format!(
            "admin: {{ listen: \"{}\" }}\nlog: {{ access: {{ to: stdout, format: \"off\" }} }}\nstate_dir: {}\n{}",
            proxy.admin_address(),
            folder.path().display(),
            example.replace("../tls/", &format!("{}/tls/", examples().display())),
        );
        let ports = LISTEN.iter().copied().zip(listen.iter().copied());
        let members = (9_001..).zip(members.iter().map(Member::address));
        let places: Vec<(u16, SocketAddr)> = ports.chain(members).collect();
        // Placeholders first, because an address of this test may equal one of the example.
        for (port, _) in &places {
            text = text.replace(&format!("127.0.0.1:{port}"), &format!("<{port}>"));
        }
        for (port, address) in &places {
            text = text.replace(&format!("<{port}>"), &address.to_string());
        }
        let migrated = Self { proxy, listen, text, _leases: leases, _folder: folder };
        migrated.put_in_force(&migrated.text);
        migrated
    }

    fn put_in_force(&self, text: &str) {
        let before = self.proxy.reloads("success");
        self.proxy.reload_text(text);
        weir_tests::eventually("the example is in force", weir_tests::STEP_TIMEOUT, || {
            self.proxy.reloads("success") > before
        });
    }

    /// The response to a GET request on a new connection.
    fn get(&self, host: &str, path: &str, fields: &str) -> Response {
        ask(self.listen[0], host, path, fields)
    }
}

fn ask(address: SocketAddr, host: &str, path: &str, fields: &str) -> Response {
    let mut client = Client::connect(address);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"));
    client.response()
}

#[test]
fn content_switching() {
    let members = ["web", "images", "api", "phones"].map(Member::named);
    let shop = Migrated::start("content-switching", &members);
    for (host, path, fields, expected) in [
        ("shop.example", "/", "", "web"),
        ("shop.example", "/logo.png", "", "images"),
        ("shop.example", "/api/orders", "", "api"),
        ("api.shop.example", "/", "", "api"),
        ("shop.example", "/", "User-Agent: Mobile Safari\r\n", "phones"),
    ] {
        assert_eq!(shop.get(host, path, fields).text(), expected, "{host}{path} {fields}");
    }
}

#[test]
fn rewrite_and_responder() {
    let members = [Member::echo()];
    let shop = Migrated::start("rewrite-responder", &members);
    let redirect = shop.get("shop.example", "/a?b", "");
    let location = redirect.head.field("Location");
    assert_eq!((redirect.status, location), (301, Some("http://www.shop.example/a?b")));
    assert!(shop.get("www.shop.example", "/robots.txt", "").text().contains("Disallow: /"));
    assert_eq!(shop.get("www.shop.example", "/admin/x", "").status, 403);
    let response = shop.get("acme.shop.example", "/old/page", "");
    let got = response.assert_status(200).text();
    assert!(got.starts_with("GET /new/page "), "{got}");
    assert!(got.contains("X-Tenant: acme"), "{got}");
}

#[test]
fn ltm_policies_and_irules() {
    let members = [Member::echo(), Member::named("intern")];
    let shop = Migrated::start("ltm-policies", &members);
    let got = shop.get("shop.example", "/", "");
    assert_eq!(got.head.field("X-Frame-Options"), Some("SAMEORIGIN"));
    assert!(got.text().contains("X-Forwarded-For: 127.0.0.1"));
    assert_eq!(shop.get("shop.example", "/intern/a", "").text(), "intern");
    let mut bot = Client::connect(shop.listen[0]);
    bot.send("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: BadBot/1\r\n\r\n");
    bot.assert_closed();
}

#[test]
fn persistence_of_each_kind() {
    // The member returns a session id for one path.
    let two = Member::new(|exchange| {
        let session = match exchange.request.target() {
            "/log-in" => "X-Session: 77\r\n",
            _ => "",
        };
        exchange.send(format!("HTTP/1.1 200 OK\r\n{session}Content-Length: 3\r\n\r\ntwo"))?;
        Ok(Then::KeepAlive)
    });
    let members = [Member::named("one"), two];
    let shop = Migrated::start("persistence", &members);
    let stays = |place: usize, fields: &str| {
        let answers: Vec<String> =
            (0..6).map(|_| ask(shop.listen[place], "a", "/", fields).text()).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{place}: {answers:?}");
    };
    let first = ask(shop.listen[0], "a", "/", "");
    let cookie = first.head.field("Set-Cookie").expect("a cookie");
    assert!(cookie.starts_with("BIGipServer=") && cookie.contains("Max-Age=604800"), "{cookie}");
    let token = cookie.split(';').next().expect("its value");
    stays(0, &format!("Cookie: {token}\r\n"));
    stays(1, "Cookie: JSESSIONID=abc\r\n");
    stays(2, "");
    stays(3, "X-User: joe\r\n");
    let mut tries = 0..20;
    assert!(tries.any(|_| ask(shop.listen[5], "a", "/log-in", "").text() == "two"));
    for _ in 0..6 {
        assert_eq!(ask(shop.listen[5], "a", "/?session=77", "").text(), "two");
    }
    stays(6, "");
}

#[test]
fn priority_groups_and_a_spare_pool() {
    let mut members = ["first", "second", "third", "elsewhere"].map(Member::named);
    let shop = Migrated::start("priority-groups", &members);
    let seen = || -> std::collections::BTreeSet<String> {
        (0..8).map(|_| shop.get("a", "/", "").text()).collect()
    };
    let is = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(seen(), is(&["first", "second"]));
    members[1].kill();
    weir_tests::eventually("the next group helps", weir_tests::STEP_TIMEOUT, || {
        seen() == is(&["first", "third"])
    });
    members[0].kill();
    members[2].kill();
    weir_tests::eventually("the pool elsewhere serves", weir_tests::STEP_TIMEOUT, || {
        seen() == is(&["elsewhere"])
    });
}

#[test]
fn a_maintenance_page() {
    let members = [Member::named("shop")];
    let shop = Migrated::start("maintenance-page", &members);
    let page = shop.get("a", "/", "");
    assert_eq!((page.status, &*page.text()), (503, "We are back at six."));
}

/// weir terminates TLS and relays the content of any protocol.
#[test]
fn ldaps() {
    weir_tests::require!("curl");
    let members = ["one", "two"].map(Member::named);
    let shop = Migrated::start("ldaps", &members);
    let url = format!("https://{}/", shop.listen[4]);
    let mut curl = std::process::Command::new("curl");
    curl.args(["--silent", "--show-error", "--insecure", "--max-time", "20", &url]);
    let answer = weir_tests::tools::run(&mut curl);
    assert!(["one", "two"].contains(&&*answer), "{answer}");
}

#[test]
fn a_canary_gets_its_share_and_keeps_its_clients() {
    let members = ["old", "new"].map(Member::named);
    let shop = Migrated::start("canary", &members);
    let answers: Vec<Response> = (0..200).map(|_| shop.get("a", "/", "")).collect();
    let new = answers.iter().filter(|answer| answer.text() == "new").count();
    assert!((4..=20).contains(&new), "{new} of 200");
    let canary = answers.iter().find(|answer| answer.text() == "new").expect("one of them");
    let cookie = canary.head.field("Set-Cookie").and_then(|it| it.split(';').next());
    let fields = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
    assert!((0..5).all(|_| shop.get("a", "/", &fields).text() == "new"));
}

#[test]
fn blue_and_green() {
    let members = ["blue", "green"].map(Member::named);
    let shop = Migrated::start("blue-green", &members);
    let mut kept = Client::connect(shop.listen[0]);
    assert_eq!(kept.get("/").text(), "blue");
    assert_eq!(shop.get("a", "/", "X-Preview: green\r\n").text(), "green");
    let switched = shop.text.replace("pool: blue,", "pool: green,");
    assert_ne!(switched, shop.text);
    shop.put_in_force(&switched);
    assert_eq!(kept.get("/").text(), "green", "the same connection");
}

#[test]
fn a_login_that_is_limited() {
    let members = [Member::named("shop")];
    let shop = Migrated::start("rate-limited-login", &members);
    let statuses: Vec<u16> =
        (0..7).map(|_| Client::connect(shop.listen[0]).post("/login", b"a=b").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
    assert_eq!(shop.get("a", "/login", "").status, 200, "only attempts count");
}
