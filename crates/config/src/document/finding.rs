//! Findings about documents.

use super::span::Span;

/// Something that the language does not allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The place.
    pub span: Span,
    /// The problem, in one line.
    pub message: String,
    /// The suggested fix, in one line.
    pub suggestion: Option<String>,
}

impl Finding {
    /// A finding without a suggestion.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), suggestion: None }
    }

    /// Adds a suggestion.
    pub fn help(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}
