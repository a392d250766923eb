//! The load generator and the origin. The load generator's results must match the origin's counters, and must not hide
//! delays.

mod origin;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::weir_binary;
use weir_tests::temp::TempDir;
use weir_tests::{require, tools};

use crate::origin::{Origin, load, number, program};

/// The number of requests that a load sent, with any outcome.
fn sent(result: &Value) -> u64 {
    ["requests", "errors", "warm_up_requests", "warm_up_errors"]
        .iter()
        .map(|name| number(result, name))
        .sum()
}

#[test]
fn the_origin_counts_what_the_load_reports() {
    let origin = Origin::start(3, &[]);
    let urls = [origin.url(0, "/128"), origin.url(1, "/5k.png"), origin.url(2, "/64k.html")];
    let settings: &[&[&str]] = &[
        &["--requests", "5000"],
        &["--requests", "7", "--connections", "64"],
        &["--duration", "500ms", "--warm-up", "200ms", "--connections", "200"],
        &["--duration", "500ms", "--rate", "3000", "--warm-up", "200ms"],
        &["--duration", "300ms", "--rate", "200000", "--connections", "3"],
        &["--requests", "300", "--rate", "3000"],
        &["--requests", "2000", "--requests-per-connection", "1"],
        &["--duration", "300ms", "--requests-per-connection", "10", "--threads", "3"],
        &["--requests", "2000", "--post-share", "20%", "--body-size", "100KiB"],
        &["--requests", "500", "--method", "HEAD", "--source", "127.0.7.1-127.0.7.20"],
        &["--duration", "400ms", "--ramp-up", "300ms", "--connections", "50"],
    ];
    let mut before = number(&origin.counts(), "requests");
    for setting in settings {
        let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
        arguments.extend_from_slice(setting);
        let result = load(&arguments);
        let counts = origin.counts();
        let counted = number(&counts, "requests") - before;
        before += counted;
        assert_eq!(number(&result, "errors"), 0, "{setting:?}: {result}");
        assert!(number(&result, "requests") > 0, "{setting:?}: {result}");
        assert_eq!(sent(&result), counted, "{setting:?}: {result}");
        if let Some(at) = setting.iter().position(|argument| *argument == "--requests") {
            assert_eq!(number(&result, "requests").to_string(), setting[at + 1], "{setting:?}");
        }
    }
    let end = origin.end();
    assert_eq!(number(&end, "requests"), before);
    let by_server = end["requests_by_server"].as_array().expect("a list");
    assert!(by_server.iter().all(|count| count.as_u64() > Some(1_000)), "{end}");
}

#[test]
fn faults_are_counted_by_kind_and_never_as_transactions() {
    let faults = ["503=2%", "reset=1%", "short=1%", "garbage=0.5%", "204=0.5%"];
    let arguments: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", fault]).collect();
    let origin = Origin::start(1, &arguments);
    let url = origin.url(0, "/1k");
    let result = load(&[&url, "--requests", "10000", "--expect-size", "1KiB"]);
    let counts = origin.end();
    let made = |name: &str| counts["faults"][name].as_u64().expect("a count");
    let seen = |name: &str| result["errors_by_kind"][name].as_u64().unwrap_or(0);
    assert_eq!(number(&counts, "requests"), 10_000);
    assert!(made("503") >= 199 && made("reset") >= 99, "{counts}");
    assert_eq!(seen("status"), made("503"), "{counts} {result}");
    assert_eq!(seen("reset"), made("reset"), "{counts} {result}");
    assert_eq!(seen("short"), made("short"), "{counts} {result}");
    assert_eq!(seen("malformed"), made("garbage"), "{counts} {result}");
    assert_eq!(seen("length"), made("204"), "{counts} {result}");
    assert_eq!(number(&result, "requests"), number(&counts, "responses"));
    let all: u64 = ["503", "reset", "short", "garbage", "204"].iter().map(|name| made(name)).sum();
    assert_eq!(number(&result, "errors"), all, "{counts} {result}");
    assert_eq!(number(&result, "bytes"), 1_024 * number(&result, "requests"));
}

#[test]
fn silence_is_a_timeout_and_refusal_is_an_error() {
    let origin = Origin::start(1, &["--fault", "stall=10%"]);
    let url = origin.url(0, "/1");
    let result = load(&[&url, "--requests", "50", "--timeout", "2s"]);
    assert_eq!(result["errors_by_kind"]["timeout"], 5, "{result}");
    assert_eq!(number(&result, "requests"), 45);
    let lease = Lease::new();
    let nobody = format!("http://{}/", lease.address());
    let result = load(&[&nobody, "--requests", "20"]);
    assert_eq!((number(&result, "requests"), number(&result, "errors")), (0, 20), "{result}");
    assert_eq!(result["errors_by_kind"]["connect"], 20, "{result}");
}

#[test]
fn a_load_that_cannot_even_try_to_connect_ends() {
    let origin = Origin::start(1, &[]);
    let url = origin.url(0, "/1");
    let result = load(&[&url, "--duration", "300ms", "--source", "::1"]);
    assert_eq!(number(&result, "requests"), 0, "{result}");
    assert!(result["errors_by_kind"]["connect"].as_u64() >= Some(64), "{result}");
    // The origin has received no connection.
    assert_eq!(number(&origin.end(), "connections"), 0);
}

#[test]
fn waiting_for_the_last_responses_costs_nothing() {
    let origin = Origin::start(1, &["--delay", "1500ms"]);
    let url = origin.url(0, "/1");
    for more in [&["--connections", "2"][..], &["--connections", "2", "--rate", "10"]] {
        let mut arguments = vec![url.as_str(), "--duration", "100ms"];
        arguments.extend_from_slice(more);
        let result = load(&arguments);
        assert!(number(&result, "requests") > 0, "{result}");
        assert!(result["cpu_seconds"].as_f64() < Some(0.5), "{result}");
    }
}

#[test]
fn bodies_are_verified() {
    let origin = Origin::start(1, &[]);
    let url = origin.url(0, "/9");
    // The first nine bytes of the origin's text: "weirgatew".
    let crc32 = format!("{:08x}", crc32(b"weirgatew"));
    let good = load(&[&url, "--requests", "10", "--expect-crc32", &crc32]);
    assert_eq!((number(&good, "requests"), number(&good, "errors")), (10, 0), "{good}");
    let first = load(&[&url, "--requests", "10", "--expect-crc32", "first"]);
    assert_eq!(number(&first, "requests"), 10, "{first}");
    let bad = load(&[&url, "--requests", "10", "--expect-crc32", "12345678"]);
    assert_eq!(bad["errors_by_kind"]["checksum"], 10, "{bad}");
}

/// A server that reads a request on each connection, sends `response` and closes; `None`: closes at once.
fn scripted_server(response: Option<&'static [u8]>) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut stream = stream;
                let Some(response) = response else { return };
                // The client may have closed already.
                let _ = stream.read(&mut [0; 4_096]).and_then(|_| stream.write_all(response));
            });
        }
    });
    address
}

#[test]
fn a_server_that_only_closes_is_not_hammered() {
    let url = format!("http://{}/", scripted_server(None));
    let result = load(&[&url, "--connections", "8", "--rate", "100", "--duration", "1s"]);
    assert_eq!(number(&result, "requests"), 0, "{result}");
    assert!(number(&result, "errors") > 0, "{result}");
    // Eight users, each with a pause of 100 ms between two attempts.
    assert!(number(&result, "connections_opened") <= 8 * 25, "{result}");
    // Each attempt counts, so `--requests` also ends a run of failures.
    let counted = load(&[&url, "--connections", "4", "--rate", "100", "--requests", "20"]);
    assert_eq!(number(&counted, "requests"), 0, "{counted}");
    assert!(number(&counted, "errors") >= 20, "{counted}");
}

/// 64 connections and 100 ms per response give 640 requests per second. Requests that are in flight when the measurement
/// starts count if they end within it. Requests in flight at its end do not count, but the load waits for them.
#[test]
fn the_rate_is_of_what_ends_in_the_measurement() {
    let origin = Origin::start(1, &["--delay", "100ms"]);
    let url = origin.url(0, "/100");
    let result = load(&[&url, "--connections", "64", "--warm-up", "500ms", "--duration", "1s"]);
    let rate = result["requests_per_second"].as_f64().expect("a rate");
    // A higher rate is impossible. A busy machine adds delays, which lower the rate as they raise the latency: 64 connections
    // have 64 requests in flight at any time.
    let possible = 64.0 * 1e6 / result["latency_us"]["mean"].as_f64().expect("a mean");
    assert!(rate <= 640.0 && rate >= 0.8 * possible, "{possible} expected: {result}");
    let window = &result["window"];
    // Every user sends its next request when it receives a response, so the numbers of started and ended requests only
    // differ at the limits of the measurement.
    let apart = number(window, "requests").abs_diff(number(&result, "requests"));
    assert!(apart <= 64, "{result}");
    assert_eq!(window["elapsed_s"], 1.0, "{result}");
    assert_eq!(number(window, "requests") as f64, rate, "{result}");
    assert_eq!(number(window, "bytes"), 100 * number(window, "requests"), "{result}");
    assert_eq!(sent(&result), number(&origin.counts(), "requests"), "{result}");
}

#[test]
fn a_slow_answer_at_the_end_does_not_lower_the_rate() {
    // The 500th request stalls, and the 1,000th if the machine is fast enough to send it.
    let origin = Origin::start(1, &["--fault", "stall=0.2%"]);
    let url = origin.url(0, "/1");
    let arguments =
        [&url, "--rate", "1000", "--duration", "1s", "--timeout", "3s", "--connections", "8"];
    let result = load(&arguments);
    let stalled = number(&result["errors_by_kind"], "timeout");
    assert!((1..=2).contains(&stalled), "{result}");
    let rate = result["requests_per_second"].as_f64().expect("a rate");
    // They ended within a second. The whole run took three.
    assert!(rate > 0.9 * number(&result, "requests") as f64, "{result}");
    let elapsed_s = result["elapsed_s"].as_f64().expect("a time");
    assert!(elapsed_s > 1.5, "the stalled one was waited for: {result}");
}

#[test]
fn responses_until_close_are_whole() {
    let url = format!("http://{}/", scripted_server(Some(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")));
    let result = load(&[&url, "--requests", "20", "--connections", "2", "--expect-size", "13"]);
    assert_eq!((number(&result, "requests"), number(&result, "errors")), (20, 0), "{result}");
}

/// A server may close a keep-alive connection. The client then loses a request, which is counted as an error of its own
/// kind.
#[test]
fn a_kept_connection_that_closes_is_not_a_short_response() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let url = format!("http://{}/", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
            // The server reads the second request and does not answer it.
            let _ = stream.read(&mut [0; 4_096]).and_then(|_| stream.write_all(answer));
            let _ = stream.read(&mut [0; 4_096]);
        }
    });
    let result = load(&[&url, "--requests", "10", "--connections", "1"]);
    assert_eq!((number(&result, "requests"), number(&result, "errors")), (5, 5), "{result}");
    assert_eq!(result["errors_by_kind"]["closed"], 5, "{result}");
}

#[test]
fn of_the_addresses_of_a_name_one_that_answers_is_taken() {
    // The server does not listen on ::1, which many systems try first.
    let url = scripted_server(Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
    let result = load(&[&format!("http://localhost:{}/", url.port()), "--requests", "3"]);
    assert_eq!((number(&result, "requests"), number(&result, "errors")), (3, 0), "{result}");
}

/// CRC-32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

/// A server stalls for 200 ms while 1,000 requests per second are due, for 4 s: 200 of the 4,000 requests are due during the
/// stall and are delayed by 200 ms or less. So the slowest 40 (one percent) have a latency of 160 ms or more. Measured from
/// the time of sending, the stall only affects the one request per connection that is in flight: with 8 connections, less
/// than one percent.
///
/// On a busy machine the stall may take longer, so the test measures it. Other delays of the machine can only increase the
/// latency.
#[test]
fn a_stall_is_not_hidden() {
    let origin = Origin::start(1, &[]);
    let url = origin.url(0, "/128");
    let pid = origin.process();
    let (result, stall_us) = thread::scope(|scope| {
        let stall = scope.spawn(|| {
            thread::sleep(Duration::from_millis(2_000));
            let begun = Instant::now();
            pid.while_stopped(|| thread::sleep(Duration::from_millis(200)));
            begun.elapsed().as_micros() as u64
        });
        let result = load(&[&url, "--connections", "8", "--rate", "1000", "--duration", "4s"]);
        (result, stall.join().expect("the stall"))
    });
    // On a busy machine the last requests may be due shortly after the end.
    let (requests, unsent) = (number(&result, "requests"), number(&result, "unsent"));
    assert_eq!(requests + unsent, 4_000, "{result}");
    let p99 = |name: &str| result[name]["p99"].as_u64().expect("a percentile");
    assert!(p99("latency_us") >= 155_000, "{stall_us}: {result}");
    assert!(number(&result["latency_us"], "max") >= 199_000, "{stall_us}: {result}");
    // Measured from the time of sending, the stall is hidden. Other delays of the machine are in both.
    assert!(p99("service_time_us") < p99("latency_us") / 2, "{result}");
}

#[test]
fn an_open_loop_says_what_it_could_not_send() {
    let origin = Origin::start(1, &["--delay", "20ms"]);
    let url = origin.url(0, "/1");
    // Two connections with 20 ms per response allow 100 requests per second. The load wants 1,000.
    let result = load(&[&url, "--connections", "2", "--rate", "1000", "--duration", "1s"]);
    let (requests, unsent) = (number(&result, "requests"), number(&result, "unsent"));
    assert_eq!(requests + unsent, 1_000, "{result}");
    assert!((20..=110).contains(&requests), "{result}");
    assert!(number(&result["latency_us"], "p99") > 500_000, "a backlog is latency: {result}");
    assert!(number(&result["service_time_us"], "min") >= 20_000, "{result}");
}

#[test]
fn many_connections_take_as_many_threads_as_they_need() {
    let origin = Origin::start(4, &["--threads", "2"]);
    let urls: Vec<String> = (0..4).map(|server| origin.url(server, "/1")).collect();
    let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    arguments.extend(["--connections", "17000", "--rate", "2000", "--duration", "500ms"]);
    let result = load(&arguments);
    assert_eq!(number(&result, "errors"), 0, "{result}");
    assert_eq!(number(&result, "connections_opened"), 17_000, "{result}");
    assert_eq!(number(&origin.counts(), "connections"), 17_001);
}

/// Starts an nginx that reports the TLS version of the connection.
fn tls_server(directory: &TempDir, lease: &Lease) -> Process {
    nginx(directory, &format!("listen {} ssl", lease.address()), lease)
}

/// Starts an nginx with this `listen`, which reports the protocol of the connection.
fn nginx(directory: &TempDir, listen: &str, lease: &Lease) -> Process {
    let at = |name: &str| directory.path().join(name).display().to_string();
    directory.write(
        "openssl.cnf",
        "[req]\ndistinguished_name = name\nx509_extensions = server\n[name]\n\
         [server]\nbasicConstraints = CA:FALSE\nsubjectAltName = DNS:localhost\n",
    );
    let (key, certificate) = (at("key.pem"), at("cert.pem"));
    tools::run(
        Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-config", &at("openssl.cnf")])
            .args(["-keyout", &key, "-out", &certificate]),
    );
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind}; "))
        .concat();
    directory.write(
        "nginx.conf",
        format!(
            "daemon off; master_process off; pid nginx.pid; error_log error.log warn; {user}
            events {{ }}
            http {{
                access_log off; keepalive_requests 1000000; {temporary}
                server {{
                    {listen};
                    ssl_certificate cert.pem; ssl_certificate_key key.pem;
                    ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:1m;
                    location / {{ return 200 \"$ssl_protocol $ssl_cipher\"; }}
                    location /http2 {{ return 200 \"$http2\"; }}
                    location /bytes {{ root .; }}
                }}
            }}",
        ),
    );
    let folder = format!("{}/", directory.path().display());
    let arguments = ["-p", &folder, "-e", "error.log", "-c", "nginx.conf"];
    let program = tools::find("nginx").expect("nginx");
    let mut process = Process::start(&program, &arguments, &directory.path().join("output.log"));
    process.wait_until_listening(&[lease.address()]);
    process
}

#[test]
fn http2_is_spoken_over_tls_and_without() {
    require!("nginx", "openssl");
    let (directory, lease) = (TempDir::new("http2"), Lease::new());
    let bytes = vec![b'w'; 300_000];
    directory.write("bytes", &bytes);
    let listen = |end: &str| format!("listen {}{end}", lease.address());
    let port = lease.address().port();
    let whole = format!("{:x}", crc32(&bytes));
    for (listen, scheme, said) in
        [(listen(" ssl http2"), "https", "h2"), (listen(" http2"), "http", "h2c")]
    {
        let _server = nginx(&directory, &listen, &lease);
        let url = |path: &str| format!("{scheme}://localhost:{port}{path}");
        let said = format!("{:x}", crc32(said.as_bytes()));
        let check = |path: &str, crc32: &str, arguments: &[&str], requests: u64| {
            let url = url(path);
            let mut all = vec![url.as_str(), "--http2", "--connections", "2", "--expect-crc32"];
            all.push(crc32);
            all.extend_from_slice(arguments);
            let result = load(&all);
            assert_eq!(number(&result, "errors"), 0, "{all:?}: {result}");
            // A busy machine may lag behind the rate.
            let due = number(&result, "requests") + number(&result, "unsent");
            assert_eq!(due, requests, "{all:?}: {result}");
            assert!(number(&result, "requests") > 0, "{all:?}: {result}");
            number(&result, "connections_opened")
        };
        assert_eq!(check("/http2", &said, &["--requests", "3000"], 3_000), 2);
        assert_eq!(check("/bytes", &whole, &["--requests", "40", "--streams", "7"], 40), 2);
        let open_loop = ["--rate", "2000", "--duration", "500ms", "--streams", "10"];
        assert_eq!(check("/http2", &said, &open_loop, 1_000), 2);
        let short = ["--requests", "400", "--requests-per-connection", "20", "--streams", "9"];
        assert!(check("/http2", &said, &short, 400) >= 20);
    }
    // This server does not support HTTP/2.
    let _server = tls_server(&directory, &lease);
    let refused = load(&[&format!("https://localhost:{port}/"), "--http2", "--requests", "2"]);
    assert_eq!(number(&refused, "requests"), 0, "{refused}");
    let example = refused["error_examples"]["handshake"].as_str().expect("an example");
    let is_told = ["no_application_protocol", "instead of h2 (ALPN)"];
    assert!(is_told.iter().any(|told| example.contains(told)), "{example}");
}

#[test]
fn tls_is_spoken_as_asked() {
    require!("nginx", "openssl");
    let (directory, lease) = (TempDir::new("tls"), Lease::new());
    let _server = tls_server(&directory, &lease);
    let url = format!("https://localhost:{}/", lease.address().port());
    let cases: &[(&[&str], &str)] = &[
        (&[], "TLSv1.3 TLS_AES_256_GCM_SHA384"),
        (
            &["--tls-version", "1.3", "--tls-cipher", "TLS_AES_256_GCM_SHA384"],
            "TLSv1.3 TLS_AES_256_GCM_SHA384",
        ),
        (
            &["--tls-version", "1.3", "--tls-cipher", "TLS_AES_128_GCM_SHA256"],
            "TLSv1.3 TLS_AES_128_GCM_SHA256",
        ),
        (&["--tls-cipher", "ECDHE-RSA-AES256-GCM-SHA384"], "TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384"),
        (
            &["--tls-version", "1.2", "--tls-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
            "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256",
        ),
    ];
    for (arguments, said) in cases {
        for resume in ["on", "off"] {
            let crc32 = format!("{:x}", crc32(said.as_bytes()));
            let mut all = vec![url.as_str(), "--connections", "4", "--requests", "200"];
            all.extend([
                "--requests-per-connection",
                "5",
                "--tls-resume",
                resume,
                "--expect-crc32",
                &crc32,
            ]);
            all.extend_from_slice(arguments);
            let result = load(&all);
            assert_eq!(number(&result, "requests"), 200, "{all:?}: {result}");
            assert_eq!(number(&result, "errors"), 0, "{all:?}: {result}");
            let resumed = number(&result, "sessions_resumed");
            assert_eq!(resumed > 0, resume == "on", "{all:?}: {result}");
            // Each of the 4 users performs one full handshake and resumes that session. Without resumption, all handshakes
            // are full.
            let made = &result["handshakes"];
            assert_eq!(number(made, "resumed"), resumed, "{all:?}: {result}");
            assert_eq!(number(made, "full") == 4, resume == "on", "{all:?}: {result}");
        }
    }
    let authority = directory.path().join("cert.pem").display().to_string();
    let trusting = load(&[&url, "--requests", "10", "--tls-ca", &authority]);
    assert_eq!(number(&trusting, "requests"), 10, "{trusting}");
    let other = TempDir::new("tls");
    let other_lease = Lease::new();
    let _other = tls_server(&other, &other_lease);
    let stranger = format!("https://localhost:{}/", other_lease.address().port());
    let wary = load(&[&stranger, "--requests", "3", "--tls-ca", &authority]);
    assert_eq!(number(&wary, "requests"), 0, "{wary}");
    assert!(wary["errors_by_kind"]["handshake"].as_u64() >= Some(3), "{wary}");
    let example = wary["error_examples"]["handshake"].as_str().expect("an example");
    assert!(example.contains("certificate"), "{example}");
}

#[test]
fn wrong_usage_says_what_is_wrong() {
    let check = |arguments: &[&str], expected: &str| {
        let output = Command::new(program())
            .arg("load")
            .args(arguments)
            .output()
            .expect("running weir-bench");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    };
    check(&["127.0.0.1:80/"], "http://");
    check(&["ftp://127.0.0.1/"], "http://");
    check(&["http://user@127.0.0.1/"], "header");
    check(&["http://name.invalid/"], "name.invalid");
    check(&["http://127.0.0.1/", "--duration", "5"], "30s");
    check(&["http://127.0.0.1/", "--duration", "5s", "--requests", "5"], "cannot be used with");
    check(&["http://127.0.0.1/", "--rate", "0"], "20000");
    check(&["http://127.0.0.1/", "--header", "Content-Length: 5"], "Content-Length");
    check(&["http://127.0.0.1/", "--header", "A: b\r\nC: d"], "control character");
    check(&["http://127.0.0.1/", "--method", "GET /"], "a method");
    check(&["https://127.0.0.1/", "--tls-cipher", "RC4-MD5"], "ECDHE-RSA-AES256-GCM-SHA384");
    check(&["https://127.0.0.1/", "http://127.0.0.1/"], "https");
    check(&["http://127.0.0.1/", "--source", "127.0.0.9-127.0.0.1"], "lowest first");
    check(&["http://127.0.0.1/", "--body", "/nonexistent"], "/nonexistent");
    check(
        &["http://127.0.0.1/", "--body", "/dev/zero"],
        "/dev/zero: a request body has at most 64 MiB",
    );
    for size in ["67108865", "65MiB", "1000000GiB", "17179869183GiB"] {
        check(&["http://127.0.0.1/", "--body-size", size], "a request body has at most 64 MiB");
    }
}

#[test]
fn a_peer_that_is_not_where_it_was_said_to_be_ends_a_run_before_it_begins() {
    let directory = TempDir::new("absent-peer");
    let folder = directory.path().join("run");
    let output = Command::new(program())
        .args(["run", "quick", "--nginx", "/nonexistent", "--output"])
        .arg(&folder)
        .arg("--weir")
        .arg(weir_binary())
        // Uses a lock of its own, not the lock of another run.
        .env("TMPDIR", directory.path())
        .output()
        .expect("running weir-bench");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("nginx") && text.contains("/nonexistent"), "{text}");
    assert!(!folder.exists(), "{text}");
}

#[test]
fn a_signal_ends_a_load_with_what_it_has() {
    let origin = Origin::start(1, &[]);
    let (directory, url) = (TempDir::new("load"), origin.url(0, "/1"));
    let log = directory.path().join("output.log");
    let arguments = ["load", "--json", &url, "--duration", "60s"];
    let mut process = Process::start(program(), &arguments, &log);
    weir_tests::eventually("requests arrive", weir_tests::STEP_TIMEOUT, || {
        number(&origin.counts(), "requests") > 100
    });
    process.signal(Signal::INT);
    assert!(process.wait(weir_tests::STEP_TIMEOUT).success(), "{}", process.output());
    let result: Value = serde_json::from_str(&process.output()).expect("JSON");
    assert_eq!(number(&result, "requests"), number(&origin.counts(), "requests"));
}
