//! Transactions on the configuration.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use crate::finding::Finding;

/// Maximum size of a comment.
pub const COMMENT_BYTES_MAX: usize = 4_096;

/// Maximum time for a confirmation: one day.
pub const CONFIRM_S_MAX: u64 = 86_400;

/// Maximum size of a path.
pub const PATH_BYTES_MAX: usize = 4_096;

/// A line of text, as a regular expression.
const LINE_PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A JSON pointer without empty segments, as a regular expression.
const POINTER_PATTERN: &str = "^(/([^/~]|~[01])+)+$";

/// A transaction.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// The reason for the changes.
    #[serde(default)]
    #[schemars(length(max = COMMENT_BYTES_MAX), regex(pattern = LINE_PATTERN))]
    pub comment: String,
    /// The changes, applied in order.
    #[schemars(length(min = 1))]
    pub changes: Vec<Change>,
    /// Without a confirmation within this time, the previous version is restored.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1, max = CONFIRM_S_MAX))]
    pub confirm_within_s: Option<u64>,
    /// Also if a pool then has no member that takes new requests, and its clients get 503. Without it, such a change is refused
    /// (409).
    #[serde(default)]
    pub last: bool,
}

/// A change of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Sets the value at a path.
    Set {
        /// A JSON pointer (RFC 6901), for example `/pools/web/members/10.0.0.1:80/weight`.
        #[schemars(length(max = PATH_BYTES_MAX), regex(pattern = POINTER_PATTERN))]
        path: String,
        /// The value, as in the configuration.
        value: Value,
    },
    /// Removes the value at a path.
    Remove {
        /// A JSON pointer (RFC 6901).
        #[schemars(length(max = PATH_BYTES_MAX), regex(pattern = POINTER_PATTERN))]
        path: String,
    },
}

/// Settings of a rollback, or of undoing a version.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// The reason.
    #[serde(default)]
    #[schemars(length(max = COMMENT_BYTES_MAX), regex(pattern = LINE_PATTERN))]
    pub comment: String,
    /// Without a confirmation within this time, the previous version is restored.
    #[serde(default, deserialize_with = "whole")]
    #[schemars(range(min = 1, max = CONFIRM_S_MAX))]
    pub confirm_within_s: Option<u64>,
    /// Also if a pool then has no member that takes new requests, and its clients get 503. Without it, such a change is refused
    /// (409).
    #[serde(default)]
    pub last: bool,
}

/// A confirmation has no settings.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {}

/// Reads an integer as JSON Schema has it: `60.0` is one, too.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let float = number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(it));
    let whole = number.as_u64().or_else(|| float.map(|it| it as u64));
    whole
        .map(Some)
        .ok_or_else(|| D::Error::custom(format_args!("{number} is not an integer of at least 0")))
}

/// Up to here, each integer is a floating-point number.
const WHOLE_MAX: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// The state of a transaction.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TransactionReport {
    /// The number of the transaction; use it to query the transaction later.
    pub number: u64,
    /// `checking`; `waiting` for first probes; `in_force`; `unchanged`: the configuration had these values, and no version was
    /// made; `done` (checked or confirmed); `refused`.
    pub state: TransactionState,
    /// The version that the transaction made; with `unchanged`, the newest version, which stays.
    pub version: Option<u64>,
    /// The reason for a refusal.
    pub reason: Option<String>,
    /// Findings, as in `weir check --json`. Only the role admin sees them, because they quote values.
    #[serde(default)]
    pub diagnostics: Vec<Finding>,
    /// Changed parts of the configuration: `changed pools.web`.
    pub changes: Vec<String>,
    /// The number of changes that are not listed.
    pub changes_omitted: usize,
}

/// The state of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransactionState {
    /// Queued or being checked.
    Checking,
    /// Stored; waiting for the first probes of members.
    Waiting,
    /// In force.
    InForce,
    /// In force before the request: it made no version.
    Unchanged,
    /// Confirmed, or checked without errors in a dry run.
    Done,
    /// Refused; nothing has changed.
    Refused,
}

impl TransactionState {
    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::InForce | Self::Unchanged | Self::Done | Self::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_json_schema() {
        for (text, expected) in [
            ("60", Some(Some(60))),
            ("60.0", Some(Some(60))),
            ("6e1", Some(Some(60))),
            ("18446744073709551615", Some(Some(u64::MAX))),
            ("null", Some(None)),
            ("60.5", None),
            ("-1", None),
            ("-1.0", None),
            ("1e300", None),
            ("\"60\"", None),
        ] {
            let read = whole(&mut serde_json::Deserializer::from_str(text));
            assert_eq!(read.ok(), expected, "{text}");
        }
    }
}
