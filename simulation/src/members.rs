//! Members whose availability changes, by results of monitors and by the operator.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_config::snapshot::{Address, Member};
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

/// Records which requests the members of pools accept now. A member that is not in its pool accepts none.
pub fn note(worker: &SimulatedWorker, addresses: &Addresses, world: &World) {
    for (number, pool) in POOLS.into_iter().enumerate() {
        for (place, address) in of(pool, addresses).into_iter().enumerate() {
            let takes = worker.member(pool, address).map_or(Takes::Nothing, |member| {
                match (member.health(), member.state_override()) {
                    (Health::Down, _) | (_, Some(AdminState::Disabled)) => Takes::Nothing,
                    (Health::Draining, _) | (_, Some(AdminState::Drain)) => Takes::Kept,
                    _ => Takes::All,
                }
            });
            if takes != world.keeping.takes(number, place) {
                world.keeping.set(number, place, takes, Moment(kernel::now_us()));
            }
        }
    }
}

/// The members of a pool, in the order of their numbers.
fn of(pool: &str, addresses: &Addresses) -> [SocketAddr; 2] {
    match pool {
        "kept2" | "queue2" => addresses.http2,
        "rough1" => [addresses.refusing, addresses.rough[0]],
        "rough2" => [addresses.refusing, addresses.rough[1]],
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

/// Gives a random pool other members: the same ones in another order, and with another weight. A pool of two may lose one, or get it
/// back.
pub fn replace(worker: &mut SimulatedWorker, addresses: &Addresses, random: &mut Random) {
    let pool = random.below(worker.table().pools.len());
    let name = Arc::clone(&worker.table().pools[pool].pool.name);
    let is_pair = OTHERS.contains(&&*name) || POOLS.contains(&&*name);
    let (turn, weight) = (random.below(3), 1 + random.below(4) as u16);
    let (loses, gains) = (is_pair && random.percent(30), is_pair && random.percent(60));
    worker.change_members(pool, |members| {
        if loses && members.len() > 1 {
            members.remove(0);
        }
        let known = |address: &Address| members.iter().any(|member| member.address == *address);
        let missing = of(&name, addresses).into_iter().map(Address::Socket).find(|it| !known(it));
        if let (true, Some(address), Some(like)) = (gains, missing, members.first().cloned()) {
            let label = address.label().into();
            members.push(Member { address, label, ..like });
        }
        let turn = turn.min(members.len());
        members.rotate_left(turn);
        if let Some(first) = members.first_mut() {
            first.weight = weight;
        }
    });
}
