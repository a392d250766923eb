//! Kernel limits on files, queues and connections.

use weir_config::snapshot::{Address, Member, Pool};

use super::case::Case;
use super::finding::{CheckResult, Finding};
use crate::admin::text::grouped;

/// With a lower limit on open files, hundreds of clients per worker can exhaust it.
const OPEN_FILES_MIN: u64 = 16_384;

/// Descriptors of a worker that are not connections: event loop, logs, pipes.
const OPEN_FILES_MARGIN: u64 = 64;

/// Default length of accept queues since Linux 5.4.
const QUEUE_MIN: u64 = 4_096;

/// With fewer ports for outgoing connections, a busy host runs out of them.
const OWN_PORTS_MIN: u64 = 10_000;

/// A table is nearly full from this percentage on.
const NEARLY_FULL_PERCENT: u64 = 80;

/// Checks open files, accept queues, ports of connections to members, and connection tracking.
pub fn check(case: &Case<'_>) -> CheckResult {
    let mut checked = CheckResult::new("limits");
    open_files(case, &mut checked);
    queues(case, &mut checked);
    own_ports(case, &mut checked);
    connection_tracking(case, &mut checked);
    checked
}

fn open_files(case: &Case<'_>, checked: &mut CheckResult) {
    let Some(limits) = case.host.open_files(&case.process()) else { return };
    let limit = limits.hard;
    let shown = if limit == u64::MAX { "unlimited".into() } else { grouped(limit) };
    checked.fact(format!("{shown} open files for each of {} workers", case.workers()));
    let place = format!("open-file limit (RLIMIT_NOFILE) of {}", case.process_name());
    let mend = "`LimitNOFILE=1048576` in the unit (systemctl edit weir), or `ulimit -Hn 1048576` before `weir run`; then restart";
    match case.clients_max().map(|clients| needed(case, clients)) {
        Some(needed) if needed > limit => {
            let what = format!(
                "the configuration may need {} open files per worker, and {} are allowed",
                grouped(needed),
                grouped(limit)
            );
            checked.find(Finding::warning(what, place, mend));
        }
        None if limit < OPEN_FILES_MIN => {
            let what = format!(
                "{} open files per worker are few: about {} clients at a time, since each may need a connection to a member",
                grouped(limit),
                grouped(limit / 2)
            );
            checked.find(Finding::warning(what, place, mend));
        }
        _ => {}
    }
}

/// Open files that a worker needs for this many clients, as documented in docs/operating.md.
fn needed(case: &Case<'_>, clients: u64) -> u64 {
    let members: u64 = case
        .pools()
        .map(|pool| pool.members.len() as u64 * u64::from(pool.reuse.idle_per_worker))
        .sum();
    let listeners = case.snapshot.iter().flat_map(|it| &it.virtual_servers);
    let listeners: u64 = listeners.map(|server| server.listen.len() as u64).sum();
    (2 * clients).div_ceil(case.workers()) + members + listeners + OPEN_FILES_MARGIN
}

fn queues(case: &Case<'_>, checked: &mut CheckResult) {
    const NAME: &str = "net.core.somaxconn";
    if let Some(length) = case.host.number(NAME) {
        checked.fact(format!("{} connections in a listener's queue", grouped(length)));
        if length < QUEUE_MIN {
            let what = format!(
                "the queue of each listener has room for {} connections: a burst is dropped",
                grouped(length)
            );
            checked.find(Finding::warning(what, NAME, format!("sysctl -w {NAME}=65535")));
        }
    }
    if case.host.number("net.ipv4.tcp_abort_on_overflow") == Some(1) {
        let what = "clients get a reset when a listener's queue is full, instead of trying again";
        let name = "net.ipv4.tcp_abort_on_overflow";
        checked.find(Finding::warning(what.into(), name, format!("sysctl -w {name}=0")));
    }
    let overflows = case.host.text("/proc/net/netstat").and_then(|text| overflows(&text));
    if let Some(count) = overflows.filter(|count| *count > 0) {
        let what = format!(
            "{} connections were dropped since the start of this host because a listener's queue was full",
            grouped(count)
        );
        let mend = format!("sysctl -w {NAME}=65535, or more workers (data_plane.workers)");
        checked.find(Finding::note(what, "ListenOverflows in /proc/net/netstat", mend));
    }
}

/// The counter of connections dropped because an accept queue was full.
fn overflows(netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|name| name == "ListenOverflows")?;
    values.split_whitespace().nth(place)?.parse().ok()
}

fn own_ports(case: &Case<'_>, checked: &mut CheckResult) {
    const NAME: &str = "net.ipv4.ip_local_port_range";
    let Some((first, last)) = case.host.own_ports() else { return };
    let ports = u64::from(last).saturating_sub(u64::from(first)) + 1;
    checked.fact(format!("ports {first}-{last} for connections to members"));
    let wider = format!("sysctl -w {NAME}=\"1024 65535\"");
    if ports < OWN_PORTS_MIN {
        let what = format!(
            "{} ports for outgoing connections: at most so many to one member at a time",
            grouped(ports)
        );
        checked.find(Finding::warning(what, NAME, wider.clone()));
    }
    for pool in case.pools() {
        let ports = ports_of(pool, ports);
        let beyond = |member: &&Member| {
            matches!(member.address, Address::Socket(_))
                && member.connections_max.is_some_and(|max| u64::from(max) > ports)
        };
        if let Some(member) = pool.members.iter().find(beyond) {
            let what = format!(
                "member {} may have {} connections, and there are ports for {}",
                member.label,
                grouped(member.connections_max.unwrap_or_default().into()),
                grouped(ports)
            );
            let mend =
                format!("{wider}, or more addresses: `source: [ ADDRESS, ADDRESS ]` of the pool");
            checked.find(Finding::warning(what, format!("pools.{}", pool.name), mend));
        }
    }
    for (name, port) in listening_ports(case) {
        if (first..=last).contains(&port) && !is_reserved(case, port) {
            let what = format!(
                "port {port} of virtual server {name} is one of those for outgoing connections: one of these may hold it when weir starts"
            );
            let setting = "net.ipv4.ip_local_reserved_ports";
            checked.find(Finding::note(what, NAME, format!("sysctl -w {setting}={port}")));
        }
    }
}

/// Number of local ports for connections of a pool to one member.
fn ports_of(pool: &Pool, of_system: u64) -> u64 {
    let Some(own) = pool.source.addresses() else { return of_system };
    let each = own.ports.map_or(of_system, |(first, last)| u64::from(last - first) + 1);
    each * own.addresses.len() as u64
}

fn listening_ports(case: &Case<'_>) -> Vec<(String, u16)> {
    let servers = case.snapshot.iter().flat_map(|snapshot| &snapshot.virtual_servers);
    let ports = servers.flat_map(|server| {
        let sockets = server.listen.iter().filter_map(|point| point.address.socket());
        sockets.map(|address| (server.name.to_string(), address.port()))
    });
    ports.collect()
}

fn is_reserved(case: &Case<'_>, port: u16) -> bool {
    let text = case.host.setting("net.ipv4.ip_local_reserved_ports").unwrap_or_default();
    text.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&port))
    })
}

fn connection_tracking(case: &Case<'_>, checked: &mut CheckResult) {
    const NAME: &str = "net.netfilter.nf_conntrack_max";
    let Some(max) = case.host.number(NAME) else { return };
    let count = case.host.number("net.netfilter.nf_conntrack_count").unwrap_or(0);
    checked.fact(format!("connection tracking {} of {}", grouped(count), grouped(max)));
    // Each proxied client uses two connections: one to weir, one to the member.
    let wanted = case.clients_max().map(|clients| 2 * clients);
    let larger = |wanted: u64| {
        format!(
            "sysctl -w {NAME}={}, or no tracking of weir's traffic (nft: `notrack`)",
            wanted.next_power_of_two()
        )
    };
    if count * 100 >= max * NEARLY_FULL_PERCENT {
        let what = format!(
            "the connection tracking of the firewall is nearly full: {} of {}; then packets are dropped",
            grouped(count),
            grouped(max)
        );
        checked.find(Finding::error(what, NAME, larger(2 * max)));
    } else if let Some(wanted) = wanted.filter(|wanted| *wanted > max) {
        let what = format!(
            "the firewall tracks at most {} connections, and the configuration may have {}",
            grouped(max),
            grouped(wanted)
        );
        checked.find(Finding::warning(what, NAME, larger(wanted)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::tests::snapshot;
    use super::super::host::tests::FakeHost;
    use super::*;

    const SERVERS: &str = "data_plane: { workers: 2 }\n\
        virtual_servers: { shop: { listen: 127.0.0.1:40000, pool: web, limits: { connections: 20000 } } }\n\
        pools: { web: { members: [ { address: 10.0.0.1:80, connections_max: 30000 } ] } }\n";

    fn limits(hard: u64) -> String {
        format!("Max open files            1024                 {hard}            files     \n")
    }

    #[track_caller]
    fn check(text: &str, files: &[(&str, &str)], expected: &[&str]) {
        let snapshot = snapshot(text);
        let fake = FakeHost::with(files);
        let case = Case { host: &fake.host, snapshot: Some(&snapshot), running: None };
        let found = super::check(&case).findings;
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (finding, expected) in found.iter().zip(expected) {
            assert!(finding.what.contains(expected), "{expected} in {finding:?}");
            assert!(!finding.mend.is_empty(), "{finding:?}");
        }
    }

    #[test]
    fn open_files_that_are_too_few() {
        let few = limits(4_096);
        check(SERVERS, &[("/proc/self/limits", &few)], &["may need 20,"]);
        let unlimited = SERVERS.replace(", limits: { connections: 20000 }", "");
        check(&unlimited, &[("/proc/self/limits", &few)], &["4,096 open files per worker are few"]);
        check(SERVERS, &[("/proc/self/limits", &limits(1 << 20))], &[]);
    }

    #[test]
    fn queues_that_are_short() {
        let setting = "/proc/sys/net/core/somaxconn";
        check(SERVERS, &[(setting, "128\n")], &["room for 128 connections"]);
        check(SERVERS, &[(setting, "4096\n")], &[]);
        check(SERVERS, &[("/proc/sys/net/ipv4/tcp_abort_on_overflow", "1")], &["get a reset"]);
        let netstat =
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 42 43\nIpExt: a\n";
        check(SERVERS, &[("/proc/net/netstat", netstat)], &["42 connections were dropped"]);
        let none = "TcpExt: ListenOverflows\nTcpExt: 0\n";
        check(SERVERS, &[("/proc/net/netstat", none)], &[]);
    }

    #[test]
    fn ports_that_run_out() {
        let range = "/proc/sys/net/ipv4/ip_local_port_range";
        let reserved = ("/proc/sys/net/ipv4/ip_local_reserved_ports", "30000-40000,5");
        check(
            SERVERS,
            &[(range, "32768\t60999\n")],
            &["may have 30,000 connections", "port 40000"],
        );
        check(SERVERS, &[(range, "32768\t60999\n"), reserved], &["may have 30,000 connections"]);
        check(SERVERS, &[(range, "1024\t5000\n")], &["3,977 ports", "may have 30,000"]);
        let two = SERVERS.replace("web: {", "web: { source: [ 127.0.0.2, 127.0.0.3 ],");
        check(&two, &[(range, "1024\t30000\n")], &[]);
    }

    #[test]
    fn a_firewall_that_tracks_too_few() {
        let max = "/proc/sys/net/netfilter/nf_conntrack_max";
        let count = "/proc/sys/net/netfilter/nf_conntrack_count";
        check(SERVERS, &[(max, "1000000"), (count, "10")], &[]);
        check(SERVERS, &[(max, "1000"), (count, "800")], &["nearly full: 800 of 1,000"]);
        check(SERVERS, &[(max, "32768"), (count, "8")], &["tracks at most 32,768"]);
    }
}
