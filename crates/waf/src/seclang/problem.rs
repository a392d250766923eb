use std::fmt;
use std::sync::Arc;

/// The place of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the file, for messages.
    pub file: Arc<str>,
    /// The first line of the directive, starting at 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// A problem that causes the rejection of a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place of the directive.
    pub place: Place,
    /// The message.
    pub message: String,
    /// A hint how to correct the problem.
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
