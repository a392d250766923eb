//! The events that are possible in a state, and their application.

use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::phase::Begun;
use weir_exchange::transaction::Transaction;

use super::client::Client;
use super::member::MemberConnection;
use super::plan::{BYTES_MAX, Body, Framed, Plan, WINDOW_BYTES};
use super::router::Router;
use super::scene::BODY_BYTES_MAX;
use super::{from_client, from_inspector, from_member, from_service, from_worker};

/// The size of a small window update in bytes.
const LITTLE_BYTES: usize = 5;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The client sends a piece of the request's body or of the tunnel.
    ClientSends,
    /// The client sends the rest of its data, and the end.
    ClientSendsRest,
    /// The client sends a malformed body.
    ClientSendsGarbage,
    /// The client stops reading.
    ClientStops,
    /// The client reads all data.
    ClientTakes,
    /// The window of the client's stream closes, opens a little, or opens completely.
    ClientShuts,
    ClientOpensALittle,
    ClientOpens,
    /// The client ends its connection, or its half of a tunnel.
    ClientEnds,
    /// The client ends its request early, because it has the response.
    ClientCuts,
    /// The client's connection fails.
    ClientLeaves,
    /// The connection to the member is opened.
    MemberConnects,
    /// The connection to the member cannot be opened.
    MemberRefuses,
    /// The member stops reading.
    MemberStops,
    /// The member reads all data.
    MemberTakes,
    /// The window of the member's stream closes, opens a little, or opens completely.
    MemberShuts,
    MemberOpensALittle,
    MemberOpens,
    /// The member's SETTINGS arrive, with or without support for extended CONNECT.
    MemberTakesTunnels,
    MemberTakesNoTunnels,
    /// The member sends an interim response.
    MemberSaysInterim,
    /// The member accepts a tunnel.
    MemberSwitches,
    /// The member sends the head of a response, and a piece of its body.
    MemberResponds,
    /// The member sends a complete response.
    MemberRespondsWhole,
    /// The member sends a response without a body: 304.
    MemberRespondsBare,
    /// The member sends the head of a response that counts as a failure: 503.
    MemberFails,
    /// The member sends a piece of its body or of the tunnel.
    MemberSends,
    /// The member sends the rest of its data, and the end.
    MemberSendsRest,
    /// The member ends its connection, or its half of a tunnel.
    MemberEnds,
    /// The connection to the member fails.
    MemberBreaks,
    /// The member resets its stream.
    MemberResets,
    /// The member reports that it has not processed the request on its stream.
    MemberHasNotRead,
    /// After the end of its half of a tunnel, the member refuses the rest of the other half.
    MemberLeaves,
    /// The member sends invalid bytes.
    MemberSendsGarbage,
    /// The authorisation service allows the request, denies it, or fails.
    ServiceLetsIn,
    ServiceDenies,
    ServiceFails,
    /// The inspector finishes the first or the last of the inspections that it has.
    InspectorAnswers,
    InspectorAnswersTheLast,
    /// A place at a member becomes free.
    PlaceIsFreed,
    /// Time passes until the next timer expires.
    TimePasses,
    /// The process drains, or stops.
    Drains,
    Stops,
}

use Event::*;

impl Event {
    /// Whether the event ends most transactions.
    pub fn is_rash(self) -> bool {
        matches!(
            self,
            ClientSendsGarbage
                | ClientEnds
                | ClientLeaves
                | MemberRefuses
                | MemberEnds
                | MemberBreaks
                | MemberResets
                | MemberLeaves
                | MemberSendsGarbage
                | ServiceDenies
                | ServiceFails
                | TimePasses
                | Drains
                | Stops
        )
    }

    /// Whether the event can cause a failure that cooperating peers avoid.
    fn spoils(self, plan: &Plan) -> bool {
        if matches!(self, MemberSwitches | MemberResponds | MemberRespondsWhole | MemberFails) {
            return plan.is_tunnel() != (self == MemberSwitches);
        }
        !matches!(
            self,
            ClientSends
                | ClientSendsRest
                | ClientStops
                | ClientTakes
                | ClientShuts
                | ClientOpensALittle
                | ClientOpens
                | MemberConnects
                | MemberStops
                | MemberTakes
                | MemberShuts
                | MemberOpensALittle
                | MemberOpens
                | MemberTakesTunnels
                | MemberSaysInterim
                | MemberSends
                | MemberSendsRest
                | ServiceLetsIn
                | InspectorAnswers
                | InspectorAnswersTheLast
                | PlaceIsFreed
        )
    }
}

/// The number of remaining bytes of a body, and the size of the next piece.
fn next(body: &Body, sent: usize) -> (usize, usize) {
    let rest = body.bytes.saturating_sub(sent);
    (rest, rest.min(body.piece))
}

/// Lists the events that are possible.
pub fn possible(router: &Router, into: &mut Vec<Event>) {
    into.clear();
    let Some(it) = &router.it else { return };
    client_sends(router, it, into);
    client_takes(&router.world.client, into);
    client_ends(router, it, into);
    let connection = it.ends().phase.connection().and_then(|key| router.world.members.get(key));
    if let Some(connection) = connection {
        member_takes(connection, into);
        match it {
            Transaction::Http(exchange) => {
                member_responds(router, connection, exchange.ends.phase.begun(), into);
            }
            Transaction::Tunnel(_) => member_of_tunnel(router, connection, into),
            Transaction::Relay(_) => {}
        }
    }
    if router.world.asked.is_some() {
        into.extend([ServiceLetsIn, ServiceDenies, ServiceFails]);
    }
    match router.world.jobs.len() {
        0 => {}
        1 => into.push(InspectorAnswers),
        _ => into.extend([InspectorAnswers, InspectorAnswersTheLast]),
    }
    if router.world.queue.others() > 0 {
        into.push(PlaceIsFreed);
    }
    into.push(TimePasses);
    if !router.world.is_draining {
        into.push(Drains);
    }
    into.push(Stops);
}

fn client_sends(router: &Router, it: &Transaction, into: &mut Vec<Event>) {
    let (plan, client) = (&router.world.plan, &router.world.client);
    if client.has_ended || client.has_sent_end || client.is_paused {
        return;
    }
    let (rest, piece) = next(&plan.request, client.sent);
    let room = match &client.stream {
        Some(stream) => WINDOW_BYTES.saturating_sub(stream.unreleased),
        None => BYTES_MAX,
    };
    let by_length = plan.request.framed == Framed::Length && !plan.is_tunnel();
    if piece > 0 && piece <= room && !(by_length && piece == rest) {
        into.push(ClientSends);
    }
    let is_socket_of_tunnel = plan.is_tunnel() && client.stream.is_none();
    if rest <= room && !is_socket_of_tunnel {
        into.push(ClientSendsRest);
    }
    if plan.has_body() && it.http().is_some_and(|it| !it.request.is_whole()) {
        into.push(ClientSendsGarbage);
    }
    let has_answer = client.got.status >= 200;
    if plan.has_body() && by_length && rest > 0 && has_answer && client.stream.is_some() {
        into.push(ClientCuts);
    }
}

fn client_takes(client: &Client, into: &mut Vec<Event>) {
    into.push(if client.is_slow { ClientTakes } else { ClientStops });
    if let Some(stream) = &client.stream {
        into.push(if stream.allowance > 0 { ClientShuts } else { ClientOpens });
        if stream.allowance == 0 {
            into.push(ClientOpensALittle);
        }
    }
}

fn client_ends(router: &Router, it: &Transaction, into: &mut Vec<Event>) {
    let client = &router.world.client;
    // The client's FIN is read only after all its bytes.
    let is_read = !client.is_paused && client.stream.is_none();
    if is_read
        && !client.has_ended
        && (it.is_tunnel() || !router.world.plan.is_tunnel() || !client.has_input())
    {
        into.push(ClientEnds);
    }
    into.push(ClientLeaves);
}

fn member_takes(connection: &MemberConnection, into: &mut Vec<Event>) {
    if connection.is_connecting {
        into.extend([MemberConnects, MemberRefuses]);
    } else {
        into.push(if connection.is_slow { MemberTakes } else { MemberStops });
        if connection.is_http2 && connection.takes_tunnels.is_none() {
            into.extend([MemberTakesTunnels, MemberTakesNoTunnels]);
        }
    }
    if let Some(stream) = &connection.stream {
        into.push(if stream.allowance > 0 { MemberShuts } else { MemberOpens });
        if stream.allowance == 0 {
            into.push(MemberOpensALittle);
        }
    }
}

/// The number of bytes that a member may send; `None`: weir does not read from it.
fn room(connection: &MemberConnection) -> Option<usize> {
    if connection.is_connecting || connection.is_paused {
        return None;
    }
    match &connection.stream {
        Some(stream) if !stream.is_opened => None,
        Some(stream) => Some(WINDOW_BYTES.saturating_sub(stream.unreleased)),
        None => Some(BYTES_MAX),
    }
}

fn member_responds(
    router: &Router,
    connection: &MemberConnection,
    begun: Option<Begun>,
    into: &mut Vec<Event>,
) {
    let plan = &router.world.plan;
    if !connection.is_connecting {
        into.push(MemberBreaks);
    }
    let Some(room) = room(connection) else { return };
    let body = Body { bytes: plan.response_length(), ..plan.response };
    let (rest, piece) = next(&body, router.world.book.response_sent);
    let by_length = body.framed == Framed::Length;
    if begun.is_none() {
        into.extend([MemberSaysInterim, MemberSendsGarbage, MemberRespondsBare]);
        let is_offered = router.http().is_some_and(|it| it.request.websocket.is_some());
        if is_offered || connection.stream.is_none() {
            into.push(MemberSwitches);
        }
        if connection.stream.is_some() {
            into.push(MemberHasNotRead);
        }
        if !(by_length && piece == rest) && piece <= room {
            into.extend([MemberResponds, MemberFails]);
        }
        if rest <= room {
            into.push(MemberRespondsWhole);
        }
    } else {
        if piece > 0 && piece <= room && !(by_length && piece == rest) {
            into.push(MemberSends);
        }
        if rest <= room {
            into.push(MemberSendsRest);
        }
        into.push(MemberSendsGarbage);
    }
    into.push(if connection.stream.is_some() { MemberResets } else { MemberEnds });
}

fn member_of_tunnel(router: &Router, connection: &MemberConnection, into: &mut Vec<Event>) {
    let plan = &router.world.plan;
    into.push(MemberBreaks);
    if connection.stream.is_some() {
        into.extend([MemberResets, MemberLeaves]);
    }
    let Some(room) = room(connection) else { return };
    if router.world.book.has_response_end {
        return;
    }
    let (_, piece) = next(&plan.response, router.world.book.response_sent);
    if piece > 0 && piece <= room {
        into.push(MemberSends);
    }
    into.push(MemberEnds);
}

/// Applies an event.
pub fn happen(router: &mut Router, event: Event) {
    router.world.pass_ms(1);
    router.world.book.is_spoiled |= event.spoils(&router.world.plan);
    of_client(router, event);
    of_member(router, event);
    match event {
        PlaceIsFreed => router.world.queue.free(),
        ServiceLetsIn => from_service::says(router, 200),
        ServiceDenies => from_service::says(router, 403),
        ServiceFails => from_service::says(router, 0),
        InspectorAnswers => from_inspector::answers(router, 0),
        InspectorAnswersTheLast => {
            let last = router.world.jobs.len().saturating_sub(1);
            from_inspector::answers(router, last);
        }
        TimePasses => from_worker::time_passes(router),
        Drains => router.world.is_draining = true,
        Stops => from_worker::stop(router),
        _ => {}
    }
    router.turn_ends();
}

fn of_client(router: &mut Router, event: Event) {
    let plan = router.world.plan;
    let (rest, piece) = next(&plan.request, router.world.client.sent);
    match event {
        ClientSends => from_client::sends(router, piece, false),
        // The body is too large for the limit, and is refused on an HTTP/1 connection.
        ClientSendsRest
            if plan.request.bytes > BODY_BYTES_MAX && plan.has_body() && !plan.has_http2_client =>
        {
            router.world.book.is_spoiled = true;
            from_client::sends_garbage(router);
        }
        ClientSendsRest => from_client::sends(router, rest, true),
        ClientSendsGarbage => from_client::sends_garbage(router),
        ClientStops => router.world.client.is_slow = true,
        ClientTakes => from_client::takes(router),
        ClientShuts => {
            if let Some(stream) = &mut router.world.client.stream {
                stream.allowance = 0;
            }
        }
        ClientOpensALittle => from_client::opens(router, LITTLE_BYTES),
        ClientOpens => from_client::opens(router, usize::MAX),
        ClientEnds => from_client::ends(router),
        ClientCuts => from_client::cuts(router),
        ClientLeaves => from_client::leaves(router),
        _ => {}
    }
}

fn of_member(router: &mut Router, event: Event) {
    let plan = router.world.plan;
    let body = Body { bytes: plan.response_length(), ..plan.response };
    let (rest, piece) = next(&body, router.world.book.response_sent);
    match event {
        MemberConnects => from_member::connects(router),
        MemberRefuses => router.connection_lost(MemberFailure::Connect),
        MemberStops => set(router, |connection| connection.is_slow = true),
        MemberTakes => from_member::takes(router),
        MemberShuts => set(router, |connection| {
            if let Some(stream) = &mut connection.stream {
                stream.allowance = 0;
            }
        }),
        MemberOpensALittle => from_member::opens(router, LITTLE_BYTES),
        MemberOpens => from_member::opens(router, usize::MAX),
        MemberTakesTunnels => from_member::says(router, true),
        MemberTakesNoTunnels => from_member::says(router, false),
        MemberSaysInterim => from_member::says_interim(router),
        MemberSwitches => from_member::switches(router),
        MemberResponds => from_member::responds(router, 200, piece, false),
        MemberRespondsWhole => from_member::responds(router, 200, rest, true),
        MemberRespondsBare => from_member::responds(router, 304, 0, true),
        MemberFails => from_member::responds(router, 503, 0, false),
        MemberSends => from_member::sends(router, piece, false),
        MemberSendsRest => from_member::sends(router, rest, true),
        MemberEnds => from_member::ends(router),
        MemberBreaks => router.connection_lost(MemberFailure::Abort),
        MemberResets => from_member::fails(router, MemberFailure::Abort),
        MemberHasNotRead => from_member::has_not_read(router),
        MemberLeaves => from_member::leaves(router),
        MemberSendsGarbage => from_member::fails(router, MemberFailure::Malformed),
        _ => {}
    }
}

fn set(router: &mut Router, change: impl FnOnce(&mut MemberConnection)) {
    if let Some(it) = &router.it
        && let Some(connection) = router.world.member(it.ends())
    {
        change(connection);
    }
}
