//! Lines of a file without passwords, for diagnostics.
//!
//! A finding may be anywhere in a line with a password, and the line may be invalid YAML. So this works on the text: all
//! text after a key with a secret name is hidden.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::tree::{Entry, Lines, Node, NodeValue, Scalar, Style};

/// The replacement of each character.
const MASK: char = '*';

/// Parts of keys whose values are secrets.
const SECRET_PARTS: [&str; 6] =
    ["password", "passwd", "passphrase", "secret", "authorization", "token"];

/// Maximum edit distance of a mistyped `password`.
const MISTAKES_MAX: usize = 2;

/// The lines of a file without secrets. Each line is processed once, even with many findings.
pub(crate) struct Concealed<'a> {
    lines: &'a Lines<'a>,
    known: HashMap<usize, Cow<'a, str>>,
}

impl<'a> Concealed<'a> {
    pub fn new(lines: &'a Lines<'a>) -> Self {
        Self { lines, known: HashMap::new() }
    }

    /// The line with this number; the first line is 1.
    pub fn get(&mut self, number: usize) -> Option<&str> {
        let line = self.lines.get(number)?;
        let before = number.checked_sub(1).and_then(|before| self.lines.get(before));
        Some(self.known.entry(number).or_insert_with(|| conceal(line, before)))
    }
}

/// The text that replaces a secret value.
const MASKED: &str = "********";

/// A value without secrets. `keys`: the keys above the value.
pub(crate) fn without_secrets(keys: &[String], node: &Node) -> Node {
    if keys.iter().any(|key| is_secret(key)) {
        let masked = Scalar { text: MASKED.to_owned(), style: Style::Quoted };
        return Node { span: node.span, value: NodeValue::Scalar(masked) };
    }
    let value = match &node.value {
        NodeValue::Null | NodeValue::Scalar(_) => node.value.clone(),
        NodeValue::List(items) => {
            NodeValue::List(items.iter().map(|item| without_secrets(&[], item)).collect())
        }
        NodeValue::Map(entries) => {
            let concealed = |entry: &Entry| {
                let value = without_secrets(std::slice::from_ref(&entry.key), &entry.value);
                Entry { key: entry.key.clone(), key_span: entry.key_span, value }
            };
            NodeValue::Map(entries.iter().map(concealed).collect())
        }
    };
    Node { span: node.span, value }
}

/// The line without secrets, with unchanged length. `before`: the previous line, because a value may follow its key on the
/// next line.
fn conceal<'a>(line: &'a str, before: Option<&str>) -> Cow<'a, str> {
    if before.is_some_and(ends_in_secret_key) {
        let mask = |it: char| if it.is_whitespace() { it } else { MASK };
        return line.chars().map(mask).collect::<String>().into();
    }
    let characters: Vec<char> = line.chars().collect();
    let mut shown: Option<Vec<char>> = None;
    let mut at = 0;
    while let Some(colon) = next_secret_colon(&characters, at) {
        let start = skip_spaces(&characters, colon + 1);
        let end = value_end(&characters, start);
        shown.get_or_insert_with(|| characters.clone())[start..end].fill(MASK);
        at = end.max(colon + 1);
    }
    shown.map_or(Cow::Borrowed(line), |shown| shown.into_iter().collect::<String>().into())
}

/// Whether a secret value begins on the next line: `password:`, `password: |`.
fn ends_in_secret_key(line: &str) -> bool {
    let characters: Vec<char> = line.trim_end().chars().collect();
    let mut at = 0;
    while let Some(colon) = next_secret_colon(&characters, at) {
        let rest = &characters[skip_spaces(&characters, colon + 1)..];
        if rest.is_empty() || matches!(rest[0], '|' | '>' | '#') {
            return true;
        }
        at = colon + 1;
    }
    false
}

/// The colon after the next key with a secret value, from this position on.
fn next_secret_colon(characters: &[char], from: usize) -> Option<usize> {
    (from..characters.len()).find(|&colon| {
        if characters[colon] != ':' {
            return false;
        }
        let is_end = |it: &char| !(it.is_alphanumeric() || matches!(it, '_' | '-'));
        let before = &characters[..colon];
        let quoted = before.iter().rposition(|it| !matches!(it, ' ' | '"' | '\''));
        let key_end = quoted.map_or(0, |last| last + 1);
        let key_start = before[..key_end].iter().rposition(is_end).map_or(0, |last| last + 1);
        is_secret(&before[key_start..key_end].iter().collect::<String>())
    })
}

/// Whether a key's value is a secret.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    let is_meant = |part: &&str| key.contains(part);
    !key.ends_with("_file")
        && (SECRET_PARTS.iter().any(is_meant)
            || matches!(&*key, "pass" | "pwd" | "cookie" | "api_key" | "x_api_key")
            || is_mistyped(&key))
}

/// Whether a key is a misspelling of `password`.
fn is_mistyped(key: &str) -> bool {
    let meant = "password";
    key.len().abs_diff(meant.len()) <= MISTAKES_MAX
        && strsim::damerau_levenshtein(key, meant) <= MISTAKES_MAX
}

fn skip_spaces(characters: &[char], from: usize) -> usize {
    let spaces = characters[from..].iter().take_while(|it| it.is_whitespace());
    from + spaces.count()
}

/// The end of the value that begins here. If in doubt, the end of the line.
fn value_end(characters: &[char], start: usize) -> usize {
    let rest = &characters[start..];
    let length = match rest.first() {
        Some(&quote @ ('"' | '\'')) => {
            let mut is_escaped = false;
            let closing = rest.iter().skip(1).position(|&it| {
                let is_it = it == quote && !is_escaped;
                is_escaped = quote == '"' && it == '\\' && !is_escaped;
                is_it
            });
            closing.map(|index| index + 2)
        }
        // After `''`, a single-quoted text continues; the rest is masked too.
        Some('{' | '[' | '|' | '>') | None => None,
        Some(_) if characters[..start].contains(&'{') => {
            rest.iter().position(|it| matches!(it, ',' | '}' | ']'))
        }
        Some(_) => None,
    };
    let end = start + length.unwrap_or(rest.len());
    // A quote directly after the closing one is part of the text.
    if characters.get(end).is_some_and(|it| matches!(it, '"' | '\'')) {
        return characters.len();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_masked() {
        let check = |line: &str, expected: &str| assert_eq!(conceal(line, None), expected);
        check("listen: 127.0.0.1:80", "listen: 127.0.0.1:80");
        check("password: hunter2", "password: *******");
        check("password:hunter2", "password:*******");
        check("  \"password\" : 'a b', x", "  \"password\" : *****, x");
        check("{ password: a,b: 1 }", "{ password: *,b: 1 }");
        check("{ user: me, password: a, timeout: 1 }", "{ user: me, password: *, timeout: 1 }");
        check("{ password: \"a\\\"b, c\", path: / }", "{ password: *********, path: / }");
        check("{ password: 'it''s', path: / }", "{ password: ******************");
        check("{ password: \"open, path: / }", "{ password: ****************");
        check("password: a, b }", "password: ******");
        check("{ pasword: a, passwort: b, path: c }", "{ pasword: *, passwort: *, path: c }");
        check("headers: { Authorization: Bearer a }", "headers: { Authorization: *********}");
        check("password_file: /run/secret", "password_file: /run/secret");
        check("passive: { failures: 5 }", "passive: { failures: 5 }");
        check("secret: [ a, b ]", "secret: ********");
        check("größe: ä, password: ö", "größe: ä, password: *");
        check("password:", "password:");
        check("", "");
    }

    #[test]
    fn values_below_their_key_are_masked() {
        let check = |before: &str, line: &str, expected: &str| {
            assert_eq!(conceal(line, Some(before)), expected, "{before}");
        };
        check("password:", "  hunter2 }", "  ******* *");
        check("  - password: |  ", "  hunter2", "  *******");
        check("password: # it", "  hunter2", "  *******");
        check("password: known", "  timeout: 2s", "  timeout: 2s");
        check("path:", "  hunter2", "  hunter2");
    }
}
