//! The rungs of virtual servers, and the reports about them.

use weir_tests::proxy::weir_binary;
use weir_tests::{STEP_TIMEOUT, eventually, require};

use crate::network::{Network, at};
use crate::{POOL, server};

const WITHOUT: [&str; 4] =
    ["setpriv", "--bounding-set", "-bpf,-sys_admin,-net_admin,-perfmon", "--"];

#[test]
fn without_capabilities_sockets_take_the_place_of_packets() {
    require!("setpriv");
    let Some(mut network) = Network::make() else { return };
    let servers = "virtual_servers:\n  \
        a: { type: fast_l4, listen: 10.77.1.1:80, pool: p, fast_l4: { mss_max: 1200 } }\n  \
        b: { type: fast_l4, listen: \"10.77.1.1:*\", protocol: 47, pool: p }\n  \
        c: { type: fast_l4, listen: 10.77.1.1:53, protocol: udp, pool: p }\n";
    network.configure("", &format!("{servers}pools: {{ p: {{ members: [ 10.77.2.2:9000 ] }} }}\n"));
    network.start_as(&WITHOUT);
    let mut connection = network.connect("10.77.1.1:80");
    assert_eq!(connection.source.ip(), at("10.77.2.1:0").ip());
    connection.echo();
    let (a, b) = (network.server("a"), network.server("b"));
    assert_eq!(a["served_by"], "sockets");
    let why = "this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON";
    assert_eq!(a["why"], why);
    let remarks = a["remarks"].to_string();
    assert!(remarks.contains("`mss_max` has no effect with sockets"), "{remarks}");
    assert_eq!(network.server("c")["served_by"], "sockets");
    assert_eq!(b["served_by"], "nothing");
    let unserved = "sockets can replace packets only for protocols tcp and udp";
    assert_eq!(b["unserved"], unserved);
    let problems = network.status()["problems"].to_string();
    assert!(problems.contains("virtual server b is down: no packets"), "{problems}");
    let told = network.weir().output();
    assert!(
        told.contains(&format!("virtual server a is served by sockets, not by packets: {why}")),
        "{told}"
    );
    assert!(told.contains("error ladder: virtual server b is not served"), "{told}");
    let page = network.command(&["status"]);
    assert!(page.contains(&format!("served by    sockets, not packets: {why}")), "{page}");
    // Without sockets as the last rung, weir does not serve the virtual server, and reports that.
    network.configure(
        ", rungs: [ xdp, tcx ]",
        &format!("{servers}pools: {{ p: {{ members: [ 10.77.2.2:9000 ] }} }}\n"),
    );
    network.reload();
    assert_eq!(network.server("a")["unserved"], "`rungs` has no `proxy`");
    assert!(!network.has_pins());
    // `weir check` reports it in advance.
    let check = |before: &[&str]| {
        let mut words: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        let file = network.file();
        words.extend([
            weir_binary().to_string_lossy().into_owned(),
            "check".into(),
            "--explain".into(),
            file,
        ]);
        weir_tests::tools::run(std::process::Command::new(&words[0]).args(&words[1..]))
    };
    network.configure("", &format!("{servers}pools: {{ p: {{ members: [ 10.77.2.2:9000 ] }} }}\n"));
    let text = check(&WITHOUT);
    assert!(
        text.contains(&format!("a (type fast_l4, protocol tcp): by sockets, as type tcp: {why}\n")),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "b (type fast_l4, protocol 47): not served: {why}, and {unserved}\n"
        )),
        "{text}"
    );
    assert!(
        text.contains(&format!("c (type fast_l4, protocol udp): by sockets, as type udp: {why}\n")),
        "{text}"
    );
    let text = check(&[]);
    assert!(text.contains("c (type fast_l4, protocol udp): by packets: xdp, or tcx where the driver has no XDP, on all interfaces that are up\n"), "{text}");
}

#[test]
fn where_xdp_is_refused_tcx_takes_its_place() {
    let Some(mut network) = Network::make() else { return };
    // A bridge does not support XDP itself.
    network.shell("adc", "ip link add alone type bridge; ip addr add 10.77.5.1/24 dev alone; ip link set dev alone up");
    network.configure(
        ", interfaces: [ clients, servers, alone ]",
        &format!("{}{}", server("listen: 10.77.9.1:80, pool: p"), POOL),
    );
    network.start();
    assert_eq!(network.server("a")["rungs"], "xdp on clients, xdp on servers, tcx on alone");
    let status = network.status();
    let alone = status["packet_path"]["interfaces"].as_array().and_then(|all| all.last()).cloned();
    let alone = alone.expect("three interfaces");
    assert!(alone["refused"]["xdp"].as_str().is_some_and(|why| !why.is_empty()), "{alone}");
    network.connect("10.77.9.1:80").echo();
    eventually("it is told", STEP_TIMEOUT, || {
        network.weir().output().contains("virtual server a is served by packets: xdp on clients")
    });
}

#[test]
fn what_guards_sockets_needs_no_virtual_server_of_packets() {
    let Some(mut network) = Network::make() else { return };
    let rest = "virtual_servers: { a: { type: tcp, listen: 10.77.1.1:80, pool: p } }\npools: { p: { members: [ 10.77.2.2:9000 ] } }\n";
    network.configure(", deny: [ 10.77.1.2 ]", rest);
    network.start();
    assert!(network.try_connect("10.77.1.1:80").is_none());
    // A configuration that cannot be applied does not remove the filter of `deny`.
    network.configure(", deny: [ 10.77.1.2 ]", &rest.replace("10.77.1.1:80", "10.99.9.9:80"));
    network.weir().signal(rustix::process::Signal::HUP);
    eventually("it is refused", STEP_TIMEOUT, || {
        network.weir().output().contains("was not reloaded")
    });
    assert!(network.try_connect("10.77.1.1:80").is_none(), "the guard is gone");
    network.configure(", deny: [ 10.77.1.3 ]", rest);
    network.reload();
    network.connect("10.77.1.1:80").echo();
}

/// A rejected configuration attaches no program to an interface. A file with errors is never loaded into the kernel, and the
/// effects of any other rejected file are undone.
#[test]
fn a_configuration_that_is_refused_takes_no_interface() {
    let Some(mut network) = Network::make() else { return };
    let rest = format!("{}{POOL}", server("listen: 10.77.9.1:80, pool: p"));
    network.configure("", &rest);
    network.start();
    let has_program = |network: &Network| {
        network.namespaces.output("adc", "ip link show dev late").contains("xdp")
    };
    network.shell("adc", "ip link add late type veth peer name late-peer; ip addr add 10.77.5.1/24 dev late; ip link set dev late up");
    let refused = |network: &Network| network.weir().output().matches("was not reloaded").count();
    let bound = format!(
        "virtual_servers:\n  a: {{ type: fast_l4, listen: 10.77.9.1:80, pool: p }}\n  \
         b: {{ type: tcp, listen: 10.99.9.9:80, pool: p }}\n{POOL}"
    );
    let mut held = network.connect("10.77.9.1:80");
    // The last case also changes the sizes of the tables.
    for (number, flows_max, text) in
        [(1, 4_096, "virtual_servers: ["), (2, 4_096, &*bound), (3, 8_192, &bound)]
    {
        network.configure_flows(flows_max, "", text);
        network.weir().signal(rustix::process::Signal::HUP);
        eventually("it is refused", STEP_TIMEOUT, || refused(&network) == number);
        assert!(!has_program(&network), "{text}");
        held.echo();
    }
    network.connect("10.77.9.1:80").echo();
    // An accepted configuration attaches the program.
    network.configure("", &rest);
    network.reload();
    assert!(has_program(&network));
}

#[test]
fn what_keeps_cookies_from_coming_is_told() {
    let Some(mut network) = Network::make() else { return };
    let rest = "virtual_servers: { a: { type: tcp, listen: 10.77.1.1:80, pool: p } }\npools: { p: { members: [ 10.77.2.2:9000 ] } }\n";
    network.configure(", syn_cookies: [ \"10.77.1.1:80\" ]", rest);
    network.shell("adc", "echo 1 > /proc/sys/net/ipv4/tcp_syncookies");
    network.start();
    let output = network.weir().output();
    let is_told = |text: &str| text.contains("set net.ipv4.tcp_syncookies to 2");
    assert!(is_told(&output), "{output}");
    let told = |network: &Network| network.status()["packet_path"]["syn_cookies"].clone();
    assert!(told(&network).as_str().is_some_and(is_told), "{}", told(&network));
    network.shell("adc", "echo 2 > /proc/sys/net/ipv4/tcp_syncookies");
    assert!(told(&network).is_null(), "{}", told(&network));
}
