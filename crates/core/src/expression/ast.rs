//! Expressions as they were written.

use std::ops::Range;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Levels of nodes, this one included; at most [`super::NESTING_MAX`].
    pub depth: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text(String),
    Integer(i64),
    Boolean(bool),
    /// A name that stands alone: `request`.
    Name(String),
    /// `of.name`
    Field {
        of: Box<Node>,
        name: Word,
    },
    /// `of[key]`
    Index {
        of: Box<Node>,
        key: Box<Node>,
    },
    /// `of.name(arguments)`, or `name(arguments)`
    Call {
        of: Option<Box<Node>>,
        name: Word,
        arguments: Vec<Node>,
    },
    List(Vec<Node>),
    Not(Box<Node>),
    Compare {
        relation: Relation,
        sides: Box<[Node; 2]>,
    },
    /// Two or more joined by `&&`.
    All(Vec<Node>),
    /// Two or more joined by `||`.
    Any(Vec<Node>),
    /// Condition, value if it holds, value if not.
    Choice(Box<[Node; 3]>),
}

/// A name with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub text: String,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Relation {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }
}

impl Kind {
    /// The depth of the deepest child.
    pub fn children_depth(&self) -> usize {
        let deepest = |nodes: &[Node]| nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        match self {
            Self::Text(_) | Self::Integer(_) | Self::Boolean(_) | Self::Name(_) => 0,
            Self::Field { of, .. } | Self::Not(of) => of.depth,
            Self::Index { of, key } => of.depth.max(key.depth),
            Self::Call { of, arguments, .. } => {
                of.as_ref().map_or(0, |of| of.depth).max(deepest(arguments))
            }
            Self::List(nodes) | Self::All(nodes) | Self::Any(nodes) => deepest(nodes),
            Self::Compare { sides, .. } => deepest(&**sides),
            Self::Choice(parts) => deepest(&**parts),
        }
    }
}
