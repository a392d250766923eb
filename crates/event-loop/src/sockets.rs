//! Making sockets: listeners, connections to members, and what is asked of accepted ones.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// Where a socket listens, or connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint<'a> {
    /// An address and a port.
    Socket(SocketAddr),
    /// A unix socket.
    Unix(&'a Path),
}

/// Connections that the kernel completes before a worker accepts them (capped by `somaxconn`).
const LISTEN_BACKLOG: i32 = 65_535;

/// Listening sockets for one address: one per worker, so that the kernel spreads connections and
/// no worker shares a queue. A unix socket knows no such groups: its workers share one queue.
pub fn listen(address: Endpoint<'_>, workers: usize) -> io::Result<Vec<OwnedFd>> {
    match address {
        Endpoint::Socket(address) => {
            (0..workers).map(|_| listen_tcp(address)).collect::<io::Result<_>>()
        }
        Endpoint::Unix(path) => {
            remove_stale_socket(path)?;
            let socket = new_socket(AddressFamily::UNIX)?;
            net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            net::listen(&socket, LISTEN_BACKLOG)?;
            let shared = (1..workers).map(|_| socket.try_clone()).collect::<io::Result<Vec<_>>>();
            let mut sockets = shared?;
            sockets.push(socket);
            Ok(sockets)
        }
    }
}

fn listen_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = new_socket(family(address))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Accepted connections inherit it: no system call per connection.
    sockopt::set_tcp_nodelay(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}

/// Whether another process listens on `address`: SO_REUSEPORT would let us share it silently.
pub fn is_taken(address: Endpoint<'_>) -> bool {
    let Endpoint::Socket(address) = address else {
        return false;
    };
    let probe = || -> io::Result<()> {
        let socket = new_socket(family(address))?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        // A listener refuses it whatever its options; no connection can come to this socket.
        Ok(net::bind(&socket, &address)?)
    };
    probe().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// A socket file that nobody answers on any more is removed; one in use is an error.
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

/// A socket on which a connection to `address` is under way or already there.
pub fn connect(address: Endpoint<'_>, source: Option<IpAddr>) -> Result<OwnedFd, Errno> {
    match address {
        Endpoint::Socket(address) => {
            let socket = new_socket(family(address))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            if let Some(source) = source {
                bind_source(&socket, source)?;
            }
            net::connect(&socket, &address).or_else(under_way)?;
            Ok(socket)
        }
        Endpoint::Unix(path) => {
            let socket = new_socket(AddressFamily::UNIX)?;
            net::connect(&socket, &SocketAddrUnix::new(path)?).or_else(under_way)?;
            Ok(socket)
        }
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

/// Binds the address alone: the port is chosen when the connection is made, so that ports are
/// exhausted per destination only.
fn bind_source(socket: &OwnedFd, source: IpAddr) -> Result<(), Errno> {
    const IP_BIND_ADDRESS_NO_PORT: libc::c_int = 24;
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, and both pointer and length name a live one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result != 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    net::bind(socket, &SocketAddr::new(source, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_an_address_and_others_notice() {
        let first = listen(Endpoint::Socket("127.0.0.1:0".parse().unwrap()), 1).unwrap();
        let bound = net::getsockname(&first[0]).unwrap();
        let address = Endpoint::Socket(SocketAddr::try_from(bound).unwrap());
        assert!(is_taken(address));
        assert_eq!(listen(address, 3).unwrap().len(), 3);
        drop(first);
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_and_a_live_one_respected() {
        let path = std::env::temp_dir().join(format!("weir-sockets-{}", std::process::id()));
        let address = Endpoint::Unix(&path);
        let live = listen(address, 2).unwrap();
        assert_eq!(live.len(), 2);
        assert_eq!(listen(address, 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(live);
        assert!(listen(address, 1).is_ok());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"data").unwrap();
        assert_eq!(listen(address, 1).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        std::fs::remove_file(&path).unwrap();
    }
}
