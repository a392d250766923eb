//! A new process that fails changes nothing. If the old process ends during an upgrade, the new one takes over.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_tests::load::{Load, Plan};
use weir_tests::member::Member;
use weir_tests::process::Process;
use weir_tests::proxy::{Setup, weir_binary};
use weir_tests::temp::TempDir;

use crate::Line;

/// A shell script with this text.
fn program(directory: &TempDir, text: &str) -> PathBuf {
    let path = directory.write("program", format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    path
}

/// An upgrade under load fails with `reason`, and the old process continues to serve.
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
    let tally = load.stop();
    assert!(tally.failed() == 0 && tally.good > 0, "{tally:?}");
    let status = line.status();
    assert_eq!(status["pid"], first);
    assert_eq!(status["upgrade"]["state"], "failed");
    assert!(status["problems"].to_string().contains(reason), "{status}");
    let event = format!("error weir was not upgraded, and serves on: {told}");
    assert!(line.proxy.process().output().contains(&event), "{event}");
    // A later upgrade with a valid file succeeds.
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

/// A weir whose new process waits for the first probe of its member, and the new process.
fn with_a_new_process(gate: &Member) -> (Line, u32) {
    let setup = Setup::new(&[]).member(&gate.address().to_string());
    let mut line = Line::start(&setup.clone().admin_socket());
    let probed = setup
        .pool("monitors: [ { type: http, path: /, interval: 60s, timeout: 60s } ]")
        .top("first_probes: { wait: 60s }")
        .admin_socket();
    line.proxy.write(&probed);
    line.proxy.process().signal(Signal::USR2);
    let mut pid = None;
    weir_tests::eventually("the new process starts", weir_tests::STEP_TIMEOUT, || {
        pid = line.status()["upgrade"]["pid"].as_u64();
        pid.is_some()
    });
    let pid = u32::try_from(pid.expect("set by the condition")).expect("a process id");
    line.pids.push(pid);
    gate.wait_for_requests(1);
    (line, pid)
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
    let (gate, open) = Member::gated("hello");
    let (mut line, pid) = with_a_new_process(&gate);
    line.proxy.process().kill();
    // The new process has the listening sockets, so clients wait.
    let mut client = line.proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    open.store(true, Ordering::Release);
    assert_eq!(client.response().assert_status(200).text(), "hello");
    assert_eq!(line.serving(), pid);
    assert!(line.status()["upgrade"]["state"] == "done");
}

#[test]
fn after_a_kill_another_one_listens_within_a_second() {
    let member = Member::named("hello");
    let directory = TempDir::new("upgrade-supervised");
    // A minimal supervisor, which restarts a process after its exit.
    let supervisor = program(&directory, "while :; do \"$@\"; done");
    let mut line = Line::start(&Setup::new(&[member.address()]));
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
    Line::signal(line.serving(), Signal::KILL);
    let started = Instant::now();
    serves(2);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    line.proxy.client().get("/").assert_status(200);
}
