//! Compiled rules in their order, with what they share.

use std::collections::HashMap;

use super::facts::OperatorIndex;
use super::rule::{CompiledRule, Group, GroupTarget, Pipeline};
use super::scopes::Scopes;
use super::symbols::Symbols;
use crate::body::Limits;

/// Limits that rule files set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// What separates arguments.
    pub argument_separator: u8,
    /// How long stored variables are kept, in seconds.
    pub collection_timeout_s: u64,
    /// Most arguments.
    pub arguments_max: Option<usize>,
    /// Deepest JSON.
    pub json_depth_max: Option<usize>,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            argument_separator: b'&',
            collection_timeout_s: 3_600,
            arguments_max: None,
            json_depth_max: None,
        }
    }
}

impl FileSettings {
    /// How much of arguments and bodies is taken apart, where nobody else says so.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::DEFAULT;
        if let Some(count) = self.arguments_max {
            limits.arguments_max = u32::try_from(count).unwrap_or(u32::MAX);
        }
        if let Some(depth) = self.json_depth_max {
            limits.depth_max = u16::try_from(depth).unwrap_or(u16::MAX);
        }
        limits
    }
}

/// Rules in their order, and what they share.
#[derive(Debug)]
pub struct RuleSet {
    /// The rules.
    pub rules: Vec<CompiledRule>,
    /// What rule files set.
    pub settings: FileSettings,
    /// Which rules these are, as they say themselves.
    pub signatures: Vec<Box<str>>,
    pub(crate) pipelines: Vec<Pipeline>,
    pub(crate) symbols: Symbols,
    /// How many operators are chosen beforehand.
    pub(crate) operators_count: usize,
    /// What these need of texts: first those of rules that stay if nobody sets anything, then all; each for all scopes.
    pub(crate) operators: Vec<Vec<OperatorIndex>>,
    pub(crate) scopes: Scopes,
    pub(crate) groups: Vec<Group>,
    /// The targets of groups, one by one.
    pub(crate) targets: Vec<GroupTarget>,
    /// How many different lists of targets groups have.
    pub(crate) sets_count: usize,
    pub(crate) by_id: HashMap<u64, usize>,
}

impl RuleSet {
    /// The rule of a number.
    pub fn rule(&self, id: u64) -> Option<&CompiledRule> {
        self.by_id.get(&id).and_then(|index| self.rules.get(*index))
    }

    /// Whether a rule has a variable of this name in it. Case does not matter.
    pub fn has_variable(&self, name: &str) -> bool {
        self.symbols.get(name.as_bytes()).is_some()
    }

    /// Names of variables that rules have in them, in lower case.
    pub fn variables(&self) -> impl Iterator<Item = &str> + Clone {
        self.symbols.names().filter_map(|name| str::from_utf8(name).ok())
    }
}
