//! Text of the file for use in a message.

/// Maximum length of quoted text from the file.
const QUOTED_CHARS_MAX: usize = 60;

/// The text in one line, shortened. Invisible characters, and characters that change the look of others, are escaped,
/// because they may be the error.
pub fn clip(text: &str) -> String {
    let mut characters = text.chars();
    let mut start = String::new();
    for character in characters.by_ref().take(QUOTED_CHARS_MAX) {
        match character {
            '\n' | '\r' => start.push(' '),
            _ if is_unseen(character) => start.extend(character.escape_unicode()),
            _ => start.push(character),
        }
    }
    if characters.next().is_some() {
        start.push('…');
    }
    start
}

/// Whether a character is a control character, has no width, or sets the direction of text (Unicode Standard Annex 9).
pub(crate) fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped() {
        for (text, expected) in [
            ("listen", "listen"),
            ("größe", "größe"),
            ("two\nlines", "two lines"),
            ("poo\u{200b}ls", r"poo\u{200b}ls"),
            ("\u{feff}\u{202e}a\u{1b}", r"\u{feff}\u{202e}a\u{1b}"),
        ] {
            assert_eq!(clip(text), expected);
        }
        assert_eq!(clip(&"x".repeat(61)), "x".repeat(60) + "…");
    }
}
