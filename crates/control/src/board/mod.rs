//! Figures for open dashboards. All dashboards share one sampler, which runs only while one is open.
//!
//! The sampler reads counters and states every two seconds on another thread, and stores the points of charts. It starts with
//! the first reader. When the last reader has gone, it ends and its points are dropped.

mod history;
mod sample;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::health::Judge;
pub(crate) use history::History;
pub(crate) use sample::{PoolSample, Sample, ServerSample, StateSeverity, member_shown};

/// The interval between two samples.
pub(crate) const INTERVAL: Duration = Duration::from_secs(2);

/// The sampler of a process.
#[derive(Debug)]
pub struct Sampler {
    samples: watch::Sender<Option<Arc<Sample>>>,
    history: Mutex<History>,
    is_running: Mutex<bool>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            samples: watch::Sender::new(None),
            history: Mutex::default(),
            is_running: Mutex::new(false),
        }
    }
}

impl Sampler {
    /// Subscribes to samples of the table in force, which the result of `judge` has. The latest sample, if any, is delivered at once. Must
    /// be called within a tokio runtime.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        judge: impl Fn() -> Judge + Clone + Send + 'static,
    ) -> watch::Receiver<Option<Arc<Sample>>> {
        let samples = self.samples.subscribe();
        let mut is_running = lock(&self.is_running);
        if !*is_running {
            *is_running = true;
            tokio::spawn(run(Arc::clone(self), judge));
        }
        samples
    }

    /// The points of the charts so far.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// Whether the sampler runs.
    #[cfg(test)]
    pub(crate) fn is_running(&self) -> bool {
        *lock(&self.is_running)
    }

    /// Ends the sampler if it has no readers. The next reader starts it again.
    fn has_ended(&self) -> bool {
        let mut is_running = lock(&self.is_running);
        if self.samples.receiver_count() > 0 {
            return false;
        }
        *is_running = false;
        self.samples.send_replace(None);
        *self.history() = History::default();
        true
    }
}

async fn run(sampler: Arc<Sampler>, judge: impl Fn() -> Judge + Clone + Send + 'static) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before: Option<Arc<Sample>> = None;
    loop {
        ticks.tick().await;
        if sampler.has_ended() {
            return;
        }
        let (shared, judge, last) = (Arc::clone(&sampler), judge.clone(), before.take());
        let take = move || {
            let sample = Arc::new(Sample::of(judge(), last.as_deref()));
            shared.history().push(&sample);
            sample
        };
        // A panic here is a defect. The next sample may succeed.
        let Ok(sample) = tokio::task::spawn_blocking(take).await else { continue };
        before = Some(Arc::clone(&sample));
        sampler.samples.send_replace(Some(sample));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
