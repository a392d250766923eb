//! Script injection in HTML.
//!
//! A value is parsed as if a page contained it in text, in a tag, or in an attribute's value, with either quote or without
//! quotes. It is an injection if an element, an event handler, a URL or a style introduces a script. Markup without scripts,
//! which rich text editors send, is accepted. So is a frame with the whole address of another site over HTTPS: editors embed
//! videos and maps in this way, and such a page cannot reach into this one.

mod lists;
mod tokenizer;
mod values;

#[cfg(test)]
mod tests;

use tokenizer::{Attribute, Place, Token, Tokenizer};
use values::Address;

/// The contexts in a page where a value may be inserted.
const PLACES: [Place; 6] = [
    Place::Text,
    Place::Tag,
    Place::UnquotedValue,
    Place::QuotedValue(b'"'),
    Place::QuotedValue(b'\''),
    Place::QuotedValue(b'`'),
];

/// Whether the input introduces a script into a page, in any context where a value may be inserted.
pub fn detect_script(input: &[u8]) -> bool {
    (tokenizer::has_markup(input)
        && PLACES.iter().any(|place| brings_script(Tokenizer::new(input, *place))))
        || values::is_script_address(input)
}

/// Whether the byte occurs in markup or URLs. Every input with a script has at least one of these bytes.
pub fn may_be_script(byte: u8) -> bool {
    matches!(byte, b'<' | b'=' | b':')
}

fn brings_script(mut tokens: Tokenizer<'_>) -> bool {
    let mut element: &[u8] = &[];
    // A frame whose address was not read yet.
    let mut is_frame_open = false;
    let has_script = tokens.any(|token| match token {
        Token::TagOpen(name) => {
            element = name;
            std::mem::replace(&mut is_frame_open, lists::is_frame(name)) || lists::is_element(name)
        }
        Token::Attribute(attribute) => {
            if is_frame_open && attribute.in_own_tag && attribute.name.eq_ignore_ascii_case(b"src")
            {
                is_frame_open = !attribute.value.is_some_and(values::is_of_another_site);
                return is_frame_open || attribute_brings_script(&attribute);
            }
            attribute_brings_script(&attribute)
                || (attribute.in_own_tag
                    && attribute.value.is_some()
                    && lists::is_element_with_attributes(element))
        }
        Token::Comment(text) => comment_brings_script(text),
    });
    has_script || is_frame_open
}

fn attribute_brings_script(attribute: &Attribute<'_>) -> bool {
    let Some(value) = attribute.value else {
        return false;
    };
    let name = attribute.name.trim_ascii_start();
    let name =
        [b'"', b'\''].iter().fold(name, |name, quote| name.strip_prefix(&[*quote]).unwrap_or(name));
    let is_handler = if attribute.in_own_tag { lists::is_handler } else { lists::is_known_handler };
    let brings = match values::address(value) {
        Address::Script => true,
        Address::Document => lists::is_address(name),
        Address::Plain => false,
    };
    brings
        || (is_handler(name) && !value.is_empty())
        || (lists::is_document(name) && !value.is_empty())
        || (name.eq_ignore_ascii_case(b"style") && values::style_runs_script(value))
        || (name.eq_ignore_ascii_case(b"attributename") && lists::is_known_handler(value))
}

/// Whether a comment introduces a script: a conditional comment of Internet Explorer, or a declaration that defines entities
/// or imports.
fn comment_brings_script(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins =
        |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins(b"[if")
        || begins(b"entity")
        || begins(b"import")
        || memchr::memmem::find(text, b"<!ENTITY").is_some()
}
