//! Events that neither the client nor the member causes: a free place, a timer, the loss of a connection.

use std::rc::Rc;

use weir_exchange::arena::ConnectionKey;
use weir_exchange::local::pool::NoMember;
use weir_exchange::parts::failure::{Loss, MemberFailure, Progress};
use weir_exchange::parts::tries::Lease;
use weir_exchange::parts::wait_state::WaitState;
use weir_exchange::termination::Termination;

use super::asking;
use super::cells::On;
use super::plan::Framed;
use super::router::Router;

/// Continues the transaction if it gets a place or its timer has expired.
pub fn serve_waiting(router: &mut Router) {
    let now = router.world.clock;
    if router.world.delayed_until_us.is_some_and(|until_us| until_us <= now.now_us()) {
        router.world.delayed_until_us = None;
        router.with(Some(On::Resumes), |it, at| it.resume(at));
    }
    let Some(it) = &mut router.it else { return };
    let ends = it.ends_mut();
    if !ends.phase.wait_state().is_in_queue() {
        return;
    }
    let pool = Rc::clone(&ends.tries.pool);
    if router.world.queue.due_ms().is_some_and(|until_ms| until_ms <= now.now_ms()) {
        router.world.queue.take_out(&pool);
        ends.phase.end_wait();
        return router.with(Some(On::WaitedInVain), |it, at| it.wait_timed_out(at));
    }
    let tried = if matches!(ends.phase.wait_state(), WaitState::InLine(_)) {
        &[]
    } else {
        ends.tries.tried()
    };
    let place = match pool.occupy(tried, now, ends.tries.preference) {
        Ok(member) => Some(Lease::of(&pool, member)),
        Err(NoMember::Full) => return,
        Err(NoMember::Down) => None,
    };
    ends.phase.park(WaitState::Called(place));
    router.world.queue.take_out(&pool);
    router.with(Some(On::Resumes), |it, at| it.resume(at));
}

/// The timer that expires first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Client,
    /// The timer of an HTTP/2 client's connection.
    ClientConnection,
    Member,
    /// The delay of the transaction, or its timeout in the queue.
    Worker,
}

/// Whether any timer is set.
pub fn is_anything_due(router: &Router) -> bool {
    first_due(router).is_some()
}

fn first_due(router: &Router) -> Option<(u64, Due)> {
    let world = &router.world;
    let ends = router.ends()?;
    let client = &world.client;
    let is_untaken = client.stream.is_some() && client.queued > 0;
    let untaken_ms = is_untaken.then_some(client.progress_ms + ends.server.http.body_timeout_ms);
    let connection = ends.phase.connection().and_then(|key| world.members.get(key));
    let delayed_ms = world.delayed_until_us.map(|until_us| until_us.div_ceil(1_000));
    let dues = [
        (client.due_ms, Due::Client),
        (untaken_ms, Due::ClientConnection),
        (connection.and_then(|it| it.due_ms), Due::Member),
        (delayed_ms, Due::Worker),
        (world.queue.due_ms(), Due::Worker),
    ];
    dues.into_iter().filter_map(|(at_ms, due)| Some((at_ms?, due))).min_by_key(|(at_ms, _)| *at_ms)
}

/// Advances the time until the next timer expires.
pub fn time_passes(router: &mut Router) {
    let Some((at_ms, due)) = first_due(router) else { return };
    router.world.pass_ms(at_ms.saturating_sub(router.world.now_ms()));
    match due {
        Due::Client => client_timer(router),
        Due::ClientConnection => {
            router
                .with(Some(On::ClientLeaves), |it, at| it.abandon(at, Termination::ClientTimeout));
        }
        Due::Member => member_timer(router),
        Due::Worker => {}
    }
}

fn client_timer(router: &mut Router) {
    router.world.client.due_ms = None;
    router.with(Some(On::ClientIsLate), |it, at| it.client_timed_out(at));
}

fn member_timer(router: &mut Router) {
    let now_ms = router.world.now_ms();
    let Some(it) = &router.it else { return };
    let Some(connection) = router.world.member(it.ends()) else { return };
    connection.due_ms = None;
    if connection.is_connecting {
        return connection_lost(router, MemberFailure::ConnectTimeout);
    }
    let is_stream = connection.stream.is_some();
    let lags =
        connection.stream.as_ref().is_some_and(|it| !it.pending.is_empty() || it.was_backed_up);
    let progress_ms = connection.progress_ms;
    let is_queued = !connection.queued.is_empty();
    let Some(exchange) = it.http() else { return };
    let timeout_ms = exchange.patience.pace.client_timeout_ms(&exchange.ends.server);
    let may_be_behind = !is_stream || lags || !exchange.request.framing.is_empty();
    if asking::awaits_settings(&mut router.world, &exchange.ends, &exchange.request) {
        return router.with(Some(On::SettingsAreLate), |it, at| {
            it.stream_lost(at, MemberFailure::ConnectTimeout, Progress::Unsettled);
        });
    }
    let until_ms = if is_queued && may_be_behind { progress_ms + timeout_ms } else { 0 };
    if until_ms > now_ms {
        return router.with_http(None, |it, at| it.ends.set_member_deadline(at, until_ms));
    }
    match is_stream {
        true => {
            let progress = progress(router);
            router.with(Some(On::StreamLost), |it, at| {
                it.stream_lost(at, MemberFailure::Timeout, progress)
            });
        }
        false => connection_lost(router, MemberFailure::Timeout),
    }
}

/// What is known of a stream that fails: whether all of the announced length had come.
pub fn progress(router: &mut Router) -> Progress {
    let plan = router.world.plan;
    let has_begun = router.http().is_some_and(|it| it.ends.phase.begun().is_some());
    let book = &mut router.world.book;
    let is_whole = has_begun
        && router.world.client.stream.is_none()
        && plan.response.framed == Framed::Length
        && !plan.is_tunnel()
        && book.response_sent == plan.response_length()
        && !book.has_response_end;
    if is_whole {
        (book.has_response_end, book.is_whole_by_length) = (true, true);
        return Progress::Whole;
    }
    Progress::Begun
}

/// Handles a lost connection to a member: its transaction is retried elsewhere or ends.
pub fn connection_lost(router: &mut Router, why: MemberFailure) {
    let is_stream = router.it.as_ref().is_some_and(|it| it.ends().phase.member_stream().is_some());
    let is_whole = is_stream && progress(router) == Progress::Whole;
    let Some(it) = &mut router.it else { return };
    let ends = it.ends_mut();
    let Some(key) = ends.phase.connection() else { return };
    let sent_before = ends.phase.attempt().map_or(0, |attempt| attempt.sent_before);
    let Some(connection) = router.world.members.get_mut(key) else { return };
    let is_connecting = connection.is_connecting;
    let mut loss = Loss {
        reason: why,
        nothing_sent: is_connecting || connection.sent_bytes == sent_before,
        unsent: Vec::new(),
        is_counted: false,
        is_whole,
    };
    if let Some(stream) = &connection.stream {
        loss.nothing_sent = is_connecting || !stream.is_opened;
        ends.phase.take_link();
    } else if is_connecting {
        loss.unsent = std::mem::take(&mut connection.queued);
    }
    close(router, key);
    router.with(Some(On::MemberLost), |it, at| it.member_lost(at, loss));
}

fn close(router: &mut Router, key: ConnectionKey) {
    let Some(connection) = router.world.members.get(key) else { return };
    let member = connection.member as usize;
    let Some(it) = &router.it else { return };
    let local = Rc::clone(&it.ends().tries.pool.members[member]);
    asking::close(&mut router.world, &local, key);
}

/// Ends the transaction, because the process stops.
pub fn stop(router: &mut Router) {
    let is_stream = router.world.client.stream.is_some();
    router.with(Some(On::Stops), |it, at| match is_stream {
        true => it.abandon(at, Termination::Stopped),
        false => it.truncate(at, Termination::Stopped),
    });
}
