//! Users with HTTP/2: several open requests on one connection.
//!
//! The output of a connection is collected during a turn and sent at the end of the turn.

use std::io::IoSlice;

use rustix::io::Errno;
use weir_event_loop::EventLoop;

use super::super::fault::Fault;
use super::super::http2::{Http2Client, ReceiveResult, Stream};
use super::super::share::now_us;
use super::super::under_way::Request;
use super::super::user::State;
use super::Engine;

impl Engine {
    /// The connection is open: every stream is free for a request.
    pub(super) fn begin_streams(&mut self, io: &mut EventLoop, index: u32, streams: usize) {
        let user = &mut self.users[index as usize];
        user.http2 = Some(Box::new(Http2Client::new(streams)));
        user.state = State::Multiplexed;
        self.list_for_sending(index);
        let now_us = now_us();
        for _ in 0..streams {
            if self.users[index as usize].http2.is_none() {
                return;
            }
            self.next(io, index, now_us);
        }
    }

    /// Sends a request on a free stream.
    pub(super) fn send_on_stream(
        &mut self,
        io: &mut EventLoop,
        index: u32,
        (target, request): (u32, Request),
    ) {
        let scheme: &[u8] = if self.tls.is_some() { b"https" } else { b"http" };
        let lines = &self.plan.targets[target as usize].lines;
        let expected = (&self.plan.expect, &self.first_seen[target as usize]);
        let user = &mut self.users[index as usize];
        let (Some(http2), Some(token)) = (&mut user.http2, user.token) else { return };
        match http2.send(lines, scheme, request, expected) {
            Ok(()) => {
                self.busy += 1;
                let timeout_ms = self.plan.timeout.as_millis() as u64;
                io.set_deadline(token, request.sent_us / 1_000 + timeout_ms);
                self.list_for_sending(index);
            }
            Err(error) => self.tally(request.is_measured).error(&Fault::StreamNotOpened(error)),
        }
    }

    /// Processes received bytes of a connection.
    pub(super) fn take_streams(&mut self, io: &mut EventLoop, index: u32, bytes: &[u8]) {
        let mut at = 0;
        loop {
            let Some(http2) = &mut self.users[index as usize].http2 else { return };
            match http2.receive(bytes, &mut at, io.now_ms(), &mut self.scratch) {
                Ok(ReceiveResult::Nothing) => break,
                Ok(ReceiveResult::Part) => {}
                Ok(ReceiveResult::Done(stream)) => self.stream_done(io, index, &stream),
                Ok(ReceiveResult::Lost(stream, fault)) => {
                    self.stream_lost(io, index, &stream, &fault)
                }
                Err(fault) => return self.lost_streams(io, index, &fault),
            }
        }
        self.list_for_sending(index);
        self.leave_closing(io, index);
    }

    fn stream_done(&mut self, io: &mut EventLoop, index: u32, stream: &Stream) {
        let now_us = now_us();
        self.answered(stream.request, &stream.answer, now_us);
        self.stream_free(io, index, now_us);
    }

    fn stream_lost(&mut self, io: &mut EventLoop, index: u32, stream: &Stream, fault: &Fault) {
        let now_us = now_us();
        self.last_done_us = now_us;
        self.busy -= 1;
        self.tally(stream.request.is_measured).error(fault);
        self.stream_free(io, index, now_us);
    }

    /// A stream is free: it sends the next request if the connection accepts one.
    fn stream_free(&mut self, io: &mut EventLoop, index: u32, now_us: u64) {
        let user = &self.users[index as usize];
        let Some(http2) = &user.http2 else { return };
        let is_used_up = self.plan.requests_per_connection.is_some_and(|max| user.requests >= max);
        if let (0, Some(token)) = (http2.stream_count(), user.token) {
            io.clear_deadline(token);
        }
        if !is_used_up && !http2.is_closing() {
            self.next(io, index, now_us);
        }
    }

    /// Leaves a connection that accepts no more requests when its last response is complete.
    fn leave_closing(&mut self, io: &mut EventLoop, index: u32) {
        while let Some(stream) =
            self.users[index as usize].http2.as_mut().and_then(|http2| http2.abandoned())
        {
            self.stream_lost(io, index, &stream, &Fault::ClosedKept);
        }
        let user = &self.users[index as usize];
        let Some(http2) = &user.http2 else { return };
        let is_used_up = self.plan.requests_per_connection.is_some_and(|max| user.requests >= max);
        if http2.stream_count() == 0 && (is_used_up || http2.is_closing()) {
            self.leave_streams(io, index, user.requests == 0);
        }
    }

    /// Counts all open requests of an ended connection as lost.
    pub(super) fn lost_streams(&mut self, io: &mut EventLoop, index: u32, fault: &Fault) {
        while let Some(stream) =
            self.users[index as usize].http2.as_mut().and_then(|http2| http2.take_any())
        {
            self.last_done_us = now_us();
            self.busy -= 1;
            self.tally(stream.request.is_measured).error(fault);
        }
        self.leave_streams(io, index, true);
    }

    /// Counts all open requests as lost, because the connection itself has ended.
    pub(super) fn end_of_streams(&mut self, io: &mut EventLoop, index: u32, error: Option<Errno>) {
        let user = &self.users[index as usize];
        let is_resting = user.http2.as_ref().is_none_or(|http2| http2.stream_count() == 0);
        if is_resting {
            self.idle.retain(|&other| other != index);
            return self.leave_idle(io, index);
        }
        self.lost_streams(io, index, &error.map_or(Fault::Short, Fault::Broken));
    }

    fn leave_streams(&mut self, io: &mut EventLoop, index: u32, rest: bool) {
        // The user is in the list once per free stream.
        self.idle.retain(|&other| other != index);
        self.flush_streams(io, index);
        self.reopen(io, index, rest);
    }

    fn list_for_sending(&mut self, index: u32) {
        if let Some(http2) = &mut self.users[index as usize].http2
            && !http2.out.is_empty()
            && !http2.is_listed
        {
            http2.is_listed = true;
            self.to_flush.push(index);
        }
    }

    /// Sends the output of all connections.
    pub(super) fn flush_all_streams(&mut self, io: &mut EventLoop) {
        while let Some(index) = self.to_flush.pop() {
            self.flush_streams(io, index);
        }
    }

    fn flush_streams(&mut self, io: &mut EventLoop, index: u32) {
        let user = &mut self.users[index as usize];
        if let (Some(http2), Some(token)) = (&mut user.http2, user.token) {
            http2.is_listed = false;
            if !http2.out.is_empty() {
                io.send(token, &[IoSlice::new(&http2.out)]);
                http2.out.clear();
            }
        }
    }
}
