//! Versions of the overlay: what each changed, by whom, and what the overlay was after it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_config::overlay::{Change, Delta, Overlay};

/// Most versions that are kept.
pub const VERSIONS_MAX: usize = 16_384;

/// Most bytes of versions that are kept, about.
const VERSIONS_BYTES_MAX: usize = 32 << 20;

/// The author of versions that weir makes by itself.
pub const OWN_AUTHOR: &str = "weir";

/// One version of the overlay. The first has number 1; 0 is the files without an overlay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its number.
    pub number: u64,
    /// When it was accepted, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Who asked for it.
    pub author: String,
    /// Why.
    pub comment: String,
    /// What was asked for.
    pub wanted: Wanted,
    /// If nobody has confirmed it by then, the version before returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_until_unix_ms: Option<u64>,
    /// What it changes in the overlay.
    pub(super) delta: Delta,
}

/// What a transaction asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// These changes, one after the other.
    Changes(Vec<Change>),
    /// The overlay as it was after this version; 0: none.
    RollBackTo(u64),
}

impl Wanted {
    /// Its size as JSON, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Changes(changes) => changes.iter().map(Change::bytes).sum(),
            Self::RollBackTo(_) => 8,
        }
    }
}

impl Version {
    /// Its size as JSON, about.
    fn bytes(&self) -> usize {
        /// Its numbers, and the names of its fields.
        const FIXED_BYTES: usize = 128;
        let texts = self.author.len() + self.comment.len();
        FIXED_BYTES + texts + self.wanted.bytes() + self.delta.bytes()
    }

    /// The same without passwords and shared keys, to be shown.
    pub fn concealed(&self) -> Self {
        let wanted = match &self.wanted {
            Wanted::Changes(changes) => {
                Wanted::Changes(changes.iter().map(Change::concealed).collect())
            }
            Wanted::RollBackTo(version) => Wanted::RollBackTo(*version),
        };
        Self { wanted, delta: Delta::default(), ..self.clone() }
    }
}

/// All versions that are kept.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The overlay before the first version that is kept.
    base: Overlay,
    /// The number of the version that the base is of.
    base_version: u64,
    versions: VecDeque<Arc<Version>>,
    /// Bytes of the versions.
    bytes: usize,
    newest: Overlay,
    /// The newest version, while it waits for its confirmation.
    unconfirmed: Option<Unconfirmed>,
}

/// A version that waits for its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unconfirmed {
    /// Its number.
    pub version: u64,
    /// The end of its time, in milliseconds since 1970.
    pub until_unix_ms: u64,
}

impl History {
    /// One that begins with the overlay of a version.
    pub(super) fn beginning_with(base: Overlay, base_version: u64) -> Self {
        Self { newest: base.clone(), base, base_version, ..Self::default() }
    }

    /// The number of the newest version.
    pub fn version(&self) -> u64 {
        self.versions.back().map_or(self.base_version, |version| version.number)
    }

    /// The overlay after the newest version.
    pub fn overlay(&self) -> &Overlay {
        &self.newest
    }

    /// Versions that are kept, the oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Arc<Version>> + ExactSizeIterator {
        self.versions.iter()
    }

    /// A version that is kept.
    pub fn get(&self, number: u64) -> Option<&Arc<Version>> {
        let index = number.checked_sub(self.base_version + 1)?;
        self.versions.get(usize::try_from(index).ok()?)
    }

    /// The oldest version whose overlay is known.
    pub fn oldest(&self) -> u64 {
        self.base_version
    }

    /// The version that waits for its confirmation.
    pub fn unconfirmed(&self) -> Option<Unconfirmed> {
        self.unconfirmed
    }

    /// The overlay after a version; `None`: it is not known any more, or not yet. Of version 0 it is always known: there is none.
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

    /// Adds the next version. An error: it is not the next.
    pub(super) fn push(&mut self, version: Arc<Version>) -> Result<(), OutOfOrder> {
        if version.number != self.version() + 1 {
            return Err(OutOfOrder);
        }
        self.newest.advance(&version.delta);
        self.unconfirmed = version.confirm_until_unix_ms.map(|until_unix_ms| {
            let version = version.number;
            Unconfirmed { version, until_unix_ms }
        });
        self.bytes += version.bytes();
        self.versions.push_back(version);
        while self.versions.len() > VERSIONS_MAX
            || self.bytes > VERSIONS_BYTES_MAX && self.versions.len() > 1
        {
            self.forget_oldest();
        }
        Ok(())
    }

    /// The oldest version becomes part of the base.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(oldest) = self.versions.pop_front() {
            self.bytes -= oldest.bytes();
            self.base.advance(&oldest.delta);
            self.base_version = oldest.number;
        }
    }

    /// The version is confirmed, if it waits for that.
    pub(super) fn confirm(&mut self, version: u64) {
        if self.unconfirmed.is_some_and(|it| it.version == version) {
            self.unconfirmed = None;
        }
    }

    /// The overlay before the first version that is kept, and the number of its version.
    pub(super) fn base(&self) -> (&Overlay, u64) {
        (&self.base, self.base_version)
    }
}

/// A version that does not come next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutOfOrder;
