//! Three real nginx servers as members, and real clients.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use weir_tests::nginx::Nginx;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{pattern, require, tools};

const FILE_MIB: u64 = 64;

fn three() -> ([Nginx; 3], Proxy) {
    let members = ["one", "two", "three"].map(Nginx::start);
    let proxy = Proxy::start(&Setup::new(&members.each_ref().map(Nginx::address)));
    (members, proxy)
}

fn curl(arguments: &[&str]) -> String {
    tools::run(
        Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--max-time", "600"])
            .args(arguments),
    )
}

#[test]
fn curl_reaches_every_member() {
    require!("nginx", "curl");
    let (_members, proxy) = three();
    let names: BTreeSet<String> = (0..9).map(|_| curl(&[&proxy.url("/name")])).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(curl(&["--data", "a=b", &proxy.url("/post")]), "posted\n");
    assert_eq!(
        curl(&[
            "--head",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            &proxy.url("/name")
        ]),
        "200"
    );
}

#[test]
fn ab_sees_no_error() {
    require!("nginx", "ab");
    let (_members, proxy) = three();
    for keep_alive in [&["-k"][..], &[]] {
        let url = proxy.url("/healthz");
        let text = tools::run(
            Command::new("ab").args(["-q", "-n", "2000", "-c", "16"]).args(keep_alive).arg(url),
        );
        assert!(text.contains("Failed requests:        0"), "{text}");
        assert!(text.contains("Complete requests:      2000"), "{text}");
        assert!(!text.contains("Non-2xx"), "{text}");
    }
}

#[test]
fn wrk_sees_no_error() {
    require!("nginx", "wrk");
    let (_members, proxy) = three();
    let text = tools::run(
        Command::new("wrk").args(["-t", "1", "-c", "32", "-d", "2s"]).arg(proxy.url("/name")),
    );
    assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
}

#[test]
fn h2load_sees_no_error() {
    require!("nginx", "h2load");
    let (_members, proxy) = three();
    let arguments = ["--h1", "-n", "20000", "-c", "50", "-m", "1"];
    let text = tools::run(Command::new("h2load").args(arguments).arg(proxy.url("/name")));
    assert!(text.contains("20000 succeeded, 0 failed, 0 errored, 0 timeout"), "{text}");
    assert!(text.contains("status codes: 20000 2xx, 0 3xx, 0 4xx, 0 5xx"), "{text}");
}

/// A large file. `WEIR_TEST_BODY_MIB` sets its size.
fn large_file(directory: &TempDir) -> std::path::PathBuf {
    let mib =
        std::env::var("WEIR_TEST_BODY_MIB").map_or(FILE_MIB, |text| text.parse().expect("MiB"));
    let path = directory.path().join("large");
    let mut file = File::create(&path).expect("a large file");
    let mut block = vec![0; 1024 * 1024];
    for number in 0..mib {
        pattern::fill(&mut block, number * 1024 * 1024);
        file.write_all(&block).expect("room for the large file");
    }
    path
}

fn checksum(path: &Path) -> String {
    let text = tools::run(Command::new("sha256sum").arg(path));
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn a_large_file_goes_up_chunked_and_comes_down_equal() {
    require!("nginx", "curl", "sha256sum");
    let member = Nginx::start("store");
    let proxy = Proxy::start(&Setup::new(&[member.address()]));
    let directory = TempDir::new("large");
    let original = large_file(&directory);
    let (original_text, expected) = (original.to_string_lossy().into_owned(), checksum(&original));

    curl(&[
        "--upload-file",
        &original_text,
        "--header",
        "Transfer-Encoding: chunked",
        &proxy.url("/up"),
    ]);
    let uploaded = member.files().join("up");
    assert_eq!(checksum(&uploaded), expected, "uploaded in chunks");

    let fetched = directory.path().join("fetched");
    curl(&["--output", &fetched.to_string_lossy(), &proxy.url("/up")]);
    assert_eq!(checksum(&fetched), expected, "downloaded");
}
