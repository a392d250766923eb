//! The sockets of this host that listen or take datagrams, from the kernel's tables.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_config::snapshot::Address;

use super::host::Host;

/// Socket tables below `/proc/net`, and the state of listening sockets.
const TCP_TABLES: [&str; 2] = ["tcp", "tcp6"];
const UDP_TABLES: [&str; 2] = ["udp", "udp6"];
const TCP_LISTEN: &str = "0A";

/// The sockets that hold a port, by port.
#[derive(Debug, Default)]
pub struct Sockets {
    tcp: HashMap<u16, Vec<(IpAddr, u64)>>,
    udp: HashMap<u16, Vec<(IpAddr, u64)>>,
}

impl Sockets {
    /// The sockets that a host has now. Empty if its kernel shows none.
    pub fn of(host: &Host) -> Self {
        Self { tcp: read(host, TCP_TABLES, false), udp: read(host, UDP_TABLES, true) }
    }

    /// The inodes of the sockets that keep others from an address: bound to it, or to its port on all addresses. An IPv6
    /// socket on all addresses may take those of IPv4 as well; the table does not say whether it does.
    pub fn at(&self, address: &Address) -> Vec<u64> {
        let (sockets, at) = match address {
            Address::Socket(at) => (&self.tcp, at),
            Address::Udp(at) => (&self.udp, at),
            Address::Unix(_) => return Vec::new(),
        };
        let is_there = |own: &IpAddr| {
            let is_everywhere = own.is_unspecified() || at.ip().is_unspecified();
            let is_of_family = own.is_ipv4() == at.is_ipv4();
            *own == at.ip()
                || is_everywhere && is_of_family
                || own.is_ipv6() && own.is_unspecified() && at.is_ipv4()
        };
        let there = sockets.get(&at.port()).into_iter().flatten();
        there.filter(|(own, _)| is_there(own)).map(|(_, inode)| *inode).collect()
    }
}

fn read(host: &Host, tables: [&str; 2], is_udp: bool) -> HashMap<u16, Vec<(IpAddr, u64)>> {
    let mut sockets: HashMap<u16, Vec<(IpAddr, u64)>> = HashMap::new();
    for text in tables.iter().filter_map(|name| host.text(&format!("/proc/net/{name}"))) {
        let found = text.lines().skip(1).filter_map(|line| socket(line, is_udp));
        found.for_each(|(at, inode)| {
            sockets.entry(at.port()).or_default().push((at.ip(), inode));
        });
    }
    sockets
}

/// A line of a table, if its socket holds a port.
fn socket(line: &str, is_udp: bool) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_whitespace().skip(1);
    let local = socket_address(words.next()?)?;
    let state = words.nth(1)?;
    let inode = words.nth(5)?.parse().ok()?;
    (is_udp || state == TCP_LISTEN).then_some((local, inode))
}

/// Parses `0100007F:1F90`: 32-bit words in native byte order, in hexadecimal digits.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(ip)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for (place, bytes) in bytes.chunks_exact_mut(4).enumerate() {
                bytes.copy_from_slice(&word(ip.get(place * 8..place * 8 + 8)?)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::super::host::tests::FakeHost;
    use super::*;

    #[test]
    fn addresses_in_tables_of_the_kernel() {
        let check = |text: &str, expected: &str| {
            assert_eq!(socket_address(text).unwrap().to_string(), expected);
        };
        check(&format!("{:08X}:1F90", u32::from_ne_bytes([127, 0, 0, 1])), "127.0.0.1:8080");
        let last = format!("{:08X}", u32::from_ne_bytes([0, 0, 0, 1]));
        check(&format!("000000000000000000000000{last}:0050"), "[::1]:80");
        assert_eq!(socket_address("00:1"), None);
    }

    #[test]
    fn sockets_of_datagrams_have_a_table_of_their_own() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let sockets = Sockets::of(&Host::here());
        assert_eq!(sockets.at(&Address::Udp(at)).len(), 1);
        assert!(sockets.at(&Address::Socket(at)).is_empty());
    }

    #[test]
    fn who_keeps_whom_from_an_address() {
        let v4 = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let line = |ip: &str, port: u16, state: &str, inode: u64| {
            format!("  0: {ip}:{port:04X} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1\n")
        };
        let head = "  sl  local_address ...\n".to_owned();
        let tcp = head.clone()
            + &line(&v4([127, 0, 0, 1]), 80, "0A", 1)
            + &line(&v4([0; 4]), 81, "0A", 2)
            + &line(&v4([127, 0, 0, 1]), 82, "01", 3);
        let tcp6 = head + &line(&"0".repeat(32), 83, "0A", 4);
        let fake = FakeHost::with(&[("/proc/net/tcp", &tcp), ("/proc/net/tcp6", &tcp6)]);
        let sockets = Sockets::of(&fake.host);
        let check = |at: &str, expected: &[u64]| {
            assert_eq!(sockets.at(&Address::Socket(at.parse().unwrap())), expected, "{at}");
        };
        check("127.0.0.1:80", &[1]);
        check("127.0.0.2:80", &[]);
        check("0.0.0.0:80", &[1]);
        check("127.0.0.1:81", &[2]);
        // weir's own IPv6 sockets take nothing of IPv4.
        check("[::]:81", &[]);
        check("127.0.0.1:82", &[]);
        check("127.0.0.1:83", &[4]);
        check("[::1]:83", &[4]);
    }
}
