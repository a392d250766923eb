//! Versions of the overlay: their changes, their authors, and the resulting overlays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_sources::overlay::{Change, Delta, Overlay};

use super::shared_queue::SharedQueue;

/// Maximum number of stored versions.
pub const VERSIONS_MAX: usize = 16_384;

/// Approximate maximum size of the stored versions.
const VERSIONS_BYTES_MAX: usize = 32 << 20;

/// The author of versions that weir creates itself.
pub const OWN_AUTHOR: &str = "weir";

/// A version of the overlay. Versions are numbered from 1. Version 0 means the files without an overlay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The number of the version.
    pub number: u64,
    /// The time of acceptance, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The user who requested it.
    pub author: String,
    /// The reason for the version.
    pub comment: String,
    /// The requested changes.
    pub wanted: RequestedChanges,
    /// The deadline for a confirmation, in milliseconds since 1970. Without one, the previous version is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_until_unix_ms: Option<u64>,
    /// The difference from the previous overlay.
    pub(super) delta: Delta,
}

/// The changes that a transaction requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedChanges {
    /// These changes, applied in order.
    Changes(Vec<Change>),
    /// Restores the overlay of this version; 0: no overlay.
    RollBackTo(u64),
    /// Undoes the changes of this version, and keeps those of later ones.
    Revert(u64),
}

impl RequestedChanges {
    /// Whether it takes this newest version back.
    pub fn ends(&self, newest: u64) -> bool {
        match self {
            Self::Changes(_) => false,
            Self::RollBackTo(_) => true,
            Self::Revert(version) => *version == newest,
        }
    }

    /// The approximate size as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Changes(changes) => changes.iter().map(Change::bytes).sum(),
            Self::RollBackTo(_) | Self::Revert(_) => 8,
        }
    }
}

impl Version {
    /// The approximate size as JSON, in bytes.
    fn bytes(&self) -> usize {
        /// The size of numbers and field names.
        const FIXED_BYTES: usize = 128;
        let texts = self.author.len() + self.comment.len();
        FIXED_BYTES + texts + self.wanted.bytes() + self.delta.bytes()
    }

    /// A copy without passwords and shared keys, for output.
    pub fn concealed(&self) -> Self {
        let wanted = match &self.wanted {
            RequestedChanges::Changes(changes) => {
                RequestedChanges::Changes(changes.iter().map(Change::concealed).collect())
            }
            other => other.clone(),
        };
        Self { wanted, delta: Delta::default(), ..self.clone() }
    }
}

/// The stored versions. Copies share what they have in common, so a copy for each version costs little.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The overlay before the first stored version.
    base: Overlay,
    /// The number of the version whose overlay is `base`.
    base_version: u64,
    versions: SharedQueue<Arc<Version>>,
    /// The approximate size of the stored versions in bytes.
    bytes: usize,
    newest: Overlay,
    /// The newest version, if it is not confirmed yet.
    unconfirmed: Option<UnconfirmedVersion>,
}

/// A version that waits for its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnconfirmedVersion {
    /// The number of the version.
    pub version: u64,
    /// The deadline for the confirmation, in milliseconds since 1970.
    pub until_unix_ms: u64,
}

impl History {
    /// A history that begins with the overlay of a version.
    pub(super) fn beginning_with(base: Overlay, base_version: u64) -> Self {
        Self { newest: base.clone(), base, base_version, ..Self::default() }
    }

    /// The number of the newest version.
    pub fn version(&self) -> u64 {
        self.versions.newest().map_or(self.base_version, |version| version.number)
    }

    /// The overlay after the newest version.
    pub fn overlay(&self) -> &Overlay {
        &self.newest
    }

    /// The stored versions, oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Arc<Version>> + ExactSizeIterator {
        self.versions.iter()
    }

    /// A stored version.
    pub fn get(&self, number: u64) -> Option<&Arc<Version>> {
        let index = number.checked_sub(self.base_version + 1)?;
        self.versions.get(usize::try_from(index).ok()?)
    }

    /// The oldest version whose overlay is known.
    pub fn oldest(&self) -> u64 {
        self.base_version
    }

    /// The version that waits for its confirmation.
    pub fn unconfirmed(&self) -> Option<UnconfirmedVersion> {
        self.unconfirmed
    }

    /// The overlay after a version; `None`: the version does not exist yet, or is not stored any more. Version 0 always has
    /// an empty overlay.
    pub fn overlay_after(&self, number: u64) -> Option<Overlay> {
        if number == 0 {
            return Some(Overlay::default());
        }
        if number == self.version() {
            return Some(self.newest.clone());
        }
        let count = usize::try_from(number.checked_sub(self.base_version)?).ok()?;
        if count > self.versions.len() {
            return None;
        }
        let mut overlay = self.base.clone();
        self.versions.iter().take(count).for_each(|version| overlay.advance(&version.delta));
        Some(overlay)
    }

    /// Adds the next version. Fails if its number is not the next.
    pub(super) fn push(&mut self, version: Arc<Version>) -> Result<(), OutOfOrder> {
        self.check_next(&version)?;
        self.newest.advance(&version.delta);
        self.add(version);
        Ok(())
    }

    /// As [`Self::push`], with the overlay after the version.
    pub(super) fn push_with(
        &mut self,
        version: Arc<Version>,
        overlay: Overlay,
    ) -> Result<(), OutOfOrder> {
        self.check_next(&version)?;
        debug_assert!(self.newest.delta(&overlay) == version.delta, "the version leads to it");
        self.newest = overlay;
        self.add(version);
        Ok(())
    }

    fn check_next(&self, version: &Version) -> Result<(), OutOfOrder> {
        (version.number == self.version() + 1).then_some(()).ok_or(OutOfOrder)
    }

    /// Adds a version that leads to the newest overlay.
    fn add(&mut self, version: Arc<Version>) {
        self.unconfirmed = version.confirm_until_unix_ms.map(|until_unix_ms| {
            let version = version.number;
            UnconfirmedVersion { version, until_unix_ms }
        });
        self.bytes += version.bytes();
        self.versions.push(version);
        while self.versions.len() > VERSIONS_MAX
            || self.bytes > VERSIONS_BYTES_MAX && self.versions.len() > 1
        {
            self.forget_oldest();
        }
    }

    /// Merges the oldest version into the base.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(oldest) = self.versions.take_oldest() {
            self.bytes -= oldest.bytes();
            self.base.advance(&oldest.delta);
            self.base_version = oldest.number;
        }
    }

    /// Marks a version as confirmed, if it is the unconfirmed one.
    pub(super) fn confirm(&mut self, version: u64) {
        if self.unconfirmed.is_some_and(|it| it.version == version) {
            self.unconfirmed = None;
        }
    }

    /// The overlay before the first stored version, and the number of the version that it belongs to.
    pub(super) fn base(&self) -> (&Overlay, u64) {
        (&self.base, self.base_version)
    }
}

/// The number of a version does not follow the newest one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutOfOrder;
