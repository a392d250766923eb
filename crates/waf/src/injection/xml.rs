//! External definitions and entities in documents of XML (XXE).
//!
//! A parser may fetch what a document type or an entity names, and replaces entities by their texts. The definitions of
//! publishers of formats and entities that are plain addresses are usual; all others are found. The input may be any text
//! with a document in it: each declaration is looked at by itself, also in comments, so none before it hides it.

use crate::body::{is_plain_text, is_published};

/// The definition in a text that a parser of XML would fetch or expand, if any.
pub fn detect_definition(text: &[u8]) -> Option<&[u8]> {
    memchr::memmem::find_iter(text, b"<!").find_map(|at| {
        let declaration = text.get(at + 2..).unwrap_or_default().trim_ascii_start();
        if let Some(rest) = behind_word(declaration, b"doctype") {
            return document_type(rest);
        }
        entity(behind_word(declaration, b"entity")?)
    })
}

/// Whether the byte occurs in every declaration.
pub fn may_be_definition(byte: u8) -> bool {
    byte == b'<'
}

/// The harmful definition of a document type; `text` begins behind `<!DOCTYPE`.
fn document_type(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let bytes = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let (word, behind) = rest.split_at(bytes);
        rest = if word.eq_ignore_ascii_case(b"system") {
            match address(behind) {
                Ok(rest) => rest,
                Err(found) => return Some(found),
            }
        } else if word.eq_ignore_ascii_case(b"public") {
            // The first text is a name, the second the address.
            let Literal::Closed(_, second) = literal(behind) else {
                rest = behind;
                continue;
            };
            match address(second) {
                Ok(rest) => rest,
                Err(found) => return Some(found),
            }
        } else if word.is_empty() {
            match behind.split_first()? {
                (b'[', subset) => return harmful_in(subset),
                (b'<' | b'>', _) => return None,
                (_, rest) => rest,
            }
        } else {
            behind
        };
    }
}

/// The text behind an address that does no harm, or the harmful one.
fn address(text: &[u8]) -> Result<&[u8], &[u8]> {
    match literal(text) {
        Literal::None => Ok(text),
        Literal::Closed(address, rest) if is_published(address) => Ok(rest),
        Literal::Closed(found, _) | Literal::Open(found) => Err(found),
    }
}

/// What begins behind blanks.
enum Literal<'t> {
    /// No quote.
    None,
    /// A quote that is not closed, and all behind it.
    Open(&'t [u8]),
    /// A quoted text, and all behind it.
    Closed(&'t [u8], &'t [u8]),
}

fn literal(text: &[u8]) -> Literal<'_> {
    let Some((quote @ (b'"' | b'\''), behind)) = text.trim_ascii_start().split_first() else {
        return Literal::None;
    };
    match memchr::memchr(*quote, behind) {
        Some(end) => Literal::Closed(&behind[..end], &behind[end + 1..]),
        None => Literal::Open(behind),
    }
}

/// The rest of an internal subset that has anything but comments and plain entities. Comments may not contain `<`, so that
/// no text is looked at twice.
fn harmful_in(subset: &[u8]) -> Option<&[u8]> {
    let mut rest = subset.trim_ascii_start();
    while !rest.starts_with(b"]") {
        let behind = match rest.strip_prefix(b"<!--") {
            Some(comment) => {
                let end = memchr::memchr(b'<', comment).unwrap_or(comment.len());
                let comment = comment.get(..end).unwrap_or_default();
                let end = memchr::memmem::find(comment, b"-->").map(|at| at + 3);
                end.and_then(|end| rest.get(4 + end..))
            }
            None => rest
                .strip_prefix(b"<!")
                .and_then(|it| behind_word(it, b"entity"))
                .and_then(|it| behind_plain_entity(it)?.strip_prefix(b">")),
        };
        rest = match behind {
            Some(behind) => behind.trim_ascii_start(),
            None => return Some(rest),
        };
    }
    None
}

/// The harmful declaration of an entity; `text` begins behind `<!ENTITY`.
fn entity(text: &[u8]) -> Option<&[u8]> {
    if behind_plain_entity(text).is_some_and(|rest| rest.starts_with(b">")) {
        return None;
    }
    let end = memchr::memchr2(b'<', b'>', text).unwrap_or(text.len());
    let declaration = text.get(..end)?;
    let has = |word: &[u8]| declaration.windows(word.len()).any(|it| it.eq_ignore_ascii_case(word));
    let is_harmful = declaration.iter().any(|byte| matches!(byte, b'%' | b'&' | b'"' | b'\''))
        || has(b"system")
        || has(b"public");
    is_harmful.then_some(declaration)
}

/// The text behind an entity that does no harm, ` name "http://…"`.
fn behind_plain_entity(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let name = text.iter().take_while(|byte| is_name_byte(**byte)).count();
    let Literal::Closed(value, behind) = literal(text.get(name..)?) else { return None };
    (name > 0 && is_plain_text(value)).then(|| behind.trim_ascii_start())
}

/// Whether the declaration of an entity, without its `>`, does no harm. The text begins behind `<!ENTITY`.
pub(super) fn is_plain_entity(text: &[u8]) -> bool {
    behind_plain_entity(text).is_some_and(<[u8]>::is_empty)
}

/// The text behind a keyword, in any case of letters.
fn behind_word<'t>(text: &'t [u8], word: &[u8]) -> Option<&'t [u8]> {
    let (start, rest) = text.split_at_checked(word.len())?;
    let is_word =
        start.eq_ignore_ascii_case(word) && !rest.first().is_some_and(|it| is_name_byte(*it));
    is_word.then_some(rest)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_definitions_are_found() {
        for text in [
            "<!DOCTYPE a SYSTEM \"http://evil.example/x.dtd\"><a/>",
            "<!doctype a system 'file:///etc/passwd'>",
            "< <! DOCTYPE\na\nSYSTEM\n'/etc/passwd'>",
            "<!DOCTYPE a SYSTEM \"http://evil.example/",
            "<!DOCTYPE a PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://evil.example/x'>",
            "<!DOCTYPE a PUBLIC '>' 'http://evil.example/x'>",
            "<!DOCTYPE a PUBLIC '[' 'http://evil.example/x'>",
            "<!DOCTYPE system SYSTEM 'x'>",
            "<!DOCTYPE a SYSTEM 'x.dtd' [<!ENTITY % b 'c'>]>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]>",
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'http://www.w3.org/x'>]>",
            "<!DOCTYPE a [<!ENTITY b \"http://www.w3.org/x\"><!ENTITY c SYSTEM 'x'>]>",
            "<!DOCTYPE a [<!ENTITY b \"http://www.w3.org/&c;\">]>",
            "<!DOCTYPE a [<!ATTLIST a onload CDATA 'b()'>]>",
            "<!DOCTYPE a [<!-- ]> -->%b;]>",
            "<!DOCTYPE a [<!-- ",
            "<!DOCTYPE a [<!-- <b> -->]>",
            "<!DOCTYPE a [",
            "<!-- <!DOCTYPE a SYSTEM 'x.dtd'> --><!DOCTYPE a SYSTEM '/x'>",
            "<!-- <!DOCTYPE a PUBLIC \" --><!DOCTYPE a SYSTEM '/x'>",
            "<!-- <!DOCTYPE a PUBLIC ' --><!DOCTYPE a [<!ENTITY x SYSTEM '/x'>]>",
            "<!ENTITY a SYSTEM b>",
            "<!ENTITY % a>",
            "<!ENTITY a 'b'",
            "<!entity a PUBLIC \"-//x\" \"http://www.w3.org/x\">",
        ] {
            assert!(detect_definition(text.as_bytes()).is_some(), "{text}");
        }
    }

    #[test]
    fn usual_definitions_are_not() {
        for text in [
            "",
            "<!",
            "<!DOCTYPE html>",
            "<!DOCTYPE html><p>it's a system 'x'</p>",
            "<!DOCTYPE html SYSTEM \"about:legacy-compat\">",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\">",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"http://www.w3.org/TR/html4/strict.dtd\">",
            "<!DOCTYPE cXML SYSTEM \"http://xml.cxml.org/schemas/cXML/1.2.014/cXML.dtd\">",
            "<!DOCTYPE report PUBLIC \"-//JACOCO//DTD Report 1.1//EN\" \"report.dtd\">",
            "<!DOCTYPE a [ ]>",
            "<!DOCTYPE a [<!ENTITY nbsp \"&#160;\">]>",
            "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://www.w3.org/x.dtd' [\n\t<!ENTITY ns_svg \"http://www.w3.org/2000/svg\">\n<!-- a --><!ENTITY b 'urn:b' >\n]>",
            "the <!ENTITY> declaration, the <!DOCTYPE> and <!doctype isn't>",
            "<!DOCTYPEx SYSTEM '/x'>",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 St",
        ] {
            assert_eq!(detect_definition(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn hostile_texts_cost_little() {
        for piece in [
            "<!DOCTYPE a PUBLIC \"",
            "<!DOCTYPE a PUBLIC '\"",
            "<!DOCTYPE a[]",
            "<!DOCTYPE a ",
            "<!ENTITY a ",
            "<!ENTITY ",
            "<! ",
            "<!DOCTYPE a PUBLIC '' ",
        ] {
            detect_definition(piece.repeat(100_000).as_bytes());
        }
        let subset = "<!ENTITY a \"http://www.w3.org/\">".repeat(50_000);
        assert_eq!(detect_definition(format!("<!DOCTYPE a [{subset}]>").as_bytes()), None);
        assert!(detect_definition(format!("<!DOCTYPE a [{subset}%b;]>").as_bytes()).is_some());
    }
}
