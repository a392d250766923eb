//! Findings of checks, and the change that makes a check of a virtual server milder: one that blocks only logs, one that logs is
//! switched off.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_config::snapshot::{VirtualServer, Waf};
use weir_exchange::shared::live::LiveTable;
use weir_waf::checks::{Action, Check};

use super::{applies_to, section};
use crate::firewall::Wanted;
use crate::firewall::checked::{CheckGroup, by_check};
use crate::firewall::line::Line;

/// A check with findings in requests to a virtual server.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WafCheckFinding")]
pub(super) struct CheckFindings {
    /// The identifier in the list.
    id: String,
    virtual_server: String,
    /// The name of the check.
    check: String,
    /// What a finding means.
    message: &'static str,
    /// The part of a request in which it found something.
    place: String,
    /// A matched value, unless it is a secret.
    example: Option<String>,
    /// The number of recent requests with the finding.
    pub(super) requests: u64,
    /// The number of clients that sent them: at most 64 are counted.
    clients: usize,
    /// The number of these requests that the check decided to block, or would block in mode `block`.
    decided: u64,
    /// The number of these requests in which a rule found an attack, too.
    suspicious: u64,
    /// The action in the configuration: `block`, `alarm` or `off`.
    action: &'static str,
    /// Whether the numbers of requests and clients say that legitimate requests have it.
    is_proposed: bool,
    /// The virtual servers that the change applies to: several, if they share a profile.
    applies_to: Vec<String>,
    /// The change that makes the check milder, for `POST /v1/changes`: `alarm` instead of `block`, `off` instead of `alarm`;
    /// `null`: it is off.
    change: Option<Value>,
}

/// The checks with findings in these lines.
pub(super) fn findings(
    (server, waf, table): (&VirtualServer, &Waf, &LiveTable),
    lines: &[&Line],
) -> Vec<CheckFindings> {
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
) -> CheckFindings {
    let action = waf.checks.as_ref().map_or(Action::Off, |checks| checks.policy.action(check));
    let milder = match action {
        Action::Block => Some(Action::Alarm),
        Action::Alarm => Some(Action::Off),
        Action::Off => None,
    };
    let change = |to: Action| {
        json!({
            "op": "set",
            "path": format!("{}/checks/actions/{}", section(server, waf), check.name()),
            "value": to.name(),
        })
    };
    CheckFindings {
        id: format!("{} {}", server.name, check.name()),
        virtual_server: server.name.to_string(),
        check: check.name().to_owned(),
        message: check.sentence(),
        requests: group.requests,
        clients: group.clients.count(),
        decided: group.decided,
        suspicious: group.suspicious,
        action: action.name(),
        is_proposed: milder.is_some() && group.is_legitimate(Wanted::default()),
        place: group.place,
        example: group.example,
        applies_to: applies_to(server, waf, table),
        change: milder.map(change),
    }
}
