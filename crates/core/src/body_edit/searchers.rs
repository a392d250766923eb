//! Searchers for bodies, used one after another.

use std::sync::Arc;

use super::edit::BodyEdit;
use super::pattern::Searcher;

/// Maximum number of spare searchers.
pub const SPARE_MAX: usize = 16;

/// Searchers for bodies, used one after another: one for each edit, for any number of open bodies. They depend only on
/// the patterns, and keep no data of a body.
#[derive(Debug, Default)]
pub struct Searchers {
    /// In order of use. Searchers are large, so they are boxed.
    pub(super) spare: Vec<(Arc<BodyEdit>, Box<Searcher>)>,
}

impl Searchers {
    /// Lends the searcher of an edit, if it needs one.
    pub(super) fn lend(&mut self, edit: &Arc<BodyEdit>) -> Option<&mut Searcher> {
        match self.spare.iter().position(|(of, _)| Arc::ptr_eq(of, edit)) {
            Some(at) => self.spare[at..].rotate_left(1),
            None => {
                let searcher = Box::new(edit.what.searcher()?);
                if self.spare.len() == SPARE_MAX {
                    // Otherwise a searcher of a removed configuration would stay forever.
                    self.spare.remove(0);
                }
                self.spare.push((Arc::clone(edit), searcher));
            }
        }
        self.spare.last_mut().map(|(_, searcher)| &mut **searcher)
    }
}
