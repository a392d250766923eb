//! The state of the packet path, which its thread reports once a second. Metrics and status read the report without waiting
//! for maps.

use std::sync::{Arc, Mutex, PoisonError};

use weir_packet::plan::MemberName;
use weir_packet::{Attachment, EndedFor, ReasonCount, Rung, Totals};

/// The latest report, shared by the thread and its readers.
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
    /// The name of the packet path.
    pub name: String,
    /// The generation of the table in use.
    pub generation: u64,
    /// Whether flows of a former process continue in the packet path.
    pub taken_over: bool,
    /// The attachments to interfaces.
    pub attachments: Vec<Attachment>,
    /// The counters of each virtual server.
    pub servers: Vec<(String, Totals)>,
    /// The counters of each member of each virtual server, with the number of flows.
    pub members: Vec<(MemberName, Totals, u64)>,
    /// The numbers of packets that were not forwarded, by reason.
    pub reasons: Vec<ReasonCount>,
    /// The number of flows at the last complete sweep.
    pub flows: u64,
    /// Maximum number of flows.
    pub flows_max: u32,
    /// Flows that were ended by sweeps and commands.
    pub ended: EndedFlowCounts,
    /// The number of sent TCP resets.
    pub resets: u64,
    /// The last error; `None`: no error.
    pub failure: Option<String>,
}

/// The numbers of flows that weir has ended since its start, by reason.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndedFlowCounts([u64; 5]);

impl EndedFlowCounts {
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

    /// Each reason with the number of its flows.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::REASONS.iter().zip(self.0).map(|((_, name), count)| (*name, count))
    }
}

impl Report {
    /// The attachments as text: `xdp on eth0, tcx on eth1`. Interfaces without an attachment are omitted.
    pub fn rungs(&self) -> String {
        rungs(&self.attachments)
    }
}

/// Packets leave by this interface on the slower path.
const SENDS_BY_TCX: &str = " (tcx out of it)";

pub(super) fn rungs(attachments: &[Attachment]) -> String {
    let has = |it: &Attachment| {
        let sends = if it.rung == Some(Rung::Xdp) && !it.sends_for_xdp { SENDS_BY_TCX } else { "" };
        Some(format!("{} on {}{sends}", it.rung?.name(), it.interface))
    };
    attachments.iter().filter_map(has).collect::<Vec<_>>().join(", ")
}
