//! Subjects that stand for many names: a pattern of names that differ in numbers, or all names of a collection.

use weir_waf::exclusion::pattern_of;

use super::finding::collection;

/// Collections whose names are chosen by the application, so that a rule may ignore all of them at a path.
const WHOLE: [&str; 6] =
    ["ARGS", "ARGS_GET", "ARGS_POST", "ARGS_NAMES", "ARGS_GET_NAMES", "ARGS_POST_NAMES"];

/// The wider subjects to which a variable belongs: its pattern, and its collection.
pub fn wider(variable: &str) -> impl Iterator<Item = String> {
    let collection = collection(variable);
    let whole =
        (variable != collection && WHOLE.contains(&collection)).then(|| collection.to_owned());
    pattern_of(variable).into_iter().chain(whole)
}

/// Whether an exclusion of `wide` excludes a variable.
pub fn covers(wide: &str, variable: &str) -> bool {
    wide == variable || wider(variable).any(|it| it == wide)
}
