//! Pages of lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// Items in the order of the configuration.
    pub items: Vec<T>,
    /// The `after` of the next page; `null`: this is the last one.
    pub next: Option<String>,
}
