//! Random operators.

use weir_testing::Random;

use super::{one, patterns, rules, words};

/// An operator and its argument.
pub fn operator(random: &mut Random) -> String {
    let negation = if random.percent(15) { "!" } else { "" };
    let text = match random.below(24) {
        0..=8 => format!("@rx {}", patterns::pattern(random)),
        9 | 10 => format!("@pm {}", several(random)),
        11 => format!("@pmFromFile {}", rules::WORD_FILE),
        12..=14 => {
            let how = one(random, &["eq", "ge", "gt", "le", "lt"]);
            format!("@{how} {}", number(random))
        }
        15..=19 => {
            let how = one(
                random,
                &["streq", "within", "contains", "containsWord", "beginsWith", "endsWith"],
            );
            format!("@{how} {}", text(random))
        }
        20 => one(
            random,
            &[
                "@validateByteRange 32-126",
                "@validateByteRange 1-255",
                "@validateByteRange 97-122,48-57,32",
                "@validateUrlEncoding",
                "@validateUtf8Encoding",
            ],
        )
        .to_owned(),
        21 => one(random, &["@ipMatch 10.0.0.0/8", "@ipMatch 192.0.2.7,::1"]).to_owned(),
        22 => one(random, &["@detectSQLi", "@detectXSS"]).to_owned(),
        _ => one(
            random,
            &["@unconditionalMatch", "@noMatch", "@rx ^%{tx.word}$", "@rx %{tx.flag}x?"],
        )
        .to_owned(),
    };
    format!("{negation}{text}")
}

/// The operator of a gate. It compares with numbers that occur in rules and settings.
pub fn of_gate(random: &mut Random) -> String {
    let negation = if random.percent(10) { "!" } else { "" };
    let how = one(random, &["eq", "ge", "gt", "le", "lt", "eq"]);
    format!("{negation}@{how} {}", one(random, &["0", "1", "2", "3", "%{tx.limit}"]))
}

fn several(random: &mut Random) -> String {
    let words: Vec<&str> = (0..=random.below(4)).map(|_| words::word(random)).collect();
    words.join(" ")
}

fn number(random: &mut Random) -> &'static str {
    one(random, &["0", "1", "2", "3", "5", "10", "-1", "%{tx.limit}", "%{tx.score}"])
}

fn text(random: &mut Random) -> String {
    match random.below(6) {
        0 => one(random, &["%{tx.word}", "%{ARGS.a}", "%{tx.0}", "x%{tx.flag}"]).to_owned(),
        1 => several(random),
        2 => one(random, &["foobar bazfoo", "selectunion", "1 2 10"]).to_owned(),
        _ => words::word(random).to_owned(),
    }
}
