//! The explanation of a recorded request. It contains the record and a second decision about the same request, which adds what
//! a record lacks: rules that did not match, and the values that conditions compared. The record is authoritative. Differences
//! and possible differences are listed.

use weir_api::explanation::{Explanation, RuleVerdict};
use weir_api::recorded::{RecordedRequest, RequestExplanation};
use weir_exchange::shared::live::LiveTable;
use weir_telemetry::records::record::{Notes, Record, RecordedVerdict};

use crate::recorded_request::recorded;
use crate::run::{Moment, explain_again};

/// Explains a recorded request.
pub fn explain_recorded(live: &LiveTable, record: &Record, moment: Moment) -> RequestExplanation {
    let told = recorded(record, &live.snapshot);
    let mut differences = Vec::new();
    let notes = record.notes.as_deref().filter(|notes| !notes.is_refused);
    let Some(notes) = notes else {
        let why = match record.notes {
            Some(_) => "it was refused before anything was decided about it",
            None => "it is no request of HTTP, or began before requests were recorded",
        };
        differences.push(why.into());
        return RequestExplanation { recorded: told, again: None, differences };
    };
    if told.is_of_other_configuration {
        differences.push(
            "the configuration, or an address that one of its names resolves to, has changed since: \
             the new decision uses the current rules"
                .into(),
        );
    }
    let again = match explain_again(live, notes, moment) {
        Ok(mut again) => {
            note_state(notes, &mut differences);
            note_rules(&told, &again, &mut differences);
            note_firewall(&told, &again, &mut differences);
            // Members are as they were recorded.
            again.balancing = None;
            Some(again)
        }
        Err(why) => {
            differences.push(format!("it cannot be decided again: {why}"));
            None
        }
    };
    RequestExplanation { recorded: told, again, differences }
}

/// Warnings about a second decision with another state.
fn note_state(notes: &Notes, differences: &mut Vec<String>) {
    for decided in &notes.decided {
        if let RecordedVerdict::Limited(_) | RecordedVerdict::LimitClosed = decided.verdict {
            let name = &decided.virtual_server;
            differences.push(format!(
                "a limit of {name} was used up then; the new decision ignores it, and shows rules that were not evaluated then"
            ));
        }
    }
    if notes.has_body {
        differences.push("its body was not kept: what depends on it is not decided again".into());
    }
}

/// Rules that were followed by only one of the two decisions.
fn note_rules(told: &RecordedRequest, again: &Explanation, differences: &mut Vec<String>) {
    for decided in &told.decided {
        let Some(then) = &decided.rules else { continue };
        let servers = again.virtual_servers.iter();
        let mut found = servers.filter(|it| it.virtual_server == decided.virtual_server);
        let Some(considered) = found.next() else {
            let name = &decided.virtual_server;
            differences.push(format!("virtual server {name} decided then, and would not now"));
            continue;
        };
        let followed = considered.policies.iter().flat_map(|policy| {
            let rules = policy.rules.iter().filter(|it| it.verdict == RuleVerdict::Followed);
            rules.map(move |rule| format!("{}/{}", policy.name, rule.name))
        });
        let now: Vec<String> = followed.collect();
        let only_then = then.iter().filter(|rule| !now.contains(rule));
        let only_now = now.iter().filter(|rule| !then.contains(rule));
        differences
            .extend(only_then.map(|rule| format!("rule {rule} was followed then, and is not now")));
        differences
            .extend(only_now.map(|rule| format!("rule {rule} was not followed then, and is now")));
        let pool_now = considered.pool.as_ref().map(|pool| format!("goes to pool {}", pool.name));
        let is_other = pool_now.as_ref().is_some_and(|now| {
            decided.verdict.starts_with("goes to pool ")
                && !(decided.verdict == *now || decided.verdict.starts_with(&format!("{now},")))
        });
        if is_other {
            differences.push(format!(
                "then it {}; now it {}",
                decided.verdict,
                pool_now.unwrap_or_default()
            ));
        }
    }
}

fn note_firewall(told: &RecordedRequest, again: &Explanation, differences: &mut Vec<String>) {
    if let (Some(then), Some(now)) = (&told.firewall, &again.firewall)
        && (then.outcome != now.outcome || then.score != now.score)
    {
        differences.push(format!(
            "the firewall said {} with score {} then, and {} with score {} now",
            then.outcome, then.score, now.outcome, now.score
        ));
    }
}
