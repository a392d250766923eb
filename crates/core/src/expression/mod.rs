//! Expressions: conditions and values over a request, in the syntax of CEL.
//!
//! The [language](https://github.com/google/cel-spec) is a subset of CEL's with its own types, which
//! are all known when a configuration is loaded: invalid text is refused there, with its place, and evaluation cannot
//! fail. `docs/expressions.md` describes the language for users.
//!
//! ```text
//! text ─ lexer ─▶ words ─ parser ─▶ ast ─ check ─▶ plan ─ evaluate(Facts) ─▶ true, or a text
//!                                            │              │
//!                                            └───▶ Slots ───┴─▶ Fields
//! ```
//!
//! All expressions and templates of a snapshot are compiled into one [`Slots`]: each value that one of them reads from
//! a request (a header, a cookie, the host in lower case) has a number there. A worker makes [`Fields`] from it once,
//! and for each request an [`Evaluation`]; a value is found at its first use, and kept for all other expressions.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use weir_core::expression::*;
//! use weir_http::h1::{HeadLimits, parse_request};
//! use weir_http::message::{RequestHead, Scheme};
//! use weir_http::path::TargetForm;
//!
//! let (data, mut slots) = (DataSets::new(), Slots::new());
//! let (phase, has_datagrams) = (Phase::Request, false);
//! let pools = BTreeMap::from([("web", 0)]);
//! let mut scope = Scope { phase, has_datagrams, data: &data, pools: &pools, slots: &mut slots };
//! let images = Condition::compile("request.path.endsWith('.png')", &mut scope)?;
//! let moved = Template::compile("https://new.example${request.target}", Purpose::Uri, &mut scope)?;
//!
//! let mut fields = Fields::new(Arc::new(slots));
//! let input = b"GET /a.png?b HTTP/1.1\r\nHost: old.example\r\n\r\n";
//! let mut head = RequestHead::new();
//! let limits = HeadLimits { head_size_max: 4096, headers_max: 10 };
//! parse_request(input, &limits, TargetForm::default(), &mut head).unwrap();
//! let facts = Facts {
//!     request: &head,
//!     request_input: input,
//!     client: None,
//!     server: None,
//!     scheme: Scheme::Http,
//!     tls: None,
//!     response: None,
//!     datagram: None,
//!     around: &NoSurroundings,
//!     unix_s: None,
//! };
//! let mut evaluation = fields.begin(facts);
//! assert!(evaluation.holds(&images));
//! let mut location = Vec::new();
//! evaluation.render(&moved, &mut location);
//! assert_eq!(location, b"https://new.example/a.png?b");
//! # Ok::<(), ExpressionError>(())
//! ```

mod addresses;
mod ast;
mod chance;
mod check;
mod data;
mod error;
mod evaluate;
mod facts;
mod fields;
mod foreign;
mod lexer;
mod names;
pub(crate) mod parser;
mod path_texts;
pub(crate) mod pattern;
mod plan;
mod reads;
pub(crate) mod replacement;
mod requirements;
mod slots;
mod template;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text_functions;
mod text_set;
mod time;
mod tokens;
mod values_read;

pub use addresses::{AddressSet, Network, NetworkError};
pub use data::{DataSet, DataSets, SEARCHED_TEXTS_BYTES_MAX};
pub use error::{ERRORS_MAX, ExpressionError};
pub use evaluate::Evaluation;
pub use facts::{
    CertificateFacts, CertificateName, ClientCertificate, DatagramFacts, Facts, MemberFacts,
    NoSurroundings, PoolFact, ResponseFacts, Surroundings, TlsFacts,
};
pub use fields::Fields;
pub use path_texts::{PathPlace, PathText};
pub use reads::Reads;
pub use replacement::{ReplaceResult, Replacement, ReplacementError};
pub use requirements::{KEYS_PER_CONDITION_MAX, Key, PathKey};
pub use slots::Slots;
pub use template::{Purpose, Template};
pub use values_read::{PartRead, VALUES_READ_MAX, ValueRead};

use std::collections::BTreeMap;

use ast::Node;
use check::Checker;
use plan::{Test, Text};

/// Maximum length of an expression, a template or a replacement.
pub const TEXT_LENGTH_BYTES_MAX: usize = 64 * 1024;

/// Maximum nesting of an expression's tree and of its brackets.
pub const NESTING_MAX: usize = 64;

/// Maximum number of literals, names, calls and operators in an expression.
pub const NODES_MAX: usize = 10_000;

/// Maximum compiled size of a regular expression.
pub const REGEX_SIZE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of a regular expression's lazy automaton per worker.
pub const REGEX_CACHE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum nesting of groups in a regular expression.
pub const REGEX_NESTING_MAX: u32 = 100;

/// Maximum length of a text after replacement.
pub const REPLACED_LENGTH_BYTES_MAX: usize = 64 * 1024;

// Each bound is reachable within the previous one.
const _: () = assert!(NODES_MAX < TEXT_LENGTH_BYTES_MAX && NESTING_MAX < NODES_MAX);

/// Names that an expression may use.
#[derive(Debug)]
pub struct Scope<'s> {
    /// The time of the evaluation.
    pub phase: Phase,
    /// Whether `datagram`, `sip`, `radius` and `quic` are available: the expression may be evaluated with
    /// [`Facts::datagram`]. [`Template::reads_datagram`] shows whether a template needs it.
    pub has_datagrams: bool,
    /// The data sets of the configuration.
    pub data: &'s DataSets,
    /// The numbers of the pools, by name.
    pub pools: &'s BTreeMap<&'s str, usize>,
    /// Collects the values that the expression reads.
    pub slots: &'s mut Slots,
}

/// The time of an expression's evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the response: reading `response` is an error.
    Request,
    /// With or without a response; [`Condition::reads_response`] and similar functions show whether an expression needs one.
    Response,
}

/// The result of a check, and what the expression reads.
fn compiled<'c, 's: 'c, T>(
    text: &str,
    scope: &'c mut Scope<'s>,
    check: impl FnOnce(&mut Checker<'c, 's>, &Node) -> Result<T, ExpressionError>,
) -> Result<(T, Reads), ExpressionError> {
    let checked = parser::parse(text).and_then(|node| {
        let mut checker = Checker::new(scope);
        Ok((check(&mut checker, &node)?, checker.reads))
    });
    checked.map_err(|error| foreign::of_text(error, text))
}

/// A Boolean expression.
#[derive(Debug, Clone)]
pub struct Condition {
    test: Test,
    reads: Reads,
}

impl Condition {
    /// Compiles a condition; the values that it reads are added to the scope's slots.
    ///
    /// # Errors
    /// The error and its place, in bytes of `text`.
    pub fn compile(text: &str, scope: &mut Scope<'_>) -> Result<Self, ExpressionError> {
        let (test, reads) = compiled(text, scope, Checker::boolean)?;
        Ok(Self { test, reads })
    }

    /// Whether the condition reads `response.*`, so that it is meaningful only with a response.
    pub fn reads_response(&self) -> bool {
        self.reads.response
    }

    /// The values that the condition reads.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// The constant value, if the condition reads nothing.
    pub fn constant(&self) -> Option<bool> {
        match self.test {
            Test::Constant(value) => Some(value),
            _ => None,
        }
    }
}

/// An expression of type text; an integer or an address is converted to text.
#[derive(Debug, Clone)]
pub struct Value {
    text: Text,
    reads: Reads,
}

impl Value {
    /// Compiles a value; the values that it reads are added to the scope's slots.
    ///
    /// # Errors
    /// The error and its place, in bytes of `text`.
    pub fn compile(text: &str, scope: &mut Scope<'_>) -> Result<Self, ExpressionError> {
        let (text, reads) = compiled(text, scope, Checker::printable)?;
        Ok(Self { text, reads })
    }

    /// Whether the value reads `response.*`, so that it is meaningful only with a response.
    pub fn reads_response(&self) -> bool {
        self.reads.response
    }
}
