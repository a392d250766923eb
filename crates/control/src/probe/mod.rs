//! One probe: connect to a member, ask, judge the answer. No state; [`crate::monitors`] keeps that.

mod http;
mod tls;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::Instant;
use weir_config::snapshot::{Address, Monitor, MonitorKind};

pub use tls::TlsClients;
use weir_dataplane::error_text::io_error_text;

/// Bytes of a response body that a monitor looks at.
pub const BODY_SIZE_MAX: usize = 64 * 1024;

/// Where and what one monitor asks, worked out once.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The member's address, with the monitor's port if it has one.
    pub address: Address,
    /// Local address to connect from.
    pub source: Option<IpAddr>,
    /// The name for the Host field and for TLS, without port.
    pub host: Arc<str>,
    /// What is asked and when.
    pub monitor: Monitor,
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
    /// The answer is not HTTP.
    Malformed(String),
    /// A status that is not expected.
    Status(u16),
    /// The body does not have what is expected.
    Body,
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
        })
    }
}

impl Probe {
    /// The probe of a monitor for the member at `address`, which the file called `name`.
    pub fn new(
        address: &Address,
        name: Option<&Arc<str>>,
        source: Option<IpAddr>,
        monitor: &Monitor,
    ) -> Self {
        let address = match (address, monitor.port) {
            (Address::Socket(socket), Some(port)) => {
                Address::Socket(SocketAddr::new(socket.ip(), port))
            }
            _ => address.clone(),
        };
        let host = match (name, &address) {
            (Some(name), _) => Arc::clone(name),
            (None, Address::Socket(socket)) => socket.ip().to_string().into(),
            (None, Address::Unix(_)) => "localhost".into(),
        };
        Self { address, source, host, monitor: monitor.clone() }
    }

    /// What this monitor is called: `tcp`, `http` or `https`.
    pub fn kind_name(&self) -> &'static str {
        match &self.monitor.kind {
            MonitorKind::Tcp => "tcp",
            MonitorKind::Http(http) if http.tls.is_some() => "https",
            MonitorKind::Http(_) => "http",
        }
    }

    /// Probes once, within the monitor's timeout.
    pub async fn run(&self, tls: &TlsClients) -> Result<(), Failure> {
        let deadline = Deadline::after(Duration::from_millis(self.monitor.schedule.timeout_ms));
        match &self.address {
            Address::Socket(address) => {
                let connected =
                    deadline.within(Step::Connecting, connect_tcp(*address, self.source)).await?;
                self.ask(connected.map_err(Failure::connecting)?, tls, deadline).await
            }
            Address::Unix(path) => {
                let connected =
                    deadline.within(Step::Connecting, UnixStream::connect(path)).await?;
                self.ask(connected.map_err(Failure::connecting)?, tls, deadline).await
            }
        }
    }

    async fn ask<S: http::Stream>(
        &self,
        stream: S,
        tls: &TlsClients,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let MonitorKind::Http(http) = &self.monitor.kind else {
            return Ok(());
        };
        let Some(settings) = http.tls else {
            return http::ask(stream, http, &self.host_field(http, 80), deadline).await;
        };
        let name = http.host.as_deref().unwrap_or(&self.host);
        let handshake = tls.connect(stream, name, settings.verify);
        let stream = deadline.within(Step::Handshaking, handshake).await??;
        http::ask(stream, http, &self.host_field(http, 443), deadline).await
    }

    /// The Host field: as configured, or the member's name with the port unless that is the default.
    fn host_field(&self, http: &weir_config::snapshot::HttpProbe, default_port: u16) -> String {
        if let Some(host) = &http.host {
            return host.to_string();
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

async fn connect_tcp(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
