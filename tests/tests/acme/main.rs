//! ACME certificates from Pebble: ordering, renewal under traffic, and storage.

mod account;
mod mid_order;
mod pebble;
mod torn_writes;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pebble::{BLOCKED, Pebble};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

const NAME: &str = "shop.example";

/// A site: its member, its ports, its state folder, and the authority that validates it.
struct Site {
    member: Member,
    http: Lease,
    tls: Lease,
    state: TempDir,
    pebble: Pebble,
}

impl Site {
    fn new() -> Self {
        let (http, tls) = (Lease::new(), Lease::new());
        let pebble = Pebble::start(http.address().port(), tls.address().port());
        Self::of(http, tls, pebble)
    }

    fn of(http: Lease, tls: Lease, pebble: Pebble) -> Self {
        Self { member: Member::named("here"), http, tls, state: TempDir::new("acme"), pebble }
    }

    /// A plain virtual server that redirects, and a TLS virtual server with this certificate.
    fn setup(&self, acme: &str, certificate: &str) -> Setup {
        let (http, tls) = (self.http.address(), self.tls.address());
        // Without a requested profile, Pebble chooses one at random.
        let profile = if acme.contains("profile") { "" } else { "profile: default, " };
        Setup::new(&[self.member.address()])
            .top(&self.pebble.section(&format!("{profile}{acme}")))
            .top(&format!("state_dir: {}", self.state.path().display()))
            .also_virtual_server(&format!(
                "plain: {{ listen: \"{http}\", pool: members, https_redirect: true }}"
            ))
            .also_virtual_server(&format!(
                "secure: {{ listen: \"{tls}\", pool: members, tls: {{ certificates: [ {certificate} ] }} }}"
            ))
            .admin_socket()
    }

    /// The certificate that a client with the site's name in SNI receives, in PEM.
    fn shown(&self) -> String {
        let address = self.tls.address().to_string();
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &address, "-servername", NAME]);
        let output = command.stdin(Stdio::null()).output().expect("openssl runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        const END: &str = "-----END CERTIFICATE-----\n";
        let begin = text.find("-----BEGIN CERTIFICATE-----").expect("a certificate");
        let end = text[begin..].find(END).expect("its end") + begin + END.len();
        text[begin..end].to_owned()
    }

    /// Sends a request over TLS, and verifies the certificate with this root.
    fn get(&self, root: &str) -> bool {
        let mut command = Command::new("curl");
        let to = format!("{NAME}:443:{}", self.tls.address());
        command.args(["-sS", "--fail", "--max-time", "30", "--cacert", root, "--connect-to", &to]);
        let output = command.arg(format!("https://{NAME}/")).output().expect("curl runs");
        output.status.success() && output.stdout == b"here"
    }

    /// The stored certificates.
    fn kept(&self) -> Vec<String> {
        let output =
            tools::run(Command::new("find").arg(self.state.path()).args(["-name", "*.pem"]));
        output.lines().map(str::to_owned).collect()
    }
}

/// The entry of the virtual server `secure` in the list of certificates.
fn certificate(proxy: &Proxy) -> Value {
    let list: Value = serde_json::from_str(&proxy.admin_get("/v1/certificates")).expect("a list");
    let found = list["items"]
        .as_array()
        .and_then(|items| items.iter().find(|item| item["virtual_server"] == "secure"));
    found.unwrap_or_else(|| panic!("{list}")).clone()
}

/// The renewal status in that entry.
fn report(proxy: &Proxy) -> Value {
    certificate(proxy)["acme"].clone()
}

fn wait_until_ready(proxy: &mut Proxy) {
    eventually("the certificate is there", STEP_TIMEOUT, || report(proxy)["state"] == "ready");
    let output = proxy.process().output();
    assert!(!output.contains("PRIVATE KEY"), "{output}");
}

fn orders(proxy: &Proxy, result: &str) -> f64 {
    proxy.metric("weir_acme_orders_total", &[&format!("\"{result}\"")])
}

fn issuer(certificate: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(["x509", "-noout", "-issuer", "-ext", "subjectAltName"]);
    String::from_utf8_lossy(&tls::converse(&mut command, certificate.as_bytes()).stdout)
        .into_owned()
}

#[test]
fn by_a_request_and_a_restart_takes_what_is_kept() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let site = Site::new();
    let names = "{ acme: [ shop.example, www.shop.example ] }";
    let setup = site.setup("challenge: http-01, email: ops@shop.example, key: ecdsa-p384", names);
    let mut proxy = Proxy::start(&setup);
    wait_until_ready(&mut proxy);
    let shown = site.shown();
    let told = issuer(&shown);
    assert!(
        told.contains("Pebble") && told.contains("DNS:shop.example, DNS:www.shop.example"),
        "{told}"
    );
    assert!(site.get(&site.pebble.root()));
    assert_eq!((orders(&proxy, "success"), orders(&proxy, "failure")), (1.0, 0.0));
    assert_eq!(report(&proxy)["renews_by"], "authority");
    assert!(report(&proxy)["window"]["start"].as_str() < report(&proxy)["window"]["end"].as_str());
    // No challenge is pending any more, so policies apply to this path.
    let mut client = weir_tests::client::Client::connect(site.http.address());
    client.get("/.well-known/acme-challenge/abc").assert_status(308);
    drop(client);
    for file in site.kept() {
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(proxy);
    let proxy = Proxy::start(&setup);
    assert_eq!(site.shown(), shown);
    eventually("the authority's window is known", STEP_TIMEOUT, || {
        report(&proxy)["renews_by"] == "authority"
    });
    assert_eq!((report(&proxy)["state"].as_str(), site.pebble.orders()), (Some("ready"), 1));
    assert_eq!((orders(&proxy, "success"), orders(&proxy, "failure")), (0.0, 0.0));
}

#[test]
fn by_a_handshake_beside_others() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let site = Site::new();
    let mut proxy = Proxy::start(
        &site.setup("challenge: tls-alpn-01, profile: shortlived", "{ acme: [ shop.example ] }"),
    );
    wait_until_ready(&mut proxy);
    assert!(issuer(&site.shown()).contains("Pebble"));
    assert!(site.get(&site.pebble.root()));
    assert_eq!(certificate(&proxy)["days_left"], 0, "the profile is that of a day");
    // Clients that are not the authority cannot reach the site over the ALPN protocol of challenges.
    let address = site.tls.address();
    let text = tls::s_client_text(address, &["-alpn", "acme-tls/1"], b"GET / HTTP/1.1\r\n\r\n");
    assert!(text.contains("alert no application protocol"), "{text}");
    assert_eq!(site.member.request_count(), 1, "the request of before");
}

#[test]
fn a_renewal_loses_no_request() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let site = Arc::new(Site::new());
    let setup = site.setup("", "{ acme: [ shop.example ] }");
    let mut proxy = Proxy::start(&setup);
    wait_until_ready(&mut proxy);
    let (first, root) = (site.shown(), site.pebble.root());
    let stop = Arc::new(AtomicBool::new(false));
    let clients = [(); 2].map(|()| {
        let (site, stop, root) = (Arc::clone(&site), Arc::clone(&stop), root.clone());
        thread::spawn(move || {
            let mut results = [0, 0];
            while !stop.load(Ordering::Acquire) {
                results[usize::from(site.get(&root))] += 1;
            }
            results
        })
    });
    site.pebble.ask_for_renewal(&first);
    // A reload fetches the renewal window again. The next order starts at least ten seconds after the previous one.
    proxy.reload_and_wait(&setup.clone().http("idle_timeout: 50s"));
    eventually("another certificate is in use", STEP_TIMEOUT, || site.shown() != first);
    wait_until_ready(&mut proxy);
    assert_eq!((orders(&proxy, "success"), site.pebble.orders()), (2.0, 2));
    stop.store(true, Ordering::Release);
    for client in clients {
        let [failed, good] = client.join().expect("a client");
        assert!(failed == 0 && good > 0, "{failed} failed, {good} did not");
    }
    // The renewal status is that of the new certificate, whose window is weeks away.
    assert_eq!(report(&proxy)["state"], "ready");
    assert_eq!(site.kept().len(), 1);
}

#[test]
fn an_order_that_fails_keeps_the_certificate_and_says_why() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let site = Site::new();
    // The certificate in the file is used until the authority issues one.
    let (cert, key) = (tls::file("shop-ec.crt"), tls::file("shop-ec.key"));
    let with =
        |name: &str| format!("{{ acme: [ shop.example, {name} ], cert: {cert}, key: {key} }}");
    let proxy = Proxy::start(&site.setup("", &with(BLOCKED)));
    let file = std::fs::read_to_string(&cert).expect("a file");
    eventually("the order has failed", STEP_TIMEOUT, || report(&proxy)["state"] == "failing");
    assert!(file.contains(site.shown().trim()), "the file's certificate is shown");
    let found = report(&proxy);
    let reason = found["reason"].as_str().expect("a reason");
    assert!(reason.contains(BLOCKED) && reason.contains("rejectedIdentifier"), "{reason}");
    assert_eq!((found["failures"].as_u64(), &found["renews_at"]), (Some(1), &Value::Null));
    assert_eq!((orders(&proxy, "success"), orders(&proxy, "failure")), (0.0, 1.0));
    assert_eq!(proxy.metric("weir_acme_certificates", &["\"failing\""]), 1.0);
    let status = Command::new(weir_binary())
        .args(["status", "--admin", &proxy.admin_address()])
        .output()
        .expect("weir status runs");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        status.contains("cannot be had") && status.contains("the order failed once"),
        "{status}"
    );
    // A corrected name is another set of names, which is ordered at once.
    proxy.reload_and_wait(&site.setup("", &with("www.shop.example")));
    eventually("the certificate is there", STEP_TIMEOUT, || report(&proxy)["state"] == "ready");
    assert!(issuer(&site.shown()).contains("Pebble"));
    assert!(site.get(&site.pebble.root()));
}

#[test]
fn a_proof_that_fails_is_told_and_clients_get_a_stand_in() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let site = Site::new();
    let setup = |plain: &str| {
        let tls = site.tls.address();
        Setup::new(&[site.member.address()])
            .top(&site.pebble.section("challenge: http-01"))
            .top(&format!("state_dir: {}", site.state.path().display()))
            .also_virtual_server(&format!(
                "secure: {{ listen: \"{tls}\", pool: members, tls: {{ certificates: [ {{ acme: [ shop.example ] }} ] }} }}"
            ))
            .also_virtual_server(plain)
            .admin_socket()
    };
    // The authority's connection is refused, because weir does not listen on that port.
    let proxy = Proxy::start(&setup("elsewhere: { listen: \"127.0.0.1:0\", pool: members }"));
    eventually("the order has failed", STEP_TIMEOUT, || report(&proxy)["state"] == "failing");
    let reason = report(&proxy)["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("shop.example") && reason.contains("connection refused"), "{reason}");
    assert!(issuer(&site.shown()).contains("no certificate of an authority yet"));
    // A reload tries again, ten seconds after the first order.
    let http = site.http.address();
    proxy.reload_and_wait(&setup(&format!("plain: {{ listen: \"{http}\", pool: members }}")));
    eventually("the certificate is there", STEP_TIMEOUT, || report(&proxy)["state"] == "ready");
    assert!(issuer(&site.shown()).contains("Pebble"));
}

#[test]
fn an_upgrade_does_not_order_again() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let site = Site::new();
    let mut proxy = Proxy::start(&site.setup("", "{ acme: [ shop.example ] }"));
    wait_until_ready(&mut proxy);
    let shown = site.shown();
    let output = Command::new(weir_binary())
        .args(["upgrade", "--json", "--admin", &proxy.admin_address()])
        .output()
        .expect("weir upgrade runs");
    assert!(output.status.success(), "{output:?}");
    let report_of_it: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let pid = report_of_it["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let _ended = EndedWithTest(pid.and_then(Pid::from_raw).expect("a process id"));
    eventually("the authority's window is known", STEP_TIMEOUT, || {
        report(&proxy)["renews_by"] == "authority"
    });
    assert_eq!((site.shown(), site.pebble.orders()), (shown, 1));
    // The new process can order.
    site.pebble.ask_for_renewal(&site.shown());
    assert!(Path::new(&site.kept()[0]).exists());
}

/// A process that is not a child of the test. It is killed on drop.
struct EndedWithTest(Pid);

impl Drop for EndedWithTest {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = kill_process(self.0, Signal::KILL);
    }
}
