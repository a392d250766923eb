//! The hash of what a request is told by: its source address, a header, the value of an expression.
//!
//! SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012; one compression and three
//! finalisation rounds, as in the hash tables of Rust and Linux). Clients choose what is hashed, so they
//! could send all they have to one member if they knew where a key leads. Nobody does who does not know
//! the seed.
//!
//! **The seed is part of the configuration**, not of the process: only weirs with the same seed send a
//! key to the same member. Two weirs agree, and one agrees with itself after a restart, if the seed is
//! derived from what both have: from a shared key file, which keeps it secret, or from the name of the
//! pool, which does not, and then whoever can connect to weir can pick the member that bears the load.
//!
//! The function is fixed by the vectors in the tests: a change would move every client.

/// The hash of `bytes` under a seed of 128 bits.
///
/// Cost: O(n), some 20 ns for an address.
pub fn key_hash(seed: [u64; 2], bytes: &[u8]) -> u64 {
    sip_hash::<1, 3>(seed, bytes)
}

/// Spreads any change of a word over all of it: the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast
/// splittable pseudorandom number generators", 2014). Different words give different results.
pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// SipHash-c-d; the initial state is "somepseudorandomlygeneratedbytes".
#[inline]
fn sip_hash<const C: usize, const D: usize>(seed: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = [
        seed[0] ^ 0x736f_6d65_7073_6575,
        seed[1] ^ 0x646f_7261_6e64_6f6d,
        seed[0] ^ 0x6c79_6765_6e65_7261,
        seed[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        compress::<C>(&mut state, u64::from_le_bytes(*word));
    }
    // What is left over, and the length in the last byte.
    let left = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    compress::<C>(&mut state, left | (bytes.len() as u64) << 56);
    state[2] ^= 0xff;
    (0..D).for_each(|_| round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline]
fn compress<const C: usize>(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    (0..C).for_each(|_| round(state));
    state[0] ^= word;
}

#[inline]
fn round(state: &mut [u64; 4]) {
    let [a, b, c, d] = *state;
    let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
    let (b, d) = (b.rotate_left(13) ^ a, d.rotate_left(16) ^ c);
    let (a, c) = (a.rotate_left(32).wrapping_add(d), c.wrapping_add(b));
    let (b, d) = (b.rotate_left(17) ^ c, d.rotate_left(21) ^ a);
    *state = [a, b, c.rotate_left(32), d];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed of the paper's vectors.
    const SEED: [u64; 2] = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];

    /// Appendix A of the paper, and the first of its reference implementation's vectors.
    #[test]
    fn vectors_of_the_paper() {
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(sip_hash::<2, 4>(SEED, &input), 0xa129_ca61_49be_45e5);
        assert_eq!(sip_hash::<2, 4>(SEED, b""), 0x726f_db47_dd0e_0e31);
    }

    #[test]
    #[expect(
        deprecated,
        reason = "the standard library's SipHash with a chosen seed is only there"
    )]
    fn every_length_agrees_with_the_standard_library() {
        use std::hash::Hasher;
        for length in 0..100u8 {
            let input: Vec<u8> = (0..length).map(|byte: u8| byte.wrapping_mul(7)).collect();
            let mut hasher = std::hash::SipHasher::new_with_keys(SEED[0], SEED[1]);
            hasher.write(&input);
            assert_eq!(sip_hash::<2, 4>(SEED, &input), hasher.finish(), "{length} bytes");
        }
    }

    /// What every weir has always answered.
    #[test]
    fn keys_lead_where_they_always_led() {
        let check = |input: &[u8], expected: u64| {
            assert_eq!(key_hash(SEED, input), expected, "{input:?}: {:#x}", key_hash(SEED, input));
        };
        check(b"", 0xabac_0158_050f_c4dc);
        check(&[192, 0, 2, 1], 0x62f7_2a7f_32dc_3ac9);
        check(b"a-user-of-some-length@example.com", 0xe6d4_7dd2_0a83_f96c);
    }

    #[test]
    fn mixing_is_one_to_one_on_a_sample() {
        let mixed: std::collections::HashSet<u64> = (0..100_000).map(mix).collect();
        assert_eq!(mixed.len(), 100_000);
    }
}
