//! One thread of the origin: connections, requests, responses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSlice, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use slab::Slab;
use weir_event_loop::clock;
use weir_event_loop::wall_clock::WallClock;
use weir_event_loop::{Descriptor, EventLoop, Handler, Owner, OwnerKey, Token};
use weir_http::h1::{self, HeadScan, ParseProgress};
use weir_http::message::{Method, RequestHead};
use weir_http::path::{PathForm, RawBytes, TargetForm};

use super::Settings;
use super::answer::{Answer, HeadWriter, Order};
use super::counts::{ThreadCounts, add};
use super::faults::{FaultKind, Schedule};
use super::objects::Blocks;
use crate::body_reader::{BodyReader, FeedResult, HEAD_LIMITS};

/// Paths stay as requested; raw bytes are percent-encoded.
const PATHS: TargetForm = TargetForm { path: PathForm::Keep, raw_bytes: RawBytes::Encode };
/// Maximum number of bytes given to the kernel at once.
const SEND_BYTES_MAX: usize = 128 * 1024;
/// Time after which an idle connection is closed.
const IDLE_TIMEOUT_MS: u64 = 600_000;
/// Time limit for sending the rest of a response before the connection closes.
const LEAVE_TIMEOUT_MS: u64 = 10_000;
/// Shortest interval between reports of failed accepts.
const REFUSAL_NOTE_INTERVAL_MS: u64 = 1_000;
/// Longest interval between two turns of the loop. Each turn checks whether the thread must end.
const TURN_US_MAX: u64 = 50_000;

/// One thread's connections.
pub struct Server {
    clients: Slab<Client>,
    blocks: Arc<Blocks>,
    /// The counts of all threads. This thread writes only its own.
    counts: Vec<Arc<ThreadCounts>>,
    thread: usize,
    schedule: Schedule,
    delay_us: u64,
    /// Delayed responses: due time, key and connection.
    delayed: BinaryHeap<Reverse<(u64, usize, Token)>>,
    stop: Arc<AtomicBool>,
    silent_until_ms: u64,
    wall_clock: WallClock,
    head: RequestHead,
    heads: HeadWriter,
}

struct Client {
    token: Token,
    server: usize,
    phase: Phase,
    /// Received data that is not processed yet.
    input: Vec<u8>,
    scan: HeadScan,
}

enum Phase {
    Head,
    Body(BodyReader, Order),
    /// The response waits for its due time.
    Delayed(Order),
    Answering(Answer),
    /// Nothing is read or sent any more.
    Leaving,
}

impl Server {
    /// Creates thread number `thread`, without connections.
    pub fn new(
        settings: &Settings,
        blocks: Arc<Blocks>,
        counts: Vec<Arc<ThreadCounts>>,
        thread: usize,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            clients: Slab::new(),
            blocks,
            counts,
            thread,
            schedule: Schedule::new(&settings.faults),
            delay_us: settings.delay.as_micros() as u64,
            delayed: BinaryHeap::new(),
            stop,
            silent_until_ms: 0,
            wall_clock: WallClock::default(),
            head: RequestHead::new(),
            heads: HeadWriter::default(),
        }
    }

    /// Prints that the thread had to stop.
    pub fn note_failure(&self, error: &io::Error) {
        // If standard error is gone, the message is lost.
        let _ = writeln!(io::stderr(), "weir bench origin: thread {}: {error}", self.thread);
    }

    fn own(&self) -> &ThreadCounts {
        &self.counts[self.thread]
    }

    /// Processes as much of `input` as possible. Returns the number of processed bytes.
    fn advance(&mut self, io: &mut EventLoop, key: usize, input: &[u8]) -> usize {
        let mut at = 0;
        while let Some(client) = self.clients.get_mut(key) {
            let rest = &input[at..];
            match &mut client.phase {
                Phase::Head if rest.is_empty() => break,
                Phase::Head => match h1::parse_request(rest, &HEAD_LIMITS, PATHS, &mut self.head) {
                    Ok(ParseProgress::Complete { length }) => {
                        let order = Order::new(&self.head, &rest[..length]);
                        if self.head.expect_continue && !self.head.framing.is_empty() {
                            io.send(
                                client.token,
                                &[IoSlice::new(b"HTTP/1.1 100 Continue\r\n\r\n")],
                            );
                        }
                        client.phase = Phase::Body(BodyReader::new(self.head.framing), order);
                        at += length;
                    }
                    Ok(ParseProgress::Partial) => break,
                    Err(error) => {
                        self.begin(io, key, Order::refusal(error.status()));
                        return input.len();
                    }
                },
                Phase::Body(body, order) => match body.feed(rest, |_| {}) {
                    Ok(FeedResult::Done { consumed }) => {
                        let order = *order;
                        at += consumed;
                        self.take_order(io, key, order);
                    }
                    Ok(FeedResult::NeedMore) => return input.len(),
                    Err(_) => {
                        self.begin(io, key, Order::refusal(400));
                        return input.len();
                    }
                },
                Phase::Delayed(_) | Phase::Answering(_) => break,
                Phase::Leaving => return input.len(),
            }
        }
        at
    }

    /// Keeps the unprocessed rest of the input.
    fn keep(&mut self, key: usize, rest: &[u8]) {
        if let Some(client) = self.clients.get_mut(key)
            && !rest.is_empty()
        {
            client.input.extend_from_slice(rest);
            client.scan = HeadScan::request();
            client.scan.scan(&client.input, &HEAD_LIMITS);
        }
    }

    /// Continues with the kept input.
    fn go_on(&mut self, io: &mut EventLoop, key: usize) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.input.is_empty() {
            return;
        }
        let input = std::mem::take(&mut client.input);
        let consumed = self.advance(io, key, &input);
        self.keep(key, &input[consumed..]);
    }

    /// Handles a complete request.
    fn take_order(&mut self, io: &mut EventLoop, key: usize, mut order: Order) {
        if order.is_counts {
            return self.answer_counts(io, key, order);
        }
        add(&self.own().requests[self.clients[key].server], 1);
        order.fault = order.fault.or_else(|| self.schedule.next());
        let delay_us = self.delay_us.max(order.delay_us);
        if delay_us == 0 {
            return self.begin(io, key, order);
        }
        let client = &mut self.clients[key];
        client.phase = Phase::Delayed(order);
        io.sockets.pause(client.token);
        self.delayed.push(Reverse((clock::now().now_us() + delay_us, key, client.token)));
    }

    fn begin(&mut self, io: &mut EventLoop, key: usize, order: Order) {
        let client = &mut self.clients[key];
        let token = client.token;
        if let Some(kind) = order.fault {
            self.counts[self.thread].note_fault(kind);
        }
        match order.fault {
            Some(FaultKind::Reset) => {
                self.clients.remove(key);
                return io.reset(token);
            }
            Some(FaultKind::Stall) => {
                // A stalled client must close the connection.
                client.phase = Phase::Leaving;
                return;
            }
            Some(FaultKind::Garbage) => {
                io.send(token, &[IoSlice::new(b"this is not HTTP\r\n\r\n")]);
                client.phase = Phase::Leaving;
                return io.linger(token, LEAVE_TIMEOUT_MS);
            }
            Some(FaultKind::Short | FaultKind::Status(_)) | None => {}
        }
        let answer = Answer::new(order);
        let (date, _) = self.wall_clock.at(io.clock());
        let head = self.heads.head(&answer, date);
        let run = self.blocks.run(answer.object, 0, answer.bytes_left_max(SEND_BYTES_MAX));
        let parts = [IoSlice::new(head), IoSlice::new(run)];
        let sent = run.len() as u64;
        if answer.ends_with(sent) {
            io.send_last(token, &parts)
        } else {
            io.send(token, &parts)
        }
        client.phase = Phase::Answering(answer);
        self.sent(io, key, sent);
    }

    /// Continues sending while the kernel accepts everything.
    fn sent(&mut self, io: &mut EventLoop, key: usize, mut sent: u64) {
        loop {
            let Some(client) = self.clients.get_mut(key) else {
                return;
            };
            let Phase::Answering(answer) = &mut client.phase else {
                return;
            };
            answer.sent += sent;
            if io.sockets.queued(client.token) > 0 {
                // Do not read from a client that does not receive its responses.
                return io.sockets.pause(client.token);
            }
            let length = answer.bytes_left_max(SEND_BYTES_MAX);
            if length == 0 {
                return self.answered(io, key);
            }
            let run = self.blocks.run(answer.object, answer.sent, length);
            sent = run.len() as u64;
            let (token, parts) = (client.token, [IoSlice::new(run)]);
            if answer.ends_with(sent) {
                io.send_last(token, &parts)
            } else {
                io.send(token, &parts)
            }
        }
    }

    /// The kernel has accepted the whole response.
    fn answered(&mut self, io: &mut EventLoop, key: usize) {
        let client = &mut self.clients[key];
        let Phase::Answering(answer) = &client.phase else {
            return;
        };
        let (is_good, keep_alive, sent) = (answer.is_good(), answer.keep_alive, answer.sent);
        if keep_alive {
            client.phase = Phase::Head;
            io.set_deadline(client.token, io.now_ms() + IDLE_TIMEOUT_MS);
            io.sockets.resume(client.token);
        } else {
            client.phase = Phase::Leaving;
            io.sockets.resume(client.token);
            io.linger(client.token, LEAVE_TIMEOUT_MS);
        }
        if is_good {
            add(&self.own().responses, 1);
            add(&self.own().bytes, sent);
        }
    }

    fn answer_counts(&mut self, io: &mut EventLoop, key: usize, order: Order) {
        let body = serde_json::to_string(&super::sum(&self.counts)).unwrap_or_default();
        let connection = if order.keep_alive { "keep-alive" } else { "close" };
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: {connection}\r\n\r\n{}",
            body.len(),
            if order.method == Method::Head { "" } else { &body }
        );
        let client = &mut self.clients[key];
        io.send(client.token, &[IoSlice::new(text.as_bytes())]);
        if order.keep_alive {
            client.phase = Phase::Head;
        } else {
            client.phase = Phase::Leaving;
            io.linger(client.token, LEAVE_TIMEOUT_MS);
        }
    }

    fn forget(&mut self, io: &mut EventLoop, key: usize) {
        if let Some(client) = self.clients.try_remove(key) {
            io.close(client.token);
        }
    }

    fn answer_delayed(&mut self, io: &mut EventLoop) {
        let now_us = clock::now().now_us();
        while let Some(&Reverse((due_us, key, token))) = self.delayed.peek() {
            if due_us > now_us {
                return;
            }
            self.delayed.pop();
            let Some(client) = self.clients.get(key).filter(|client| client.token == token) else {
                continue;
            };
            let Phase::Delayed(order) = client.phase else {
                continue;
            };
            io.sockets.resume(token);
            self.begin(io, key, order);
            self.go_on(io, key);
        }
    }
}

impl Handler for Server {
    fn accepted(
        &mut self,
        io: &mut EventLoop,
        listener: OwnerKey,
        socket: Descriptor,
        _: Option<SocketAddr>,
    ) {
        let entry = self.clients.vacant_entry();
        let Ok(token) = io.add(socket, Owner::Client(OwnerKey::new(entry.key() as u64))) else {
            // The event loop could not register the connection; the client sees it close.
            return;
        };
        entry.insert(Client {
            token,
            server: listener.bits() as usize,
            phase: Phase::Head,
            input: Vec::new(),
            scan: HeadScan::request(),
        });
        io.set_deadline(token, io.now_ms() + IDLE_TIMEOUT_MS);
        add(&self.own().connections, 1);
    }

    fn accept_failed(&mut self, io: &mut EventLoop, _: OwnerKey, error: Errno) {
        if io.now_ms() >= self.silent_until_ms {
            self.silent_until_ms = io.now_ms() + REFUSAL_NOTE_INTERVAL_MS;
            self.note_failure(&error.into());
        }
    }

    fn connected(&mut self, _: &mut EventLoop, _: Owner, _: Result<(), Errno>) {}

    fn received(&mut self, io: &mut EventLoop, owner: Owner, bytes: &mut [u8]) {
        let key = key_of(owner);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.input.is_empty() {
            let consumed = self.advance(io, key, bytes);
            return self.keep(key, &bytes[consumed..]);
        }
        client.input.extend_from_slice(bytes);
        let is_head = matches!(client.phase, Phase::Head);
        if !is_head || client.scan.scan(&client.input, &HEAD_LIMITS) {
            self.go_on(io, key);
        }
    }

    fn ended(&mut self, io: &mut EventLoop, owner: Owner) {
        let key = key_of(owner);
        match self.clients.get_mut(key).map(|client| &mut client.phase) {
            // The client sends no more requests, but still receives the response.
            Some(Phase::Delayed(order)) => order.keep_alive = false,
            Some(Phase::Answering(answer)) => answer.keep_alive = false,
            _ => self.forget(io, key),
        }
    }

    fn failed(&mut self, io: &mut EventLoop, owner: Owner, _: Errno) {
        self.forget(io, key_of(owner));
    }

    fn drained(&mut self, io: &mut EventLoop, owner: Owner) {
        let key = key_of(owner);
        if let Some(client) = self.clients.get(key) {
            io.sockets.resume(client.token);
        }
        self.sent(io, key, 0);
        self.go_on(io, key);
    }

    fn timer(&mut self, io: &mut EventLoop, owner: Owner) {
        self.forget(io, key_of(owner));
    }

    fn closed(&mut self, _: &mut EventLoop, owner: Owner) {
        self.clients.try_remove(key_of(owner));
    }

    fn control(&mut self, _: &mut EventLoop) {}

    fn turn_ended(&mut self, io: &mut EventLoop) -> Option<u64> {
        if self.stop.load(Relaxed) {
            io.stop();
        }
        self.answer_delayed(io);
        let soon_us = io.clock().now_us() + TURN_US_MAX;
        let due_us = self.delayed.peek().map_or(soon_us, |Reverse((due_us, ..))| *due_us);
        Some(due_us.min(soon_us))
    }
}

fn key_of(owner: Owner) -> usize {
    match owner {
        Owner::Client(key) | Owner::Member(key) | Owner::Listener(key) => key.bits() as usize,
        Owner::Control | Owner::DatagramListener(_) | Owner::Session(_) | Owner::Nobody => {
            usize::MAX
        }
    }
}
