//! The process as a whole, with real workers: start, reload, drain.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use rustix::process::{getpid, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use weir_config::snapshot::{Member, MonitorKind};
use weir_core::monitor::Health;
use weir_exchange::termination::Termination;

use super::members::OtherMembers;
use super::*;
use crate::events::testing::Captured;
use crate::testing::{PATIENCE, eventually};

mod several_files;
mod transactions;
mod withheld;

/// A directory with a configuration file, removed at the end.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("weir-supervisor-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn config(&self, text: &str) -> PathBuf {
        let path = self.0.join("weir.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A member that answers every request with its name and closes.
async fn member(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                if stream.read(&mut [0; 1_024]).await.is_ok_and(|length| length > 0) {
                    let length = name.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}"
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    address
}

/// A port without a listener.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn yaml(listen: u16, members: &[SocketAddr], more: &str) -> String {
    let members: Vec<String> = members.iter().map(SocketAddr::to_string).collect();
    format!(
        "{more}\nlog: {{ access: {{ format: \"off\" }} }}\nvirtual_servers:\n  shop: {{ listen: 127.0.0.1:{listen}, pool: web }}\n\
         pools:\n  web:\n    members: [ {} ]\n    monitors: [ {{ type: http, interval: 100ms, timeout: 90ms }} ]\n",
        members.join(", ")
    )
}

async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Waits until nobody listens at an address any more: workers close their listeners a moment after a reload.
async fn until_refused(address: SocketAddr) {
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("nobody listens there");
}

async fn until_up(supervisor: &Supervisor) {
    eventually("all members are up", || {
        let mut members = supervisor.table.pools.iter().flat_map(|pool| &pool.members);
        members.all(|member| member.health() == Health::Up)
    })
    .await;
}

fn socket(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A member that answers probes while the gate is open, and all other requests with its name.
async fn gated(name: &'static str, gate: &Gate) -> SocketAddr {
    let gate = Gate::clone(gate);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let gate = Gate::clone(&gate);
            tokio::spawn(async move {
                let mut head = [0; 1_024];
                let length = stream.read(&mut head).await.unwrap_or(0);
                while head[..length].starts_with(b"GET /healthz ") && !gate.load(Relaxed) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let length = name.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

/// Like [`yaml`], with a probe that may take long.
fn patient(listen: u16, members: &[SocketAddr], more: &str) -> String {
    let more = match more.contains("first_probes") {
        true => more.to_owned(),
        false => format!("{more}\nfirst_probes: {{ wait: 10m }}"),
    };
    yaml(listen, members, &more)
        .replace("interval: 100ms, timeout: 90ms", "path: /healthz, interval: 60s, timeout: 60s")
}

/// Whether probes are answered.
type Gate = Arc<AtomicBool>;

/// Opens the gate after an event with this text.
async fn open_when_told(gate: &Gate, what: &str, captured: &Captured, events: &Events) {
    while !captured.lines(events).iter().any(|line| line.contains(what)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gate.store(true, Relaxed);
}

#[tokio::test]
async fn a_start_serves_when_the_first_probes_are_in() {
    let (events, captured) = Captured::new();
    let files = Files::new("first");
    let gate = Gate::default();
    let slow = gated("slow", &gate).await;
    let (listen, admin) = (free_port(), free_port());
    let with_admin = format!("admin: {{ listen: 127.0.0.1:{admin} }}");
    let file = files.config(&patient(listen, &[slow], &with_admin));
    let prepared = Supervisor::prepare(
        &file,
        NameServers::System,
        None,
        (events.clone(), InheritedState::default()),
    );
    let mut supervisor = prepared.await.unwrap();
    let client = tokio::spawn(ask(socket(listen), "/"));
    let health = ask(socket(admin), "/health").await;
    assert!(health.starts_with("HTTP/1.1 503 ") && health.ends_with("starting\n"), "{health}");
    let status = ask(socket(admin), "/v1/status").await;
    assert!(
        status.contains("starts: clients wait for the first probes of pool web (1 of 1 member)")
    );
    assert!(ask(socket(admin), "/metrics").await.contains("\nweir_config_waiting 1\n"));
    assert!(!client.is_finished());
    let waits = "info weir waits for the first probes of pool web (1 of 1 member), ";
    tokio::join!(supervisor.wait(), open_when_told(&gate, waits, &captured, &events));
    assert!(client.await.unwrap().ends_with("slow"));
    assert!(ask(socket(admin), "/health").await.ends_with("ok\n"));
    assert!(ask(socket(admin), "/metrics").await.contains("\nweir_config_waiting 0\n"));
    let lines = captured.lines(&events);
    assert!(lines.contains(&format!("info member web/{slow} is up: passed")), "{lines:#?}");
    assert!(lines.last().unwrap().starts_with("info weir serves 1 virtual server"), "{lines:#?}");
    supervisor.stop().await;
    supervisor.finish();
}

#[tokio::test]
async fn a_reload_is_in_force_when_the_first_probes_are_in() {
    let (events, captured) = Captured::new();
    let files = Files::new("next");
    let one = member("one").await;
    let (gate, shut) = (Gate::default(), Gate::default());
    let (slow, silent) = (gated("slow", &gate).await, gated("silent", &shut).await);
    let listen = free_port();
    let file = files.config(&yaml(listen, &[one], ""));
    let mut supervisor =
        Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
    assert!(ask(socket(listen), "/").await.ends_with("one"), "it is known at once");

    files.config(&patient(listen, &[slow], ""));
    assert!(supervisor.read_again().await);
    assert!(supervisor.observed.waiting().is_some());
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    // An invalid file does not change the waiting configuration.
    files.config("nonsense: true");
    assert!(!supervisor.read_again().await);
    assert!(supervisor.next.is_some());
    let waits = "info configuration waits for the first probes of pool web (1 of 1 member), ";
    tokio::join!(supervisor.wait(), open_when_told(&gate, waits, &captured, &events));
    assert!(ask(socket(listen), "/").await.ends_with("slow"));

    // A valid file replaces it.
    let waits = "first_probes: { wait: 10m }";
    files.config(&patient(listen, &[silent], waits));
    assert!(supervisor.read_again().await);
    files.config(&patient(listen, &[silent, slow], waits));
    assert!(supervisor.read_again().await);
    files.config(&yaml(listen, &[one], waits));
    assert!(supervisor.reload().await, "what is known needs no wait");
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    assert_eq!(supervisor.monitors.running(), 1);
    assert_eq!(supervisor.observed.reloads.succeeded.load(Relaxed), 2);
    assert_eq!(supervisor.observed.reloads.failed.load(Relaxed), 1);
    let lines = captured.lines(&events);
    let told = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(told("info configuration replaces one that waited for its first probes"), 2);

    // A waiting configuration is dropped when the process ends.
    files.config(&patient(listen, &[silent], waits));
    assert!(supervisor.read_again().await);
    supervisor.drain();
    assert!(supervisor.next.is_none() && supervisor.observed.waiting().is_none());
    supervisor.drained().await;
    supervisor.finish();
    let lines = captured.lines(&events);
    let dropped = "warning configuration that waits for its first probes is dropped: weir exits";
    assert!(lines.iter().any(|line| line.starts_with(dropped)), "{lines:#?}");
}

#[tokio::test]
async fn what_does_not_answer_in_time_is_tried_or_refused() {
    let (events, captured) = Captured::new();
    let files = Files::new("late");
    let silent = gated("silent", &Gate::default()).await;
    let listen = free_port();
    for (then, answer, told) in [
        ("serve", "HTTP/1.1 200 ", "they are tried until a probe fails"),
        ("refuse", "HTTP/1.1 503 ", "they get no requests until a probe passes"),
    ] {
        let settings = format!("first_probes: {{ wait: 100ms, then: {then} }}");
        let file = files.config(&patient(listen, &[silent], &settings));
        let mut supervisor =
            Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
        let answered = ask(socket(listen), "/").await;
        assert!(answered.starts_with(answer), "{then}: {answered}");
        let line = format!(
            "warning pool web has members whose first probe has no result: {silent}; {told}"
        );
        assert!(captured.lines(&events).contains(&line));
        supervisor.stop().await;
        supervisor.finish();
    }
}

#[tokio::test]
async fn a_signal_ends_a_start_that_waits() {
    let (events, captured) = Captured::new();
    let files = Files::new("stopped");
    let silent = gated("silent", &Gate::default()).await;
    let listen = files.0.join("listen");
    let text = patient(1, &[silent], "first_probes: { wait: 10m }")
        .replace("127.0.0.1:1,", &format!("\"unix:{}\",", listen.display()));
    let file = files.config(&text);
    let prepared = Supervisor::prepare(
        &file,
        NameServers::System,
        None,
        (events.clone(), InheritedState::default()),
    );
    let supervisor = prepared.await.unwrap();
    assert!(listen.exists());
    let signals = Signals {
        upgrade: signal(SignalKind::io()).unwrap(),
        reload: signal(SignalKind::window_change()).unwrap(),
        terminate: signal(SignalKind::user_defined2()).unwrap(),
        interrupt: signal(SignalKind::alarm()).unwrap(),
    };
    kill_process(getpid(), rustix::process::Signal::USR2).unwrap();
    supervisor.serve(signals).await.unwrap();
    assert!(!listen.exists());
    let lines = captured.lines(&events);
    assert!(lines.contains(&"info weir stopped during startup".to_owned()), "{lines:#?}");
}

/// If all addresses of a name change at once, the new ones are probed before they are used.
#[tokio::test]
async fn other_addresses_of_names_are_probed_before_they_are_used() {
    let (events, _) = Captured::new();
    let files = Files::new("moved");
    let gate = Gate::default();
    let (one, slow) = (member("one").await, gated("slow", &gate).await);
    let listen = free_port();
    let file = files.config(&yaml(listen, &[one], ""));
    let mut supervisor =
        Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
    // This has the effect of a changed name, without a name server.
    let mut snapshot = Snapshot::clone(&supervisor.table.snapshot);
    let pool = Arc::make_mut(&mut snapshot.pools[0]);
    pool.members[0].address = Address::Socket(slow);
    pool.members[0].label = slow.to_string().into();
    pool.monitors[0].schedule.timeout_ms = 60_000;
    if let MonitorKind::Http(probe) = &mut pool.monitors[0].kind {
        probe.path = "/healthz".into();
    }
    supervisor.prepare_next(snapshot, None).unwrap();
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    gate.store(true, Relaxed);
    supervisor.wait().await;
    assert!(ask(socket(listen), "/").await.ends_with("slow"));
    assert_eq!(supervisor.observed.reloads.succeeded.load(Relaxed), 0);
    supervisor.stop().await;
    supervisor.finish();
}

#[tokio::test]
async fn a_panic_of_a_worker_is_told_counted_and_shown() {
    let (events, captured) = Captured::new();
    let files = Files::new("panic");
    let one = member("one").await;
    let (listen, admin) = (free_port(), free_port());
    let more = format!("admin: {{ listen: 127.0.0.1:{admin} }}\ndata_plane: {{ workers: 1 }}");
    let file = files.config(&yaml(listen, &[one], &more));
    let mut supervisor =
        Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
    let none = ask(socket(admin), "/metrics").await;
    assert!(none.contains("\nweir_worker_panics_total 0\n"), "{none}");
    // No known input causes a panic of a worker, so the test uses an impossible table.
    let snapshot = Arc::clone(&supervisor.table.snapshot);
    let mut impossible = LiveTable::build(snapshot, Some(&supervisor.table), 1, &outside());
    impossible.tls.clear();
    supervisor.data_plane.put_in_force(Arc::new(impossible));
    eventually("a worker has panicked", || supervisor.observed.last_panic().is_some()).await;
    let metrics = ask(socket(admin), "/metrics").await;
    assert!(metrics.contains("\nweir_worker_panics_total 1\n"), "{metrics}");
    let status = ask(socket(admin), "/v1/status").await;
    let status: serde_json::Value =
        serde_json::from_str(status.split_once("\r\n\r\n").unwrap().1).unwrap();
    let message = status["last_worker_panic"]["message"].as_str().unwrap();
    assert!(message.contains("index out of bounds") && message.contains(".rs:"), "{message}");
    let problem = status["problems"][0].as_str().unwrap();
    assert!(problem.starts_with("1 panic of workers: ") && problem.ends_with(message), "{problem}");
    let line =
        format!("error worker 0 panicked and lost its connections, it starts again: {message}");
    assert!(captured.lines(&events).contains(&line), "{:#?}", captured.lines(&events));
    assert!(ask(socket(listen), "/").await.ends_with("one"), "it serves on");
    supervisor.stop().await;
    supervisor.finish();
}

#[tokio::test]
async fn a_process_serves_reloads_and_drains() {
    let (events, captured) = Captured::new();
    let files = Files::new("life");
    let (one, two) = (member("one").await, member("two").await);
    let (listen, admin) = (free_port(), free_port());
    let with_admin =
        format!("admin: {{ listen: 127.0.0.1:{admin} }}\ndata_plane: {{ workers: 2 }}");
    let file = files.config(&yaml(listen, &[one], &with_admin));
    let mut supervisor =
        Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
    until_up(&supervisor).await;
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    let metrics = ask(socket(admin), "/metrics").await;
    assert!(
        metrics.contains("weir_virtual_server_requests_total{virtual_server=\"shop\"} 1\n"),
        "{metrics}"
    );

    // An invalid file changes nothing, and the event contains the error.
    files.config("virtual_servers: { shop: { listen: 127.0.0.1:1, pool: wep } }\npools: { web: { members: [] } }");
    assert!(!supervisor.reload().await);
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    let lines = captured.lines(&events);
    assert!(
        lines.iter().any(|line| line.starts_with("error configuration: ") && line.contains("wep")),
        "{lines:#?}"
    );
    assert!(
        lines.last().unwrap().starts_with("error configuration was not reloaded"),
        "{lines:#?}"
    );

    // A file with an address in use changes nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_port = taken.local_addr().unwrap().port();
    files.config(&yaml(taken_port, &[one], &with_admin));
    assert!(!supervisor.reload().await);
    assert!(ask(socket(listen), "/").await.ends_with("one"));

    // A valid file takes effect: other members, another admin address, and a number of workers that needs a restart.
    let moved = free_port();
    let more = format!(
        "admin: {{ listen: 127.0.0.1:{moved} }}\ndata_plane: {{ workers: 3, drain_timeout: 5s }}"
    );
    files.config(&yaml(listen, &[two], &more));
    assert!(supervisor.reload().await);
    until_up(&supervisor).await;
    assert!(ask(socket(listen), "/").await.ends_with("two"));
    let metrics = ask(socket(moved), "/metrics").await;
    assert!(metrics.contains("weir_config_reloads_total{result=\"success\"} 1\n"), "{metrics}");
    assert!(metrics.contains("weir_config_reloads_total{result=\"failure\"} 2\n"), "{metrics}");
    until_refused(socket(admin)).await;
    let lines = captured.lines(&events);
    let restart = "warning data_plane.workers needs a restart to change from 2 to 3".to_owned();
    assert!(lines.contains(&restart), "{lines:#?}");

    // If the new admin address is in use, the old listener stays.
    files.config(&yaml(
        listen,
        &[two],
        &format!(
            "admin: {{ listen: 127.0.0.1:{taken_port} }}\ndata_plane: {{ drain_timeout: 10m }}"
        ),
    ));
    assert!(supervisor.reload().await);
    assert!(ask(socket(moved), "/health").await.ends_with("ok\n"));
    let stays = format!(
        "error admin listener stays 127.0.0.1:{moved}: cannot listen on 127.0.0.1:{taken_port}: address in use"
    );
    assert!(captured.lines(&events).contains(&stays));

    supervisor.drain();
    assert!(ask(socket(moved), "/health").await.ends_with("draining\n"));
    tokio::time::timeout(PATIENCE, supervisor.drained()).await.expect("an end");
    assert!(TcpStream::connect(socket(listen)).await.is_err());
    supervisor.finish();
    assert_eq!(captured.lines(&events).last().unwrap(), "info weir has ended");
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let (events, _) = Captured::new();
    let files = Files::new("start");
    let one = member("one").await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_port = taken.local_addr().unwrap().port();
    let check = async |text: &str, expected: &str| {
        let file = files.config(text);
        match Supervisor::start(&file, NameServers::System, events.clone()).await {
            Ok(_) => panic!("it starts: {text}"),
            Err(error) => assert!(error.to_string().contains(expected), "{error}"),
        }
    };
    check("nonsense: true", "the configuration cannot be used").await;
    check(&yaml(taken_port, &[one], ""), "virtual server shop: cannot listen on 127.0.0.1:").await;
    let admin = format!(
        "admin: {{ listen: 127.0.0.1:{taken_port} }}\ndata_plane: {{ drain_timeout: 10m }}"
    );
    check(&yaml(free_port(), &[one], &admin), "admin listener: cannot listen on 127.0.0.1:").await;
    let log = yaml(free_port(), &[one], "").replace("format: \"off\"", "to: /nowhere/access.log");
    check(&log, "access log: cannot open /nowhere/access.log: no such file").await;
    let missing = files.0.join("missing.yaml");
    let result = Supervisor::start(&missing, NameServers::System, events.clone()).await;
    assert!(matches!(result, Err(Error::Configuration { .. })));
}

/// A member given by name is resolved, and its address can change while requests are served.
#[tokio::test]
async fn names_become_members() {
    let (events, _) = Captured::new();
    let files = Files::new("names");
    let one = member("one").await;
    let listen = free_port();
    let text =
        yaml(listen, &[one], "").replace(&one.to_string(), &format!("localhost:{}", one.port()));
    let file = files.config(&text);
    let mut supervisor =
        Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
    let any_up = || supervisor.table.pools[0].members.iter().any(|it| it.health() == Health::Up);
    eventually("a member is up", any_up).await;
    let member = &supervisor.table.snapshot.pools[0].members[0];
    assert_eq!(member.name.as_deref(), Some("localhost"));
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    assert!(!supervisor.apply_names(), "nothing has changed");
    supervisor.stop().await;
    supervisor.finish();
}

/// `docs/observability.md` lists every field of the access log, and no others.
#[tokio::test]
async fn access_log_fields_are_documented() {
    let (events, _) = Captured::new();
    let files = Files::new("log");
    let one = member("one").await;
    let listen = free_port();
    let path = files.0.join("access.log");
    let text =
        yaml(listen, &[one], "").replace("format: \"off\"", &format!("to: {}", path.display()));
    let file = files.config(&text);
    let mut supervisor = Supervisor::start(&file, NameServers::System, events).await.unwrap();
    until_up(&supervisor).await;
    assert!(ask(socket(listen), "/x").await.ends_with("one"));
    supervisor.drain();
    supervisor.drained().await;
    supervisor.finish();
    let line = std::fs::read_to_string(&path).unwrap();
    let entry: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
    assert_eq!((&entry["target"], &entry["termination"]), (&"/x".into(), &"complete".into()));
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let table = docs.split("| field | unit | meaning |").nth(1).unwrap().trim_start();
    let documented: Vec<&str> =
        table.lines().skip(1).map_while(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    let mut written: Vec<&str> = entry.keys().map(String::as_str).collect();
    let mut documented_sorted = documented.clone();
    documented_sorted.sort_unstable();
    written.sort_unstable();
    assert_eq!(documented_sorted, written);
}

#[tokio::test]
async fn a_reload_that_waits_for_names_does_not_keep_the_process_from_ending() {
    // A name server that receives queries and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let servers = NameServers::Udp(silent.local_addr().unwrap());
    let (events, _) = Captured::new();
    let files = Files::new("waiting");
    let one = member("one").await;
    let listen = free_port();
    let text = yaml(listen, &[one], "");
    let file = files.config(&text);
    let mut supervisor = Supervisor::start(&file, servers, events).await.unwrap();
    until_up(&supervisor).await;
    files.config(&text.replace(&one.to_string(), "name.test:80"));
    let mut reload = signal(SignalKind::user_defined1()).unwrap();
    kill_process(getpid(), rustix::process::Signal::USR1).unwrap();
    let asked = async {
        silent.recv_from(&mut [0; 512]).await.unwrap();
    };
    let served = tokio::time::timeout(PATIENCE, supervisor.serve_until(&mut reload, asked)).await;
    served.expect("it ends").unwrap();
    assert!(supervisor.reading.is_some(), "it ends while the reload waits");
    assert!(ask(socket(listen), "/").await.ends_with("one"), "the table before is in force");
    supervisor.stop().await;
    supervisor.finish();
}

/// A configuration with two virtual servers, each with its own pool of one member.
fn two_pools(listen: [u16; 2], members: [SocketAddr; 2], first_probes: &str) -> String {
    let pool = |name: &str, member: SocketAddr| {
        format!(
            "  {name}:\n    members: [ {member} ]\n    \
             monitors: [ {{ type: http, path: /healthz, interval: 60s, timeout: 60s }} ]\n"
        )
    };
    format!(
        "first_probes: {first_probes}\nlog: {{ access: {{ format: \"off\" }} }}\nvirtual_servers:\n  \
         a: {{ listen: 127.0.0.1:{}, pool: a }}\n  b: {{ listen: 127.0.0.1:{}, pool: b }}\npools:\n{}{}",
        listen[0],
        listen[1],
        pool("a", members[0]),
        pool("b", members[1])
    )
}

/// The active snapshot with other addresses for some pools: the effect of a changed name, without a name server.
fn renamed(supervisor: &Supervisor, pools: &[(usize, &[SocketAddr])]) -> OtherMembers {
    let mut snapshot = Snapshot::clone(&supervisor.table.snapshot);
    for (index, addresses) in pools {
        let pool = Arc::make_mut(&mut snapshot.pools[*index]);
        let model = pool.members[0].clone();
        let member = |address: &SocketAddr| Member {
            address: Address::Socket(*address),
            label: address.to_string().into(),
            ..model.clone()
        };
        pool.members = addresses.iter().map(member).collect();
    }
    OtherMembers::of(snapshot, supervisor)
}

/// Lets the supervisor apply first probes until the condition holds, while a pool still waits for its own.
async fn wait_until(supervisor: &mut Supervisor, what: &str, is_so: impl AsyncFn() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let held = async {
        tokio::select! {
            () = so => (),
            _ = supervisor.wait() => panic!("nothing waits any more: {what}"),
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect(what);
}

/// A pool whose names have new, dead addresses does not delay another pool. Its new addresses take effect when one of them
/// is up.
#[tokio::test]
async fn a_pool_with_other_addresses_does_not_wait_for_another_pool() {
    let (events, captured) = Captured::new();
    let files = Files::new("by-pool");
    let (gate, shut) = (Gate::default(), Gate::default());
    let (one, two) = (member("one").await, member("two").await);
    let (slow, silent) = (gated("slow", &gate).await, gated("silent", &shut).await);
    let listen = [free_port(), free_port()];
    let file = files.config(&two_pools(listen, [one, one], "{ wait: 10m }"));
    let mut supervisor =
        Supervisor::start(&file, NameServers::System, events.clone()).await.unwrap();
    let both = renamed(&supervisor, &[(0, &[slow]), (1, &[two])]);
    supervisor.prepare_members(both, None);
    wait_until(&mut supervisor, "its new address is up", async || {
        ask(socket(listen[1]), "/").await.ends_with("two")
    })
    .await;
    assert!(ask(socket(listen[0]), "/").await.ends_with("one"), "it keeps the former one");
    assert!(supervisor.next.is_some() && supervisor.observed.waiting().is_some());
    // Another change, with the same address for pool `a`, which waits: `a` continues to wait.
    let both = renamed(&supervisor, &[(0, &[slow]), (1, &[one, silent])]);
    supervisor.prepare_members(both, None);
    wait_until(&mut supervisor, "not all of its addresses are up", async || {
        ask(socket(listen[1]), "/").await.ends_with("one")
    })
    .await;
    let waits = "info names waits for the first probes of pool a (1 of 1 member), ";
    tokio::join!(supervisor.wait(), open_when_told(&gate, waits, &captured, &events));
    assert!(ask(socket(listen[0]), "/").await.ends_with("slow"));
    assert!(ask(socket(listen[1]), "/").await.ends_with("one"));
    assert!(supervisor.observed.waiting().is_none());
    assert_eq!(supervisor.monitors.running(), 3);
    supervisor.stop().await;
    supervisor.finish();
}

/// A pool with a usable member takes effect soon, regardless of its other members. The same holds for a reload.
#[tokio::test]
async fn a_pool_with_a_usable_member_does_not_wait_long_for_others() {
    let (events, _) = Captured::new();
    let files = Files::new("beside");
    let (one, two) = (member("one").await, member("two").await);
    let silent = gated("silent", &Gate::default()).await;
    let listen = free_port();
    let file = files.config(&patient(listen, &[one], ""));
    let mut supervisor = Supervisor::start(&file, NameServers::System, events).await.unwrap();
    let other = renamed(&supervisor, &[(0, &[two, silent])]);
    supervisor.prepare_members(other, None);
    // The silent member would keep it for ten minutes.
    tokio::time::timeout(PATIENCE, supervisor.wait()).await.expect("it does not wait for all");
    assert!(ask(socket(listen), "/").await.ends_with("two"));
    files.config(&patient(listen, &[one, silent], ""));
    tokio::time::timeout(PATIENCE, supervisor.reload()).await.expect("nor does a reload");
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    supervisor.stop().await;
    supervisor.finish();
}

/// A waiting configuration takes effect in time even while the file is read and names are resolved.
#[tokio::test]
async fn what_waits_is_in_force_in_time_while_names_are_asked_for() {
    // A name server that receives queries and never answers.
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let servers = NameServers::Udp(server.local_addr().unwrap());
    let (events, _) = Captured::new();
    let files = Files::new("beside-names");
    let silent = gated("silent", &Gate::default()).await;
    let one = member("one").await;
    let listen = free_port();
    let settings = "first_probes: { wait: 300ms }";
    let text = patient(listen, &[one], settings);
    let file = files.config(&text);
    let mut supervisor = Supervisor::start(&file, servers, events).await.unwrap();
    files.config(&patient(listen, &[silent], settings));
    assert!(supervisor.read_again().await);
    assert!(supervisor.next.is_some());
    files.config(&text.replace(&one.to_string(), "name.test:80"));
    let mut reload = signal(SignalKind::user_defined1()).unwrap();
    kill_process(getpid(), rustix::process::Signal::USR1).unwrap();
    let in_force = async {
        server.recv_from(&mut [0; 512]).await.unwrap();
        while !ask(socket(listen), "/").await.ends_with("silent") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let served = supervisor.serve_until(&mut reload, in_force);
    tokio::time::timeout(PATIENCE, served).await.expect("it is in force").unwrap();
    assert!(supervisor.reading.is_some(), "it is in force while names are asked for");
    supervisor.stop().await;
    supervisor.finish();
}

/// A pool whose name has no address yet is waited for, like a pool whose member is not up yet.
#[tokio::test]
async fn a_pool_whose_name_has_no_address_yet_is_waited_for() {
    let server = crate::names::tests::Server::start().await;
    let (events, _) = Captured::new();
    let files = Files::new("no-address");
    let one = member("one").await;
    let listen = free_port();
    let text = patient(listen, &[one], "");
    let by_name = text.replace(&one.to_string(), &format!("web.test:{}", one.port()));
    let appears = async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.resolve("web.test", one.ip());
    };
    // At startup.
    let file = files.config(&by_name);
    let servers = NameServers::Udp(server.address);
    let start = Supervisor::start(&file, servers.clone(), events.clone());
    let (supervisor, ()) = tokio::join!(start, appears());
    let mut supervisor = supervisor.unwrap();
    assert!(ask(socket(listen), "/").await.ends_with("one"));
    supervisor.stop().await;
    supervisor.finish();
    // At a reload.
    server.forget("web.test");
    let two = member("two").await;
    files.config(&text.replace(&one.to_string(), &two.to_string()));
    let mut supervisor = Supervisor::start(&file, servers, events.clone()).await.unwrap();
    files.config(&by_name);
    let (is_good, ()) = tokio::join!(supervisor.reload(), appears());
    assert!(is_good && ask(socket(listen), "/").await.ends_with("one"));
    supervisor.stop().await;
    supervisor.finish();
}

/// The tables of fields and of remedies contain each termination word of the access log.
#[test]
fn words_of_endings_are_documented() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    for file in ["observability.md", "operating.md"] {
        let text = std::fs::read_to_string(format!("{folder}{file}")).unwrap();
        for word in Termination::ALL.map(Termination::as_str) {
            assert!(text.contains(&format!("\n| `{word}` |")), "docs/{file} has no row for {word}");
        }
    }
}
