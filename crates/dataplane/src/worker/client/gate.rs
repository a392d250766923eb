//! Access control for connections: policies that run before a handshake or a request.

use std::rc::Rc;

use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::gate::{ConnectionAddresses, Moment, TurnedAway};
use weir_exchange::termination::Termination;
use weir_telemetry::access_log::PolicyFields;

use crate::worker::client::handler::ClientHandler;
use crate::worker::client::unserved_log::UnforwardedRequest;
use crate::worker::state::client_end::ClientEnd;

impl ClientHandler<'_> {
    /// Asks the policies about a new connection, or about the server name that a client has sent; an error: they refuse the
    /// connection. One that starts with a PROXY header is checked after the header.
    pub fn pass_gate(&mut self, name: Option<&str>) -> Result<(), ClientEnd> {
        match name {
            None if self.client.http1.awaits_proxy => Ok(()),
            None => self.ask_policies(Moment::Accepted, ""),
            Some(_) if self.client.server.gate.is_none() => Ok(()),
            Some(name) => {
                let tls = ClientTls::asked(name);
                self.ask_policies(Moment::Named(tls.facts()), name)
            }
        }
    }

    fn ask_policies(&mut self, moment: Moment<'_>, name: &str) -> Result<(), ClientEnd> {
        let server = Rc::clone(&self.client.server);
        let Some(gate) = &server.gate else { return Ok(()) };
        if gate.policies(moment).is_empty() {
            return Ok(());
        }
        let client = &mut *self.client;
        if server.snapshot.slots.read_server() {
            client.destination.learn(self.io, client.token);
        }
        let whence =
            ConnectionAddresses { client: client.address(), server: client.destination.address() };
        let when = (self.worker, self.io.clock(), self.tools.sources);
        let mut decision = self.tools.decision.take().unwrap_or_default();
        let mut scratch = self.tools.scratch.take();
        let mut held = std::mem::take(&mut self.tools.limit_places);
        let scratches = (&mut *scratch, &mut held);
        let turned_away = gate.ask(moment, whence, when, &mut decision, scratches);
        client.held.take(&mut held);
        self.tools.scratch.give(scratch);
        self.tools.limit_places = held;
        self.notices.tell_policy_lines(&decision, self.io.now_ms());
        let end = turned_away.map(|turned_away| {
            let (rules, rule_names) = (&*decision.followed, &*server.snapshot.rules);
            let decided = PolicyFields { rules, rule_names, ..PolicyFields::default() };
            self.turn_away(turned_away, name, decided)
        });
        decision.clear();
        self.tools.decision = Some(decision);
        end.map_or(Ok(()), Err)
    }

    /// Counts and logs a connection that a policy refuses.
    fn turn_away(
        &mut self,
        TurnedAway { why, must_reset }: TurnedAway,
        name: &str,
        decided: PolicyFields<'_>,
    ) -> ClientEnd {
        self.client.handshake = None;
        let counters = &self.client.server.counters;
        match why {
            Termination::RateLimit => counters.connections_limited.add(1),
            _ => counters.connections_ended_by_policy.add(1),
        }
        let mut about = Vec::new();
        self.log.log.connection_part(name, &mut about);
        let of = UnforwardedRequest { about: &about, ..UnforwardedRequest::default() };
        self.log.line(self.client, self.io.clock(), of, decided, why);
        ClientEnd::Cut { must_reset }
    }
}
