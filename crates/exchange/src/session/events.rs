//! What a session does when something happens.

use weir_core::datagram::Train;

use crate::local::member::LocalMember;
use crate::parts::failure::{Blame, MemberFailure};
use crate::parts::notice::Notice;
use crate::session::Session;
use crate::session::edge::SessionEdge;
use crate::termination::Termination;
use crate::transaction::relay::count_relay;

/// The first datagram is kept for a retry on another member if it has at most this many bytes.
const HELD_BYTES_MAX: usize = 4_096;
/// Minimum response time that is recorded for a failure when members are compared by response time.
const FAILED_US_MIN: u64 = 100_000;

impl<S: Copy> Session<S> {
    /// Handles datagrams of the client. Returns the datagrams that this session does not accept; the caller begins
    /// another session with them. Each call accepts at least one datagram or ends the session.
    pub fn client_sent<'t>(
        &mut self,
        at: &mut impl SessionEdge<Socket = S>,
        train: Train<'t>,
    ) -> Option<Train<'t>> {
        let own = self.own(at, train);
        if own == 0 {
            // The connection IDs belong to another client, which uses this port by now.
            self.end(at, Termination::ClientAbort);
            return Some(train);
        }
        let (taken, rest) = train.split(self.room().min(own));
        let Some(taken) = taken else { return rest };
        let is_first = self.account.datagrams_received == 0;
        let count = taken.count() as u64;
        self.account.datagrams_received += count;
        self.account.bytes_received += taken.bytes.len() as u64;
        let counters = &self.server.counters;
        counters.datagrams_received.add(count);
        counters.bytes_received.add(taken.bytes.len() as u64);
        if is_first && count == 1 && taken.bytes.len() <= HELD_BYTES_MAX && self.tries.left() > 0 {
            self.held.extend_from_slice(taken.bytes);
        }
        match self.socket {
            Some(_) => self.pass(at, taken, is_first),
            None => self.find_member(at, taken),
        }
        rest
    }

    /// Sends datagrams to the member.
    pub(super) fn pass(
        &mut self,
        at: &mut impl SessionEdge<Socket = S>,
        train: Train<'_>,
        is_first: bool,
    ) {
        let Some(socket) = self.socket else { return };
        let outcome = match is_first && self.proxies() {
            true => at.introduce(self, train),
            false => at.to_member(socket, train),
        };
        match outcome {
            Ok(()) => {
                if let Some(lease) = &self.lease {
                    let member = &lease.pool.members[lease.member as usize];
                    member.counters.bytes_sent.add(train.bytes.len() as u64);
                }
                self.wait(at);
            }
            Err(failure) => self.member_failed_with(at, failure, train),
        }
        if self.over.is_none() && self.is_answered() {
            self.end(at, Termination::Complete);
        }
    }

    fn proxies(&self) -> bool {
        self.tries.pool.settings().proxy_protocol.is_some()
    }

    /// Whether no more answers are expected.
    fn is_answered(&self) -> bool {
        let answers = self.account.datagrams_sent;
        self.room() == 0 && self.settings.responses_max.is_some_and(|max| answers >= max.into())
    }

    /// Restarts the idle timeout.
    fn wait(&self, at: &mut impl SessionEdge<Socket = S>) {
        if let Some(socket) = self.socket {
            at.due(socket, at.turn().now_ms() + self.settings.idle_timeout_ms);
        }
    }

    /// Handles answers of the member.
    pub fn member_sent(&mut self, at: &mut impl SessionEdge<Socket = S>, train: Train<'_>) {
        if self.account.answered_us == 0 {
            self.first_answer(at);
        }
        self.learn(at, train);
        if let Some(lease) = &self.lease {
            let counters = &lease.pool.members[lease.member as usize].counters;
            counters.bytes_received.add(train.bytes.len() as u64);
        }
        let counters = &self.server.counters;
        let allowed = train.split(self.allowed(train)).0;
        let count = allowed.map_or(0, |train| train.count());
        if count < train.count() {
            counters.answers_dropped.add((train.count() - count) as u64);
            self.has_dropped = true;
        }
        if let Some(train) = allowed {
            counters.datagrams_sent.add(count as u64);
            counters.bytes_sent.add(train.bytes.len() as u64);
            self.account.datagrams_sent += count as u64;
            self.account.bytes_sent += train.bytes.len() as u64;
            at.to_client(self.source, train);
        }
        self.wait(at);
        if self.is_answered() {
            self.end(at, Termination::Complete);
        }
    }

    /// How many datagrams of the client belong to this session: all, unless connection IDs show otherwise.
    #[inline]
    fn own(&mut self, at: &impl SessionEdge<Socket = S>, train: Train<'_>) -> usize {
        let Some(kept) = &mut self.kept else { return usize::MAX };
        // Without a virtual server for a new session, this session keeps all datagrams.
        let Some(server) = at.server_in_force(self.source.listener) else { return usize::MAX };
        let label = self.account.member.as_ref().map(|member| &*member.live.label);
        kept.own(server, train, label, at.turn().clock)
    }

    /// Remembers the member's connection IDs, if persistence uses them.
    fn learn(&mut self, at: &impl SessionEdge<Socket = S>, train: Train<'_>) {
        let (Some(kept), Some(member)) = (&mut self.kept, &self.account.member) else { return };
        let server = at.server_in_force(self.source.listener);
        kept.learn(server, train, &member.live.label, at.turn().clock);
    }

    /// How many of these answers `amplification_max` allows.
    fn allowed(&self, train: Train<'_>) -> usize {
        let Some(max) = self.settings.amplification_max else { return train.count() };
        let account = &self.account;
        let room = account.bytes_received.saturating_mul(max.into());
        let room = room.saturating_sub(account.bytes_sent);
        if train.bytes.len() as u64 <= room {
            return train.count();
        }
        (room / train.size.max(1) as u64) as usize
    }

    /// The first answer: counts as a success of the member.
    fn first_answer(&mut self, at: &mut impl SessionEdge<Socket = S>) {
        let now = at.turn().clock;
        self.account.answered_us = now.now_us();
        self.held = Vec::new();
        let Some(lease) = &self.lease else { return };
        let local = &lease.pool.members[lease.member as usize];
        let elapsed_us = now.now_us().saturating_sub(self.account.tried_us);
        if lease.pool.is_timed() {
            local.live.note_response_time(now.now_ms(), elapsed_us, false);
        }
        lease.pool.counters.count_response_time(lease.member, elapsed_us);
        local.live.mark_success(now.now_ms());
    }

    /// The member's socket reported an error.
    pub fn member_failed(&mut self, at: &mut impl SessionEdge<Socket = S>) {
        let held = std::mem::take(&mut self.held);
        self.member_failed_with(at, MemberFailure::Connect, Train::one(&held));
        if self.over.is_none() {
            self.held = held;
        }
    }

    /// The member cannot be reached; `train` was sent or is to be sent.
    fn member_failed_with(
        &mut self,
        at: &mut impl SessionEdge<Socket = S>,
        failure: MemberFailure,
        train: Train<'_>,
    ) {
        let is_new = self.account.answered_us == 0;
        // A retry is only possible if `train` contains everything that the client has sent.
        let is_whole = self.account.datagrams_received == train.count() as u64
            && self.account.bytes_received == train.bytes.len() as u64;
        let failure = if is_new { failure } else { MemberFailure::Abort };
        self.tries.failure = Some(failure);
        self.release_member(at, Some(failure));
        let may_repeat = is_new
            && is_whole
            && self.tries.left() > 0
            && self.tries.pool.may_retry(at.turn().now_ms());
        if !may_repeat {
            return self.end(at, failure.termination());
        }
        self.find_member(at, train);
    }

    /// The idle timeout has passed.
    pub fn timed_out(&mut self, at: &mut impl SessionEdge<Socket = S>) {
        let is_awaited = self.settings.responses_max.is_some_and(|max| max > 0);
        if is_awaited && self.account.answered_us == 0 {
            self.release_member(at, Some(MemberFailure::Timeout));
            return self.end(at, Termination::MemberTimeout);
        }
        self.end(at, Termination::IdleTimeout);
    }

    /// Ends the session: releases the member, and counts and logs the session.
    pub fn end(&mut self, at: &mut impl SessionEdge<Socket = S>, why: Termination) {
        if self.over.is_some() {
            return;
        }
        if why == Termination::Complete && self.has_all_answers() {
            self.put_socket_back(at);
        }
        self.release_member(at, None);
        count_relay(&self.server.counters, why);
        self.over = Some(why);
        at.finish(self, why);
    }

    /// Whether exactly the expected number of answers arrived.
    fn has_all_answers(&self) -> bool {
        self.settings.per_socket_max > 1
            && !self.has_dropped
            && self
                .settings
                .responses_max
                .is_some_and(|max| self.account.datagrams_sent == u64::from(max))
    }

    /// Gives the socket back, for another session with this member.
    fn put_socket_back(&mut self, at: &mut impl SessionEdge<Socket = S>) {
        let Some(lease) = &self.lease else { return };
        let Some(socket) = self.socket.take() else { return };
        at.put_back(socket, &self.settings, &lease.pool, lease.member);
        lease.pool.members[lease.member as usize].counters.connections_open.subtract(1);
    }

    /// Releases the member and closes the socket. `failure`: counts as a failure of the member.
    pub(super) fn release_member(
        &mut self,
        at: &mut impl SessionEdge<Socket = S>,
        failure: Option<MemberFailure>,
    ) {
        if let Some(socket) = self.socket.take() {
            at.close(socket);
            if let Some(lease) = &self.lease {
                lease.pool.members[lease.member as usize].counters.connections_open.subtract(1);
            }
        }
        let Some(lease) = self.lease.take() else { return };
        let (pool, member) = (&lease.pool, lease.member);
        let LocalMember { live, counters, .. } = &*pool.members[member as usize];
        counters.requests_active.subtract(1);
        let Some(failure) = failure else { return };
        if !failure.is_of_member() {
            return pool.counters.unconnected.add(1);
        }
        match failure {
            MemberFailure::Connect | MemberFailure::ConnectTimeout => {
                counters.connect_failures.add(1);
            }
            _ => counters.response_failures.add(1),
        }
        let turn = at.turn();
        if pool.is_timed() {
            let elapsed_us = turn.now_us().saturating_sub(self.account.tried_us);
            live.note_response_time(turn.now_ms(), elapsed_us.max(FAILED_US_MIN), true);
        }
        if let Some(until_ms) = pool.mark_failure(member, turn.now_ms()) {
            let (member, why) = (&pool.members[member as usize], Blame::Failure(failure));
            member.live.note_ejection(why.to_bits());
            at.tell(Notice::Ejected { pool, member, until_ms, why });
        }
    }
}
