//! Changes of the administrative state of members at run time.
//!
//! The state is a resource of its own, `…/members/ADDRESS/state`: counters of a member change all the time, so an
//! `ETag` of the member would never match. All workers use a new state from the next request on. It survives reloads,
//! and lasts until the process ends or the member is removed from its pool.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use axum::http::StatusCode;
use serde_json::json;
use weir_api::member_state::{
    MemberState, MemberStateChange, MemberStateChanged, MemberStates, MemberStatesChanged,
    WantedState,
};
use weir_config::snapshot::Role;
use weir_core::admin_state::AdminState;

use super::Context;
use super::answer::Answer;
use super::ask::Ask;
use super::peer::Caller;
use super::pools::FoundMember;
use super::problem::Problem;
use super::route::{HandlerResult, Route};
use crate::events::Level;
use crate::health::Judge;
use crate::last_members::LeftAlone;
use crate::member_state::{administrative_state, is_in_service};
use crate::status::source_of_state;

pub(super) fn routes() -> Vec<Route> {
    const CONFLICT: &[StatusCode] = &[StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED];
    const STATE: &str = "/v1/pools/{pool}/members/{member}/state";
    const OF_ALL: &str = "/v1/members/{member}/state";
    vec![
        Route::get(STATE, "getMemberState", "The administrative state of a member", state)
            .answers::<MemberState>(),
        Route::get(STATE, "setMemberState", "Sets the administrative state of a member", set)
            .put()
            .role(Role::Operate)
            .takes::<MemberStateChange>()
            .statuses(CONFLICT)
            .answers::<MemberStateChanged>(),
        Route::get(OF_ALL, "getMemberStates", "The state of a server in each of its pools", states)
            .answers::<MemberStates>(),
        Route::get(
            OF_ALL,
            "setMemberStates",
            "Sets the state of a server in all its pools",
            set_all,
        )
        .put()
        .role(Role::Operate)
        .takes::<MemberStateChange>()
        .statuses(CONFLICT)
        .answers::<MemberStatesChanged>(),
    ]
}

/// The state that a member gets in place of that in the configuration; `None`: that one.
fn override_of(wanted: WantedState) -> Option<AdminState> {
    match wanted {
        WantedState::Enabled => Some(AdminState::Enabled),
        WantedState::Drain => Some(AdminState::Drain),
        WantedState::Disabled => Some(AdminState::Disabled),
        WantedState::Configured => None,
    }
}

fn shown(found: &FoundMember) -> MemberState {
    MemberState {
        pool: found.pool().name.to_string(),
        member: found.live().label.to_string(),
        state: administrative_state(found.configured(), found.live()).as_str().to_owned(),
        source: source_of_state(found.live()).to_owned(),
    }
}

fn find(ask: &Ask) -> Result<FoundMember, Problem> {
    FoundMember::find(ask.context.observed.table(), ask.name("pool"), ask.name("member"))
}

fn find_all(ask: &Ask) -> Result<Vec<FoundMember>, Problem> {
    FoundMember::find_all(&ask.context.observed.table(), ask.name("member"))
}

fn state_of(found: &FoundMember) -> HandlerResult {
    Answer::json(&shown(found))
}

fn states_of(found: &[FoundMember]) -> HandlerResult {
    Answer::json(&MemberStates { members: found.iter().map(shown).collect() })
}

fn state(ask: &Ask) -> HandlerResult {
    state_of(&find(ask)?)
}

fn states(ask: &Ask) -> HandlerResult {
    states_of(&find_all(ask)?)
}

/// The description for the audit log.
fn record(changed: &MemberStateChanged) -> serde_json::Value {
    let mut record = json!({
        "pool": changed.pool,
        "member": changed.member.address,
        "state": changed.member.administrative,
        "before": changed.before,
    });
    if !changed.changed {
        record["unchanged"] = true.into();
    }
    record
}

fn set(ask: &Ask) -> HandlerResult {
    let MemberStateChange { state: wanted, last } = ask.document()?;
    let _alone = ask.context.observed.admin.change();
    let found = find(ask)?;
    ask.must_match(&state_of(&found)?.tagged(true))?;
    must_leave_some(ask, std::slice::from_ref(&found), wanted, last)?;
    let changed = found.set_state(wanted, &ask.caller, &ask.context);
    Ok(Answer::json(&changed)?.change(record(&changed)))
}

fn set_all(ask: &Ask) -> HandlerResult {
    let MemberStateChange { state: wanted, last } = ask.document()?;
    let _alone = ask.context.observed.admin.change();
    let found = find_all(ask)?;
    ask.must_match(&states_of(&found)?.tagged(true))?;
    must_leave_some(ask, &found, wanted, last)?;
    let set = |found: &FoundMember| found.set_state(wanted, &ask.caller, &ask.context);
    let members: Vec<MemberStateChanged> = found.iter().map(set).collect();
    let record = members.iter().map(record).collect();
    Ok(Answer::json(&MemberStatesChanged { members })?.change(record))
}

/// Refuses a change that leaves a pool without a member for new requests, unless `last` says that this is meant. It is
/// decided on the state at this moment: whoever asks may have looked at an older one.
fn must_leave_some(
    ask: &Ask,
    found: &[FoundMember],
    wanted: WantedState,
    last: bool,
) -> Result<(), Problem> {
    if last {
        return Ok(());
    }
    let judge = ask.context.observed.judge();
    let left_alone = found.iter().filter(|it| it.is_taken_as_last(wanted, &judge));
    match LeftAlone::of(left_alone.map(|it| &*it.pool().name)) {
        None => Ok(()),
        Some(pools) => Err(Problem::takes_last(pools)),
    }
}

impl FoundMember {
    /// Whether the change takes the last member of its pool that takes new requests, and no fallback takes them instead.
    fn is_taken_as_last(&self, wanted: WantedState, judge: &Judge) -> bool {
        let after = override_of(wanted).unwrap_or(self.configured().state);
        after != AdminState::Enabled
            && is_in_service(self.configured(), self.live())
            && self.members_in_service() == 1
            && !judge.has_substitute(self.place())
    }

    fn set_state(&self, wanted: WantedState, by: &Caller, context: &Context) -> MemberStateChanged {
        let before = administrative_state(self.configured(), self.live());
        let wanted = override_of(wanted);
        // A state that the member has already needs no override: it would hide a later change of the configuration.
        let is_so = wanted == Some(before);
        let changed = !is_so && self.live().set_state_override(wanted) != wanted;
        let members_in_service = self.members_in_service();
        let fallback_serves =
            members_in_service == 0 && context.observed.judge().has_substitute(self.place());
        if changed {
            let told = MemberChangeText {
                before,
                now: administrative_state(self.configured(), self.live()),
                of_file: wanted.is_none(),
                by,
                requests: self.live().occupancy.load(Relaxed),
                members_in_service,
                fallback_serves,
            };
            let subject = format_args!("member {}/{}", self.pool().name, self.live().label);
            context.events.tell(told.level(), &subject, &told);
        }
        MemberStateChanged {
            pool: self.pool().name.to_string(),
            changed,
            before: before.as_str().to_owned(),
            members_in_service,
            fallback_serves,
            member: self.status(&context.observed),
        }
    }
}

/// The text of the event: `is set to drain, was enabled, by root (uid 0, sudo by anna); 3 requests are under way`.
struct MemberChangeText<'a> {
    before: AdminState,
    now: AdminState,
    /// The change restores the state in the file.
    of_file: bool,
    by: &'a Caller,
    requests: u32,
    members_in_service: usize,
    fallback_serves: bool,
}

impl MemberChangeText<'_> {
    fn level(&self) -> Level {
        if self.takes_the_last() { Level::Warning } else { Level::Info }
    }

    /// Whether this change leaves the pool without members for new requests.
    fn takes_the_last(&self) -> bool {
        self.members_in_service == 0
            && self.before == AdminState::Enabled
            && self.now != AdminState::Enabled
    }
}

impl fmt::Display for MemberChangeText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.of_file { ", as the file says" } else { "" };
        write!(formatter, "is set to {}{source}", self.now.as_str())?;
        write!(formatter, ", was {}, by {}", self.before.as_str(), self.by)?;
        if self.now != AdminState::Enabled {
            match self.requests {
                0 => formatter.write_str("; nothing is under way"),
                1 => formatter.write_str("; 1 request is under way"),
                count => write!(formatter, "; {count} requests are under way"),
            }?;
        }
        if self.takes_the_last() {
            formatter.write_str("; no member of the pool takes new requests now")?;
            if self.fallback_serves {
                formatter.write_str(", its fallback does")?;
            }
        }
        Ok(())
    }
}
