//! The address of the admin listener, as given by the user.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The default address, in systemd's `RuntimeDirectory=weir`.
pub const DEFAULT: &str = "unix:/run/weir/admin.sock";

/// An address to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAddress {
    /// A unix socket: all operations.
    Unix(PathBuf),
    /// `host:port`: read-only, or with a token.
    Tcp(String),
    /// `https://host:port`, with a token or a client certificate.
    Tls(String),
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(address) => formatter.write_str(address),
            Self::Tls(address) => write!(formatter, "https://{address}"),
        }
    }
}

impl AdminAddress {
    /// Whether the connection is unencrypted and leaves this host.
    pub fn is_exposed(&self) -> bool {
        matches!(self, Self::Tcp(_)) && !self.is_here()
    }

    /// Whether it is on this host: a unix socket, or an address of loopback.
    pub fn is_here(&self) -> bool {
        let (Self::Tcp(address) | Self::Tls(address)) = self else { return true };
        let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_loopback || bare.eq_ignore_ascii_case("localhost")
    }

    /// The value of the `Host` field. The zone of an IPv6 address is local, so it is omitted (RFC 6874 section 4).
    pub fn host(&self) -> String {
        match self {
            Self::Unix(_) => "weir".into(),
            Self::Tcp(address) | Self::Tls(address) => match (address.find('%'), address.find(']'))
            {
                (Some(zone), Some(end)) if zone < end => {
                    format!("{}{}", &address[..zone], &address[end..])
                }
                _ => address.clone(),
            },
        }
    }
}

/// Parses an address: `unix:/run/weir/admin.sock`, `/run/weir/admin.sock`, `127.0.0.1:9900`, `http://localhost:9900/`,
/// `https://weir:8443`.
pub fn parse(text: &str) -> Result<AdminAddress, String> {
    let path = text.strip_prefix("unix:").or_else(|| text.starts_with('/').then_some(text));
    if let Some(path) = path {
        return match path {
            "" => Err("a unix socket has a path: unix:/run/weir/admin.sock".into()),
            path => Ok(AdminAddress::Unix(path.into())),
        };
    }
    let secure = text.strip_prefix("https://");
    let address = secure.or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    let address = address.strip_suffix('/').unwrap_or(address);
    let is_plain = |host: &str| {
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_v6 = name.len() < host.len();
        !name.is_empty()
            && name.chars().all(|character| {
                character.is_ascii_alphanumeric()
                    || matches!(character, '.' | '-' | '_')
                    || is_v6 && matches!(character, ':' | '%')
            })
    };
    match address.rsplit_once(':') {
        Some((host, port)) if is_plain(host) && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            let address = address.to_owned();
            Ok(if secure.is_some() {
                AdminAddress::Tls(address)
            } else {
                AdminAddress::Tcp(address)
            })
        }
        _ => Err("an admin address is unix:/path, 127.0.0.1:9900 or https://HOST:PORT".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let check = |address: &str, expected: &str| {
            assert_eq!(parse(address).unwrap().host(), expected, "{address}");
        };
        check(DEFAULT, "weir");
        check("127.0.0.1:9900", "127.0.0.1:9900");
        check("weir.example:9900", "weir.example:9900");
        check("[::1]:9900", "[::1]:9900");
        check("[fe80::1%eth0]:9900", "[fe80::1]:9900");
    }

    #[test]
    fn exposed_addresses() {
        for (address, expected) in [
            (DEFAULT, false),
            ("127.0.0.1:9900", false),
            ("[::1]:9900", false),
            ("localhost:9900", false),
            ("https://10.0.0.5:8443", false),
            ("10.0.0.5:9900", true),
            ("http://weir.example:9900", true),
            ("localhost.example:9900", true),
        ] {
            assert_eq!(parse(address).unwrap().is_exposed(), expected, "{address}");
        }
    }

    #[test]
    fn addresses() {
        let unix = |path: &str| Some(AdminAddress::Unix(path.into()));
        let tcp = |address: &str| Some(AdminAddress::Tcp(address.into()));
        let check = |text: &str, expected: Option<AdminAddress>| {
            assert_eq!(parse(text).ok(), expected, "{text}");
        };
        check(DEFAULT, unix("/run/weir/admin.sock"));
        check("/run/weir/admin.sock", unix("/run/weir/admin.sock"));
        check("unix:admin.sock", unix("admin.sock"));
        check("127.0.0.1:9900", tcp("127.0.0.1:9900"));
        check("localhost:9900", tcp("localhost:9900"));
        check("http://127.0.0.1:9900", tcp("127.0.0.1:9900"));
        check("http://[::1]:9900/", tcp("[::1]:9900"));
        check("https://weir.example:8443/", Some(AdminAddress::Tls("weir.example:8443".into())));
        for bad in [
            "",
            "unix:",
            "127.0.0.1",
            "127.0.0.1:0",
            "127.0.0.1:99999",
            "127.0.0.1:http",
            ":9900",
            "::1:9900",
            "[]:9900",
            "https://127.0.0.1",
            "https://:9900",
            "http://127.0.0.1:9900/status",
            "a b:80",
            "a\r\nb:80",
        ] {
            check(bad, None);
        }
    }
}
