//! Rates: a number per time.

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_scalar};
use crate::document::Node;
use crate::scalar::{HOUR, MINUTE, SECOND, show_duration, whole};

/// Maximum number of a rate or burst.
pub(crate) const RATE_MAX: u64 = 4_000_000;

/// Maximum period of a rate.
const PERIOD_MAX: u64 = 24 * HOUR;

/// A rate per second (`20`) or per another period (`5/m`, `10/5m`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub count: u32,
    pub period_ms: u32,
}

impl Rate {
    fn parse(text: &str) -> Result<Self, Invalid> {
        let (count, period) = text.split_once('/').unwrap_or((text, "s"));
        let digits = period.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = period.split_at(digits);
        let factor = match unit {
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            "min" => return Err(Invalid::plainly().help(format!("write {count}/{number}m"))),
            "sec" => return Err(Invalid::plainly().help(format!("write {count}/{number}s"))),
            "hour" => return Err(Invalid::plainly().help(format!("write {count}/{number}h"))),
            _ => return Err(Invalid::plainly()),
        };
        // nginx writes `r` after the number.
        if let Some(bare) = count.strip_suffix('r').filter(|bare| whole(bare).is_some()) {
            return Err(Invalid::plainly().help(format!("write {bare}/{period}")));
        }
        let number = if number.is_empty() { Some(1) } else { whole(number) };
        let count = whole(count).filter(|count| (1..=RATE_MAX).contains(count));
        let period = number.and_then(|number| number.checked_mul(factor));
        let period = period.filter(|period| (1..=PERIOD_MAX).contains(period));
        match (count, period) {
            (Some(count), Some(period)) => {
                Ok(Self { count: count as u32, period_ms: period as u32 })
            }
            _ => Err(Invalid::plainly()),
        }
    }
}

impl Decode for Rate {
    fn expected() -> String {
        format!(
            "a whole number from 1 to {RATE_MAX}, or a number in a time of up to 24h, such as 5/m or 10/5m"
        )
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": RATE_MAX },
            { "type": "string", "pattern": "^[1-9][0-9]*/[0-9]*[smh]$" },
        ] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| Self::parse(&scalar.text))
    }
}

impl ShownDefault for Rate {
    fn shown(&self) -> Value {
        match u64::from(self.period_ms) {
            SECOND => self.count.into(),
            period => format!("{}/{}", self.count, show_duration(period)).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        for (text, count, period_ms) in [
            ("20", 20, 1_000),
            ("20/s", 20, 1_000),
            ("5/m", 5, 60_000),
            ("10/5m", 10, 300_000),
            ("1/h", 1, 3_600_000),
            ("3/24h", 3, 86_400_000),
            ("4000000", 4_000_000, 1_000),
        ] {
            assert_eq!(Rate::parse(text).ok(), Some(Rate { count, period_ms }), "{text}");
        }
        for text in [
            "", "0", "0/m", "-1", "4000001", "5/", "5/x", "5/0m", "5/25h", "5/m/m", "5 /m", "5r/m",
            "5/min", "/m",
        ] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }
}
