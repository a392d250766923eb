//! Schemas of values.

use regex::bytes::Regex;

use super::super::Check;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Anything.
    Any,
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `2026-11-25`.
    Date,
    /// `2026-11-25T10:00:00Z`.
    DateTime,
    /// A UUID.
    Uuid,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An e-mail address, checked roughly.
    Email,
}

/// The schema of a value.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The type.
    pub kind: Kind,
    /// Minimum number of characters.
    pub length_min: Option<usize>,
    /// Maximum number of characters.
    pub length_max: Option<usize>,
    /// Minimum of a number.
    pub minimum: Option<f64>,
    /// Maximum of a number.
    pub maximum: Option<f64>,
    /// The required pattern.
    pub pattern: Option<Regex>,
    /// The allowed values; empty: any.
    pub allowed: Vec<Box<str>>,
    /// The required format.
    pub format: Option<Format>,
    /// Whether the value may be `null` or empty.
    pub is_nullable: bool,
}

impl Schema {
    /// A schema that accepts any value.
    pub fn any() -> Self {
        Self {
            kind: Kind::Any,
            length_min: None,
            length_max: None,
            minimum: None,
            maximum: None,
            pattern: None,
            allowed: Vec::new(),
            format: None,
            is_nullable: false,
        }
    }

    /// Validates a value. The error is the violated check.
    pub fn hold(&self, value: &[u8]) -> Result<(), Check> {
        if self.is_nullable && matches!(value, b"" | b"null") {
            return Ok(());
        }
        let text = std::str::from_utf8(value).ok();
        let number = text.and_then(number);
        let is_of_kind = match self.kind {
            Kind::Any => true,
            Kind::Text => text.is_some(),
            Kind::Integer => text.is_some_and(is_whole),
            Kind::Number => number.is_some(),
            Kind::Boolean => matches!(value, b"true" | b"false"),
        };
        if !is_of_kind {
            return Err(Check::ParameterType);
        }
        let length = text.map_or(value.len(), |text| text.chars().count());
        let is_too_short = self.length_min.is_some_and(|min| length < min);
        if is_too_short || self.length_max.is_some_and(|max| length > max) {
            return Err(Check::ParameterLength);
        }
        let below = |limit: f64| number.is_some_and(|number| number < limit);
        let above = |limit: f64| number.is_some_and(|number| number > limit);
        let is_matched = self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(value));
        let is_allowed =
            self.allowed.is_empty() || self.allowed.iter().any(|it| it.as_bytes() == value);
        let has_form =
            self.format.is_none_or(|format| text.is_some_and(|text| has_form(format, text)));
        let is_within = !self.minimum.is_some_and(below) && !self.maximum.is_some_and(above);
        if is_matched && is_allowed && has_form && is_within {
            Ok(())
        } else {
            Err(Check::ParameterValue)
        }
    }
}

/// Parses a number in JSON syntax (RFC 8259, 6).
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let starts = digits.as_bytes().first().is_some_and(u8::is_ascii_digit);
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    (starts && is_plain).then(|| text.parse().ok()).flatten()
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_form(format: Format, text: &str) -> bool {
    match format {
        Format::Date => is_date(text),
        Format::DateTime => {
            let parts = text.split_once(['T', 't', ' ']);
            parts.is_some_and(|(date, time)| is_date(date) && is_time(time))
        }
        Format::Uuid => {
            let mut lengths = text.split('-').map(str::len);
            let is_form = [8, 4, 4, 4, 12].iter().all(|wanted| lengths.next() == Some(*wanted));
            is_form
                && lengths.next().is_none()
                && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        }
        Format::Ipv4 => text.parse::<std::net::Ipv4Addr>().is_ok(),
        Format::Ipv6 => text.parse::<std::net::Ipv6Addr>().is_ok(),
        Format::Email => {
            let parts = text.rsplit_once('@');
            let is_plain = |part: &str| {
                !part.is_empty()
                    && !part
                        .chars()
                        .any(|char| char.is_whitespace() || "<>\"'(),;:\\".contains(char))
            };
            parts.is_some_and(|(name, host)| is_plain(name) && is_plain(host) && host.contains('.'))
        }
    }
}

/// Whether the text is a date by RFC 3339 section 5.6. The number of days of each month is not checked.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let part = |part: &str, length: usize, max: u32| {
        part.len() == length
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|number| number <= max)
    };
    part(year, 4, 9_999) && part(month, 2, 12) && part(day, 2, 31) && *month != "00" && *day != "00"
}

fn is_time(text: &str) -> bool {
    let offset = text.find(['Z', 'z', '+', '-']);
    let (time, zone) = text.split_at(offset.unwrap_or(text.len()));
    let is_clock = |text: &str, parts_wanted: usize| {
        let parts: Vec<&str> = text.split(':').collect();
        let max = |index: usize| if index == 0 { 23 } else { 60 };
        parts.len() == parts_wanted
            && parts.iter().enumerate().all(|(index, part)| {
                part.len() == 2 && part.parse::<u32>().is_ok_and(|number| number <= max(index))
            })
    };
    let (whole, fraction) =
        time.split_once('.').map_or((time, None), |(it, rest)| (it, Some(rest)));
    let is_fraction =
        fraction.is_none_or(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()));
    let is_zone = matches!(zone, "Z" | "z") || zone.get(1..).is_some_and(|it| is_clock(it, 2));
    is_clock(whole, 3) && is_fraction && is_zone
}
