//! Explanations agree with what really happens: random configurations, random requests, random states of members. So do records
//! of requests, and their explanations.
//!
//! Each request is explained first, then really decided about, by the same live state. More cases of both tests run with
//! `WEIR_EXPLAIN_CASES=10000`. `tests/tests/explain_at_large/` compares the same over sockets.

mod configuration;
mod real;
mod recorded;
mod requests;

use std::sync::Arc;

use weir_api::explanation::{Explanation, Outcome, RuleVerdict};
use weir_config::snapshot::Snapshot;
use weir_core::admin_state::AdminState;
use weir_core::clock::Clock;
use weir_core::monitor::Health;
use weir_exchange::environment::Environment;
use weir_exchange::local::surroundings::Sources;
use weir_exchange::local::table::LocalTable;
use weir_exchange::shared::live::LiveTable;
use weir_explain::{Moment, explain};
use weir_testing::Random;

use configuration::Size;
use real::{Ended, Really};

/// Requests of one configuration.
const REQUESTS: usize = 60;

/// Requests in all, by default.
const CASES: usize = 900;

const SOURCES: Sources = Sources { unix_s: || 1_800_000_000, fill_randomly: |bytes| bytes.fill(7) };

/// Requests to the large configuration, by default.
const CASES_AT_LARGE: usize = 120;

/// One of many small configurations.
const SMALL: Size = Size {
    servers: 3,
    pools: 5,
    policies: 5,
    rate: "requests_per_second: 2, burst: 2",
    under_way_max: 12,
};

/// 40 virtual servers, and about 300 rules.
const LARGE: Size = Size {
    servers: 40,
    pools: 40,
    policies: 40,
    rate: "requests_per_second: 4/m, burst: 2",
    under_way_max: 60,
};

/// How many requests to compare; `usual`: without `WEIR_EXPLAIN_CASES`.
fn cases(usual: usize) -> usize {
    let asked = std::env::var("WEIR_EXPLAIN_CASES").ok();
    asked.map_or(usual, |it| it.parse().expect("WEIR_EXPLAIN_CASES is a number"))
}

#[test]
fn explanations_agree_with_what_happens() {
    let mut tally = Tally::default();
    for seed in 1..=cases(CASES).div_ceil(REQUESTS) as u64 {
        run(seed, (SMALL, REQUESTS), &mut tally);
    }
    judge(&tally, true);
}

#[test]
fn explanations_agree_in_a_large_configuration() {
    let (cases, mut tally) = (cases(CASES_AT_LARGE), Tally::default());
    run(1, (LARGE, cases), &mut tally);
    judge(&tally, cases > CASES_AT_LARGE);
}

/// Whether the cases were of all kinds. `has_rare`: they are enough for rare kinds.
fn judge(tally: &Tally, has_rare: bool) {
    eprintln!("{tally:?}");
    let requests = tally.requests;
    assert!(tally.recorded * 10 > requests * 9, "{} recorded of {requests}", tally.recorded);
    assert!(tally.with_rules * 4 > requests, "{} with rules", tally.with_rules);
    let Tally { certain, uncertain, answered, limited, blocked, followed, .. } = *tally;
    let Tally { kept, handed_over, queued, closed, .. } = *tally;
    let usual = [certain, answered, closed, followed];
    assert!(usual.iter().all(|count| *count * 50 > requests), "{usual:?} of {requests}");
    let rare = [uncertain, limited, blocked, kept, handed_over, queued];
    let is_many = |count: &usize| *count * 500 > requests;
    assert!(!has_rare || rare.iter().all(is_many), "{rare:?} of {requests}");
}

/// How many cases were of which kind.
#[derive(Debug, Default)]
struct Tally {
    requests: usize,
    certain: usize,
    uncertain: usize,
    answered: usize,
    limited: usize,
    closed: usize,
    queued: usize,
    blocked: usize,
    followed: usize,
    kept: usize,
    handed_over: usize,
    drawn: usize,
    recorded: usize,
    with_rules: usize,
}

fn run(seed: u64, (size, cases): (Size, usize), tally: &mut Tally) {
    let mut random = Random::new(seed);
    let (text, snapshot) = configuration::draw(size, &mut random);
    let mut now_us = 1_000_000_000;
    let outside = Environment { clock: Clock::at_us(now_us), fill_randomly: SOURCES.fill_randomly };
    let live = LiveTable::build(Arc::new(snapshot), None, 1, &outside);
    live.enter_into_force(outside.clock.now_ms());
    let table = LocalTable::new(&live, None, 0);
    let mut tools = real::tools(SOURCES);
    let mut under_way = Vec::new();
    for number in 0..cases {
        now_us += random.below(400_000) as u64;
        change_members(&live, &mut random, now_us / 1_000);
        let asked = requests::draw(&live, size.servers, &mut random);
        let clock = Clock::at_us(now_us);
        let story = || format!("seed {seed}, request {number}: {asked:?}\n{text}");
        let is_watched = number.is_multiple_of(10);
        let before = if is_watched { format!("{live:?}") } else { String::new() };
        let moment = Moment { clock, sources: SOURCES, cpu_us: || 0 };
        let explained = explain(&live, &asked, moment);
        let explained = explained.unwrap_or_else(|why| panic!("{why}: {}", story()));
        if is_watched {
            assert!(before == format!("{live:?}"), "it changes the live state: {}", story());
        }
        let (really, exchange, left) = real::run(&table, &asked, &explained, clock, tools);
        tools = left;
        if let Err(why) = compare(&explained, &really, &live.snapshot) {
            panic!("{why}\n{explained:#?}\n{really:#?}\n{}", story());
        }
        if let Err(why) = recorded::compare(&live, &really, (moment, is_watched), tally) {
            panic!("{why}\n{really:#?}\n{}", story());
        }
        count(&explained, &really, tally);
        under_way.extend(exchange);
        while under_way.len() > size.under_way_max || !under_way.is_empty() && random.percent(45) {
            under_way.swap_remove(random.below(under_way.len()));
        }
    }
}

/// Members go down, come up, and are drained.
fn change_members(live: &LiveTable, random: &mut Random, now_ms: u64) {
    if !random.percent(25) {
        return;
    }
    let pool = &live.pools[random.below(live.pools.len())];
    let member = &pool.members[random.below(pool.members.len())];
    match random.below(4) {
        0 => drop(member.set_health(Health::Down, now_ms)),
        1 => drop(member.set_state_override(Some(AdminState::Drain))),
        _ => {
            member.set_health(Health::Up, now_ms);
            member.set_state_override(None);
        }
    }
}

/// Whether an explanation says what has happened.
fn compare(explained: &Explanation, really: &Really, snapshot: &Snapshot) -> Result<(), String> {
    let same = |what: &str, one: String, other: String| match one == other {
        true => Ok(()),
        false => Err(format!("{what}: explained {one}, really {other}")),
    };
    let rules = explained.virtual_servers.iter().flat_map(|server| &server.policies);
    let rules = rules.flat_map(|policy| {
        let followed = policy.rules.iter().filter(|rule| rule.verdict == RuleVerdict::Followed);
        followed.map(move |rule| format!("{}/{}", policy.name, rule.name))
    });
    let followed = really.followed.iter().map(|id| {
        let name = &snapshot.rules[*id as usize];
        format!("{}/{}", name.policy, name.rule)
    });
    let followed: Vec<String> = followed.collect();
    same("rules", format!("{:?}", rules.collect::<Vec<_>>()), format!("{followed:?}"))?;
    let score = explained.firewall.as_ref().map(|it| (it.outcome.clone(), it.score));
    same("firewall", format!("{score:?}"), format!("{:?}", really.firewall))?;
    let is_drawn = explained
        .virtual_servers
        .iter()
        .any(|it| it.pool.as_ref().is_some_and(|pool| pool.is_drawn));
    match (&explained.outcome, &really.ended) {
        (Outcome::Answer { status, termination, .. }, Ended::Answered(real, why)) => {
            same("answer", format!("{status} {termination}"), format!("{real} {why}"))
        }
        (Outcome::Closed { termination, is_reset }, Ended::Closed(why, must_reset)) => {
            same("end", format!("{termination} {is_reset}"), format!("{why} {must_reset}"))
        }
        (Outcome::Queue { pool, .. }, Ended::Queued(real)) => {
            same("queue", pool.clone(), real.clone())
        }
        (Outcome::Member { .. } | Outcome::Answer { .. } | Outcome::Queue { .. }, _)
            if is_drawn =>
        {
            Ok(())
        }
        (Outcome::Member { pool, member, request_line, .. }, Ended::Member(real)) => {
            same("pool", pool.clone(), real.pool.clone())?;
            same("request line", request_line.clone(), real.request_line.clone())?;
            if let Some(member) = member {
                return same("member", member.clone(), real.member.clone());
            }
            let candidates = explained.balancing.iter().flat_map(|it| &it.candidates);
            let mut possible = candidates.filter(|it| it.is_possible);
            match possible.any(|it| it.member == real.member) {
                true => Ok(()),
                false => Err(format!("member {} is said to be impossible", real.member)),
            }
        }
        (explained, really) => Err(format!("explained {explained:?}, really {really:?}")),
    }
}

fn count(explained: &Explanation, really: &Really, tally: &mut Tally) {
    tally.requests += 1;
    match &explained.outcome {
        Outcome::Member { member: Some(_), .. } => tally.certain += 1,
        Outcome::Member { member: None, .. } => tally.uncertain += 1,
        Outcome::Answer { status: 429, .. } => tally.limited += 1,
        Outcome::Answer { .. } => tally.answered += 1,
        Outcome::Closed { .. } => tally.closed += 1,
        Outcome::Queue { .. } => tally.queued += 1,
    }
    tally.blocked +=
        usize::from(explained.firewall.as_ref().is_some_and(|it| it.outcome == "blocked"));
    tally.followed += usize::from(!really.followed.is_empty());
    tally.handed_over += usize::from(explained.virtual_servers.len() > 1);
    let persistence = explained.virtual_servers.iter().filter_map(|it| it.persistence.as_ref());
    let mut kept = persistence.filter(|it| it.verdict == "kept");
    tally.kept += usize::from(kept.next().is_some());
    let mut pools = explained.virtual_servers.iter().filter_map(|it| it.pool.as_ref());
    tally.drawn += usize::from(pools.any(|pool| pool.is_drawn));
}
