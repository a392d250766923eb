//! Virtual servers of `type: tcp`: a connection goes to a member as a whole, its bytes as they are.
//!
//! | step | done by |
//! |---|---|
//! | what it begins with, where that has to be known: PROXY header, ClientHello | `relay_preface` |
//! | it is on its way to a member | `begin_relay`, [`Relay`] |
//! | a member is there | `connected`: from now on it is a tunnel |
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
use weir_tls::Alert;
use weir_tls::client_hello::{Peek, begins_a_handshake, peek};

use crate::access_log::Termination;
use crate::arena::ClientKey;
use crate::client_tls::ClientTls;
use crate::counters::VirtualServerCounters;
use crate::pool::Wish;
use crate::worker::Worker;
use crate::worker::client::own_response::OwnBytes;
use crate::worker::client::stage::Stage;
use crate::worker::client::stream::StreamEnd;
use crate::worker::transaction::Transaction;
use crate::worker::transaction::account::Account;
use crate::worker::transaction::attempt::Attempt;
use crate::worker::transaction::ends::{After, Ends};
use crate::worker::transaction::exchange::{Loss, MemberFailure};
use crate::worker::transaction::parked::Parked;
use crate::worker::transaction::seeking::{Found, Need};
use crate::worker::transaction::tries::Tries;
use crate::worker::world::{Desk, World};

/// What was spoken on a kept connection is not for it.
const NEED: Need = Need {
    is_fresh: true,
    is_repeatable: false,
    is_tunnel: false,
    has_body: false,
    is_whole: true,
    is_sent: false,
    is_replayable: true,
};

impl Worker {
    /// Looks at what a client has sent so far, as far as that decides where it goes. True: it is on its way.
    pub fn relay_preface(&mut self, io: &mut EventLoop, key: ClientKey, input: &[u8]) -> bool {
        self.world.refresh_server(key);
        let Some(client) = self.world.clients.get_mut(key) else { return false };
        let server = Rc::clone(&client.server);
        let Some(relay) = server.settings().service.relay().filter(|_| server.tls.is_none()) else {
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
        client.server.settings().service.is_tcp()
    }
}

impl Worker {
    /// A client's TLS ends here, and it has asked for this name: its plain bytes are relayed.
    pub fn relay_secured(&mut self, io: &mut EventLoop, key: ClientKey, name: &str) {
        let Some(client) = self.world.clients.get(key) else { return };
        let server = Rc::clone(&client.server);
        let default = server.settings().pool;
        let names = server.settings().service.relay().and_then(|relay| relay.names.as_ref());
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
        pool.note_request(io.now_ms());
        let relay = Relay {
            ends: Ends {
                key: self.exchanges.next_key(),
                over: None,
                client: key,
                stream: None,
                tries: Tries::new(pool, wish),
                parked: Parked::No,
                reserved: None,
                attempt: Attempt::default(),
                server,
                extras,
                account: Account::begin(io.clock().now_us(), log_format, log_request),
            },
        };
        let relay = self.exchanges.insert(Transaction::Relay(relay));
        if let Some(client) = self.world.clients.get_mut(key) {
            client.stage = Stage::Exchange(relay);
        }
        self.with_any(io, relay, |it, at| it.go_on(at));
    }
}

/// A connection on its way to a member.
pub struct Relay {
    /// The two connections.
    pub ends: Ends,
}

impl Relay {
    /// Finds a member, and opens a connection to it.
    pub fn find_member(&mut self, at: &mut Desk<'_>) {
        match self.ends.find_member(at, NEED) {
            Found::Member | Found::Waits => {}
            Found::Nobody { .. } => {
                let (_, why) = self.ends.why_nobody(at);
                self.truncate(at, why);
            }
        }
    }

    /// The connection to its member is open: both ends are there.
    pub fn connected(&mut self, at: &mut Desk<'_>) {
        let clock = at.io.clock();
        let ends = &mut self.ends;
        ends.attempt.connected_us = clock.now_us();
        if let Some(member) = ends.attempt.member() {
            let live = &ends.tries.pool.members[member as usize].live;
            if ends.tries.pool.is_timed() {
                let elapsed_us = clock.now_us().saturating_sub(ends.attempt.try_us);
                live.note_response_time(clock.now_ms(), elapsed_us, false);
            }
            live.mark_success(clock.now_ms());
            let kept = ends.extras.as_ref().and_then(|extras| extras.kept.as_ref());
            let counters = ends.server.live.counters.of(at.world.id);
            match kept.and_then(|kept| kept.known) {
                Some(known) if known == member => counters.persistence_kept.add(1),
                Some(_) => counters.persistence_moved.add(1),
                None => {}
            }
        }
        ends.over = Some(After::Tunnel { has_member_ended: false });
    }

    /// The connection to its member could not be opened. Nothing has been taken from its client: another member can
    /// be tried.
    pub fn member_lost(&mut self, at: &mut Desk<'_>, loss: Loss) {
        let (ends, reason) = (&mut self.ends, loss.reason);
        ends.attempt.connection = None;
        ends.tries.failure = Some(reason);
        let may_repeat = !matches!(reason, MemberFailure::Timeout | MemberFailure::Malformed)
            && ends.tries.left() > 0
            && ends.tries.pool.may_retry(at.io.now_ms());
        ends.leave_member(at, (!loss.is_counted).then_some(reason), at.io.now_ms());
        if !may_repeat {
            return self.truncate(at, reason.termination());
        }
        ends.account.retries += 1;
        ends.tries.pool.live.counters.of(at.world.id).retries.add(1);
        self.find_member(at);
    }

    /// The client sends nothing more. Whether that is all that it wants.
    pub fn gives_up(&self) -> bool {
        self.ends.gives_up_its_place()
    }

    /// Ends with a reset: it must not look whole.
    pub fn truncate(&mut self, at: &mut Desk<'_>, why: Termination) {
        self.end(at, why, After::Broken { must_reset: true });
    }

    /// Ends because its client is gone; the client connection is the caller's to close.
    pub fn abandon(&mut self, at: &mut Desk<'_>, why: Termination) {
        self.end(at, why, After::Nothing);
    }

    fn end(&mut self, at: &mut Desk<'_>, why: Termination, after: After) {
        self.ends.reset_on_close(at, false);
        self.ends.drop_member(at);
        if self.ends.over.is_none() {
            count_relay(self.ends.server.live.counters.of(at.world.id), why);
            self.ends.end(at, why, StreamEnd::of_tunnel(why));
            self.ends.over = Some(after);
        }
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
