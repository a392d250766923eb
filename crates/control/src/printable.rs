//! Text for terminals and logs, without characters that change what a reader sees.
//!
//! Clients choose hosts, targets, names of cookies and user agents. A control character could move the cursor; a format
//! character could turn the order of a line around (U+202E), hide a part of it, or begin a new one (U+2028).

/// The replacement of a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a terminal does not show the character itself: controls, line separators, and characters that only format text
/// (Unicode's general categories Cc, Cf, Zl and Zp).
pub fn is_hidden(character: char) -> bool {
    character.is_control() || is_format(character)
}

/// Whether the character separates lines or formats text.
fn is_format(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A line in which hidden characters are replaced.
pub fn printable(text: &str) -> String {
    characters(text).collect()
}

/// The characters of [`printable`].
pub(crate) fn characters(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|it| if is_hidden(it) { REPLACEMENT } else { it })
}

/// Whole output: lines, with the colours that weir itself has added. JSON gets escapes instead, which are the same document.
pub fn output(text: &str) -> String {
    if !text.contains(is_format) {
        return text.to_owned();
    }
    let is_json = text.starts_with(['{', '[']);
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            it if !is_format(it) => shown.push(it),
            // In JSON, such a character can only be in a string.
            it if is_json => {
                let mut units = [0; 2];
                for unit in it.encode_utf16(&mut units) {
                    shown += &format!("\\u{unit:04x}");
                }
            }
            _ => shown.push(REPLACEMENT),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_line_is_not_shown() {
        for text in [
            "\u{202e}",
            "\u{2028}",
            "\u{2066}",
            "\u{200b}",
            "\u{feff}",
            "\u{ad}",
            "\u{e0041}",
            "\x1b",
            "\n",
        ] {
            assert_eq!(printable(&format!("a{text}b")), "a\u{fffd}b", "{text:?}");
        }
        for text in ["ä", "日本", "\u{a0}", "🙂", "e\u{301}", "עברית"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn output_keeps_its_lines_and_colours_and_json_its_meaning() {
        assert_eq!(output("\x1b[1mä\x1b[0m\nb\u{202e}\n"), "\x1b[1mä\x1b[0m\nb\u{fffd}\n");
        let value = serde_json::json!({ "a\u{202e}": ["\u{2028}", "\u{e0041}", "ä"] });
        let shown = output(&value.to_string());
        assert!(!shown.contains(is_format), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }
}
