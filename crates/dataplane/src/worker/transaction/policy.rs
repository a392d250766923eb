//! Policies, limits and persistence on a request's way: what was decided, carried out.

use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_config::snapshot::Address;
use weir_core::expression::{Facts, ResponseFacts};
use weir_core::policy::{AnswerBody, Decision, End, RewriteError};
use weir_http::edits::FieldEdits;
use weir_http::message::{RequestHead, ResponseHead, Scheme};

use crate::access_log::Termination;
use crate::arena::ClientKey;
use crate::client_address::{client_of, tell_member};
use crate::client_tls::ClientTls;
use crate::pool::Wish;
use crate::reports::Event;
use crate::sticky::Sticky;
use crate::table::LocalServer;
use crate::traffic::{Traffic, Verdict};
use crate::worker::SOCKET_EVENT_INTERVAL_MS;
use crate::worker::transaction::considered::{Considered, Ending};
use crate::worker::transaction::exchange::Exchange;
use crate::worker::transaction::extras::{Extras, SPARE_BYTES_MAX, SPARE_MAX};
use crate::worker::world::{Desk, World};

impl Desk<'_> {
    /// Decides about a request of a virtual server that does more than hand it on.
    pub fn consider(
        &mut self,
        key: ClientKey,
        server: &LocalServer,
        traffic: &Traffic,
        (head, input): (&RequestHead, &[u8]),
        decision: &mut Decision,
    ) -> Option<Considered> {
        let client = self.world.clients.get(key)?;
        let peer = client.address();
        let tls = client.tls.clone();
        let facts = Facts {
            request: head,
            request_input: input,
            client: client_of(&server.settings().client_address, peer, head, input),
            server: server_address(client.listen()),
            scheme: if tls.is_some() { Scheme::Https } else { Scheme::Http },
            tls: tls.as_deref().map(ClientTls::facts),
            response: None,
        };
        let mut scratch = self.world.scratch.take();
        let mut fields = traffic.fields();
        let mut evaluation = fields.begin(facts);
        let (live, now) = (&server.live, self.io.clock());
        let mut held = std::mem::take(&mut self.world.held);
        let scratches = (&mut *scratch, &mut held);
        // What is relayed asks for no host but that of its handshake.
        let is_misdirected = !server.settings().service.is_tcp()
            && self.world.is_misdirected(key, server, head, input);
        let verdict = match is_misdirected {
            true => traffic.refuse_misdirected(&facts, &mut evaluation, decision),
            false => traffic.decide(&facts, &mut evaluation, live, now, decision, scratches),
        };
        if let Verdict::Forward(_) = verdict {
            let settings = &server.settings().client_address;
            tell_member(settings, peer, &facts, &mut decision.request, &mut scratch);
        }
        self.world.scratch.give(scratch);
        traffic.count(self.world.id, decision);
        self.world.tell(decision);
        let counters = server.live.counters.of(self.world.id);
        let mut considered = Considered {
            pool: server.settings().pool,
            wish: Wish::Any,
            not_before_us: 0,
            extras: None,
            ending: None,
        };
        let mut kept = None;
        match verdict {
            Verdict::Forward(route) => {
                considered.pool = route.pool;
                considered.wish = route.wish;
                considered.not_before_us = route.not_before_us;
                kept = route.kept;
                counters
                    .requests_delayed
                    .add(u64::from(route.not_before_us > self.io.clock().now_us()));
            }
            Verdict::End { not_before_us } => {
                considered.not_before_us = not_before_us;
                counters.requests_delayed.add(u64::from(not_before_us > self.io.clock().now_us()));
                counters.requests_ended_by_policy.add(1);
                considered.ending = Some(Ending::Policy);
            }
            Verdict::Limited { retry_after_s } => {
                counters.requests_limited.add(1);
                considered.ending = Some(Ending::Limited { retry_after_s });
            }
            Verdict::Misdirected => considered.ending = Some(Ending::Misdirected),
            Verdict::LimitClosed => {
                counters.requests_limited.add(1);
                considered.ending = Some(Ending::Closed);
            }
            Verdict::Failed(error) => {
                counters.rewrites_failed.add(1);
                self.tell_of_rewrite(server, error);
                considered.ending = Some(Ending::Failed);
            }
        }
        // No rule looks at what its connection must not be asked.
        let is_for_rules =
            traffic.has_response_rules && considered.ending != Some(Ending::Misdirected);
        let is_remembered = kept.is_some()
            || !held.is_empty()
            || is_for_rules
            || server.http.rewrite_location
            || !decision.response.is_empty()
            || !decision.marks.is_empty();
        if is_remembered {
            let mut extras = self.world.spare_extras.pop().unwrap_or_default();
            extras.take(decision, kept);
            std::mem::swap(&mut extras.held, &mut held);
            if is_for_rules {
                extras.keep_request(&facts, tls.clone());
            }
            if server.http.rewrite_location && considered.ending.is_none() {
                let is_secure = traffic.pool(considered.pool).settings().tls.is_some();
                let member = if is_secure { Scheme::Https } else { Scheme::Http };
                extras.names.take(&facts, member, &mut decision.request);
            }
            considered.extras = Some(extras);
        }
        self.world.held = held;
        Some(considered)
    }
}

impl World {
    /// Hands the lines that policies wrote to the event log.
    fn tell(&self, decision: &Decision) {
        for line in decision.messages.iter() {
            let text = String::from_utf8_lossy(line).into_owned();
            if self.policy_lines.try_send(Event::Policy { text }).is_err() {
                self.counters.of(self.id).policy_lines_dropped.add(1);
            }
        }
    }
}

impl Desk<'_> {
    fn tell_of_rewrite(&mut self, server: &LocalServer, error: RewriteError) {
        let what = match error {
            RewriteError::Path => "the new path is not a valid path, or has a dot-segment",
            RewriteError::Query => "the new query has characters that may not stand there",
            RewriteError::Host => "the new host is not a valid host",
            RewriteError::Length => "the new text is longer than any head may be",
        };
        let text = format!(
            "a rewritten request of the virtual server {} cannot be sent: {what}",
            server.live.name
        );
        // The counter has it in any case; every request may be such a one.
        let now_ms = self.io.now_ms();
        if now_ms < self.world.rewrite_event_ms {
            return;
        }
        self.world.rewrite_event_ms = now_ms + SOCKET_EVENT_INTERVAL_MS;
        let _ = self.world.events.try_send(Event::Policy { text });
    }
}

impl Exchange {
    /// The changes to the response of an exchange: those decided with the request, those of rules for
    /// responses, the cookie of its persistence. They are left in `edits`.
    pub fn edit_response(
        &mut self,
        at: &mut Desk<'_>,
        head: &ResponseHead,
        input: &[u8],
        edits: &mut FieldEdits,
    ) {
        edits.clear();
        let Some(mut extras) = self.ends.extras.take() else { return };
        let server = Rc::clone(&self.ends.server);
        let member = self.ends.attempt.member();
        std::mem::swap(edits, &mut extras.response);
        if let Some(traffic) = server.traffic.as_ref().filter(|traffic| traffic.has_response_rules)
        {
            let mut decision = at.world.response_decision.take().unwrap_or_default();
            std::mem::swap(edits, &mut decision.response);
            std::mem::swap(&mut extras.marks, &mut decision.marks);
            if let Some(facts) = extras.facts(ResponseFacts { head, input }) {
                let mut fields = traffic.fields();
                let mut evaluation = fields.begin(facts);
                decision.follow_response(&traffic.settings().policies, &mut evaluation, &facts);
            }
            traffic.count(at.world.id, &decision);
            at.world.tell(&decision);
            if decision.is_uncompressed {
                self.codings = None;
            }
            std::mem::swap(edits, &mut decision.response);
            std::mem::swap(&mut extras.marks, &mut decision.marks);
            decision.clear();
            at.world.response_decision = Some(decision);
        }
        // Without bytes it is an answer of weir's own.
        if let (true, Some(member), false) =
            (server.http.rewrite_location, member, input.is_empty())
        {
            let address = &self.ends.tries.pool.settings().members[member as usize].address;
            extras.names.change_location(head, input, address, edits);
        }
        if extras.kept.is_some()
            && let Some(member) = member
        {
            let client = at.world.clients.get(self.ends.client);
            let is_tls = client.is_some_and(|client| client.tls.is_some());
            at.world.remember(&server, &extras, (member, is_tls), edits);
        }
        extras.note_response_edits(head, edits);
        self.ends.extras = Some(extras);
    }
}

impl World {
    /// The changes to a response of weir's own to what is no request, or was not read as one: those of rules that always hold,
    /// and of rules for responses. They are left in `edits`.
    pub fn edit_refusal(
        &mut self,
        key: ClientKey,
        server: &LocalServer,
        status: u16,
        edits: &mut FieldEdits,
    ) {
        edits.clear();
        let Some(traffic) = server.traffic.as_ref() else { return };
        let Some(client) = self.clients.get(key) else { return };
        // What came was no TLS, though it has to be: nothing of what is meant for such clients is for this one.
        let is_plain = client.tls.is_none() && server.tls.is_some();
        if is_plain || !(traffic.edits_responses || traffic.has_response_rules) {
            return;
        }
        let (nothing, mut head) = (RequestHead::new(), ResponseHead::new());
        head.status = status;
        let facts = Facts {
            request: &nothing,
            request_input: b"",
            client: client.address(),
            server: server_address(client.listen()),
            scheme: if client.tls.is_some() { Scheme::Https } else { Scheme::Http },
            tls: client.tls.as_deref().map(ClientTls::facts),
            response: Some(ResponseFacts { head: &head, input: b"" }),
        };
        let mut decision = self.response_decision.take().unwrap_or_default();
        let mut fields = traffic.fields();
        let mut evaluation = fields.begin(facts);
        let policies = &traffic.settings().policies;
        decision.edit_response_unconditionally(policies, &mut evaluation, &facts);
        decision.follow_response(policies, &mut evaluation, &facts);
        traffic.count(self.id, &decision);
        self.tell(&decision);
        std::mem::swap(edits, &mut decision.response);
        decision.clear();
        self.response_decision = Some(decision);
    }

    /// The client is at this member now: it, or the table, is told where that is news.
    fn remember(
        &self,
        server: &LocalServer,
        extras: &Extras,
        (member, is_tls): (u32, bool),
        edits: &mut FieldEdits,
    ) {
        let Some(kept) = &extras.kept else { return };
        let counters = server.live.counters.of(self.id);
        let is_same = kept.known == Some(member);
        match kept.known {
            Some(_) if is_same => counters.persistence_kept.add(1),
            Some(_) => counters.persistence_moved.add(1),
            None => {}
        }
        match &*kept.sticky {
            Sticky::Insert(insert) if !is_same || kept.is_stale => {
                edits.add(b"Set-Cookie", |out| {
                    insert.write_field(member, is_tls, &extras.other_tokens, out);
                });
            }
            Sticky::Source(_)
            | Sticky::Insert(_)
            | Sticky::Passive { .. }
            | Sticky::Hash { .. }
            | Sticky::PathParameter { .. } => {}
        }
    }
}

impl Exchange {
    /// Ends an exchange that gets no member.
    pub fn end_early(&mut self, at: &mut Desk<'_>, ending: Ending, decision: &mut Decision) {
        match ending {
            Ending::Limited { retry_after_s } => {
                let mut fields = FieldEdits::default();
                fields.add(b"Retry-After", |out| {
                    out.extend_from_slice(retry_after_s.to_string().as_bytes());
                });
                self.respond_adding(at, 429, Termination::RateLimit, fields);
            }
            // Not even with a page: it might be that of another name.
            Ending::Misdirected => {
                let termination = Termination::Misdirected;
                self.respond_with(at, 421, termination, &FieldEdits::NONE, None);
            }
            Ending::Failed => self.respond(at, 500, Termination::PolicyFailed),
            Ending::Closed => self.end_unanswered(at, Termination::RateLimit, false),
            Ending::Policy => match &decision.end {
                Some(End::Answer { status, body }) => {
                    let (status, fields) = (*status, &mut decision.answer);
                    let page = self.error_page(status);
                    let body = match body {
                        AnswerBody::Fixed(bytes) => bytes,
                        AnswerBody::Made => &decision.body[..],
                        AnswerBody::None => page.as_ref().map_or(&b""[..], |page| {
                            let content_type = page.content_type.as_bytes();
                            fields.set(b"Content-Type", |out| out.extend_from_slice(content_type));
                            &page.body
                        }),
                    };
                    let termination = Termination::Policy;
                    self.respond_with(at, status, termination, fields, Some(body));
                }
                Some(End::Reset) => {
                    self.end_unanswered(at, Termination::Policy, true);
                }
                Some(End::Close) | None => {
                    self.end_unanswered(at, Termination::Policy, false);
                }
            },
        }
    }
}

impl World {
    /// Gives back what was remembered of a request, and what it held.
    pub fn give_extras(&mut self, extras: Option<Box<Extras>>) {
        let Some(mut extras) = extras else { return };
        extras.clear();
        if self.spare_extras.len() < SPARE_MAX && extras.kept_bytes() <= SPARE_BYTES_MAX {
            self.spare_extras.push(extras);
        }
    }
}

impl Exchange {
    /// Tells the client how long its response took, where that is wanted.
    #[inline]
    pub fn time_response(&self, edits: &mut FieldEdits) {
        if self.ends.server.settings().server_timing {
            let (own_us, member_us) = self.times_us();
            edits.add(b"Server-Timing", |out| {
                let ms = |us: u64| us as f64 / 1_000.0;
                let (own, member) = (ms(own_us), ms(member_us));
                write!(out, "weir;dur={own:.3}, member;dur={member:.3}")
                    .expect("a vector takes what is written to it");
            });
        }
    }
}

/// Where a client came in, if that is an address.
fn server_address(listen: &Address) -> Option<SocketAddr> {
    match listen {
        Address::Socket(address) => Some(*address),
        Address::Unix(_) => None,
    }
}
