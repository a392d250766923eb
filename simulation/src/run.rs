//! One run, from its seed to its end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use weir_dataplane::simulation::{InspectionTerms, SimulatedWorker, texts_of};
use weir_event_loop::memory::{self as kernel, Network, Reachability};
use weir_tagged::client;
use weir_tagged::clock::Clock;
use weir_tagged::link::Link;
use weir_tagged::member;
use weir_tagged::place::Place;
use weir_tagged::profile::Profile;
use weir_tagged::world::{Kind, Tally, World};
use weir_testing::Random;

use crate::members;
use crate::memory::{self, AllocationCounts};
use crate::network::{self, Connection, sleep};
use crate::scene::{SERVERS, Scene, client_address, weather};
use crate::tasks::Tasks;

/// Maximum number of simultaneous clients.
const CLIENTS_MAX: usize = 12;
/// Maximum number of descriptors of the worker.
const DESCRIPTORS_MAX: usize = 4_096;
/// Number of rounds after which a run counts as endless.
const ROUNDS_MAX: u64 = 3_000_000;
/// The wait at the end until every timer has expired: idle connections, queues of pools, buffered log lines.
const QUIET_US: u64 = 200_000_000;
/// Maximum number of socket calls in a turn before an injected panic. A turn with fewer calls does not panic.
const PANIC_CALLS_MAX: usize = 12;
/// The drain timeout of the worker, for exchanges in progress.
const DRAIN_MS: u64 = 100_000;
/// Processor time that passes with each look at it. A turn of an inspection has 150 microseconds.
const LOOKS_US: [u64; 3] = [0, 60, 200];
/// How long an inspection on a thread takes, with rare exceptions, and at most: shorter than a request waits for it, also behind others.
const INSPECTION_US: usize = 2_000;
const INSPECTION_US_MAX: usize = 500_000;
/// Maximum memory of an idle worker in bytes: spare buffers, encoders, connections to members.
const KEPT_BYTES_MAX: isize = 24 * 1024 * 1024;
/// Maximum additional memory in bytes for each exchange in progress.
const EXCHANGE_BYTES_MAX: isize = 3 * 1024 * 1024;

/// The result of a run.
pub struct RunResult {
    /// The number of exchanges that clients started.
    pub exchanges: u64,
    /// The number of answers that UDP clients received.
    pub answers: u64,
    /// Descriptions of the findings.
    pub findings: Vec<String>,
    /// The digest of everything sent, logged and counted.
    pub digest: u64,
    /// The lines of the access log.
    pub log: Vec<u8>,
    /// The bytes that each socket sent and received, if requested.
    pub story: String,
    /// The number of events of each kind.
    pub tally: Tally,
    /// The simulated duration in microseconds.
    pub lasted_us: u64,
}

/// Runs a seed to its end, with this number of exchanges. `is_told`: the outcome contains the story.
pub fn run(scene: &Scene, seed: u64, exchanges: u64, is_told: bool) -> RunResult {
    kernel::begin(seed);
    memory::begin();
    let random = Random::new(seed);
    let world = World::new(seed, 3, Profile::simulation(), Clock::new(network::now));
    let run = Run::new(scene, &world, random, exchanges);
    if is_told {
        run.network.tell_story();
    }
    let mut outcome = run.finish();
    outcome.findings.extend(world.findings());
    outcome.exchanges = world.begun();
    outcome.tally = world.tally;
    outcome
}

struct Run<'a> {
    scene: &'a Scene,
    world: &'a World,
    random: Random,
    network: Network,
    worker: SimulatedWorker,
    tasks: Tasks<'a>,
    /// The number of clients that have not finished.
    clients: Rc<Cell<usize>>,
    changes: usize,
    /// The number of exchanges after which the worker drains; `u64::MAX`: never.
    drains_after: u64,
    /// A call on a socket panics in the next turn, after this number of other calls.
    panics_after: Option<usize>,
    findings: Vec<String>,
    log: Vec<u8>,
}

impl<'a> Run<'a> {
    fn new(scene: &'a Scene, world: &'a World, mut random: Random, exchanges: u64) -> Self {
        let network = Network::new(random.next(), weather(&mut random), DESCRIPTORS_MAX);
        for (address, _) in scene.addresses.roles() {
            network.set_reach(address, Reachability::Open);
        }
        let changes = random.below(20);
        let snapshot = scene.snapshot(changes);
        let drains_after = if random.percent(30) { exchanges * 3 / 4 } else { u64::MAX };
        let mut worker = memory::count(|| SimulatedWorker::new(&network, snapshot));
        worker.set_inspection_terms(InspectionTerms {
            has_thread: random.percent(70),
            are_all_long: random.percent(50),
            look_us: LOOKS_US[random.below(LOOKS_US.len())],
        });
        let mut run = Self {
            scene,
            world,
            network,
            worker,
            tasks: Tasks::new(),
            clients: Rc::default(),
            changes,
            drains_after,
            panics_after: None,
            findings: Vec::new(),
            log: Vec::new(),
            random: random.clone(),
        };
        for client in 0..1 + random.below(CLIENTS_MAX) {
            run.spawn_client(client, exchanges);
        }
        run
    }

    /// Adds a client that opens one session after another, until all clients together have started enough exchanges.
    fn spawn_client(&mut self, thread: usize, exchanges: u64) {
        let (world, scene, network) = (self.world, self.scene, self.network.clone());
        let waits = self.tasks.waits();
        let mut random = Random::new(self.random.next());
        let clients = Rc::clone(&self.clients);
        clients.set(clients.get() + 1);
        self.tasks.spawn(|task| {
            Box::pin(async move {
                while world.begun() < exchanges && !world.is_over() {
                    let place = Place::draw(&mut random, &SERVERS, true);
                    let Some(address) = scene.addresses.server(place.server) else { continue };
                    let Some(peer) = network.dial(address, client_address(thread, &mut random))
                    else {
                        break; // The worker does not listen any more.
                    };
                    let stream = Box::new(Connection::new(peer, task, waits.clone()));
                    let link = Link::over(stream, world);
                    let session = Random::new(random.next());
                    client::session(world, thread, session, place, link).await;
                    if random.percent(5) {
                        let rest_us = random.below(3_000_000) as u64;
                        sleep(task, &waits, kernel::now_us() + rest_us).await;
                    }
                }
                clients.set(clients.get() - 1);
            })
        });
    }

    fn finish(mut self) -> RunResult {
        let began_us = kernel::now_us();
        let ended = self.serve() && self.quiet_down();
        if ended {
            self.look_for_remains();
            if !self.world.is_draining() {
                // Not after a drain: bytes in flight to members are lost when the worker ends.
                self.world.convict();
            }
        }
        self.count_weirs_own();
        let mut counts = self.worker.counts();
        self.worker.take_log(&mut self.log);
        counts.push_str(&String::from_utf8_lossy(&self.log));
        let digest = counts.bytes().fold(self.network.digest(), |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        self.world.close();
        RunResult {
            exchanges: 0,
            answers: 0,
            findings: self.findings,
            digest,
            log: self.log,
            story: self.network.take_story(),
            tally: Tally::default(),
            lasted_us: kernel::now_us() - began_us,
        }
    }

    /// Runs until all clients have finished. Returns whether this happened without findings.
    fn serve(&mut self) -> bool {
        let mut rounds = 0;
        while self.clients.get() > 0 {
            rounds += 1;
            if rounds > ROUNDS_MAX {
                self.findings.push("it does not come to an end".to_owned());
            }
            if !self.findings.is_empty() || self.world.has_enough() {
                return false;
            }
            self.happen();
            self.round(u64::MAX);
        }
        true
    }

    /// Advances the time until every timer has expired. Returns whether there were no findings.
    fn quiet_down(&mut self) -> bool {
        let until_us = kernel::now_us() + QUIET_US;
        let mut rounds = 0;
        while kernel::now_us() < until_us && self.findings.is_empty() {
            rounds += 1;
            if rounds > ROUNDS_MAX {
                self.findings.push("it does not come to rest".to_owned());
            }
            self.round(until_us);
        }
        self.findings.is_empty() && !self.world.has_enough()
    }

    /// Lets every party act once. If nothing happens, advances the time to the next event.
    fn round(&mut self, until_us: u64) {
        self.network.take_woken(self.tasks.wake());
        let mut is_busy = self.tasks.poll(kernel::now_us(), &mut self.random);
        while let Some((address, peer)) = self.network.take_call() {
            self.serve_call(address, peer);
            is_busy = true;
        }
        is_busy |= self.network.travel();
        let takes_us = if self.random.percent(2) { INSPECTION_US_MAX } else { INSPECTION_US };
        self.worker.inspect(kernel::now_us() + self.random.below(takes_us) as u64);
        let has_ended = self.worker.has_ended();
        let due_us = self.worker.due_us().filter(|_| !has_ended).unwrap_or(u64::MAX);
        if due_us <= kernel::now_us() || (self.network.has_events() && !has_ended) {
            self.turn();
            is_busy = true;
        }
        if is_busy {
            return kernel::pass(self.random.below(100) as u64);
        }
        let next_us = self.tasks.next_us().min(due_us);
        kernel::pass(next_us.min(until_us).saturating_sub(kernel::now_us()).max(1));
    }

    fn turn(&mut self) {
        self.network.panic_after(self.panics_after.take());
        let worker = &mut self.worker;
        // After a panic that was not injected, the worker does not run again.
        let turned = catch_unwind(AssertUnwindSafe(|| memory::count(|| worker.turn())));
        self.network.panic_after(None);
        self.look_at_records();
        match turned {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.findings.push(format!("the loop ends with {error}")),
            Err(panic) if text_of(&*panic) == kernel::PANIC_AS_TOLD => self.recover(),
            Err(panic) => self.findings.push(format!("a panic: {}", text_of(&*panic))),
        }
    }

    /// A record has blocks of one exchange only.
    fn look_at_records(&mut self) {
        for record in self.worker.take_records() {
            if let Err(error) = self.world.check_rest(&texts_of(&record), None) {
                self.findings.push(format!("the record of a request has {error}"));
            }
            if record.notes.is_some() {
                self.world.count(Kind::Records);
            }
            memory::count(|| drop(record));
        }
    }

    fn serve_call(&mut self, address: std::net::SocketAddr, peer: kernel::Peer) {
        let roles = self.scene.addresses.roles();
        let Some((_, role)) = roles.into_iter().find(|(it, _)| *it == address) else { return };
        let (world, waits) = (self.world, self.tasks.waits());
        let random = Random::new(self.random.next());
        self.tasks.spawn(|task| {
            let stream = Box::new(Connection::new(peer, task, waits));
            Box::pin(member::serve(world, role, random, Link::over(stream, world)))
        });
    }

    /// Triggers random events that do not depend on the clients and members.
    fn happen(&mut self) {
        let is_draining = self.world.is_draining();
        if !is_draining && self.world.begun() >= self.drains_after {
            memory::count(|| self.worker.drain(DRAIN_MS));
            self.world.count(Kind::Drains);
            return self.world.drain();
        }
        match self.random.below(20_000) {
            0..10 if !is_draining => {
                self.changes += 1;
                let snapshot = self.scene.snapshot(self.changes);
                memory::count(|| self.worker.apply(snapshot));
                members::note(&self.worker, &self.scene.addresses, self.world);
                self.world.count(Kind::Reloads);
            }
            10..30 => {
                const REACHES: [Reachability; 5] = [
                    Reachability::Open,
                    Reachability::Refusing,
                    Reachability::Silent,
                    Reachability::Unreachable,
                    Reachability::Exhausted,
                ];
                let rough = self.scene.addresses.rough;
                let address = rough[self.random.below(rough.len())];
                self.network.set_reach(address, REACHES[self.random.below(REACHES.len())]);
            }
            40..240 => {
                members::change(&self.worker, &self.scene.addresses, self.world, &mut self.random);
            }
            // This check is rare, because it takes long.
            240..640 => {
                let lost = self.worker.lost_windows();
                self.findings.extend(lost.into_iter().map(|what| format!("lost: {what}")));
            }
            640..680 => {
                let (addresses, random) = (&self.scene.addresses, &mut self.random);
                memory::count(|| members::replace(&mut self.worker, addresses, random));
                members::note(&self.worker, addresses, self.world);
                self.world.count(Kind::MemberLists);
            }
            30..40 => self.panics_after = Some(self.random.below(PANIC_CALLS_MAX)),
            _ => {}
        }
    }

    /// Continues the worker after a panic. Exchanges in progress are lost.
    fn recover(&mut self) {
        let worker = &mut self.worker;
        let recovered = catch_unwind(AssertUnwindSafe(|| memory::count(|| worker.recover())));
        if let Err(panic) = recovered {
            self.findings.push(format!("a panic behind a panic: {}", text_of(&*panic)));
        }
        self.world.crash();
        self.world.count(Kind::Recoveries);
    }

    /// Adds events that only weir can count.
    fn count_weirs_own(&self) {
        let (table, tally) = (self.worker.table(), &self.world.tally);
        tally.count_many(Kind::Spliced, self.worker.bytes_spliced());
        let [elsewhere, kept] = self.worker.long_inspections();
        tally.count_many(Kind::InspectedElsewhere, elsewhere);
        tally.count_many(Kind::InspectionsKept, kept);
        for server in &table.virtual_servers {
            let totals = server.counters.totals();
            tally.count_many(Kind::ManyConnections, totals.connections_refused);
            tally.count_many(Kind::Delayed, totals.requests_delayed);
            tally.count_many(Kind::RequestsLimited, totals.requests_limited);
        }
        for pool in &table.pools {
            let totals = pool.pool.counters.totals();
            tally.count_many(Kind::QueueTimeouts, totals.queue_timeouts);
            tally.count_many(Kind::Retries, totals.retries);
            for member in &pool.members {
                tally.count_many(Kind::Ejections, member.counters.totals().ejections);
            }
        }
    }

    fn look_for_remains(&mut self) {
        if self.world.is_draining() != self.worker.has_ended() {
            self.findings.push("the worker was told to end, and does not".to_owned());
        }
        // After the worker has ended, its remaining state does not matter.
        let has_ended = self.worker.has_ended();
        let remains = if has_ended { Vec::new() } else { self.worker.remains() };
        if !remains.is_empty() {
            self.findings.push(format!("left of it: {}", remains.join(", ")));
        }
        for (address, failed, begun) in self.worker.connects() {
            // Connects fail in the rough network, where routes are missing.
            if failed > begun && !self.scene.addresses.is_rough(&address.to_string()) {
                self.findings.push(format!("{failed} failures of {begun} connects to {address}"));
            }
        }
        let AllocationCounts { bytes, peak_bytes } = memory::counted();
        if bytes > KEPT_BYTES_MAX {
            self.findings.push(format!("{bytes} bytes are kept"));
        }
        if peak_bytes > KEPT_BYTES_MAX + EXCHANGE_BYTES_MAX * CLIENTS_MAX as isize {
            self.findings.push(format!("{peak_bytes} bytes at a time"));
        }
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
