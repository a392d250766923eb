//! The begin of a response to the client.

use std::io::Write as _;

use weir_core::policy::Decision;
use weir_http::edits::FieldEdits;
use weir_http::message::{Framing, ResponseHead};

use crate::edge::{Edge, Release};
use crate::parts::account::Account;
use crate::parts::encoding::Filters;
use crate::parts::messages::Message;
use crate::parts::transaction_ends::TransactionEnds;
use crate::termination::Termination;
use crate::transaction::exchange::Exchange;
use crate::transaction::filters;
use crate::transaction::filters::contract::FilteredRequest;
use crate::transaction::policy::keep_cookies;
use crate::transaction::response_data::is_all;
use crate::transaction::tracing::note_member_status;

impl Exchange {
    /// Begins a response that is not inspected, or whose inspection is finished.
    #[inline]
    pub fn begin_judged(
        &mut self,
        at: &mut impl Edge,
        head: &mut ResponseHead,
        (input, body): (&[u8], &[u8]),
    ) -> Message {
        let framing = head.framing.toward(self.request.version);
        if self.ends.context.is_none() && !self.ends.server.edits_responses {
            return self.begin_message(at, (head, input), &FieldEdits::NONE, framing);
        }
        let asked = FilteredRequest::of(&self.request);
        let Self { filters, ends, .. } = self;
        match edit(filters, at, (ends, asked), head, (input, body)) {
            EditedHead::Edited(edits, framing) => {
                let message = self.begin_message(at, (head, input), &edits, framing);
                at.tools().response_edits = edits;
                message
            }
            EditedHead::Replaced(answer, mut edits) => {
                // The held data may be only a part of the body.
                let is_whole = self.ends.phase.begun().is_none() && is_all(head.framing, body);
                let is_kept = is_whole && self.request.is_whole();
                at.release(&mut self.ends, if is_kept { Release::Keep } else { Release::Drop });
                self.ends.release_member(at, None);
                self.inspection.leave(at, &self.ends.server);
                self.ends.phase.drop_held();
                edits.forget_received();
                self.send_decided(at, answer, Termination::Policy, edits);
                at.tools().scratch.take()
            }
        }
    }
}

/// What rules and settings make of the head of a response.
enum EditedHead {
    /// These changes, and this framing toward the client.
    Edited(FieldEdits, Framing),
    /// A rule answers instead of the member: the rest of its response is dropped. With the changes so far.
    Replaced(Box<Decision>, FieldEdits),
}

/// Changes the head of a response as rules, settings or a session have it, and begins its filters.
#[inline(never)]
fn edit(
    filters: &mut Filters,
    at: &mut impl Edge,
    (ends, asked): (&mut TransactionEnds, FilteredRequest),
    head: &mut ResponseHead,
    (input, body): (&[u8], &[u8]),
) -> EditedHead {
    note_member_status(ends, head.status);
    let mut edits = std::mem::take(&mut at.tools().response_edits);
    edits.clear();
    if ends.context.is_some()
        && let Some(answer) =
            ends.edit_response(at, &mut filters.codings, (head, input), &mut edits)
    {
        return EditedHead::Replaced(answer, edits);
    }
    keep_cookies(&ends.server, at, (head, input), &mut edits);
    if ends.server.settings().server_timing {
        time_response(&ends.account, &mut edits);
    }
    let framing = filters::begin(filters, at, (ends, asked), head, (input, body), &mut edits);
    EditedHead::Edited(edits, framing)
}

/// Adds the response time to a response.
fn time_response(account: &Account, edits: &mut FieldEdits) {
    let (own_us, member_us) = account.until_head_us();
    edits.add(b"Server-Timing", |out| {
        let ms = |us: u64| us as f64 / 1_000.0;
        let (own, member) = (ms(own_us), ms(member_us));
        write!(out, "weir;dur={own:.3}, member;dur={member:.3}")
            .expect("a vector takes what is written to it");
    });
}
