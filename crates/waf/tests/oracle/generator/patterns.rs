//! Random regular expressions.

use weir_testing::Random;

use super::{one, words};

const DEPTH_MAX: usize = 3;

/// A pattern without quotes, and without blanks at its ends.
pub fn pattern(random: &mut Random) -> String {
    let mut out = String::new();
    if random.percent(30) {
        out.push_str(one(random, &["(?i)", "(?is)", "(?s)"]));
    }
    if random.percent(10) {
        out.push('^');
    }
    sequence(random, 0, &mut out);
    if random.percent(8) {
        out.push('$');
    }
    if random.percent(4) {
        out.push_str(one(random, &["(?!foo)", "(?=b)", "(?<!a)x"]));
    }
    out
}

fn sequence(random: &mut Random, depth: usize, out: &mut String) {
    for _ in 0..[1, 1, 2, 3][random.below(4)] {
        piece(random, depth, out);
    }
}

fn piece(random: &mut Random, depth: usize, out: &mut String) {
    match random.below(10) {
        0..=3 => {
            let word = words::word(random);
            out.push_str(word);
            repetition(random, out, 10);
        }
        4 | 5 => {
            out.push_str(one(
                random,
                &[
                    "[a-f]",
                    "[fb]",
                    "[^x]",
                    "\\d",
                    "\\w",
                    "\\s",
                    ".",
                    "[[:alpha:]]",
                    "[a-z0-9_]",
                    "\\W",
                    "[<>]",
                    "[^a-z]",
                    "\\x66",
                    "[Ff]",
                    "[\\w.]",
                ],
            ));
            repetition(random, out, 50);
        }
        6 | 7 if depth < DEPTH_MAX => {
            out.push_str(one(random, &["(", "(?:", "(", "(?i:"]));
            for index in 0..=random.below(4) {
                if index > 0 {
                    out.push('|');
                }
                if random.percent(92) {
                    sequence(random, depth + 1, out);
                }
            }
            out.push(')');
            repetition(random, out, 35);
        }
        // More or longer texts than the literals that the engine searches for.
        8 => out.push_str(one(
            random,
            &["\\b", "f", "b", "a", "\\.", "/", "<", "[a-f]{2}[nors]", "[a-o]{3}", words::LONG],
        )),
        _ => out.push_str(words::word(random)),
    }
}

fn repetition(random: &mut Random, out: &mut String, percent: usize) {
    if random.percent(percent) {
        let how = ["*", "+", "?", "{2}", "{0,2}", "{1,3}", "*?", "+?", "++", "{0}", "{2,}"];
        out.push_str(one(random, &how));
    }
}
