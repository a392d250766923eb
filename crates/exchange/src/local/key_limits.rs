//! Limits per key, of virtual servers and of rules: counters and held places.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_config::snapshot::{Exceed, KeyLimit, KeyMeasure, LimitKey, Snapshot};
use weir_core::clock::Clock;
use weir_core::expression::{Evaluation, Facts};
use weir_core::keyed_hash::KeyedHash;
use weir_core::limit::{Admission, retry_after_s};

use crate::shared::live::{LiveTable, LiveVirtualServer};
use crate::shared::shared_table::KeyedLimit;

/// Retry-After guess for limits on open requests.
pub const RETRY_AT_A_TIME_S: u64 = 1;

/// A place under a limit on requests, or connections, at a time. It is given back when this is dropped, so that
/// whatever ends a request, be it a panic, gives it back.
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

/// Places that a connection has. It may outlive the table that it came in by, so it knows its limits itself.
#[derive(Debug, Default)]
pub struct ConnectionPlaces(Vec<LimitPlace>);

impl ConnectionPlaces {
    /// Takes further ones.
    pub fn take(&mut self, held: &mut Vec<LimitPlace>) {
        self.0.append(held);
    }
}

/// The result of counting one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// It passes.
    Passes,
    /// It has to wait until then.
    Delayed(u64),
    /// It is one too many.
    Refused {
        /// When another would pass, in whole seconds.
        retry_after_s: u64,
    },
    /// It is one too many, and its connection closes.
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

    /// Counts one more, and adds the place that it holds to `held`.
    pub fn count(
        &self,
        index: usize,
        facts: &Facts<'_>,
        evaluation: &mut Evaluation<'_>,
        now: Clock,
        (scratch, held): (&mut Vec<u8>, &mut Vec<LimitPlace>),
    ) -> Limited {
        let limit: &KeyLimit = &self.snapshot.key_limits[index];
        let Some(key) = self.key_of(limit, facts, evaluation, scratch) else {
            return Limited::Passes;
        };
        let table = &self.tables[index];
        let rate = match &limit.measure {
            KeyMeasure::Rate(rate) => rate,
            KeyMeasure::AtATime(max) if table.enter(key, *max) => {
                held.push(LimitPlace::Key(Arc::clone(table), key));
                return Limited::Passes;
            }
            KeyMeasure::AtATime(_) if limit.exceed == Exceed::Close => return Limited::Closed,
            KeyMeasure::AtATime(_) => {
                return Limited::Refused { retry_after_s: RETRY_AT_A_TIME_S };
            }
        };
        match (table.admit(key, rate, now.now_us()), limit.exceed) {
            (Admission::Pass { .. }, _) => Limited::Passes,
            (Admission::Delay { until_us, .. }, _) => Limited::Delayed(until_us),
            (Admission::Refuse { .. }, Exceed::Close) => Limited::Closed,
            (Admission::Refuse { retry_after_us }, Exceed::Reject | Exceed::Delay { .. }) => {
                Limited::Refused { retry_after_s: retry_after_s(retry_after_us) }
            }
        }
    }

    /// The hash of the key that a request counts by; `None`: it is not limited.
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

    /// Whether these limits per address allow a connection, and the places that it then holds. If not, it holds none.
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
