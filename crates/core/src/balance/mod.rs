//! Balancing methods: one algorithm, one file.
//!
//! A [`Balancer`] belongs to one worker thread and one set of eligible members (enabled, healthy, of
//! the preferred priority); the worker builds a new one when that set changes. Members are named by
//! their index in the weights that it was built from. What other workers do to the same members
//! comes in through [`View`].

mod least_connections;
mod round_robin;
#[cfg(test)]
mod simulation;

pub use least_connections::LeastConnections;
pub use round_robin::RoundRobin;

/// Smallest weight; a weight of 0 counts as this.
pub const WEIGHT_MIN: u16 = 1;

/// Largest weight; a larger one counts as this.
pub const WEIGHT_MAX: u16 = 256;

/// How a pool picks the member of a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Members in turn, by weight, interleaved.
    #[default]
    RoundRobin,
    /// The member with the fewest occupied connections in proportion to its weight.
    LeastConnections,
}

/// What a balancer may ask about the members it was built for, by their index.
pub trait View {
    /// Requests that occupy the member now, on all cores.
    fn occupancy(&self, index: usize) -> u32;
    /// Whether the member may take one more request (limit not reached, not tried already).
    fn admits(&self, index: usize) -> bool;
}

/// One pool's balancing on one worker.
#[derive(Debug, Clone)]
pub enum Balancer {
    /// See [`RoundRobin`].
    RoundRobin(RoundRobin),
    /// See [`LeastConnections`].
    LeastConnections(LeastConnections),
}

impl Balancer {
    /// A balancer over `weights.len()` members. Workers should hand in different seeds, so that they
    /// do not all start with the same member.
    pub fn new(method: Method, weights: &[u16], seed: u64) -> Self {
        match method {
            Method::RoundRobin => Self::RoundRobin(RoundRobin::new(weights, seed)),
            Method::LeastConnections => {
                Self::LeastConnections(LeastConnections::new(weights, seed))
            }
        }
    }

    /// The member for a new request; `None` exactly when the view admits no member.
    ///
    /// The caller reports [`Balancer::started`] once it has counted the request in the occupancy
    /// that the view reads.
    pub fn pick(&mut self, view: &impl View) -> Option<usize> {
        match self {
            Self::RoundRobin(balancer) => balancer.pick(view),
            Self::LeastConnections(balancer) => balancer.pick(view),
        }
    }

    /// A request of this worker occupies the member from now on.
    ///
    /// # Panics
    /// If `index` is not below the number of members.
    pub fn started(&mut self, index: usize) {
        match self {
            Self::RoundRobin(_) => {}
            Self::LeastConnections(balancer) => balancer.started(index),
        }
    }

    /// A request of this worker occupies the member no longer.
    ///
    /// # Panics
    /// If `index` is not below the number of members.
    pub fn ended(&mut self, index: usize) {
        match self {
            Self::RoundRobin(_) => {}
            Self::LeastConnections(balancer) => balancer.ended(index),
        }
    }
}

/// A weight as the algorithms count on it.
fn clamp_weight(weight: u16) -> u16 {
    weight.clamp(WEIGHT_MIN, WEIGHT_MAX)
}
