//! Compiled rules, shared by all virtual servers.
//!
//! [`RuleSet::compile`] compiles rule files: it resolves defaults, interns names and indexes patterns. A [`View`] contains
//! the rules that one virtual server evaluates. It depends on the settings of the server: values of `TX`, including the
//! paranoia level. Rules that do not depend on the request are evaluated when the view is created.

mod compile;
mod facts;
mod few_literals;
mod grams;
mod index;
mod literals;
mod operators;
mod rule;
mod rule_set;
mod scopes;
mod sources;
mod statics;
mod symbols;
mod template;
mod view;

pub use rule::{CompiledRule, Link};
pub use rule_set::{FileSettings, RuleSet};
pub use sources::{FILES_MAX, Files};
pub use view::{Settings, View};

pub(crate) use facts::{Stage, add_row, has_bit};
pub(crate) use grams::PADDING_BYTES;
pub(crate) use index::Bits;
pub(crate) use operators::{Comparison, has_bad_escape, has_other_bytes, is_within};
pub(crate) use rule::{Effect, Group, GroupTarget, Pipeline, PipelineId, Sign, VariableName};
pub(crate) use scopes::ScopeId;
pub(crate) use symbols::{Symbol, Symbols, in_lower_case};
pub(crate) use template::{CompiledPiece, CompiledTemplate};

#[cfg(test)]
mod tests;
