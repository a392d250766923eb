//! A keyed 64-bit hash for client data: SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast
//! short-input PRF", 2012).
//!
//! Clients must not be able to choose their place in tables and rings that are indexed by client data: with a secret
//! hash key they can neither make two values collide nor crowd one bucket. Rust's and Python's own hash tables also use
//! one round per block and three at the end.

use std::net::IpAddr;

/// A secret key of 128 bits for [`KeyedHash::bytes`] and [`KeyedHash::address`].
#[derive(Clone, Copy)]
pub struct KeyedHash {
    low: u64,
    high: u64,
}

impl std::fmt::Debug for KeyedHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KeyedHash")
    }
}

/// The prefix of an address that identifies a client. Lengths in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixLengths {
    /// For IPv4 addresses; at most 32.
    pub v4: u8,
    /// For IPv6 addresses, up to 128. A site usually has a /64 or more.
    pub v6: u8,
}

impl PrefixLengths {
    /// Prefixes of full length: each address is a client.
    pub const WHOLE: Self = Self { v4: 32, v6: 128 };

    /// The address with all bits after the prefix set to zero; IPv4-mapped IPv6 addresses are IPv4.
    pub fn of(self, ip: IpAddr) -> IpAddr {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.v4.min(32))).unwrap_or(0);
                IpAddr::V4((ip.to_bits() & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.v6.min(128))).unwrap_or(0);
                IpAddr::V6((ip.to_bits() & mask).into())
            }
        }
    }
}

impl KeyedHash {
    /// A hash function with this key. Instances that must agree, as for a consistent hash over members, need the same key.
    pub fn new(key: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(key);
        Self { low: key as u64, high: (key >> 64) as u64 }
    }

    /// The hash of bytes (a field's value, a cookie, the value of an expression).
    pub fn bytes(&self, bytes: &[u8]) -> u64 {
        sip::<1, 3>(self.low, self.high, bytes)
    }

    /// The hash of the client that an address belongs to.
    pub fn address(&self, ip: IpAddr, prefix: PrefixLengths) -> u64 {
        match prefix.of(ip) {
            IpAddr::V4(ip) => self.bytes(&ip.octets()),
            IpAddr::V6(ip) => self.bytes(&ip.octets()),
        }
    }
}

/// SipHash with `BLOCK_ROUNDS` per block of eight bytes and `FINAL_ROUNDS` at the end.
fn sip<const BLOCK_ROUNDS: usize, const FINAL_ROUNDS: usize>(
    low: u64,
    high: u64,
    bytes: &[u8],
) -> u64 {
    let mut state = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    let (blocks, rest) = bytes.as_chunks::<8>();
    for block in blocks {
        absorb::<BLOCK_ROUNDS>(&mut state, u64::from_le_bytes(*block));
    }
    // The last block: the rest, and the length's low byte on top.
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    absorb::<BLOCK_ROUNDS>(&mut state, u64::from_le_bytes(last));
    state[2] ^= 0xff;
    for _ in 0..FINAL_ROUNDS {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn absorb<const ROUNDS: usize>(state: &mut [u64; 4], block: u64) {
    state[3] ^= block;
    for _ in 0..ROUNDS {
        round(state);
    }
    state[0] ^= block;
}

fn round([v0, v1, v2, v3]: &mut [u64; 4]) {
    *v0 = v0.wrapping_add(*v1);
    *v1 = v1.rotate_left(13) ^ *v0;
    *v0 = v0.rotate_left(32);
    *v2 = v2.wrapping_add(*v3);
    *v3 = v3.rotate_left(16) ^ *v2;
    *v0 = v0.wrapping_add(*v3);
    *v3 = v3.rotate_left(21) ^ *v0;
    *v2 = v2.wrapping_add(*v1);
    *v1 = v1.rotate_left(17) ^ *v2;
    *v2 = v2.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hasher};

    use super::*;

    /// The paper's appendix A, and the first vectors of the authors' reference implementation: key
    /// 00 01 … 0f, input 00 01 ….
    #[test]
    fn siphash_2_4_of_the_paper() {
        let low = 0x0706_0504_0302_0100;
        let high = 0x0f0e_0d0c_0b0a_0908;
        let input: Vec<u8> = (0..15).collect();
        for (length, expected) in
            [(0, 0x726f_db47_dd0e_0e31), (1, 0x74f8_39c5_93dc_67fd), (15, 0xa129_ca61_49be_45e5)]
        {
            assert_eq!(sip::<2, 4>(low, high, &input[..length]), expected, "{length}");
        }
    }

    /// With an all-zero key, the hash equals the standard library's current `DefaultHasher`.
    #[test]
    fn siphash_1_3_of_the_standard_library() {
        let hash = KeyedHash::new([0; 16]);
        for length in 0..100_u8 {
            let input: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(151)).collect();
            let mut hasher = DefaultHasher::new();
            hasher.write(&input);
            assert_eq!(hash.bytes(&input), hasher.finish(), "{length}");
        }
    }

    #[test]
    fn both_halves_of_the_key_count() {
        let hash = |at: usize| {
            let mut key = [0; 16];
            key[at] = 1;
            KeyedHash::new(key).bytes(b"client")
        };
        let mut hashes: Vec<u64> = (0..16).map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 16);
    }

    #[test]
    fn prefixes() {
        let check = |ip: &str, v4, v6, expected: &str| {
            let found = PrefixLengths { v4, v6 }.of(ip.parse().unwrap());
            assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{ip} {v4} {v6}");
        };
        check("1.2.3.4", 32, 128, "1.2.3.4");
        check("1.2.3.255", 25, 128, "1.2.3.128");
        check("1.2.3.4", 24, 128, "1.2.3.0");
        check("1.2.3.4", 0, 128, "0.0.0.0");
        check("1.2.3.4", 255, 128, "1.2.3.4");
        check("::ffff:1.2.3.4", 24, 64, "1.2.3.0");
        check("2001:db8:1:2:3:4:5:6", 32, 128, "2001:db8:1:2:3:4:5:6");
        check("2001:db8:1:2:3:4:5:6", 32, 64, "2001:db8:1:2::");
        check("2001:db8:1:2ff:3:4:5:6", 32, 56, "2001:db8:1:200::");
        check("2001:db8::1", 32, 0, "::");
    }

    #[test]
    fn clients_of_one_prefix_hash_alike() {
        let hash = KeyedHash::new(*b"0123456789abcdef");
        let prefix = PrefixLengths { v4: 24, v6: 64 };
        let of = |ip: &str| hash.address(ip.parse().unwrap(), prefix);
        assert_eq!(of("1.2.3.4"), of("1.2.3.5"));
        assert_eq!(of("1.2.3.4"), of("::ffff:1.2.3.9"));
        assert_ne!(of("1.2.3.4"), of("1.2.4.4"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("0.0.0.0"), of("::"));
    }

    /// Fixed results for every version of weir: a change would move every client.
    #[test]
    fn keys_lead_where_they_always_led() {
        let hash = KeyedHash::new(std::array::from_fn(|index| index as u8));
        let check = |input: &[u8], expected: u64| {
            assert_eq!(hash.bytes(input), expected, "{input:?}: {:#x}", hash.bytes(input));
        };
        check(b"", 0xabac_0158_050f_c4dc);
        check(&[192, 0, 2, 1], 0x62f7_2a7f_32dc_3ac9);
        check(b"a-user-of-some-length@example.com", 0xe6d4_7dd2_0a83_f96c);
    }
}
