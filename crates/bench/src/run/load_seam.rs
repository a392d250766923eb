//! Where the runner meets the load generator, so that its tests can put another one there.

use super::meter::Meter;
use crate::load::{Outcome, Plan};

/// Told when a measurement begins and ends.
pub trait Observer {
    /// The warm-up is over.
    fn measurement_began(&mut self);
    /// The last response is in.
    fn measurement_ended(&mut self);
}

/// Makes a load.
pub trait Loader: Send {
    /// Runs it to its end.
    fn load(&mut self, plan: &Plan, meter: &mut Meter<'_>) -> Result<Outcome, String>;
}

/// The load generator of this crate.
#[derive(Debug)]
pub struct Engine;

impl Loader for Engine {
    fn load(&mut self, _plan: &Plan, _meter: &mut Meter<'_>) -> Result<Outcome, String> {
        Err("the load generator is still to be joined".into())
    }
}
