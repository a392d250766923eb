//! The client's actions, as the client connection reports them to the transaction.

use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::transaction_ends::LetOut;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::Transaction;

use super::cells::On;
use super::plan::Framed;
use super::router::Router;

/// The client sends bytes, and possibly the end of its body.
pub fn sends(router: &mut Router, bytes: usize, is_end: bool) {
    let plan = router.world.plan;
    let client = &mut router.world.client;
    let start = client.sent;
    client.sent += bytes;
    client.has_sent_end |= is_end;
    let Some(stream) = &mut client.stream else { return input(router) };
    stream.unreleased += bytes;
    client.used = client.sent;
    let data = plan.request_bytes(start, bytes);
    let trailers = End::Trailers(&[], b"");
    if is_end && plan.request.framed == Framed::Trailers && !plan.is_tunnel() {
        router.with(Some(On::ClientData), |it, at| it.client_data(at, data, End::No));
        return router.with(Some(On::ClientData), |it, at| it.client_data(at, b"", trailers));
    }
    let end = if is_end { End::Data } else { End::No };
    router.with(Some(On::ClientData), |it, at| it.client_data(at, data, end));
}

/// Processes the bytes that an HTTP/1 client has sent.
pub fn input(router: &mut Router) {
    let plan = router.world.plan;
    let client = &mut router.world.client;
    let has_input = client.has_input();
    let bytes = plan.request_bytes(client.used, client.sent - client.used);
    match &router.it {
        None => {}
        Some(Transaction::Tunnel(_)) => {
            client.used = client.sent;
            router.with_tunnel(Some(On::ClientData), |it, at| it.client_sent(at, bytes));
        }
        Some(Transaction::Relay(_)) => client.is_paused |= has_input,
        Some(Transaction::Http(state)) if !state.takes_body() => {
            client.is_paused |= has_input;
        }
        Some(Transaction::Http(_)) => {
            client.used = client.sent;
            client.is_end_used = client.has_sent_end;
            let is_end = client.is_end_used;
            let pieces = match is_end {
                true => Pieces::whole(bytes.len()),
                false => Pieces::part(bytes.len()),
            };
            let end = match (is_end, plan.request.framed) {
                (false, _) => End::No,
                (true, Framed::Trailers) => End::Trailers(&[], b""),
                (true, _) => End::Data,
            };
            router.with_http(Some(On::ClientData), |it, at| {
                it.client_data(at, (bytes, &pieces), end)
            });
        }
    }
}

/// Continues with the client: processes buffered bytes, and then the client's FIN.
pub fn goes_on(router: &mut Router) {
    if router.world.client.has_input() {
        input(router);
    }
    if router.world.client.has_ended && !router.world.client.has_input() {
        router.with_tunnel(Some(On::ClientEnds), |it, at| it.handle_client_end(at));
    }
}

/// The client sends malformed or excessive data.
pub fn sends_garbage(router: &mut Router) {
    if router.world.client.stream.is_some() {
        return router
            .with(Some(On::ClientLeaves), |it, at| it.abandon(at, Termination::ClientMalformed));
    }
    router.with_http(Some(On::Refused), |it, at| it.respond(at, 400, Termination::ClientMalformed));
}

/// The client reads all bytes on its connection.
pub fn takes(router: &mut Router) {
    let now_ms = router.world.now_ms();
    let client = &mut router.world.client;
    client.is_slow = false;
    if std::mem::take(&mut client.queued) == 0 {
        return;
    }
    client.progress_ms = now_ms;
    if client.stream.is_none() {
        return router.with(Some(On::ClientTook), |it, at| it.client_took(at));
    }
    lets_out(router);
    let waits = |it: &Transaction| it.ends().is_member_stopped || it.is_tunnel();
    if router.it.as_ref().is_some_and(waits)
        && !router.with(None, |it, at| it.ends().is_client_behind(at))
    {
        router.with(Some(On::ClientTook), |it, at| it.client_took(at));
    }
}

/// The window of the client's stream opens by this many bytes.
pub fn opens(router: &mut Router, bytes: usize) {
    if let Some(stream) = &mut router.world.client.stream {
        stream.allowance = stream.allowance.saturating_add(bytes);
    }
    lets_out(router);
}

fn lets_out(router: &mut Router) {
    loop {
        let now_ms = router.world.now_ms();
        let client = &mut router.world.client;
        let is_queued = client.queued > 0;
        let Some(stream) = client.stream.as_mut().filter(|it| it.pending > 0) else { return };
        if is_queued {
            return;
        }
        let bytes = stream.pending.min(stream.allowance);
        stream.allowance -= bytes;
        stream.pending -= bytes;
        if stream.pending > 0 {
            stream.stalled_ms = now_ms;
        } else {
            stream.is_end_pending = false;
        }
        let sent = LetOut { data_bytes: bytes, is_behind: stream.pending > 0 };
        client.queue(bytes, now_ms);
        if !router.with(Some(On::ClientLetOut), |it, at| it.client_let_out(at, &sent)) {
            return;
        }
    }
}

/// The HTTP/1 client closes its side of the connection.
pub fn ends(router: &mut Router) {
    router.world.client.has_ended = true;
    router.with(Some(On::ClientEnds), |it, at| it.client_finished(at));
}

/// The client ends its stream early, because it has the response.
pub fn cuts(router: &mut Router) {
    router.world.client.has_sent_end = true;
    router.with(Some(On::ClientCuts), |it, at| it.client_cut(at));
}

/// The client's connection fails.
pub fn leaves(router: &mut Router) {
    router.with(Some(On::ClientLeaves), |it, at| it.abandon(at, Termination::ClientAbort));
}
