//! Values for expressions that belong neither to a request nor to its connection: random numbers, time and pools.

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::Member;
use weir_core::admin_state::Admission;
use weir_core::clock::Clock;
use weir_core::expression::{PoolFact, Surroundings};
use weir_core::time_zone::TimeZone;

use crate::local::member::LocalMember;
use crate::local::pool::LocalPool;
use crate::local::pools::PoolInForce;

/// Sources of random numbers and of the time of day.
#[derive(Clone, Copy)]
pub struct Sources {
    /// Seconds since 1970, by the system clock.
    pub unix_s: fn() -> u64,
    /// Fills the buffer with unpredictable bytes.
    pub fill_randomly: fn(&mut [u8]),
}

/// The random number and the time that a request has used. Its response uses the same values.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeedAndTime {
    seed: Option<NonZeroU64>,
    unix_s: Option<NonZeroU64>,
}

/// These values for one request. They are determined only when an expression reads them.
pub struct RequestSurroundings<'a> {
    sources: Sources,
    pools: &'a [Rc<PoolInForce>],
    now: Clock,
    /// The time zone of the configuration.
    zone: &'a TimeZone,
    known: Cell<SeedAndTime>,
}

impl<'a> RequestSurroundings<'a> {
    /// The values for a request: with those that it has used already, and with these pools and this time zone.
    pub fn new(
        (sources, now): (Sources, Clock),
        pools: &'a [Rc<PoolInForce>],
        zone: &'a TimeZone,
        known: SeedAndTime,
    ) -> Self {
        Self { sources, pools, now, zone, known: Cell::new(known) }
    }

    /// The values that the request has used.
    pub fn known(&self) -> SeedAndTime {
        self.known.get()
    }
}

impl Surroundings for RequestSurroundings<'_> {
    fn seed(&self) -> u64 {
        let known = self.known.get();
        let seed = known.seed.unwrap_or_else(|| {
            let mut seed = [0; 8];
            (self.sources.fill_randomly)(&mut seed);
            NonZeroU64::new(u64::from_le_bytes(seed)).unwrap_or(NonZeroU64::MAX)
        });
        self.known.set(SeedAndTime { seed: Some(seed), ..known });
        seed.get()
    }

    fn local_s(&self) -> i64 {
        let known = self.known.get();
        let unix_s = known
            .unix_s
            .or_else(|| NonZeroU64::new((self.sources.unix_s)()))
            .unwrap_or(NonZeroU64::MIN);
        self.known.set(SeedAndTime { unix_s: Some(unix_s), ..known });
        let unix_s = i64::try_from(unix_s.get()).unwrap_or(i64::MAX);
        unix_s.saturating_add(self.zone.offset_s(unix_s).into())
    }

    fn pool(&self, number: u32, fact: PoolFact) -> i64 {
        let Some(pool) = self.pools.get(number as usize).map(|pool| pool.now()) else { return 0 };
        match fact {
            PoolFact::UpMembers => up_members(&pool, self.now),
            PoolFact::Connections => {
                pool.members.iter().map(|it| i64::from(it.live.occupancy.load(Relaxed))).sum()
            }
        }
    }
}

/// The number of members of a pool that could take requests, regardless of their priority.
fn up_members(pool: &LocalPool, now: Clock) -> i64 {
    let is_up = |(member, settings): &(&Rc<LocalMember>, &Member)| {
        let live = &member.live;
        settings.weight > 0
            && live.ejected_until_ms(now.now_ms()).is_none()
            && live.state(settings.state).admission(live.health()) == Admission::All
    };
    pool.members.iter().zip(&pool.settings().members).filter(is_up).count() as i64
}

impl fmt::Debug for RequestSurroundings<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Around").field("known", &self.known.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    static SECOND: AtomicU64 = AtomicU64::new(1_000);
    static DRAWN: AtomicU64 = AtomicU64::new(0);

    const SOURCES: Sources = Sources {
        unix_s: || SECOND.fetch_add(1, Relaxed),
        fill_randomly: |bytes| {
            bytes.copy_from_slice(&DRAWN.fetch_add(1, Relaxed).to_le_bytes());
        },
    };

    fn around(zone: &TimeZone, known: SeedAndTime) -> RequestSurroundings<'_> {
        RequestSurroundings::new((SOURCES, Clock::at_us(0)), &[], zone, known)
    }

    #[test]
    fn what_is_read_stays_until_the_response() {
        let [east, west, utc] = [3_600, -1_000, 0].map(TimeZone::fixed);
        let first = around(&east, SeedAndTime::default());
        assert_eq!((SECOND.load(Relaxed), DRAWN.load(Relaxed)), (1_000, 0), "nobody has asked");
        assert_eq!((first.local_s(), first.local_s()), (4_600, 4_600));
        // A seed of zero is valid too.
        assert_eq!((first.seed(), first.seed()), (u64::MAX, u64::MAX));
        let later = around(&west, first.known());
        assert_eq!((later.local_s(), later.seed()), (0, u64::MAX));
        let other = around(&utc, SeedAndTime::default());
        assert_eq!((other.seed(), other.local_s()), (1, 1_001));
    }
}
