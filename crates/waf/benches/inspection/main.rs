//! The cost of CRS 4 at paranoia level 1 per request: the median CPU time of the thread. Run it by `cargo bench -p
//! weir-waf`; among the tests, it only runs a few cases. Words after `--` select cases by parts of their names. CRS is in
//! `WEIR_CRS`; by default, in `../shared/crs4`.

#[path = "../../tests/support/data.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod data;

mod cases;
mod hostile;

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use cases::Case;
use rustix::time::{ClockId, clock_gettime};
use weir_waf::body::Limits;
use weir_waf::inspection::{BodyLength, CommonTexts, Inspection, Mode, Options, Request, Response};
use weir_waf::plan::{RuleSet, Settings, View};

const HERE: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
const KILOBYTES: usize = 1_000;
/// Number of hostile inputs per class that are also measured with other sizes.
const WORST_SHOWN: usize = 5;

/// Number of requests before the measurement, from which common texts are cached.
const LEARNING_ROUNDS: usize = 2_000;

/// Whether the cache of common texts is disabled (`COLD=1`).
fn begins_cold() -> bool {
    static IS_COLD: LazyLock<bool> = LazyLock::new(|| std::env::var_os("COLD").is_some());
    *IS_COLD
}

/// Number of KiB of other data that are read before each measured request (`OTHER_KIB=1024`), because a proxy does other work
/// between two inspections and finds part of the plan evicted from the caches.
fn other_data() -> &'static [u64] {
    static DATA: LazyLock<Vec<u64>> = LazyLock::new(|| {
        let kib = std::env::var("OTHER_KIB").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
        vec![1; kib * 1_024 / size_of::<u64>()]
    });
    &DATA
}

/// Runs the same requests in another thread during the measurement (`BESIDE=1`), because the workers of a proxy share the
/// plan, and a value that several of them write moves from core to core.
fn beside<T>(view: &CommonTexts, case: &Case, measure: impl FnOnce() -> T) -> T {
    if std::env::var_os("BESIDE").is_none() {
        return measure();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(black_box(run(view, case)));
            }
        });
        let result = measure();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// CPU time in microseconds. With `WITHOUT_CLOCK=1` it is 0, because valgrind, which counts instructions, cannot read the
/// clock.
fn cpu_us() -> f64 {
    static HAS_CLOCK: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("WITHOUT_CLOCK").is_none());
    if !*HAS_CLOCK {
        return 0.0;
    }
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The phases: start and request head, parsing of the body, request body, response, logging.
const PHASES: [&str; 5] = ["headers", "taking apart", "body", "response", "logging"];

fn run(common: &CommonTexts, case: &Case) -> (Inspection, [f64; 5]) {
    let headers: Vec<(&[u8], &[u8])> =
        case.headers.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
    let request = Request {
        client: HERE,
        server: HERE,
        method: case.method.as_bytes(),
        received_target: &case.target,
        target: &case.target,
        protocol: b"HTTP/1.1",
        headers: &headers,
        body: BodyLength::Known(case.body.len() as u64),
        changed_cookies: &[],
        unique_id: b"a-request",
    };
    // There are no limits, so that the whole cost of hostile inputs is measured.
    let limits = Limits { value_bytes_max: u32::MAX, name_bytes_max: u32::MAX, ..Limits::DEFAULT };
    let options = Options { work_bytes_max: u64::MAX, limits, ..Options::new(Mode::Detect) };
    let mut times = [cpu_us(); 6];
    let mut inspection = match begins_cold() {
        true => Inspection::begin(Arc::clone(common.view()), &options, &request),
        false => common.begin(&options, &request),
    };
    black_box(inspection.request_headers());
    times[1] = cpu_us();
    for piece in case.body.chunks(16 << 10) {
        inspection.body(piece);
    }
    inspection.end_body();
    times[2] = cpu_us();
    black_box(inspection.request_body());
    times[3] = cpu_us();
    let answered: [(&[u8], &[u8]); 3] = [
        (b"Content-Type", b"text/html; charset=utf-8"),
        (b"Content-Length", b"12345"),
        (b"Server", b"nginx"),
    ];
    inspection.response(&Response { status: 200, protocol: b"HTTP/1.1", headers: &answered });
    black_box(inspection.response_headers());
    black_box(inspection.response_body());
    times[4] = cpu_us();
    inspection.logging();
    times[5] = cpu_us();
    let phases = std::array::from_fn(|phase| times[phase + 1] - times[phase]);
    (inspection, phases)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The CPU time of a whole request, including the drop of the inspection.
fn time_of(view: &CommonTexts, case: &Case, rounds: usize) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            black_box(other_data().iter().sum::<u64>());
            let start = cpu_us();
            drop(black_box(run(view, case)));
            cpu_us() - start
        })
        .collect();
    median(&mut times)
}

fn show(view: &CommonTexts, case: &Case, rounds: usize) {
    // Texts that many requests contain are cached during previous requests.
    let learning = if rounds > 1 { LEARNING_ROUNDS } else { 0 };
    (0..learning).for_each(|_| drop(run(view, case)));
    let total = beside(view, case, || time_of(view, case, rounds));
    let mut phases: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        let (_, times) = run(view, case);
        phases.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
    }
    let (inspection, _) = run(view, case);
    let counts = inspection.counts();
    let found: Vec<u64> = inspection.matches().iter().map(|it| it.id).collect();
    println!(
        "{:28} {total:9.1} us  {} work bytes, {} texts, {} transformed, {} looked at, {} compared, {} of them patterns, rules {found:?}",
        case.name,
        inspection.work_bytes(),
        counts.texts,
        counts.transformed,
        counts.looked_at,
        counts.compared,
        counts.patterns,
    );
    let phases =
        PHASES.iter().zip(&mut phases).map(|(name, times)| format!("{name} {:.1}", median(times)));
    println!("{:28} {}", "", phases.collect::<Vec<_>>().join(", "));
}

fn hostile(view: &CommonTexts, pieces: &[Vec<u8>], count: usize, sizes: &[usize]) {
    let mut worst: Vec<(f64, usize)> = (0..count)
        .map(|number| {
            let case = hostile::case(number, pieces, 8 * KILOBYTES);
            (time_of(view, &case, 1), number)
        })
        .collect();
    worst.sort_by(|one, other| other.0.total_cmp(&one.0));
    // The first measurement is imprecise, and caches are cold. So the slowest inputs are measured again.
    let mut again: Vec<(f64, usize)> = worst
        .iter()
        .take(count.min(40))
        .map(|(_, number)| {
            let case = hostile::case(*number, pieces, 8 * KILOBYTES);
            (time_of(view, &case, 5), *number)
        })
        .collect();
    again.sort_by(|one, other| other.0.total_cmp(&one.0));
    let middle = worst.get(count / 2).map_or(0.0, |it| it.0);
    println!(
        "hostile inputs: {count}, median {middle:.0} us per 8 kB; the worst, per 8 kB, by size:"
    );
    for (_, number) in again.iter().take(WORST_SHOWN) {
        let mut line = hostile::case(*number, pieces, 60).name;
        for size in sizes {
            let case = hostile::case(*number, pieces, *size);
            let rounds = if *size > 100 * KILOBYTES { 1 } else { 5 };
            let time = time_of(view, &case, rounds) * 8.0 * KILOBYTES as f64 / *size as f64;
            line += &format!("  {} kB: {time:.0} us", size / KILOBYTES);
        }
        println!("  {line}");
    }
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    pages * 4_096
}

fn views(rules: &Arc<RuleSet>, count: usize) {
    let before = resident_bytes();
    let start = cpu_us();
    let views: Vec<View> = (0..count).map(|_| view(rules)).collect();
    let time = (cpu_us() - start) / count as f64;
    let grown = resident_bytes().saturating_sub(before) / 1_024;
    println!("{count} more views: {grown} KiB, {time:.0} us each");
    drop(black_box(views));
}

fn view(rules: &Arc<RuleSet>) -> View {
    View::new(Arc::clone(rules), &Settings::default())
        .expect("CRS asks for nothing that is not here")
}

fn main() {
    // `cargo bench` passes this argument. In `cargo test`, one round shows that the benchmark works.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|it| name.contains(&**it));
    let start = cpu_us();
    let Some(rules) = data::rules() else { return };
    println!(
        "loaded in {:.0} ms, {} KiB resident",
        (cpu_us() - start) / 1e3,
        resident_bytes() / 1_024
    );
    let view = CommonTexts::new(Arc::new(view(&rules)));
    println!("{} of {} rules stay", view.view().rules_count(), rules.rules.len());
    let rounds = if is_bench {
        std::env::var("ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(401)
    } else {
        1
    };
    for case in cases::all().iter().filter(|case| is_chosen(&case.name)) {
        show(&view, case, rounds);
    }
    if is_chosen("hostile") {
        let pieces = hostile::pieces();
        let sizes = [1, 10, 100, 1_000].map(|size| size * KILOBYTES);
        let (count, sizes) = if is_bench { (1_000, &sizes[..]) } else { (10, &sizes[..1]) };
        hostile(&view, &pieces, count, sizes);
    }
    if is_chosen("views") {
        views(&rules, if is_bench { 1_000 } else { 2 });
    }
}
