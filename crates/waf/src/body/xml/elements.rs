//! The open elements, by name.

use super::super::limits::Limits;
use super::super::problem::Problem;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The names of the open elements, from the document element to the innermost element.
#[derive(Debug, Clone, Default)]
pub(super) struct Elements {
    names: Vec<u8>,
    starts: Vec<usize>,
    /// Hashes of the attribute names in the current start tag. A forged collision only causes a wrong report of a repeated
    /// name.
    attributes: BTreeSet<u64>,
}

impl Elements {
    pub(super) fn depth(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn open(&mut self, name: &[u8], limits: &Limits) -> Result<(), Problem> {
        if self.starts.len() >= usize::from(limits.depth_max) {
            return Err(Problem::DepthLimit);
        }
        if self.names.len() + name.len() > limits.open_names_bytes_max as usize {
            return Err(Problem::OpenNamesLimit);
        }
        self.starts.push(self.names.len());
        self.names.extend_from_slice(name);
        self.attributes.clear();
        Ok(())
    }

    /// Closes the innermost element, whatever its name is.
    pub(super) fn close(&mut self) {
        if let Some(start) = self.starts.pop() {
            self.names.truncate(start);
        }
    }

    /// Whether the innermost element has this name.
    pub(super) fn innermost_is(&self, name: &[u8]) -> bool {
        self.starts.last().and_then(|start| self.names.get(*start..)) == Some(name)
    }

    /// Adds an attribute to the current start tag.
    pub(super) fn attribute(&mut self, name: &[u8], limits: &Limits) -> Result<(), Problem> {
        if self.attributes.len() >= usize::from(limits.attributes_max) {
            return Err(Problem::AttributesLimit);
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        if self.attributes.insert(hasher.finish()) {
            Ok(())
        } else {
            Err(Problem::XmlAttributeRepeated)
        }
    }
}
