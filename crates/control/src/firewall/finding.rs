//! A finding of a rule: its score, and the variables that an exclusion could name.

use weir_waf::exclusion::is_variable;

use super::line::{LoggedRule, Value};

/// A rule, and the variable in which it matched.
pub type Subject = (u64, String);

/// The score of a severity in CRS.
pub fn score(severity: &str) -> i64 {
    match severity {
        "EMERGENCY" | "ALERT" | "CRITICAL" => 5,
        "ERROR" => 4,
        "WARNING" => 3,
        "NOTICE" => 2,
        _ => 0,
    }
}

/// The variables that exclusions can name: only those of the rule's first link, because an exclusion for another link
/// would disable the whole rule.
pub fn variables(found: &LoggedRule) -> Vec<&str> {
    let Some(first) = found.values.first().map(|value| collection(&value.variable)) else {
        return Vec::new();
    };
    let is_first = |value: &&Value| collection(&value.variable) == first;
    let mut values: Vec<&Value> = found.values.iter().filter(is_first).collect();
    // The first link of a chain may read all values (for example all header names), and a later link selects one. The
    // rule's message then names the selected one.
    let is_chain = values.len() < found.values.len();
    if is_chain && values.iter().any(|value| is_told(found, value)) {
        values.retain(|value| is_told(found, value));
    }
    let mut variables: Vec<&str> = Vec::new();
    for value in values {
        let variable = value.variable.as_str();
        if !is_variable(variable) {
            return Vec::new();
        }
        if !variables.contains(&variable) {
            variables.push(variable);
        }
    }
    variables
}

/// Whether all values of a finding are members of one collection, so that its rule has one link.
pub fn matches_one_collection(found: &LoggedRule) -> bool {
    let mut collections = found.values.iter().map(|value| collection(&value.variable));
    let first = collections.next();
    collections.all(|it| Some(it) == first)
}

/// The collection of a variable.
pub fn collection(variable: &str) -> &str {
    variable.split(':').next().unwrap_or_default()
}

/// Whether the rule's message or data contains the value as a word.
fn is_told(found: &LoggedRule, value: &Value) -> bool {
    let is_inside = |char: char| char.is_alphanumeric() || "-_".contains(char);
    let has_word = |text: &str| {
        text.match_indices(&value.value).any(|(at, word)| {
            !word.is_empty()
                && !text[..at].ends_with(is_inside)
                && !text[at + word.len()..].starts_with(is_inside)
        })
    };
    has_word(&found.message) || has_word(&found.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_can_be_named() {
        for (values, expected) in [
            (&["ARGS:a", "ARGS:b", "ARGS:a"][..], &["ARGS:a", "ARGS:b"][..]),
            (&["ARGS:a[]", "REQUEST_METHOD"], &["ARGS:a[]"]),
            (&["REQUEST_BODY"], &["REQUEST_BODY"]),
            (&["TX:score"], &[]),
            (&["&REQUEST_HEADERS:Host"], &[]),
            (&["ARGS:a,b"], &[]),
            (&["ARGS:"], &[]),
            (&["ARGS:a\""], &[]),
            (&[], &[]),
        ] {
            let value = |it: &&str| Value { variable: (*it).into(), value: String::new() };
            let found =
                LoggedRule { values: values.iter().map(value).collect(), ..LoggedRule::default() };
            assert_eq!(variables(&found), expected, "{values:?}");
        }
    }

    #[test]
    fn chains_are_found_in_what_they_tell_of() {
        let value = |(variable, value): (&str, &str)| Value {
            variable: variable.into(),
            value: value.into(),
        };
        let names = [
            ("REQUEST_HEADERS_NAMES:Host", "host"),
            ("REQUEST_HEADERS_NAMES:X-Over", "x-over"),
            ("REQUEST_HEADERS_NAMES:TE", "te"),
        ];
        let found = |message: &str, data: &str, link: &[(&str, &str)]| LoggedRule {
            message: message.into(),
            data: data.into(),
            values: names.iter().chain(link).copied().map(value).collect(),
            ..LoggedRule::default()
        };
        let all: Vec<&str> = names.iter().map(|(variable, _)| *variable).collect();
        let last = [("TX:header_x-over", "/x-over/")];
        for (found, expected) in [
            (found("restricted (/x-over/)", "", &last), &all[1..2]),
            (found("restricted", "found: x-over", &last), &all[1..2]),
            (found("restricted, no-te", "", &last), &all[..]),
            // Without another link, each value is a finding.
            (found("restricted (/x-over/)", "", &[]), &all[..]),
        ] {
            assert_eq!(variables(&found), expected, "{found:?}");
        }
    }
}
