//! What few requests have: methods that ask for the request itself, hops that end here, an Upgrade, credentials that
//! authenticate a connection.

use weir_http::edits::FieldEdits;
use weir_http::message::{Method, RequestHead, Version};

use crate::parts::arrival::Arrival;
use crate::parts::request::{ConnectionChoice, Request};
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::weir_response::WeirResponse;
use crate::termination::Termination;

/// The methods in a response with status 405 (RFC 9110 section 15.5.6): those that weir passes on whatever they are for.
const ALLOWED: &[u8] = b"GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

/// Looks at a request with such a property. Returns the response if weir answers it itself.
#[cold]
#[inline(never)]
pub fn response_to(
    (ends, request): (&mut TransactionEnds, &mut Request),
    tools: &mut Tools,
    head: &RequestHead,
) -> Option<WeirResponse<'static>> {
    let is_for_weir = head.max_forwards == Some(0);
    if is_for_weir && head.method == Method::Options {
        // Weir is the final recipient, and has no list of methods to report.
        return Some(WeirResponse::new(&ends.server, 204, Termination::Complete));
    }
    if is_for_weir || head.unusual.reflects && !ends.server.http.trace {
        // The response would tell the client what rules have put into the head for the member. As the final recipient of a
        // TRACE, weir does not reflect it either.
        let mut fields = FieldEdits::default();
        fields.add(b"Allow", |out| out.extend_from_slice(ALLOWED));
        return Some(WeirResponse::with_fields(&ends.server, 405, Termination::Complete, fields));
    }
    if head.unusual.binds_connection {
        request.wanted = ConnectionChoice::Authenticating;
    }
    if head.unusual.has_upgrade
        && let Some(why) = why_not_offered(ends, request, head)
    {
        let context = ends.context.get_or_insert_with(|| tools.take_remembered());
        context.later.marks.push(|out| {
            out.extend_from_slice(b"upgrade not offered: ");
            out.extend_from_slice(why.as_bytes());
        });
    }
    None
}

/// Why the member is not offered the client's Upgrade; `None`: it is.
fn why_not_offered(
    ends: &TransactionEnds,
    request: &Request,
    head: &RequestHead,
) -> Option<&'static str> {
    if head.version == Version::Http10 {
        return Some("HTTP/1.0 has none");
    }
    if head.upgrade.is_none() {
        return Some("its protocols are not passed on, or are malformed");
    }
    if request.upgrade_bytes == 0 {
        return Some("the request has a body (upgrade_with_body)");
    }
    let is_translated = request.websocket.is_some();
    let is_lost = ends.tries.pool.settings().http2 && !is_translated;
    is_lost.then_some("the members speak HTTP/2")
}

/// The head without the upgrade behind its body, if the virtual server does not offer such.
pub fn without_upgrade(arrival: &Arrival<'_>) -> Option<Box<RequestHead>> {
    let head = arrival.head;
    if head.upgrade.is_none() || head.framing.is_empty() || arrival.server.http.upgrade_with_body {
        return None;
    }
    let mut changed = Box::new(RequestHead::new());
    changed.copy_from(head);
    changed.upgrade = None;
    Some(changed)
}
