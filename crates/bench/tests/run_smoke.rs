//! A whole run in small, with the products that are installed: nothing of it is measured, all of it must work.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weir_bench::catalogue::TESTS;
use weir_bench::record::{FILE_NAME, Run};
use weir_bench::run::{Event, Network, Progress, Selection, Settings, run};

/// Products that cannot be had from Debian; their absence is no failure anywhere.
const NOT_PACKAGED: [&str; 1] = ["envoy"];

/// Keeps what a run tells.
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

/// The program under test: built beside this test, or named.
fn weir() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WEIR_BENCH_WEIR") {
        return Some(path.into());
    }
    let test = std::env::current_exe().ok()?;
    let path = test.parent()?.parent()?.join("weir");
    path.is_file().then_some(path)
}

/// Says why the test ends early; where skipping is not allowed, that is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("WEIR_TEST_STRICT").is_none(), "would be skipped: {reason}");
    eprintln!("SKIPPED run_smoke: {reason}");
}

#[test]
fn a_smoke_of_every_test() {
    let Some(weir) = weir() else { return skip("the program weir is not built") };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return skip("a comparison needs two cores");
    }
    let folder = std::env::temp_dir().join(format!("weir-bench-smoke-{}", std::process::id()));
    let settings = Settings {
        command: "weir bench run smoke".into(),
        selection: Selection::from_words(&["smoke"]).expect("an extent"),
        peers: Settings::peers_of::<&str>(&[]).expect("all"),
        programs: BTreeMap::new(),
        weir,
        relay: true,
        folder: Some(folder.clone()),
        network: Network::Loopback,
        product_cores: None,
        load_cores: None,
    };
    let mut heard = Heard::default();
    let kept = run(&settings, &mut heard).expect("a run");
    let text = std::fs::read(kept.join(FILE_NAME)).expect("run.json");
    let run: Run = serde_json::from_slice(&text).expect("its shape");

    for absence in &run.absent {
        if !NOT_PACKAGED.contains(&absence.product.as_str()) {
            skip(&format!("{}: {}", absence.product, absence.reason));
        }
    }
    let names: Vec<&str> = TESTS.iter().map(|test| test.name).collect();
    assert_eq!(heard.tests, names);
    let kept_names: Vec<&str> = run.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(kept_names, names);
    assert!(heard.steps >= names.len());
    for test in &run.tests {
        for product in run.products.iter().filter(|product| product.name != "relay") {
            let of_product = test.points.iter().filter(|point| point.product == product.name);
            let requests: u64 = of_product.clone().map(|point| point.load.requests).sum();
            let errors: u64 = of_product.map(|point| point.load.errors).sum();
            let (name, notes) = (&product.name, &heard.notes);
            assert!(requests > 0, "{}: nothing of {name}; {notes:?}", test.name);
            assert_eq!(errors, 0, "{}: {name}", test.name);
        }
    }
    assert!(kept.join("configurations/ramp/weir/weir.yaml").is_file());
    assert!(!kept.join("working").exists());
    std::fs::remove_dir_all(&folder).expect("removing it");
}
