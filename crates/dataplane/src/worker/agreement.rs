//! A member agrees to change the protocol.

use std::io::IoSlice;

use weir_http::h1::{Persistence, ResponseForward, write_response_head};
use weir_http::h2::SendKind;
use weir_http::h2::message::write_response;
use weir_http::message::{Framing, ResponseHead};

use super::ends::After;
use super::exchange::Exchange;
use super::websocket::{Handshake, write_accept};
use super::world::Desk;

impl Exchange {
    /// The member agreed to change the protocol: a tunnel is what it becomes.
    pub fn begin_tunnel(
        &mut self,
        at: &mut Desk<'_>,
        (head, input): (&ResponseHead, &[u8]),
        has_member_ended: bool,
    ) {
        self.response_began(at, head.status);
        let mut edits = std::mem::take(&mut at.world.response_edits);
        self.edit_response(at, head, input, &mut edits);
        if let (Some(Handshake::Upgrade(client_key)), Some(_)) =
            (self.websocket, &self.ends.attempt.member_stream)
        {
            // The member has had no key to answer.
            edits.set(b"Sec-WebSocket-Accept", |out| write_accept(&client_key, out));
        }
        self.keep_alive = false;
        let counters = self.ends.server.live.counters.of(at.world.id);
        counters.tunnels.add(1);
        let forward = ResponseForward {
            framing: Framing::None,
            client_version: self.version,
            persistence: Persistence::Upgrade,
            date: None,
        };
        let client_key = self.ends.client;
        let head_bytes = if self.ends.stream.is_some() {
            self.ends.send_stream_head(at, SendKind::Response, false, |lines| {
                write_response(head, input, &forward, &edits, lines);
            })
        } else {
            let mut out = at.world.scratch.take();
            write_response_head(head, input, &forward, &edits, &mut out);
            let bytes = out.len();
            if let Some(client) = at.world.clients.get(client_key) {
                at.io.send(client.token, &[IoSlice::new(&out)]);
            }
            at.world.scratch.give(out);
            bytes
        };
        at.world.response_edits = edits;
        self.ends.count_sent(at.world.id, head_bytes);
        self.ends.account.head_bytes_sent += head_bytes as u64;
        self.ends.over = Some(After::Tunnel { has_member_ended });
    }
}
