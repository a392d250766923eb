//! What happens to the stream of a transaction at a member with HTTP/2.

use weir_connection::joining::RestOfRead;
use weir_connection::member::events::StreamReset;
use weir_exchange::arena::ConnectionKey;
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::{MemberFailure, Progress};
use weir_exchange::parts::messages::Message;
use weir_exchange::parts::phase::Phase;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::lost_streams::is_whole_without_trailers;
use weir_exchange::transaction::{Transaction, trailers};
use weir_http::h2::hpack::HeaderBlock;
use weir_http::h2::is_whole;
use weir_http::h2::message::{AnsweredRequest, read_response, read_trailers};
use weir_http::message::{Field, ResponseHead};

use crate::worker::edge::WorkerEdge;
use crate::worker::state::lost_stream::LostStream;
use crate::worker::state::members::{MemberEnd, StreamOf};
use crate::worker::world::World;

/// A stream of a connection to a member, as its frames name it.
#[derive(Debug, Clone, Copy)]
pub struct MemberStreamId {
    pub connection: ConnectionKey,
    pub id: u32,
}

/// What happens to the stream of a transaction at a member with HTTP/2. Each event is one call of the transaction, which may name
/// the next event: it follows when what the call has ordered is done.
pub enum StreamEvent<'a> {
    /// The connection is open.
    Connected,
    /// SETTINGS have arrived.
    Settings,
    /// The head of a response, in `block`; `head` is memory for it.
    Head {
        stream: MemberStreamId,
        head: &'a mut ResponseHead,
        block: &'a mut HeaderBlock,
        is_end: bool,
    },
    /// The response was begun; its head may not be sent yet.
    Begun { head: Message, is_end: bool },
    /// Data of a response.
    Data { data: &'a [u8], is_end: bool, behind: RestOfRead },
    /// The trailers of a response, in `block`; `fields` is memory for them.
    Trailers { stream: MemberStreamId, fields: &'a mut Vec<Field>, block: &'a HeaderBlock },
    /// The stream has malformed data. What came before it in the same read was sound.
    Malformed { stream: MemberStreamId },
    /// As [`Self::Malformed`], when all that was sound was passed on.
    Refused { stream: MemberStreamId },
    /// The stream was reset.
    Reset(StreamReset),
    /// As [`Self::Reset`], when all that came before was passed on.
    Ended(StreamReset),
    /// The member answers the stream no more.
    GoneAway(Progress),
    /// Nothing was sent, and no stream can be opened on this connection.
    Missed { connection: Option<ConnectionKey>, why: LostStream },
    /// The window of the stream or of its connection has opened.
    WindowOpened,
    /// The socket has taken all data.
    Drained(ConnectionKey),
    /// The window that the request waited for has opened, or it is on another connection.
    Resent,
    /// The window that the request waits for stays exhausted.
    Crowded,
    /// The timer of the connection has expired.
    Timer(ConnectionKey),
}

impl<'a> StreamEvent<'a> {
    /// Tells a transaction. Returns the event that follows.
    pub fn tell(self, it: &mut Transaction, at: &mut WorkerEdge<'_>) -> Option<Self> {
        match self {
            Self::Connected => {
                it.ends_mut().account.times.connected_us = at.io.clock().now_us();
                let it = it.http_mut()?;
                it.patience.request_handed_over(at, &mut it.ends, &it.request);
            }
            Self::Settings => ask_for_tunnel(it.http_mut()?, at),
            Self::Head { stream, head, block, is_end } => {
                return read_head(it.http_mut()?, at, (head, block), (stream, is_end));
            }
            Self::Begun { head, is_end } => {
                let end = if is_end { End::Data } else { End::No };
                it.http_mut()?.member_body(at, head, b"", end);
            }
            Self::Data { data, is_end, behind } => {
                let end = if is_end { End::Data } else { End::No };
                at.join_response_data(it, data, end, behind);
            }
            Self::Trailers { stream, fields, block } => {
                // A tunnel carries only DATA frames (RFC 9113 section 8.5).
                let is_sound = it.http().is_some_and(|exchange| {
                    read_trailers(block, trailers::of_response(&exchange.ends), fields).is_ok()
                });
                if !is_sound {
                    return Some(Self::Malformed { stream });
                }
                let end = End::Trailers(fields, block.text());
                at.join_response_data(it, b"", end, RestOfRead::Nothing);
            }
            Self::Malformed { stream } => {
                at.pass_joined_response(it, End::No);
                return Some(Self::Refused { stream });
            }
            Self::Refused { stream } => refuse(it, at, stream),
            Self::Reset(reset) => {
                at.pass_joined_response(it, End::No);
                return Some(Self::Ended(reset));
            }
            Self::Ended(reset) => end(it, at, reset),
            Self::GoneAway(progress) => {
                if progress == Progress::Whole {
                    at.pass_joined_response(it, End::No);
                }
                it.stream_lost(at, MemberFailure::Abort, progress);
            }
            Self::Missed { connection, why } => miss(it, at, connection, why),
            Self::WindowOpened => send_waiting_data(it, at),
            Self::Drained(connection) => drain(it, at, connection),
            Self::Resent => it.http_mut()?.resend(at, &[]),
            Self::Crowded => {
                let it = it.http_mut()?;
                let member = it.ends.phase.member()?;
                let has_moved = at.move_to_another(&mut it.ends, &mut it.request, member);
                return has_moved.then_some(Self::Resent);
            }
            Self::Timer(connection) => check_deadline(it.http_mut()?, at, connection),
        }
        None
    }
}

/// Reads the head of a response.
fn read_head<'a>(
    it: &mut Exchange,
    at: &mut WorkerEdge<'_>,
    (head, block): (&mut ResponseHead, &mut HeaderBlock),
    (stream, is_end): (MemberStreamId, bool),
) -> Option<StreamEvent<'a>> {
    if let Some(attempt) = it.ends.phase.attempt_mut() {
        attempt.response_seen = true;
    }
    let protocol = it.request.tunnel_protocol();
    let answered = AnsweredRequest { method: it.request.method, protocol };
    let taken = it.ends.tries.pool.settings().lenient;
    if read_response(block, is_end, answered, taken, head).is_err() {
        return Some(StreamEvent::Malformed { stream });
    }
    if let Some(MemberEnd { connection, .. }) = at.world.members.end_of(&it.ends) {
        connection.count_flaws(head.flaws);
    }
    if head.is_interim() {
        it.forward_interim(at, head, block.text());
    } else if head.status == 101 {
        it.begin_tunnel(at, (head, block.text()), is_end);
    } else if it.request.is_no_tunnel(&it.ends.phase, head.status) {
        it.respond(at, 502, Termination::MemberMalformed);
    } else {
        let head = it.begin_response(at, head, (block.text(), b""));
        return Some(StreamEvent::Begun { head, is_end });
    }
    None
}

/// Resets a stream with malformed data, and reports the failure.
fn refuse(it: &mut Transaction, at: &mut WorkerEdge<'_>, stream: MemberStreamId) {
    // Trailers have ended the stream already. To a client of HTTP/1 they say nothing about a response of known length.
    let is_whole = it.http().is_some_and(is_whole_without_trailers);
    if let Some(http2) = at.world.members.http2_mut(stream.connection) {
        http2.refuse(stream.id);
    }
    let progress = if is_whole { Progress::Whole } else { Progress::Begun };
    it.stream_lost(at, MemberFailure::Malformed, progress);
}

/// Handles a reset of the stream.
fn end(it: &mut Transaction, at: &mut WorkerEdge<'_>, reset: StreamReset) {
    if reset.is_orderly && it.tunnel_mut().is_some_and(|tunnel| tunnel.member_left(at)) {
        return;
    }
    // The connection itself works, so it was not stale.
    if let Some(attempt) = it.ends_mut().phase.attempt_mut() {
        attempt.may_be_stale = false;
    }
    it.stream_lost(at, reset.why, reset.progress);
}

/// Handles a transaction that got no stream on a connection: it is retried elsewhere, if possible.
fn miss(
    it: &mut Transaction,
    at: &mut WorkerEdge<'_>,
    connection: Option<ConnectionKey>,
    why: LostStream,
) {
    // An exchange may be on the agenda twice, and the first task may have moved it to another connection, or have left it
    // without a member.
    let attempt = Phase::attempt(&it.ends().phase);
    if attempt.is_none_or(|it| it.link.map(|link| link.connection) != connection) {
        return;
    }
    match (why, it.http_mut()) {
        (LostStream::Full, _) => it.stream_lost(at, MemberFailure::Abort, Progress::Unread),
        (LostStream::NoTunnel, Some(exchange)) => exchange.refuse_tunnel(at),
        (LostStream::NoTunnel, None) => {}
    }
}

/// Continues a request that waited for SETTINGS.
fn ask_for_tunnel(it: &mut Exchange, at: &mut WorkerEdge<'_>) {
    let World { members, agenda, .. } = &mut *at.world;
    let Some(mut member) = members.end_of(&it.ends) else { return };
    if member.awaits_settings(&it.request) {
        member.ask_for_tunnel((at.io, agenda), &it.ends, &it.request);
        it.ends.clear_member_deadline(at);
        it.patience.request_handed_over(at, &mut it.ends, &it.request);
    }
}

/// Sends more of the request, if the member's windows allow it.
fn send_waiting_data(it: &mut Transaction, at: &mut WorkerEdge<'_>) {
    let World { members, agenda, .. } = &mut *at.world;
    let member = members.end_of(it.ends());
    if member.is_some_and(|mut member| member.send_waiting_data((at.io, agenda)))
        && !it.is_member_backed_up(at)
    {
        if let Some(StreamOf { stream, .. }) = at.world.members.stream_mut(it.ends()) {
            stream.was_backed_up = false;
        }
        it.member_took(at);
    }
}

/// Continues the request after all data queued on the socket was sent.
fn drain(it: &mut Transaction, at: &mut WorkerEdge<'_>, connection: ConnectionKey) {
    if it.ends().phase.connection() != Some(connection) {
        return;
    }
    let Some(StreamOf { stream, .. }) = at.world.members.stream_mut(it.ends()) else { return };
    if stream.is_behind() {
        send_waiting_data(it, at);
    } else if std::mem::take(&mut stream.was_backed_up) {
        it.member_took(at);
    }
}

/// Checks the deadline of the stream.
fn check_deadline(it: &mut Exchange, at: &mut WorkerEdge<'_>, key: ConnectionKey) {
    let now_ms = at.io.now_ms();
    let member = at.world.members.end_of(&it.ends).filter(|member| member.key == key);
    let Some(MemberEnd { connection, stream: Some(stream), .. }) = member else { return };
    let response_timeout_ms = connection.pool.settings().response_timeout_ms;
    let Some(http2) = &mut connection.http2 else { return };
    // For a request that waits for the window, another check has the time.
    let stream = http2.streams.get(stream).filter(|stream| !stream.awaits_window);
    let Some(stream) = stream else { return };
    let Some(deadline_ms) = stream.deadline_ms else { return };
    let awaits_settings = !stream.is_opened() && it.request.websocket.is_some();
    // A member that has not received the request cannot answer yet, so its progress extends the deadline. Requests
    // without a body get no extension, because the acknowledged bytes may belong to other requests.
    let has_body = !it.request.framing.is_empty();
    let may_be_behind = has_body || stream.out.is_behind() || stream.was_backed_up;
    let timeout_ms = it.patience.pace.client_timeout_ms(&it.ends.server);
    let until_ms = match deadline_ms <= now_ms && may_be_behind {
        true => at.io.patience_until_ms(connection.token, timeout_ms),
        false => deadline_ms,
    };
    let is_whole = is_whole(&http2.frames.connection, stream.out.id);
    if awaits_settings && deadline_ms <= now_ms {
        // The member did not send its SETTINGS in time, so the connection gets no more requests.
        http2.leave();
        lose(it, at, MemberFailure::ConnectTimeout, Progress::Unsettled);
    } else if until_ms <= now_ms {
        // If no bytes arrived for half of the timeout, the connection may be dead and gets no more requests.
        http2.is_leaving |= http2.received_ms + response_timeout_ms / 2 < now_ms;
        let progress = if is_whole { Progress::Whole } else { Progress::Begun };
        lose(it, at, MemberFailure::Timeout, progress);
    } else {
        it.ends.set_member_deadline(at, until_ms);
    }
}

/// Reports that the stream is lost.
fn lose(it: &mut Exchange, at: &mut WorkerEdge<'_>, why: MemberFailure, progress: Progress) {
    let loss = it.ends.lose_stream(at, why, progress);
    it.member_lost(at, loss);
}
