//! Findings of checks that need no rules: each check with the numbers of requests and clients.

use std::collections::BTreeMap;

use super::ProposalThresholds;
use super::evidence::{has_attack, unmasked};
use super::group::Clients;
use super::line::Line;

/// Requests in which a check found something.
#[derive(Debug, Default, Clone)]
pub struct CheckGroup {
    /// The number of requests.
    pub requests: u64,
    /// The clients that sent them.
    pub clients: Clients,
    /// The number of these that the check decided to block, or would block in mode `block`.
    pub decided: u64,
    /// The number of these in which a rule found an attack, too.
    pub suspicious: u64,
    /// The part of a request in which it found something.
    pub place: String,
    /// A value in which it found something, unless all are secrets.
    pub example: Option<String>,
}

impl CheckGroup {
    /// Whether legitimate requests have the finding, as far as these thresholds tell.
    pub fn is_legitimate(&self, wanted: ProposalThresholds) -> bool {
        self.suspicious * 2 <= self.requests
            && self.requests >= wanted.requests
            && self.clients.count() >= wanted.clients
    }

    fn add(&mut self, line: &Line, name: &str) {
        self.requests += 1;
        self.clients.add(&line.client);
        self.decided += u64::from(line.check.as_deref() == Some(name));
        self.suspicious += u64::from(has_attack(line));
        for found in line.checks.iter().filter(|found| found.name == name) {
            self.example = self.example.take().or_else(|| unmasked(&found.data));
            if self.place.is_empty() {
                self.place = unmasked(&found.place).unwrap_or_default();
            }
        }
    }
}

/// The checks that found something in these lines, by name.
pub fn by_check<'a>(lines: &[&'a Line]) -> BTreeMap<&'a str, CheckGroup> {
    let mut groups: BTreeMap<&str, CheckGroup> = BTreeMap::new();
    for line in lines {
        let mut names: Vec<&str> = line.checks.iter().map(|found| &*found.name).collect();
        // A check may have found something in several places of a request.
        names.sort_unstable();
        names.dedup();
        for name in names {
            groups.entry(name).or_default().add(line, name);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::line::{LoggedCheck, LoggedRule};
    use super::*;

    fn line(client: u64, checks: &[(&str, &str)]) -> Line {
        let found = |&(name, data): &(&str, &str)| LoggedCheck {
            name: name.into(),
            action: "block".into(),
            place: "Host".into(),
            data: data.into(),
        };
        Line {
            client: format!("192.0.2.{client}:1"),
            target: "/".into(),
            check: Some("host_is_address".into()),
            checks: checks.iter().map(found).collect(),
            ..Line::default()
        }
    }

    #[test]
    fn requests_are_counted_once_per_check() {
        let mut attack = line(2, &[("host_is_address", "10.0.0.1")]);
        attack.rules.push(LoggedRule {
            id: 942_100,
            severity: "CRITICAL".into(),
            ..LoggedRule::default()
        });
        let lines = [
            line(1, &[("host_is_address", "***"), ("host_is_address", "::1"), ("method", "X")]),
            attack,
        ];
        let groups = by_check(&lines.each_ref());
        assert_eq!(groups.keys().copied().collect::<Vec<_>>(), ["host_is_address", "method"]);
        let host = &groups["host_is_address"];
        assert_eq!(
            (host.requests, host.clients.count(), host.decided, host.suspicious),
            (2, 2, 2, 1)
        );
        assert_eq!((&*host.place, host.example.as_deref()), ("Host", Some("::1")));
        assert_eq!((groups["method"].requests, groups["method"].decided), (1, 0));
        assert!(!host.is_legitimate(ProposalThresholds::default()));
        assert!(host.is_legitimate(ProposalThresholds { requests: 2, clients: 2 }));
    }

    #[test]
    fn attacks_are_not_legitimate() {
        let attack =
            LoggedRule { id: 942_100, severity: "CRITICAL".into(), ..LoggedRule::default() };
        let lines: Vec<Line> = (1..=20)
            .map(|client| Line { rules: vec![attack.clone()], ..line(client, &[("nul_byte", "")]) })
            .collect();
        let groups = by_check(&lines.iter().collect::<Vec<_>>());
        assert!(!groups["nul_byte"].is_legitimate(ProposalThresholds::default()));
    }
}
