//! Texts for messages: lists and durations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use weir_config::parts::Change;

use crate::monitors::UnknownMembers;

/// Pools as text: `pool images (2 of 3 members), pool web (1 of 1 member)`.
pub(crate) struct Pools(pub(crate) Vec<UnknownMembers>);

/// Maximum number of names in a list. Only the number of further names is shown.
const LISTED_MAX: usize = 5;

impl fmt::Display for Pools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pool) in self.0.iter().take(LISTED_MAX).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let UnknownMembers { pool, of, members } = pool;
            let plural = if *of == 1 { "" } else { "s" };
            if *of == 0 {
                write!(formatter, "{comma}pool {pool} (no address yet)")?;
                continue;
            }
            write!(formatter, "{comma}pool {pool} ({} of {of} member{plural})", members.len())?;
        }
        match self.0.len().saturating_sub(LISTED_MAX) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// The first names as text: `10.0.0.1:80, 10.0.0.2:80 and 3 more`.
pub(crate) struct NamesText<'a>(pub(crate) &'a [Arc<str>]);

impl fmt::Display for NamesText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().take(LISTED_MAX).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{name}")?;
        }
        match self.0.len().saturating_sub(LISTED_MAX) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// A number with its noun: `1 panic`, `2 panics`.
pub(crate) struct CountText(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for CountText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = self;
        let plural = if *count == 1 { "" } else { "s" };
        write!(formatter, "{count} {noun}{plural}")
    }
}

/// A duration as text: `3.2 s`.
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1} s", self.0.as_secs_f64())
    }
}

/// Maximum number of changes in an event.
const CHANGES_TOLD_MAX: usize = 5;

/// The changes of a reload as text: `; changed pools.web, added pools.spare and 3 more`. Empty without changes.
pub struct ChangesText<'a>(pub &'a [Change]);

impl fmt::Display for ChangesText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.0.iter().take(CHANGES_TOLD_MAX).enumerate() {
            write!(formatter, "{} {change}", if index == 0 { ";" } else { "," })?;
        }
        match self.0.len().saturating_sub(CHANGES_TOLD_MAX) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}
