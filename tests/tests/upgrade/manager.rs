//! Upgrades with a service manager, which receives notifications and may have opened the sockets.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::load::{Load, Plan};
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

use crate::Line;

/// Restarts of a weir whose socket the manager keeps.
const RESTART_COUNT: usize = 10;

/// The notification socket of a simulated service manager.
struct Manager {
    socket: UnixDatagram,
    directory: TempDir,
}

impl Manager {
    fn new() -> Self {
        let directory = TempDir::new("notify");
        let socket = UnixDatagram::bind(directory.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(weir_tests::STEP_TIMEOUT)).expect("a timeout");
        Self { socket, directory }
    }

    fn path(&self) -> String {
        self.directory.path().join("notify").display().to_string()
    }

    /// Waits for the next message.
    #[track_caller]
    fn message(&self) -> String {
        let mut buffer = [0; 1_024];
        let length = self.socket.recv(&mut buffer).expect("a message in time");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    /// Reads messages until one starts with `begin`.
    #[track_caller]
    fn until(&self, begin: &str) -> String {
        let deadline = Instant::now() + weir_tests::STEP_TIMEOUT;
        loop {
            let message = self.message();
            if message.starts_with(begin) {
                return message;
            }
            assert!(Instant::now() < deadline, "no {begin}");
        }
    }
}

#[test]
fn a_service_manager_hears_of_start_reload_upgrade_and_end() {
    let manager = Manager::new();
    let member = Member::named("hello");
    let setup = Setup::new(&[member.address()]).environment("NOTIFY_SOCKET", &manager.path());
    let mut line = Line::start(&setup);
    assert_eq!(manager.message(), "READY=1\nSTATUS=1 virtual server, 1 of 1 member up");
    let admin = setup.clone().admin_socket();
    line.proxy.reload(&admin);
    assert!(manager.until("RELOADING=1\nMONOTONIC_USEC=").len() > 30);
    manager.until("READY=1\nSTATUS=1 virtual server");
    line.proxy.reload_text("virtual_servers: 1");
    manager.until("RELOADING=1");
    assert_eq!(manager.until("READY=1"), "READY=1");
    line.proxy.write(&admin);
    let pid = line.upgrade();
    assert_eq!(manager.message(), format!("MAINPID={pid}"), "before the new one speaks");
    assert_eq!(manager.message(), "READY=1\nSTATUS=1 virtual server, 1 of 1 member up");
    Line::signal(pid, Signal::TERM);
    assert_eq!(manager.until("STOPPING=1"), "STOPPING=1\nSTATUS=drains");
    assert!(manager.message().starts_with("EXTEND_TIMEOUT_USEC="));
}

#[test]
fn the_watchdog_is_told_while_each_worker_turns() {
    let manager = Manager::new();
    let member = Member::named("hello");
    let setup = Setup::new(&[member.address()])
        .environment("NOTIFY_SOCKET", &manager.path())
        .environment("WATCHDOG_USEC", "200000")
        .top("data_plane: { workers: 2 }");
    let mut proxy = Proxy::start(&setup);
    // An idle weir also notifies the watchdog.
    for _ in 0..5 {
        manager.until("WATCHDOG=1");
    }
    proxy.process().while_stopped(|| {
        manager.socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        let mut buffer = [0; 64];
        // Reads all earlier messages. After that, the stopped process must not send any.
        while manager.socket.recv(&mut buffer).is_ok() {}
        manager.socket.set_read_timeout(Some(weir_tests::STEP_TIMEOUT)).expect("a timeout");
    });
    manager.until("WATCHDOG=1");
}

/// A Python script that opens a socket for the first virtual server of the file and another socket, and then executes weir.
const ACTIVATION: &str = r#"
import os, re, socket, sys
words = sys.argv[1:]
text = open(words[-1]).read().split("virtual_servers:")[1]
host, port = re.search(r'listen: "([0-9.]+):(\d+)"', text).groups()
sockets = [socket.create_server((host, int(port))), socket.create_server(("127.0.0.1", 0))]
for number, it in enumerate(sockets):
    os.dup2(it.fileno(), 100 + number)
for number in range(2):
    os.dup2(100 + number, 3 + number, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="web:other")
os.execv(words[0], words)
"#;

#[test]
fn sockets_of_a_service_manager_are_used_and_handed_over() {
    let member = Member::named("hello");
    let setup = Setup::new(&[member.address()])
        .top("data_plane: { workers: 2 }")
        .started_by("python3", &["-c", ACTIVATION]);
    let mut line = Line::start(&setup);
    let ask = |line: &Line| {
        for _ in 0..20 {
            line.proxy.client().get("/").assert_status(200);
        }
    };
    ask(&line);
    let closed = " was handed over, and no virtual server uses it: closed";
    assert!(line.proxy.process().output().contains(closed));
    line.upgrade();
    ask(&line);
    assert!(line.proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
    ask(&line);
}

/// Opens a socket for the first virtual server of the file with SO_REUSEPORT, as `ReusePort=yes` does, keeps it, and starts weir
/// again each time it ends. The process of weir ends with this one.
const RESTARTS: &str = r#"
import ctypes, os, re, socket, sys
words = sys.argv[1:]
text = open(words[-1]).read().split("virtual_servers:")[1]
host, port = re.search(r'listen: "([0-9.]+):(\d+)"', text).groups()
listener = socket.create_server((host, int(port)), reuse_port=True)
while True:
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, 9)
        os.dup2(os.dup2(listener.fileno(), 100), 3, inheritable=True)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="web")
        os.execv(words[0], words)
    os.waitpid(pid, 0)
"#;

/// Workers share the one socket: a socket of their own would end with the process, and connections in its queue with it.
#[test]
fn restarts_with_a_socket_of_the_manager_lose_no_connection() {
    let member = Member::named("hello");
    let setup = Setup::new(&[member.address()])
        .top("data_plane: { workers: 4 }")
        .started_by("python3", &["-c", RESTARTS]);
    let mut line = Line::start(&setup);
    let pause = Duration::from_millis(1);
    let plan = Plan { connections: 8, pause, requests_per_connection: Some(1) };
    let load = Load::start(line.proxy.address(), "/", plan);
    for started in 1..=RESTART_COUNT {
        Line::signal(line.serving(), Signal::TERM);
        weir_tests::eventually("another process serves", weir_tests::STEP_TIMEOUT, || {
            line.proxy.process().output().matches(" serves ").count() == started + 1
        });
    }
    let tally = load.stop();
    assert!(tally.failed() == 0 && tally.good > 0, "{tally:?}");
}
