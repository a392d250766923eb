//! testssl: each negative finding needs an explanation.

use std::process::Command;

use serde_json::Value;

use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{tls, tools};

/// The explained negative findings: severity, start of the name, reason. Any other finding fails the test.
const FINDINGS: &[(&str, &str, &str)] = &[
    // HIGH only in version 3.0 (Debian 12). Later versions accept this if all suites are good.
    (
        "HIGH",
        "cipher_order",
        "all suites are AEAD with forward secrecy: the client takes what it is fast at",
    ),
    ("HIGH", "cert_validityPeriod", "the example's certificates are for thirty years"),
    ("HIGH", "cert_extlifeSpan", "the example's certificates are for thirty years"),
    (
        "HIGH",
        "cert_revocation",
        "the example's authority has neither a list nor a responder at a public URI",
    ),
    ("LOW", "cert_serialNumberLen", "the example's authority numbers its certificates from 1000"),
    ("LOW", "DNS_CAArecord", "no name server knows shop.example"),
    ("MEDIUM", "security_headers", "they are the application's: weir does not make them up"),
    // OpenSSL's client closes directly after the handshake, and may miss the ticket that follows.
    ("WARN", "sessionresumption_ticket", "its client is often gone before the ticket is there"),
    ("WARN", "QUIC", "the local OpenSSL cannot try it"),
    ("WARN", "engine_problem", "the local OpenSSL has no GOST to try"),
];

#[test]
fn testssl() {
    let Some(program) = tools::suite("WEIR_TESTSSL") else {
        return;
    };
    let member = Member::new(|exchange| exchange.answer("hello"));
    let setup = Setup::new(&[member.address()])
        .virtual_server(&tls::shop(""))
        .virtual_server("hsts: { max_age_days: 365 }");
    let proxy = Proxy::start(&setup);
    let directory = TempDir::new("testssl");
    let report = directory.path().join("report.json");
    let url = format!("https://shop.example:{}/", proxy.address().port());
    // The exit status is the number of findings.
    let output = Command::new(&program)
        .args(["--full", "--warnings", "batch", "--quiet", "--color", "0", "--nodns", "min"])
        .args(["--ip", "127.0.0.1", "--add-ca", &tls::file("root.crt"), "--jsonfile"])
        .arg(&report)
        .arg(url)
        .current_dir(program.parent().expect("a folder"))
        .output()
        .expect("testssl");
    let text = String::from_utf8_lossy(&output.stdout);
    let report = std::fs::read(report).expect("testssl's report");
    let report: Value = serde_json::from_slice(&report).expect("testssl's report");
    let findings = report.as_array().expect("a list of findings");
    let part = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();

    let (mut explained, mut unexplained) = (0, Vec::new());
    for finding in findings {
        let [id, severity] = ["id", "severity"].map(|name| part(finding, name));
        if ["OK", "INFO"].contains(&severity.as_str()) {
            continue;
        }
        let known = FINDINGS.iter().find(|(is, name, _)| *is == severity && id.starts_with(name));
        match known {
            Some((_, _, reason)) => {
                explained += 1;
                println!("{severity} {id}: {} ({reason})", part(finding, "finding"));
            }
            None => unexplained.push(format!("{severity} {id}: {}", part(finding, "finding"))),
        }
    }
    let grade = findings.iter().find(|finding| finding["id"] == "overall_grade");
    let grade = grade.map_or("not given by this version".to_owned(), |it| part(it, "finding"));
    println!("testssl: grade {grade}, {explained} findings explained");
    assert!(unexplained.is_empty(), "{}\n{text}", unexplained.join("\n"));
    let all =
        ["TLS1_2", "TLS1_3", "cert_chain_of_trust", "heartbleed", "LUCKY13", "clientsimulation-"];
    for id in all {
        let seen = findings.iter().any(|it| part(it, "id").starts_with(id));
        assert!(seen, "the run is not complete: no {id}\n{text}");
    }
}
