//! The effect of an overlay on the files.

use weir_config::document::{self, Node};
use weir_config::{Places, Pointers, without_secrets};

use super::rules;
use super::{Change, Overlay, Pointer, value};

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The files have no value there.
    Added,
    /// The files have another value.
    Changed,
    /// The files have a value that is removed.
    Removed,
    /// No effect: the result equals the files.
    Redundant,
    /// No effect: the files no longer contain the parent of the value.
    Stale,
}

impl Effect {
    /// The word for output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Redundant => "redundant",
            Self::Stale => "stale",
        }
    }
}

/// The effect of one change, without passwords and shared keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path of the change.
    pub path: Pointer,
    /// The effect.
    pub effect: Effect,
    /// The value in the files, as YAML.
    pub file: Option<String>,
    /// The file and line of that value: `weir.yaml:3`.
    pub place: Option<String>,
    /// The value in the overlay, as YAML.
    pub overlay: Option<String>,
    /// The reason why the change has no effect.
    pub reason: Option<String>,
}

impl Overlay {
    /// The effects of all changes, ordered by their paths.
    pub(crate) fn differences(&self, root: &Node, places: &Places) -> Vec<Difference> {
        self.changes().map(|change| difference(change, root, places)).collect()
    }
}

fn difference(change: &Change, root: &Node, places: &Places) -> Difference {
    let path = change.path().clone();
    let segments = path.segments();
    let keys = rules::keys(&segments);
    let shown = |node: &Node| {
        document::write_values(&without_secrets(&keys, node)).trim_end_matches('\n').to_owned()
    };
    let value = match change {
        Change::Set { value, .. } => {
            Some(value::node(value, Pointers::ROOT, &mut Pointers::default()))
        }
        Change::Remove { .. } => None,
    };
    let (in_files, reason) = match rules::find(root, &segments, 0) {
        Ok(found) => (found, None),
        Err(refusal) => (None, Some(refusal.message)),
    };
    let effect = match (in_files, &value) {
        (None, Some(_)) if reason.is_some() => Effect::Stale,
        (None, Some(_)) => Effect::Added,
        (None, None) => Effect::Redundant,
        (Some(_), None) => Effect::Removed,
        (Some(found), Some(value)) if value::same(found, value) => Effect::Redundant,
        (Some(_), Some(_)) => Effect::Changed,
    };
    Difference {
        effect,
        place: in_files.map(|node| format!("{}:{}", places.name(node.span.source), node.span.line)),
        file: in_files.map(shown),
        overlay: value.as_ref().map(shown),
        reason: reason.filter(|_| effect == Effect::Stale),
        path,
    }
}
