//! Policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PolicyStatus")]
pub struct Policy {
    /// The name.
    pub name: String,
    /// The virtual servers that use the policy.
    pub virtual_servers: Vec<String>,
    /// The rules in the order of the configuration.
    pub rules: Vec<Rule>,
}

/// A rule of a policy.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RuleStatus")]
pub struct Rule {
    /// The name of the rule, or its number in the policy.
    pub name: String,
    /// The number of matches.
    pub matched: u64,
}
