//! Losses, of which an operator should know: a problem while they last. The metrics keep the totals.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::time::{monotonic_ms, rfc3339, unix_ms};
use crate::wording::CountText;

/// Something is being lost until nothing was lost for this long.
const LOSS_LASTS_MS: u64 = 5 * 60 * 1_000;

/// What may be lost, and what becomes of it then. In the order of [`Totals::each`].
const KINDS: [(&str, &str); 4] = [
    ("access log line", "lost"),
    ("WAF log line", "lost"),
    ("audit log line", "lost"),
    ("long WAF inspection", "without a verdict after a panic"),
];

/// What was lost since the start.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Lines of the access log.
    pub access_lines: u64,
    /// Lines of the firewall's log.
    pub waf_lines: u64,
    /// Lines of the audit log.
    pub audit_lines: u64,
    /// Long inspections of the firewall that have panicked.
    pub inspections_lost: u64,
}

impl Totals {
    fn each(&self) -> [u64; KINDS.len()] {
        let Self { access_lines, waf_lines, audit_lines, inspections_lost } = *self;
        [access_lines, waf_lines, audit_lines, inspections_lost]
    }
}

/// What was lost of each kind.
#[derive(Debug, Default)]
pub(crate) struct Losses(Mutex<[Loss; KINDS.len()]>);

/// The losses of one kind. They are one loss as long as no pause between them reaches [`LOSS_LASTS_MS`].
#[derive(Debug, Default, Clone, Copy)]
struct Loss {
    /// The total so far.
    seen: u64,
    /// The total before this loss.
    before: u64,
    began_unix_ms: u64,
    /// When something was last seen to be lost, by the monotonic clock; `None`: nothing is being lost.
    last_ms: Option<u64>,
}

/// What is being lost: `20 access log lines lost since 2026-11-29T10:00:00.000Z`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LossText {
    kind: (&'static str, &'static str),
    count: u64,
    since_unix_ms: u64,
}

impl fmt::Display for LossText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, becomes) = self.kind;
        let lost = CountText(self.count, noun);
        write!(formatter, "{lost} {becomes} since {}", rfc3339(self.since_unix_ms))
    }
}

impl Losses {
    /// Looks at what was lost since the start, and says what is being lost.
    pub fn look(&self, totals: &Totals) -> Vec<LossText> {
        self.look_at(totals, monotonic_ms(), unix_ms())
    }

    fn look_at(&self, totals: &Totals, now_ms: u64, now_unix_ms: u64) -> Vec<LossText> {
        let mut losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = losses.iter_mut().zip(totals.each()).zip(KINDS);
        each.filter_map(|((loss, total), kind)| {
            loss.look_at(total, now_ms, now_unix_ms);
            let count = total.saturating_sub(loss.before);
            loss.last_ms.map(|_| LossText { kind, count, since_unix_ms: loss.began_unix_ms })
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
        let losses = Losses::default();
        let look = |access_lines, audit_lines, now_ms| {
            let totals = Totals { access_lines, audit_lines, ..Totals::default() };
            let found = losses.look_at(&totals, now_ms, 1_000_000 + now_ms);
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

    #[test]
    fn each_kind_is_told() {
        let losses = Losses::default();
        let told = |totals: Totals| -> Vec<String> {
            losses.look_at(&totals, 1, 0).iter().map(ToString::to_string).collect()
        };
        assert_eq!(told(Totals::default()), Vec::<String>::new());
        let all = Totals { access_lines: 2, waf_lines: 1, audit_lines: 1, inspections_lost: 1 };
        assert_eq!(
            told(all),
            [
                "2 access log lines lost since 1970-01-01T00:00:00.000Z",
                "1 WAF log line lost since 1970-01-01T00:00:00.000Z",
                "1 audit log line lost since 1970-01-01T00:00:00.000Z",
                "1 long WAF inspection without a verdict after a panic since 1970-01-01T00:00:00.000Z",
            ]
        );
    }
}
