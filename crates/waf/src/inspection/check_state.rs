//! Checks without rules. Head checks run before the first rule, body checks before the rules of the second phase.

use std::sync::Arc;

use super::message::Message;
use super::options::Mode;
use super::report::Verdict;
use super::request::{BodyLength, Request};
use super::texts::TextId;
use crate::body::Body;
use crate::checks::{Checks, Finding, ReceivedLengths};
use crate::seclang::Variable;

/// The configured checks, and their findings.
#[derive(Debug)]
pub(super) struct CheckState {
    /// The checks; `None`: there are none.
    pub checks: Option<Arc<Checks>>,
    pub findings: Vec<Finding>,
    /// The length of the body as declared by the head.
    length: BodyLength,
    /// The number of bytes of the target and the fields.
    head_bytes: u64,
}

impl CheckState {
    /// The state before the first check.
    pub fn new(checks: Option<Arc<Checks>>) -> Self {
        Self { checks, findings: Vec::new(), length: BodyLength::None, head_bytes: 0 }
    }

    /// Checks the head.
    pub fn head(&mut self, request: &Request<'_>, message: &Message) {
        let Some(checks) = &self.checks else { return };
        let texts = &message.variables.texts;
        let of_query = message.variables.values.of(Variable::ArgsGet).iter();
        let arguments: Vec<_> =
            of_query.map(|it| (texts.get(it.name), texts.get(it.text))).collect();
        self.findings = checks.head(request, &arguments);
        let fields = request.headers.iter().map(|(name, value)| name.len() + value.len());
        self.head_bytes = (request.target.len() + fields.sum::<usize>()) as u64;
        self.length = request.body;
    }

    /// Checks the body after it was parsed.
    pub fn body(&mut self, body: &Body, message: &Message) {
        let Some(checks) = &self.checks else { return };
        let text = |id: TextId| message.variables.texts.get(id);
        let first = |variable| {
            message.variables.values.of(variable).first().map_or(&b""[..], |entry| text(entry.text))
        };
        let of_body = message.variables.values.of(Variable::ArgsPost).iter();
        let arguments: Vec<_> = of_body.map(|it| (text(it.name), text(it.text))).collect();
        let before = message.variables.values.of(Variable::ArgsGet).len();
        let request = (first(Variable::RequestMethod), first(Variable::RequestUri));
        let found = std::mem::take(&mut self.findings);
        let received = ReceivedLengths {
            length: self.length,
            head_bytes: self.head_bytes,
            body_bytes: message.body.received_bytes,
        };
        let body = (&message.body.head.content_type[..], body, received);
        self.findings = checks.body(request, body, (&arguments, before), found);
    }

    /// Checks a document that was found in a body of another type.
    pub fn document(&mut self, document: &Body) {
        if let Some(checks) = &self.checks {
            self.findings = checks.document(document, std::mem::take(&mut self.findings));
        }
    }

    /// The verdict of the first blocking finding. In detection mode, the verdict is stored in `would_be` instead.
    pub fn refused(&self, mode: Mode, would_be: &mut Option<Verdict>) -> Option<Verdict> {
        let check = self.findings.iter().find(|finding| finding.blocks())?.check;
        let verdict = Verdict::Refused { check, status: check.status() };
        if mode == Mode::Block {
            return Some(verdict);
        }
        would_be.get_or_insert(verdict);
        None
    }
}
