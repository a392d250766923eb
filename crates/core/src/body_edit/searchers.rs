//! What bodies are searched with, one after another.

use std::sync::Arc;

use super::edit::BodyEdit;
use super::pattern::Searcher;

/// Most that are kept for further searches.
pub const SPARE_MAX: usize = 16;

/// What bodies are searched with, one after another: one for each edit, however many bodies are on their way. It has been made
/// of patterns alone, and says nothing of a body.
#[derive(Debug, Default)]
pub struct Searchers {
    /// The one that was used last is the last. They are large, and move.
    pub(super) spare: Vec<(Arc<BodyEdit>, Box<Searcher>)>,
}

impl Searchers {
    /// Lends what an edit searches with, if it needs something.
    pub(super) fn lend(&mut self, edit: &Arc<BodyEdit>) -> Option<&mut Searcher> {
        match self.spare.iter().position(|(of, _)| Arc::ptr_eq(of, edit)) {
            Some(at) => self.spare[at..].rotate_left(1),
            None => {
                let searcher = Box::new(edit.what.searcher()?);
                if self.spare.len() == SPARE_MAX {
                    // One of a configuration that is gone would stay for ever.
                    self.spare.remove(0);
                }
                self.spare.push((Arc::clone(edit), searcher));
            }
        }
        self.spare.last_mut().map(|(_, searcher)| &mut **searcher)
    }
}
