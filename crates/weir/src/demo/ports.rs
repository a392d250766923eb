//! Addresses that the demo reserves until it ends.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

use tokio::net::TcpSocket;

/// A reserved address: its socket is bound but does not listen. The later listener binds with SO_REUSEPORT, as weir
/// does; until then, connections are refused.
#[derive(Debug)]
pub struct ReservedAddress {
    address: SocketAddr,
    _socket: TcpSocket,
    _claim: Option<UnixListener>,
}

impl ReservedAddress {
    /// Reserves `address`; port 0 means any free port. Fails if another socket listens there.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let claim = if address.port() == 0 { None } else { Some(claim(address)?) };
        // With SO_REUSEPORT, bind would succeed even if another process of the same user listens there.
        drop(TcpListener::bind(address)?);
        let socket = reusable(address)?;
        Ok(Self { address: socket.local_addr()?, _socket: socket, _claim: claim })
    }

    /// Reserves `address` if it is free, else a free port of the same IP address.
    pub fn preferred(address: SocketAddr) -> io::Result<Self> {
        Self::new(address).or_else(|_| Self::new(SocketAddr::new(address.ip(), 0)))
    }

    /// The address with its actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Locks an address against other demos between the check and listening. The lock is an abstract socket name, which
/// ends with the process.
fn claim(address: SocketAddr) -> io::Result<UnixListener> {
    let name = format!("weir-demo {address}");
    UnixListener::bind_addr(&UnixAddress::from_abstract_name(name)?)
}

/// A socket bound to a reserved address, or one that is to be reserved.
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
        let reserved = ReservedAddress::new(ANY).unwrap();
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
        let first = ReservedAddress::new(ANY).unwrap().address();
        let reserved = ReservedAddress::new(first).unwrap();
        assert_eq!(ReservedAddress::new(first).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(reserved);
        assert!(ReservedAddress::new(first).is_ok());
    }

    #[test]
    fn what_is_taken_gives_way_to_a_free_port() {
        let taken = TcpListener::bind(ANY).unwrap();
        let address = taken.local_addr().unwrap();
        let error = ReservedAddress::new(address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let other = ReservedAddress::preferred(address).unwrap().address();
        assert_eq!(other.ip(), address.ip());
        assert_ne!(other.port(), address.port());
    }
}
