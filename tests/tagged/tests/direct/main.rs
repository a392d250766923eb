//! Clients and members connected without weir. They must understand each other, and detect wrong bytes.

mod wire;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use weir_tagged::client::session;
use weir_tagged::link::Link;
use weir_tagged::member::{Role, serve};
use weir_tagged::place::{Place, Server, Version};
use weir_tagged::profile::Profile;
use weir_tagged::world::{Kind, World};
use weir_testing::Random;

use crate::wire::{Driver, End, Foul, Task};

fn place_of(version: Version) -> Place {
    let server = match version {
        Version::Http1 => Server::Http1,
        Version::Http2 => Server::Http2,
    };
    Place { server, member: version, client: version, is_fragile: false }
}

fn client<'a>(world: &'a World, thread: usize, place: Place, end: End) -> Task<'a> {
    let random = Random::new(world.seed ^ world.begun() << 8 ^ thread as u64);
    let link = Link::over(Box::new(end), world);
    Box::pin(session(world, thread, random, place, link))
}

fn member<'a>(world: &'a World, version: Version, end: End) -> Task<'a> {
    let role = match version {
        Version::Http1 => Role::Http1(0),
        Version::Http2 => Role::Http2(0),
    };
    let random = Random::new(world.seed ^ world.begun());
    Box::pin(serve(world, role, random, Link::over(Box::new(end), world)))
}

/// Runs connections one after the other until this number of exchanges.
fn exchanges(world: &World, driver: &Driver, version: Version, capacity: usize, count: u64) {
    while world.begun() < count && !world.has_enough() {
        let [near, far] = driver.wire(capacity);
        let client = client(world, 0, place_of(version), near);
        driver.run(vec![client, member(world, version, far)]);
    }
}

#[test]
fn clients_and_members_understand_each_other() {
    let cases = [
        (Version::Http1, Kind::Http1ToHttp1, Kind::Http1WebSocketToHttp1),
        (Version::Http2, Kind::Http2ToHttp2, Kind::Http2WebSocketToHttp2),
    ];
    for (version, whole, tunnel) in cases {
        for capacity in [300, 1 << 16] {
            let driver = Driver::new();
            let world = World::new(7, 1, Profile::direct(), driver.clock());
            exchanges(&world, &driver, version, capacity, 1_000);
            assert_eq!(world.findings(), Vec::<String>::new(), "{version:?}, {capacity}");
            assert!(world.tally.get(whole) > 700, "{}", world.tally.told());
            for kind in [tunnel, Kind::Uploads, Kind::Hints, Kind::Continues, Kind::Early] {
                assert!(world.tally.get(kind) > 0, "{kind:?}: {}", world.tally.told());
            }
        }
    }
}

#[test]
fn a_wrong_byte_is_found() {
    for version in [Version::Http1, Version::Http2] {
        let mut done = 0;
        for seed in 0..400 {
            let driver = Driver::new();
            let world = World::new(seed, 100, Profile::direct(), driver.clock());
            let [mut near, mut far] = driver.wire(1 << 16);
            let is_done = Rc::new(Cell::new(false));
            let end = if seed % 2 == 0 { &mut near } else { &mut far };
            let digits_left = 8 * seed as usize;
            end.foul = Some(Foul { digits_left, row: 0, is_done: Rc::clone(&is_done) });
            let client = client(&world, 0, place_of(version), near);
            driver.run(vec![client, member(&world, version, far)]);
            assert_eq!(is_done.get(), !world.findings().is_empty(), "{version:?}, seed {seed}");
            done += u64::from(is_done.get());
        }
        assert!(done > 100, "{version:?}: {done}");
    }
}

#[test]
fn responses_for_another_client_are_found() {
    for version in [Version::Http1, Version::Http2] {
        for seed in 0..50 {
            let driver = Driver::new();
            let world = World::new(seed, 100, Profile::direct(), driver.clock());
            let [near, far, other_near, other_far] = driver.crossed();
            let place = place_of(version);
            driver.run(vec![
                client(&world, 0, place, near),
                client(&world, 1, place, other_near),
                member(&world, version, far),
                member(&world, version, other_far),
            ]);
            assert!(!world.findings().is_empty(), "{version:?}, seed {seed}");
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn time_of_an_exchange() {
    for version in [Version::Http1, Version::Http2] {
        let driver = Driver::new();
        let world = World::new(7, 1, Profile::direct(), driver.clock());
        let begun = Instant::now();
        exchanges(&world, &driver, version, 1 << 16, 200_000);
        let time = begun.elapsed();
        assert_eq!(world.findings(), Vec::<String>::new());
        let each = time.as_secs_f64() * 1e6 / world.begun() as f64;
        println!("{version:?}: {each:.2} us for each of {} exchanges", world.begun());
    }
}
