//! Custom formats of the access log.

use std::sync::Arc;

/// A value of a request in the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LogField {
    /// The end of the request, in ISO 8601.
    Time,
    /// The time in the form of Apache's combined format.
    TimeCombined,
    /// The id of the request.
    RequestId,
    /// The id of the trace.
    TraceId,
    /// The id of the request's span.
    SpanId,
    /// The client's address with its port.
    Client,
    /// The client's IP address without its port.
    ClientIp,
    /// The peer of the connection.
    Peer,
    /// The virtual server.
    VirtualServer,
    /// The virtual server that received the request, if it handed the request over.
    EnteredAt,
    /// The method.
    Method,
    /// The requested authority.
    Host,
    /// The request target.
    Target,
    /// The HTTP version.
    Version,
    /// `Referer`.
    Referer,
    /// `User-Agent`.
    UserAgent,
    /// The authenticated user.
    User,
    /// The server name of a relayed connection.
    ServerName,
    /// The number of datagrams received from a session's client.
    DatagramsReceived,
    /// The number of datagrams sent to the client.
    DatagramsSent,
    /// The pool.
    Pool,
    /// The last member tried.
    Member,
    /// The status of the response.
    Status,
    /// The size of the request body in bytes.
    BytesReceived,
    /// The size of the response in bytes.
    BytesSent,
    /// The size of the response body in bytes.
    BodyBytesSent,
    /// The number of retries on other members.
    Retries,
    /// Whether the member connection belongs to the client.
    Reuse,
    /// Microseconds until the first attempt to reach a member.
    QueueUs,
    /// Microseconds until a connection was open.
    ConnectUs,
    /// Microseconds until the response head.
    FirstByteUs,
    /// Microseconds in total.
    TotalUs,
    /// Marks set by rules.
    Marks,
    /// The rules that were followed.
    Rules,
    /// The result of the client's persistence.
    Persistence,
    /// The version of the client's TLS connection.
    TlsVersion,
    /// The cipher suite.
    TlsCipher,
    /// Why the handshake failed, in words.
    TlsError,
    /// The termination reason.
    Termination,
    /// The header field with this index in [`LogFormat::headers`].
    Header(u8),
}

impl LogField {
    /// All fields with a fixed name, by name.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("time", Self::Time),
        ("time_combined", Self::TimeCombined),
        ("request_id", Self::RequestId),
        ("trace_id", Self::TraceId),
        ("span_id", Self::SpanId),
        ("client", Self::Client),
        ("client_ip", Self::ClientIp),
        ("peer", Self::Peer),
        ("virtual_server", Self::VirtualServer),
        ("entered_at", Self::EnteredAt),
        ("method", Self::Method),
        ("host", Self::Host),
        ("target", Self::Target),
        ("version", Self::Version),
        ("referer", Self::Referer),
        ("user_agent", Self::UserAgent),
        ("user", Self::User),
        ("server_name", Self::ServerName),
        ("datagrams_received", Self::DatagramsReceived),
        ("datagrams_sent", Self::DatagramsSent),
        ("pool", Self::Pool),
        ("member", Self::Member),
        ("status", Self::Status),
        ("bytes_received", Self::BytesReceived),
        ("bytes_sent", Self::BytesSent),
        ("body_bytes_sent", Self::BodyBytesSent),
        ("retries", Self::Retries),
        ("reuse", Self::Reuse),
        ("queue_us", Self::QueueUs),
        ("connect_us", Self::ConnectUs),
        ("first_byte_us", Self::FirstByteUs),
        ("total_us", Self::TotalUs),
        ("marks", Self::Marks),
        ("rules", Self::Rules),
        ("persistence", Self::Persistence),
        ("tls_version", Self::TlsVersion),
        ("tls_cipher", Self::TlsCipher),
        ("tls_error", Self::TlsError),
        ("termination", Self::Termination),
    ];
}

/// A custom format of access log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// The parts of a line.
    pub line: LogLine,
    /// The names of the shown header fields, in lower case.
    pub headers: Vec<Box<str>>,
}

/// The parts of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    /// A JSON object with these fields.
    Json(Vec<LogField>),
    /// Text from these pieces.
    Text(Vec<LogPiece>),
}

/// A piece of a text line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPiece {
    /// A literal text.
    Literal(Box<[u8]>),
    /// A value of the request.
    Field {
        /// The field.
        field: LogField,
        /// Whether spaces in the value stay unescaped, because they cannot be read as the end of the value.
        keeps_spaces: bool,
    },
}

impl LogFormat {
    /// Whether lines contain this field.
    pub fn shows(&self, field: LogField) -> bool {
        match &self.line {
            LogLine::Json(fields) => fields.contains(&field),
            LogLine::Text(pieces) => {
                let is_it = |piece: &LogPiece| matches!(piece, LogPiece::Field { field: it, .. } if *it == field);
                pieces.iter().any(is_it)
            }
        }
    }
}

/// The custom format of lines, if the file has one.
pub type GivenFormat = Option<Arc<LogFormat>>;
