use std::sync::Arc;

use weir_http::media_types::MediaTypes;

use super::strings::STEPS;
use super::*;

fn strings(strings: &[(&str, &str)]) -> Arc<BodyEdit> {
    let strings: Vec<(&[u8], &[u8])> =
        strings.iter().map(|(from, to)| (from.as_bytes(), to.as_bytes())).collect();
    edit(EditKind::Strings(StringEdit::new(&strings).unwrap()), 1 << 20)
}

fn pattern(regex: &str, to: &str, match_bytes_max: usize) -> Arc<BodyEdit> {
    let pattern = PatternEdit::new(regex, to, match_bytes_max).unwrap();
    edit(EditKind::Pattern(Box::new(pattern)), 1 << 20)
}

fn edit(what: EditKind, size_bytes_max: u64) -> Arc<BodyEdit> {
    let types = MediaTypes::parse(["*/*"]).unwrap();
    Arc::new(BodyEdit { what, types, size_bytes_max })
}

/// The output released by each piece, and by the end.
fn pieces(edit: &Arc<BodyEdit>, pieces: &[&str]) -> Vec<String> {
    let mut rewriter = Rewriter::new(Arc::clone(edit));
    let (mut searchers, mut joined) = (Searchers::default(), Vec::new());
    let mut all: Vec<Vec<u8>> = pieces
        .iter()
        .map(|piece| {
            let mut out = Vec::new();
            rewriter.rewrite(piece.as_bytes(), &mut searchers, &mut joined, &mut out);
            out
        })
        .collect();
    let mut out = Vec::new();
    rewriter.finish(&mut searchers, &mut joined, &mut out);
    all.push(out);
    all.into_iter().map(|out| String::from_utf8(out).unwrap()).collect()
}

#[test]
fn nothing_is_held_that_cannot_begin_something() {
    let hosts = strings(&[("http://inner", "https://outer"), ("inner", "outer")]);
    let tags = pattern("<b>([^<]*)</b>", "<i>$1</i>", 100);
    let words = pattern("gr[ae]y|white", "black", 10);
    for (edit, given, expected) in [
        (&hosts, &["data: x\n\n", "ht", "tp", "!"][..], &["data: x\n\n", "", "", "http!", ""][..]),
        (&hosts, &["http://inn", "er http:/"], &["", "https://outer ", "http:/"]),
        (&hosts, &["inner", "inne"], &["outer", "", "inne"]),
        (&hosts, &["a inn", "in", "inner"], &["a ", "inn", "inouter", ""]),
        (&tags, &["a <b>x</", "b> c", "<b"], &["a ", "<i>x</i> c", "", "<b"]),
        (&tags, &["<b>x</b>"], &["", "<i>x</i>"]),
        (&tags, &["data: 1\n\n", "<", "p>"], &["data: 1\n\n", "", "<p>", ""]),
        (&words, &["gra", "y gre", "en\n"], &["", "black ", "green\n", ""]),
    ] {
        assert_eq!(pieces(edit, given), expected, "{given:?}");
    }
}

#[test]
fn matches_have_a_bound() {
    let quoted = pattern("'[^']*'", "Q", 5);
    for (given, expected) in [
        (&["'abc' 'abcd' 'x'"][..], "Q 'abcdQx'"),
        (&["'abc", "d' 'x' '", "yz'"], "'abcdQxQyz'"),
        (&["'''"], "Q'"),
    ] {
        assert_eq!(pieces(&quoted, given).concat(), expected, "{given:?}");
    }
}

/// The end of a text is read once, not for each string found before it.
#[test]
fn many_strings_in_one_piece_cost_as_many_steps() {
    let long = "ab".repeat(STRING_BYTES_MAX / 2);
    for (found, body, expected) in
        [("a", "a".repeat(65_536), "-"), ("ba", "ba".repeat(32_768), "-"), ("c", long.clone(), "")]
    {
        let edit = strings(&[(found, "-"), (&long, "")]);
        let before = STEPS.get();
        let out = pieces(&edit, &[&body]).concat();
        let steps = STEPS.get() - before;
        assert_eq!(out, expected.repeat(body.len() / found.len()), "{found}");
        assert!(steps <= 4 * STRING_BYTES_MAX as u64, "{found}: {steps} steps");
    }
}

#[test]
fn what_is_too_much_passes_as_it_is() {
    let what = || EditKind::Strings(StringEdit::new(&[(b"a", b"bbb"), (b"ac", b"")]).unwrap());
    let rewritten = |size_bytes_max, given: &[&str]| {
        let edit = edit(what(), size_bytes_max);
        let mut rewriter = Rewriter::new(edit);
        let mut searchers = Searchers::default();
        let (mut joined, mut out) = (Vec::new(), Vec::new());
        for piece in given {
            rewriter.rewrite(piece.as_bytes(), &mut searchers, &mut joined, &mut out);
        }
        rewriter.finish(&mut searchers, &mut joined, &mut out);
        (String::from_utf8(out).unwrap(), rewriter.is_cut())
    };
    // The limit on the input.
    assert_eq!(rewritten(8, &["xx", "xxxa"]), ("xxxxxbbb".into(), false));
    assert_eq!(rewritten(4, &["xxxac"]), ("xxxac".into(), true));
    assert_eq!(rewritten(6, &["xxa", "xxxaa", "a"]), ("xxbbbxxxaaa".into(), true));
    // The limit on the output.
    assert_eq!(rewritten(9, &["aaaa"]), ("bbbbbbbbba".into(), true));
    assert_eq!(rewritten(9, &["aa", "aa", "ac"]), ("bbbbbbbbbaac".into(), true));
}

#[test]
fn long_replacements_are_not_made() {
    let twice = pattern("(?s)a.*", &"$0".repeat(40), MATCH_BYTES_MAX);
    let body = "a".repeat(3_000);
    assert_eq!(pieces(&twice, &[&body]).concat(), body);
    assert_eq!(pieces(&twice, &[&body[..100]]).concat(), "a".repeat(4_000));
}

#[test]
fn bodies_on_their_way_share_what_searches() {
    let edits = [pattern("a+", "<$0>", 10), pattern("[ab]c", "d", 10), strings(&[("ab", "c")])];
    let mut searchers = Searchers::default();
    let (mut joined, mut out) = (Vec::new(), Vec::new());
    let of = |body: usize| (Rewriter::new(Arc::clone(&edits[body % 3])), Vec::new());
    let mut bodies: Vec<(Rewriter, Vec<u8>)> = (0..300).map(of).collect();
    for piece in ["xa", "a", "bc", "a"] {
        for (body, out) in &mut bodies {
            body.rewrite(piece.as_bytes(), &mut searchers, &mut joined, out);
        }
    }
    for ((mut body, mut out), expected) in
        bodies.into_iter().zip(["x<aa>bc<a>", "xaada", "xacca"].into_iter().cycle())
    {
        body.finish(&mut searchers, &mut joined, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    assert_eq!(searchers.spare.len(), 2, "one for each pattern");
    // Searchers of removed edits are dropped.
    for _ in 0..2 * SPARE_MAX {
        let gone = pattern("a", "b", 10);
        Rewriter::new(gone).rewrite(b"a", &mut searchers, &mut joined, &mut out);
        Rewriter::new(Arc::clone(&edits[0])).rewrite(b"a", &mut searchers, &mut joined, &mut out);
    }
    assert_eq!(searchers.spare.len(), SPARE_MAX);
    assert!(searchers.spare.iter().any(|(of, _)| Arc::ptr_eq(of, &edits[0])), "it is in use");
}

#[test]
fn what_cannot_be_replaced_is_refused() {
    for (regex, expected) in [
        ("a*", "the regular expression matches the empty text"),
        ("", "the regular expression matches the empty text"),
        ("^a", "the regular expression has `^`, `$` or `\\b`, which a stream cannot tell"),
        ("a$", "the regular expression has `^`, `$` or `\\b`, which a stream cannot tell"),
        ("\\ba", "the regular expression has `^`, `$` or `\\b`, which a stream cannot tell"),
        ("(", "not a regular expression: unclosed group"),
    ] {
        let error = PatternEdit::new(regex, "", 10).unwrap_err();
        assert_eq!(error.to_string(), expected, "{regex}");
    }
    let error = PatternEdit::new("(a)", "$2", 10).unwrap_err();
    assert_eq!(error.to_string(), "the regular expression has no group `2`");
    let long = vec![b'a'; STRING_BYTES_MAX + 1];
    for (strings, expected) in [
        (&[][..], StringError::Count),
        (&[(&b"a"[..], &b"b"[..]), (b"", b"c")], StringError::Empty(1)),
        (&[(&long, b"")], StringError::Length(0)),
        (&[(b"a", &long)], StringError::Length(0)),
    ] {
        assert_eq!(StringEdit::new(strings).unwrap_err(), expected);
    }
}
