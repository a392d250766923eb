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

use super::xml::is_plain_entity;
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
    while let Some(token) = tokens.next() {
        let brings = match token {
            Token::TagOpen(name) => {
                element = name;
                let is_plain = name.eq_ignore_ascii_case(b"style")
                    && values::is_plain_sheet(tokens.not_read());
                std::mem::replace(&mut is_frame_open, lists::is_frame(name))
                    || (lists::is_element(name) && !is_plain)
            }
            Token::Attribute(it)
                if is_frame_open && it.in_own_tag && it.name.eq_ignore_ascii_case(b"src") =>
            {
                is_frame_open = !it.value.is_some_and(values::is_of_another_site);
                is_frame_open || attribute_brings_script(&it)
            }
            Token::Attribute(it) => {
                attribute_brings_script(&it)
                    || (it.in_own_tag
                        && lists::is_element_with_attributes(element)
                        && it.value.is_some_and(|value| !is_plain(element, it.name, value)))
            }
            Token::Comment(text) => comment_brings_script(text),
        };
        if brings {
            return true;
        }
    }
    is_frame_open
}

/// Whether an attribute is harmless although its element may introduce a script.
fn is_plain(element: &[u8], name: &[u8], value: &[u8]) -> bool {
    element.eq_ignore_ascii_case(b"meta") && values::is_plain_meta(name, value)
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

/// Whether a conditional comment introduces a script. Programs of Office write their settings into them.
fn branch_brings_script(text: &[u8]) -> bool {
    let Some(begin) = memchr::memchr(b'>', text) else { return true };
    let inner = text.get(begin + 1..).unwrap_or_default();
    let mut element: &[u8] = &[];
    Tokenizer::new(inner, Place::Text).any(|token| match token {
        Token::TagOpen(name) => {
            element = name;
            lists::is_element(name) || lists::is_frame(name)
        }
        Token::Attribute(it) => {
            attribute_brings_script(&it) || lists::is_element_with_attributes(element)
        }
        Token::Comment(text) => !text.starts_with(b"[endif"),
    })
}

/// Whether a comment introduces a script: a conditional comment of Internet Explorer, or a declaration that imports, or defines
/// an entity that is neither an address nor a character.
fn comment_brings_script(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins =
        |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    (begins(b"[if") && branch_brings_script(text))
        || (begins(b"entity") && !is_plain_entity(text.get(6..).unwrap_or_default()))
        || begins(b"import")
        || memchr::memmem::find_iter(text, b"<!ENTITY")
            .any(|at| !is_plain_entity(text.get(at + 8..).unwrap_or_default()))
}
