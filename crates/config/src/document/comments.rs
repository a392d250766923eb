//! Finds the comments of a text, and puts them beside the values of its tree.
//!
//! A comment on a line of its own belongs to the next entry or item. One behind something belongs to the entry or item that
//! begins last before it. Empty lines are not kept.

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;
use std::sync::Arc;

use super::node::{Comments, Node, NodeValue};
use super::span::Span;

/// A scalar in which a `#` does not begin a comment. Places are numbers of characters.
#[derive(Debug)]
pub(super) enum Opaque {
    /// A scalar in quotes, which begins here.
    Quoted(usize),
    /// The content of a block scalar.
    Block(Range<usize>),
}

impl Opaque {
    fn start(&self) -> usize {
        match self {
            Self::Quoted(start) => *start,
            Self::Block(range) => range.start,
        }
    }
}

/// Puts the comments of a text into its tree. Returns those after the last value.
pub(super) fn attach(text: &str, opaque: &[Opaque], root: Option<&mut Node>) -> Vec<String> {
    if !text.contains('#') {
        return Vec::new();
    }
    let mut starts = Vec::new();
    if let Some(root) = &root {
        note_starts(root, &mut starts);
    }
    let mut around: HashMap<usize, Comments> = HashMap::new();
    let mut end = Vec::new();
    for comment in find(text, opaque) {
        let after = starts.partition_point(|start| *start <= comment.place);
        if let (false, Some(slot)) = (comment.is_alone, after.checked_sub(1)) {
            let beside = &mut around.entry(slot).or_default().beside;
            match beside {
                Some(first) => *first = format!("{first} #{}", comment.text),
                None => *beside = Some(comment.text),
            }
        } else if after < starts.len() {
            around.entry(after).or_default().above.push(comment.text);
        } else {
            end.push(comment.text);
        }
    }
    if let Some(root) = root {
        put(root, &mut 0, &mut around);
    }
    end
}

/// Notes where entries and items begin, in the order of the text.
fn note_starts(node: &Node, starts: &mut Vec<(usize, usize)>) {
    let place = |span: Span| (span.line, span.column);
    match &node.value {
        NodeValue::Null | NodeValue::Scalar(_) => {}
        NodeValue::List(items) => {
            for item in items.iter() {
                starts.push(place(item.span));
                note_starts(item, starts);
            }
        }
        NodeValue::Map(entries) => {
            for entry in entries.iter() {
                starts.push(place(entry.key_span));
                note_starts(&entry.value, starts);
            }
        }
    }
}

/// Puts comments into the entries and items below a node, by their numbers. `number`: that of the next.
fn put(node: &mut Node, number: &mut usize, around: &mut HashMap<usize, Comments>) {
    let mut below = |node: &mut Node| {
        node.comments = around.remove(&*number).map(Box::new);
        *number += 1;
        put(node, number, around);
    };
    match &mut node.value {
        NodeValue::Null | NodeValue::Scalar(_) => {}
        NodeValue::List(items) => Arc::make_mut(items).iter_mut().for_each(below),
        NodeValue::Map(entries) => {
            Arc::make_mut(entries).iter_mut().for_each(|entry| below(&mut entry.value));
        }
    }
}

/// A comment in a text.
struct TextComment {
    /// Line and column, from 1.
    place: (usize, usize),
    /// The rest of the line after the `#`.
    text: String,
    /// Whether its line has nothing else, except what begins the item that follows.
    is_alone: bool,
}

/// The comments of a text.
fn find(text: &str, opaque: &[Opaque]) -> Vec<TextComment> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(text);
    let mut opaque = opaque.iter().peekable();
    while let Some(next) = scanner.peek() {
        while opaque.next_if(|it| it.start() < scanner.index).is_some() {}
        match opaque.next_if(|it| it.start() == scanner.index) {
            Some(Opaque::Quoted(_)) => scanner.pass_quoted(),
            Some(Opaque::Block(range)) => {
                while scanner.index < range.end && scanner.step().is_some() {}
            }
            None if next == '#' && scanner.is_apart => found.push(scanner.comment()),
            None => _ = scanner.step(),
        }
    }
    found
}

/// A position in a text.
struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    /// The number of characters before it.
    index: usize,
    line: usize,
    column: usize,
    /// Whether the line has before it only spaces and what can begin an item: dashes and the header of a block.
    is_begin: bool,
    /// Whether there is a space or the beginning of a line before it.
    is_apart: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        let rest = text.chars().peekable();
        Self { rest, index: 0, line: 1, column: 1, is_begin: true, is_apart: true }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn step(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        self.index += 1;
        if character == '\n' || character == '\r' && self.peek() != Some('\n') {
            (self.line, self.column) = (self.line + 1, 1);
            (self.is_begin, self.is_apart) = (true, true);
        } else {
            self.column += 1;
            self.is_apart = matches!(character, ' ' | '\t');
            self.is_begin &= self.is_apart || matches!(character, '-' | '|' | '>' | '+');
        }
        Some(character)
    }

    /// Passes a quoted scalar.
    fn pass_quoted(&mut self) {
        let quote = self.step();
        while let Some(character) = self.step() {
            if character == '\\' && quote == Some('"') {
                self.step();
            } else if Some(character) == quote {
                if quote != Some('\'') || self.peek() != quote {
                    return;
                }
                self.step();
            }
        }
    }

    /// Passes a comment, which begins here.
    fn comment(&mut self) -> TextComment {
        let (place, is_alone) = ((self.line, self.column), self.is_begin);
        self.step();
        let mut text = String::new();
        while self.peek().is_some_and(|next| !matches!(next, '\n' | '\r')) {
            text.extend(self.step());
        }
        text.truncate(text.trim_end().len());
        TextComment { place, text, is_alone }
    }
}

#[cfg(test)]
mod tests {
    use crate::document::{Document, SourceId};

    /// What is written of a text.
    fn written(text: &str) -> String {
        let document = Document::read("test.yaml".into(), SourceId::MAIN, text.into(), 0);
        assert_eq!(document.findings, [], "{text}");
        document.with_comments().to_yaml()
    }

    #[test]
    fn comments_are_read_on_demand() {
        let text = "# above\na: 1 # beside\n# end\n";
        let document = Document::read("test.yaml".into(), SourceId::MAIN, text.into(), 0);
        assert_eq!((document.to_yaml(), &document.end[..]), ("a: 1\n".to_owned(), &[][..]));
        let document = document.with_comments();
        assert_eq!((document.to_yaml(), document.values), (text.to_owned(), 2));
    }

    #[test]
    fn comments_stay_where_they_belong() {
        let check = |text: &str, expected: &str| {
            assert_eq!(written(text), expected, "{text}");
            assert_eq!(written(expected), expected, "it stays the same");
        };
        let same = |text: &str| check(text, text);
        same(
            "# header\n#\n#! second\na: 1 # beside\nb: # of the map\n  # above c\n  c: 2\n# end\n",
        );
        same(
            "a:\n  # above one\n  - one # beside\n  # above two\n  - b: 1\n    # above c\n    c: 2 # at c\n",
        );
        same("a: \"x # y\" # z\nb: 'it''s \"#\"' # c\n");
        same("a: | # header\n  text # no comment\n  # neither\n# end\n");
        same("# only comments\n");
        // Lists and maps in one line become blocks.
        check("a: [ 1, # one\n  2 ] # two\n", "a:\n  - 1 # one\n  - 2 # two\n");
        check("a: { b: 1, c: 2 } # c\n", "a:\n  b: 1\n  c: 2 # c\n");
        check("a: [ { b: 1 } ] # 1\n# 2\nc: 3\n", "a:\n  - b: 1 # 1\n# 2\nc: 3\n");
        // Several on one value are joined.
        check("a: [ # one\n ] # two\n", "a: [] # one # two\n");
        // Indentation and empty lines are the writer's.
        check(
            "a:\n      # deep\n  b: 1\n\n\n# c\n  # d\nc: 2",
            "a:\n  # deep\n  b: 1\n# c\n# d\nc: 2\n",
        );
        check("a:\n- # of the item\n  b: 1\n", "a:\n  # of the item\n  - b: 1\n");
        check("- 1\n- | # of the block\n  a\n", "- 1\n# of the block\n- |\n  a\n");
        check("--- # first\na: 1\r\n# b\r\nb: 2 #\tc \n", "# first\na: 1\n# b\nb: 2 #\tc\n");
        check(
            "a: >-\n  folded\n  text\n# c\nb: 'x\n  # y' # z\n",
            "a: |-\n  folded text\n# c\nb: \"x # y\" # z\n",
        );
        check("a: |+ # keep\n\n# end", "a: \"\\n\" # keep\n# end\n");
        check("a: x#y\n", "a: \"x#y\"\n");
    }
}
