//! The names in expressions: one table for the compiler, its suggestions and the test of the documentation.

use super::facts::{AddressFact, CertificateName, NumberFact, PoolFact, TextFact};
use super::time::TimePart;

/// Groups: names before a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Request,
    Client,
    Server,
    Tls,
    ClientCertificate,
    Response,
    Datagram,
    Sip,
    Radius,
    Quic,
    Time,
    /// The selected member of a request.
    Member,
}

/// The meaning of a name in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Text(TextFact),
    Number(NumberFact),
    Address(AddressFact),
    Host,
    Target,
    User,
    QuicConnectionId,
    Time(TimePart),
    Date,
    Clock,
    /// Alternative names of the client's certificate.
    Names(CertificateName),
    Keyed(KeyedGroup),
    Group(Group),
}

/// A group that is indexed by a name or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyedGroup {
    Query,
    Header,
    Cookie,
    ResponseHeader,
    ResponseCookie,
    SipHeader,
    RadiusAttribute,
}

impl KeyedGroup {
    /// The name as written in expressions.
    pub fn path(self) -> &'static str {
        match self {
            Self::Query => "request.query",
            Self::Header => "request.headers",
            Self::Cookie => "request.cookies",
            Self::ResponseHeader => "response.headers",
            Self::ResponseCookie => "response.cookies",
            Self::SipHeader => "sip.headers",
            Self::RadiusAttribute => "radius.attributes",
        }
    }

    /// The kind of key in the brackets, as text for messages.
    pub fn key(self) -> &'static str {
        match self {
            Self::RadiusAttribute => "a number in brackets",
            _ => "a name in brackets",
        }
    }

    /// An example of a key in the brackets.
    pub fn sample_key(self) -> &'static str {
        match self {
            Self::RadiusAttribute => "44",
            _ => "'…'",
        }
    }
}

/// The groups at the start of an expression.
pub(super) const ROOTS: [Group; 11] = [
    Group::Request,
    Group::Client,
    Group::Server,
    Group::Tls,
    Group::Response,
    Group::Datagram,
    Group::Sip,
    Group::Radius,
    Group::Quic,
    Group::Time,
    Group::Member,
];

/// The name of data sets: `data['name']`.
pub(super) const DATA: &str = "data";

/// The name of pools: `pools['name']`.
pub(super) const POOLS: &str = "pools";

/// Values of a pool: `pools['name'].up_members`.
pub(super) const POOL_FACTS: [(&str, PoolFact); 2] =
    [("up_members", PoolFact::UpMembers), ("connections", PoolFact::Connections)];
/// The name of tokens: `jwt['name']`.
pub(super) const TOKENS: &str = "jwt";

/// Values of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenField {
    Valid,
    Claims,
}

pub(super) const TOKEN_FIELDS: [(&str, TokenField); 2] =
    [("valid", TokenField::Valid), ("claims", TokenField::Claims)];

impl Group {
    /// The name as written in expressions.
    pub fn path(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Client => "client",
            Self::Server => "server",
            Self::Tls => "tls",
            Self::ClientCertificate => "tls.client_certificate",
            Self::Response => "response",
            Self::Datagram => "datagram",
            Self::Sip => "sip",
            Self::Radius => "radius",
            Self::Quic => "quic",
            Self::Time => "time",
            Self::Member => "member",
        }
    }

    pub fn members(self) -> &'static [(&'static str, Member)] {
        match self {
            Self::Request => &[
                ("method", Member::Text(TextFact::Method)),
                ("path", Member::Text(TextFact::Path)),
                ("raw_path", Member::Text(TextFact::RawPath)),
                ("raw_query", Member::Text(TextFact::RawQuery)),
                ("target", Member::Target),
                ("query", Member::Keyed(KeyedGroup::Query)),
                ("host", Member::Host),
                ("headers", Member::Keyed(KeyedGroup::Header)),
                ("cookies", Member::Keyed(KeyedGroup::Cookie)),
                ("scheme", Member::Text(TextFact::Scheme)),
                ("version", Member::Text(TextFact::Version)),
                ("user", Member::User),
            ],
            Self::Client => &[
                ("ip", Member::Address(AddressFact::Client)),
                ("port", Member::Number(NumberFact::ClientPort)),
            ],
            Self::Server => &[
                ("ip", Member::Address(AddressFact::Server)),
                ("port", Member::Number(NumberFact::ServerPort)),
            ],
            Self::Tls => &[
                ("version", Member::Text(TextFact::TlsVersion)),
                ("sni", Member::Text(TextFact::TlsSni)),
                ("cipher", Member::Text(TextFact::TlsCipher)),
                ("client_certificate", Member::Group(Group::ClientCertificate)),
            ],
            Self::ClientCertificate => &[
                ("subject", Member::Text(TextFact::TlsSubject)),
                ("serial", Member::Text(TextFact::TlsSerial)),
                ("fingerprint", Member::Text(TextFact::TlsFingerprint)),
                ("dns_names", Member::Names(CertificateName::Dns)),
                ("emails", Member::Names(CertificateName::Email)),
                ("uris", Member::Names(CertificateName::Uri)),
                ("ips", Member::Names(CertificateName::Ip)),
            ],
            Self::Member => &[
                ("ip", Member::Address(AddressFact::Member)),
                ("port", Member::Number(NumberFact::MemberPort)),
                ("name", Member::Text(TextFact::MemberName)),
                ("pool", Member::Text(TextFact::MemberPool)),
            ],
            Self::Response => &[
                ("status", Member::Number(NumberFact::Status)),
                ("headers", Member::Keyed(KeyedGroup::ResponseHeader)),
                ("cookies", Member::Keyed(KeyedGroup::ResponseCookie)),
            ],
            Self::Datagram => &[],
            Self::Sip => &[("headers", Member::Keyed(KeyedGroup::SipHeader))],
            Self::Radius => &[("attributes", Member::Keyed(KeyedGroup::RadiusAttribute))],
            Self::Quic => &[("connection_id", Member::QuicConnectionId)],
            Self::Time => &[
                ("hour", Member::Time(TimePart::Hour)),
                ("minute", Member::Time(TimePart::Minute)),
                ("weekday", Member::Time(TimePart::Weekday)),
                ("day", Member::Time(TimePart::Day)),
                ("month", Member::Time(TimePart::Month)),
                ("year", Member::Time(TimePart::Year)),
                ("date", Member::Date),
                ("clock", Member::Clock),
            ],
        }
    }

    /// Functions of the group itself: `group.name(…)`.
    pub fn readers(self) -> &'static [(&'static str, Reader)] {
        match self {
            Self::Datagram => &[("bytes", Reader::Bytes)],
            Self::Radius => &[("vendor_attribute", Reader::VendorAttribute)],
            _ => &[],
        }
    }

    /// Whether the group reads datagrams.
    pub fn is_of_datagrams(self) -> bool {
        matches!(self, Self::Datagram | Self::Sip | Self::Radius | Self::Quic)
    }

    pub fn member(self, name: &str) -> Option<Member> {
        self.members().iter().find(|(known, _)| *known == name).map(|(_, member)| *member)
    }
}

/// Functions of a group with two numbers as arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Offset and length.
    Bytes,
    /// The number of the vendor and of the attribute.
    VendorAttribute,
}

/// Methods of a value: `value.name(…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    StartsWith,
    EndsWith,
    Contains,
    StartsWithAny,
    EndsWithAny,
    ContainsAny,
    Matches,
    Size,
    LowerAscii,
    Part,
    Segment,
    Substring,
    Replace,
    UrlDecode,
    Base64Decode,
    Hash,
    ContainsIp,
    All,
}

pub(super) const METHODS: [(&str, Method); 18] = [
    ("startsWith", Method::StartsWith),
    ("endsWith", Method::EndsWith),
    ("contains", Method::Contains),
    ("startsWithAny", Method::StartsWithAny),
    ("endsWithAny", Method::EndsWithAny),
    ("containsAny", Method::ContainsAny),
    ("matches", Method::Matches),
    ("size", Method::Size),
    ("lowerAscii", Method::LowerAscii),
    ("part", Method::Part),
    ("segment", Method::Segment),
    ("substring", Method::Substring),
    ("replace", Method::Replace),
    ("urlDecode", Method::UrlDecode),
    ("base64Decode", Method::Base64Decode),
    ("hash", Method::Hash),
    ("containsIP", Method::ContainsIp),
    ("all", Method::All),
];

/// Functions: `name(…)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Cidr,
    Int,
    Random,
    Size,
    String,
}

pub(super) const FUNCTIONS: [(&str, Function); 5] = [
    ("cidr", Function::Cidr),
    ("int", Function::Int),
    ("random", Function::Random),
    ("size", Function::Size),
    ("string", Function::String),
];

pub(super) fn method(name: &str) -> Option<Method> {
    METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
}

pub(super) fn function(name: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}
