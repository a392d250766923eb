//! Inputs that need much time: parts of the rules' patterns and of texts that transformations search for, repeated, nested
//! and mixed.

use weir_testing::Random;

use super::cases::{Case, get, post};

/// Texts that are expensive for transformations, tokenizers and parsers.
const PIECES: [&str; 60] = [
    "'",
    "\"",
    "`",
    "''",
    "\\'",
    "\\",
    "\\\\",
    "/*",
    "*/",
    "/**/",
    "/*!",
    "--",
    "-- ",
    "#",
    "<!--",
    "-->",
    "%",
    "%%",
    "%25",
    "%u",
    "%u0027",
    "%27",
    "%00",
    "\0",
    "&",
    "&lt;",
    "&#",
    "&#x27;",
    "&#x",
    "&#0000000",
    "<",
    ">",
    "<a ",
    "<script",
    "</",
    "<<",
    "(",
    ")",
    "((",
    "[",
    "]",
    "{",
    "}",
    "{{",
    "a",
    "aa",
    "a ",
    " ",
    "\t",
    "=",
    "1=1 ",
    "or ",
    "select ",
    "union ",
    ";",
    ",",
    "../",
    "..\\",
    "$",
    "${",
];
/// Maximum length of a piece from a pattern.
const PIECE_BYTES_MAX: usize = 40;

/// Pieces of CRS's patterns, and [`PIECES`].
pub fn pieces() -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = PIECES.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    for path in super::data::paths().unwrap_or_default() {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for pattern in text.split("@rx ").skip(1) {
            let pattern = pattern.split("\" \\\n").next().unwrap_or_default();
            pieces.extend(words(pattern));
        }
    }
    pieces
}

/// The literal words in a pattern, between brackets and repetitions.
fn words(pattern: &str) -> impl Iterator<Item = Vec<u8>> {
    let plain = pattern.replace("\\s", " ").replace("\\b", "").replace("[^", "[").replace('\\', "");
    let words: Vec<Vec<u8>> = plain
        .split(['(', ')', '|', '*', '+', '?', '[', ']', '{', '}'])
        .filter(|word| word.len() > 1)
        .map(|word| word.as_bytes()[..word.len().min(PIECE_BYTES_MAX)].to_vec())
        .collect();
    words.into_iter()
}

/// The input with this number and size.
pub fn case(number: usize, pieces: &[Vec<u8>], bytes: usize) -> Case {
    let mut random = Random::new(number as u64 + 1);
    let mut piece = || {
        // Half of the pieces are taken from `PIECES`.
        let end = if random.percent(50) { PIECES.len() } else { pieces.len() };
        pieces[random.below(end)].clone()
    };
    let (one, two, three) = (piece(), piece(), piece());
    let mut text = Vec::with_capacity(bytes + 64);
    match number % 5 {
        // One repeated piece.
        0 => repeat(&mut text, &[&one], bytes),
        // Two or three repeated pieces.
        1 => repeat(&mut text, &[&one, &two], bytes),
        2 => repeat(&mut text, &[&one, &two, &three], bytes),
        // Opening and closing brackets.
        3 => {
            repeat(&mut text, &[&one], bytes / 2);
            repeat(&mut text, &[&two], bytes);
        }
        // A random mixture.
        _ => {
            while text.len() < bytes {
                let end = if random.percent(50) { PIECES.len() } else { pieces.len() };
                text.extend_from_slice(&pieces[random.below(end)]);
            }
        }
    }
    text.truncate(bytes);
    let name = format!(
        "#{number} {:?} {:?}",
        ["one", "two", "three", "halves", "random"][number % 5],
        String::from_utf8_lossy(&text[..text.len().min(48)])
    );
    placed(number / 5, &name, &text)
}

fn repeat(text: &mut Vec<u8>, pieces: &[&[u8]], bytes: usize) {
    for piece in pieces.iter().cycle() {
        if text.len() >= bytes {
            return;
        }
        text.extend_from_slice(piece);
    }
}

/// A request that contains the text in one of several places: a plain or encoded form, JSON, a cookie, or the query.
fn placed(number: usize, name: &str, text: &[u8]) -> Case {
    let form = "application/x-www-form-urlencoded";
    let encoded = || -> Vec<u8> {
        text.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect()
    };
    match number % 6 {
        0 => post(&format!("{name} raw form"), form, [b"a=", text].concat()),
        1 => post(&format!("{name} form"), form, [b"a=".to_vec(), encoded()].concat()),
        2 => post(&format!("{name} name in a form"), form, [encoded(), b"=a".to_vec()].concat()),
        3 => {
            let quoted: Vec<u8> =
                text.iter().flat_map(|byte| format!("\\u{byte:04x}").into_bytes()).collect();
            post(
                &format!("{name} JSON"),
                "application/json",
                [b"{\"a\":\"", &quoted[..], b"\"}"].concat(),
            )
        }
        4 => get(&format!("{name} query"), &[b"/search?q=".to_vec(), encoded()].concat()),
        _ => {
            let mut case = get(&format!("{name} cookie"), b"/search");
            case.headers.push((b"Cookie".to_vec(), [b"c=", text].concat()));
            case
        }
    }
}
