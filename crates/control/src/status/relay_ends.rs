//! The ends of connections and sessions that are relayed.

use weir_api::relayed::Relayed;
use weir_exchange::shared::counters::VirtualServerTotals;

/// The counts of ends in these totals.
pub(super) fn of(totals: &VirtualServerTotals) -> Relayed {
    Relayed {
        complete: totals.relays_complete,
        client_abort: totals.relays_client_abort,
        member_abort: totals.relays_member_abort,
        idle_timeout: totals.relays_idle_timeout,
        no_member: totals.relays_no_member,
        member_connect: totals.relays_member_connect,
        queue_timeout: totals.relays_queue_timeout,
        hello_timeout: totals.relays_hello_timeout,
        client_malformed: totals.relays_client_malformed,
        unknown_server_name: totals.relays_unknown_server_name,
        member_down: totals.relays_member_down,
        operator: totals.relays_operator,
        stopped: totals.relays_stopped,
        unserved: totals.relays_unserved,
    }
}
