//! Encoded bodies decode to the original, with any slices and flushes; and flushed data is
//! available at once.

mod support;

use support::random_case;
use weir_compression::{Coding, Encoder, Flush, Level, Pool};
use weir_testing::{Random, bodies, decode};

#[test]
fn random_bodies_slices_and_flushes() {
    let mut pool = Pool::default();
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let case = random_case(&mut random, &mut pool, 150_000);
        let about =
            format!("seed {seed}: {:?} {:?}, {} bytes", case.coding, case.level, case.body.len());
        let (decoded, is_whole) = decode(case.coding.name(), &case.encoded);
        assert!(is_whole && decoded == case.body, "{about}");
        for (taken, given) in case.flushed.iter().rev().take(3) {
            let (decoded, is_whole) = decode(case.coding.name(), &case.encoded[..*given]);
            assert!(!is_whole && decoded == case.body[..*taken], "{about}, flushed at {taken}");
        }
    }
}

#[test]
fn every_coding_and_level_with_every_kind_of_body() {
    let mut random = Random::new(1);
    let bodies = [
        Vec::new(),
        vec![b'x'],
        vec![0; 300_000],
        bodies::html(1, 200_000),
        bodies::rows(1, 70_000),
        bodies::noise(&mut random, 150_000),
    ];
    let mut pool = Pool::default();
    for coding in Coding::ALL {
        for level in Level::all() {
            for body in &bodies {
                let mut out = Vec::new();
                let mut encoder = pool.take(coding, level).unwrap();
                for slice in body.chunks(16_384) {
                    encoder.encode(slice, Flush::None, &mut out).unwrap();
                }
                encoder.encode(&[], Flush::Finish, &mut out).unwrap();
                pool.give(encoder);
                let about = format!("{coding:?} {level:?} {} bytes", body.len());
                assert!(decode(coding.name(), &out) == (body.clone(), true), "{about}");
                // Incompressible data grows only slightly.
                let most = body.len() + body.len() / 1_000 + 64;
                assert!(out.len() <= most, "{about}: {}", out.len());
            }
        }
    }
}

/// An event stream: each event can be decoded once it has been sent, and is hardly larger than an uncompressed one.
#[test]
fn events_are_there_when_they_are_flushed() {
    for coding in Coding::ALL {
        for level in Level::all() {
            let mut encoder = Encoder::new(coding, level).unwrap();
            let (mut events, mut out) = (Vec::new(), Vec::new());
            for number in 0..40 {
                let event =
                    format!("id: {number}\nevent: price\ndata: {{\"price\": {number}.25}}\n\n");
                events.extend_from_slice(event.as_bytes());
                encoder.encode(event.as_bytes(), Flush::Sync, &mut out).unwrap();
                assert_eq!(
                    decode(coding.name(), &out),
                    (events.clone(), false),
                    "{coding:?} {level:?}"
                );
            }
            let growth = if coding == Coding::Brotli { events.len() / 4 } else { 0 };
            assert!(out.len() < events.len() + growth, "{coding:?} {level:?}: {}", out.len());
        }
    }
}

/// Higher levels do not enlarge a page by more than two or three percent.
#[test]
fn levels_are_in_order() {
    let page = bodies::html(7, 128 * 1024);
    let mut pool = Pool::default();
    for coding in Coding::ALL {
        let mut before = usize::MAX;
        for level in Level::all() {
            let mut encoder = pool.take(coding, level).unwrap();
            let mut out = Vec::new();
            encoder.encode(&page, Flush::Finish, &mut out).unwrap();
            assert!(
                out.len() <= before.saturating_add(before / 40),
                "{coding:?} {level:?}: {} after {before}",
                out.len()
            );
            before = out.len();
            pool.give(encoder);
        }
    }
}

/// The fast class at all limits of its blocks and its window, with two decoders.
#[test]
fn the_fast_class_at_its_edges() {
    let mut random = Random::new(9);
    let noise = bodies::noise(&mut random, 40_000);
    let mut far = noise.clone();
    // Repeated data at the distance of a window, and at one byte less.
    far.extend_from_within(40_000 - 32_768..);
    far.extend_from_within(40_000 - 32_767..40_000);
    let mut mixed = bodies::html(2, 40_000);
    mixed.extend_from_slice(&noise);
    mixed.extend(bodies::rows(2, 80_000));
    // Frequencies that give the longest codes.
    let skewed: Vec<u8> =
        (0..65_536_u32).map(|_| random.next().leading_zeros().min(40) as u8 * 6).collect();
    let mut encoder = Encoder::new(Coding::Gzip, Level::MIN).unwrap();
    for body in [far, mixed, skewed, vec![0; 258 * 300], b"abcdefgh".repeat(20_000)] {
        for slice_bytes in [1_000, 32_767, 32_768, 32_769, 65_536, body.len()] {
            for flush in [Flush::None, Flush::Sync] {
                encoder.reset().unwrap();
                let mut out = Vec::new();
                for slice in body.chunks(slice_bytes) {
                    encoder.encode(slice, flush, &mut out).unwrap();
                }
                encoder.encode(&[], Flush::Finish, &mut out).unwrap();
                let about = format!("{} bytes in {slice_bytes}, {flush:?}", body.len());
                assert!(decode("gzip", &out) == (body.clone(), true), "{about}");
                let mut inflated = vec![0; body.len()];
                let found = libdeflater::Decompressor::new().gzip_decompress(&out, &mut inflated);
                assert!(found == Ok(body.len()) && inflated == body, "{about}: {found:?}");
            }
        }
    }
}
