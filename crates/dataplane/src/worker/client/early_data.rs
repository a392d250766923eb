//! Requests that come with a client's first message, before its handshake is done (0-RTT, RFC 8470).
//!
//! Whoever records that message can send it again. Each session opens one connection, so that it is accepted once;
//! all the same nothing is done with it that could not be done twice.
//!
//! | request | what becomes of it |
//! |---|---|
//! | GET, HEAD, OPTIONS, TRACE | served at once; the member is told: `Early-Data: 1` |
//! | with another method, or one that asks for another protocol | waits until the handshake is done |

use weir_event_loop::EventLoop;
use weir_exchange::arena::ClientKey;
use weir_http::message::{Method, RequestHead};

use crate::worker::Worker;
use crate::worker::state::stage::Stage;

/// Whether a request has to wait until the client's handshake is done.
pub fn has_to_wait(is_early: bool, head: &RequestHead) -> bool {
    // RFC 9110 section 9.2.1.
    let is_safe =
        matches!(head.method, Method::Get | Method::Head | Method::Options | Method::Trace);
    is_early && (!is_safe || head.upgrade.is_some())
}

impl Worker {
    /// A client's handshake is done, after requests have come: what had to wait goes on.
    pub fn client_confirmed(&mut self, io: &mut EventLoop, key: ClientKey) {
        let Some(client) = self.world.clients.get_mut(key) else { return };
        client.is_early = false;
        if matches!(client.stage, Stage::Idle | Stage::Head) {
            self.client_next(io, key);
        }
    }
}
