//! Characters that nobody sees in a text, and no client sends: blanks and line breaks of Unicode, and format characters.

/// The first such character of a text. The ordinary space does not count.
pub fn unseen(text: &str) -> Option<char> {
    let is_format = |it: char| {
        matches!(it, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .find(|it| !it.is_ascii() && (it.is_whitespace() || it.is_control() || is_format(*it)))
}

#[cfg(test)]
mod tests {
    use super::unseen;

    #[test]
    fn characters() {
        for text in ["", "a b", "a\tb", "größe", "密码", "a-b", "😀"] {
            assert_eq!(unseen(text), None, "{text}");
        }
        for found in [
            '\u{a0}', '\u{85}', '\u{ad}', '\u{200b}', '\u{2003}', '\u{2028}', '\u{202e}',
            '\u{3000}', '\u{feff}',
        ] {
            assert_eq!(unseen(&format!("a{found}b")), Some(found));
        }
    }
}
