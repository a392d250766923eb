//! Adds changes to an overlay.

use std::sync::Arc;

use weir_config::Pointers;
use weir_config::document::Finding;

use super::apply::{Application, Item};
use super::rules::{self, Refusal, Tree};
use super::{CHANGES_MAX, Change, OVERLAY_BYTES_MAX, Overlay, Pointer, value};

impl Overlay {
    /// The overlay after these changes, made in order on top of these files. `Err`: a finding for each change that is
    /// not possible.
    pub(crate) fn compose(
        &self,
        tree: Tree<'_>,
        changes: &[Change],
        pointers: &mut Pointers,
    ) -> Result<Self, Vec<Finding>> {
        let mut overlay = self.clone();
        let mut findings = Vec::new();
        for change in changes {
            let refusal = match rules::refused(change) {
                Some(refusal) => Err(refusal),
                None => overlay.change(tree, change),
            };
            if let Err(refusal) = refusal {
                let segments = change.path().segments();
                let pointer = segments
                    .iter()
                    .fold(Pointers::ROOT, |above, segment| pointers.below(above, segment));
                findings.push(refusal.at(pointer));
            }
        }
        if let Some(refusal) = overlay.too_large() {
            findings.push(refusal.at(Pointers::ROOT));
        }
        if findings.is_empty() { Ok(overlay) } else { Err(findings) }
    }

    fn too_large(&self) -> Option<Refusal> {
        let message = if self.len() > CHANGES_MAX {
            format!("the overlay would have more than {CHANGES_MAX} changes")
        } else if self.bytes > OVERLAY_BYTES_MAX {
            format!("the overlay would be larger than {} MiB", OVERLAY_BYTES_MAX >> 20)
        } else {
            return None;
        };
        let help = "write the configuration with `weir save` into the file, and begin anew";
        Some(Refusal::new(message, help))
    }

    fn change(&mut self, tree: Tree<'_>, change: &Change) -> Result<(), Refusal> {
        match self.above(change.path()).cloned() {
            Some(Change::Set { path, value }) => self.change_within(tree, (&path, &value), change),
            Some(Change::Remove { path }) => {
                let message = format!("{path} is removed by the overlay");
                Err(Refusal::new(message, format!("set {path} as a whole")))
            }
            None => self.change_here(tree, change),
        }
    }

    /// Makes a change inside a value that the overlay sets.
    fn change_within(
        &mut self,
        tree: Tree<'_>,
        (path, value): (&Pointer, &serde_json::Value),
        change: &Change,
    ) -> Result<(), Refusal> {
        let mut pointers = Pointers::default();
        let mut node = value::node(value, Pointers::ROOT, &mut pointers);
        let (segments, depth) = (change.path().segments(), path.segments().len());
        let found = rules::find(&node, &segments, depth)?;
        if found.is_none() && matches!(change, Change::Remove { .. }) {
            return Err(rules::not_found(&node, &segments, depth));
        }
        let item = Item::new(Arc::new(change.clone()));
        let mut application = Application { pointers: &mut pointers, stale: Vec::new() };
        application.group(&mut node, &[item], depth, Pointers::ROOT);
        if let Some((_, refusal)) = application.stale.pop() {
            return Err(refusal);
        }
        self.set(tree, path, value::json(&node))
    }

    /// Makes a change at a path where the overlay has no change above.
    fn change_here(&mut self, tree: Tree<'_>, change: &Change) -> Result<(), Refusal> {
        let path = change.path();
        let segments = path.segments();
        match change {
            Change::Set { value, .. } => {
                // Checked before anything is dropped, so that a refused change has no effect.
                tree.find(&segments)?;
                self.drop_below(path);
                self.set(tree, path, value.clone())
            }
            Change::Remove { .. } => {
                let was_changed = self.drop_below(path);
                match tree.find(&segments) {
                    Ok(Some(_)) => {
                        self.insert(change.clone());
                        Ok(())
                    }
                    Ok(None) | Err(_) if was_changed => Ok(()),
                    Ok(None) => Err(rules::not_found(tree.root, &segments, 0)),
                    Err(refusal) => Err(refusal),
                }
            }
        }
    }

    /// Sets a value, unless the files have the same value there.
    fn set(
        &mut self,
        tree: Tree<'_>,
        path: &Pointer,
        value: serde_json::Value,
    ) -> Result<(), Refusal> {
        let segments = path.segments();
        let value = match segments.len() == 4 && rules::is_in_members(&segments) {
            true => rules::member_value(&segments[3], &value)?,
            false => value,
        };
        let node = value::node(&value, Pointers::ROOT, &mut Pointers::default());
        let in_files = tree.find(&segments).ok().flatten();
        if in_files.is_some_and(|in_files| value::same(in_files, &node)) {
            self.drop_at(path.as_str());
        } else {
            self.insert(Change::Set { path: path.clone(), value });
        }
        Ok(())
    }
}
