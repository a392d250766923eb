//! The handle of one request's inspection.

use std::sync::Arc;

use super::options::Options;
use super::recorded::RecordedBody;
use super::report::{BodyProgress, Counts, Limit, Match, Verdict};
use super::request::{Request, Response};
use super::state::{Passing, State, Tried};
use super::texts::Texts;
use super::{names, plain};
use crate::checks::Finding;
use crate::plan::View;
use crate::seclang::{Phase, Variable};

/// Takes the head of a request of which some texts are known.
pub(super) fn begin_with(
    view: Arc<View>,
    known: Texts,
    options: &Options,
    request: &Request<'_>,
) -> Inspection {
    let mut state = State::new(view, known, options);
    state.message.head(request);
    state.checked.head(request, &state.message);
    Inspection { state }
}

/// One request under inspection.
#[derive(Debug)]
pub struct Inspection {
    pub(super) state: State,
}

impl Inspection {
    /// Takes the head of a request.
    pub fn begin(view: Arc<View>, options: &Options, request: &Request<'_>) -> Self {
        begin_with(view, Texts::new(), options, request)
    }

    /// Evaluates the rules that look at the request's head. A limit that was reached is told by [`Self::request_body`] where checks without
    /// rules have still to look at the body: who lets pass what cannot be judged wants to know what they find.
    pub fn request_headers(&mut self) -> Verdict {
        let State { checked, mode, would_be, .. } = &mut self.state;
        if let Some(verdict) = checked.refused(*mode, would_be) {
            return verdict;
        }
        match self.state.phase(Phase::RequestHeaders) {
            Verdict::Exceeded(_) if self.state.checked.checks.is_some() && self.needs_body() => {
                Verdict::Pass
            }
            verdict => verdict,
        }
    }

    /// Whether the rules of the first phase have left the body to be looked at.
    pub fn reads_body(&self) -> bool {
        self.state.message.body.is_read && self.is_judging()
    }

    /// Whether rules still have their say of the request.
    fn is_judging(&self) -> bool {
        self.state.engine.is_on && self.state.passing == Passing::Nothing
    }

    /// Whether any of its bytes would be looked at: without that it need not be waited for.
    pub fn needs_body(&self) -> bool {
        self.reads_body() && self.state.message.needs_body()
    }

    /// Takes bytes of the request's body, behind [`Self::request_headers`].
    pub fn body(&mut self, bytes: &[u8]) {
        if let Some(recording) = &mut self.state.message.body.recording {
            recording.push(bytes);
        }
        if self.reads_body() {
            self.state.message.feed(bytes);
        }
    }

    /// The request's body is over.
    pub fn end_body(&mut self) {
        if let Some(body) = self.state.message.end_body() {
            let State { checked, message, .. } = &mut self.state;
            checked.body(&body, message);
        }
        self.state.message.add_found_as_sent();
        plain::judge(&mut self.state.message);
        names::limit(&mut self.state.message);
    }

    /// Evaluates the rules that look at the whole request. A body that could not be read is no pass, nor is a query with too
    /// many arguments, whatever the rules say of the rest.
    pub fn request_body(&mut self) -> Verdict {
        let State { checked, mode, would_be, .. } = &mut self.state;
        if let Some(verdict) = checked.refused(*mode, would_be) {
            return verdict;
        }
        match (self.state.phase(Phase::RequestBody), self.state.message.body.limit) {
            (Verdict::Pass, Some(limit)) => Verdict::Exceeded(limit),
            (Verdict::Pass, _) if self.body_failure().is_some() && self.reads_body() => {
                Verdict::Exceeded(Limit::Body)
            }
            (Verdict::Pass, _) if self.state.message.has_too_many && self.is_judging() => {
                Verdict::Exceeded(Limit::Arguments)
            }
            (verdict, _) => verdict,
        }
    }

    /// Nothing more of the body is shown, for this reason. Rules judge what was; that is no pass, whatever they say.
    pub fn cut_body(&mut self, limit: Limit) {
        self.leave_body_out();
        self.state.message.body.cut(limit);
        self.end_body();
    }

    /// How far the body is.
    pub fn body_progress(&self) -> BodyProgress {
        let body = &self.state.message.body;
        BodyProgress { limit: body.limit, decoding_bytes: body.decoding_bytes() }
    }

    /// The request has a body that is not shown, or not all of it.
    pub fn leave_body_out(&mut self) {
        if let Some(recording) = &mut self.state.message.body.recording {
            recording.leave_out();
        }
    }

    /// The request's body as it came.
    pub fn recorded_body(&self) -> RecordedBody<'_> {
        self.state
            .message
            .body
            .recording
            .as_ref()
            .map_or(RecordedBody::Off, |recording| recording.body())
    }

    /// Why the request's body could not be read to its end.
    pub fn body_failure(&self) -> Option<&'static str> {
        self.state.message.body.failure
    }

    /// Takes the head of the response.
    pub fn response(&mut self, response: &Response<'_>) {
        self.state.message.response(response);
    }

    /// Evaluates the rules that look at the response's head.
    pub fn response_headers(&mut self) -> Verdict {
        self.state.phase(Phase::ResponseHeaders)
    }

    /// Takes the response's body, or as much of it as is looked at.
    pub fn response_content(&mut self, bytes: &[u8]) {
        self.state.message.response_content(bytes);
    }

    /// Evaluates the rules that look at the whole response.
    pub fn response_body(&mut self) -> Verdict {
        self.state.phase(Phase::ResponseBody)
    }

    /// Evaluates the rules that only tell. They change nothing any more.
    pub fn logging(&mut self) {
        // What would be blocked by now has been answered.
        let _ = self.state.phase(Phase::Logging);
    }

    /// The rules that it goes by.
    pub fn view(&self) -> &View {
        &self.state.view
    }

    /// What rules found so far, in the order in which it was found.
    pub fn matches(&self) -> &[Match] {
        &self.state.matches
    }

    /// What checks without rules have found so far.
    pub fn findings(&self) -> &[Finding] {
        &self.state.checked.findings
    }

    /// What the rules would have done, where they only detect.
    pub fn would_be(&self) -> Option<&Verdict> {
        self.state.would_be.as_ref()
    }

    /// Whether the request belongs into the audit log.
    pub fn is_audited(&self) -> bool {
        self.state.engine.is_audited
    }

    /// Bytes that were looked at so far, each as often as it was looked at.
    pub fn work_bytes(&self) -> u64 {
        self.state.message.texts.work_bytes()
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        let Tried { compared, patterns } = self.state.counts;
        Counts { compared, patterns, ..self.state.message.texts.counts() }
    }

    /// The value of a variable of `TX`, as a number.
    pub fn number(&self, name: &str) -> i64 {
        let symbols = &self.state.view.rules.symbols;
        let value = self.state.written.get_named(Variable::Tx, name.as_bytes(), symbols);
        value.map_or(0, |it| it.number())
    }

    /// The score of what comes in, that CRS and the rules like it count.
    pub fn score(&self) -> i64 {
        let names = ["blocking_inbound_anomaly_score", "inbound_anomaly_score", "anomaly_score"];
        names.iter().map(|name| self.number(name)).max().unwrap_or_default()
    }

    /// The value of a variable, the first if it has several.
    pub fn value(&self, variable: Variable) -> Option<&[u8]> {
        self.entries(variable).next().map(|(_, value)| value)
    }

    /// The value of a field of the request, the first if it has several; names without regard to case.
    pub fn header(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.entries(Variable::RequestHeaders);
        fields.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Names and values of a variable that is kept as such: of `ARGS_GET`, not of `ARGS`.
    pub fn entries(&self, variable: Variable) -> impl Iterator<Item = (&[u8], &[u8])> {
        let texts = &self.state.message.texts;
        let entries = self.state.message.values.of(variable).iter();
        entries.map(|entry| (texts.get(entry.name), texts.get(entry.text)))
    }
}
