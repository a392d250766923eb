//! Values that were decoded from other values, as further values of the same variable.
//!
//! They have the name of the value that contains them, so exclusions for an argument hold for its contents. The keys of
//! JSON are inspected by rules for names.

use memchr::memmem::Finder;

use super::message::Message;
use super::message_variables::MessageVariables;
use super::names::{ELEMENT, NAMES_BYTES_MIN, NAMES_PER_BYTE, of_first_elements};
use super::texts::{TextId, Texts};
use super::{file_names, markup, shell};
use crate::body::{NestedValues, cookie_text, may_be_nested, without_escapes};
use crate::seclang::Variable;

/// Maximum number of percent-encodings around JSON in a value.
const ESCAPES_MAX: usize = 2;

/// Adds the contents of the arguments and cookies of a head.
pub(super) fn head(message: &mut Message) {
    in_fields(&mut message.variables);
    for variable in [Variable::ArgsGet, Variable::RequestHeaders, Variable::RequestCookies] {
        judge(message, variable);
    }
    for variable in [Variable::ArgsGet, Variable::RequestCookies] {
        markup::judge(message, variable);
        shell::judge(&mut message.variables, variable);
    }
}

/// Adds the contents of the arguments of a body.
pub(super) fn body(message: &mut Message) {
    file_names::judge(&mut message.variables);
    for variable in [Variable::ArgsPost, Variable::Xml] {
        judge(message, variable);
        markup::judge(message, variable);
        shell::judge(&mut message.variables, variable);
    }
}

/// A value that contains others: its name, and its bytes.
type Outer = (TextId, Vec<u8>);

fn judge(message: &mut Message, variable: Variable) {
    let entries = message.variables.values.of(variable).iter();
    let texts = &message.variables.texts;
    let mut outer: Vec<Outer> = Vec::new();
    for entry in entries {
        let (name, value) = (texts.get(entry.name), texts.get(entry.text));
        if variable == Variable::RequestHeaders {
            let found = if is_read_elsewhere(name) { Vec::new() } else { readings(value) };
            let found = found.into_iter().filter(|it| is_of_application(it));
            outer.extend(found.map(|it| (entry.name, it)));
            continue;
        }
        outer.extend(readings(value).into_iter().map(|value| (entry.name, value)));
        let name = in_name(name).filter(|name| may_be_nested(name));
        outer.extend(name.map(|name| (entry.name, name.to_vec())));
    }
    if outer.is_empty() {
        return;
    }
    let mut nested =
        message.nested.take().unwrap_or_else(|| NestedValues::new(message.body.limits));
    for (name, value) in outer {
        add(message, variable, name, (&mut nested, &value));
    }
    message.nested = Some(nested);
}

/// Whether the contents of a header are decoded in another way.
fn is_read_elsewhere(header: &[u8]) -> bool {
    header.eq_ignore_ascii_case(b"cookie") || header.eq_ignore_ascii_case(b"referer")
}

/// Whether a header is JSON of an application or has an escape. Entity tags and client hints are strings in quotes, which hide nothing.
fn is_of_application(header: &[u8]) -> bool {
    memchr::memchr3(b'\\', b'{', b'[', header).is_some()
}

/// A value and what percent-encoding hides in it, as far as they may be nested. Scripts encode JSON, and libraries of cookies
/// encode what they get. In JSON, only an encoded backslash hides something from rules.
fn readings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut value = std::borrow::Cow::Borrowed(value);
    for _ in 0..=ESCAPES_MAX {
        if may_be_nested(&value) {
            found.push(value.to_vec());
        }
        let is_decoded = match found.is_empty() {
            true => memchr::memchr(b'%', &value).is_none(),
            false => !hides_backslash(&value),
        };
        if is_decoded {
            break;
        }
        value = super::request::decoded(&value).into();
    }
    found
}

/// Whether a text has an encoded backslash: `%5C`, `%255c`.
fn hides_backslash(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text).any(|at| {
        let mut rest = text.get(at + 1..).unwrap_or_default();
        while let Some(behind) = rest.strip_prefix(b"25") {
            rest = behind;
        }
        matches!(rest, [b'5', b'c' | b'C', ..])
    })
}

/// JSON in the name of an argument: the body of a client that says that it sends a form, or a key in brackets.
fn in_name(name: &[u8]) -> Option<&[u8]> {
    let at = memchr::memchr2(b'{', b'"', name)?;
    match at.checked_sub(1).map(|before| (before, name[before])) {
        None => Some(name),
        Some((0, b'[')) => Some(name),
        Some((_, b'[')) => Some(name[at..].strip_suffix(b"]").unwrap_or(&name[at..])),
        Some(_) => None,
    }
}

/// Adds the contents of a value. Returns whether the whole value is JSON.
pub(super) fn add(
    message: &mut Message,
    variable: Variable,
    name: TextId,
    (nested, value): (&mut NestedValues, &[u8]),
) -> bool {
    let Message { variables: MessageVariables { texts, values }, has_too_many, .. } = message;
    let mut names = Names::new(value.len());
    texts.count_work(value.len());
    nested.read(value, &mut |path, leaf| {
        // Keys of JSON are no names of headers.
        let is_name = variable != Variable::RequestHeaders;
        let path = if is_name { names.judged(path, texts, has_too_many) } else { None };
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

/// Adds the contents of quoted cookies, which some frameworks decode, and find their end behind semicolons; and of the address
/// in Referer, whose values may have escapes.
fn in_fields(variables: &mut MessageVariables) {
    let texts = &variables.texts;
    let (mut found, mut address) = (Vec::new(), None);
    for entry in variables.values.of(Variable::RequestHeaders) {
        let value = texts.get(entry.text);
        if memchr::memchr(b'"', value).is_some()
            && texts.get(entry.name).eq_ignore_ascii_case(b"cookie")
        {
            quoted(value, &mut found);
        } else if texts.get(entry.name).eq_ignore_ascii_case(b"referer") && has_backslash(value) {
            address = referred(value).map(|value| (entry.name, value));
        }
    }
    if let Some((name, value)) = address {
        let text = variables.texts.add(&value);
        variables.values.add_nested(Variable::RequestHeaders, name, None, text);
    }
    for (name, value) in found {
        let name = variables.texts.add(&name);
        let text = variables.texts.add(&value);
        variables.values.add_nested(Variable::RequestCookies, name, None, text);
    }
}

/// Whether an address has a backslash, percent-encoded or not.
fn has_backslash(address: &[u8]) -> bool {
    memchr::memchr(b'\\', address).is_some()
        || memchr::memmem::find(address, b"%5C").is_some()
        || memchr::memmem::find(address, b"%5c").is_some()
}

/// An address with its escapes decoded; `None`: it has none.
fn referred(address: &[u8]) -> Option<Vec<u8>> {
    let decoded = super::request::decoded(address);
    let plain = without_escapes(&decoded);
    (plain != decoded).then_some(plain)
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
    fn encoded_values_have_readings() {
        for (value, expected) in [
            ("a", &[][..]),
            ("100% a%20b", &[]),
            ("{}", &["{}"]),
            ("{\"a\":\"b%20c\"}", &["{\"a\":\"b%20c\"}"]),
            ("%7B%7D", &["{}"]),
            ("%257B%257D", &["{}"]),
            ("%25257B%25257D", &[]),
            ("a%5Cu0027", &["a\\u0027"]),
            ("{%5Cu0027}", &["{%5Cu0027}", "{\\u0027}"]),
            ("{%255cu0027}", &["{%255cu0027}", "{%5cu0027}", "{\\u0027}"]),
            ("\\u0041%5cu0042", &["\\u0041%5cu0042", "\\u0041\\u0042"]),
        ] {
            let expected: Vec<_> = expected.iter().map(|it| it.as_bytes().to_vec()).collect();
            assert_eq!(readings(value.as_bytes()), expected, "{value}");
        }
    }

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
