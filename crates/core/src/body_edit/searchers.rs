//! What bodies are searched with, one after another.

use std::sync::Arc;

use super::edit::BodyEdit;
use super::pattern::Searcher;
use super::rewriter::Rewriter;

/// Most that are kept for further bodies.
pub const SPARE_MAX: usize = 16;

/// What bodies are searched with, one after another. It has been made of patterns alone, and says nothing of a body.
#[derive(Debug, Default)]
pub struct Searchers {
    spare: Vec<(Arc<BodyEdit>, Searcher)>,
}

impl Searchers {
    /// For one body.
    pub fn take(&mut self, edit: &Arc<BodyEdit>) -> Rewriter {
        let spare = self.spare.iter().position(|(of, _)| Arc::ptr_eq(of, edit));
        let searcher = spare.map(|at| self.spare.swap_remove(at).1);
        Rewriter::new(Arc::clone(edit), searcher.or_else(|| edit.what.searcher()))
    }

    /// Takes back what a rewriter has searched with.
    pub fn give(&mut self, rewriter: Rewriter) {
        let Rewriter { edit, searcher: Some(searcher), .. } = rewriter else { return };
        if self.spare.len() == SPARE_MAX {
            // One of a configuration that is gone would stay for ever.
            self.spare.remove(0);
        }
        self.spare.push((edit, searcher));
    }
}
