//! Connections of the control plane to other servers. None leads to an admin listener of this process.
//!
//! The configuration refuses destinations that are admin listeners as written. A name shows where it leads only when it is
//! resolved, so each resolved address is looked at here. Addresses of pool members are left out earlier, where names become
//! members.
//!
//! [`tls`] secures a connection; [`exchange`] sends one HTTP request on it. Authorities, responders, issuers of tokens and
//! collectors are asked in this way.
//!
//! **Architecture invariant:** no request waits for anything here. The data path does not depend on this crate.

#![forbid(unsafe_code)]

pub mod exchange;
pub mod tls;

use std::io;
use std::net::{SocketAddr, TcpStream as BlockingStream, ToSocketAddrs};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use tokio::net::TcpStream;
use weir_config::own_doors::OwnDoors;
use weir_config::snapshot::Address;

/// The admin listeners of this process.
static DOORS: RwLock<Option<OwnDoors>> = RwLock::new(None);

/// Sets the admin listeners of this process.
pub fn avoid<'a>(listen: impl Iterator<Item = &'a Address>) {
    *DOORS.write().unwrap_or_else(PoisonError::into_inner) = Some(OwnDoors::new(listen));
}

/// The addresses that lead to no admin listener; an error if there are none.
fn allowed(
    found: impl Iterator<Item = SocketAddr>,
    doors: Option<&OwnDoors>,
) -> io::Result<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> = found.collect();
    let is_own = |address: &SocketAddr| doors.is_some_and(|doors| doors.have(*address));
    let allowed: Vec<SocketAddr> = found.iter().copied().filter(|it| !is_own(it)).collect();
    match (found.is_empty(), allowed.is_empty()) {
        (true, _) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        (_, true) => {
            Err(io::Error::other("this is weir's own admin listener, which nothing may lead to"))
        }
        _ => Ok(allowed),
    }
}

fn checked(found: impl Iterator<Item = SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    let doors = DOORS.read().unwrap_or_else(PoisonError::into_inner);
    allowed(found, doors.as_ref())
}

/// Connects to the first address of a host that accepts a connection.
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let found = checked(tokio::net::lookup_host((host, port)).await?)?;
    TcpStream::connect(&found[..]).await
}

/// The addresses of a server, `host:port`. Blocks while the name is resolved.
pub fn addresses(server: &str) -> io::Result<Vec<SocketAddr>> {
    checked(server.to_socket_addrs()?)
}

/// As [`connect`], but blocks. `server`: `host:port`; `timeout`: for each address.
pub fn connect_blocking(server: &str, timeout: Duration) -> io::Result<BlockingStream> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses(server)? {
        match BlockingStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_of_an_admin_listener_is_connected_to() {
        let address = |text: &str| -> SocketAddr { text.parse().expect("an address") };
        let own = Address::Socket(address("127.0.0.1:9900"));
        let doors = OwnDoors::new([own].iter());
        let check = |found: &[&str], expected: Option<&[&str]>| {
            let made = allowed(found.iter().map(|it| address(it)), Some(&doors)).ok();
            let expected: Option<Vec<SocketAddr>> =
                expected.map(|it| it.iter().map(|it| address(it)).collect());
            assert_eq!(made, expected, "{found:?}");
        };
        check(&["127.0.0.1:9900"], None);
        check(&["[::ffff:127.0.0.1]:9900", "192.0.2.1:9900"], Some(&["192.0.2.1:9900"]));
        check(&["127.0.0.1:9901"], Some(&["127.0.0.1:9901"]));
        check(&[], None);
        assert!(allowed([address("127.0.0.1:9900")].into_iter(), None).is_ok());
    }
}
