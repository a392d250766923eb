//! Ends clients with HTTP/2 that make the worker hold too much memory; see
//! [`Http2Memory`](crate::worker::state::http2_memory::Http2Memory).

use std::cmp::Reverse;

use weir_exchange::arena::ClientKey;
use weir_exchange::termination::Termination;

use crate::worker::agenda::Agenda;
use crate::worker::state::client::Client;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::clients::Clients;

impl Clients {
    /// The connections that hold memory while all hold too much, in the order in which they lose it: first those whose clients read
    /// nothing, and of these the one that holds most. Each with whether its client reads nothing; `None`: there is nothing to do now.
    pub fn over_budget(
        &mut self,
        agenda: &mut Agenda,
        now_ms: u64,
    ) -> Option<Vec<(bool, ClientKey)>> {
        if !self.http2_memory.begin_look(agenda, now_ms) {
            return None;
        }
        let held = |client: &Client| {
            let held = &client.http2.as_ref()?.held;
            (held.counted > 0).then(|| (held.is_still(now_ms), held.counted))
        };
        let mut holders: Vec<((bool, u64), ClientKey)> =
            self.all.iter().filter_map(|(key, client)| Some((held(client)?, key))).collect();
        holders.sort_unstable_by_key(|(held, _)| Reverse(*held));
        Some(holders.into_iter().map(|((is_still, _), key)| (is_still, key)).collect())
    }
}

impl Client {
    /// The connection ends because it holds too much memory. It is reset: what it does not read must not wait for it any longer.
    pub fn holds_too_much(&self) -> ClientStep {
        self.server.counters.http2_floods_memory.add(1);
        ClientStep::EndStreams(Termination::ClientFlood, ClientEnd::Reset)
    }
}
