//! The ends of connections and sessions that are relayed.

use schemars::JsonSchema;
use serde::Serialize;
use weir_exchange::shared::counters::VirtualServerTotals;

/// Connections of a virtual server of type tcp, or sessions of type udp, by their end.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Relayed {
    complete: u64,
    client_abort: u64,
    member_abort: u64,
    idle_timeout: u64,
    no_member: u64,
    member_connect: u64,
    queue_timeout: u64,
    hello_timeout: u64,
    client_malformed: u64,
    unknown_server_name: u64,
    member_down: u64,
    operator: u64,
    stopped: u64,
    /// Of all these: connections that the member ended within 10 seconds without sending a byte, by a reset or in place of an
    /// answer.
    unserved: u64,
}

impl Relayed {
    pub(super) fn of(totals: &VirtualServerTotals) -> Self {
        Self {
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
}
