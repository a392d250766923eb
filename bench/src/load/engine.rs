//! One thread of the load: its users, their connections, and their requests.
//!
//! A *user* has one connection at a time. In a closed loop, it sends the next request when it has the response. In an
//! open loop, the schedule picks the user that has been idle for longest.

mod secure;
mod streams;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use weir_event_loop::{Descriptor, Endpoint, EventLoop, Handler, Owner, OwnerKey, Turns};
use weir_http::message::ResponseHead;
use weir_tls::{HandshakeResult, TlsError};

use crate::body_reader::FeedResult;

use super::answer::{Answer, FirstSeen};
use super::fault::Fault;
use super::http2::Scratch;
use super::pacing::Pacer;
use super::plan::{Extent, Plan};
use super::share::{Share, Signals, ThreadResult, now_us};
use super::tally::{CompletedResponses, Tally};
use super::targets::Rotation;
use super::tls::Sessions;
use super::under_way::Request;
use super::user::{State, User};

/// Maximum number of connections that a thread opens at the same time. More would overflow a listener's accept queue;
/// the kernel then retries only after a second.
const CONNECTING_MAX: usize = 256;
/// Time until the next attempt of a user whose connection failed or could not be opened.
const RETRY_REST_US: u64 = 100_000;
/// Time limit for a server to close a connection after the last response.
const ENDING_TIMEOUT_MS: u64 = 1_000;
/// Longest interval between two turns of the loop. Each turn checks signals and reports progress.
const TURN_US_MAX: u64 = 50_000;

/// One thread's load.
pub struct Engine {
    plan: Arc<Plan>,
    share: Share,
    signals: Arc<Signals>,
    rotation: Rotation,
    tls: Option<Sessions>,
    users: Vec<User>,
    /// Users that wait for a connection, in order of arrival.
    to_open: VecDeque<u32>,
    /// Users that rest after a failure: end of the rest in microseconds, and user.
    resting: VecDeque<(u64, u32)>,
    /// Users with an idle connection, the one idle for longest first.
    idle: VecDeque<u32>,
    connecting: usize,
    busy: usize,
    /// Number of users whose first attempt at a connection has ended, successfully or not.
    first_attempts: usize,
    /// Number of requests of the measurement that have begun.
    begun: u64,
    pacer: Option<Pacer>,
    warm_up: Tally,
    measured: Tally,
    completed: CompletedResponses,
    cpu_at_begin_s: Option<f64>,
    cpu_at_end_s: Option<f64>,
    last_done_us: u64,
    /// Facts about the first response to each target.
    first_seen: Vec<FirstSeen>,
    head: ResponseHead,
    scratch: Scratch,
    /// Users whose HTTP/2 connection has output.
    to_flush: Vec<u32>,
}

impl Engine {
    /// Creates the load of one thread. Opens no connection yet.
    pub fn new(plan: Arc<Plan>, share: Share, signals: Arc<Signals>) -> Self {
        let count = share.connections;
        let rotation = Rotation::new(&plan.targets, share.thread);
        let users = (0..count)
            .map(|index| User::new(rotation.group_of(index), share.source_of(&plan, index)))
            .collect();
        Self {
            tls: plan.tls.as_ref().map(|tls| Sessions::new(tls, count)),
            first_seen: vec![FirstSeen::default(); plan.targets.len()],
            rotation,
            users,
            to_open: (0..count as u32).collect(),
            resting: VecDeque::new(),
            idle: VecDeque::with_capacity(count),
            connecting: 0,
            busy: 0,
            first_attempts: 0,
            begun: 0,
            pacer: None,
            warm_up: Tally::new(),
            measured: Tally::new(),
            completed: CompletedResponses::default(),
            cpu_at_begin_s: None,
            cpu_at_end_s: None,
            last_done_us: 0,
            head: ResponseHead::new(),
            scratch: Scratch::new(),
            to_flush: Vec::new(),
            plan,
            share,
            signals,
        }
    }

    /// Runs until all requests of the plan were sent and their responses have arrived.
    pub fn run(&mut self, io: &mut EventLoop) -> std::io::Result<()> {
        self.open_some(io, now_us());
        Turns::precise().run(io, self)
    }

    /// The results of the thread.
    pub fn result(mut self) -> ThreadResult {
        self.note_unopened();
        let end_us = self.signals.end_us.load(Acquire);
        let begin_us = self.signals.begin_us.load(Acquire);
        let unsent = match (self.plan.extent, &self.pacer) {
            // Requests that would be due after the load was stopped are not missing.
            (Extent::Time(_), Some(pacer)) => pacer.left_between(begin_us, end_us.min(now_us())),
            // A load with a number of requests sends all of them.
            (Extent::Requests(_), _) | (_, None) => 0,
        };
        let cpu_at_end_s = self.cpu_at_end_s.unwrap_or_else(thread_cpu_s);
        let cpu_s = self.cpu_at_begin_s.map_or(0.0, |begin_s| cpu_at_end_s - begin_s);
        ThreadResult {
            warm_up: self.warm_up,
            measured: self.measured,
            completed: self.completed,
            unsent,
            cpu_s,
            last_done_us: self.last_done_us,
        }
    }

    /// Records an error if the load never had an open connection, even if it ended early.
    fn note_unopened(&mut self) {
        let opened = self.warm_up.connections_opened + self.measured.connections_opened;
        if opened > 0 || self.warm_up.errors_total() + self.measured.errors_total() > 0 {
            return;
        }
        for _ in 0..self.connecting {
            self.measured.error(&Fault::NotOpened);
        }
    }

    fn tally(&mut self, is_measured: bool) -> &mut Tally {
        if is_measured { &mut self.measured } else { &mut self.warm_up }
    }

    fn is_measuring(&self, at_us: u64) -> bool {
        at_us >= self.signals.begin_us.load(Relaxed)
    }

    /// Whether the time is within the measurement.
    fn is_in_window(&self, at_us: u64) -> bool {
        self.is_measuring(at_us) && at_us < self.signals.end_us.load(Relaxed)
    }

    /// Whether another request may begin.
    fn may_begin(&self, now_us: u64) -> bool {
        if self.plan.stop.load(Relaxed) || now_us >= self.signals.end_us.load(Relaxed) {
            return false;
        }
        self.share.requests_max.is_none_or(|requests_max| self.begun < requests_max)
    }

    // Opening and closing.

    /// Opens connections for waiting users, as many as the limits allow.
    fn open_some(&mut self, io: &mut EventLoop, now_us: u64) {
        while let Some(&(until_us, user)) = self.resting.front() {
            if until_us > now_us {
                break;
            }
            self.resting.pop_front();
            self.to_open.push_back(user);
        }
        // A load with a number of requests has no more attempts in progress than requests left, because each failed
        // attempt counts as one request.
        let wanted = self.share.requests_max.filter(|_| self.plan.rate.is_none());
        while self.connecting < CONNECTING_MAX
            && wanted.is_none_or(|wanted| self.begun + (self.connecting as u64) < wanted)
            && self.share.may_open(&self.plan, self.first_attempts + self.connecting, now_us)
            && let Some(user) = self.to_open.pop_front()
        {
            self.open(io, user, now_us);
        }
    }

    fn open(&mut self, io: &mut EventLoop, index: u32, now_us: u64) {
        let user = &mut self.users[index as usize];
        let address = Endpoint::Socket(self.rotation.address(user.group));
        let owner = Owner::Member(OwnerKey::new(u64::from(index)));
        match io.connect(address, user.source.map(Into::into), owner) {
            Ok(token) => {
                user.token = Some(token);
                user.state = State::Connecting { since_us: now_us };
                user.requests = 0;
                self.connecting += 1;
                io.set_deadline(token, io.now_ms() + self.plan.timeout.as_millis() as u64);
            }
            Err(error) => self.not_opened(index, now_us, Fault::Connect(error)),
        }
    }

    fn not_opened(&mut self, index: u32, now_us: u64, fault: Fault) {
        let is_measured = self.is_measuring(now_us);
        self.tally(is_measured).error(&fault);
        // A failed attempt counts as a request, so that a load with a number of requests also ends if the server is
        // down.
        self.begun += u64::from(is_measured);
        self.count_first_attempt(index);
        self.resting.push_back((now_us + RETRY_REST_US, index));
    }

    fn count_first_attempt(&mut self, index: u32) {
        let user = &mut self.users[index as usize];
        if !user.was_attempted {
            user.was_attempted = true;
            self.first_attempts += 1;
        }
    }

    /// The connection is ready for requests.
    fn opened(&mut self, io: &mut EventLoop, index: u32, since_us: u64) {
        let now_us = now_us();
        let is_measured = self.is_measuring(since_us);
        self.connecting -= 1;
        self.count_first_attempt(index);
        let tally = self.tally(is_measured);
        tally.connect.record(now_us - since_us);
        tally.connections_opened += 1;
        match self.plan.http2 {
            Some(http2) => self.begin_streams(io, index, http2.streams),
            None => {
                self.users[index as usize].state = State::Idle;
                self.next(io, index, now_us);
            }
        }
        self.open_some(io, now_us);
    }

    /// Closes the user's connection. Queues the user for another connection, at once or after a rest.
    fn reopen(&mut self, io: &mut EventLoop, index: u32, rest: bool) {
        self.close(io, index);
        let now_us = now_us();
        if rest {
            self.resting.push_back((now_us + RETRY_REST_US, index));
            return;
        }
        self.to_open.push_back(index);
        if self.may_begin(now_us) {
            self.open_some(io, now_us);
        }
    }

    // Requests.

    /// The next step of an idle user: in a closed loop its next request, in an open loop waiting.
    fn next(&mut self, io: &mut EventLoop, index: u32, now_us: u64) {
        if self.plan.rate.is_some() {
            self.idle.push_back(index);
            self.keep_schedule(io, now_us);
        } else if self.plan.one_at_a_time {
            self.idle.push_back(index);
            self.take_turn(io, now_us);
        } else if self.may_begin(now_us) {
            self.send(io, index, now_us, now_us);
        }
    }

    /// With one request at a time: sends the next request when the last one is complete and all connections have been
    /// tried.
    fn take_turn(&mut self, io: &mut EventLoop, now_us: u64) {
        let is_turn = self.busy == 0 && self.first_attempts == self.share.connections;
        if self.plan.one_at_a_time
            && is_turn
            && self.may_begin(now_us)
            && let Some(index) = self.idle.pop_front()
        {
            self.send(io, index, now_us, now_us);
        }
    }

    /// Sends the due requests while connections are idle.
    fn keep_schedule(&mut self, io: &mut EventLoop, now_us: u64) {
        while !self.idle.is_empty() && self.may_begin(now_us) {
            let end_us = self.signals.end_us.load(Relaxed);
            let Some(pacer) = self.pacer.as_mut().filter(|pacer| pacer.next_us() < end_us) else {
                return;
            };
            let Some(due_us) = pacer.take(now_us) else {
                return;
            };
            // The condition of the loop guarantees an idle user.
            if let Some(index) = self.idle.pop_front() {
                self.send(io, index, due_us, now_us);
            }
        }
    }

    fn send(&mut self, io: &mut EventLoop, index: u32, intended_us: u64, now_us: u64) {
        let is_measured = self.is_measuring(intended_us);
        self.begun += u64::from(is_measured);
        let user = &mut self.users[index as usize];
        let Some(token) = user.token else {
            return;
        };
        user.requests += 1;
        let is_last = self.plan.requests_per_connection.is_some_and(|max| user.requests >= max);
        let target = self.rotation.next(user.group);
        let request = Request { intended_us, sent_us: now_us, target, is_measured, is_last };
        if user.http2.is_some() {
            return self.send_on_stream(io, index, (target, request));
        }
        let of_target = &self.plan.targets[target as usize];
        let bytes = if is_last { &of_target.last_request } else { &of_target.request };
        user.state = State::Busy(request);
        user.reader.restart(&self.plan.expect, &self.first_seen[target as usize]);
        self.busy += 1;
        io.set_deadline(token, now_us / 1_000 + self.plan.timeout.as_millis() as u64);
        io.send(token, &[IoSlice::new(bytes)]);
    }

    /// Processes received bytes.
    fn take(&mut self, io: &mut EventLoop, index: u32, bytes: &[u8]) {
        let user = &mut self.users[index as usize];
        let request = match user.state {
            State::Busy(request) => request,
            // Unrequested data.
            State::Idle => return self.leave_idle(io, index),
            _ => return,
        };
        let is_head = self.plan.targets[request.target as usize].is_head;
        match user.reader.feed(bytes, is_head, &mut self.head) {
            Ok(FeedResult::NeedMore) => {}
            Ok(FeedResult::Done { consumed }) => {
                self.done(io, index, request, bytes.len() - consumed)
            }
            Err(fault) => self.lost(io, index, request, fault),
        }
    }

    /// The response is complete.
    fn done(&mut self, io: &mut EventLoop, index: u32, request: Request, bytes_beyond: usize) {
        let now_us = now_us();
        // Takes the reader out of the user while the response is judged.
        let reader = std::mem::take(&mut self.users[index as usize].reader);
        self.answered(request, reader.answer(), now_us);
        let keep_alive = reader.keep_alive();
        let user = &mut self.users[index as usize];
        user.reader = reader;
        let Some(token) = user.token else {
            return;
        };
        let is_whole = bytes_beyond == 0 && io.sockets.queued(token) == 0;
        if !is_whole {
            self.reopen(io, index, false);
        } else if request.is_last || !keep_alive {
            // Waits for the server to close, so that no local port stays in TIME-WAIT.
            self.users[index as usize].state = State::Ending;
            io.set_deadline(token, now_us / 1_000 + ENDING_TIMEOUT_MS);
        } else {
            if self.plan.rate.is_some() || self.plan.one_at_a_time {
                io.clear_deadline(token);
            }
            self.users[index as usize].state = State::Idle;
            self.next(io, index, now_us);
        }
    }

    /// Judges and counts a complete response.
    fn answered(&mut self, request: Request, answer: &Answer, now_us: u64) {
        self.last_done_us = now_us;
        self.busy -= 1;
        let target = request.target as usize;
        let is_head = self.plan.targets[target].is_head;
        let first_seen = &mut self.first_seen[target];
        if let Some(fault) = answer.judge(&self.plan.expect, is_head, first_seen) {
            return self.tally(request.is_measured).error(&fault);
        }
        let body_bytes = answer.body_bytes();
        if self.is_in_window(now_us) {
            self.completed.requests += 1;
            self.completed.bytes += body_bytes;
        }
        let tally = self.tally(request.is_measured);
        tally.good(now_us - request.intended_us, now_us - request.sent_us, body_bytes);
    }

    /// A request ended without a complete response.
    fn lost(&mut self, io: &mut EventLoop, index: u32, request: Request, fault: Fault) {
        self.last_done_us = now_us();
        self.busy -= 1;
        self.tally(request.is_measured).error(&fault);
        // The rest prevents a tight loop with a server that fails at once.
        self.reopen(io, index, true);
    }

    /// An idle connection was closed. This is an error only if no request was sent on it.
    fn leave_idle(&mut self, io: &mut EventLoop, index: u32) {
        self.idle.retain(|&other| other != index);
        // The rest prevents a tight loop with a server that closes every new connection.
        let is_unused = self.users[index as usize].requests == 0;
        if is_unused {
            let is_measured = self.is_measuring(now_us());
            self.tally(is_measured).error(&Fault::ClosedUnused);
            self.begun += u64::from(is_measured);
        }
        self.reopen(io, index, is_unused);
    }

    /// The connection ended, in any state.
    fn over(&mut self, io: &mut EventLoop, index: u32, error: Option<Errno>) {
        let now_us = now_us();
        match self.users[index as usize].state {
            State::Closed => {}
            State::Connecting { .. } => {
                self.connecting -= 1;
                self.close(io, index);
                let error = error.unwrap_or(Errno::CONNRESET);
                self.not_opened(index, now_us, Fault::Connect(error));
            }
            State::Handshaking { .. } => self.handshake_failed(io, index, Fault::HandshakeEnded),
            State::Idle => self.leave_idle(io, index),
            State::Ending => self.reopen(io, index, false),
            State::Multiplexed => self.end_of_streams(io, index, error),
            State::Busy(request) => match error {
                Some(error) => self.lost(io, index, request, Fault::Broken(error)),
                None => match self.end_of_response(index) {
                    Ok(()) => {
                        self.done(io, index, request, 0);
                        self.over(io, index, None);
                    }
                    Err(fault) => self.lost(io, index, request, fault),
                },
            },
        }
    }

    /// Whether the end of the connection completes the response. With TLS, an end without close_notify may be caused by
    /// an attacker (RFC 9112 section 9.8); the event loop already reports it as a failure.
    fn end_of_response(&mut self, index: u32) -> Result<(), Fault> {
        let user = &mut self.users[index as usize];
        if user.requests > 1 && user.reader.is_untouched() {
            return Err(Fault::ClosedKept);
        }
        user.reader.end()
    }

    fn close(&mut self, io: &mut EventLoop, index: u32) {
        let user = &mut self.users[index as usize];
        user.http2 = None;
        user.state = State::Closed;
        if let Some(token) = user.token.take() {
            io.close(token);
        }
    }

    // The turn.

    /// Checks the signals of the other threads. Starts the schedule of an open loop when all connections have been
    /// tried.
    fn see_signals(&mut self, now_us: u64) {
        if self.first_attempts == self.share.connections {
            self.signals.ready[self.share.thread].store(true, Release);
        }
        let start_us = self.signals.start_us.load(Acquire);
        if let (Some(rate), None) = (self.share.rate, &self.pacer)
            && start_us != u64::MAX
        {
            self.pacer = Some(Pacer::new(start_us, rate, self.share.offset()));
        }
        if self.cpu_at_begin_s.is_none() && self.is_measuring(now_us) {
            self.cpu_at_begin_s = Some(thread_cpu_s());
        }
        if self.cpu_at_end_s.is_none() && now_us >= self.signals.end_us.load(Relaxed) {
            self.cpu_at_end_s = Some(thread_cpu_s());
        }
        let progress = &self.signals.progress[self.share.thread];
        progress.requests.store(self.measured.requests, Relaxed);
        progress.errors.store(self.measured.errors_total(), Relaxed);
    }

    /// Whether the load of this thread is complete.
    fn is_finished(&self, now_us: u64) -> bool {
        if self.busy > 0 {
            return false;
        }
        let is_stopped = self.plan.stop.load(Relaxed);
        match self.plan.extent {
            _ if is_stopped => true,
            Extent::Requests(_) => self.share.requests_max.is_some_and(|max| self.begun >= max),
            Extent::Time(_) => now_us >= self.signals.end_us.load(Relaxed),
        }
    }
}

impl Handler for Engine {
    fn accepted(&mut self, _: &mut EventLoop, _: OwnerKey, _: Descriptor, _: Option<SocketAddr>) {}

    fn accept_failed(&mut self, _: &mut EventLoop, _: OwnerKey, _: Errno) {}

    fn connected(&mut self, io: &mut EventLoop, owner: Owner, result: Result<(), Errno>) {
        let index = user_of(owner);
        match (self.users[index as usize].state, result) {
            (State::Connecting { since_us }, Ok(())) => self.begin_handshake(io, index, since_us),
            (_, Err(error)) => self.over(io, index, Some(error)),
            _ => {}
        }
    }

    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        let index = user_of(owner);
        if self.users[index as usize].http2.is_some() {
            self.take_streams(io, index, bytes);
        } else {
            self.take(io, index, bytes);
        }
    }

    fn secured(&mut self, io: &mut EventLoop, owner: Owner, established: HandshakeResult) {
        self.established(io, user_of(owner), &established);
    }

    fn insecure(&mut self, io: &mut EventLoop, owner: Owner, error: &TlsError) {
        self.tls_failed(io, user_of(owner), error);
    }

    fn ended(&mut self, io: &mut EventLoop, owner: Owner) {
        self.over(io, user_of(owner), None);
    }

    fn failed(&mut self, io: &mut EventLoop, owner: Owner, error: Errno) {
        self.over(io, user_of(owner), Some(error));
    }

    fn drained(&mut self, _: &mut EventLoop, _: Owner) {}

    fn timer(&mut self, io: &mut EventLoop, owner: Owner) {
        let index = user_of(owner);
        match self.users[index as usize].state {
            State::Busy(request) => self.lost(io, index, request, Fault::Timeout),
            State::Handshaking { .. } => self.handshake_failed(io, index, Fault::Timeout),
            State::Connecting { .. } => self.over(io, index, Some(Errno::TIMEDOUT)),
            State::Multiplexed => self.lost_streams(io, index, &Fault::Timeout),
            State::Ending => self.reopen(io, index, false),
            State::Closed | State::Idle => {}
        }
    }

    fn closed(&mut self, _: &mut EventLoop, _: Owner) {}

    fn control(&mut self, _: &mut EventLoop) {}

    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        let now_us = now_us();
        self.see_signals(now_us);
        if self.is_finished(now_us) {
            self.flush_all_streams(io);
            io.stop();
            return None;
        }
        let mut wanted_us = now_us + TURN_US_MAX;
        // After the end only responses in progress remain, and these cause events.
        if self.may_begin(now_us) {
            self.open_some(io, now_us);
            self.keep_schedule(io, now_us);
            self.take_turn(io, now_us);
            if let Some(pacer) = self.pacer.as_ref().filter(|_| !self.idle.is_empty()) {
                wanted_us = wanted_us.min(pacer.next_us());
            }
            wanted_us = wanted_us.min(self.signals.end_us.load(Relaxed));
        }
        self.flush_all_streams(io);
        Some(wanted_us)
    }
}

fn user_of(owner: Owner) -> u32 {
    match owner {
        Owner::Member(index) | Owner::Client(index) | Owner::Listener(index) => index.bits() as u32,
        Owner::Control | Owner::DatagramListener(_) | Owner::Session(_) | Owner::Nobody => 0,
    }
}

/// CPU time of the calling thread.
fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
