//! A response that is held while rules of the web application firewall are evaluated.

use weir_http::message::ResponseHead;
use weir_waf::inspection::{Limit, Verdict};

use crate::parts::end::{End, OwnedEnd};
use crate::parts::held_memory::HeldBody;

/// What is known of a response, and of its request, before there is a verdict.
pub struct ResponseFacts {
    /// Rules read the body that arrives.
    pub is_read: bool,
    /// There was room for all of the body that rules read.
    pub has_room: bool,
    /// The limit that prevented a verdict on the request, which continued nevertheless.
    pub unjudged: Option<Limit>,
    /// The first bytes of the request's body, if they have not shown yet whether it is that of a gRPC call.
    pub look: Option<Vec<u8>>,
}

impl ResponseFacts {
    /// The limit that has prevented a verdict before the rules for the response have one.
    pub fn limit(&self) -> Option<Limit> {
        if self.has_room { self.unjudged } else { Some(Limit::Memory) }
    }

    /// The verdict on the request and its response; `verdict`: that of the rules for the response.
    pub fn verdict(&self, verdict: Verdict) -> Verdict {
        after_request(verdict, self.limit())
    }
}

/// The verdict to log for a request and its response: the request's exceeded limit, if the response has no finding.
pub fn after_request(verdict: Verdict, unjudged: Option<Limit>) -> Verdict {
    match (verdict, unjudged) {
        (Verdict::Pass, Some(limit)) => Verdict::Exceeded(limit),
        (verdict, _) => verdict,
    }
}

/// A response of which nothing was sent to the client.
pub struct HeldResponse {
    /// What is known of it.
    pub facts: ResponseFacts,
    /// The head.
    pub head: ResponseHead,
    /// The text of the head's spans.
    pub text: Vec<u8>,
    /// The body so far.
    pub body: HeldBody,
    /// What follows the body so far.
    pub end: OwnedEnd,
}

impl HeldResponse {
    /// A response whose head has arrived. `body`: an empty body of its client.
    pub fn new(facts: ResponseFacts, (head, text): (&ResponseHead, &[u8]), body: HeldBody) -> Self {
        let (head, text) = (head.clone(), text.to_vec());
        Self { facts, head, text, body, end: OwnedEnd::No }
    }

    /// Adds pieces of the body, and its end.
    pub fn take<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>, end: End<'_>) {
        for piece in data {
            let has_room = self.body.push(piece);
            self.facts.has_room &= has_room || !self.facts.is_read;
        }
        self.end = OwnedEnd::of(end);
    }

    /// Whether the whole body has arrived.
    pub fn is_whole(&self) -> bool {
        !matches!(self.end, OwnedEnd::No)
    }

    /// Whether rules get no more than the body so far. `bytes_max`: the number of bytes that they get at most.
    pub fn is_enough(&self, bytes_max: usize) -> bool {
        self.is_whole() || !self.facts.has_room || self.body.bytes().len() >= bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::held_memory::HeldRoom;

    #[test]
    fn the_limit_of_the_request_counts_unless_there_is_a_finding() {
        let deny = || Verdict::Deny { status: 403, rule: 1 };
        for (verdict, unjudged, has_room, expected) in [
            (Verdict::Pass, None, true, Verdict::Pass),
            (Verdict::Pass, Some(Limit::Body), true, Verdict::Exceeded(Limit::Body)),
            (Verdict::Pass, Some(Limit::Body), false, Verdict::Exceeded(Limit::Memory)),
            (Verdict::Pass, None, false, Verdict::Exceeded(Limit::Memory)),
            (deny(), Some(Limit::Body), false, deny()),
            (Verdict::Exceeded(Limit::Time), None, false, Verdict::Exceeded(Limit::Time)),
        ] {
            let facts = ResponseFacts { is_read: true, has_room, unjudged, look: None };
            assert_eq!(facts.verdict(verdict), expected);
        }
    }

    #[test]
    fn room_counts_for_what_rules_read() {
        let room = HeldRoom::default();
        let piece = vec![b'x'; 64 << 20];
        for is_read in [true, false] {
            let facts = ResponseFacts { is_read, has_room: true, unjudged: None, look: None };
            let head = (&ResponseHead::new(), &b""[..]);
            let mut response = HeldResponse::new(facts, head, room.body(None));
            response.take([b"y".as_slice()].into_iter(), End::No);
            assert!(!response.is_enough(2) && response.is_enough(1));
            response.take([&piece[..]].into_iter(), End::No);
            assert_eq!(response.facts.has_room, !is_read, "more than one client may have");
            assert_eq!(response.is_enough(usize::MAX), is_read);
            assert!(!response.is_whole());
            response.take(std::iter::empty(), End::Data);
            assert!(response.is_whole() && response.is_enough(usize::MAX));
        }
    }
}
