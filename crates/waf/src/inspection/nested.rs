//! Values that were decoded from other values, as further values of the same variable.
//!
//! They have the name of the value that contains them, so exclusions for an argument hold for its contents. The keys of
//! JSON are inspected by rules for names.

use memchr::memmem::Finder;

use super::message::Message;
use super::names::{ELEMENT, NAMES_BYTES_MIN, NAMES_PER_BYTE, of_first_elements};
use super::texts::{TextId, Texts};
use super::{markup, shell};
use crate::body::{Nested, cookie_text, may_be_nested};
use crate::seclang::Variable;

/// Adds the contents of the arguments and cookies of a head.
pub(super) fn head(message: &mut Message) {
    judge(message, Variable::ArgsGet, false);
    quoted_cookies(message);
    judge(message, Variable::RequestCookies, true);
    markup::judge(message, Variable::ArgsGet, false);
    markup::judge(message, Variable::RequestCookies, true);
    shell::judge(message, Variable::ArgsGet, false);
    shell::judge(message, Variable::RequestCookies, true);
}

/// Adds the contents of the arguments of a body.
pub(super) fn body(message: &mut Message) {
    judge(message, Variable::ArgsPost, false);
    judge(message, Variable::Xml, false);
    markup::judge(message, Variable::ArgsPost, false);
    markup::judge(message, Variable::Xml, false);
    shell::judge(message, Variable::ArgsPost, false);
    shell::judge(message, Variable::Xml, false);
}

/// A value that contains others: its name, and its bytes.
type Outer = (TextId, Vec<u8>);

/// `is_escaped`: the values are percent-encoded.
fn judge(message: &mut Message, variable: Variable, is_escaped: bool) {
    let entries = message.values.of(variable).iter();
    let texts = &message.texts;
    let outer: Vec<Outer> = entries
        .filter_map(|entry| {
            let value = texts.get(entry.text);
            if may_be_nested(value) {
                return Some((entry.name, value.to_vec()));
            }
            if !is_escaped || memchr::memchr(b'%', value).is_none() {
                return None;
            }
            let decoded = super::request::decoded(value);
            may_be_nested(&decoded).then_some((entry.name, decoded))
        })
        .collect();
    if outer.is_empty() {
        return;
    }
    let mut nested = message.nested.take().unwrap_or_else(|| Nested::new(message.body.limits));
    for (name, value) in outer {
        add(message, variable, name, (&mut nested, &value));
    }
    message.nested = Some(nested);
}

/// Adds the contents of a value. Returns whether the whole value is JSON.
pub(super) fn add(
    message: &mut Message,
    variable: Variable,
    name: TextId,
    (nested, value): (&mut Nested, &[u8]),
) -> bool {
    let Message { texts, values, has_too_many, .. } = message;
    let mut names = Names::new(value.len());
    texts.count_work(value.len());
    nested.read(value, &mut |path, leaf| {
        let path = names.judged(path, texts, has_too_many);
        let text = texts.add(leaf);
        values.add_nested(variable, name, path, text);
    })
}

/// The names of the contents of a value, for rules that inspect names. Their length is limited as for a body of JSON.
struct Names {
    left: u64,
    element: Finder<'static>,
    folded: Vec<u8>,
    last: Option<TextId>,
}

impl Names {
    fn new(value_bytes: usize) -> Self {
        let left = (value_bytes as u64).saturating_mul(NAMES_PER_BYTE) + NAMES_BYTES_MIN;
        Self { left, element: Finder::new(ELEMENT), folded: Vec::new(), last: None }
    }

    /// The text of a path, with the indexes of elements replaced by 0; `None`: it is not inspected.
    fn judged(
        &mut self,
        path: &[u8],
        texts: &mut Texts,
        has_too_many: &mut bool,
    ) -> Option<TextId> {
        if path.is_empty() {
            return None;
        }
        let is_folded = of_first_elements(path, &self.element, &mut self.folded);
        let judged = if is_folded { &self.folded[..] } else { path };
        let Some(left) = self.left.checked_sub(judged.len() as u64) else {
            *has_too_many = true;
            return None;
        };
        self.left = left;
        let name = texts.add(judged);
        (self.last.replace(name) != Some(name)).then_some(name)
    }
}

/// Adds the contents of quoted cookies. Some frameworks decode them, and find their end behind semicolons.
fn quoted_cookies(message: &mut Message) {
    let texts = &message.texts;
    let mut found = Vec::new();
    for entry in message.values.of(Variable::RequestHeaders) {
        let value = texts.get(entry.text);
        if memchr::memchr(b'"', value).is_some()
            && texts.get(entry.name).eq_ignore_ascii_case(b"cookie")
        {
            quoted(value, &mut found);
        }
    }
    for (name, value) in found {
        let name = message.texts.add(&name);
        let text = message.texts.add(&value);
        message.values.add_nested(Variable::RequestCookies, name, None, text);
    }
}

/// The names and contents of the quoted cookies of a field that differ from what the field has between their quotes, or
/// contain a semicolon.
fn quoted(field: &[u8], found: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    let mut rest = field;
    while let Some(at) = memchr::memchr(b'"', rest) {
        let (before, behind) = rest.split_at(at);
        let behind = behind.get(1..).unwrap_or_default();
        rest = behind;
        let Some(name) = before.trim_ascii_end().strip_suffix(b"=") else { continue };
        let Some((text, others)) = cookie_text(behind) else { continue };
        rest = others;
        let between = behind.len() - others.len();
        if between != text.len() + 1 || memchr::memchr(b';', &text).is_some() {
            let start = memchr::memrchr(b';', name).map_or(0, |at| at + 1);
            let name = name.get(start..).unwrap_or_default().trim_ascii();
            found.push((name.to_vec(), text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_cookies_are_found() {
        for (field, expected) in [
            ("a=b", &[][..]),
            (r#"a="b""#, &[]),
            (r#"a="b\073c"; d=e"#, &[("a", "b;c")]),
            (r#"x=1; a = "b;c"; d="\"""#, &[("a", "b;c"), ("d", "\"")]),
            (r#"a="b;c"#, &[]),
            (r#"a=b"c;d""#, &[]),
        ] {
            let mut found = Vec::new();
            quoted(field.as_bytes(), &mut found);
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
                .collect();
            assert_eq!(found, expected, "{field}");
        }
    }
}
