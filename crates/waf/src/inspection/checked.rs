//! Checks without rules, in an inspection: those of the head before its first rule, those of the body before the rules of the second phase.

use std::sync::Arc;

use super::message::Message;
use super::report::Verdict;
use super::request::Request;
use super::texts::TextId;
use crate::body::Body;
use crate::checks::{Checks, Finding};
use crate::seclang::Variable;

/// What is looked at without rules, and what that has found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// `None`: nothing is.
    pub checks: Option<Arc<Checks>>,
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Looks at the head.
    pub fn head(&mut self, request: &Request<'_>, message: &Message) {
        let Some(checks) = &self.checks else { return };
        let texts = &message.texts;
        let of_query = message.values.of(Variable::ArgsGet).iter();
        let arguments: Vec<_> =
            of_query.map(|it| (texts.get(it.name), texts.get(it.text))).collect();
        self.findings = checks.head(request, &arguments);
    }

    /// Looks at the body, which has been read.
    pub fn body(&mut self, body: &Body, message: &Message) {
        let Some(checks) = &self.checks else { return };
        let text = |id: TextId| message.texts.get(id);
        let first = |variable| {
            message.values.of(variable).first().map_or(&b""[..], |entry| text(entry.text))
        };
        let of_body = message.values.of(Variable::ArgsPost).iter();
        let arguments: Vec<_> = of_body.map(|it| (text(it.name), text(it.text))).collect();
        let before = message.values.of(Variable::ArgsGet).len();
        let request = (first(Variable::RequestMethod), first(Variable::RequestUri));
        let found = std::mem::take(&mut self.findings);
        let body = (message.content_type(), body);
        self.findings = checks.body(request, body, (&arguments, before), found);
    }

    /// What they make of the request so far.
    pub fn verdict(&self) -> Option<Verdict> {
        let finding = self.findings.iter().find(|finding| finding.blocks())?;
        Some(Verdict::Refused { check: finding.check, status: finding.check.status() })
    }
}
