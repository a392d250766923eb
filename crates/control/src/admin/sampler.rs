//! Samples counters for the rates and the health that an admin listener shows.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::observed_state::ObservedState;

/// The interval between samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Samples the counters as long as the future is polled.
pub(super) async fn sample(observed: Arc<ObservedState>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let table = observed.table();
        observed.rates.sample(&table, observed.packets.report().as_deref());
        observed.recent.sample(&table);
        observed.losing();
    }
}
