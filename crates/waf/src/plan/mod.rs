//! Rules, compiled once and shared by all who use them.
//!
//! [`RuleSet::compile`] turns files into rules: defaults are resolved, names interned, patterns indexed. What a virtual server adds (values of
//! `TX`, so its paranoia level) makes a [`View`]: which rules it evaluates, with everything decided that no request decides.

mod compile;
mod facts;
mod few;
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
pub(crate) use symbols::{Symbol, Symbols};
pub(crate) use template::{CompiledPiece, CompiledTemplate};

#[cfg(test)]
mod tests;
