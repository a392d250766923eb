//! Writes a tree as YAML that is read as the same tree, with the same comments. Texts have quotes only where they need them,
//! wherever they come from: a file, or JSON.

use std::fmt::Write as _;

use super::node::{Entry, Node, NodeValue, Scalar, ScalarKind, Style};
use crate::quote::is_unseen;

/// Spaces per level of indentation.
const INDENT: usize = 2;

/// Maximum length of a simple key. Longer keys use the explicit form, because parsers search only this far for the colon.
const KEY_BYTES_MAX: usize = 512;

/// The text of a tree in block style with its comments, and a final line break.
pub fn write(root: &Node) -> String {
    Writer { text: String::new(), has_comments: true }.whole(root)
}

/// The text of a tree without its comments.
pub fn write_values(root: &Node) -> String {
    Writer { text: String::new(), has_comments: false }.whole(root)
}

/// Adds a line with a comment. Characters that a comment cannot contain become spaces.
pub(super) fn write_comment(text: &mut String, comment: &str) {
    push_comment(text, comment);
    text.push('\n');
}

fn push_comment(text: &mut String, comment: &str) {
    text.push('#');
    let is_sound = |it: char| it == '\t' || !(it.is_control() || is_break(it) || is_private(it));
    let shown = comment.trim_end().chars();
    text.extend(shown.map(|it| if is_sound(it) && it != '\u{feff}' { it } else { ' ' }));
}

struct Writer {
    text: String,
    has_comments: bool,
}

impl Writer {
    fn whole(mut self, root: &Node) -> String {
        self.above(root, 0);
        match &root.value {
            NodeValue::Map(entries) if !entries.is_empty() => self.map(entries, 0, false),
            NodeValue::List(items) if !items.is_empty() => self.list(items, 0, false),
            _ => {
                self.in_line(root, 0);
                self.text.push('\n');
            }
        }
        self.text
    }

    /// Writes a map. `is_begun`: its first key stands behind a dash, and the comments above it are written already.
    fn map(&mut self, entries: &[Entry], indent: usize, is_begun: bool) {
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 || !is_begun {
                self.above(&entry.value, indent);
                spaces(&mut self.text, indent);
            }
            let key = key(&entry.key);
            if key.len() > KEY_BYTES_MAX {
                self.text.push_str("? ");
                self.text.push_str(&key);
                self.text.push('\n');
                spaces(&mut self.text, indent);
            } else {
                self.text.push_str(&key);
            }
            self.text.push(':');
            self.value(&entry.value, indent + INDENT);
        }
    }

    /// Writes a list. `is_begun`: the comments above its first item are written already.
    fn list(&mut self, items: &[Node], indent: usize, is_begun: bool) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 || !is_begun {
                self.above_item(item, indent);
            }
            spaces(&mut self.text, indent);
            self.text.push('-');
            match &item.value {
                NodeValue::Map(entries) if !entries.is_empty() => {
                    self.text.push(' ');
                    self.map(entries, indent + INDENT, true);
                }
                NodeValue::List(items) if !items.is_empty() => {
                    self.text.push('\n');
                    self.list(items, indent + INDENT, true);
                }
                NodeValue::Scalar(scalar) if is_written_as_block(scalar) => {
                    self.text.push(' ');
                    self.block(None, &scalar.text, indent + INDENT);
                    self.text.push('\n');
                }
                _ => self.value(item, indent + INDENT),
            }
        }
    }

    /// Writes the comments above an item, and those of what begins with it: only the lines above the dash have room for them.
    fn above_item(&mut self, item: &Node, indent: usize) {
        self.above(item, indent);
        match &item.value {
            NodeValue::Map(entries) if !entries.is_empty() => {
                self.beside_above(item, indent);
                self.above(&entries[0].value, indent);
            }
            NodeValue::List(items) if !items.is_empty() => {
                self.beside_above(item, indent);
                self.above_item(&items[0], indent);
            }
            NodeValue::Scalar(scalar) if is_written_as_block(scalar) => {
                self.beside_above(item, indent);
            }
            _ => {}
        }
    }

    /// Writes a value after its key or dash. `indent`: the indentation of its content.
    fn value(&mut self, node: &Node, indent: usize) {
        match &node.value {
            NodeValue::Map(entries) if !entries.is_empty() => {
                self.beside(node);
                self.text.push('\n');
                self.map(entries, indent, false);
            }
            NodeValue::List(items) if !items.is_empty() => {
                self.beside(node);
                self.text.push('\n');
                self.list(items, indent, false);
            }
            _ => {
                self.text.push(' ');
                self.in_line(node, indent);
                self.text.push('\n');
            }
        }
    }

    /// Writes a value on the current line, and its comment.
    fn in_line(&mut self, node: &Node, indent: usize) {
        match &node.value {
            NodeValue::Scalar(scalar) if indent > 0 && is_written_as_block(scalar) => {
                return self.block(Some(node), &scalar.text, indent);
            }
            NodeValue::Null => self.text.push_str("null"),
            NodeValue::Map(_) => self.text.push_str("{}"),
            NodeValue::List(_) => self.text.push_str("[]"),
            NodeValue::Scalar(scalar) if is_plain(scalar) || needs_no_quotes(&scalar.text) => {
                self.text.push_str(&scalar.text);
            }
            NodeValue::Scalar(scalar) => quoted(&mut self.text, &scalar.text),
        }
        self.beside(node);
    }

    /// Writes a text as a block. `beside`: the node whose comment stands in the first line.
    fn block(&mut self, beside: Option<&Node>, content: &str, indent: usize) {
        self.text.push('|');
        let lines = match content.strip_suffix('\n') {
            Some(lines) => lines,
            None => {
                self.text.push('-');
                content
            }
        };
        beside.into_iter().for_each(|node| self.beside(node));
        for line in lines.split('\n') {
            self.text.push('\n');
            if !line.is_empty() {
                spaces(&mut self.text, indent);
                self.text.push_str(line);
            }
        }
    }

    /// Writes the comments above a value.
    fn above(&mut self, node: &Node, indent: usize) {
        let comments = node.comments.as_ref().filter(|_| self.has_comments);
        for comment in comments.into_iter().flat_map(|comments| &comments.above) {
            spaces(&mut self.text, indent);
            write_comment(&mut self.text, comment);
        }
    }

    /// Writes the comment beside a value.
    fn beside(&mut self, node: &Node) {
        let comments = node.comments.as_ref().filter(|_| self.has_comments);
        if let Some(comment) = comments.and_then(|comments| comments.beside.as_ref()) {
            self.text.push(' ');
            push_comment(&mut self.text, comment);
        }
    }

    /// Writes the comment beside a value on a line above it.
    fn beside_above(&mut self, node: &Node, indent: usize) {
        let comments = node.comments.as_ref().filter(|_| self.has_comments);
        if let Some(comment) = comments.and_then(|comments| comments.beside.as_ref()) {
            spaces(&mut self.text, indent);
            write_comment(&mut self.text, comment);
        }
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

/// Whether a scalar below the root is written as a block.
fn is_written_as_block(scalar: &Scalar) -> bool {
    !is_plain(scalar) && is_block(scalar)
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
    use crate::document::{Comments, Document, SourceId, Span};

    fn node(value: NodeValue) -> Node {
        Node::new(Span::at(1, 1), value)
    }

    fn list(items: Vec<Node>) -> Node {
        Node::list(Span::at(1, 1), items)
    }

    fn map(entries: Vec<Entry>) -> Node {
        Node::map(Span::at(1, 1), entries)
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

    /// The comments below a node, in the order of the text.
    fn comments_of(node: &Node, found: &mut Vec<String>) {
        let mut below = |node: &Node| {
            if let Some(comments) = &node.comments {
                let all = comments.above.iter().chain(&comments.beside);
                found.extend(all.map(|comment| comment.trim_end().to_owned()));
            }
            comments_of(node, found);
        };
        match &node.value {
            NodeValue::Null | NodeValue::Scalar(_) => {}
            NodeValue::List(items) => items.iter().for_each(below),
            NodeValue::Map(entries) => entries.iter().for_each(|entry| below(&entry.value)),
        }
    }

    /// Values and comments.
    fn contents(root: &Node) -> (String, Vec<String>) {
        let mut comments = Vec::new();
        comments_of(root, &mut comments);
        (bare(root), comments)
    }

    fn check(root: &Node) -> Result<(), String> {
        for (text, has_comments) in [(write(root), true), (write_values(root), false)] {
            let read = Document::read("test.yaml".into(), SourceId::MAIN, text.clone(), 0);
            if !read.findings.is_empty() {
                return Err(format!("{:?}\n{text}", read.findings));
            }
            let read = read.with_comments();
            let (values, comments) = contents(root);
            let expected = (values, if has_comments { comments } else { Vec::new() });
            let found = read.root.as_ref().map(contents);
            if found.as_ref() != Some(&expected) {
                return Err(format!("{found:?}\n{expected:?}\n{text}"));
            }
            if read.to_yaml() != text {
                return Err(format!("{}\n{text}", read.to_yaml()));
            }
        }
        Ok(())
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
                let twice = list(vec![value.clone(), value.clone()]);
                let nested = list(vec![twice.clone(), twice]);
                let one = map(vec![entry.clone()]);
                let deep = list(vec![one.clone(), nested.clone(), one.clone()]);
                for root in [value, nested, one, deep] {
                    check(&root).unwrap_or_else(|error| panic!("{text:?} {style:?}: {error}"));
                }
            }
        }
        let long = Entry {
            key: "k:".repeat(2_000),
            key_span: Span::at(1, 1),
            value: scalar("1", Style::Plain),
        };
        let one = map(vec![long]);
        let items = list(vec![one.clone()]);
        for root in [one, items] {
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
            assert_eq!(write(&scalar(text, Style::Quoted)), format!("{expected}\n"), "{text}");
        }
    }

    /// A value in a list or map, perhaps with comments.
    fn with_comments(value: impl Strategy<Value = Node>) -> impl Strategy<Value = Node> {
        let comment = "[ -~\u{e9}]{0,8}";
        let above = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(comment, 1..3)];
        let beside = prop::option::weighted(0.2, comment);
        (value, above, beside).prop_map(|(mut node, above, beside)| {
            if !above.is_empty() || beside.is_some() {
                *node.comments_mut() = Comments { above, beside };
            }
            node
        })
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
            let inner = with_comments(inner).boxed();
            let entries = prop::collection::btree_map(text.clone(), inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(list),
                entries.prop_map(|entries| {
                    let entry = |(key, value)| Entry { key, key_span: Span::at(1, 1), value };
                    map(entries.into_iter().map(entry).collect())
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

    #[test]
    fn a_comment_stays_one_line() {
        let mut text = String::new();
        write_comment(&mut text, " a\nb\u{0}c\u{2028}d\te ");
        assert_eq!(text, "# a b c d\te\n");
    }
}
