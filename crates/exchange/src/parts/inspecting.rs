//! A request that the web application firewall looks at, and its body while that waits to be judged.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::{Unjudged, Waf};
use weir_core::policy::WafMode;
use weir_http::message::ResponseHead;
use weir_waf::inspection::{Inspection, Limit, Verdict};

use crate::parts::aside::Aside;
use crate::parts::end::OwnedEnd;
use crate::parts::held::{HeldBody, HeldBytes};

/// How far an inspection is.
pub enum Scrutiny {
    /// The body comes, and is held.
    Reading(Box<Reading>),
    /// The body is forwarded to the member while it is judged.
    Following(Box<Following>),
    /// The request may continue: this part of its body waits for a member.
    Passed(HeldBody, OwnedEnd, Option<Box<Judged>>),
    /// It is on its way to a member. What was held of its body is counted until that answers.
    Passing(Option<HeldBytes>, Option<Box<Judged>>),
    /// The response comes, and is held.
    Answering(Box<Answering>),
    /// It gets no member.
    Blocked(Block),
    /// Nothing is inspected: it is a request of weir's own, whose response is kept for another.
    Aside(Box<Aside>),
}

/// A request that was judged, and whose response is to be judged too.
pub struct Judged {
    /// Findings so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// It could not be judged for this reason, and continues nevertheless.
    pub unjudged: Option<Limit>,
}

/// The verdict that is logged for a request and its response: "not judged" for the request, if the response has no
/// finding.
pub fn after_request(verdict: Verdict, unjudged: Option<Limit>) -> Verdict {
    match (verdict, unjudged) {
        (Verdict::Pass, Some(limit)) => Verdict::Exceeded(limit),
        (verdict, _) => verdict,
    }
}

/// A response whose body comes.
pub struct Answering {
    /// The result for the request.
    pub judged: Judged,
    /// Its head.
    pub head: ResponseHead,
    /// The text of the head's spans.
    pub text: Vec<u8>,
    /// The result of its body.
    pub body: HeldBody,
}

/// A request whose body comes.
pub struct Reading {
    /// Findings so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The result of its body.
    pub body: HeldBody,
    /// Memory for decoding, if the body is encoded.
    pub decoding: HeldBytes,
    /// It has to be whole by then.
    pub until_ms: u64,
    /// The client waits for 100 (Continue).
    pub is_awaited: bool,
}

impl Reading {
    /// Adds a piece of the body. Returns the limit that prevents a judgement, if any; the body is held in any case.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>) -> Option<Limit> {
        let mut has_room = true;
        for piece in data {
            self.inspection.body(piece);
            has_room &= self.body.push(piece);
            has_room &= self.decoding.raise_to(self.inspection.body_progress().decoding_bytes);
        }
        limit_of(&self.inspection, &self.terms, self.body.bytes().len() as u64, has_room)
    }
}

/// The limit that prevents a judgement of a body with this many bytes.
fn limit_of(inspection: &Inspection, terms: &Terms, bytes: u64, has_room: bool) -> Option<Limit> {
    match (bytes > terms.waf.body_bytes_max, has_room) {
        (true, _) => Some(Limit::BodyLength),
        (false, false) => Some(Limit::Memory),
        (false, true) => inspection.body_progress().limit,
    }
}

/// A request without a finding that blocks it: the body is forwarded while it is judged.
pub struct Following {
    /// Findings so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// Bytes of the body that came: rules keep as many.
    pub bytes: u64,
    /// Memory of the held bytes.
    pub held: HeldBytes,
    /// Memory for decoding, if the body is encoded.
    pub decoding: HeldBytes,
}

impl Following {
    /// Passes a piece of the body to the rules. Returns the limit that prevents a judgement, if any.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>) -> Option<Limit> {
        let mut has_room = true;
        for piece in data {
            self.inspection.body(piece);
            self.bytes += piece.len() as u64;
            has_room &= self.held.raise_to(self.bytes);
            has_room &= self.decoding.raise_to(self.inspection.body_progress().decoding_bytes);
        }
        limit_of(&self.inspection, &self.terms, self.bytes, has_room)
    }
}

/// The terms of a request's inspection.
pub struct Terms {
    /// The settings of the virtual server.
    pub waf: Arc<Waf>,
    /// The mode for findings.
    pub mode: WafMode,
    /// The request id.
    pub request_id: Rc<str>,
    /// The client.
    pub client: Option<SocketAddr>,
}

impl Terms {
    /// Whether members do not get requests that cannot be judged.
    pub fn blocks_unjudged(&self) -> bool {
        self.mode == WafMode::Block && self.waf.unjudged == Unjudged::Block
    }
}

/// How a request is kept from members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// It is answered with this status.
    Answer(u16),
    /// It is sent elsewhere.
    Redirect {
        /// Where to.
        to: Vec<u8>,
        /// With this status.
        status: u16,
    },
    /// Its connection is closed.
    Close,
}

impl Block {
    /// The action of a verdict; `None`: the request continues.
    pub fn of(verdict: Verdict, blocks_unjudged: bool) -> Option<Self> {
        match verdict {
            Verdict::Pass => None,
            Verdict::Deny { status, .. } | Verdict::Refused { status, .. } => {
                Some(Self::Answer(status))
            }
            Verdict::Drop { .. } => Some(Self::Close),
            Verdict::Redirect { to, status, .. } if is_field_value(&to) => {
                Some(Self::Redirect { to, status })
            }
            // The target may contain text of the client.
            Verdict::Redirect { .. } => Some(Self::Answer(403)),
            Verdict::Exceeded(limit) if blocks_unjudged => {
                Some(Self::Answer(status_of_unjudged(limit)))
            }
            Verdict::Exceeded(_) => None,
        }
    }

    /// The status of its response; 0: there is none.
    pub fn status(&self) -> u16 {
        match self {
            Self::Answer(status) | Self::Redirect { status, .. } => *status,
            Self::Close => 0,
        }
    }
}

fn status_of_unjudged(limit: Limit) -> u16 {
    match limit {
        Limit::Body => 400,
        Limit::BodyLength => 413,
        Limit::Memory => 503,
        Limit::Work | Limit::Time | Limit::Variables | Limit::Arguments | Limit::Pattern => 403,
    }
}

fn is_field_value(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_become_answers() {
        let redirect = |to: &str| Verdict::Redirect { to: to.into(), status: 302, rule: 1 };
        for (verdict, blocks_unjudged, expected) in [
            (Verdict::Pass, true, None),
            (Verdict::Deny { status: 403, rule: 1 }, true, Some(Block::Answer(403))),
            (Verdict::Drop { rule: 1 }, true, Some(Block::Close)),
            (redirect("/x"), true, Some(Block::Redirect { to: b"/x".to_vec(), status: 302 })),
            (redirect("/x\r\nSet-Cookie: a=b"), true, Some(Block::Answer(403))),
            (redirect(""), true, Some(Block::Answer(403))),
            (Verdict::Exceeded(Limit::Work), true, Some(Block::Answer(403))),
            (Verdict::Exceeded(Limit::Time), true, Some(Block::Answer(403))),
            (Verdict::Exceeded(Limit::Time), false, None),
            (Verdict::Exceeded(Limit::Body), true, Some(Block::Answer(400))),
            (Verdict::Exceeded(Limit::BodyLength), true, Some(Block::Answer(413))),
            (Verdict::Exceeded(Limit::Memory), true, Some(Block::Answer(503))),
            (Verdict::Exceeded(Limit::BodyLength), false, None),
        ] {
            assert_eq!(Block::of(verdict.clone(), blocks_unjudged), expected, "{verdict:?}");
        }
    }
}
