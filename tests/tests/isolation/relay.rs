//! Relayed connections: the first block names the exchange, what follows is its tunnel.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use weir_testing::Random;

use crate::link::Link;
use crate::place::Place;
use crate::tag::{BLOCK_BYTES, Part};
use crate::tunnel::{self, Side};
use crate::world::{Finding, World};

/// One connection.
pub fn session(
    world: &World,
    thread: usize,
    random: &mut Random,
    place: Place,
    address: SocketAddr,
) {
    let Ok(mut link) = Link::connect(address) else { return };
    let id = place.id(thread, world.next(thread));
    let Some(plan) = world.plan(id) else { return };
    let name = world.key.bytes(id, Part::Path, BLOCK_BYTES);
    link.out().extend_from_slice(&name);
    if let Err(finding) = tunnel::run(world, &mut link, &plan, Side::Client, random) {
        world.found(&finding);
    }
}

/// Serves one connection of weir's.
pub fn serve(world: &World, stream: TcpStream, random: &mut Random) -> Result<(), Finding> {
    let Ok(mut link) = Link::over(stream) else { return Ok(()) };
    while link.input().len() < BLOCK_BYTES {
        if link.has_ended() {
            // Its client has broken off at once.
            return Ok(());
        }
        link.turn(Duration::from_secs(1));
    }
    let named = world.key.read(&link.input()[..BLOCK_BYTES]);
    let plan = named.filter(|(_, part, place)| (*part, *place) == (Part::Path, 0));
    let Some(plan) = plan.and_then(|(id, ..)| world.plan(id)) else {
        let what = "a relayed connection of no exchange".to_owned();
        return Err(Finding { what, id: None, received: link.recent().to_vec() });
    };
    link.take(BLOCK_BYTES);
    tunnel::run(world, &mut link, &plan, Side::Member, random)
}
