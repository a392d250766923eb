//! State that survives changes of members, reloads, restarts and crashes.

use weir_tests::{STEP_TIMEOUT, eventually};

use crate::network::{Connection, FIRST, Network, SECOND, at};
use crate::{POOL, server};

/// Opens connections until both members have one.
fn connect_to_both(network: &Network) -> Vec<Connection> {
    let mut all = Vec::new();
    let has =
        |all: &[Connection], member| all.iter().any(|it: &Connection| it.member == at(member));
    while !(has(&all, FIRST) && has(&all, SECOND)) {
        assert!(all.len() < 64, "one member gets nothing");
        all.push(network.connect("10.77.9.1:80"));
    }
    all
}

#[test]
fn a_member_that_is_drained_keeps_its_flows_and_one_that_is_down_loses_them() {
    let Some(mut network) = Network::make() else { return };
    let monitors = "monitors: [ { type: tcp, port: 9100, interval: 500ms, timeout: 500ms, rise: 1, fall: 2 } ]";
    network.serve("10.77.2.2:9100");
    let pool = format!("pools: {{ p: {{ members: [ {FIRST}, {SECOND} ], {monitors} }} }}\n");
    network.configure("", &format!("{}{pool}", server("listen: 10.77.9.1:80, pool: p")));
    network.start();
    // The probe port of the second member is closed.
    for _ in 0..8 {
        assert_eq!(network.connect("10.77.9.1:80").member, at(FIRST));
    }
    network.serve("10.77.2.3:9100");
    eventually("the second is up", STEP_TIMEOUT, || {
        network.connect("10.77.9.1:80").member == at(SECOND)
    });
    let mut connections = connect_to_both(&network);
    network.command(&["member", "p", SECOND, "drain"]);
    eventually("the second gets nothing new", STEP_TIMEOUT, || {
        (0..16).all(|_| network.connect("10.77.9.1:80").member == at(FIRST))
    });
    for connection in &mut connections {
        connection.echo();
    }
    network.command(&["member", "p", SECOND, "reset"]);
    // The members' host drops its responses to weir, so probes fail.
    network.shell("server", "ip route add blackhole 10.77.2.1/32; sleep 0");
    eventually("both are down, and flows are reset", STEP_TIMEOUT, || {
        connections.iter_mut().all(|it| it.try_echo().is_err())
    });
    let ended = network.status()["packet_path"]["flows_ended"]["member_down"].clone();
    assert!(ended.as_u64() >= Some(connections.len() as u64), "{ended}");
}

#[test]
fn flows_outlast_reloads() {
    let Some(mut network) = Network::make() else { return };
    let server =
        server("listen: [ 10.77.9.1:80, 10.77.9.1:81 ], pool: p, fast_l4: { source: auto }");
    network.configure("", &format!("{server}{POOL}"));
    network.start();
    let mut connections = connect_to_both(&network);
    // The reload removes the second member. Its connections continue, and it gets no new ones.
    let one = format!("pools: {{ p: {{ members: [ {FIRST} ] }} }}\n");
    network.configure("", &format!("{server}{one}"));
    network.reload();
    for connection in &mut connections {
        connection.echo();
    }
    for _ in 0..8 {
        assert_eq!(network.connect("10.77.9.1:80").member, at(FIRST));
    }
    // With another rung, weir replaces the programs.
    network.configure(", rungs: [ tcx ]", &format!("{server}{POOL}"));
    network.reload();
    assert_eq!(network.server("a")["rungs"], "tcx on clients, tcx on servers");
    for connection in &mut connections {
        connection.echo();
    }
    // A configuration that cannot be applied changes nothing.
    network.configure("", "virtual_servers: { a: { type: http, listen: 10.99.9.9:80, pool: p } }\npools: { p: { members: [ 10.77.2.2:9000 ] } }\n");
    network.weir().signal(rustix::process::Signal::HUP);
    eventually("it is refused", STEP_TIMEOUT, || {
        network.weir().output().contains("was not reloaded")
    });
    for connection in &mut connections {
        connection.echo();
    }
    // Without a virtual server of type `fast_l4`, weir removes everything from the kernel.
    network.configure("", "virtual_servers: { a: { type: tcp, listen: 10.77.1.1:80, pool: p } }\npools: { p: { members: [ 10.77.2.2:9000 ] } }\n");
    network.reload();
    eventually("it is detached", STEP_TIMEOUT, || !network.has_pins());
    network.connect("10.77.1.1:80").echo();
}

#[test]
fn flows_outlast_restarts_and_crashes_and_can_be_removed() {
    let Some(mut network) = Network::make() else { return };
    let rest =
        format!("{}{POOL}", server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }"));
    network.configure(", on_exit: keep", &rest);
    network.start();
    let mut connections = connect_to_both(&network);
    network.end();
    // The kernel forwards packets without a running weir, including those of new flows.
    connections.push(network.connect("10.77.9.1:80"));
    for connection in &mut connections {
        connection.echo();
    }
    network.start();
    assert_eq!(network.status()["packet_path"]["taken_over"], true);
    for connection in &mut connections {
        connection.echo();
    }
    assert_eq!(network.flows(&[]).len(), connections.len());
    network.kill();
    for connection in &mut connections {
        connection.echo();
    }
    network.start();
    assert_eq!(network.flows(&[]).len(), connections.len());
    // The command refuses to remove the state of a running weir.
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| network.detach()));
    assert!(refused.is_err() && network.has_pins());
    network.kill();
    let told = network.detach();
    assert!(told.starts_with("removed the packet path "), "{told}");
    assert!(!network.has_pins());
    eventually("nobody forwards any more", STEP_TIMEOUT, || {
        network.try_connect("10.77.9.1:80").is_none()
    });
    assert_eq!(network.detach(), "nothing is left in the kernel\n");
}

/// A process that weir has started. It is killed on drop.
struct NewProcess(i32);

impl Drop for NewProcess {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0) {
            // The process may have ended already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

#[test]
fn flows_go_on_over_an_upgrade_and_over_one_that_fails() {
    let Some(mut network) = Network::make() else { return };
    let good = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }");
    network.configure("", &format!("{good}{POOL}"));
    network.start();
    let mut connections = connect_to_both(&network);
    // The new process takes over the packet path, and then cannot bind an address.
    let bad = good.replace(" } }\n", " }, other: { listen: 192.0.2.1:80, pool: p } }\n");
    network.configure("", &format!("{bad}{POOL}"));
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        network.command(&["upgrade"]);
    }));
    assert!(refused.is_err());
    let follows = |network: &Network, count: usize| {
        eventually("flows are followed", STEP_TIMEOUT, || {
            network.status()["packet_path"]["taken_over"] == true
                && network.flows(&[]).len() == count
        });
    };
    connections.push(network.connect("10.77.9.1:80"));
    follows(&network, connections.len());
    network.configure("", &format!("{good}{POOL}"));
    network.command(&["upgrade"]);
    let pid = network.status()["pid"].as_i64().and_then(|pid| pid.try_into().ok());
    let _new = NewProcess(pid.expect("a process id"));
    // The old process, which drains, ends.
    network.end();
    connections.push(network.connect("10.77.9.1:80"));
    for connection in &mut connections {
        connection.echo();
    }
    follows(&network, connections.len());
}

#[test]
fn flows_that_rest_are_ended_and_told() {
    let Some(mut network) = Network::make() else { return };
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { idle_timeout: 1s }");
    network.configure("", &format!("{server}{POOL}"));
    network.start();
    let mut connection = network.connect("10.77.9.1:80");
    eventually("the flow is ended", STEP_TIMEOUT, || network.flows(&[]).is_empty());
    assert!(connection.try_echo().is_err(), "the client was not told");
}

#[test]
fn flows_that_rest_end_without_a_word_where_nobody_is_to_be_told() {
    let Some(mut network) = Network::make() else { return };
    let keys =
        "listen: 10.77.9.1:80, pool: p, fast_l4: { idle_timeout: 1s, reset_on_timeout: false }";
    network.configure("", &format!("{}{POOL}", server(keys)));
    network.start();
    let mut connection = network.connect("10.77.9.1:80");
    eventually("the flow is ended", STEP_TIMEOUT, || network.flows(&[]).is_empty());
    connection.wait_at_most(std::time::Duration::from_millis(500));
    let error = connection.try_echo().expect_err("there is no way any more");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "the client was told");
}

#[test]
fn flows_that_are_to_be_kept_outlast_an_end_before_the_first_probes_are_in() {
    let Some(mut network) = Network::make() else { return };
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }");
    network.configure(", on_exit: keep", &format!("{server}{POOL}"));
    network.start();
    let mut connections = connect_to_both(&network);
    network.end();
    // Probes of the second process are accepted but not answered.
    let _silent = [network.listen("10.77.2.2:9100"), network.listen("10.77.2.3:9100")];
    let monitor = "monitors: [ { type: http, port: 9100, interval: 60s, timeout: 30s } ]";
    let pool = format!("pools: {{ p: {{ members: [ {FIRST}, {SECOND} ], {monitor} }} }}\n");
    network.configure(", on_exit: keep", &format!("{server}{pool}"));
    network.start_until(&[], "waits for the first probes");
    network.end();
    assert!(network.has_pins(), "the path was detached");
    for connection in &mut connections {
        connection.echo();
    }
}

#[test]
fn interfaces_may_come_later_and_come_back_as_others() {
    let Some(mut network) = Network::make() else { return };
    let rest =
        format!("{}{POOL}", server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }"));
    let both = "xdp on clients, xdp on servers";
    network.configure(", on_exit: keep, interfaces: [ clients, servers ]", &rest);
    network.start();
    let mut connections = connect_to_both(&network);
    network.end();
    // The flows of the previous process survive a start with a missing interface.
    network.configure(", on_exit: keep, interfaces: [ clients, servers, later ]", &rest);
    network.start();
    assert_eq!(network.server("a")["rungs"], both);
    let later = network.status()["packet_path"]["interfaces"][2].clone();
    assert_eq!(later["refused"]["tcx"], "there is no interface later", "{later}");
    for connection in &mut connections {
        connection.echo();
    }
    for _ in 0..2 {
        network.shell("adc", "ip link add later type bridge; ip link set dev later up");
        eventually("it is attached to", STEP_TIMEOUT, || {
            network.server("a")["rungs"] == format!("{both}, tcx on later")
        });
        network.shell("adc", "ip link del later");
        eventually("it is gone", STEP_TIMEOUT, || network.server("a")["rungs"] == both);
    }
    // A change of settings while the interface is missing has only its own effect.
    network.configure(
        ", on_exit: keep, rungs: [ tcx ], interfaces: [ clients, servers, later ]",
        &rest,
    );
    network.reload();
    assert_eq!(network.server("a")["rungs"], "tcx on clients, tcx on servers");
    for connection in &mut connections {
        connection.echo();
    }
}

#[test]
fn weir_ends_though_somebody_works_on_this_host() {
    let Some(mut network) = Network::make() else { return };
    let rest = "virtual_servers: { a: { type: fast_l4, listen: \"0.0.0.0/0:*\", protocol: any, pool: p, fast_l4: { translate_address: false } } }\n\
                pools: { p: { members: [ 10.77.2.2 ] } }\n";
    network.configure("", rest);
    let text = std::fs::read_to_string(network.file()).expect("the configuration");
    let text = text.replace("drain_timeout: 0s", "drain_timeout: 10m");
    std::fs::write(network.file(), text).expect("writing the configuration");
    network.start();
    let _service = network.listen_within("adc", "10.77.1.1:22");
    let mut session = network.connect_silently("10.77.1.1:22");
    // The connection sends data during the whole test.
    std::thread::spawn(move || {
        while std::io::Write::write_all(&mut session, b"x").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
    });
    assert!(network.flows(&[]).is_empty(), "what is for this host itself is no flow");
    // It would wait for ten minutes.
    network.end();
}

#[test]
fn sockets_are_not_robbed_by_what_a_crash_has_left() {
    let Some(mut network) = Network::make() else { return };
    network.serve("10.77.2.2:9300");
    let packets = server("listen: 10.77.1.1:80, pool: p, fast_l4: { source: auto }");
    network.configure("", &format!("{packets}{POOL}"));
    network.start();
    network.connect("10.77.1.1:80").echo();
    network.kill();
    assert!(network.has_pins(), "the kernel goes on");
    // From this start on, sockets serve the virtual server, with another member.
    let pool = "pools: { p: { members: [ 10.77.2.2:9300 ] } }\n";
    network.configure(", rungs: [ proxy ]", &format!("{packets}{pool}"));
    network.start();
    assert!(!network.has_pins(), "nothing is left");
    // The kernel releases the programs after a short delay.
    eventually("sockets serve", STEP_TIMEOUT, || {
        network.try_connect("10.77.1.1:80").is_some_and(|it| it.member == at("10.77.2.2:9300"))
    });
    let output = network.weir().output();
    assert!(output.contains("of a former process is removed: sockets serve now"), "{output}");
}

#[test]
fn what_a_crash_has_left_is_told_where_nothing_is_said_of_packets() {
    let Some(mut network) = Network::make() else { return };
    let packets = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }");
    network.configure("", &format!("{packets}{POOL}"));
    network.start();
    network.kill();
    let relay = "virtual_servers: { a: { type: tcp, listen: 10.77.1.1:80, pool: p } }\n";
    network.configure("", &format!("{relay}{POOL}"));
    network.start();
    assert!(network.has_pins(), "another weir may come back to it");
    let output = network.weir().output();
    let is_told =
        |line: &str| line.contains("`weir l4 detach`") && line.contains(network.name.as_str());
    assert!(output.lines().any(is_told), "{output}");
}

#[test]
fn what_goes_by_the_routing_table_outlasts_weir() {
    let Some(mut network) = Network::make() else { return };
    network.configure("", &server("listen: \"10.77.2.0/24:*\", protocol: any, forward: route"));
    let text = std::fs::read_to_string(network.file()).expect("the configuration");
    let text = text.replace("drain_timeout: 0s", "drain_timeout: 10m");
    std::fs::write(network.file(), text).expect("writing the configuration");
    network.start();
    let mut connection = network.connect(SECOND);
    connection.echo();
    assert_eq!(network.flows(&[]).len(), 1);
    // It would wait for ten minutes.
    network.end();
    assert!(!network.has_pins());
    connection.echo();
}

#[test]
fn packets_begin_and_end_with_a_reload() {
    let Some(mut network) = Network::make() else { return };
    let relay = "virtual_servers: { a: { type: tcp, listen: 10.77.1.1:80, pool: p } }\n";
    network.configure("", &format!("{relay}{POOL}"));
    network.start();
    // A configuration that cannot be applied leaves nothing in the kernel, although its programs were loaded.
    let packets = "virtual_servers:\n  a: { type: fast_l4, listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto } }\n";
    let bad = "  b: { type: http, listen: 10.99.9.9:80, pool: p }\n";
    network.configure("", &format!("{packets}{bad}{POOL}"));
    network.weir().signal(rustix::process::Signal::HUP);
    eventually("it is refused", STEP_TIMEOUT, || {
        network.weir().output().contains("was not reloaded")
    });
    eventually("nothing is left", STEP_TIMEOUT, || !network.has_pins());
    network.connect("10.77.1.1:80").echo();
    network.configure("", &format!("{packets}{POOL}"));
    network.reload();
    let mut connection = network.connect("10.77.9.1:80");
    connection.echo();
    assert_eq!(network.flows(&[]).len(), 1);
    network.configure("", &format!("{relay}{POOL}"));
    network.reload();
    eventually("it is detached", STEP_TIMEOUT, || !network.has_pins());
    network.connect("10.77.1.1:80").echo();
}

/// A new configuration with fewer interfaces detaches none of them while it waits for its first probes.
#[test]
fn interfaces_stay_until_something_else_is_in_force() {
    let Some(mut network) = Network::make() else { return };
    let one = server("listen: 10.77.9.1:80, pool: p");
    network.configure(", interfaces: [ clients, servers ]", &format!("{one}{POOL}"));
    network.start();
    let next = "virtual_servers: { a: { type: fast_l4, listen: 10.77.9.1:80, pool: p }, b: { type: tcp, listen: 10.77.1.1:81, pool: q } }
pools:
  p: { members: [ 10.77.2.2:9000 ] }
  q: { members: [ 10.77.2.99:1 ], monitors: [ { type: tcp, interval: 8s, timeout: 7s } ] }
";
    network.configure(", interfaces: [ servers ]", next);
    network.weir().signal(rustix::process::Signal::HUP);
    eventually("it waits", STEP_TIMEOUT, || {
        network.weir().output().contains("waits for the first")
    });
    for _ in 0..8 {
        network.connect("10.77.9.1:80").echo();
    }
    eventually("it is in force", STEP_TIMEOUT, || network.server("a")["rungs"] == "xdp on servers");
}
