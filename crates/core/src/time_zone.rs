//! Time zones: offsets from UTC and their changes.
//!
//! A zone is read from a file of the tz database (TZif, RFC 9636): the listed changes, and the rule for later times. Files
//! and clocks are not read here: `jiff` is built without them.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::{self, Offset};

/// The offset of a place from UTC over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZone(tz::TimeZone);

impl Default for TimeZone {
    fn default() -> Self {
        Self(tz::TimeZone::UTC)
    }
}

/// The reason why a file is not a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneError {
    /// The file has no TZif header.
    NoZone,
    /// The file has the first version, which has no rule for later times.
    Old,
    /// The file is truncated, or contains impossible values, or its rule for later times does, or they contradict each other.
    Malformed,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoZone => "it is no file of the tz database",
            Self::Old => "it is of version 1, which says nothing of times to come",
            Self::Malformed => "it is malformed, contradicts itself, or is cut short",
        })
    }
}

impl std::error::Error for ZoneError {}

impl TimeZone {
    /// A zone with a constant offset, of less than 26 hours.
    pub fn fixed(offset_s: i32) -> Self {
        let furthest = if offset_s < 0 { Offset::MIN } else { Offset::MAX };
        Self(tz::TimeZone::fixed(Offset::from_seconds(offset_s).unwrap_or(furthest)))
    }

    /// Parses a file of the tz database.
    pub fn parse(file: &[u8]) -> Result<Self, ZoneError> {
        let version = file.strip_prefix(b"TZif").and_then(|rest| rest.first());
        match version.ok_or(ZoneError::NoZone)? {
            ..b'2' => Err(ZoneError::Old),
            // Changes that are out of order would give wrong offsets, without an error.
            _ if is_in_order(file) != Some(true) => Err(ZoneError::Malformed),
            _ => tz::TimeZone::tzif("", file).map(Self).map_err(|_| ZoneError::Malformed),
        }
    }

    /// The offset from UTC in seconds at a second since 1970; positive: ahead of UTC.
    ///
    /// Cost: logarithmic in the number of changes until 2037, constant after them. Allocates nothing.
    pub fn offset_s(&self, unix_s: i64) -> i32 {
        let furthest = if unix_s < 0 { Timestamp::MIN } else { Timestamp::MAX };
        self.0.to_offset(Timestamp::from_second(unix_s).unwrap_or(furthest)).seconds()
    }
}

/// Whether each change of a file comes after the one before it; `None`: the file is cut short. RFC 9636 section 3.2.
fn is_in_order(file: &[u8]) -> Option<bool> {
    /// Length of a header.
    const HEADER: usize = 44;
    let [isut, isstd, leap, time, kind, names] = counts(file)?;
    // The part with 32-bit times comes first.
    let part = file.get(HEADER + isut + isstd + leap * 8 + time * 5 + kind * 6 + names..)?;
    let [_, _, _, time, _, _] = counts(part)?;
    let (times, _) = part.get(HEADER..HEADER + time * 8)?.as_chunks::<8>();
    Some(times.is_sorted_by(|one, next| i64::from_be_bytes(*one) < i64::from_be_bytes(*next)))
}

/// The counts of a header: indicators of UT and of standard time, leap seconds, changes, kinds of local time, bytes of names.
fn counts(header: &[u8]) -> Option<[usize; 6]> {
    let (counts, _) = header.get(20..)?.first_chunk::<24>()?.as_chunks::<4>();
    let counts: [[u8; 4]; 6] = counts.try_into().ok()?;
    Some(counts.map(|count| u32::from_be_bytes(count) as usize))
}

#[cfg(test)]
mod tests;
