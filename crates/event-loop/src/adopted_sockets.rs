//! Listening sockets that were opened by another process.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{self, AddressFamily, SocketType, sockopt};

use crate::sockets::{self, Endpoint, ListenOptions};

/// The address of an adopted listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An address and a port.
    Stream(SocketAddr),
    /// A UDP address and port.
    Datagrams(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// Returns the address of a socket, or an error with the reason if weir cannot use it as a listener.
pub fn place(socket: &impl AsFd) -> io::Result<Place> {
    let other = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let kind = sockopt::socket_type(socket)?;
    let family = sockopt::socket_domain(socket)?;
    let is_unix = family == AddressFamily::UNIX;
    if !is_unix && family != AddressFamily::INET && family != AddressFamily::INET6 {
        return other("it is neither of IP nor a unix socket");
    }
    let address = net::getsockname(socket)?;
    if kind == SocketType::STREAM {
        if !sockopt::socket_acceptconn(socket)? {
            return other("it does not listen");
        }
        if is_unix {
            let address = net::SocketAddrUnix::try_from(address)?;
            let path = address.path().map(|path| path.to_string_lossy().into_owned().into());
            return path.map_or_else(|| other("it has no path"), |path| Ok(Place::Unix(path)));
        }
        return Ok(Place::Stream(SocketAddr::try_from(address)?));
    }
    if kind == SocketType::DGRAM && !is_unix {
        return Ok(Place::Datagrams(SocketAddr::try_from(address)?));
    }
    other("it is neither a stream nor of UDP")
}

/// Sets the options of weir's own listeners, as far as a bound socket permits.
pub fn prepare(
    socket: &OwnedFd,
    address: Endpoint<'_>,
    options: ListenOptions<'_>,
) -> io::Result<()> {
    fcntl_setfl(socket, fcntl_getfl(socket)? | OFlags::NONBLOCK)?;
    match address {
        Endpoint::Socket(_) => {
            sockopt::set_tcp_nodelay(socket, true)?;
            sockets::defer_accept(socket, options.defer_accept_s)?;
            sockets::begin_listening(socket)?;
        }
        Endpoint::Unix(_) => sockets::begin_listening(socket)?,
        Endpoint::Datagrams(address) => sockets::prepare_datagrams(socket, address)?,
    }
    Ok(())
}

/// Opens `count` additional sockets for the address of `first`. They are separate sockets if the address may be shared,
/// otherwise duplicates, which share one queue.
pub fn more(
    first: &[OwnedFd],
    address: Endpoint<'_>,
    count: usize,
    options: ListenOptions<'_>,
) -> io::Result<Vec<OwnedFd>> {
    let Some(socket) = first.first().filter(|_| count > 0) else { return Ok(Vec::new()) };
    let may_share = !matches!(address, Endpoint::Unix(_)) && sockopt::socket_reuseport(socket)?;
    if may_share && let Ok(own) = sockets::listen(address, count, options) {
        return Ok(own);
    }
    duplicates(first, count)
}

/// `count` duplicates of the sockets in `first`.
pub fn duplicates(first: &[OwnedFd], count: usize) -> io::Result<Vec<OwnedFd>> {
    first.iter().cycle().take(count).map(OwnedFd::try_clone).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    const PLAIN: ListenOptions<'static> =
        ListenOptions { free_bind: false, defer_accept_s: 0, interface: None };

    #[test]
    fn places_of_listeners() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(place(&listener).unwrap(), Place::Stream(address));
        let datagrams = UdpSocket::bind("[::1]:0").unwrap();
        let address = datagrams.local_addr().unwrap();
        assert_eq!(place(&datagrams).unwrap(), Place::Datagrams(address));
        let path = std::env::temp_dir().join(format!("weir-adopted-{}", std::process::id()));
        let unix = UnixListener::bind(&path).unwrap();
        assert_eq!(place(&unix).unwrap(), Place::Unix(path.clone()));
        std::fs::remove_file(&path).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let check = |error: io::Error, expected: &str| assert_eq!(error.to_string(), expected);
        check(place(&client).unwrap_err(), "it does not listen");
        check(
            place(&UnixDatagram::unbound().unwrap()).unwrap_err(),
            "it is neither a stream nor of UDP",
        );
        assert!(place(&std::fs::File::open("/dev/null").unwrap()).is_err());
    }

    #[test]
    fn further_sockets_are_ones_of_their_own_or_duplicates() {
        let is_own = |socket: OwnedFd| {
            let bound = SocketAddr::try_from(net::getsockname(&socket).unwrap()).unwrap();
            let at = Endpoint::Socket(bound);
            prepare(&socket, at, PLAIN).unwrap();
            let first = [socket];
            let more = more(&first, at, 2, PLAIN).unwrap();
            assert_eq!(more.len(), 2);
            let _client = TcpStream::connect(bound).unwrap();
            let all = first.iter().chain(&more);
            all.filter(|socket| net::accept(socket).is_ok()).count() == 1 && {
                // If the sockets are duplicates, all clients are in one queue.
                let _clients: Vec<_> =
                    (0..64).map(|_| TcpStream::connect(bound).unwrap()).collect();
                while net::accept(&first[0]).is_ok() {}
                more.iter().any(|socket| net::accept(socket).is_ok())
            }
        };
        assert!(!is_own(TcpListener::bind("127.0.0.1:0").unwrap().into()));
        let any = Endpoint::Socket("127.0.0.1:0".parse().unwrap());
        assert!(is_own(sockets::listen(any, 1, PLAIN).unwrap().remove(0)));
    }
}
