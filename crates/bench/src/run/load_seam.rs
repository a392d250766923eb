//! Where the runner meets the load generator, so that its tests can put another one there.

use super::meter::Meter;
use crate::load::udp::{self, UdpPlan};
use crate::load::{self, Outcome, Plan};

/// Makes a load.
pub trait Loader {
    /// Runs it to its end; the meter hears when the measurement begins and ends.
    fn load(&mut self, plan: &Plan, meter: &mut Meter<'_>) -> Result<Outcome, String>;

    /// A load over UDP.
    fn query(&mut self, plan: &UdpPlan, meter: &mut Meter<'_>) -> Result<Outcome, String> {
        udp::run(plan, meter).map_err(|error| error.to_string())
    }
}

/// The load generator of this crate.
#[derive(Debug)]
pub struct Engine;

impl Loader for Engine {
    fn load(&mut self, plan: &Plan, meter: &mut Meter<'_>) -> Result<Outcome, String> {
        load::run(plan, meter).map_err(|error| error.to_string())
    }
}
