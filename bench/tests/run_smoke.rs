//! Small complete runs with the installed products: nothing is measured, but everything must work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use weir_bench::catalogue::{self, Figure, OBSERVED, PENDING_PREFIX, PLAIN_WEIR, is_yardstick};
use weir_bench::record::{Omission, Point, Product, Run, TestRecord, TwoLengths};
use weir_bench::run::{Event, Network, Progress, Selection, Settings, run};
use weir_testing::{skip, skip_though_strict};
use weir_tests::proxy::weir_binary;

/// Two beds at the same time would use each other's ports.
static ONE_BED: Mutex<()> = Mutex::new(());

/// Products without a Debian package; their absence is never a failure.
const NOT_PACKAGED: [&str; 2] = ["envoy", "coraza"];

/// Records the progress messages of a run.
#[derive(Default)]
struct Heard {
    tests: Vec<&'static str>,
    steps: usize,
    notes: Vec<String>,
}

impl Progress for Heard {
    fn report(&mut self, event: &Event<'_>) {
        match event {
            Event::TestBegan { test, .. } => self.tests.push(test.name),
            Event::Step { .. } => self.steps += 1,
            Event::Note { text, .. } => self.notes.push((*text).to_owned()),
            Event::Began { .. } | Event::TestEnded { .. } => {}
        }
    }
}

/// Settings of a run with these arguments into that folder; `None`: such a run is not possible here.
fn settings(words: &[&str], peers: &[&str], folder: &Path) -> Option<Settings> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        skip("a comparison needs two cores");
        return None;
    }
    Some(Settings {
        rounds: None,
        command: format!("weir bench run {}", words.join(" ")),
        selection: Selection::from_words(words).expect("an extent and tests"),
        peers: Settings::peers_of(peers).expect("known peers"),
        programs: BTreeMap::new(),
        weir: weir_binary().clone(),
        laboratory: env!("CARGO_BIN_EXE_weir-bench").into(),
        relay: true,
        folder: Some(folder.to_owned()),
        network: Network::Loopback,
        product_cores: None,
        load_cores: None,
        idle: None,
    })
}

/// Makes the run, and checks that every test has good transactions of every product except
/// yardsticks.
fn run_all(settings: &Settings, heard: &mut Heard) -> (PathBuf, Run) {
    let _alone = ONE_BED.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = run(settings, heard).expect("a run");
    let run = weir_bench::report::read(&kept).expect("its record");
    for absence in &run.absent {
        if !NOT_PACKAGED.contains(&absence.product.as_str()) {
            skip(&format!("{}: {}", absence.product, absence.reason));
        }
    }
    let names: Vec<&str> = settings.selection.tests.iter().map(|test| test.name).collect();
    assert_eq!(heard.tests, names);
    let kept_names: Vec<&str> = run.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(kept_names, names);
    assert!(!kept.join("working").exists());
    (kept, run)
}

#[test]
fn a_smoke_of_every_test() {
    let folder = std::env::temp_dir().join(format!("weir-bench-smoke-{}", std::process::id()));
    let Some(settings) = settings(&["smoke"], &[], &folder) else { return };
    let mut heard = Heard::default();
    let (kept, run) = run_all(&settings, &mut heard);
    assert!(heard.steps >= run.tests.len());
    for test in &run.tests {
        let is_asked = |product: &&Product| {
            !is_yardstick(&product.name) && (test.name != OBSERVED || product.name == "weir")
        };
        for product in run.products.iter().filter(is_asked) {
            let of_product = test.points.iter().filter(|point| point.product == product.name);
            let requests: u64 = of_product.clone().map(|point| point.load.requests).sum();
            let errors: u64 = of_product.map(|point| point.load.errors).sum();
            let (name, notes) = (&product.name, &heard.notes);
            // On a busy machine, no rate leaves the core idle for a third of the time. Near the limit, the slower products
            // take no part. Not all products have a queue.
            let is_excused = is_still_to_come(test, name)
                || ["cpu-65", "p99-near-limit", "queue"].contains(&test.name.as_str())
                    && test.omissions.iter().any(|omission| &omission.product == name);
            assert!(requests > 0 || is_excused, "{}: nothing of {name}; {notes:?}", test.name);
            assert!(errors == 0, "{}: {errors} errors of {name}", test.name);
        }
    }
    what_is_special_was_asked_for(&run);
    assert!(kept.join("configurations/ramp/weir/weir.yaml").is_file());
    std::fs::remove_dir_all(&folder).expect("removing it");
}

/// Whether a product is omitted from a test because weir lacks a feature, which is reported, or because the product relays
/// no datagrams.
fn is_still_to_come(test: &TestRecord, product: &str) -> bool {
    let own = || test.omissions.iter().filter(|omission| omission.product == product);
    if let Some(pending) = own().find(|omission| omission.reason.starts_with(PENDING_PREFIX)) {
        eprintln!("PENDING {} of {product}: {}", test.name, pending.reason);
        return true;
    }
    product == "haproxy" && test.name == "udp-queries" && own().count() > 0
}

/// The relay of datagrams answers the queries of both cases, and nobody is judged against it.
#[test]
fn a_smoke_of_queries() {
    let folder = std::env::temp_dir().join(format!("weir-bench-queries-{}", std::process::id()));
    let Some(settings) = settings(&["smoke", "udp-queries"], &["nginx"], &folder) else { return };
    let (kept, run) = run_all(&settings, &mut Heard::default());
    let test = &run.tests[0];
    for (product, at) in ["weir", "relay"].into_iter().flat_map(|it| [(it, 0.0), (it, 1.0)]) {
        let is_it = |point: &&Point| point.product == product && point.at == at;
        let point = test.points.iter().find(is_it);
        let point = point.unwrap_or_else(|| panic!("{product} at {at}: {:?}", test.omissions));
        assert!(point.load.requests > 0 && point.load.errors == 0, "{point:?}");
        assert!(point.cost.process_s > 0.0, "{point:?}");
    }
    let written = weir_bench::report::write(&kept).expect("a report");
    let page = std::fs::read_to_string(written.markdown).expect("the report");
    assert!(page.contains("relay (only bytes, no HTTP)"), "the report shows it:\n{page}");
    std::fs::remove_dir_all(&folder).expect("removing it");
}

/// Observers begin and end with each measurement, and the data path's part of the CPU is known.
#[test]
fn a_smoke_of_observation() {
    let folder = std::env::temp_dir().join(format!("weir-bench-observed-{}", std::process::id()));
    let Some(settings) = settings(&["smoke", OBSERVED], &["nginx"], &folder) else { return };
    let (kept, run) = run_all(&settings, &mut Heard::default());
    let test = &run.tests[0];
    assert!(test.omissions.is_empty(), "{:?}", test.omissions);
    for (product, at) in [("weir", 0.0), (PLAIN_WEIR, 0.0), ("weir", 1.0), (PLAIN_WEIR, 1.0)] {
        let is_it = |point: &&Point| point.product == product && point.at == at;
        let point = test.points.iter().find(is_it);
        let point = point.unwrap_or_else(|| panic!("no point of {product} at {at}"));
        let workers_s = point.cost.workers_s.expect("workers");
        assert!(workers_s > 0.0 && workers_s <= point.cost.process_s, "{:?}", point.cost);
        assert_eq!(point.load.errors, 0, "{product}");
    }
    assert!(test.points.iter().all(|point| point.product != "nginx"));
    let used = |case: u32, product: &str| {
        let path = kept.join(format!("configurations/observed-{case}/{product}/weir.yaml"));
        std::fs::read_to_string(path).expect("the configuration as used")
    };
    assert!(used(0, "weir").contains("format: json") && used(0, "weir").contains("admin:"));
    assert!(!used(0, "weir").contains("recent_requests"));
    assert!(used(1, "weir").contains("recent_requests: {}"));
    assert!(!used(1, PLAIN_WEIR).contains("admin:"));
    std::fs::remove_dir_all(&folder).expect("removing it");
}

/// The test of packets needs network namespaces.
#[test]
fn a_smoke_of_packets() {
    let folder = std::env::temp_dir().join(format!("weir-bench-packets-{}", std::process::id()));
    let Some(settings) = settings(&["smoke", "l4-packets"], &["nginx"], &folder) else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("namespaces need root");
    }
    let settings = Settings { network: Network::Namespaces, relay: false, ..settings };
    let (kept, run) = run_all(&settings, &mut Heard::default());
    let test = &run.tests[0];
    let all = ["weir", "nftables", "ip-forward"];
    for (product, at) in all.into_iter().flat_map(|it| [(it, 0.0), (it, 1.0), (it, 2.0)]) {
        let is_it = |point: &&Point| point.product == product && point.at == at;
        let Some(point) = test.points.iter().find(is_it) else {
            // Without nft, ethtool or XDP the whole test is omitted.
            skip(&format!("{product} at {at}: {:?}", test.omissions));
            continue;
        };
        assert!(point.load.requests > 0 && point.load.errors == 0, "{point:?}");
        assert!(point.cost.process_s > 0.0, "the kernel's thread worked: {point:?}");
    }
    let written = weir_bench::report::write(&kept).expect("a report");
    let page = std::fs::read_to_string(written.markdown).expect("the report");
    assert!(page.contains("Katran"), "published figures stand beside:\n{page}");
    std::fs::remove_dir_all(&folder).expect("removing it");
}

/// Weir's packet path forwards connections, next to a product that relays them.
#[test]
fn a_smoke_of_connections_by_packets() {
    let folder = std::env::temp_dir().join(format!("weir-bench-fast-{}", std::process::id()));
    let Some(settings) = settings(&["smoke", "fast-l4"], &["nginx"], &folder) else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("namespaces need root");
    }
    let settings = Settings { network: Network::Namespaces, relay: false, ..settings };
    let (kept, run) = run_all(&settings, &mut Heard::default());
    let test = &run.tests[0];
    for (product, at) in
        ["weir", "nginx"].into_iter().flat_map(|it| [0.0, 1.0, 2.0].map(|at| (it, at)))
    {
        let is_it = |point: &&Point| point.product == product && point.at == at;
        let point = test.points.iter().find(is_it);
        let requests = point.map_or(0, |point| point.load.requests);
        assert!(requests > 0, "{product} at {at}: {point:?}, {:?}", test.omissions);
    }
    // With the packet path, weir's own process has almost nothing to do.
    let own = |product: &str| -> f64 {
        let its = test.points.iter().filter(|point| point.product == product);
        its.map(|point| point.cost.process_s / point.load.requests as f64).sum()
    };
    assert!(own("weir") < own("nginx"), "{} beside {}", own("weir"), own("nginx"));
    std::fs::remove_dir_all(&kept).expect("removing it");
}

/// A program named twice has two rows, and the record identifies both programs exactly.
#[test]
fn a_smoke_of_two_rows() {
    let folder = std::env::temp_dir().join(format!("weir-bench-rows-{}", std::process::id()));
    let words = ["smoke", "l7-uri", "requests-per-cpu-second"];
    let Some(mut settings) = settings(&words, &["nginx", "haproxy"], &folder) else { return };
    let named = |name: &str| (name.to_owned(), vec![PathBuf::from(name); 2]);
    settings.programs = ["nginx", "haproxy"].map(named).into();
    let (kept, run) = run_all(&settings, &mut Heard::default());
    let names: Vec<&str> = run.products.iter().map(|product| product.name.as_str()).collect();
    let rows = ["weir", "nginx", "nginx-2", "haproxy", "haproxy-2", "relay", "weir-plain"];
    assert_eq!(names, rows);
    for test in &run.tests {
        for row in &rows[..5] {
            let is_its = |point: &&Point| point.product == *row && point.load.errors == 0;
            assert!(test.points.iter().any(|point| is_its(&point)), "{}: no {row}", test.name);
        }
    }
    let product =
        |name: &str| run.products.iter().find(|product| product.name == name).expect(name);
    for row in &rows[..5] {
        let Product { tls, sha256, .. } = product(row);
        assert!(
            tls.as_ref().is_some_and(|tls| tls.contains("SSL") || tls.contains("rustls")),
            "{row}"
        );
        assert_eq!(sha256.as_ref().map(String::len), Some(64), "{row}");
    }
    assert_eq!(product("nginx").sha256, product("nginx-2").sha256);
    assert_ne!(product("nginx").sha256, product("haproxy").sha256);
    assert!(kept.join("configurations/l7-uri/nginx-2/nginx.conf").is_file());
    let written = weir_bench::report::write(&kept).expect("a report");
    let page = std::fs::read_to_string(written.markdown).expect("the report");
    assert!(page.contains("(second)"), "two rows of one version are told apart:\n{page}");
    std::fs::remove_dir_all(&folder).expect("removing it");
}

#[test]
fn a_third_row_is_refused() {
    let folder = std::env::temp_dir().join(format!("weir-bench-third-{}", std::process::id()));
    let Some(mut settings) = settings(&["smoke", "l7-uri"], &["nginx"], &folder) else { return };
    let _alone = ONE_BED.lock().unwrap_or_else(PoisonError::into_inner);
    settings.programs = [("nginx".to_owned(), vec![PathBuf::from("nginx"); 3])].into();
    let error = run(&settings, &mut Heard::default()).expect_err("too many").to_string();
    assert_eq!(error, "--nginx was given 3 times: 2 rows of a product at most");
}

/// Asserts that handshakes were full or resumed as required, and that responses were compressed.
fn what_is_special_was_asked_for(run: &Run) {
    let points = |name: &str| {
        let test = run.tests.iter().find(|test| test.name == name).expect("a test");
        test.points.iter().filter(|point| point.product != catalogue::SIGNATURES)
    };
    for (name, is_resumed) in [("ssl-tps", false), ("ssl-tps-resumed", true), ("ssl-bulk", false)] {
        for point in points(name) {
            let made = point.load.handshakes.expect("TLS");
            let of_other_kind = if is_resumed { made.full } else { made.resumed };
            assert_eq!(of_other_kind, 0, "{name}: {}: {made:?}", point.product);
        }
    }
    for name in ["compression", "compression-connections"] {
        for point in points(name) {
            let bytes = Figure::ResponseBytes.of(point).expect("responses");
            // About a quarter of the size, or a third with the fastest encoder.
            let is_small = (128.0 * 1024.0 * 0.24..128.0 * 1024.0 * 0.4).contains(&bytes);
            assert!(is_small, "{name}: {}: {bytes} bytes", point.product);
        }
    }
    for point in points("l4-512k") {
        assert!(!point.load.timeline.is_empty(), "{}: no course over time", point.product);
        assert_eq!(point.load.bytes, point.load.requests * 512 * 1024, "{}", point.product);
    }
    let tps = run.tests.iter().find(|test| test.name == "ssl-tps").expect("a test");
    assert!(tps.points.iter().any(|point| point.product == catalogue::SIGNATURES));
}

/// The firewall tests have their own peers, and need rules that may not be installed.
#[test]
fn a_smoke_of_firewalls() {
    let folder = std::env::temp_dir().join(format!("weir-bench-waf-{}", std::process::id()));
    let is_waf = |name: &&str| name.starts_with("waf-");
    let tests = catalogue::TESTS.iter().map(|test| test.name).filter(is_waf);
    let words: Vec<&str> = ["smoke"].into_iter().chain(tests).collect();
    let Some(settings) = settings(&words, &[], &folder) else { return };
    let (kept, run) = run_all(&settings, &mut Heard::default());
    for test in &run.tests {
        for omission in &test.omissions {
            let Omission { product, reason, .. } = omission;
            skip_though_strict(&format!("{}: {product}: {reason}", test.name));
        }
        for product in &run.products {
            let is_its = |point: &&Point| point.product == product.name;
            let points: Vec<&Point> = test.points.iter().filter(is_its).collect();
            let requests: u64 = points.iter().map(|point| point.load.requests).sum();
            let place = format!("{}: {}", test.name, product.name);
            let is_excused = is_yardstick(&product.name)
                || test.omissions.iter().any(|omission| omission.product == product.name);
            assert!(requests > 0 || is_excused, "{place}: nothing");
            for point in points {
                assert_eq!(point.load.errors, 0, "{place}: {:?}", point.load.error_examples);
                let is_added = catalogue::test(&test.name)
                    .is_some_and(|test| test.judged == [Figure::FirewallCpuPerRequest]);
                assert!(!is_added || point.cost.unguarded_s_per_request.is_some(), "{place}");
                let is_memory = test.name == "waf-memory";
                assert!(!is_memory || Figure::RulesLoadTime.of(point) > Some(0.0), "{place}");
            }
        }
    }
    weir_bench::report::write(&kept).expect("a report");
    std::fs::remove_dir_all(&folder).expect("removing it");
}

/// The counting tests take longer, so they are separate; one peer is enough here.
#[test]
fn a_smoke_of_the_tests_that_count() {
    let folder = std::env::temp_dir().join(format!("weir-bench-counts-{}", std::process::id()));
    let words =
        ["smoke", "instructions", "system-calls", "idle-memory", "https-idle-memory", "growth"];
    let Some(settings) = settings(&words, &["nginx"], &folder) else { return };
    let (kept, run) = run_all(&settings, &mut Heard::default());
    for test in &run.tests {
        // Without valgrind or perf the whole test is omitted.
        for omission in &test.omissions {
            skip(&format!("{}: {}: {}", test.name, omission.product, omission.reason));
        }
        for point in &test.points {
            let place = format!("{}: {}", test.name, point.product);
            assert_eq!(point.load.errors, 0, "{place}");
            for figure in catalogue::test(&test.name).expect("known").figures {
                let value = figure.of(point).unwrap_or_else(|| panic!("{place}: no {figure:?}"));
                assert!(value.is_finite(), "{place}: {figure:?} is {value}");
            }
            // The figures are differences of a short and a long load. On a busy host the short one takes longer, and counts
            // more of what is done without requests; so only the whole count has a lower bound.
            let is_least = |counted: Option<TwoLengths>, least: u64| {
                counted.is_none_or(|it| it.counted[1] >= least * it.requests[1])
            };
            // Every response needs reads and writes on both sides.
            assert!(is_least(point.counts.system_calls, 4), "{place}: {:?}", point.counts);
            // The relay has very few instructions, but moves bytes.
            assert!(is_least(point.counts.instructions, 100), "{place}: {:?}", point.counts);
        }
        let is_whole = !test.points.is_empty() || !test.omissions.is_empty();
        assert!(is_whole, "{}: nothing at all", test.name);
    }
    assert!(kept.join("configurations/instructions/weir/weir.yaml").is_file());
    std::fs::remove_dir_all(&folder).expect("removing it");
}
