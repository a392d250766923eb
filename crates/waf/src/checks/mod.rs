//! Checks of protocol and policy that need no rules. Each check has a name and its own action.
//!
//! | family | file | subject |
//! |---|---|---|
//! | evasion | `evasion.rs` | encoding of the target |
//! | compliance | `compliance.rs` | requirements of HTTP on a head |
//! | lengths | `lengths.rs` | lengths and counts, methods, file types |
//! | cookies | `cookies.rs`, `sealing.rs` | cookies sent by the client, and whether sealed ones are unchanged |
//! | documents | `documents.rs` | JSON, XML, GraphQL, multipart |
//! | declared | `declared/` | paths, parameters and bodies declared in an OpenAPI document |
//!
//! **Architecture invariant:** a check examines the request as the member receives it: the head as forwarded, the body as
//! parsed.

mod action;
mod catalogue;
mod compliance;
mod cookies;
pub mod declared;
mod documents;
mod evasion;
mod lengths;
mod policy;
mod request;
mod sealing;

pub use action::Action;
pub use catalogue::{Check, Family};
pub use compliance::compliance;
pub use documents::{graphql, of_body};
pub use evasion::{argument, target};
pub use lengths::{body_length, lengths, parameter};
pub use policy::{FileType, FileTypes, Limits, Policy};
pub use request::{Checks, NamedValues, ReceivedLengths};
pub use sealing::{CookieNames, CookieTerms, Sealer, TAG_BYTES};

/// A finding of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The action.
    pub action: Action,
    /// The place: `path`, `query`, `header Host`, `parameter id`.
    pub place: String,
    /// The offending input, clipped.
    pub detail: String,
}

impl Finding {
    /// Whether the finding blocks the request.
    pub fn blocks(&self) -> bool {
        self.action == Action::Block
    }
}

/// Collects findings of checks.
#[derive(Debug)]
pub struct Findings<'a> {
    policy: &'a Policy,
    found: Vec<Finding>,
}

/// Maximum number of findings stored for one request.
const FINDINGS_MAX: usize = 64;
/// Maximum number of bytes stored of a detail.
const DETAIL_BYTES_MAX: usize = 160;

impl<'a> Findings<'a> {
    /// An empty collection of findings under this policy.
    pub fn new(policy: &'a Policy) -> Self {
        Self { policy, found: Vec::new() }
    }

    /// A collection that starts with earlier findings, under this policy.
    pub fn beside(policy: &'a Policy, found: Vec<Finding>) -> Self {
        Self { policy, found }
    }

    /// The policy.
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Whether a check is not off.
    pub fn is_on(&self, check: Check) -> bool {
        self.policy.action(check) != Action::Off
    }

    /// Adds a finding, unless its check is off. Only the first finding of a check at a place is stored. Blocking findings
    /// precede alarms. If the maximum is reached, a blocking finding replaces an alarm.
    pub fn add(&mut self, check: Check, place: &str, detail: &[u8]) {
        let action = self.policy.action(check);
        let is_known = self.found.iter().any(|it| it.check == check && it.place == place);
        if action == Action::Off || is_known {
            return;
        }
        let blocking = self.found.iter().take_while(|finding| finding.blocks()).count();
        let place_of_it = if action == Action::Block { blocking } else { self.found.len() };
        if place_of_it >= FINDINGS_MAX {
            return;
        }
        let clipped = &detail[..detail.len().min(DETAIL_BYTES_MAX)];
        let detail = clipped.escape_ascii().to_string();
        self.found.insert(place_of_it, Finding { check, action, place: place.to_owned(), detail });
        self.found.truncate(FINDINGS_MAX);
    }

    /// All findings.
    pub fn all(&self) -> &[Finding] {
        &self.found
    }

    /// The first blocking finding.
    pub fn blocks(&self) -> Option<&Finding> {
        self.found.iter().find(|finding| finding.blocks())
    }

    /// The findings, by value.
    pub fn into_all(self) -> Vec<Finding> {
        self.found
    }
}

#[cfg(test)]
mod tests;
