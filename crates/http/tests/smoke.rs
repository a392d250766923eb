//! A short run of the fuzz targets' checks, with random mutations of the conformance cases.

mod cases;
mod invariants;

use weir_http::message::Method;

/// The number of mutations per case.
const ROUNDS: u32 = 12;

/// Maximum size of a case. Longer ones are tested only by the fuzzer.
const SIZE_MAX: usize = 1024;

/// The generator xorshift64*, which suffices for mutations and is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Bytes and words with a meaning in the grammars.
const PIECES: [&[u8]; 24] = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"\0",
    b"\x7f",
    b"\xff",
    b"%",
    b"%2e",
    b"..",
    b"/",
    b"?",
    b"0",
    b"Connection: ",
    b"close",
    b"chunked",
    b"Content-Length: 1\r\n",
    b"\"",
    b"\\",
];

fn mutate(random: &mut Random, input: &[u8]) -> Vec<u8> {
    let mut mutant = input.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(mutant.len() + 1);
        let piece = PIECES[random.below(PIECES.len())];
        match random.below(5) {
            0 => drop(mutant.splice(at..at, piece.iter().copied())),
            1 if at < mutant.len() => drop(mutant.remove(at)),
            2 if at < mutant.len() => mutant[at] = random.below(256) as u8,
            3 if at < mutant.len() => drop(mutant.splice(at..=at, piece.iter().copied())),
            _ => {
                let end = at + random.below((mutant.len() - at).min(20) + 1);
                let copied = mutant[at..end].to_vec();
                drop(mutant.splice(end..end, copied));
            }
        }
    }
    mutant
}

fn for_mutants(seed: u64, inputs: impl Iterator<Item = Vec<u8>>, mut check: impl FnMut(&[u8])) {
    let mut random = Random(seed);
    for input in inputs.filter(|input| input.len() <= SIZE_MAX) {
        for _ in 0..ROUNDS {
            let mutant = mutate(&mut random, &input);
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mutant)));
            assert!(caught.is_ok(), "seed {seed}: {}", mutant.escape_ascii());
        }
    }
}

#[test]
fn mutated_requests() {
    for_mutants(
        1,
        cases::requests().into_iter().map(|case| case.received),
        invariants::request::check,
    );
}

#[test]
fn mutated_responses() {
    for_mutants(2, cases::received_responses(), |input| {
        invariants::response::check(input, Method::Get);
        invariants::response::check(input, Method::Head);
    });
}

#[test]
fn mutated_bodies() {
    for_mutants(3, cases::received_bodies(), |input| {
        invariants::body::check_chunked(input);
        invariants::body::check_trailers(input);
    });
}

/// Repeats short cases, because there are few of them.
fn often(cases: impl Fn() -> Vec<Vec<u8>>) -> impl Iterator<Item = Vec<u8>> {
    (0..ROUNDS).flat_map(move |_| cases())
}

#[test]
fn mutated_cookies() {
    let fields = || cases::cookies::FIELDS.map(<[u8]>::to_vec).to_vec();
    for_mutants(4, often(fields), invariants::cookies::check);
}

#[test]
fn mutated_forwarded_fields() {
    let fields = || cases::forwarded::FIELDS.map(<[u8]>::to_vec).to_vec();
    for_mutants(5, often(fields), invariants::forwarded::check);
}

#[test]
fn mutated_trace_contexts() {
    let value = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_vec();
    let values = || vec![value.clone(), [&b"cc"[..], &value[2..], b"-more"].concat()];
    for_mutants(10, often(values), invariants::trace_context::check);
}

#[test]
fn mutated_proxy_headers() {
    for_mutants(6, often(cases::proxy_protocol::headers), invariants::proxy_protocol::check);
}

#[test]
fn mutated_header_blocks() {
    for_mutants(7, cases::h2_messages::blocks(), invariants::h2::check_blocks);
}

#[test]
fn mutated_connections() {
    for_mutants(8, cases::h2::connections(), invariants::h2::check_connection);
}

/// The number of random paths. Each is checked in every form.
const PATHS: u32 = 60_000;

#[test]
fn what_decisions_read_is_what_members_resolve() {
    for path in invariants::resolvers::SPELLINGS {
        invariants::paths::check_spelling(path);
    }
    let mut random = Random(9);
    for _ in 0..PATHS {
        let choices: Vec<u8> = (0..=random.below(9)).map(|_| random.below(256) as u8).collect();
        let path = invariants::resolvers::assemble(&choices);
        let caught = std::panic::catch_unwind(|| invariants::paths::check_spelling(&path));
        assert!(caught.is_ok(), "{path}");
    }
}
