//! The public interface to the inspection of one request.

use std::sync::Arc;

use super::body_recording::RecordedBody;
use super::bounds::EvaluationCounts;
use super::content::Kind;
use super::options::Options;
use super::report::{BodyProgress, Counts, Limit, Match, StoppedAt, Verdict};
use super::request::{Request, Response};
use super::state::State;
use super::texts::Texts;
use super::turns::{self, Part, Question};
use super::{nested_values, undecided_body};
use crate::body::Processor;
use crate::checks::Finding;
use crate::plan::View;
use crate::seclang::Variable;

/// Starts an inspection with a request head and texts that are already analysed.
pub(super) fn begin_with(
    view: Arc<View>,
    known: Texts,
    options: &Options,
    request: &Request<'_>,
) -> Inspection {
    let mut state = State::new(view, known, options);
    state.message.head(request);
    state.checked.head(request, &state.message);
    nested_values::head(&mut state.message);
    Inspection { state }
}

/// The rule after which a limit ended the evaluation; `None`: no limit did.
pub fn stopped(inspection: &Inspection) -> Option<StoppedAt> {
    inspection.state.bounds.stopped()
}

/// The inspection of one request.
#[derive(Debug)]
pub struct Inspection {
    pub(super) state: State,
}

impl Inspection {
    /// Starts an inspection with a request head.
    pub fn begin(view: Arc<View>, options: &Options, request: &Request<'_>) -> Self {
        begin_with(view, Texts::new(), options, request)
    }

    /// Evaluates the rules for the request head. If a limit is exceeded, but checks without rules still need the body, the
    /// result is [`Verdict::Pass`], and [`Self::request_body`] reports the limit. So callers that let these requests pass
    /// still get the findings of the checks.
    pub fn request_headers(&mut self) -> Verdict {
        turns::whole(&mut self.state, Question::Head)
    }

    /// Whether the body is inspected after the first phase.
    pub fn reads_body(&self) -> bool {
        turns::reads_body(&self.state)
    }

    /// Whether bytes of the body are inspected. If not, callers need not wait for the body.
    pub fn needs_body(&self) -> bool {
        turns::needs_body(&self.state)
    }

    /// Adds bytes of the request body, after [`Self::request_headers`].
    pub fn body(&mut self, bytes: &[u8]) {
        if let Some(recording) = &mut self.state.message.body.recording {
            recording.push(bytes);
        }
        if self.reads_body() {
            self.state.message.feed(bytes);
        }
    }

    /// Ends the request body.
    pub fn end_body(&mut self) {
        Part::ALL.into_iter().for_each(|part| turns::end_part(&mut self.state, part));
    }

    /// Evaluates the rules for the whole request. An invalid body or too many arguments never result in [`Verdict::Pass`],
    /// whatever the rules find in the rest.
    pub fn request_body(&mut self) -> Verdict {
        turns::whole(&mut self.state, Question::Request)
    }

    /// Ends the body early because of this limit. Rules inspect the bytes received so far, and the result is never
    /// [`Verdict::Pass`].
    pub fn cut_body(&mut self, limit: Limit) {
        self.leave_body_out();
        self.state.message.body.cut(limit);
        self.end_body();
    }

    /// The state of the body during its inspection.
    pub fn body_progress(&self) -> BodyProgress {
        let body = &self.state.message.body;
        let is_open = self.reads_body() && undecided_body::is_open(&self.state.message);
        BodyProgress {
            limit: body.limit,
            decoding_bytes: body.decoding_bytes(),
            is_open,
            may_have_files: body.processor == Processor::Multipart
                || body.content.kind == Kind::Media,
            files_bytes: body.files.passed_bytes,
        }
    }

    /// Marks the recorded body as incomplete, because the caller does not deliver all of it.
    pub fn leave_body_out(&mut self) {
        if let Some(recording) = &mut self.state.message.body.recording {
            recording.leave_out();
        }
    }

    /// The request body as received.
    pub fn recorded_body(&self) -> RecordedBody<'_> {
        self.state
            .message
            .body
            .recording
            .as_ref()
            .map_or(RecordedBody::Off, |recording| recording.body())
    }

    /// The reason why the request body was not parsed to its end; `None`: it was.
    pub fn body_failure(&self) -> Option<&'static str> {
        self.state.message.body.failure
    }

    /// Adds the head of a response.
    pub fn response(&mut self, response: &Response<'_>) {
        self.state.message.response(response);
    }

    /// Evaluates the rules for the response head.
    pub fn response_headers(&mut self) -> Verdict {
        turns::whole(&mut self.state, Question::ResponseHead)
    }

    /// Adds the response body, or the inspected part of it.
    pub fn response_content(&mut self, bytes: &[u8]) {
        self.state.message.response_content(bytes);
    }

    /// Evaluates the rules for the whole response.
    pub fn response_body(&mut self) -> Verdict {
        turns::whole(&mut self.state, Question::ResponseBody)
    }

    /// Evaluates the rules of the logging phase. Their results do not change the verdict.
    pub fn logging(&mut self) {
        // The response was already sent, so a blocking verdict has no effect.
        let _ = turns::whole(&mut self.state, Question::Logging);
    }

    /// The view with the rules of this inspection.
    pub fn view(&self) -> &View {
        &self.state.view
    }

    /// The matches of rules so far, in order.
    pub fn matches(&self) -> &[Match] {
        &self.state.matches
    }

    /// The findings of checks without rules so far.
    pub fn findings(&self) -> &[Finding] {
        &self.state.checked.findings
    }

    /// In detection mode, the verdict of blocking mode.
    pub fn would_be(&self) -> Option<&Verdict> {
        self.state.would_be.as_ref()
    }

    /// Whether the request is written to the audit log.
    pub fn is_audited(&self) -> bool {
        self.state.engine.is_audited
    }

    /// The number of inspected bytes so far. A byte is counted once for each inspection.
    pub fn work_bytes(&self) -> u64 {
        self.state.message.variables.texts.work_bytes()
    }

    /// The counters of the work so far.
    pub fn counts(&self) -> Counts {
        let EvaluationCounts { compared, patterns } = self.state.counts;
        Counts { compared, patterns, ..self.state.message.variables.texts.counts() }
    }

    /// The value of a variable of `TX`, as a number.
    pub fn number(&self, name: &str) -> i64 {
        let State { written, view, .. } = &self.state;
        let value = written.get_named(Variable::Tx, name.as_bytes(), view);
        value.map_or(0, |it| it.number())
    }

    /// The inbound anomaly score of CRS and similar rules.
    pub fn score(&self) -> i64 {
        let names = ["blocking_inbound_anomaly_score", "inbound_anomaly_score", "anomaly_score"];
        names.iter().map(|name| self.number(name)).max().unwrap_or_default()
    }

    /// The first value of a variable.
    pub fn value(&self, variable: Variable) -> Option<&[u8]> {
        self.entries(variable).next().map(|(_, value)| value)
    }

    /// The first value of a request field, ignoring the case of the name.
    pub fn header(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.entries(Variable::RequestHeaders);
        fields.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The names and values of a variable with its own storage, such as `ARGS_GET` but not `ARGS`.
    pub fn entries(&self, variable: Variable) -> impl Iterator<Item = (&[u8], &[u8])> {
        let texts = &self.state.message.variables.texts;
        let entries = self.state.message.variables.values.of(variable).iter();
        entries.map(|entry| (texts.get(entry.name), texts.get(entry.text)))
    }
}
