//! Other forms of the names of files, as programs store them: encoded words of mail (RFC 2047), without invisible
//! characters, and in characters of ordinary width.

use super::message_variables::MessageVariables;
use super::texts::TextId;
use crate::seclang::Variable;
use crate::transformation::Transformation;

/// Maximum number of encoded words of a name.
const WORDS_MAX: usize = 16;

/// Adds the other forms of the names of a body's files.
pub(super) fn judge(variables: &mut MessageVariables) {
    let texts = &variables.texts;
    let entries = variables.values.of(Variable::Files).iter();
    let found: Vec<(TextId, Vec<u8>)> = entries
        .filter_map(|entry| other_form(texts.get(entry.text)).map(|form| (entry.name, form)))
        .collect();
    for (field, form) in found {
        let text = variables.texts.add(&form);
        variables.values.add_nested(Variable::Files, field, None, text);
    }
}

/// Another form of a name; `None`: there is none.
fn other_form(name: &[u8]) -> Option<Vec<u8>> {
    if name.is_ascii() && memchr::memmem::find(name, b"=?").is_none() {
        return None;
    }
    let form = plain(&without_words(name));
    (form != name).then_some(form)
}

/// A name with its encoded words decoded: `=?utf-8?B?c2hlbGwucGhw?=`.
fn without_words(name: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = name;
    for _ in 0..WORDS_MAX {
        let Some(at) = memchr::memmem::find(rest, b"=?") else { break };
        let (before, word) = rest.split_at(at);
        let Some((text, behind)) = word_of(word) else {
            decoded.extend_from_slice(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        // Blanks between two words are no part of the text.
        let is_between = !decoded.is_empty() && before.trim_ascii().is_empty();
        decoded.extend_from_slice(if is_between { b"" } else { before });
        decoded.extend_from_slice(&text);
        rest = behind;
    }
    decoded.extend_from_slice(rest);
    decoded
}

/// The text of the encoded word that begins here, and what follows.
fn word_of(word: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut parts = word.get(2..)?.splitn(3, |byte| *byte == b'?');
    let (_charset, coding, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let end = memchr::memmem::find(rest, b"?=")?;
    let (text, behind) = (&rest[..end], &rest[end + 2..]);
    let mut decoded = Vec::new();
    match coding {
        b"B" | b"b" => {
            Transformation::Base64DecodeExt.apply(text, &mut decoded);
        }
        b"Q" | b"q" => {
            let escaped: Vec<u8> = text
                .iter()
                .map(|byte| match byte {
                    b'=' => b'%',
                    b'_' => b' ',
                    other => *other,
                })
                .collect();
            decoded = super::request::decoded(&escaped);
        }
        _ => return None,
    }
    Some((decoded, behind))
}

/// A name without invisible characters, and in characters of ordinary width.
fn plain(name: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(name);
    let characters = text.chars().filter_map(|it| match it {
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{feff}' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(it) - 0xfee0),
        // Dots that programs convert to full stops.
        '\u{2024}' | '\u{3002}' | '\u{ff61}' | '\u{fe52}' => Some('.'),
        other => Some(other),
    });
    characters.collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_other_forms() {
        for (name, expected) in [
            ("shell.php", None),
            ("=?utf-8?B?c2hlbGwucGhw?=", Some("shell.php")),
            ("=?utf-8?q?shell=2Eph?= =?utf-8?q?p?=", Some("shell.php")),
            ("a =?utf-8?Q?b_c?= d", Some("a b c d")),
            ("=?utf-8?X?abc?=", None),
            ("=?utf-8", None),
            ("a=?b", None),
            ("shell.p\u{200b}hp", Some("shell.php")),
            ("shell.\u{ff30}\u{ff28}\u{ff30}", Some("shell.PHP")),
            ("shell\u{2024}php", Some("shell.php")),
            ("na\u{ef}ve.png", None),
            ("\u{65e5}\u{672c}.png", None),
        ] {
            let form = other_form(name.as_bytes());
            assert_eq!(form.as_deref(), expected.map(str::as_bytes), "{name}");
        }
    }
}
