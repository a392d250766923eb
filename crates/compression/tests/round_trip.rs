//! What was encoded is decoded to the same, whatever the slices and flushes; and what was flushed is there.

mod support;

use support::bodies::{self, Random};
use support::{decode::decode, random_case};
use weir_compression::{Coding, Encoder, Flush, Level, Pool};

#[test]
fn random_bodies_slices_and_flushes() {
    let mut pool = Pool::default();
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let case = random_case(&mut random, &mut pool, 150_000);
        let about =
            format!("seed {seed}: {:?} {:?}, {} bytes", case.coding, case.level, case.body.len());
        let (decoded, is_whole) = decode(case.coding, &case.encoded);
        assert!(is_whole && decoded == case.body, "{about}");
        for (taken, given) in case.flushed.iter().rev().take(3) {
            let (decoded, is_whole) = decode(case.coding, &case.encoded[..*given]);
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
                assert!(decode(coding, &out) == (body.clone(), true), "{about}");
                // What does not shrink hardly grows; only gzip's fast class cannot leave it as it is.
                let is_fast_gzip = coding == Coding::Gzip && level == Level::MIN;
                let growth = body.len() / if is_fast_gzip { 16 } else { 1_000 };
                assert!(out.len() <= body.len() + growth + 64, "{about}: {}", out.len());
            }
        }
    }
}

/// An event stream: each event can be read when it has been sent, and costs hardly more than uncompressed ones.
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
                assert_eq!(decode(coding, &out), (events.clone(), false), "{coding:?} {level:?}");
            }
            let growth = if coding == Coding::Brotli { events.len() / 4 } else { 0 };
            assert!(out.len() < events.len() + growth, "{coding:?} {level:?}: {}", out.len());
        }
    }
}

/// Higher levels do not make more of a page, but for two or three percent.
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
