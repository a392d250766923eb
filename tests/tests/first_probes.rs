//! A start and a reload wait for the first probes of new members, so that no client gets 503 because the states are unknown.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::load::{Load, Plan, Tally};
use weir_tests::member::{Member, Then};
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;

/// Time after which a slow member answers a probe.
const SLOWLY: Duration = Duration::from_secs(1);

/// Time within which a command to weir takes effect.
const SOON: Duration = weir_tests::STEP_TIMEOUT;

/// A monitor that sends only one probe within the test.
const PROBE: &str = "type: http, path: /healthz, interval: 60s, timeout: 60s";

/// A member that answers probes after `pause` (`None`: never) and responds to other requests at once with its name.
fn member(name: &'static str, pause: Option<Duration>) -> Member {
    Member::new(move |exchange| {
        if exchange.request.target().starts_with("/healthz") {
            match pause {
                Some(pause) => std::thread::sleep(pause),
                None => {
                    // Until the probe times out or weir ends.
                    exchange.receive(&mut [0; 1])?;
                    return Ok(Then::Close);
                }
            }
        }
        exchange.answer(name)
    })
}

/// A pool of these members. Each is probed once.
fn probed(members: &[SocketAddr]) -> Setup {
    Setup::new(members).pool(&format!("monitors: [ {{ {PROBE} }} ]"))
}

/// Reloads under load. Returns the results of the load.
fn under_load(proxy: &Proxy, reload: impl FnOnce()) -> Tally {
    let kept =
        Plan { connections: 4, pause: Duration::from_millis(2), requests_per_connection: None };
    let fresh = Plan { connections: 2, requests_per_connection: Some(3), ..kept };
    let loads = [kept, fresh].map(|plan| Load::start(proxy.address(), "/", plan));
    reload();
    // The last requests use the new configuration.
    loads.iter().for_each(|load| load.wait_for_good(20));
    let mut all = Tally::default();
    for tally in loads.map(Load::stop) {
        all.good += tally.good;
        all.connect_failures += tally.connect_failures;
        all.lost_requests += tally.lost_requests + tally.lost_connections;
        all.truncated += tally.truncated;
        all.other_status.extend(tally.other_status);
        all.failures.extend(tally.failures);
    }
    all
}

#[track_caller]
fn assert_none_failed(tally: &Tally) {
    assert_eq!(tally.failed(), 0, "{tally:?}");
}

#[test]
fn the_first_request_after_a_start_is_served() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let slow = Member::new(move |exchange| {
        while exchange.request.target() == "/healthz" && !gate.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(5));
        }
        exchange.answer("slow")
    });
    let mut proxy = Proxy::start(&probed(&[slow.address()]).top("first_probes: { wait: 10m }"));
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let waits = "info weir waits for the first probes of pool members (1 of 1 member), ";
    weir_tests::eventually("it tells that it waits", SOON, || {
        proxy.process().output().contains(waits)
    });
    is_open.store(true, Ordering::Release);
    assert_eq!(client.response().assert_status(200).text(), "slow");
    let status = proxy.admin_get("/v1/status");
    assert!(status.contains("\"problems\": []"), "{status}");
}

/// The commands of the README: `weir run weir.yaml &`, directly followed by a request.
#[test]
fn the_first_curl_of_the_readme_works() {
    weir_tests::require!("curl");
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md");
    let (_, after) = readme.split_once("\nweir run weir.yaml &").expect("the command");
    let curl = after.lines().nth(1).and_then(|line| line.split('#').next()).expect("the request");
    let members = [(); 3].map(|()| member("a page", Some(SLOWLY)));
    let (listen, directory) = (Lease::new(), TempDir::new("readme"));
    let address = listen.address().to_string();
    let file = directory.write(
        "weir.yaml",
        format!(
            "virtual_servers:\n  web: {{ listen: \"{address}\", pool: web }}\n\
             pools:\n  web:\n    members: [ {}, {}, {} ]\n    \
             monitors: [ {{ type: http, path: /healthz, interval: 5s, timeout: 4s }} ]\n",
            members[0].address(),
            members[1].address(),
            members[2].address(),
        ),
    );
    let arguments = ["run", &file.to_string_lossy()];
    let _weir = Process::start(weir_binary(), &arguments, &directory.path().join("output.log"));
    assert!(curl.contains("http://127.0.0.1:8080/"), "{curl}");
    let curl = curl.replace("127.0.0.1:8080", &address).replace("curl ", "curl -sS --fail ");
    let page = weir_tests::tools::run(Command::new("sh").args(["-c", &curl]));
    assert_eq!(page, "a page");
}

#[test]
fn a_reload_that_brings_other_members_makes_no_503() {
    for pause in [Duration::ZERO, SLOWLY] {
        let (old, new) = (member("old", Some(pause)), member("new", Some(pause)));
        let proxy = Proxy::start(&probed(&[old.address()]));
        let tally = under_load(&proxy, || proxy.reload_and_wait(&probed(&[new.address()])));
        assert_none_failed(&tally);
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "new");
    }
}

#[test]
fn a_reload_that_brings_a_pool_makes_no_503() {
    for pause in [Duration::ZERO, SLOWLY] {
        let (old, new) = (member("old", Some(pause)), member("new", Some(pause)));
        let proxy = Proxy::start(&probed(&[old.address()]));
        let with_pool = probed(&[old.address()])
            .without_pool()
            .virtual_server("pool: fresh")
            .also_pool(&format!(
                "fresh: {{ members: [ {} ], monitors: [ {{ {PROBE} }} ] }}",
                new.address()
            ));
        let tally = under_load(&proxy, || proxy.reload_and_wait(&with_pool));
        assert_none_failed(&tally);
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "new");
    }
}

#[test]
fn a_reload_that_changes_monitors_makes_no_503() {
    for pause in [Duration::ZERO, SLOWLY] {
        let only = member("only", Some(pause));
        let proxy = Proxy::start(&probed(&[only.address()]));
        let other =
            PROBE.replace("/healthz", "/healthz/other").replace("interval: 60s", "interval: 61s");
        let other = Setup::new(&[only.address()]).pool(&format!("monitors: [ {{ {other} }} ]"));
        let tally = under_load(&proxy, || {
            proxy.reload_and_wait(&other);
            // From a pool without members to one with members, and back.
            proxy.reload_and_wait(&Setup::new(&[only.address()]));
            proxy.reload_and_wait(&probed(&[only.address()]));
        });
        assert_none_failed(&tally);
    }
}

/// The reload leaves one member, which is down by its old monitor. The new monitor probes it before the reload takes effect.
#[test]
fn a_member_that_only_its_new_monitor_calls_up_makes_no_503() {
    let (good, odd) = (
        member("good", Some(Duration::ZERO)),
        Member::new(|exchange| {
            if exchange.request.target() == "/healthz" {
                exchange.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")?;
                return Ok(Then::KeepAlive);
            }
            exchange.answer("odd")
        }),
    );
    let strict = format!("monitors: [ {{ {PROBE}, fall: 1 }} ]");
    let proxy = Proxy::start(&Setup::new(&[good.address(), odd.address()]).pool(&strict));
    proxy.wait_for_member_state(odd.address(), "down", SOON);
    let mended = Setup::new(&[odd.address()]).pool(&strict.replace("/healthz", "/"));
    let tally = under_load(&proxy, || proxy.reload_and_wait(&mended));
    assert_none_failed(&tally);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "odd");
}

#[test]
fn members_that_never_answer_are_tried_after_the_time() {
    let (old, silent) = (member("old", Some(Duration::ZERO)), member("silent", None));
    let settings = "first_probes: { wait: 500ms }";
    let mut proxy = Proxy::start(&probed(&[old.address()]).top(settings));
    let tally = under_load(&proxy, || {
        proxy.reload_and_wait(&probed(&[silent.address()]).top(settings));
    });
    assert_none_failed(&tally);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "silent");
    let told = format!(
        "warning pool members has members whose first probe has no result: {}; \
         they are tried until a probe fails",
        silent.address()
    );
    assert!(proxy.process().output().contains(&told), "{}", proxy.process().output());
    let problem =
        "takes requests before the first probe has a result: pool members (1 of 1 member)";
    let health = proxy.admin_get("/v1/health");
    assert!(health.contains(problem) && health.contains("degraded"), "{health}");
}

#[test]
fn members_that_never_answer_get_nothing_where_that_is_wanted() {
    let silent = member("silent", None);
    let settings = "first_probes: { wait: 500ms, then: refuse }";
    let proxy = Proxy::start(&probed(&[silent.address()]).top(settings));
    proxy.client().get("/").assert_status(503);
    assert_eq!(proxy.metric("weir_config_waiting", &[]), 0.0);
}

/// The result of the first probes of a member that is still starting.
#[derive(Debug, Clone, Copy)]
enum Beginning {
    /// The connection is refused.
    Refused,
    /// The probe gets no answer and times out.
    TimedOut,
    /// The answer has a status that the monitor does not expect.
    Status,
}

impl Beginning {
    const ALL: [Self; 3] = [Self::Refused, Self::TimedOut, Self::Status];
}

/// A monitor with a long interval, so that only repeated first probes occur within the test.
const SELDOM: &str = "type: http, path: /healthz, interval: 60s, timeout: 300ms";

/// A pool with this member and probes with a short timeout.
fn impatient(member: SocketAddr) -> Setup {
    Setup::new(&[member]).pool(&format!("monitors: [ {{ {SELDOM} }} ]"))
}

/// A member that is not ready for its first two probes. Its address is reserved in advance.
struct Starting {
    lease: Lease,
    beginning: Beginning,
}

impl Starting {
    fn new(beginning: Beginning) -> Self {
        Self { lease: Lease::new(), beginning }
    }

    fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// Starts the member. With [`Beginning::Refused`], it listens only after the first probe.
    fn start(&self) -> Member {
        let beginning = self.beginning;
        let probes = AtomicUsize::new(0);
        if let Beginning::Refused = beginning {
            // The test cannot observe a refused probe, so it waits until the first one has certainly been sent.
            std::thread::sleep(Duration::from_millis(600));
        }
        Member::on(self.address(), true, move |exchange| {
            let is_probe = exchange.request.target().starts_with("/healthz");
            let is_early = is_probe && probes.fetch_add(1, Ordering::SeqCst) < 2;
            match beginning {
                Beginning::TimedOut if is_early => {
                    exchange.receive(&mut [0; 1])?;
                    Ok(Then::Close)
                }
                Beginning::Status if is_early => {
                    exchange.send("HTTP/1.1 503 Starting\r\nContent-Length: 0\r\n\r\n")?;
                    Ok(Then::KeepAlive)
                }
                _ => exchange.answer("new"),
            }
        })
    }
}

/// A failed first probe is not final, because the member may still be starting.
#[test]
fn a_reload_to_members_that_still_start_makes_no_503() {
    for beginning in Beginning::ALL {
        let (old, new) = (member("old", Some(Duration::ZERO)), Starting::new(beginning));
        let patient = "first_probes: { wait: 10m }";
        let proxy = Proxy::start(&probed(&[old.address()]));
        let mut started = None;
        let tally = under_load(&proxy, || {
            let before = proxy.reloads("success");
            proxy.reload(&impatient(new.address()).top(patient));
            started = Some(new.start());
            weir_tests::eventually("the new pool is in force", SOON, || {
                proxy.reloads("success") > before
            });
        });
        assert_none_failed(&tally);
        assert_eq!(proxy.client().get("/").assert_status(200).text(), "new", "{beginning:?}");
    }
}

/// A reload that adds a pool for a starting member, beside a pool that is in use.
#[test]
fn a_pool_that_still_starts_makes_no_503() {
    let (old, new) = (member("old", Some(Duration::ZERO)), Starting::new(Beginning::TimedOut));
    let proxy = Proxy::start(&probed(&[old.address()]));
    let with_pool =
        probed(&[old.address()]).without_pool().virtual_server("pool: fresh").also_pool(&format!(
            "fresh: {{ members: [ {} ], monitors: [ {{ {SELDOM} }} ] }}",
            new.address()
        ));
    let started = new.start();
    let tally = under_load(&proxy, || proxy.reload_and_wait(&with_pool));
    assert_none_failed(&tally);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "new");
    drop(started);
}

#[test]
fn a_start_waits_for_members_that_still_start() {
    for beginning in Beginning::ALL {
        let new = Starting::new(beginning);
        let setup = impatient(new.address()).top("first_probes: { wait: 10m }");
        let proxy = Proxy::start(&setup);
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let _started = new.start();
        assert_eq!(client.response().assert_status(200).text(), "new", "{beginning:?}");
    }
}

/// A member that is down does not delay a pool that has a member that is up.
#[test]
fn a_member_that_is_down_holds_up_no_pool_that_has_another() {
    let (old, good) = (member("old", Some(Duration::ZERO)), member("good", Some(Duration::ZERO)));
    let nobody = Lease::new();
    let proxy = Proxy::start(&probed(&[old.address()]));
    let both = probed(&[nobody.address(), good.address()]).top("first_probes: { wait: 10m }");
    let tally = under_load(&proxy, || proxy.reload_and_wait(&both));
    assert_none_failed(&tally);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "good");
}

/// A pool whose members are all down delays a reload for the whole waiting time. Then weir logs the pool.
#[test]
fn members_that_are_down_get_nothing_after_the_time() {
    let (old, nobody) = (member("old", Some(Duration::ZERO)), Lease::new());
    let settings = "first_probes: { wait: 1s }";
    let mut proxy = Proxy::start(&probed(&[old.address()]).top(settings));
    let begun = Instant::now();
    proxy.reload_and_wait(&probed(&[nobody.address()]).top(settings));
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    proxy.client().get("/").assert_status(503);
    proxy.process().says(&format!(
        "warning pool members has no usable member: it takes no requests until a probe passes \
         ({}: connection refused)",
        nobody.address()
    ));
    let output = proxy.process().says("configuration was reloaded: ");
    let reloaded = output.lines().find(|line| line.contains("configuration was reloaded: "));
    let reloaded = reloaded.expect("the reload is told");
    assert!(reloaded.ends_with("; without a usable member: pool members"), "{reloaded}");
}

/// A timeout is a failed probe: the end of the wait does not put such a member up, whatever `fall` is.
#[test]
fn members_whose_probes_time_out_get_nothing_after_the_time() {
    let silent = member("silent", None);
    for (then, fall) in [("serve", 1), ("serve", 3), ("refuse", 3)] {
        let monitor = format!("monitors: [ {{ {SELDOM}, fall: {fall} }} ]");
        let settings = format!("first_probes: {{ wait: 1s, then: {then} }}");
        let setup = Setup::new(&[silent.address()]).pool(&monitor).top(&settings);
        let mut proxy = Proxy::start(&setup);
        proxy.client().get("/").assert_status(503);
        let health = proxy.admin_get("/v1/health");
        assert!(health.contains("\"state\": \"down\""), "{health}");
        let output = proxy.process().says("pool members has no usable member");
        assert!(!output.contains("tried"), "{output}");
    }
}

#[test]
fn what_waits_is_shown_and_gives_way_to_a_newer_file() {
    let (old, silent, new) = (
        member("old", Some(Duration::ZERO)),
        member("silent", None),
        member("new", Some(Duration::ZERO)),
    );
    let patient = "first_probes: { wait: 10m }";
    let first = probed(&[old.address()]).top(patient).admin_socket();
    let mut proxy = Proxy::start(&first);
    weir_tests::eventually("it serves", SOON, || health_of(&proxy).0 == 200);
    assert_eq!(proxy.metric("weir_config_waiting", &[]), 0.0);
    let before = proxy.reloads("success");
    proxy.reload(&probed(&[silent.address()]).top(patient));
    weir_tests::eventually("it waits", SOON, || proxy.metric("weir_config_waiting", &[]) == 1.0);
    let address = proxy.admin_address();
    weir_tests::eventually("status says for whom", SOON, || {
        let mut status = Command::new(weir_binary());
        let status = status.args(["status", "--admin", &address]).output().expect("weir status");
        String::from_utf8_lossy(&status.stdout).contains(
            "! a configuration waits for the first probes of pool members (1 of 1 member), ",
        )
    });
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "old");
    weir_tests::eventually("an event does so, too", SOON, || {
        proxy.process().output().contains(
            "info configuration waits for the first probes of pool members (1 of 1 member), ",
        )
    });
    // A file with errors is rejected, and the pending configuration remains.
    proxy.reload_text("virtual_servers: [");
    weir_tests::eventually("it is refused", SOON, || proxy.reloads("failure") == 1.0);
    assert_eq!(proxy.metric("weir_config_waiting", &[]), 1.0);
    // A valid file replaces the pending configuration.
    let tally = under_load(&proxy, || proxy.reload_and_wait(&probed(&[new.address()])));
    assert_none_failed(&tally);
    assert_eq!(proxy.reloads("success"), before + 1.0);
    assert_eq!(proxy.metric("weir_config_waiting", &[]), 0.0);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "new");
    assert_eq!(silent.open_connections(), 0, "it is probed no longer");
}

/// The time for the first probes starts again with a newer file.
#[test]
fn a_newer_file_has_its_own_time() {
    let (old, silent) = (member("old", Some(Duration::ZERO)), member("silent", None));
    let slow = member("slow", Some(Duration::from_secs(3)));
    let settings = "first_probes: { wait: 6s, then: refuse }";
    let proxy = Proxy::start(&probed(&[old.address()]));
    proxy.client().get("/").assert_status(200);
    let tally = under_load(&proxy, || {
        proxy.reload(&probed(&[silent.address()]).top(settings));
        std::thread::sleep(Duration::from_secs(4));
        proxy.reload_and_wait(&probed(&[slow.address()]).top(settings));
    });
    assert_none_failed(&tally);
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "slow");
}

#[test]
fn a_newer_file_takes_over_the_listeners_that_wait() {
    let (silent, good) = (member("silent", None), member("good", Some(Duration::ZERO)));
    let patient = "first_probes: { wait: 10m }";
    let proxy = Proxy::start(&probed(&[silent.address()]).top(patient));
    // The connection waits during the start and through the reload.
    let mut waiting = proxy.client();
    waiting.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let health = health_of(&proxy);
    assert_eq!(health, (503, "starting\n".into()));
    proxy.reload(&probed(&[good.address()]).top(patient));
    assert_eq!(waiting.response().assert_status(200).text(), "good");
    weir_tests::eventually("it serves", SOON, || health_of(&proxy) == (200, "ok\n".into()));
}

fn health_of(proxy: &Proxy) -> (u16, String) {
    let mut client = proxy.admin_client();
    client.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = client.response();
    (response.status, response.text())
}

#[test]
fn sigterm_ends_a_start_that_waits() {
    let silent = member("silent", None);
    let mut proxy = Proxy::start(&probed(&[silent.address()]).top("first_probes: { wait: 10m }"));
    let mut waiting = proxy.client();
    waiting.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    proxy.process().signal(Signal::TERM);
    assert!(proxy.process().wait(SOON).success());
    let output = proxy.process().output();
    assert!(output.contains("info weir stopped during startup"), "{output}");
    assert!(waiting.try_response(false).is_err());
}

#[test]
fn sigterm_drops_a_reload_that_waits() {
    let (old, silent) = (member("old", Some(Duration::ZERO)), member("silent", None));
    let patient = "first_probes: { wait: 10m }";
    let mut proxy = Proxy::start(&probed(&[old.address()]).top(patient));
    assert_eq!(proxy.client().get("/").assert_status(200).text(), "old");
    proxy.reload(&probed(&[silent.address()]).top(patient));
    weir_tests::eventually("it waits", SOON, || proxy.metric("weir_config_waiting", &[]) == 1.0);
    proxy.process().signal(Signal::TERM);
    assert!(proxy.process().wait(SOON).success());
    let output = proxy.process().output();
    assert!(
        output.contains(
            "warning configuration that waits for its first probes is dropped: weir exits"
        ),
        "{output}"
    );
}
