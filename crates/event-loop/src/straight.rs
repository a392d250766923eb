//! Direct transfer of bytes from one socket to another: data of a tunnel, which weir does not inspect.
//!
//! The handler permits it for each direction ([`ReadMode::Straight`](crate::ReadMode)). The amount of data determines the
//! method:
//!
//! | pace | method | until |
//! |---|---|---|
//! | `Copied` | [`Handler::received`] delivers the bytes, and the handler sends them | a read fills the buffer |
//! | `Spliced` | splice(2) moves them, [`Handler::passed`] reports the number | [`SHORT_FILLS`] short moves in a row |
//! | `Ended` | none, because FIN was read | - |
//!
//! With few bytes, copying needs fewer system calls. With many bytes, copying costs more than the additional calls. Bytes
//! are also copied if no pipe is available, or if the other socket has queued data. Bytes that the other socket does not
//! accept stay in the pipe, which is added to its queue ([`Output`]): the handler finds them in
//! `queued` and pauses the source, as with copied bytes.
//!
//! Urgent data (TCP's URG, MSG_OOB) is not part of the stream. A read skips it, but splice(2) stops there permanently, and
//! reports no data, or the end if FIN has arrived, too. So only a read can confirm the end. On a socket that has received
//! urgent data, only a read can confirm that there is no data.
//!
//! [`SHORT_FILLS`]: crate::pace::SHORT_FILLS

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::bounds::READS_IN_A_ROW_MAX;
use crate::event_loop::EventLoop;
use crate::handler::Handler;
use crate::kernel::Kernel;
use crate::output::Output;
use crate::pace::{Pace, Straight};
use crate::pipes::{Drain, Fill, Filled, Pipes};
use crate::reader::Reader;
use crate::socket::{ReadMode, ReadResult, Socket, State};
use crate::table::Sockets;
use crate::token::{Owner, Token};

/// The result of one step.
enum Step {
    /// Nothing was moved. The bytes must be copied, or only a read can determine the state.
    Copy,
    /// This many bytes were moved; 0: there was no data.
    Moved(usize),
    /// This many bytes were read, and wait until the other socket accepts them.
    Stopped(usize),
    /// The socket failed.
    Failed(Errno),
}

impl Reader {
    /// Moves the available data, within the socket's share of the turn, and reports it once.
    pub(crate) fn read_straight(
        &mut self,
        io: &mut EventLoop,
        handler: &mut impl Handler,
        token: Token,
        owner: Owner,
    ) {
        let mut moved = 0;
        for _ in 0..READS_IN_A_ROW_MAX {
            let Some(socket) = io.sockets.get(token).filter(|it| is_read(it)) else { break };
            if socket.straight.as_ref().is_some_and(|it| it.has_ended()) {
                // The event for FIN may arrive after the read that found FIN. Nothing else can be read.
                socket.readable = false;
                break;
            }
            let now_ms = io.clock.now_ms();
            match io.pipes.step(&io.kernel, &mut io.sockets, token, now_ms) {
                Step::Copy => {
                    // Moved data is reported before the event that follows it.
                    if moved > 0 {
                        handler.passed(io, owner, std::mem::take(&mut moved));
                    }
                    if io.sockets.get(token).is_some_and(|it| is_read(it)) {
                        self.copy(io, handler, token, owner);
                    }
                }
                Step::Moved(count) => moved += count,
                Step::Stopped(count) => {
                    moved += count;
                    break;
                }
                Step::Failed(error) => {
                    if moved > 0 {
                        handler.passed(io, owner, moved);
                    }
                    if io.sockets.is_read(token) {
                        handler.failed(io, owner, error);
                    }
                    return;
                }
            }
        }
        if moved > 0 {
            handler.passed(io, owner, moved);
        }
    }

    /// Reads once and delivers the data, as from other sockets.
    fn copy(&mut self, io: &mut EventLoop, handler: &mut impl Handler, token: Token, owner: Owner) {
        let bulk = io.pipes.bulk;
        let Some(socket) = io.sockets.get(token) else { return };
        match socket.receive(&mut self.scratch[..bulk.read_bytes], RecvFlags::empty()) {
            ReadResult::Bytes(count) => {
                if let Some(straight) = &mut socket.straight {
                    straight.note(count, bulk);
                }
                handler.received(io, owner, &mut self.scratch[..count]);
            }
            ReadResult::Nothing => {}
            ReadResult::End => {
                end(socket);
                handler.ended(io, owner);
            }
            ReadResult::Failure(error) => handler.failed(io, owner, error),
        }
    }
}

impl Pipes {
    /// Moves data once, if the pace is `Spliced` and the sink accepts a pipe.
    fn step(&mut self, kernel: &Kernel, sockets: &mut Sockets, token: Token, now_ms: u64) -> Step {
        let bulk = self.bulk;
        let Some(sink) = sockets.get(token).and_then(|socket| match socket.straight.as_deref() {
            Some(Straight { sink, pace: Pace::Spliced { .. } }) => Some(*sink),
            _ => None,
        }) else {
            return Step::Copy;
        };
        if !sockets.get(sink).is_some_and(|socket| takes_pipes(socket)) {
            return Step::Copy;
        }
        let Some(pipe) = self.take(kernel, now_ms) else { return Step::Copy };
        let Some(socket) = sockets.get(token) else { return Step::Copy };
        let Some(fd) = &socket.fd else { return Step::Copy };
        let (pipe, step) = match pipe.fill(fd, bulk.fill_bytes_max) {
            Fill::Bytes(filled) => {
                // The remaining amount is unknown, so reading continues until no data is left.
                if let Some(straight) = &mut socket.straight {
                    straight.note(filled.bytes(), bulk);
                }
                let count = filled.bytes();
                return if self.pass_on(sockets, sink, filled, now_ms) {
                    Step::Moved(count)
                } else {
                    Step::Stopped(count)
                };
            }
            Fill::Nothing(pipe) if !socket.alert => (pipe, Step::Moved(0)),
            Fill::Nothing(pipe) | Fill::End(pipe) => {
                self.give(pipe);
                return Step::Copy;
            }
            Fill::Failure(pipe, error) => (pipe, Step::Failed(error)),
            Fill::Unable(pipe) => {
                socket.read_as(ReadMode::Usual);
                self.give(pipe);
                return Step::Copy;
            }
        };
        socket.readable = false;
        self.give(pipe);
        step
    }

    /// Drains a pipe into a socket, and queues the rest. Returns whether the socket accepted everything.
    fn pass_on(&mut self, sockets: &mut Sockets, sink: Token, filled: Filled, now_ms: u64) -> bool {
        let Some(socket) = sockets.get(sink) else { return false };
        let Some(fd) = &socket.fd else { return false };
        let (sent, drained) = filled.drain(fd);
        socket.sent_bytes += sent as u64;
        let (rest, error) = match drained {
            Drain::All(empty) => {
                self.give(empty);
                return true;
            }
            Drain::Rest(rest) => (rest, None),
            Drain::Failure(rest, error) => (rest, Some(error)),
        };
        socket.progress_ms = now_ms;
        socket.output = Some(Box::new(Output::from(rest)));
        if let Some(error) = error {
            socket.state = State::Broken(error);
            sockets.make_ready(sink);
        }
        false
    }
}

/// Whether data may be moved from the socket at present.
fn is_read(socket: &Socket) -> bool {
    socket.state == State::Open && !socket.paused && socket.readable
}

/// Ends reading after the peer's FIN. Not even a reset is read then: an event reports a client's reset, the next send
/// reports a member's reset.
fn end(socket: &mut Socket) {
    if let Some(straight) = &mut socket.straight {
        straight.pace = Pace::Ended;
    }
}

/// Whether a pipe can be drained into a socket: it is open and plain, and has no queued data.
fn takes_pipes(socket: &Socket) -> bool {
    socket.state == State::Open && socket.secure.is_none() && socket.output.is_none()
}

#[cfg(test)]
mod tests;
