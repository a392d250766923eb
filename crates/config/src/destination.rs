//! Destinations of a virtual server: an address with ports, or all addresses of a network.

use std::net::IpAddr;

use serde_json::{Value, json};
use weir_core::expression::{Network, NetworkError};

use crate::address::{ListenRange, PortRange};
use crate::decode::{Context, Decode, Invalid, Registry, decode_text};
use crate::document::Node;
use crate::quote::clip;

/// The word for any port, and for packets without ports.
const ANY_PORT: &str = "*";

/// An item of `listen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenOn {
    /// Addresses that sockets can listen on.
    Range(ListenRange),
    /// Destinations of packets only.
    Network(NetworkPorts),
}

/// The addresses of a network, with one port, several ports or any port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetworkPorts {
    pub network: Network,
    /// `None`: any port.
    pub ports: Option<PortRange>,
}

impl Decode for ListenOn {
    fn expected() -> String {
        "an address to listen on (`ip:port`, `ip:port-port`, `[v6]:port` or `unix:/path`)".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^(unix:/.+|([0-9.]+|\\[[0-9A-Fa-f:.%]+\\])(/[0-9]+)?:([0-9]+(-[0-9]+)?|\\*))$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let on = decode_text(node, context, |text| match of_packets(text) {
            Some((host, port)) => network_ports(host, port).map(Self::Network),
            None => ListenRange::parse(text).map(Self::Range),
        })?;
        if let Self::Range(range) = &on
            && let Some(path) = range.path()
        {
            context.uses_file(node.span, &path.to_string_lossy());
        }
        Some(on)
    }
}

/// Host and port of a text that is a destination of packets only.
fn of_packets(text: &str) -> Option<(&str, &str)> {
    if text.starts_with("unix:") || text.contains("://") {
        return None;
    }
    let (host, port) = text.rsplit_once(':')?;
    (!host.is_empty() && host != ANY_PORT && (host.contains('/') || port == ANY_PORT))
        .then_some((host, port))
}

fn network_ports(host: &str, port: &str) -> Result<NetworkPorts, Invalid> {
    let ports = match port {
        ANY_PORT => None,
        port => {
            let (first, last) = port.split_once('-').unwrap_or((port, port));
            Some(PortRange::parse(first, last)?)
        }
    };
    Ok(NetworkPorts { network: network(host)?, ports })
}

/// `10.0.0.1`, `10.0.0.0/24`, `[2001:db8::1]`, `[2001:db8::]/64`.
fn network(host: &str) -> Result<Network, Invalid> {
    let (address, length) =
        host.split_once('/').map_or((host, None), |(address, length)| (address, Some(length)));
    let bare = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
    if bare.is_none() && address.contains(':') {
        let length = length.map_or_else(String::new, |length| format!("/{}", clip(length)));
        return Err(Invalid::plainly().help(format!("write \"[{}]{length}:*\"", clip(address))));
    }
    let address = bare.unwrap_or(address);
    let text = length.map_or_else(|| address.to_owned(), |length| format!("{address}/{length}"));
    let network = Network::parse(&text).map_err(|error| match &error {
        NetworkError::Syntax => {
            Invalid::because(format!("\"{}\" is not an IP address or network", clip(host)))
        }
        NetworkError::HostBits(meant) => {
            Invalid::because(error.to_string()).help(format!("write {}", bracketed(meant)))
        }
    })?;
    let (first, bits) = network.prefix();
    if length.is_none() && first.is_unspecified() {
        let help = format!("for all addresses write {}", bracketed(&format!("{first}/0")));
        return Err(Invalid::because("no packet is addressed to it").help(help));
    }
    if bits > 0 && first.is_multicast() {
        return Err(Invalid::because("packets to many receivers are not forwarded"));
    }
    Ok(network)
}

/// A network in the form for `listen`.
fn bracketed(network: &str) -> String {
    match network.split_once('/') {
        Some((address, length)) if address.parse::<IpAddr>().is_ok_and(|it| it.is_ipv6()) => {
            format!("\"[{address}]/{length}\"")
        }
        _ => network.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(String, Option<(u16, u16)>), String> {
        let Some((host, port)) = of_packets(text) else { return Err("a range".into()) };
        match network_ports(host, port) {
            Ok(NetworkPorts { network, ports }) => {
                let (address, length) = network.prefix();
                Ok((format!("{address}/{length}"), ports.map(|ports| (ports.first, ports.last))))
            }
            Err(invalid) => Err(format!(
                "{} -> {}",
                invalid.reason.unwrap_or_default(),
                invalid.suggestion.unwrap_or_default()
            )),
        }
    }

    #[test]
    fn what_packets_are_addressed_to() {
        for (text, network, ports) in [
            ("10.0.0.1:*", "10.0.0.1/32", None),
            ("10.0.0.0/24:*", "10.0.0.0/24", None),
            ("10.0.0.0/24:80", "10.0.0.0/24", Some((80, 80))),
            ("10.0.0.0/24:80-90", "10.0.0.0/24", Some((80, 90))),
            ("0.0.0.0/0:*", "0.0.0.0/0", None),
            ("[2001:db8::]/64:*", "2001:db8::/64", None),
            ("[2001:db8::1]:*", "2001:db8::1/128", None),
            ("[::]/0:53", "::/0", Some((53, 53))),
        ] {
            assert_eq!(parse(text), Ok((network.into(), ports)), "{text}");
        }
        for (text, message) in [
            ("10.0.0.1/24:*", "bits set after the prefix -> write 10.0.0.0/24"),
            ("[2001:db8::1]/64:*", "-> write \"[2001:db8::]/64\""),
            ("2001:db8::/64:*", "-> write \"[2001:db8::]/64:*\""),
            ("10.0.0.0/33:*", "not an IP address or network"),
            ("example.org:*", "not an IP address or network"),
            ("10.0.0.0/24:0", "\"0\" is not a port"),
            ("10.0.0.0/24:90-80", "ends before it begins"),
            ("0.0.0.0:*", "-> for all addresses write 0.0.0.0/0"),
            ("224.0.0.0/4:*", "many receivers"),
            ("10.0.0.1:80", "a range"),
            ("*:80", "a range"),
            ("http://10.0.0.1:80/", "a range"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
