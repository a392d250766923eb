//! Limits on requests and failed logins per source, for admin connections over TCP.
//!
//! A source is an IPv4 address or a /64 network of IPv6, because one host may use all addresses of its /64. The unix
//! socket has no limit: its users may end the process anyway, and have few connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Requests of one source: a burst of 2,000, then 500 per second.
const REQUESTS: Rate = Rate { burst: 2_000, interval_us: 2_000 };

/// Failed logins of one source: a burst of 10, then one per 6 seconds.
const FAILURES: Rate = Rate { burst: 10, interval_us: 6_000_000 };

/// Maximum number of stored sources. When it is reached, the source whose limits recover first is dropped.
const SOURCES_MAX: usize = 4_096;

/// A rate limit: the burst, and the time to regain one request.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u64,
    interval_us: u64,
}

/// The use of a rate limit: the time at which the full burst is available again.
#[derive(Debug, Clone, Copy, Default)]
struct LimitUse {
    restored_us: u64,
}

impl LimitUse {
    /// The wait until a request is permitted; `None`: it is permitted now.
    fn wait(self, now_us: u64, rate: Rate) -> Option<Duration> {
        let after = self.restored_us.max(now_us) + rate.interval_us;
        let wait_us = after.saturating_sub(now_us + rate.interval_us * rate.burst);
        (wait_us > 0).then(|| Duration::from_micros(wait_us))
    }

    fn take(&mut self, now_us: u64, rate: Rate) {
        self.restored_us = self.restored_us.max(now_us) + rate.interval_us;
    }
}

/// The use of all limits by one source.
#[derive(Debug, Clone, Copy, Default)]
struct Source {
    requests: LimitUse,
    failures: LimitUse,
}

impl Source {
    fn restored_us(&self) -> u64 {
        self.requests.restored_us.max(self.failures.restored_us)
    }
}

/// The use of limits by all sources. Times are in microseconds from an arbitrary origin.
#[derive(Debug, Default)]
pub(super) struct Sources(Mutex<HashMap<IpAddr, Source>>);

impl Sources {
    /// Counts a request. `Err`: the wait until one is permitted.
    pub(super) fn request(&self, address: IpAddr, now_us: u64) -> Result<(), Duration> {
        self.with(address, |source| match source.requests.wait(now_us, REQUESTS) {
            Some(wait) => Err(wait),
            None => {
                source.requests.take(now_us, REQUESTS);
                Ok(())
            }
        })
    }

    /// Whether a login is permitted. `Err`: the wait until it is.
    pub(super) fn may_log_in(&self, address: IpAddr, now_us: u64) -> Result<(), Duration> {
        self.with(address, |source| source.failures.wait(now_us, FAILURES).map_or(Ok(()), Err))
    }

    /// Counts a failed login.
    pub(super) fn failed(&self, address: IpAddr, now_us: u64) {
        self.with(address, |source| source.failures.take(now_us, FAILURES));
    }

    fn with<T>(&self, address: IpAddr, use_it: impl FnOnce(&mut Source) -> T) -> T {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = network_of(address);
        if !sources.contains_key(&key) && sources.len() >= SOURCES_MAX {
            let soonest = sources.iter().min_by_key(|(_, source)| source.restored_us());
            if let Some(key) = soonest.map(|(key, _)| *key) {
                sources.remove(&key);
            }
        }
        use_it(sources.entry(key).or_default())
    }
}

/// The source of an address: itself, or its /64 network of IPv6.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn requests_are_limited_and_come_back() {
        let (sources, one) = (Sources::default(), address("192.0.2.1"));
        for _ in 0..REQUESTS.burst {
            assert_eq!(sources.request(one, 7), Ok(()));
        }
        assert_eq!(sources.request(one, 7), Err(Duration::from_micros(REQUESTS.interval_us)));
        assert_eq!(sources.request(address("192.0.2.2"), 7), Ok(()), "another source");
        assert_eq!(sources.request(one, 7 + REQUESTS.interval_us), Ok(()));
        assert!(sources.request(one, 7 + REQUESTS.interval_us).is_err());
        let later_us = 7 + REQUESTS.interval_us * REQUESTS.burst * 10;
        let passed = (0..).take_while(|_| sources.request(one, later_us).is_ok()).count();
        assert_eq!(passed as u64, REQUESTS.burst, "no more than the burst after a long pause");
    }

    #[test]
    fn failed_logins_are_limited() {
        let (sources, one) = (Sources::default(), address("2001:db8::1"));
        for _ in 0..FAILURES.burst {
            assert_eq!(sources.may_log_in(one, 0), Ok(()));
            sources.failed(one, 0);
        }
        let wait = Duration::from_micros(FAILURES.interval_us);
        assert_eq!(sources.may_log_in(one, 0), Err(wait));
        assert_eq!(sources.may_log_in(address("2001:db8::ffff:1"), 0), Err(wait), "the same host");
        assert_eq!(sources.may_log_in(address("2001:db8:0:1::1"), 0), Ok(()));
        assert_eq!(sources.may_log_in(one, FAILURES.interval_us), Ok(()));
        assert_eq!(sources.request(one, 0), Ok(()), "requests are counted apart");
    }

    #[test]
    fn sources_are_bounded() {
        let sources = Sources::default();
        let failing = address("198.51.100.1");
        for _ in 0..FAILURES.burst {
            sources.failed(failing, 0);
        }
        for number in 0..SOURCES_MAX as u32 * 2 {
            let address = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number));
            assert_eq!(sources.request(address, u64::from(number)), Ok(()));
        }
        assert_eq!(sources.0.lock().expect("no panic").len(), SOURCES_MAX);
        assert!(sources.may_log_in(failing, 0).is_err(), "the one with failures is remembered");
    }
}
