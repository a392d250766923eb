//! The difference between two versions of an overlay.

use serde::{Deserialize, Serialize};

use super::{Change, Overlay, Pointer};

/// The difference between two overlays. Applied to the earlier overlay, it gives the later one, independently of the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// Changes that were added or modified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) put: Vec<Change>,
    /// Paths whose changes were dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dropped: Vec<Pointer>,
}

impl Delta {
    /// The paths whose changes were added or modified.
    pub(super) fn put_paths(&self) -> impl Iterator<Item = Pointer> {
        self.put.iter().map(|change| change.path().clone())
    }

    /// Whether it changes something at this path, above it or below it.
    pub fn touches(&self, path: &str) -> bool {
        let is_within = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let put = self.put.iter().map(Change::path);
        put.chain(&self.dropped)
            .any(|it| is_within(it.as_str(), path) || is_within(path, it.as_str()))
    }

    /// The approximate size as JSON.
    pub fn bytes(&self) -> usize {
        let put = self.put.iter().map(Change::bytes);
        put.chain(self.dropped.iter().map(|path| path.as_str().len())).sum()
    }
}

impl Overlay {
    /// The difference from this overlay to a later one. What both share is not read.
    pub fn delta(&self, later: &Self) -> Delta {
        let mut delta = Delta::default();
        for (before, after) in self.changes.differences(&later.changes) {
            match (before, after) {
                (_, Some(after)) => delta.put.push(Change::clone(after)),
                (Some(before), None) => delta.dropped.push(before.path().clone()),
                (None, None) => {}
            }
        }
        delta
    }

    /// Applies a difference to this overlay.
    pub fn advance(&mut self, delta: &Delta) {
        for path in &delta.dropped {
            self.drop_at(path.as_str());
        }
        for change in &delta.put {
            self.insert(change.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_later_overlay_is_made_from_the_earlier_one() {
        let overlay = |changes: serde_json::Value| {
            serde_json::from_value::<Overlay>(changes).expect("an overlay")
        };
        let all = [
            overlay(json!([])),
            overlay(json!([{ "op": "set", "path": "/a", "value": 1 }])),
            overlay(
                json!([{ "op": "set", "path": "/a", "value": 2 }, { "op": "remove", "path": "/b" }]),
            ),
            overlay(
                json!([{ "op": "set", "path": "/a/x", "value": 2 }, { "op": "set", "path": "/b", "value": null }]),
            ),
        ];
        for one in &all {
            for other in &all {
                let text = serde_json::to_string(&one.delta(other)).expect("JSON");
                let mut made = one.clone();
                made.advance(&serde_json::from_str(&text).expect("a delta"));
                assert_eq!(&made, other, "{text}");
            }
        }
        assert_eq!(serde_json::to_string(&all[2].delta(&all[2])).expect("JSON"), "{}");
    }
}
