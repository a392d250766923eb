//! Ports for servers that cannot be asked to pick one themselves (port 0).

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};

/// A loopback port that nobody else gets while the lease lives.
///
/// The lease holds a socket that is bound but does not listen. With SO_REUSEADDR and SO_REUSEPORT on it,
/// Linux lets a server that sets either bind and listen on the port, but gives the port to nobody who asks
/// for just any; and a connection to it is refused until a server listens.
#[derive(Debug)]
pub struct Lease {
    _holder: OwnedFd,
    address: SocketAddr,
}

impl Lease {
    /// Leases a port on 127.0.0.1.
    pub fn new() -> Self {
        Self::try_new().expect("a free port on loopback")
    }

    fn try_new() -> rustix::io::Result<Self> {
        let holder = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        sockopt::set_socket_reuseaddr(&holder, true)?;
        sockopt::set_socket_reuseport(&holder, true)?;
        bind(&holder, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = getsockname(&holder)?.try_into()?;
        Ok(Self { _holder: holder, address })
    }

    /// The leased address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn leased_port_refuses_connections_until_a_server_listens() {
        let lease = Lease::new();
        assert!(TcpStream::connect(lease.address()).is_err());
        let server = TcpListener::bind(lease.address()).expect("listening on a leased port");
        assert!(TcpStream::connect(lease.address()).is_ok());
        drop(server);
        assert!(TcpStream::connect(lease.address()).is_err());
    }

    #[test]
    fn leases_differ() {
        let leases: Vec<Lease> = (0..200).map(|_| Lease::new()).collect();
        let mut ports: Vec<u16> = leases.iter().map(|lease| lease.address().port()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), leases.len());
    }
}
