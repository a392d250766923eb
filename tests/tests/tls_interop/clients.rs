//! Other programs as clients of weir.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use weir_tests::http2::Frame;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{tls, tools};

use super::haproxy::Gateway;
use super::{
    Cell, Handshake, Key, Protocol, REQUEST, Shown, Told, Version, after, protocol, servers, shown,
};

/// The header value that reports weir's view of the client's connection to the member.
const SEEN: &str =
    "${tls.version} ${request.version} ${tls.cipher} [${tls.client_certificate.subject}]";

/// The weirs, each with the type of its certificate, and the member behind all of them.
pub struct Clients {
    member: Member,
    servers: Vec<(Proxy, Option<Key>)>,
    folder: TempDir,
}

impl Clients {
    pub fn start() -> Self {
        let member = Member::named("here");
        let servers = servers(|version, key, is_storing| {
            let line = format!(
                "tls: {{ certificates: [ {} ], max_version: \"{}\", resumption: {}, \
                 client_certificates: {{ mode: request, ca: {} }} }}",
                tls::pair(key.certificate()),
                version.name(),
                if is_storing { "stateful" } else { "tickets" },
                tls::file("authorities.crt")
            );
            let setup = Setup::new(&[member.address()])
                .virtual_server(&line)
                .virtual_server("policies: [ tell ]")
                .top("policies:\n  tell:\n    rules:")
                .top(&format!("      - then: [ {{ set_header: {{ X-Seen: \"{SEEN}\" }} }} ]"));
            let proxy = Proxy::start(&setup);
            let key = Key::of_server(proxy.address());
            (proxy, key)
        });
        Self { member, servers, folder: TempDir::new("interop") }
    }

    /// Runs the cells of a program. Returns the reports for each cell.
    pub fn talk(&self, program: &str, cells: &[Cell]) -> Vec<Vec<Told>> {
        let addresses: Vec<SocketAddr> = self.servers.iter().map(|it| it.0.address()).collect();
        let gateway = (program == "haproxy").then(|| Gateway::start(&addresses, cells));
        let talk = |(number, cell): (usize, &Cell)| {
            let at = addresses[cell.server()];
            self.watch(cell, || match program {
                "openssl" => s_client(at, cell, self.folder.path()),
                "curl" => curl(at, cell),
                "gnutls-cli" => gnutls_cli(at, cell),
                "haproxy" => gateway.as_ref().expect("started").talk(number, cell),
                "nghttp" => nghttp(at, cell),
                "h2load" => h2load(at, cell),
                "wrk" => wrk(at, &self.folder),
                other => panic!("{other}?"),
            })
        };
        cells.iter().enumerate().map(talk).collect()
    }

    /// Runs one cell. Returns the client's report, weir's report, and the type of weir's certificate.
    fn watch(&self, cell: &Cell, talk: impl FnOnce() -> Told) -> Vec<Told> {
        let (proxy, key) = &self.servers[cell.server()];
        let handshakes = |result: &str| {
            proxy.metric("weir_virtual_server_tls_handshakes_total", &[&format!("\"{result}\"")])
        };
        let results = ["full", "resumed", "failed"];
        let (before, requests) = (results.map(handshakes), self.member.request_count());
        let told = talk();
        let now = results.map(handshakes);
        assert!(self.member.request_count() > requests, "{cell:?}: nothing was asked");
        let [full, resumed, failed] = [0, 1, 2].map(|at| now[at] - before[at]);
        let resumed = match (full, resumed, failed) {
            (1.0, 1.0, 0.0) => true,
            (1.0.., 0.0, 0.0) => false,
            counts => panic!("{cell:?}: {told:?}: full, resumed, failed: {counts:?}"),
        };
        let last = self.member.requests().pop().expect("a request");
        let seen = last.head.field("x-seen").expect("what weir saw");
        let words: Vec<&str> = seen.splitn(4, ' ').collect();
        let by_weir = Told {
            version: Version::of(words[0]),
            key: Key::of_suite(words[2]),
            protocol: protocol(words[1] == "2"),
            shown: shown(words[3] == "[CN=A client]"),
            resumed: Some(resumed),
        };
        vec![told, by_weir, Told { key: *key, ..Told::default() }]
    }
}

/// One request in the protocol of the cell. Afterwards the client closes, or waits for the close.
fn request(cell: &Cell) -> Vec<u8> {
    if cell.protocol == Protocol::Http1 {
        return REQUEST.to_vec();
    }
    let lines: [(&[u8], &[u8]); 4] = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", b"/"),
        (b":authority", b"shop.example"),
    ];
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    Frame::settings(&[]).write(&mut out);
    Frame::headers(1, &lines, true).write(&mut out);
    Frame::goaway(0, 0).write(&mut out);
    out
}

/// The options by which the client presents its certificate, as `--cert FILE` or `--cert=FILE`. Empty if the cell does not
/// require that.
fn identity(cell: &Cell, options: [&str; 2]) -> Vec<String> {
    let files = [tls::file("client.crt"), tls::file("client.key")];
    let words =
        options.into_iter().zip(files).flat_map(|(option, file)| match option.ends_with('=') {
            true => vec![format!("{option}{file}")],
            false => vec![option.to_owned(), file],
        });
    words.filter(|_| cell.shown == Shown::Yes).collect()
}

fn s_client(at: SocketAddr, cell: &Cell, folder: &Path) -> Told {
    let session = folder.join("session").to_string_lossy().into_owned();
    let run = |about_session: &str| {
        let mut arguments = identity(cell, ["-cert", "-key"]);
        let version = if cell.version == Version::V12 { "-tls1_2" } else { "-tls1_3" };
        arguments.extend(
            [version, "-alpn", cell.protocol.alpn(), about_session, &session].map(Into::into),
        );
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let text = tls::s_client_text(at, &arguments, &request(cell));
        assert!(text.contains("here") && text.contains("Verify return code: 0 (ok)"), "{text}");
        text
    };
    let mut text = run("-sess_out");
    if cell.handshake != Handshake::Full {
        text = run("-sess_in");
    }
    Told {
        version: after(", TLSv", &text).and_then(Version::of),
        key: after("Peer signature type: ", &text).and_then(Key::of),
        protocol: after("ALPN protocol: ", &text).and_then(|rest| protocol(rest.starts_with("h2"))),
        shown: None,
        resumed: Some(text.contains("\nReused, TLSv")),
    }
}

/// curl. It does not report whether a session was resumed, only that it tried.
fn curl(at: SocketAddr, cell: &Cell) -> Told {
    let mut command = Command::new("curl");
    let to = format!("shop.example:443:{}:{}", at.ip(), at.port());
    // With different source addresses, the second request uses a new connection but the same session.
    let addresses: &[&str] = match cell.handshake {
        Handshake::Full => &["127.0.0.2"],
        _ => &["127.0.0.2", "127.0.0.3"],
    };
    for (number, own) in addresses.iter().enumerate() {
        command
            .args((number > 0).then_some("--next"))
            .args(["-sSv", "--max-time", "30", "--interface", own, "--connect-to", &to])
            .args(["--cacert", &tls::file("root.crt"), "-w", "%{http_version} %{certs}"])
            .arg(format!("--tlsv{}", cell.version.name()))
            .args(["--tls-max", cell.version.name()])
            .arg(if cell.protocol == Protocol::Http1 { "--http1.1" } else { "--http2" })
            .args(identity(cell, ["--cert", "--key"]))
            .arg("https://shop.example/");
    }
    let output = command.output().expect("curl");
    let [said, noted] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{said}\n{noted}");
    let last = said.rsplit("here").next().unwrap_or_default();
    let connection = noted.rsplit("SSL connection using TLSv").next().unwrap_or_default();
    let key = after("Public Key Algorithm:", last).map(|rest| match rest.starts_with("rsa") {
        true => Key::Rsa,
        false => Key::Ecdsa,
    });
    Told {
        version: Version::of(connection),
        key,
        protocol: protocol(last.starts_with("2 ")),
        ..Told::default()
    }
}

fn gnutls_cli(at: SocketAddr, cell: &Cell) -> Told {
    let mut command = Command::new("gnutls-cli");
    command
        .args(["--sni-hostname=shop.example", "--verify-hostname=shop.example"])
        .arg(format!("--x509cafile={}", tls::file("root.crt")))
        .arg(format!("--priority=NORMAL:-VERS-ALL:+VERS-TLS{}", cell.version.name()))
        .arg(format!("--alpn={}", cell.protocol.alpn()))
        .args(identity(cell, ["--x509certfile=", "--x509keyfile="]));
    if cell.handshake != Handshake::Full {
        // gnutls-cli connects twice and sends its request on the second connection.
        command.args(["--resume", "--waitresumption"]);
    }
    command.arg(format!("--port={}", at.port())).arg(at.ip().to_string());
    let output = tls::converse(&mut command, &request(cell));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains("here"), "{text}");
    let last = text.rsplit("- Description: (TLS").next().unwrap_or_default();
    Told {
        version: Version::of(last),
        key: last.splitn(3, ")-(").nth(2).and_then(Key::of),
        protocol: after("Application protocol: ", last)
            .and_then(|rest| protocol(rest.starts_with("h2"))),
        shown: None,
        resumed: Some(last.contains("This is a resumed session")),
    }
}

fn nghttp(at: SocketAddr, cell: &Cell) -> Told {
    let text = tools::run(
        Command::new("nghttp")
            .args(["--verbose", "--header=:authority: shop.example"])
            .args(identity(cell, ["--cert=", "--key="]))
            .arg(format!("https://{at}/")),
    );
    assert!(text.contains("here"), "{text}");
    let rest = after("The negotiated protocol: ", &text);
    Told { protocol: rest.and_then(|rest| protocol(rest.starts_with("h2"))), ..Told::default() }
}

fn h2load(at: SocketAddr, cell: &Cell) -> Told {
    let text = tools::run(
        Command::new("h2load")
            .args(["-n", "20", "-c", "4", &format!("--connect-to={at}")])
            .arg(format!("--npn-list={}", cell.protocol.alpn()))
            .arg("https://shop.example/"),
    );
    assert!(text.contains("20 succeeded, 0 failed, 0 errored, 0 timeout"), "{text}");
    Told {
        version: after("TLS Protocol: TLSv", &text).and_then(Version::of),
        key: after("Cipher: ", &text).and_then(Key::of_suite),
        protocol: after("Application protocol: ", &text)
            .and_then(|rest| protocol(rest.starts_with("h2"))),
        ..Told::default()
    }
}

/// wrk. It reports nothing about TLS.
fn wrk(at: SocketAddr, folder: &TempDir) -> Told {
    // wrk runs for at least a second, but one request is enough.
    let script = "function response(status, headers, body)\n\
                  if body == 'here' then wrk.thread:stop() end\nend\n";
    let script = folder.write("one.lua", script).to_string_lossy().into_owned();
    let arguments = ["-t", "1", "-c", "1", "-d", "1s", "-s", &script, "-H", "Host: shop.example"];
    let text = tools::run(Command::new("wrk").args(arguments).arg(format!("https://{at}/")));
    assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
    Told::default()
}
