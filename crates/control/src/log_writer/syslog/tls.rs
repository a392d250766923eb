//! A connection to a syslog server within TLS (RFC 5425).

use std::io::{self, ErrorKind, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, Error as TlsError, StreamOwned};
use weir_config::snapshot::SyslogTls;
use weir_tls::explain;

/// A connection within TLS.
pub(super) struct Encrypted(StreamOwned<ClientConnection, TcpStream>);

impl Encrypted {
    /// Makes the handshake.
    pub fn open(stream: TcpStream, settings: &SyslogTls) -> io::Result<Self> {
        let name = ServerName::try_from(settings.name.to_string())
            .map_err(|_| io::Error::other(format!("{} is not a host name", settings.name)))?;
        let config = Arc::clone(&settings.tls.config);
        let connection = ClientConnection::new(config, name).map_err(told)?;
        let mut encrypted = StreamOwned::new(connection, stream);
        while encrypted.conn.is_handshaking() {
            encrypted.conn.complete_io(&mut encrypted.sock).map_err(in_words)?;
        }
        Ok(Self(encrypted))
    }

    /// Sends messages.
    pub fn write_all(&mut self, messages: &[u8]) -> io::Result<()> {
        self.0.write_all(messages).map_err(in_words)?;
        self.0.flush().map_err(in_words)
    }

    /// Whether the server has closed it: what is written then is lost without an error. What else the server
    /// sends, tickets for later sessions, is taken in.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0; 1];
        loop {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            match rustix::net::recv(&self.0.sock, &mut byte, flags) {
                Err(Errno::AGAIN) => return false,
                Err(_) | Ok((_, 0)) => return true,
                Ok(_) => {}
            }
            // There is something: this does not wait.
            let read = self.0.conn.read_tls(&mut self.0.sock);
            let state = read.map(|_| self.0.conn.process_new_packets());
            if !matches!(state, Ok(Ok(state)) if !state.peer_has_closed() && state.plaintext_bytes_to_read() == 0)
            {
                return true;
            }
        }
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        // The server may be gone: there is nothing to save then.
        let _ = self.0.conn.write_tls(&mut self.0.sock);
    }
}

fn told(error: TlsError) -> io::Error {
    io::Error::other(explain(&error))
}

/// What went wrong, in the words of TLS where it was that.
fn in_words(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(tls) => io::Error::other(explain(tls)),
        None if error.kind() == ErrorKind::WouldBlock => {
            io::Error::new(ErrorKind::TimedOut, "the server did not answer in time")
        }
        None => error,
    }
}
