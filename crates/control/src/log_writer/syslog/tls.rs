//! A TLS connection to a syslog server (RFC 5425).

use std::io::{self, ErrorKind, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, Error as TlsError, StreamOwned};
use weir_config::snapshot::SyslogTls;
use weir_tls::explain;

/// Maximum number of reads of unrequested data per check. Session tickets need one. A server that never stops sending must
/// not block the log.
const READS_MAX: usize = 64;

/// A TLS connection.
pub(super) struct SyslogTlsConnection(StreamOwned<ClientConnection, TcpStream>);

impl SyslogTlsConnection {
    /// Performs the TLS handshake within `timeout`.
    pub fn open(stream: TcpStream, settings: &SyslogTls, timeout: Duration) -> io::Result<Self> {
        let name = ServerName::try_from(settings.name.to_string())
            .map_err(|_| io::Error::other(format!("{} is not a host name", settings.name)))?;
        let config = Arc::clone(&settings.tls.config);
        let mut connection = ClientConnection::new(config, name).map_err(told)?;
        let timeouts = (stream.read_timeout()?, stream.write_timeout()?);
        shake_hands(&mut connection, &stream, Instant::now() + timeout).map_err(in_words)?;
        stream.set_read_timeout(timeouts.0)?;
        stream.set_write_timeout(timeouts.1)?;
        Ok(Self(StreamOwned::new(connection, stream)))
    }

    /// Sends messages.
    pub fn write_all(&mut self, messages: &[u8]) -> io::Result<()> {
        self.0.write_all(messages).map_err(in_words)?;
        self.0.flush().map_err(in_words)
    }

    /// Whether the server has closed the connection: then writes would be lost without an error. Other data of the server,
    /// such as session tickets, is processed.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0; 1];
        for _ in 0..READS_MAX {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            match rustix::net::recv(&self.0.sock, &mut byte, flags) {
                Err(Errno::AGAIN) => return false,
                Err(_) | Ok((_, 0)) => return true,
                Ok(_) => {}
            }
            // Data is available, so this read does not block.
            let read = self.0.conn.read_tls(&mut self.0.sock);
            let state = read.map(|_| self.0.conn.process_new_packets());
            if !matches!(state, Ok(Ok(state)) if !state.peer_has_closed() && state.plaintext_bytes_to_read() == 0)
            {
                return true;
            }
        }
        true
    }
}

impl Drop for SyslogTlsConnection {
    fn drop(&mut self) {
        // weir does not wait for a server that accepts no data.
        if self.0.sock.set_nonblocking(true).is_err() {
            return;
        }
        self.0.conn.send_close_notify();
        // If the server is unreachable, close_notify is lost, which does no harm.
        let _ = self.0.conn.write_tls(&mut self.0.sock);
    }
}

/// Performs the handshake until `deadline`. The timeout of each step is the remaining time, so a server that sends byte by
/// byte cannot extend it.
fn shake_hands(
    connection: &mut ClientConnection,
    mut stream: &TcpStream,
    deadline: Instant,
) -> io::Result<()> {
    while connection.is_handshaking() || connection.wants_write() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let step = if connection.wants_write() {
            stream.set_write_timeout(Some(left))?;
            connection.write_tls(&mut stream)
        } else {
            stream.set_read_timeout(Some(left))?;
            connection.read_tls(&mut stream)
        };
        match step {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if let Err(error) = connection.process_new_packets() {
            // The server is sent the alert, but weir does not wait until it is accepted.
            if stream.set_nonblocking(true).is_ok() {
                let _ = connection.write_tls(&mut stream);
            }
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
    }
    Ok(())
}

fn told(error: TlsError) -> io::Error {
    io::Error::other(explain(&error))
}

/// The error as text. TLS errors have weir's explanation.
fn in_words(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(tls) => io::Error::other(explain(tls)),
        None if error.kind() == ErrorKind::WouldBlock => {
            io::Error::new(ErrorKind::TimedOut, "the server did not answer in time")
        }
        None => error,
    }
}
