//! Time zones, by name or by offset from UTC.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_text};
use crate::document::Node;

/// Maximum offset from UTC.
const OFFSET_MINUTES_MAX: i32 = 14 * 60;

/// Maximum length of a time zone's name; real names have less than 40 characters.
const NAME_BYTES_MAX: usize = 64;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ZoneChoice {
    Offset(UtcOffset),
    /// A file of the tz database.
    Name(String),
}

impl Default for ZoneChoice {
    fn default() -> Self {
        Self::Offset(UtcOffset::default())
    }
}

impl ZoneChoice {
    fn parse(text: &str) -> Option<Self> {
        if let Some(offset) = UtcOffset::parse(text) {
            return Some(Self::Offset(offset));
        }
        // Each part is the name of a file or directory, so the path cannot leave the database.
        let is_part = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
            part.bytes().all(is_plain) && part.starts_with(|first: char| first.is_ascii_uppercase())
        };
        (text.len() <= NAME_BYTES_MAX && text.split('/').all(is_part))
            .then(|| Self::Name(text.to_owned()))
    }
}

/// An offset from UTC, in minutes; positive to the east.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UtcOffset(i32);

impl UtcOffset {
    pub fn seconds(self) -> i32 {
        self.0 * 60
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "UTC" {
            return Some(Self::default());
        }
        let (is_behind, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+')?),
        };
        let (hours, minutes) = digits.split_once(':')?;
        let two = |text: &str| {
            let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<i32>().ok())?
        };
        let (hours, minutes) = (two(hours)?, two(minutes)?);
        let offset = hours * 60 + minutes;
        let is_sound = minutes < 60 && offset <= OFFSET_MINUTES_MAX;
        is_sound.then_some(Self(if is_behind { -offset } else { offset }))
    }
}

impl Decode for ZoneChoice {
    fn expected() -> String {
        "`UTC`, the name of a time zone, such as Europe/Berlin, or an offset from UTC, such as \"+01:00\" or \"-05:30\"".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^([A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*|[+-][01][0-9]:[0-5][0-9])$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| Self::parse(text).ok_or_else(Invalid::plainly))
    }
}

impl ShownDefault for ZoneChoice {
    fn shown(&self) -> Value {
        match self {
            Self::Offset(offset) => offset.shown(),
            Self::Name(name) => name.as_str().into(),
        }
    }
}

impl ShownDefault for UtcOffset {
    fn shown(&self) -> Value {
        if self.0 == 0 {
            return "UTC".into();
        }
        let (sign, minutes) = (if self.0 < 0 { '-' } else { '+' }, self.0.abs());
        format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, is_name) in [
            ("Europe/Berlin", true),
            ("America/Argentina/Buenos_Aires", true),
            ("Etc/GMT+5", true),
            ("EST5EDT", true),
            ("America/Port-au-Prince", true),
            ("utc", false),
            ("Europe/berlin", false),
            ("../etc/passwd", false),
            ("Europe/../Berlin", false),
            ("/Europe/Berlin", false),
            ("Europe//Berlin", false),
            ("Europe/", false),
            ("Europe/Ber lin", false),
            ("", false),
            ("+25:00", false),
        ] {
            let name = ZoneChoice::Name(text.to_owned());
            assert_eq!(ZoneChoice::parse(text), is_name.then_some(name), "{text}");
        }
        let long = format!("A{}", "a".repeat(NAME_BYTES_MAX));
        assert_eq!(ZoneChoice::parse(&long), None);
        assert!(ZoneChoice::parse(&long[1..]).is_none(), "no capital");
        assert!(ZoneChoice::parse(&long[..NAME_BYTES_MAX]).is_some());
    }

    #[test]
    fn offsets() {
        for (text, expected) in [
            ("UTC", Some(0)),
            ("+00:00", Some(0)),
            ("+01:00", Some(3_600)),
            ("-05:30", Some(-19_800)),
            ("+14:00", Some(50_400)),
            ("+14:01", None),
            ("+01:60", None),
            ("01:00", None),
            ("+1:00", None),
            ("+01:0", None),
            ("+0a:00", None),
            ("++1:00", None),
            ("utc", None),
            ("Europe/Berlin", None),
            ("", None),
        ] {
            let found = UtcOffset::parse(text);
            assert_eq!(found.map(UtcOffset::seconds), expected, "{text}");
            if let Some(found) = found {
                let shown = found.shown();
                assert_eq!(UtcOffset::parse(shown.as_str().expect("a text")), Some(found));
            }
        }
    }
}
