//! What a source of configuration is.

use weir_config::MergedValues;

/// A source of configuration. It owns what it has read: a document, or changes.
pub(crate) trait Source {
    /// Adds what this source says to what the sources before it say. Each value gets its place.
    fn merge_into(&self, merged: &mut MergedValues);
}
