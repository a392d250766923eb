//! Findings of checks, and the change that makes a check of a virtual server milder: one that blocks only logs, one that logs is
//! switched off.

use weir_api::changes::Change;
use weir_api::waf::WafCheckFinding;
use weir_config::snapshot::{VirtualServer, Waf};
use weir_exchange::shared::live::LiveTable;
use weir_waf::checks::{Action, Check};

use super::{applies_to, section};
use crate::firewall::ProposalThresholds;
use crate::firewall::check_findings::{CheckGroup, by_check};
use crate::firewall::line::Line;

/// The checks with findings in these lines.
pub(super) fn findings(
    (server, waf, table): (&VirtualServer, &Waf, &LiveTable),
    lines: &[&Line],
) -> Vec<WafCheckFinding> {
    let groups = by_check(lines).into_iter();
    groups
        .filter_map(|(name, group)| Some((Check::named(name)?, group)))
        .map(|(check, group)| of((server, waf, table), check, group))
        .collect()
}

fn of(
    (server, waf, table): (&VirtualServer, &Waf, &LiveTable),
    check: Check,
    group: CheckGroup,
) -> WafCheckFinding {
    let action = waf.checks.as_ref().map_or(Action::Off, |checks| checks.policy.action(check));
    let milder = match action {
        Action::Block => Some(Action::Alarm),
        Action::Alarm => Some(Action::Off),
        Action::Off => None,
    };
    let change = |to: Action| Change::Set {
        path: format!("{}/checks/actions/{}", section(server, waf), check.name()),
        value: to.name().into(),
    };
    WafCheckFinding {
        id: format!("{} {}", server.name, check.name()),
        virtual_server: server.name.to_string(),
        check: check.name().to_owned(),
        message: check.sentence().to_owned(),
        requests: group.requests,
        clients: group.clients.count(),
        decided: group.decided,
        suspicious: group.suspicious,
        action: action.name().to_owned(),
        is_proposed: milder.is_some() && group.is_legitimate(ProposalThresholds::default()),
        place: group.place,
        example: group.example,
        applies_to: applies_to(server, waf, table),
        change: milder.map(change),
    }
}
