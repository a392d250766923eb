//! Trailers: changes that rules made to the head also apply to the trailers behind its body.
//!
//! Request trailers are dropped unless `request_trailers: forward` is set: `TE: trailers` is about the response, a gRPC
//! request has none, and members that merge them into the head would treat them as checked fields.

use weir_config::snapshot::RequestTrailers;
use weir_http::edits::{FieldEdits, RequestEdits, TrailerEdits};
use weir_http::message::{Framing, RequestHead, ResponseHead, Version};

use crate::local::table::LocalServer;
use crate::parts::request_context::RequestContext;
use crate::parts::tools::Tools;
use crate::parts::transaction_ends::TransactionEnds;

/// Whether trailers may follow a body: with HTTP/1, only after chunks.
fn may_follow(framing: Framing, version: Version) -> bool {
    match framing {
        Framing::Chunked => true,
        Framing::Length(_) => version == Version::Http2,
        Framing::None | Framing::UntilClose => false,
    }
}

/// Removes the announcement of trailers for a member that gets none.
pub fn announce(server: &LocalServer, head: &RequestHead, edits: &mut RequestEdits) {
    if head.announces_trailers && server.http.request_trailers == RequestTrailers::Drop {
        edits.fields.remove(b"Trailer");
    }
}

/// Stores all changes to a request's head, for its trailers.
pub fn keep_edits(
    tools: &mut Tools,
    server: &LocalServer,
    head: &RequestHead,
    edits: &RequestEdits,
    context: Option<Box<RequestContext>>,
) -> Option<Box<RequestContext>> {
    let may_come = server.http.request_trailers == RequestTrailers::Forward
        && may_follow(head.framing, head.version);
    if !may_come || edits.fields.added().next().is_none() && !edits.fields.hold_for_trailers() {
        return context;
    }
    let mut context = context.unwrap_or_else(|| tools.take_remembered());
    context.request_names.note_with_added(&edits.fields);
    Some(context)
}

impl RequestContext {
    /// Stores the changes to a response's head, for its trailers.
    pub fn note_response_edits(&mut self, head: &ResponseHead, edits: &FieldEdits) {
        if may_follow(head.framing, head.version) || head.is_open {
            self.response_names.note(edits);
        }
    }
}

/// Selects the request trailers that are forwarded.
pub fn of_request(ends: &TransactionEnds) -> TrailerEdits<'_> {
    match (ends.server.http.request_trailers, &ends.context) {
        (RequestTrailers::Drop, _) => TrailerEdits::Drop,
        (RequestTrailers::Forward, Some(context)) => {
            TrailerEdits::OfClient(Some(&context.request_names))
        }
        (RequestTrailers::Forward, None) => TrailerEdits::OfClient(None),
    }
}

/// Selects the response trailers that are forwarded.
pub fn of_response(ends: &TransactionEnds) -> TrailerEdits<'_> {
    match &ends.context {
        Some(context) => TrailerEdits::KeepBut(&context.response_names),
        None => TrailerEdits::Keep,
    }
}
