//! Resources of this host that a snapshot needs before it becomes active: the addresses of listeners, and the source
//! addresses of connections to members.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use weir_config::snapshot::packet::PathSettings;
use weir_config::snapshot::{Address, ListenPoint, Member, Pool, Snapshot, Source, VirtualServer};
use weir_event_loop::error_text::io_error_text;
use weir_event_loop::{ListenOptions, Source as SocketSource, sockets};

use crate::endpoint::endpoint;

/// The ports below this one need privileges by the kernel's default.
const PRIVILEGED_BELOW: u16 = 1024;

/// The file with the kernel's range of ephemeral ports.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The reason why this host cannot serve a snapshot.
#[derive(Debug)]
pub enum BindError {
    /// Binding a virtual server's address failed.
    Listen {
        /// The virtual server.
        virtual_server: Arc<str>,
        /// The address.
        address: ListenPoint,
        /// The error.
        error: io::Error,
    },
    /// A pool's source addresses cannot be used.
    Source {
        /// The pool.
        pool: Arc<str>,
        /// The reason.
        reason: String,
    },
}

impl std::fmt::Display for BindError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (virtual_server, address, error) = match self {
            Self::Listen { virtual_server, address, error } => (virtual_server, address, error),
            Self::Source { pool, reason } => {
                return write!(formatter, "pool {pool}: `source`: {reason}");
            }
        };
        let why = io_error_text(error);
        write!(formatter, "virtual server {virtual_server}: cannot listen on {address}: {why}")?;
        let privileged = port(address).is_some_and(|port| port < PRIVILEGED_BELOW);
        let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
        match error.kind() {
            _ if is(Errno::NODEV) => {
                formatter.write_str(": this host has no such network interface")
            }
            io::ErrorKind::PermissionDenied if privileged => {
                formatter.write_str(": ports below 1024 need root or CAP_NET_BIND_SERVICE")
            }
            io::ErrorKind::AddrNotAvailable => {
                formatter.write_str(": with `free_bind: true` it may come later")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BindError {}

/// Every address that a snapshot listens on, with its virtual server.
pub fn addresses(snapshot: &Snapshot) -> impl Iterator<Item = (&VirtualServer, &ListenPoint)> {
    let servers = snapshot.virtual_servers.iter();
    servers.flat_map(|server| server.listen.iter().map(move |point| (server, point)))
}

/// Whether the sockets of a listener are bound to the interface that has the configured name. True if none is configured.
pub fn are_on_interface<'s>(
    mut sockets: impl Iterator<Item = &'s OwnedFd>,
    point: &ListenPoint,
) -> bool {
    let is_there = |interface| sockets.all(|socket| sockets::has_interface(socket, interface));
    point.interface.as_deref().is_none_or(is_there)
}

/// Virtual servers that listen on network interfaces that do not exist, with the names of the interfaces.
pub fn missing_interfaces(snapshot: &Snapshot) -> Vec<(Arc<str>, Arc<str>)> {
    let mut missing: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (server, point) in addresses(snapshot) {
        let Some(interface) = &point.interface else { continue };
        let found = (Arc::clone(&server.name), Arc::clone(interface));
        if missing.last() != Some(&found) && !sockets::has_interface_named(interface) {
            missing.push(found);
        }
    }
    missing
}

/// The interfaces of the packet path that do not exist.
pub fn missing_packet_interfaces(path: &PathSettings) -> impl Iterator<Item = &Arc<str>> {
    let named = path.interfaces.iter().flatten();
    named.filter(|interface| !sockets::has_interface_named(interface))
}

/// The socket options for listeners of a virtual server.
pub fn options<'p>(server: &VirtualServer, point: &'p ListenPoint) -> ListenOptions<'p> {
    ListenOptions {
        free_bind: server.listening.free_bind,
        defer_accept_s: server.listening.defer_accept_s.unwrap_or(0),
        interface: point.interface.as_deref(),
    }
}

/// Binds the addresses that are not bound yet, after a check that this host can use the source addresses of all pools.
pub fn bind(
    snapshot: &Snapshot,
    is_bound: impl Fn(&ListenPoint) -> bool,
    own_ports: &HashSet<u16>,
    workers: usize,
) -> Result<HashMap<ListenPoint, Vec<OwnedFd>>, BindError> {
    for pool in &snapshot.pools {
        look_at_source(pool)
            .map_err(|reason| BindError::Source { pool: Arc::clone(&pool.name), reason })?;
    }
    let mut added = HashMap::new();
    for (virtual_server, address) in addresses(snapshot) {
        if is_bound(address) {
            continue;
        }
        let options = options(virtual_server, address);
        let at = endpoint(&address.address);
        // A listener of this process on the port, possibly for all addresses, must not count as one of another process.
        let is_ours = port(address).is_some_and(|port| own_ports.contains(&port));
        let sockets = if !is_ours && sockets::is_taken(at, options) {
            Err(io::ErrorKind::AddrInUse.into())
        } else {
            sockets::listen(at, workers, options)
        };
        match sockets {
            Ok(sockets) => added.insert(address.clone(), sockets),
            Err(error) => {
                added.keys().for_each(remove_socket_file);
                return Err(BindError::Listen {
                    virtual_server: Arc::clone(&virtual_server.name),
                    address: address.clone(),
                    error,
                });
            }
        };
    }
    Ok(added)
}

/// Applies the listening options of `next` to listeners that stay, or that were bound for another snapshot.
pub fn adjust(
    kept: &HashMap<ListenPoint, Vec<Option<OwnedFd>>>,
    added: &HashMap<ListenPoint, Vec<OwnedFd>>,
    former: &Snapshot,
    next: &Snapshot,
) {
    let seconds = |server: &VirtualServer| server.listening.defer_accept_s.unwrap_or(0);
    let former: HashMap<&ListenPoint, u32> =
        addresses(former).map(|(server, address)| (address, seconds(server))).collect();
    let is_of_tcp = |point: &ListenPoint| matches!(point.address, Address::Socket(_));
    for (server, address) in addresses(next).filter(|(_, address)| is_of_tcp(address)) {
        let seconds = seconds(server);
        let is_new = former.get(address).is_none_or(|former| *former != seconds);
        let kept = kept.get(address).filter(|_| is_new).into_iter().flatten().flatten();
        for socket in kept.chain(added.get(address).into_iter().flatten()) {
            // Every TCP socket of Linux supports the option. Without it, connections are accepted before their data arrives.
            let _ = sockets::defer_accept(socket, seconds);
        }
    }
}

/// Checks that this process can use a pool's source addresses. The error contains the reason and the remedy.
pub fn look_at_source(pool: &Pool) -> Result<(), String> {
    match &pool.source {
        Source::System => Ok(()),
        Source::Client => {
            let families: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            let is_of = |member: &Member, family: &IpAddr| matches!(&member.address, Address::Socket(to) if to.is_ipv4() == family.is_ipv4());
            families
                .into_iter()
                .filter(|family| pool.members.iter().any(|member| is_of(member, family)))
                .try_for_each(|address| {
                    sockets::may_use(SocketSource {
                        is_foreign: true,
                        ..SocketSource::from(address)
                    })
                })
                .map_err(|error| match error {
                    Errno::PERM => "`client`: connecting from other hosts' addresses needs root, CAP_NET_RAW or CAP_NET_ADMIN".into(),
                    error => format!("`client`: this host does not let connections come from other hosts' addresses: {error}"),
                })
        }
        Source::Addresses(own) => match own.ports {
            None => Ok(()),
            Some(ports) => look_at_ports(ports),
        },
    }
}

fn look_at_ports((first, last): (u16, u16)) -> Result<(), String> {
    // The kernel silently ignores values outside this range.
    let system =
        system_ports().map_err(|error| format!("{PORT_RANGE}: {}", io_error_text(&error)))?;
    if !system.contains(&first) || !system.contains(&last) {
        let (low, high) = (system.start(), system.end());
        return Err(format!(
            "the ports {first}-{last} do not lie within {low}-{high}, those that the system picks from: \
             change them, or run: sysctl net.ipv4.ip_local_port_range=\"{} {}\"",
            first.min(*low),
            last.max(*high)
        ));
    }
    let source =
        SocketSource { ports: Some((first, last)), ..IpAddr::from(Ipv4Addr::LOCALHOST).into() };
    sockets::may_use(source).map_err(|error| match error {
        Errno::NOPROTOOPT => "`ports` needs Linux 6.3 or newer".into(),
        error => format!("`ports`: {error}"),
    })
}

fn system_ports() -> io::Result<RangeInclusive<u16>> {
    let text = std::fs::read_to_string(PORT_RANGE)?;
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(low)), Some(Ok(high))) => Ok(low..=high),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "there are no two ports in it")),
    }
}

/// The port of an address, if it has one.
pub fn port(point: &ListenPoint) -> Option<u16> {
    point.address.socket().map(|address| address.port())
}

/// Removes the file of a unix socket that is no longer served.
pub fn remove_socket_file(point: &ListenPoint) {
    if let Address::Unix(path) = &point.address {
        // An error means that the file is gone already.
        let _ = std::fs::remove_file(path);
    }
}
