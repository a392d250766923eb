//! What is wrong with an expression, and where.

use std::fmt;
use std::ops::Range;

/// Why a text is no expression of the wanted type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// What is wrong; one line.
    pub message: String,
    /// Where, in bytes of the text that was compiled; may be empty, at the place where something is
    /// missing.
    pub range: Range<usize>,
    /// What to do about it; one line.
    pub help: Option<String>,
}

impl ExpressionError {
    pub(super) fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), range, help: None }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// With the candidate that was probably meant by `word`, if there is one.
    pub(super) fn suggest<'a>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match nearest(word, candidates) {
            Some(candidate) => self.help(format!("did you mean `{candidate}`?")),
            None => self,
        }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(formatter, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ExpressionError {}

/// The candidate that differs from `word` by at most a third of its letters, cases apart.
fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Beyond this the distance table costs more than the advice is worth.
    const WORD_LENGTH_BYTES_MAX: usize = 64;
    const CANDIDATES_MAX: usize = 1_000;
    if word.len() > WORD_LENGTH_BYTES_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let distance_max = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len() <= WORD_LENGTH_BYTES_MAX)
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        // One letter for another is no likeness when there are only one or two letters.
        .filter(|(distance, candidate)| {
            *distance <= distance_max && *distance < candidate.len().min(word.len().max(1))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested() {
        let words = ["startsWith", "endsWith", "ip", "headers"];
        for (word, expected) in [
            ("startswith", Some("startsWith")),
            ("startWith", Some("startsWith")),
            ("header", Some("headers")),
            ("headres", Some("headers")),
            ("pi", Some("ip")),
            ("x", None),
            ("method", None),
            (&"startsWith".repeat(10), None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }

    #[test]
    fn errors_read_as_one_line() {
        let error = ExpressionError::new(0..1, "no such thing");
        assert_eq!(error.to_string(), "no such thing");
        assert_eq!(error.help("try another").to_string(), "no such thing; try another");
    }
}
