//! TLS of an engine's users: handshakes, and bytes that come and go encrypted.

use std::io::IoSlice;

use weir_dataplane::event_loop::EventLoop;

use super::super::fault::Fault;
use super::super::share::now_us;
use super::super::tls::TlsClient;
use super::super::user::State;
use super::Engine;

impl Engine {
    /// TCP is open: begins TLS, where it is asked for.
    pub(super) fn begin_handshake(&mut self, io: &mut EventLoop, index: u32, since_us: u64) {
        let (Some(config), Some(plan)) = (&self.tls, &self.plan.tls) else {
            return self.opened(io, index, since_us, false);
        };
        match TlsClient::new(config, plan) {
            Ok(tls) => {
                let user = &mut self.users[index as usize];
                user.tls = Some(Box::new(tls));
                user.state = State::Handshaking { since_us };
                self.flush_tls(io, index);
            }
            Err(error) => self.handshake_failed(io, index, Fault::Handshake(error)),
        }
    }

    /// Takes encrypted bytes of the server; passes on what they say.
    pub(super) fn receive_tls(&mut self, io: &mut EventLoop, index: u32, bytes: &[u8]) {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let user = &mut self.users[index as usize];
        let Some(tls) = &mut user.tls else {
            self.plain = plain;
            return;
        };
        let received = tls.receive(bytes, &mut plain);
        let (is_open, is_resumed) = (tls.is_open(), tls.is_resumed());
        // Also what a failed handshake says to the peer.
        self.flush_tls(io, index);
        match (self.users[index as usize].state, received) {
            (State::Handshaking { .. }, Err(error)) => {
                self.handshake_failed(io, index, Fault::Handshake(error));
            }
            (State::Handshaking { since_us }, Ok(())) if is_open => {
                self.opened(io, index, since_us, is_resumed);
            }
            (State::Busy(request), Err(error)) => self.lost(io, index, request, Fault::Tls(error)),
            (_, Err(_)) => self.over(io, index, None),
            (_, Ok(())) => {}
        }
        if !plain.is_empty() {
            self.take(io, index, &plain);
        }
        self.plain = plain;
    }

    /// Counts a connection that was opened and never became usable.
    pub(super) fn handshake_failed(&mut self, io: &mut EventLoop, index: u32, fault: Fault) {
        self.connecting -= 1;
        self.close(io, index);
        self.not_opened(index, now_us(), fault);
    }

    /// Sends what TLS has to say.
    pub(super) fn flush_tls(&mut self, io: &mut EventLoop, index: u32) {
        let user = &mut self.users[index as usize];
        if let (Some(tls), Some(token)) = (&mut user.tls, user.token) {
            self.out.clear();
            tls.take_output(&mut self.out);
            if !self.out.is_empty() {
                io.send(token, &[IoSlice::new(&self.out)]);
            }
        }
    }
}
