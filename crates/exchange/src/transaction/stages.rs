//! The stages of a request, from its head to its member, in order. [`Exchange::begin_response`] has those of its response.
//!
//! | stage | possible results |
//! |---|---|
//! | limits and policies ([`consider`]) | a response, a delay, another pool, edits; the member of persistence; another virtual server, which begins anew |
//! | coding ([`compress::note_codings`]) | the compression that its client accepts |
//! | sealed cookies ([`CookieKeeper::open`](crate::local::cookies::CookieKeeper::open)) | the original values of the application |
//! | the web application firewall ([`inspect::inspect_head`]) | a response; the body is held until it is judged |
//! | edits | the head for the member |
//! | size | 413 |
//! | hops | a response of weir's own |
//! | time | it waits for a limit, for its password check, and for services ([`login::holds`]) |
//! | balance and member ([`Exchange::dispatch`]) | a member and a connection; a queue; 502, 503, 504 |

use std::rc::Rc;

use weir_config::snapshot::HAND_OVERS_MAX;
use weir_core::policy::Decision;
use weir_http::edits::RequestEdits;
use weir_http::message::{Framing, Method, RequestHead};

use crate::arena::{Arena, OfExchange};
use crate::edge::Edge;
use crate::local::cookies::Opened;
use crate::local::pool::{LocalPool, Preference};
use crate::parts::account::Account;
use crate::parts::arrival::{Arrival, Entry, Registration, Whence};
use crate::parts::attempt::Attempt;
use crate::parts::considered::{Considered, Ending};
use crate::parts::encoding::Codings;
use crate::parts::end::End;
use crate::parts::ends::Ends;
use crate::parts::handed_over::{Brought, Course, HandedOver};
use crate::parts::inspecting::Scrutiny;
use crate::parts::pace::Pace;
use crate::parts::parked::Parked;
use crate::parts::pieces::Pieces;
use crate::parts::remembered::Remembered;
use crate::parts::request::Request;
use crate::parts::tries::Tries;
use crate::parts::witness::Step;
use crate::termination::Termination;
use crate::transaction::exchange::{Exchange, Phase, is_judged_whole};
use crate::transaction::policy::consider;
use crate::transaction::{
    Transaction, authorisation, compress, early_data, inspect, login, mirror, trailers,
};

/// The edits of a plain request.
static UNCHANGED: RequestEdits = RequestEdits::NONE;

/// The decisions about a request before it becomes an exchange.
pub struct Verdict {
    /// `None`: nothing was to be decided.
    decision: Option<Box<Decision>>,
    ending: Option<Ending>,
    not_before_us: u64,
    /// Another virtual server than that where it came in has decided: limits on its body are those of that one.
    pub is_handed_over: bool,
}

/// Where a request goes.
struct Route {
    pool: Rc<LocalPool>,
    preference: Preference,
    not_before_us: u64,
    request_number: u64,
    remembered: Option<Box<Remembered>>,
    ending: Option<Ending>,
}

impl Route {
    /// To any member of a pool, at once.
    fn to(pool: Rc<LocalPool>) -> Self {
        Self {
            pool,
            preference: Preference::Any,
            not_before_us: 0,
            request_number: 0,
            remembered: None,
            ending: None,
        }
    }
}

/// What was found about a request.
enum Found {
    /// Where it goes.
    Route(Route),
    /// Which virtual server decides about it.
    HandedOver(Box<HandedOver>),
}

impl Exchange {
    /// Takes a request up; `buffer` is an empty one for the head that its member gets. The exchange is among the
    /// `transactions` then, under the key that was the next.
    pub fn begin(
        at: &mut impl Edge,
        transactions: &mut Arena<OfExchange, Transaction>,
        arrival: &Arrival<'_>,
        registration: Registration,
        buffer: Vec<u8>,
    ) -> Verdict {
        let begun = (registration, buffer);
        if arrival.is_plain() {
            return begin_plainly(at, transactions, arrival, begun);
        }
        let mut decision = at.tools().decision.take().unwrap_or_default();
        match find_route(at, arrival, &mut decision, None) {
            Found::Route(route) => begin_on(at, transactions, arrival, begun, (decision, route)),
            Found::HandedOver(over) => {
                begin_handed_over(at, transactions, arrival, begun, (decision, over))
            }
        }
    }

    /// Goes through the stages that are left: the exchange can be found by its key now.
    pub fn enter(&mut self, at: &mut impl Edge, head: &RequestHead, verdict: Verdict) {
        let Verdict { decision, ending, not_before_us, .. } = verdict;
        let has_to_wait = not_before_us > at.turn().now_us();
        if let Some(mut decision) = decision {
            if let Some(ending) = ending {
                if has_to_wait {
                    self.ends.parked = Parked::Until(Some((ending, decision)));
                    return self.hold_back(at, not_before_us);
                }
                self.end_early(at, ending, &mut decision);
            }
            decision.clear();
            at.tools().decision = Some(decision);
            if ending.is_some() {
                return;
            }
        }
        if let (Framing::Length(length), Some(max)) =
            (head.framing, self.ends.server.http.body_size_max)
            && length > max
        {
            return self.respond(at, 413, Termination::ClientLimit);
        }
        if head.max_forwards == Some(0) {
            // Weir is the final recipient: it knows no methods to list, and reflects no request.
            let status = if head.method == Method::Trace { 501 } else { 204 };
            return self.respond(at, status, Termination::Complete);
        }
        let has_body = !head.framing.is_empty();
        if has_body {
            self.await_client(at);
        } else {
            self.ends.clear_client_deadline(at);
        }
        if has_to_wait {
            return self.hold_back(at, not_before_us);
        }
        if is_judged_whole(self) {
            return inspect::begin_reading(self, at);
        }
        // A head with a body waits for the first bytes of it, which are often here already.
        if self.dispatch(at) && !has_body {
            self.send_request_head(at);
        }
    }

    /// Goes on with a request that has waited.
    pub fn go_on(&mut self, at: &mut impl Edge) {
        if self.phase != Phase::AwaitHead {
            // It was answered while it waited; the client has yet to take that.
            return;
        }
        if !matches!(self.ends.parked, Parked::Until(_) | Parked::Called(_)) {
            // A timer for answers that have arrived since.
            return;
        }
        debug_assert!(self.ends.attempt.lease.is_none(), "what waits has no member");
        if login::holds(self, at) {
            return;
        }
        let ending = match &mut self.ends.parked {
            Parked::Until(ending) => ending.take(),
            _ => None,
        };
        if !matches!(self.ends.parked, Parked::Called(_)) {
            self.ends.parked = Parked::No;
        }
        if let Some((ending, mut decision)) = ending {
            self.end_early(at, ending, &mut decision);
            return;
        }
        if self.request.is_whole {
            mirror::send(self, at);
        }
        if is_judged_whole(self) {
            inspect::begin_reading(self, at);
            return self.request_goes_on(at);
        }
        at.note(Step::Seeks(&self.ends));
        if !self.dispatch(at) {
            return;
        }
        if self.is_over() || inspect::pass_judged_body(self, at) {
            return;
        }
        if self.request.is_sent() {
            // Another member has failed it: all that was sent of it goes to this one.
            return self.resend(at, &[]);
        }
        if self.request.is_whole {
            return self.send_request_head(at);
        }
        if self.ends.sends_head_first() {
            at.ask(&mut self.ends, &mut self.request, (b"", &Pieces::part(0)), End::No);
        }
        self.request_goes_on(at);
    }
}

/// Begins an exchange that is forwarded as it came.
#[inline(always)]
fn begin_plainly(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    (registration, buffer): (Registration, Vec<u8>),
) -> Verdict {
    let Arrival { head, input, server, .. } = *arrival;
    let forms = server.pool.forms;
    let request = Request::of(at.tools(), (head, input), forms, &UNCHANGED, buffer);
    let route = Route::to(Rc::clone(&server.pool));
    place(at, transactions, arrival, (registration, route), Staged::plain(request));
    Verdict { decision: None, ending: None, not_before_us: 0, is_handed_over: false }
}

/// Begins an exchange on its way. A request that was handed over has come so far in another copy of it.
#[inline(always)]
fn begin_on(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    (registration, buffer): (Registration, Vec<u8>),
    (mut decision, mut route): (Box<Decision>, Route),
) -> Verdict {
    let Arrival { head, input, server, .. } = *arrival;
    let codings = compress::note_codings(at, server, head, input, &mut decision);
    early_data::tell_member(arrival.is_early, head, input, &mut decision.request);
    trailers::announce(server, head, &mut decision.request);
    let opened = open_cookies(at, arrival, &mut decision);
    let scrutiny = judge(at, arrival, &mut decision, &mut route, opened.as_ref());
    let edits = &decision.request;
    let request = Request::of(at.tools(), (head, input), route.pool.forms, edits, buffer);
    route.remembered = trailers::keep_edits(at.tools(), server, head, edits, route.remembered);
    let (ending, not_before_us) = (route.ending, route.not_before_us);
    let staged = Staged { request, codings, scrutiny };
    place(at, transactions, arrival, (registration, route), staged);
    Verdict { decision: Some(decision), ending, not_before_us, is_handed_over: false }
}

/// A request behind the stages that look at it.
struct Staged {
    request: Request,
    codings: Option<Codings>,
    scrutiny: Option<Box<Scrutiny>>,
}

impl Staged {
    /// One that no stage has looked at.
    #[inline(always)]
    fn plain(request: Request) -> Self {
        Self { request, codings: None, scrutiny: None }
    }
}

/// Writes an exchange to its place.
#[inline(always)]
fn place(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    (registration, route): (Registration, Route),
    Staged { request, codings, scrutiny }: Staged,
) {
    let Arrival { head, input, server, .. } = *arrival;
    let turn = at.turn();
    let counters = &server.counters;
    counters.requests.add(1);
    counters.requests_active.add(1);
    route.pool.note_request(turn.now_ms());
    let Registration { key, client, stream, logged, log_request } = registration;
    let pace = Pace::of_request(head, input);
    let mut account = Account::begin(turn.now_us(), logged, log_request);
    account.request_number = route.request_number;
    let tries = Tries::new(route.pool, route.preference);
    let server = Rc::clone(server);
    let (keep_alive, client_closes) = (head.keep_alive && arrival.may_go_on, !head.keep_alive);
    // It is large, and written where it stays. To a place that may hold something the compiler would copy it.
    let vacant = transactions.vacant();
    *vacant = None;
    *vacant = Some(Transaction::Http(Exchange {
        ends: Ends {
            key,
            over: None,
            client,
            stream,
            is_member_stopped: false,
            tries,
            parked: Parked::No,
            attempt: Attempt::default(),
            server,
            remembered: route.remembered,
            account,
        },
        codings,
        transforms: None,
        keep_alive,
        client_closes,
        phase: Phase::AwaitHead,
        pace,
        request,
        response_framing: Framing::None,
        client_ended: false,
        scrutiny,
    }));
}

/// A virtual server has handed a request over: the other begins anew, with what goes with the request. As deep as requests are
/// handed on, which is bounded when a configuration is checked.
#[cold]
#[inline(never)]
fn begin_handed_over(
    at: &mut impl Edge,
    transactions: &mut Arena<OfExchange, Transaction>,
    arrival: &Arrival<'_>,
    begun: (Registration, Vec<u8>),
    (mut decision, over): (Box<Decision>, Box<HandedOver>),
) -> Verdict {
    let HandedOver { to, rewritten, brought } = *over;
    debug_assert!(brought.passed.len() <= HAND_OVERS_MAX, "longer ways were refused");
    let (head, input) = match &rewritten {
        Some(rewritten) => (&rewritten.head, &*rewritten.text),
        None => (arrival.head, arrival.input),
    };
    let entry = arrival.entry().cloned().unwrap_or_else(|| {
        Rc::new(Entry { server: Rc::clone(arrival.server), client: arrival.client() })
    });
    let from = arrival.from.clone().map(|from| Whence { entry: Some(entry), ..from });
    // What its handshake was for is the matter of the one where it came in.
    let arrival = &Arrival { head, input, server: &to, from, is_misdirected: false, ..*arrival };
    match find_route(at, arrival, &mut decision, Some(brought)) {
        Found::Route(route) => Verdict {
            is_handed_over: true,
            ..begin_on(at, transactions, arrival, begun, (decision, route))
        },
        Found::HandedOver(over) => {
            begin_handed_over(at, transactions, arrival, begun, (decision, over))
        }
    }
}

/// Lets the web application firewall judge a request that goes to a member. Returns the next step.
fn judge(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    route: &mut Route,
    opened: Option<&Opened>,
) -> Option<Box<Scrutiny>> {
    if route.ending.is_some() || arrival.server.waf.is_none() {
        return None;
    }
    let named = (&mut route.request_number, route.remembered.as_deref());
    let scrutiny = inspect::inspect_head(at, arrival, decision, named, opened);
    if matches!(scrutiny.as_deref(), Some(Scrutiny::Blocked(_))) {
        // No service gets to see it.
        if let Some(remembered) = route.remembered.as_deref_mut() {
            authorisation::forget_services(remembered);
        }
        route.ending = Some(Ending::Blocked);
    }
    scrutiny
}

/// Takes the tags off sealed cookies, where there are such.
#[inline]
fn open_cookies(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
) -> Option<Opened> {
    let keeper = arrival.server.cookies.as_ref()?;
    let mut scratch = at.tools().scratch.take();
    let message = (arrival.head, arrival.input);
    let opened = keeper.open(message, &mut decision.request.fields, &mut scratch);
    at.tools().scratch.give(scratch);
    Some(opened)
}

/// Limits, policies and persistence say where a request goes, where the virtual server has such.
#[inline(always)]
fn find_route(
    at: &mut impl Edge,
    arrival: &Arrival<'_>,
    decision: &mut Decision,
    brought: Option<Box<Brought>>,
) -> Found {
    let server = arrival.server;
    let Some(traffic) = &server.traffic else {
        debug_assert!(brought.is_none(), "one that requests are handed to looks at them");
        // Where there are rules, it is judged with them.
        let ending = arrival.is_misdirected.then_some(Ending::Misdirected);
        return Found::Route(Route { ending, ..Route::to(Rc::clone(&server.pool)) });
    };
    let considered = match consider(at, arrival, traffic, decision, brought) {
        Course::Decided(considered) => considered,
        Course::HandedOver(over) => return Found::HandedOver(over),
    };
    let Considered { pool, preference, not_before_us, request_number, remembered, ending } =
        considered;
    // By the numbers of its own snapshot: the active table may have others by now.
    let pool = Rc::clone(traffic.pool(pool));
    Found::Route(Route { pool, preference, not_before_us, request_number, remembered, ending })
}
