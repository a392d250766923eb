//! What a transaction costs when clients and servers are joined directly: what is left of the cost of all cores is what
//! stands between them, wherever the kernel does its work.

use std::sync::atomic::Ordering;

use super::meter::Meter;
use super::rotation::{Failure, Sample, Stop};
use super::session::Session;
use super::workload::Workload;

/// Busy time of all cores per transaction.
#[derive(Debug, Clone, Copy)]
pub struct Direct {
    /// The time.
    pub s_per_request: f64,
    /// What the hypervisor took meanwhile, as a share of a group of cores.
    pub stolen_share: f64,
}

impl Direct {
    /// Measures it with that load.
    pub fn measure(
        session: &mut Session<'_>,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Self, Failure> {
        let Session { bed, energy, loader, origin, interrupted, .. } = session;
        let mut meter = Meter::new(&bed.cores, (origin.id(), origin.id()), energy);
        let plan = workload.plan(&origin.members, bed, interrupted);
        let load = loader.load(&plan, &mut meter);
        if interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted.into());
        }
        origin.check()?;
        let load = load.map_err(Failure::Unable)?;
        let (cost, around) = meter.finish(resting_share)?;
        let window = load.completed();
        let requests = window.requests as f64 * cost.elapsed_s / window.elapsed_s;
        if requests <= 0.0 {
            return Err(Failure::Unable("the servers answer nobody who asks them directly".into()));
        }
        let busy_s = cost.busy_s + cost.load_busy_s.unwrap_or_default();
        Ok(Self { s_per_request: busy_s / requests, stolen_share: around.stolen_share })
    }

    /// Beside what the product cost.
    pub fn stand_beside(self, sample: &mut Sample) {
        sample.cost.direct_s_per_request = Some(self.s_per_request);
        sample.around.stolen_share = sample.around.stolen_share.max(self.stolen_share);
    }
}
