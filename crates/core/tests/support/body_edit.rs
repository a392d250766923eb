//! Invariants of text replacement in bodies, in any pieces.

use std::sync::Arc;

use weir_core::body_edit::{BodyEdit, EditKind, PatternEdit, Rewriter, Searchers, StringEdit};
use weir_http::media_types::MediaTypes;

/// Expressions with their replacements.
const PATTERNS: [(&str, &str); 12] = [
    ("ab", "[$0]"),
    ("a[^b]*b", "<$0>"),
    ("(a)(b)?(c)?", "$3$2$1."),
    ("abcabc|ca", "x"),
    ("a.*b", "-"),
    ("(?s)a.*?c", "$0$0"),
    ("[ab]{3,}", ""),
    ("c+|a+b", "+"),
    ("(?:ab)+c", "Q"),
    ("b.{5}c", "5"),
    ("a.{9}|b", "nine"),
    ("(?-u:\\xff)(a|b)", "$1"),
];

const STRINGS: [&[(&[u8], &[u8])]; 7] = [
    &[(b"ab", b"")],
    &[(b"abcabc", b"long"), (b"ca", b"short")],
    &[(b"a", b"aa"), (b"aa", b"b"), (b"aab", b"c")],
    &[(b"abc", b"1"), (b"abcb", b"2"), (b"bca", b"3"), (b"c", b"")],
    &[(b"aaaaaaab", b"x"), (b"aaaa", b"yy")],
    &[(b"\xffa", b"\n"), (b"\xff\xff", b"")],
    &[(b"cabcabcabcab", b"?"), (b"abcabcabc", b"!")],
];

/// Maximum bytes of a match, and of a body.
const LIMITS: [(usize, u64); 5] = [(1, 1 << 20), (4, 1 << 20), (7, 23), (64, 1 << 20), (1024, 9)];

/// The edit, and the description from which the simple way computes it.
struct Case {
    edit: Arc<BodyEdit>,
    plain: Plain,
    match_bytes_max: usize,
    name: String,
}

enum Plain {
    Strings(&'static [(&'static [u8], &'static [u8])]),
    Pattern(regex::bytes::Regex, String),
}

impl Case {
    fn new(what: EditKind, plain: Plain, (match_bytes_max, size_bytes_max): (usize, u64)) -> Self {
        let name = match &plain {
            Plain::Strings(strings) => format!("{strings:?}"),
            Plain::Pattern(regex, to) => format!("{regex} {to}"),
        };
        let name = format!("{name}, matches of {match_bytes_max}, bodies of {size_bytes_max}");
        let types = MediaTypes::parse(["*/*"]).expect("a pattern");
        let edit = Arc::new(BodyEdit { what, types, size_bytes_max });
        Self { edit, plain, match_bytes_max, name }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for limits in LIMITS {
        for (regex, to) in PATTERNS {
            let pattern = PatternEdit::new(regex, to, limits.0).expect("a good pattern");
            let anchored = format!("^(?:{regex})");
            let anchored = regex::bytes::RegexBuilder::new(&anchored).unicode(false).build();
            let to = to.replace("$3$2$1.", "${3}${2}${1}.");
            let plain = Plain::Pattern(anchored.expect("a pattern"), to);
            cases.push(Case::new(EditKind::Pattern(Box::new(pattern)), plain, limits));
        }
        for strings in STRINGS {
            let what = EditKind::Strings(StringEdit::new(strings).expect("good strings"));
            cases.push(Case::new(what, Plain::Strings(strings), limits));
        }
    }
    cases
}

thread_local! {
    static CASES: Vec<Case> = cases();
}

/// Takes a byte of `bytes`, as a number below `max`.
fn choose(bytes: &mut &[u8], max: usize) -> usize {
    let Some((first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    usize::from(*first) % max
}

/// A text of few letters, so that many of its parts are prefixes of a match.
pub fn letters(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| b"aaabbbccc \n\xff"[usize::from(*byte) % 12]).collect()
}

fn in_pieces(
    searchers: &mut Searchers,
    case: &Case,
    mut body: &[u8],
    cuts: &[usize],
) -> (Vec<u8>, bool) {
    let held_max = match &case.plain {
        Plain::Strings(strings) => strings.iter().map(|(from, _)| from.len()).max().unwrap_or(1),
        Plain::Pattern(..) => case.match_bytes_max,
    };
    let mut rewriter = Rewriter::new(Arc::clone(&case.edit));
    let (mut joined, mut out) = (Vec::new(), Vec::new());
    for cut in cuts.iter().cycle() {
        let (piece, rest) = body.split_at((*cut).min(body.len()));
        rewriter.rewrite(piece, searchers, &mut joined, &mut out);
        assert!(rewriter.held_bytes() < held_max, "{} are held", rewriter.held_bytes());
        body = rest;
        if body.is_empty() {
            break;
        }
    }
    rewriter.finish(searchers, &mut joined, &mut out);
    assert_eq!(rewriter.held_bytes(), 0);
    (out, rewriter.is_cut())
}

/// The edited body, computed in the simplest way: place by place. `None`: not all of it is
/// rewritten.
fn plainly(case: &Case, body: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut at) = (Vec::new(), 0);
    let size_bytes_max = case.edit.size_bytes_max;
    if body.len() as u64 > size_bytes_max {
        return None;
    }
    while at < body.len() {
        let rest = &body[at..];
        let found = match &case.plain {
            Plain::Strings(strings) => {
                let fitting = strings.iter().filter(|(from, _)| rest.starts_with(from));
                let longest = fitting.max_by_key(|(from, _)| from.len());
                longest.map(|(from, to)| (from.len(), to.to_vec()))
            }
            Plain::Pattern(regex, to) => {
                let rest = &rest[..rest.len().min(case.match_bytes_max)];
                regex.captures(rest).map(|captures| {
                    let mut text = Vec::new();
                    captures.expand(to.as_bytes(), &mut text);
                    (captures.get(0).expect("a match").len(), text)
                })
            }
        };
        let Some((length, to)) = found else {
            out.push(body[at]);
            at += 1;
            continue;
        };
        out.extend_from_slice(&to);
        at += length;
        if out.len() as u64 > size_bytes_max {
            return None;
        }
    }
    Some(out)
}

/// Cut as `bytes` say, a body gives the same result as the whole, which equals that of the simple
/// way.
pub fn check(bytes: &[u8]) {
    CASES.with(|cases| {
        let mut choices = bytes;
        let case = &cases[choose(&mut choices, cases.len())];
        let cuts: Vec<usize> = (0..8).map(|_| 1 + choose(&mut choices, 24)).collect();
        let body = letters(choices);
        let told = || format!("{} of {}, cut {cuts:?}", case.name, body.escape_ascii());
        let mut searchers = Searchers::default();
        let (expected, is_cut) = in_pieces(&mut searchers, case, &body, &[usize::MAX]);
        for cuts in [&cuts[..], &[1]] {
            let (found, is_found_cut) = in_pieces(&mut searchers, case, &body, cuts);
            let found = (found.escape_ascii().to_string(), is_found_cut);
            assert_eq!(found, (expected.escape_ascii().to_string(), is_cut), "{}", told());
        }
        match plainly(case, &body) {
            Some(plain) => {
                let plain = (plain.escape_ascii().to_string(), false);
                assert_eq!((expected.escape_ascii().to_string(), is_cut), plain, "{}", told());
            }
            None => assert!(is_cut, "{}", told()),
        }
    });
}
