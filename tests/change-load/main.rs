//! Changes of members under load: what they cost, and when they are in force.
//!
//! `change-load [--members N] [--pools N] [--rate N] [--together N] [--seconds N]` starts weir with so many members in so many
//! pools, which all answer. After a time with requests alone, it makes `--rate` changes of a weight, a state or an address per
//! second over the admin API, `--together` of them in a transaction. It reports the CPU time of the workers and of the control
//! plane in both times, and how long changes took. It fails if a request failed, if a change is not in force, or if weir shows
//! other members than it should, also after a restart, which checks the whole configuration.

mod changes;
mod cpu;
mod pools;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use weir_tests::load::{Load, Plan};
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;

use crate::changes::{Changer, Latencies};
use crate::cpu::ThreadTimes;
use crate::pools::{Pools, StandIn};

/// The arguments.
#[derive(Debug, Clone, Copy)]
struct Arguments {
    members: usize,
    pools: usize,
    /// Changes per second.
    rate: usize,
    /// Changes in a transaction.
    together: usize,
    seconds: u64,
}

/// Pools that get requests.
const LOADED_POOLS_MAX: usize = 100;

/// The requests beside: from each connection one, and then a pause.
const PLAN: Plan =
    Plan { connections: 8, pause: Duration::from_millis(20), requests_per_connection: None };

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    match measure(arguments) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments =
        Arguments { members: 10_000, pools: 100, rate: 100, together: 1, seconds: 60 };
    while let Some(word) = words.next() {
        let number = words.next().and_then(|text| text.parse::<usize>().ok()).filter(|it| *it > 0);
        let number = number.ok_or_else(|| format!("{word} needs a number above 0"))?;
        match &*word {
            "--members" => arguments.members = number,
            "--pools" => arguments.pools = number,
            "--rate" => arguments.rate = number,
            "--together" => arguments.together = number,
            "--seconds" => arguments.seconds = number as u64,
            _ => return Err(format!("unknown argument {word}: see the head of the program")),
        }
    }
    match arguments.members >= 3 * arguments.pools {
        true => Ok(arguments),
        false => Err("each pool needs three members".to_owned()),
    }
}

fn setup(pools: &Pools, folder: &TempDir) -> Setup {
    let loaded = pools.names().take(LOADED_POOLS_MAX);
    let rules = loaded.map(|name| {
        format!("{{ when: 'request.path == \"/{name}\"', then: [ {{ pool: {name} }} ] }}")
    });
    let rules: Vec<String> = rules.collect();
    let setup = Setup::new(&[])
        .member("127.0.0.1:1")
        .virtual_server("policies: [ by-path ]")
        .top("data_plane: { workers: 2 }")
        .top(&format!("state_dir: {}", folder.path().display()))
        .top(&format!("policies: {{ by-path: {{ rules: [ {} ] }} }}", rules.join(", ")))
        .admin_socket();
    pools.in_configuration().fold(setup, |setup, pool| setup.also_pool(&pool))
}

fn measure(arguments: Arguments) -> Result<String, String> {
    let (folder, port) = (TempDir::new("change-load"), Lease::on_every_address());
    let _stand_in = StandIn::start(port.address().port());
    let mut pools = Pools::new(arguments.members, arguments.pools, port.address().port());
    let setup = setup(&pools, &folder);
    let mut proxy = Proxy::start(&setup);
    let paths: Vec<String> =
        pools.names().take(LOADED_POOLS_MAX).map(|name| format!("/{name}")).collect();
    let load = Load::start_on(proxy.address(), &paths, PLAN);
    load.wait_for_good(2 * PLAN.connections * paths.len());

    let pid = proxy.process().pid();
    let alone = Duration::from_secs(arguments.seconds.div_ceil(4));
    let before = ThreadTimes::of(pid);
    thread::sleep(alone);
    let without = ThreadTimes::of(pid).since(&before, alone);

    let before = ThreadTimes::of(pid);
    let changer = Changer { rate: arguments.rate, together: arguments.together };
    let (latencies, length) =
        changer.run(&proxy, &mut pools, Duration::from_secs(arguments.seconds))?;
    let with = ThreadTimes::of(pid).since(&before, length);
    let tally = load.stop();
    if tally.failed() + tally.lost_connections > 0 {
        return Err(format!("requests have failed: {tally:?}"));
    }
    if proxy.metric("weir_worker_panics_total", &[]) > 0.0 {
        return Err("a worker has panicked".to_owned());
    }
    pools.compare(&proxy)?;
    proxy.restart(&setup);
    pools.compare(&proxy).map_err(|why| format!("after a restart: {why}"))?;
    Ok(report(arguments, (&without, &with), &latencies, tally.good))
}

fn report(
    arguments: Arguments,
    (without, with): (&ThreadTimes, &ThreadTimes),
    latencies: &Latencies,
    requests: usize,
) -> String {
    let Arguments { members, pools, rate, together, seconds } = arguments;
    let mut text = format!(
        "{members} members in {pools} pools, {rate} changes a second, {together} in a transaction, {seconds} s: \
         {} changes, {requests} requests, none failed\n",
        latencies.count()
    );
    let _ = writeln!(text, "in % of a core   before    meanwhile    difference");
    // Threads may have begun with the changes.
    let before: BTreeMap<String, f64> = without.rows().into_iter().collect();
    for (name, meanwhile) in with.rows() {
        let before = before.get(&name).copied().unwrap_or(0.0);
        let difference = meanwhile - before;
        let _ = writeln!(text, "{name:16} {before:>6.2} {meanwhile:>12.2} {difference:>13.2}");
    }
    let _ = write!(text, "in force after {latencies}");
    text
}
