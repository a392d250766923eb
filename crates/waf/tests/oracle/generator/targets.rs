//! Random targets.

use weir_testing::Random;

use super::{one, words};

const MANY: [&str; 16] = [
    "ARGS",
    "ARGS_GET",
    "ARGS_POST",
    "ARGS_NAMES",
    "ARGS_GET_NAMES",
    "ARGS_POST_NAMES",
    "REQUEST_HEADERS",
    "REQUEST_HEADERS_NAMES",
    "REQUEST_COOKIES",
    "REQUEST_COOKIES_NAMES",
    "FILES",
    "FILES_NAMES",
    "MULTIPART_PART_HEADERS",
    "RESPONSE_HEADERS",
    "MULTIPART_FILENAME",
    "RESPONSE_HEADERS_NAMES",
];
const SINGLE: [&str; 22] = [
    "REQUEST_URI",
    "REQUEST_METHOD",
    "REQUEST_FILENAME",
    "REQUEST_BASENAME",
    "QUERY_STRING",
    "REQUEST_LINE",
    "REQUEST_URI_RAW",
    "REQUEST_PROTOCOL",
    "REMOTE_ADDR",
    "REQUEST_BODY",
    "RESPONSE_BODY",
    "RESPONSE_STATUS",
    "ARGS_COMBINED_SIZE",
    "REQBODY_PROCESSOR",
    "REQBODY_ERROR",
    "REQUEST_BODY_LENGTH",
    "HIGHEST_SEVERITY",
    "UNIQUE_ID",
    "SERVER_NAME",
    "FILES_COMBINED_SIZE",
    "STATUS_LINE",
    "URLENCODED_ERROR",
];
pub const VARIABLES: [&str; 8] = ["score", "pl", "flag", "word", "limit", "a", "made_foo", "0"];

/// The targets of a rule.
pub fn targets(random: &mut Random, is_chained: bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for _ in 0..=random.below(3) {
        let before = found.last().cloned();
        found.push(match random.below(20) {
            0..=8 => collection(random),
            9 => format!("&{}", collection(random)),
            10 | 11 => member_of_tx(random),
            12 => format!("&{}", member_of_tx(random)),
            13..=15 => one(random, &SINGLE).to_owned(),
            16 => one(random, &["XML:/*", "XML://@*"]).to_owned(),
            17 if is_chained => one(
                random,
                &["MATCHED_VARS", "MATCHED_VAR", "MATCHED_VARS_NAMES", "MATCHED_VAR_NAME"],
            )
            .to_owned(),
            // A repeated target.
            18 if before.is_some() => before.expect("one before"),
            _ => "ARGS".to_owned(),
        });
    }
    for _ in 0..random.below(3) {
        if random.percent(40) {
            found.push(excluded(random));
        }
    }
    found
}

/// An excluded target: one member, several members, or all members.
pub fn excluded(random: &mut Random) -> String {
    format!("!{}", collection(random))
}

/// A collection that `ctl` removes from rules.
pub fn collection(random: &mut Random) -> String {
    let name = if random.percent(40) { "ARGS" } else { one(random, &MANY) };
    match random.below(10) {
        0..=5 => name.to_owned(),
        6..=8 => format!("{name}:{}", words::name(random)),
        _ => format!("{name}:/{}/", one(random, &["^a", "foo", "b|q", "^.$", "X"])),
    }
}

fn member_of_tx(random: &mut Random) -> String {
    let name = one(random, &VARIABLES);
    if random.percent(10) { format!("TX:{}", name.to_uppercase()) } else { format!("TX:{name}") }
}
