//! The lines of a text.

/// The lines of a text as YAML defines them: ended by `\n`, `\r\n` or `\r`.
pub struct Lines<'a> {
    text: &'a str,
    /// The byte offset of each line. Four bytes per line, because a file may consist of line breaks only.
    starts: Vec<u32>,
}

impl<'a> Lines<'a> {
    /// The lines of a text.
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(index, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        });
        // Texts are much smaller than 4 GiB (`DOCUMENT_BYTES_MAX`); lines beyond that would be ignored.
        let starts = ends.filter_map(|(index, _)| u32::try_from(index + 1).ok());
        Self { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The line with this number, without its end; the first line is 1.
    pub fn get(&self, number: usize) -> Option<&'a str> {
        let at = |index: usize| {
            let start = self.starts.get(index)?;
            usize::try_from(*start).ok()
        };
        let start = at(number.checked_sub(1)?)?;
        let end = at(number).unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> {
        (1..=self.starts.len()).map_while(|number| self.get(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_yaml_ends_them() {
        let lines = Lines::new("a\nb\r\nc\rd\n\n");
        let all: Vec<&str> = lines.iter().collect();
        assert_eq!(all, ["a", "b", "c", "d", "", ""]);
        assert_eq!(lines.get(2), Some("b"));
        assert_eq!((lines.get(0), lines.get(7)), (None, None));
    }
}
