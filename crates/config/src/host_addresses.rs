//! The addresses of this host, from the kernel's tables as files: nothing is opened or bound.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses of the calling thread's network namespace, loopback too. Empty if the kernel shows none.
pub fn all() -> BTreeSet<IpAddr> {
    let v4 = read_to_string("/proc/thread-self/net/fib_trie").unwrap_or_default();
    let v6 = read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    v4_in(&v4).chain(v6_in(&v6)).collect()
}

/// The IPv4 addresses of this host in the kernel's routing tables (`fib_trie`), once for each table.
fn v4_in(trie: &str) -> impl Iterator<Item = IpAddr> {
    let mut last = None;
    trie.lines().map(str::trim).filter_map(move |line| {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        }
        last.filter(|_| line == "/32 host LOCAL").map(IpAddr::V4)
    })
}

fn v6_in(addresses: &str) -> impl Iterator<Item = IpAddr> {
    let address = |line: &str| u128::from_str_radix(line.split_whitespace().next()?, 16).ok();
    addresses.lines().filter_map(address).map(|bits| Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_the_tables_of_the_kernel() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.77.1.0\n        /24 link UNICAST\nLocal:\n  \
                    |-- 10.77.1.1\n        /32 host LOCAL\n     |-- 10.77.1.255\n        /32 link BROADCAST\n";
        let own: Vec<String> = v4_in(trie).map(|own| own.to_string()).collect();
        assert_eq!(own, ["10.77.1.1"]);
        let line = "20010db8000000000000000000000001 02 40 00 80 eth0\n";
        let own: Vec<String> = v6_in(line).map(|own| own.to_string()).collect();
        assert_eq!(own, ["2001:db8::1"]);
    }
}
