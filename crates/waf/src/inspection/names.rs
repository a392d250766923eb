//! Argument names of a body, as judged by rules that examine names.
//!
//! The name of a JSON leaf is its whole path, so short leaves below a long key make names many times as long as the
//! body. The work of rules must stay linear in the body's length. Names of array elements that differ only by index are
//! judged once. The other names may have [`NAMES_PER_BYTE`] times the bytes of the body; further names are not judged,
//! and the request counts as one with too many arguments.

use std::collections::BTreeSet;

use super::message::Message;
use crate::seclang::Variable;

/// Bytes of judged names for each byte of a body.
const NAMES_PER_BYTE: u64 = 16;
/// Bytes of judged names that every body may have.
const NAMES_BYTES_MIN: u64 = 16 * 1024;
/// Prefix of an element's index.
const ELEMENT: &[u8] = b".array_";

/// Decides how each name is judged, after the body was read.
pub(super) fn limit(message: &mut Message) {
    let Message { texts, values, body, .. } = message;
    let mut left = body.length.saturating_mul(NAMES_PER_BYTE).saturating_add(NAMES_BYTES_MIN);
    let (mut first, mut seen) = (Vec::new(), BTreeSet::new());
    for entry in values.of_mut(Variable::ArgsPost) {
        let name = texts.get(entry.name);
        let bytes = name.len() as u64;
        let is_other = of_first_elements(name, &mut first);
        let judged = if is_other { texts.add(&first) } else { entry.name };
        let is_new = seen.insert(judged);
        if is_other && !is_new {
            entry.judged_name = None;
        } else if is_new && bytes > left {
            entry.judged_name = None;
            message.has_too_many = true;
        } else {
            entry.judged_name = Some(judged);
            left = left.saturating_sub(bytes);
        }
    }
}

/// Writes a name with all element indexes replaced by 0; returns whether that changed the name.
fn of_first_elements(name: &[u8], output: &mut Vec<u8>) -> bool {
    output.clear();
    let mut rest = name;
    while let Some(at) = memchr::memmem::find(rest, ELEMENT) {
        let (before, behind) = rest.split_at(at + ELEMENT.len());
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, others) = behind.split_at(digits);
        let is_element = digits > 0 && matches!(others.first(), None | Some(b'.'));
        output.extend_from_slice(before);
        output.extend_from_slice(if is_element { b"0" } else { number });
        rest = others;
    }
    output.extend_from_slice(rest);
    output != name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_judged_by_the_name_of_the_first() {
        for (name, expected) in [
            ("", ""),
            ("json.a", "json.a"),
            ("json.array_0", "json.array_0"),
            ("json.array_17", "json.array_0"),
            ("json.a.array_17.b.array_2.array_30", "json.a.array_0.b.array_0.array_0"),
            ("json.array_", "json.array_"),
            ("json.array_1a", "json.array_1a"),
            ("json.array_1.array_x2.array_3", "json.array_0.array_x2.array_0"),
        ] {
            let mut output = Vec::new();
            let is_other = of_first_elements(name.as_bytes(), &mut output);
            assert_eq!(output, expected.as_bytes());
            assert_eq!(is_other, name != expected);
        }
    }
}
