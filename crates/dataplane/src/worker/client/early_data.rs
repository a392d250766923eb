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
use weir_http::edits::RequestEdits;
use weir_http::message::{Method, RequestHead};

use crate::arena::ClientKey;
use crate::worker::Worker;
use crate::worker::client::stage::Stage;

/// The field that tells members (RFC 8470 section 5.1).
const EARLY_DATA: &[u8] = b"Early-Data";

/// Whether a request has to wait until the client's handshake is done.
pub fn has_to_wait(is_early: bool, head: &RequestHead) -> bool {
    // RFC 9110 section 9.2.1.
    let is_safe =
        matches!(head.method, Method::Get | Method::Head | Method::Options | Method::Trace);
    is_early && (!is_safe || head.upgrade.is_some())
}

/// Tells the member of a request that it may have been sent by another. What a client says of itself travels on.
pub fn tell_member(is_early: bool, head: &RequestHead, input: &[u8], edits: &mut RequestEdits) {
    let says_so = || {
        head.fields
            .iter()
            .any(|field| field.forward && field.name.of(input).eq_ignore_ascii_case(EARLY_DATA))
    };
    if is_early && !says_so() {
        edits.fields.add(EARLY_DATA, |out| out.extend_from_slice(b"1"));
    }
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
