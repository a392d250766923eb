//! A member agrees to change the protocol.

use weir_http::h1::{Persistence, ResponseForward};
use weir_http::message::{Framing, ResponseHead};

use crate::edge::Edge;
use crate::parts::messages::{HeadKind, OutHead};
use crate::parts::transaction_ends::NextClientState;
use crate::parts::websocket::{Handshake, write_accept};
use crate::shared::counters::count_status;
use crate::transaction::exchange::Exchange;
use crate::transaction::policy::keep_cookies;
use crate::transaction::tracing::note_member_status;

impl Exchange {
    /// The member agreed to change the protocol: the exchange becomes a tunnel.
    pub fn begin_tunnel(
        &mut self,
        at: &mut impl Edge,
        (head, input): (&ResponseHead, &[u8]),
        has_member_ended: bool,
    ) {
        self.ends.response_began(at, &mut self.request, head.status, false);
        count_status!(self.ends.server.counters, head.status);
        // The following bytes are not a response.
        self.inspection.leave(at, &self.ends.server);
        note_member_status(&mut self.ends, head.status);
        let mut edits = std::mem::take(&mut at.tools().response_edits);
        let codings = &mut self.filters.codings;
        if let Some(mut answer) = self.ends.edit_response(at, codings, (head, input), &mut edits) {
            // The member already speaks the other protocol, so no answer replaces its response.
            answer.clear();
            at.tools().response_decision = Some(answer);
        }
        keep_cookies(&self.ends.server, at, (head, input), &mut edits);
        if let (Some(Handshake::Upgrade(client_key)), Some(_)) =
            (&self.request.websocket, self.ends.phase.member_stream())
        {
            // The member did not get the client's key, so weir answers it.
            edits.set(b"Sec-WebSocket-Accept", |out| write_accept(client_key, out));
        }
        self.keep_alive = false;
        let counters = &self.ends.server.counters;
        counters.tunnels.add(1);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version: self.request.version,
            persistence: Persistence::Upgrade,
            date: None,
        };
        let out = OutHead { head, input, edits: &edits, forward, is_dated: false };
        let message = at.head(&mut self.ends, &out, HeadKind::Final, false);
        self.ends.send_head_alone(at, message);
        at.tools().response_edits = edits;
        self.ends.over = Some(NextClientState::Tunnel { has_member_ended });
    }
}
