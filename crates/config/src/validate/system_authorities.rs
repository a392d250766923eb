//! The authorities that this system trusts, for servers that weir verifies by them.

use std::sync::Arc;

use crate::decode::Context;
use crate::document::Span;
use crate::system_authorities::{SystemAuthorities, read};

/// Maximum number of problems that are told one by one.
const PROBLEMS_MAX: usize = 3;

impl Context {
    /// The authorities of this system, for a value at this place. Problems with them are told once.
    pub fn system_authorities(&mut self, span: Span) -> Arc<SystemAuthorities> {
        if let Some(known) = &self.authorities {
            return Arc::clone(known);
        }
        let found = Arc::new(read());
        self.authorities = Some(Arc::clone(&found));
        let help =
            "mend or remove the file: servers with certificates of these authorities are refused";
        for problem in found.problems.iter().take(PROBLEMS_MAX) {
            self.warning_help(span, problem.clone(), help);
        }
        if let Some(more) = found.problems.len().checked_sub(PROBLEMS_MAX).filter(|it| *it > 0) {
            self.warning_help(
                span,
                format!("{more} more files of authorities of this system"),
                help,
            );
        }
        found
    }
}
