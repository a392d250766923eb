//! TLS of connections to members: sessions and failures.

use weir_config::snapshot::{Address, Member, PoolTls};
use weir_event_loop::EventLoop;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::parts::failure::MemberFailure;
use weir_tls::{Protocol, ServerName, Session, TlsError};

use crate::worker::notices::Notices;
use crate::worker::state::members::Members;

impl Members {
    /// Whether the TLS handshake of a connection follows, or is not complete.
    pub fn has_handshake(&self, io: &mut EventLoop, key: ConnectionKey) -> bool {
        self.all.get(key).is_some_and(|connection| io.sockets.is_secure(connection.token))
    }

    /// The failure of a member whose connection has a TLS error, during the handshake or later. Reports the error.
    pub fn tls_failure(
        &self,
        io: &EventLoop,
        key: ConnectionKey,
        error: &TlsError,
        notices: &mut Notices,
    ) -> Option<MemberFailure> {
        let connection = self.all.get(key)?;
        notices.tell_of_member_tls(&connection.member, error, io.now_ms());
        Some(if connection.connecting { MemberFailure::Connect } else { MemberFailure::Abort })
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
