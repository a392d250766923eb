//! Lines as messages of syslog (RFC 5424): datagrams (RFC 5426), or over a connection with the length of each in front
//! (RFC 6587), within TLS if that is wanted (RFC 5425).

mod tls;

use std::io::{self, ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use weir_config::snapshot::{Syslog, SyslogServer};
use weir_dataplane::reports::{Log, LogBatch};

use self::tls::Encrypted;
use crate::time;

/// A server that does not accept a connection or data within this time is given up.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// A server that could not be reached, or a connection that took nothing, is tried again after this time, then after
/// twice as long, and so on.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// `informational` (RFC 5424 section 6.2.1): requests are everyday matters.
const SEVERITY_ACCESS: u8 = 6;
/// `warning`: someone should look at it.
const SEVERITY_WAF: u8 = 4;
/// A change of weir's state is notable (RFC 5424 section 6.2.1).
const SEVERITY_AUDIT: u8 = 5;

/// A way to a server.
enum Connection {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<Encrypted>),
}

/// Sends to one server.
pub(super) struct Sender {
    settings: Syslog,
    host: String,
    connection: Option<Connection>,
    /// When a server that could not be reached, or took nothing, is tried again, and how long it is left alone after
    /// that.
    not_before: Option<Instant>,
    retry_after: Duration,
}

/// The result of a batch.
pub(super) struct Sent {
    /// Lines that were sent.
    pub lines: u32,
    /// Why others were not.
    pub error: Option<io::Error>,
}

impl Sender {
    /// A unix socket must be there; a server in the network may come later.
    pub fn open(settings: &Syslog) -> io::Result<Self> {
        let connection = match settings.server {
            SyslogServer::Unix(_) => Some(Connection::open(&settings.server)?),
            SyslogServer::Udp(_) | SyslogServer::Tcp(_) | SyslogServer::Tls(_) => None,
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let is_sound = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
        Ok(Self {
            settings: settings.clone(),
            host: if is_sound { host } else { "-".into() },
            connection,
            not_before: None,
            retry_after: RETRY_AFTER_MIN,
        })
    }

    /// Sends each line of a batch.
    pub fn send(&mut self, batch: &LogBatch) -> Sent {
        let head = self.head(batch.log);
        let is_stream = matches!(self.settings.server, SyslogServer::Tcp(_) | SyslogServer::Tls(_));
        let messages = messages(&head, &batch.bytes, is_stream);
        let mut sent = Sent { lines: 0, error: None };
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
                // No way is wide enough for it; others may pass.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                    sent.error = Some(error);
                    rest = &rest[1..];
                }
                // The server may have restarted and lost the connection.
                Err(_) if !is_again && self.not_before.is_none() => {
                    self.connection = None;
                    is_again = true;
                }
                Err(error) => {
                    self.connection = None;
                    // The server accepts connections but no data.
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

    /// Whether the server is left alone for now.
    fn is_resting(&self) -> bool {
        self.not_before.is_some_and(|time| Instant::now() < time)
    }

    /// Leaves the server alone, for longer each time until it takes something.
    fn rest(&mut self) {
        self.not_before = Some(Instant::now() + self.retry_after);
        self.retry_after = (self.retry_after * 2).min(RETRY_AFTER_MAX);
    }

    /// The text in front of each line: priority, version, time, host, program, process, kind, no structured data.
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

/// The messages to send, with their numbers of lines: each line as a datagram, or all with their lengths in front.
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
                let address =
                    server.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                Self::Udp(socket)
            }
            SyslogServer::Tcp(server) => Self::Tcp(connect(server)?),
            SyslogServer::Tls(server) => Self::Tls(Box::new(Encrypted::open(
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

/// A connection to the first address of a server that takes one.
fn connect(server: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, SERVER_TIMEOUT) {
            Ok(stream) => {
                stream.set_write_timeout(Some(SERVER_TIMEOUT))?;
                stream.set_read_timeout(Some(SERVER_TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests;
