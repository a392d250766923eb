//! The cost of a transaction over a direct connection of client and server. Subtracting it from the cost of all cores
//! leaves the product's cost, on whichever core the kernel does the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bed::Bed;
use super::energy;
use super::load_seam::Loader;
use super::meter::Meter;
use super::origin::Origin;
use super::rotation::{Failure, Sample, Stop};
use super::workload::Workload;

/// Both sides of the direct connection.
pub struct DirectPair<'a> {
    /// The clients.
    pub loader: &'a mut dyn Loader,
    /// The servers.
    pub origin: &'a mut Origin,
    /// The bed.
    pub bed: &'a Bed,
    /// The meter of their energy.
    pub energy: &'a energy::Meter,
    /// SIGINT or SIGTERM came.
    pub interrupted: &'a Arc<AtomicBool>,
}

/// Busy time of all cores per transaction.
#[derive(Debug, Clone, Copy)]
pub struct Direct {
    /// Measured time.
    pub s_per_request: f64,
    /// Share of a group of cores that the hypervisor stole in that time.
    pub stolen_share: f64,
}

impl Direct {
    /// Measures the direct connection with that load.
    pub fn measure(
        ends: DirectPair<'_>,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Self, Failure> {
        let DirectPair { loader, origin, bed, energy, interrupted } = ends;
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
            return Err(Failure::Unable(
                "the servers do not answer requests that are sent to them directly".into(),
            ));
        }
        let busy_s = cost.busy_s + cost.load_busy_s.unwrap_or_default();
        Ok(Self { s_per_request: busy_s / requests, stolen_share: around.stolen_share })
    }

    /// Adds the direct cost to the product's costs.
    pub fn stand_beside(self, sample: &mut Sample) {
        sample.cost.direct_s_per_request = Some(self.s_per_request);
        sample.around.stolen_share = sample.around.stolen_share.max(self.stolen_share);
    }
}
