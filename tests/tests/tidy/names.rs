//! Names of types and files say what a thing is. A state that something is in, or a word that fits everything, is no name: `Found`
//! and `kept.rs` tell nobody what was found, or what is kept where.

use weir_tests::repository;
use weir_tests::source::{self, File};

/// Words that say nothing of a thing when they stand alone. All words in `-ed` and `-ing` are refused, too, except [`NOUNS`].
const RIDDLES: &str = "About Accepted After Again Around Aside Asides At Away Back Before Behind Beside Best Better Broken \
    Brought By Came Course Cut Deeper Desk Earlier Elsewhere Ends Errand Estate Fate Few Found Given Glance Go Gone Grasp Had \
    Heard Held Here Heritage How Instead Kept Known Last Later Left Look Made Means Next Nowhere Of Outcome Outside Reach Read \
    Rest Room Said Scrutiny Seen Sent Shelf Shown Sought Spent Taken Talk Then There Thing Told Unread Wanted Wants Way Weather \
    What When Whence Where Withheld Without Written Wrong";

/// Words in `-ed` and `-ing` that name a thing, in this field or in the language.
const NOUNS: &str = "Bed Beginning Coding Encoding Filled Finding Forwarding Framing Greeting Malformed Nesting Ring Routing Seed \
    Setting Spanned Speed Spelling String Tracing";

/// Names of files in `-ed` that name a thing: a format, a schema.
const FILES: &str = "chunked declared forwarded shared urlencoded";

/// The documents of the API. The names of their types are part of its schema, which stays as it is.
const DOCUMENTS: &str = "crates/api";

fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// Whether a type has a name that tells nothing.
fn is_riddle(name: &str) -> bool {
    let is_one_word = !name.bytes().skip(1).any(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let is_participle = name.ends_with("ed") || name.ends_with("ing");
    is_one_word && (has(RIDDLES, name) || (is_participle && !has(NOUNS, name)))
}

/// Whether a file has a name that tells nothing. Words in `-ing` may name what the code of a file does.
fn is_riddle_of_file(stem: &str) -> bool {
    if stem.contains('_') || has(FILES, stem) {
        return false;
    }
    let mut name = stem.to_owned();
    name[..1].make_ascii_uppercase();
    has(RIDDLES, &name) || (name.ends_with("ed") && !has(NOUNS, &name))
}

fn findings(files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.is_test && file.package() != DOCUMENTS) {
        let path = &file.path;
        let stem = file.module().rsplit('/').next().unwrap_or_default();
        if is_riddle_of_file(stem) {
            findings.push(format!("{path}: `{stem}` does not say what the file holds"));
        }
        for item in file.items.iter().filter(|item| item.is_type() && !item.is_test) {
            if is_riddle(&item.name) {
                findings.push(format!(
                    "{path}:{}: `{}` does not say what it is: name the thing, as in `LookupResult`",
                    item.line, item.name
                ));
            }
        }
    }
    findings
}

#[test]
fn names_say_what_a_thing_is() {
    repository::expect_none(&findings(source::files()));
}

#[test]
fn riddles_are_found() {
    let check = |path: &str, text: &str| findings(&[source::read(path, text)]).len();
    for (text, expected) in [
        ("struct Kept;", 1),
        ("enum Outcome { Kept }", 1),
        ("type Asked = u8;", 1),
        ("trait Judging {}", 1),
        ("struct KeptFile; struct LookupOutcome; enum Encoding {} struct Finding;", 0),
        ("impl T { fn kept() {} } fn found(kept: u8) {}", 0),
        ("#[cfg(test)]\nmod tests { struct Seen; }", 0),
    ] {
        assert_eq!(check("crates/x/src/a.rs", text), expected, "{text}");
    }
    for (path, expected) in [
        ("crates/x/src/kept.rs", 1),
        ("crates/x/src/inspected/mod.rs", 1),
        ("crates/x/src/kept_files.rs", 0),
        ("crates/x/src/encoding.rs", 0),
        ("crates/x/tests/kept.rs", 0),
        ("crates/api/src/asked.rs", 0),
    ] {
        assert_eq!(check(path, ""), expected, "{path}");
    }
    assert_eq!(check("crates/api/src/a.rs", "struct Asked;"), 0);
}
