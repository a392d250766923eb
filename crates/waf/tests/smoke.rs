//! Runs the checks of the fuzz targets on their seeds, and on seeds with a few bytes changed.

#[path = "invariants/mod.rs"]
mod invariants;

use invariants::{bodies, content, encoded, nested, requests, rules, seeds, texts};
use weir_testing::Random;
use weir_waf::body::Processor;

/// Number of variants of each seed.
const VARIANTS: u64 = 40;

/// The seeds and their variants.
fn inputs<'a>(seeds: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for seed in seeds {
        inputs.push(seed.to_vec());
        inputs.extend((0..VARIANTS).map(|number| mutated(&mut Random::new(number), seed)));
    }
    inputs
}

fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(4) {
            0 if at < input.len() => input[at] = random.below(256) as u8,
            1 if at < input.len() => drop(input.remove(at)),
            2 => input.truncate(at),
            _ => {
                let end = at + random.below(input.len() - at + 1).min(12);
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
        }
    }
    input
}

#[test]
fn rule_files() {
    for input in inputs(seeds::RULES.map(str::as_bytes)) {
        rules::check(&String::from_utf8_lossy(&input));
    }
}

#[test]
fn transformations_and_detectors() {
    for input in inputs(seeds::TEXTS) {
        texts::check_transformations(&input);
        texts::check_injection(&input);
    }
}

#[test]
fn bodies_cut_anywhere() {
    inputs(seeds::MULTIPART).iter().for_each(|input| bodies::check_multipart(input));
    for (processor, seeds) in [(Processor::Json, seeds::JSON), (Processor::Xml, seeds::XML)] {
        inputs(seeds).iter().for_each(|input| bodies::check_input(processor, b"", input));
    }
}

#[test]
fn what_bodies_are() {
    inputs(seeds::CONTENT).iter().for_each(|input| content::check(input));
}

#[test]
fn encoded_bodies_cut_anywhere() {
    let seeds = seeds::encoded();
    inputs(seeds.iter().map(Vec::as_slice)).iter().for_each(|input| encoded::check(input));
}

#[test]
fn values_within_values() {
    inputs(seeds::NESTED).iter().for_each(|input| nested::check(input));
}

#[test]
fn requests_through_the_fixed_rules() {
    inputs(seeds::REQUESTS).iter().for_each(|input| requests::check(input));
}
