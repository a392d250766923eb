//! QUIC clients and servers with aioquic, an independent implementation, on both sides of weir.
//!
//! `WEIR_AIOQUIC` is the path of a Python with aioquic: `python3 -m venv venv && venv/bin/pip install aioquic`, then
//! `WEIR_AIOQUIC=$PWD/venv/bin/python`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use weir_tests::datagrams::UdpLease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, repository, tls, tools};

const CLIENTS: usize = 6;
/// Number of times that each client changes its port.
const MOVES: usize = 2;

/// A server that echoes data.
struct Server {
    port: UdpLease,
    _process: Process,
    _directory: TempDir,
}

fn script() -> PathBuf {
    repository::root().join("tests/tests/quic/peer.py")
}

impl Server {
    fn start(python: &Path) -> Self {
        let (port, directory) = (UdpLease::new(), TempDir::new("quic"));
        let (script, number) = (script(), port.address().port().to_string());
        let (certificate, key) = (tls::file("shop-rsa.crt"), tls::file("shop-rsa.key"));
        let words = [&*script.to_string_lossy(), "server", &number, &certificate, &key];
        let mut process = Process::start(python, &words, &directory.path().join("log"));
        eventually("the server of QUIC serves", STEP_TIMEOUT, || {
            assert!(process.exited().is_none(), "{}", process.output());
            process.output().contains("serves")
        });
        Self { port, _process: process, _directory: directory }
    }

    fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

fn setup(port: &UdpLease, members: &[SocketAddr]) -> Setup {
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    Setup::new(&[])
        .member("127.0.0.1:9")
        .also_virtual_server(&format!(
            "quic: {{ listen: \"{}\", type: udp, pool: quic, persistence: {{ type: quic }} }}",
            port.address()
        ))
        .also_pool(&format!("quic: {{ members: [ {} ] }}", members.join(", ")))
}

fn client(python: &Path, port: u16, number: usize) -> Child {
    let mut command = Command::new(python);
    command.arg(script()).args(["client", &port.to_string(), &number.to_string()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a client of QUIC")
}

#[test]
fn connections_survive_new_ports_and_reloads() {
    let Some(python) = tools::suite("WEIR_AIOQUIC") else { return };
    let servers = [Server::start(&python), Server::start(&python), Server::start(&python)];
    let addresses: Vec<SocketAddr> = servers.iter().map(Server::address).collect();
    let port = UdpLease::new();
    let proxy = Proxy::start(&setup(&port, &addresses[..2]));
    let number = port.address().port();
    let clients: Vec<Child> =
        (0..CLIENTS).map(|client| self::client(&python, number, client)).collect();
    let sessions = || proxy.metric("weir_virtual_server_connections_total", &["\"quic\""]);
    eventually("all are connected", STEP_TIMEOUT, || sessions() >= CLIENTS as f64);
    // A third member changes the table of connection IDs.
    proxy.reload_and_wait(&setup(&port, &addresses));
    eventually("they have moved", STEP_TIMEOUT, || sessions() >= (CLIENTS + 1) as f64);
    proxy.reload_and_wait(&setup(&port, &addresses[..2]));
    for client in clients {
        let output = client.wait_with_output().expect("a client ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}{errors}");
        assert_eq!(text.matches("moved").count(), MOVES, "{text}");
    }
    assert_eq!(sessions(), (CLIENTS * (1 + MOVES)) as f64);
    for server in &addresses[..2] {
        let label = format!("\"{server}\"");
        let served = proxy.metric("weir_member_requests_total", &["\"quic\"", &label]);
        assert!(served >= (1 + MOVES) as f64, "{server}: {served}");
    }
    assert_eq!(proxy.metric("weir_member_failures_total", &["\"quic\""]), 0.0);
}
