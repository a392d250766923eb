//! When a measurement counts as disturbed by the machine, and is thrown away: what the runner goes by and
//! the report tells.

/// The hypervisor may take this share of the cores before a measurement counts as disturbed.
pub const STOLEN_SHARE_MAX: f64 = 0.05;
/// The product may wait for its core so much before a measurement counts as disturbed.
pub const WAITED_SHARE_MAX: f64 = 0.1;
/// Its cores may be busy so much beyond the product's own time, which softirqs are, before a measurement
/// counts as disturbed.
pub const FOREIGN_SHARE_MAX: f64 = 0.3;
/// The product's cores may be so busy at rest before a round counts as disturbed.
pub const RESTING_SHARE_MAX: f64 = 0.15;
/// So many disturbed measurements of a round are made again before the round is given up: few, so that what
/// is compared was measured within little more than the time of one round.
pub const REPEATS_AT_ONCE_MAX: u32 = 3;
/// A generator whose cores are busier than this may be the reason why a rate was not kept.
pub const LOAD_SATURATED_SHARE: f64 = 0.95;
/// So may a hypervisor that took more than this.
pub const STOLEN_NOTICED_SHARE: f64 = 0.01;
