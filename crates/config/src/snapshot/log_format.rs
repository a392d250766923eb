//! A form of access log lines that the file gives.

use std::sync::Arc;

/// Something that a line of the access log can say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LogField {
    /// When the request ended, in ISO 8601.
    Time,
    /// The time in the form of Apache's combined format.
    TimeCombined,
    /// The request id.
    RequestId,
    /// The client, with its port.
    Client,
    /// The client's IP address without its port.
    ClientIp,
    /// The other end of the connection.
    Peer,
    /// Virtual server.
    VirtualServer,
    /// That which a request entered, if another has decided about it.
    EnteredAt,
    /// Method.
    Method,
    /// The requested authority.
    Host,
    /// Request target.
    Target,
    /// Version of HTTP.
    Version,
    /// `Referer`.
    Referer,
    /// `User-Agent`.
    UserAgent,
    /// The authenticated user.
    User,
    /// The server name of a relayed connection.
    ServerName,
    /// Datagrams of a session's client.
    DatagramsReceived,
    /// The number of datagrams sent to the client.
    DatagramsSent,
    /// Pool.
    Pool,
    /// Member that was tried last.
    Member,
    /// Status sent.
    Status,
    /// Body bytes of the request.
    BytesReceived,
    /// Bytes of the response.
    BytesSent,
    /// Bytes of its body.
    BodyBytesSent,
    /// Further members tried.
    Retries,
    /// Until the first try of a member.
    QueueUs,
    /// Until a connection.
    ConnectUs,
    /// Until the response head.
    FirstByteUs,
    /// All of it.
    TotalUs,
    /// Marks that rules gave.
    Marks,
    /// Rules that were followed.
    Rules,
    /// The result of the client's persistence.
    Persistence,
    /// Version of the client's TLS.
    TlsVersion,
    /// The cipher suite.
    TlsCipher,
    /// How it ended.
    Termination,
    /// The header field at this place of [`LogFormat::headers`].
    Header(u8),
}

impl LogField {
    /// All that have a name of their own, by it.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("time", Self::Time),
        ("time_combined", Self::TimeCombined),
        ("request_id", Self::RequestId),
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
        ("queue_us", Self::QueueUs),
        ("connect_us", Self::ConnectUs),
        ("first_byte_us", Self::FirstByteUs),
        ("total_us", Self::TotalUs),
        ("marks", Self::Marks),
        ("rules", Self::Rules),
        ("persistence", Self::Persistence),
        ("tls_version", Self::TlsVersion),
        ("tls_cipher", Self::TlsCipher),
        ("termination", Self::Termination),
    ];
}

/// A form of access log lines that the file gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// The parts of a line.
    pub line: LogLine,
    /// The names of the header fields that it shows, in lower case.
    pub headers: Vec<Box<str>>,
}

/// The parts of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    /// A JSON object with these.
    Json(Vec<LogField>),
    /// Text.
    Text(Vec<LogPiece>),
}

/// A piece of a line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPiece {
    /// A literal text.
    Literal(Box<[u8]>),
    /// A value of the request.
    Field {
        /// The field.
        field: LogField,
        /// A space in it is written unchanged: it cannot be read as the end of the value.
        keeps_spaces: bool,
    },
}

impl LogFormat {
    /// Whether lines say this.
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

/// The form of lines, where the file gives one.
pub type GivenFormat = Option<Arc<LogFormat>>;
