//! Every byte through weir identifies its exchange, and every receiver checks it. A record of a request has bytes of one exchange
//! only.
//!
//! The clients and members of `weir-tagged` exchange HTTP/1 and HTTP/2 messages through a real weir with several virtual
//! servers, over sockets and in threads.
//!
//! Two runs, with one and two workers, share `WEIR_TEST_ISOLATION_SECONDS` (60). `WEIR_TEST_ISOLATION_SEED` sets the seed.
//! The test ends after `WEIR_TEST_ISOLATION_FINDINGS` (3) findings. The access logs are the files `WEIR_TEST_ISOLATION_LOG`
//! with `.1` and `.2` appended. The name of the exchange in a finding is a part of the path in the log.

mod records;
mod setup;
mod sockets;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_tagged::client::session;
use weir_tagged::place::{HTTP_SERVERS, Place, Server};
use weir_tagged::profile::Profile;
use weir_tagged::world::{Finding, Kind as Happening, World};
use weir_testing::Random;
use weir_tests::proxy::{Kind as Program, Proxy};
use weir_tests::tools;

use crate::setup::{Listeners, Members, setup};
use crate::sockets::{block_on, clock, connect, connect_narrow};

/// Number of concurrent clients.
const CLIENTS: usize = 24;
/// Kinds of events that are impossible or not planned in this test.
const IMPOSSIBLE: [Happening; 29] = [
    Happening::Spliced,
    Happening::SurplusBehind,
    Happening::SurplusIdle,
    Happening::Recoveries,
    Happening::Drains,
    Happening::ConnectionRefused,
    Happening::ManyConnections,
    Happening::Delayed,
    Happening::RequestsLimited,
    Happening::QueueTimeouts,
    Happening::Spare,
    Happening::Ejections,
    Happening::Retries,
    Happening::MemberStates,
    Happening::MemberLists,
    Happening::Nobody,
    Happening::Kept,
    Happening::KeptSource,
    Happening::KeptDrained,
    Happening::Moved,
    Happening::Replaced,
    Happening::LetIn,
    Happening::Denied,
    Happening::ServiceFailed,
    Happening::ServiceLeft,
    Happening::Copies,
    Happening::CopiesLeft,
    Happening::InspectedElsewhere,
    Happening::InspectionsKept,
];
/// Interval between changes of the configuration.
const RELOAD_EVERY: Duration = Duration::from_millis(700);
/// Interval between readings of the records of requests.
const RECORDS_EVERY: Duration = Duration::from_millis(500);
/// Interval between progress reports of a long run.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// Allowed growth of memory after the first third: pools reach their maximum size late.
const GROWTH_BYTES_MAX: u64 = 16 * 1024 * 1024;

fn number(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

#[test]
fn every_byte_belongs_to_its_exchange() {
    if Program::chosen() != Program::Weir {
        return tools::skip("it knows weir's own responses, not the stand-in's");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos() as u64);
    let seed = number("WEIR_TEST_ISOLATION_SEED", now % 1_000_000_000);
    let seconds = number("WEIR_TEST_ISOLATION_SECONDS", 60);
    let findings_max = number("WEIR_TEST_ISOLATION_FINDINGS", 3) as usize;
    println!("WEIR_TEST_ISOLATION_SEED={seed}");
    let world = Arc::new(World::new(seed, findings_max, Profile::sockets(), clock()));
    let members = Members::start(&world);
    for (phase, workers) in [1, 2].into_iter().enumerate() {
        if !world.has_enough() {
            run(&world, &members, workers, phase, Duration::from_secs(seconds) / 2);
        }
    }
    println!("{} exchanges in {seconds} s: {}", world.begun(), world.tally.told());
    let findings = world.findings();
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
    assert_eq!(world.tally.missing(&IMPOSSIBLE), Vec::<&str>::new(), "never happened");
}

/// Runs clients, reloads and checks of the process for this time.
fn run(world: &World, members: &Members, workers: usize, phase: usize, length: Duration) {
    let listeners = Listeners::lease();
    let log = std::env::var("WEIR_TEST_ISOLATION_LOG").ok();
    let setup = |change| {
        let setup = setup(members, &listeners, workers, change);
        if log.is_some() { setup.access_log() } else { setup }
    };
    let mut proxy = Proxy::start(&setup(0));
    world.go_on();
    let first = proxy.address();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (thread, listeners) = (phase * CLIENTS + client, &listeners);
            let address = move |server| listeners.address(server, first);
            scope.spawn(move || client_thread(world, thread, address));
        }
        watch(world, &mut proxy, length, setup);
        world.stop();
    });
    if proxy.process().exited().is_none() {
        let panics = proxy.metric("weir_worker_panics_total", &[]);
        if panics > 0.0 {
            let what = format!("{panics} panics of workers:\n{}", proxy.process().output());
            world.found(&Finding { what, id: None, received: Vec::new() });
        }
    }
    world.close();
    if let Some(log) = &log {
        std::fs::write(format!("{log}.{workers}"), proxy.process().output()).expect("the log");
    }
}

fn client_thread(world: &World, thread: usize, address: impl Fn(Server) -> SocketAddr) {
    let random = &mut Random::new(world.seed ^ (thread as u64) << 48);
    while !world.is_over() {
        let place = Place::draw(random, &HTTP_SERVERS, true);
        let is_narrow = place.server != Server::Relay && random.percent(20);
        let connect = if is_narrow { connect_narrow } else { connect };
        // An error means that weir has exited, which other checks detect.
        if let Ok(link) = connect(address(place.server), world) {
            block_on(session(world, thread, Random::new(random.next()), place, link));
        }
    }
}

/// Reloads repeatedly until the time is over, and checks the process.
fn watch(
    world: &World,
    proxy: &mut Proxy,
    length: Duration,
    setup: impl Fn(usize) -> weir_tests::proxy::Setup,
) {
    let (begun, mut reported, mut reloaded) = (Instant::now(), Instant::now(), Instant::now());
    let mut looked = Instant::now();
    let (mut first_third, mut last, mut change) = (0, 0, 0);
    while begun.elapsed() < length && !world.is_over() {
        thread::sleep(Duration::from_millis(50));
        if let Some(status) = proxy.process().exited() {
            let what = format!("weir ended with {status}:\n{}", proxy.process().output());
            return world.found(&Finding { what, id: None, received: Vec::new() });
        }
        if reloaded.elapsed() > RELOAD_EVERY {
            (reloaded, change) = (Instant::now(), change + 1);
            proxy.reload(&setup(change));
            world.count(Happening::Reloads);
        }
        if looked.elapsed() > RECORDS_EVERY {
            looked = Instant::now();
            records::look(proxy, world);
        }
        let resident = proxy.process().resident_bytes();
        let peak = if begun.elapsed() < length / 3 { &mut first_third } else { &mut last };
        *peak = resident.max(*peak);
        if reported.elapsed() > REPORT_EVERY {
            reported = Instant::now();
            println!("{} exchanges, {} KiB", world.begun(), resident / 1024);
        }
    }
    if last > first_third + GROWTH_BYTES_MAX {
        let what = format!("memory grew from {first_third} to {last} bytes");
        world.found(&Finding { what, id: None, received: Vec::new() });
    }
}
