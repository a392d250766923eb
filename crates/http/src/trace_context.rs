//! The field `traceparent` of W3C Trace Context (<https://www.w3.org/TR/trace-context/>).
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | version | 2 | not `ff`; for versions above `00`, the known parts are read, and more may follow after `-` |
//! | trace id | 32 | not all zero |
//! | parent id | 16 | not all zero |
//! | flags | 2 | unknown flags are dropped |
//!
//! All parts are hexadecimal digits in lower case, separated by `-`.

use crate::message::Field;

/// Length of a value of version `00`.
pub const TRACEPARENT_BYTES: usize = 55;

/// Flag: the trace is sampled.
pub const SAMPLED: u8 = 0x01;
/// Flag: the last 7 bytes of the trace id are random (level 2 of the specification).
const RANDOM: u8 = 0x02;

/// A trace id, with the span id of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace id; never 0.
    pub trace_id: u128,
    /// The span id of the message's sender; never 0.
    pub span_id: u64,
    /// Flags.
    pub flags: u8,
}

impl TraceParent {
    /// Whether the trace is sampled.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Parses a value; `None`: it is invalid.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
        if [known[2], known[35], known[52]] != *b"---" {
            return None;
        }
        let version = hex(&known[..2])?;
        let is_whole = match version {
            0x00 => rest.is_empty(),
            0xff => return None,
            _ => matches!(rest.first(), None | Some(b'-')),
        };
        let trace_id = hex(&known[3..35])?;
        let span_id = hex(&known[36..52])? as u64;
        let flags = hex(&known[53..])? as u8;
        if !is_whole || trace_id == 0 || span_id == 0 {
            return None;
        }
        let understood = if version == 0 { SAMPLED | RANDOM } else { SAMPLED };
        Some(Self { trace_id, span_id, flags: flags & understood })
    }

    /// The value among these fields; `None`: it is absent or invalid, or the field appears several times.
    pub fn among(fields: &[Field], input: &[u8]) -> Option<Self> {
        let is_it = |field: &&Field| {
            field.name.len() == NAME.len() && field.name.of(input).eq_ignore_ascii_case(NAME)
        };
        let mut values = fields.iter().filter(is_it);
        let value = values.next()?;
        values.next().is_none().then(|| Self::parse(value.value.of(input)))?
    }

    /// Returns the field value, of version `00`.
    pub fn value(&self) -> [u8; TRACEPARENT_BYTES] {
        let mut value = *b"00-00000000000000000000000000000000-0000000000000000-00";
        put_hex(&mut value[3..35], self.trace_id);
        put_hex(&mut value[36..52], self.span_id.into());
        put_hex(&mut value[53..], self.flags.into());
        value
    }
}

/// The name of the field.
pub const NAME: &[u8] = b"traceparent";
/// The name of the field `tracestate`, whose values weir does not parse.
pub const STATE_NAME: &[u8] = b"tracestate";

/// Parses a number of at most 32 hexadecimal digits in lower case.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// Writes the hexadecimal digits of a number.
fn put_hex(place: &mut [u8], mut number: u128) {
    for digit in place.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 0xf) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn parse(value: &str) -> Option<(u128, u64, u8)> {
        let parsed = TraceParent::parse(value.as_bytes());
        parsed.map(|it| (it.trace_id, it.span_id, it.flags))
    }

    /// The cases of the specification's own test suite, `test/test.py` of w3c/trace-context, grouped by part.
    #[test]
    fn values() {
        let (trace, span) = (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7);
        let good = |flags| Some((trace, span, flags));
        let with = |version: &str, more: &str| format!("{version}-{TRACE}-{SPAN}-01{more}");
        for (value, expected) in [
            (format!("00-{TRACE}-{SPAN}-01"), good(1)),
            (format!("00-{TRACE}-{SPAN}-00"), good(0)),
            // Flags.
            (format!("00-{TRACE}-{SPAN}-03"), good(3)),
            (format!("00-{TRACE}-{SPAN}-ff"), good(3)),
            (format!("00-{TRACE}-{SPAN}-fe"), good(2)),
            (format!("cc-{TRACE}-{SPAN}-ff"), good(1)),
            (format!("00-{TRACE}-{SPAN}-.0"), None),
            (format!("00-{TRACE}-{SPAN}-0."), None),
            (format!("00-{TRACE}-{SPAN}-1"), None),
            (format!("00-{TRACE}-{SPAN}-001"), None),
            (format!("00-{TRACE}-{SPAN}-0A"), None),
            // Versions.
            (with("ff", ""), None),
            (with("01", ""), good(1)),
            (with("cc", ""), good(1)),
            (with("cc", "-what-the-future-will-be-like"), good(1)),
            (with("cc", "-"), good(1)),
            (with("cc", ".what-the-future-will-be-like"), None),
            (with("cc", "0"), None),
            (with("00", "-what-the-future-will-be-like"), None),
            (with("00", "-"), None),
            (with(".0", ""), None),
            (with("0.", ""), None),
            (with("0", ""), None),
            (with("000", ""), None),
            (with("CC", ""), None),
            // Trace ids.
            (format!("00-00000000000000000000000000000000-{SPAN}-01"), None),
            (format!("00-.{}-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{}.-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{}-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}0-{SPAN}-01"), None),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
            // Parent ids.
            (format!("00-{TRACE}-0000000000000000-01"), None),
            (format!("00-{TRACE}-.{}-01", &SPAN[1..]), None),
            (format!("00-{TRACE}-{}-01", &SPAN[1..]), None),
            (format!("00-{TRACE}-{SPAN}0-01"), None),
            (format!("00-{TRACE}-{}-01", SPAN.to_uppercase()), None),
            // Separators, and characters around the value.
            (format!("00_{TRACE}_{SPAN}_01"), None),
            (format!("00-{TRACE}{SPAN}--01"), None),
            (format!("00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01"), None),
            (format!(" 00-{TRACE}-{SPAN}-01"), None),
            (format!("00-{TRACE}-{SPAN}-01 "), None),
            (String::new(), None),
            ("foo".to_owned(), None),
        ] {
            assert_eq!(parse(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_value_that_is_written_is_read_alike() {
        for (trace_id, span_id, flags) in [(1, 1, 0), (u128::MAX, u64::MAX, 1), (7 << 64, 9, 3)] {
            let context = TraceParent { trace_id, span_id, flags };
            assert_eq!(TraceParent::parse(&context.value()), Some(context));
        }
        let context = TraceParent { trace_id: 0xabc, span_id: 0x1f, flags: 1 };
        let text = "00-00000000000000000000000000000abc-000000000000001f-01";
        assert_eq!(context.value(), text.as_bytes());
    }

    #[test]
    fn of_several_fields_none_is_taken() {
        use crate::h1::{HeadLimits, parse_request};
        use crate::message::RequestHead;
        use crate::path::TargetForm;

        let line = |name: &str, flags: &str| format!("{name}: 00-{TRACE}-{SPAN}-{flags}\r\n");
        let (one, other) = (line("TraceParent", "01"), line("traceparent", "00"));
        for (lines, is_there) in [
            (one.clone(), true),
            (format!("traceparent:  \t00-{TRACE}-{SPAN}-01 \t\r\n"), true),
            (line("trace-parent", "01"), false),
            (line("trace.parent", "01"), false),
            (format!("{one}{one}"), false),
            (format!("{one}{other}"), false),
            (format!("traceparent: bad\r\n{one}"), false),
            (String::new(), false),
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
            let limits = HeadLimits { head_size_max: 65_536, headers_max: 100 };
            let mut head = RequestHead::new();
            parse_request(text.as_bytes(), &limits, TargetForm::default(), &mut head).unwrap();
            let found = TraceParent::among(&head.fields, text.as_bytes());
            assert_eq!(found.is_some(), is_there, "{lines}");
        }
    }
}
