//! Requests in early data, before the client's handshake is complete (0-RTT, RFC 8470).
//!
//! An attacker can record the client's first message and send it again. Each session is accepted only once. Nevertheless,
//! only requests that are safe to repeat are served early.
//!
//! | request | treatment |
//! |---|---|
//! | GET, HEAD, OPTIONS, TRACE | served at once, with `Early-Data: 1` for the member |
//! | another method, or a change of protocol | waits until the handshake is complete |

use weir_http::message::{Method, RequestHead};

use crate::worker::state::client::Client;
use crate::worker::state::client_step::ClientStep;
use crate::worker::state::stage::Stage;

/// Whether a request must wait until the client's handshake is complete.
pub fn has_to_wait(is_early: bool, head: &RequestHead) -> bool {
    // RFC 9110 section 9.2.1.
    let is_safe =
        matches!(head.method, Method::Get | Method::Head | Method::Options | Method::Trace);
    is_early && (!is_safe || head.upgrade.is_some())
}

impl Client {
    /// The handshake of a client that has sent early data is complete: waiting requests continue.
    pub fn confirmed(&mut self) -> ClientStep {
        self.is_early = false;
        match self.stage {
            Stage::Idle | Stage::Head => ClientStep::Next,
            _ => ClientStep::Nothing,
        }
    }
}
