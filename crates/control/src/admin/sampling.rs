//! Counters are sampled while there is an admin listener that shows rates.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::observed::Observed;

/// Between two samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Samples the counters for as long as it is polled.
pub(super) async fn sample(observed: Arc<Observed>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        observed.rates.sample(&observed.table(), observed.packets.report().as_deref());
    }
}
