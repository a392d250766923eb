//! Load balancing methods: one file per algorithm.
//!
//! A [`Balancer`] belongs to one worker thread and one set of eligible members (enabled, healthy, of the preferred
//! priority); when the set changes, the worker builds a new balancer. An index in the weights that it was built from
//! identifies a member. A [`View`] shows the effects of other workers on the members.
//!
//! | method | reads | across cores | cost of a pick, n members |
//! |---|---|---|---|
//! | [`RoundRobin`] | weights | each core keeps the shares on its own | O(1); O(log c) for c different weights |
//! | [`LeastConnections`] | occupancy by weight | one occupancy for all; error bound in its module | O(1) |
//! | [`LeastResponseTime`] | recent response times by occupancy and weight | one [`ResponseTime`] for all | O(1) |
//! | [`RandomTwo`] | occupancy by weight of two drawn members | one occupancy for all | O(1) |
//! | [`ByKey`] | a key of the request | every core, and every weir, gives the same answer | O(1) |

use std::sync::Arc;

mod by_key;
mod draw;
mod least_connections;
mod least_response_time;
mod maglev;
mod mix;
mod random_two;
mod response_time;
mod round_robin;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod simulation_of_response_times;

pub use by_key::ByKey;
pub use least_connections::{LeastConnections, SCAN_MEMBERS_MAX};
pub use least_response_time::LeastResponseTime;
pub use maglev::{MaglevTable, NamedMember, SLOTS_MIN};
pub use random_two::RandomTwo;
pub use response_time::ResponseTime;
pub use round_robin::RoundRobin;

/// Smallest weight; a weight of 0 counts as this.
pub const WEIGHT_MIN: u16 = 1;

/// Largest weight; a larger one counts as this.
pub const WEIGHT_MAX: u16 = 256;

/// Largest cost of a member before its weight is taken into account.
pub const COST_MAX: u64 = u64::MAX / WEIGHT_MAX as u64;

/// The method by which a pool selects the member of a new request, independently of the request. Methods that use a key
/// of the request (`source_address`, `hash`) share a table and are created with [`Balancer::by_key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Members in turn, by weight, interleaved.
    #[default]
    RoundRobin,
    /// The member with the fewest occupied connections in proportion to its weight.
    LeastConnections,
    /// The member with the fastest recent responses, in proportion to its load and weight.
    LeastResponseTime,
    /// The less loaded of two members drawn by weight.
    RandomTwo,
}

/// The state of members for a balancer, by their index.
pub trait View {
    /// The number of active requests on the member, on all cores.
    fn occupancy(&self, index: usize) -> u32;
    /// Whether the member may take one more request (limit not reached, not tried already).
    fn admits(&self, index: usize) -> bool;
    /// [`ResponseTime::cost`] of the member now, at most [`COST_MAX`]. Only [`LeastResponseTime`] asks.
    /// Where response times are not kept, all members count as equally fast.
    fn cost(&self, index: usize) -> u64 {
        u64::from(self.occupancy(index)) + 1
    }
}

/// The balancer of one pool on one worker.
#[derive(Debug, Clone)]
pub enum Balancer {
    /// See [`RoundRobin`].
    RoundRobin(RoundRobin),
    /// See [`LeastConnections`].
    LeastConnections(LeastConnections),
    /// See [`LeastResponseTime`].
    LeastResponseTime(LeastResponseTime),
    /// See [`RandomTwo`].
    RandomTwo(RandomTwo),
    /// See [`ByKey`].
    ByKey(ByKey),
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
            Method::LeastResponseTime => {
                Self::LeastResponseTime(LeastResponseTime::new(weights, seed))
            }
            Method::RandomTwo => Self::RandomTwo(RandomTwo::new(weights, seed)),
        }
    }

    /// A balancer that uses the key of a request, over `eligible.len()` members. `eligible[index]`: the index of a
    /// member among the members of `table`.
    pub fn by_key(table: Arc<MaglevTable>, eligible: &[u32]) -> Self {
        Self::ByKey(ByKey::new(table, eligible))
    }

    /// The member for a new request; `None` if and only if the view admits no member.
    ///
    /// `key` is a hash of the request's key ([`KeyedHash`](crate::keyed_hash::KeyedHash)); only [`ByKey`] reads it.
    ///
    /// The caller reports [`Balancer::started`] once it has counted the request in the occupancy that the view reads.
    pub fn pick(&mut self, view: &impl View, key: u64) -> Option<usize> {
        match self {
            Self::RoundRobin(balancer) => balancer.pick(view),
            Self::LeastConnections(balancer) => balancer.pick(view),
            Self::LeastResponseTime(balancer) => balancer.pick(view),
            Self::RandomTwo(balancer) => balancer.pick(view),
            Self::ByKey(balancer) => balancer.pick(view, key),
        }
    }

    /// Records that a request of this worker occupies the member from now on.
    ///
    /// # Panics
    /// If `index` is not below the number of members.
    pub fn started(&mut self, index: usize) {
        match self {
            Self::LeastConnections(balancer) => balancer.started(index),
            Self::RoundRobin(_)
            | Self::LeastResponseTime(_)
            | Self::RandomTwo(_)
            | Self::ByKey(_) => {}
        }
    }

    /// Records that a request of this worker no longer occupies the member.
    ///
    /// # Panics
    /// If `index` is not below the number of members.
    pub fn ended(&mut self, index: usize) {
        match self {
            Self::LeastConnections(balancer) => balancer.ended(index),
            Self::RoundRobin(_)
            | Self::LeastResponseTime(_)
            | Self::RandomTwo(_)
            | Self::ByKey(_) => {}
        }
    }
}

/// The weight that the algorithms use.
fn clamp_weight(weight: u16) -> u16 {
    weight.clamp(WEIGHT_MIN, WEIGHT_MAX)
}
