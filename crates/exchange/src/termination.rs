//! How transactions end.

/// How a transaction ended; the words are part of the log's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// The response was handed over whole.
    Complete,
    /// The client went away.
    ClientAbort,
    /// The client's body made no progress, or it did not take the response.
    ClientTimeout,
    /// The client's TLS handshake came to nothing.
    TlsHandshake,
    /// The client's head was not complete in time.
    HeaderTimeout,
    /// The client sent something malformed.
    ClientMalformed,
    /// The client's head or body was above a limit.
    ClientLimit,
    /// Its path is one that servers read differently, and the settings refuse such.
    PathRefused,
    /// The client asked for a name that the connection's TLS handshake was not for.
    Misdirected,
    /// It came before its client's handshake was done, and must not be done twice.
    TooEarly,
    /// The client exceeded a flood limit (HTTP/2).
    ClientFlood,
    /// No member could take the request.
    NoMember,
    /// No connection to a member.
    MemberConnect,
    /// The member did not answer in time.
    MemberTimeout,
    /// The member's connection ended or broke before its response was complete.
    MemberAbort,
    /// The member sent something malformed.
    MemberMalformed,
    /// The virtual server had no connection left.
    ConnectionLimit,
    /// Its wait in the queue timed out.
    QueueTimeout,
    /// It was above a limit on its rate.
    RateLimit,
    /// It verified a challenge of a certificate authority, and was answered.
    Challenge,
    /// A policy answered it, or ended its connection.
    Policy,
    /// A policy made something of it that cannot be sent.
    PolicyFailed,
    /// The web application firewall answered it, or ended its connection.
    Waf,
    /// Its response could not be compressed to the end.
    EncodingFailed,
    /// The tunnel was idle for too long.
    TunnelTimeout,
    /// The relayed connection was idle for too long.
    IdleTimeout,
    /// The required first data of a connection did not arrive in time.
    HelloTimeout,
    /// Its server name leads to no pool.
    UnknownServerName,
    /// The process stopped.
    Stopped,
}

impl Termination {
    /// Each of them, in the order of the documents.
    pub const ALL: [Self; 29] = [
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
        Self::Stopped,
    ];

    /// Its name in the log.
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
            Self::Stopped => "stopped",
        }
    }
}
