//! Sends lines as syslog messages (RFC 5424): as datagrams (RFC 5426), or over a connection with the length before each
//! message (RFC 6587), optionally over TLS (RFC 5425).

mod tls;

use std::io::{self, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use weir_config::snapshot::{Syslog, SyslogServer};
use weir_telemetry::reports::{Log, LogBatch};

use self::tls::SyslogTlsConnection;
use crate::time;

/// Timeout for connecting to a server, and for writing to it.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before the next attempt if a server cannot be reached, or accepts no data. It doubles with each further
/// failure.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// `informational` (RFC 5424 section 6.2.1): normal operation.
const SEVERITY_ACCESS: u8 = 6;
/// `warning`: an administrator should check the finding.
const SEVERITY_WAF: u8 = 4;
/// `notice` (RFC 5424 section 6.2.1): a change of weir's state.
const SEVERITY_AUDIT: u8 = 5;

/// A connection to a server.
enum Connection {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<SyslogTlsConnection>),
}

/// Sends messages to one server.
pub(super) struct Sender {
    settings: Syslog,
    host: String,
    connection: Option<Connection>,
    /// The earliest time of the next attempt after a failure; `None`: the last message was sent.
    not_before: Option<Instant>,
    /// The pause after the next failure.
    retry_after: Duration,
}

/// The result of a batch.
pub(super) struct SyslogResult {
    /// The number of sent lines.
    pub lines: u32,
    /// The reason why other lines were not sent.
    pub error: Option<io::Error>,
}

impl Sender {
    /// Creates the sender. The server may start later: a log that is away must not keep weir from serving.
    pub fn new(settings: &Syslog) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let is_sound = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
        Self {
            settings: settings.clone(),
            host: if is_sound { host } else { "-".into() },
            connection: None,
            not_before: None,
            retry_after: RETRY_AFTER_MIN,
        }
    }

    /// The reason why a unix socket takes no messages now. Looking at other servers could take long.
    pub fn why_away(&self) -> Option<io::Error> {
        match self.settings.server {
            SyslogServer::Unix(_) => Connection::open(&self.settings.server).err(),
            SyslogServer::Udp(_) | SyslogServer::Tcp(_) | SyslogServer::Tls(_) => None,
        }
    }

    /// Sends each line of a batch.
    pub fn send(&mut self, batch: &LogBatch) -> SyslogResult {
        let head = self.head(batch.log);
        let is_stream = matches!(self.settings.server, SyslogServer::Tcp(_) | SyslogServer::Tls(_));
        let messages = messages(&head, &batch.bytes, is_stream);
        let mut sent = SyslogResult { lines: 0, error: None };
        let mut rest = &messages[..];
        let mut is_again = false;
        while let Some((message, lines)) = rest.first() {
            match self.send_one(message) {
                Ok(()) => {
                    sent.lines += lines;
                    rest = &rest[1..];
                    is_again = false;
                    self.not_before = None;
                    self.retry_after = RETRY_AFTER_MIN;
                }
                // The message is too large for the socket. Other messages may be small enough.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                    sent.error = Some(error);
                    rest = &rest[1..];
                }
                // The server may have restarted and lost the connection, so the message is sent once more.
                Err(_) if !is_again && self.not_before.is_none() => {
                    self.connection = None;
                    is_again = true;
                }
                Err(error) => {
                    self.connection = None;
                    // The server accepts connections, but no data.
                    if is_stream && !self.is_resting() {
                        self.rest();
                    }
                    sent.error = Some(error);
                    break;
                }
            }
        }
        sent
    }

    fn send_one(&mut self, message: &[u8]) -> io::Result<()> {
        if self.connection.as_mut().is_none_or(Connection::is_closed) {
            self.connection = Some(self.connect()?);
        }
        match &mut self.connection {
            Some(Connection::Unix(socket)) => socket.send(message).map(drop),
            Some(Connection::Udp(socket)) => socket.send(message).map(drop),
            Some(Connection::Tcp(stream)) => stream.write_all(message),
            Some(Connection::Tls(stream)) => stream.write_all(message),
            None => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn connect(&mut self) -> io::Result<Connection> {
        if self.is_resting() {
            return Err(io::Error::other(
                "the server could not be reached, and is tried again later",
            ));
        }
        let opened = Connection::open(&self.settings.server);
        if opened.is_err() {
            self.rest();
        }
        opened
    }

    /// Whether a pause after a failure is in progress.
    fn is_resting(&self) -> bool {
        self.not_before.is_some_and(|time| Instant::now() < time)
    }

    /// Starts a pause, which grows with each failure until the server accepts data.
    fn rest(&mut self) {
        self.not_before = Some(Instant::now() + self.retry_after);
        // Another look at a socket of this host costs nothing.
        let max = match self.settings.server {
            SyslogServer::Unix(_) => RETRY_AFTER_MIN,
            SyslogServer::Udp(_) | SyslogServer::Tcp(_) | SyslogServer::Tls(_) => RETRY_AFTER_MAX,
        };
        self.retry_after = (self.retry_after * 2).min(max);
    }

    /// The header of each message: priority, version, time, host, program, process id, type, no structured data.
    fn head(&self, log: Log) -> String {
        let (severity, kind) = match log {
            Log::Access => (SEVERITY_ACCESS, "access"),
            Log::Waf => (SEVERITY_WAF, "waf"),
            Log::Audit => (SEVERITY_AUDIT, "audit"),
        };
        let priority = u16::from(self.settings.facility) * 8 + u16::from(severity);
        let (time, host, tag) = (time::rfc3339(time::unix_ms()), &self.host, &self.settings.tag);
        let process = std::process::id();
        format!("<{priority}>1 {time} {host} {tag} {process} {kind} - ")
    }
}

/// The messages to send, with their numbers of lines. Each line is a datagram; for a stream, all lines are one message, with
/// a length before each line.
fn messages(head: &str, lines: &[u8], is_stream: bool) -> Vec<(Vec<u8>, u32)> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    if !is_stream {
        return lines.map(|line| ([head.as_bytes(), line].concat(), 1)).collect();
    }
    let (mut all, mut count) = (Vec::new(), 0);
    for line in lines {
        all.extend_from_slice(format!("{} {head}", head.len() + line.len()).as_bytes());
        all.extend_from_slice(line);
        count += 1;
    }
    vec![(all, count)]
}

impl Connection {
    fn open(server: &SyslogServer) -> io::Result<Self> {
        Ok(match server {
            SyslogServer::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(SERVER_TIMEOUT))?;
                Self::Unix(socket)
            }
            SyslogServer::Udp(server) => {
                let found = weir_outgoing::addresses(server)?;
                let address = *found.first().ok_or(ErrorKind::AddrNotAvailable)?;
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                Self::Udp(socket)
            }
            SyslogServer::Tcp(server) => Self::Tcp(connect(server)?),
            SyslogServer::Tls(server) => Self::Tls(Box::new(SyslogTlsConnection::open(
                connect(&server.server)?,
                server,
                SERVER_TIMEOUT,
            )?)),
        })
    }

    /// Whether the server has closed the connection: later writes would be lost without an error.
    fn is_closed(&mut self) -> bool {
        let stream = match self {
            Self::Unix(_) | Self::Udp(_) => return false,
            Self::Tls(stream) => return stream.is_closed(),
            Self::Tcp(stream) => stream,
        };
        let mut byte = [0; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(stream, &mut byte, flags) {
            Ok((_, length)) => length == 0,
            Err(error) => error != Errno::AGAIN,
        }
    }
}

/// Connects to the first address of a server that accepts a connection.
fn connect(server: &str) -> io::Result<TcpStream> {
    let stream = weir_outgoing::connect_blocking(server, SERVER_TIMEOUT)?;
    stream.set_write_timeout(Some(SERVER_TIMEOUT))?;
    stream.set_read_timeout(Some(SERVER_TIMEOUT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
