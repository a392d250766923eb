//! How a request ends that gets no member.

use weir_core::policy::{Decision, End};
use weir_http::edits::FieldEdits;

use crate::edge::Edge;
use crate::parts::inspection::ExchangeInspection;
use crate::parts::request_decisions::EndWithoutMember;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::weir_response::{ExchangeEnd, WeirResponse};
use crate::termination::Termination;
use crate::transaction::inspection_results::end_of_blocked;

impl EndWithoutMember {
    /// The end of the exchange; `None`: it ends otherwise. `decision`: that of the policies.
    pub fn exchange_end<'d>(
        self,
        at: &mut impl Edge,
        ends: &TransactionEnds,
        inspection: &mut ExchangeInspection,
        decision: &'d mut Decision,
    ) -> Option<ExchangeEnd<'d>> {
        let server = &*ends.server;
        let respond = |status, termination, fields| {
            let response = WeirResponse::with_fields(server, status, termination, fields);
            Some(ExchangeEnd::Response(response))
        };
        let cut = |termination, must_reset| Some(ExchangeEnd::Cut { termination, must_reset });
        match self {
            Self::Limited { retry_after_s } => {
                let fields = retry_after(retry_after_s);
                respond(429, Termination::RateLimit, fields)
            }
            Self::Overloaded => respond(503, Termination::RateLimit, retry_after(1)),
            // Without a page, because the page might belong to another name.
            Self::Misdirected => {
                let response = WeirResponse::without_page(421, Termination::Misdirected);
                Some(ExchangeEnd::Response(response))
            }
            Self::Blocked => {
                let block = inspection.take_block()?;
                Some(end_of_blocked(&block, ends, at.tools()).meant())
            }
            Self::Failed => respond(500, Termination::PolicyFailed, FieldEdits::NONE),
            Self::Closed => cut(Termination::RateLimit, false),
            Self::Challenge => {
                let response = WeirResponse::decided(server, decision, Termination::Challenge)?;
                Some(ExchangeEnd::Response(response))
            }
            Self::Policy => match &decision.end {
                Some(End::Answer { .. }) => {
                    let response = WeirResponse::decided(server, decision, Termination::Policy)?;
                    Some(ExchangeEnd::Response(response).meant())
                }
                Some(End::Reset) => cut(Termination::Policy, true),
                // A hand-over does not end the request here.
                Some(End::Close | End::VirtualServer(_)) | None => cut(Termination::Policy, false),
            },
        }
    }
}

fn retry_after(seconds: u64) -> FieldEdits {
    let mut fields = FieldEdits::default();
    fields.add(b"Retry-After", |out| out.extend_from_slice(seconds.to_string().as_bytes()));
    fields
}
