//! Checks without rules, in an inspection: those of the head before its first rule, those of the body before the rules of the second phase.

use super::options::Mode;
use super::report::Verdict;
use super::request::Request;
use super::state::State;
use super::texts::TextId;
use crate::body::Body;
use crate::checks::Finding;
use crate::seclang::Variable;

impl State {
    /// Looks at the head.
    pub(super) fn check_head(&mut self, request: &Request<'_>) {
        let Some(checks) = &self.checks else { return };
        let texts = &self.message.texts;
        let of_query = self.message.values.of(Variable::ArgsGet).iter();
        let arguments: Vec<_> =
            of_query.map(|it| (texts.get(it.name), texts.get(it.text))).collect();
        self.findings = checks.head(request, &arguments);
    }

    /// Looks at the body, which has been read.
    pub(super) fn check_body(&mut self, body: &Body) {
        let Some(checks) = &self.checks else { return };
        let message = &self.message;
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

    /// What checks make of the request so far.
    pub(super) fn checked(&mut self) -> Option<Verdict> {
        let finding = self.findings.iter().find(|finding| finding.blocks())?;
        let Finding { check, .. } = *finding;
        let verdict = Verdict::Refused { check, status: check.status() };
        if self.mode == Mode::Block {
            return Some(verdict);
        }
        self.would_be.get_or_insert(verdict);
        None
    }
}
