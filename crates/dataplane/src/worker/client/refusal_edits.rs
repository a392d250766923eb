//! Changes that rules make to weir's responses to malformed requests.

use weir_core::expression::{Facts, ResponseFacts};
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::local::surroundings::SeedAndTime;
use weir_exchange::local::table::LocalServer;
use weir_http::edits::FieldEdits;
use weir_http::message::{RequestHead, ResponseHead, Scheme};

use crate::worker::client::handler::ClientHandler;

impl ClientHandler<'_> {
    /// Determines the changes to the response to a malformed request: those of unconditional rules, and those of rules for
    /// responses. They are stored in `edits`.
    pub fn edit_refusal(&mut self, server: &LocalServer, status: u16, edits: &mut FieldEdits) {
        edits.clear();
        let Some(traffic) = server.traffic.as_ref() else { return };
        self.client.learn_destination(self.io, server);
        let client = &*self.client;
        // The client did not use TLS although it must. Headers for TLS clients are not added to its response.
        let is_plain = client.tls.is_none() && server.tls.is_some();
        if is_plain || !(traffic.edits_responses || traffic.has_response_rules) {
            return;
        }
        let (nothing, mut head) = (RequestHead::new(), ResponseHead::new());
        head.status = status;
        let moment = (self.tools.sources, self.io.clock());
        let around = traffic.around(moment, SeedAndTime::default());
        let facts = Facts {
            request: &nothing,
            request_input: b"",
            client: client.address(),
            server: client.destination.address(),
            scheme: if client.tls.is_some() { Scheme::Https } else { Scheme::Http },
            tls: client.tls.as_deref().map(ClientTls::facts),
            response: Some(ResponseFacts { head: &head, input: b"", member: None }),
            datagram: None,
            around: &around,
            unix_s: None,
        };
        let mut decision = self.tools.response_decision.take().unwrap_or_default();
        let mut fields = traffic.fields();
        let mut evaluation = fields.begin(facts);
        let policies = &traffic.settings().policies;
        decision.edit_response_unconditionally(policies, &mut evaluation, &facts);
        decision.follow_response(policies, &mut evaluation, &facts);
        traffic.count(self.worker, &decision);
        self.notices.tell_policy_lines(&decision, self.io.now_ms());
        std::mem::swap(edits, &mut decision.later.response);
        decision.clear();
        self.tools.response_decision = Some(decision);
        if let Some(keeper) = &server.cookies {
            let mut scratch = self.tools.scratch.take();
            keeper.set((&head, b""), edits, &mut scratch);
            self.tools.scratch.give(scratch);
        }
    }
}
