//! The reasons for failed probes, and the deadline of a probe.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::time::Instant;
use weir_event_loop::error_text::io_error_text;
use weir_outgoing::tls::HandshakeError;

/// The reason why a probe has failed.
#[derive(Debug)]
pub enum Failure {
    /// No connection.
    Connect(io::Error),
    /// The timeout passed during this step. The duration is the timeout.
    Timeout(Step, Duration),
    /// TLS could not be set up.
    Tls(String),
    /// The member closed or reset the connection before the end of the answer.
    Closed(Step),
    /// The answer violates the protocol.
    Malformed(String),
    /// The status is not an expected one.
    Status(u16),
    /// The body does not match the expected contents.
    Body,
    /// The data does not match the expected contents.
    Answer,
    /// The health service reported another status than SERVING.
    Serving(&'static str),
    /// The RPC failed: its status and message.
    Rpc(String),
    /// The script ended with another status than 0, or could not be started.
    Script(String),
    /// The answer of a DNS server is not the expected one.
    Dns(String),
    /// A service does not work: its protocol, and the reason.
    Service(&'static str, String),
    /// This host could not probe. This is not a failure of the member.
    Local(io::Error),
}

/// The current step of a probe.
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
    /// Waiting for the expected data on a connection without HTTP.
    Listening,
    /// Waiting for the end of a script.
    Running,
    /// Logging in.
    LoggingIn,
}

/// The deadline of a probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(super) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    /// The deadline for more of an answer that has begun: half of the whole time from now, and not after this deadline.
    pub(super) fn part(&self) -> Self {
        Self { at: self.at.min(Instant::now() + self.limit / 2), limit: self.limit }
    }

    /// The result of a step, or a timeout.
    pub(super) async fn within<F: Future>(
        &self,
        step: Step,
        work: F,
    ) -> Result<F::Output, Failure> {
        tokio::time::timeout_at(self.at, work).await.map_err(|_| Failure::Timeout(step, self.limit))
    }
}

impl Failure {
    /// Whether the failure is evidence against the member. A lack of descriptors or ports on this host is not.
    pub fn is_conclusive(&self) -> bool {
        !matches!(self, Self::Local(_))
    }

    pub(super) fn connecting(error: io::Error) -> Self {
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

impl From<HandshakeError> for Failure {
    fn from(error: HandshakeError) -> Self {
        Self::Tls(error.0)
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
            Self::Service(protocol, reason) => write!(formatter, "{protocol}: {reason}"),
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
            Self::LoggingIn => "logging in",
        })
    }
}
