//! Creation of sockets: listeners, connections to members, and options of inherited and accepted sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::datagrams::UDP_GRO;

/// The address of a listener, or the target of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint<'a> {
    /// An address and a port.
    Socket(SocketAddr),
    /// A unix socket.
    Unix(&'a Path),
    /// A UDP address and port.
    Datagrams(SocketAddr),
}

/// The source address of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The source address: an address of this host, unless `is_foreign` is set.
    pub address: IpAddr,
    /// The lowest and highest port that the kernel may select; `None`: any port that the system permits.
    pub ports: Option<(u16, u16)>,
    /// Whether the address belongs to another host (IP_TRANSPARENT). This needs CAP_NET_RAW or CAP_NET_ADMIN.
    pub is_foreign: bool,
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self { address, ports: None, is_foreign: false }
    }
}

/// Options of listeners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenOptions<'a> {
    /// Permits an address that this host does not have yet.
    pub free_bind: bool,
    /// The kernel reports a connection only when its first data has arrived, or after this time in seconds; 0: at once.
    pub defer_accept_s: u32,
    /// Accepts only traffic of this network interface.
    pub interface: Option<&'a str>,
}

/// Maximum number of connections that the kernel completes before a worker accepts them (limited by `somaxconn`).
const LISTEN_BACKLOG: i32 = 65_535;

/// Size of the queue of a datagram listener, limited by `net.core.rmem_max`: datagrams must not be lost while a worker is
/// busy.
const DATAGRAM_QUEUE_BYTES: usize = 4 << 20;

/// Opens listening sockets for one address: one per worker, so that the kernel distributes connections and workers share no
/// queue. For unix sockets, all workers share one queue. As long as the number of sockets does not change, all datagrams of
/// one client arrive at the same socket.
pub fn listen(
    address: Endpoint<'_>,
    workers: usize,
    options: ListenOptions<'_>,
) -> io::Result<Vec<OwnedFd>> {
    match address {
        Endpoint::Socket(address) => {
            (0..workers).map(|_| listen_tcp(address, options)).collect::<io::Result<_>>()
        }
        Endpoint::Datagrams(address) => {
            (0..workers).map(|_| listen_udp(address, options)).collect::<io::Result<_>>()
        }
        Endpoint::Unix(path) => {
            remove_stale_socket(path)?;
            let socket = new_socket(AddressFamily::UNIX)?;
            net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            begin_listening(&socket)?;
            let shared = (1..workers).map(|_| socket.try_clone()).collect::<io::Result<Vec<_>>>();
            let mut sockets = shared?;
            sockets.push(socket);
            Ok(sockets)
        }
    }
}

fn listen_tcp(address: SocketAddr, options: ListenOptions<'_>) -> io::Result<OwnedFd> {
    let socket = new_socket(family(address))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Accepted connections inherit this option, which saves a system call per connection.
    sockopt::set_tcp_nodelay(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    if options.free_bind {
        set_free_bind(&socket, address)?;
    }
    if let Some(interface) = options.interface {
        bind_to_interface(&socket, interface)?;
    }
    if options.defer_accept_s > 0 {
        defer_accept(&socket, options.defer_accept_s)?;
    }
    net::bind(&socket, &address)?;
    begin_listening(&socket)?;
    Ok(socket)
}

/// Starts to listen on a bound socket. If it listens already, the length of its queue changes to weir's default.
pub fn begin_listening(socket: &OwnedFd) -> Result<(), Errno> {
    net::listen(socket, LISTEN_BACKLOG)
}

fn set_free_bind(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(socket, true),
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(socket, true),
    }
}

/// Sets how long the kernel waits for the first data before it reports a connection, in seconds; 0: it does not wait.
pub fn defer_accept(listener: &impl AsFd, seconds: u32) -> Result<(), Errno> {
    let seconds = libc::c_int::try_from(seconds).unwrap_or(libc::c_int::MAX);
    set_option(listener.as_fd(), (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT), seconds)
}

fn listen_udp(address: SocketAddr, options: ListenOptions<'_>) -> io::Result<OwnedFd> {
    let socket = datagram_socket(address)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    prepare_datagrams(&socket, address)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    if options.free_bind {
        set_free_bind(&socket, address)?;
    }
    if let Some(interface) = options.interface {
        bind_to_interface(&socket, interface)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

/// Sets the options of a datagram listener that can be set after bind.
pub fn prepare_datagrams(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    // The kernel joins datagrams of one sender (GRO). Without GRO, it delivers each datagram separately.
    let _ = set_option(socket.as_fd(), (libc::SOL_UDP, UDP_GRO), 1);
    set_datagram_queue(socket, true)?;
    if address.ip().is_unspecified() {
        // A response must be sent from the address that received the request.
        let option = match address {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_PKTINFO),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        };
        set_option(socket.as_fd(), option, 1)?;
    }
    Ok(())
}

/// Sets the size of the kernel's queue of a datagram listener: large, or the minimum if nothing reads it.
pub fn set_datagram_queue(listener: &impl AsFd, is_read: bool) -> Result<(), Errno> {
    let bytes = if is_read { DATAGRAM_QUEUE_BYTES } else { 0 };
    sockopt::set_socket_recv_buffer_size(listener, bytes)
}

/// Opens a socket that exchanges datagrams with `address` only. The kernel selects its port.
pub fn connect_datagrams(address: SocketAddr, source: Option<Source>) -> Result<OwnedFd, Errno> {
    let socket = datagram_socket(address)?;
    // Without this option, a connected socket receives errors about unreachable ports, but not about unreachable hosts or
    // networks.
    let option = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    set_option(socket.as_fd(), option, 1)?;
    if let Some(source) = source {
        bind_source(&socket, source).map_err(|_| Errno::ADDRNOTAVAIL)?;
    }
    net::connect(&socket, &address).map_err(of_datagrams)?;
    Ok(socket)
}

/// Translates the error of a failed connect of a datagram socket. The connect never waits, so EAGAIN means that the kernel
/// found no free port.
pub fn of_datagrams(error: Errno) -> Errno {
    if error == Errno::AGAIN { Errno::ADDRNOTAVAIL } else { error }
}

fn datagram_socket(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family(address), SocketType::DGRAM, flags, None)?;
    // The kernel joins datagrams of one sender (GRO). Without GRO, it delivers each datagram separately.
    let _ = set_option(socket.as_fd(), (libc::SOL_UDP, UDP_GRO), 1);
    Ok(socket)
}

/// Whether another process listens on `address`. With SO_REUSEPORT, the address would be shared without an error.
pub fn is_taken(address: Endpoint<'_>, options: ListenOptions<'_>) -> bool {
    let (address, is_udp) = match address {
        Endpoint::Socket(address) => (address, false),
        Endpoint::Datagrams(address) => (address, true),
        Endpoint::Unix(_) => return false,
    };
    let probe = || -> io::Result<()> {
        let socket = match is_udp {
            true => datagram_socket(address)?,
            false => new_socket(family(address))?,
        };
        // SO_REUSEADDR would let a datagram socket share the port.
        sockopt::set_socket_reuseaddr(&socket, !is_udp)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        if options.free_bind {
            set_free_bind(&socket, address)?;
        }
        if let Some(interface) = options.interface {
            bind_to_interface(&socket, interface)?;
        }
        // Other options of a listener do not matter, because this socket does not receive connections.
        Ok(net::bind(&socket, &address)?)
    };
    probe().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Removes a socket file that no process serves. A file in use is an error.
fn remove_stale_socket(path: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            let probe = new_socket(AddressFamily::UNIX)?;
            match net::connect(&probe, &SocketAddrUnix::new(path)?) {
                Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
                _ => Err(Errno::ADDRINUSE.into()),
            }
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a socket and starts to connect it to `address`. The connection may be open already.
pub fn connect(address: Endpoint<'_>, source: Option<Source>) -> Result<OwnedFd, Errno> {
    match address {
        Endpoint::Socket(address) => {
            let socket = new_socket(family(address))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            if let Some(source) = source {
                // A source address that cannot be bound is not a fault of the member.
                let not_ours = |_| Errno::ADDRNOTAVAIL;
                bind_source(&socket, source).map_err(not_ours)?;
            }
            net::connect(&socket, &address).or_else(under_way)?;
            Ok(socket)
        }
        Endpoint::Unix(path) => {
            let socket = new_socket(AddressFamily::UNIX)?;
            net::connect(&socket, &SocketAddrUnix::new(path)?).or_else(under_way)?;
            Ok(socket)
        }
        Endpoint::Datagrams(address) => connect_datagrams(address, source),
    }
}

fn under_way(error: Errno) -> Result<(), Errno> {
    if error == Errno::INPROGRESS { Ok(()) } else { Err(error) }
}

fn new_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, SocketType::STREAM, flags, None)
}

fn family(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// Binds the source address without a port. The kernel selects the port during connect, so ports are exhausted only per
/// destination.
pub fn bind_source(socket: &impl AsFd, source: Source) -> Result<(), Errno> {
    const IP_BIND_ADDRESS_NO_PORT: libc::c_int = 24;
    const IP_LOCAL_PORT_RANGE: libc::c_int = 51;
    let of_ip = |option| (libc::IPPROTO_IP, option);
    set_option(socket.as_fd(), of_ip(IP_BIND_ADDRESS_NO_PORT), 1)?;
    if let Some((first, last)) = source.ports {
        let range = u32::from(last) << 16 | u32::from(first);
        set_option(socket.as_fd(), of_ip(IP_LOCAL_PORT_RANGE), range.cast_signed())?;
    }
    if source.is_foreign {
        let option = match source.address {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
        };
        set_option(socket.as_fd(), option, 1)?;
    }
    net::bind(socket, &SocketAddr::new(source.address, 0))
}

/// Whether this process may connect from a source, as far as socket options show: a foreign address, and ports. Does not
/// bind the address itself.
pub fn may_use(source: Source) -> Result<(), Errno> {
    let any: IpAddr = match source.address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let any = SocketAddr::new(any, 0);
    // The unspecified address without a port conflicts with no other socket.
    bind_source(&new_socket(family(any))?, Source { address: any.ip(), ..source })
}

/// Restricts a socket, and the connections that it accepts, to the traffic of a network interface.
fn bind_to_interface(socket: &impl AsFd, interface: &str) -> Result<(), Errno> {
    let socket = socket.as_fd();
    let length = libc::socklen_t::try_from(interface.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the option takes the bytes of a name; pointer and length describe a live string.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            interface.as_ptr().cast(),
            length,
        )
    };
    if result != 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(())
}

/// Whether this host may have a network interface with this name at present. `false` only if the kernel says that it has
/// none.
pub fn has_interface_named(name: &str) -> bool {
    let flags = SocketFlags::CLOEXEC;
    let index = net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .and_then(|socket| net::netdevice::name_to_index(&socket, name));
    index != Err(Errno::NODEV)
}

/// Whether the interface to which a socket is bound still exists under this name. A later interface of the same name does
/// not count.
pub fn has_interface(socket: &impl AsFd, interface: &str) -> bool {
    let mut name = [0_u8; libc::IFNAMSIZ];
    let mut length = libc::IFNAMSIZ as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to a live buffer of that length.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            name.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    result == 0 && name == interface.as_bytes()
}

/// A descriptor of the process that has opened the other end of a unix socket (`SO_PEERPIDFD`); `None`: the kernel does not
/// have it (before Linux 6.5), or the process is over.
pub fn peer_process(socket: &impl AsFd) -> Option<OwnedFd> {
    let mut descriptor: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes an int to a live int of the given length.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &raw mut length,
        )
    };
    if result != 0 || descriptor < 0 {
        return None;
    }
    // SAFETY: the kernel has just opened this descriptor for the caller, and nothing else has it.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sets an option of type int, given by its level and number.
fn set_option(
    socket: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    value: libc::c_int,
) -> Result<(), Errno> {
    // SAFETY: the options that are set here take an int, and pointer and length describe a live int.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result != 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ListenOptions<'static> =
        ListenOptions { free_bind: false, defer_accept_s: 0, interface: None };

    #[test]
    fn workers_share_an_address_and_others_notice() {
        let first = listen(Endpoint::Socket("127.0.0.1:0".parse().unwrap()), 1, PLAIN).unwrap();
        let bound = net::getsockname(&first[0]).unwrap();
        let address = Endpoint::Socket(SocketAddr::try_from(bound).unwrap());
        assert!(is_taken(address, PLAIN));
        assert_eq!(listen(address, 3, PLAIN).unwrap().len(), 3);
        drop(first);
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_and_a_live_one_respected() {
        let path = std::env::temp_dir().join(format!("weir-sockets-{}", std::process::id()));
        let address = Endpoint::Unix(&path);
        let live = listen(address, 2, PLAIN).unwrap();
        assert_eq!(live.len(), 2);
        assert_eq!(listen(address, 1, PLAIN).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(live);
        assert!(listen(address, 1, PLAIN).is_ok());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"data").unwrap();
        assert_eq!(listen(address, 1, PLAIN).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_address_that_the_host_lacks_is_listened_on_if_asked_for() {
        // TEST-NET-1 and the documentation prefix: no host has these addresses.
        for address in ["192.0.2.77:0", "[2001:db8::77]:0"] {
            let address = Endpoint::Socket(address.parse().unwrap());
            let refused = listen(address, 1, PLAIN).unwrap_err();
            if refused.raw_os_error() == Some(libc::EAFNOSUPPORT) {
                continue;
            }
            assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable);
            let free = ListenOptions { free_bind: true, ..PLAIN };
            let first = listen(address, 1, free).unwrap();
            let bound = SocketAddr::try_from(net::getsockname(&first[0]).unwrap()).unwrap();
            assert!(is_taken(Endpoint::Socket(bound), free));
        }
    }

    /// A source with two free ports at this address. No other connection uses them.
    fn two_ports(address: std::net::IpAddr) -> Option<(Source, u16)> {
        let is_free = |port: u16| {
            std::net::TcpListener::bind(("0.0.0.0", port)).is_ok()
                && std::net::UdpSocket::bind(("0.0.0.0", port)).is_ok()
        };
        let offset = std::process::id() as u16 % 1_000;
        let firsts = (0..1_000).map(|turn| 40_000 + (offset + turn) % 1_000 * 2);
        let first = firsts.into_iter().find(|first| is_free(*first) && is_free(first + 1)).unwrap();
        let source = Source { address, ports: Some((first, first + 1)), is_foreign: false };
        if may_use(source) == Err(Errno::NOPROTOOPT) {
            weir_testing::skip("this kernel has no IP_LOCAL_PORT_RANGE");
            return None;
        }
        Some((source, first))
    }

    #[test]
    fn a_connection_comes_from_the_ports_of_its_source() {
        let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = Endpoint::Socket(target.local_addr().unwrap());
        let address = "127.0.0.9".parse().unwrap();
        let Some((source, first)) = two_ports(address) else { return };
        let _both = [connect(to, Some(source)).unwrap(), connect(to, Some(source)).unwrap()];
        let mut ports = [0, 0].map(|_| {
            let (_, peer) = target.accept().unwrap();
            assert_eq!(peer.ip(), address);
            peer.port()
        });
        ports.sort_unstable();
        assert_eq!(ports, [first, first + 1]);
        assert_eq!(connect(to, Some(source)).unwrap_err(), Errno::ADDRNOTAVAIL);
    }

    #[test]
    fn without_a_free_port_it_is_the_address_that_is_not_to_be_had() {
        let target = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = target.local_addr().unwrap();
        let address = "127.0.0.11".parse().unwrap();
        let Some((source, _)) = two_ports(address) else { return };
        let connect = || connect_datagrams(to, Some(source));
        let _both = [connect().unwrap(), connect().unwrap()];
        assert_eq!(connect().unwrap_err(), Errno::ADDRNOTAVAIL);
    }
}
