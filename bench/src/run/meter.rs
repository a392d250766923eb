//! Reads the costs of a measurement between its beginning and its end. The end is before the last responses, as in the
//! window of [`Outcome`](crate::load::LoadOutcome).
//!
//! The load may fill the core that the meter needs, so the meter reads slightly late. [`Cost::elapsed_s`] is the time
//! between the meter's own readings, and values per request use shares of that time.

use super::RunError;
use super::accounting::{self, Account, Accounts, CpuTime};
use super::bed;
use super::energy;
use crate::load::Observer;
use crate::record::Cost;

/// Reads the counters when the load reports the beginning and the end of the measurement.
#[derive(Debug)]
pub struct Meter<'a> {
    cores: &'a bed::Cores,
    /// Process id of the product.
    process: u32,
    /// Process id of the origin.
    origin: u32,
    energy: &'a energy::Meter,
    began: Option<Result<MeterReading, RunError>>,
    ended: Option<Result<MeterReading, RunError>>,
}

#[derive(Debug)]
struct MeterReading {
    cores: accounting::Cores,
    product: Accounts,
    origin: Accounts,
    /// Read only at the end.
    resident_bytes: u64,
    energy: Option<energy::EnergyReading>,
}

/// Facts that show whether the machine was disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Surroundings {
    /// The largest share of any group of cores taken by the hypervisor.
    pub stolen_share: f64,
    /// Busy share of the product's cores, including the share at rest.
    pub product_busy_share: f64,
    /// Busy share of the cores of load and origin.
    pub load_busy_share: f64,
    /// Share of the time in which the product was ready to run while another process occupied its core. The value means
    /// nothing with more busy threads than cores, because the threads then wait for each other.
    pub waited_share: f64,
    /// Busy share of the product's cores beyond the product's own time: softirqs and disturbances.
    pub foreign_share: f64,
}

impl<'a> Meter<'a> {
    /// A meter for the product and the origin with these process ids.
    pub fn new(
        cores: &'a bed::Cores,
        (process, origin): (u32, u32),
        energy: &'a energy::Meter,
    ) -> Self {
        Self { cores, process, origin, energy, began: None, ended: None }
    }

    /// Returns the readings; an error if the load never began or ended its measurement.
    pub fn finish(self, resting_share: f64) -> Result<(Cost, Surroundings), RunError> {
        let (Some(began), Some(ended)) = (self.began, self.ended) else {
            return Err(RunError::Bed("the load did not say when its measurement was".into()));
        };
        let (began, ended) = (began?, ended?);
        let product = ended.cores.since(&began.cores, &self.cores.product)?;
        let load = ended.cores.since(&began.cores, &self.cores.load)?;
        let joules = match (&began.energy, &ended.energy) {
            (Some(before), Some(after)) => Some(self.energy.joules(before, after)),
            _ => None,
        };
        let process = since(ended.product.all, began.product.all);
        let origin = since(ended.origin.all, began.origin.all);
        let workers = ended.product.workers.zip(began.product.workers);
        let cores = self.cores.product.len();
        let cost = Cost {
            elapsed_s: product.elapsed_s,
            busy_s: less_resting(&product, resting_share, cores),
            resting_share,
            cores,
            process_s: process.ran.as_secs_f64(),
            resident_bytes: ended.resident_bytes,
            joules,
            origin_s: Some(origin.ran.as_secs_f64()),
            load_busy_s: Some(load.busy_s),
            direct_s_per_request: None,
            unguarded_s_per_request: None,
            workers_s: workers.map(|(after, before)| since(after, before).ran.as_secs_f64()),
        };
        let stolen = |spent: &CpuTime, cores: usize| {
            spent.stolen_s / spent.elapsed_s.max(f64::MIN_POSITIVE) / cores as f64
        };
        let per_core_s = product.elapsed_s.max(f64::MIN_POSITIVE) * cores as f64;
        let around = Surroundings {
            stolen_share: stolen(&product, cores).max(stolen(&load, self.cores.load.len())),
            product_busy_share: product.busy_share(cores),
            load_busy_share: load.busy_share(self.cores.load.len()),
            waited_share: process.waited.as_secs_f64() / per_core_s,
            foreign_share: (cost.busy_s - cost.process_s).max(0.0) / per_core_s,
        };
        Ok((cost, around))
    }
}

/// The account between two readings. It is less if a thread has ended in between.
fn since(after: Account, before: Account) -> Account {
    Account {
        ran: after.ran.saturating_sub(before.ran),
        waited: after.waited.saturating_sub(before.waited),
    }
}

fn less_resting(spent: &CpuTime, resting_share: f64, cores: usize) -> f64 {
    (spent.busy_s - resting_share * spent.elapsed_s * cores as f64).max(0.0)
}

impl Observer for Meter<'_> {
    fn measurement_began(&mut self) {
        let (product, energy) = (accounting::accounts(self.process), self.energy.read());
        let origin = accounting::accounts(self.origin);
        // Read last, so that the readings above do not include its cost.
        let cores = accounting::Cores::now();
        let reading = |cores| MeterReading { cores, product, origin, resident_bytes: 0, energy };
        self.began = Some(cores.map(reading));
    }

    fn measurement_ended(&mut self) {
        let cores = accounting::Cores::now();
        let (product, energy) = (accounting::accounts(self.process), self.energy.read());
        let origin = accounting::accounts(self.origin);
        let resident_bytes = accounting::resident_bytes(self.process);
        let reading = |cores| MeterReading { cores, product, origin, resident_bytes, energy };
        self.ended = Some(cores.map(reading));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_of_this_process() {
        let cores = bed::Cores { product: vec![0], load: vec![0] };
        let energy = energy::Meter::default();
        let own = std::process::id();
        let mut meter = Meter::new(&cores, (own, own), &energy);
        meter.measurement_began();
        std::thread::sleep(std::time::Duration::from_millis(20));
        meter.measurement_ended();
        let (cost, around) = meter.finish(0.5).expect("counters");
        assert!(cost.elapsed_s >= 0.02, "{cost:?}");
        assert!(cost.busy_s <= cost.elapsed_s * 0.5 + 1e-9, "{cost:?}");
        assert!(cost.resident_bytes > 0 && cost.joules.is_none());
        assert!(around.product_busy_share <= 1.0, "{around:?}");
        let silent = Meter::new(&cores, (own, own), &energy);
        assert!(silent.finish(0.0).is_err());
    }

    #[test]
    fn resting_share_counts_per_core() {
        let spent = CpuTime { elapsed_s: 2.0, busy_s: 3.0, stolen_s: 0.0 };
        assert!((less_resting(&spent, 0.25, 2) - 2.0).abs() < 1e-9);
        assert!(less_resting(&spent, 0.9, 2).abs() < 1e-9);
    }
}
