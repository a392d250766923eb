//! Compiled rules in order, and their shared data.

use std::collections::HashMap;

use super::facts::OperatorIndex;
use super::rule::{CompiledRule, Group, GroupTarget, Pipeline};
use super::scopes::Scopes;
use super::symbols::Symbols;
use crate::body::Limits;

/// The limits that rule files set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// The separator of arguments.
    pub argument_separator: u8,
    /// The lifetime of stored variables, in seconds.
    pub collection_timeout_s: u64,
    /// Maximum number of arguments.
    pub arguments_max: Option<usize>,
    /// Maximum nesting depth of JSON.
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
    /// The limits of arguments and bodies, unless other settings override them.
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

/// Compiled rules in order, and their shared data.
#[derive(Debug)]
pub struct RuleSet {
    /// The rules.
    pub rules: Vec<CompiledRule>,
    /// The settings from the rule files.
    pub settings: FileSettings,
    /// The names of rule sets, from `SecComponentSignature`.
    pub signatures: Vec<Box<str>>,
    pub(crate) pipelines: Vec<Pipeline>,
    pub(crate) symbols: Symbols,
    /// The number of indexed operators.
    pub(crate) operators_count: usize,
    /// The indexes of operators: first of the rules that remain with default settings, then of all rules. Each list has one
    /// index per scope.
    pub(crate) operators: Vec<Vec<OperatorIndex>>,
    pub(crate) scopes: Scopes,
    pub(crate) groups: Vec<Group>,
    /// The targets of all groups.
    pub(crate) targets: Vec<GroupTarget>,
    /// The number of different target lists of groups.
    pub(crate) sets_count: usize,
    pub(crate) by_id: HashMap<u64, usize>,
}

impl RuleSet {
    /// The rule with this id.
    pub fn rule(&self, id: u64) -> Option<&CompiledRule> {
        self.by_id.get(&id).and_then(|index| self.rules.get(*index))
    }

    /// Whether a rule contains the name of a variable, ignoring case.
    pub fn has_variable(&self, name: &str) -> bool {
        self.symbols.get(name.as_bytes()).is_some()
    }

    /// The names of the variables that rules contain, in lower case.
    pub fn variables(&self) -> impl Iterator<Item = &str> + Clone {
        self.symbols.names().filter_map(|name| str::from_utf8(name).ok())
    }
}
