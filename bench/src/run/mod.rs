//! The engine of `weir bench run`: creates the bed, starts the products, measures them in turn, and records everything.
//!
//! Top down: [`run`] makes a `session`; `tests` turns each test of the catalogue into settings; `rotation`
//! measures every product at a setting, round after round; `meter` reads its costs; `store` records them.

mod accounting;
mod asks;
mod attack;
mod bed;
mod certificates;
mod cookies;
mod counters;
mod crs;
mod devices;
mod direct;
mod energy;
mod error;
mod extent;
mod host;
mod https;
mod idle;
mod lineup;
mod load_seam;
mod lock;
mod meter;
mod namespaces;
mod observers;
mod origin;
mod packet_bed;
mod process;
mod products;
mod progress;
mod rotation;
mod session;
mod settings;
mod signatures;
mod store;
mod template;
#[cfg(test)]
mod testing;
mod tests;
mod workload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub use bed::Network;
pub use error::RunError;
pub use extent::Extent;
pub use idle::Idle;
pub use progress::{Event, Lines, Progress, clock};
pub use settings::{ROUNDS_MAX, ROWS_MAX, Selection, Settings};

use crate::catalogue::{PLAIN_WEIR, RELAY, SIGNATURES, Test, is_yardstick};
use crate::record::{Absence, FORMAT, Product, Run, TestRecord};
use bed::{Bed, Cores, SERVERS};
use certificates::Certificates;
use crs::Crs;
use extent::Budget;
use load_seam::Loader;
use lock::Lock;
use origin::Origin;
use products::{Definition, InstalledProduct, WEIR};
use rotation::Stop;
use session::{Countdown, Session};
use store::Store;

/// Runs the tests and returns the folder of the results.
///
/// SIGINT and SIGTERM end the run cleanly with [`RunError::Interrupted`]. Call `run` from the main thread: the kernel
/// kills the started servers when the calling thread ends.
pub fn run(settings: &Settings, progress: &mut dyn Progress) -> Result<PathBuf, RunError> {
    run_with(settings, progress, Box::new(load_seam::Engine))
}

fn run_with(
    settings: &Settings,
    progress: &mut dyn Progress,
    loader: Box<dyn Loader>,
) -> Result<PathBuf, RunError> {
    let _lock = Lock::take()?;
    let interrupted = Interrupt::listen()?;
    let mut session = prepare(settings, progress, loader, Arc::clone(&interrupted.flag))?;
    let result = run_tests(settings, &mut session);
    let folder = session.store.folder().to_owned();
    let crs = Crs::find().ok().map(|crs| crs.folder);
    let tidied = session.store.save().and_then(|()| session.store.tidy(crs.as_deref()));
    match result {
        Ok(()) => tidied.map(|()| folder),
        Err(Stop::Interrupted) => Err(RunError::Interrupted { folder }),
        Err(Stop::Failed(error)) => Err(RunError::Broken { folder, source: Box::new(error) }),
    }
}

/// Finds the products, makes the bed and starts the origin.
fn prepare<'a>(
    settings: &Settings,
    progress: &'a mut dyn Progress,
    loader: Box<dyn Loader>,
    interrupted: Arc<AtomicBool>,
) -> Result<Session<'a>, RunError> {
    for (program, package) in [("taskset", "util-linux"), ("setpriv", "util-linux")] {
        if process::find_program(program).is_none() {
            let text = format!("the program {program} is needed: install {package}");
            return Err(RunError::Input(text));
        }
    }
    let allowed = bed::allowed_cores()?;
    let (product, load) = (settings.product_cores.as_deref(), settings.load_cores.as_deref());
    let cores = Cores::assign(&allowed, &bed::siblings, product, load)?;
    let (products, absent) = find_products(settings)?;
    let energy = energy::Meter::find();
    let bed = Bed::make(settings.network, cores)?;
    let idle = idle::IdleGuard::to(settings.idle, host::is_virtual(), energy.is_readable())?;
    let run = Run {
        format: FORMAT,
        command: settings.command.clone(),
        extent: settings.selection.name().into(),
        started: store::now(),
        elapsed_s: 0.0,
        machine: host::describe(allowed.len(), energy.is_readable()),
        bed: bed.record(idle.idle),
        products: recorded(&products, settings),
        absent,
        tests: Vec::new(),
    };
    let store = Store::make(settings.folder.as_deref(), run)?;
    let certificates = Certificates::make(&store.working("certificates", "run")?)?;
    let origin = Origin::start(&settings.laboratory, SERVERS, &bed, &store)?;
    Ok(Session {
        laboratory: settings.laboratory.clone(),
        origin,
        udp_origin: None,
        bed,
        _idle: idle,
        store,
        certificates,
        products,
        extent: settings.selection.extent,
        energy,
        loader,
        progress,
        interrupted,
        countdown: Countdown::default(),
        began: Instant::now(),
        limit: settings.selection.extent.limit(),
    })
}

/// The products of the record: those of the run, and if a test measures packets, the two forwarding methods of the
/// kernel.
fn recorded(products: &[InstalledProduct], settings: &Settings) -> Vec<Product> {
    let mut recorded: Vec<Product> = products.iter().map(|found| found.record.clone()).collect();
    if settings.selection.tests.iter().any(|test| test.name == tests::PACKETS) {
        recorded.extend(tests::packet_products());
    }
    recorded
}

/// The found products, and the requested products that are missing, with reasons.
fn find_products(settings: &Settings) -> Result<(Vec<InstalledProduct>, Vec<Absence>), RunError> {
    let (mut products, mut absent) = (Vec::new(), Vec::new());
    let asks_for = |firewalls: bool| {
        settings.selection.tests.iter().any(|test| tests::is_of_firewalls(test) == firewalls)
    };
    for definition in products::ALL {
        let name = definition.name;
        let own = match name {
            WEIR | PLAIN_WEIR => Some(settings.weir.as_path()),
            _ if is_yardstick(name) => Some(settings.laboratory.as_path()),
            _ => None,
        };
        let is_wanted = match name {
            WEIR => true,
            RELAY => settings.relay,
            PLAIN_WEIR => {
                settings.selection.tests.iter().any(|test| tests::asks_for_feature(test.name))
            }
            SIGNATURES => {
                settings.selection.tests.iter().any(|test| tests::is_beside_signatures(test.name))
            }
            _ => settings.peers.contains(&name) && asks_for(false),
        };
        if !is_wanted {
            continue;
        }
        if let Some(programs) = settings.programs.get(name).filter(|_| own.is_none()) {
            products.extend(rows(definition, programs)?);
            continue;
        }
        match definition.find(own) {
            Ok(found) => products.push(found),
            Err(reason) if own.is_some() => {
                return Err(RunError::Input(format!("{name} cannot take part: {reason}")));
            }
            Err(reason) => absent.push(Absence { product: name.into(), reason }),
        }
    }
    let is_wanted = |definition: &&&Definition| settings.peers.contains(&definition.name);
    for definition in products::FIREWALLS.iter().filter(is_wanted).filter(|_| asks_for(true)) {
        match products::find_firewall(definition) {
            Ok(found) => products.push(found),
            Err(reason) => absent.push(Absence { product: definition.name.into(), reason }),
        }
    }
    Ok((products, absent))
}

/// The rows of a product with programs given on the command line.
fn rows(
    definition: &'static Definition,
    programs: &[PathBuf],
) -> Result<Vec<InstalledProduct>, RunError> {
    let name = definition.name;
    if programs.len() > ROWS_MAX {
        let count = programs.len();
        let text =
            format!("--{name} was given {count} times: {ROWS_MAX} rows of a product at most");
        return Err(RunError::Input(text));
    }
    let find = |(row, program): (usize, &PathBuf)| match definition.find(Some(program)) {
        Ok(found) if row == 0 => Ok(found),
        Ok(found) => Ok(found.second()),
        Err(reason) => Err(RunError::Input(format!("the given {name} cannot take part: {reason}"))),
    };
    programs.iter().enumerate().map(find).collect()
}

/// Minimum time limit of a run with `--rounds` or with a second row of a product, as a multiple of the run's estimate.
/// The excess over the estimate is for repeated measurements.
const REPEATS_SHARE: f64 = 1.25;

/// Runs every test in turn. An interrupted test keeps its measurements.
fn run_tests(settings: &Settings, session: &mut Session<'_>) -> Result<(), Stop> {
    let selection = &settings.selection;
    let takers = session.products.iter().filter(|found| !is_yardstick(found.name())).count();
    let budget = |test: &&Test| selection.extent.budget(test.name);
    let budgets = selection.tests.iter().filter_map(budget);
    let budgets: Vec<Budget> = budgets.map(|budget| budget.with_rounds(settings.rounds)).collect();
    let estimate = |budgets: &[Budget]| selection.extent.estimate(budgets, takers, settings.relay);
    let is_second = |found: &InstalledProduct| found.name() != found.definition.name;
    if settings.rounds.is_some() || session.products.iter().any(is_second) {
        session.limit = session.limit.max(estimate(&budgets).mul_f64(REPEATS_SHARE));
    }
    session.progress.report(&Event::Began {
        folder: session.store.folder(),
        products: &session.store.run.products,
        absent: &session.store.run.absent,
        tests: &selection.tests,
        estimate: estimate(&budgets),
    });
    for (index, (test, budget)) in selection.tests.iter().copied().zip(&budgets).enumerate() {
        let of_test = takers + usize::from(settings.relay && budget.yardstick);
        session.countdown = Countdown {
            later: estimate(&budgets[index + 1..]),
            current: estimate(&budgets[index..=index]),
            steps: budget.settings.len() * budget.rounds as usize * of_test,
            begun: 0,
        };
        let (number, of) = (index + 1, selection.tests.len());
        let remaining = session.countdown.remaining();
        session.progress.report(&Event::TestBegan { test, number, of, remaining });
        let mut record = TestRecord {
            name: test.name.into(),
            rounds: budget.rounds,
            points: Vec::new(),
            omissions: Vec::new(),
            discarded: Vec::new(),
            facts: std::collections::BTreeMap::new(),
        };
        let result = tests::run(session, test, budget, &mut record);
        if result.is_ok() {
            session.progress.report(&Event::TestEnded { record: &record });
        }
        if result.is_ok() || !record.points.is_empty() {
            session.store.add(record)?;
        }
        result?;
    }
    Ok(())
}

/// Exit status of a run ended by a second signal.
const EXIT_SIGNALLED: i32 = 130;

/// Handles SIGINT and SIGTERM until dropped.
struct Interrupt {
    flag: Arc<AtomicBool>,
    listeners: Vec<signal_hook::SigId>,
}

impl Interrupt {
    /// The first signal sets the flag. The second signal ends the process at once, in case the run does not react to
    /// the flag; the kernel then ends the started servers.
    fn listen() -> Result<Self, RunError> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag::{register, register_conditional_shutdown};

        let failed = |error| RunError::Bed(format!("signals cannot be listened for: {error}"));
        let mut interrupt = Self { flag: Arc::default(), listeners: Vec::new() };
        for signal in [SIGINT, SIGTERM] {
            let flag = &interrupt.flag;
            let second = register_conditional_shutdown(signal, EXIT_SIGNALLED, Arc::clone(flag));
            let first = register(signal, Arc::clone(flag));
            interrupt.listeners.extend([second.map_err(failed)?, first.map_err(failed)?]);
        }
        Ok(interrupt)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for listener in self.listeners.drain(..) {
            signal_hook::low_level::unregister(listener);
        }
    }
}
