//! Time zones: offsets from UTC and their changes.
//!
//! A zone is read from a file of the tz database (TZif, RFC 9636): the listed changes, and changes computed from its
//! rule for later times, up to [`LAST_YEAR`]. So a lookup is a search in a sorted list.

use std::fmt;

/// The last year for which changes are computed from a zone's rule; after it, the offset stays the same.
const LAST_YEAR: i64 = 2_200;

/// Maximum number of changes in a file: real files have less than 300.
const CHANGES_MAX: usize = 4_096;

/// Maximum offset from UTC (RFC 9636 section 3.2 has the same).
const OFFSET_S_MAX: i64 = 26 * 3_600;

const HEADER_BYTES: usize = 44;
const DAY_S: i64 = 86_400;

/// The offset of a place from UTC over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// The offset before the first change.
    first_offset_s: i32,
    /// Times of changes, in seconds since 1970, and the offsets from then on, sorted.
    changes: Box<[(i64, i32)]>,
}

/// The reason why a file is not a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneError {
    /// The file has no TZif header.
    NoZone,
    /// The file has the first version, which has no rule for later times.
    Old,
    /// The file is truncated, or contains impossible values.
    Malformed,
    /// The rule for later times is invalid.
    Rule,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoZone => "it is no file of the tz database",
            Self::Old => "it is of version 1, which says nothing of times to come",
            Self::Malformed => "it is malformed or cut short",
            Self::Rule => "its rule for times to come is malformed",
        })
    }
}

impl std::error::Error for ZoneError {}

impl TimeZone {
    /// A zone with a constant offset.
    pub fn fixed(offset_s: i32) -> Self {
        Self { first_offset_s: offset_s, changes: Box::default() }
    }

    /// Parses a file of the tz database.
    pub fn parse(file: &[u8]) -> Result<Self, ZoneError> {
        let (first, version) = Header::read(file)?;
        if version < b'2' {
            return Err(ZoneError::Old);
        }
        // The first part has 32-bit times. The second part follows it, with its own header, and is the one that is read.
        let second = file.get(HEADER_BYTES + first.length(4)..).ok_or(ZoneError::Malformed)?;
        let (header, _) = Header::read(second)?;
        let data = &second[HEADER_BYTES..];
        let length = header.length(8);
        let footer = data.get(length..).ok_or(ZoneError::Malformed)?;
        let (times, rest) = data.split_at(header.times * 8);
        let (kinds, rest) = rest.split_at(header.times);
        let offset = |kind: usize| -> Result<i32, ZoneError> {
            let at = rest.get(kind * 6..kind * 6 + 4).filter(|_| kind < header.kinds);
            let offset = i32::from_be_bytes(four(at.ok_or(ZoneError::Malformed)?)?);
            let is_sound = i64::from(offset).abs() <= OFFSET_S_MAX;
            is_sound.then_some(offset).ok_or(ZoneError::Malformed)
        };
        let mut changes = Vec::with_capacity(header.times);
        for (time, kind) in times.chunks_exact(8).zip(kinds) {
            let at_s = i64::from_be_bytes(time.try_into().map_err(|_| ZoneError::Malformed)?);
            changes.push((at_s, offset(usize::from(*kind))?));
        }
        if !changes.is_sorted_by(|one, next| one.0 < next.0) {
            return Err(ZoneError::Malformed);
        }
        let mut zone = Self { first_offset_s: offset(0)?, changes: Box::default() };
        zone.go_on(&mut changes, rule_of(footer)?)?;
        zone.changes = changes.into();
        Ok(zone)
    }

    /// Adds the changes that the zone's rule gives after the last listed one.
    fn go_on(&mut self, changes: &mut Vec<(i64, i32)>, rule: &str) -> Result<(), ZoneError> {
        if rule.is_empty() {
            return Ok(());
        }
        let rule = Rule::parse(rule).ok_or(ZoneError::Rule)?;
        let Some(summer) = &rule.summer else {
            if changes.is_empty() {
                self.first_offset_s = rule.offset_s;
            }
            return Ok(());
        };
        let last_s = changes.last().map(|(at_s, _)| *at_s);
        let first_year = last_s.map_or(1_970, |at_s| year_of(at_s.max(0)));
        for year in first_year..=LAST_YEAR {
            let begins = summer.begins.at_s(year) - i64::from(rule.offset_s);
            let ends = summer.ends.at_s(year) - i64::from(summer.offset_s);
            let mut both = [(begins, summer.offset_s), (ends, rule.offset_s)];
            both.sort_unstable();
            let is_later = |at_s: i64| last_s.is_none_or(|last_s| at_s > last_s);
            changes.extend(both.into_iter().filter(|(at_s, _)| is_later(*at_s)));
        }
        changes.sort_by_key(|(at_s, _)| *at_s);
        Ok(())
    }

    /// The offset from UTC in seconds at a second since 1970; positive: ahead of UTC.
    ///
    /// Cost: logarithmic in the number of changes.
    pub fn offset_s(&self, unix_s: i64) -> i32 {
        let behind = self.changes.partition_point(|(at_s, _)| *at_s <= unix_s);
        behind.checked_sub(1).map_or(self.first_offset_s, |last| self.changes[last].1)
    }
}

/// The counts of items in one part of a file.
struct Header {
    utc_marks: usize,
    standard_marks: usize,
    leaps: usize,
    times: usize,
    kinds: usize,
    characters: usize,
}

impl Header {
    /// The header at the start of these bytes, and its version.
    fn read(bytes: &[u8]) -> Result<(Self, u8), ZoneError> {
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(b"TZif") {
            return Err(ZoneError::NoZone);
        }
        let count = |index: usize| -> Result<usize, ZoneError> {
            let at = 20 + index * 4;
            let count = u32::from_be_bytes(four(&bytes[at..at + 4])?) as usize;
            (count <= CHANGES_MAX).then_some(count).ok_or(ZoneError::Malformed)
        };
        let header = Self {
            utc_marks: count(0)?,
            standard_marks: count(1)?,
            leaps: count(2)?,
            times: count(3)?,
            kinds: count(4)?,
            characters: count(5)?,
        };
        if header.kinds == 0 {
            return Err(ZoneError::Malformed);
        }
        Ok((header, bytes[4]))
    }

    /// The length of the data after the header, with times of this number of bytes.
    fn length(&self, time_bytes: usize) -> usize {
        // Each count is limited, so this does not overflow.
        self.times * (time_bytes + 1)
            + self.kinds * 6
            + self.characters
            + self.leaps * (time_bytes + 4)
            + self.standard_marks
            + self.utc_marks
    }
}

fn four(bytes: &[u8]) -> Result<[u8; 4], ZoneError> {
    bytes.try_into().map_err(|_| ZoneError::Malformed)
}

/// The rule between the two line feeds at the end of a file.
fn rule_of(footer: &[u8]) -> Result<&str, ZoneError> {
    let rule = footer.strip_prefix(b"\n").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        rest.get(..end)
    });
    std::str::from_utf8(rule.ok_or(ZoneError::Malformed)?).map_err(|_| ZoneError::Rule)
}

/// The rule for later times: `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX, 8.3, with hours as in RFC 9636 section 3.3.1).
struct Rule {
    offset_s: i32,
    summer: Option<Summer>,
}

struct Summer {
    offset_s: i32,
    begins: Moment,
    ends: Moment,
}

/// A moment of each year, in the local time that is valid before it.
struct Moment {
    day: Day,
    time_s: i64,
}

#[derive(Clone, Copy)]
enum Day {
    /// Day of the year from 1 on, without 29 February.
    Julian(i64),
    /// Day of the year from 0 on, with 29 February.
    Ordinal(i64),
    /// The n-th weekday (0: Sunday) of a month; week 5: the last one.
    Weekday { month: i64, week: i64, weekday: i64 },
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let mut text = Text(text);
        text.name()?;
        let offset_s = -text.time(24)?;
        if text.0.is_empty() {
            return Some(Self { offset_s: i32::try_from(offset_s).ok()?, summer: None });
        }
        text.name()?;
        let summer_s = if text.0.starts_with(',') { offset_s + 3_600 } else { -text.time(24)? };
        let begins = text.moment()?;
        let ends = text.moment()?;
        if !text.0.is_empty() {
            return None;
        }
        let summer = Summer { offset_s: i32::try_from(summer_s).ok()?, begins, ends };
        Some(Self { offset_s: i32::try_from(offset_s).ok()?, summer: Some(summer) })
    }
}

/// The unparsed rest of a rule.
struct Text<'t>(&'t str);

impl Text<'_> {
    fn takes(&mut self, prefix: char) -> bool {
        let rest = self.0.strip_prefix(prefix);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn name(&mut self) -> Option<()> {
        if self.takes('<') {
            let (_, rest) = self.0.split_once('>')?;
            self.0 = rest;
            return Some(());
        }
        let length = self.0.bytes().take_while(u8::is_ascii_alphabetic).count();
        self.0 = &self.0[length..];
        (length >= 3).then_some(())
    }

    fn number(&mut self, max: i64) -> Option<i64> {
        let length = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        // No number here has more than four digits.
        let number: i64 = (length <= 4).then(|| digits.parse().ok())??;
        (number <= max).then_some(number)
    }

    /// `[+-]hh[:mm[:ss]]`, in seconds.
    fn time(&mut self, hours_max: i64) -> Option<i64> {
        let is_negative = self.takes('-');
        if !is_negative {
            self.takes('+');
        }
        let mut seconds = self.number(hours_max)? * 3_600;
        if self.takes(':') {
            seconds += self.number(59)? * 60;
            if self.takes(':') {
                seconds += self.number(59)?;
            }
        }
        Some(if is_negative { -seconds } else { seconds })
    }

    /// `,M3.5.0/3`, `,J60`, `,59`.
    fn moment(&mut self) -> Option<Moment> {
        if !self.takes(',') {
            return None;
        }
        let day = if self.takes('M') {
            let month = self.number(12).filter(|month| *month >= 1)?;
            let week = self.takes('.').then(|| self.number(5))?.filter(|week| *week >= 1)?;
            let weekday = self.takes('.').then(|| self.number(6))??;
            Day::Weekday { month, week, weekday }
        } else if self.takes('J') {
            Day::Julian(self.number(365).filter(|day| *day >= 1)?)
        } else {
            Day::Ordinal(self.number(365)?)
        };
        let time_s = if self.takes('/') { self.time(167)? } else { 2 * 3_600 };
        Some(Moment { day, time_s })
    }
}

impl Moment {
    /// The moment in a year, in seconds since 1970, as if local time were UTC.
    fn at_s(&self, year: i64) -> i64 {
        let day = match self.day {
            Day::Ordinal(day) => days_to(year, 1) + day,
            Day::Julian(day) => {
                let leap = i64::from(is_leap(year) && day >= 60);
                days_to(year, 1) + day - 1 + leap
            }
            Day::Weekday { month, week, weekday } => {
                let first = days_to(year, month);
                // 1 January 1970 was a Thursday.
                let behind = (weekday - (first + 4)).rem_euclid(7);
                let day = first + behind + (week - 1) * 7;
                let next =
                    if month == 12 { days_to(year + 1, 1) } else { days_to(year, month + 1) };
                if day < next { day } else { day - 7 }
            }
        };
        day * DAY_S + self.time_s
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from 1 January 1970 to the first of a month.
fn days_to(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let before = year - 1;
    let years = (year - 1_970) * 365 + before.div_euclid(4) - before.div_euclid(100)
        + before.div_euclid(400)
        - 477;
    let leap = i64::from(month > 2 && is_leap(year));
    years + BEFORE[(month - 1).clamp(0, 11) as usize] + leap
}

/// The year that contains a second since 1970.
fn year_of(unix_s: i64) -> i64 {
    let day = unix_s.div_euclid(DAY_S);
    // 400 years have 146,097 days. The estimate is never too high, and at most two years too low.
    let year = 1_969 + day.saturating_mul(400).div_euclid(146_097);
    (year..).find(|year| days_to(year + 1, 1) > day).unwrap_or(year)
}

#[cfg(test)]
mod tests;
