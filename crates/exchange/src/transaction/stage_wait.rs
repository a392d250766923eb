//! Requests that wait at a stage.

use crate::edge::Edge;
use crate::parts::phase::Phase;
use crate::parts::stages::{Stage, Wait};
use crate::parts::wait_state::WaitState;
use crate::transaction::exchange::Exchange;
use crate::transaction::lost_streams::watch_leaving_client;

/// Parks the request. While it waits at stages, its client has no deadline.
pub fn wait(exchange: &mut Exchange, at: &mut impl Edge, what: Wait) {
    let has_waited = matches!(exchange.ends.phase, Phase::Before(WaitState::AtStage));
    if what == Wait::Body {
        exchange.stages.remove(Stage::Body);
        exchange.ends.phase.park(WaitState::ForBody);
        if has_waited {
            exchange.request_goes_on(at);
        }
        return;
    }
    if !has_waited {
        exchange.ends.phase.park(WaitState::AtStage);
        exchange.ends.clear_client_deadline(at);
        watch_leaving_client(exchange, at);
    }
    if let Wait::Until(until_us) = what {
        at.delay(&exchange.ends, until_us);
    }
}
