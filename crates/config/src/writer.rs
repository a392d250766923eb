//! Writes a tree as YAML text that parses as the same tree. Texts have quotes only where they need them, wherever they come
//! from: a file, or JSON.

use std::fmt::Write as _;

use crate::decode::ScalarKind;
use crate::quote::is_unseen;
use crate::tree::{Entry, Node, NodeValue, Scalar, Style};

/// Spaces per level of indentation.
const INDENT: usize = 2;

/// Maximum length of a simple key. Longer keys use the explicit form, because parsers search only this far for the colon.
const KEY_BYTES_MAX: usize = 512;

/// The text of a tree in block style, with a final line break.
pub(crate) fn write(root: &Node) -> String {
    let mut text = String::new();
    match &root.value {
        NodeValue::Map(entries) if !entries.is_empty() => map(&mut text, entries, 0, false),
        NodeValue::List(items) if !items.is_empty() => list(&mut text, items, 0),
        other => {
            in_line(&mut text, other, 0);
            text.push('\n');
        }
    }
    text
}

fn map(text: &mut String, entries: &[Entry], indent: usize, is_begun: bool) {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 || !is_begun {
            spaces(text, indent);
        }
        let key = key(&entry.key);
        if key.len() > KEY_BYTES_MAX {
            text.push_str("? ");
            text.push_str(&key);
            text.push('\n');
            spaces(text, indent);
        } else {
            text.push_str(&key);
        }
        text.push(':');
        value(text, &entry.value, indent + INDENT);
    }
}

fn list(text: &mut String, items: &[Node], indent: usize) {
    for item in items {
        spaces(text, indent);
        text.push('-');
        match &item.value {
            NodeValue::Map(entries) if !entries.is_empty() => {
                text.push(' ');
                map(text, entries, indent + INDENT, true);
            }
            _ => value(text, item, indent + INDENT),
        }
    }
}

/// Writes a value after its key or dash. `indent`: the indentation of its content.
fn value(text: &mut String, node: &Node, indent: usize) {
    match &node.value {
        NodeValue::Map(entries) if !entries.is_empty() => {
            text.push('\n');
            map(text, entries, indent, false);
        }
        NodeValue::List(items) if !items.is_empty() => {
            text.push('\n');
            list(text, items, indent);
        }
        other => {
            text.push(' ');
            in_line(text, other, indent);
            text.push('\n');
        }
    }
}

/// Writes a value on the current line.
fn in_line(text: &mut String, value: &NodeValue, indent: usize) {
    match value {
        NodeValue::Null => text.push_str("null"),
        NodeValue::Map(_) => text.push_str("{}"),
        NodeValue::List(_) => text.push_str("[]"),
        NodeValue::Scalar(scalar) if is_plain(scalar) => text.push_str(&scalar.text),
        NodeValue::Scalar(scalar) if indent > 0 && is_block(scalar) => {
            block(text, &scalar.text, indent);
        }
        NodeValue::Scalar(scalar) if needs_no_quotes(&scalar.text) => text.push_str(&scalar.text),
        NodeValue::Scalar(scalar) => quoted(text, &scalar.text),
    }
}

/// Whether a scalar without quotes is parsed as the same value.
fn is_plain(scalar: &Scalar) -> bool {
    if scalar.style != Style::Plain {
        return false;
    }
    scalar.kind() != ScalarKind::Text || is_plain_text(&scalar.text)
}

/// Whether a text can lose its quotes, for every parser of YAML 1.1 and 1.2: it is like a name, a path or a time such as
/// `50s`, and like no number, boolean, null or date.
fn needs_no_quotes(text: &str) -> bool {
    let scalar = Scalar { text: text.to_owned(), style: Style::Plain };
    let is_reserved = RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word));
    let after_digits = text.trim_start_matches(|it: char| it.is_ascii_digit());
    let is_amount = after_digits.len() < text.len()
        && !after_digits.is_empty()
        && after_digits.chars().all(|it| it.is_ascii_alphabetic());
    let is_word = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/');
    (is_word || is_amount)
        && !is_reserved
        && !text.contains([':', '='])
        && is_plain_text(text)
        && scalar.kind() == ScalarKind::Text
}

/// Words that stand for something else than text, in some version of YAML.
const RESERVED: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// Whether a text contains only characters without a meaning in YAML.
fn is_plain_text(text: &str) -> bool {
    let is_null = matches!(text, "null" | "Null" | "NULL");
    let is_begin = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '/');
    let mut rest = text.chars().peekable();
    if is_null || !rest.peek().copied().is_some_and(is_begin) || text.ends_with([' ', ':']) {
        return false;
    }
    while let Some(character) = rest.next() {
        let is_sound = match character {
            ' ' => rest.peek().is_some_and(|next| next.is_ascii_alphanumeric()),
            ':' => rest.peek().is_some_and(|next| *next != ' '),
            _ => {
                character.is_ascii_alphanumeric()
                    || matches!(
                        character,
                        '_' | '-' | '.' | '/' | '@' | '+' | '=' | '~' | '*' | '$'
                    )
            }
        };
        if !is_sound {
            return false;
        }
    }
    true
}

/// Whether a text of several lines is parsed unchanged in a literal block.
fn is_block(scalar: &Scalar) -> bool {
    let text = scalar.text.as_str();
    let is_sound = |line: &str| {
        let is_shown = |it: char| !is_unseen(it) && !is_break(it) && !is_private(it);
        !line.starts_with([' ', '\t']) && !line.ends_with([' ', '\t']) && line.chars().all(is_shown)
    };
    let (first, last) = (text.lines().next(), text.strip_suffix('\n').unwrap_or(text));
    scalar.style == Style::Block
        && first.is_some_and(|first| !first.is_empty())
        && !last.ends_with('\n')
        && text.split('\n').all(is_sound)
}

/// Characters that some parsers take for line breaks.
fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn block(text: &mut String, content: &str, indent: usize) {
    text.push('|');
    let lines = match content.strip_suffix('\n') {
        Some(lines) => lines,
        None => {
            text.push('-');
            content
        }
    };
    for line in lines.split('\n') {
        text.push('\n');
        if !line.is_empty() {
            spaces(text, indent);
            text.push_str(line);
        }
    }
}

fn key(key: &str) -> String {
    let is_begin = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_sound = |it: char| is_begin(it) || matches!(it, '-' | '.' | '/');
    if key.starts_with(is_begin) && key.chars().all(is_sound) {
        return key.to_owned();
    }
    let mut text = String::new();
    quoted(&mut text, key);
    text
}

/// Writes a text in quotes: in single ones where that needs fewer escapes. Double quotes can contain any character.
fn quoted(text: &mut String, content: &str) {
    let is_escaped = |it: char| matches!(it, '"' | '\\');
    let single = content.matches('\'').count();
    let is_special = |it: char| is_unseen(it) || is_break(it) || is_private(it);
    if single < content.matches(is_escaped).count() && !content.contains(is_special) {
        text.push('\'');
        text.push_str(&content.replace('\'', "''"));
        text.push('\'');
        return;
    }
    text.push('"');
    for character in content.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            _ if is_unseen(character) || is_break(character) || is_private(character) => {
                escape(text, u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

/// Characters that a YAML file must not contain.
fn is_private(character: char) -> bool {
    matches!(character, '\u{fffe}' | '\u{ffff}')
}

fn escape(text: &mut String, code: u32) {
    let written = match code {
        0..=0xff => write!(text, "\\x{code:02x}"),
        0x100..=0xffff => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
    written.expect("writing to a String cannot fail");
}

fn spaces(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n(' ', count));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;
    use crate::tree::{Lines, Span, parse};

    fn node(value: NodeValue) -> Node {
        Node { span: Span::at(1, 1), value }
    }

    fn scalar(text: &str, style: Style) -> Node {
        node(NodeValue::Scalar(Scalar { text: text.to_owned(), style }))
    }

    /// The tree without positions, and without differences of style that have no meaning.
    fn bare(node: &Node) -> String {
        match &node.value {
            NodeValue::Null => "null".to_owned(),
            NodeValue::Scalar(scalar) => format!("{:?}{:?}", scalar.kind(), scalar.text),
            NodeValue::List(items) => {
                format!("[{}]", items.iter().map(bare).collect::<Vec<_>>().join(","))
            }
            NodeValue::Map(entries) => {
                let shown = |entry: &Entry| format!("{:?}={}", entry.key, bare(&entry.value));
                format!("{{{}}}", entries.iter().map(shown).collect::<Vec<_>>().join(","))
            }
        }
    }

    fn check(root: &Node) -> Result<(), String> {
        let text = write(root);
        let (read, findings) = parse(&Lines::new(&text));
        if !findings.is_empty() {
            return Err(format!("{findings:?}\n{text}"));
        }
        let (read, root) = (read.as_ref().map(bare), bare(root));
        if read.as_ref() == Some(&root) { Ok(()) } else { Err(format!("{read:?}\n{root}\n{text}")) }
    }

    #[test]
    fn texts_that_mean_something_in_yaml() {
        let texts = [
            "",
            " ",
            "a",
            "a b",
            " a",
            "a ",
            "null",
            "~",
            "true",
            "1",
            "1.5",
            "0x1",
            "-",
            "- a",
            "--- ",
            "...",
            "a: b",
            "a:",
            ":a",
            "a #b",
            "a#b",
            "#a",
            "[a",
            "{a",
            "a]",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "%a",
            "@a",
            "`a",
            "'a'",
            "\"a\"",
            "a\\b",
            "? a",
            "?",
            "a,b",
            "<<",
            "=",
            "\u{85}",
            "\u{2028}",
            "a\u{feff}b",
            "\u{0}",
            "\u{7f}",
            "\u{a0}",
            "\u{1f980}",
            "\t",
            "a\tb",
            "a\n",
            "a\nb",
            "\na",
            "a\n\nb\n",
            "a\n b\n",
            "a \nb",
            "a\r\nb",
            "\n",
            "a\n\n",
            "off",
            "10.0.0.1:80",
            "[::1]:80",
            "unix:/run/a",
            "${request.path}",
            "\u{202e}x",
            "\u{fffe}",
        ];
        for text in texts {
            for style in [Style::Quoted, Style::Block, Style::Plain] {
                let value = scalar(text, style);
                // An empty plain scalar parses as null.
                if style == Style::Plain && matches!(text, "" | "~" | "null") {
                    continue;
                }
                let entry =
                    Entry { key: text.to_owned(), key_span: Span::at(1, 1), value: value.clone() };
                let list = node(NodeValue::List(vec![value.clone(), value.clone()]));
                let nested = node(NodeValue::List(vec![list.clone(), list]));
                let map = node(NodeValue::Map(vec![entry.clone()]));
                let deep = node(NodeValue::List(vec![map.clone(), nested.clone(), map.clone()]));
                for root in [value, nested, map, deep] {
                    check(&root).unwrap_or_else(|error| panic!("{text:?} {style:?}: {error}"));
                }
            }
        }
        let long = Entry {
            key: "k:".repeat(2_000),
            key_span: Span::at(1, 1),
            value: scalar("1", Style::Plain),
        };
        let map = node(NodeValue::Map(vec![long]));
        let list = node(NodeValue::List(vec![map.clone()]));
        for root in [map, list] {
            check(&root).unwrap();
        }
    }

    #[test]
    fn texts_have_the_quotes_that_they_need() {
        for (text, expected) in [
            ("web", "web"),
            ("50s", "50s"),
            ("16KiB", "16KiB"),
            ("/run/weir.sock", "/run/weir.sock"),
            ("text/*", "text/*"),
            ("two words", "two words"),
            ("a.b", "a.b"),
            ("off", "\"off\""),
            ("Yes", "\"Yes\""),
            ("1", "\"1\""),
            ("1e5", "\"1e5\""),
            ("0x1f", "\"0x1f\""),
            ("2026-01-01", "\"2026-01-01\""),
            ("10.0.0.1:80", "\"10.0.0.1:80\""),
            ("a=b", "\"a=b\""),
            ("$1", "\"$1\""),
            ("*", "\"*\""),
            ("a == \"b\"", "'a == \"b\"'"),
            ("h['x'] == \"b\" || c", "\"h['x'] == \\\"b\\\" || c\""),
            ("h['x'] == \"b\\d\"", "'h[''x''] == \"b\\d\"'"),
            ("it's", "\"it's\""),
            ("\"\n", "\"\\\"\\n\""),
        ] {
            let mut written = String::new();
            let value = NodeValue::Scalar(Scalar { text: text.to_owned(), style: Style::Quoted });
            in_line(&mut written, &value, 0);
            assert_eq!(written, expected, "{text}");
        }
    }

    /// Arbitrary trees with valid plain scalars.
    fn trees() -> impl Strategy<Value = Node> {
        let text =
            prop_oneof!["[ -~]{0,12}", "[a-z0-9:. /-]{0,12}", "(?s).{0,8}", "([a-z ]{0,5}\n){0,3}"];
        let styles = prop_oneof![Just(Style::Plain), Just(Style::Quoted), Just(Style::Block)];
        let scalars = (text.clone(), styles).prop_map(|(text, style)| {
            let is_null = matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
            let style = if style == Style::Plain && is_null { Style::Quoted } else { style };
            scalar(&text, style)
        });
        let leaf = prop_oneof![8 => scalars, 1 => Just(node(NodeValue::Null))];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let entries = prop::collection::btree_map(text.clone(), inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|items| node(NodeValue::List(items))),
                entries.prop_map(|entries| {
                    let entry = |(key, value)| Entry { key, key_span: Span::at(1, 1), value };
                    node(NodeValue::Map(entries.into_iter().map(entry).collect()))
                }),
            ]
        })
    }

    #[test]
    fn any_tree_is_read_as_it_was() {
        let mut runner = TestRunner::new(Config {
            cases: 2_000,
            failure_persistence: None,
            ..Config::default()
        });
        let outcome = runner.run(&trees(), |tree| check(&tree).map_err(TestCaseError::fail));
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}
