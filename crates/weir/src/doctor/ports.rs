//! Checks whether weir can bind the configured addresses.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::{self, SocketType, sockopt};
use weir_config::snapshot::{Address, ListenPoint, VirtualServer};

use super::case::Case;
use super::finding::{CheckResult, Finding};
use super::host::Host;
use super::sockets::Sockets;

/// Tries to bind each address, except those that the running weir uses.
pub fn check(case: &Case<'_>) -> CheckResult {
    let mut checked = CheckResult::new("ports");
    let Some(snapshot) = case.snapshot else { return checked };
    let mut tried = 0;
    let mut served = 0;
    for server in &snapshot.virtual_servers {
        for point in &server.listen {
            if is_served(case, &point.address) {
                served += 1;
                continue;
            }
            tried += 1;
            checked.findings.extend(trouble(case.host, server, point));
        }
    }
    for address in &snapshot.admin.listen {
        if case.running.is_none() {
            tried += 1;
            let place = "admin.listen".to_owned();
            checked.findings.extend(trouble_at(
                case.host,
                address,
                false,
                place,
                "the admin listener",
            ));
        }
    }
    if served > 0 {
        checked.fact(format!("{served} addresses served by the running weir"));
    }
    checked.fact(format!("{tried} tried"));
    checked
}

/// Whether the running weir listens on this address.
fn is_served(case: &Case<'_>, address: &Address) -> bool {
    let servers = case.running.iter().flat_map(|running| &running.status.virtual_servers);
    let text = address.to_string();
    servers.flat_map(|server| &server.listen).any(|listen| covers(listen, &text))
}

/// Whether a listen address of the status, possibly with a port range, covers this address.
fn covers(listen: &str, address: &str) -> bool {
    let listen = listen.split(" on ").next().unwrap_or_default();
    if listen == address {
        return true;
    }
    let range = listen.rsplit_once(':').zip(address.rsplit_once(':'));
    let Some(((host, ports), (other, port))) = range else { return false };
    let bounds = ports
        .split_once('-')
        .and_then(|(first, last)| Some((first.parse::<u16>().ok()?, last.parse::<u16>().ok()?)));
    let port: Option<u16> = port.parse().ok();
    host == other
        && bounds.zip(port).is_some_and(|((first, last), port)| (first..=last).contains(&port))
}

fn trouble(host: &Host, server: &VirtualServer, point: &ListenPoint) -> Option<Finding> {
    let place = format!("virtual_servers.{}.listen", server.name);
    let name = format!("virtual server {}", server.name);
    trouble_at(host, &point.address, server.listening.free_bind, place, &name)
}

fn trouble_at(
    host: &Host,
    address: &Address,
    is_free: bool,
    place: String,
    name: &str,
) -> Option<Finding> {
    let socket = match address {
        Address::Unix(path) => return trouble_of_path(path, place, name),
        Address::Socket(socket) | Address::Udp(socket) => *socket,
    };
    let is_udp = matches!(address, Address::Udp(_));
    let errno = bind(socket, is_udp).err()?;
    let finding = match errno {
        Errno::ADDRINUSE => in_use(host, socket, is_udp, place, name),
        Errno::ACCESS => {
            let what =
                format!("this user may not listen on {address}, a privileged port, for {name}");
            let mend = "give the unit `AmbientCapabilities=CAP_NET_BIND_SERVICE`, or `sysctl -w net.ipv4.ip_unprivileged_port_start=0`; \
                        the user of the service may have it already: `sudo -u weir weir doctor`";
            Finding::error(what, place, mend)
        }
        Errno::ADDRNOTAVAIL if is_free => return None,
        Errno::ADDRNOTAVAIL => {
            let what = format!("this host does not have the address of {address} for {name}");
            let mend = format!(
                "ip address add {}/{} dev INTERFACE, or `free_bind: true` where the address comes later (VRRP)",
                socket.ip(),
                if socket.is_ipv4() { 32 } else { 128 },
            );
            Finding::error(what, place, mend)
        }
        other => {
            let what = format!("cannot listen on {address} for {name}: {other}");
            Finding::error(what, place, "another address")
        }
    };
    Some(finding)
}

/// Binds a socket and closes it, without listening.
fn bind(address: SocketAddr, is_udp: bool) -> Result<(), Errno> {
    let family = match address {
        SocketAddr::V4(_) => net::AddressFamily::INET,
        SocketAddr::V6(_) => net::AddressFamily::INET6,
    };
    let kind = if is_udp { SocketType::DGRAM } else { SocketType::STREAM };
    let socket = net::socket_with(family, kind, net::SocketFlags::CLOEXEC, None)?;
    // Remaining connections of an ended process do not prevent binding.
    sockopt::set_socket_reuseaddr(&socket, !is_udp)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    net::bind(&socket, &address)
}

fn in_use(host: &Host, address: SocketAddr, is_udp: bool, place: String, name: &str) -> Finding {
    let it = if is_udp { Address::Udp(address) } else { Address::Socket(address) };
    let inodes: HashSet<u64> = Sockets::of(host).at(&it).into_iter().collect();
    let holder = host.holders_of(&inodes, |_| true).into_values().next();
    let (by, mend) = match holder {
        Some((program, id)) => (
            format!("{program} (process {id})"),
            format!(
                "stop it (`systemctl stop {program}` or `kill {id}`), or give {name} another address"
            ),
        ),
        None => {
            let option = if is_udp { "-lunp" } else { "-ltnp" };
            let command = format!("`sudo ss {option} 'sport = :{}'` names it", address.port());
            ("another process, which this user may not see".to_owned(), command)
        }
    };
    Finding::error(format!("{address} of {name} is in use by {by}"), place, mend)
}

fn trouble_of_path(path: &Path, place: String, name: &str) -> Option<Finding> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (why, mend) = match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => return None,
        Err(Errno::NOENT) => (
            "does not exist",
            format!(
                "install -d -o weir -g weir -m 0750 {}, or `RuntimeDirectory=weir` in the unit for /run/weir",
                folder.display()
            ),
        ),
        Err(_) => (
            "cannot be written to by this user",
            format!(
                "chown weir {}, if weir runs as the user weir; the user of the service may have the right: `sudo -u weir weir doctor`",
                folder.display()
            ),
        ),
    };
    let what = format!("the folder {} of the socket of {name} {why}", folder.display());
    Some(Finding::error(what, place, mend))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::super::case::tests::snapshot;
    use super::*;

    #[track_caller]
    fn found(listen: &str) -> Vec<Finding> {
        let text = format!(
            "virtual_servers: {{ shop: {{ listen: \"{listen}\", pool: web }} }}\npools: {{ web: {{ members: [ 127.0.0.1:1 ] }} }}\n"
        );
        let (snapshot, host) = (snapshot(&text), Host::here());
        check(&Case { host: &host, snapshot: Some(&snapshot), running: None }).findings
    }

    #[test]
    fn the_holder_of_a_port_is_named() {
        for listen in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let taken = TcpListener::bind(listen).unwrap();
            let port = taken.local_addr().unwrap().port();
            let address = listen.replace(":0", &format!(":{port}")).replace("0.0.0.0", "127.0.0.1");
            let found = found(&address);
            let expected = format!("(process {})", std::process::id());
            assert!(found[0].what.contains(&expected), "{found:?}");
            assert!(found[0].mend.contains("kill"), "{found:?}");
            drop(taken);
            assert_eq!(self::found(&address), []);
        }
    }

    #[test]
    fn addresses_of_other_hosts_and_missing_folders() {
        let elsewhere = found("192.0.2.1:8080");
        assert!(elsewhere[0].what.contains("does not have the address of 192.0.2.1:8080"));
        assert!(elsewhere[0].mend.contains("ip address add 192.0.2.1/32"), "{elsewhere:?}");
        let folder = found("unix:/nowhere/at/all/shop.sock");
        assert!(folder[0].what.contains("/nowhere/at/all of the socket"), "{folder:?}");
    }

    #[test]
    fn sockets_of_datagrams_are_tried_as_such() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert_eq!(bind(address, true), Err(Errno::ADDRINUSE));
    }

    #[test]
    fn ranges_of_the_status_cover_their_ports() {
        assert!(covers("127.0.0.1:80", "127.0.0.1:80"));
        assert!(covers("127.0.0.1:8000-8002 on eth0", "127.0.0.1:8001"));
        assert!(!covers("127.0.0.1:8000-8002", "127.0.0.1:8003"));
        assert!(!covers("127.0.0.2:8000-8002", "127.0.0.1:8001"));
    }
}
