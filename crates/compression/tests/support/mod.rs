//! Helpers of the tests.

#![allow(dead_code, reason = "not every test needs every part")]

use weir_compression::{Coding, Encoder, Flush, Level, Pool};
use weir_testing::{Random, bodies};

/// A body, its encoding, and the result.
pub struct Case {
    pub coding: Coding,
    pub level: Level,
    pub body: Vec<u8>,
    pub encoded: Vec<u8>,
    /// Positions of sync flushes: in the body and in the output.
    pub flushed: Vec<(usize, usize)>,
}

/// Encodes a random body in random slices with random flushes, with an encoder that may have been used before; or
/// as a whole.
pub fn random_case(random: &mut Random, pool: &mut Pool, bytes_max: usize) -> Case {
    let coding = Coding::ALL[random.below(Coding::COUNT)];
    let level = Level::new(1 + random.below(Level::COUNT) as u8).expect("1 to 9");
    let body = bodies::body(random, bytes_max);
    let mut case = Case { coding, level, body, encoded: Vec::new(), flushed: Vec::new() };
    if random.below(4) == 0 {
        pool.encode_whole(coding, level, &case.body, &mut case.encoded).expect("memory");
        return case;
    }
    let mut encoder = pool.take(coding, level).expect("memory");
    encode_slices(random, &mut encoder, &mut case);
    pool.give(encoder);
    case
}

fn encode_slices(random: &mut Random, encoder: &mut Encoder, case: &mut Case) {
    let slice_bytes_max = [1, 100, 5_000, 70_000][random.below(4)].max(case.body.len() / 200);
    let flush_percent = [0, 5, 50, 100][random.below(4)];
    let mut taken = 0;
    while taken < case.body.len() {
        let end = case.body.len().min(taken + random.below(slice_bytes_max + 1));
        let is_flush = random.below(100) < flush_percent;
        let flush = if is_flush { Flush::Sync } else { Flush::None };
        encoder.encode(&case.body[taken..end], flush, &mut case.encoded).expect("it goes on");
        taken = end;
        if is_flush {
            case.flushed.push((taken, case.encoded.len()));
        }
        if random.below(10) == 0 {
            encoder.encode(&[], flush, &mut case.encoded).expect("it goes on");
        }
    }
    encoder.encode(&[], Flush::Finish, &mut case.encoded).expect("it ends");
}
