//! The cost of observation: weir with an access log, scraped and with its dashboard open, beside weir without a log that
//! nobody observes.

use super::{CONNECTIONS, SMALL_BYTES, features, plain_scene, workload};
use crate::catalogue::{OBSERVED_CASES, PLAIN_WEIR};
use crate::record::TestRecord;
use crate::run::extent::Budget;
use crate::run::observers;
use crate::run::products::{Feature, InstalledProduct, WEIR};
use crate::run::rotation::{Judge, Stop};
use crate::run::session::{Session, slowest_and_best};
use crate::run::workload::Workload;

/// Share of the capacity with observation: a usual load in production.
const RATE_SHARE: f64 = 0.65;

/// In the order of [`OBSERVED_CASES`].
const RECORDS: [bool; 2] = [false, true];
const _: () = assert!(RECORDS.len() == OBSERVED_CASES.len());

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let _files = Files;
    let is_wanted = |found: &&InstalledProduct| [WEIR, PLAIN_WEIR].contains(&found.name());
    let products: Vec<InstalledProduct> =
        session.products.iter().filter(is_wanted).cloned().collect();
    for &at in budget.settings {
        let feature = Feature::Observed { records: RECORDS[at as usize] };
        let name = format!("{test}-{at}");
        let mut scene = features::with(feature, plain_scene(test, budget, CONNECTIONS));
        scene.name = &name;
        let mut live = session.open_some(test, scene, &products, Some(at), record)?;
        let base = workload(budget, SMALL_BYTES, CONNECTIONS);
        let of = format!("_case_{at}");
        let capacities = live.capacities(&base, &of, Some(at), record)?;
        let Some((capacity, _)) = slowest_and_best(&capacities) else { continue };
        let rate = capacity * RATE_SHARE;
        record.facts.insert(format!("offered{of}_requests_per_second"), rate);
        let workload = Workload { rate: Some(rate), ..base };
        let label = OBSERVED_CASES[at as usize].to_owned();
        let mut setting = live.setting(at, label, Judge::OfferedRate, &workload);
        for (product, workload) in &mut setting.workloads {
            workload.is_observed = product == WEIR;
        }
        live.rotate(setting, budget, record)?;
    }
    Ok(())
}

/// The files of the observed weir, outside the folder of the run. Removed at the end of the test.
struct Files;

impl Drop for Files {
    fn drop(&mut self) {
        for path in [observers::access_log(), observers::socket()] {
            // Without a measurement there is no log, and weir may have removed its socket.
            let _ = std::fs::remove_file(path);
        }
    }
}
