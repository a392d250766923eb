//! Bodies in every coding, split anywhere, and invalid bodies.

use weir_testing::encode;

use super::InflateProblem as Problem;
use super::*;

const EVERY: [(&str, Coding); 5] = [
    ("gzip", Coding::Gzip),
    ("deflate", Coding::Deflate),
    ("raw-deflate", Coding::Deflate),
    ("br", Coding::Brotli),
    ("zstd", Coding::Zstd),
];

const PLENTY: u64 = 64 << 20;

/// The output of an inflater for a body in pieces of this length.
fn inflated(
    codings: &[Coding],
    body: &[u8],
    piece_bytes: usize,
    bytes_max: u64,
) -> (Vec<u8>, Result<(), Problem>) {
    let (mut inflater, mut out) = (Inflater::new(codings, bytes_max), Vec::new());
    let mut to = |bytes: &[u8]| out.extend_from_slice(bytes);
    let fed = body.chunks(piece_bytes).try_for_each(|piece| inflater.feed(piece, &mut to));
    let result = fed.and_then(|()| inflater.finish(&mut to));
    (out, result)
}

/// Text that compresses to about a tenth.
fn text(bytes: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|number| format!("line {number} of {}\n", number % 7).into_bytes());
    lines.take(bytes).collect()
}

#[test]
fn fields_name_codings() {
    use Coding::*;
    for (value, expected) in [
        ("gzip", Ok(vec![Gzip])),
        ("X-GZIP", Ok(vec![Gzip])),
        ("deflate , br", Ok(vec![Deflate, Brotli])),
        ("gzip,gzip,zstd", Ok(vec![Gzip, Gzip, Zstd])),
        ("identity", Ok(vec![])),
        ("", Ok(vec![])),
        (" , identity,, gzip,", Ok(vec![Gzip])),
        ("gzip, gzip, gzip, gzip", Err(Problem::TooManyCodings)),
        ("compress", Err(Problem::Unknown)),
        ("gzip;q=1", Err(Problem::Unknown)),
        ("gzip br", Err(Problem::Unknown)),
        ("\"gzip\"", Err(Problem::Unknown)),
        ("aws-chunked", Ok(vec![AwsChunked])),
        ("gzip, snappy", Err(Problem::Unknown)),
    ] {
        assert_eq!(codings(value.as_bytes()), expected, "{value}");
    }
}

#[test]
fn bodies_are_inflated_however_they_are_cut() {
    for (name, coding) in EVERY {
        for plain in [&b""[..], b"a", b"a=b&c=d", &text(100_000)] {
            let body = encode(name, plain);
            for piece_bytes in [1, 2, 7, 1_000, usize::MAX] {
                let (out, result) = inflated(&[coding], &body, piece_bytes, PLENTY);
                assert_eq!(result, Ok(()), "{name}: {} bytes", plain.len());
                assert_eq!(out, plain, "{name}: {} bytes", plain.len());
            }
        }
    }
}

#[test]
fn codings_stand_one_within_the_other() {
    let plain = text(20_000);
    for (outer, of_outer) in EVERY {
        for (inner, of_inner) in EVERY {
            let body = encode(outer, &encode(inner, &encode("br", &plain)));
            let codings = [Coding::Brotli, of_inner, of_outer];
            let (out, result) = inflated(&codings, &body, 100, PLENTY);
            assert_eq!((out.len(), result), (plain.len(), Ok(())), "{inner} in {outer}");
            let cut = encode(outer, &encode(inner, &plain)[..100]);
            let (_, result) = inflated(&codings[1..], &cut, usize::MAX, PLENTY);
            assert_eq!(result, Err(Problem::Truncated), "{inner} in {outer}");
        }
    }
    assert_eq!(inflated(&[Coding::Gzip, Coding::Brotli], b"", 1, PLENTY), (Vec::new(), Ok(())));
}

#[test]
fn a_body_ends_where_its_coding_says() {
    for (name, coding) in EVERY {
        let body = encode(name, &text(5_000));
        for end in [1, 2, 4, 6, body.len() / 2, body.len() - 1] {
            let (_, result) = inflated(&[coding], &body[..end], 100, PLENTY);
            assert_eq!(result, Err(Problem::Truncated), "{name}: {end} of {}", body.len());
        }
        // Servers disagree here: some stop, others continue.
        let twice = [&body[..], &body].concat();
        let padded = [&body[..], b"\0"].concat();
        for longer in [twice, padded] {
            for piece_bytes in [1, body.len(), usize::MAX] {
                let (_, result) = inflated(&[coding], &longer, piece_bytes, PLENTY);
                assert_eq!(result, Err(Problem::Trailing), "{name}");
            }
        }
    }
}

#[test]
fn what_is_not_encoded_is_told() {
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd, Coding::Brotli] {
        for body in
            [&b"a=harmless&b=attack"[..], b"{\"a\":1}", b"<a/>", b"\xff\xff\xff\xff\xff\xff"]
        {
            let (_, result) = inflated(&[coding], body, usize::MAX, PLENTY);
            assert!(result.is_err(), "{coding:?}: {}", body.escape_ascii());
        }
    }
    for name in ["gzip", "deflate", "zstd"] {
        let coding = EVERY.iter().find(|(known, _)| *known == name).expect("a coding").1;
        let mut body = encode(name, &text(5_000));
        let checked = body.len() - 5;
        body[checked] ^= 1;
        let (_, result) = inflated(&[coding], &body, 100, PLENTY);
        assert!(result.is_err() || name == "zstd", "{name}: its checksum is wrong");
    }
    // A dictionary that only the sender and the application know.
    let (_, result) =
        inflated(&[Coding::Deflate], b"\x78\xbb\0\0\0\x01\x03\0\0\0\0\x01", 1, PLENTY);
    assert_eq!(result, Err(Problem::Malformed));
}

#[test]
fn bombs_end_early() {
    let bomb = vec![0; 8 << 20];
    for (name, coding) in EVERY {
        let body = encode(name, &bomb);
        let (out, result) = inflated(&[coding], &body, 100, PLENTY);
        assert_eq!(result, Err(Problem::Bomb), "{name}");
        assert!(out.len() <= 512 << 10, "{name}: {}", out.len());
        let (out, result) = inflated(&[coding], &body, 100, 10_000);
        assert_eq!(result, Err(Problem::TooLong), "{name}");
        assert!(out.len() <= 10_000, "{name}: {}", out.len());
        let twice = encode("gzip", &body);
        let (out, result) = inflated(&[coding, Coding::Gzip], &twice, 100, PLENTY);
        assert_eq!(result, Err(Problem::Bomb), "{name}");
        assert!(out.len() <= 512 << 10, "{name}: {}", out.len());
    }
    // The limit also applies to the intermediate length.
    let hollow = encode("gzip", &encode("br", &encode("gzip", &bomb)));
    let codings = [Coding::Gzip, Coding::Brotli, Coding::Gzip];
    assert_eq!(inflated(&codings, &hollow, 100, PLENTY).1, Err(Problem::Bomb));
    // Short bodies may have any ratio.
    let (out, result) = inflated(&[Coding::Gzip], &encode("gzip", &[b'a'; 60_000]), 10, PLENTY);
    assert_eq!((out.len(), result), (60_000, Ok(())));
}

#[test]
fn windows_are_bounded() {
    // Zstd frames with windows of 16 MiB and of 8 MiB. Each contains one empty last block.
    for (window_log, expected) in [(24_u8, Err(Problem::Malformed)), (23, Ok(()))] {
        let body = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (window_log - 10) << 3, 0x01, 0, 0];
        assert_eq!(inflated(&[Coding::Zstd], &body, 1, PLENTY).1, expected, "{window_log}");
    }
    // RFC 7932 does not define this window.
    assert_eq!(
        inflated(&[Coding::Brotli], &[0x11, 0x1e, 0x03], 1, PLENTY).1,
        Err(Problem::Malformed)
    );
}

#[test]
fn memory_is_told() {
    let (mut inflater, mut sum) = (Inflater::new(&[Coding::Brotli], PLENTY), 0);
    let before = inflater.memory_bytes();
    let body = encode("br", &text(200_000));
    inflater.feed(&body, &mut |bytes| sum += bytes.len()).expect("a body");
    assert!(inflater.memory_bytes() >= before + 200_000);
    assert_eq!((sum, inflater.work_bytes()), (200_000, body.len() as u64));
}
