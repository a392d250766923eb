//! Members whose availability changes, by results of monitors and by the operator.

use std::net::SocketAddr;

use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_dataplane::simulation::SimulatedWorker;
use weir_event_loop::memory as kernel;
use weir_tagged::clock::Moment;
use weir_tagged::keeping::{POOLS, Takes};
use weir_tagged::settings::Addresses;
use weir_tagged::world::{Kind, World};
use weir_testing::Random;

/// Pools whose availability is not tracked: their clients may be answered by any member, or by none.
const OTHERS: [&str; 4] = ["queue1", "queue2", "rough1", "rough2"];

/// Results of monitors, states set by the operator, and the resulting availability of the member.
const STATES: [(Health, Option<AdminState>, Takes); 8] = [
    (Health::Up, None, Takes::All),
    (Health::Up, Some(AdminState::Enabled), Takes::All),
    (Health::Draining, None, Takes::Kept),
    (Health::Up, Some(AdminState::Drain), Takes::Kept),
    (Health::Down, None, Takes::Nothing),
    (Health::Up, Some(AdminState::Disabled), Takes::Nothing),
    (Health::Down, Some(AdminState::Drain), Takes::Nothing),
    (Health::Draining, Some(AdminState::Disabled), Takes::Nothing),
];

/// The members of a pool, in the order of their numbers.
fn of(pool: &str, addresses: &Addresses) -> [SocketAddr; 2] {
    match pool {
        "kept2" | "queue2" => addresses.http2,
        "rough1" | "rough2" => addresses.rough,
        _ => addresses.http1,
    }
}

/// Changes the availability of a random member.
pub fn change(worker: &SimulatedWorker, addresses: &Addresses, world: &World, random: &mut Random) {
    let number = random.below(POOLS.len() + OTHERS.len());
    let pool = POOLS.iter().chain(&OTHERS).nth(number).copied().unwrap_or_default();
    let members = of(pool, addresses);
    let place = random.below(members.len());
    let Some(member) = worker.member(pool, members[place]) else { return };
    // In half of the cases, the member becomes healthy.
    let state = if random.percent(50) { 0 } else { random.below(STATES.len()) };
    let (health, wanted, takes) = STATES[state];
    member.set_health(health, kernel::now_us() / 1_000);
    member.set_state_override(wanted);
    if number < POOLS.len() {
        world.keeping.set(number, place, takes, Moment(kernel::now_us()));
    }
    world.count(Kind::MemberStates);
}
