//! The TLS of member connections: a session for each, and what is said when it fails.

use std::rc::Rc;

use weir_config::snapshot::{Address, Member, PoolTls};
use weir_event_loop::EventLoop;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::parts::failure::MemberFailure;
use weir_tls::{Established, ServerName, Session, TlsError};

use crate::worker::Worker;

impl Worker {
    /// The TLS of a member failed, at the handshake or later.
    pub fn member_insecure(&mut self, io: &mut EventLoop, key: ConnectionKey, error: &TlsError) {
        let Some(connection) = self.world.members.get(key) else { return };
        let is_connecting = connection.connecting;
        let member = Rc::clone(&connection.member);
        self.world.notices.tell_of_member_tls(&member, error, io.now_ms());
        let reason = if is_connecting { MemberFailure::Connect } else { MemberFailure::Abort };
        self.connection_lost(io, key, reason);
    }

    /// The handshake with a member is done.
    pub fn member_secured(
        &mut self,
        io: &mut EventLoop,
        key: ConnectionKey,
        established: &Established,
    ) {
        let Some(connection) = self.world.members.get(key) else { return };
        let is_multiplexed = connection.http2.is_some();
        if is_multiplexed && established.alpn.as_deref() != Some(b"h2") {
            let error = TlsError::Internal("it does not agree to HTTP/2 (ALPN)");
            return self.member_insecure(io, key, &error);
        }
        self.member_ready(io, key);
    }
}

/// A session to a member, which has the name that the pool, the file or else its address gives it.
pub fn session(tls: &PoolTls, member: &Member) -> Result<Session, TlsError> {
    let name = match (&tls.server_name, &member.name, &member.address) {
        (Some(name), _, _) | (None, Some(name), _) => ServerName::try_from(name.to_string()).ok(),
        (None, None, Address::Socket(address)) => Some(ServerName::from(address.ip())),
        // Nothing is verified then: the file would have to name it.
        (None, None, Address::Unix(_)) => ServerName::try_from("localhost").ok(),
    };
    let name = name.ok_or(TlsError::Internal("its name is none that TLS can ask for"))?;
    Session::client(&tls.config, name)
}
