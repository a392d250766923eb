//! Other programs as members behind weir. The response of each program contains its view of the connection.

use std::net::SocketAddr;

use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{tls, tools};

use super::{
    Cell, Handshake, Key, Protocol, Shown, Told, Version, after, haproxy, protocol, servers, shown,
};

/// Runs the cells of a program. Returns the member's report and the type of its certificate for each cell.
pub fn talk(program: &str, cells: &[Cell]) -> Vec<Vec<Told>> {
    let servers = servers(|version, key, is_storing| {
        let server = Server::start(program, version, key, is_storing);
        let key = Key::of_server(server.address());
        (server, key)
    });
    let addresses: Vec<SocketAddr> = servers.iter().map(|(server, _)| server.address()).collect();
    let proxy = Proxy::start(&setup(&addresses, cells));
    let talk = |(number, cell): (usize, &Cell)| {
        let mut client = proxy.client();
        let mut page = || client.get(&format!("/{number}")).assert_status(200).text();
        let first = page();
        let again = (cell.handshake != Handshake::Full).then(page);
        let told = match program {
            "openssl" => s_server(&again.unwrap_or(first)),
            "nginx" => nginx(&again.unwrap_or(first)),
            "haproxy" => haproxy::told_by_member(&again.unwrap_or(first)),
            _ => gnutls_serv(&first, again.as_deref()),
        };
        let (_, key) = servers[cell.server()];
        vec![told, Told { key, ..Told::default() }]
    };
    cells.iter().enumerate().map(talk).collect()
}

/// A setup with a pool for each cell, so that cells do not share sessions, and a connection for each request.
fn setup(servers: &[SocketAddr], cells: &[Cell]) -> Setup {
    let mut setup = Setup::new(servers)
        .virtual_server("policies: [ by-cell ]")
        .top("policies:\n  by-cell:\n    rules:");
    for (number, cell) in cells.iter().enumerate() {
        let identity = match cell.shown {
            Shown::No => String::new(),
            Shown::Yes => format!(", certificate: {}", tls::pair("client")),
        };
        let rule =
            format!("when: 'request.path == \"/{number}\"', then: [ {{ pool: p{number} }} ]");
        setup = setup.top(&format!("      - {{ {rule} }}")).also_pool(&format!(
            "p{number}: {{ members: [ {} ], http2: {}, reuse: {{ requests_max: 1 }}, \
             tls: {{ ca: {}, server_name: shop.example{identity} }} }}",
            servers[cell.server()],
            cell.protocol == Protocol::Http2,
            tls::file("authorities.crt"),
        ));
    }
    setup
}

/// A running server.
struct Server {
    // Dropped in this order: the process before its folder and its port.
    _process: Process,
    _folder: TempDir,
    lease: Lease,
}

impl Server {
    fn start(program: &str, version: Version, key: Key, is_storing: bool) -> Self {
        // gnutls-serv listens on every address.
        let (lease, folder) = (Lease::on_every_address(), TempDir::new("interop"));
        let arguments = match program {
            "openssl" => s_server_arguments(lease.address(), version, key, is_storing),
            "nginx" => {
                folder.write("nginx.conf", nginx_conf(lease.address(), version, key, is_storing));
                let directory = format!("{}/", folder.path().display());
                ["-p", &directory, "-e", "error.log", "-c", "nginx.conf"].map(Into::into).into()
            }
            "haproxy" => {
                let text = haproxy::member(lease.address(), version, key, is_storing, &folder);
                let file = folder.write("haproxy.cfg", text).to_string_lossy().into_owned();
                vec!["-db".into(), "-f".into(), file]
            }
            "gnutls-serv" => gnutls_serv_arguments(lease.address(), version, key, is_storing),
            other => panic!("{other}?"),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let program = tools::find(program).expect("it is there");
        let log = folder.path().join("output.log");
        let mut process = Process::start(&program, &arguments, &log);
        process.wait_until_listening(&[lease.address()]);
        Self { _process: process, _folder: folder, lease }
    }

    fn address(&self) -> SocketAddr {
        self.lease.address()
    }
}

/// The files of the certificate with its chain, and of the key.
fn files(key: Key) -> [String; 2] {
    ["crt", "key"].map(|end| tls::file(&format!("{}.{end}", key.certificate())))
}

fn s_server_arguments(at: SocketAddr, version: Version, key: Key, is_storing: bool) -> Vec<String> {
    let ([cert, key], ca) = (files(key), tls::file("authorities.crt"));
    let version = if version == Version::V12 { "-tls1_2" } else { "-tls1_3" };
    let mut words = vec!["s_server", "-www", version, "-cert", &cert, "-cert_chain", &cert];
    words.extend(["-key", &key, "-verify", "3", "-CAfile", &ca]);
    words.extend(is_storing.then_some("-no_ticket"));
    let mut words: Vec<String> = words.into_iter().map(Into::into).collect();
    words.extend(["-accept".into(), at.to_string()]);
    words
}

fn s_server(page: &str) -> Told {
    let is_resumed = page.contains("\nReused, TLSv");
    assert!(is_resumed || page.contains("\nNew, TLSv"), "{page}");
    Told {
        version: after(", TLSv", page).and_then(Version::of),
        key: after(", Cipher is ", page).and_then(Key::of_suite),
        // The program supports only HTTP/1.
        protocol: Some(Protocol::Http1),
        shown: shown(page.contains("Subject: CN=A client")),
        resumed: Some(is_resumed),
    }
}

fn nginx_conf(at: SocketAddr, version: Version, key: Key, is_storing: bool) -> String {
    let ([cert, key], ca, version) = (files(key), tls::file("authorities.crt"), version.name());
    let sessions = match is_storing {
        true => "ssl_session_tickets off; ssl_session_cache shared:sessions:1m;",
        false => "ssl_session_tickets on;",
    };
    // Started as root, nginx would drop its privileges and lose access to the temporary folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log warn; {user}
        events {{ }}
        http {{
            access_log off;
            client_body_temp_path client_body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            server {{
                listen {at} ssl http2;
                ssl_protocols TLSv{version}; {sessions}
                ssl_certificate {cert}; ssl_certificate_key {key};
                ssl_client_certificate {ca}; ssl_verify_client optional; ssl_verify_depth 3;
                set $seen \"$ssl_protocol $server_protocol $ssl_cipher $ssl_session_reused\";
                location / {{ return 200 \"$seen [$ssl_client_s_dn]\"; }}
            }}
        }}
        "
    )
}

fn nginx(page: &str) -> Told {
    let words: Vec<&str> = page.splitn(5, ' ').collect();
    Told {
        version: after("TLSv", words[0]).and_then(Version::of),
        key: Key::of_suite(words[2]),
        protocol: protocol(words[1] == "HTTP/2.0"),
        shown: shown(words[4] == "[CN=A client]"),
        resumed: Some(words[3] == "r"),
    }
}

fn gnutls_serv_arguments(
    at: SocketAddr,
    version: Version,
    key: Key,
    is_storing: bool,
) -> Vec<String> {
    let [cert, key] = files(key);
    let mut words = vec![
        "--http".to_owned(),
        format!("--port={}", at.port()),
        format!("--x509certfile={cert}"),
        format!("--x509keyfile={key}"),
        format!("--x509cafile={}", tls::file("authorities.crt")),
        format!("--priority=NORMAL:-VERS-ALL:+VERS-TLS{}", version.name()),
    ];
    words.extend(is_storing.then(|| "--noticket".to_owned()));
    words
}

/// Parses the reports of two connections. A resumed session has the same session id.
fn gnutls_serv(first: &str, again: Option<&str>) -> Told {
    let session = |page| after("Session ID: <i>", page).and_then(|rest| rest.split('<').next());
    let last = again.unwrap_or(first);
    let description = after("(TLS", last).unwrap_or_default();
    Told {
        version: Version::of(description),
        key: description.splitn(3, ")-(").nth(2).and_then(Key::of),
        // The program supports only HTTP/1.
        protocol: Some(Protocol::Http1),
        shown: shown(last.contains("Subject: CN=A client")),
        resumed: Some(again.is_some_and(|again| session(again) == session(first))),
    }
}
