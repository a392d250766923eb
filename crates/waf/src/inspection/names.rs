//! The names of body arguments, as inspected by rules for names.
//!
//! The name of a JSON leaf is its whole path. Short leaves below a long key have names that are together many times as long
//! as the body, but the work of rules must stay linear in the length of the body. So names that differ only in the indexes
//! of array elements are inspected once. The other names may have [`NAMES_PER_BYTE`] times the bytes of the body. Further
//! names are not inspected, and the request counts as a request with too many arguments. (The parser has a wider limit for all
//! names, which are kept.)

use memchr::memmem::Finder;

use super::message::Message;
use super::message_variables::MessageVariables;
use super::texts::TextId;
use crate::seclang::Variable;

/// Maximum number of inspected bytes of names for each byte of a body.
pub(super) const NAMES_PER_BYTE: u64 = 16;
/// Number of bytes of names that are inspected regardless of the size of the body.
pub(super) const NAMES_BYTES_MIN: u64 = 16 * 1024;
/// The text before the index of an array element.
pub(super) const ELEMENT: &[u8] = b".array_";

/// Decides how each name is inspected, after the body was parsed.
pub(super) fn limit(message: &mut Message) {
    let Message { variables: MessageVariables { texts, values }, body, .. } = message;
    let mut left = body.length.saturating_mul(NAMES_PER_BYTE).saturating_add(NAMES_BYTES_MIN);
    let (mut first, mut seen) = (Vec::new(), Vec::new());
    let element = Finder::new(ELEMENT);
    for entry in values.of_mut(Variable::ArgsPost) {
        let name = texts.get(entry.name);
        let bytes = name.len() as u64;
        let is_other = of_first_elements(name, &element, &mut first);
        let judged = if is_other { texts.add(&first) } else { entry.name };
        let is_new = see(&mut seen, judged);
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

/// Writes a name with the index of each array element replaced by 0. Returns whether the result differs from the name.
/// `element` finds [`ELEMENT`].
pub(super) fn of_first_elements(name: &[u8], element: &Finder<'_>, output: &mut Vec<u8>) -> bool {
    output.clear();
    let mut rest = name;
    while let Some(at) = element.find(rest) {
        let (before, behind) = rest.split_at(at + ELEMENT.len());
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, others) = behind.split_at(digits);
        let is_element = digits > 0 && matches!(others.first(), None | Some(b'.'));
        output.extend_from_slice(before);
        output.extend_from_slice(if is_element { b"0" } else { number });
        rest = others;
    }
    if output.is_empty() {
        return false;
    }
    output.extend_from_slice(rest);
    output != name
}

/// Adds a text to a set, with one flag for each text. Returns whether it is new.
fn see(seen: &mut Vec<bool>, text: TextId) -> bool {
    if seen.len() <= text.index() {
        seen.resize(text.index() + 1, false);
    }
    seen.get_mut(text.index()).is_some_and(|it| !std::mem::replace(it, true))
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
            let finder = Finder::new(ELEMENT);
            let is_other = of_first_elements(name.as_bytes(), &finder, &mut output);
            assert!(!is_other || output == expected.as_bytes(), "{name}");
            assert_eq!(is_other, name != expected, "{name}");
        }
    }
}
