//! Limits beyond which the machine disturbed a measurement, which is then discarded. The runner applies them; the
//! report shows them.

/// Maximum share of the cores that the hypervisor may take.
pub const STOLEN_SHARE_MAX: f64 = 0.05;
/// Maximum share of the time that the product may wait for its core.
pub const WAITED_SHARE_MAX: f64 = 0.1;
/// Maximum busy share of the product's cores beyond the product's own time. Softirqs account for a part of it.
pub const FOREIGN_SHARE_MAX: f64 = 0.3;
/// Maximum busy share of the product's cores at rest, before a measurement.
pub const RESTING_SHARE_MAX: f64 = 0.15;
/// Maximum number of disturbed measurements that a round repeats before the round is discarded. It is small, so that
/// compared measurements are close in time.
pub const REPEATS_AT_ONCE_MAX: u32 = 3;
/// Busy share of the load's cores from which the generator may be the reason for a rate that was not kept.
pub const LOAD_SATURATED_SHARE: f64 = 0.95;
/// Share taken by the hypervisor above which it may be the reason.
pub const STOLEN_NOTICED_SHARE: f64 = 0.01;
