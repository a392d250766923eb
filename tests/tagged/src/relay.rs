//! Relayed connections: the first block identifies the exchange, and its tunnel follows.

use weir_testing::Random;

use crate::link::{Link, UNTIL_EVENT};
use crate::place::Place;
use crate::tag::{BLOCK_BYTES, Part};
use crate::tunnel::{self, Side};
use crate::world::{Finding, World};

/// The client's session of one relayed connection.
pub async fn session(
    world: &World,
    thread: usize,
    mut random: Random,
    place: Place,
    mut link: Link,
) {
    let id = place.id(thread, world.next(thread));
    let Some(plan) = world.plan(id) else { return };
    let name = world.key.bytes(id, Part::Path, BLOCK_BYTES);
    link.out().extend_from_slice(&name);
    let run = tunnel::run(world, &mut link, &plan, Side::Client, &mut random);
    if let Err(finding) = run.await {
        world.found(&finding);
    }
}

/// Serves one connection from weir.
pub async fn serve(world: &World, mut random: Random, mut link: Link) -> Result<(), Finding> {
    while link.input().len() < BLOCK_BYTES {
        if link.has_ended() {
            // The client has broken off at once.
            return Ok(());
        }
        link.turn(UNTIL_EVENT).await;
    }
    let named = world.key.read(&link.input()[..BLOCK_BYTES]);
    let plan = named.filter(|(_, part, place)| (*part, *place) == (Part::Path, 0));
    let Some(plan) = plan.and_then(|(id, ..)| world.plan(id)) else {
        let what = "a relayed connection of no exchange".to_owned();
        return Err(Finding { what, id: None, received: link.recent().to_vec() });
    };
    link.take(BLOCK_BYTES);
    tunnel::run(world, &mut link, &plan, Side::Member, &mut random).await
}
