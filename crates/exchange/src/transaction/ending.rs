//! How an exchange ends: with its member's response, with one of weir's own, or without.

use weir_config::snapshot::Page;
use weir_core::policy::{AnswerBody, Decision, End};
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, Method};

use crate::edge::Edge;
use crate::parts::considered::Ending;
use crate::parts::ends::{After, Outcome};
use crate::parts::messages::OwnAnswer;
use crate::parts::stream_end::StreamEnd;
use crate::shared::counters::count_status;
use crate::termination::Termination;
use crate::transaction::exchange::{Exchange, Phase};
use crate::transaction::inspect;
use crate::transaction::policy::keep_cookies;

impl Exchange {
    /// Answers in place of a member, with the virtual server's page for the status if it has one; ends
    /// the exchange.
    pub fn respond(&mut self, at: &mut impl Edge, status: u16, termination: Termination) {
        self.respond_adding(at, status, termination, FieldEdits::NONE);
    }

    /// The same with further fields.
    pub fn respond_adding(
        &mut self,
        at: &mut impl Edge,
        status: u16,
        termination: Termination,
        mut fields: FieldEdits,
    ) {
        let page = self.error_page(status);
        if let Some(page) = &page {
            let content_type = page.content_type.as_bytes();
            fields.add(b"Content-Type", |out| out.extend_from_slice(content_type));
        }
        let body = page.as_ref().map(|page| &*page.body);
        self.respond_with(at, status, termination, &fields, body);
    }

    /// The page of an exchange's virtual server for a status.
    pub fn error_page(&self, status: u16) -> Option<Page> {
        self.ends.server.settings().error_pages.of(status).cloned()
    }

    /// Answers in place of a member, with these fields and this body (`None`: a line that says the
    /// status); ends the exchange.
    pub fn respond_with(
        &mut self,
        at: &mut impl Edge,
        status: u16,
        termination: Termination,
        fields: &FieldEdits,
        body: Option<&[u8]>,
    ) {
        self.ends.drop_member(at);
        inspect::leave(self, at);
        let draining = at.turn().is_draining;
        if self.phase == Phase::Judge {
            // Nothing of it has gone out, and nothing will.
            self.phase = Phase::AwaitHead;
        }
        if self.phase != Phase::AwaitHead {
            return self.truncate(at, termination);
        }
        // The rest of a request body is not waited for: it may be long, and nobody wants it.
        let keep_alive = self.keep_alive && self.request.is_whole && !draining;
        self.ends.account.status = status;
        self.keep_alive = keep_alive;
        count_status!(self.ends.server.counters, status);
        let head_only = self.request.method == Method::Head;
        let version = self.request.version;
        let mut edits = std::mem::take(&mut at.tools().response_edits);
        let mut head = at.tools().own_head.take().unwrap_or_default();
        head.clear();
        head.status = status;
        self.edit_response(at, &head, b"", &mut edits);
        for (name, value) in fields.added() {
            if !edits.withholds(name) {
                edits.add(name, |out| out.extend_from_slice(value));
            }
        }
        keep_cookies(self, at, (&head, b""), &mut edits);
        at.tools().own_head = Some(head);
        let own = OwnAnswer { status, version, keep_alive, head_only, edits: &edits, body };
        at.answer(&mut self.ends, &own);
        at.tools().response_edits = edits;
        self.complete(at, termination);
    }

    /// All of the response is handed over, and the member connection dealt with: it ends now, or when the client has taken it.
    pub fn complete(&mut self, at: &mut impl Edge, termination: Termination) {
        if !self.ends.is_undelivered(at) {
            return self.end_answered(at, termination);
        }
        if self.is_over() {
            return;
        }
        self.phase = Phase::Deliver { ends_as: termination, unwanted_bytes: 0 };
        self.await_client(at);
    }

    /// Ends an exchange whose response is out.
    pub fn end_answered(&mut self, at: &mut impl Edge, termination: Termination) {
        let request_done = self.request.is_whole;
        let outcome = Outcome {
            keep_alive: self.keep_alive && request_done,
            request_done,
            client_closes: self.client_closes,
        };
        self.end(at, termination, After::Response(outcome));
    }

    /// Ends an exchange and its connection without an answer.
    pub fn end_unanswered(
        &mut self,
        at: &mut impl Edge,
        termination: Termination,
        must_reset: bool,
    ) {
        self.end(at, termination, After::Cut { termination, must_reset });
    }

    /// Ends an exchange whose response cannot be completed, so that the client notices.
    pub fn truncate(&mut self, at: &mut impl Edge, termination: Termination) {
        self.ends.drop_member(at);
        // An end by closing would make the part look like the whole.
        let must_reset = self.response_framing == Framing::UntilClose;
        // Its stream is reset with it.
        self.end(at, termination, After::Broken { must_reset });
    }

    /// Ends an exchange that nobody waits for any more.
    pub fn abandon(&mut self, at: &mut impl Edge, termination: Termination, after: After) {
        self.ends.drop_member(at);
        self.end(at, termination, after);
    }

    /// Takes an exchange off the books and logs it.
    pub fn end(&mut self, at: &mut impl Edge, termination: Termination, after: After) {
        if self.is_over() {
            return;
        }
        self.ends.count_request(at);
        let status = self.ends.account.status;
        let is_answered = match (self.ends.stream, self.phase) {
            (None, _) => true,
            (_, Phase::AwaitHead) => status != 0,
            (_, Phase::Judge) => false,
            (_, Phase::Respond) => termination == Termination::Complete,
            (_, Phase::Deliver { .. }) => !self.ends.is_undelivered(at),
        };
        let stream_end = match is_answered {
            true => StreamEnd::Answered(status),
            false => StreamEnd::of_broken(termination),
        };
        self.ends.end(at, termination, stream_end);
        at.recycle(std::mem::take(&mut self.request.bytes));
        inspect::leave(self, at);
        let transforms = self.transforms.take();
        at.tools().give_transforms(transforms);
        self.ends.over = Some(after);
    }
}

impl Exchange {
    /// Ends an exchange that gets no member.
    pub fn end_early(&mut self, at: &mut impl Edge, ending: Ending, decision: &mut Decision) {
        match ending {
            Ending::Limited { retry_after_s } => {
                let mut fields = FieldEdits::default();
                fields.add(b"Retry-After", |out| {
                    out.extend_from_slice(retry_after_s.to_string().as_bytes());
                });
                self.respond_adding(at, 429, Termination::RateLimit, fields);
            }
            // Not even with a page: it might be that of another name.
            Ending::Misdirected => {
                let termination = Termination::Misdirected;
                self.respond_with(at, 421, termination, &FieldEdits::NONE, None);
            }
            Ending::Blocked => inspect::end_blocked(self, at),
            Ending::Failed => self.respond(at, 500, Termination::PolicyFailed),
            Ending::Closed => self.end_unanswered(at, Termination::RateLimit, false),
            Ending::Policy => match &decision.end {
                Some(End::Answer { status, body }) => {
                    let (status, fields) = (*status, &mut decision.answer);
                    let page = self.error_page(status);
                    let body = match body {
                        AnswerBody::Fixed(bytes) => bytes,
                        AnswerBody::Made => &decision.body[..],
                        AnswerBody::None => page.as_ref().map_or(&b""[..], |page| {
                            let content_type = page.content_type.as_bytes();
                            fields.set(b"Content-Type", |out| out.extend_from_slice(content_type));
                            &page.body
                        }),
                    };
                    let termination = Termination::Policy;
                    self.respond_with(at, status, termination, fields, Some(body));
                }
                Some(End::Reset) => {
                    self.end_unanswered(at, Termination::Policy, true);
                }
                Some(End::Close) | None => {
                    self.end_unanswered(at, Termination::Policy, false);
                }
            },
        }
    }
}
