//! The invariants of all inputs. They are checked for each conformance case, for random mutations of the cases, and by the
//! fuzz targets, which include this file.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod body;
pub mod cookies;
pub mod forwarded;
pub mod h2;
pub mod oracle;
pub mod paths;
pub mod proxy_protocol;
pub mod request;
pub mod resolvers;
pub mod response;
pub mod trace_context;

use weir_http::h1::HeadLimits;
use weir_http::message::{Field, FieldId};

pub const LIMITS: HeadLimits = HeadLimits { head_size_max: 16 * 1024, headers_max: 100 };

/// Maximum size of an input that is cut at every position. Longer inputs are cut at about 100 positions.
const CUT_EVERYWHERE_SIZE_MAX: usize = 1024;

/// The positions at which an input of this length is cut.
pub fn cuts(length: usize) -> impl Iterator<Item = usize> {
    let step = if length <= CUT_EVERYWHERE_SIZE_MAX { 1 } else { length / 100 };
    (0..length).step_by(step).chain([length])
}

/// The names and values of the forwarded fields.
pub fn forwarded<'a>(fields: &[Field], input: &'a [u8]) -> Vec<(&'a [u8], &'a [u8])> {
    let travels = fields.iter().filter(|field| field.forward);
    travels.map(|field| (field.name.of(input), field.value.of(input))).collect()
}

/// Asserts that the lines of an outgoing head end in CR LF and contain no other control character except HTAB, and that
/// nothing follows the empty line.
pub fn assert_clean_head(head: &[u8]) {
    let text = head.strip_suffix(b"\r\n\r\n").expect("ends in an empty line");
    assert!(!text.windows(4).any(|window| window == b"\r\n\r\n"), "empty line inside the head");
    let mut previous = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\r' => assert_eq!(text.get(at + 1), Some(&b'\n'), "bare CR"),
            b'\n' => assert_eq!(previous, b'\r', "bare LF"),
            b'\t' => {}
            _ => assert!(!byte.is_ascii_control(), "control character"),
        }
        previous = *byte;
    }
}

/// The number of lines in a head with this field name.
pub fn count_fields(head: &[u8], name: &str) -> usize {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    lines
        .filter(|line| {
            line.len() > name.len()
                && line[..name.len()].eq_ignore_ascii_case(name.as_bytes())
                && line[name.len()] == b':'
        })
        .count()
}

/// Checks that no field that a Connection field nominates is forwarded, except a field named `close`.
pub fn assert_nominated_stay(fields: &[Field], input: &[u8]) {
    let travelling = forwarded(fields, input);
    for field in fields.iter().filter(|field| field.id == FieldId::Connection) {
        for option in field.value.of(input).split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            let travels = travelling.iter().any(|(name, _)| name.eq_ignore_ascii_case(option));
            assert!(!travels || option.eq_ignore_ascii_case(b"close"), "{}", option.escape_ascii());
        }
    }
}
