//! Text replacement gives the same result for every division of a body into pieces.

#[path = "support/body_edit.rs"]
mod support;

use weir_testing::Random;

const ROUNDS: usize = 10_000;

#[test]
fn a_body_in_pieces_becomes_what_it_becomes_as_a_whole() {
    let mut random = Random::new(3);
    for _ in 0..ROUNDS {
        let length = random.below(120);
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        support::check(&bytes);
    }
}
