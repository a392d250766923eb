//! The state that the tests of a run share, and the running products of the current test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::RunError;
use super::accounting::{CpuTime, watch};
use super::attack;
use super::bed::Bed;
use super::certificates::Certificates;
use super::cookies;
use super::direct::{Direct, DirectPair};
use super::energy;
use super::extent::{Budget, Extent, Pace};
use super::idle;
use super::lineup::{self, Runner, Scene, Start};
use super::load_seam::Loader;
use super::meter::Meter;
use super::observers::{self, Observers};
use super::origin::Origin;
use super::products::{self, Guard, InstalledProduct, Layer, WEIR};
use super::progress::{Event, Progress};
use super::rotation::{
    Failure, Judge, Rounds, Sample, Setting, Stage, Stop, disturbance, omit, rotate,
};
use super::store::Store;
use super::workload::Workload;
use crate::catalogue::is_yardstick;
use crate::disturbance::RESTING_SHARE_MAX;
use crate::load::LoadOutcome;
use crate::record::{Product, TestRecord};

/// A run has no time left to wait or repeat if its estimate exceeds this share of its time limit.
const LATE_SHARE: f64 = 0.97;
/// Maximum number of connections of a capacity probe. More connections would only queue.
const CALIBRATION_CONNECTIONS_MAX: usize = 256;
/// Maximum number of probes of a product while the machine is disturbed.
const LOOKS_MAX: usize = 3;
/// Maximum busy share of quiet cores.
const QUIET_SHARE_MAX: f64 = 0.05;
/// Time limit for a product to end, which may first write its counts.
const ENDING_TIMEOUT: Duration = Duration::from_secs(60);
/// Before a load with this many connections, wait until the kernel has closed those of the load before.
const SETTLING_CONNECTIONS: usize = 4_000;
/// Time limit of that wait.
const SETTLING_TIMEOUT: Duration = Duration::from_secs(20);
/// Duration of one check of the cores.
const SETTLING_LOOK: Duration = Duration::from_millis(100);
/// Cores that are busier than this still close connections.
const SETTLED_SHARE_MAX: f64 = 0.2;

/// A smoke measurement without a single response is repeated with twice the duration, up to this.
const SMOKE_MEASURE_MAX: Duration = Duration::from_secs(10);

/// The common state of a run's tests.
///
/// Fields are dropped in this order: the running processes end before the bed is removed.
pub struct Session<'a> {
    /// The program that serves as the origin.
    pub laboratory: PathBuf,
    /// The HTTP servers behind the products.
    pub origin: Origin,
    /// The UDP servers behind the products, once a test has started them.
    pub udp_origin: Option<Origin>,
    /// Cores and network.
    pub bed: Bed,
    /// Holds the behaviour of idle cores for the run.
    pub _idle: idle::IdleGuard,
    /// The run's folder.
    pub store: Store,
    /// Certificates of the products.
    pub certificates: Certificates,
    /// The products of the run.
    pub products: Vec<InstalledProduct>,
    /// The length of the measurements.
    pub extent: Extent,
    /// Energy counters.
    pub energy: energy::Meter,
    /// The load generator.
    pub loader: Box<dyn Loader>,
    /// The receiver of progress messages.
    pub progress: &'a mut dyn Progress,
    /// Set by SIGINT or SIGTERM.
    pub interrupted: Arc<AtomicBool>,
    /// The remaining time.
    pub countdown: Countdown,
    /// Start of the run.
    pub began: Instant,
    /// Time limit of the run. A disturbed round is repeated only within it.
    pub limit: Duration,
}

/// The remaining time of a run, estimated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Countdown {
    /// Estimate of the tests after the current test.
    pub later: Duration,
    /// Estimate of the whole current test.
    pub current: Duration,
    /// Number of measurements of the current test.
    pub steps: usize,
    /// Number of measurements that have begun.
    pub begun: usize,
}

impl Countdown {
    /// The remaining time.
    pub fn remaining(&self) -> Duration {
        let done = self.begun.min(self.steps) as f64 / self.steps.max(1) as f64;
        self.later + self.current.mul_f64(1.0 - done)
    }
}

/// The capacity of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Good requests per second in a closed loop: each connection sends the next request when it has the response.
    pub per_second: f64,
    /// Busy share of the product's cores at that rate.
    pub busy_share: f64,
}

/// Capacities by product.
pub type Capacities = BTreeMap<String, Capacity>;

impl Capacity {
    fn keep(&self, product: &str, of: &str, record: &mut TestRecord) {
        let mut keep = |what: &str, value: f64| {
            record.facts.insert(format!("capacity_{product}{of}_{what}"), value);
        };
        keep("requests_per_second", self.per_second);
        keep("core_busy_percent", self.busy_share * 100.0);
    }
}

impl<'a> Session<'a> {
    /// Starts the products for a test. A product that cannot serve the scene is recorded as omitted: at setting `at`,
    /// or from the whole test if `at` is `None`.
    pub fn open<'s>(
        &'s mut self,
        test: &'static str,
        scene: Scene<'_>,
        at: Option<f64>,
        record: &mut TestRecord,
    ) -> Result<Live<'s, 'a>, Stop> {
        let takes_part = |found: &&InstalledProduct| {
            let name = found.name();
            let is_there = !is_yardstick(name) || scene.yardstick == Some(name);
            is_there && products::takes_part(found.definition.name, scene.feature)
        };
        let products: Vec<InstalledProduct> =
            self.products.iter().filter(takes_part).cloned().collect();
        self.open_some(test, scene, &products, at, record)
    }

    /// Like [`Session::open`], but only with these products.
    pub fn open_some<'s>(
        &'s mut self,
        test: &'static str,
        scene: Scene<'_>,
        products: &[InstalledProduct],
        at: Option<f64>,
        record: &mut TestRecord,
    ) -> Result<Live<'s, 'a>, Stop> {
        let mut live = Live {
            session: self,
            runners: Vec::new(),
            test,
            scene: scene.name.into(),
            object_bytes: scene.object_bytes,
            is_beside_direct: scene.layer == Layer::Packets,
            dead: Vec::new(),
            rested: RestActivity::default(),
        };
        let mut taken = Vec::new();
        for found in products {
            live.session.check_interrupt()?;
            let session = &*live.session;
            let members = scene.members.unwrap_or_else(|| session.members(scene.layer));
            let of_run = (&session.bed, &session.store, &session.certificates);
            match lineup::start(found, scene, of_run, members, &taken)? {
                Start::Serves(runner) => {
                    if scene.under.is_empty() {
                        live.session.record_program(&runner)?;
                    }
                    taken.extend(runner.listen.first().map(|address| address.port()));
                    live.runners.push(*runner);
                }
                Start::Unable(reason) => {
                    live.leave_out(found.name(), at, &reason, record);
                }
            }
        }
        Ok(live)
    }

    /// The servers behind products at this layer.
    fn members(&self, layer: Layer) -> &[SocketAddr] {
        let udp = self.udp_origin.as_ref().filter(|_| matches!(layer, Layer::Udp(_)));
        &udp.unwrap_or(&self.origin).members
    }

    /// Records the hash of the running program, if the hash is not known yet because a script starts the program.
    fn record_program(&mut self, runner: &Runner) -> Result<(), Stop> {
        let is_it = |product: &&mut Product| {
            product.name == runner.found.name() && product.sha256.is_none()
        };
        if let Some(product) = self.store.run.products.iter_mut().find(is_it) {
            let process = runner.server.id();
            let program = format!("/proc/{process}/exe");
            let hash = products::of_process(process).map_err(RunError::io("read", program))?;
            product.sha256 = Some(hash);
        }
        Ok(())
    }

    /// Returns [`Stop::Interrupted`] after SIGINT or SIGTERM.
    pub fn check_interrupt(&self) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Reports a note for the reader.
    pub fn note(&mut self, test: Option<&'static str>, text: &str) {
        self.progress.report(&Event::Note { test, text });
    }

    /// See [`Extent::pace`].
    pub fn pace(&self) -> Pace {
        self.extent.pace()
    }

    /// Whether the estimate of the run nearly reaches its time limit.
    pub fn is_late(&self) -> bool {
        self.began.elapsed() + self.countdown.remaining() > self.limit.mul_f64(LATE_SHARE)
    }

    /// The judgement at a setting; a smoke accepts everything.
    pub fn judge(&self, judge: Judge) -> Judge {
        if self.extent == Extent::Smoke { Judge::Anything } else { judge }
    }

    /// Number of concurrent clients in the tests with F5's number of users.
    pub fn users(&self) -> usize {
        if self.extent == Extent::Smoke { 32 } else { 512 }
    }

    /// Waits until the cores of product and load are quiet or `timeout` has passed. Returns the activity of the
    /// product's cores in the last check.
    fn wait_until_quiet(
        &self,
        look: Duration,
        timeout: Duration,
        busy_share_max: f64,
    ) -> Result<CpuTime, Stop> {
        let deadline = Instant::now() + timeout;
        let (product, load) = (&self.bed.cores.product, &self.bed.cores.load);
        loop {
            self.check_interrupt()?;
            let all: Vec<usize> = product.iter().chain(load).copied().collect();
            let before = super::accounting::Cores::now()?;
            let everything = watch(&all, look)?;
            let product = super::accounting::Cores::now()?.since(&before, product)?;
            if everything.busy_share(all.len()) <= busy_share_max || Instant::now() >= deadline {
                return Ok(product);
            }
        }
    }
}

/// The running products of the current test. Dropping it ends them.
pub struct Live<'s, 'a> {
    /// The run.
    pub session: &'s mut Session<'a>,
    runners: Vec<Runner>,
    test: &'static str,
    scene: String,
    /// The object size for which the products' buffers are configured.
    object_bytes: u64,
    /// Whether the direct connection, without a product, is measured before each product.
    is_beside_direct: bool,
    /// Products that cannot continue this test, with reasons.
    dead: Vec<(String, String)>,
    /// The activity of the product's cores at rest, over all checks of this test.
    rested: RestActivity,
}

/// The activity of cores at rest.
#[derive(Debug, Clone, Copy, Default)]
struct RestActivity {
    busy_s: f64,
    /// Observed time, summed over the cores.
    elapsed_s: f64,
}

impl RestActivity {
    fn add(&mut self, spent: &CpuTime, cores: usize) {
        self.busy_s += spent.busy_s;
        self.elapsed_s += spent.elapsed_s * cores as f64;
    }

    fn share(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.busy_s / self.elapsed_s } else { 0.0 }
    }
}

impl Live<'_, '_> {
    /// Names of the products that can still be measured.
    pub fn products(&self) -> Vec<String> {
        let names = self.runners.iter().map(|runner| runner.found.name().to_owned());
        names.filter(|name| self.is_alive(name)).collect()
    }

    /// A setting with the same workload for every product.
    pub fn setting(&self, at: f64, label: String, judge: Judge, workload: &Workload) -> Setting {
        let workloads = self.products().into_iter().map(|name| (name, workload.clone())).collect();
        Setting { at, label, judge: self.session.judge(judge), workloads }
    }

    /// A setting with a rate of its own for each product. Products without a rate are skipped.
    pub fn setting_at_rates(
        &self,
        at: f64,
        judge: Judge,
        workload: &Workload,
        rates: &BTreeMap<String, f64>,
    ) -> Setting {
        let mut setting = self.setting(at, String::new(), judge, workload);
        for (product, workload) in &mut setting.workloads {
            workload.rate = rates.get(product).copied();
        }
        setting.workloads.retain(|(_, workload)| workload.rate.is_some());
        setting
    }

    /// Measures all products at a setting, in all rounds of the budget.
    pub fn rotate(
        &mut self,
        mut setting: Setting,
        budget: &Budget,
        record: &mut TestRecord,
    ) -> Result<(), Stop> {
        self.omit_dead(setting.at, record);
        let repeats_max = budget.rounds * self.session.pace().repeats_per_round;
        let rounds = Rounds { first: 0, wanted: budget.rounds, of: budget.rounds, repeats_max };
        rotate(self, &mut setting, rounds, record)
    }

    /// Measures all products at a setting, in round number `round` only.
    pub fn rotate_once(
        &mut self,
        mut setting: Setting,
        round: u32,
        budget: &Budget,
        record: &mut TestRecord,
    ) -> Result<(), Stop> {
        self.omit_dead(setting.at, record);
        let repeats_max = self.session.pace().repeats_per_round;
        let rounds = Rounds { first: round, wanted: 1, of: budget.rounds, repeats_max };
        rotate(self, &mut setting, rounds, record)
    }

    /// Measures the capacity of each product and records it among the test's facts. `of` distinguishes the facts of
    /// several probes. A product that cannot be measured is omitted: at setting `at`, or from the whole test.
    pub fn capacities(
        &mut self,
        workload: &Workload,
        of: &str,
        at: Option<f64>,
        record: &mut TestRecord,
    ) -> Result<Capacities, Stop> {
        let measure = Duration::from_millis(self.session.pace().calibration_ms);
        let connections = workload.connections.min(CALIBRATION_CONNECTIONS_MAX);
        let workload = Workload { rate: None, connections, measure, ..workload.clone() };
        let mut capacities = Capacities::new();
        for name in self.products() {
            match self.look(&name, &workload) {
                Ok(Sample { load, cost, .. }) => {
                    // On a busy machine every response may have arrived after the measuring window.
                    let in_all = load.requests as f64 / load.elapsed_s;
                    let capacity = Capacity {
                        per_second: load.requests_per_second.max(in_all),
                        busy_share: cost.busy_s / cost.elapsed_s / cost.cores as f64,
                    };
                    capacity.keep(&name, of, record);
                    capacities.insert(name, capacity);
                }
                Err(Failure::Stop(stop)) => return Err(stop),
                Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                    self.leave_out(&name, at, &reason, record);
                }
            }
        }
        Ok(capacities)
    }

    /// Measures a product once, to plan the test. Repeats this while the machine is disturbed, [`LOOKS_MAX`] times in
    /// all.
    pub fn look(&mut self, product: &str, workload: &Workload) -> Result<Sample, Failure> {
        let judge = self.session.judge(Judge::AnyRate);
        let mut looks = 1;
        loop {
            let resting_share = self.rest()?;
            let sample = self.measure(product, workload, resting_share)?;
            let is_good = resting_share <= RESTING_SHARE_MAX
                && disturbance(judge, workload, &sample).is_none();
            if is_good || looks == LOOKS_MAX || judge == Judge::Anything || !self.may_repeat() {
                return Ok(sample);
            }
            looks += 1;
        }
    }

    /// Records the products that cannot continue as omitted from a setting.
    fn omit_dead(&self, at: f64, record: &mut TestRecord) {
        for (product, reason) in &self.dead {
            omit(record, product, Some(at), reason.clone());
        }
    }

    /// Requests `path` as `count` new clients. Returns the distinct cookies that the product sets.
    pub fn learn_cookies(
        &mut self,
        product: &str,
        path: &str,
        count: usize,
    ) -> Result<Vec<String>, Failure> {
        let is_it = |runner: &&Runner| runner.found.name() == product;
        let runner = self.runners.iter().find(is_it);
        let Some(address) = runner.and_then(|runner| runner.listen.first().copied()) else {
            return Err(Failure::Unable("it does not take part".into()));
        };
        let learned = self.session.bed.as_client(|| cookies::learn(address, path, count));
        learned?.map_err(Failure::Unable)
    }

    /// Excludes products with a firewall that lets an attack through.
    pub fn try_firewalls(&mut self, record: &mut TestRecord) -> Result<(), Stop> {
        let address = |runner: &Runner, guard: Guard| runner.listen.get(guard as usize).copied();
        let tried = |runner: &Runner| {
            let ends = address(runner, Guard::All).zip(address(runner, Guard::Off));
            (runner.found.name().to_owned(), ends)
        };
        let all: Vec<_> = self.runners.iter().map(tried).collect();
        for (name, ends) in all {
            let Some((guarded, unguarded)) = ends else { continue };
            let refused = self.session.bed.as_client(|| attack::is_refused(guarded, unguarded))?;
            if let Err(reason) = refused {
                self.leave_out(&name, None, &reason, record);
            }
        }
        Ok(())
    }

    /// The id of a product's server process.
    pub fn process(&self, product: &str) -> Option<u32> {
        let is_it = |runner: &&Runner| runner.found.name() == product;
        self.runners.iter().find(is_it).map(|runner| runner.server.id())
    }

    /// Ends all products. Waits for each up to [`ENDING_TIMEOUT`], because a counting product first writes its counts.
    pub fn end(self) -> Result<(), String> {
        self.runners.into_iter().try_for_each(|runner| runner.server.end(ENDING_TIMEOUT))
    }

    /// Excludes a product from the rest of this scene. Records the omission at setting `at`, or from the whole test.
    pub fn leave_out(
        &mut self,
        product: &str,
        at: Option<f64>,
        reason: &str,
        record: &mut TestRecord,
    ) {
        self.session.note(Some(self.test), &format!("{product} is left out: {reason}"));
        self.dead.push((product.into(), reason.into()));
        omit(record, product, at, reason.into());
    }

    fn sample(
        &mut self,
        index: usize,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure> {
        let is_smoke = self.session.extent == Extent::Smoke;
        let mut workload = workload.clone();
        loop {
            let sample = self.sample_once(index, &workload, resting_share)?;
            // On a busy machine a smoke may be too short for a single response.
            let is_void = sample.load.requests == 0 && sample.load.errors == 0;
            if is_smoke && is_void && workload.measure < SMOKE_MEASURE_MAX {
                workload.measure *= 2;
                continue;
            }
            // Beyond saturation, all requests may still be queued.
            if sample.load.requests == 0 && (sample.load.errors > 0 || sample.load.unsent == 0) {
                let runner = &self.runners[index];
                let name = runner.found.name();
                let kept = self.session.store.keep_log(&self.scene, name, runner.server.log())?;
                let reason = format!("{} (log: {kept})", nothing_good(&sample.load));
                return Err(Failure::Unable(reason));
            }
            return Ok(sample);
        }
    }

    /// Measures a product without its firewall, then with it.
    fn beside_unguarded(
        &mut self,
        index: usize,
        workload: &Workload,
        unguarded: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure> {
        let without = self.sample(index, unguarded, resting_share)?;
        let mut sample = self.sample(index, workload, resting_share)?;
        sample.cost.unguarded_s_per_request = without.busy_s_per_request();
        sample.rest_on(&without.around);
        Ok(sample)
    }

    fn sample_once(
        &mut self,
        index: usize,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure> {
        let Session { bed, energy, loader, origin, udp_origin, store, interrupted, .. } =
            &mut *self.session;
        let origin = match udp_origin {
            Some(origin) if workload.query_bytes.is_some() => origin,
            Some(_) | None => origin,
        };
        let runner = &mut self.runners[index];
        let observers = match workload.is_observed {
            true => Some(observe(&bed.cores.load)?),
            false => None,
        };
        let mut meter = Meter::new(&bed.cores, (runner.server.id(), origin.id()), energy);
        let loaded = match workload.udp_plan(&runner.listen, bed, interrupted) {
            Some(plan) => loader.query(&plan, &mut meter),
            None => loader.load(&workload.plan(&runner.listen, bed, interrupted), &mut meter),
        };
        if interrupted.load(Ordering::Relaxed) {
            // An interrupted load is shorter than planned.
            return Err(Stop::Interrupted.into());
        }
        origin.check()?;
        let name = runner.found.name();
        if let Err(reason) = runner.server.check() {
            let kept = store.keep_log(&self.scene, name, runner.server.log())?;
            let reason = format!("{reason}\n(whole log: {kept})");
            self.dead.push((name.into(), reason.clone()));
            return Err(Failure::Dead(reason));
        }
        observers.map_or(Ok(()), Observers::finish).map_err(Failure::Unable)?;
        let load = loaded.map_err(Failure::Unable)?;
        if let Some(reason) = workload.tls.as_ref().and_then(|tls| tls.contradicted(&load)) {
            return Err(Failure::Unable(reason));
        }
        let (cost, mut around) = meter.finish(resting_share)?;
        // Threads of the product that share a core wait for each other: more workers than cores, or workers beside the
        // threads that answer observers. Behind a network device, kernel threads do part of the product's work.
        let has_device = bed.client_namespace().is_some();
        if has_device || workload.is_observed || runner.workers > cost.cores {
            around.waited_share = 0.0;
        }
        if has_device {
            around.foreign_share = 0.0;
        }
        Ok(Sample { load, cost, around })
    }
}

impl Stage for Live<'_, '_> {
    fn rest(&mut self) -> Result<f64, Stop> {
        let pace = self.session.pace();
        let (look, timeout) =
            [pace.resting_ms, pace.quiet_timeout_ms].map(Duration::from_millis).into();
        let timeout = if self.session.is_late() { Duration::ZERO } else { timeout };
        let cores = self.session.bed.cores.product.len();
        // CPU counters have steps of 10 ms, so one short check is imprecise: the first one is long.
        let is_first = self.rested.elapsed_s == 0.0;
        let look = if is_first { Duration::from_millis(pace.first_rest_ms) } else { look };
        let spent = self.session.wait_until_quiet(look, timeout, QUIET_SHARE_MAX)?;
        let share = spent.busy_share(cores);
        if share > RESTING_SHARE_MAX {
            return Ok(share);
        }
        self.rested.add(&spent, cores);
        Ok(self.rested.share())
    }

    fn measure(
        &mut self,
        product: &str,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure> {
        self.session.check_interrupt()?;
        // With another object size than the scene's, peers would run with unsuitable buffers.
        debug_assert_eq!(workload.body_bytes, self.object_bytes, "{}", self.scene);
        if workload.connections >= SETTLING_CONNECTIONS {
            self.session.wait_until_quiet(SETTLING_LOOK, SETTLING_TIMEOUT, SETTLED_SHARE_MAX)?;
        }
        let index = self.runners.iter().position(|runner| runner.found.name() == product);
        let index = index.ok_or_else(|| Failure::Unable("it does not take part".into()))?;
        if let Some(unguarded) = workload.unguarded() {
            return self.beside_unguarded(index, workload, &unguarded, resting_share);
        }
        if !self.is_beside_direct {
            return self.sample(index, workload, resting_share);
        }
        let Session { loader, origin, bed, energy, interrupted, .. } = &mut *self.session;
        let ends = DirectPair { loader: &mut **loader, origin, bed, energy, interrupted };
        let direct = Direct::measure(ends, workload, resting_share)?;
        let mut sample = self.sample(index, workload, resting_share)?;
        direct.stand_beside(&mut sample);
        Ok(sample)
    }

    fn may_repeat(&self) -> bool {
        !self.session.is_late()
    }

    fn is_alive(&self, product: &str) -> bool {
        !self.dead.iter().any(|(dead, _)| dead == product)
    }

    fn begin_step(&mut self, what: &str) {
        let session = &mut *self.session;
        session.countdown.begun += 1;
        let remaining = session.countdown.remaining();
        session.progress.report(&Event::Step { test: self.test, what, remaining });
    }

    fn note(&mut self, text: &str) {
        self.session.note(Some(self.test), text);
    }
}

/// Starts the observers of weir.
fn observe(cores: &[usize]) -> Result<Observers, Failure> {
    observers::empty_access_log()
        .map_err(RunError::io("empty", observers::access_log()))
        .map_err(Failure::from)?;
    Observers::start(cores).map_err(Failure::Unable)
}

fn nothing_good(load: &LoadOutcome) -> String {
    let told = |kind| load.error_examples.get(kind).map(|example| format!(" ({example})"));
    let kinds = load.errors_by_kind.iter().map(|(kind, count)| {
        let name = format!("{kind:?}").to_lowercase();
        format!("{count} of the kind {name}{}", told(kind).unwrap_or_default())
    });
    let kinds: Vec<String> = kinds.collect();
    let kinds = if kinds.is_empty() { "nothing came".into() } else { kinds.join(", ") };
    format!("not one good response: {kinds}")
}

/// The capacities of the slowest and the fastest product, without yardsticks.
pub fn slowest_and_best(capacities: &Capacities) -> Option<(f64, f64)> {
    let products = || capacities.iter().filter(|(name, _)| !is_yardstick(name));
    let rates = || products().map(|(_, capacity)| capacity.per_second);
    products().next()?;
    Some((rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)))
}

/// The smaller capacity of weir's and its best peer's. Yardsticks are not peers.
pub fn slower_of_weir_and_best_peer(capacities: &Capacities) -> Option<f64> {
    let weir = capacities.get(WEIR)?.per_second;
    let peers = capacities.iter().filter(|(name, _)| *name != WEIR && !is_yardstick(name));
    let best = peers.map(|(_, capacity)| capacity.per_second).reduce(f64::max)?;
    Some(weir.min(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cores_do_at_rest_is_the_mean_of_all_looks() {
        let mut rested = RestActivity::default();
        assert!(rested.share().abs() < 1e-9);
        // Two cores: one step of the counters in a long check, another in a short check.
        for (busy_s, elapsed_s) in [(0.01, 2.0), (0.01, 0.5)] {
            rested.add(&CpuTime { busy_s, elapsed_s, ..CpuTime::default() }, 2);
        }
        assert!((rested.share() - 0.004).abs() < 1e-9, "{rested:?}");
    }

    #[test]
    fn countdown() {
        let check = |steps, begun, expected| {
            let seconds = Duration::from_secs;
            let countdown = Countdown { later: seconds(10), current: seconds(8), steps, begun };
            assert_eq!(countdown.remaining(), seconds(expected));
        };
        check(4, 0, 18);
        check(4, 3, 12);
        check(4, 9, 10);
        check(0, 0, 18);
    }

    #[test]
    fn the_relay_is_neither_slowest_nor_best() {
        let of = |list: &[(&str, f64)]| slowest_and_best(&capacities(list));
        assert_eq!(of(&[("weir", 5.0), ("envoy", 2.0), ("relay", 9.0)]), Some((2.0, 5.0)));
        assert_eq!(of(&[("relay", 9.0)]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_limit_is_that_of_the_slower_of_weir_and_its_best_peer() {
        let of = |list: &[(&str, f64)]| slower_of_weir_and_best_peer(&capacities(list));
        let all = [("weir", 5.0), ("envoy", 2.0), ("nginx", 4.0), ("relay", 9.0)];
        assert_eq!(of(&all), Some(4.0));
        assert_eq!(of(&[("weir", 3.0), ("nginx", 4.0)]), Some(3.0));
        assert_eq!(of(&[("weir", 3.0), ("relay", 4.0)]), None);
        assert_eq!(of(&[("nginx", 3.0)]), None);
    }

    fn capacities(list: &[(&str, f64)]) -> Capacities {
        let capacity = |per_second| Capacity { per_second, busy_share: 1.0 };
        list.iter().map(|(name, rate)| ((*name).to_owned(), capacity(*rate))).collect()
    }
}
