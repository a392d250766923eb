//! What this host lacks for a configuration: addresses, folders, programs and rights, as far as files and the kernel's tables
//! tell. No address is bound, so the target host may have it, and another process may still hold an address.

use std::collections::BTreeSet;
use std::fs::{File, read_to_string};
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, access};
use weir_config::host_addresses;
use weir_config::snapshot::{Address, Monitor, MonitorKind, Pool, Snapshot, Source};
use weir_dataplane::handle::look_at_source;

use crate::wording::NamesText;

/// Where the kernel says from which port on everybody may listen.
const UNPRIVILEGED_FROM: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// That file's value by default.
const UNPRIVILEGED_FROM_DEFAULT: u16 = 1024;

/// Where the kernel says that programs may listen on addresses that the host does not have.
const NONLOCAL_BIND: [&str; 2] =
    ["/proc/sys/net/ipv4/ip_nonlocal_bind", "/proc/sys/net/ipv6/ip_nonlocal_bind"];

/// The capability to listen on privileged ports (capabilities(7)).
const CAP_NET_BIND_SERVICE: u32 = 10;

/// Where the kernel lists unix sockets with their paths.
const UNIX_SOCKETS: &str = "/proc/net/unix";

/// The part of a script's first line that the kernel reads (execve(2)).
const INTERPRETER_BYTES_MAX: u64 = 256;

/// The end of warnings about what refuses a start.
const REFUSED: &str = "a start or a reload is refused";

/// What a process of this user may use here.
#[derive(Debug)]
struct Host {
    /// Empty if the kernel shows none.
    addresses: BTreeSet<IpAddr>,
    /// Whether programs may listen on other addresses too.
    is_nonlocal_bind: [bool; 2],
    unprivileged_from: u16,
    may_bind_privileged: bool,
}

impl Host {
    fn here() -> Self {
        let text = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
        let status = text("/proc/thread-self/status");
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        Self {
            addresses: host_addresses::all(),
            is_nonlocal_bind: NONLOCAL_BIND.map(|path| text(path) == "1"),
            unprivileged_from: text(UNPRIVILEGED_FROM).parse().unwrap_or(UNPRIVILEGED_FROM_DEFAULT),
            // If the kernel does not say what is permitted, nothing is foretold.
            may_bind_privileged: effective.is_none_or(|mask| mask >> CAP_NET_BIND_SERVICE & 1 == 1),
        }
    }

    fn has(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.addresses.is_empty()
            || ip.is_unspecified()
            || ip.is_loopback()
            || ip.is_multicast()
            || self.addresses.contains(&ip)
            || self.is_nonlocal_bind[usize::from(ip.is_ipv6())]
    }

    /// Why this user cannot listen here.
    fn obstacle(&self, at: SocketAddr, is_free: bool, is_on_interface: bool) -> Option<String> {
        let (ip, port) = (at.ip(), at.port());
        let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if is_link_local && !is_on_interface {
            return Some(format!("{ip} is valid on one link only: without `interfaces` {REFUSED}"));
        }
        if !is_free && !self.has(ip) {
            return Some(format!(
                "this host does not have the address {ip} now: without it, or `free_bind: true`, {REFUSED}"
            ));
        }
        (port > 0 && port < self.unprivileged_from && !self.may_bind_privileged).then(|| {
            format!("this user may not listen on port {port}: without root or CAP_NET_BIND_SERVICE {REFUSED}")
        })
    }
}

/// What is foretold for a start on this host.
#[derive(Debug, Default)]
pub(super) struct HostForecast {
    /// What refuses each start here, whatever else changes.
    pub refused: Vec<String>,
    /// What would refuse a start now, and monitors whose program cannot run.
    pub warnings: Vec<String>,
}

/// Looks at this host.
pub(super) fn found(snapshot: &Snapshot) -> HostForecast {
    let host = Host::here();
    let mut found = HostForecast { refused: foreign_files(snapshot), ..HostForecast::default() };
    listeners(snapshot, &host, &mut found.warnings);
    logs(snapshot, &mut found.warnings);
    state(&snapshot.state_dir, &mut found.warnings);
    sources(&snapshot.pools, &host, &mut found.warnings);
    programs(&snapshot.pools, &mut found.warnings);
    found
}

/// The `source` of pools: what refuses a start, and addresses from which no connection can come.
fn sources(pools: &[Arc<Pool>], host: &Host, told: &mut Vec<String>) {
    for pool in pools {
        if let Err(why) = look_at_source(pool) {
            told.push(format!("pool `{}`: `source`: {why}: {REFUSED}", pool.name));
        }
        let Source::Addresses(own) = &pool.source else { continue };
        told.extend(own.addresses.iter().filter(|ip| !host.has(**ip)).map(|ip| {
            format!(
                "pool `{}`: `source`: this host does not have the address {ip} now: without it no connection can come from there",
                pool.name
            )
        }));
    }
}

/// Files in the place of sockets. A process that listens there since before, as the weir that checks its new file, has the
/// path in the kernel's table.
fn foreign_files(snapshot: &Snapshot) -> Vec<String> {
    let listening = read_to_string(UNIX_SOCKETS).unwrap_or_default();
    let is_held = |path: &Path| {
        let mut paths = listening.lines().filter_map(|line| line.split_whitespace().nth(7));
        paths.any(|held| Path::new(held) == path)
    };
    let of_servers = snapshot.virtual_servers.iter().flat_map(|server| {
        let points = server.listen.iter();
        points.map(|point| (format!("virtual server `{}`", server.name), &point.address))
    });
    let of_admin = snapshot.admin.listen.iter();
    let of_admin = of_admin.map(|address| ("`admin.listen`".to_owned(), address));
    let of_sockets = of_servers.chain(of_admin).filter_map(|(owner, address)| match address {
        Address::Unix(path) => Some((owner, path)),
        Address::Socket(_) | Address::Udp(_) => None,
    });
    let foreign = of_sockets.filter(|(_, path)| is_other_file(path) && !is_held(path));
    foreign
        .map(|(owner, path)| {
            let shown = path.display();
            format!("{owner}: {shown} is there, and is no socket: {REFUSED} until it is removed, or the path is another")
        })
        .collect()
}

/// Whether a file that is no socket has this path.
fn is_other_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| !it.file_type().is_socket())
}

fn listeners(snapshot: &Snapshot, host: &Host, told: &mut Vec<String>) {
    for server in &snapshot.virtual_servers {
        // The ports of a range have the same obstacles.
        let mut seen = BTreeSet::new();
        for point in &server.listen {
            let obstacle = match &point.address {
                Address::Unix(path) => socket_obstacle(path),
                Address::Socket(at) | Address::Udp(at) => {
                    host.obstacle(*at, server.listening.free_bind, point.interface.is_some())
                }
            };
            let Some(why) = obstacle else { continue };
            if seen.insert(why.clone()) {
                told.push(format!("virtual server `{}`: {why}", server.name));
            }
        }
    }
    for address in &snapshot.admin.listen {
        let obstacle = match address {
            Address::Unix(path) => socket_obstacle(path),
            Address::Socket(at) | Address::Udp(at) => host.obstacle(*at, false, false),
        };
        told.extend(obstacle.map(|why| format!("`admin.listen`: {why}")));
    }
}

/// Why a unix socket cannot be made here.
fn socket_obstacle(path: &Path) -> Option<String> {
    if is_other_file(path) {
        return None;
    }
    folder_obstacle(path).map(|why| format!("the socket {} cannot be made: {why}", path.display()))
}

/// Why a file cannot be made in its folder.
fn folder_obstacle(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let shown = folder.display();
    if !folder.exists() {
        return Some(format!("the folder {shown} does not exist: without it {REFUSED}"));
    }
    if !folder.is_dir() {
        return Some(format!("{shown} is no folder: {REFUSED}"));
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .is_err()
        .then(|| format!("this user may not write to the folder {shown}: {REFUSED}"))
}

fn logs(snapshot: &Snapshot, told: &mut Vec<String>) {
    for (key, path) in snapshot.log.files() {
        let shown = path.display();
        let obstacle = if path.exists() {
            let may_write = access(path, Access::WRITE_OK).is_ok();
            (!may_write).then(|| format!("this user may not write to {shown}: {REFUSED}"))
        } else {
            folder_obstacle(path)
        };
        told.extend(obstacle.map(|why| format!("`{key}`: {why}")));
    }
}

fn state(folder: &Path, told: &mut Vec<String>) {
    let shown = folder.display();
    // A folder that is not there is made. If it cannot be made, weir serves and keeps nothing.
    let obstacle = match folder.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Some(format!("this user may not look at {shown}: {REFUSED}"))
        }
        Err(_) => None,
        Ok(found) if !found.is_dir() => Some(format!("{shown} is no folder: {REFUSED}")),
        Ok(_) => access(folder, Access::READ_OK | Access::EXEC_OK)
            .is_err()
            .then(|| format!("this user may not read {shown}: {REFUSED}")),
    };
    told.extend(obstacle.map(|why| format!("`state_dir`: {why}")));
}

fn programs(pools: &[Arc<Pool>], told: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for pool in pools {
        let of_members = pool.members.iter().filter_map(|member| member.monitors.as_deref());
        let all = pool.monitors.iter().chain(of_members.flatten());
        for program in all.filter_map(program) {
            if !seen.insert(program) {
                continue;
            }
            let Some(why) = program_obstacle(program) else { continue };
            let is_its = |pool: &&Arc<Pool>| {
                let of_members =
                    pool.members.iter().filter_map(|member| member.monitors.as_deref());
                let mut all = pool.monitors.iter().chain(of_members.flatten());
                all.any(|monitor| self::program(monitor) == Some(program))
            };
            let names: Vec<_> =
                pools.iter().filter(is_its).map(|pool| Arc::clone(&pool.name)).collect();
            let which = if names.len() == 1 { "pool" } else { "pools" };
            told.push(format!(
                "the monitors of type script of {which} {} could not probe here: {why}",
                NamesText(&names)
            ));
        }
    }
}

fn program(monitor: &Monitor) -> Option<&str> {
    match &monitor.kind {
        MonitorKind::Script(probe) => probe.command.first().map(|word| &**word),
        _ => None,
    }
}

/// Why a program cannot be run. It has its whole path.
fn program_obstacle(program: &str) -> Option<String> {
    let path = Path::new(program);
    if !path.exists() {
        return Some(format!("there is no {program}"));
    }
    let may_run = path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if !may_run {
        return Some(format!("this user may not run {program}"));
    }
    let interpreter = interpreter_of(path).filter(|it| !Path::new(it).exists())?;
    Some(format!("{program} is run by {interpreter}, which is not there"))
}

/// The program in the first line of a script (`#!`), which runs it.
fn interpreter_of(script: &Path) -> Option<String> {
    let mut line = Vec::new();
    File::open(script).ok()?.take(INTERPRETER_BYTES_MAX).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    line.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ports() {
        let host = Host {
            addresses: ["10.0.0.5", "fe80::5", "127.0.0.1"].map(|it| it.parse().unwrap()).into(),
            is_nonlocal_bind: [false, true],
            unprivileged_from: 1024,
            may_bind_privileged: false,
        };
        let root = Host { may_bind_privileged: true, ..Host::here() };
        let check = |at: &str, free_bind, interface, expected: Option<&str>| {
            let found = host.obstacle(at.parse().unwrap(), free_bind, interface);
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(part)) if found.contains(part) => {}
                _ => panic!("{at}: {found:?}"),
            }
        };
        check("10.0.0.5:8080", false, false, None);
        check("0.0.0.0:8080", false, false, None);
        check("127.0.0.9:8080", false, false, None);
        check("203.0.113.9:8080", false, false, Some("does not have the address 203.0.113.9 now"));
        check("203.0.113.9:8080", true, false, None);
        check("[2001:db8::9]:8080", false, false, None);
        check("[fe80::5]:8080", false, false, Some("without `interfaces`"));
        check("[fe80::5]:8080", false, true, None);
        check("10.0.0.5:81", false, false, Some("port 81"));
        assert_eq!(root.obstacle("127.0.0.1:81".parse().unwrap(), false, false), None);
    }

    #[test]
    fn sources_of_connections() {
        let check = |source: &str, expected: Option<&str>| {
            let text = format!(
                "virtual_servers: {{ v: {{ listen: \"127.0.0.1:0\", pool: a }} }}\n\
                 pools: {{ a: {{ members: [ 127.0.0.1:1 ], source: {source} }} }}\n"
            );
            let config = weir_config::parse("test.yaml", &text).config.expect("valid");
            let host = Host {
                addresses: BTreeSet::from([IpAddr::from([10, 0, 0, 5])]),
                is_nonlocal_bind: [false; 2],
                unprivileged_from: 1024,
                may_bind_privileged: false,
            };
            let mut told = Vec::new();
            sources(&config.snapshot(&Default::default()).pools, &host, &mut told);
            match expected {
                None => assert!(told.is_empty(), "{source}: {told:?}"),
                Some(part) => {
                    assert!(told.len() == 1 && told[0].contains(part), "{source}: {told:?}")
                }
            }
        };
        check("10.0.0.5", None);
        check("192.0.2.9", Some("does not have the address 192.0.2.9 now"));
        let ports = "{ addresses: [ 10.0.0.5 ], ports: 100-200 }";
        check(ports, Some("the ports 100-200 do not lie within"));
    }

    #[test]
    fn files_folders_and_programs() {
        let folder = std::env::temp_dir().join(format!("weir-foretold-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("plain"), "").unwrap();
        let at = folder.display();
        let check = |keys: &str, monitor: &str, expected: &[&str]| {
            let text = format!(
                "state_dir: {at}\n{keys}\npools:\n  a: {{ members: [ 127.0.0.1:1 ], monitors: [ {monitor} ] }}\n"
            );
            let loaded = weir_config::parse("test.yaml", &text);
            let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
            let HostForecast { refused, warnings } = found(&config.snapshot(&Default::default()));
            let found = refused.iter().map(|it| format!("error: {it}")).chain(warnings);
            let found: Vec<String> = found.collect();
            assert_eq!(found.len(), expected.len(), "{keys}: {found:?}");
            for (found, part) in found.iter().zip(expected) {
                assert!(found.contains(part), "{found}");
                assert_eq!(found.starts_with("error: "), part.contains("is no socket"));
            }
        };
        let server = "virtual_servers: { v: { listen: \"127.0.0.1:0\", pool: a } }";
        let listens =
            |at: String| format!("virtual_servers: {{ v: {{ listen: \"{at}\", pool: a }} }}");
        let tcp = "{ type: tcp }";
        let script = |program: &str| format!("{{ type: script, command: [ {program} ] }}");
        check(server, tcp, &[]);
        check(&listens(format!("unix:{at}/a.sock")), tcp, &[]);
        check(
            &listens("unix:/nowhere/a.sock".into()),
            tcp,
            &["the folder /nowhere does not exist"],
        );
        check(&listens(format!("unix:{at}/plain/a.sock")), tcp, &["plain is no folder"]);
        check(&listens(format!("unix:{at}/plain")), tcp, &["is no socket"]);
        check(&listens(format!("unix:{at}")), tcp, &["is no socket"]);
        check(
            &format!("{server}\nadmin: {{ listen: \"unix:{at}/plain\" }}"),
            tcp,
            &["is no socket"],
        );
        // A process listens there, and its socket file was replaced.
        let held = folder.join("held.sock");
        let listener = std::os::unix::net::UnixListener::bind(&held).unwrap();
        std::fs::remove_file(&held).unwrap();
        std::fs::write(&held, "").unwrap();
        check(&listens(format!("unix:{}", held.display())), tcp, &[]);
        drop(listener);
        let admin = format!("{server}\nadmin: {{ listen: unix:/nowhere/a.sock }}");
        check(&admin, tcp, &["`admin.listen`: the socket /nowhere/a.sock cannot be made"]);
        let log = |to: &str| format!("{server}\nlog: {{ access: {{ to: {to} }} }}");
        check(&log(&format!("{at}/a.log")), tcp, &[]);
        check(&log("/nowhere/a.log"), tcp, &["`log.access.to`: the folder /nowhere"]);
        check(server, &script("/bin/sh"), &[]);
        check(server, &script("/nowhere/check"), &["there is no /nowhere/check"]);
        let broken = folder.join("broken");
        std::fs::write(&broken, "#! /nowhere/sh -e\nexit 0\n").unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&broken, all).unwrap();
        check(
            server,
            &script(&broken.display().to_string()),
            &["broken is run by /nowhere/sh, which is not there"],
        );
        check(
            server,
            &script("/etc/passwd"),
            &["of pool a could not probe here: this user may not run"],
        );
        let mut told = Vec::new();
        state(&folder.join("plain"), &mut told);
        state(&folder.join("later"), &mut told);
        assert_eq!(told.len(), 1, "{told:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
