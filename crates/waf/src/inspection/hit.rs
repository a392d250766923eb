//! A value that a link inspects or has matched.

use super::texts::{TextId, Texts};
use crate::seclang::Variable;

/// A value of a variable, with its name and text.
#[derive(Debug, Clone, Copy)]
pub struct Hit {
    pub variable: Variable,
    pub name: TextId,
    pub text: TextId,
    /// Whether the text is the number of values (`&`).
    pub is_count: bool,
}

impl Hit {
    /// The value of a variable without members.
    pub fn alone(variable: Variable, text: TextId) -> Self {
        Self { variable, name: Texts::EMPTY, text, is_count: false }
    }
}
