//! Responses that weir compresses, decoded by curl.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use weir_testing::decode;
use weir_tests::member::{Member, Then};
use weir_tests::nginx::Nginx;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::wire::Head;
use weir_tests::{STEP_TIMEOUT, eventually, require, tls, tools};

const ALL: &str = "compression: {}";

/// Compressible text that is not a repetition.
fn text(bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 64);
    let mut number = 1_u32;
    while text.len() < bytes {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(format!("<p class=\"row\">item {}</p>\n", number >> 16).as_bytes());
    }
    text.truncate(bytes);
    text
}

/// A member that responds as the target requests: `/text/length/SIZE`, `/text/chunked/SIZE`, `/text/close/SIZE`.
fn member() -> Member {
    Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        let parts: Vec<&str> = target.split('/').skip(1).collect();
        let [kind, how, size] = parts[..] else { return exchange.answer("") };
        let body = text(size.parse().unwrap_or(0));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}/html; charset=utf-8\r\n");
        match how {
            "length" => {
                exchange.send(format!("{head}ETag: \"a\"\r\nContent-Length: {size}\r\n\r\n"))?;
                if exchange.request.method() != "HEAD" {
                    exchange.send(&body)?;
                }
                Ok(Then::KeepAlive)
            }
            "chunked" => {
                exchange.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"))?;
                for piece in body.chunks(10_000) {
                    exchange.send(format!("{:x}\r\n", piece.len()))?;
                    exchange.send([piece, b"\r\n"].concat())?;
                }
                exchange.send("0\r\n\r\n")?;
                Ok(Then::KeepAlive)
            }
            "close" => {
                exchange.send(format!("{head}\r\n"))?;
                exchange.send(&body)?;
                Ok(Then::Close)
            }
            _ => {
                // Fewer bytes than the announced length.
                exchange.send(format!("{head}Content-Length: {size}\r\n\r\n"))?;
                exchange.send(&body[..body.len() / 2])?;
                Ok(Then::Close)
            }
        }
    })
}

fn start(member: &Member, line: &str) -> Proxy {
    Proxy::start(&Setup::new(&[member.address()]).virtual_server(line))
}

fn request(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn what_curl_decodes_is_what_the_member_sent() {
    require!("curl");
    let member = member();
    let proxy = start(&member, ALL);
    let folder = TempDir::new("compression");
    let got = folder.path().join("got");
    let mut compressed = 0.0;
    for coding in ["gzip", "br", "zstd"] {
        for how in ["length", "chunked", "close"] {
            for size in [0, 1, 1_023, 1_024, 20_000, 700_000] {
                let accept = format!("Accept-Encoding: {coding}");
                let url = proxy.url(&format!("/text/{how}/{size}"));
                let out = got.to_string_lossy();
                let arguments = ["-sS", "--max-time", "30", "--compressed", "-H", &accept];
                tools::run(Command::new("curl").args(arguments).args(["-o", &out, &url]));
                let decoded = std::fs::read(&got).unwrap_or_default();
                assert!(decoded == text(size), "{coding} {how} {size}");
                // A response that is known to be short is not compressed.
                if how != "length" || size >= 1_024 {
                    compressed += 1.0;
                }
                let _ = std::fs::remove_file(&got);
            }
        }
    }
    let count = proxy.metric("weir_virtual_server_responses_compressed_total", &["\"main\""]);
    // weir skips compression for some responses on a busy machine.
    let skipped = proxy.metric("weir_compression_reduced_total", &["how=\"skipped\""]);
    assert_eq!(count + skipped, compressed);
    let bytes = |side| proxy.metric("weir_virtual_server_compression_bytes_total", &[side]);
    assert!(bytes("\"out\"") < bytes("\"in\"") / 2.0);
}

#[test]
fn heads_say_what_was_done() {
    let member = member();
    let proxy = start(&member, ALL);
    let mut client = proxy.client();
    client.send(request("/text/length/5000", "Accept-Encoding: gzip;q=0.5, br;q=0\r\n"));
    let response = client.response();
    let field = |name: &str| response.head.field(name).map(str::to_owned);
    assert_eq!(field("content-encoding").as_deref(), Some("gzip"));
    assert_eq!(field("vary").as_deref(), Some("Accept-Encoding"));
    assert_eq!(field("etag").as_deref(), Some("W/\"a\""));
    // weir collects this short response before it sends it.
    let length = response.body.len().to_string();
    assert_eq!((field("content-length"), field("transfer-encoding")), (Some(length), None));
    assert!(response.body.len() < 2_500 && response.body.starts_with(&[0x1f, 0x8b]));
    // A client that does not accept the coding gets the original response. `Vary` is for caches.
    client.send(request("/text/length/5000", ""));
    let plain = client.response();
    assert_eq!(plain.head.field("content-encoding"), None);
    assert_eq!(plain.head.field("vary"), Some("Accept-Encoding"));
    assert_eq!((plain.head.field("etag"), plain.body.len()), (Some("\"a\""), 5_000));
    // Types of compressed data are not compressed again.
    client.send(request("/image/length/5000", "Accept-Encoding: gzip\r\n"));
    let image = client.response();
    assert_eq!((image.head.field("content-encoding"), image.head.field("vary")), (None, None));
    // The response to HEAD has the same head as the response to GET.
    client.send("HEAD /text/length/5000 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let head = client.head_response();
    assert_eq!(head.head.field("content-encoding"), Some("gzip"));
    assert_eq!(head.head.field("content-length"), None);
}

#[test]
fn settings_say_what_and_how() {
    let member = member();
    let line = "compression: { gzip: { level: 1 }, zstd: off, brotli: off, min_size: 10KiB, types: [ image/html ] }";
    let proxy = start(&member, line);
    let mut client = proxy.client();
    let mut coding_of = |target: &str| {
        client.send(request(target, "Accept-Encoding: zstd, br, gzip\r\n"));
        let response = client.response();
        response.head.field("content-encoding").unwrap_or("none").to_owned()
    };
    assert_eq!(coding_of("/image/length/20000"), "gzip");
    assert_eq!(coding_of("/image/length/10000"), "none");
    assert_eq!(coding_of("/text/length/20000"), "none");
}

/// Each event arrives when the member has sent it, although the encoder's buffer is not full.
#[test]
fn events_are_not_held_back() {
    require!("curl");
    // The number of bytes of the body that the client has.
    let arrived = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&arrived);
    let member = Member::new(move |exchange| {
        exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        for number in 0..4 {
            let before = told.load(Ordering::Acquire);
            exchange.send(format!("data: {number}\n\n"))?;
            eventually("the event has arrived", STEP_TIMEOUT, || {
                told.load(Ordering::Acquire) > before
            });
        }
        Ok(Then::Close)
    });
    let proxy = start(&member, ALL);
    for coding in ["gzip", "br", "zstd"] {
        let mut client = proxy.client();
        arrived.store(0, Ordering::Release);
        client.send(request("/", &format!("Accept-Encoding: {coding}\r\n")));
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while !received.ends_with(b"0\r\n\r\n") {
            let count = client.stream().read(&mut buffer).expect("a part");
            assert!(count > 0, "the end before the last chunk");
            received.extend_from_slice(&buffer[..count]);
            let head_end = received.windows(4).position(|four| four == b"\r\n\r\n");
            let body = head_end.map_or(0, |end| received.len() - end - 4);
            arrived.store(body, Ordering::Release);
        }
        let head = String::from_utf8_lossy(&received).to_ascii_lowercase();
        assert!(head.contains(&format!("content-encoding: {coding}\r\n")), "{head}");
    }
}

#[test]
fn a_response_that_is_cut_off_looks_cut_off() {
    let member = member();
    let proxy = start(&member, ALL);
    let mut client = proxy.client();
    client.send(request("/text/cut/500000", "Accept-Encoding: gzip\r\n"));
    let response = client.response();
    assert_eq!(response.head.field("content-encoding"), Some("gzip"));
    assert!(!response.complete, "there is no last chunk");
}

/// If the member fails while weir collects the response, the client has received nothing and gets an error response.
#[test]
fn a_response_that_is_cut_off_while_it_is_collected_is_none() {
    let member = Member::new(|exchange| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n";
        exchange.send(format!("{head}\r\n"))?;
        exchange.send(text(50_000))?;
        if exchange.request.target() == "/stalls" {
            // Until the client disconnects or weir's timeout ends the request.
            while exchange.receive(&mut [0; 1])? > 0 {}
        }
        Ok(Then::Close)
    });
    let setup = Setup::new(&[member.address()]).virtual_server(ALL);
    let proxy = Proxy::start(&setup.http("response_body_timeout: 3s"));
    let held = || proxy.metric("weir_compression_memory_bytes", &[]);
    let mut client = proxy.client();
    let gzip = "Accept-Encoding: gzip\r\n";
    client.send(request("/cut", gzip));
    client.response().assert_status(502);
    client.send(request("/stalls", gzip));
    eventually("memory is counted", STEP_TIMEOUT, || held() > 100_000.0);
    client.response().assert_status(504);
    eventually("it is let go", STEP_TIMEOUT, || held() == 0.0);
    // The buffer is also released when a client disconnects.
    client.send(request("/stalls", gzip));
    eventually("memory is counted", STEP_TIMEOUT, || held() > 100_000.0);
    client.reset();
    eventually("it is let go", STEP_TIMEOUT, || held() == 0.0);
    let failures = proxy.metric("weir_member_failures_total", &["response"]);
    assert!(failures >= 2.0, "{failures}");
}

/// Bodies in many pieces, with another response after them, and rules for responses.
#[test]
fn collected_responses_are_whole() {
    let member = Member::new(|exchange| {
        let size: usize = exchange.request.target()[1..].parse().expect("a size");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-A: 1\r\n";
        exchange.send(&head[..20])?;
        std::thread::sleep(Duration::from_millis(5));
        exchange.send(format!("{}Content-Length: {size}\r\n\r\n", &head[20..]))?;
        for piece in text(size).chunks(size / 5 + 1) {
            exchange.send(piece)?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Then::KeepAlive)
    });
    let keep = "{ when: \"response.headers['x-a'] == '1' && request.path == '/120001'\", then: [ { set_response_header: { Cache-Control: no-transform } } ] }";
    let setup = Setup::new(&[member.address()])
        .virtual_server(ALL)
        .virtual_server("policies: [ keep ]")
        .top(&format!("policies: {{ keep: {{ rules: [ {keep} ] }} }}"));
    let proxy = Proxy::start(&setup);
    for coding in ["gzip", "zstd", "br"] {
        let mut client = proxy.client();
        for size in [1_024, 10_000, 70_000, 131_072, 131_073, 120_001] {
            client.send(request(&format!("/{size}"), &format!("Accept-Encoding: {coding}\r\n")));
            let response = client.response();
            let about = format!("{coding} {size}: {:?}", response.head);
            response.assert_status(200);
            if size == 120_001 {
                assert_eq!(response.head.field("content-encoding"), None, "{about}");
                assert!(response.body == text(size), "{about}");
                continue;
            }
            assert_eq!(response.head.field("content-encoding"), Some(coding), "{about}");
            let (body, is_whole) = decode(coding, &response.body);
            assert!(is_whole && body == text(size), "{about}");
            let is_collected = size <= 10_000 || (coding == "gzip" && size <= 131_072);
            assert_eq!(response.head.field("content-length").is_some(), is_collected, "{about}");
        }
    }
    assert_eq!(proxy.metric("weir_compression_memory_bytes", &[]), 0.0);
}

/// The head of the response that curl gets for this URL with these headers.
fn curl_head(url: &str, fields: &[&str], got: &std::path::Path) -> Head {
    let head = got.with_extension("head");
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "30", "--compressed", "-o", &got.to_string_lossy()]);
    curl.args(["-D", &head.to_string_lossy()]);
    for field in fields {
        curl.args(["-H", field]);
    }
    tools::run(curl.arg(url));
    Head::parse(&std::fs::read_to_string(head).expect("a head"))
}

/// Revalidation at nginx of a response that weir compressed and of one that it did not change.
#[test]
fn what_has_not_changed_is_not_sent_again() {
    require!("curl", "nginx");
    let nginx = Nginx::start("a");
    std::fs::write(nginx.files().join("page.html"), text(20_000)).expect("a file");
    let proxy = Proxy::start(&Setup::new(&[nginx.address()]).virtual_server(ALL));
    let folder = TempDir::new("compression");
    let (got, url) = (folder.path().join("got"), proxy.url("/page.html"));
    let gzip = "Accept-Encoding: gzip";
    let first = curl_head(&url, &[gzip], &got);
    assert!(first.start.starts_with("HTTP/1.1 200"), "{first:?}");
    assert_eq!(first.field("content-encoding"), Some("gzip"));
    assert!(std::fs::read(&got).expect("a body") == text(20_000));
    let weak = first.field("etag").expect("a tag").to_owned();
    assert!(weak.starts_with("W/\""), "{weak}");
    let strong = &weak[2..];
    let none_match = |tag: &str| format!("If-None-Match: {tag}");
    for (fields, status, etag) in [
        (&[gzip, &none_match(&weak)][..], 304, &*weak),
        (&[gzip, &none_match(&format!("\"other\", {weak}"))], 304, &weak),
        (&[gzip, &none_match(strong)], 304, strong),
        (&[gzip, &none_match("*")], 304, strong),
        (&[gzip, &none_match("W/\"other\"")], 200, &weak),
        (&["Accept-Encoding:", &none_match(strong)], 304, strong),
        (&["Accept-Encoding:"], 200, strong),
        (&[gzip, &format!("If-Match: {weak}")], 200, &weak),
        (&[gzip, &format!("If-Match: {strong}")], 200, &weak),
        (&[gzip, "Range: bytes=100-199"], 206, strong),
        (&[gzip, "Range: bytes=100-199", &format!("If-Range: {strong}")], 206, strong),
        // A range of the original body must not be combined with a compressed one.
        (&[gzip, "Range: bytes=100-199", &format!("If-Range: {weak}")], 200, &weak),
    ] {
        let head = curl_head(&url, fields, &got);
        let about = format!("{fields:?}: {head:?}");
        assert!(head.start.starts_with(&format!("HTTP/1.1 {status}")), "{about}");
        assert_eq!(head.field("etag"), Some(etag), "{about}");
        assert!(head.has_token("vary", "accept-encoding"), "{about}");
        let is_compressed = status == 200 && fields[0] == gzip;
        assert_eq!(head.field("content-encoding").is_some(), is_compressed, "{about}");
        if status == 206 {
            assert!(std::fs::read(&got).expect("a part") == text(20_000)[100..200], "{about}");
        }
    }
    let head = curl_head(&url, &[gzip, "If-Match: W/\"other\""], &got);
    assert!(head.start.starts_with("HTTP/1.1 412"), "{head:?}");
}

/// Apache accepts `If-Match` only with the strong entity tag, which weir restores from the weak tag of its compressed
/// response.
#[test]
fn apache_lets_a_client_change_what_it_has_read_compressed() {
    require!("curl", "apache2");
    let modules = "/usr/lib/apache2/modules";
    if !Path::new(modules).is_dir() {
        return tools::skip("this apache2 has its modules elsewhere than Debian's");
    }
    let (lease, folder) = (Lease::new(), TempDir::new("apache"));
    let page = folder.write("page.html", text(20_000));
    // Apache uses a weak entity tag for a file that was changed recently.
    let page = std::fs::File::options().write(true).open(page).expect("the page");
    page.set_modified(SystemTime::now() - Duration::from_secs(3_600)).expect("a time");
    folder.write("mime.types", "text/html html\n");
    let path = folder.path().display();
    let configuration = folder.write(
        "apache.conf",
        format!(
            "ServerRoot {path}\nPidFile {path}/pid\nDefaultRuntimeDir {path}\nListen {}\nServerName test\n\
             User nobody\nGroup nogroup\nErrorLog {path}/error.log\n\
             LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
             LoadModule authz_core_module {modules}/mod_authz_core.so\n\
             LoadModule mime_module {modules}/mod_mime.so\nTypesConfig {path}/mime.types\nDocumentRoot {path}\n",
            lease.address()
        ),
    );
    let program = tools::find("apache2").expect("apache2");
    let arguments = ["-X", "-f", &configuration.to_string_lossy()];
    let mut apache = Process::start(&program, &arguments, &folder.path().join("output.log"));
    apache.wait_until_listening(&[lease.address()]);
    let proxy = Proxy::start(&Setup::new(&[lease.address()]).virtual_server(ALL));
    let (got, url) = (folder.path().join("got"), proxy.url("/page.html"));
    let gzip = "Accept-Encoding: gzip";
    let first = curl_head(&url, &[gzip], &got);
    assert_eq!(first.field("content-encoding"), Some("gzip"), "{first:?}");
    let weak = first.field("etag").expect("a tag").to_owned();
    assert!(weak.starts_with("W/\""), "{weak}");
    for (if_match, status) in [
        (weak.clone(), 200),
        (format!("\"other\", {weak}"), 200),
        (format!("{weak}, {}", &weak[2..]), 200),
        ("W/\"other\"".to_owned(), 412),
    ] {
        let head = curl_head(&url, &[gzip, &format!("If-Match: {if_match}")], &got);
        assert!(head.start.starts_with(&format!("HTTP/1.1 {status}")), "{if_match}: {head:?}");
    }
}

/// A member that does not recognise the weak entity tag sends the whole response. The client gets 304.
#[test]
fn what_the_client_has_is_dropped() {
    let member = Member::new(|exchange| {
        let size: usize = exchange.request.target()[3..].parse().expect("a size");
        let body = text(size);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"a\"\r\nX-A: 1\r\n";
        if exchange.request.target().starts_with("/l/") {
            exchange.send(format!("{head}Content-Length: {size}\r\n\r\n"))?;
            if exchange.request.method() != "HEAD" {
                exchange.send(&body)?;
            }
        } else {
            exchange.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"))?;
            for piece in body.chunks(50_000) {
                exchange
                    .send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())?;
            }
            exchange.send("0\r\n\r\n")?;
        }
        Ok(Then::KeepAlive)
    });
    let setup = Setup::new(&[member.address()]).virtual_server(ALL);
    let proxy = Proxy::start(&setup.top("data_plane: { workers: 1 }"));
    let mut client = proxy.client();
    let mut ask = |method: &str, target: &str, tags: &str| {
        let fields = format!("Accept-Encoding: gzip\r\nIf-None-Match: {tags}\r\n");
        client.send(request(target, &fields).replacen("GET", method, 1));
        let response = client.try_response(method == "HEAD").expect("a response");
        assert!(response.complete && response.head.has_token("vary", "accept-encoding"));
        let field = |name: &str| response.head.field(name).map(str::to_owned);
        if response.status == 304 {
            assert_eq!(field("etag").as_deref(), Some("W/\"a\""), "{response:?}");
            let of_content = [field("content-type"), field("content-encoding")];
            let framing = [field("content-length"), field("transfer-encoding")];
            assert_eq!((of_content, framing), ([None, None], [None, None]), "{response:?}");
            assert_eq!(field("x-a").as_deref(), Some("1"));
        }
        response.status
    };
    for (method, target) in [("GET", "/l/20000"), ("GET", "/c/20000"), ("HEAD", "/l/20000")] {
        assert_eq!(ask(method, target, "\"b\", W/\"a\""), 304, "{method} {target}");
        assert_eq!(ask(method, target, "W/\"b\""), 200, "{method} {target}");
    }
    // Other methods do not get 304.
    assert_eq!(ask("POST", "/l/20000", "W/\"a\""), 200);
    assert_eq!(member.connection_count(), 1, "what was dropped was read");
    // weir does not read a long response to its end.
    assert_eq!(ask("GET", "/l/5000000", "W/\"a\""), 304);
    assert_eq!(ask("GET", "/l/20000", "W/\"a\""), 304);
    assert_eq!(member.connection_count(), 2);
    assert_eq!(ask("GET", "/c/5000000", "W/\"a\""), 304);
    assert_eq!(ask("GET", "/l/20000", "W/\"a\""), 304);
    assert_eq!(member.connection_count(), 3);
    let count = proxy.metric("weir_virtual_server_responses_total", &["\"main\"", "\"3xx\""]);
    assert_eq!(count, 7.0);
}

/// While weir compresses a long response at a high level, the same worker responds to another client between slices.
#[test]
fn others_are_served_between_slices() {
    const BYTES: usize = 2 * 1024 * 1024;
    /// Bytes that are compressed at once at this level.
    const SLICE_BYTES: usize = 16 * 1024;
    let member = Member::new(|exchange| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
        exchange.send(format!("{head}Content-Length: {BYTES}\r\n\r\n"))?;
        exchange.send(text(BYTES))?;
        Ok(Then::KeepAlive)
    });
    let here = "{ when: \"request.path == '/here'\", then: [ { respond: { status: 204 } } ] }";
    let setup = Setup::new(&[member.address()])
        .virtual_server("compression: { zstd: { level: 9 } }")
        .virtual_server("policies: [ here ]")
        .top(&format!("policies: {{ here: {{ rules: [ {here} ] }} }}"))
        .top("data_plane: { workers: 1 }");
    let proxy = Proxy::start(&setup);
    let mut other = proxy.client();
    let mut client = proxy.client();
    client.send(request("/", "Accept-Encoding: zstd\r\n"));
    let reader = std::thread::spawn(move || client.response());
    let mut answers = 0;
    while !reader.is_finished() {
        other.get("/here").assert_status(204);
        answers += 1;
    }
    let response = reader.join().expect("a response");
    let (body, is_whole) = decode("zstd", &response.body);
    assert!(is_whole && body == text(BYTES));
    println!("{answers} answers between {} slices", BYTES / SLICE_BYTES);
    assert!(answers > BYTES / SLICE_BYTES / 2, "{answers}");
}

/// Rules can exclude responses from compression, by conditions on the request or the response, collected or not.
#[test]
fn policies_leave_responses_as_they_are() {
    let member = Member::new(|exchange| {
        let target = exchange.request.target().to_owned();
        let secret = if target.starts_with("/marked") { "X-Secret: 1\r\n" } else { "" };
        let size: usize = target.rsplit('/').next().unwrap_or_default().parse().expect("a size");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"a\"\r\n";
        exchange.send(format!("{head}{secret}Content-Length: {size}\r\n\r\n"))?;
        exchange.send(text(size))?;
        Ok(Then::KeepAlive)
    });
    let rules = "{ when: \"request.path.startsWith('/account/')\", then: [ { compression: off } ] }, \
                 { when: \"'x-secret' in response.headers\", then: [ { compression: off } ] }";
    let setup = Setup::new(&[member.address()])
        .virtual_server(ALL)
        .virtual_server("policies: [ secrets ]")
        .top(&format!("policies: {{ secrets: {{ strategy: all_match, rules: [ {rules} ] }} }}"));
    let proxy = Proxy::start(&setup);
    let mut client = proxy.client();
    for (target, is_compressed) in [
        ("/5000", true),
        ("/account/5000", false),
        ("/marked/5000", false),
        ("/100000", true),
        ("/marked/100000", false),
        ("/marked/1000000", false),
        ("/account/1000000", false),
        ("/1000000", true),
    ] {
        client.send(request(target, "Accept-Encoding: gzip\r\n"));
        let response = client.response();
        response.assert_status(200);
        let about = format!("{target}: {:?}", response.head);
        assert_eq!(response.head.field("content-encoding").is_some(), is_compressed, "{about}");
        let tag = if is_compressed { "W/\"a\"" } else { "\"a\"" };
        assert_eq!(response.head.field("etag"), Some(tag), "{about}");
        if !is_compressed {
            let size: usize = target.rsplit('/').next().unwrap_or_default().parse().expect("size");
            assert!(response.body == text(size), "{about}");
        }
    }
}

/// A TLS connection delivers whole records, which are larger than the slices that are read from plain connections.
#[test]
fn responses_of_secure_members_are_compressed() {
    let member = member();
    let inner = Proxy::start(&Setup::new(&[member.address()]).virtual_server(&tls::shop("")));
    let trusted = format!("ca: {}, server_name: shop.example", tls::file("authorities.crt"));
    let secure = format!("tls: {{ {trusted} }}");
    let setup = Setup::new(&[inner.address()]).pool(&secure);
    let levels = "compression: { gzip: { level: 9 }, zstd: { level: 9 }, brotli: { level: 9 } }";
    let proxy = Proxy::start(&setup.virtual_server(levels));
    for coding in ["gzip", "zstd", "br"] {
        let mut client = proxy.client();
        for how in ["length", "chunked"] {
            for size in [1_024, 17_000, 60_000, 700_000] {
                let target = format!("/text/{how}/{size}");
                client.send(request(&target, &format!("Accept-Encoding: {coding}\r\n")));
                let response = client.response();
                let about = format!("{coding} {target}: {:?}", response.head);
                let (body, is_whole) = match response.head.field("content-encoding") {
                    Some(found) => decode(found, &response.body),
                    // weir skips compression for some responses on a busy machine.
                    None => (response.body, true),
                };
                assert!(response.complete && is_whole && body == text(size), "{about}");
            }
        }
    }
    let count = proxy.metric("weir_virtual_server_responses_compressed_total", &["\"main\""]);
    let skipped = proxy.metric("weir_compression_reduced_total", &["how=\"skipped\""]);
    assert_eq!(count + skipped, 24.0);
    assert!(count > 0.0);
}
