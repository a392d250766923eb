//! Scalars of the language: numbers, durations, sizes, percentages, names, words.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Invalid, NAME_BYTES_MAX, NAME_PATTERN, Registry, ShownDefault, check_name,
    decode_scalar, decode_text, not_supported,
};
use crate::document::{Node, NodeValue, ScalarKind};
use crate::hints::meant;

/// An integer from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<T, const MIN: u64, const MAX: u64>(pub T);

impl<T: TryFrom<u64>, const MIN: u64, const MAX: u64> Decode for Whole<T, MIN, MAX> {
    fn expected() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| {
            let number = whole(&scalar.text);
            if scalar.kind() == ScalarKind::Text {
                let invalid = Invalid::plainly();
                return Err(match number {
                    Some(_) => invalid.help("remove the quotes"),
                    None => invalid,
                });
            }
            number
                .filter(|number| (MIN..=MAX).contains(number))
                .and_then(|number| T::try_from(number).ok())
                .map(Self)
                .ok_or_else(Invalid::plainly)
        })
    }
}

impl<T: Copy + Into<u64>, const MIN: u64, const MAX: u64> ShownDefault for Whole<T, MIN, MAX> {
    fn shown(&self) -> Value {
        let number: u64 = self.0.into();
        number.into()
    }
}

/// Parses decimal digits only: no sign, no `0x`, no `1_000`, no leading zero that might mean octal.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits && !leading_zero { text.parse().ok() } else { None }
}

/// A unit of a duration or size, and its value in the smallest unit.
type Unit = (&'static str, u64);

const DURATION_UNITS: [Unit; 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: [Unit; 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Other spellings of units, and the accepted spelling.
const UNIT_ALIASES: &[(&str, &str)] = &[
    ("k", "KiB"),
    ("kb", "KiB"),
    ("kib", "KiB"),
    ("mb", "MiB"),
    ("mib", "MiB"),
    ("g", "GiB"),
    ("gb", "GiB"),
    ("gib", "GiB"),
    ("b", "B"),
    ("bytes", "B"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("seconds", "s"),
    ("min", "m"),
    ("mins", "m"),
    ("minutes", "m"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
];

/// Parses a number and a unit without a space: `30s`, `16KiB`. The quantity must be in `range`, in the smallest unit.
fn quantity(
    text: &str,
    units: &[Unit],
    default_unit: Unit,
    range: RangeInclusive<u64>,
) -> Result<u64, Invalid> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let Some(number) = whole(number) else {
        return Err(Invalid::plainly());
    };
    if unit.is_empty() {
        let (name, factor) = default_unit;
        let meant = number.saturating_mul(factor);
        let help = match (range.start(), range.end()) {
            (least, _) if meant < *least => format!(", at least {}", show_quantity(*least, units)),
            (_, most) if meant > *most => format!(", at most {}", show_quantity(*most, units)),
            _ => format!(": {number}{name}"),
        };
        return Err(Invalid::plainly().help(format!("add the unit{help}")));
    }
    if let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) {
        let amount = number.checked_mul(factor).filter(|amount| range.contains(amount));
        return amount.ok_or_else(Invalid::plainly);
    }
    let lower = unit.trim().to_ascii_lowercase();
    let known =
        units.iter().map(|&(name, _)| name).find(|name| name.eq_ignore_ascii_case(&lower)).or_else(
            || {
                UNIT_ALIASES
                    .iter()
                    .find(|(alias, known)| {
                        *alias == lower && units.iter().any(|(name, _)| name == known)
                    })
                    .map(|&(_, known)| known)
            },
        );
    Err(match known {
        Some(known) => Invalid::plainly().help(format!("write {number}{known}")),
        None => Invalid::plainly(),
    })
}

/// Shows a quantity in the largest unit with an integer value; but one minute and one day as `60s` and `24h`, as is usual.
fn show_quantity(amount: u64, units: &[Unit]) -> String {
    units
        .iter()
        .rev()
        .find(|&&(name, factor)| {
            amount >= factor
                && amount.is_multiple_of(factor)
                && !(matches!(name, "m" | "d") && amount == factor)
        })
        .map_or_else(
            || format!("{amount}{}", units[0].0),
            |(name, factor)| format!("{}{name}", amount / factor),
        )
}

fn unit_pattern(units: &[Unit]) -> String {
    let names: Vec<&str> = units.iter().map(|&(name, _)| name).collect();
    format!("^[0-9]+({})$", names.join("|"))
}

/// Milliseconds from `MIN` to `MAX`, written with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duration<const MIN: u64, const MAX: u64>(pub u64);

/// One second in milliseconds.
pub(crate) const SECOND: u64 = 1_000;
/// One minute in milliseconds.
pub(crate) const MINUTE: u64 = 60 * SECOND;
/// One hour in milliseconds.
pub(crate) const HOUR: u64 = 3_600 * SECOND;
/// One day in milliseconds.
pub(crate) const DAY: u64 = 24 * HOUR;

/// A duration in the form of the file.
pub(crate) fn show_duration(milliseconds: u64) -> String {
    show_quantity(milliseconds, &DURATION_UNITS)
}

impl<const MIN: u64, const MAX: u64> Decode for Duration<MIN, MAX> {
    fn expected() -> String {
        format!(
            "a duration from {} to {} (units: ms, s, m, h, d)",
            show_duration(MIN),
            show_duration(MAX)
        )
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": unit_pattern(&DURATION_UNITS) })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| {
            quantity(&scalar.text, &DURATION_UNITS, ("s", SECOND), MIN..=MAX).map(Self)
        })
    }
}

impl<const MIN: u64, const MAX: u64> ShownDefault for Duration<MIN, MAX> {
    fn shown(&self) -> Value {
        show_duration(self.0).into()
    }
}

/// Bytes from `MIN` to `MAX`, written with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size<const MIN: u64, const MAX: u64>(pub u64);

/// 1 KiB in bytes.
pub(crate) const KIB: u64 = 1 << 10;
/// 1 MiB in bytes.
pub(crate) const MIB: u64 = 1 << 20;
/// 1 GiB in bytes.
pub(crate) const GIB: u64 = 1 << 30;

impl<const MIN: u64, const MAX: u64> Decode for Size<MIN, MAX> {
    fn expected() -> String {
        format!(
            "a size from {} to {} (units: B, KiB, MiB, GiB)",
            show_quantity(MIN, &SIZE_UNITS),
            show_quantity(MAX, &SIZE_UNITS)
        )
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": unit_pattern(&SIZE_UNITS) })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| {
            // A bare `m` means minutes in the other list, so it has no common alias.
            let text = scalar
                .text
                .strip_suffix(['m', 'M'])
                .map_or_else(|| scalar.text.clone(), |number| format!("{number}mb"));
            quantity(&text, &SIZE_UNITS, ("B", 1), MIN..=MAX).map(Self)
        })
    }
}

impl<const MIN: u64, const MAX: u64> ShownDefault for Size<MIN, MAX> {
    fn shown(&self) -> Value {
        show_quantity(self.0, &SIZE_UNITS).into()
    }
}

/// Maximum jitter: with more, two consecutive probes could coincide.
const PERCENT_MAX: u8 = 50;

/// A percentage up to `MAX`: `10%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percent<const MAX: u8 = PERCENT_MAX>(pub u8);

impl<const MAX: u8> Decode for Percent<MAX> {
    fn expected() -> String {
        format!("a percentage from 0% to {MAX}%")
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]+%$" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| {
            if let Some(number) = whole(&scalar.text) {
                return Err(Invalid::plainly().help(format!("write {number}%")));
            }
            scalar
                .text
                .strip_suffix('%')
                .and_then(whole)
                .and_then(|number| u8::try_from(number).ok())
                .filter(|percent| *percent <= MAX)
                .map(Self)
                .ok_or_else(Invalid::plainly)
        })
    }
}

impl<const MAX: u8> ShownDefault for Percent<MAX> {
    fn shown(&self) -> Value {
        format!("{}%", self.0).into()
    }
}

/// `true` or `false`.
impl Decode for bool {
    fn expected() -> String {
        "`true` or `false`".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "boolean" })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_scalar(node, context, |scalar| match (scalar.kind(), scalar.text.as_str()) {
            (ScalarKind::Boolean, "true") => Ok(true),
            (ScalarKind::Boolean, "false") => Ok(false),
            (ScalarKind::Text, "yes" | "on") => Err(Invalid::plainly().help("write true")),
            (ScalarKind::Text, "no" | "off") => Err(Invalid::plainly().help("write false")),
            _ => Err(Invalid::plainly()),
        })
    }
}

impl ShownDefault for bool {
    fn shown(&self) -> Value {
        (*self).into()
    }
}

/// A word that is permitted in place of a value.
pub(crate) trait Keyword {
    const WORD: &'static str;
}

/// The word `off`.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Off;

impl Keyword for Off {
    const WORD: &'static str = "off";
}

/// The word `auto`.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Auto;

impl Keyword for Auto {
    const WORD: &'static str = "auto";
}

/// A word or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordOr<W, T> {
    Word(W),
    Value(T),
}

impl<W, T> WordOr<W, T> {
    /// The value; `None` for the word.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Word(_) => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl<W: Keyword + Default, T: Decode> Decode for WordOr<W, T> {
    fn expected() -> String {
        format!("`{}` or {}", W::WORD, T::expected())
    }

    fn schema(registry: &mut Registry) -> Value {
        json!({ "anyOf": [{ "const": W::WORD }, T::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        match &node.value {
            NodeValue::Scalar(scalar) if scalar.text == W::WORD => Some(Self::Word(W::default())),
            NodeValue::Scalar(scalar) if scalar.kind() == ScalarKind::Boolean => {
                let suggestion = format!("write {}", W::WORD);
                context.mismatch(node, &Self::expected(), Some(suggestion));
                None
            }
            _ => context.or_word(W::WORD, |context| T::decode(node, context)).map(Self::Value),
        }
    }
}

impl<W: Keyword, T: ShownDefault> ShownDefault for WordOr<W, T> {
    fn shown(&self) -> Value {
        match self {
            Self::Word(_) => W::WORD.into(),
            Self::Value(value) => value.shown(),
        }
    }
}

/// The name of a pool or profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(pub String);

impl Decode for Name {
    fn expected() -> String {
        "a name".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "pattern": NAME_PATTERN, "maxLength": NAME_BYTES_MAX })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        // Names are map keys elsewhere, where YAML needs no quotes around digits.
        decode_scalar(node, context, |scalar| {
            check_name(&scalar.text).map_err(Invalid::because)?;
            Ok(Self(scalar.text.clone()))
        })
    }
}

/// Any non-empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub String);

impl Decode for Text {
    fn expected() -> String {
        "text".into()
    }

    fn schema(_: &mut Registry) -> Value {
        json!({ "type": "string", "minLength": 1 })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        decode_text(node, context, |text| {
            if text.is_empty() {
                return Err(Invalid::because("the text is empty"));
            }
            Ok(Self(text.to_owned()))
        })
    }
}

impl ShownDefault for Text {
    fn shown(&self) -> Value {
        self.0.as_str().into()
    }
}

/// Lists words: "`a`, `b` or `c`".
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The decoder of `choice!`.
pub(crate) fn decode_choice<T: Decode + Copy>(
    node: &Node,
    context: &mut Context,
    words: &[(&str, T)],
    later: &[&str],
    later_maps: &[&str],
) -> Option<T> {
    if let NodeValue::Map(entries) = &node.value
        && let [entry] = entries.as_slice()
        && later_maps.contains(&entry.key.as_str())
    {
        not_supported(context, entry.key_span, &entry.key);
        return None;
    }
    if let NodeValue::Scalar(scalar) = &node.value
        && later.contains(&scalar.text.as_str())
    {
        not_supported(context, node.span, &scalar.text);
        return None;
    }
    decode_scalar(node, context, |scalar| {
        let text = scalar.text.as_str();
        if let Some(&(_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(value);
        }
        let candidates = words.iter().map(|&(word, _)| word);
        Err(match meant(text, candidates) {
            Some(word) => Invalid::plainly().help(format!("did you mean `{word}`?")),
            None => Invalid::plainly(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn decode<T: Decode>(text: &str) -> Result<T, String> {
        let (root, findings) = document::parse(&document::Lines::new(text));
        assert_eq!(findings, []);
        let mut context = Context::default();
        let value = context.within_key("key", |context| T::decode(&root.expect(text), context));
        let (findings, _) = context.finish();
        match value {
            Some(value) => {
                assert!(findings.is_empty());
                Ok(value)
            }
            None => {
                let (_, finding) = &findings[0];
                Err(match &finding.suggestion {
                    Some(help) => format!("{} -> {help}", finding.message),
                    None => finding.message.clone(),
                })
            }
        }
    }

    #[test]
    fn durations() {
        type Any = Duration<1, { 24 * HOUR }>;
        let good = [("500ms", 500), ("2s", 2_000), ("\"5m\"", 300_000), ("1d", 86_400_000)];
        for (text, milliseconds) in good {
            assert_eq!(decode::<Any>(text), Ok(Duration(milliseconds)), "{text}");
        }
        let bad = [
            ("30", "found the number 30 -> add the unit: 30s"),
            ("0", "found the number 0 -> add the unit, at least 1ms"),
            ("90000", "-> add the unit, at most 24h"),
            ("0s", "found the text \"0s\""),
            ("25h", "found the text \"25h\""),
            ("5min", "-> write 5m"),
            ("5S", "-> write 5s"),
            ("5 s", "-> write 5s"),
            ("1.5s", "found the text \"1.5s\""),
            ("-1s", "found the text \"-1s\""),
            ("5d", "found the text \"5d\""),
            ("1day", "-> write 1d"),
            ("99999999999999999999s", "found"),
            ("18446744073709551615h", "found"),
            ("1h30m", "found the text \"1h30m\""),
            ("[1s]", "found a list"),
            ("~", "found nothing -> give it a value"),
        ];
        for (text, message) in bad {
            let error = decode::<Any>(text).expect_err(text);
            assert!(error.contains("`key` must be a duration from 1ms to 24h"), "{error}");
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn durations_are_shown_as_people_write_them() {
        let cases = [
            (0, "0ms"),
            (1_500, "1500ms"),
            (60_000, "60s"),
            (90_000, "90s"),
            (300_000, "5m"),
            (HOUR, "1h"),
            (24 * HOUR, "24h"),
            (2 * DAY, "2d"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(show_duration(milliseconds), text);
        }
    }

    #[test]
    fn sizes() {
        type Any = Size<1, { 64 * GIB }>;
        let good = [("16KiB", 16 * KIB), ("20MiB", 20 * MIB), ("7B", 7), ("1GiB", GIB)];
        for (text, bytes) in good {
            assert_eq!(decode::<Any>(text), Ok(Size(bytes)), "{text}");
        }
        let bad = [
            ("1024", "-> add the unit: 1024B"),
            ("16k", "-> write 16KiB"),
            ("16KB", "-> write 16KiB"),
            ("16kib", "-> write 16KiB"),
            ("10m", "-> write 10MiB"),
            ("1G", "-> write 1GiB"),
            ("65GiB", "found the text \"65GiB\""),
            ("18446744073709551615GiB", "found"),
            ("x", "found the text \"x\""),
        ];
        for (text, message) in bad {
            let error = decode::<Any>(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
        type Large = Size<MIB, { 2 * GIB }>;
        for (text, help) in [("10", "at least 1MiB"), ("3000000000", "at most 2GiB")] {
            let error = decode::<Large>(text).expect_err(text);
            assert!(error.ends_with(&format!("-> add the unit, {help}")), "{error}");
        }
    }

    #[test]
    fn whole_numbers() {
        type Weight = Whole<u16, 1, 256>;
        assert_eq!(decode::<Weight>("256"), Ok(Whole(256)));
        let bad = [
            ("0", "found the number 0"),
            ("257", "found the number 257"),
            ("-1", "found the number -1"),
            ("1.5", "found the number 1.5"),
            ("0x10", "found the number 0x10"),
            ("010", "found the number 010"),
            ("1e2", "found the number 1e2"),
            ("\"3\"", "found the text \"3\" -> remove the quotes"),
            ("true", "found the boolean true"),
            ("three", "found the text \"three\""),
            ("{a: 1}", "found a map"),
        ];
        for (text, message) in bad {
            let error = decode::<Weight>(text).expect_err(text);
            assert!(error.starts_with("`key` must be a whole number from 1 to 256"), "{error}");
            assert!(error.ends_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn words_percentages_and_booleans() {
        type Limit = WordOr<Off, Size<1, { GIB }>>;
        assert_eq!(decode::<Limit>("off"), Ok(WordOr::Word(Off)));
        assert_eq!(decode::<Limit>("1KiB"), Ok(WordOr::Value(Size(KIB))));
        let error = decode::<Limit>("false").expect_err("a boolean");
        assert!(error.ends_with("found the boolean false -> write off"), "{error}");

        assert_eq!(decode::<Percent>("10%"), Ok(Percent(10)));
        assert_eq!(decode::<Percent<100>>("100%"), Ok(Percent(100)));
        let error = decode::<Percent<100>>("101%").expect_err("too much");
        assert!(error.contains("a percentage from 0% to 100%"), "{error}");
        for (text, message) in [("10", "-> write 10%"), ("51%", "found"), ("-1%", "found")] {
            let error = decode::<Percent>(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }

        assert_eq!(decode::<bool>("true"), Ok(true));
        for (text, message) in [("yes", "-> write true"), ("off", "-> write false"), ("1", "1")] {
            let error = decode::<bool>(text).expect_err(text);
            assert!(error.ends_with(message), "{text}: {error}");
        }
    }
}
