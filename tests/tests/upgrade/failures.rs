//! Failed upgrades: a new process that fails changes nothing, and a new process takes over if the old one ends during the
//! upgrade.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use weir_tests::load::{Load, Plan};
use weir_tests::member::Member;
use weir_tests::process::Process;
use weir_tests::proxy::{Setup, weir_binary};
use weir_tests::temp::TempDir;

use crate::Line;

/// Writes a shell script as an executable file.
fn program(directory: &TempDir, text: &str) -> PathBuf {
    let path = directory.write("program", format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    path
}

/// Runs an upgrade under load that must fail for `reason`, while the old process continues to serve.
fn check(prepare: impl FnOnce(&mut Line), arguments: &[&str], reason: &str) {
    let member = Member::named("hello");
    let mut line = Line::start(&Setup::new(&[member.address()]));
    prepare(&mut line);
    let first = line.proxy.process().pid();
    let plan =
        Plan { connections: 4, pause: Duration::from_millis(1), requests_per_connection: Some(5) };
    let load = Load::start(line.proxy.address(), "/", plan);
    let report = line.fail(arguments);
    let told = report["reason"].as_str().unwrap_or_default();
    assert!(told.contains(reason), "{report}");
    load.wait_for_good(1);
    let tally = load.stop();
    assert_eq!(tally.failed(), 0, "{tally:?}");
    let status = line.status();
    assert_eq!(status["pid"], first);
    assert_eq!(status["upgrade"]["state"], "failed");
    assert!(status["problems"].to_string().contains(reason), "{status}");
    let event = format!("error weir was not upgraded, and serves on: {told}");
    assert!(line.proxy.process().output().contains(&event), "{event}");
    // With a valid file, the upgrade succeeds afterwards.
    line.proxy.write(&Setup::new(&[member.address()]).admin_socket());
    line.upgrade();
}

#[test]
fn a_binary_that_is_none() {
    check(|_| {}, &["--binary", "/nowhere/weir"], "cannot start /nowhere/weir: ");
    let directory = TempDir::new("upgrade-broken");
    let broken = program(&directory, "exit 3").display().to_string();
    let reason = "the new process ended (exit status: 3) before it was ready";
    check(|_| {}, &["--binary", &broken], reason);
}

#[test]
fn a_process_that_hangs() {
    let directory = TempDir::new("upgrade-hangs");
    let hangs = program(&directory, "exec sleep 60").display().to_string();
    let arguments = ["--binary", &hangs, "--timeout", "300ms"];
    check(|_| {}, &arguments, "the new process was not ready within 300ms");
}

#[test]
fn a_file_with_errors() {
    let spoil = |line: &mut Line| {
        line.proxy.write(&Setup::new(&[]).top("data_plain: {}").admin_socket());
    };
    check(spoil, &[], "weir.yaml has errors");
}

#[test]
fn an_address_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let member = Member::named("hello");
    let setup = Setup::new(&[member.address()]).also_listen(address).admin_socket();
    check(|line| line.proxy.write(&setup), &[], &format!("cannot listen on {address}"));
}

/// A weir with an upgrade in progress. The new process waits for the first probe of its member. Also returns the process id
/// of the new process.
pub(super) fn with_a_new_process(gate: &Member) -> (Line, u32) {
    let setup = Setup::new(&[]).member(&gate.address().to_string());
    let mut line = Line::start(&setup.clone().admin_socket());
    let pid = begin(&mut line, setup, gate, |line| line.proxy.process().signal(Signal::USR2));
    (line, pid)
}

/// Starts an upgrade whose new process waits for the first probe of its member. Returns the process id of the new process.
fn begin(line: &mut Line, setup: Setup, gate: &Member, ask: impl FnOnce(&mut Line)) -> u32 {
    let probed = setup
        .pool("monitors: [ { type: http, path: /, interval: 60s, timeout: 60s } ]")
        .top("first_probes: { wait: 60s }")
        .admin_socket();
    line.proxy.write(&probed);
    ask(line);
    let mut pid = None;
    weir_tests::eventually("the new process starts", weir_tests::STEP_TIMEOUT, || {
        pid = line.status()["upgrade"]["pid"].as_u64();
        pid.is_some()
    });
    let pid = u32::try_from(pid.expect("set by the condition")).expect("a process id");
    line.pids.push(pid);
    gate.wait_for_requests(1);
    pid
}

#[test]
fn a_version_whose_time_is_over_is_taken_back_by_the_process_that_serves() {
    let (gate, _shut) = Member::gated("hello");
    let directory = TempDir::new("upgrade-versions");
    let state_dir = format!("state_dir: {}", directory.path().display());
    let address = gate.address().to_string();
    let setup = Setup::new(&[]).member(&address).top(&state_dir);
    let mut line = Line::start(&setup.clone().admin_socket());
    let admin = line.proxy.admin_address();
    let set = |weight: &str, more: &[&str]| {
        let pointer = format!("/pools/members/members/{address}/weight");
        let words = ["set", &pointer, weight, "--admin", &admin];
        let output = Command::new(weir_binary()).args(words).args(more).output();
        let output = output.expect("weir set runs");
        assert!(output.status.success(), "{output:?}");
    };
    set("5", &["--confirm", "1s"]);
    // The new process starts only after the timeout.
    let late = program(&directory, &format!("sleep 2; exec {} \"$@\"", weir_binary().display()));
    let mut upgrade = Command::new(weir_binary());
    upgrade.args(["upgrade", "--admin", &admin, "--binary"]).arg(&late).stdout(Stdio::null());
    let mut asking = None;
    let pid = begin(&mut line, setup.clone(), &gate, |_| {
        asking = Some(upgrade.spawn().expect("weir upgrade runs"));
    });
    Line::signal(pid, Signal::KILL);
    let ended = asking.expect("set before").wait().expect("weir upgrade ends");
    assert_eq!(ended.code(), Some(1));
    let newest = || -> serde_json::Value {
        let versions = line.proxy.admin_get("/v1/versions");
        let versions: serde_json::Value = serde_json::from_str(&versions).expect("versions");
        versions["items"].as_array().and_then(|it| it.last()).cloned().unwrap_or_default()
    };
    weir_tests::eventually("the version is taken back", weir_tests::STEP_TIMEOUT, || {
        newest()["number"] == 2
    });
    assert_eq!(newest()["comment"], "not confirmed", "{}", newest());
    set("6", &[]);
    assert_eq!(newest()["number"], 3);
}

#[test]
fn the_new_process_is_killed() {
    let (gate, _shut) = Member::gated("hello");
    let (line, pid) = with_a_new_process(&gate);
    Line::signal(pid, Signal::KILL);
    weir_tests::eventually("the upgrade has failed", weir_tests::STEP_TIMEOUT, || {
        line.status()["upgrade"]["state"] == "failed"
    });
    assert!(line.status()["upgrade"]["reason"].to_string().contains("signal: 9"));
}

#[test]
fn the_old_process_is_killed() {
    let (member, gate) = Member::gated("hello");
    let (mut line, pid) = with_a_new_process(&member);
    line.proxy.process().kill();
    // The listening sockets remain open, so clients wait in their queues.
    let mut client = line.proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    gate.open();
    assert_eq!(client.response().assert_status(200).text(), "hello");
    assert_eq!(line.serving(), pid);
    assert!(line.status()["upgrade"]["state"] == "done");
}

/// Kills of the supervised weir.
const KILLS: usize = 3;

#[test]
fn after_a_kill_another_one_serves_with_the_same_versions() {
    let member = Member::named("hello");
    let directory = TempDir::new("upgrade-supervised");
    // A minimal supervisor, which restarts the process when it has ended.
    let supervisor = program(&directory, "while :; do \"$@\"; done");
    let state = directory.path().join("state");
    let setup = Setup::new(&[member.address()]).top(&format!("state_dir: {}", state.display()));
    let mut line = Line::start(&setup);
    line.proxy.process().kill();
    let config = line.proxy.config_path().display().to_string();
    let log = directory.path().join("log");
    let words = [weir_binary().to_str().expect("a path"), "run", &config];
    let supervised = Process::start(&supervisor, &words, &log);
    let serves = |count: usize| {
        weir_tests::eventually("it serves", weir_tests::STEP_TIMEOUT, || {
            supervised.output().matches(" serves ").count() == count
        });
    };
    serves(1);
    let weir = |words: &[&str]| {
        let mut command = Command::new(weir_binary());
        command.args(words).args(["--admin", &line.proxy.admin_address()]);
        String::from_utf8(command.output().expect("weir runs").stdout).expect("text")
    };
    weir(&["set", "/pools/members/members/127.0.0.1:1", r#"{"weight":7}"#]);
    let overlay = weir(&["diff"]);
    assert!(overlay.starts_with("version 1: 1 change") && overlay.contains('7'), "{overlay}");
    for killed in 1..=KILLS {
        Line::signal(line.serving(), Signal::KILL);
        serves(killed + 1);
        assert_eq!(weir(&["diff"]), overlay);
    }
}
