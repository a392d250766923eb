//! The scenes and requests of tests of features: switching by path, rewriting, persistence.

use crate::catalogue::{OBSERVED, PLAIN_WEIR, is_yardstick};
use crate::record::TestRecord;
use crate::run::lineup::Scene;
use crate::run::products::{Feature, WEIR};
use crate::run::rotation::{Failure, Setting, Stop};
use crate::run::session::Live;
use crate::run::workload::{PLAIN_PATHS, Path, Workload};

/// Half of the requests go to the second pool.
const URI_PATHS: &[Path] =
    &[Path { before: "/", after: "", weight: 1 }, Path { before: "/", after: ".png", weight: 1 }];
/// Half of the requests are rewritten. A quarter of the requests go to the second pool.
const ADVANCED_PATHS: &[Path] = &[
    Path { before: "/catalogue/", after: "", weight: 2 },
    Path { before: "/", after: "", weight: 1 },
    Path { before: "/", after: ".png", weight: 1 },
];
/// Requests that ask the members to respond late, see [`queue`](super::queue).
const QUEUE_PATHS: &[Path] = &[Path { before: "/", after: "?delay_ms=10", weight: 1 }];
/// Number of clients whose cookies are learned before a measurement. Requests then use these cookies in turn.
const CLIENTS: usize = 8;

/// The features that a test needs beyond balancing.
pub(super) fn of_test(test: &str) -> Feature {
    match test {
        "l7-uri" => Feature::Uri,
        "advanced-l7" => Feature::Advanced,
        "cookie-persistence" => Feature::Cookie,
        OBSERVED => Feature::Observed { records: false },
        _ => Feature::Plain,
    }
}

/// Whether the test needs a feature. Then weir without the feature is its yardstick.
pub fn asks_for_feature(test: &str) -> bool {
    of_test(test) != Feature::Plain
}

/// Adds a feature to the scene. If the scene has a yardstick, it becomes weir without the feature.
pub(super) fn with(feature: Feature, scene: Scene<'_>) -> Scene<'_> {
    let has_feature = feature != Feature::Plain;
    let yardstick = scene.yardstick.map(|name| if has_feature { PLAIN_WEIR } else { name });
    Scene { feature, yardstick, ..scene }
}

/// The workload with the paths that use this feature.
pub(super) fn asking_for(feature: Feature, workload: Workload) -> Workload {
    let paths = match feature {
        Feature::Plain
        | Feature::Cookie
        | Feature::Observed { .. }
        | Feature::Rules(_)
        | Feature::Waf(_) => PLAIN_PATHS,
        Feature::Queue => QUEUE_PATHS,
        Feature::Uri => URI_PATHS,
        Feature::Advanced => ADVANCED_PATHS,
    };
    Workload { paths, ..workload }
}

/// Gives each product's workload the cookies that the product set. A product that sets none is left out.
pub(super) fn bring_cookies(
    live: &mut Live<'_, '_>,
    feature: Feature,
    setting: &mut Setting,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    if feature != Feature::Cookie {
        return Ok(());
    }
    for (product, workload) in &mut setting.workloads {
        if is_yardstick(product) {
            continue;
        }
        match cookies(live, product, workload) {
            Ok(cookies) => workload.cookies = cookies,
            Err(Failure::Stop(stop)) => return Err(stop),
            Err(Failure::Dead(reason) | Failure::Unable(reason)) => {
                live.leave_out(product, None, &reason, record);
            }
        }
    }
    // Weir without persistence gets the same requests, and ignores their cookies.
    let of_weir = setting.workloads.iter().find(|(product, _)| product == WEIR);
    let of_weir = of_weir.map(|(_, workload)| workload.cookies.clone()).unwrap_or_default();
    for (_, workload) in setting.workloads.iter_mut().filter(|(name, _)| is_yardstick(name)) {
        workload.cookies.clone_from(&of_weir);
    }
    let alive = live.products();
    setting.workloads.retain(|(product, _)| alive.contains(product));
    Ok(())
}

/// The cookies that a product sets for new clients.
pub(super) fn cookies(
    live: &mut Live<'_, '_>,
    product: &str,
    workload: &Workload,
) -> Result<Vec<String>, Failure> {
    live.learn_cookies(product, &workload.path(), CLIENTS)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn shares_of_the_requests() {
        let share = |paths: &[Path], is_meant: fn(&Path) -> bool| {
            let sum = |paths: &mut dyn Iterator<Item = &Path>| {
                paths.map(|path| path.weight).sum::<u32>() as f64
            };
            sum(&mut paths.iter().filter(|path| is_meant(path))) / sum(&mut paths.iter())
        };
        let asked = format!("?delay_ms={}", crate::run::tests::queue::DELAY_MS);
        assert!(QUEUE_PATHS.iter().all(|path| path.after == asked));
        assert!((share(URI_PATHS, |path| path.after == ".png") - 0.5).abs() < 1e-9);
        assert!((share(ADVANCED_PATHS, |path| path.before == "/catalogue/") - 0.5).abs() < 1e-9);
        assert!((share(ADVANCED_PATHS, |path| path.after == ".png") - 0.25).abs() < 1e-9);
    }
}
