//! Texts with variables: `blocked %{MATCHED_VAR_NAME}`.

use super::variables::{Target, Variable};
use super::{SecLangProblem, wrong, wrong_help};

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Literal text.
    Text(Box<str>),
    /// The first value of a variable; no text if the variable has no value.
    Variable(Variable, Option<Box<str>>),
    /// A property of the rule itself.
    Rule(RuleProperty),
}

/// Properties for `%{rule.…}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleProperty {
    /// The id.
    Id,
    /// The message.
    Message,
    /// The severity, as a number.
    Severity,
    /// The log data.
    LogData,
}

/// A text with variables.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Template(pub Vec<Piece>);

impl Template {
    /// Parses a text.
    pub(super) fn parse(text: &str) -> Result<Self, SecLangProblem> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("%{") {
            let (before, from) = rest.split_at(start);
            let Some(end) = from.find('}') else {
                return Err(wrong_help("`%{` without `}`", "close it"));
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            pieces.push(piece(&from[2..end])?);
            rest = &from[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Ok(Self(pieces))
    }

    /// The text; `None`: it has a variable.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

fn piece(name: &str) -> Result<Piece, SecLangProblem> {
    let (collection, member) = match name.split_once(['.', ':']) {
        Some((collection, member)) => (collection, Some(member)),
        None => (name, None),
    };
    if collection.eq_ignore_ascii_case("rule") {
        return Ok(Piece::Rule(rule_property(member.unwrap_or_default())?));
    }
    let variable = Variable::from_name(collection)
        .ok_or_else(|| wrong(format!("`%{{{name}}}` names no variable")))?;
    if member.is_none() && variable.is_collection() && !Target::may_stand_alone(variable) {
        return Err(wrong_help(
            format!("`%{{{name}}}` names a whole collection"),
            "name one of its members, as in %{TX.score}",
        ));
    }
    if member.is_some() && !variable.is_collection() {
        return Err(wrong(format!("`%{{{name}}}`: {collection} has no members")));
    }
    Ok(Piece::Variable(variable, member.map(Into::into)))
}

fn rule_property(name: &str) -> Result<RuleProperty, SecLangProblem> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "id" => RuleProperty::Id,
        "msg" => RuleProperty::Message,
        "severity" => RuleProperty::Severity,
        "logdata" => RuleProperty::LogData,
        _ => return Err(wrong(format!("`%{{rule.{name}}}` names no property of a rule"))),
    })
}
