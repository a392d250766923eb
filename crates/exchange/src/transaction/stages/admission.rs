//! The beginning of an exchange: what is decided with the head of a request.

use std::rc::Rc;

use weir_config::snapshot::HAND_OVERS_MAX;
use weir_core::policy::Decision;
use weir_http::edits::RequestEdits;
use weir_http::message::Framing;

use crate::arena::{Arena, OfExchange};
use crate::edge::Edge;
use crate::local::cookies::UnsealedCookies;
use crate::local::pool::{LocalPool, Preference};
use crate::parts::account::Account;
use crate::parts::arrival::{Arrival, Entry, Registration, RequestOrigin};
use crate::parts::caller::Caller;
use crate::parts::encoding::{Codings, Filters};
use crate::parts::hand_over::{DecidedOrHandedOver, HandOverContext, HandedOver};
use crate::parts::inspection::{ExchangeInspection, InspectionState};
use crate::parts::pace::{Pace, Patience};
use crate::parts::phase::Phase;
use crate::parts::request::Request;
use crate::parts::request_context::RequestContext;
use crate::parts::request_decisions::{EndWithoutMember, RequestDecisions};
use crate::parts::stages::Stages;
use crate::parts::transaction_ends::TransactionEnds;
use crate::parts::tries::Tries;
use crate::transaction::claims::withhold_claims;
use crate::transaction::exchange::Exchange;
use crate::transaction::filters::encode;
use crate::transaction::policy::consider;
use crate::transaction::{
    Transaction, challenge, early_data, request_inspection, trailers, unusual,
};

/// The edits of a plain request.
static UNCHANGED: RequestEdits = RequestEdits::NONE;

/// The result of the stages before the exchange is created.
pub struct AdmissionVerdict {
    /// `None`: a plain request, nothing was decided.
    pub(super) decision: Option<Box<Decision>>,
    pub(super) ending: Option<EndWithoutMember>,
    pub(super) not_before_us: u64,
    /// Another virtual server than that of the listener has decided: its limits apply to the body.
    pub is_handed_over: bool,
    /// It is not handed over, and no member connection belongs to its client.
    pub is_usual: bool,
}

/// The destination of a request.
struct Route {
    pool: Rc<LocalPool>,
    preference: Preference,
    not_before_us: u64,
    request_number: u64,
    context: Option<Box<RequestContext>>,
    ending: Option<EndWithoutMember>,
}

impl Route {
    /// Any member of a pool, without delay.
    fn to(pool: Rc<LocalPool>) -> Self {
        Self {
            pool,
            preference: Preference::Any,
            not_before_us: 0,
            request_number: 0,
            context: None,
            ending: None,
        }
    }
}

/// The result of limits, policies and persistence.
enum RouteOrHandOver {
    /// The request's destination.
    Route(Route),
    /// Another virtual server decides.
    HandedOver(Box<HandedOver>),
}

/// Begins an exchange: runs the first stages and adds it to `transactions` under the next key. `buffer`: an empty
/// buffer for the head that is sent to the member.
pub fn begin(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    registration: Registration,
    buffer: Vec<u8>,
) -> AdmissionVerdict {
    let begun = (registration, buffer);
    if arrival.is_plain() {
        return begin_plainly(at, transactions, arrival, begun);
    }
    if let Some(head) = unusual::without_upgrade(arrival) {
        return begin_decided(
            at,
            transactions,
            &Arrival { head: &head, from: arrival.from.clone(), ..*arrival },
            begun,
        );
    }
    begin_decided(at, transactions, arrival, begun)
}

/// Begins an exchange without any decision about it: the request is forwarded as received.
#[inline(always)]
fn begin_plainly(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    (registration, buffer): (Registration, Vec<u8>),
) -> AdmissionVerdict {
    let Arrival { head, input, server, .. } = *arrival;
    let pool = server.pool.now();
    let request = Request::of(at.tools(), (head, input), pool.forms, &UNCHANGED, buffer);
    let route = Route::to(pool);
    place(at, transactions, arrival, (registration, route), AdmittedRequest::plain(request));
    AdmissionVerdict {
        decision: None,
        ending: None,
        not_before_us: 0,
        is_handed_over: false,
        is_usual: true,
    }
}

/// Begins an exchange about which something has to be decided.
#[inline(always)]
fn begin_decided(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    begun: (Registration, Vec<u8>),
) -> AdmissionVerdict {
    let mut decision = at.tools().decision.take().unwrap_or_default();
    if arrival.server.challenges.is_some() {
        if challenge::answers(arrival, &mut decision) {
            return begin_challenge(at, transactions, arrival, begun, decision);
        }
        if arrival.is_plain_else() {
            at.tools().decision = Some(decision);
            return begin_plainly(at, transactions, arrival, begun);
        }
    }
    match find_route(at, arrival, &mut decision, None) {
        RouteOrHandOver::Route(route) => {
            begin_on(at, transactions, arrival, begun, (decision, route))
        }
        RouteOrHandOver::HandedOver(over) => {
            begin_handed_over(at, transactions, arrival, begun, (decision, over))
        }
    }
}

/// Begins an exchange that verifies a challenge: limits and policies do not apply.
#[cold]
#[inline(never)]
fn begin_challenge(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    begun: (Registration, Vec<u8>),
    decision: Box<Decision>,
) -> AdmissionVerdict {
    let verdict = begin_plainly(at, transactions, arrival, begun);
    AdmissionVerdict {
        decision: Some(decision),
        ending: Some(EndWithoutMember::Challenge),
        ..verdict
    }
}

/// Begins an exchange with a route. For a request that was handed over, the function is inlined a second time.
#[inline(always)]
fn begin_on(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    (registration, buffer): (Registration, Vec<u8>),
    (mut decision, mut route): (Box<Decision>, Route),
) -> AdmissionVerdict {
    let Arrival { head, input, server, .. } = *arrival;
    let codings = encode::note_codings(at, server, head, input, &mut decision);
    early_data::tell_member(arrival.is_early, head, input, &mut decision.request);
    trailers::announce(server, head, &mut decision.request);
    withhold_claims(arrival, &mut decision.request.fields);
    let opened = open_cookies(at, arrival, &mut decision);
    let inspection = judge(at, arrival, &mut decision, &mut route, opened.as_ref());
    let edits = &decision.request;
    let request = Request::of(at.tools(), (head, input), route.pool.forms, edits, buffer);
    route.context = trailers::keep_edits(at.tools(), server, head, edits, route.context);
    let (ending, not_before_us) = (route.ending, route.not_before_us);
    let staged = AdmittedRequest { request, codings, inspection };
    place(at, transactions, arrival, (registration, route), staged);
    let is_usual = !arrival.is_bound;
    AdmissionVerdict {
        decision: Some(decision),
        ending,
        not_before_us,
        is_handed_over: false,
        is_usual,
    }
}

/// A request after the stages that examine it.
struct AdmittedRequest {
    request: Request,
    codings: Option<Codings>,
    inspection: ExchangeInspection,
}

impl AdmittedRequest {
    /// A request that no stage has examined.
    #[inline(always)]
    fn plain(request: Request) -> Self {
        Self { request, codings: None, inspection: ExchangeInspection::NONE }
    }
}

/// Creates the exchange in its slot of `transactions`.
#[inline(always)]
fn place(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    (registration, route): (Registration, Route),
    AdmittedRequest { request, codings, inspection }: AdmittedRequest,
) {
    let Arrival { head, input, server, .. } = *arrival;
    let turn = at.turn();
    let counters = &server.counters;
    counters.requests.add(1);
    counters.requests_active.add(1);
    route.pool.note_request(turn.now_ms());
    let Registration { key, client, stream, logged, log_request } = registration;
    let pace = Pace::of_request(head, input, route.pool.forms);
    let mut account = Account::begin(turn.now_us(), logged, log_request);
    account.request_number = route.request_number;
    let tries = Tries::new(route.pool, route.preference);
    let server = Rc::clone(server);
    let (keep_alive, client_closes) = (head.keep_alive && arrival.may_go_on, !head.keep_alive);
    // An exchange is large, so it is built in place. Without the `None` before, the compiler would build a copy first.
    let vacant = transactions.vacant();
    *vacant = None;
    *vacant = Some(Transaction::Http(Exchange {
        ends: TransactionEnds {
            key,
            over: None,
            caller: Caller::Client(client, stream),
            is_member_stopped: false,
            tries,
            phase: Phase::START,
            server,
            context: route.context,
            account,
        },
        filters: Filters { codings, on: None },
        keep_alive,
        client_closes,
        patience: Patience::new(pace),
        request,
        response_framing: Framing::None,
        client_ended: false,
        inspection,
        reply: None,
        stages: Stages::NONE,
        delayed_decision: None,
    }));
}

/// A virtual server has handed the request over: the other one starts over with the data that goes along. Recursion is
/// bounded by [`HAND_OVERS_MAX`], which the check of a configuration enforces.
#[cold]
#[inline(never)]
fn begin_handed_over(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    begun: (Registration, Vec<u8>),
    (mut decision, over): (Box<Decision>, Box<HandedOver>),
) -> AdmissionVerdict {
    let HandedOver { to, rewritten, carried } = *over;
    debug_assert!(carried.passed.len() <= HAND_OVERS_MAX, "longer ways were refused");
    let (head, input) = match &rewritten {
        Some(rewritten) => (&rewritten.head, &*rewritten.text),
        None => (arrival.head, arrival.input),
    };
    let entry = arrival.entry().cloned().unwrap_or_else(|| {
        Rc::new(Entry { server: Rc::clone(arrival.server), client: arrival.client() })
    });
    let from = arrival.from.clone().map(|from| RequestOrigin { entry: Some(entry), ..from });
    // SNI was checked at the virtual server of the listener.
    let arrival = Arrival { head, input, server: &to, from, is_misdirected: false, ..*arrival };
    let without_upgrade = unusual::without_upgrade(&arrival);
    let arrival = match &without_upgrade {
        Some(head) => &Arrival { head, ..arrival },
        None => &arrival,
    };
    match find_route(at, arrival, &mut decision, Some(carried)) {
        RouteOrHandOver::Route(route) => AdmissionVerdict {
            is_handed_over: true,
            is_usual: false,
            ..begin_on(at, transactions, arrival, begun, (decision, route))
        },
        RouteOrHandOver::HandedOver(over) => {
            begin_handed_over(at, transactions, arrival, begun, (decision, over))
        }
    }
}

/// Inspects the head of a request that goes to a member. Returns what is left of the inspection.
fn judge(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    route: &mut Route,
    opened: Option<&UnsealedCookies>,
) -> ExchangeInspection {
    if route.ending.is_some() || arrival.server.waf.is_none() {
        return ExchangeInspection::NONE;
    }
    let forms = route.pool.forms;
    let named = (&mut route.request_number, route.context.as_deref());
    let inspection =
        request_inspection::inspect_head(at, arrival, decision, named, (opened, forms));
    if matches!(inspection.state(), Some(InspectionState::Blocked(_))) {
        // No later stage takes place for a blocked request.
        if let Some(context) = route.context.as_deref_mut() {
            context.leave_out_later_stages();
        }
        route.ending = Some(EndWithoutMember::Blocked);
    }
    inspection
}

/// Removes the seals from cookies, if the virtual server seals any.
#[inline]
fn open_cookies(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
) -> Option<UnsealedCookies> {
    let keeper = arrival.server.cookies.as_ref()?;
    let mut scratch = at.tools().scratch.take();
    let message = (arrival.head, arrival.input);
    let opened = keeper.open(message, &mut decision.request.fields, &mut scratch);
    at.tools().scratch.give(scratch);
    Some(opened)
}

/// Determines the destination of a request by limits, policies and persistence, if the virtual server has any.
#[inline(always)]
fn find_route(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    carried: Option<Box<HandOverContext>>,
) -> RouteOrHandOver {
    let server = arrival.server;
    let Some(traffic) = &server.traffic else {
        debug_assert!(carried.is_none(), "one that requests are handed to looks at them");
        // With rules, `consider` handles a misdirected request.
        let ending = arrival.is_misdirected.then_some(EndWithoutMember::Misdirected);
        return RouteOrHandOver::Route(Route { ending, ..Route::to(server.pool.now()) });
    };
    let decisions = match consider(at, arrival, traffic, decision, carried) {
        DecidedOrHandedOver::Decided(decisions) => decisions,
        DecidedOrHandedOver::HandedOver(over) => return RouteOrHandOver::HandedOver(over),
    };
    let RequestDecisions { pool, preference, not_before_us, request_number, context, ending } =
        decisions;
    // The index refers to the snapshot of `traffic`; the active table may have other indexes.
    let pool = traffic.pool(pool);
    RouteOrHandOver::Route(Route {
        pool,
        preference,
        not_before_us,
        request_number,
        context,
        ending,
    })
}
