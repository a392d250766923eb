//! Virtual servers with TLS, and the clients curl and openssl.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_tests::member::{Member, Then};
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{require, tls, tools};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";

/// A virtual server with both certificates. The member echoes.
fn start(member: &Member, more: &str) -> Proxy {
    Proxy::start(&Setup::new(&[member.address()]).virtual_server(&tls::shop(more)))
}

fn handshakes(proxy: &Proxy, result: &str) -> f64 {
    let label = format!("\"{result}\"");
    proxy.metric("weir_virtual_server_tls_handshakes_total", &["\"main\"", &label])
}

#[test]
fn bodies_come_whole_through_every_version_suite_and_certificate() {
    require!("curl", "openssl");
    let member = Member::new(|exchange| {
        let body = std::mem::take(&mut exchange.request.body);
        exchange.answer(body)
    });
    let proxy = start(&member, "");
    let body: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 253) as u8).collect();
    let folder = TempDir::new("tls");
    let sent = folder.write("sent", &body);
    let got = folder.path().join("got");
    let ways = [
        ["--tlsv1.3", "--tls13-ciphers", "TLS_AES_128_GCM_SHA256"],
        ["--tlsv1.3", "--tls13-ciphers", "TLS_AES_256_GCM_SHA384"],
        ["--tlsv1.3", "--tls13-ciphers", "TLS_CHACHA20_POLY1305_SHA256"],
        ["--tls-max=1.2", "--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"],
        ["--tls-max=1.2", "--ciphers", "ECDHE-RSA-AES256-GCM-SHA384"],
        ["--tls-max=1.2", "--ciphers", "ECDHE-RSA-CHACHA20-POLY1305"],
        ["--tls-max=1.2", "--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"],
        ["--tls-max=1.2", "--ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384"],
        ["--tls-max=1.2", "--ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    ];
    for way in ways {
        let way: Vec<&str> = way.iter().flat_map(|word| word.split('=')).collect();
        let upload = format!("@{}", sent.display());
        let to = got.to_string_lossy();
        let arguments = [&way[..], &["--data-binary", &upload, "-o", &to]].concat();
        tls::get(proxy.address(), "/echo", &arguments);
        assert!(std::fs::read(&got).expect("a file") == body, "{way:?}");
    }
    assert_eq!(handshakes(&proxy, "full"), 9.0);
    assert_eq!(handshakes(&proxy, "failed"), 0.0);
}

#[test]
fn requests_follow_each_other_and_the_end_is_announced() {
    require!("curl", "openssl");
    let member = Member::named("here");
    let proxy = start(&member, "");
    let both = "https://shop.example/{a,b,c,d}";
    let answers = tools::run(tls::curl(proxy.address(), "shop.example").arg(both));
    assert_eq!(answers, "hereherehere here".replace(' ', ""));
    assert_eq!(handshakes(&proxy, "full"), 1.0, "one connection for all");
    for version in ["-tls1_2", "-tls1_3"] {
        let text = tls::s_client_text(proxy.address(), &[version], REQUEST);
        assert!(text.contains("here") && text.contains("Verify return code: 0 (ok)"), "{text}");
        // OpenSSL 3 reports this error if a connection ends without close_notify.
        assert!(!text.contains("unexpected eof"), "{text}");
    }
}

#[test]
fn conditions_and_members_learn_of_it() {
    require!("curl");
    let member = Member::new(|exchange| {
        let told = exchange.request.head.field("x-told").unwrap_or("nothing").to_owned();
        exchange.answer(told)
    });
    let rule =
        "- then: [ { set_header: { X-Told: \"${request.scheme} ${tls.version} ${tls.sni}\" } } ]";
    let setup = Setup::new(&[member.address()])
        .virtual_server(&tls::shop(""))
        .virtual_server("policies: [ tell ]")
        .virtual_server("hsts: { include_subdomains: true }")
        .top(&format!("policies:\n  tell:\n    rules:\n      {rule}"));
    let proxy = Proxy::start(&setup);
    let answer = tls::get(proxy.address(), "/", &["-i", "--tls-max", "1.2"]);
    assert!(answer.ends_with("https 1.2 shop.example"), "{answer}");
    let hsts = "strict-transport-security: max-age=31536000; includeSubDomains\r\n";
    assert!(answer.contains(hsts), "{answer}");
}

#[test]
fn plain_requests_are_sent_to_tls() {
    let member = Member::named("here");
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).virtual_server("https_redirect: true"));
    let mut client = proxy.client();
    client.send("GET /a%20b?c=d HTTP/1.1\r\nHost: Shop.Example:8080\r\n\r\n");
    let response = client.response();
    assert_eq!(response.status, 308);
    assert_eq!(response.head.field("location"), Some("https://shop.example/a%20b?c=d"));
    assert_eq!(member.request_count(), 0);
    let redirect = "https_redirect: { status: 301, port: 8443 }";
    let proxy = Proxy::start(&Setup::new(&[member.address()]).virtual_server(redirect));
    let mut client = proxy.client();
    client.send("GET /a?b HTTP/1.1\r\nHost: shop.example:8080\r\n\r\n");
    let response = client.response();
    assert_eq!(response.status, 301);
    assert_eq!(response.head.field("location"), Some("https://shop.example:8443/a?b"));
}

/// A session that openssl has stored is resumed after a reload with another certificate, and at another instance with the
/// same key file.
#[test]
fn sessions_go_on_over_reloads_and_instances() {
    require!("openssl");
    let member = Member::named("here");
    let folder = TempDir::new("sessions");
    // A TLS 1.2 cipher suite requires one type of certificate.
    let cipher = ["-cipher", "ECDHE-RSA-AES256-GCM-SHA384"];
    let key_file = format!("ticket_key_file: {}", tls::file("tickets.keys"));
    for (version, more) in [
        ("-tls1_2", key_file.as_str()),
        ("-tls1_3", &key_file),
        ("-tls1_2", ""),
        ("-tls1_3", ""),
        ("-tls1_2", "resumption: stateful"),
        ("-tls1_3", "resumption: stateful"),
    ] {
        let proxy = start(&member, more);
        let session = folder.path().join("session").to_string_lossy().into_owned();
        let first = tls::s_client_text(
            proxy.address(),
            &[version, cipher[0], cipher[1], "-sess_out", &session],
            REQUEST,
        );
        assert!(first.contains("New, TLSv1"), "{first}");
        let again = |proxy: &Proxy| {
            let arguments = [version, cipher[0], cipher[1], "-sess_in", &session];
            let text = tls::s_client_text(proxy.address(), &arguments, REQUEST);
            assert!(text.contains("here"), "{text}");
            text.contains("Reused, TLSv1")
        };
        let only_rsa = format!("tls: {{ certificates: [ {} ], {more} }}", tls::pair("shop-rsa"));
        proxy.reload_and_wait(&Setup::new(&[member.address()]).virtual_server(&only_rsa));
        assert!(again(&proxy), "{version} {more}: after a reload");
        assert_eq!(handshakes(&proxy, "resumed"), 1.0, "{version} {more}");
        let other = start(&member, more);
        // openssl removes a TLS 1.3 ticket that a server has accepted. At the other instance it presents the ticket again.
        assert_eq!(again(&other), more == key_file, "{version} {more}: at another instance");
    }
    let proxy = start(&member, "resumption: off");
    let session = folder.path().join("none").to_string_lossy().into_owned();
    tls::s_client_text(proxy.address(), &["-tls1_3", "-sess_out", &session], REQUEST);
    assert!(!std::path::Path::new(&session).exists(), "there was no ticket");
}

#[test]
fn clients_show_certificates() {
    require!("curl", "openssl");
    let member = Member::new(|exchange| {
        let subject = exchange.request.head.field("x-subject").unwrap_or("none").to_owned();
        exchange.answer(subject)
    });
    let rule = "- then: [ { set_header: { X-Subject: \"${tls.client_certificate.subject}\" } } ]";
    let setup = |mode: &str| {
        let more = format!(
            "client_certificates: {{ mode: {mode}, ca: {}, crl: {} }}",
            tls::file("authorities.crt"),
            tls::file("revoked.crl")
        );
        Setup::new(&[member.address()])
            .virtual_server(&tls::shop(&more))
            .virtual_server("policies: [ tell ]")
            .top(&format!("policies:\n  tell:\n    rules:\n      {rule}"))
    };
    let with = |proxy: &Proxy, version: &str, name: Option<&str>| {
        let files = name
            .map(|name| [format!("{name}.crt"), format!("{name}.key")].map(|it| tls::file(&it)));
        let mut curl = tls::curl(proxy.address(), "shop.example");
        curl.args(["--tls-max", version]);
        if let Some([cert, key]) = &files {
            curl.args(["--cert", cert, "--key", key]);
        }
        let output = curl.arg("https://shop.example/").output().expect("curl");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for version in ["1.2", "1.3"] {
        let proxy = Proxy::start(&setup("require"));
        assert_eq!(with(&proxy, version, None), None);
        assert_eq!(with(&proxy, version, Some("client")).as_deref(), Some("CN=A client"));
        assert_eq!(with(&proxy, version, Some("revoked")), None);
        assert_eq!(handshakes(&proxy, "failed"), 2.0);
        let proxy = Proxy::start(&setup("request"));
        assert_eq!(with(&proxy, version, None).as_deref(), Some(""));
        assert_eq!(with(&proxy, version, Some("client")).as_deref(), Some("CN=A client"));
        assert_eq!(with(&proxy, version, Some("revoked")), None);
    }
}

#[test]
fn what_is_in_certificates_of_clients_can_be_used() {
    require!("curl", "openssl");
    let member = Member::new(|exchange| {
        let found = exchange.request.head.field("x-certificate").unwrap_or("none").to_owned();
        exchange.answer(found)
    });
    let is_named = "'client.example' in tls.client_certificate.dns_names ? 'yes' : 'no'";
    let text = format!(
        "${{tls.client_certificate.serial}} ${{tls.client_certificate.fingerprint}} \
         ${{tls.client_certificate.uris.size()}} ${{{is_named}}}"
    );
    let rule = format!("- then: [ {{ set_header: {{ X-Certificate: \"{text}\" }} }} ]");
    let more =
        format!("client_certificates: {{ mode: request, ca: {} }}", tls::file("authorities.crt"));
    let setup = Setup::new(&[member.address()])
        .virtual_server(&tls::shop(&more))
        .virtual_server("policies: [ tell ]")
        .top(&format!("policies:\n  tell:\n    rules:\n      {rule}"));
    let proxy = Proxy::start(&setup);
    let [certificate, key] = ["client.crt", "client.key"].map(tls::file);
    let ask = |files: &[&str]| {
        let mut curl = tls::curl(proxy.address(), "shop.example");
        let output = curl.args(files).arg("https://shop.example/").output().expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(ask(&[]), "0 no", "blanks around a value are none of it");
    let said = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-serial", "-fingerprint", "-sha256", "-in", &certificate])
        .output()
        .expect("openssl");
    let said = String::from_utf8_lossy(&said.stdout).to_lowercase().replace(':', "");
    let values: Vec<&str> = said.lines().filter_map(|line| line.split('=').nth(1)).collect();
    let [serial, fingerprint] = values[..] else { panic!("{said}") };
    let found = ask(&["--cert", &certificate, "--key", &key]);
    assert_eq!(found, format!("{serial} {fingerprint} 0 yes"));
}

#[test]
fn names_have_certificates_and_settings_of_their_own() {
    require!("openssl");
    let member = Member::named("here");
    let more = "by_name: [ { names: [ partner.example ], profile: partner } ]";
    let profile = format!(
        "profiles: {{ tls: {{ partner: {{ certificates: [ {} ], min_version: \"1.3\" }} }} }}",
        tls::pair("partner")
    );
    let setup = |more: &str| {
        let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop(more));
        if more.contains("partner") { setup.top(&profile) } else { setup }
    };
    let proxy = Proxy::start(&setup(more));
    let subject_of = |name: &str, version: &str| {
        let text = tls::s_client_text(proxy.address(), &["-servername", name, version], REQUEST);
        let line = text.lines().find(|line| line.starts_with("subject=")).map(str::to_owned);
        line.unwrap_or_default()
    };
    assert_eq!(subject_of("PARTNER.example", "-tls1_3"), "subject=CN = partner.example");
    assert_eq!(subject_of("partner.example", "-tls1_2"), "", "its profile has 1.3 alone");
    assert_eq!(subject_of("a.shop.example", "-tls1_2"), "subject=CN = shop.example");
    assert_eq!(subject_of("nobody.example", "-tls1_3"), "subject=CN = shop.example");
    let status_of = |name: &str, host: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let text = tls::s_client_text(proxy.address(), &["-servername", name], request.as_bytes());
        let line = text.lines().find(|line| line.starts_with("HTTP/1.1 ")).map(str::to_owned);
        line.unwrap_or_default()
    };
    // A client that meets the requirements of one name does not necessarily meet those of another name.
    assert_eq!(status_of("partner.example", "PARTNER.example:443"), "HTTP/1.1 200 OK");
    assert_eq!(status_of("shop.example", "a.shop.example"), "HTTP/1.1 200 OK");
    for (name, host) in [("shop.example", "partner.example"), ("partner.example", "shop.example")] {
        assert_eq!(status_of(name, host), "HTTP/1.1 421 Misdirected Request", "{name} {host}");
    }
    let strict = Proxy::start(&setup("strict_sni: true"));
    let text = tls::s_client_text(strict.address(), &["-servername", "nobody.example"], REQUEST);
    assert!(!text.contains("here") && !text.contains("subject="), "{text}");
    assert!(text.contains("SSL alert number 112"), "unrecognized_name: {text}");
    assert!(tls::s_client_text(strict.address(), &[], REQUEST).contains("here"));
}

#[test]
fn ocsp_is_sent_along() {
    require!("openssl");
    let member = Member::named("here");
    let stapled = format!(
        "tls: {{ certificates: [ {{ cert: {}, key: {}, ocsp: {} }} ] }}",
        tls::file("shop-ec.crt"),
        tls::file("shop-ec.key"),
        tls::file("shop-ec.ocsp")
    );
    let proxy = Proxy::start(&Setup::new(&[member.address()]).virtual_server(&stapled));
    for version in ["-tls1_2", "-tls1_3"] {
        let text = tls::s_client_text(proxy.address(), &["-status", version], REQUEST);
        assert!(text.contains("OCSP Response Status: successful"), "{text}");
    }
}

#[test]
fn a_certificate_is_changed_under_load_without_a_failure() {
    require!("ab");
    let member = Member::named("here");
    let proxy = start(&member, "");
    let url = format!("https://{}/", proxy.address());
    let served = || proxy.metric("weir_virtual_server_responses_total", &["\"2xx\""]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // One load after the other, until there were enough reloads. A connection for each request.
        let loads = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                let result =
                    tools::run(Command::new("ab").args(["-q", "-c", "8", "-n", "200", &url]));
                let failed = result.lines().find(|line| line.starts_with("Failed requests:"));
                let is_good =
                    failed.is_some_and(|line| line.split_whitespace().last() == Some("0"));
                assert!(is_good && !result.contains("Non-2xx"), "{result}");
            }
        });
        for reload in 0..12 {
            let before = served();
            weir_tests::eventually("requests are served", weir_tests::STEP_TIMEOUT, || {
                loads.is_finished() || served() > before + 20.0
            });
            let only = if reload % 2 == 0 { "shop-rsa" } else { "shop-ec" };
            let line = format!("tls: {{ certificates: [ {} ] }}", tls::pair(only));
            proxy.reload_and_wait(&Setup::new(&[member.address()]).virtual_server(&line));
        }
        is_over.store(true, Ordering::Release);
    });
}

#[test]
fn who_does_not_speak_tls_or_takes_too_long_is_shown_out() {
    let member = Member::named("here");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server(&tls::shop("handshake_timeout: 500ms"))
            .access_log(),
    );
    let mut received = Vec::new();
    let begun = Instant::now();
    let mut silent = TcpStream::connect(proxy.address()).expect("connected");
    let mut half = TcpStream::connect(proxy.address()).expect("connected");
    half.write_all(&[22, 3, 1, 2, 0, 1]).expect("written");
    silent.read_to_end(&mut received).expect("an end");
    half.read_to_end(&mut received).expect("an end");
    assert!(begun.elapsed() >= Duration::from_millis(450), "{:?}", begun.elapsed());
    weir_tests::eventually("all are counted", weir_tests::STEP_TIMEOUT, || {
        handshakes(&proxy, "failed") == 2.0
    });
    proxy.wait_for_open_connections("main", 0.0);
    assert_eq!(member.request_count(), 0);
}

/// The bytes that weir sends on a connection that starts with these bytes, until the close.
fn answer_to(proxy: &Proxy, bytes: &[u8]) -> Vec<u8> {
    let mut client = TcpStream::connect(proxy.address()).expect("connected");
    client.set_read_timeout(Some(weir_tests::STEP_TIMEOUT)).expect("a timeout");
    client.write_all(bytes).expect("written");
    let mut received = Vec::new();
    client.read_to_end(&mut received).expect("an end");
    received
}

#[test]
fn a_plain_request_is_told_that_this_is_no_place_for_it() {
    let member = Member::named("here");
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).virtual_server(&tls::shop("")).access_log());
    for request in ["GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", "P", "OPTIONS * HTTP/1.0\r\n"] {
        let answer = String::from_utf8(answer_to(&proxy, request.as_bytes())).expect("text");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert!(
            answer.ends_with("400 A plain HTTP request was sent to an HTTPS port\n"),
            "{answer}"
        );
    }
    assert_eq!(handshakes(&proxy, "failed"), 3.0);
    proxy.wait_for_open_connections("main", 0.0);
    assert_eq!(member.request_count(), 0);
}

#[test]
fn what_is_no_client_hello_gets_an_alert() {
    const UNEXPECTED_MESSAGE: u8 = 10;
    const RECORD_OVERFLOW: u8 = 22;
    const ILLEGAL_PARAMETER: u8 = 47;
    const DECODE_ERROR: u8 = 50;
    const PROTOCOL_VERSION: u8 = 70;
    let member = Member::named("here");
    let proxy = start(&member, "");
    let cases: [(&[u8], u8); 9] = [
        (b"SSH-2.0-OpenSSH_9.6\r\n", UNEXPECTED_MESSAGE),
        (b"QUIT\r\n", UNEXPECTED_MESSAGE),
        (&[24, 3, 3, 0, 1, 0], UNEXPECTED_MESSAGE),
        (&[22, 2, 0, 0, 5], PROTOCOL_VERSION),
        (&[22, 3, 1, 0xff, 0xff], RECORD_OVERFLOW),
        (&[21, 3, 1, 0, 2, 1, 0], UNEXPECTED_MESSAGE),
        (&[22, 3, 1, 0, 4, 2, 0, 0, 0], UNEXPECTED_MESSAGE),
        (&[22, 3, 1, 0, 4, 1, 1, 0, 0], ILLEGAL_PARAMETER),
        (&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0], DECODE_ERROR),
    ];
    for (bytes, alert) in cases {
        assert_eq!(answer_to(&proxy, bytes), [21, 3, 3, 0, 2, 2, alert], "{bytes:?}");
    }
    assert_eq!(handshakes(&proxy, "failed"), 9.0);
    proxy.wait_for_open_connections("main", 0.0);
    assert_eq!(member.request_count(), 0);
}

/// An alert during a handshake is encrypted as soon as encryption has started.
#[test]
fn a_record_of_unknown_type_ends_a_handshake_at_once() {
    require!("openssl");
    let member = Member::named("here");
    let proxy = start(&member, "handshake_timeout: 60s");
    let mut hello = tls::first_flight(&["-tls1_3"]);
    hello.extend_from_slice(&[24, 3, 3, 0, 100]);
    let answer = answer_to(&proxy, &hello);
    assert_eq!(answer.first(), Some(&22), "a ServerHello first");
    assert_eq!(handshakes(&proxy, "failed"), 1.0);
}

#[test]
fn handshakes_at_a_time_have_a_limit() {
    require!("curl");
    let member = Member::named("here");
    let proxy = Proxy::start(
        &Setup::new(&[member.address()])
            .virtual_server(&tls::shop("handshakes_max: 2, handshake_timeout: 20s"))
            .top("data_plane: { workers: 2 }"),
    );
    proxy.settle();
    let held = [(); 2].map(|()| TcpStream::connect(proxy.address()).expect("connected"));
    weir_tests::eventually("both are under way", weir_tests::STEP_TIMEOUT, || {
        proxy.metric("weir_virtual_server_connections_open", &["\"main\""]) == 2.0
    });
    let mut third = TcpStream::connect(proxy.address()).expect("connected");
    let mut received = Vec::new();
    // weir closes at once, with or without a reset.
    let _ = third.read_to_end(&mut received);
    assert!(received.is_empty());
    assert_eq!(handshakes(&proxy, "limited"), 1.0);
    drop(held);
    proxy.wait_for_open_connections("main", 0.0);
    assert_eq!(tls::get(proxy.address(), "/", &[]), "here");
}

/// A resumed session must meet the requirements of a full handshake. It is not resumed if other client certificates are
/// required since then.
#[test]
fn a_session_is_no_way_around_a_revocation() {
    require!("openssl");
    let member = Member::named("here");
    let folder = TempDir::new("revoked");
    let session = folder.path().join("session").to_string_lossy().into_owned();
    let (cert, key) = (tls::file("revoked.crt"), tls::file("revoked.key"));
    let key_file = format!("ticket_key_file: {}", tls::file("tickets.keys"));
    for resumption in ["resumption: tickets", &key_file, "resumption: stateful"] {
        for version in ["-tls1_2", "-tls1_3"] {
            let setup = |crl: &str| {
                let ca = tls::file("authorities.crt");
                let more = format!("{resumption}, client_certificates: {{ ca: {ca}{crl} }}");
                Setup::new(&[member.address()]).virtual_server(&tls::shop(&more))
            };
            let proxy = Proxy::start(&setup(""));
            let ask = |how: &str| {
                let arguments = [version, "-cert", &cert, "-key", &key, how, &session];
                tls::s_client_text(proxy.address(), &arguments, REQUEST)
            };
            assert!(ask("-sess_out").contains("here"), "{resumption} {version}");
            proxy.reload_and_wait(&setup(&format!(", crl: {}", tls::file("revoked.crl"))));
            let text = ask("-sess_in");
            assert!(!text.contains("here") && !text.contains("Reused"), "{resumption} {text}");
        }
    }
}

/// A connection must also meet the requirements. A client that was accepted earlier may send no more requests if other
/// certificates are required since then.
#[test]
fn an_open_connection_is_no_way_around_a_revocation() {
    require!("openssl");
    let member = Member::named("here");
    let setup = |more: &str| {
        let own = |text: &str| text.replace("more", more);
        let ca = tls::file("authorities.crt");
        let line = own(&format!("client_certificates: {{ mode: request, ca: {ca}more }}"));
        Setup::new(&[member.address()]).virtual_server(&tls::shop(&line))
    };
    let proxy = Proxy::start(&setup(""));
    let mut child = Command::new("openssl")
        .args(["s_client", "-quiet", "-servername", "shop.example", "-connect"])
        .arg(proxy.address().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    let request = b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";
    let mut ask = || {
        stdin.write_all(request).expect("written");
        let mut text = Vec::new();
        while !text.ends_with(b"here") {
            let mut byte = [0];
            stdout.read_exact(&mut byte).expect("an answer");
            text.push(byte[0]);
        }
    };
    ask();
    // The connection continues after a reload that does not change the required client certificates.
    proxy.reload_and_wait(&setup("").http("idle_timeout: 50s"));
    ask();
    proxy.reload_and_wait(&setup(&format!(", crl: {}", tls::file("revoked.crl"))));
    // weir may have closed the connection already.
    let _ = stdin.write_all(request);
    let mut text = String::new();
    stdout.read_to_string(&mut text).expect("an end");
    assert!(!text.contains("here"), "{text}");
    drop(stdin);
    child.wait().expect("an end");
    assert_eq!(member.request_count(), 2);
}

/// Sends as many bytes as weir buffers before it detects that the ClientHello is invalid.
#[test]
fn a_hello_that_is_too_long_is_shown_out() {
    let member = Member::named("here");
    let proxy = start(&member, "");
    let record = |fragment: &[u8]| {
        let length = (fragment.len() as u16).to_be_bytes();
        [&[22, 3, 1], &length[..], fragment].concat()
    };
    for announced in [30_000_usize, 65_504] {
        let mut message = vec![0; 4 + announced];
        message[..4].copy_from_slice(&[1, 0, (announced >> 8) as u8, announced as u8]);
        // The record with the last bytes of the message contains further bytes, and its last byte is late.
        let (most, end) = message.split_at(message.len() - 10);
        let mut bytes: Vec<u8> = most.chunks(1 << 14).flat_map(record).collect();
        let filler = vec![0; if announced > 32_768 { 18_432 } else { 1 << 14 }];
        bytes.extend_from_slice(&record(&[end, &filler[end.len()..]].concat()));
        let (last, rest) = bytes.split_last().expect("bytes");
        let mut client = TcpStream::connect(proxy.address()).expect("connected");
        // weir may close the connection before all bytes are sent.
        let _ = client.write_all(rest);
        std::thread::sleep(Duration::from_millis(300));
        let _ = client.write_all(&[&[*last], &[0; 100_000][..]].concat());
        let _ = client.read_to_end(&mut Vec::new());
    }
    assert_eq!(proxy.metric("weir_worker_panics_total", &[]), 0.0);
    proxy.wait_for_open_connections("main", 0.0);
}

/// Waits until the key log has this number of lines. Returns the lines. A missing file has none.
fn key_log_lines(path: &std::path::Path, count: usize) -> Vec<String> {
    let read = || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    weir_tests::eventually("the lines are written", weir_tests::STEP_TIMEOUT, || {
        read().len() >= count
    });
    read()
}

#[test]
fn secrets_are_written_down_only_when_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    require!("curl");
    let member = Member::named("here");
    let folder = TempDir::new("key-log");
    let path = folder.path().join("secrets");
    let variable = path.to_string_lossy().into_owned();
    // The pool uses TLS. The key log also contains the secrets of connections to its member.
    let inner = start(&member, "");
    let setup = Setup::new(&[inner.address()])
        .virtual_server(&tls::shop(""))
        .pool(&format!(
            "tls: {{ ca: {}, server_name: shop.example }}",
            tls::file("authorities.crt")
        ))
        .environment("SSLKEYLOGFILE", &variable);
    let proxy = Proxy::start(&setup);
    assert_eq!(tls::get(proxy.address(), "/", &[]), "here");
    assert!(!path.exists(), "the variable alone does nothing");
    drop(proxy);

    let mut proxy = Proxy::start(&setup.clone().argument("--tls-key-log"));
    assert_eq!(tls::get(proxy.address(), "/", &[]), "here");
    // With TLS 1.3, each side has two handshake secrets, two traffic secrets and one exporter secret.
    let lines = key_log_lines(&path, 10);
    let of = |label: &str| lines.iter().filter(|line| line.starts_with(label)).count();
    assert_eq!(of("CLIENT_TRAFFIC_SECRET_0 "), 2, "{lines:?}");
    assert_eq!(of("SERVER_HANDSHAKE_TRAFFIC_SECRET "), 2, "{lines:?}");
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words.len() == 3 && words[1].len() == 64 && words[2].len() >= 64, "{line}");
    }
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(proxy.process().output().contains("warning TLS key log is ON"), "a loud warning");
    // The key log continues after a reload.
    proxy.reload_and_wait(&setup);
    let before = lines.len();
    assert_eq!(tls::get(proxy.address(), "/", &["--tls-max", "1.2"]), "here");
    let lines = key_log_lines(&path, before + 1);
    assert!(lines[before..].iter().any(|line| line.starts_with("CLIENT_RANDOM ")), "{lines:?}");
}

#[test]
fn secrets_without_a_file_are_refused() {
    let output = Command::new(weir_binary())
        .args(["run", "--tls-key-log", "any.yaml"])
        .env_remove("SSLKEYLOGFILE")
        .output()
        .expect("weir");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("needs a file name in the environment variable SSLKEYLOGFILE"), "{told}");
}

const EARLY_DATA: &str = "resumption: stateful, early_data: true";

/// Stores a session in a file of this folder, by a complete connection. The session allows early data.
fn session_in(folder: &TempDir, proxy: &Proxy) -> String {
    let session = folder.path().join("session").to_string_lossy().into_owned();
    let arguments = ["-tls1_3", "-sess_out", &session];
    let text = tls::s_client_text(proxy.address(), &arguments, REQUEST);
    assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
    session
}

/// A member that responds with the method and the values of `Early-Data` in the request.
fn telling() -> Member {
    Member::new(|exchange| {
        let told = exchange.request.head.all("early-data").collect::<Vec<_>>().join(",");
        let answer = format!("{} told [{told}]", exchange.request.method());
        exchange.answer(answer)
    })
}

#[test]
fn early_data_is_served_and_members_are_told() {
    require!("openssl");
    let member = telling();
    let proxy = start(&member, EARLY_DATA);
    let folder = TempDir::new("early");
    let cases = [
        ("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n", "GET told [1]"),
        // The client's own header is forwarded.
        (
            "GET / HTTP/1.1\r\nHost: shop.example\r\nEarly-Data: 1\r\nConnection: close\r\n\r\n",
            "GET told [1]",
        ),
        // This request waits for the end of the handshake, and then it is not early data.
        (
            "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            "POST told []",
        ),
        (
            "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n",
            "GET told []",
        ),
    ];
    for version in ["-tls1_3"] {
        for (request, expected) in cases {
            let session = session_in(&folder, &proxy);
            let early = folder.write("early", request.as_bytes());
            let early = early.to_string_lossy();
            let arguments = [version, "-sess_in", &session, "-early_data", &early];
            let text = tls::s_client_text(proxy.address(), &arguments, b"");
            assert!(text.contains("Early data was accepted"), "{text}");
            assert!(text.contains(expected), "{request}: {text}");
        }
    }
    // Without `early_data`, weir rejects early data, and the client may send the request again.
    let proxy = start(&member, "resumption: stateful");
    let session = folder.path().join("session").to_string_lossy().into_owned();
    tls::s_client_text(proxy.address(), &["-tls1_3", "-sess_out", &session], REQUEST);
    let early = folder.write("early", REQUEST).to_string_lossy().into_owned();
    let arguments = ["-tls1_3", "-sess_in", &session, "-early_data", &early];
    let text = tls::s_client_text(proxy.address(), &arguments, REQUEST);
    assert!(!text.contains("Early data was accepted"), "{text}");
}

#[test]
fn a_recorded_first_flight_is_served_once_and_never_if_it_changes_something() {
    require!("openssl");
    let member = telling();
    let proxy = start(&member, EARLY_DATA);
    let folder = TempDir::new("replay");
    for (method, served) in [("GET", 1), ("DELETE", 0)] {
        let session = session_in(&folder, &proxy);
        let request = format!("{method} /replayed HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        let early = folder.write("early", request.as_bytes()).to_string_lossy().into_owned();
        let arguments = ["-tls1_3", "-sess_in", &session, "-early_data", &early];
        let flight = tls::first_flight(&arguments);
        let before = member.request_count();
        let mut connections = Vec::new();
        for _ in 0..5 {
            let mut client = TcpStream::connect(proxy.address()).expect("connected");
            client.write_all(&flight).expect("written");
            // The response has arrived by then, if there is one.
            client.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
            let _ = client.read_to_end(&mut Vec::new());
            connections.push(client);
        }
        // A busy machine may serve the first one later.
        member.wait_for_requests(before + served);
        assert_eq!(member.request_count() - before, served, "{method}");
        drop(connections);
        proxy.wait_for_open_connections("main", 0.0);
    }
}

#[test]
fn too_early_is_passed_on() {
    require!("openssl");
    let member = Member::new(|exchange| {
        let is_early = exchange.request.head.field("early-data").is_some();
        let status = if is_early { "425 Too Early" } else { "200 OK" };
        exchange.send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"))?;
        Ok(Then::KeepAlive)
    });
    let proxy = start(&member, EARLY_DATA);
    let folder = TempDir::new("too-early");
    let session = session_in(&folder, &proxy);
    let early = folder.write("early", REQUEST).to_string_lossy().into_owned();
    let arguments = ["-tls1_3", "-sess_in", &session, "-early_data", &early];
    let text = tls::s_client_text(proxy.address(), &arguments, b"");
    assert!(text.contains("HTTP/1.1 425 "), "{text}");
}

/// ALPN `http/1.0`, which old clients and some tools offer.
#[test]
fn http_1_0_can_be_agreed_on() {
    require!("openssl");
    let member = Member::named("here");
    for http in ["http2: true", "http2: false"] {
        let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop("")).http(http);
        let proxy = Proxy::start(&setup);
        for version in ["-tls1_3", "-tls1_2"] {
            let ask = |alpn: &str, request: &str| {
                tls::s_client_text(proxy.address(), &[version, "-alpn", alpn], request.as_bytes())
            };
            let text = ask("http/1.0", "GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n");
            assert!(text.contains("ALPN protocol: http/1.0"), "{text}");
            assert!(text.contains("HTTP/1.1 200 OK") && text.contains("here"), "{text}");
            // weir prefers all other protocols to http/1.0.
            let close = "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";
            let text = ask("http/1.0,http/1.1", close);
            assert!(text.contains("ALPN protocol: http/1.1"), "{text}");
            assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
        }
    }
}

/// weir compares the received server name including the port. The client receives the alert unrecognized_name.
#[test]
fn a_name_with_a_port_is_one_that_is_not_known() {
    require!("openssl");
    let member = Member::named("here");
    let proxy = start(&member, "");
    for name in ["shop.example:443", "not a name", "a..example"] {
        for version in ["-tls1_3", "-tls1_2"] {
            let arguments = ["-servername", name, version];
            let text = tls::s_client_text(proxy.address(), &arguments, REQUEST);
            assert!(text.contains("SSL alert number 112"), "unrecognized_name: {name}: {text}");
        }
    }
    assert_eq!(handshakes(&proxy, "failed"), 6.0);
}

#[test]
fn who_wants_no_protocol_that_there_is_gets_the_alert_for_it() {
    require!("openssl");
    let member = Member::named("here");
    let proxy = start(&member, "");
    for version in ["-tls1_3", "-tls1_2"] {
        let text = tls::s_client_text(proxy.address(), &[version, "-alpn", "other"], b"");
        assert!(text.contains("no application protocol"), "{text}");
    }
}
