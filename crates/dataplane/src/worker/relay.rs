//! Virtual servers of `type: tcp`: a connection goes to a member as a whole, its bytes as they are.
//!
//! | step | done by |
//! |---|---|
//! | what it begins with, where that has to be known: PROXY header, ClientHello | `relay_preface` |
//! | an exchange without a request, in [`Phase::Connect`] | `begin_relay`, then `dispatch` |
//! | a member is there | `relay_connected`: from now on it is a tunnel |
//! | bytes, ends, idleness | `tunnel.rs`, as after a change of protocol |
//! | it ended, or never began | `count_relay`, the access log |
//!
//! What a client sends before its member is there stays with it, but for one read at most; so a further
//! member can be tried without anything lost. An end that is no orderly one is passed on as a reset: a
//! part must not look like the whole.

use std::io::IoSlice;
use std::rc::Rc;

use weir_config::snapshot::AccessFormat;
use weir_event_loop::EventLoop;
use weir_http::message::{Framing, Method, Version};
use weir_tls::Alert;
use weir_tls::client_hello::{Peek, begins_a_handshake, peek};

use super::Worker;
use super::ends::After;
use super::exchange::{Begin, Exchange};
use super::own_response::OwnBytes;
use super::pace::Pace;
use super::stage::Stage;
use super::world::{Desk, World};
use crate::access_log::Termination;
use crate::arena::ClientKey;
use crate::client_tls::ClientTls;
use crate::counters::VirtualServerCounters;
use crate::pool::Wish;

impl Worker {
    /// Looks at what a client has sent so far, as far as that decides where it goes. True: it is on its way.
    pub fn relay_preface(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> bool {
        self.world.refresh_server(key);
        let Some(client) = self.world.clients.get_mut(key) else { return false };
        let server = Rc::clone(&client.server);
        let Some(relay) = server.settings().relay.as_deref().filter(|_| server.tls.is_none())
        else {
            // A reload has made something else of the virtual server: nobody knows what was meant for it.
            self.desk(io).close_client(key);
            return false;
        };
        let default = server.settings().pool;
        let Some(names) = &relay.names else {
            self.begin_relay(io, key, default, "");
            return true;
        };
        if input.len() < client.hello_bytes.max(1) {
            return false;
        }
        match peek(input) {
            Peek::Partial(bytes) => {
                client.hello_bytes = bytes;
                false
            }
            Peek::Hello(hello) => {
                let name = hello.server_name;
                client.tls = Some(Rc::new(ClientTls::asked(&name)));
                match names.pool(&name, default) {
                    Some(pool) => self.begin_relay(io, key, pool, &name),
                    None => {
                        let alert = Some(Alert::UnrecognizedName);
                        self.desk(io).refuse_unrelayed(
                            key,
                            alert,
                            &name,
                            Termination::UnknownServerName,
                        );
                    }
                }
                true
            }
            Peek::Malformed(_, alert) => {
                match names.pool("", default) {
                    Some(pool) => self.begin_relay(io, key, pool, ""),
                    None => {
                        let alert = begins_a_handshake(input).then_some(alert);
                        self.desk(io).refuse_unrelayed(
                            key,
                            alert,
                            "",
                            Termination::ClientMalformed,
                        );
                    }
                }
                true
            }
        }
    }
}

impl World {
    /// Whether a reload has made a relay of the virtual server that a client sends its next request to.
    pub fn is_relayed_now(&mut self, key: ClientKey) -> bool {
        self.refresh_server(key);
        let Some(client) = self.clients.get(key) else { return false };
        client.server.settings().relay.is_some()
    }
}

impl Worker {
    /// A client's TLS ends here, and it has asked for this name: its plain bytes are relayed.
    pub fn relay_secured(&mut self, io: &mut EventLoop, key: ClientKey, name: &str) {
        let Some(client) = self.world.clients.get(key) else { return };
        let server = Rc::clone(&client.server);
        let default = server.settings().pool;
        let names = server.settings().relay.as_ref().and_then(|relay| relay.names.as_ref());
        match names.map_or(Some(default), |names| names.pool(name, default)) {
            Some(pool) => self.begin_relay(io, key, pool, name),
            None => self.desk(io).refuse_unrelayed(key, None, name, Termination::UnknownServerName),
        }
    }

    /// Sends a connection on its way to a member of the pool at this index.
    fn begin_relay(&mut self, io: &mut EventLoop, key: ClientKey, pool: usize, name: &str) {
        let Some(client) = self.world.clients.get(key) else { return };
        let server = Rc::clone(&client.server);
        io.clear_deadline(client.token);
        let (pool, wish, extras) = match &server.traffic {
            None => (Rc::clone(&server.pool), Wish::Any, None),
            Some(traffic) => {
                let mut decision = self.world.decision.take().unwrap_or_default();
                let mut nothing = self.inbox.request_head.take().unwrap_or_default();
                nothing.clear();
                decision.pool = Some(pool as u32);
                let request = (&*nothing, &b""[..]);
                let found = self.desk(io).consider(key, &server, traffic, request, &mut decision);
                decision.clear();
                (self.world.decision, self.inbox.request_head) = (Some(decision), Some(nothing));
                let Some(found) = found else { return };
                debug_assert_eq!(
                    found.ending, None,
                    "nothing is decided of a connection but its member"
                );
                if found.ending.is_some() {
                    return self.desk(io).refuse_unrelayed(key, None, name, Termination::Policy);
                }
                (Rc::clone(traffic.pool(found.pool)), found.wish, found.extras)
            }
        };
        let log_format = self.world.log.format();
        let mut log_request = Vec::new();
        if log_format != AccessFormat::Off {
            log_request = io.take_buffer();
            self.world.log.connection_part(name, &mut log_request);
        }
        let exchange = self.begin(
            io,
            Begin {
                client: key,
                stream: None,
                server,
                pool,
                wish,
                extras,
                codings: None,
                method: Method::Connect,
                version: Version::Http11,
                keep_alive: false,
                client_closes: true,
                upgrade_bytes: 0,
                websocket: None,
                framing: Framing::None,
                pace: Pace::Steady,
                request: Vec::new(),
                log_format,
                log_request,
            },
        );
        if let Some(client) = self.world.clients.get_mut(key) {
            client.stage = Stage::Exchange(exchange);
        }
        self.with(io, exchange, |it, at| it.dispatch(at));
    }
}

impl Exchange {
    /// The member connection of a relayed client is open.
    pub fn relay_connected(&mut self, at: &mut Desk<'_>) {
        let clock = at.io.clock();
        if let Some(member) = self.ends.attempt.member() {
            let live = &self.tries.pool.members[member as usize].live;
            if self.tries.pool.is_timed() {
                let elapsed_us = clock.now_us().saturating_sub(self.try_us());
                live.note_response_time(clock.now_ms(), elapsed_us, false);
            }
            live.mark_success(clock.now_ms());
            let kept = self.ends.extras.as_ref().and_then(|extras| extras.kept.as_ref());
            let counters = self.ends.server.live.counters.of(at.world.id);
            match kept.and_then(|kept| kept.known) {
                Some(known) if known == member => counters.persistence_kept.add(1),
                Some(_) => counters.persistence_moved.add(1),
                None => {}
            }
        }
        self.ends.over = Some(After::Tunnel { has_member_ended: false });
    }
}

impl Desk<'_> {
    /// Closes a client that begins with nothing that leads anywhere.
    fn refuse_unrelayed(
        &mut self,
        key: ClientKey,
        alert: Option<Alert>,
        name: &str,
        why: Termination,
    ) {
        self.note_unrelayed(key, name, why);
        let Some(client) = self.world.clients.get(key) else { return };
        let token = client.token;
        match alert {
            Some(alert) => {
                self.io.send(token, &[IoSlice::new(&alert.record())]);
                self.leave(key, true);
            }
            None => self.cut_client(key, true),
        }
    }

    /// Closes a client that was not relayed, with a reset.
    pub fn refuse_relay(&mut self, key: ClientKey, why: Termination) {
        self.note_unrelayed(key, "", why);
        self.cut_client(key, true);
    }

    /// Counts and logs a connection that was not relayed.
    fn note_unrelayed(&mut self, key: ClientKey, name: &str, why: Termination) {
        let Some(client) = self.world.clients.get(key) else { return };
        count_relay(client.server.live.counters.of(self.world.id), why);
        let mut about = Vec::new();
        self.world.log.connection_part(name, &mut about);
        self.log_without_member(key, &about, 0, OwnBytes::default(), why);
    }

    /// A client ended, or broke, before it was known where it goes.
    pub fn preface_ended(&mut self, key: ClientKey) {
        // Somebody looked whether anybody listens.
        let Some(client) = self.world.clients.get(key) else { return };
        if !client.has_input() {
            return self.close_client(key);
        }
        let Some(client) = self.world.clients.get(key) else { return };
        client.server.live.counters.of(self.world.id).client_aborts.add(1);
        self.refuse_relay(key, Termination::ClientAbort);
    }
}

/// Counts how a relayed connection ended, or why it did not begin.
pub fn count_relay(counters: &VirtualServerCounters, termination: Termination) {
    let counter = match termination {
        Termination::Complete => &counters.relays_complete,
        Termination::ClientAbort | Termination::ClientTimeout => &counters.relays_client_abort,
        Termination::MemberAbort | Termination::MemberTimeout => &counters.relays_member_abort,
        Termination::IdleTimeout => &counters.relays_idle_timeout,
        Termination::NoMember => &counters.relays_no_member,
        Termination::MemberConnect => &counters.relays_member_connect,
        Termination::QueueTimeout => &counters.relays_queue_timeout,
        Termination::HelloTimeout => &counters.relays_hello_timeout,
        Termination::ClientMalformed => &counters.relays_client_malformed,
        Termination::UnknownServerName => &counters.relays_unknown_server_name,
        Termination::Stopped => &counters.relays_stopped,
        // Counted as what they are: connections refused and limited, handshakes.
        _ => return,
    };
    counter.add(1);
}
