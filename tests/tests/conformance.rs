//! External test suites through the proxy. They are not part of this repository; environment variables contain their paths.
//!
//! `WEIR_H1SPEC`: a checkout of uNetworking/h1spec; `deno` in PATH or named by `WEIR_DENO`.
//! `WEIR_AUTOBAHN`: the `wstest` program of PyPI's `autobahntestsuite`, which needs a Python 2
//! virtualenv. `WEIR_H2SPEC`: the program of summerwind/h2spec. `WEIR_GRPC_INTEROP`: a folder with
//! grpc-go's `interop/client` and `interop/server`, built.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{tls, tools};

#[test]
fn h1spec() {
    let Some(folder) = tools::suite("WEIR_H1SPEC") else {
        return;
    };
    let deno = std::env::var_os("WEIR_DENO").map(PathBuf::from).or_else(|| tools::find("deno"));
    let deno = deno.expect("WEIR_H1SPEC is set, so deno must be in PATH or named by WEIR_DENO");
    let member = Member::new(|exchange| {
        let body = exchange.request.body.clone();
        exchange.answer(body)
    });
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let text = tools::run(
        Command::new(deno)
            .args(["run", "--no-check", "--allow-net=127.0.0.1"])
            .arg(folder.join("http_test.ts"))
            .args(["127.0.0.1", &proxy.address().port().to_string()]),
    );
    let summary =
        text.lines().rev().find(|line| line.contains(" tests passed")).unwrap_or_default();
    println!("h1spec: {summary}");
    let numbers: Vec<&str> =
        summary.split(' ').filter(|word| word.parse::<u32>().is_ok()).collect();
    assert!(matches!(numbers[..], [passed, all] if passed == all), "{text}");
}

/// Excluded cases: performance (9), and compression (12, 13), which the reference server does not support.
const AUTOBAHN_EXCLUDED: &str = r#"["9.*", "12.*", "13.*"]"#;
/// With fewer cases than this, the suite did not run.
const AUTOBAHN_CASES_MIN: usize = 240;

#[test]
fn autobahn() {
    let Some(wstest) = tools::suite("WEIR_AUTOBAHN") else {
        return;
    };
    let directory = TempDir::new("autobahn");
    // The server listens on every address.
    let lease = Lease::on_every_address();
    let url = format!("ws://{}", lease.address());
    let log = directory.path().join("echoserver.log");
    let mut server = Process::start(&wstest, &["-m", "echoserver", "-u", "0", "-w", &url], &log);
    server.wait_until_listening(&[lease.address()]);
    let member = under_own_name(lease.address());
    let proxy = Proxy::start(&Setup::new(&[member.address()]));

    let specification = format!(
        r#"{{"outdir": "{}", "servers": [{{"agent": "weir", "url": "ws://{}"}}],
            "cases": ["*"], "exclude-cases": {AUTOBAHN_EXCLUDED}, "exclude-agent-cases": {{}}}}"#,
        directory.path().display(),
        proxy.address()
    );
    let file = directory.write("fuzzingclient.json", specification);
    tools::run(
        Command::new(wstest)
            .args(["-m", "fuzzingclient", "-s"])
            .arg(file)
            .current_dir(directory.path()),
    );

    let behaviours = behaviours(&directory.path().join("index.json"));
    println!("Autobahn: {behaviours:?}");
    let good = ["OK", "NON-STRICT", "INFORMATIONAL"];
    let cases: usize = behaviours.values().sum();
    assert!(cases >= AUTOBAHN_CASES_MIN, "{behaviours:?}");
    assert!(behaviours.keys().all(|name| good.contains(&name.as_str())), "{behaviours:?}");
}

/// A relay to the reference server. It replaces the Host header, because the server requires its own port there.
fn under_own_name(server: SocketAddr) -> Member {
    Member::streaming(move |exchange| {
        let mut to_server = TcpStream::connect(server)?;
        let mut head = format!("{}\r\n", exchange.request.head.start);
        for (name, value) in &exchange.request.head.fields {
            let value = if name.eq_ignore_ascii_case("host") { &server.to_string() } else { value };
            head += &format!("{name}: {value}\r\n");
        }
        to_server.write_all(format!("{head}\r\n").as_bytes())?;

        let (mut from_server, mut to_client) =
            (to_server.try_clone()?, exchange.stream().try_clone()?);
        let back = std::thread::spawn(move || {
            // Either end may reset the connection. The suite checks only the received bytes.
            let _ = io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Write);
        });
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = exchange.receive(&mut buffer) {
            if to_server.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to_server.shutdown(Shutdown::Write);
        back.join().map_err(|_| io::Error::other("the way back panicked"))?;
        Ok(Then::Close)
    })
}

/// The number of cases by their verdict in the suite's report.
fn behaviours(report: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(report).expect("Autobahn's report");
    let mut counts = BTreeMap::new();
    for rest in text.split("\"behavior\":").skip(1) {
        let verdict = rest.split('"').nth(1).unwrap_or_default();
        *counts.entry(verdict.to_owned()).or_default() += 1;
    }
    counts
}

/// The summary with TLS: all cases pass.
const H2SPEC_OVER_TLS: &str = "146 tests, 146 passed, 0 skipped, 0 failed";
/// The summary without TLS. That port also supports HTTP/1, so bytes other than the preface get an HTTP/1 response and a
/// close. The case "Sends invalid connection preface" interprets the response as a frame.
const H2SPEC_WITHOUT_TLS: &str = "146 tests, 145 passed, 0 skipped, 1 failed";

/// A member that responds after the whole request, as some cases require.
fn patient_member() -> Member {
    Member::new(|exchange| match exchange.request.method() {
        "HEAD" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").map(|()| Then::KeepAlive)
        }
        // Longer than the smallest window in the suite.
        _ => exchange.answer("hello"),
    })
}

#[test]
fn h2spec() {
    let Some(h2spec) = tools::suite("WEIR_H2SPEC") else {
        return;
    };
    let member = patient_member();
    let run = |setup: Setup, arguments: &[&str], expected: &str| {
        let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
        let port = proxy.address().port().to_string();
        // The program also fails when one case fails. Its output has the details.
        let output = Command::new(&h2spec)
            .args(["-h", "127.0.0.1", "-p", &port, "-S", "-o", "5"])
            .args(arguments)
            .output()
            .expect("h2spec");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let summary = text.lines().rev().find(|line| line.contains(" tests, "));
        println!("h2spec {arguments:?}: {}", summary.unwrap_or_default());
        assert!(text.contains(expected), "{text}");
        text
    };
    let secure = Setup::new(&[member.address()]).virtual_server(&tls::shop(""));
    run(secure, &["-t", "-k"], H2SPEC_OVER_TLS);
    let plain = Setup::new(&[member.address()]).http("http2: true");
    let text = run(plain, &[], H2SPEC_WITHOUT_TLS);
    assert!(text.contains("× 2: Sends invalid connection preface"), "{text}");
}

/// The cases of grpc-go's interop client that require neither a cloud account nor a special server.
const GRPC_CASES: [&str; 14] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
];

#[test]
fn grpc_interop() {
    let Some(folder) = tools::suite("WEIR_GRPC_INTEROP") else {
        return;
    };
    // The server listens on every address.
    let (lease, directory) = (Lease::on_every_address(), TempDir::new("grpc"));
    let port = format!("--port={}", lease.address().port());
    let log = directory.path().join("server.log");
    let mut server = Process::start(&folder.join("server"), &[&port], &log);
    server.wait_until_listening(&[lease.address()]);
    let setup = Setup::new(&[lease.address()]).http("http2: true").pool("http2: true");
    let proxy = Proxy::start(&setup);
    let failed: Vec<String> = GRPC_CASES
        .iter()
        .filter_map(|case| {
            let output = Command::new(folder.join("client"))
                .args(["--server_host=127.0.0.1", &format!("--test_case={case}")])
                .arg(format!("--server_port={}", proxy.address().port()))
                .output()
                .expect("grpc-go's interop client");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            (!output.status.success()).then(|| format!("{case}: {text}"))
        })
        .collect();
    println!("gRPC interop: {} of {} passed", GRPC_CASES.len() - failed.len(), GRPC_CASES.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
