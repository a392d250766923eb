//! The state of an inspection by the web application firewall, and bodies that are held for it.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use weir_config::snapshot::{Unjudged, Waf};
use weir_core::policy::WafMode;
use weir_http::message::ResponseHead;
use weir_waf::body::{Call, LOOK_BYTES, call};
use weir_waf::inspection::{Inspection, Limit, Verdict};

use crate::parts::end::OwnedEnd;
use crate::parts::held::{HeldBody, HeldBytes};

/// The state of an inspection.
pub enum Scrutiny {
    /// The body is arriving and is held.
    Reading(Box<Reading>),
    /// The body is forwarded to the member while it is inspected.
    Following(Box<Following>),
    /// The request is judged; its body is forwarded if it begins as a gRPC call.
    Calling(Box<Calling>),
    /// The request may continue; its held body waits for a member.
    Passed(HeldBody, OwnedEnd, Option<Box<Judged>>),
    /// The request was sent to a member. The reservation for its held body lasts until the member answers.
    Passing(Option<HeldBytes>, Option<Box<Judged>>),
    /// The response body is arriving and is held.
    Answering(Box<Answering>),
    /// The request is blocked.
    Blocked(Block),
}

/// A request without a blocking finding, whose response is inspected too.
pub struct Judged {
    /// The inspection so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The limit that prevented a verdict on the request, which continues nevertheless.
    pub unjudged: Option<Limit>,
}

/// The verdict to log for a request and its response: the request's exceeded limit, if the response has no finding.
pub fn after_request(verdict: Verdict, unjudged: Option<Limit>) -> Verdict {
    match (verdict, unjudged) {
        (Verdict::Pass, Some(limit)) => Verdict::Exceeded(limit),
        (verdict, _) => verdict,
    }
}

/// A response whose body is arriving.
pub struct Answering {
    /// The inspection of the request.
    pub judged: Judged,
    /// The head.
    pub head: ResponseHead,
    /// The text of the head's spans.
    pub text: Vec<u8>,
    /// The body so far.
    pub body: HeldBody,
}

/// A request whose body is arriving.
pub struct Reading {
    /// The inspection so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The body so far.
    pub body: HeldBody,
    /// Reserved memory for decoding an encoded body.
    pub decoding: HeldBytes,
    /// The deadline for the whole body.
    pub until_ms: u64,
    /// The client waits for 100 (Continue).
    pub is_awaited: bool,
}

impl Reading {
    /// Adds a piece of the body, which is held in any case. Returns the limit that prevents a verdict, if any.
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

/// The limit that prevents a verdict on a body of this size.
fn limit_of(inspection: &Inspection, terms: &Terms, bytes: u64, has_room: bool) -> Option<Limit> {
    // The first bytes have shown that rules need none of it.
    if !inspection.needs_body() {
        return None;
    }
    let progress = inspection.body_progress();
    let is_too_long = bytes.saturating_sub(progress.files_bytes) > terms.waf.body_bytes_max
        || progress.files_bytes > terms.waf.files_bytes_max;
    match (is_too_long, has_room) {
        (true, _) => Some(Limit::BodyLength),
        (false, false) => Some(Limit::Memory),
        (false, true) => progress.limit,
    }
}

/// A request that cannot be blocked any more: its body is forwarded while it is inspected.
pub struct Following {
    /// The inspection so far.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The number of body bytes, which the rules keep too.
    pub bytes: u64,
    /// Reserved memory for these bytes.
    pub held: HeldBytes,
    /// Reserved memory for decoding an encoded body.
    pub decoding: HeldBytes,
}

impl Following {
    /// Passes a piece of the body to the rules. Returns the limit that prevents a verdict, if any.
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

/// A request that its type names a gRPC call. Client and member may alternate within their bodies, so nothing is held.
pub struct Calling {
    /// The inspection, which is complete.
    pub inspection: Inspection,
    /// The terms of the inspection.
    pub terms: Terms,
    /// The verdict on the head, if the body is that of a call.
    pub verdict: Verdict,
    /// The first bytes of the body.
    pub look: Vec<u8>,
}

impl Calling {
    /// Looks at a piece of the body. Returns whether the body is that of a call.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>) -> Call {
        for piece in data {
            let left = LOOK_BYTES - self.look.len().min(LOOK_BYTES);
            self.look.extend_from_slice(piece.get(..left).unwrap_or(piece));
        }
        call(&self.look)
    }
}

/// The settings of a request's inspection.
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
    /// Whether requests without a verdict are blocked.
    pub fn blocks_unjudged(&self) -> bool {
        self.mode == WafMode::Block && self.waf.unjudged == Unjudged::Block
    }

    /// For a request whose response is inspected too: the limit that prevented a verdict on the request, which continues
    /// nevertheless. `None`: the verdict on the request is the last one.
    pub fn unjudged_of(&self, verdict: &Verdict) -> Option<Option<Limit>> {
        self.waf.responses.as_ref()?;
        match verdict {
            Verdict::Pass => Some(None),
            Verdict::Exceeded(limit) if !self.blocks_unjudged() => Some(Some(*limit)),
            _ => None,
        }
    }
}

/// The response to a blocked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// An answer with this status.
    Answer(u16),
    /// A redirect.
    Redirect {
        /// The target.
        to: Vec<u8>,
        /// The status.
        status: u16,
    },
    /// The connection is closed.
    Close,
}

impl Block {
    /// The action of a verdict; `None`: the request continues.
    pub fn of(verdict: &Verdict, blocks_unjudged: bool) -> Option<Self> {
        match verdict {
            Verdict::Pass => None,
            Verdict::Deny { status, .. } | Verdict::Refused { status, .. } => {
                Some(Self::Answer(*status))
            }
            Verdict::Drop { .. } => Some(Self::Close),
            Verdict::Redirect { to, status, .. } if is_field_value(to) => {
                Some(Self::Redirect { to: to.clone(), status: *status })
            }
            // The target may contain text of the client, so the response is no redirect.
            Verdict::Redirect { .. } => Some(Self::Answer(403)),
            Verdict::Exceeded(limit) if blocks_unjudged => {
                Some(Self::Answer(status_of_unjudged(*limit)))
            }
            Verdict::Exceeded(_) => None,
        }
    }

    /// The status of the response; 0: no response.
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
            assert_eq!(Block::of(&verdict, blocks_unjudged), expected, "{verdict:?}");
        }
    }
}
