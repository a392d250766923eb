//! A short run of the fuzz target's assertions, over random mutations of its seeds.

#[path = "support/accept_encoding.rs"]
mod accept_encoding;

use weir_testing::Random;

/// Mutations per value.
const ROUNDS: usize = 500;

const PIECES: [&[u8]; 18] = [
    b",",
    b";",
    b"q=",
    b"0",
    b"1",
    b".",
    b"0.5",
    b" ",
    b"\t",
    b"*",
    b"gzip",
    b"x-gzip",
    b"br",
    b"zstd",
    b"identity",
    b";q=0",
    b"\"",
    b"\xff",
];

#[test]
fn accept_encoding_holds_over_mutations() {
    let mut random = Random::new(1);
    for field in accept_encoding::FIELDS {
        accept_encoding::check(field);
        for _ in 0..ROUNDS {
            let mut mutant = field.to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(mutant.len() + 1);
                let end = mutant.len().min(at + random.below(4));
                let piece = PIECES[random.below(PIECES.len())];
                drop(mutant.splice(at..end, piece.iter().copied()));
            }
            accept_encoding::check(&mutant);
        }
    }
}
