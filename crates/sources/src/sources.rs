//! The sources of a configuration together: the order in which they are merged, and what is asked of the result.

use weir_config::document::{self, Finding};
use weir_config::{Config, Diagnostic, LoadResult, MergedValues, Severity, describe};

use crate::files::Files;
use crate::overlay::{Change, Difference, Overlay, Tree};
use crate::source::Source;

/// The sources of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    pub(crate) files: &'a Files,
    pub(crate) overlay: &'a Overlay,
}

impl<'a> Sources<'a> {
    /// Files with an overlay on top.
    pub fn new(files: &'a Files, overlay: &'a Overlay) -> Self {
        Self { files, overlay }
    }

    /// The sources below the overlay, in the order in which they are merged. Only users of this host can change them.
    fn below_overlay(&self) -> [&dyn Source; 1] {
        [self.files]
    }

    /// The values of these sources, in their order.
    fn merge(&self, sources: &[&dyn Source]) -> MergedValues {
        let mut merged = self.files.nothing_merged();
        for source in sources {
            source.merge_into(&mut merged);
        }
        merged
    }

    /// The values of all sources. The overlay comes last, so it can change what any other source says.
    fn merged(&self) -> MergedValues {
        let mut merged = self.merge(&self.below_overlay());
        self.overlay.merge_into(&mut merged);
        merged
    }

    /// Checks the configuration.
    pub fn check(&self) -> LoadResult {
        self.merged().check()
    }

    /// As [`Self::check`], for a change of `before` by a user on the network, who can introduce no program, file or unix socket
    /// of this host.
    pub fn check_from_network(&self, before: &Config) -> LoadResult {
        self.merged().check_from_network(before, &self.merge(&self.below_overlay()))
    }

    /// The overlay after further changes, made in order; or the findings. The resulting configuration is not checked
    /// yet.
    pub fn compose(&self, changes: &[Change]) -> Result<Overlay, Vec<Diagnostic>> {
        let mut below = self.merge(&self.below_overlay());
        let tree = Tree { root: &below.values(), index: self.files.member_index() };
        let composed = self.overlay.compose(tree, changes, &mut below.places.pointers);
        let error = |finding: Finding| (Severity::Error, finding);
        composed.map_err(|found| describe(found.into_iter().map(error).collect(), below.places))
    }

    /// The effects of the overlay on the sources below it.
    pub fn differences(&self) -> Vec<Difference> {
        let below = self.merge(&self.below_overlay());
        self.overlay.differences(&below.values(), &below.places)
    }

    /// All sources as one file, without comments and `include`. It is the same configuration for any reader that finds the
    /// same other files at the same relative paths.
    pub fn to_yaml(&self) -> String {
        document::write_values(&self.merged().values())
    }
}
