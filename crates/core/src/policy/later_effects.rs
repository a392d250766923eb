//! What policies decide with a request and what takes effect later.

use std::sync::Arc;

use weir_http::edits::FieldEdits;

use super::lines::Lines;
use crate::body_edit::BodyEdit;

/// What policies decide with a request and what takes effect later: with its response, or in its line of the access log. It outlives
/// the decision about the request. It is kept, moved and dropped as a whole, so no other place than the functions below has to know
/// its fields.
#[derive(Debug, Default)]
pub struct LaterEffects {
    /// Changes to the response.
    pub response: FieldEdits,
    /// Replacements in the body of the response.
    pub body_edits: Vec<Arc<BodyEdit>>,
    /// Marks for the access log.
    pub marks: Lines,
}

impl LaterEffects {
    /// Removes everything and keeps the capacity.
    pub fn clear(&mut self) {
        self.forget_response();
        self.marks.clear();
    }

    /// Removes what changes the response. The marks say what has happened to the request, and stay.
    pub fn forget_response(&mut self) {
        self.response.clear();
        self.body_edits.clear();
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.response.is_empty() && self.body_edits.is_empty() && self.marks.is_empty()
    }
}
