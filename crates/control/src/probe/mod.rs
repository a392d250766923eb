//! One probe: connect to a member, ask, judge the answer. No state; [`crate::monitors`] keeps that.

mod answer;
mod dns;
mod grpc;
mod http;
mod script;
mod tcp;
mod tls;
mod udp;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::Instant;
use weir_config::snapshot::{Address, Monitor, MonitorKind, ProbeTls, ProxyVersion, Source};
use weir_core::monitor::Outcome;
use weir_event_loop::sockets;
use weir_http::proxy_protocol::{ProxyHeader, write_v1, write_v2};

pub use tls::TlsClients;
use weir_dataplane::error_text::io_error_text;

/// Bytes of an answer that a monitor looks at.
pub const BODY_SIZE_MAX: usize = 64 * 1024;

/// Where and what one monitor asks, worked out once.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The member's address, with the monitor's port if it has one.
    pub address: Address,
    /// Local address to connect from.
    pub source: Option<sockets::Source>,
    /// The pool's name and the member as it is written, for scripts.
    pub subject: Subject,
    /// The name for the Host field and for TLS, without port.
    pub host: Arc<str>,
    /// What the member expects before anything else, where it is asked at its own port.
    pub proxy_protocol: Option<ProxyVersion>,
    /// What is asked and when.
    pub monitor: Monitor,
}

/// What a probe talks over.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection to a member, with or without TLS.
type Connection = Box<dyn Stream>;

/// Whose health is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The pool.
    pub pool: Arc<str>,
    /// The member, as logs and metrics call it.
    pub member: Arc<str>,
}

/// Why a probe did not pass.
#[derive(Debug)]
pub enum Failure {
    /// No connection.
    Connect(io::Error),
    /// The time was over in this step.
    Timeout(Step, Duration),
    /// TLS could not be set up.
    Tls(String),
    /// The member closed or reset the connection before the answer was complete.
    Closed(Step),
    /// The answer is not what the protocol allows.
    Malformed(String),
    /// A status that is not expected.
    Status(u16),
    /// The body does not have what is expected.
    Body,
    /// What came does not have what is expected.
    Answer,
    /// The health service says something else than SERVING.
    Serving(&'static str),
    /// The RPC failed: its status and message.
    Rpc(String),
    /// The script ended otherwise than with 0, or could not be started.
    Script(String),
    /// The answer of a DNS server is not the expected one.
    Dns(String),
    /// This host could not even ask: says nothing about the member.
    Local(io::Error),
}

/// What a probe is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Opening the connection.
    Connecting,
    /// The TLS handshake.
    Handshaking,
    /// Waiting for the response head.
    Waiting,
    /// Reading the response body.
    Reading,
    /// Waiting for what is expected on a plain connection.
    Listening,
    /// Waiting for the end of a script.
    Running,
}

/// The end of a probe's time.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    /// What the step results in, if that comes in time.
    async fn within<F: Future>(&self, step: Step, work: F) -> Result<F::Output, Failure> {
        tokio::time::timeout_at(self.at, work).await.map_err(|_| Failure::Timeout(step, self.limit))
    }
}

impl Failure {
    /// Whether it says something about the member; a lack of descriptors or ports here does not.
    pub fn is_conclusive(&self) -> bool {
        !matches!(self, Self::Local(_))
    }

    fn connecting(error: io::Error) -> Self {
        use rustix::io::Errno;
        let local = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
        match error.raw_os_error() {
            Some(code) if local.iter().any(|errno| errno.raw_os_error() == code) => {
                Self::Local(error)
            }
            _ => Self::Connect(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => formatter.write_str(&io_error_text(error)),
            Self::Timeout(step, limit) => write!(formatter, "no answer in {limit:?} ({step})"),
            Self::Tls(reason) => write!(formatter, "TLS: {reason}"),
            Self::Closed(step) => write!(formatter, "connection closed ({step})"),
            Self::Malformed(reason) => write!(formatter, "malformed response: {reason}"),
            Self::Status(status) => write!(formatter, "status {status}"),
            Self::Body => formatter.write_str("the body is not as expected"),
            Self::Answer => formatter.write_str("the answer is not as expected"),
            Self::Serving(status) => write!(formatter, "the health service says {status}"),
            Self::Rpc(reason) => write!(formatter, "the health service failed: {reason}"),
            Self::Dns(reason) => write!(formatter, "DNS: {reason}"),
            Self::Script(reason) => formatter.write_str(reason),
            Self::Local(error) => write!(formatter, "cannot probe: {}", io_error_text(error)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connecting => "connecting",
            Self::Handshaking => "TLS handshake",
            Self::Waiting => "waiting for the response",
            Self::Reading => "reading the body",
            Self::Listening => "waiting for the expected answer",
            Self::Running => "running the script",
        })
    }
}

impl Probe {
    /// The probe of a monitor for the member at `address`, which the file called `name`.
    pub fn new(
        address: &Address,
        name: Option<&Arc<str>>,
        source: &Source,
        subject: Subject,
        proxy_protocol: Option<ProxyVersion>,
        monitor: &Monitor,
    ) -> Self {
        let member = address;
        let address = match (address, monitor.port) {
            (Address::Socket(socket), Some(port)) => {
                Address::Socket(SocketAddr::new(socket.ip(), port))
            }
            _ => address.clone(),
        };
        let host = match (name, &address) {
            (Some(name), _) => Arc::clone(name),
            (None, Address::Socket(socket) | Address::Udp(socket)) => {
                socket.ip().to_string().into()
            }
            (None, Address::Unix(_)) => "localhost".into(),
        };
        let source = source_of(source, &address);
        // Another port is another service, which may know nothing of it.
        let proxy_protocol = proxy_protocol.filter(|_| address == *member);
        Self { address, source, subject, host, proxy_protocol, monitor: monitor.clone() }
    }

    /// What this monitor is called: its type in the file.
    pub fn kind_name(&self) -> &'static str {
        match &self.monitor.kind {
            MonitorKind::Tcp(_) => "tcp",
            MonitorKind::Http(http) if http.tls.is_some() => "https",
            MonitorKind::Http(_) => "http",
            MonitorKind::Grpc(grpc) if grpc.tls.is_some() => "grpcs",
            MonitorKind::Grpc(_) => "grpc",
            MonitorKind::Script(_) => "script",
            MonitorKind::Udp(_) => "udp",
            MonitorKind::Dns(_) => "dns",
        }
    }

    /// Probes once, within the monitor's timeout: passed, or asked to drain.
    pub async fn run(&self, tls: &TlsClients) -> Result<Outcome, Failure> {
        /// What a server over TLS must agree to speak for gRPC.
        const HTTP_2: &[&[u8]] = &[b"h2"];
        let deadline = Deadline::after(Duration::from_millis(self.monitor.schedule.timeout_ms));
        match &self.monitor.kind {
            MonitorKind::Script(script) => {
                script::run(script, &self.subject, &self.address, deadline).await
            }
            MonitorKind::Udp(udp) => udp::ask(&self.way()?, udp, deadline).await,
            MonitorKind::Dns(dns) => dns::ask(&self.way()?, dns, deadline).await,
            MonitorKind::Tcp(tcp) => {
                let stream = self.connect(deadline).await?;
                tcp::ask(stream, tcp, deadline).await
            }
            MonitorKind::Http(http) => {
                let named = http.host.as_deref();
                let stream = self.connect(deadline).await?;
                let stream = self.encrypt(stream, (http.tls, named, &[]), tls, deadline).await?;
                http::ask(stream, http, &self.host_field(named, http.tls), deadline).await
            }
            MonitorKind::Grpc(grpc) => {
                let named = grpc.host.as_deref();
                let stream = self.connect(deadline).await?;
                let stream = self.encrypt(stream, (grpc.tls, named, HTTP_2), tls, deadline).await?;
                grpc::ask(stream, grpc, &self.host_field(named, grpc.tls), deadline).await
            }
        }
    }

    /// How datagrams are sent.
    fn way(&self) -> Result<udp::Way, Failure> {
        let address = self.address.socket();
        let address = address
            .ok_or_else(|| Failure::Local(io::Error::other("a unix socket takes no datagrams")))?;
        Ok(udp::Way { address, source: self.source, proxy_protocol: self.proxy_protocol })
    }

    async fn connect(&self, deadline: Deadline) -> Result<Connection, Failure> {
        let connected: io::Result<Connection> = match &self.address {
            Address::Socket(address) | Address::Udp(address) => {
                let connect = connect_tcp(*address, self.source);
                let stream = deadline.within(Step::Connecting, connect).await?;
                stream.map(|stream| Box::new(stream) as Connection)
            }
            Address::Unix(path) => {
                let stream = deadline.within(Step::Connecting, UnixStream::connect(path)).await?;
                stream.map(|stream| Box::new(stream) as Connection)
            }
        };
        let mut stream = connected.map_err(Failure::connecting)?;
        if let Some(version) = self.proxy_protocol {
            let mut header = Vec::new();
            match version {
                ProxyVersion::V1 => write_v1(&ProxyHeader::Unknown, &mut header),
                ProxyVersion::V2 => write_v2(&ProxyHeader::Local, false, &mut header)
                    .map_err(|error| Failure::Local(io::Error::other(error.to_string())))?,
            }
            let sent = deadline.within(Step::Connecting, stream.write_all(&header)).await?;
            sent.map_err(|_| Failure::Closed(Step::Connecting))?;
        }
        Ok(stream)
    }

    /// The same connection with TLS on it, if there shall be; then with a server of the `named` name, or of
    /// the member's, that agrees to one of the protocols.
    async fn encrypt(
        &self,
        stream: Connection,
        (settings, named, protocols): (Option<ProbeTls>, Option<&str>, &[&[u8]]),
        tls: &TlsClients,
        deadline: Deadline,
    ) -> Result<Connection, Failure> {
        let Some(settings) = settings else { return Ok(stream) };
        let name = named.unwrap_or(&self.host);
        let handshake = tls.connect(stream, name, settings.verify, protocols);
        let stream = deadline.within(Step::Handshaking, handshake).await??;
        Ok(Box::new(stream))
    }

    /// The Host field: as configured, or the member's name with the port unless that is the default.
    fn host_field(&self, configured: Option<&str>, tls: Option<ProbeTls>) -> String {
        let default_port = if tls.is_some() { 443 } else { 80 };
        if let Some(host) = configured {
            return host.to_owned();
        }
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.to_string()
        };
        match &self.address {
            Address::Socket(socket) if socket.port() != default_port => {
                format!("{host}:{}", socket.port())
            }
            _ => host,
        }
    }
}

/// Where probes of an address come from: the first address that can reach it.
fn source_of(source: &Source, to: &Address) -> Option<sockets::Source> {
    let (Some(own), Address::Socket(to)) = (source.addresses(), to) else { return None };
    let first = own.addresses.iter().find(|own| own.is_ipv4() == to.is_ipv4())?;
    Some(sockets::Source { ports: own.ports, ..(*first).into() })
}

async fn connect_tcp(
    address: SocketAddr,
    source: Option<sockets::Source>,
) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source {
        sockets::bind_source(&socket, source)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
