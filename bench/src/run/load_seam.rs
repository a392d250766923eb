//! The interface between the runner and the load generator. The runner's tests replace the generator here.

use super::meter::Meter;
use crate::load::udp::{self, UdpPlan};
use crate::load::{self, LoadOutcome, Plan};

/// A load generator.
pub trait Loader {
    /// Runs the load to its end; tells the meter when the measurement begins and ends.
    fn load(&mut self, plan: &Plan, meter: &mut Meter<'_>) -> Result<LoadOutcome, String>;

    /// Runs a load over UDP.
    fn query(&mut self, plan: &UdpPlan, meter: &mut Meter<'_>) -> Result<LoadOutcome, String> {
        udp::run(plan, meter).map_err(|error| error.to_string())
    }
}

/// This crate's load generator.
#[derive(Debug)]
pub struct Engine;

impl Loader for Engine {
    fn load(&mut self, plan: &Plan, meter: &mut Meter<'_>) -> Result<LoadOutcome, String> {
        load::run(plan, meter).map_err(|error| error.to_string())
    }
}
