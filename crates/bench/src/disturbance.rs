//! Limits beyond which a measurement counts as disturbed by the machine, and is discarded. The runner uses them, and
//! the report shows them.

/// The hypervisor may take this share of the cores before a measurement counts as disturbed.
pub const STOLEN_SHARE_MAX: f64 = 0.05;
/// A measurement counts as disturbed if the product waits for its core for more than this share.
pub const WAITED_SHARE_MAX: f64 = 0.1;
/// A measurement counts as disturbed if the product's cores are busy for more than this share beyond the product's own
/// time, which is due to softirqs.
pub const FOREIGN_SHARE_MAX: f64 = 0.3;
/// The product's cores may be so busy at rest before a round counts as disturbed.
pub const RESTING_SHARE_MAX: f64 = 0.15;
/// This many disturbed measurements of a round are repeated before the round is given up: few, so that compared
/// measurements are close in time.
pub const REPEATS_AT_ONCE_MAX: u32 = 3;
/// A generator whose cores are busier than this may be the reason why a rate was not kept.
pub const LOAD_SATURATED_SHARE: f64 = 0.95;
/// So may a hypervisor that took more than this.
pub const STOLEN_NOTICED_SHARE: f64 = 0.01;
