//! Facts that expressions read.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_http::message::{Field, RequestHead, ResponseHead, Scheme, Version};

/// One request as weir received it, with facts about its connection and its response.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The request's head.
    pub request: &'a RequestHead,
    /// The bytes that the head was parsed from.
    pub request_input: &'a [u8],
    /// The client's address; `None`: a unix socket.
    pub client: Option<SocketAddr>,
    /// The local address of the connection; `None`: a unix socket.
    pub server: Option<SocketAddr>,
    /// The scheme of the client's connection.
    pub scheme: Scheme,
    /// The TLS facts; `None`: a connection without TLS.
    pub tls: Option<TlsFacts<'a>>,
    /// The response facts; `None`: there is no response yet.
    pub response: Option<ResponseFacts<'a>>,
    /// The source of `datagram`, `sip`, `radius` and `quic`; `None`: no datagram, so these are empty.
    pub datagram: Option<&'a DatagramFacts<'a>>,
    /// Values besides the request and its connection.
    pub around: &'a dyn Surroundings,
    /// The time, in seconds since 1970, if tokens are read: without it no token is accepted.
    pub unix_s: Option<u64>,
}

/// Values besides a request and its connection. Each is queried only when an expression reads it. Random numbers and
/// time must stay the same until the request has ended.
pub trait Surroundings: fmt::Debug {
    /// The source of `random(…)`: any number, a different one for each request.
    fn seed(&self) -> u64;

    /// The source of `time`: the local time, in seconds since 1970-01-01T00:00:00.
    fn local_s(&self) -> i64;

    /// A value of the pool with this number.
    fn pool(&self, number: u32, fact: PoolFact) -> i64;
}

/// A value of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolFact {
    /// The number of members that could take requests.
    UpMembers,
    /// The number of active requests or connections of its members.
    Connections,
}

/// Surroundings without any known values.
#[derive(Debug, Clone, Copy)]
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn seed(&self) -> u64 {
        0
    }

    fn local_s(&self) -> i64 {
        0
    }

    fn pool(&self, _: u32, _: PoolFact) -> i64 {
        0
    }
}

/// A datagram that a client sent.
#[derive(Debug, Clone, Copy)]
pub struct DatagramFacts<'a> {
    /// The payload.
    pub bytes: &'a [u8],
    /// Length of the connection ids that members issue to QUIC clients; 0: unknown, so a short header has no readable
    /// connection id.
    pub quic_id_bytes: u8,
}

/// Results of a TLS handshake.
#[derive(Debug, Clone, Copy)]
pub struct TlsFacts<'a> {
    /// `1.2` or `1.3`.
    pub version: &'a str,
    /// The requested server name; empty without one.
    pub sni: &'a str,
    /// The cipher suite, by its registered name.
    pub cipher: &'a str,
    /// The subject of the client's certificate; empty without a certificate.
    pub client_certificate_subject: &'a str,
    /// The parsed certificate of the client; `None`: the client sent no certificate.
    pub client_certificate: Option<&'a dyn ClientCertificate>,
}

/// A client's certificate, which is parsed when an expression reads it.
pub trait ClientCertificate: fmt::Debug {
    /// The parsed facts.
    fn read(&self) -> &CertificateFacts;
}

/// The contents of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The serial number in lower-case hexadecimal digits.
    pub serial: Box<str>,
    /// SHA-256 of the certificate in lower-case hexadecimal digits.
    pub fingerprint: Box<str>,
    /// The alternative names, in the certificate's order.
    pub names: Box<[(CertificateName, Box<str>)]>,
}

/// Kinds of alternative names of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateName {
    /// A DNS name.
    Dns,
    /// An email address.
    Email,
    /// A URI, such as `spiffe://…`.
    Uri,
    /// An IP address, as text.
    Ip,
}

/// All values with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Values {
    /// The header fields with this name, in lower case, one by one.
    Header(Arc<str>),
    /// A header of the response.
    ResponseHeader(Arc<str>),
    /// The alternative names of one kind in the client's certificate.
    Names(CertificateName),
}

/// The response for the client.
#[derive(Debug, Clone, Copy)]
pub struct ResponseFacts<'a> {
    /// The head.
    pub head: &'a ResponseHead,
    /// The bytes that the head was parsed from.
    pub input: &'a [u8],
    /// The selected member; `None`: no member was selected.
    pub member: Option<MemberFacts<'a>>,
}

/// The selected member of a request.
#[derive(Debug, Clone, Copy)]
pub struct MemberFacts<'a> {
    /// The member's address; `None`: a unix socket.
    pub address: Option<SocketAddr>,
    /// The name in the file.
    pub name: &'a str,
    /// The pool of the member.
    pub pool: &'a str,
}

/// Texts that the facts contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFact {
    Method,
    Path,
    RawPath,
    RawQuery,
    Scheme,
    Version,
    TlsVersion,
    TlsSni,
    TlsCipher,
    TlsSubject,
    TlsSerial,
    TlsFingerprint,
    MemberName,
    MemberPool,
}

impl TextFact {
    /// Whether the value is unknown before the handshake.
    pub fn is_of_handshake(self) -> bool {
        matches!(
            self,
            Self::TlsVersion
                | Self::TlsCipher
                | Self::TlsSubject
                | Self::TlsSerial
                | Self::TlsFingerprint
        )
    }
}

/// Integers that the facts contain; 0 if missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFact {
    ClientPort,
    ServerPort,
    MemberPort,
    Status,
}

/// Addresses that the facts contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressFact {
    Client,
    Server,
    Member,
}

impl<'a> Facts<'a> {
    pub(super) fn text(&self, fact: TextFact) -> &'a [u8] {
        let tls = |read: fn(TlsFacts<'a>) -> &'a str| self.tls.map_or("", read).as_bytes();
        match fact {
            TextFact::Method => self.request.method_text.of(self.request_input),
            TextFact::Path => self.request.path(self.request_input),
            TextFact::RawPath => self.request.received_path(self.request_input),
            TextFact::RawQuery => self.request.query(self.request_input).unwrap_or_default(),
            TextFact::Scheme => match self.scheme {
                Scheme::Http => b"http",
                Scheme::Https => b"https",
            },
            TextFact::Version => match self.request.version {
                Version::Http10 => b"1.0",
                Version::Http11 => b"1.1",
                Version::Http2 => b"2",
            },
            TextFact::TlsVersion => tls(|tls| tls.version),
            TextFact::TlsSni => tls(|tls| tls.sni),
            TextFact::TlsCipher => tls(|tls| tls.cipher),
            TextFact::TlsSubject => tls(|tls| tls.client_certificate_subject),
            TextFact::TlsSerial => self.certificate().map_or(b"", |it| it.serial.as_bytes()),
            TextFact::TlsFingerprint => {
                self.certificate().map_or(b"", |it| it.fingerprint.as_bytes())
            }
            TextFact::MemberName => self.member().map_or(b"", |member| member.name.as_bytes()),
            TextFact::MemberPool => self.member().map_or(b"", |member| member.pool.as_bytes()),
        }
    }

    fn member(&self) -> Option<MemberFacts<'a>> {
        self.response?.member
    }

    fn certificate(&self) -> Option<&'a CertificateFacts> {
        Some(self.tls?.client_certificate?.read())
    }

    /// Whether `is_it` is true for one of several values; they are tested in order.
    pub(super) fn any_value(
        &self,
        values: &Values,
        mut is_it: impl FnMut(&'a [u8]) -> bool,
    ) -> bool {
        let mut among = |fields: &'a [Field], input: &'a [u8], name: &str| {
            let of_name = fields
                .iter()
                .filter(|field| field.name.of(input).eq_ignore_ascii_case(name.as_bytes()));
            of_name.into_iter().any(|field| is_it(field.value.of(input)))
        };
        match values {
            Values::Header(name) => among(&self.request.fields, self.request_input, name),
            Values::ResponseHeader(name) => self
                .response
                .is_some_and(|response| among(&response.head.fields, response.input, name)),
            Values::Names(kind) => self.certificate().is_some_and(|certificate| {
                let names = certificate.names.iter().filter(|(found, _)| found == kind);
                names.into_iter().any(|(_, name)| is_it(name.as_bytes()))
            }),
        }
    }

    pub(super) fn number(&self, fact: NumberFact) -> i64 {
        let port = |address: Option<SocketAddr>| address.map_or(0, |address| address.port().into());
        match fact {
            NumberFact::ClientPort => port(self.client),
            NumberFact::ServerPort => port(self.server),
            NumberFact::MemberPort => port(self.member().and_then(|member| member.address)),
            NumberFact::Status => self.response.map_or(0, |response| response.head.status.into()),
        }
    }

    /// An address; an IPv4-mapped IPv6 address, as seen by listeners for both families, becomes IPv4.
    pub(super) fn address(&self, fact: AddressFact) -> Option<IpAddr> {
        let address = match fact {
            AddressFact::Client => self.client,
            AddressFact::Server => self.server,
            AddressFact::Member => self.member().and_then(|member| member.address),
        };
        address.map(|address| address.ip().to_canonical())
    }
}
