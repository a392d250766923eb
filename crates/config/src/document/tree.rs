//! Trees of values under construction, within the bounds that all formats have.

use std::collections::HashMap;

use super::finding::Finding;
use super::node::{Entry, Node};
use super::span::Span;
use crate::quote::clip;

/// Maximum nesting of lists and maps; the configuration language needs 8.
pub const NODE_DEPTH_MAX: usize = 32;

/// Maximum number of scalars, lists and maps in all files: some hundred thousand members.
pub const NODES_MAX: usize = 1_000_000;

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

/// A tree under construction. The reader of a format tells what it finds, in the order of the text. The bounds are checked here: the
/// number of values, their nesting, and that keys are unique.
pub(super) struct TreeBuilder {
    stack: Vec<Frame>,
    root: Option<Node>,
    nodes: usize,
    findings: Vec<Finding>,
}

impl TreeBuilder {
    /// An empty tree. `nodes_before`: the number of values in the configuration's texts before this one.
    pub fn new(nodes_before: usize) -> Self {
        Self { stack: Vec::new(), root: None, nodes: nodes_before, findings: Vec::new() }
    }

    /// A list begins.
    pub fn begin_list(&mut self, span: Span) -> Result<(), Finding> {
        self.begin(Frame::List { span, items: Vec::new() }, span)
    }

    /// A map begins.
    pub fn begin_map(&mut self, span: Span) -> Result<(), Finding> {
        self.begin(Frame::Map { span, entries: Vec::new(), seen: HashMap::new(), key: None }, span)
    }

    fn begin(&mut self, frame: Frame, span: Span) -> Result<(), Finding> {
        if self.awaits_key() {
            return Err(no_key(span));
        }
        if self.stack.len() >= NODE_DEPTH_MAX {
            return Err(too_deep(span));
        }
        self.stack.push(frame);
        Ok(())
    }

    /// The innermost list or map ends.
    pub fn end(&mut self, span: Span) -> Result<(), Finding> {
        match self.stack.pop() {
            Some(Frame::List { span, items }) => self.value(Node::list(span, items)),
            Some(Frame::Map { span, entries, .. }) => self.value(Node::map(span, entries)),
            None => Err(Finding::new(span, "a list or map ends that never began")),
        }
    }

    /// Whether a key of a map, or the end of the map, comes next.
    pub fn awaits_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame::Map { key: None, .. }))
    }

    /// The key of the value that comes next, in a map.
    pub fn key(&mut self, text: String, span: Span) {
        match self.stack.last_mut() {
            Some(Frame::Map { key, .. }) => *key = Some((text, span)),
            _ => debug_assert!(false, "only maps have keys"),
        }
    }

    /// A value. After a repeated key, the first value is kept.
    pub fn value(&mut self, node: Node) -> Result<(), Finding> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let message = format!("the configuration has more than {NODES_MAX} values");
            return Err(Finding::new(node.span, message));
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::List { items, .. }) => items.push(node),
            Some(Frame::Map { entries, seen, key, .. }) => {
                let Some((key, key_span)) = key.take() else { return Err(no_key(node.span)) };
                if let Some(first) = seen.get(&key) {
                    let (key, first) = (clip(&key), first.line);
                    let message = format!("`{key}` is given twice; the first is in line {first}");
                    self.findings.push(Finding::new(key_span, message).help("keep one of them"));
                    return Ok(());
                }
                seen.insert(key.clone(), key_span);
                entries.push(Entry { key, key_span, value: node });
            }
        }
        Ok(())
    }

    /// The number of values, including those before this text.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The tree, and what was found in it.
    pub fn finish(self) -> (Option<Node>, Vec<Finding>) {
        (self.root, self.findings)
    }
}

fn no_key(span: Span) -> Finding {
    Finding::new(span, "a key must be text, not a list or a map")
}

/// The finding about values that are nested too deep.
pub(super) fn too_deep(span: Span) -> Finding {
    Finding::new(span, format!("lists and maps are nested more than {NODE_DEPTH_MAX} deep"))
}
