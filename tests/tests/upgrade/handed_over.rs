//! State that the old process hands over: listeners of all types for any number of workers, secrets, states of members.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::tls;

use crate::Line;
use crate::failures::with_a_new_process;

#[test]
fn listeners_are_shared_by_any_number_of_workers() {
    let member = Member::named("hello");
    let directory = TempDir::new("upgrade-unix");
    let path = directory.path().join("web.sock");
    let setup = |workers: usize| {
        Setup::new(&[member.address()])
            .also_listen(format!("unix:{}", path.display()))
            .top(&format!("data_plane: {{ workers: {workers} }}"))
            .admin_socket()
    };
    let mut line = Line::start(&setup(3));
    for workers in [1, 4, 2] {
        line.proxy.write(&setup(workers));
        line.upgrade();
        assert_eq!(line.status()["workers"], workers);
        for _ in 0..40 {
            Client::connect(line.proxy.address()).get("/").assert_status(200);
            Client::connect_unix(&path).get("/").assert_status(200);
        }
    }
    // Only the last process removes the socket files.
    let last = line.serving();
    Line::signal(last, Signal::TERM);
    weir_tests::eventually("the last process has ended", weir_tests::STEP_TIMEOUT, || {
        UnixStream::connect(&path).is_err() && !path.exists()
    });
}

#[test]
fn a_listener_that_the_new_file_lacks_is_closed() {
    let member = Member::named("hello");
    let directory = TempDir::new("upgrade-gone");
    let path = directory.path().join("web.sock");
    let setup = Setup::new(&[member.address()]).admin_socket();
    let before = setup.clone().also_listen(format!("unix:{}", path.display()));
    let mut line = Line::start(&before);
    Client::connect_unix(&path).get("/").assert_status(200);
    line.proxy.write(&setup);
    line.upgrade();
    assert!(!path.exists());
    line.proxy.client().get("/").assert_status(200);
}

#[test]
fn tickets_of_the_old_process_resume_sessions() {
    let member = Member::named("hello");
    let setup = Setup::new(&[member.address()]).virtual_server(&tls::shop(""));
    let mut line = Line::start(&setup);
    let directory = TempDir::new("upgrade-tickets");
    let session = directory.path().join("session").display().to_string();
    let request = b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";
    let address = line.proxy.address();
    let common = ["-tls1_2", "-servername", "shop.example"];
    let converse =
        |more: [&str; 2]| tls::s_client_text(address, &[&common[..], &more[..]].concat(), request);
    let first = converse(["-sess_out", &session]);
    assert!(first.contains("New, TLSv1.2"), "{first}");
    line.upgrade();
    let second = converse(["-sess_in", &session]);
    assert!(second.contains("Reused, TLSv1.2"), "{second}");
}

#[test]
fn a_member_that_is_drained_stays_so() {
    let (one, two) = (Member::named("one"), Member::named("two"));
    let mut line = Line::start(&Setup::new(&[one.address(), two.address()]));
    let drained = Command::new(weir_binary())
        .args(["member", "members", &one.address().to_string(), "drain"])
        .args(["--admin", &line.proxy.admin_address()])
        .output()
        .expect("weir member runs");
    assert!(drained.status.success(), "{drained:?}");
    line.upgrade();
    for _ in 0..10 {
        assert_eq!(line.proxy.client().get("/").text(), "two");
    }
}

#[test]
fn clients_stay_at_their_members() {
    let members: Vec<Member> = ["one", "two", "three"].into_iter().map(Member::named).collect();
    let addresses: Vec<_> = members.iter().map(Member::address).collect();
    let setup = Setup::new(&addresses)
        .virtual_server("persistence: by-source")
        .top("persistence: { by-source: { type: source_address } }");
    let mut line = Line::start(&setup);
    let address = line.proxy.address();
    let member_of =
        |last: u8| Client::connect_from(address, [127, 0, 0, last].into()).get("/").text();
    let before: Vec<String> = (10..40).map(member_of).collect();
    line.upgrade();
    // In reverse order, because clients would get other members if the table were empty.
    let mut after: Vec<String> = (10..40).rev().map(member_of).collect();
    after.reverse();
    assert_eq!(before, after);
    // The table also survives a reload that rebuilds it.
    let (_, others) = addresses.split_last().expect("members");
    let fewer = Setup::new(others)
        .virtual_server("persistence: by-source")
        .top("persistence: { by-source: { type: source_address } }");
    line.proxy.write(&fewer);
    let reloaded = Command::new(weir_binary())
        .args(["reload", "--admin", &line.proxy.admin_address()])
        .output()
        .expect("weir reload runs");
    assert!(reloaded.status.success(), "{reloaded:?}");
    for (last, before) in (10..40).zip(&before).filter(|(_, before)| *before != "three") {
        assert_eq!(member_of(last), *before);
    }
}

#[test]
fn the_process_before_is_shown_until_it_has_ended() {
    let (member, gate) = Member::gated("hello");
    let mut line = Line::start(&Setup::new(&[member.address()]));
    let before = line.proxy.process().pid();
    assert_eq!(line.status()["draining_process"], serde_json::Value::Null);
    let mut client = line.proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    member.wait_for_requests(1);
    line.upgrade();
    assert_eq!(line.status()["draining_process"], before);
    gate.open();
    assert_eq!(client.response().assert_status(200).text(), "hello");
    weir_tests::eventually("the process before has ended", weir_tests::STEP_TIMEOUT, || {
        line.status()["draining_process"].is_null()
    });
}

#[test]
fn a_reload_during_an_upgrade_is_done_by_the_new_process() {
    let (member, gate) = Member::gated("hello");
    let (mut line, new) = with_a_new_process(&member);
    let reload = Command::new(weir_binary())
        .args(["reload", "--admin", &line.proxy.admin_address()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weir reload runs");
    weir_tests::eventually("the old process is asked", weir_tests::STEP_TIMEOUT, || {
        line.proxy.process().output().contains("\"path\":\"/v1/reload\"")
    });
    gate.open();
    let reload = reload.wait_with_output().expect("weir reload ends");
    assert!(reload.status.success(), "{reload:?}");
    assert_eq!(line.serving(), new);
    assert_eq!(line.status()["configuration"]["reloads"], 1);
}

#[test]
fn sigusr2_upgrades_too() {
    let member = Member::named("hello");
    let mut line = Line::start(&Setup::new(&[member.address()]));
    let first = line.proxy.process().pid();
    line.proxy.process().signal(Signal::USR2);
    weir_tests::eventually("another process serves", weir_tests::STEP_TIMEOUT, || {
        let serving = line.serving();
        let is_other = serving != first;
        if is_other {
            line.pids.push(serving);
        }
        is_other
    });
    line.proxy.client().get("/").assert_status(200);
    assert!(line.proxy.process().wait(weir_tests::STEP_TIMEOUT).success());
}
