//! Limits per key, of virtual servers and of rules: counters and held places.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::{KeyLimit, KeyMeasure, LimitAction, LimitKey, Snapshot};
use weir_core::clock::Clock;
use weir_core::expression::{Evaluation, Facts};
use weir_core::keyed_hash::KeyedHash;
use weir_core::limit::{Admission, retry_after_s};

use crate::shared::live::{LiveTable, LiveVirtualServer};
use crate::shared::shared_table::KeyedLimit;

/// Retry-After value for limits on concurrent requests.
pub const RETRY_AT_A_TIME_S: u64 = 1;

/// A place under a limit on concurrent requests or connections. Dropping it returns the place, so a request returns it
/// however it ends, even by a panic.
#[derive(Debug)]
pub enum LimitPlace {
    /// A place in a limit of the virtual server.
    Server(Arc<LiveVirtualServer>),
    /// A place in a limit per key: the hash of the key.
    Key(Arc<KeyedLimit>, u64),
}

impl Drop for LimitPlace {
    fn drop(&mut self) {
        match self {
            Self::Server(live) => {
                live.used.requests_under_way.fetch_sub(1, Relaxed);
            }
            Self::Key(limit, key) => limit.leave(*key),
        }
    }
}

/// The places of a connection. They refer to the limits directly, because the connection may outlive its table.
#[derive(Debug, Default)]
pub struct ConnectionPlaces(Vec<LimitPlace>);

impl ConnectionPlaces {
    /// Adds places.
    pub fn take(&mut self, held: &mut Vec<LimitPlace>) {
        self.0.append(held);
    }
}

/// The result of counting a request or connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLimitResult {
    /// It is permitted.
    Passes,
    /// It is delayed until then.
    Delayed(u64),
    /// It exceeds the limit, and is refused.
    Refused {
        /// Seconds until another one is permitted, rounded up.
        retry_after_s: u64,
    },
    /// It exceeds the limit, and the connection closes.
    Closed,
}

/// The limits per key of a snapshot, and their counters.
pub struct KeyLimits {
    snapshot: Arc<Snapshot>,
    tables: Vec<Arc<KeyedLimit>>,
    hash: KeyedHash,
}

impl KeyLimits {
    /// The limits of this table.
    pub fn of(table: &LiveTable) -> Self {
        Self {
            snapshot: Arc::clone(&table.snapshot),
            tables: table.key_limits.clone(),
            hash: table.key_hash,
        }
    }

    /// Counts a request. Adds its place under the limit, if any, to `held`.
    pub fn count(
        &self,
        index: usize,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        now: Clock,
        (scratch, held): (&mut Vec<u8>, &mut Vec<LimitPlace>),
    ) -> KeyLimitResult {
        let limit: &KeyLimit = &self.snapshot.key_limits[index];
        let Some(key) = self.key_of(limit, facts, evaluation, scratch) else {
            return KeyLimitResult::Passes;
        };
        let table = &self.tables[index];
        let rate = match &limit.measure {
            KeyMeasure::Rate(rate) => rate,
            KeyMeasure::AtATime(max) if table.enter(key, *max) => {
                held.push(LimitPlace::Key(Arc::clone(table), key));
                return KeyLimitResult::Passes;
            }
            KeyMeasure::AtATime(_) if limit.exceed == LimitAction::Close => {
                return KeyLimitResult::Closed;
            }
            KeyMeasure::AtATime(_) => {
                return KeyLimitResult::Refused { retry_after_s: RETRY_AT_A_TIME_S };
            }
        };
        match (table.admit(key, rate, now.now_us()), limit.exceed) {
            (Admission::Pass { .. }, _) => KeyLimitResult::Passes,
            (Admission::Delay { until_us, .. }, _) => KeyLimitResult::Delayed(until_us),
            (Admission::Refuse { .. }, LimitAction::Close) => KeyLimitResult::Closed,
            (
                Admission::Refuse { retry_after_us },
                LimitAction::Reject | LimitAction::Delay { .. },
            ) => KeyLimitResult::Refused { retry_after_s: retry_after_s(retry_after_us) },
        }
    }

    /// The hash of the key for a limit; `None`: the limit does not apply to the request.
    #[inline]
    pub fn key_of(
        &self,
        limit: &KeyLimit,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        scratch: &mut Vec<u8>,
    ) -> Option<u64> {
        match &limit.key {
            LimitKey::Address(prefix) => {
                let client = facts.client?;
                Some(self.hash.address(client.ip(), *prefix))
            }
            LimitKey::Text(template) => {
                scratch.clear();
                evaluation.render(template, scratch);
                (!scratch.is_empty()).then(|| self.hash.bytes(scratch))
            }
        }
    }

    /// The places of a connection under the limits per address. `None`: a limit is exceeded, and no place is taken.
    pub fn admit_connection(
        &self,
        limits: &[usize],
        peer: IpAddr,
        now: Clock,
    ) -> Option<ConnectionPlaces> {
        let mut held = ConnectionPlaces::default();
        for &index in limits {
            let limit = &self.snapshot.key_limits[index];
            let LimitKey::Address(prefix) = &limit.key else { continue };
            let key = self.hash.address(peer, *prefix);
            let table = &self.tables[index];
            let is_in = match &limit.measure {
                KeyMeasure::Rate(rate) => {
                    !matches!(table.admit(key, rate, now.now_us()), Admission::Refuse { .. })
                }
                KeyMeasure::AtATime(max) => {
                    let is_in = table.enter(key, *max);
                    held.0.extend(is_in.then(|| LimitPlace::Key(Arc::clone(table), key)));
                    is_in
                }
            };
            if !is_in {
                return None;
            }
        }
        Some(held)
    }
}
