//! Networks, and sets of addresses that are searched in logarithmic time.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses with a common prefix. An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) is the IPv4 address, as everywhere
/// in expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4 {
        /// The first address.
        first: u32,
        /// The last address.
        last: u32,
    },
    /// IPv6.
    V6 {
        /// The first address.
        first: u128,
        /// The last address.
        last: u128,
    },
}

/// The reason why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkError {
    /// Neither `address` nor `address/length`.
    Syntax,
    /// The address has bits after the prefix; contains the network that was probably meant.
    HostBits(String),
}

impl fmt::Display for NetworkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Syntax => "not an IP address or network",
            Self::HostBits(_) => "the address has bits set after the prefix",
        })
    }
}

impl std::error::Error for NetworkError {}

/// `10.0.0.1`, `10.0.0.0/8`.
impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, length) = self.prefix();
        let is_single = *self == Self::of(address);
        if is_single { address.fmt(formatter) } else { write!(formatter, "{address}/{length}") }
    }
}

impl Network {
    /// The network of a single address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4 { first: address.to_bits(), last: address.to_bits() },
            IpAddr::V6(address) => Self::V6 { first: address.to_bits(), last: address.to_bits() },
        }
    }

    /// Parses `address` or `address/length`.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let Some((address, length)) = text.split_once('/') else {
            return Ok(Self::of(text.parse().map_err(|_| NetworkError::Syntax)?));
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Syntax)?;
        let length_max = if address.is_ipv4() { 32 } else { 128 };
        let length = parse_length(length, length_max).ok_or(NetworkError::Syntax)?;
        match address {
            IpAddr::V4(address) => Self::v4(address, length),
            IpAddr::V6(mapped) if length >= 96 => match mapped.to_ipv4_mapped() {
                Some(address) => Self::v4(address, length - 96),
                None => Self::v6(mapped, length),
            },
            IpAddr::V6(address) => Self::v6(address, length),
        }
    }

    /// The first address, and the length of the prefix.
    pub fn prefix(&self) -> (IpAddr, u8) {
        match *self {
            Self::V4 { first, last } => {
                (Ipv4Addr::from_bits(first).into(), (first ^ last).leading_zeros() as u8)
            }
            Self::V6 { first, last } => {
                (Ipv6Addr::from_bits(first).into(), (first ^ last).leading_zeros() as u8)
            }
        }
    }

    fn v4(address: Ipv4Addr, length: u32) -> Result<Self, NetworkError> {
        let host_bits = u32::MAX.checked_shr(length).unwrap_or(0);
        let first = address.to_bits() & !host_bits;
        if first != address.to_bits() {
            let network = Ipv4Addr::from_bits(first);
            return Err(NetworkError::HostBits(format!("{network}/{length}")));
        }
        Ok(Self::V4 { first, last: first | host_bits })
    }

    fn v6(address: Ipv6Addr, length: u32) -> Result<Self, NetworkError> {
        let host_bits = u128::MAX.checked_shr(length).unwrap_or(0);
        let first = address.to_bits() & !host_bits;
        if first != address.to_bits() {
            let network = Ipv6Addr::from_bits(first);
            return Err(NetworkError::HostBits(format!("{network}/{length}")));
        }
        Ok(Self::V6 { first, last: first | host_bits })
    }
}

/// Parses digits only: `u32::from_str` would accept a sign.
fn parse_length(digits: &str, length_max: u32) -> Option<u32> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|length| is_number && *length <= length_max)
}

/// A set of addresses, as sorted ranges that neither overlap nor touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressSet {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

impl AddressSet {
    /// The set of all addresses in these networks.
    pub fn new(networks: impl IntoIterator<Item = Network>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            match network {
                Network::V4 { first, last } => v4.push((first, last)),
                Network::V6 { first, last } => v6.push((first, last)),
            }
        }
        Self {
            v4: merge(v4, |last| last.checked_add(1)),
            v6: merge(v6, |last| last.checked_add(1)),
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether an address is in the set. Cost: logarithmic in the number of networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => covers(&self.v4, address.to_bits()),
            IpAddr::V6(address) => covers(&self.v6, address.to_bits()),
        }
    }
}

fn merge<T: Copy + Ord>(mut ranges: Vec<(T, T)>, after: impl Fn(T) -> Option<T>) -> Box<[(T, T)]> {
    ranges.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if after(before.1).is_none_or(|next| first <= next) => {
                before.1 = before.1.max(last);
            }
            _ => merged.push((first, last)),
        }
    }
    merged.into()
}

fn covers<T: Copy + Ord>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    after > 0 && address <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::Random;

    #[test]
    fn networks() {
        for (text, expected) in [
            ("10.0.0.0/8", Ok(Network::V4 { first: 0x0a00_0000, last: 0x0aff_ffff })),
            ("10.0.0.1", Ok(Network::V4 { first: 0x0a00_0001, last: 0x0a00_0001 })),
            ("10.0.0.1/32", Ok(Network::V4 { first: 0x0a00_0001, last: 0x0a00_0001 })),
            ("0.0.0.0/0", Ok(Network::V4 { first: 0, last: u32::MAX })),
            ("::/0", Ok(Network::V6 { first: 0, last: u128::MAX })),
            ("::1/128", Ok(Network::V6 { first: 1, last: 1 })),
            ("fe80::/127", Ok(Network::V6 { first: 0xfe80 << 112, last: (0xfe80 << 112) | 1 })),
            ("::ffff:10.0.0.0/104", Ok(Network::V4 { first: 0x0a00_0000, last: 0x0aff_ffff })),
            ("::ffff:10.0.0.1", Ok(Network::V4 { first: 0x0a00_0001, last: 0x0a00_0001 })),
            ("10.1.0.0/8", Err(NetworkError::HostBits("10.0.0.0/8".into()))),
            ("fe80::1/64", Err(NetworkError::HostBits("fe80::/64".into()))),
            ("10.0.0.0/33", Err(NetworkError::Syntax)),
            ("::/129", Err(NetworkError::Syntax)),
            ("10.0.0.0/+8", Err(NetworkError::Syntax)),
            ("10.0.0.0/", Err(NetworkError::Syntax)),
            ("10.0.0", Err(NetworkError::Syntax)),
            ("", Err(NetworkError::Syntax)),
        ] {
            assert_eq!(Network::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn adjacent_and_nested_networks_become_one_range() {
        let networks = ["10.0.1.0/24", "10.0.0.0/24", "10.0.0.7", "255.255.255.255", "::/1"];
        let set = AddressSet::new(networks.map(|text| Network::parse(text).unwrap()));
        assert_eq!(*set.v4, [(0x0a00_0000, 0x0a00_01ff), (u32::MAX, u32::MAX)]);
        assert_eq!(set.v6.len(), 1);
    }

    #[test]
    fn membership_agrees_with_a_search_of_every_network() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let networks: Vec<Network> = (0..random.below(20))
                .map(|_| {
                    let length = random.below(9) as u32;
                    // Few leading bits, so that networks overlap.
                    let bits = (random.next() as u32) & !u32::MAX.checked_shr(length).unwrap_or(0);
                    match random.percent(50) {
                        true => Network::v4(Ipv4Addr::from_bits(bits), length).unwrap(),
                        false => {
                            let bits = u128::from(bits) << 96;
                            Network::v6(Ipv6Addr::from_bits(bits), length).unwrap()
                        }
                    }
                })
                .collect();
            let set = AddressSet::new(networks.iter().copied());
            for _ in 0..100 {
                let bits = random.next() as u32;
                let (v4, v6) = (Ipv4Addr::from_bits(bits), u128::from(bits) << 96);
                let in_v4 = networks.iter().any(|network| {
                    matches!(network, Network::V4 { first, last } if (first..=last).contains(&&bits))
                });
                let in_v6 = networks.iter().any(|network| {
                    matches!(network, Network::V6 { first, last } if (first..=last).contains(&&v6))
                });
                assert_eq!(set.contains(v4.into()), in_v4, "seed {seed}: {v4}");
                assert_eq!(set.contains(v4.to_ipv6_mapped().into()), in_v4, "seed {seed}: {v4}");
                assert_eq!(set.contains(Ipv6Addr::from_bits(v6).into()), in_v6, "seed {seed}");
            }
        }
    }
}
