//! The overlay: changes on top of the configuration files, made at run time.
//!
//! The files are never rewritten. An overlay has at most one [`Change`] per path, and none below the path of another.
//! So the order in which changes were made does not matter, and overlays with the same meaning are equal. The overlay
//! is applied to the tree of the files before decoding, so the same checks find errors in both.
//!
//! | operation | effect on the overlay |
//! |---|---|
//! | `set` | replaces changes at and below its path; inside the value of another `set`, changes that value |
//! | `remove` | drops changes at and below its path, and removes a value of the files |
//!
//! A `set` of the value that the files have is dropped.

mod apply;
mod change_map;
mod compose;
mod delta;
mod diff;
mod pointer;
mod revert;
mod rules;
mod value;

use std::sync::Arc;

use change_map::ChangeMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_config::document::{NODE_DEPTH_MAX, Node};
use weir_config::{MergedValues, Severity};

pub(crate) use rules::Tree;
pub(crate) use value::json as value_of;

use crate::source::Source;

pub use delta::Delta;
pub use diff::{Difference, Effect};
pub use pointer::{POINTER_BYTES_MAX, Pointer};
pub use revert::Conflict;

/// Maximum number of changes in an overlay.
pub const CHANGES_MAX: usize = 100_000;

/// Maximum size of an overlay, as compact JSON.
pub const OVERLAY_BYTES_MAX: usize = 16 << 20;

/// A change of one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Sets a value.
    Set {
        /// The path of the value.
        path: Pointer,
        /// The value.
        value: Value,
    },
    /// Removes a value.
    Remove {
        /// The path of the value.
        path: Pointer,
    },
}

impl Change {
    /// The path of the change.
    pub fn path(&self) -> &Pointer {
        match self {
            Self::Set { path, .. } | Self::Remove { path } => path,
        }
    }

    /// A copy without passwords and shared keys, for display.
    pub fn concealed(&self) -> Self {
        match self {
            Self::Set { path, value } => {
                let value = value::concealed(&rules::keys(&path.segments()), value);
                Self::Set { path: path.clone(), value }
            }
            Self::Remove { path } => Self::Remove { path: path.clone() },
        }
    }

    /// The approximate size as JSON.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Set { path, value } => path.as_str().len() + value::bytes(value),
            Self::Remove { path } => path.as_str().len(),
        }
    }
}

/// All changes, ordered by their paths. Copies share what they have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Change>", into = "Vec<Change>")]
pub struct Overlay {
    changes: ChangeMap,
    bytes: usize,
    /// The number of changes with each number of segments in their paths, so that few are looked for above a path.
    by_length: [u32; NODE_DEPTH_MAX],
}

impl Overlay {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.len() == 0
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// The changes, ordered by their paths.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().map(|change| &**change)
    }

    fn get(&self, path: &str) -> Option<&Change> {
        self.changes.get(path).map(|change| &**change)
    }

    fn insert(&mut self, change: Change) {
        self.bytes += change.bytes();
        let length = length_index(change.path().as_str());
        match self.changes.insert(Arc::new(change)) {
            Some(before) => self.bytes -= before.bytes(),
            None => self.by_length[length] += 1,
        }
    }

    fn drop_at(&mut self, path: &str) -> bool {
        let Some(dropped) = self.changes.remove(path) else { return false };
        self.bytes -= dropped.bytes();
        self.by_length[length_index(path)] -= 1;
        true
    }

    /// The member of a pool after the changes of it. `in_files`: the member in the files. `None`: a change above it says which
    /// members there are.
    pub(crate) fn member_over(
        &self,
        in_files: Option<Node>,
        pool: &str,
        member: &str,
    ) -> Option<Option<Node>> {
        let path = Pointer::of_member(pool, member);
        if self.above(&path).is_some() {
            return None;
        }
        let [from, to] = below(&path);
        let below = self.changes.range(&from, &to);
        let changes = self.changes.get(path.as_str()).into_iter().chain(below);
        let mut list: Vec<Node> = in_files.into_iter().collect();
        apply::to_members(&mut list, changes.cloned()).then(|| list.pop())
    }

    /// Drops changes at a path and below it. Returns whether there were any.
    fn drop_below(&mut self, path: &Pointer) -> bool {
        let [from, to] = below(path);
        let below: Vec<Pointer> =
            self.changes.range(&from, &to).map(|change| change.path().clone()).collect();
        let mut is_any = self.drop_at(path.as_str());
        for path in &below {
            is_any |= self.drop_at(path.as_str());
        }
        is_any
    }

    /// The change at a path above this one.
    fn above(&self, path: &Pointer) -> Option<&Change> {
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(index, _)| index).skip(1);
        let ends = ends.zip(&self.by_length).filter(|(_, count)| **count > 0);
        ends.map(|(index, _)| &text[..index]).find_map(|above| self.get(above))
    }
}

/// The index of the number of a path's segments, which is at least 1.
fn length_index(path: &str) -> usize {
    path.bytes().skip(1).filter(|byte| *byte == b'/').count()
}

/// The bounds of the paths below this one, which begin with it and `/`; `0` is the character after `/`.
fn below(path: &Pointer) -> [String; 2] {
    [format!("{path}/"), format!("{path}0")]
}

impl Source for Overlay {
    /// Changes whose parents are gone from the sources below are skipped, with a warning.
    fn merge_into(&self, merged: &mut MergedValues) {
        if self.is_empty() || merged.is_incomplete {
            return;
        }
        if let Some(below) = merged.root.take() {
            let (root, stale) = self.apply(below, &mut merged.places.pointers);
            merged.root = Some(root);
            merged.findings.extend(stale.into_iter().map(|finding| (Severity::Warning, finding)));
        }
    }
}

impl From<Overlay> for Vec<Change> {
    fn from(overlay: Overlay) -> Self {
        overlay.changes().cloned().collect()
    }
}

impl TryFrom<Vec<Change>> for Overlay {
    type Error = String;

    fn try_from(changes: Vec<Change>) -> Result<Self, String> {
        let mut overlay = Self::default();
        for change in changes {
            let path = change.path().clone();
            if let Some(refusal) = rules::refused(&change) {
                return Err(refusal.message);
            }
            if overlay.above(&path).is_some() || overlay.drop_below(&path) {
                return Err(format!("{path}: another change has the same place"));
            }
            overlay.insert(change);
        }
        if overlay.len() > CHANGES_MAX || overlay.bytes > OVERLAY_BYTES_MAX {
            return Err("the overlay is too large".to_owned());
        }
        Ok(overlay)
    }
}

#[cfg(test)]
mod tests;
