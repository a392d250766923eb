//! The reasons for the end of a transaction.

/// The reason for the end of a transaction. The words are part of the log format, which stays compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// The complete response was handed to the socket.
    Complete,
    /// The client closed or reset its connection or stream.
    ClientAbort,
    /// The client's body made no progress, or the client did not take the response.
    ClientTimeout,
    /// The client's TLS handshake failed.
    TlsHandshake,
    /// The client's head was not complete in time.
    HeaderTimeout,
    /// The client sent malformed data.
    ClientMalformed,
    /// The client's head or body exceeded a limit.
    ClientLimit,
    /// Servers read the request's path differently, and the settings refuse such paths.
    PathRefused,
    /// The request's host does not belong to the TLS handshake of the connection.
    Misdirected,
    /// The request arrived before the end of the handshake, and must not be repeated.
    TooEarly,
    /// The client exceeded a flood limit (HTTP/2).
    ClientFlood,
    /// No member could serve the request.
    NoMember,
    /// Connecting to a member failed.
    MemberConnect,
    /// The member did not answer in time.
    MemberTimeout,
    /// The member's connection ended or failed before the response was complete.
    MemberAbort,
    /// The member sent malformed data.
    MemberMalformed,
    /// The virtual server's connection limit was reached.
    ConnectionLimit,
    /// The request's time in the queue ran out.
    QueueTimeout,
    /// The request exceeded a rate limit.
    RateLimit,
    /// The request verified a challenge of a certificate authority, and was answered.
    Challenge,
    /// A policy answered the request or ended its connection.
    Policy,
    /// A policy changed the request or the response so that it cannot be sent.
    PolicyFailed,
    /// The web application firewall answered the request or ended its connection.
    Waf,
    /// The compression of the response failed.
    EncodingFailed,
    /// The tunnel was idle for too long.
    TunnelTimeout,
    /// The relayed connection was idle for too long.
    IdleTimeout,
    /// The required first data of a connection did not arrive in time.
    HelloTimeout,
    /// No pool is configured for the client's server name.
    UnknownServerName,
    /// The member went out of service, and the settings reset its connections then.
    MemberDown,
    /// An operator ended the session by a command.
    Operator,
    /// The process stopped.
    Stopped,
}

impl Termination {
    /// Whether a response that ends so stays incomplete because of the member, or of weir itself.
    #[must_use]
    pub fn cuts_response(self) -> bool {
        matches!(
            self,
            Self::MemberAbort | Self::MemberTimeout | Self::MemberMalformed | Self::EncodingFailed
        )
    }

    /// All reasons, in the order of the documentation.
    pub const ALL: [Self; 31] = [
        Self::Complete,
        Self::ClientAbort,
        Self::ClientTimeout,
        Self::TlsHandshake,
        Self::HeaderTimeout,
        Self::ClientMalformed,
        Self::ClientLimit,
        Self::PathRefused,
        Self::Misdirected,
        Self::TooEarly,
        Self::ClientFlood,
        Self::NoMember,
        Self::MemberConnect,
        Self::MemberTimeout,
        Self::MemberAbort,
        Self::MemberMalformed,
        Self::ConnectionLimit,
        Self::QueueTimeout,
        Self::RateLimit,
        Self::Challenge,
        Self::Policy,
        Self::PolicyFailed,
        Self::Waf,
        Self::EncodingFailed,
        Self::TunnelTimeout,
        Self::IdleTimeout,
        Self::HelloTimeout,
        Self::UnknownServerName,
        Self::MemberDown,
        Self::Operator,
        Self::Stopped,
    ];

    /// The name in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientAbort => "client_abort",
            Self::ClientTimeout => "client_timeout",
            Self::TlsHandshake => "tls_handshake",
            Self::HeaderTimeout => "header_timeout",
            Self::ClientMalformed => "client_malformed",
            Self::ClientLimit => "client_limit",
            Self::PathRefused => "path_refused",
            Self::Misdirected => "misdirected",
            Self::TooEarly => "too_early",
            Self::ClientFlood => "client_flood",
            Self::NoMember => "no_member",
            Self::MemberConnect => "member_connect",
            Self::MemberTimeout => "member_timeout",
            Self::MemberAbort => "member_abort",
            Self::MemberMalformed => "member_malformed",
            Self::ConnectionLimit => "connection_limit",
            Self::QueueTimeout => "queue_timeout",
            Self::RateLimit => "rate_limit",
            Self::Challenge => "challenge",
            Self::Policy => "policy",
            Self::PolicyFailed => "policy_failed",
            Self::Waf => "waf",
            Self::EncodingFailed => "encoding_failed",
            Self::TunnelTimeout => "tunnel_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::HelloTimeout => "hello_timeout",
            Self::UnknownServerName => "unknown_server_name",
            Self::MemberDown => "member_down",
            Self::Operator => "operator",
            Self::Stopped => "stopped",
        }
    }
}
