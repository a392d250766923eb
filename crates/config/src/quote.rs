//! Text of the file for use in a message.

/// Longest text from the file that a message repeats.
const QUOTED_CHARS_MAX: usize = 60;

/// The text on one line, and not too much of it.
pub(crate) fn clip(text: &str) -> String {
    let mut characters = text.chars().map(|character| match character {
        '\n' | '\r' => ' ',
        other => other,
    });
    let mut start: String = characters.by_ref().take(QUOTED_CHARS_MAX).collect();
    if characters.next().is_some() {
        start.push('…');
    }
    start
}
