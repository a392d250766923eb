//! Invariants of any Accept-Encoding field, for the fuzz target and its smoke test.

use weir_compression::{Choice, Coding, accept_encoding};

/// Initial values.
pub const FIELDS: [&[u8]; 16] = [
    b"gzip, deflate, br, zstd",
    b"gzip;q=1.0, identity; q=0.5, *;q=0",
    b"br;q=1.0, gzip;q=0.8, *;q=0.1",
    b"*;q=0",
    b"identity;q=0",
    b"gzip;q=0.001,zstd;q=0.999",
    b"x-gzip;Q=1.000",
    b"GZIP ; q=0.3\t,\tBR ;\tq=0.2",
    b"gzip;q=2, br;q=-1, zstd;q=0.0001",
    b"gzip;q=, br;q, zstd;, ;q=1",
    b",,gzip,,",
    b"",
    b"compress, deflate",
    b"gzip, gzip;q=0",
    b"\"gzip, br\"",
    b"gzip;level=9;q=1",
];

fn choose(values: &[&[u8]], offered: &[Coding]) -> Choice {
    accept_encoding(values.iter().copied(), offered)
}

/// For any value of a client, the chosen coding is on offer and not refused.
pub fn check(field: &[u8]) {
    use Coding::{Brotli, Gzip, Zstd};
    let offers: [&[Coding]; 5] =
        [&[], &[Gzip], &[Zstd, Brotli, Gzip], &[Gzip, Brotli, Zstd], &[Brotli, Zstd]];
    for offered in offers {
        let found = choose(&[field], offered);
        let about = || format!("{} of {offered:?}: {found:?}", field.escape_ascii());
        assert!(found.coding().is_none_or(|coding| offered.contains(&coding)), "{}", about());
        // Upper-case letters, additional commas and empty items do not change the result.
        assert_eq!(choose(&[&field.to_ascii_uppercase()], offered), found, "{}", about());
        assert_eq!(choose(&[b"", field, b" , ", b"gzip;q=9"], offered), found, "{}", about());
        // A list gives the same result however it is divided between fields.
        for (at, _) in field.iter().enumerate().filter(|(_, byte)| **byte == b',') {
            let halves = [&field[..at], &field[at + 1..]];
            assert_eq!(choose(&halves, offered), found, "{}", about());
        }
        // A coding that is refused or not on offer is not sent.
        if let Some(coding) = found.coding() {
            let refusal = format!("{};q=0", coding.name());
            let without = choose(&[field, refusal.as_bytes()], offered);
            assert_ne!(without.coding(), Some(coding), "{}", about());
            let others: Vec<Coding> =
                offered.iter().copied().filter(|other| *other != coding).collect();
            assert_eq!(choose(&[field], &others), without, "{}", about());
            assert_eq!(choose(&[field], &[coding]), found, "{}", about());
        }
        // An offered coding with the maximum weight is chosen.
        let alone = choose(&[b"zstd;q=1.000"], offered);
        assert_eq!(alone.coding(), offered.contains(&Zstd).then_some(Zstd));
    }
}
