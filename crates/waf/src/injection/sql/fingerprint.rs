//! The fingerprint of an injection: one character for each token.

/// Maximum number of characters. Later tokens are omitted.
pub const FINGERPRINT_CHARS_MAX: usize = 16;

/// The tokens up to the verdict, one ASCII character for each.
///
/// `s` text, `1` number or constant, `v` variable, `n` name, `f` function, `o` operator, `&` AND or OR, `!` NOT, `U`
/// UNION, `E` SELECT or another statement, `k` other keyword, `B` clause that ends a condition, `c` comment up to the
/// end, and `(`, `)`, `,`, `;` and `.` themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    chars: [u8; FINGERPRINT_CHARS_MAX],
    length: usize,
}

impl Fingerprint {
    /// The characters.
    pub fn as_str(&self) -> &str {
        self.chars
            .get(..self.length)
            .and_then(|chars| std::str::from_utf8(chars).ok())
            .unwrap_or("")
    }

    /// Adds a character. A repeated parenthesis is added once.
    pub(super) fn push(&mut self, letter: u8) {
        let last = self.length.checked_sub(1).and_then(|last| self.chars.get(last)).copied();
        if matches!(letter, b'(' | b')') && last == Some(letter) {
            return;
        }
        if let Some(place) = self.chars.get_mut(self.length) {
            *place = letter;
            self.length += 1;
        }
    }
}
