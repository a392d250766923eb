//! What a stage does with the decisions about a request that it refuses.

use crate::edge::Edge;
use crate::transaction::exchange::Exchange;

/// Drops all decisions about a request that is not allowed, for this reason.
pub fn forget_decided(exchange: &mut Exchange, at: &mut impl Edge, mark: &str) {
    let decided =
        exchange.delayed_decision.take().and_then(|delayed_decision| delayed_decision.end);
    if let Some((_, mut decision)) = decided {
        decision.clear();
        at.tools().decision = Some(decision);
    }
    if let Some(context) = exchange.ends.context.as_deref_mut() {
        context.leave_out_checks();
        context.marks.push(|out| out.extend_from_slice(mark.as_bytes()));
    }
    exchange.ends.server.counters.requests_unauthenticated.add(1);
}
