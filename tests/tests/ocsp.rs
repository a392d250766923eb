//! OCSP responses that weir fetches, from openssl's responder.

use std::path::Path;
use std::process::Command;

use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

/// A shell script that creates an authority, a certificate with the responder's address and must-staple, a certificate of
/// the responder, and an unrelated one. It also creates databases in which the certificate is good or revoked.
const MAKE: &str = r#"
set -e
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $key -days 30 -subj '/CN=Test authority' -keyout ca.key -out ca.crt
sign() {
    openssl req $key -subj "/CN=$1" -keyout "$2.key" -out "$2.csr"
    printf "$4" >"$2.ext"
    openssl x509 -req -in "$2.csr" -CA ca.crt -CAkey ca.key -set_serial "$3" -days 20 -extfile "$2.ext" -out "$2.pem"
}
sign shop.example shop 0x1001 "subjectAltName=DNS:shop.example\nauthorityInfoAccess=OCSP;URI:http://127.0.0.1:$PORT/a\ntlsfeature=status_request\n"
sign responder responder 0x1002 'extendedKeyUsage=OCSPSigning\n'
sign plain plain 0x1003 'extendedKeyUsage=serverAuth\n'
cat shop.pem ca.crt >shop.crt
printf 'V\t491231235959Z\t\t1001\tunknown\t/CN=shop.example\n' >good
printf 'R\t491231235959Z\t251231235959Z\t1001\tunknown\t/CN=shop.example\n' >revoked
"#;

/// Creates the files, and leases the port in the certificate. openssl listens on all addresses, so the port must be free on
/// all.
fn authority() -> (TempDir, Lease) {
    let (folder, port) = (TempDir::new("ocsp"), Lease::on_every_address());
    let mut command = Command::new("sh");
    command.args(["-c", MAKE]).current_dir(folder.path());
    tools::run(command.env("PORT", port.address().port().to_string()));
    (folder, port)
}

/// Starts the authority's responder with this signing certificate and this database.
fn responder(folder: &Path, port: &Lease, signer: &str, database: &str) -> Process {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let number = port.address().port().to_string();
    let (index, ca) = (file(database), file("ca.crt"));
    let (signer, key) = (file(&format!("{signer}.pem")), file(&format!("{signer}.key")));
    let mut arguments = vec!["ocsp", "-port", &number, "-index", &index, "-CA", &ca];
    arguments.extend(["-rsigner", &signer, "-rkey", &key, "-nmin", "60", "-ignore_err"]);
    let openssl = tools::find("openssl").expect("openssl");
    let log = folder.join("responder.log");
    let _ = std::fs::remove_file(&log);
    let process = Process::start(&openssl, &arguments, &log);
    // The log shows when it listens. A test connection without a request would put openssl into a busy loop.
    eventually("the responder listens", STEP_TIMEOUT, || process.output().contains("waiting for"));
    process
}

fn setup(folder: &Path, member: &Member) -> Setup {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (cert, key) = (file("shop.crt"), file("shop.key"));
    let line = format!("tls: {{ certificates: [ {{ cert: {cert}, key: {key}, ocsp: fetch }} ] }}");
    Setup::new(&[member.address()]).virtual_server(&line)
}

fn fetches(proxy: &Proxy, result: &str) -> f64 {
    proxy.metric("weir_ocsp_fetches_total", &[&format!("\"{result}\"")])
}

fn is_stapled(proxy: &Proxy, version: &str) -> bool {
    let text = tls::s_client_text(proxy.address(), &["-status", version], REQUEST);
    assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
    assert!(
        text.contains("OCSP response: no response sent") || text.contains("Cert Status: good"),
        "{text}"
    );
    text.contains("Cert Status: good")
}

#[test]
fn a_response_is_fetched_and_outlasts_a_reload() {
    require!("openssl");
    let member = Member::named("here");
    let (folder, port) = authority();
    // Responses signed by the issuer, and by a responder that it has delegated.
    std::fs::copy(folder.path().join("ca.crt"), folder.path().join("ca.pem")).expect("copied");
    for signer in ["ca", "responder"] {
        let running = responder(folder.path(), &port, signer, "good");
        let proxy = Proxy::start(&setup(folder.path(), &member));
        eventually("a response", STEP_TIMEOUT, || fetches(&proxy, "success") == 1.0);
        drop(running);
        for version in ["-tls1_2", "-tls1_3"] {
            assert!(is_stapled(&proxy, version), "{signer} {version}");
        }
        // After the reload, no responder is reachable.
        proxy.reload_and_wait(&setup(folder.path(), &member).http("idle_timeout: 50s"));
        assert!(is_stapled(&proxy, "-tls1_3"), "after a reload");
        assert_eq!((fetches(&proxy, "success"), fetches(&proxy, "failure")), (1.0, 0.0));
        let over = proxy.metric("weir_virtual_server_ocsp_expiry_timestamp_seconds", &["\"main\""]);
        let not_after = "weir_virtual_server_certificate_expiry_timestamp_seconds";
        assert!(over > 1.7e9 && over < proxy.metric(not_after, &["\"main\""]), "{over}");
    }
}

#[test]
fn what_cannot_be_had_or_is_not_good_is_not_sent_along() {
    require!("openssl");
    let member = Member::named("here");
    let (folder, port) = authority();
    let expected = [
        (None, "no connection to 127.0.0.1"),
        // The issuer has not delegated this signer.
        (Some(("plain", "good")), "it is not signed by the certificate's issuer"),
        (Some(("responder", "revoked")), "the certificate is revoked"),
        (Some(("responder", "none")), "the authority does not know the certificate"),
    ];
    folder.write("none", b"");
    for (running, why) in expected {
        let running = running.map(|(signer, it)| responder(folder.path(), &port, signer, it));
        let mut proxy = Proxy::start(&setup(folder.path(), &member));
        eventually("a failure", STEP_TIMEOUT, || fetches(&proxy, "failure") == 1.0);
        assert!(!is_stapled(&proxy, "-tls1_3"), "{why}");
        let told =
            proxy.process().says("warning OCSP response for CN=shop.example cannot be had: ");
        assert!(told.contains(why), "{told}");
        let over = "weir_virtual_server_ocsp_expiry_timestamp_seconds";
        assert_eq!(proxy.metric(over, &["\"main\""]), 0.0);
        drop(running);
    }
}

#[test]
fn a_certificate_that_demands_a_response_and_gets_none_is_warned_of() {
    require!("openssl");
    let (folder, _port) = authority();
    let check = |ocsp: &str| {
        let text = format!(
            "virtual_servers:\n  a:\n    listen: 127.0.0.1:8443\n    pool: p\n    \
             tls: {{ certificates: [ {{ cert: shop.crt, key: shop.key{ocsp} }} ] }}\n\
             pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n"
        );
        let file = folder.write("weir.yaml", text.as_bytes());
        let output = Command::new(weir_binary()).arg("check").arg(file).output().expect("weir");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let told = check("");
    assert!(told.contains("must-staple"), "{told}");
    assert!(!check(", ocsp: fetch").contains("must-staple"));
    // The warning about the expiry in 20 days always appears.
    let told = check(", ocsp: ca.crt");
    assert!(told.contains("it is no OCSP response"), "{told}");
}
