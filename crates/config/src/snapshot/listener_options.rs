//! Listeners of a virtual server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::Address;

/// A listener: several interfaces may each listen on the same address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListenPoint {
    /// The address.
    pub address: Address,
    /// Only traffic of this network interface; `None`: of all interfaces.
    pub interface: Option<Arc<str>>,
}

impl From<Address> for ListenPoint {
    fn from(address: Address) -> Self {
        Self { address, interface: None }
    }
}

impl fmt::Display for ListenPoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(formatter)?;
        match &self.interface {
            Some(interface) => write!(formatter, " on {interface}"),
            None => Ok(()),
        }
    }
}

/// The options of a virtual server's listeners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenerOptions {
    /// Whether to listen also on addresses that this host does not have yet.
    pub free_bind: bool,
    /// The kernel passes a connection on when data has arrived, or after this time.
    pub defer_accept_s: Option<u32>,
}

/// The addresses in the form of the file: consecutive ports of one address become a range.
pub fn ranges(points: &[ListenPoint]) -> Vec<String> {
    let follows = |one: &ListenPoint, next: &ListenPoint| {
        let follows = match (&one.address, &next.address) {
            (Address::Socket(one), Address::Socket(next))
            | (Address::Udp(one), Address::Udp(next)) => are_consecutive(*one, *next),
            _ => false,
        };
        follows && one.interface == next.interface
    };
    points.chunk_by(follows).map(range).collect()
}

fn are_consecutive(one: SocketAddr, next: SocketAddr) -> bool {
    let mut following = one;
    following.set_port(one.port().wrapping_add(1));
    following == next && next.port() != 0
}

/// Consecutive ports of one address.
fn range(run: &[ListenPoint]) -> String {
    let [first, .., last] = run else { return run[0].to_string() };
    let Some(last) = last.address.socket() else { return first.to_string() };
    let interface = first.interface.as_ref();
    let interface = interface.map_or_else(String::new, |interface| format!(" on {interface}"));
    format!("{}-{}{interface}", first.address, last.port())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn consecutive_ports_are_shown_as_a_range() {
        let check = |addresses: &[&str], expected: &[&str]| {
            let address = |text: &&str| match text.strip_prefix("unix:") {
                Some(path) => Address::Unix(PathBuf::from(path)),
                None => Address::Socket(text.parse().unwrap()),
            };
            let point = |text: &&str| match text.split_once(" on ") {
                Some((text, interface)) => {
                    ListenPoint { address: address(&text), interface: Some(interface.into()) }
                }
                None => address(text).into(),
            };
            let points: Vec<ListenPoint> = addresses.iter().map(point).collect();
            assert_eq!(ranges(&points), expected);
        };
        check(&[], &[]);
        check(&["127.0.0.1:80"], &["127.0.0.1:80"]);
        check(&["[::1]:80", "[::1]:81", "[::1]:82"], &["[::1]:80-82"]);
        check(&["10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:3"], &["10.0.0.1:1-2", "10.0.0.2:3"]);
        check(&["10.0.0.1:65535", "10.0.0.1:0"], &["10.0.0.1:65535", "10.0.0.1:0"]);
        check(
            &["10.0.0.1:1 on a", "10.0.0.1:2 on a", "10.0.0.1:3 on b", "10.0.0.1:4"],
            &["10.0.0.1:1-2 on a", "10.0.0.1:3 on b", "10.0.0.1:4"],
        );
        check(&["10.0.0.1:2", "10.0.0.1:1", "unix:/a"], &["10.0.0.1:2", "10.0.0.1:1", "unix:/a"]);
    }
}
