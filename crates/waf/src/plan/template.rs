//! Compiled texts with variables.

use super::symbols::{Symbol, Symbols};
use crate::seclang::{Piece, RuleProperty, Template, Variable};

/// A text with variables.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledTemplate(pub Vec<CompiledPiece>);

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum CompiledPiece {
    /// Literal text.
    Text(Box<[u8]>),
    /// A variable that rules write.
    Written(Variable, Symbol),
    /// The first value of another variable.
    Variable(Variable, Option<Box<[u8]>>),
    /// The message of the same rule.
    OwnMessage,
    /// The log data of the same rule.
    OwnLogData,
}

impl CompiledTemplate {
    /// The text; `None`: it contains a variable.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(b""),
            [CompiledPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The only part, if it is a variable that rules write.
    pub fn as_written(&self) -> Option<(Variable, Symbol)> {
        match self.0.as_slice() {
            [CompiledPiece::Written(collection, symbol)] => Some((*collection, *symbol)),
            _ => None,
        }
    }
}

/// Compiles a text with variables. `id` and `severity` belong to its rule.
pub(super) fn template(
    template: &Template,
    symbols: &mut Symbols,
    id: u64,
    severity: Option<u8>,
) -> CompiledTemplate {
    let text = |text: String| CompiledPiece::Text(text.into_bytes().into());
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => CompiledPiece::Text(text.as_bytes().into()),
        Piece::Variable(variable, Some(name))
            if *variable == Variable::Tx || variable.is_stored() =>
        {
            CompiledPiece::Written(*variable, symbols.intern(name.as_bytes()))
        }
        Piece::Variable(variable, name) => {
            CompiledPiece::Variable(*variable, name.as_ref().map(|name| name.as_bytes().into()))
        }
        Piece::Rule(RuleProperty::Id) => text(id.to_string()),
        Piece::Rule(RuleProperty::Severity) => {
            text(severity.map_or_else(String::new, |number| number.to_string()))
        }
        Piece::Rule(RuleProperty::Message) => CompiledPiece::OwnMessage,
        Piece::Rule(RuleProperty::LogData) => CompiledPiece::OwnLogData,
    };
    CompiledTemplate(template.0.iter().map(piece).collect())
}
