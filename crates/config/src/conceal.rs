//! Lines of a file without passwords, for diagnostics.
//!
//! A finding may be anywhere in a line with a password, and the line may be invalid YAML. So this works on the text: all
//! text after a key with a secret name is hidden. The names are those of the one list
//! ([`weir_http::secret_names`]), which also holds for headers in the configuration, and misspellings of `password`. Keys of the
//! configuration itself that the list would take for secrets are [`PLAIN_KEYS`]. Objects may have any name.

use std::borrow::Cow;
use std::collections::HashMap;

use weir_http::secret_names::is_secret_field;

use crate::document::{Entry, Lines, Node, NodeValue, Scalar, Style};

/// The replacement of each character.
const MASK: char = '*';

/// Keys of the configuration that are on the list of secret names, although their values are no secrets.
const PLAIN_KEYS: [&str; 8] = [
    "authenticate",
    "authentication",
    "connection_authentication",
    "forward_credentials",
    "key",
    "keys",
    "per_key",
    "sessions_per_socket_max",
];

/// Sections whose entries have names of the operator's choice, and are maps.
const NAMED: [&str; 5] = ["virtual_servers", "pools", "policies", "authentication", "users"];

/// All header fields that go to the collector of traces are secrets: `tracing.headers`.
const TRACING: &str = "tracing";
const HEADERS: &str = "headers";

/// Maximum number of lines that are searched for the section of a line.
const LINES_ABOVE_MAX: usize = 2_000;

/// Maximum edit distance of a mistyped `password`.
const MISTAKES_MAX: usize = 2;

/// The lines of a file without secrets. Each line is processed once, even with many findings.
pub(crate) struct ConcealedLines<'a> {
    lines: &'a Lines<'a>,
    known: HashMap<usize, Cow<'a, str>>,
}

impl<'a> ConcealedLines<'a> {
    pub fn new(lines: &'a Lines<'a>) -> Self {
        Self { lines, known: HashMap::new() }
    }

    /// The line with this number; the first line is 1.
    pub fn get(&mut self, number: usize) -> Option<&str> {
        let line = self.lines.get(number)?;
        let above = |back: usize| number.checked_sub(back).and_then(|at| self.lines.get(at));
        Some(self.known.entry(number).or_insert_with(|| conceal(line, above)))
    }
}

/// The text that replaces a secret value.
const MASKED: &str = "********";

/// A value without secrets and comments. `keys`: the keys above the value.
pub fn without_secrets(keys: &[String], node: &Node) -> Node {
    let of_tracing = |pair: &[String]| pair[0] == TRACING && pair[1] == HEADERS;
    if keys.iter().any(|key| is_secret(key)) || keys.windows(2).any(of_tracing) {
        let masked = Scalar { text: MASKED.to_owned(), style: Style::Quoted };
        return Node::new(node.span, NodeValue::Scalar(masked));
    }
    match &node.value {
        NodeValue::Null | NodeValue::Scalar(_) => Node::new(node.span, node.value.clone()),
        NodeValue::List(items) => {
            Node::list(node.span, items.iter().map(|item| without_secrets(&[], item)).collect())
        }
        NodeValue::Map(entries) => {
            let above = keys.last();
            let has_names = above.is_some_and(|key| NAMED.contains(&&**key));
            let concealed = |entry: &Entry| {
                let is_object = has_names && matches!(entry.value.value, NodeValue::Map(_));
                let below: Vec<String> = match is_object {
                    true => Vec::new(),
                    false => above.into_iter().chain([&entry.key]).cloned().collect(),
                };
                let value = without_secrets(&below, &entry.value);
                Entry { key: entry.key.clone(), key_span: entry.key_span, value }
            };
            Node::map(node.span, entries.iter().map(concealed).collect())
        }
    }
}

/// The line without secrets, with unchanged length. `above`: the line so many lines before it.
fn conceal<'a, 'b>(line: &'a str, above: impl Fn(usize) -> Option<&'b str>) -> Cow<'a, str> {
    // A value may follow its key on the next line.
    let is_value = above(1).is_some_and(|before| ends_in_secret_key(before, |it| above(it + 1)));
    if is_value || is_among_secrets(line, &above) {
        let mask = |it: char| if it.is_whitespace() { it } else { MASK };
        return line.chars().map(mask).collect::<String>().into();
    }
    let characters: Vec<char> = line.chars().collect();
    let mut shown: Option<Vec<char>> = None;
    let mut at = 0;
    while let Some(colon) = next_secret_colon(&characters, at, &above) {
        let start = skip_spaces(&characters, colon + 1);
        let end = value_end(&characters, start);
        shown.get_or_insert_with(|| characters.clone())[start..end].fill(MASK);
        at = end.max(colon + 1);
    }
    shown.map_or(Cow::Borrowed(line), |shown| shown.into_iter().collect::<String>().into())
}

/// Whether a secret value begins on the next line: `password:`, `password: |`.
fn ends_in_secret_key<'b>(line: &str, above: impl Fn(usize) -> Option<&'b str>) -> bool {
    let characters: Vec<char> = line.trim_end().chars().collect();
    let mut at = 0;
    while let Some(colon) = next_secret_colon(&characters, at, &above) {
        let rest = &characters[skip_spaces(&characters, colon + 1)..];
        if rest.is_empty() || matches!(rest[0], '|' | '>' | '#') {
            return true;
        }
        at = colon + 1;
    }
    false
}

/// The colon after the next key with a secret value, from this position on.
fn next_secret_colon<'b>(
    characters: &[char],
    from: usize,
    above: &impl Fn(usize) -> Option<&'b str>,
) -> Option<usize> {
    (from..characters.len()).find(|&colon| {
        if characters[colon] != ':' {
            return false;
        }
        let (start, key) = key_before(characters, colon);
        (is_secret(&key) && !is_port(&key, &characters[colon + 1..])
            || key == HEADERS && parent(characters, start, above).as_deref() == Some(TRACING))
            && !is_object(characters, (start, colon), above)
    })
}

/// The key before a colon, and where it begins.
fn key_before(characters: &[char], colon: usize) -> (usize, String) {
    let is_end = |it: &char| !(it.is_alphanumeric() || matches!(it, '_' | '-'));
    let before = &characters[..colon];
    let quoted = before.iter().rposition(|it| !matches!(it, ' ' | '"' | '\''));
    let end = quoted.map_or(0, |last| last + 1);
    let start = before[..end].iter().rposition(is_end).map_or(0, |last| last + 1);
    (start, before[start..end].iter().collect())
}

/// Whether what follows a colon is the port of a host that is named like a secret: `auth:8080`. A password is masked in any
/// case.
fn is_port(key: &str, rest: &[char]) -> bool {
    let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
    let is_end = rest.get(digits).is_none_or(|it| matches!(it, ' ' | ',' | ']' | '}' | '"' | '\''));
    let is_password = key.to_ascii_lowercase().contains("pass") || is_mistyped(key);
    (1..=5).contains(&digits) && is_end && !is_password
}

/// Whether a key is the name of an object of the configuration, such as a pool `auth`.
fn is_object<'b>(
    characters: &[char],
    (start, colon): (usize, usize),
    above: &impl Fn(usize) -> Option<&'b str>,
) -> bool {
    let value = characters.get(skip_spaces(characters, colon + 1));
    value.is_none_or(|it| matches!(it, '{' | '#'))
        && parent(characters, start, above).is_some_and(|parent| NAMED.contains(&&*parent))
}

/// The key of the map that an entry at this position is in.
fn parent<'b>(
    characters: &[char],
    start: usize,
    above: &impl Fn(usize) -> Option<&'b str>,
) -> Option<String> {
    let mut depth = 0_u32;
    for at in (0..start).rev() {
        match characters[at] {
            '}' => depth += 1,
            '{' if depth > 0 => depth -= 1,
            '{' => {
                let colon = characters[..at].iter().rposition(|it| !it.is_whitespace())?;
                return (characters[colon] == ':').then(|| key_before(characters, colon).1);
            }
            _ => {}
        }
    }
    section(start, 1, above).map(|(_, key)| key)
}

/// The line that a block with this indentation belongs to: how many lines before, and its last key. `from`: the first line
/// to look at.
fn section<'b>(
    indentation: usize,
    from: usize,
    above: &impl Fn(usize) -> Option<&'b str>,
) -> Option<(usize, String)> {
    for back in from..from + LINES_ABOVE_MAX {
        let line = above(back)?;
        let text = line.trim_start();
        let is_outside = line.chars().count() - text.chars().count() < indentation;
        if text.is_empty() || text.starts_with('#') || !is_outside {
            continue;
        }
        let characters: Vec<char> = line.trim_end().chars().collect();
        let colon = characters.len().checked_sub(1).filter(|last| characters[*last] == ':')?;
        return Some((back, key_before(&characters, colon).1));
    }
    None
}

/// Whether a line is in the headers of `tracing`, all of which are secrets.
fn is_among_secrets<'b>(line: &str, above: &impl Fn(usize) -> Option<&'b str>) -> bool {
    let Some((back, key)) = section(indentation(line), 1, above) else { return false };
    let outer = above(back).map(indentation);
    key == HEADERS
        && outer
            .and_then(|outer| section(outer, back + 1, above))
            .is_some_and(|(_, outer)| outer == TRACING)
}

fn indentation(line: &str) -> usize {
    line.chars().take_while(|it| it.is_whitespace()).count()
}

/// Whether the value of a key is a secret.
fn is_secret(key: &str) -> bool {
    let folded = key.to_ascii_lowercase().replace('-', "_");
    !folded.ends_with("_file")
        && !PLAIN_KEYS.contains(&&*folded)
        && (is_secret_field(key.as_bytes()) || is_mistyped(&folded))
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
        let check = |line: &str, expected: &str| assert_eq!(conceal(line, |_| None), expected);
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

    /// The last of these lines.
    fn last(lines: &[&str]) -> String {
        let (last, above) = lines.split_last().expect("a line");
        let above = |back: usize| above.len().checked_sub(back).map(|at| above[at]);
        conceal(last, above).into_owned()
    }

    #[test]
    fn values_below_their_key_are_masked() {
        let check = |before: &str, line: &str, expected: &str| {
            assert_eq!(last(&[before, line]), expected, "{before}");
        };
        check("password:", "  hunter2 }", "  ******* *");
        check("  - password: |  ", "  hunter2", "  *******");
        check("password: # it", "  hunter2", "  *******");
        check("password: known", "  timeout: 2s", "  timeout: 2s");
        check("path:", "  hunter2", "  hunter2");
        check("X-Api-Key:", "  hunter2", "  *******");
    }

    #[test]
    fn names_are_those_of_the_one_list() {
        let check = |line: &str, expected: &str| assert_eq!(conceal(line, |_| None), expected);
        check("{ X-Upstream-Key: abc, X-Otp: 1, a: b }", "{ X-Upstream-Key: ***, X-Otp: *, a: b }");
        check("PHPSESSID: abc", "PHPSESSID: ***");
        check("Set-Cookie: a=b", "Set-Cookie: ***");
        check("kennwort: abc", "kennwort: ***");
        for plain in PLAIN_KEYS {
            let line = format!("{plain}: [ a, b ]");
            assert_eq!(conceal(&line, |_| None), line);
        }
        // A host and its port.
        check(
            "members: [ auth:8080, session-store:6379 ]",
            "members: [ auth:8080, session-store:6379 ]",
        );
        check("password:12345", "password:*****");
    }

    /// Every key of the configuration that is on the list is a secret, names a file, or is known to be none.
    #[test]
    fn each_key_of_the_configuration_is_known() {
        let reference = crate::reference_markdown();
        let keys = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let hidden: std::collections::BTreeSet<&str> = keys.filter(|key| is_secret(key)).collect();
        let expected = ["cookie", "password", "secret", "token_hash"];
        assert_eq!(hidden.into_iter().collect::<Vec<_>>(), expected);
        for plain in PLAIN_KEYS {
            assert!(reference.contains(&format!("| `{plain}` |")), "{plain} is no key any more");
        }
    }

    #[test]
    fn objects_may_be_named_like_secrets() {
        let check = |lines: &[&str], expected: &str| assert_eq!(last(lines), expected, "{lines:?}");
        check(&["pools: { auth: { members: [ a:1 ] } }"], "pools: { auth: { members: [ a:1 ] } }");
        check(
            &["pools:", "  # old", "  web: { }", "  auth: { members: 5 }"],
            "  auth: { members: 5 }",
        );
        check(&["pools:", "  auth:", "    members: 5"], "    members: 5");
        check(&["admin:", "  users:", "    token: { role: x }"], "    token: { role: x }");
        check(&["pools:", "  auth: { password: abc }"], "  auth: { password: ****}");
        check(&["pools:", "  auth: hunter2"], "  auth: *******");
        check(&["other:", "  auth: { a: b }"], "  auth: ********");
    }

    #[test]
    fn all_headers_of_tracing_are_secrets() {
        let check = |lines: &[&str], expected: &str| assert_eq!(last(lines), expected, "{lines:?}");
        check(
            &["tracing: { otlp: x, headers: { X-Team: abc } }"],
            "tracing: { otlp: x, headers: *****************",
        );
        let block = ["tracing:", "  otlp: x", "  headers:", "    A: abc", "    X-Team: abc"];
        check(&block, "    ******* ***");
        check(&block[..4], "    ** ***");
        check(&["monitors:", "  headers:", "    A: abc"], "    A: abc");
    }
}
