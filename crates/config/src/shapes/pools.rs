//! A pool, or pools with their weights.

use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Invalid, Registry, ShownDefault, Spanned, check_name, decode_text,
};
use crate::document::{Node, NodeValue};
use crate::scalar::{Name, Whole};

/// Maximum weight: it allows shares of a thousandth of a percent.
const WEIGHT_MAX: u64 = 100_000;

/// A weight among pools.
type Weight = Whole<u32, 0, WEIGHT_MAX>;

/// A pool, or a map from pools to their weights.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PoolChoice {
    One(Spanned<Name>),
    Split(Vec<(Spanned<Name>, u32)>),
}

impl Decode for PoolChoice {
    fn expected() -> String {
        "a pool's name, or a map from pools to weights, `{ blue: 95, green: 5 }`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let split = json!({
            "type": "object",
            "additionalProperties": Weight::schema(registry),
            "propertyNames": Name::schema(registry),
            "minProperties": 1,
        });
        json!({ "anyOf": [Name::schema(registry), split] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        let entries = match &node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Scalar(_) => return Spanned::decode(node, context).map(Self::One),
            _ => {
                context.mismatch(node, &Self::expected(), None);
                return None;
            }
        };
        if entries.is_empty() {
            let message = format!("{} is empty; it needs at least one pool", context.path());
            context.error(node.span, message);
            return None;
        }
        let mut split = Vec::with_capacity(entries.len());
        let mut is_sound = true;
        for entry in entries.iter() {
            let weight =
                context.within_key(&entry.key, |context| Weight::decode(&entry.value, context));
            if let Err(reason) = check_name(&entry.key) {
                context.error(entry.key_span, format!("{}: {reason}", context.path()));
                is_sound = false;
            }
            let name =
                Spanned { value: Name(entry.key.clone()), span: entry.key_span, given: true };
            match weight {
                Some(Whole(weight)) => split.push((name, weight)),
                None => is_sound = false,
            }
        }
        if is_sound && split.iter().all(|(_, weight)| *weight == 0) {
            let message = format!("{} gives every pool the weight 0", context.path());
            context.error_help(node.span, message, "give at least one a higher weight");
            is_sound = false;
        }
        is_sound.then_some(Self::Split(split))
    }
}

/// A share of requests, in thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share(pub u32);

/// Thousandths per percent.
const THOUSAND: u32 = 1_000;

impl Share {
    fn parse(text: &str) -> Option<u32> {
        let number = text.strip_suffix('%')?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !are_digits(whole) || !are_digits(part) || whole.len() > 3 || part.len() > 3 {
            return None;
        }
        let part: u32 = format!("{part:0<3}").parse().ok()?;
        let share = whole.parse::<u32>().ok()? * THOUSAND + part;
        (1..=100 * THOUSAND).contains(&share).then_some(share)
    }
}

impl Decode for Share {
    fn expected() -> String {
        "a percentage from 0.001% to 100%".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,3})?%$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| Self::parse(text).map(Self).ok_or_else(Invalid::plainly))
    }
}

impl ShownDefault for Share {
    fn shown(&self) -> Value {
        let part = format!("{:03}", self.0 % THOUSAND);
        let part = part.trim_end_matches('0');
        let dot = if part.is_empty() { "" } else { "." };
        format!("{}{dot}{part}%", self.0 / THOUSAND).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_and_shown() {
        for (text, expected) in [
            ("5%", Some(5_000)),
            ("0.1%", Some(100)),
            ("0.001%", Some(1)),
            ("12.34%", Some(12_340)),
            ("100%", Some(100_000)),
            ("100.001%", None),
            ("0%", None),
            ("0.0001%", None),
            ("5", None),
            ("%", None),
            (".5%", None),
            ("5.%", None),
            ("-1%", None),
            ("1e1%", None),
        ] {
            assert_eq!(Share::parse(text), expected, "{text}");
            if let Some(share) = expected {
                assert_eq!(Share(share).shown(), Value::from(text));
            }
        }
    }
}
