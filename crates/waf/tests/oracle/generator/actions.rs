//! Random actions.

use weir_testing::Random;

use super::{one, targets, words};

const TRANSFORMATIONS: [&str; 24] = [
    "lowercase",
    "urlDecodeUni",
    "urlDecode",
    "htmlEntityDecode",
    "jsDecode",
    "cssDecode",
    "removeWhitespace",
    "compressWhitespace",
    "removeNulls",
    "replaceComments",
    "normalizePath",
    "normalizePathWin",
    "cmdLine",
    "base64Decode",
    "length",
    "sha1",
    "hexEncode",
    "trim",
    "uppercase",
    "utf8toUnicode",
    "escapeSeqDecode",
    "removeCommentsChar",
    "md5",
    "none",
];

/// Random transformations, often the same as in other rules.
pub fn transformations(random: &mut Random) -> Vec<String> {
    let names: Vec<&str> = match random.below(8) {
        0 | 1 => vec!["none"],
        2 => vec!["none", "urlDecodeUni"],
        3 => vec!["none", "urlDecodeUni", "lowercase"],
        4 => vec![],
        _ => (0..=random.below(4)).map(|_| one(random, &TRANSFORMATIONS)).collect(),
    };
    names.into_iter().map(|name| format!("t:{name}")).collect()
}

/// A text for a message, with variables.
pub fn told(random: &mut Random) -> String {
    one(
        random,
        &[
            "found %{MATCHED_VAR} in %{MATCHED_VAR_NAME}",
            "score %{tx.score} of %{rule.id}",
            "%{tx.0}|%{tx.1}|%{tx.2}",
            "plain",
            "other",
            "%{ARGS.foo} %{REQUEST_HEADERS.host} %{MATCHED_VARS_NAMES}",
            "%{rule.severity} %{HIGHEST_SEVERITY}",
            "%{tx.word} %{tx.made_foo} %{ARGS_NAMES} %{REQUEST_COOKIES.a}",
        ],
    )
    .to_owned()
}

/// A change of a variable.
pub fn set_variable(random: &mut Random) -> String {
    let name = match random.below(12) {
        0 => "made_%{MATCHED_VAR}".to_owned(),
        1 => "%{tx.word}".to_owned(),
        2 => "made_%{tx.word}".to_owned(),
        3 => "m%{MATCHED_VAR_NAME}".to_owned(),
        4 => one(random, &["SCORE", "Flag"]).to_owned(),
        _ => one(random, &targets::VARIABLES).to_owned(),
    };
    let collection = if random.percent(95) { "tx" } else { one(random, &["ip", "session"]) };
    match random.below(12) {
        0 => format!("setvar:'!{collection}.{name}'"),
        1 => format!("setvar:'{collection}.{name}'"),
        2..=5 => format!("setvar:'{collection}.{name}=+{}'", amount(random)),
        6 => format!("setvar:'{collection}.{name}=-{}'", amount(random)),
        _ => format!("setvar:'{collection}.{name}={}'", new_value(random)),
    }
}

fn amount(random: &mut Random) -> &'static str {
    one(random, &["1", "2", "5", "%{tx.limit}", "%{tx.score}", "-1", "x"])
}

fn new_value(random: &mut Random) -> String {
    match random.below(8) {
        0 => "%{MATCHED_VAR}".to_owned(),
        1 => "%{tx.score}".to_owned(),
        2 => "%{tx.word}x".to_owned(),
        3 => "%{tx.0}".to_owned(),
        4 => one(random, &["0", "1", "2", "3"]).to_owned(),
        5 => one(random, &["007", "-5", " 3", "%{MATCHED_VAR_NAME}", ""]).to_owned(),
        _ => words::word(random).to_owned(),
    }
}

/// A `ctl` action. `ids` are possible numbers of rules.
pub fn control(random: &mut Random, ids: std::ops::Range<u64>) -> String {
    let id = |random: &mut Random| ids.start + random.below((ids.end - ids.start) as usize) as u64;
    match random.below(12) {
        0 | 1 => format!("ctl:ruleRemoveById={}", id(random)),
        2 => {
            let first = id(random);
            format!("ctl:ruleRemoveById={first}-{}", first + random.below(4) as u64)
        }
        3 => format!("ctl:ruleRemoveByTag={}", tag(random)),
        4 => format!("ctl:ruleRemoveByMsg={}", one(random, &["plain", "other"])),
        5..=7 => {
            let target = targets::collection(random);
            format!("ctl:ruleRemoveTargetById={};{target}", id(random))
        }
        8 => {
            let target = targets::collection(random);
            format!("ctl:ruleRemoveTargetByTag={};{target}", tag(random))
        }
        9 => one(
            random,
            &[
                "ctl:forceRequestBodyVariable=On",
                "ctl:requestBodyProcessor=JSON",
                "ctl:requestBodyProcessor=URLENCODED",
                "ctl:requestBodyAccess=Off",
            ],
        )
        .to_owned(),
        10 => one(random, &["ctl:auditEngine=Off", "ctl:responseBodyAccess=Off"]).to_owned(),
        _ => one(
            random,
            &["ctl:ruleEngine=DetectionOnly", "ctl:ruleEngine=On", "ctl:ruleEngine=Off"],
        )
        .to_owned(),
    }
}

pub fn tag(random: &mut Random) -> &'static str {
    one(random, &["alpha", "beta", "gamma"])
}

/// The disruptive action.
pub fn disruption(random: &mut Random) -> Vec<String> {
    let actions: &[&str] = match random.below(24) {
        0..=13 => &["pass"],
        14..=16 => &["block"],
        17 => &["deny"],
        18 => &["deny", "status:406"],
        19 => &["drop"],
        20 => &["redirect:'/away?%{tx.word}'"],
        21 => one(random, &[&["allow"][..], &["allow:phase"], &["allow:request"]]),
        _ => &[],
    };
    actions.iter().map(|action| (*action).to_owned()).collect()
}
