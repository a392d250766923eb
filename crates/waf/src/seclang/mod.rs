//! The parser of SecLang, the rule language of ModSecurity.
//!
//! [`parse`] parses one file. An unknown directive or part of a directive is a [`Problem`] with file and line: nothing is
//! ignored. [`plan`](crate::plan) applies directives that change previous ones.

mod actions;
mod dialect;
mod directive;
mod lines;
mod names;
mod operator;
mod pattern;
mod problem;
mod template;
mod variables;
mod words;

use std::sync::Arc;

pub use actions::{
    Action, Allow, Control, Disruption, Phase, SetVariable, Severity, Toggle, VariableChange,
};
pub use directive::{Directive, DirectiveKind, IdRange, Rule, Setting};
pub use names::NamePattern;
pub use operator::{Operator, OperatorKind};
pub use pattern::{Groups, Pattern};
pub use problem::{Place, Problem};
pub use template::{Piece, RuleProperty, Template};
pub use variables::{Selector, Target, TargetKind, Variable};

/// Parses the directives of a file. Problems contain `name` as the name of the file.
pub fn parse(name: &str, text: &str) -> Result<Vec<Directive>, Vec<Problem>> {
    let file: Arc<str> = name.into();
    let mut problems = Vec::new();
    let mut directives: Vec<Directive> = Vec::new();
    // The open chain: a rule with `chain` includes the next rule.
    let mut chain: Option<Directive> = None;
    for line in lines::logical(text) {
        let place = Place { file: Arc::clone(&file), line: line.number };
        let parsed = line
            .text
            .and_then(|text| directive::parse(&text, &place))
            .map_err(|(message, help)| Problem { place: place.clone(), message, help });
        let directive = match parsed {
            Ok(directive) => directive,
            Err(problem) => {
                problems.push(problem);
                // Rules chained to the invalid directive are then parsed as independent rules.
                chain = None;
                continue;
            }
        };
        match directive::chained(chain.take(), directive) {
            Ok((whole, rest)) => {
                directives.extend(whole);
                chain = rest;
            }
            Err((message, help)) => problems.push(Problem { place, message, help }),
        }
    }
    if let Some(open) = chain {
        problems.push(Problem {
            place: open.place,
            message: "the rule has `chain`, and no rule follows".into(),
            help: Some("add the rule that it is chained to, or remove `chain`".into()),
        });
    }
    if problems.is_empty() { Ok(directives) } else { Err(problems) }
}

/// A message, and a hint how to correct the problem.
type SecLangProblem = (String, Option<String>);

fn wrong(message: impl Into<String>) -> SecLangProblem {
    (message.into(), None)
}

fn wrong_help(message: impl Into<String>, help: impl Into<String>) -> SecLangProblem {
    (message.into(), Some(help.into()))
}

/// Parses an address, or a network with a prefix length.
pub(crate) fn network(text: &str) -> Result<(std::net::IpAddr, u8), String> {
    operator::network(text).map_err(|(message, _)| message)
}

#[cfg(test)]
mod tests;
