//! Log lines that are being lost: a problem while it lasts. The metrics keep the totals.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::time::{monotonic_ms, rfc3339, unix_ms};
use crate::wording::Counted;

/// Lines are being lost until none was lost for this long.
const LOSS_LASTS_MS: u64 = 5 * 60 * 1_000;

/// The logs, in the order of [`LostLines::look`].
const LOGS: [&str; 3] = ["access log line", "WAF log line", "audit log line"];

/// What was lost of each log.
#[derive(Debug, Default)]
pub(crate) struct LostLines(Mutex<[Loss; LOGS.len()]>);

/// The losses of one log. They are one loss as long as no pause between them reaches [`LOSS_LASTS_MS`].
#[derive(Debug, Default, Clone, Copy)]
struct Loss {
    /// The total so far.
    seen: u64,
    /// The total before this loss.
    before: u64,
    began_unix_ms: u64,
    /// When the last line was seen to be lost, by the monotonic clock; `None`: none is being lost.
    last_ms: Option<u64>,
}

/// Lines of one log that are being lost: `20 access log lines lost since 2026-11-29T10:00:00.000Z`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Losing {
    log: &'static str,
    lines: u64,
    since_unix_ms: u64,
}

impl fmt::Display for Losing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = Counted(self.lines, self.log);
        write!(formatter, "{lines} lost since {}", rfc3339(self.since_unix_ms))
    }
}

impl LostLines {
    /// Looks at the lines of each log that were lost since the start (access log, WAF log, audit log), and says which are
    /// being lost.
    pub fn look(&self, totals: [u64; LOGS.len()]) -> Vec<Losing> {
        self.look_at(totals, monotonic_ms(), unix_ms())
    }

    fn look_at(&self, totals: [u64; LOGS.len()], now_ms: u64, now_unix_ms: u64) -> Vec<Losing> {
        let mut losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = losses.iter_mut().zip(totals).zip(LOGS);
        each.filter_map(|((loss, total), log)| {
            loss.look_at(total, now_ms, now_unix_ms);
            let lines = total.saturating_sub(loss.before);
            loss.last_ms.map(|_| Losing { log, lines, since_unix_ms: loss.began_unix_ms })
        })
        .collect()
    }
}

impl Loss {
    fn look_at(&mut self, total: u64, now_ms: u64, now_unix_ms: u64) {
        if self.last_ms.is_some_and(|last| now_ms.saturating_sub(last) >= LOSS_LASTS_MS) {
            self.last_ms = None;
        }
        if total == self.seen {
            return;
        }
        if self.last_ms.is_none() {
            (self.before, self.began_unix_ms) = (self.seen, now_unix_ms);
        }
        (self.seen, self.last_ms) = (total, Some(now_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_while_it_lasts() {
        let lost = LostLines::default();
        let look = |access, audit, now_ms| {
            let found = lost.look_at([access, 0, audit], now_ms, 1_000_000 + now_ms);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(look(0, 0, 0), none);
        let (first, both) = (
            "2 access log lines lost since 1970-01-01T00:16:41.000Z",
            "3 access log lines lost since 1970-01-01T00:16:41.000Z",
        );
        assert_eq!(look(2, 0, 1_000), [first]);
        assert_eq!(look(2, 0, LOSS_LASTS_MS), [first]);
        // It goes on before it has ended.
        let audit = "1 audit log line lost since 1970-01-01T00:21:40.500Z";
        assert_eq!(look(3, 1, LOSS_LASTS_MS + 500), [both, audit]);
        assert_eq!(look(3, 1, 2 * LOSS_LASTS_MS + 499), [both, audit]);
        assert_eq!(look(3, 1, 2 * LOSS_LASTS_MS + 500), none);
        assert_eq!(look(3, 1, 9 * LOSS_LASTS_MS), none);
        // A later loss is another one.
        let later = "1 access log line lost since 1970-01-01T01:06:40.000Z";
        assert_eq!(look(4, 1, 10 * LOSS_LASTS_MS), [later]);
    }
}
