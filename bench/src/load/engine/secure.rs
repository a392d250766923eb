//! TLS handshakes of an engine's users. The event loop does the protocol; this part counts the results.

use weir_event_loop::EventLoop;
use weir_tls::{HandshakeResult, TlsError};

use super::super::fault::Fault;
use super::super::share::now_us;
use super::super::user::State;
use super::Engine;

impl Engine {
    /// The TCP connection is open: starts TLS if the plan has it.
    pub(super) fn begin_handshake(&mut self, io: &mut EventLoop, index: u32, since_us: u64) {
        let Some(tls) = &self.tls else {
            return self.opened(io, index, since_us);
        };
        let user = &mut self.users[index as usize];
        match (tls.session(index), user.token) {
            (Ok(session), Some(token)) => {
                user.state = State::Handshaking { since_us };
                io.sockets.secure(token, session, &[]);
            }
            (Err(error), _) => self.handshake_failed(io, index, Fault::Handshake(error)),
            (Ok(_), None) => {}
        }
    }

    /// The handshake is complete.
    pub(super) fn established(&mut self, io: &mut EventLoop, index: u32, with: &HandshakeResult) {
        let State::Handshaking { since_us } = self.users[index as usize].state else {
            return;
        };
        if let Some(what) = self.tls.as_ref().and_then(|tls| tls.mismatch(with)) {
            return self.handshake_failed(io, index, Fault::Negotiated(what));
        }
        let is_measured = self.is_measuring(since_us);
        let tally = self.tally(is_measured);
        tally.sessions_resumed += u64::from(with.is_resumed);
        tally.handshakes_full += u64::from(!with.is_resumed);
        self.opened(io, index, since_us);
    }

    /// The server violated the TLS protocol.
    pub(super) fn tls_failed(&mut self, io: &mut EventLoop, index: u32, error: &TlsError) {
        match self.users[index as usize].state {
            State::Handshaking { .. } => {
                self.handshake_failed(io, index, Fault::Handshake(error.clone()));
            }
            State::Busy(request) => self.lost(io, index, request, Fault::Tls(error.clone())),
            State::Multiplexed => self.lost_streams(io, index, &Fault::Tls(error.clone())),
            _ => self.over(io, index, None),
        }
    }

    /// Counts an opened connection whose handshake failed.
    pub(super) fn handshake_failed(&mut self, io: &mut EventLoop, index: u32, fault: Fault) {
        self.connecting -= 1;
        self.close(io, index);
        self.not_opened(index, now_us(), fault);
    }
}
