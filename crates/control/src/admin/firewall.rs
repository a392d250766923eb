//! Recent findings of the web application firewall, and exclusions from its rules. Secrets of requests are masked, as in its
//! log.

use std::collections::{BTreeMap, HashMap};

use axum::http::StatusCode;
use serde_json::json;
use weir_api::changes::Change;
use weir_api::page::Page;
use weir_api::waf::{
    CheckFinding, FirewallEvent, FoundValue, RuleFinding, WafFinding, WafFindings,
};
use weir_config::snapshot::{Role, VirtualServer, Waf};
use weir_exchange::shared::live::LiveTable;
use weir_waf::exclusion::Exclusion;

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter, Query};
use super::page::{AFTER, LIMIT, page};
use super::route::{HandlerResult, Route};
use crate::firewall::group::Group;
use crate::firewall::line::{self, Line, LoggedCheck, LoggedRule, decoded};
use crate::firewall::{ProposalThresholds, propose};

/// Maximum number of listed findings.
const FINDINGS_MAX: usize = 200;

/// Maximum size of the readable part of an exclusion's name, in bytes.
const NAME_BYTES_MAX: usize = 40;

/// Maximum number of listed virtual servers per exclusion.
const SERVERS_TOLD_MAX: usize = 20;

/// The largest id of a rule.
const RULE_MAX: u64 = 4_000_000_000;

mod checks;

const VIRTUAL_SERVER: Parameter = Parameter {
    name: "virtual_server",
    kind: Kind::Text,
    summary: "Only requests to this virtual server",
};

const RULE: Parameter = Parameter {
    name: "rule",
    kind: Kind::Number { max: RULE_MAX, default: RULE_MAX },
    summary: "Only requests in which this rule found something",
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/waf/events",
            "listWafEvents",
            "The last requests with findings of the firewall, the newest first",
            events,
        )
        .role(Role::Operate)
        .query(&[LIMIT, AFTER, VIRTUAL_SERVER, RULE])
        .statuses(&[StatusCode::NOT_FOUND])
        .answers::<Page<FirewallEvent>>(),
        Route::get(
            "/v1/waf/findings",
            "listWafFindings",
            "The same findings by rule, variable and path, and by check, each with the change that excludes it",
            findings,
        )
        .role(Role::Operate)
        .query(&[VIRTUAL_SERVER])
        .answers::<WafFindings>(),
    ]
}

fn event(number: u64, line: Line) -> FirewallEvent {
    FirewallEvent {
        number,
        time: line.time,
        request_id: line.request_id,
        client: line.client,
        virtual_server: line.virtual_server,
        method: line.method,
        host: decoded(&line.host),
        target: decoded(&line.target),
        mode: line.mode,
        outcome: line.outcome,
        status: Some(line.status).filter(|status| *status != 0),
        rule: Some(line.rule).filter(|rule| *rule != 0),
        check: line.check,
        limit: line.limit,
        score: line.score,
        threshold: Some(line.threshold).filter(|threshold| *threshold != 0),
        rules: line.rules.into_iter().map(rule_finding).collect(),
        checks: line.checks.into_iter().map(check_finding).collect(),
    }
}

fn rule_finding(found: LoggedRule) -> RuleFinding {
    let value = |value: line::Value| FoundValue {
        variable: decoded(&value.variable),
        value: decoded(&value.value),
    };
    RuleFinding {
        id: found.id,
        message: decoded(&found.message),
        data: decoded(&found.data),
        severity: found.severity,
        values: found.values.into_iter().map(value).collect(),
    }
}

fn check_finding(LoggedCheck { name, action, place, data }: LoggedCheck) -> CheckFinding {
    CheckFinding { name, action, place: decoded(&place), data: decoded(&data) }
}

fn is_asked_for(query: &Query, line: &Line) -> bool {
    let server = query.text(VIRTUAL_SERVER.name);
    let rule = query.text(RULE.name).and_then(|rule| rule.parse::<u64>().ok());
    server.is_none_or(|server| line.virtual_server == server)
        && rule.is_none_or(|rule| line.rules.iter().any(|found| found.id == rule))
}

fn events(ask: &Ask) -> HandlerResult {
    let lines = ask.context.observed.admin.findings.lines();
    let wanted = lines.into_iter().filter(|(_, line)| is_asked_for(&ask.query, line));
    let page = page(
        &ask.query,
        wanted,
        |(number, _)| number.to_string(),
        |(number, line)| event(number, line),
    )?;
    Answer::json(&page)
}

fn findings(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let (lines, table) = (observed.admin.findings.lines(), observed.table());
    let mut by_server: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for (_, line) in lines.iter().filter(|(_, line)| is_asked_for(&ask.query, line)) {
        by_server.entry(&line.virtual_server).or_default().push(line);
    }
    let servers: HashMap<&str, &VirtualServer> =
        table.snapshot.virtual_servers.iter().map(|server| (&*server.name, server)).collect();
    let (mut items, mut checks, mut unnamed) = (Vec::new(), Vec::new(), 0);
    for (name, lines) in by_server {
        // A virtual server that was removed needs no exclusion.
        let Some((server, waf)) = servers.get(name).and_then(|it| Some((*it, it.waf.as_ref()?)))
        else {
            continue;
        };
        checks.extend(checks::findings((server, waf, &table), &lines));
        let (evidence, proposed) = propose(&lines, ProposalThresholds::default());
        unnamed += evidence.unnamed;
        for ((rule, variable), places) in evidence.groups {
            for (place, group) in places {
                let is_proposed = proposed.has(rule, &variable, &place);
                let exclusion = Exclusion { rule, variable: variable.clone(), place };
                items.push(finding((server, waf, &table), exclusion, group, is_proposed));
            }
        }
    }
    items.sort_by(|one, other| (other.requests, &one.id).cmp(&(one.requests, &other.id)));
    checks.sort_by_key(|it| std::cmp::Reverse(it.requests));
    let over = |count: usize| count.saturating_sub(FINDINGS_MAX);
    let left_out = over(items.len()) + over(checks.len());
    items.truncate(FINDINGS_MAX);
    checks.truncate(FINDINGS_MAX);
    let version = observed.changes.history().version();
    Answer::json(&WafFindings { items, checks, left_out, unnamed, version })
}

fn finding(
    (server, waf, table): (&VirtualServer, &Waf, &LiveTable),
    exclusion: Exclusion,
    group: Group,
    is_proposed: bool,
) -> WafFinding {
    let is_same = |it: &Exclusion| {
        it.rule == exclusion.rule
            && it.variable == exclusion.variable
            && it.place.has(&exclusion.place)
    };
    let name = name_of(&exclusion);
    WafFinding {
        id: format!("{} {name}", server.name),
        virtual_server: server.name.to_string(),
        rule: exclusion.rule,
        message: group.message,
        variable: exclusion.variable.clone(),
        path: exclusion.place.to_string(),
        requests: group.requests,
        clients: group.clients.count(),
        suspicious: group.suspicious,
        score: group.score,
        example: group.example,
        is_proposed,
        is_excluded: waf.exclusions.iter().any(is_same),
        applies_to: applies_to(server, waf, table),
        change: change(server, waf, &name, &exclusion),
    }
}

/// The change that makes an exclusion, in the profile or the virtual server that has the firewall's settings.
fn change(server: &VirtualServer, waf: &Waf, name: &str, exclusion: &Exclusion) -> Change {
    Change::Set {
        path: format!("{}/exclusions/{name}", section(server, waf)),
        value: json!({
            "rule": exclusion.rule,
            "variable": exclusion.variable,
            "path": exclusion.place.to_string(),
        }),
    }
}

/// The path of the firewall's settings.
fn section(server: &VirtualServer, waf: &Waf) -> String {
    match &waf.profile {
        Some(profile) => format!("/profiles/waf/{}", escaped(profile)),
        None => format!("/virtual_servers/{}/waf", escaped(&server.name)),
    }
}

/// A name in a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn applies_to(server: &VirtualServer, waf: &Waf, table: &LiveTable) -> Vec<String> {
    let Some(profile) = &waf.profile else { return vec![server.name.to_string()] };
    let has_it = |other: &&VirtualServer| {
        other.waf.as_ref().is_some_and(|waf| waf.profile.as_ref() == Some(profile))
    };
    let all = table.snapshot.virtual_servers.iter().filter(has_it);
    all.take(SERVERS_TOLD_MAX).map(|server| server.name.to_string()).collect()
}

/// A unique name for this exclusion: readable text and a hash.
fn name_of(Exclusion { rule, variable, place }: &Exclusion) -> String {
    let whole = format!("{rule}-{variable}-{place}");
    let is_plain = |char: char| char.is_ascii_alphanumeric();
    let words = whole.split(|char| !is_plain(char)).filter(|word| !word.is_empty());
    let mut readable = words.collect::<Vec<_>>().join("-");
    readable.truncate(NAME_BYTES_MAX);
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, whole.as_bytes());
    format!("{readable}-{}", data_encoding::HEXLOWER.encode(&hash.as_ref()[..4]))
}

#[cfg(test)]
mod tests;
