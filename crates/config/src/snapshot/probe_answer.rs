//! The expected answer of a probe.

use std::sync::Arc;

/// An answer by which a member requests a drain; all given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainAnswer {
    /// Inclusive ranges of statuses.
    pub status: Option<Vec<(u16, u16)>>,
    /// The required contents of the body, in its first 64 KiB.
    pub body: Option<BodyMatch>,
}

/// A condition on a probe's response body.
#[derive(Debug, Clone)]
pub enum BodyMatch {
    /// Contains these bytes.
    Substring(Arc<[u8]>),
    /// The expression finds a match.
    Regex(regex::bytes::Regex),
}

impl PartialEq for BodyMatch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Substring(a), Self::Substring(b)) => a == b,
            (Self::Regex(a), Self::Regex(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

impl Eq for BodyMatch {}
