//! TLS of connections to members: sessions and failures.

use std::rc::Rc;

use weir_config::snapshot::{Address, Member, PoolTls};
use weir_event_loop::EventLoop;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::parts::failure::MemberFailure;
use weir_tls::{Protocol, ServerName, Session, TlsError};

use crate::worker::router::Router;

impl Router {
    /// Handles a TLS error on a member connection, during the handshake or later.
    pub fn member_insecure(&mut self, io: &mut EventLoop, key: ConnectionKey, error: &TlsError) {
        let Some(connection) = self.world.members.all.get(key) else { return };
        let is_connecting = connection.connecting;
        let member = Rc::clone(&connection.member);
        self.world.notices.tell_of_member_tls(&member, error, io.now_ms());
        let reason = if is_connecting { MemberFailure::Connect } else { MemberFailure::Abort };
        self.connection_lost(io, key, reason);
    }
}

/// Creates a TLS session to a member. The server name is the pool's setting or the member's host name in the configuration;
/// without both, it is the address. With `is_http2`, HTTP/2 is offered and required.
pub fn session(tls: &PoolTls, member: &Member, is_http2: bool) -> Result<Session, TlsError> {
    let name = match (&tls.server_name, &member.name, &member.address) {
        (Some(name), _, _) | (None, Some(name), _) => ServerName::try_from(name.to_string()).ok(),
        (None, None, Address::Socket(address) | Address::Udp(address)) => {
            Some(ServerName::from(address.ip()))
        }
        // Without a server name, verification for a unix socket is off by configuration, so any name is possible.
        (None, None, Address::Unix(_)) => ServerName::try_from("localhost").ok(),
    };
    let name = name.ok_or(TlsError::Internal("its name is not a valid server name"))?;
    let session = Session::client(&tls.config, name)?;
    Ok(if is_http2 { session.requiring(Protocol::Http2) } else { session })
}
