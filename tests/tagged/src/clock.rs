//! Time given by the environment: the machine's over sockets, the simulation's own in a simulation.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::Duration;

/// A point of time, in microseconds since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment(pub u64);

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(microseconds))
    }
}

impl Sub<Self> for Moment {
    type Output = Duration;

    /// The time since another point; zero if that is later.
    fn sub(self, other: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(other.0))
    }
}

impl Moment {
    /// The time until another point, if that is later.
    pub fn left_until(self, until: Self) -> Option<Duration> {
        (until > self).then(|| until - self)
    }
}

/// Gives the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// A clock that reads the time from this source. It is read several times for each step of a
    /// session, and never goes back.
    pub fn new(read: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The current time.
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Clock({})", self.now().0)
    }
}
