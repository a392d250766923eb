//! Errors in expressions, with their places.

use std::fmt;
use std::ops::Range;

/// Maximum number of reported errors per text.
pub const ERRORS_MAX: usize = 10;

/// The reason why a text is not an expression of the required type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The problem, in one line.
    pub message: String,
    /// The place, in bytes of the compiled text; an empty range where something is missing.
    pub range: Range<usize>,
    /// The fix, in one line.
    pub help: Option<String>,
    /// Further errors of the same text, up to [`ERRORS_MAX`] in total; their own lists are empty.
    pub more: Vec<ExpressionError>,
}

impl ExpressionError {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), range, help: None, more: Vec::new() }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Merges two errors.
    pub(super) fn and(mut self, mut other: Self) -> Self {
        let more = std::mem::take(&mut other.more);
        self.more.push(other);
        self.more.extend(more);
        self.more.truncate(ERRORS_MAX - 1);
        self
    }

    /// Whether the limit of errors is reached.
    pub(super) fn is_full(&self) -> bool {
        self.more.len() + 1 >= ERRORS_MAX
    }

    /// Adds a suggestion: the candidate that `word` probably means, if there is one.
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

/// All values, or all errors as one. After too many errors, the rest is not checked.
pub(super) fn all<T>(
    results: impl IntoIterator<Item = Result<T, ExpressionError>>,
) -> Result<Vec<T>, ExpressionError> {
    let (mut values, mut errors) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => {
                let so_far = match errors {
                    None => error,
                    Some(first) => ExpressionError::and(first, error),
                };
                if so_far.is_full() {
                    return Err(so_far);
                }
                errors = Some(so_far);
            }
        }
    }
    errors.map_or(Ok(values), Err)
}

/// Both values, or both errors as one.
pub(super) fn both<T, U>(
    one: Result<T, ExpressionError>,
    other: Result<U, ExpressionError>,
) -> Result<(T, U), ExpressionError> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(one.and(other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
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

/// The candidate that differs from `word` in at most a third of its letters, ignoring case.
fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // For longer words the cost of the distance table exceeds the value of a suggestion.
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
        // In a word of one or two letters, one different letter is no similarity.
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
