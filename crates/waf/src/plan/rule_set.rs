//! Compiled rules in their order, with their shared data.

use std::collections::HashMap;

use super::facts::OperatorIndex;
use super::rule::{CompiledRule, Group, GroupTarget, Pipeline};
use super::scopes::Scopes;
use super::symbols::Symbols;
use crate::body::Limits;

/// Limits that rule files set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Separator of arguments.
    pub argument_separator: u8,
    /// Lifetime of stored variables, in seconds.
    pub collection_timeout_s: u64,
    /// Maximum number of arguments.
    pub arguments_max: Option<usize>,
    /// Maximum depth of JSON.
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
    /// Limits of parsed arguments and bodies, if no other setting overrides them.
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

/// Rules in their order, with their shared data.
#[derive(Debug)]
pub struct RuleSet {
    /// The rules.
    pub rules: Vec<CompiledRule>,
    /// Settings of the rule files.
    pub settings: FileSettings,
    /// Names of the rule set, from `SecComponentSignature`.
    pub signatures: Vec<Box<str>>,
    pub(crate) pipelines: Vec<Pipeline>,
    pub(crate) symbols: Symbols,
    /// Number of indexed operators.
    pub(crate) operators_count: usize,
    /// Indexes of operators: first of the rules that remain with default settings, then of all rules; each with one
    /// index for each scope.
    pub(crate) operators: Vec<Vec<OperatorIndex>>,
    pub(crate) scopes: Scopes,
    pub(crate) groups: Vec<Group>,
    /// All targets of groups.
    pub(crate) targets: Vec<GroupTarget>,
    /// Number of different target lists of groups.
    pub(crate) sets_count: usize,
    pub(crate) by_id: HashMap<u64, usize>,
}

impl RuleSet {
    /// The rule with this id.
    pub fn rule(&self, id: u64) -> Option<&CompiledRule> {
        self.by_id.get(&id).and_then(|index| self.rules.get(*index))
    }

    /// Whether a rule contains a variable of this name, in any case.
    pub fn has_variable(&self, name: &str) -> bool {
        self.symbols.get(name.as_bytes()).is_some()
    }

    /// Names of the variables that rules contain, in lower case.
    pub fn variables(&self) -> impl Iterator<Item = &str> + Clone {
        self.symbols.names().filter_map(|name| str::from_utf8(name).ok())
    }
}
