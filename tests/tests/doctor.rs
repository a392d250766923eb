//! `weir doctor` finds the problems that the tests create.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use weir_tests::member::Member;
use weir_tests::namespaces::Namespaces;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::tools;

/// An admin address without a running weir.
const NOWHERE: &str = "unix:/nowhere/at/all/admin.sock";

/// A configuration with one virtual server, one member, and further lines of the pool.
fn configuration(listen: &str, member: SocketAddr, pool: &str) -> String {
    format!(
        "virtual_servers:\n  shop: {{ listen: \"{listen}\", pool: web }}\npools:\n  web: {{ members: [ \"{member}\" ]{pool} }}\n"
    )
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The findings of one check.
fn findings(report: &Value, check: &str) -> Vec<Value> {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|it| it["name"] == check);
    found.unwrap_or_else(|| panic!("{check} in {report}"))["findings"].as_array().unwrap().clone()
}

#[track_caller]
fn expect(report: &Value, check: &str, severity: &str, what: &str) {
    let found = findings(report, check);
    let is_it = |finding: &Value| {
        finding["severity"] == severity && finding["what"].as_str().unwrap().contains(what)
    };
    assert!(found.iter().any(is_it), "{severity} {what:?} in {found:#?}");
    for finding in &found {
        for key in ["where", "mend"] {
            assert!(!finding[key].as_str().unwrap().is_empty(), "{finding}");
        }
    }
}

fn doctor(file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(weir_binary());
    command.args(["doctor", "--json"]).arg(file).args(arguments).env("WEIR_ADMIN", NOWHERE);
    command.output().expect("the built command")
}

#[test]
fn a_port_that_another_process_has_and_a_member_that_is_gone() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let member = Member::echo();
    let folder = TempDir::new("doctor");
    let listen = taken.local_addr().unwrap().to_string();
    let file = folder.write("weir.yaml", configuration(&listen, member.address(), ""));
    let output = doctor(&file, &[]);
    let found = report(&output);
    assert_eq!(output.status.code(), Some(1));
    expect(&found, "ports", "error", &format!("(process {})", std::process::id()));
    assert_eq!(findings(&found, "members"), [] as [Value; 0]);
    assert_eq!(found["is_running"], false);
    drop(member);
    drop(taken);
    let found = report(&doctor(&file, &[]));
    assert_eq!(findings(&found, "ports"), [] as [Value; 0]);
    expect(&found, "members", "error", "connection refused; no member of pool web passes");
    // `--no-members` skips the checks of members.
    let found = report(&doctor(&file, &["--no-members"]));
    assert!(found["checks"].as_array().unwrap().iter().all(|check| check["name"] != "members"));
}

#[test]
fn a_limit_of_the_process() {
    let folder = TempDir::new("doctor");
    let member = Member::echo();
    let file = folder.write("weir.yaml", configuration("127.0.0.1:0", member.address(), ""));
    // Port 0 means any free port, so the check of ports finds no conflict.
    let line = format!(
        "ulimit -n 512; exec {} doctor --json --no-members {}",
        weir_binary().display(),
        file.display()
    );
    let output = Command::new("sh").args(["-c", &line]).env("WEIR_ADMIN", NOWHERE).output();
    expect(&report(&output.unwrap()), "limits", "warning", "512 open files per worker are few");
}

#[test]
fn a_member_that_does_not_answer_is_waited_for_in_view() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let monitors = ", monitors: [ { type: redis, timeout: 60s, interval: 60s } ]";
    let folder = TempDir::new("doctor");
    let text = configuration("127.0.0.1:0", silent.local_addr().unwrap(), monitors);
    let file = folder.write("weir.yaml", text);
    let output = doctor(&file, &["--timeout", "3s"]);
    expect(&report(&output), "members", "warning", "redis of member");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("probed 0 of 1 members"), "{told}");
}

#[test]
fn a_running_weir_and_its_file() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]);
    let proxy = Proxy::start(&setup);
    let file = proxy.config_path();
    let ask = || {
        let mut command = Command::new(weir_binary());
        command.args(["doctor", "--json"]).env("WEIR_ADMIN", proxy.admin_address());
        command.output().expect("the built command")
    };
    let found = report(&ask());
    assert_eq!(found["is_running"], true);
    assert_eq!(found["file"], file.display().to_string());
    for check in ["running weir", "ports", "members", "configuration"] {
        assert_eq!(findings(&found, check), [] as [Value; 0], "{check}");
    }
    proxy.write(&setup.pool("connect_timeout: 4s"));
    let found = report(&ask());
    expect(&found, "running weir", "warning", "changed since the running weir has read it");
    // `doctor` reports a file with errors, and still checks the running weir.
    std::fs::write(&file, "pools: [").unwrap();
    let found = report(&ask());
    assert!(
        findings(&found, "configuration").iter().any(|it| it["severity"] == "error"),
        "{found}"
    );
    expect(&found, "running weir", "warning", "changed since");
}

#[test]
fn changes_of_the_running_weir_are_checked() {
    let member = Member::echo();
    let proxy =
        Proxy::start(&Setup::new(&[member.address()]).admin_socket().top("state_dir: state"));
    let weir = |arguments: &[&str]| {
        let mut command = Command::new(weir_binary());
        command.args(arguments).env("WEIR_ADMIN", proxy.admin_address());
        command.output().expect("the built command")
    };
    // This member's port is closed. Only the running configuration contains the member, not the file.
    let set = weir(&["set", "/pools/members/members/127.0.0.1:1", "{}"]);
    assert!(set.status.success(), "{set:?}");
    let found = report(&weir(&["doctor", "--json"]));
    expect(&found, "members", "warning", "127.0.0.1:1");
    expect(&found, "running weir", "note", "1 change of the configuration not in the files");
    assert_eq!(findings(&found, "configuration"), [] as [Value; 0]);
}

#[test]
fn settings_of_a_host() {
    let Some(namespaces) = Namespaces::make() else { return };
    if !tools::present("setpriv") {
        return;
    }
    let folder = TempDir::new("doctor");
    let text = "virtual_servers:\n  shop: { listen: 10.77.1.1:80, pool: web }\n  fast: { type: fast_l4, listen: 10.77.1.1:81, pool: web }\n  \
                far: { listen: 10.77.9.9:82, pool: web }\n\
                pools:\n  web: { members: [ 10.77.2.2:80 ], source: client }\n";
    let file = folder.write("weir.yaml", text);
    let line = |settings: &str, user: &str| {
        let weir = weir_binary().display();
        let line = format!(
            "{settings}; {user} {weir} doctor --json --no-members --admin {NOWHERE} {} || true",
            file.display()
        );
        serde_json::from_str::<Value>(&namespaces.output("adc", &line)).expect("a report")
    };
    let nobody =
        "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all";
    let bad = "sysctl -qw net.ipv4.ip_forward=0 net.core.somaxconn=64 net.ipv4.conf.clients.rp_filter=1 net.ipv4.conf.all.rp_filter=0 \
               net.ipv4.ip_local_port_range='30000 31000' net.ipv4.tcp_syncookies=0 net.ipv4.ip_unprivileged_port_start=1024";
    let found = line(bad, nobody);
    expect(&found, "ports", "error", "may not listen on 10.77.1.1:80");
    expect(&found, "ports", "error", "does not have the address of 10.77.9.9:82");
    expect(&found, "kernel", "error", "packets of virtual server fast are dropped");
    expect(&found, "kernel", "error", "has neither CAP_NET_RAW nor CAP_NET_ADMIN");
    expect(&found, "kernel", "warning", "net.ipv4.conf.clients.rp_filter drops packets");
    expect(
        &found,
        "kernel",
        "warning",
        "packets cannot be forwarded by the kernel: this process lacks",
    );
    expect(&found, "kernel", "warning", "a flood of SYNs");
    expect(&found, "limits", "warning", "room for 64 connections");
    expect(&found, "limits", "warning", "1,001 ports for outgoing connections");
    let good = "sysctl -qw net.ipv4.ip_forward=1 net.core.somaxconn=4096 net.ipv4.conf.clients.rp_filter=0 \
                net.ipv4.ip_local_port_range='32768 60999' net.ipv4.tcp_syncookies=1 net.ipv4.tcp_slow_start_after_idle=0; ip addr add 10.77.9.9/32 dev lo";
    let found = line(good, "");
    for check in ["ports", "limits", "kernel"] {
        let bad = findings(&found, check);
        let bad: Vec<&Value> = bad.iter().filter(|finding| finding["severity"] != "note").collect();
        assert_eq!(bad, [] as [&Value; 0], "{check}");
    }
}

/// `ExecReload` of the unit checks the file of the weir that has its ports.
#[test]
fn a_check_says_nothing_of_ports_that_a_running_weir_has() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let mut command = Command::new(weir_binary());
    let output = command.arg("check").arg(proxy.config_path()).output().expect("the built command");
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!((output.status.code(), error.contains("in use")), (Some(0), false), "{error}");
}
