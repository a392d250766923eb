//! Words for requests and patterns.

use weir_testing::Random;

use super::one;

const WORDS: [&str; 24] = [
    "foo", "bar", "FOO", "Bar", "select", "union", "script", "alert", "etc", "passwd", "ab", "aab",
    "aaab", "x", "1", "2", "10", "-1", "007", "baz", "ba", "fo", "foobar", "sel",
];
const SEPARATORS: [&str; 12] = [" ", "", "", "/", "../", "<", ">", "(", "'", "  ", "%41", ";"];
const WHOLE: [&str; 12] = [
    "",
    "<script>alert(1)</script>",
    "1' or '1'='1",
    "1 union select foo from bar--",
    "/etc/passwd",
    "%3Cscript%3e",
    "foo\u{e9}",
    "&lt;foo&gt;",
    "fo\\x6f",
    "Zm9vYmFy",
    "foo/**/bar",
    "10.1.2.3",
];

/// A word longer than the literals that the engine searches for.
pub const LONG: &str = "foo-abcdefghijklmnopqrstuvwxyz-0123456789-bar";

/// A name of an argument, header or variable.
pub fn name(random: &mut Random) -> &'static str {
    one(random, &["a", "b", "id", "foo", "bar", "A", "x1", "text", "foo.bar", "q"])
}

/// A word that patterns also contain.
pub fn word(random: &mut Random) -> &'static str {
    one(random, &WORDS)
}

/// A value: several words, or a fragment of an attack.
pub fn value(random: &mut Random) -> String {
    if random.percent(3) {
        return LONG.to_owned();
    }
    if random.percent(25) {
        return one(random, &WHOLE).to_owned();
    }
    let mut value = String::new();
    for index in 0..random.below(5) {
        if index > 0 {
            value.push_str(one(random, &SEPARATORS));
        }
        value.push_str(word(random));
    }
    value
}
