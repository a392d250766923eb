//! Markup within values: XML and HTML with character references, and documents in EBCDIC.
//!
//! `&#39;` is a quote for a program that reads the value as a document. Such a value is inspected with its references decoded,
//! and as the texts and attributes of its elements. Their number counts toward the limit of values within values.

use super::message::Message;
use super::texts::TextId;
use crate::body::{self, Body, Encoding, NestedValues, Processor, Sink, significant};
use crate::seclang::Variable;
use crate::transformation::Transformation;

/// Adds the contents of the values of a variable that are markup, also percent-encoded.
pub(super) fn judge(message: &mut Message, variable: Variable) {
    let texts = &message.variables.texts;
    let entries = message.variables.values.of(variable).iter();
    let outer: Vec<(TextId, Vec<u8>)> = entries
        .flat_map(|entry| {
            let value = texts.get(entry.text);
            let plain = has_contents(value).then(|| value.to_vec());
            let is_encoded = memchr::memmem::find(value, b"%23").is_some();
            let decoded = is_encoded.then(|| super::request::decoded(value));
            let found = plain.into_iter().chain(decoded.filter(|it| has_contents(it)));
            found.map(|value| (entry.name, value))
        })
        .collect();
    if outer.is_empty() {
        return;
    }
    let mut nested =
        message.nested.take().unwrap_or_else(|| NestedValues::new(message.body.limits));
    for (name, value) in outer {
        message.variables.texts.count_work(value.len());
        for text in contents(message, &value) {
            if !nested.take_one() {
                break;
            }
            let text = message.variables.texts.add(&text);
            message.variables.values.add_nested(variable, name, None, text);
        }
    }
    message.nested = Some(nested);
}

/// Whether a value may be read as markup with another result than its characters.
fn has_contents(value: &[u8]) -> bool {
    let has = |mark: &[u8]| memchr::memmem::find(value, mark).is_some();
    has_reference(value)
        || (has(b"<![CDATA[") && significant(value).starts_with(b"<"))
        || is_ebcdic(value)
}

/// Whether a value has a reference to a character of ASCII by its number. Others, such as those of quotes in print, hide nothing.
fn has_reference(value: &[u8]) -> bool {
    memchr::memmem::find_iter(value, b"&#").any(|at| {
        let number = value.get(at + 2..).unwrap_or_default();
        let (number, radix) = match number {
            [b'x' | b'X', digits @ ..] => (digits, 16),
            _ => (number, 10),
        };
        let digits = number.iter().map_while(|byte| char::from(*byte).to_digit(radix));
        let mut digits = digits.skip_while(|digit| *digit == 0).peekable();
        digits.peek().is_some()
            && digits.fold(0, |code: u32, it| code.saturating_mul(radix).saturating_add(it)) < 0x80
    })
}

/// Whether a value begins like a document in EBCDIC. Text in UTF-8 never does.
fn is_ebcdic(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'L' | b'@')) && body::encoding_of(value) == Some(Encoding::Ebcdic)
}

fn contents(message: &Message, value: &[u8]) -> Vec<Vec<u8>> {
    if is_ebcdic(value) {
        return body::readings(Encoding::Ebcdic, value);
    }
    let mut found = Contents(Vec::new());
    let mut decoded = Vec::new();
    if Transformation::HtmlEntityDecode.apply(value, &mut decoded) {
        found.0.push(decoded);
    }
    if significant(value).starts_with(b"<") {
        let mut reading: Body = message.reader(Processor::Xml);
        reading.feed(significant(value), &mut found);
        reading.finish(&mut found);
        // Rules see the others in the value itself.
        if memchr::memmem::find(value, b"<![CDATA[").is_none() {
            found.0.retain(|text| memchr::memmem::find(value, text).is_none());
        }
    }
    found.0
}

/// The texts and attributes of a document.
struct Contents(Vec<Vec<u8>>);

impl Sink for Contents {
    fn xml_text(&mut self, text: &[u8]) {
        self.0.push(text.to_vec());
    }

    fn xml_attribute(&mut self, value: &[u8]) {
        self.0.push(value.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_references_have_contents() {
        for (value, expected) in [
            (&b""[..], false),
            (b"a < b & c", false),
            (b"<p>a</p>", false),
            (b"a &#39; b", true),
            (b"a &#x00027 b", true),
            (b"a &#8217; b &#x201c; &# &#0;", false),
            (b"<a><![CDATA[b]]></a>", true),
            (b"about <![CDATA[", false),
            (b"Lorem ipsum", false),
            (b"@user", false),
            (b"\x4c\x6f\xa7\x94\x93\x40", true),
            (b"\x40\x4c\x5a\xc4\xd6\xc3", true),
        ] {
            assert_eq!(has_contents(value), expected, "{}", value.escape_ascii());
        }
    }
}
