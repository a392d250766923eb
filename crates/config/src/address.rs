//! Addresses: `ip:port`, `[v6]:port`, `name:port`, `unix:/path`.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, decode_text};
use crate::document::Node;
use crate::endpoint::Endpoint;
use crate::quote::clip;
use crate::scalar::whole;
use crate::snapshot::Address;

/// Length of Linux's `sun_path` without its NUL.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// RFC 1035, 2.3.4: a name in text form, without the final dot.
const HOST_NAME_BYTES_MAX: usize = 253;

/// RFC 1035, 2.3.4.
const HOST_LABEL_BYTES_MAX: usize = 63;

/// A listening address. Names are not accepted, because a listener must not depend on a resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenAddress(pub Address);

impl Decode for ListenAddress {
    fn expected() -> String {
        "an address to listen on (`ip:port`, `[v6]:port` or `unix:/path`)".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^(unix:/.+|[0-9.]+:[0-9]+|\\[[0-9A-Fa-f:.%]+\\]:[0-9]+)$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let address = decode_text(node, context, |text| listen_address(text).map(Self))?;
        if let Address::Unix(path) = &address.0 {
            context.uses_file(node.span, &path.to_string_lossy());
        }
        Some(address)
    }
}

fn listen_address(text: &str) -> Result<Address, Invalid> {
    // `:80`, `*:80` and `80` stand for all addresses elsewhere.
    if let Some(port) = text
        .strip_prefix("*:")
        .or_else(|| text.strip_prefix(':'))
        .or(Some(text))
        .filter(|port| whole(port).is_some())
    {
        return Err(Invalid::plainly()
            .help(format!(
                "for all addresses write 0.0.0.0:{port} or \"[::]:{port}\", with fast_l4 0.0.0.0/0:{port}"
            )));
    }
    match Endpoint::parse(text, 0)? {
        Endpoint::Literal(address) if is_for_many(&address) => {
            Err(Invalid::because("weir cannot listen on a multicast or broadcast address"))
        }
        Endpoint::Literal(address) => Ok(address),
        Endpoint::Name { host, port } if host == "localhost" => {
            Err(Invalid::plainly().help(format!("write 127.0.0.1:{port} or \"[::1]:{port}\"")))
        }
        Endpoint::Name { .. } => {
            Err(Invalid::plainly().help("write the IP address instead of a name"))
        }
    }
}

/// A listening address with one port or a range of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenRange {
    /// The address with the lowest port.
    first: Address,
    /// The highest port; `None`: at most one port.
    last_port: Option<u16>,
}

impl ListenRange {
    /// All addresses of the range, the lowest port first.
    pub fn addresses(&self) -> Vec<Address> {
        match (&self.first, self.last_port) {
            (Address::Socket(first), Some(last)) => (first.port()..=last)
                .map(|port| {
                    let mut address = *first;
                    address.set_port(port);
                    Address::Socket(address)
                })
                .collect(),
            _ => vec![self.first.clone()],
        }
    }

    /// The path of a unix socket.
    pub fn path(&self) -> Option<&Path> {
        match &self.first {
            Address::Unix(path) => Some(path),
            Address::Socket(_) | Address::Udp(_) => None,
        }
    }

    /// The number of ports.
    pub fn len(&self) -> usize {
        match (&self.first, self.last_port) {
            (Address::Socket(first), Some(last)) => usize::from(last - first.port()) + 1,
            _ => 1,
        }
    }
}

impl ListenRange {
    /// Reads `ip:port`, `ip:port-port`, `[v6]:port` or `unix:/path`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let ports = text.rsplit_once(':').and_then(|(host, ports)| {
            let (first, last) = ports.split_once('-')?;
            Some((host, first, last))
        });
        let Some((host, first, last)) = ports.filter(|_| !text.starts_with("unix:")) else {
            return Ok(Self { first: listen_address(text)?, last_port: None });
        };
        let PortRange { last: last_port, .. } = PortRange::parse(first, last)?;
        let first = listen_address(&format!("{host}:{first}"))?;
        Ok(Self { first, last_port: Some(last_port) })
    }
}

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    /// Parses the two ends of a range.
    pub fn parse(first: &str, last: &str) -> Result<Self, Invalid> {
        let (first, last) = (port_number(first, 1)?, port_number(last, 1)?);
        if first > last {
            return Err(Invalid::because("the range ends before it begins")
                .help(format!("write {last}-{first}")));
        }
        Ok(Self { first, last })
    }
}

impl Decode for PortRange {
    fn expected() -> String {
        "a range of ports such as 40000-49999".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]+-[0-9]+$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let (first, last) = text.split_once('-').ok_or_else(Invalid::plainly)?;
            Self::parse(first, last)
        })
    }
}

impl Decode for Endpoint {
    fn expected() -> String {
        "an address (`ip:port`, `[v6]:port`, `name:port` or `unix:/path`)".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^(unix:/.+|[0-9A-Za-z._-]+(:[0-9]+)?|\\[[0-9A-Fa-f:.%]+\\](:[0-9]+)?|[0-9A-Fa-f:.]+)$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let endpoint = decode_text(node, context, |text| {
            let endpoint = match Self::without_port(text) {
                Some(endpoint) => endpoint,
                None => Self::parse(text, 1)?,
            };
            match &endpoint {
                Self::Literal(address) if is_for_many(address) => {
                    Err(Invalid::because("a member cannot have a multicast or broadcast address"))
                }
                Self::Literal(Address::Socket(socket))
                    if socket.ip().to_canonical().is_unspecified() =>
                {
                    let own = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), socket.port());
                    let own = Address::Socket(own).label();
                    let help = format!("for this host write {own}");
                    Err(Invalid::because("connections cannot go to all addresses").help(help))
                }
                _ => Ok(endpoint),
            }
        })?;
        context.reaches(node.span, &endpoint);
        Some(endpoint)
    }
}

/// Whether packets to the address go to many hosts (multicast or broadcast).
fn is_for_many(address: &Address) -> bool {
    match address {
        Address::Socket(socket) => match socket.ip() {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_multicast(),
        },
        Address::Unix(_) | Address::Udp(_) => false,
    }
}

impl Endpoint {
    /// Whether this is a unix socket.
    pub fn is_unix(&self) -> bool {
        matches!(self, Self::Literal(Address::Unix(_)))
    }

    /// Parses an address; `None`: the text is not an address.
    pub fn read(text: &str) -> Option<Self> {
        // What most members have is read at once.
        if let Some(address) = plain_v4_socket(text) {
            return Some(Self::Literal(Address::Socket(address)));
        }
        Self::without_port(text).or_else(|| Self::parse(text, 1).ok())
    }

    /// Whether connections go to the port that the client connected to.
    pub fn is_without_port(&self) -> bool {
        match self {
            Self::Literal(address) => address.is_without_port(),
            Self::Name { port, .. } => *port == 0,
        }
    }

    /// Parses an address or a name without a port. A name must contain a dot: a word without one is more likely a mistake.
    fn without_port(text: &str) -> Option<Self> {
        let of = |ip: IpAddr| Self::Literal(Address::Socket(SocketAddr::new(ip.to_canonical(), 0)));
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(of(ip));
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            return v6_socket(inner, 0).ok();
        }
        let is_name = !text.contains([':', '/']) && text.contains('.');
        let host = host_name(text).ok().filter(|_| is_name)?;
        Some(Self::Name { host, port: 0 })
    }

    fn parse(text: &str, port_min: u16) -> Result<Self, Invalid> {
        if let Some(path) = text.strip_prefix("unix:") {
            return unix_path(path).map(|path| Self::Literal(Address::Unix(path)));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            let rest = rest.trim_end_matches('/');
            return Err(Invalid::plainly().help(format!(
                "leave out {}://: {}",
                clip(scheme),
                clip(rest)
            )));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            let shown = match address {
                IpAddr::V4(address) => format!("write {address}:8080"),
                IpAddr::V6(_) => "the address in brackets, then the port: \"[::1]:8080\"".into(),
            };
            return Err(Invalid::because("the port is missing").help(shown));
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return Err(Invalid::plainly());
        };
        let port = port_number(port, port_min)?;
        if let Some(bracketed) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            return v6_socket(bracketed, port);
        }
        if host.contains(':') {
            return Err(Invalid::plainly().help(format!("write \"[{}]:{port}\"", clip(host))));
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Self::Literal(Address::Socket(SocketAddr::new(address, port))));
        }
        Ok(Self::Name { host: host_name(host)?, port })
    }
}

fn v6_socket(host: &str, port: u16) -> Result<Endpoint, Invalid> {
    if let Some((_, zone)) = host.split_once('%')
        && whole(zone).is_none()
    {
        return Err(Invalid::because(
            "an IPv6 zone is given as the interface's number, such as [fe80::1%2]:80",
        ));
    }
    let mut address = format!("[{host}]:{port}")
        .parse::<SocketAddr>()
        .map_err(|_| Invalid::because(format!("\"{}\" is not an IPv6 address", clip(host))))?;
    // Canonical form: otherwise a repeated listener would not be recognised.
    if let IpAddr::V4(mapped) = address.ip().to_canonical() {
        address = SocketAddr::new(mapped.into(), port);
    }
    Ok(Endpoint::Literal(Address::Socket(address)))
}

/// An IPv4 address and its port, if they are written in the usual way.
fn plain_v4_socket(text: &str) -> Option<SocketAddr> {
    let is_usual = text.rsplit_once(':').is_some_and(|(_, port)| !port.starts_with('0'));
    let address: SocketAddrV4 = text.parse().ok().filter(|_| is_usual)?;
    Some(SocketAddr::V4(address))
}

fn port_number(text: &str, port_min: u16) -> Result<u16, Invalid> {
    whole(text)
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port >= port_min)
        .ok_or_else(|| {
            Invalid::because(format!(
                "\"{}\" is not a port: a number from 1 to {}",
                clip(text),
                u16::MAX
            ))
        })
}

fn unix_path(path: &str) -> Result<PathBuf, Invalid> {
    if !path.starts_with('/') {
        return Err(Invalid::because("the path of a unix socket must be absolute")
            .help("write unix:/run/…"));
    }
    if path.contains('\0') {
        return Err(Invalid::because("the path of a unix socket has no NUL character"));
    }
    if path.len() > UNIX_PATH_BYTES_MAX {
        return Err(Invalid::because(format!(
            "the path of a unix socket has at most {UNIX_PATH_BYTES_MAX} bytes, this one {}",
            path.len()
        )));
    }
    Ok(PathBuf::from(path))
}

/// Parses a host name, in lower case, for a resolver.
pub(crate) fn host_name(text: &str) -> Result<String, Invalid> {
    let not_a_name = |why: &str| {
        Err(Invalid::because(format!(
            "\"{}\" is neither an IP address nor a host name: {why}",
            clip(text)
        )))
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return not_a_name("it is empty");
    }
    if name.len() > HOST_NAME_BYTES_MAX {
        return not_a_name("it is longer than 253 bytes");
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let sound_label = |label: &str| {
        !label.is_empty()
            && label.len() <= HOST_LABEL_BYTES_MAX
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !name.split('.').all(sound_label) {
        return not_a_name("letters, digits and hyphens, in parts of 1 to 63 between dots");
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return not_a_name("a name does not end in a number");
    }
    Ok(text.to_ascii_lowercase())
}

/// A source address, without a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceAddress(pub IpAddr);

impl Decode for SourceAddress {
    fn expected() -> String {
        "an IP address without a port".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Fa-f:.]+$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            let address: IpAddr = text.parse().map_err(|_| {
                let bare = text
                    .parse::<SocketAddr>()
                    .map(|address| address.ip().to_string())
                    .ok()
                    .or_else(|| {
                        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
                        inner.parse::<IpAddr>().ok().map(|ip| ip.to_string())
                    });
                match bare {
                    Some(bare) => Invalid::plainly().help(format!("write \"{bare}\"")),
                    None => Invalid::plainly(),
                }
            })?;
            if !is_source(address) {
                return Err(Invalid::because("packets cannot come from this address"));
            }
            Ok(Self(address.to_canonical()))
        })
    }
}

/// Whether packets can come from the address, if this host has it.
fn is_source(address: IpAddr) -> bool {
    match address.to_canonical() {
        // Other hosts drop packets from 0.0.0.0/8 and from the broadcast address (RFC 1122, section 3.2.1.3).
        IpAddr::V4(v4) => v4.octets()[0] != 0 && !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast(),
    }
}

/// The host name of a monitor: for the `Host` field and, with https, the TLS server name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostName(pub String);

impl Decode for HostName {
    fn expected() -> String {
        "a host name or IP address without a port".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Za-z._:\\[\\]-]+$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| match host(text) {
            Err(_) if text.contains(':') => {
                Err(Invalid::plainly().help("leave out the port; a monitor has `port` for it"))
            }
            host => host.map(Self),
        })
    }
}

/// A host name of the admin listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdminName(pub String);

impl Decode for AdminName {
    fn expected() -> String {
        HostName::expected()
    }

    fn schema(registry: &mut Registry) -> Value {
        HostName::schema(registry)
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            host(text).map(Self).map_err(|invalid| match bare_host(text) {
                Some(bare) => Invalid::plainly().help(format!("give the name only: `{bare}`")),
                None => invalid,
            })
        })
    }
}

/// Parses a name, or an IP address in the form of a `Host` field.
fn host(text: &str) -> Result<String, Invalid> {
    if text.parse::<std::net::Ipv4Addr>().is_ok() {
        return Ok(text.to_owned());
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<std::net::Ipv6Addr>() {
        return Ok(format!("[{address}]"));
    }
    host_name(text)
}

/// The host of a URL, or of a host with a port.
fn bare_host(text: &str) -> Option<String> {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let without_port = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host(authority).or_else(|_| host(without_port)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        Endpoint::parse(text, 1).map(|endpoint| endpoint.to_string()).map_err(|invalid| {
            format!(
                "{} -> {}",
                invalid.reason.unwrap_or_default(),
                invalid.suggestion.unwrap_or_default()
            )
        })
    }

    #[test]
    fn addresses() {
        let good = [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("[::FFFF:10.0.0.1]:80", "10.0.0.1:80"),
            ("[fe80::1%2]:80", "[fe80::1%2]:80"),
            ("Web-1.Example.:8080", "web-1.example.:8080"),
            ("localhost:1", "localhost:1"),
            ("my_app:65535", "my_app:65535"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ];
        for (text, expected) in good {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(UNIX_PATH_BYTES_MAX));
        let bad = [
            ("127.0.0.1", "the port is missing -> write 127.0.0.1:8080"),
            ("::1", "the port is missing -> the address in brackets"),
            ("fe80::1:2:3:4:5:6:7:80", "-> write \"[fe80::1:2:3:4:5:6:7]:80\""),
            ("example", " -> "),
            ("http://10.0.0.1:80/", "-> leave out http://: 10.0.0.1:80"),
            ("10.0.0.1:0", "\"0\" is not a port"),
            ("10.0.0.1:65536", "\"65536\" is not a port"),
            ("10.0.0.1:http", "\"http\" is not a port"),
            ("10.0.0.1:080", "\"080\" is not a port"),
            ("10.0.0.256:80", "does not end in a number"),
            ("10.0.0:80", "does not end in a number"),
            ("a b:80", "letters, digits"),
            ("-a:80", "letters, digits"),
            ("a..b:80", "letters, digits"),
            (":80", "it is empty"),
            ("[::g]:80", "not an IPv6 address"),
            ("[fe80::1%eth0]:80", "the interface's number"),
            ("unix:run/a", "must be absolute"),
            ("unix:/run/\0a", "no NUL"),
            (&long, "at most 107 bytes, this one 108"),
        ];
        for (text, message) in bad {
            let error = parse(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
