//! An authority that requires external account binding (RFC 8555 section 7.3.4), and RSA keys.

use weir_tests::ports::Lease;
use weir_tests::proxy::Proxy;
use weir_tests::{STEP_TIMEOUT, eventually, require};

use super::pebble::{self, Pebble};
use super::{Site, issuer, report, wait_until_ready};

const ID: &str = "kid-1";
/// A MAC key: 32 bytes in base64url.
const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wE";
const WRONG_KEY: &str = "AAAAAM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wE";

#[test]
fn an_account_is_bound_to_one_in_the_shop() {
    require!("openssl", "curl");
    if !pebble::is_there() {
        return;
    }
    let (http, tls) = (Lease::new(), Lease::new());
    let more = serde_json::json!({
        "externalAccountBindingRequired": true,
        "externalAccountMACKeys": { ID: KEY },
    });
    let pebble = Pebble::start_with(http.address().port(), tls.address().port(), more);
    let site = Site::of(http, tls, pebble);
    let setup = |key: Option<&str>| {
        let external = key.map_or_else(String::new, |key| {
            let file = site.state.write("external.key", format!("{key}\n"));
            format!("external_account: {{ id: {ID}, key_file: {} }}, ", file.display())
        });
        site.setup(&format!("{external}key: rsa-2048"), "{ acme: [ shop.example ] }")
    };
    let mut proxy = Proxy::start(&setup(None));
    let fails_with = |proxy: &Proxy, kind: &str| {
        eventually(&format!("the order fails: {kind}"), STEP_TIMEOUT, || {
            let found = report(proxy);
            let reason = found["reason"].as_str().unwrap_or_default();
            found["state"] == "failing" && reason.contains(kind)
        });
    };
    fails_with(&proxy, "externalAccountRequired");
    proxy.reload_and_wait(&setup(Some(WRONG_KEY)));
    fails_with(&proxy, "unauthorized");
    proxy.reload_and_wait(&setup(Some(KEY)));
    wait_until_ready(&mut proxy);
    let shown = site.shown();
    assert!(issuer(&shown).contains("Pebble"));
    assert!(site.get(&site.pebble.root()));
    let mut command = std::process::Command::new("openssl");
    command.args(["x509", "-noout", "-text"]);
    let text = weir_tests::tls::converse(&mut command, shown.as_bytes()).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("Public-Key: (2048 bit)") && text.contains("rsaEncryption"), "{text}");
    assert_eq!(site.pebble.orders(), 1);
    assert!(!proxy.process().output().contains(KEY), "the key is secret");
}
