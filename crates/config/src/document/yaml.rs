//! Reads YAML as a tree, without recursion.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::comments::{self, Opaque};
use super::finding::Finding;
use super::format::{CommentUse, Format, ParsedText};
use super::lines::Lines;
use super::node::{Node, NodeValue, Scalar, Style};
use super::span::{SourceId, Span};
use super::tree::{TreeBuilder, too_deep};

/// In longer lines only the beginning of a quoted text is marked, because each search starts at the line's beginning.
const QUOTED_LINE_BYTES_MAX: usize = 4096;

/// YAML.
pub(super) const FORMAT: Format = Format { ending: "yaml", mistaken: &["yml"], read };

/// Parses a document that is not part of a configuration.
pub(crate) fn parse(lines: &Lines<'_>) -> (Option<Node>, Vec<Finding>) {
    let parsed = read(lines, SourceId::MAIN, &mut 0, CommentUse::Skip);
    (parsed.root, parsed.findings)
}

/// Reads a text. After a repeated key, the first value is kept.
fn read(
    lines: &Lines<'_>,
    source: SourceId,
    values: &mut usize,
    comments: CommentUse,
) -> ParsedText {
    if let Some(mut finding) = forbidden_character(lines) {
        finding.span.source = source;
        return ParsedText { findings: vec![finding], ..ParsedText::default() };
    }
    let mut builder = Builder::new(lines, source, *values);
    builder.opaque = (comments == CommentUse::Keep).then(Vec::new);
    let result = builder.run();
    let Builder { tree, opaque, .. } = builder;
    *values = tree.nodes();
    let (mut root, mut findings) = tree.finish();
    match result {
        Ok(()) => {
            let attach = |opaque: Vec<_>| comments::attach(lines.text(), &opaque, root.as_mut());
            let end = opaque.map(attach).unwrap_or_default();
            ParsedText { root, end, findings }
        }
        Err(fatal) => {
            findings.push(Finding { span: fatal.span.of(source), ..fatal });
            ParsedText { findings, ..ParsedText::default() }
        }
    }
}

/// The place of a piece of the text, in the main file.
fn place(span: &saphyr_parser::Span) -> Span {
    let length = if span.end.line() == span.start.line() {
        span.end.col().saturating_sub(span.start.col())
    } else {
        // To the end of the first line, where the renderer stops.
        usize::MAX
    };
    Span { length: length.max(1), ..Span::at(span.start.line().max(1), span.start.col() + 1) }
}

/// The scalar of an event, if a `#` in it does not begin a comment.
fn opaque(event: &Event<'_>, span: &saphyr_parser::Span) -> Option<Opaque> {
    let Event::Scalar(text, style, ..) = event else { return None };
    match style {
        ScalarStyle::Plain => None,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
            Some(Opaque::Quoted(span.start.index()))
        }
        // Without content, the span begins at the header.
        ScalarStyle::Literal | ScalarStyle::Folded => {
            text.contains('#').then(|| Opaque::Block(span.start.index()..span.end.index()))
        }
    }
}

/// The first character outside YAML's `c-printable` set. The parser would take a NUL for the end of the file and
/// silently omit the rest.
fn forbidden_character(lines: &Lines<'_>) -> Option<Finding> {
    let allowed = |character: char| {
        matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..)
            && !matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if lines.text().chars().all(allowed) {
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

struct Builder<'a> {
    lines: &'a Lines<'a>,
    source: SourceId,
    tree: TreeBuilder,
    documents: usize,
    /// The scalars that may contain a `#`; `None`: comments are skipped.
    opaque: Option<Vec<Opaque>>,
}

impl<'a> Builder<'a> {
    fn new(lines: &'a Lines<'a>, source: SourceId, nodes: usize) -> Self {
        Self { lines, source, tree: TreeBuilder::new(nodes), documents: 0, opaque: None }
    }

    fn run(&mut self) -> Result<(), Finding> {
        let mut parser = Parser::new_from_str(self.lines.text());
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| scan_finding(self.lines, &error))?;
            if let Some(all) = &mut self.opaque {
                all.extend(opaque(&event, &span));
            }
            self.event(event, place(&span).of(self.source))?;
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
                self.no_key(span)?;
                self.tree.begin_list(span)
            }
            Event::MappingStart(anchor, tag) => {
                plain_node(span, anchor, tag.is_some())?;
                self.no_key(span)?;
                self.tree.begin_map(span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.tree.end(span),
        }
    }

    /// A list or a map is no key.
    fn no_key(&self, span: Span) -> Result<(), Finding> {
        if self.tree.awaits_key() {
            return Err(Finding::new(span, "a key must be text, not a list or a map")
                .help("quote text that begins with `{` or `[`, also addresses: \"[::1]:8080\""));
        }
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
        if self.tree.awaits_key() {
            if text == "<<" && style == Style::Plain {
                return Err(no_anchors(span));
            }
            self.tree.key(text.into_owned(), span);
            return Ok(());
        }
        let null =
            style == Style::Plain && matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
        let value = if null {
            NodeValue::Null
        } else {
            NodeValue::Scalar(Scalar { text: text.into_owned(), style })
        };
        self.tree.value(Node::new(span, value))
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
    use crate::document::NODE_DEPTH_MAX;

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
}
