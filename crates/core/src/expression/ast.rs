//! The syntax tree of expressions.

use std::ops::Range;

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    /// The node's bytes in the text.
    pub range: Range<usize>,
    /// The height of the tree below and including this node; at most [`super::NESTING_MAX`].
    pub depth: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text(String),
    Integer(i64),
    Boolean(bool),
    /// A single name: `request`.
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
    /// Negation of a value.
    Negative(Box<Node>),
    Arithmetic {
        operator: Operator,
        sides: Box<[Node; 2]>,
    },
    Compare {
        relation: Relation,
        sides: Box<[Node; 2]>,
    },
    /// Two or more operands joined by `&&`.
    All(Vec<Node>),
    /// Two or more operands joined by `||`.
    Any(Vec<Node>),
    /// Condition, value if true, value if false.
    Choice(Box<[Node; 3]>),
}

/// A name and its place.
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

/// An operation on two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// A result outside 64 bits is the nearest integer within; a division by 0 gives 0.
    pub fn apply(self, left: i64, right: i64) -> i64 {
        match self {
            Self::Add => left.saturating_add(right),
            Self::Subtract => left.saturating_sub(right),
            Self::Multiply => left.saturating_mul(right),
            Self::Divide | Self::Remainder if right == 0 => 0,
            Self::Divide => left.saturating_div(right),
            Self::Remainder => left.wrapping_rem(right),
        }
    }
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
            Self::Field { of, .. } | Self::Not(of) | Self::Negative(of) => of.depth,
            Self::Index { of, key } => of.depth.max(key.depth),
            Self::Call { of, arguments, .. } => {
                of.as_ref().map_or(0, |of| of.depth).max(deepest(arguments))
            }
            Self::List(nodes) | Self::All(nodes) | Self::Any(nodes) => deepest(nodes),
            Self::Compare { sides, .. } | Self::Arithmetic { sides, .. } => deepest(&**sides),
            Self::Choice(parts) => deepest(&**parts),
        }
    }
}
