//! Records agree with what has happened, and what is decided once more agrees with the records.

use weir_api::explanation::{Explanation, RuleVerdict};
use weir_exchange::local::pool::Preference;
use weir_exchange::shared::live::LiveTable;
use weir_explain::{Moment, explain_again};
use weir_telemetry::records::record::{Notes, RecordedVerdict};

use crate::Tally;
use crate::real::{Ended, Really};

/// Whether the record of a request says what has happened, and explains it. `is_watched`: whether the live state is compared
/// before and after.
pub fn compare(
    live: &LiveTable,
    really: &Really,
    (moment, is_watched): (Moment, bool),
    tally: &mut Tally,
) -> Result<(), String> {
    let Some(notes) = really.notes.as_deref() else { return Ok(()) };
    tally.recorded += 1;
    facts(notes, really)?;
    let state = || if is_watched { format!("{:?}", live.pools) } else { String::new() };
    let before = state();
    let again = explain_again(live, notes, moment).map_err(|why| why.to_string())?;
    if before != state() {
        return Err("it changes the live state".into());
    }
    rules(live, notes, &again, tally)?;
    firewall(notes, &again)
}

/// The record against what has happened.
fn facts(notes: &Notes, really: &Really) -> Result<(), String> {
    let followed: Vec<u32> = notes.decided.iter().flat_map(|it| it.followed.clone()).collect();
    if !really.followed.is_empty() && followed != really.followed {
        return Err(format!("recorded rules {followed:?}, really {:?}", really.followed));
    }
    let found = notes.firewall.as_ref().map(|it| (it.outcome.to_owned(), it.score));
    if found != really.firewall {
        return Err(format!("recorded firewall {found:?}, really {:?}", really.firewall));
    }
    let Ended::Member(at) = &really.ended else { return Ok(()) };
    let sought = notes.sought.last().ok_or("no pool was recorded")?;
    // Where nobody is up, another pool stands in for it, which is found when a member is.
    if *sought.pool != *at.pool {
        return match sought.candidates.iter().any(|it| it.is_eligible) {
            true => Err(format!("recorded pool {}, really {}", sought.pool, at.pool)),
            false => Ok(()),
        };
    }
    let candidate = sought.candidates.iter().find(|it| *it.member == *at.member);
    let candidate = candidate.ok_or_else(|| format!("{} is no candidate", at.member))?;
    let may_be_drained = matches!(sought.preference, Preference::Member(_));
    match candidate.is_eligible || may_be_drained {
        true => Ok(()),
        false => Err(format!("{} was not eligible: {candidate:?}", at.member)),
    }
}

/// Rules that are followed again, against those that were followed.
fn rules(
    live: &LiveTable,
    notes: &Notes,
    again: &Explanation,
    tally: &mut Tally,
) -> Result<(), String> {
    let is_limited = |verdict: &RecordedVerdict| {
        matches!(verdict, RecordedVerdict::Limited(_) | RecordedVerdict::LimitClosed)
    };
    for (decided, considered) in notes.decided.iter().zip(&again.virtual_servers) {
        if is_limited(&decided.verdict) {
            // No limit is used when it is decided again.
            return Ok(());
        }
        let names = decided.followed.iter().map(|rule| {
            let name = &live.snapshot.rules[*rule as usize];
            format!("{}/{}", name.policy, name.rule)
        });
        let then: Vec<String> = names.collect();
        let followed = considered.policies.iter().flat_map(|policy| {
            let rules = policy.rules.iter().filter(|it| it.verdict == RuleVerdict::Followed);
            rules.map(move |rule| format!("{}/{}", policy.name, rule.name))
        });
        let now: Vec<String> = followed.collect();
        if then != now {
            return Err(format!("followed {then:?}, and again {now:?}"));
        }
        tally.with_rules += usize::from(!then.is_empty());
    }
    let (then, now) = (notes.decided.len(), again.virtual_servers.len());
    match then == now || notes.decided.is_empty() {
        true => Ok(()),
        false => Err(format!("{then} virtual servers decided, and again {now}")),
    }
}

fn firewall(notes: &Notes, again: &Explanation) -> Result<(), String> {
    let limited = notes.decided.iter().any(|it| {
        !matches!(it.verdict, RecordedVerdict::Forward { .. } | RecordedVerdict::HandedOver(_))
    });
    if notes.has_body || limited {
        return Ok(());
    }
    let then = notes.firewall.as_ref().map(|it| (it.outcome.to_owned(), it.score));
    let now = again.firewall.as_ref().map(|it| (it.outcome.clone(), it.score));
    match then == now {
        true => Ok(()),
        false => Err(format!("the firewall said {then:?}, and again {now:?}")),
    }
}
