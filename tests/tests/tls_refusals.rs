//! Clients that TLS refuses: the alert that they get, and the reason in the access log.

use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{require, tls};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

/// The alert that a client gets says what is wrong, and the access log says it in words.
#[test]
fn refused_clients_get_the_fitting_alert_and_the_log_has_the_reason() {
    require!("openssl");
    const NO_GROUP: &str = "no common key exchange group (curve), or no cipher suite that uses one";
    const OLD: &str = "the client offers no TLS version above 1.1";
    const HANDSHAKE_FAILURE: u8 = 40;
    const PROTOCOL_VERSION: u8 = 70;
    const CERTIFICATE_REQUIRED: u8 = 116;
    let member = Member::named("here");
    let more = format!("client_certificates: {{ ca: {} }}", tls::file("authorities.crt"));
    let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop(&more)).access_log();
    let mut proxy = Proxy::start(&setup);
    let weak = "ALL:@SECLEVEL=0";
    let cases: [(&[&str], u8, &str); 8] = [
        (&["-tls1", "-cipher", weak], PROTOCOL_VERSION, OLD),
        (&["-tls1_1", "-cipher", weak], PROTOCOL_VERSION, OLD),
        (
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"],
            HANDSHAKE_FAILURE,
            "no common cipher suite",
        ),
        (&["-tls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0"], HANDSHAKE_FAILURE, NO_GROUP),
        (&["-tls1_3", "-curves", "P-521"], HANDSHAKE_FAILURE, NO_GROUP),
        (&["-tls1_2", "-curves", "P-521"], HANDSHAKE_FAILURE, NO_GROUP),
        (
            &["-tls1_3", "-sigalgs", "ecdsa_secp521r1_sha512"],
            HANDSHAKE_FAILURE,
            "no common signature algorithm for the certificate",
        ),
        (&["-tls1_3"], CERTIFICATE_REQUIRED, "it showed no certificate, which is required"),
    ];
    for (arguments, alert, _) in cases {
        let text = tls::s_client_text(proxy.address(), arguments, REQUEST);
        assert!(text.contains(&format!("SSL alert number {alert}\n")), "{arguments:?}: {text}");
    }
    let revoked = [tls::file("revoked.crt"), tls::file("revoked.key")];
    let listed = format!(
        "client_certificates: {{ ca: {}, crl: {} }}",
        tls::file("authorities.crt"),
        tls::file("revoked.crl")
    );
    proxy.reload_and_wait(
        &Setup::new(&[member.address()]).virtual_server(&tls::shop(&listed)).access_log(),
    );
    let arguments = ["-tls1_3", "-cert", &revoked[0], "-key", &revoked[1]];
    let text = tls::s_client_text(proxy.address(), &arguments, REQUEST);
    assert!(text.contains("SSL alert number 44"), "certificate_revoked: {text}");
    let mut expected: Vec<&str> = cases.iter().map(|(_, _, why)| *why).collect();
    expected.push("the certificate is revoked");
    let mut entries: Vec<serde_json::Value> = Vec::new();
    weir_tests::eventually("all lines are written", weir_tests::STEP_TIMEOUT, || {
        let output = proxy.process().output();
        let lines = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        entries = lines.filter(|line: &serde_json::Value| line["tls_error"].is_string()).collect();
        entries.len() >= expected.len()
    });
    // The workers write their lines independently.
    let mut told: Vec<&str> =
        entries.iter().filter_map(|entry| entry["tls_error"].as_str()).collect();
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
    assert!(entries.iter().all(|entry| entry["termination"] == "tls_handshake"), "{entries:?}");
    assert_eq!(member.request_count(), 0);
}
