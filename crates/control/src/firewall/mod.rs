//! Recent findings of the web application firewall, and exclusions proposed from findings: for the admin API and for
//! `weir waf tune`.

pub mod check_findings;
pub mod evidence;
pub mod exclusions;
pub mod finding;
pub mod group;
pub mod line;
pub mod merging;
pub mod names;
pub mod places;
pub mod proposal;
pub mod recent;

use evidence::Evidence;
use exclusions::Exclusions;
use line::Line;

/// Maximum number of passes over the lines.
pub const ROUNDS_MAX: usize = 8;

/// Thresholds for proposing exclusions.
#[derive(Debug, Clone, Copy)]
pub struct ProposalThresholds {
    /// Minimum number of requests with the finding.
    pub requests: u64,
    /// Minimum number of clients that sent them.
    pub clients: usize,
}

impl Default for ProposalThresholds {
    fn default() -> Self {
        Self { requests: 10, clients: 3 }
    }
}

/// The evidence in these lines, and the exclusions that it justifies. A finding that an exclusion removes must not make other
/// findings suspicious. So the lines are read again until no exclusion is added.
pub fn propose(lines: &[&Line], wanted: ProposalThresholds) -> (Evidence, Exclusions) {
    let mut exclusions = Exclusions::default();
    let mut evidence = Evidence::default();
    for _ in 0..ROUNDS_MAX {
        evidence = Evidence::default();
        for line in lines {
            evidence.add(line, &exclusions);
        }
        let more = proposal::exclusions(&evidence, wanted);
        let is_done = more.all.len() == exclusions.all.len();
        exclusions = more;
        if is_done {
            break;
        }
    }
    (evidence, exclusions)
}
