//! The kernel's accounting of cores and processes.
//!
//! Linux counts the idle time of a core exactly (the tick stops there) and everything else by sampling at
//! ticks, which misses work that begins and ends between two. So the busy time of a core is the elapsed time minus idle
//! and stolen time, not a sum of samples (decision 0008).

use std::collections::BTreeMap;
use std::fs;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::RunError;

/// Ticks since boot in which one core was not busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTicks {
    /// Idle time, including waits for a disk.
    pub idle: u64,
    /// Time taken by the hypervisor.
    pub stolen: u64,
}

/// Readings of the cores at one moment.
#[derive(Debug, Clone)]
pub struct Cores {
    ticks: BTreeMap<usize, CoreTicks>,
    at: Instant,
}

/// The time use of some cores between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    /// Time between the two readings.
    pub elapsed_s: f64,
    /// Time neither idle nor taken by the hypervisor, summed over the cores.
    pub busy_s: f64,
    /// Time taken by the hypervisor, summed over the cores.
    pub stolen_s: f64,
}

/// Parses `/proc/stat`: the cores by number. `None` if a line does not match proc(5).
pub fn parse_stat(text: &str) -> Option<BTreeMap<usize, CoreTicks>> {
    let mut cores = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        let Some(number) = name.strip_prefix("cpu").filter(|number| !number.is_empty()) else {
            continue;
        };
        // user nice system idle iowait irq softirq steal ...
        let fields: Vec<u64> =
            rest.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_, _, _, idle, iowait, _, _, steal, ..] = fields[..] else { return None };
        cores.insert(number.parse().ok()?, CoreTicks { idle: idle + iowait, stolen: steal });
    }
    Some(cores)
}

/// The scheduler's account of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Time on a core.
    pub ran: Duration,
    /// Time ready to run while another thread occupied the core.
    pub waited: Duration,
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        self.ran += other.ran;
        self.waited += other.waited;
    }
}

/// The scheduler's accounts of a process and its descendants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accounts {
    /// All threads.
    pub all: Account,
    /// The worker threads of weir. They are called `weir-0`, `weir-1` and so on. `None` if the process has no such
    /// thread.
    pub workers: Option<Account>,
}

/// Parses a thread's `schedstat`.
pub fn parse_schedstat(text: &str) -> Option<Account> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut time = || Some(Duration::from_nanos(fields.next()?.ok()?));
    Some(Account { ran: time()?, waited: time()? })
}

/// A line `Name:   123 kB` of `/proc/PID/status` or `smaps_rollup`, in bytes.
pub fn parse_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

impl Cores {
    /// Reads the cores now.
    pub fn now() -> Result<Self, RunError> {
        let path = "/proc/stat";
        let text = fs::read_to_string(path).map_err(RunError::io("read", path))?;
        let ticks = parse_stat(&text)
            .ok_or_else(|| RunError::Bed(format!("{path} is not as proc(5) describes it")))?;
        Ok(Self { ticks, at: Instant::now() })
    }

    /// The time use of `cores` since `earlier`.
    pub fn since(&self, earlier: &Self, cores: &[usize]) -> Result<CpuTime, RunError> {
        let elapsed = self.at - earlier.at;
        let mut spent = CpuTime { elapsed_s: elapsed.as_secs_f64(), ..CpuTime::default() };
        for core in cores {
            let (Some(before), Some(after)) = (earlier.ticks.get(core), self.ticks.get(core))
            else {
                return Err(RunError::Bed(format!("/proc/stat has no core {core}")));
            };
            let one = spent_by(*before, *after, elapsed, rustix::param::clock_ticks_per_second());
            spent.busy_s += one.busy_s;
            spent.stolen_s += one.stolen_s;
        }
        Ok(spent)
    }
}

fn spent_by(before: CoreTicks, after: CoreTicks, elapsed: Duration, ticks_per_s: u64) -> CpuTime {
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / ticks_per_s as f64;
    let (idle_s, stolen_s) =
        (seconds(before.idle, after.idle), seconds(before.stolen, after.stolen));
    let elapsed_s = elapsed.as_secs_f64();
    CpuTime { elapsed_s, busy_s: (elapsed_s - idle_s - stolen_s).max(0.0), stolen_s }
}

impl CpuTime {
    /// Average busy share of `cores`.
    pub fn busy_share(&self, cores: usize) -> f64 {
        if self.elapsed_s > 0.0 { self.busy_s / self.elapsed_s / cores.max(1) as f64 } else { 0.0 }
    }
}

/// Watches cores for a while.
pub fn watch(cores: &[usize], length: Duration) -> Result<CpuTime, RunError> {
    let before = Cores::now()?;
    std::thread::sleep(length);
    Cores::now()?.since(&before, cores)
}

/// A process and all its descendants. Processes that ended during the search are left out.
pub fn family(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&process) = family.get(next) {
        next += 1;
        for thread in threads(process) {
            let children = fs::read_to_string(thread.join("children")).unwrap_or_default();
            family
                .extend(children.split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        }
    }
    family
}

fn threads(process: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{process}/task"));
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The scheduler's accounts of a process and its descendants. Each thread is read once, so the workers' time is a part of
/// the whole.
pub fn accounts(root: u32) -> Accounts {
    let mut accounts = Accounts::default();
    let read = |thread: &Path, file: &str| fs::read_to_string(thread.join(file)).ok();
    for process in family(root) {
        for thread in threads(process) {
            // The kernel drops the account of a thread that ended meanwhile.
            let account = read(&thread, "schedstat").and_then(|text| parse_schedstat(&text));
            let Some(account) = account else { continue };
            accounts.all += account;
            let name = || read(&thread, "comm").unwrap_or_default();
            if process == root && is_worker(name().trim_end()) {
                *accounts.workers.get_or_insert_default() += account;
            }
        }
    }
    accounts
}

fn is_worker(name: &str) -> bool {
    name.strip_prefix("weir-").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Resident memory of a process and its descendants; shared memory is counted once, if the kernel shows it.
pub fn resident_bytes(root: u32) -> u64 {
    family(root).into_iter().filter_map(resident_of_one).sum()
}

fn resident_of_one(process: u32) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
    read("smaps_rollup")
        .and_then(|text| parse_kib(&text, "Pss"))
        .or_else(|| parse_kib(&read("status")?, "VmRSS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 0 30 1000 20 0 4 2 0 0\n\
                        cpu0 10 0 10 400 8 0 1 2 0 0\n\
                        cpu11 20 0 20 600 12 0 3 0 0 0\n\
                        intr 1 2 3\nctxt 99\n";

    #[test]
    fn stat() {
        let cores = parse_stat(STAT).expect("cores");
        let expected =
            [(0, CoreTicks { idle: 408, stolen: 2 }), (11, CoreTicks { idle: 612, stolen: 0 })];
        assert_eq!(cores, BTreeMap::from(expected));
        let check = |text: &str| assert_eq!(parse_stat(text), None, "{text}");
        check("cpu0 1 2 3\n");
        check("cpu0 1 2 3 4 5 6 7 x\n");
        check("cpux 1 2 3 4 5 6 7 8\n");
    }

    #[test]
    fn schedstat() {
        let check = |text, expected| assert_eq!(parse_schedstat(text), expected, "{text:?}");
        let [ran, waited] = [1_500, 250].map(Duration::from_millis);
        check("1500000000 250000000 7\n", Some(Account { ran, waited }));
        check("0 0 0\n", Some(Account::default()));
        check("7", None);
        check("", None);
        check("x 1 2", None);
    }

    #[test]
    fn kib() {
        let text =
            "Name:\tx\nPss_Dirty:     7 kB\nPss:        12 kB\nVmRSS:\t   3 kB\nThreads:\t1\n";
        let check = |name, expected| assert_eq!(parse_kib(text, name), expected, "{name}");
        check("Pss", Some(12 * 1024));
        check("VmRSS", Some(3 * 1024));
        check("Threads", None);
        check("Absent", None);
    }

    #[test]
    fn busy_time_is_what_idleness_and_the_hypervisor_leave() {
        let check = |idle: u64, stolen: u64, elapsed_ms, busy_s: f64| {
            let (before, after) = (
                CoreTicks { idle: 100, stolen: 10 },
                CoreTicks { idle: 100 + idle, stolen: 10 + stolen },
            );
            let spent = spent_by(before, after, Duration::from_millis(elapsed_ms), 100);
            assert!((spent.busy_s - busy_s).abs() < 1e-9, "{spent:?}");
        };
        check(50, 0, 1_000, 0.5);
        check(50, 20, 1_000, 0.3);
        check(0, 0, 1_000, 1.0);
        // A tick may count on either side.
        check(101, 0, 1_000, 0.0);
    }

    #[test]
    fn workers_are_known_by_their_names() {
        for (name, expected) in [
            ("weir-0", true),
            ("weir-17", true),
            ("weir", false),
            ("weir-", false),
            ("weir-worker-eve", false),
            ("tokio-rt-worker", false),
        ] {
            assert_eq!(is_worker(name), expected, "{name}");
        }
        let own = std::process::id();
        assert_eq!(accounts(own).workers, None);
        let name = || std::thread::Builder::new().name("weir-3".into());
        let looked = name().spawn(move || accounts(own)).expect("a thread").join();
        let Accounts { all, workers } = looked.expect("no panic");
        assert!(workers.is_some_and(|workers| workers.ran < all.ran), "{workers:?} of {all:?}");
    }

    #[test]
    fn this_process_has_an_account() {
        let own = std::process::id();
        assert!(!accounts(own).all.ran.is_zero());
        assert!(resident_bytes(own) > 100_000);
        assert_eq!(family(own)[0], own);
        let cores = Cores::now().expect("/proc/stat");
        let spent = Cores::now().expect("/proc/stat").since(&cores, &[0]).expect("core 0");
        assert!(spent.busy_s <= spent.elapsed_s);
        assert!(cores.since(&cores, &[1_000_000]).is_err());
    }
}
