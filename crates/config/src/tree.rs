//! Parses YAML text to a tree of nodes with their places.
//!
//! The language is a part of YAML 1.2: one document; maps, lists and scalars; keys are text and
//! unique. Anchors, aliases, merge keys and tags are refused: named profiles serve the same purpose, and a reader sees
//! every value where it applies. So the tree is never larger than
//! its text, and it is built without recursion up to [`NODE_DEPTH_MAX`].

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::diagnostic::Position;
use crate::quote::clip;

/// Maximum nesting of lists and maps; the configuration language needs 8.
pub const NODE_DEPTH_MAX: usize = 32;

/// Maximum number of scalars, lists and maps in all files: some hundred thousand members.
pub const NODES_MAX: usize = 1_000_000;

/// In longer lines only the beginning of a quoted text is marked, because each search starts at the line's beginning.
const QUOTED_LINE_BYTES_MAX: usize = 4096;

/// The file of a place, or the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source(u16);

impl Source {
    /// The main file.
    pub const MAIN: Self = Self(0);
    /// The overlay.
    pub const OVERLAY: Self = Self(u16::MAX);

    /// The file with this index; 0: the main file.
    pub fn file(index: usize) -> Self {
        // There are far fewer files (`FILES_MAX`).
        Self(u16::try_from(index).unwrap_or(u16::MAX - 1))
    }

    /// The index of the file; `None`: the overlay.
    pub fn index(self) -> Option<usize> {
        (self != Self::OVERLAY).then_some(usize::from(self.0))
    }
}

/// A piece of one line of a file, or a value of the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub source: Source,
    /// The line number, from 1. 0: the whole file. In the overlay: the number of a pointer.
    pub line: usize,
    pub column: usize,
    /// The length in characters; at least 1.
    pub length: usize,
}

impl Span {
    /// A character of the main file.
    pub fn at(line: usize, column: usize) -> Self {
        Self { source: Source::MAIN, line, column, length: 1 }
    }

    /// A whole file.
    pub fn whole(source: Source) -> Self {
        Self { source, line: 0, column: 0, length: 1 }
    }

    /// A value of the overlay, by the number of its pointer.
    pub fn overlaid(pointer: usize) -> Self {
        // No text is this long, so a place inside the value means the whole value.
        Self { source: Source::OVERLAY, line: pointer, column: 1, length: usize::MAX }
    }

    /// The same place in this file.
    pub fn of(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Line and column; `None`: a whole file, or the overlay.
    pub fn position(self) -> Option<Position> {
        let is_line = self.line > 0 && self.source != Source::OVERLAY;
        is_line.then_some(Position { line: self.line, column: self.column })
    }

    /// The place of a character of a scalar, if the file contains the text literally: plain, or quoted without escapes.
    /// Otherwise the place of the whole scalar.
    pub fn within(self, text: &str, offset: usize) -> Self {
        let characters = text.chars().count();
        let quotes = match self.length.checked_sub(characters) {
            Some(0) => 0,
            Some(2) => 1,
            _ => return self,
        };
        Self::at(self.line, self.column + quotes + offset).of(self.source)
    }
}

impl From<saphyr_parser::Span> for Span {
    fn from(span: saphyr_parser::Span) -> Self {
        let length = if span.end.line() == span.start.line() {
            span.end.col().saturating_sub(span.start.col())
        } else {
            // To the end of the first line, where the renderer stops.
            usize::MAX
        };
        Self { length: length.max(1), ..Self::at(span.start.line().max(1), span.start.col() + 1) }
    }
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub span: Span,
    pub value: NodeValue,
}

impl Node {
    /// The value of a key in a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let NodeValue::Map(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The same with one place for all of it: weir has written it for a key that stands there.
    pub fn all_at(mut self, span: Span) -> Self {
        self.put_at(span);
        self
    }

    fn put_at(&mut self, span: Span) {
        self.span = span;
        match &mut self.value {
            NodeValue::Null | NodeValue::Scalar(_) => {}
            NodeValue::List(nodes) => nodes.iter_mut().for_each(|node| node.put_at(span)),
            NodeValue::Map(entries) => {
                for entry in entries {
                    entry.key_span = span;
                    entry.value.put_at(span);
                }
            }
        }
    }
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    /// Nothing, `~` or `null`.
    Null,
    /// A text, not typed yet.
    Scalar(Scalar),
    List(Vec<Node>),
    /// Entries in the file's order; keys are unique.
    Map(Vec<Entry>),
}

/// A text of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    pub text: String,
    pub style: Style,
}

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes: only plain scalars can be numbers.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// `|` or `>`.
    Block,
}

/// One key of a map with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

/// Something that the language does not allow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub span: Span,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Finding {
    /// A finding without a suggestion.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), suggestion: None }
    }

    /// Adds a suggestion.
    pub fn help(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// Parses a document that is not part of a configuration.
pub(crate) fn parse(lines: &Lines<'_>) -> (Option<Node>, Vec<Finding>) {
    parse_file(lines, Source::MAIN, &mut 0)
}

/// Parses one file. `nodes`: the number of values in all files so far. A tree may be returned with findings: after a
/// repeated key, the first value is kept, so that the rest of the file is checked in the same run.
pub(crate) fn parse_file(
    lines: &Lines<'_>,
    source: Source,
    nodes: &mut usize,
) -> (Option<Node>, Vec<Finding>) {
    if let Some(mut finding) = forbidden_character(lines) {
        finding.span.source = source;
        return (None, vec![finding]);
    }
    let mut builder = Builder::new(lines, source, *nodes);
    let result = builder.run();
    *nodes = builder.nodes;
    match result {
        Ok(()) => (builder.root, builder.findings),
        Err(fatal) => {
            builder.findings.push(Finding { span: fatal.span.of(source), ..fatal });
            (None, builder.findings)
        }
    }
}

/// The lines of a text as YAML defines them: ended by `\n`, `\r\n` or `\r`.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// The byte offset of each line. Four bytes per line, because a file may consist of line breaks only.
    starts: Vec<u32>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(index, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        });
        // Texts are much smaller than 4 GiB (`FILE_BYTES_MAX`); lines beyond that would be ignored.
        let starts = ends.filter_map(|(index, _)| u32::try_from(index + 1).ok());
        Self { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The line with this number, without its end; the first line is 1.
    pub fn get(&self, number: usize) -> Option<&'a str> {
        let at = |index: usize| {
            let start = self.starts.get(index)?;
            usize::try_from(*start).ok()
        };
        let start = at(number.checked_sub(1)?)?;
        let end = at(number).unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> {
        (1..=self.starts.len()).map_while(|number| self.get(number))
    }
}

/// The first character outside YAML's `c-printable` set. The parser would take a NUL for the end of the file and
/// silently omit the rest.
fn forbidden_character(lines: &Lines<'_>) -> Option<Finding> {
    let allowed = |character: char| {
        matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..)
            && !matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if lines.text.chars().all(allowed) {
        return None;
    }
    lines.iter().enumerate().find_map(|(index, line)| {
        let (column, character) =
            line.chars().enumerate().find(|&(_, character)| !allowed(character))?;
        let code = u32::from(character);
        Some(
            Finding::new(
                Span::at(index + 1, column + 1),
                format!("the character U+{code:04X} is not allowed in a configuration file"),
            )
            .help("remove it, or write it as an escape (\"\\u0007\") in double quotes"),
        )
    })
}

/// A list or map that is not complete yet.
enum Frame {
    List {
        span: Span,
        items: Vec<Node>,
    },
    Map {
        span: Span,
        entries: Vec<Entry>,
        seen: HashMap<String, Span>,
        key: Option<(String, Span)>,
    },
}

struct Builder<'a> {
    lines: &'a Lines<'a>,
    source: Source,
    stack: Vec<Frame>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
    findings: Vec<Finding>,
}

impl<'a> Builder<'a> {
    fn new(lines: &'a Lines<'a>, source: Source, nodes: usize) -> Self {
        let (stack, findings) = (Vec::new(), Vec::new());
        Self { lines, source, stack, root: None, nodes, documents: 0, findings }
    }

    fn run(&mut self) -> Result<(), Finding> {
        let mut parser = Parser::new_from_str(self.lines.text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| scan_finding(self.lines, &error))?;
            self.event(event, Span::from(span).of(self.source))?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Finding::new(
                        span,
                        "a configuration file has one document, and a second one starts here",
                    )
                    .help("remove the `---`, or split the file"));
                }
                Ok(())
            }
            Event::Alias(_) => Err(no_anchors(span)),
            Event::Scalar(text, style, anchor, tag) => {
                plain_node(span, anchor, tag.is_some())?;
                self.scalar(text, style, span)
            }
            Event::SequenceStart(anchor, tag) => {
                plain_node(span, anchor, tag.is_some())?;
                self.open(Frame::List { span, items: Vec::new() })
            }
            Event::MappingStart(anchor, tag) => {
                plain_node(span, anchor, tag.is_some())?;
                self.open(Frame::Map { span, entries: Vec::new(), seen: HashMap::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Frame::List { span, items }) => {
                    self.add(Node { span, value: NodeValue::List(items) })
                }
                Some(Frame::Map { span, entries, .. }) => {
                    self.add(Node { span, value: NodeValue::Map(entries) })
                }
                None => Err(Finding::new(span, "a list or map ends that never began")),
            },
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), Finding> {
        let span = match &frame {
            Frame::List { span, .. } | Frame::Map { span, .. } => *span,
        };
        if let Some(Frame::Map { key: None, .. }) = self.stack.last() {
            return Err(Finding::new(span, "a key must be text, not a list or a map")
                .help("quote text that begins with `{` or `[`, also addresses: \"[::1]:8080\""));
        }
        if self.stack.len() >= NODE_DEPTH_MAX {
            return Err(too_deep(span));
        }
        self.stack.push(frame);
        Ok(())
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        span: Span,
    ) -> Result<(), Finding> {
        let (style, span) = match style {
            ScalarStyle::Plain => (Style::Plain, span),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                (Style::Quoted, self.quoted_span(span))
            }
            ScalarStyle::Literal | ScalarStyle::Folded => (Style::Block, span),
        };
        if let Some(Frame::Map { key, .. }) = self.stack.last_mut()
            && key.is_none()
        {
            if text == "<<" && style == Style::Plain {
                return Err(no_anchors(span));
            }
            *key = Some((text.into_owned(), span));
            return Ok(());
        }
        let null =
            style == Style::Plain && matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
        let value = if null {
            NodeValue::Null
        } else {
            NodeValue::Scalar(Scalar { text: text.into_owned(), style })
        };
        self.add(Node { span, value })
    }

    /// The parser ends the span of a quoted scalar at the next token; this span ends at the closing quote.
    fn quoted_span(&self, span: Span) -> Span {
        let line = self.lines.get(span.line).unwrap_or_default();
        if line.len() > QUOTED_LINE_BYTES_MAX {
            return Span { length: 1, ..span };
        }
        let mut characters = line.chars().skip(span.column - 1).peekable();
        let Some(quote @ ('"' | '\'')) = characters.next() else {
            return span;
        };
        let mut length = 1;
        while let Some(character) = characters.next() {
            length += 1;
            let escape = match quote {
                '"' => character == '\\',
                _ => character == '\'' && characters.peek() == Some(&'\''),
            };
            if escape {
                length += usize::from(characters.next().is_some());
            } else if character == quote {
                return Span { length, ..span };
            }
        }
        Span { length: usize::MAX, ..span }
    }

    fn add(&mut self, node: Node) -> Result<(), Finding> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(Finding::new(
                node.span,
                format!("the configuration has more than {NODES_MAX} values"),
            ));
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::List { items, .. }) => items.push(node),
            Some(Frame::Map { entries, seen, key, .. }) => {
                let Some((key, key_span)) = key.take() else {
                    return Err(Finding::new(node.span, "a key must be text, not a list or a map"));
                };
                if let Some(first) = seen.get(&key) {
                    self.findings.push(
                        Finding::new(
                            key_span,
                            format!(
                                "`{}` is given twice; the first is in line {}",
                                clip(&key),
                                first.line
                            ),
                        )
                        .help("keep one of them"),
                    );
                    return Ok(());
                }
                seen.insert(key.clone(), key_span);
                entries.push(Entry { key, key_span, value: node });
            }
        }
        Ok(())
    }
}

fn no_anchors(span: Span) -> Finding {
    Finding::new(span, "anchors, aliases and merge keys are not part of the language")
        .help("write the values out, or name them once under `profiles`")
}

fn plain_node(span: Span, anchor: usize, tagged: bool) -> Result<(), Finding> {
    if anchor != 0 {
        return Err(no_anchors(span));
    }
    if tagged {
        return Err(Finding::new(span, "tags (`!…`) are not part of the language")
            .help("remove the tag; quote text that begins with `!`"));
    }
    Ok(())
}

fn too_deep(span: Span) -> Finding {
    Finding::new(span, format!("lists and maps are nested more than {NODE_DEPTH_MAX} deep"))
}

/// The parser's message about brackets that are nested too deep for it; its errors can only be distinguished by their
/// text.
const PARSER_DEPTH_ERROR: &str = "recursion limit exceeded";

/// A syntax error, with suggestions for the most common mistakes.
fn scan_finding(lines: &Lines<'_>, error: &ScanError) -> Finding {
    let marker = error.marker();
    let line_number = marker.line().max(1);
    let span = Span::at(line_number, marker.col() + 1);
    if error.info() == PARSER_DEPTH_ERROR {
        return too_deep(span);
    }
    let finding = Finding::new(span, format!("not valid YAML: {}", error.info()));
    let line = lines.get(line_number).unwrap_or_default();
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    if indent.contains('\t') {
        return finding.help("indent with spaces: YAML does not allow tabs");
    }
    if line.contains("]:") {
        return finding.help("quote IPv6 addresses: \"[::1]:8080\"");
    }
    if line.contains("${") {
        return finding.help("quote text that contains `${…}`");
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in one line; scalars as `text@line:column+length`.
    fn show(node: &Node) -> String {
        let Span { line, column, length, .. } = node.span;
        match &node.value {
            NodeValue::Null => "null".into(),
            NodeValue::Scalar(scalar) => {
                let mark = if scalar.style == Style::Plain { "" } else { "'" };
                format!("{mark}{}{mark}@{line}:{column}+{length}", scalar.text)
            }
            NodeValue::List(items) => {
                let items: Vec<String> = items.iter().map(show).collect();
                format!("[{}]", items.join(" "))
            }
            NodeValue::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|entry| format!("{}={}", entry.key, show(&entry.value)))
                    .collect();
                format!("{{{}}}", entries.join(" "))
            }
        }
    }

    #[test]
    fn trees() {
        let cases = [
            ("a: 1", "{a=1@1:4+1}"),
            ("---\na:\n  - x\n  - 'y z'\n", "{a=[x@3:5+1 'y z'@4:5+5]}"),
            ("a: {b: off, c: ~}\r\nd: \"é\" # ü", "{a={b=off@1:8+3 c=null} d='é'@2:4+3}"),
            ("\u{e9}: \u{e9}\u{e9}", "{\u{e9}=\u{e9}\u{e9}@1:4+2}"),
            (r#"["a\"b" , 'c''d' ]"#, r#"['a"b'@1:2+6 'c'd'@1:11+6]"#),
            ("- [1, 2]", "[[1@1:4+1 2@1:7+1]]"),
        ];
        for (text, expected) in cases {
            let (root, findings) = parse(&Lines::new(text));
            assert_eq!(findings, [], "{text:?}");
            assert_eq!(show(&root.expect(text)), expected, "{text:?}");
        }
        assert_eq!(parse(&Lines::new("")), (None, vec![]));
        assert_eq!(parse(&Lines::new("# nothing\n")), (None, vec![]));
    }

    #[test]
    fn refused() {
        let deep = "[".repeat(NODE_DEPTH_MAX + 1);
        let too_deep_for_the_parser = "[".repeat(3_000);
        let cases = [
            ("a: 1\nb: 2\na: 3", 3, 1, "given twice; the first is in line 1"),
            ("a: &x 1", 1, 4, "anchors"),
            ("a: 1\rb: &x 1", 2, 4, "anchors"),
            ("a: &x 1\nb: *x", 1, 4, "anchors"),
            ("a: {<<: {b: 1}}", 1, 5, "merge keys"),
            ("a: !!str 1", 1, 4, "tags"),
            ("a: !weir {}", 1, 4, "tags"),
            ("a: 1\n---\nb: 2", 2, 1, "second one"),
            ("a:\n\tb: 1", 2, 2, "not valid YAML"),
            ("a: \"x\u{0}y\"", 1, 6, "U+0000"),
            ("a: b\u{7f}", 1, 5, "U+007F"),
            ("? [a]\n: 1", 1, 3, "a key must be text"),
            ("{a: [}", 1, 6, "not valid YAML"),
            (&too_deep_for_the_parser, 1, 256, "nested more than 32 deep"),
            (&deep, 1, NODE_DEPTH_MAX + 1, "nested more than 32 deep"),
        ];
        for (text, line, column, message) in cases {
            let (_, findings) = parse(&Lines::new(text));
            let finding = findings.first().expect(text);
            assert!(finding.message.contains(message), "{text:?}: {finding:?}");
            assert_eq!(
                (finding.span.line, finding.span.column),
                (line, column),
                "{text:?}: {finding:?}"
            );
        }
    }

    #[test]
    fn lines_end_as_yaml_ends_them() {
        let lines = Lines::new("a\nb\r\nc\rd\n\n");
        let all: Vec<&str> = lines.iter().collect();
        assert_eq!(all, ["a", "b", "c", "d", "", ""]);
        assert_eq!(lines.get(2), Some("b"));
        assert_eq!((lines.get(0), lines.get(7)), (None, None));
    }
}
