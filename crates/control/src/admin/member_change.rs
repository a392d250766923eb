//! Changes of the administrative state of members at run time.
//!
//! The state is a resource of its own, `…/members/ADDRESS/state`: counters of a member change all the time, so an
//! `ETag` of the member would never match. All workers use a new state from the next request on. It survives reloads,
//! and lasts until the process ends or the member is removed from its pool.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_config::snapshot::Role;
use weir_core::admin_state::AdminState;

use super::Context;
use super::answer::Answer;
use super::ask::Ask;
use super::peer::Caller;
use super::pools::FoundMember;
use super::problem::Problem;
use super::route::{Handled, Route};
use crate::events::Level;
use crate::health::Judge;
use crate::last_members::LeftAlone;
use crate::member_state::{administrative_state, is_in_service};
use crate::status::MemberStatus;

pub(super) fn routes() -> Vec<Route> {
    const CONFLICT: &[StatusCode] = &[StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED];
    const STATE: &str = "/v1/pools/{pool}/members/{member}/state";
    const OF_ALL: &str = "/v1/members/{member}/state";
    vec![
        Route::get(STATE, "getMemberState", "The administrative state of a member", state)
            .answers::<StateOf>(),
        Route::get(STATE, "setMemberState", "Sets the administrative state of a member", set)
            .put()
            .role(Role::Operate)
            .takes::<Change>()
            .statuses(CONFLICT)
            .answers::<Changed>(),
        Route::get(OF_ALL, "getMemberStates", "The state of a server in each of its pools", states)
            .answers::<StatesOf>(),
        Route::get(
            OF_ALL,
            "setMemberStates",
            "Sets the state of a server in all its pools",
            set_all,
        )
        .put()
        .role(Role::Operate)
        .takes::<Change>()
        .statuses(CONFLICT)
        .answers::<ChangedAll>(),
    ]
}

/// A requested change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemberStateChange")]
struct Change {
    state: WantedState,
    /// Also if no other member of the pool takes new requests, and its clients get 503 then. Without it, such a change is
    /// refused (409).
    #[serde(default)]
    last: bool,
}

/// The requested state.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WantedState {
    /// Receives requests, whatever the configuration says.
    Enabled,
    /// Receives only requests of clients that persistence keeps on it.
    Drain,
    /// Receives no requests.
    Disabled,
    /// Returns to the state in the configuration.
    Configured,
}

impl WantedState {
    fn as_override(self) -> Option<AdminState> {
        match self {
            Self::Enabled => Some(AdminState::Enabled),
            Self::Drain => Some(AdminState::Drain),
            Self::Disabled => Some(AdminState::Disabled),
            Self::Configured => None,
        }
    }
}

/// The administrative state of a member.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MemberState")]
struct StateOf {
    pool: String,
    member: String,
    /// `enabled`, `drain` or `disabled`.
    state: &'static str,
    /// `file`: the configuration; `runtime`: a change at run time, which lasts until the process ends.
    source: &'static str,
}

impl StateOf {
    fn of(found: &FoundMember) -> Self {
        let is_set = found.live().state_override().is_some();
        Self {
            pool: found.pool().name.to_string(),
            member: found.live().label.to_string(),
            state: administrative_state(found.configured(), found.live()).as_str(),
            source: if is_set { "runtime" } else { "file" },
        }
    }
}

/// The states of a server in all its pools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MemberStates")]
struct StatesOf {
    members: Vec<StateOf>,
}

fn find(ask: &Ask) -> Result<FoundMember, Problem> {
    FoundMember::find(ask.context.observed.table(), ask.name("pool"), ask.name("member"))
}

fn find_all(ask: &Ask) -> Result<Vec<FoundMember>, Problem> {
    FoundMember::find_all(&ask.context.observed.table(), ask.name("member"))
}

fn state_of(found: &FoundMember) -> Handled {
    Answer::json(&StateOf::of(found))
}

fn states_of(found: &[FoundMember]) -> Handled {
    Answer::json(&StatesOf { members: found.iter().map(StateOf::of).collect() })
}

fn state(ask: &Ask) -> Handled {
    state_of(&find(ask)?)
}

fn states(ask: &Ask) -> Handled {
    states_of(&find_all(ask)?)
}

/// The answer to a change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MemberStateChanged")]
struct Changed {
    pool: String,
    /// Whether the state, or its source, has changed. `false`: the member was in this state already, and nothing is recorded.
    changed: bool,
    /// The state before the change.
    before: &'static str,
    /// The number of members of the pool that take new requests.
    members_in_service: usize,
    /// Whether no member of the pool takes new requests, and a fallback takes them instead.
    fallback_serves: bool,
    /// The member after the change.
    member: MemberStatus,
    #[serde(skip)]
    after: &'static str,
    #[serde(skip)]
    label: String,
}

/// The answer to a change of a server in all its pools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MemberStatesChanged")]
struct ChangedAll {
    members: Vec<Changed>,
}

impl Changed {
    /// The description for the audit log.
    fn record(&self) -> serde_json::Value {
        let mut record = json!({
            "pool": self.pool, "member": self.label, "state": self.after, "before": self.before,
        });
        if !self.changed {
            record["unchanged"] = true.into();
        }
        record
    }
}

fn set(ask: &Ask) -> Handled {
    let Change { state: wanted, last } = ask.document()?;
    let _alone = ask.context.observed.admin.change();
    let found = find(ask)?;
    ask.must_match(&state_of(&found)?.tagged(true))?;
    must_leave_some(ask, std::slice::from_ref(&found), wanted, last)?;
    let changed = found.set_state(wanted, &ask.caller, &ask.context);
    Ok(Answer::json(&changed)?.change(changed.record()))
}

fn set_all(ask: &Ask) -> Handled {
    let Change { state: wanted, last } = ask.document()?;
    let _alone = ask.context.observed.admin.change();
    let found = find_all(ask)?;
    ask.must_match(&states_of(&found)?.tagged(true))?;
    must_leave_some(ask, &found, wanted, last)?;
    let set = |found: &FoundMember| found.set_state(wanted, &ask.caller, &ask.context);
    let members: Vec<Changed> = found.iter().map(set).collect();
    let record = members.iter().map(Changed::record).collect();
    Ok(Answer::json(&ChangedAll { members })?.change(record))
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
        let after = wanted.as_override().unwrap_or(self.configured().state);
        after != AdminState::Enabled
            && is_in_service(self.configured(), self.live())
            && self.members_in_service() == 1
            && !judge.has_substitute(self.place())
    }

    fn set_state(&self, wanted: WantedState, by: &Caller, context: &Context) -> Changed {
        let before = administrative_state(self.configured(), self.live());
        let wanted = wanted.as_override();
        // A state that the member has already needs no override: it would hide a later change of the configuration.
        let is_so = wanted == Some(before);
        let changed = !is_so && self.live().set_state_override(wanted) != wanted;
        let members_in_service = self.members_in_service();
        let fallback_serves =
            members_in_service == 0 && context.observed.judge().has_substitute(self.place());
        if changed {
            let told = Told {
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
        Changed {
            pool: self.pool().name.to_string(),
            changed,
            before: before.as_str(),
            members_in_service,
            fallback_serves,
            member: self.status(&context.observed),
            after: administrative_state(self.configured(), self.live()).as_str(),
            label: self.live().label.to_string(),
        }
    }
}

/// The text of the event: `is set to drain, was enabled, by root (uid 0, sudo by anna); 3 requests are under way`.
struct Told<'a> {
    before: AdminState,
    now: AdminState,
    /// The change restores the state in the file.
    of_file: bool,
    by: &'a Caller,
    requests: u32,
    members_in_service: usize,
    fallback_serves: bool,
}

impl Told<'_> {
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

impl fmt::Display for Told<'_> {
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
