//! TLS of one client connection: bytes in, bytes out, no socket.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use super::plan::TlsPlan;

/// Sessions that a thread remembers.
const SESSIONS_MAX: usize = 4_096;

/// The configuration of one thread, with a session cache of its own.
pub fn thread_config(plan: &TlsPlan) -> Arc<ClientConfig> {
    let mut config = (*plan.config).clone();
    config.resumption = if plan.resume {
        Resumption::in_memory_sessions(SESSIONS_MAX)
    } else {
        Resumption::disabled()
    };
    Arc::new(config)
}

/// One connection's state.
#[derive(Debug)]
pub struct TlsClient {
    connection: ClientConnection,
    peer_has_finished: bool,
}

impl TlsClient {
    /// A connection that has said nothing yet; [`Self::take_output`] has its ClientHello.
    pub fn new(config: &Arc<ClientConfig>, plan: &TlsPlan) -> Result<Self, rustls::Error> {
        let mut connection = ClientConnection::new(config.clone(), plan.server_name.clone())?;
        connection.set_buffer_limit(None);
        Ok(Self { connection, peer_has_finished: false })
    }

    /// Whether requests may be sent.
    pub fn is_open(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Takes what the peer sent; appends what it says to `plain`.
    pub fn receive(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), rustls::Error> {
        while !bytes.is_empty() {
            // Reading from a slice does not fail; that the buffer is full is told by 0.
            let taken = self.connection.read_tls(&mut bytes).unwrap_or(0);
            let state = self.connection.process_new_packets()?;
            self.peer_has_finished |= state.peer_has_closed();
            let at = plain.len();
            plain.resize(at + state.plaintext_bytes_to_read(), 0);
            if self.connection.reader().read_exact(&mut plain[at..]).is_err() {
                // It gives as much as it announced.
                plain.truncate(at);
            }
            if taken == 0 && state.plaintext_bytes_to_read() == 0 {
                return Err(rustls::Error::General("the record buffer is full".to_owned()));
            }
        }
        Ok(())
    }

    /// Whether the peer has announced that it will send nothing more.
    pub fn peer_has_finished(&self) -> bool {
        self.peer_has_finished
    }

    /// Encrypts `plain`; [`Self::take_output`] has it then.
    pub fn send(&mut self, plain: &[u8]) {
        // Writing into the unlimited buffer of the connection does not fail.
        let _ = self.connection.writer().write_all(plain);
    }

    /// Announces that nothing more will be sent.
    pub fn finish(&mut self) {
        self.connection.send_close_notify();
    }

    /// Appends what is to go over the wire.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing into a vector does not fail.
            if self.connection.write_tls(out).unwrap_or(0) == 0 {
                return;
            }
        }
    }
}
