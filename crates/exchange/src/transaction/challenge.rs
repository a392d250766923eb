//! Requests by which a certificate authority verifies that weir serves a name (ACME, RFC 8555 section 8.3).

use weir_core::policy::{AnswerBody, Decision, End};
use weir_http::message::Method;

use crate::parts::arrival::Arrival;

/// Whether a request verifies a pending challenge. If so, this sets the decision to the answer.
pub fn answers(arrival: &Arrival<'_>, decision: &mut Decision) -> bool {
    let Some(challenges) = &arrival.server.challenges else { return false };
    if !matches!(arrival.head.method, Method::Get | Method::Head) {
        return false;
    }
    let Some(text) = challenges.text(arrival.head.path(arrival.input)) else { return false };
    let content_type = b"application/octet-stream";
    decision.answer.set(b"Content-Type", |out| out.extend_from_slice(content_type));
    decision.end = Some(End::Answer { status: 200, body: AnswerBody::Fixed(text.into()) });
    true
}
