//! Virtual servers with `interfaces`, which listen only on some network interfaces.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::namespaces::Namespaces;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, require};

/// An address that both networks can reach.
const SHARED: &str = "10.77.9.9";

/// Time after which a missing reply is certain.
const SILENCE: Duration = Duration::from_millis(300);

/// weir in the namespace `adc` with the interfaces `clients` and `servers`. The members are on the same host.
struct Bed {
    namespaces: Namespaces,
    process: Process,
    directory: TempDir,
}

impl Bed {
    fn new(virtual_servers: &str) -> Option<Self> {
        let namespaces = Namespaces::make()?;
        namespaces.shell("adc", &format!("ip addr add {SHARED}/32 dev lo"));
        namespaces.within("adc", || {
            for (port, name) in [(9_001, "one"), (9_002, "two")] {
                let socket = UdpSocket::bind(("127.0.0.1", port)).expect("a member's port");
                std::thread::spawn(move || {
                    while let Ok((_, from)) = socket.recv_from(&mut [0; 64]) {
                        // The client may have closed.
                        let _ = socket.send_to(name.as_bytes(), from);
                    }
                });
            }
        });
        let directory = TempDir::new("interfaces");
        let file = directory.write("weir.yaml", configuration(virtual_servers));
        let ip = weir_tests::tools::find("ip").expect("ip");
        let (weir, file) = (weir_binary().to_string_lossy(), file.to_string_lossy());
        let words = ["netns", "exec", &namespaces.name("adc"), &weir, "run", &file];
        let mut process = Process::start(&ip, &words, &directory.path().join("output.log"));
        eventually("weir serves", STEP_TIMEOUT, || {
            assert!(process.exited().is_none(), "{}", process.output());
            process.output().contains("serves")
        });
        Some(Self { namespaces, process, directory })
    }

    /// Loads another configuration and waits for this log line.
    fn reload(&self, virtual_servers: &str, told: &str) {
        self.directory.write("weir.yaml", configuration(virtual_servers));
        let count = |text: &str| text.matches(told).count();
        let before = count(&self.process.output());
        self.process.signal(Signal::HUP);
        eventually(told, STEP_TIMEOUT, || count(&self.process.output()) > before);
    }

    /// The response for a client in that namespace; `None`: no connection.
    fn get(&self, role: &str, address: &str) -> Option<String> {
        let address: SocketAddr = address.parse().expect("an address");
        self.namespaces.within(role, || {
            TcpStream::connect(address).ok()?;
            Some(Client::connect(address).get("/").text())
        })
    }

    /// Waits until clients in that namespace get this response: workers take over a configuration a moment after a reload.
    fn serves(&self, role: &str, address: &str, expected: &str) {
        eventually(expected, STEP_TIMEOUT, || self.get(role, address).as_deref() == Some(expected));
    }

    /// Waits until clients in that namespace get no connection: a listener closes a moment after a reload.
    fn closes(&self, role: &str, address: &str) {
        let address: SocketAddr = address.parse().expect("an address");
        eventually("the listener closes", STEP_TIMEOUT, || {
            self.namespaces.within(role, || TcpStream::connect(address).is_err())
        });
    }

    /// The reply to a datagram from a client in that namespace; `None`: no reply.
    fn ask(&self, role: &str, address: &str) -> Option<String> {
        self.namespaces.within(role, || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port of UDP");
            socket.connect(address).expect("an address");
            socket.set_read_timeout(Some(SILENCE)).expect("a timeout");
            socket.send(b"query").expect("sending");
            let mut answer = [0; 64];
            let length = socket.recv(&mut answer).ok()?;
            Some(String::from_utf8_lossy(&answer[..length]).into_owned())
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.process.kill();
    }
}

fn configuration(virtual_servers: &str) -> String {
    let policy = |name: &str| {
        format!(
            "  {name}: {{ rules: [ {{ then: [ {{ respond: {{ status: 200, body: {name} }} }} ] }} ] }}\n"
        )
    };
    format!(
        "data_plane: {{ workers: 2 }}\nvirtual_servers:\n{virtual_servers}policies:\n{}{}\
         pools:\n  one: {{ members: [ 127.0.0.1:9001 ] }}\n  two: {{ members: [ 127.0.0.1:9002 ] }}\n",
        policy("inner"),
        policy("outer"),
    )
}

/// A virtual server that responds with the text of its policy.
fn http(name: &str, listen: &str, interfaces: &str, policy: &str) -> String {
    format!("  {name}: {{ listen: \"{listen}\"{interfaces}, policies: [ {policy} ] }}\n")
}

#[test]
fn the_same_address_is_served_by_another_virtual_server_on_each_interface() {
    let listen = format!("{SHARED}:8080");
    let on = |interfaces: &str| format!(", interfaces: [ {interfaces} ]");
    let both = |one: &str, other: &str| {
        http("a", &listen, &on(one), "inner") + &http("b", &listen, &on(other), "outer")
    };
    let Some(bed) = Bed::new(&both("servers", "clients")) else { return };
    let found = |role: &str| bed.get(role, &listen);
    assert_eq!(found("server").as_deref(), Some("inner"));
    assert_eq!(found("client").as_deref(), Some("outer"));
    // Packets of this host to itself use neither interface.
    assert_eq!(found("adc"), None);

    bed.reload(&both("clients", "servers"), "was reloaded");
    bed.serves("server", &listen, "outer");
    bed.serves("client", &listen, "inner");

    bed.reload(&http("a", &listen, &on("clients"), "inner"), "was reloaded");
    bed.closes("server", &listen);
    assert_eq!(found("client").as_deref(), Some("inner"));

    bed.reload(&both("clients", "missing"), "has no such network interface");
    assert_eq!(found("client").as_deref(), Some("inner"), "what was in force stays");

    bed.reload(&http("a", &listen, "", "outer"), "was reloaded");
    for role in ["client", "server", "adc"] {
        bed.serves(role, &listen, "outer");
    }
}

#[test]
fn every_address_of_an_interface_is_served_and_no_other() {
    let all = |interfaces| http("a", "0.0.0.0:8080", interfaces, "inner");
    let udp = "  u: { listen: \"0.0.0.0:5353\", type: udp, interfaces: [ clients ], pool: one }\n  \
               v: { listen: \"0.0.0.0:5353\", type: udp, interfaces: [ servers ], pool: two }\n";
    let Some(bed) = Bed::new(&(all(", interfaces: [ clients ]") + udp)) else { return };
    for address in [SHARED, "10.77.1.1"] {
        assert_eq!(bed.get("client", &format!("{address}:8080")).as_deref(), Some("inner"));
        assert_eq!(bed.ask("client", &format!("{address}:5353")).as_deref(), Some("one"));
        assert_eq!(bed.ask("server", &format!("{address}:5353")).as_deref(), Some("two"));
    }
    assert_eq!(bed.get("server", &format!("{SHARED}:8080")), None);
    bed.reload(&(all(", interfaces: [ clients, servers ]") + udp), "was reloaded");
    bed.serves("server", &format!("{SHARED}:8080"), "inner");
    // The removal of one virtual server does not affect datagrams of another.
    bed.reload(&(all("") + udp.lines().next().expect("a line") + "\n"), "was reloaded");
    assert_eq!(bed.ask("client", &format!("{SHARED}:5353")).as_deref(), Some("one"));
    eventually("the socket closes", STEP_TIMEOUT, || {
        bed.ask("server", &format!("{SHARED}:5353")).is_none()
    });
}

#[test]
fn an_interface_that_is_made_anew_is_listened_on_after_a_reload() {
    let Some(mut bed) = Bed::new(&http("a", "10.77.1.1:8080", "", "inner")) else { return };
    let make = format!(
        "ip link add extra type veth peer name extra netns {}; \
         ip addr add 10.77.7.1/24 dev extra; ip link set dev extra up",
        bed.namespaces.name("client")
    );
    let join = "ip addr add 10.77.7.2/24 dev extra; ip link set dev extra up";
    let make = || {
        bed.namespaces.shell("adc", &make);
        bed.namespaces.shell("client", join);
    };
    make();
    let on_extra = http("a", "0.0.0.0:8080", ", interfaces: [ extra ]", "outer")
        + "  u: { listen: \"0.0.0.0:5353\", type: udp, interfaces: [ extra ], pool: one }\n";
    bed.reload(&on_extra, "was reloaded");
    bed.serves("client", "10.77.7.1:8080", "outer");
    assert_eq!(bed.ask("client", "10.77.7.1:5353").as_deref(), Some("one"));
    bed.closes("client", "10.77.1.1:8080");
    bed.namespaces.shell("adc", "ip link del extra");
    make();
    assert_eq!(bed.get("client", "10.77.7.1:8080"), None, "it is another device");
    bed.reload(&on_extra, "was reloaded");
    bed.serves("client", "10.77.7.1:8080", "outer");
    assert_eq!(bed.ask("client", "10.77.7.1:5353").as_deref(), Some("one"));
    assert!(bed.process.exited().is_none(), "{}", bed.process.output());
}

#[test]
fn an_interface_that_is_not_there_is_told_before_and_refused() {
    require!("ip");
    let lease = Lease::new();
    let directory = TempDir::new("no-interface");
    let server = format!(
        "listen: \"{}\", interfaces: [ weir-none-0 ], policies: [ inner ]",
        lease.address()
    );
    let file = directory.write("weir.yaml", configuration(&format!("  a: {{ {server} }}\n")));
    let checked = std::process::Command::new(weir_binary())
        .args(["check".as_ref(), file.as_os_str()])
        .output()
        .expect("the built command");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "another host may have it: {said}");
    let expected = "warning: virtual server `a`: this host has no network interface `weir-none-0`";
    assert!(said.contains(expected), "{said}");
    let member = weir_tests::member::Member::named("only");
    let mut proxy = Proxy::start(&Setup::new(&[member.address()]));
    let late = format!(
        "late: {{ listen: \"{}\", interfaces: [ weir-none-0 ], pool: members }}",
        lease.address()
    );
    proxy.reload_and_fail(&Setup::new(&[member.address()]).also_virtual_server(&late));
    let expected =
        format!("virtual server late: cannot listen on {} on weir-none-0: ", lease.address());
    let said = proxy.process().says(&expected);
    assert!(said.contains("this host has no such network interface"), "{said}");
    assert_eq!(proxy.client().get("/").text(), "only");
}
