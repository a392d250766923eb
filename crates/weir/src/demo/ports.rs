//! Addresses of the demo, reserved until it ends.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

use tokio::net::TcpSocket;

/// A reserved address: a socket is bound to it and never listens. Programs that listen there bind with SO_REUSEPORT, as
/// weir's listeners do. Until then, connections are refused.
#[derive(Debug)]
pub struct Reserved {
    address: SocketAddr,
    _socket: TcpSocket,
    _claim: Option<UnixListener>,
}

impl Reserved {
    /// Reserves `address`; port 0 means any free port. An address with a listener is an error.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let claim = if address.port() == 0 { None } else { Some(claim(address)?) };
        // SO_REUSEPORT would silently share the port with another process of the same user.
        drop(TcpListener::bind(address)?);
        let socket = reusable(address)?;
        Ok(Self { address: socket.local_addr()?, _socket: socket, _claim: claim })
    }

    /// Reserves `address` if it is free, otherwise a free port of the same IP address.
    pub fn preferred(address: SocketAddr) -> io::Result<Self> {
        Self::new(address).or_else(|_| Self::new(SocketAddr::new(address.ip(), 0)))
    }

    /// The address with its actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Prevents other demos from taking an address between the check and the listening. The name disappears with the
/// process.
fn claim(address: SocketAddr) -> io::Result<UnixListener> {
    let name = format!("weir-demo {address}");
    UnixListener::bind_addr(&UnixAddress::from_abstract_name(name)?)
}

/// A socket bound to an address that is reserved, or will be.
pub fn reusable(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn what_is_reserved_is_refused_and_can_be_listened_on() {
        let reserved = Reserved::new(ANY).unwrap();
        let address = reserved.address();
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let _listener = reusable(address).unwrap().listen(1).unwrap();
            std::net::TcpStream::connect(address).unwrap();
        });
    }

    #[test]
    fn nobody_else_gets_what_is_reserved() {
        let first = Reserved::new(ANY).unwrap().address();
        let reserved = Reserved::new(first).unwrap();
        assert_eq!(Reserved::new(first).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(reserved);
        assert!(Reserved::new(first).is_ok());
    }

    #[test]
    fn what_is_taken_gives_way_to_a_free_port() {
        let taken = TcpListener::bind(ANY).unwrap();
        let address = taken.local_addr().unwrap();
        let error = Reserved::new(address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let other = Reserved::preferred(address).unwrap().address();
        assert_eq!(other.ip(), address.ip());
        assert_ne!(other.port(), address.port());
    }
}
