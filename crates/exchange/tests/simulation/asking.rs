//! The simulated world's operations on members: connections, requests on them, and their release.

use std::rc::Rc;

use weir_exchange::arena::{ConnectionKey, MemberStreamKey};
use weir_exchange::edge::Release;
use weir_exchange::local::member::LocalMember;
use weir_exchange::parts::attempt::Link;
use weir_exchange::parts::end::{End, OwnedEnd};
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::request::{ConnectionNeed, Request};
use weir_exchange::parts::transaction_ends::TransactionEnds;
use weir_exchange::transaction::exchange::REPLAY_BYTES_MAX;
use weir_http::h1::{CHUNK_HEADER_SIZE_MAX, write_chunk_header};
use weir_http::message::Framing;

use super::member::{MemberConnection, MemberStream};
use super::model::Attempt;
use super::world::{World, end_of_chunks};

/// Maximum idle time of a connection that is reused for a request that cannot be repeated.
const UNREPEATABLE_REUSE_IDLE_MS: u64 = 1_000;
/// Maximum size of body data that is sent together with the head, in bytes.
const SMALL_BYTES: usize = 4_096;

/// Gets a connection to a member for an exchange: an idle one, or a new one.
pub fn connect(
    world: &mut World,
    ends: &mut TransactionEnds,
    (member, need): (u32, ConnectionNeed),
    is_again: bool,
) -> Result<(), MemberFailure> {
    if let Some(failure) = world.bad_connects.pop_front() {
        return Err(failure);
    }
    assert!(ends.phase.attempt().is_some(), "a place at the member comes first");
    let local = Rc::clone(&ends.tries.pool.members[member as usize]);
    let is_http2 = ends.tries.pool.settings().http2 && !need.is_fresh();
    let kept = if is_again || need.is_fresh() { None } else { kept(world, &local, need, is_http2) };
    let is_open = |key: &ConnectionKey| world.members.get(*key).is_some_and(|it| !it.is_connecting);
    let is_kept = kept.as_ref().is_some_and(is_open);
    let key = kept.unwrap_or_else(|| open(world, ends, &local, member, is_http2));
    let (now_us, index) = (world.clock.now_us(), world.book.attempts.len());
    world.book.attempts.push(Attempt::default());
    ends.account.times.connect(if is_kept { now_us } else { 0 });
    let Some(attempt) = ends.phase.attempt_mut() else { unreachable!("it has a place") };
    (attempt.may_be_stale, attempt.sent_before) = (is_kept, 0);
    let mut link = Link::to(key);
    let Some(connection) = world.members.get_mut(key) else { unreachable!("it is there") };
    connection.exchange = Some(ends.key);
    connection.attempt = index;
    if is_http2 {
        let stream = MemberStreamKey::from_bits(1 << 32 | index as u64).expect("a key");
        link.stream = Some(stream);
        connection.stream = Some(MemberStream::new());
    } else {
        attempt.sent_before = connection.sent_bytes;
    }
    attempt.link = Some(link);
    Ok(())
}

fn kept(
    world: &mut World,
    local: &LocalMember,
    need: ConnectionNeed,
    is_http2: bool,
) -> Option<ConnectionKey> {
    let list = if is_http2 { &local.multiplexed } else { &local.idle };
    let key = *list.borrow().last()?;
    let now_ms = world.now_ms();
    let connection = world.members.get_mut(key).expect("what is kept is there");
    if is_http2 {
        return connection.exchange.is_none().then_some(key);
    }
    let is_fresh = now_ms - connection.idle_since_ms < UNREPEATABLE_REUSE_IDLE_MS;
    if !need.is_repeatable && !is_fresh {
        return None;
    }
    connection.due_ms = None;
    list.borrow_mut().pop();
    Some(key)
}

fn open(
    world: &mut World,
    ends: &TransactionEnds,
    local: &LocalMember,
    member: u32,
    is_http2: bool,
) -> ConnectionKey {
    let now_ms = world.now_ms();
    let mut connection = MemberConnection::opening(member, is_http2, now_ms);
    connection.due_ms = Some(now_ms + ends.tries.pool.settings().connect_timeout_ms);
    let key = world.members.insert(connection);
    if is_http2 {
        local.multiplexed.borrow_mut().push(key);
    }
    key
}

/// Sends bytes on the connection to the member.
fn send(world: &mut World, ends: &TransactionEnds, bytes: &[u8]) {
    let now_ms = world.now_ms();
    let Some(connection) = world.member(ends) else { return };
    let attempt = connection.attempt;
    let is_taken = connection.send(bytes, now_ms);
    world.book.attempts[attempt].bytes.extend_from_slice(bytes);
    if is_taken {
        world.book.reach(&world.plan, attempt);
    }
}

/// Sends a request, or a further part of it.
pub fn ask(
    world: &mut World,
    ends: &mut TransactionEnds,
    request: &mut Request,
    (input, pieces): (&[u8], &Pieces),
    end: End<'_>,
) {
    let is_stream = ends.phase.member_stream().is_some();
    if request.framing.is_empty() {
        request.send();
        return match (is_stream, request.websocket.is_some()) {
            (true, true) => ask_for_tunnel(world, ends, request),
            (true, false) => open_stream(world, ends, request, true),
            (false, _) => send(world, ends, &request.bytes),
        };
    }
    if is_stream {
        return ask_on_stream(world, ends, request, (input, pieces), end);
    }
    let small = pieces.data_bytes <= SMALL_BYTES
        && request.is_replayable()
        && request.bytes.len() < REPLAY_BYTES_MAX;
    let first = request.send();
    let mut out = Vec::new();
    if first {
        out.extend_from_slice(&request.bytes);
    }
    let before = out.len();
    frame(request.framing, (input, pieces), end, &mut out);
    send(world, ends, &out);
    if small {
        request.bytes.extend_from_slice(&out[before..]);
    } else {
        request.let_go();
    }
}

fn frame(framing: Framing, (input, pieces): (&[u8], &Pieces), end: End<'_>, out: &mut Vec<u8>) {
    let is_chunk = framing == Framing::Chunked && pieces.data_bytes > 0;
    if is_chunk {
        let mut header = [0; CHUNK_HEADER_SIZE_MAX];
        out.extend_from_slice(write_chunk_header(pieces.data_bytes as u64, &mut header));
    }
    pieces.of(input).for_each(|data| out.extend_from_slice(data));
    out.extend_from_slice(if is_chunk { b"\r\n" } else { b"" });
    out.extend_from_slice(end_of_chunks(framing, end));
}

fn ask_on_stream(
    world: &mut World,
    ends: &mut TransactionEnds,
    request: &mut Request,
    (input, pieces): (&[u8], &Pieces),
    end: End<'_>,
) {
    let is_first = request.send();
    let is_connecting = world.member(ends).is_some_and(|it| it.is_connecting);
    if request.is_replayable() {
        let fits = request.bytes.len() + pieces.data_bytes <= REPLAY_BYTES_MAX;
        if !(fits || is_connecting) {
            request.let_go();
        }
    }
    if request.is_replayable() {
        pieces.of(input).for_each(|data| request.bytes.extend_from_slice(data));
        request.keep_trailers(end);
    }
    if is_first {
        open_stream(world, ends, request, false);
    }
    let data: Vec<u8> = pieces.of(input).flatten().copied().collect();
    send_on_stream(world, ends, &data, end);
}

fn open_stream(world: &mut World, ends: &TransactionEnds, request: &Request, is_end: bool) {
    let Some(connection) = world.member(ends) else { return };
    let attempt = connection.attempt;
    let Some(stream) = &mut connection.stream else { return };
    assert!(!stream.is_opened, "a request has one stream");
    stream.is_opened = true;
    world.book.attempts[attempt].stream_head = Some(request.head_bytes as usize);
    world.book.attempts[attempt].has_end = is_end;
    send(world, ends, &request.bytes[..request.head_bytes as usize]);
}

fn send_on_stream(world: &mut World, ends: &TransactionEnds, data: &[u8], end: End<'_>) {
    let Some(connection) = world.member(ends) else { return };
    let attempt = connection.attempt;
    let Some(stream) = connection.stream.as_mut().filter(|stream| stream.is_opened) else { return };
    let out = if stream.pending.is_empty() { data.len().min(stream.allowance) } else { 0 };
    stream.allowance -= out;
    stream.pending.extend_from_slice(&data[out..]);
    if !stream.pending.is_empty() {
        stream.pending_end = OwnedEnd::of(end);
    } else {
        world.book.attempts[attempt].note_end(end);
    }
    send(world, ends, &data[..out]);
}

/// Sends waiting bytes of a request, as far as the window allows. Returns whether any bytes waited.
pub fn let_out(world: &mut World, ends: &TransactionEnds) -> bool {
    let Some(connection) = world.member(ends) else { return false };
    let attempt = connection.attempt;
    let Some(stream) = connection.stream.as_mut().filter(|it| !it.pending.is_empty()) else {
        return false;
    };
    let out = stream.pending.len().min(stream.allowance);
    stream.allowance -= out;
    let data: Vec<u8> = stream.pending.drain(..out).collect();
    let end = match stream.pending.is_empty() {
        true => std::mem::take(&mut stream.pending_end),
        false => OwnedEnd::No,
    };
    send(world, ends, &data);
    world.book.attempts[attempt].note_end(end.get());
    true
}

/// Sends a request again, on another connection.
pub fn ask_again(
    world: &mut World,
    ends: &mut TransactionEnds,
    request: &mut Request,
    unsent: &[u8],
) {
    request.send();
    if ends.phase.member_stream().is_none() {
        let bytes = if unsent.is_empty() { &request.bytes } else { unsent };
        return send(world, ends, bytes);
    }
    if request.websocket.is_some() {
        return ask_for_tunnel(world, ends, request);
    }
    let is_bare = request.framing.is_empty();
    open_stream(world, ends, request, is_bare);
    if !is_bare {
        send_on_stream(world, ends, &request.bytes[request.head_bytes as usize..], request.end());
    }
    let is_open = world.member(ends).is_some_and(|it| !it.is_connecting);
    if is_open && request.bytes.len() - request.head_bytes as usize > REPLAY_BYTES_MAX {
        request.let_go();
        request.bytes.truncate(request.head_bytes as usize);
    }
}

/// Whether a stream waits for the member's SETTINGS before it is opened.
pub fn awaits_settings(world: &mut World, ends: &TransactionEnds, request: &Request) -> bool {
    let stream = world.member(ends).and_then(|it| it.stream.as_ref());
    stream.is_some_and(|stream| !stream.is_opened) && request.websocket.is_some()
}

/// Requests a WebSocket, if the member is known to support it. Before the SETTINGS arrive, the request waits.
pub fn ask_for_tunnel(world: &mut World, ends: &TransactionEnds, request: &Request) {
    let connection = ends.phase.connection();
    match world.member(ends).and_then(|it| it.takes_tunnels) {
        None => {}
        Some(true) => open_stream(world, ends, request, false),
        Some(false) => {
            world.book.is_spoiled = true;
            world.refuses_tunnel = connection;
        }
    }
}

/// Sends bytes of a tunnel, and possibly its end.
pub fn pass(world: &mut World, ends: &TransactionEnds, bytes: &[u8], is_end: bool) {
    if ends.phase.member_stream().is_none() {
        return send(world, ends, bytes);
    }
    let Some(stream) = world.member(ends).and_then(|it| it.stream.as_mut()) else { return };
    if stream.is_end_told {
        return;
    }
    stream.is_end_told = is_end;
    send_on_stream(world, ends, bytes, if is_end { End::Data } else { End::No });
}

/// Ends the sending direction of a tunnel to the member.
pub fn half_close(world: &mut World, ends: &TransactionEnds) {
    if ends.phase.member_stream().is_some() {
        return pass(world, ends, b"", true);
    }
    let Some(connection) = world.member(ends) else { return };
    let (attempt, is_taken) = (connection.attempt, connection.queued.is_empty());
    if is_taken {
        world.book.attempts[attempt].has_end = true;
    }
}

/// The deadline of a member that reads slowly; 0: there is no sign of progress.
pub fn patience_until_ms(world: &mut World, ends: &TransactionEnds, timeout_ms: u64) -> u64 {
    let Some(connection) = world.member(ends) else { return 0 };
    let (progress_ms, is_queued) = (connection.progress_ms, !connection.queued.is_empty());
    match &connection.stream {
        Some(stream) if !stream.pending.is_empty() => progress_ms + timeout_ms,
        Some(stream) if !stream.was_backed_up => 0,
        _ if is_queued => progress_ms + timeout_ms,
        _ => 0,
    }
}

/// Releases the connection to the member. Returns whether a part of the request was sent on its stream.
pub fn release(world: &mut World, ends: &mut TransactionEnds, how: Release) -> bool {
    let Some(Link { connection: key, stream }) = ends.phase.take_link() else {
        leave_line(world, ends);
        return false;
    };
    let now_ms = world.now_ms();
    let Some(connection) = world.members.get_mut(key) else { return false };
    let member = Rc::clone(&ends.tries.pool.members[connection.member as usize]);
    if stream.is_some() {
        let was_opened = connection.stream.take().is_some_and(|stream| stream.is_opened);
        (connection.exchange, connection.idle_since_ms) = (None, now_ms);
        // Bytes that were queued earlier do not affect the next request.
        connection.queued.clear();
        if !connection.is_connecting {
            connection.due_ms = None;
        }
        return was_opened;
    }
    if how == Release::Keep && connection.keep {
        assert!(!connection.is_connecting, "what is kept is open");
        (connection.exchange, connection.idle_since_ms) = (None, now_ms);
        (connection.due_ms, connection.is_paused) = (None, false);
        member.idle.borrow_mut().push(key);
    } else {
        close(world, &member, key);
    }
    false
}

/// Removes a transaction from the queue, if it waits there.
pub fn leave_line(world: &mut World, ends: &mut TransactionEnds) {
    if ends.phase.wait_state().is_in_queue() {
        world.queue.leave(&ends.tries.pool, &ends.phase.end_wait());
    }
}

/// Closes a connection.
pub fn close(world: &mut World, member: &LocalMember, key: ConnectionKey) {
    member.multiplexed.borrow_mut().retain(|other| *other != key);
    member.idle.borrow_mut().retain(|other| *other != key);
    world.members.remove(key);
}
