//! How and where a virtual server listens.

use std::net::SocketAddr;

use super::Address;

/// How a virtual server listens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listening {
    /// Also on an address that this host does not have yet.
    pub free_bind: bool,
    /// The kernel hands a connection over when data has come, or after so long.
    pub defer_accept_s: Option<u32>,
}

/// Addresses as the file has them: consecutive ports of one address are a range.
pub fn ranges(addresses: &[Address]) -> Vec<String> {
    let follows = |one: &Address, next: &Address| match (one, next) {
        (Address::Socket(one), Address::Socket(next)) | (Address::Udp(one), Address::Udp(next)) => {
            let mut following = *one;
            following.set_port(one.port().wrapping_add(1));
            following == *next && next.port() != 0
        }
        _ => false,
    };
    let runs = addresses.chunk_by(follows);
    runs.map(|run| match run {
        [Address::Socket(first), .., Address::Socket(last)] => range(*first, last.port()),
        [Address::Udp(first), .., Address::Udp(last)] => {
            format!("udp:{}", range(*first, last.port()))
        }
        run => run[0].to_string(),
    })
    .collect()
}

fn range(first: SocketAddr, last: u16) -> String {
    format!("{first}-{last}")
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
            let addresses: Vec<Address> = addresses.iter().map(address).collect();
            assert_eq!(ranges(&addresses), expected);
        };
        check(&[], &[]);
        check(&["127.0.0.1:80"], &["127.0.0.1:80"]);
        check(&["[::1]:80", "[::1]:81", "[::1]:82"], &["[::1]:80-82"]);
        check(&["10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:3"], &["10.0.0.1:1-2", "10.0.0.2:3"]);
        check(&["10.0.0.1:65535", "10.0.0.1:0"], &["10.0.0.1:65535", "10.0.0.1:0"]);
        check(&["10.0.0.1:2", "10.0.0.1:1", "unix:/a"], &["10.0.0.1:2", "10.0.0.1:1", "unix:/a"]);
    }
}
