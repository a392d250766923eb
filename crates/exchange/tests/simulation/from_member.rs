//! The member's actions, as the member connection reports them to the transaction.

use weir_exchange::edge::{Edge, Flow, Side};
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::{MemberFailure, Progress};
use weir_exchange::parts::messages::Message;
use weir_exchange::parts::phase::Phase;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::response_data::ForwardResult;
use weir_http::message::Framing;

use super::asking;
use super::cells::On;
use super::from_worker;
use super::member::MemberConnection;
use super::plan::{Ask, Framed};
use super::router::Router;

fn connection(router: &mut Router) -> Option<&mut MemberConnection> {
    let it = router.it.as_ref()?;
    router.world.member(it.ends())
}

fn is_stream(router: &Router) -> bool {
    router.ends().is_some_and(|ends| ends.phase.member_stream().is_some())
}

/// The connection to the member is opened, and accepts the queued bytes.
pub fn connects(router: &mut Router) {
    let now_us = router.world.clock.now_us();
    let Some(connection) = connection(router) else { return };
    connection.is_connecting = false;
    let is_http2 = connection.is_http2;
    if is_http2 {
        connection.due_ms = None;
        router.with(None, |it, _| it.ends_mut().account.times.connected_us = now_us);
        router.with_http(Some(On::Connected), |it, at| {
            it.patience.request_handed_over(at, &mut it.ends, &it.request)
        });
        return takes(router);
    }
    match &mut router.it {
        Some(Transaction::Http(exchange)) => {
            exchange.ends.account.times.connected_us = now_us;
            let timeout_ms = exchange.ends.tries.pool.settings().response_timeout_ms;
            let due_ms = exchange.request.is_whole().then_some(now_us / 1_000 + timeout_ms);
            if let Some(connection) = router.world.member(&exchange.ends) {
                connection.due_ms = due_ms;
            }
        }
        Some(Transaction::Relay(_)) => router.with(Some(On::Connected), |it, at| {
            if let Transaction::Relay(relay) = it {
                relay.connected(at);
            }
        }),
        _ => {}
    }
    takes(router);
}

/// The member reads all bytes on its connection.
pub fn takes(router: &mut Router) {
    let now_ms = router.world.now_ms();
    let Some(connection) = connection(router) else { return };
    connection.is_slow = false;
    let attempt = connection.attempt;
    if !connection.take_all(now_ms) {
        return;
    }
    router.world.book.reach(&router.world.plan, attempt);
    if is_stream(router) {
        return stream_took(router);
    }
    match &router.it {
        Some(Transaction::Tunnel(_)) => {
            router.with_tunnel(Some(On::MemberTook), |it, at| it.member_took(at))
        }
        Some(Transaction::Http(exchange)) if exchange.request.is_whole() => {
            router.with_http(Some(On::MemberTook), |it, at| {
                it.ends.give_window(at);
                it.patience.request_handed_over(at, &mut it.ends, &it.request);
            });
        }
        Some(Transaction::Http(exchange)) => {
            let awaits_head = exchange.ends.phase.begun().is_none();
            router.with_http(Some(On::MemberTook), |it, at| {
                if awaits_head {
                    it.ends.clear_member_deadline(at);
                }
                it.request_goes_on(at);
            });
        }
        Some(Transaction::Relay(_)) | None => {}
    }
}

fn stream_took(router: &mut Router) {
    let stream = connection(router).and_then(|it| it.stream.as_mut());
    let Some(stream) = stream else { return };
    if !stream.pending.is_empty() {
        return router.let_request_out();
    }
    if std::mem::take(&mut stream.was_backed_up) {
        router.with(Some(On::MemberTook), |it, at| it.member_took(at));
    }
}

/// The window of the member's stream opens by this many bytes.
pub fn opens(router: &mut Router, bytes: usize) {
    let stream = connection(router).and_then(|it| it.stream.as_mut());
    let Some(stream) = stream else { return };
    stream.allowance = stream.allowance.saturating_add(bytes);
    router.let_request_out();
}

/// The member's SETTINGS arrive, with or without support for extended CONNECT.
pub fn says(router: &mut Router, takes_tunnels: bool) {
    let Some(connection) = connection(router) else { return };
    connection.takes_tunnels = Some(takes_tunnels);
    let Some(exchange) = router.it.as_ref().and_then(Transaction::http) else { return };
    if asking::awaits_settings(&mut router.world, &exchange.ends, &exchange.request) {
        router.with_http(Some(On::Settings), |it, at| {
            asking::ask_for_tunnel(at, &it.ends, &it.request);
            it.ends.clear_member_deadline(at);
            it.patience.request_handed_over(at, &mut it.ends, &it.request);
        });
    }
}

/// Handles the arrival of response bytes. False: no response is expected on the connection.
fn answers(router: &mut Router) -> bool {
    let Some(connection) = connection(router) else { return false };
    let (attempt, sent_bytes) = (connection.attempt, connection.sent_bytes);
    let Some(exchange) = router.it.as_mut().and_then(Transaction::http_mut) else { return false };
    let Some(asked) = exchange.ends.phase.attempt_mut() else { return false };
    let is_on_stream = asked.link.is_some_and(|link| link.stream.is_some());
    if !is_on_stream && sent_bytes == asked.sent_before {
        let why = if asked.may_be_stale { MemberFailure::Abort } else { MemberFailure::Malformed };
        router.world.book.is_spoiled = true;
        router.connection_lost(why);
        return false;
    }
    asked.response_seen = true;
    router.world.book.attempts[attempt].is_answered = true;
    true
}

/// The member sends an interim response.
pub fn says_interim(router: &mut Router) {
    if answers(router) {
        if let Some(attempt) = connection(router).map(|it| it.attempt) {
            router.world.book.attempts[attempt].has_interim = true;
        }
        let (head, text) = router.world.plan.response_head(103, false);
        router.with_http(Some(On::Interim), |it, at| it.forward_interim(at, &head, &text));
    }
}

/// The member switches protocols, whether that was offered or not.
pub fn switches(router: &mut Router) {
    if !answers(router) {
        return;
    }
    let is_offered = router.http().is_some_and(|it| it.request.websocket.is_some());
    if !is_offered {
        return fails(router, MemberFailure::Malformed);
    }
    let (head, text) = router.world.plan.response_head(101, false);
    router.with_http(Some(On::Switches), |it, at| {
        at.flow(&mut it.ends, Side::Member, Flow::Bulk);
        it.begin_tunnel(at, (&head, &text), false);
    });
}

/// The member sends the head of its response, with this number of body bytes.
pub fn responds(router: &mut Router, status: u16, bytes: usize, is_end: bool) {
    if !answers(router) {
        return;
    }
    let plan = router.world.plan;
    let (mut head, text) = plan.response_head(status, is_end && bytes == 0);
    if router.http().is_some_and(|it| it.request.is_no_tunnel(&it.ends.phase, status)) {
        return router.with_http(Some(On::Refused), |it, at| {
            it.respond(at, 502, Termination::MemberMalformed)
        });
    }
    let keep = head.keep_alive && !matches!(head.framing, Framing::UntilClose);
    if let Some(connection) = connection(router) {
        connection.keep = keep;
    }
    let is_on_stream = is_stream(router);
    let body = if is_on_stream { &b""[..] } else { plan.response_bytes(0, bytes) };
    let attempt = connection(router).map(|it| it.attempt);
    if let Some(attempt) = attempt {
        router.world.book.begin_answer(&plan, attempt, status);
    }
    let message =
        router.with_http(Some(On::Head), |it, at| it.begin_response(at, &mut head, (&text, body)));
    if router.http().is_some_and(|it| it.ends.phase.begun().is_none() && !it.ends.is_over()) {
        // The response is dropped, and another member is tried.
        return;
    }
    if let Some(attempt) = attempt {
        router.world.book.attempts[attempt].is_answered = true;
    }
    if !is_on_stream {
        return passes(router, message, bytes, is_end);
    }
    // On a stream, the data follows the head in a separate frame.
    let end = if is_end && bytes == 0 { End::Data } else { End::No };
    router.world.book.has_response_end |= !matches!(end, End::No);
    router.with_http(Some(On::MemberData), |it, at| it.member_body(at, message, b"", end));
    if bytes > 0 {
        sends(router, bytes, is_end);
    }
}

/// The member sends more of its response or of the tunnel.
pub fn sends(router: &mut Router, bytes: usize, is_end: bool) {
    let plan = router.world.plan;
    if let Some(Transaction::Tunnel(_)) = router.it
        && !is_stream(router)
    {
        let data = router.world.next_of_response(bytes);
        return router.with_tunnel(Some(On::MemberData), |it, at| it.member_sent(at, data));
    }
    if !is_stream(router) {
        let nothing = router.world.tools.scratch.take();
        return passes(router, nothing, bytes, is_end);
    }
    let data = router.world.next_of_response(bytes);
    router.world.book.has_response_end |= is_end;
    if let Some(stream) = connection(router).and_then(|it| it.stream.as_mut()) {
        stream.unreleased += bytes;
    }
    let has_trailers = plan.response.framed == Framed::Trailers && !plan.is_tunnel();
    let end = match (is_end, has_trailers) {
        (false, _) => End::No,
        (true, false) => End::Data,
        (true, true) => End::Trailers(&[], b""),
    };
    router.with(Some(On::MemberData), |it, at| it.member_data(at, data, end));
}

/// Forwards a part of a response's body on an HTTP/1 connection.
fn passes(router: &mut Router, head: Message, bytes: usize, is_end: bool) {
    let plan = router.world.plan;
    let data = router.world.next_of_response(bytes);
    let end = match (is_end, plan.response.framed) {
        (false, _) | (true, Framed::Close) => End::No,
        (true, Framed::Trailers) => End::Trailers(&[], b""),
        (true, _) => End::Data,
    };
    let is_done = !matches!(end, End::No);
    router.world.book.has_response_end |= is_done;
    let pieces = if is_done { Pieces::whole(bytes) } else { Pieces::part(bytes) };
    let passed = router
        .with_http(Some(On::MemberData), |it, at| it.send_response(at, head, (data, &pieces), end));
    match (passed, is_done) {
        (ForwardResult::Over, _) => {}
        (_, true) => router.with_http(Some(On::Complete), |it, at| it.response_done(at, true)),
        (_, false) => {
            router
                .with_http(None, |it, at| it.patience.pace_response(at, &mut it.ends, &it.request));
            if is_end {
                ends(router);
            }
        }
    }
}

/// The member ends its connection, or its half of a tunnel.
pub fn ends(router: &mut Router) {
    if let Some(Transaction::Tunnel(_)) = router.it {
        router.world.book.has_response_end = true;
        return match is_stream(router) {
            true => router.with(Some(On::MemberEnds), |it, at| it.member_data(at, b"", End::Data)),
            false => router.with_tunnel(Some(On::MemberEnds), |it, at| it.member_ended(at)),
        };
    }
    let is_open = router.http().is_some_and(|it| matches!(it.ends.phase, Phase::Asked(_, Some(_))));
    let is_end =
        router.world.plan.response.framed == Framed::Close && router.world.plan.ask != Ask::Head;
    if !(is_open && is_end && !is_stream(router)) {
        return router.connection_lost(MemberFailure::Abort);
    }
    router.world.book.has_response_end = true;
    let nothing = router.world.tools.scratch.take();
    let rest = (&b""[..], &Pieces::whole(0));
    let passed = router
        .with_http(Some(On::MemberEnds), |it, at| it.send_response(at, nothing, rest, End::Data));
    if passed == ForwardResult::Over {
        return;
    }
    if let Some(connection) = connection(router) {
        connection.keep = false;
    }
    router.with_http(Some(On::Complete), |it, at| it.response_done(at, true));
}

/// The member sends invalid bytes.
pub fn fails(router: &mut Router, why: MemberFailure) {
    if !is_stream(router) {
        return router.connection_lost(why);
    }
    if let Some(attempt) = router.it.as_mut().and_then(|it| it.ends_mut().phase.attempt_mut()) {
        attempt.may_be_stale = false;
    }
    let progress = from_worker::progress(router);
    router.with(Some(On::StreamLost), |it, at| it.stream_lost(at, why, progress));
}

/// The member reports that it has not processed the request.
pub fn has_not_read(router: &mut Router) {
    let Some(connection) = connection(router) else { return };
    let attempt = connection.attempt;
    router.world.book.attempts[attempt].is_unread = true;
    router.with(Some(On::StreamLost), |it, at| {
        it.stream_lost(at, MemberFailure::Abort, Progress::Unread)
    });
}

/// After the end of its half of a tunnel, the member refuses the rest of the other half.
pub fn leaves(router: &mut Router) {
    if !router.with_tunnel(Some(On::StreamLost), |it, at| it.member_left(at)) {
        fails(router, MemberFailure::Abort);
    }
}
