//! The state of the packet path, as its thread reports it once a second. Metrics and status read it without waiting for
//! maps.

use std::sync::{Arc, Mutex, PoisonError};

use weir_packet::plan::MemberName;
use weir_packet::{Attachment, EndedFor, ReasonCount, Rung, Totals};

/// The place of the last report.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Option<Arc<Report>>>>);

impl Board {
    /// The latest report; `None`: there is no packet path.
    pub fn report(&self) -> Option<Arc<Report>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn tell(&self, report: Option<Report>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = report.map(Arc::new);
    }
}

/// State and counters of the packet path.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The name.
    pub name: String,
    /// The generation of the table that it applies.
    pub generation: u64,
    /// Flows of a former process continue in it.
    pub taken_over: bool,
    /// The interfaces.
    pub attachments: Vec<Attachment>,
    /// Per virtual server.
    pub servers: Vec<(String, Totals)>,
    /// Per member of each virtual server, with its flows.
    pub members: Vec<(MemberName, Totals, u64)>,
    /// Why packets were not forwarded.
    pub reasons: Vec<ReasonCount>,
    /// Flows at the last whole sweep.
    pub flows: u64,
    /// Flows that there may be.
    pub flows_max: u32,
    /// Flows that sweeps and commands have ended.
    pub ended: Ended,
    /// Resets that were sent.
    pub resets: u64,
    /// The last error; `None`: no error.
    pub failure: Option<String>,
}

/// Flows that were ended since weir started, by the reason.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ended([u64; 5]);

impl Ended {
    const REASONS: [(EndedFor, &'static str); 5] = [
        (EndedFor::Idle, "idle"),
        (EndedFor::Closed, "closed"),
        (EndedFor::MemberDown, "member_down"),
        (EndedFor::Removed, "removed"),
        (EndedFor::Command, "command"),
    ];

    pub(super) fn count(&mut self, why: EndedFor) {
        let places = Self::REASONS.iter().zip(&mut self.0);
        for ((reason, _), count) in places {
            *count += u64::from(*reason == why);
        }
    }

    /// Each reason, and how many flows.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::REASONS.iter().zip(self.0).map(|((_, name), count)| (*name, count))
    }
}

impl Report {
    /// `xdp on eth0, tcx on eth1`; interfaces without one are left out.
    pub fn rungs(&self) -> String {
        rungs(&self.attachments)
    }
}

/// Packets out of this interface are sent by the slower path.
const SENDS_BY_TCX: &str = " (tcx out of it)";

pub(super) fn rungs(attachments: &[Attachment]) -> String {
    let has = |it: &Attachment| {
        let sends = if it.rung == Some(Rung::Xdp) && !it.sends_for_xdp { SENDS_BY_TCX } else { "" };
        Some(format!("{} on {}{sends}", it.rung?.name(), it.interface))
    };
    attachments.iter().filter_map(has).collect::<Vec<_>>().join(", ")
}
