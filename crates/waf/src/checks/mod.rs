//! Checks of protocol and policy that need no rules: each has a name, and an action of its own.
//!
//! | family | file | what it looks at |
//! |---|---|---|
//! | evasion | `evasion.rs` | how the target is encoded |
//! | compliance | `compliance.rs` | what HTTP asks of a head |
//! | lengths | `lengths.rs` | sizes and numbers, methods, file types |
//! | cookies | `cookies.rs`, `sealing.rs` | what the client sends back, and whether it was set here |
//! | documents | `documents.rs` | JSON, XML, GraphQL, multipart |
//! | declared | `declared/` | what an OpenAPI document says of paths, parameters and bodies |
//!
//! **Architecture invariant:** a check sees what the member gets: the head as it is sent on, the body as it is read.

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
pub use request::{Checks, Named, Received};
pub use sealing::{CookieNames, CookieTerms, Sealer, TAG_BYTES};

/// Something that a check has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// By which check.
    pub check: Check,
    /// What becomes of the request.
    pub action: Action,
    /// Where: `path`, `query`, `header Host`, `parameter id`.
    pub place: String,
    /// What, clipped.
    pub detail: String,
}

impl Finding {
    /// Whether the request is kept from its member for it.
    pub fn blocks(&self) -> bool {
        self.action == Action::Block
    }
}

/// Takes what checks find.
#[derive(Debug)]
pub struct Findings<'a> {
    policy: &'a Policy,
    found: Vec<Finding>,
}

/// Findings of one request that are kept.
const FINDINGS_MAX: usize = 64;
/// Bytes of a detail that are kept.
const DETAIL_BYTES_MAX: usize = 160;

impl<'a> Findings<'a> {
    /// None, by this policy.
    pub fn new(policy: &'a Policy) -> Self {
        Self { policy, found: Vec::new() }
    }

    /// Those that there are, by this policy.
    pub fn beside(policy: &'a Policy, found: Vec<Finding>) -> Self {
        Self { policy, found }
    }

    /// The policy.
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Whether a check is done at all.
    pub fn is_on(&self, check: Check) -> bool {
        self.policy.action(check) != Action::Off
    }

    /// Takes a finding, unless its check is off. Of one check at one place the first is kept. Those that block stand first, and an alarm
    /// makes room for one.
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

    /// All of them.
    pub fn all(&self) -> &[Finding] {
        &self.found
    }

    /// The first that blocks.
    pub fn blocks(&self) -> Option<&Finding> {
        self.found.iter().find(|finding| finding.blocks())
    }

    /// Gives them away.
    pub fn into_all(self) -> Vec<Finding> {
        self.found
    }
}

#[cfg(test)]
mod tests;
