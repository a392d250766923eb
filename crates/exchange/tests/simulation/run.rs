//! A run: consecutive transactions, each with any possible events, and an end.

use super::choices::Choices;
use super::events::{self, Event};
use super::from_inspector;
use super::model::{self, Tally};
use super::plan::{Ask, Body, Framed, Plan};
use super::router::Router;
use super::scene::{BEGINNING_US, Server};

/// One in this many choices may select an event that ends most transactions.
const RASH_ONE_IN: usize = 6;
/// Maximum number of events until a transaction must end.
const EVENTS_MAX: usize = 400;

/// The description of a run, which is printed after a panic.
#[derive(Default)]
struct Story(Vec<Line>);

enum Line {
    Begins(Plan),
    Happens(u64, Event),
    Ends { is_fair: bool },
}

impl Drop for Story {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for line in &self.0 {
            match line {
                Line::Begins(plan) => eprintln!("{plan:?}"),
                Line::Happens(at_ms, event) => eprintln!("{at_ms:>9} {event:?}"),
                Line::Ends { is_fair: true } => {
                    eprintln!("          everybody is fair from now on")
                }
                Line::Ends { is_fair: false } => {
                    eprintln!("          nobody does anything any more")
                }
            }
        }
    }
}

/// Runs transactions with the given choices.
pub fn run(choices: &mut dyn Choices, transactions: usize, tally: &mut Tally) {
    let mut story = Story::default();
    let mut router = Router::new(Plan::draw(choices, 1));
    for number in 1..=transactions {
        let plan = if number == 1 { router.world.plan } else { Plan::draw(choices, number) };
        tally.steps += one(&mut router, plan, choices, &mut story);
        tally.ends_with(&router);
        if choices.is_over() {
            break;
        }
    }
    from_inspector::answers_all(&mut router);
    tally.note_inspections(router.world.came_back);
    tally.cells.add(router.cells);
}

/// Plans with first events, for which all sequences of further events are tested.
pub fn begun() -> Vec<(Plan, &'static [Event])> {
    use Event::*;
    const ASKED: &[Event] = &[InspectorAnswers, InspectorAnswers, MemberConnects];
    const JUDGED: &[Event] = &[InspectorAnswers, InspectorAnswers, MemberConnects, MemberResponds];
    const JUDGED_WHOLE: &[Event] =
        &[InspectorAnswers, InspectorAnswers, MemberConnects, MemberRespondsWhole];
    const TUNNEL_ALONE: &[Event] = &[
        MemberConnects,
        MemberTakesTunnels,
        MemberSwitches,
        ClientShuts,
        MemberSends,
        MemberEnds,
        ClientSendsRest,
    ];
    let plan = |server, ask, framed| {
        // The first piece is longer than what rules read.
        let response = Body { bytes: 12_000, piece: 6_000, framed };
        Plan { response, ..Plan::judged_elsewhere(server, ask) }
    };
    let of_http1 = Plan {
        has_http2_client: false,
        has_http2_members: false,
        ..plan(Server::Screened, Ask::Get, Framed::Length)
    };
    vec![
        (plan(Server::Guarded, Ask::Claim, Framed::Mark), ASKED),
        (plan(Server::Screened, Ask::Call, Framed::Trailers), JUDGED),
        (plan(Server::Tolerant, Ask::Call, Framed::Mark), JUDGED),
        (plan(Server::Tolerant, Ask::Claim, Framed::Trailers), JUDGED),
        (plan(Server::Observed, Ask::Claim, Framed::Mark), JUDGED),
        (of_http1, JUDGED_WHOLE),
        (plan(Server::Plain, Ask::WebSocket, Framed::Mark), TUNNEL_ALONE),
    ]
}

/// Runs this plan: these events come first, and the others as chosen.
pub fn run_plan(
    (plan, first): (Plan, &[Event]),
    choices: &mut dyn Choices,
    is_fair: bool,
    tally: &mut Tally,
) {
    let mut router = Router::new(plan);
    let (mut story, mut possible) = (Story::default(), Vec::new());
    router.begin_told(plan, &mut story);
    for event in first {
        events::possible(&router, &mut possible);
        assert!(possible.contains(event), "{event:?} is not possible");
        router.happen_told(*event, &mut story);
    }
    tally.steps += first.len();
    tally.steps += chosen(&mut router, choices, (usize::MAX, 1), &mut story);
    tally.steps += end(&mut router, is_fair, &mut story);
    tally.ends_with(&router);
    from_inspector::answers_all(&mut router);
    tally.note_inspections(router.world.came_back);
    tally.cells.add(router.cells);
}

fn one(router: &mut Router, plan: Plan, choices: &mut dyn Choices, story: &mut Story) -> usize {
    router.begin_told(plan, story);
    let events_max = [5, 20, 60, 200][choices.below(4)];
    let steps = chosen(router, choices, (events_max, RASH_ONE_IN), story);
    let steps = steps + end(router, choices.below(3) > 0, story);
    router.world.is_draining = false;
    // The idle time of a connection left for the next transaction is below or above the limit for requests that cannot be
    // repeated.
    router.world.pass_ms([1, 2_000][choices.below(2)]);
    while router.world.queue.others() > 0 {
        router.world.queue.free();
    }
    model::check_nothing_is_left(&router.scene, 0);
    steps
}

impl Tally {
    fn ends_with(&mut self, router: &Router) {
        if let Some((why, _)) = router.world.book.finished {
            self.note(why);
        }
    }
}

impl Router {
    fn begin_told(&mut self, plan: Plan, story: &mut Story) {
        story.0.push(Line::Begins(plan));
        self.begin(plan);
    }

    fn happen_told(&mut self, event: Event, story: &mut Story) {
        story.0.push(Line::Happens(self.world.now_ms() - BEGINNING_US / 1_000, event));
        events::happen(self, event);
    }
}

fn chosen(
    router: &mut Router,
    choices: &mut dyn Choices,
    (events_max, rash_one_in): (usize, usize),
    story: &mut Story,
) -> usize {
    let (mut possible, mut steps) = (Vec::new(), 0);
    while router.it.is_some() && steps < events_max && !choices.is_over() {
        events::possible(router, &mut possible);
        if rash_one_in > 1 && choices.below(rash_one_in) > 0 {
            possible.retain(|event| !event.is_rash());
        }
        router.happen_told(possible[choices.below(possible.len())], story);
        steps += 1;
    }
    steps
}

/// Ends the transaction. `is_fair`: both peers cooperate; otherwise, both do nothing.
fn end(router: &mut Router, is_fair: bool, story: &mut Story) -> usize {
    story.0.push(Line::Ends { is_fair });
    let (mut possible, mut steps) = (Vec::new(), 0);
    while router.it.is_some() {
        assert!(steps < EVENTS_MAX, "it comes to no end");
        events::possible(router, &mut possible);
        let event = match is_fair {
            true => fair(router, &possible).expect("fair peers reach the end"),
            false => Event::TimePasses,
        };
        router.happen_told(event, story);
        steps += 1;
    }
    if is_fair {
        router.expect_fine();
    }
    steps
}

/// The next action of cooperating peers.
fn fair(router: &Router, possible: &[Event]) -> Option<Event> {
    use Event::*;
    const ORDER: [Event; 20] = [
        ServiceLetsIn,
        InspectorAnswers,
        MemberConnects,
        MemberTakesTunnels,
        MemberTakes,
        MemberOpens,
        ClientTakes,
        ClientOpens,
        PlaceIsFreed,
        MemberSaysInterim,
        ClientSendsRest,
        ClientSends,
        MemberSwitches,
        MemberSendsRest,
        MemberSends,
        MemberRespondsWhole,
        MemberResponds,
        ClientEnds,
        MemberEnds,
        TimePasses,
    ];
    let plan = &router.world.plan;
    let is_tunnel = router.it.as_ref().is_some_and(|it| it.is_tunnel());
    let attempt = router.world.book.attempts.last();
    let is_asked = attempt.is_some_and(|attempt| attempt.is_reached);
    // The rest of a truncated request is not expected.
    let is_cut = router.http().is_some_and(|it| it.request.is_cut());
    let has_all = || is_cut || attempt.is_some_and(|attempt| is_asked && attempt.is_whole(plan));
    let got = &router.world.client.got;
    let awaits_leave = plan.ask == Ask::Expect && got.interims == 0 && got.status == 0;
    let is_wanted = |event: &Event| match event {
        MemberSaysInterim => awaits_leave && is_asked,
        ClientSends | ClientSendsRest => !awaits_leave,
        MemberSwitches => plan.is_tunnel() && is_asked,
        MemberRespondsWhole | MemberResponds => !plan.is_tunnel() && has_all(),
        ClientEnds | MemberEnds => is_tunnel,
        // The time is advanced only for a delayed transaction.
        TimePasses => router.world.delayed_until_us.is_some(),
        _ => true,
    };
    ORDER.into_iter().find(|event| is_wanted(event) && possible.contains(event))
}
