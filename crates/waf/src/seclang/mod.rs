//! SecLang, the rule language of ModSecurity: from text to directives.
//!
//! [`parse`] reads one file. What it does not know is a [`Problem`] with file and line: nothing is passed over. What a directive means for
//! those before it is for [`plan`](crate::plan).

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

/// Reads a file's directives. `name` is told in problems, as the user knows the file.
pub fn parse(name: &str, text: &str) -> Result<Vec<Directive>, Vec<Problem>> {
    let file: Arc<str> = name.into();
    let mut problems = Vec::new();
    let mut directives: Vec<Directive> = Vec::new();
    // A rule with `chain` takes the next one.
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
                // What is chained to it would be taken for a rule of its own.
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

/// What is wrong, and how to mend it.
type Wrong = (String, Option<String>);

fn wrong(message: impl Into<String>) -> Wrong {
    (message.into(), None)
}

fn wrong_help(message: impl Into<String>, help: impl Into<String>) -> Wrong {
    (message.into(), Some(help.into()))
}

/// An address, or a network with its length.
pub(crate) fn network(text: &str) -> Result<(std::net::IpAddr, u8), String> {
    operator::network(text).map_err(|(message, _)| message)
}

#[cfg(test)]
mod tests;
