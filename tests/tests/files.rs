//! Files in a configuration that are not regular files, or have no end.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use weir_tests::member::Member;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;

/// Timeout of these tests: longer than the steps take, and shorter than the time that weir would wait for a file.
const PATIENCE: Duration = weir_tests::STEP_TIMEOUT;

/// Every key for the path of a file that weir reads, each on its own line. If weir reads a file only after another one, the
/// other one is valid.
const CONFIGURATION: &str = "\
virtual_servers:
  bad: { listen: 127.0.0.1:1, pool: p, policies: [ q ], persistence: s, tls: {
    certificates: [ { cert: \"NAMED\",
      key: \"NAMED\" } ] },
    error_pages: { 503: { file: \"NAMED\" } } }
  behind: { listen: 127.0.0.1:2, pool: p, tls: {
    certificates: [ { cert: EXAMPLES/shop-ec.crt, key: EXAMPLES/shop-ec.key,
      ocsp: \"NAMED\" } ] } }
  tickets: { listen: 127.0.0.1:6, pool: p, tls: {
    certificates: [ { cert: EXAMPLES/shop-ec.crt, key: EXAMPLES/shop-ec.key } ],
    ticket_key_file: \"NAMED\" } }
  clients: { listen: 127.0.0.1:4, pool: p, tls: {
    certificates: [ { cert: EXAMPLES/shop-ec.crt, key: EXAMPLES/shop-ec.key } ],
    client_certificates: { ca: \"NAMED\" } } }
  revoked: { listen: 127.0.0.1:5, pool: p, tls: {
    certificates: [ { cert: EXAMPLES/shop-ec.crt, key: EXAMPLES/shop-ec.key } ],
    client_certificates: { ca: EXAMPLES/authorities.crt,
      crl: \"NAMED\" } } }
  folder: { listen: 127.0.0.1:3, pool: p, tls: {
    certificate_folder: \"NAMED\" } }
data_sets: { d: { type: strings,
    file: \"NAMED\" } }
policies: { q: { rules: [ { then: [ { respond: { status: 200,
    file: \"NAMED\" } } ] } ] } }
persistence: { s: { type: cookie,
    key_file: \"NAMED\" } }
pools: { p: { members: [ 127.0.0.1:9 ], tls: {
    ca: \"NAMED\" } } }
";

/// The certificates of the examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tls");

#[test]
fn files_without_an_end_hold_up_neither_check_nor_run() {
    let directory = TempDir::new("endless");
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("coreutils' mkfifo").success());
    let pipe = pipe.display().to_string();
    for named in ["/proc/kmsg", "/proc/kcore", "/dev/zero", "/dev/null", "/dev/tty", &pipe] {
        for command in ["check", "run"] {
            let output = run_to_its_end(&directory, &[command, named]);
            assert!(output.contains(named), "{output}");
        }
        let file = directory.write(
            "weir.yaml",
            CONFIGURATION.replace("NAMED", named).replace("EXAMPLES", EXAMPLES),
        );
        let output = run_to_its_end(&directory, &["check", &file.to_string_lossy()]);
        let lines = CONFIGURATION.lines().enumerate();
        // A file that has both certificate and key is read once.
        let is_told = |line: &str| line.contains("NAMED") && !line.contains("  key: \"NAMED\"");
        for (index, _) in lines.filter(|(_, line)| is_told(line)) {
            let place = format!("weir.yaml:{}:", index + 1);
            assert!(output.contains(&place), "{named}: {place} {output}");
        }
    }
}

/// A syslog server receives the lines of both logs. weir continues when the server is unreachable.
#[test]
fn a_syslog_server_gets_the_lines() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("binding");
    server.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let address = server.local_addr().expect("an address");
    let member = Member::echo();
    let to = format!("{{ syslog: {address}, facility: local3, tag: edge }}");
    let setup = Setup::new(&[member.address()])
        .virtual_server("waf: { mode: detect }")
        .access_log()
        .log_to(&to);
    let proxy = Proxy::start(&setup);
    proxy.client().get("/?q=<script>alert(1)</script>").assert_status(200);
    let mut messages: Vec<String> = (0..2)
        .map(|_| {
            let mut buffer = [0; 65_536];
            let length = server.recv(&mut buffer).expect("a message");
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        })
        .collect();
    messages.sort_by_key(|message| !message.starts_with("<158>1 "));
    let [access, waf] = &messages[..] else { panic!("{messages:?}") };
    assert!(access.starts_with("<158>1 ") && access.contains(" access - {\"time\""), "{access}");
    assert!(waf.starts_with("<156>1 ") && waf.contains(" waf - {\"type\":\"waf\""), "{waf}");
    assert!(access.contains(" edge ") && access.ends_with('}'), "{access}");
}

#[test]
fn a_directory_is_no_log_file() {
    let directory = TempDir::new("log");
    let text = "virtual_servers: { v: { listen: 127.0.0.1:1, pool: p } }\n\
                pools: { p: { members: [ 127.0.0.1:9 ] } }\n\
                log: { access: { to: ./DIRECTORY } }\n";
    std::fs::create_dir(directory.path().join("logs")).expect("a folder");
    let file = directory.write("weir.yaml", text.replace("DIRECTORY", "logs"));
    for command in ["check", "run"] {
        let output = run_to_its_end(&directory, &[command, &file.to_string_lossy()]);
        assert!(output.contains("weir.yaml:3:22: error: "), "{output}");
        assert!(output.contains("/logs is a directory, not a file\n"), "{output}");
        assert!(output.contains("help: name a file in it"), "{output}");
    }
    // A file that does not exist yet is accepted.
    let file = directory.write("weir.yaml", text.replace("DIRECTORY", "logs/access.log"));
    let status = Command::new(weir_binary()).arg("check").arg(file).status();
    assert!(status.expect("weir check").success());
}

/// Runs a command that must fail. Returns its output.
fn run_to_its_end(directory: &TempDir, arguments: &[&str]) -> String {
    let log = directory.path().join("output.log");
    // The output of an earlier command may remain.
    let _ = std::fs::remove_file(&log);
    let mut process = Process::start(weir_binary(), arguments, &log);
    let status = process.wait(PATIENCE);
    assert_eq!(status.code(), Some(1), "{arguments:?}: {}", process.output());
    process.output()
}
