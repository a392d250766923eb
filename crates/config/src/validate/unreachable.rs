//! Rules that are never followed, because one before them always holds.

use weir_core::expression::Condition;
use weir_core::policy::{Action, Strategy};

use crate::decode::Context;
use crate::quote::clip;
use crate::tree::Span;

/// What there is to know of a rule for this.
pub(super) struct Outline {
    span: Span,
    /// In words: "rule 2".
    name: String,
    when: When,
    /// Nothing more is done with the request after it.
    ends_request: bool,
    /// It changes the response, whoever answers.
    changes_response: bool,
}

/// When a rule holds.
#[derive(PartialEq, Eq)]
enum When {
    /// Always: it has no `when`.
    Always,
    /// With every request, by its `when`: rules that have one are not followed for what is no request.
    EveryRequest,
    /// It depends on the request.
    Sometimes,
    /// It depends on the response.
    OfResponse,
}

impl Outline {
    pub fn new(
        span: Span,
        name: &str,
        has_name: bool,
        condition: Option<&Condition>,
        actions: &[Action],
    ) -> Self {
        let name = in_words(name, has_name);
        let when = match condition {
            None => When::Always,
            Some(condition) if condition.reads_response() => When::OfResponse,
            Some(condition) if condition.constant() == Some(true) => When::EveryRequest,
            Some(_) => When::Sometimes,
        };
        Self {
            span,
            name,
            when,
            ends_request: actions.iter().any(Action::ends_request),
            changes_response: actions.iter().any(|it| it.edits_response() || it.needs_response()),
        }
    }

    /// Whether no rule that comes later is followed where this one is.
    fn hides(&self, later: &Self, strategy: Strategy) -> bool {
        if later.when == When::OfResponse {
            return false;
        }
        match (&self.when, strategy) {
            (When::Sometimes | When::OfResponse, _) => false,
            // What is no request passes by a `when`, and then responses are changed.
            (When::EveryRequest, _) if later.when == When::Always && later.changes_response => {
                false
            }
            (_, Strategy::FirstMatch) => true,
            // Changes to responses are made to that of the rule as well.
            (_, Strategy::AllMatch) => self.ends_request && !later.changes_response,
        }
    }
}

/// A rule by its name, or by its number.
pub(super) fn in_words(name: &str, has_name: bool) -> String {
    if has_name { format!("rule `{}`", clip(name)) } else { format!("rule {name}") }
}

/// Warns of the rules of a policy that are never followed.
pub(super) fn warn(strategy: Strategy, rules: &[Outline], context: &mut Context) {
    for (index, rule) in rules.iter().enumerate() {
        let Some(first) = rules[..index].iter().find(|first| first.hides(rule, strategy)) else {
            continue;
        };
        let (name, line) = (&first.name, first.span.line);
        let (reason, mend) = if first.ends_request {
            ("ends the request", "give that one a `when`")
        } else {
            ("with `first_match` no rule comes after it", "set `strategy: all_match`")
        };
        let message = format!(
            "{} is never followed: {name} in line {line} always holds and {reason}",
            rule.name
        );
        let help = format!("move it before {name}, or {mend}");
        context.warning_help(rule.span, message, help);
    }
}
