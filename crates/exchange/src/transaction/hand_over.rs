//! A hand-over: a virtual server passes a request to another one, with the part of its decisions that stays valid.

use std::rc::Rc;

use weir_core::policy::{Decision, HandOver};
use weir_http::edited_head::{edited, is_same};
use weir_http::message::RequestHead;

use crate::edge::Edge;
use crate::parts::arrival::Arrival;
use crate::parts::hand_over::{HandOverContext, HandedOver, RewrittenHead};
use crate::parts::notice::Notice;
use crate::parts::stage_work::StageWork;
use crate::transaction::claims::withhold_claims;

/// Hands a request over to the virtual server with this index, with the changes in `decision`, which is empty
/// afterwards. `None`: the changes of rules make a request that cannot be sent.
pub fn hand_over(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    to: usize,
    decision: &mut Decision,
    (mut carried, stage_work, user): (Box<HandOverContext>, StageWork, &[u8]),
) -> Option<Box<HandedOver>> {
    let server = arrival.server;
    withhold_claims(arrival, &mut decision.request.fields);
    let Some(to) = server.other(to) else {
        debug_assert!(false, "its table has it");
        return None;
    };
    let rewritten = match is_same(arrival.head, &decision.request) {
        true => None,
        false => match rewrite(arrival, decision) {
            Some(rewritten) => Some(rewritten),
            None => {
                server.counters.rewrites_failed.add(1);
                let why = "the new target cannot be asked for";
                at.tell(Notice::Unsendable { server: &server.live.name, why });
                return None;
            }
        },
    };
    let HandOver { request, response, followed, marks } = decision.hand_over()?;
    if request.authority().is_some() && carried.asked_for.is_empty() {
        carried.asked_for.extend_from_slice(arrival.head.authority(arrival.input));
    }
    carried.names.note_with_added(&request.fields);
    carried.response = response;
    carried.followed.extend(followed);
    carried.marks = carried.marks_with(&marks);
    carried.passed.push(Rc::clone(server));
    carried.stage_work = stage_work;
    carried.stage_work.note_hand_over();
    if !user.is_empty() {
        carried.user = user.into();
    }
    server.counters.requests_handed_over.add(1);
    Some(Box::new(HandedOver { to: Rc::clone(to), rewritten, carried }))
}

fn rewrite(arrival: &Arrival<'_>, decision: &Decision) -> Option<Box<RewrittenHead>> {
    let Arrival { head, input, server, .. } = *arrival;
    let mut rewritten = Box::new(RewrittenHead { head: RequestHead::new(), text: Vec::new() });
    let RewrittenHead { head: out, text } = &mut *rewritten;
    // Both virtual servers take paths alike.
    let made = edited((head, input), &decision.request, server.http.target, out, text);
    made.is_ok().then_some(rewritten)
}
