//! Randomly changed datagrams keep the invariants of their readers.

mod invariants;

use weir_testing::Random;

const ROUNDS: usize = 20_000;

fn smoke(seeds: &[&[u8]], check: fn(&[u8])) {
    let mut random = Random::new(17);
    for round in 0..ROUNDS {
        let mut datagram = seeds[round % seeds.len()].to_vec();
        if round >= seeds.len() {
            for _ in 0..=random.below(4) {
                change(&mut datagram, &mut random);
            }
        }
        check(&datagram);
    }
}

/// Changes, removes or doubles one byte, or cuts off everything after it.
fn change(datagram: &mut Vec<u8>, random: &mut Random) {
    if datagram.is_empty() {
        return;
    }
    let at = random.below(datagram.len());
    match random.below(5) {
        0 => datagram[at] = random.below(256) as u8,
        1 => drop(datagram.remove(at)),
        2 => datagram.insert(at, datagram[at]),
        3 => datagram.truncate(at),
        _ => datagram[at] = b"\r\n: \x00\xff\x02"[random.below(7)],
    }
}

#[test]
fn quic_headers() {
    smoke(&invariants::QUIC, invariants::quic);
}

#[test]
fn sip_headers() {
    smoke(&invariants::SIP, invariants::sip);
}

#[test]
fn radius_attributes() {
    smoke(&invariants::RADIUS, invariants::radius);
}
