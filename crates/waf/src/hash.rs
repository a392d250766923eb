//! A hash of bytes, for tables in memory.

/// A hash. It processes eight bytes at a time: each word is mixed in by a multiplication whose halves are combined.
pub fn hash(bytes: &[u8]) -> u64 {
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xf39c_c060_5ced_c835;
        (product as u64) ^ (product >> 64) as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let state =
        words.iter().fold(bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    mix(state, rest.iter().fold(1, |word, byte| word << 8 | u64::from(*byte)))
}
