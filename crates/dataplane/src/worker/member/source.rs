//! Source addresses and destination ports of new connections to members.

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use weir_config::snapshot::{Address, Source, SourceAddresses};
use weir_event_loop::{Endpoint, EventLoop, Owner, Source as SocketSource, Token};
use weir_exchange::local::pool::LocalPool;

use crate::endpoint::endpoint;
use crate::worker::state::client::Client;

/// Opens a connection for a client to a member of the pool.
pub fn open_socket(
    io: &mut EventLoop,
    pool: &LocalPool,
    client: Option<&mut Client>,
    member: &Address,
    owner: Owner,
) -> Result<Token, Errno> {
    let client_ip = client.as_ref().and_then(|client| client.address()).map(|client| client.ip());
    let to = match member {
        Address::Socket(member) if member.port() == 0 => {
            let port = client.and_then(|client| destination_port(io, client));
            let port = port.ok_or(Errno::AFNOSUPPORT)?;
            Endpoint::Socket(SocketAddr::new(member.ip(), port))
        }
        member => endpoint(member),
    };
    let Endpoint::Socket(address) = to else {
        return io.connect(to, None, owner);
    };
    connect_from(pool, client_ip, address, |source| io.connect(to, source, owner))
}

/// Connects to a member of the pool. Calls `connect` with the source that the pool's settings require.
pub fn connect_from(
    pool: &LocalPool,
    client: Option<IpAddr>,
    to: SocketAddr,
    mut connect: impl FnMut(Option<SocketSource>) -> Result<Token, Errno>,
) -> Result<Token, Errno> {
    match &pool.settings().source {
        Source::System => connect(None),
        Source::Addresses(own) => connect_in_turn(pool, own, to, connect),
        Source::Client => {
            let client = client.map(|client| client.to_canonical());
            let own = client.filter(|client| client.is_ipv4() == to.is_ipv4());
            let own = own.ok_or(Errno::AFNOSUPPORT)?;
            connect(Some(SocketSource { is_foreign: true, ..own.into() }))
        }
    }
}

/// The port that a client connected to.
fn destination_port(io: &mut EventLoop, client: &mut Client) -> Option<u16> {
    client.destination.learn(io, client.token);
    client.destination.address().map(|address| address.port()).filter(|port| *port != 0)
}

/// Connects from the next address in rotation, or from a later one if the address has no free port.
fn connect_in_turn(
    pool: &LocalPool,
    own: &SourceAddresses,
    to: SocketAddr,
    mut connect: impl FnMut(Option<SocketSource>) -> Result<Token, Errno>,
) -> Result<Token, Errno> {
    let alike = |own: &&IpAddr| own.is_ipv4() == to.is_ipv4();
    let count = own.addresses.iter().filter(alike).count();
    let turn = if count > 1 { pool.next_source_turn() % count } else { 0 };
    let in_turn = own.addresses.iter().filter(alike).cycle().skip(turn).take(count);
    let mut outcome = Err(Errno::AFNOSUPPORT);
    for address in in_turn {
        let source = SocketSource { ports: own.ports, ..(*address).into() };
        outcome = connect(Some(source));
        if outcome != Err(Errno::ADDRNOTAVAIL) {
            break;
        }
    }
    outcome
}
