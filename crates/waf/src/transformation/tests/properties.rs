//! Properties of all transformations, tested with random inputs from a seed.

use weir_testing::Random;

use super::super::Transformation;
use super::reference::reference;
use super::transformed;

const SEEDS: u64 = 4_000;

/// Sequences that transformations decode or remove, complete and truncated.
const PIECES: [&[u8]; 60] = [
    b"%",
    b"%u",
    b"%U",
    b"%41",
    b"%4",
    b"%uff1c",
    b"%u02bc",
    b"%u004",
    b"+",
    b"&",
    b"&#",
    b"&#x",
    b"&#x3c",
    b"&#0000000000000000000000060",
    b"&#99999",
    b"&lt",
    b"&QUOT;",
    b"&colon;",
    b";",
    b"\\",
    b"\\\\",
    b"\\u0041",
    b"\\uFF1c",
    b"\\u00",
    b"\\x41",
    b"\\x4",
    b"\\101",
    b"\\400",
    b"\\n",
    b"\\00ff1c ",
    b"\\61 ",
    b"\\\n",
    b"/*",
    b"*/",
    b"/",
    b"*",
    b"-",
    b"--",
    b"<!--",
    b"-->",
    b"#",
    b"/../",
    b"..",
    b"/./",
    b".",
    b" ",
    b"  ",
    b"\t",
    b"\r\n",
    b"\0",
    b"\xa0",
    b"\xc2\xa0",
    b"\xc2",
    b"\xe3\x80\x80",
    b"\xc3\xa0",
    b"0x",
    b"0x4142",
    b"ABC",
    b"'\"^",
    b"(,",
];

/// Bytes and pieces of escapes in any order, often longer than a block of a fast scan.
fn hostile(random: &mut Random) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..random.below(40) {
        match random.below(10) {
            0 => input.push(random.next() as u8),
            1..=3 => input.push(b"0123456789abcdefxyz;"[random.below(20)]),
            4 => input.extend_from_slice(&b"abcdefghijklmnopqrst"[..random.below(20)]),
            _ => input.extend_from_slice(PIECES[random.below(PIECES.len())]),
        }
    }
    input
}

/// Text that transformations change in few positions, which a fast scan must not miss.
fn nearly_plain(random: &mut Random) -> Vec<u8> {
    let mut input: Vec<u8> = (0..random.below(70)).map(|_| b'a' + random.below(26) as u8).collect();
    for _ in 0..random.below(3) {
        let at = random.below(input.len() + 1);
        let piece = PIECES[random.below(PIECES.len())];
        input.splice(at..at, piece.iter().copied());
    }
    input
}

/// Whether a transformation reports a change even if the result equals the input.
fn always_writes(transformation: Transformation) -> bool {
    matches!(
        transformation,
        Transformation::Base64Decode
            | Transformation::Base64DecodeExt
            | Transformation::HexDecode
            | Transformation::Length
            | Transformation::Md5
            | Transformation::Sha1
    )
}

fn is_idempotent(transformation: Transformation, input: &[u8]) -> bool {
    match transformation {
        Transformation::CmdLine
        | Transformation::CompressWhitespace
        | Transformation::Lowercase
        | Transformation::NormalizePath
        | Transformation::NormalizePathWin
        | Transformation::RemoveNulls
        | Transformation::ReplaceNulls
        | Transformation::Trim
        | Transformation::TrimLeft
        | Transformation::TrimRight
        | Transformation::Uppercase => true,
        Transformation::RemoveWhitespace => std::str::from_utf8(input).is_ok(),
        _ => false,
    }
}

fn check_properties(input: &[u8]) {
    for transformation in Transformation::all() {
        let what = || format!("{} of «{}»", transformation.name(), input.escape_ascii());
        let (changed, output) = transformed(transformation, input);
        assert!(output.len() <= transformation.output_len_max(input.len()), "{}: too long", what());
        if !always_writes(transformation) {
            assert_eq!(changed, output != input, "{}: whether it changes", what());
        }
        if let Some(expected) = reference(transformation, input) {
            assert_eq!(
                output.escape_ascii().to_string(),
                expected.escape_ascii().to_string(),
                "{}",
                what()
            );
        }
        if is_idempotent(transformation, input) {
            assert!(!transformed(transformation, &output).0, "{}: twice is more", what());
        }
    }
}

#[test]
fn hostile_inputs() {
    for seed in 0..SEEDS {
        check_properties(&hostile(&mut Random::new(seed)));
    }
}

#[test]
fn plain_inputs() {
    for seed in 0..SEEDS {
        check_properties(&nearly_plain(&mut Random::new(seed)));
    }
}

#[test]
fn the_inputs_change_at_times() {
    let mut changes = [0; Transformation::COUNT];
    for seed in 0..SEEDS {
        let input = nearly_plain(&mut Random::new(seed));
        for transformation in Transformation::all() {
            changes[transformation as usize] += u64::from(transformed(transformation, &input).0);
        }
    }
    for transformation in Transformation::all().filter(|&one| !always_writes(one)) {
        assert!(changes[transformation as usize] > 0, "{} never changed", transformation.name());
    }
}

/// A quadratic transformation would take minutes in this test.
#[test]
fn long_runs_take_linear_time() {
    const LEN: usize = 1 << 16;
    for piece in PIECES {
        let input: Vec<u8> = piece.iter().copied().cycle().take(LEN).collect();
        for transformation in Transformation::all() {
            let (_, output) = transformed(transformation, &input);
            assert!(
                output.len() <= transformation.output_len_max(LEN),
                "{}",
                transformation.name()
            );
        }
    }
}

#[test]
fn encodings_return() {
    for seed in 0..SEEDS {
        let input = hostile(&mut Random::new(seed));
        for (encode, decode) in [
            (Transformation::Base64Encode, Transformation::Base64Decode),
            (Transformation::Base64Encode, Transformation::Base64DecodeExt),
            (Transformation::HexEncode, Transformation::HexDecode),
            (Transformation::UrlEncode, Transformation::UrlDecode),
            (Transformation::UrlEncode, Transformation::UrlDecodeUni),
        ] {
            let (_, encoded) = transformed(encode, &input);
            assert_eq!(transformed(decode, &encoded).1, input, "{} seed {seed}", encode.name());
        }
    }
}
