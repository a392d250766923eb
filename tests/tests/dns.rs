//! DNS servers behind weir, with a load generator as client, during reloads.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_tests::datagrams::{DatagramClient, UdpLease};
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require, tools};

const NAMES: usize = 100;
const QUERIES_PER_SECOND: usize = 2_000;
const SECONDS: usize = 4;

/// An `unbound` with local names only. It queries no other server.
struct Unbound {
    port: UdpLease,
    _process: Process,
    _directory: TempDir,
}

impl Unbound {
    fn start() -> Self {
        let (port, directory) = (UdpLease::new(), TempDir::new("unbound"));
        let folder = directory.path().display().to_string();
        let mut text = format!(
            "server:\n interface: 127.0.0.1\n port: {}\n do-tcp: no\n do-daemonize: no\n username: \"\"\n \
             chroot: \"\"\n directory: \"{folder}\"\n pidfile: \"\"\n use-syslog: no\n verbosity: 0\n num-threads: 1\n \
             access-control: 127.0.0.0/8 allow\n module-config: \"iterator\"\n local-zone: \"example.\" static\n",
            port.address().port()
        );
        for name in 0..NAMES {
            let _ = writeln!(text, " local-data: \"n{name}.example. 60 IN A 192.0.2.{name}\"");
        }
        text.push_str("remote-control:\n control-enable: no\n");
        let file = directory.write("unbound.conf", text);
        let program = tools::find("unbound").expect("unbound");
        let arguments = ["-d", "-p", "-c", &file.to_string_lossy()];
        let process = Process::start(&program, &arguments, &directory.path().join("log"));
        let unbound = Self { port, _process: process, _directory: directory };
        eventually("unbound answers", STEP_TIMEOUT, || answers(unbound.address()));
        unbound
    }

    fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

/// Whether a server answers a query.
fn answers(server: SocketAddr) -> bool {
    let client = DatagramClient::of(server);
    client.send(
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x02n1\x07example\x00\x00\x01\x00\x01",
    );
    let answer = client.receive_within(std::time::Duration::from_millis(200));
    answer
        .is_some_and(|answer| answer.starts_with(b"\x12\x34") && answer.ends_with(&[192, 0, 2, 1]))
}

fn setup(port: &UdpLease, members: &[SocketAddr]) -> Setup {
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    Setup::new(&[])
        .member("127.0.0.1:9")
        .also_virtual_server(&format!(
            "dns: {{ listen: \"{}\", type: udp, pool: resolvers, udp: {{ datagrams: 1, idle_timeout: 5s }} }}",
            port.address()
        ))
        .also_pool(&format!(
            "resolvers: {{ members: [ {} ], monitors: [ {{ type: dns, name: n1.example, value: 192.0.2.1, interval: 1s }} ] }}",
            members.join(", ")
        ))
}

/// The number after this text in a line of `dnsperf`'s output.
#[track_caller]
fn told(output: &str, what: &str) -> u64 {
    let line = output.lines().find_map(|line| line.trim().strip_prefix(what));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{what}: {output}"))
}

fn dnsperf(file: &Path, server: SocketAddr) -> Command {
    let mut command = Command::new("dnsperf");
    command.arg("-d").arg(file);
    command.args(["-s", &server.ip().to_string(), "-p", &server.port().to_string()]);
    command.args(["-l", &SECONDS.to_string(), "-Q", &QUERIES_PER_SECOND.to_string(), "-c", "20"]);
    command
}

#[test]
fn no_query_is_lost_in_reloads() {
    require!("unbound", "dnsperf");
    let servers = [Unbound::start(), Unbound::start(), Unbound::start()];
    let addresses: Vec<SocketAddr> = servers.iter().map(Unbound::address).collect();
    let port = UdpLease::new();
    let proxy = Proxy::start(&setup(&port, &addresses));
    eventually("weir answers", STEP_TIMEOUT, || answers(port.address()));
    let directory = TempDir::new("queries");
    let queries: String = (0..NAMES).map(|name| format!("n{name}.example A\n")).collect();
    let file = directory.write("queries", queries);
    let mut command = dnsperf(&file, port.address());
    let running = command.stdout(Stdio::piped()).spawn().expect("dnsperf");
    for round in 0..SECONDS {
        // A member is removed and added again.
        let count = if round % 2 == 0 { 2 } else { 3 };
        proxy.reload_and_wait(&setup(&port, &addresses[..count]));
    }
    let output = running.wait_with_output().expect("dnsperf ends");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told(&output, "Queries sent:") > (QUERIES_PER_SECOND * SECONDS / 2) as u64, "{output}");
    // Datagrams that the kernel dropped are not weir's loss.
    let dropped = proxy.metric("weir_datagrams_lost_total", &[]) as u64;
    assert!(told(&output, "Queries lost:") <= dropped, "{dropped} dropped by the kernel: {output}");
    assert!(output.contains("NOERROR") && !output.contains("SERVFAIL"), "{output}");
    for server in addresses {
        let label = format!("\"{server}\"");
        assert!(
            proxy.metric("weir_member_requests_total", &["resolvers", &label]) > 0.0,
            "{server}"
        );
    }
}
