//! The times of renewals and of new attempts after failures. No clock and no I/O.

use std::ops::RangeInclusive;
use std::time::Duration;

use weir_outgoing::exchange::until_retry;

/// Pause after the first failed order. It doubles with each further failure. Five attempts fall into the first hour: as many
/// as a public authority permits per name.
const RETRY_MIN: Duration = Duration::from_secs(3 * 60);
/// Maximum pause after a failed order.
const RETRY_MAX: Duration = Duration::from_secs(6 * 60 * 60);
const RETRIES: RangeInclusive<Duration> = RETRY_MIN..=RETRY_MAX;
/// Maximum accepted `Retry-After` of an authority.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum time between a successful order and the next one for the same names.
const RENEWAL_PAUSE_MIN_S: i64 = 60 * 60;
/// Minimum time between an order and the next one that a reload requests.
const BY_HAND_PAUSE_MIN_S: i64 = 10;
/// Interval between queries for the renewal window (RFC 9773 section 4.3.2).
pub const WINDOW_PAUSES: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(24 * 60 * 60);
/// Interval after a failed query.
pub const WINDOW_RETRY: Duration = Duration::from_secs(60 * 60);
/// The fraction of the lifetime by which renewals without a window are spread, so that they do not all happen at once.
const SPREAD_PART: i64 = 20;

/// The validity of a certificate, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// The first second.
    pub from_unix_s: i64,
    /// The last second.
    pub until_unix_s: i64,
}

impl Lifetime {
    fn seconds(self) -> i64 {
        self.until_unix_s.saturating_sub(self.from_unix_s).max(0)
    }
}

/// The authority's renewal window for a certificate (RFC 9773), in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first second.
    pub start_unix_s: i64,
    /// The last second.
    pub end_unix_s: i64,
}

/// The reason for the time of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The authority's window.
    Authority,
    /// Two thirds of the certificate's lifetime.
    Lifetime,
}

impl Basis {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authority => "authority",
            Self::Lifetime => "lifetime",
        }
    }
}

/// The time to renew a certificate, in seconds since 1970. `spread` is derived from the certificate, so repeated calls select the
/// same time in the window.
pub fn renewal(lifetime: Lifetime, window: Option<Window>, spread: u32) -> (i64, Basis) {
    let seconds = lifetime.seconds();
    // Before the certificate expires, whatever the authority says.
    let latest = lifetime.until_unix_s.saturating_sub(seconds / SPREAD_PART);
    let usable = window.filter(|it| it.start_unix_s <= it.end_unix_s && it.start_unix_s < latest);
    if let Some(window) = usable {
        let width_s = window.end_unix_s.min(latest) - window.start_unix_s;
        return (window.start_unix_s + part(width_s, spread), Basis::Authority);
    }
    let at = lifetime.from_unix_s + seconds / 3 * 2 - part(seconds / SPREAD_PART, spread);
    (at, Basis::Lifetime)
}

/// `spread` of 2^32 parts.
fn part(of: i64, spread: u32) -> i64 {
    i64::try_from((i128::from(of) * i128::from(spread)) >> 32).unwrap_or(0)
}

/// The pause after this number of consecutive failures; `asked`: the minimum that the authority has asked for.
pub fn pause(failures: u32, asked: Option<Duration>) -> Duration {
    let asked = asked.unwrap_or_default().min(RETRY_AFTER_MAX);
    until_retry(failures, RETRIES).max(asked)
}

/// The earliest time of an order after a successful one. A certificate with a lifetime of hours has a shorter pause.
pub fn after_success(now_unix_s: i64, lifetime: Lifetime) -> i64 {
    now_unix_s + RENEWAL_PAUSE_MIN_S.min(lifetime.seconds() / 3)
}

/// A time that was planned, as seen now. No plan reaches further than the longest pause: one that does was made when the
/// clock was ahead, and is over.
pub fn reachable(at_unix_s: i64, now_unix_s: i64) -> i64 {
    let longest_s = i64::try_from(RETRY_AFTER_MAX.as_secs()).unwrap_or(i64::MAX);
    if at_unix_s > now_unix_s.saturating_add(longest_s) { now_unix_s } else { at_unix_s }
}

/// The earliest time of an order that a reload requests.
pub fn by_hand(not_before_unix_s: i64, last_order_unix_s: i64) -> i64 {
    not_before_unix_s.min(last_order_unix_s.saturating_add(BY_HAND_PAUSE_MIN_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u32 = 1 << 31;
    const DAY_S: i64 = 24 * 60 * 60;

    #[test]
    fn renewals() {
        let lifetime = |from_unix_s, until_unix_s| Lifetime { from_unix_s, until_unix_s };
        let window = |start_unix_s, end_unix_s| Some(Window { start_unix_s, end_unix_s });
        let (authority, own) = (Basis::Authority, Basis::Lifetime);
        for (given, window, spread, expected) in [
            // Two thirds, and up to a twentieth earlier.
            (lifetime(0, 90 * DAY_S), None, 0, (60 * DAY_S, own)),
            (lifetime(0, 90 * DAY_S), None, HALF, (60 * DAY_S - 90 * DAY_S / 40, own)),
            (lifetime(1_000, 1_060), None, 0, (1_040, own)),
            (lifetime(1_000, 1_060), None, u32::MAX, (1_038, own)),
            // The authority's window, even if it has passed.
            (lifetime(0, 90 * DAY_S), window(70 * DAY_S, 72 * DAY_S), 0, (70 * DAY_S, authority)),
            (
                lifetime(0, 90 * DAY_S),
                window(70 * DAY_S, 72 * DAY_S),
                HALF,
                (71 * DAY_S, authority),
            ),
            (lifetime(0, 90 * DAY_S), window(-5, -5), HALF, (-5, authority)),
            // A window that ends with the certificate or later is cut a twentieth of the lifetime before the certificate expires.
            (
                lifetime(0, 20 * DAY_S),
                window(17 * DAY_S, 20 * DAY_S),
                HALF,
                (18 * DAY_S, authority),
            ),
            (
                lifetime(0, 20 * DAY_S),
                window(17 * DAY_S, 90 * DAY_S),
                HALF,
                (18 * DAY_S, authority),
            ),
            // Invalid windows.
            (lifetime(0, 90 * DAY_S), window(89 * DAY_S, 91 * DAY_S), 0, (60 * DAY_S, own)),
            (lifetime(0, 90 * DAY_S), window(72 * DAY_S, 70 * DAY_S), 0, (60 * DAY_S, own)),
            // A certificate that was never valid is due.
            (lifetime(10, 0), None, HALF, (10, own)),
            (lifetime(i64::MIN, i64::MAX), None, 0, (i64::MIN + i64::MAX / 3 * 2, own)),
        ] {
            assert_eq!(renewal(given, window, spread), expected, "{given:?} {window:?} {spread}");
        }
    }

    #[test]
    fn pauses() {
        for failures in 1..40 {
            let pause = pause(failures, None);
            assert!(pause <= RETRY_MAX && pause >= RETRY_MIN * 3 / 4, "{failures}: {pause:?}");
        }
        assert!(pause(20, None) > RETRY_MAX / 2);
        let asked = |seconds| pause(1, Some(Duration::from_secs(seconds)));
        assert_eq!(asked(3_600), Duration::from_secs(3_600));
        assert_eq!(asked(u64::MAX), RETRY_AFTER_MAX);
        assert!(asked(0) <= RETRY_MIN);
        // The sixth attempt follows five pauses, each of which is at most a quarter shorter.
        let shortest_s = RETRY_MIN.as_secs() * 3 / 4;
        let sixth_s: u64 = (0..5).map(|doubled| shortest_s << doubled).sum();
        assert!(sixth_s > 60 * 60, "the sixth try comes after {sixth_s} s");
    }

    #[test]
    fn plans_of_a_clock_that_was_ahead_are_over() {
        for (at, expected) in [(0, 0), (1_500, 1_500), (1_000 + DAY_S, 1_000 + DAY_S)] {
            assert_eq!(reachable(at, 1_000), expected);
        }
        assert_eq!(reachable(1_001 + DAY_S, 1_000), 1_000);
        assert_eq!(reachable(i64::MAX, i64::MAX), i64::MAX);
    }

    #[test]
    fn successes_and_reloads() {
        let lifetime = |seconds| Lifetime { from_unix_s: 0, until_unix_s: seconds };
        assert_eq!(after_success(100, lifetime(90 * DAY_S)), 100 + RENEWAL_PAUSE_MIN_S);
        assert_eq!(after_success(100, lifetime(60)), 120);
        assert_eq!(by_hand(1_000, 500), 510);
        assert_eq!(by_hand(1_000, 995), 1_000);
        assert_eq!(by_hand(0, i64::MAX), 0);
    }
}
