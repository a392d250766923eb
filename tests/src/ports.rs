//! Ports for servers that cannot listen on port 0.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};

/// A loopback port that no other process gets during the lease.
///
/// The lease holds a socket that is bound but does not listen, with SO_REUSEADDR and SO_REUSEPORT. Linux then lets a
/// server with either option bind and listen on the port, does not assign the port to sockets that ask for any port,
/// and refuses connections until a server listens.
#[derive(Debug)]
pub struct Lease {
    _holder: OwnedFd,
    address: SocketAddr,
}

impl Lease {
    /// Leases a port on 127.0.0.1.
    pub fn new() -> Self {
        Self::try_new(Ipv4Addr::LOCALHOST).expect("a free port on loopback")
    }

    /// Leases a port on every address, so that a server can listen on 0.0.0.0. Its [`address`](Self::address) is on
    /// loopback.
    ///
    /// A port that is free on 127.0.0.1 can be in use on another address.
    pub fn on_every_address() -> Self {
        Self::try_new(Ipv4Addr::UNSPECIFIED).expect("a port that is free on every address")
    }

    fn try_new(of: Ipv4Addr) -> rustix::io::Result<Self> {
        let holder = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        sockopt::set_socket_reuseaddr(&holder, true)?;
        sockopt::set_socket_reuseport(&holder, true)?;
        bind(&holder, &SocketAddr::from((of, 0)))?;
        let bound: SocketAddr = getsockname(&holder)?.try_into()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port()));
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
    fn a_port_leased_on_every_address_is_nobodys_on_any() {
        let lease = Lease::on_every_address();
        let port = lease.address().port();
        for address in [[127, 0, 0, 1], [127, 0, 0, 2], [0, 0, 0, 0]] {
            let address = SocketAddr::from((address, port));
            assert!(TcpStream::connect(address).is_err(), "{address}");
            let server = TcpListener::bind(address).expect("listening on a leased port");
            assert!(TcpStream::connect(address).is_ok(), "{address}");
            drop(server);
        }
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
