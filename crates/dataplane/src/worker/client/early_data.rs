//! Requests in early data, before the client's handshake is complete (0-RTT, RFC 8470).
//!
//! An attacker can record the client's first message and send it again. Each session is accepted only once. Nevertheless,
//! only requests that are safe to repeat are served early.
//!
//! | request | treatment |
//! |---|---|
//! | GET, HEAD, OPTIONS, TRACE | served at once, with `Early-Data: 1` for the member |
//! | another method, or a change of protocol | waits until the handshake is complete |

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_http::message::{Method, RequestHead};

use crate::worker::router::Router;
use crate::worker::state::stage::Stage;

/// Whether a request must wait until the client's handshake is complete.
pub fn has_to_wait(is_early: bool, head: &RequestHead) -> bool {
    // RFC 9110 section 9.2.1.
    let is_safe =
        matches!(head.method, Method::Get | Method::Head | Method::Options | Method::Trace);
    is_early && (!is_safe || head.upgrade.is_some())
}

impl Router {
    /// Handles the completed handshake of a client that has sent early data: waiting requests continue.
    pub fn client_confirmed(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.all.get_mut(key) else { return };
        client.special.is_early = false;
        if matches!(client.stage, Stage::Idle | Stage::Head) {
            self.client_next(io, key);
        }
    }
}
