//! Kernel settings, and process capabilities, that features need.

use std::sync::Arc;

use weir_config::snapshot::packet::{PacketServer, Packets};
use weir_control::packets::{cookies_obstacle, obstacle};

use super::case::Case;
use super::finding::{CheckResult, Finding};

/// Numbers of capabilities that features need.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;

/// The oldest supported version of Linux.
const KERNEL_MIN: (u32, u32) = (5, 9);

/// Checks the requirements of the configured features.
pub fn check(case: &Case<'_>) -> CheckResult {
    let mut checked = CheckResult::new("kernel");
    let release = case.host.setting("kernel.osrelease").unwrap_or_default();
    checked.fact(format!("Linux {release}"));
    if let Some((major, minor)) = version(&release).filter(|version| *version < KERNEL_MIN) {
        let what = format!("weir needs Linux 5.9 or newer, and this is {major}.{minor}");
        checked.find(Finding::error(what, "kernel", "a newer kernel"));
    }
    transparent(case, &mut checked);
    packets(case, &mut checked);
    tcp(case, &mut checked);
    checked
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Checks pools that connect to members from the addresses of clients.
fn transparent(case: &Case<'_>, checked: &mut CheckResult) {
    let pools: Vec<&str> =
        case.pools().filter(|pool| pool.source.is_client()).map(|pool| &*pool.name).collect();
    let Some(first) = pools.first() else { return };
    let place = format!("pools.{first}.source");
    let mask = case.host.capabilities(&case.process()).unwrap_or(0);
    let has = |number: u32| mask >> number & 1 == 1;
    if !has(CAP_NET_ADMIN) && !has(CAP_NET_RAW) {
        let what = format!(
            "{} has neither CAP_NET_RAW nor CAP_NET_ADMIN: it cannot connect from clients' addresses",
            case.process_name()
        );
        let mend = "`AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW` and the same in `CapabilityBoundingSet=` of the unit";
        checked.find(Finding::error(what, place.clone(), mend));
    }
    for setting in reverse_path_filters(case) {
        let what = format!(
            "{setting} drops packets whose sender would be answered on another interface: \
             members' answers to clients' addresses among them"
        );
        checked.find(Finding::warning(what, setting.clone(), format!("sysctl -w {setting}=2")));
    }
}

/// Interfaces with a strict reverse path filter; the stricter value of `all` and the interface applies.
fn reverse_path_filters(case: &Case<'_>) -> Vec<String> {
    let folders = case.host.entries("/proc/sys/net/ipv4/conf");
    let names = folders.iter().filter_map(|path| path.file_name()?.to_str());
    let mut names: Vec<&str> = names.filter(|name| !matches!(*name, "lo" | "default")).collect();
    names.sort_unstable();
    // An interface name may contain dots, which separate the parts of a setting's name.
    let value = |name: &str| {
        let text = case.host.text(&format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"))?;
        text.trim().parse::<u8>().ok()
    };
    let all = value("all").unwrap_or(0);
    let strict = names.into_iter().filter(|name| value(name).is_some_and(|own| own.max(all) == 1));
    strict.map(|name| format!("net.ipv4.conf.{}.rp_filter", name.replace('.', "/"))).collect()
}

/// Checks virtual servers on the packet path.
fn packets(case: &Case<'_>, checked: &mut CheckResult) {
    let Some(packets) = case.snapshot.and_then(|snapshot| snapshot.packets.as_ref()) else {
        return;
    };
    let place = "virtual servers of type fast_l4";
    checked.fact(format!("{} virtual servers of type fast_l4", packets.servers.len()));
    match case.running {
        Some(running) => fallen(running, checked),
        None => {
            if let Some(why) = obstacle() {
                let what = format!("packets cannot be forwarded by the kernel: {why}");
                let mend = "the capabilities of docs/layer-4.md in the unit; the user of the service may have them: `sudo -u weir weir doctor`";
                checked.find(Finding::warning(what, place, mend));
            }
        }
    }
    if case.host.number("net.core.bpf_jit_enable") == Some(0) {
        let what = "programs of the kernel are interpreted, not compiled: packets cost several times as much";
        let name = "net.core.bpf_jit_enable";
        checked.find(Finding::warning(what.into(), name, format!("sysctl -w {name}=1")));
    }
    forwarding(case, packets, checked);
    if let (false, Some(why)) = (packets.path.syn_cookies.is_empty(), cookies_obstacle()) {
        let name = "net.ipv4.tcp_syncookies";
        checked.find(Finding::warning(
            why,
            "packet_path.syn_cookies",
            format!("sysctl -w {name}=2"),
        ));
    }
}

/// Reports virtual servers that the running weir does not serve on the packet path.
fn fallen(running: &super::case::RunningStatus, checked: &mut CheckResult) {
    let servers = running.status.packet_path.iter().flat_map(|path| &path.virtual_servers);
    for server in servers.filter(|server| !server.is_by_packets()) {
        let why = server.why.as_deref().unwrap_or("weir does not say why");
        let place = format!("virtual_servers.{}", server.name);
        let mend = "the capabilities and settings of docs/layer-4.md; `weir check --explain` as weir's user";
        let finding = match &server.unserved {
            Some(unserved) => {
                let what =
                    format!("virtual server {} is not served: {why}; {unserved}", server.name);
                Finding::error(what, place, mend)
            }
            None => {
                let what = format!("virtual server {} is served by sockets: {why}", server.name);
                Finding::warning(what, place, mend)
            }
        };
        checked.find(finding);
    }
}

/// Packets are routed by the kernel, which drops them if forwarding is off.
fn forwarding(case: &Case<'_>, packets: &Packets, checked: &mut CheckResult) {
    for (is_v4, setting) in [(true, "net.ipv4.ip_forward"), (false, "net.ipv6.conf.all.forwarding")]
    {
        let is_of = |server: &&Arc<PacketServer>| {
            server.destinations.iter().any(|it| it.prefix.address.is_ipv4() == is_v4)
        };
        let Some(server) = packets.servers.iter().find(is_of) else { continue };
        if case.host.number(setting) == Some(0) {
            let what = format!(
                "packets of virtual server {} are dropped (`forwarding_off`): this host forwards nothing",
                server.name
            );
            let place = format!("virtual_servers.{}; {setting}", server.name);
            checked.find(Finding::error(what, place, format!("sysctl -w {setting}=1")));
        }
    }
}

/// Checks general TCP settings.
fn tcp(case: &Case<'_>, checked: &mut CheckResult) {
    let setting = |name: &str, bad: u64| case.host.number(name) == Some(bad);
    let cookies = "net.ipv4.tcp_syncookies";
    if setting(cookies, 0) {
        let what = "a flood of SYNs keeps clients out: the kernel sends no cookies";
        checked.find(Finding::warning(what.into(), cookies, format!("sysctl -w {cookies}=1")));
    }
    let idle = "net.ipv4.tcp_slow_start_after_idle";
    if setting(idle, 1) {
        let what = "connections that were idle begin slowly again: reused connections to distant members or clients are slower";
        checked.find(Finding::note(what.into(), idle, format!("sysctl -w {idle}=0")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::tests::snapshot;
    use super::super::host::tests::FakeHost;
    use super::*;

    const PLAIN: &str = "virtual_servers: { shop: { listen: 127.0.0.1:1, pool: web } }\npools: { web: { members: [ 127.0.0.1:2 ] } }\n";

    #[track_caller]
    fn check(text: &str, files: &[(&str, &str)], expected: &[&str]) {
        let snapshot = snapshot(text);
        let fake = FakeHost::with(files);
        let case = Case { host: &fake.host, snapshot: Some(&snapshot), running: None };
        let mut found = super::check(&case).findings;
        // Whether this process has the capabilities depends on the user who runs the test.
        found.retain(|finding| !finding.what.contains("cannot be forwarded by the kernel"));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (finding, expected) in found.iter().zip(expected) {
            assert!(finding.what.contains(expected), "{expected} in {finding:?}");
        }
    }

    #[test]
    fn settings_of_tcp() {
        let cookies = "/proc/sys/net/ipv4/tcp_syncookies";
        let idle = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
        check(PLAIN, &[(cookies, "1"), (idle, "0")], &[]);
        check(PLAIN, &[(cookies, "0"), (idle, "1")], &["flood of SYNs", "begin slowly"]);
    }

    #[test]
    fn old_kernels() {
        let release = "/proc/sys/kernel/osrelease";
        check(PLAIN, &[(release, "5.4.0-42-generic\n")], &["needs Linux 5.9"]);
        check(PLAIN, &[(release, "6.18.44-fc\n")], &[]);
    }

    #[test]
    fn clients_addresses_need_capabilities_and_a_lax_filter() {
        let text = PLAIN.replace("web: {", "web: { source: client,");
        let none = ("/proc/self/status", "CapEff:\t0000000000000400\n");
        let raw = ("/proc/self/status", "CapEff:\t0000000000002400\n");
        let filter = |name: &str| format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        let (all, eth, lo) = (filter("all"), filter("eth0.5"), filter("lo"));
        check(&text, &[none, (&all, "0"), (&eth, "0")], &["has neither CAP_NET_RAW"]);
        check(&text, &[raw, (&all, "0"), (&eth, "0"), (&lo, "1")], &[]);
        check(&text, &[raw, (&all, "0"), (&eth, "1")], &["net.ipv4.conf.eth0/5.rp_filter drops"]);
        check(&text, &[raw, (&all, "2"), (&eth, "1")], &[]);
        check(PLAIN, &[none, (&all, "1"), (&eth, "1")], &[]);
    }

    #[test]
    fn packets_need_forwarding() {
        let text = PLAIN.replace("listen: 127.0.0.1:1", "type: fast_l4, listen: 192.0.2.1:80");
        let forward = "/proc/sys/net/ipv4/ip_forward";
        let jit = "/proc/sys/net/core/bpf_jit_enable";
        check(&text, &[(forward, "1"), (jit, "1")], &[]);
        check(&text, &[(forward, "0"), (jit, "0")], &["interpreted", "(`forwarding_off`)"]);
        check(PLAIN, &[(forward, "0"), (jit, "0")], &[]);
    }
}
