//! Changes in front of the files of a configuration, made while weir serves.
//!
//! The files are never rewritten. An overlay has at most one [`Change`] per place, and none below another: so it does not
//! matter in which order it was made, and two overlays that mean the same are the same. It is applied to the tree of the
//! files before that is decoded, so what is wrong in it is found by the same checks.
//!
//! | operation | effect on the overlay |
//! |---|---|
//! | `set` | replaces changes at and below its place; within the value of another `set`, that value changes. A value that the files have there needs no change |
//! | `remove` | drops changes at and below its place; what the files have there is removed |

mod apply;
mod compose;
mod delta;
mod diff;
mod pointer;
mod rules;
mod value;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use value::json as value_of;

pub use delta::Delta;
pub use diff::{Difference, Effect};
pub use pointer::{POINTER_BYTES_MAX, Pointer};

/// Most changes of an overlay.
pub const CHANGES_MAX: usize = 100_000;

/// Most bytes of an overlay, as JSON without spaces.
pub const OVERLAY_BYTES_MAX: usize = 16 << 20;

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// The place has this value.
    Set {
        /// The place.
        path: Pointer,
        /// Its value.
        value: Value,
    },
    /// The place has no value.
    Remove {
        /// The place.
        path: Pointer,
    },
}

impl Change {
    /// Its place.
    pub fn path(&self) -> &Pointer {
        match self {
            Self::Set { path, .. } | Self::Remove { path } => path,
        }
    }

    /// The same without passwords and shared keys, to be shown.
    pub fn concealed(&self) -> Self {
        match self {
            Self::Set { path, value } => {
                let value = value::concealed(&rules::keys(&path.segments()), value);
                Self::Set { path: path.clone(), value }
            }
            Self::Remove { path } => Self::Remove { path: path.clone() },
        }
    }

    /// Its size as JSON, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Set { path, value } => path.as_str().len() + value::bytes(value),
            Self::Remove { path } => path.as_str().len(),
        }
    }
}

/// All changes, by their places.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Change>", into = "Vec<Change>")]
pub struct Overlay {
    changes: BTreeMap<Pointer, Arc<Change>>,
    bytes: usize,
}

impl Overlay {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many changes it has.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Its changes, in the order of their places.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.values().map(|change| &**change)
    }

    fn get(&self, path: &str) -> Option<&Change> {
        self.changes.get(path).map(|change| &**change)
    }

    fn insert(&mut self, change: Change) {
        self.bytes += change.bytes();
        let before = self.changes.insert(change.path().clone(), Arc::new(change));
        self.bytes -= before.map_or(0, |before| before.bytes());
    }

    fn drop_at(&mut self, path: &str) -> bool {
        let dropped = self.changes.remove(path);
        self.bytes -= dropped.as_ref().map_or(0, |change| change.bytes());
        dropped.is_some()
    }

    /// Drops changes at a place and below it. Whether there were any.
    fn drop_below(&mut self, path: &Pointer) -> bool {
        // Pointers below it begin with it and a `/`, and `0` is the next character.
        let bounds = [format!("{path}/"), format!("{path}0")];
        let bounds = (Bound::Included(&*bounds[0]), Bound::Excluded(&*bounds[1]));
        let below = self.changes.range::<str, _>(bounds).map(|(path, _)| path.clone());
        let below: Vec<Pointer> = below.collect();
        let mut is_any = self.drop_at(path.as_str());
        for path in &below {
            is_any |= self.drop_at(path.as_str());
        }
        is_any
    }

    /// The change above a place, if there is one.
    fn above(&self, path: &Pointer) -> Option<&Change> {
        let text = path.as_str();
        let ends = text.char_indices().filter(|(index, it)| *it == '/' && *index > 0);
        ends.map(|(index, _)| &text[..index]).find_map(|above| self.get(above))
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
