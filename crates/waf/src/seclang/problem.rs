use std::fmt;
use std::sync::Arc;

/// The place of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the user knows it.
    pub file: Arc<str>,
    /// The first line of the directive, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// A problem for which a rule file is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place of the problem.
    pub place: Place,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)?;
        match &self.help {
            Some(help) => write!(formatter, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}
