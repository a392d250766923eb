//! Views of pools, members and monitors.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use weir_api::member::{Member, MonitorOf};
use weir_api::page::Page;
use weir_api::pool::Pool;
use weir_config::snapshot::{self, Address, NOBODY};
use weir_exchange::shared::live::{LiveMember, LiveTable};

use super::answer::Answer;
use super::ask::{Ask, Kind, Parameter};
use super::page::{AFTER, LIMIT, PAGE, page};
use super::problem::{Problem, listed};
use super::route::{HandlerResult, Route};
use crate::member_state::is_in_service;
use crate::observed_state::ObservedState;
use crate::status;

/// Maximum number of characters of an unknown name in a message.
const NAME_TOLD_LENGTH_MAX: usize = 100;

/// The query parameter that selects monitors by state.
const STATE: Parameter = Parameter {
    name: "state",
    kind: Kind::Word(&["pending", "up", "down", "draining"]),
    summary: "Only monitors with this verdict",
};

pub(super) fn routes() -> Vec<Route> {
    const NOT_FOUND: &[StatusCode] = &[StatusCode::NOT_FOUND];
    vec![
        Route::get("/v1/pools", "listPools", "Pools with their members", pools)
            .query(PAGE)
            .statuses(NOT_FOUND)
            .answers::<Page<Pool>>(),
        Route::get("/v1/pools/{pool}", "getPool", "A pool with its members", pool)
            .answers::<Pool>(),
        Route::get("/v1/pools/{pool}/members", "listMembers", "Members of a pool", members)
            .query(PAGE)
            .answers::<Page<Member>>(),
        Route::get("/v1/pools/{pool}/members/{member}", "getMember", "A member", member)
            .answers::<Member>(),
        Route::get("/v1/monitors", "listMonitors", "Monitors and their last results", monitors)
            .query(&[LIMIT, AFTER, STATE])
            .statuses(NOT_FOUND)
            .answers::<Page<MonitorOf>>(),
    ]
}

fn pools(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let judge = observed.judge();
    let all = judge.table().snapshot.pools.iter().enumerate();
    let page = page(
        &ask.query,
        all.filter(|(_, configured)| *configured.name != *NOBODY),
        |(_, configured)| configured.name.to_string(),
        |(index, _)| status::pool(&judge, index, &observed.monitors),
    )?;
    Answer::json(&page)
}

fn pool(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let judge = observed.judge();
    let index = find_pool(judge.table(), ask.name("pool"))?;
    Answer::json(&status::pool(&judge, index, &observed.monitors))
}

fn members(ask: &Ask) -> HandlerResult {
    let (observed, table) = (&ask.context.observed, ask.context.observed.table());
    let index = find_pool(&table, ask.name("pool"))?;
    let all = table.snapshot.pools[index].members.iter().zip(&table.pools[index].members);
    let page = page(
        &ask.query,
        all,
        |(configured, _)| configured.label.to_string(),
        |(configured, live)| status::member(configured, live, &observed.monitors),
    )?;
    Answer::json(&page)
}

fn member(ask: &Ask) -> HandlerResult {
    let observed = &ask.context.observed;
    let found = FoundMember::find(observed.table(), ask.name("pool"), ask.name("member"))?;
    Answer::json(&found.status(observed))
}

fn monitors(ask: &Ask) -> HandlerResult {
    let (observed, table) = (&ask.context.observed, ask.context.observed.table());
    let wanted = ask.query.text(STATE.name);
    let members = table.pools.iter().flat_map(|pool| &pool.members);
    let all = members.flat_map(|live| {
        let reports = observed.monitors.of(&live.pool.name, &live.label).into_iter().enumerate();
        reports.map(move |(number, report)| (live, number, report))
    });
    let all = all.filter(|(_, _, report)| wanted.is_none_or(|it| it == report.health.as_str()));
    let id =
        |live: &LiveMember, number: usize| format!("{}/{} {number}", live.pool.name, live.label);
    let page = page(
        &ask.query,
        all,
        |(live, number, _)| id(live, *number),
        |(live, number, report)| MonitorOf {
            id: id(live, number),
            pool: live.pool.name.to_string(),
            member: live.label.to_string(),
            monitor: status::monitor(report),
        },
    )?;
    Answer::json(&page)
}

/// A member of the active table.
pub(super) struct FoundMember {
    table: Arc<LiveTable>,
    pool: usize,
    member: usize,
}

impl FoundMember {
    /// Finds a member by its address, in any notation.
    pub(super) fn find(table: Arc<LiveTable>, pool: &str, member: &str) -> Result<Self, Problem> {
        let pool = find_pool(&table, pool)?;
        match place_in(&table.snapshot.pools[pool], member) {
            Some(member) => Ok(Self { table, pool, member }),
            None => Err(no_such_member(&table.snapshot.pools, &table.snapshot.pools[pool], member)),
        }
    }

    /// Finds a server in all pools of which it is a member.
    pub(super) fn find_all(table: &Arc<LiveTable>, member: &str) -> Result<Vec<Self>, Problem> {
        let pools = table.snapshot.pools.iter().enumerate();
        let found: Vec<Self> = pools
            .filter_map(|(pool, configured)| {
                let member = place_in(configured, member)?;
                Some(Self { table: Arc::clone(table), pool, member })
            })
            .collect();
        if found.is_empty() {
            return Err(no_member_anywhere(&table.snapshot.pools, member));
        }
        Ok(found)
    }

    /// The place of its pool in the table.
    pub(super) fn place(&self) -> usize {
        self.pool
    }

    pub(super) fn pool(&self) -> &snapshot::Pool {
        &self.table.snapshot.pools[self.pool]
    }

    pub(super) fn configured(&self) -> &snapshot::Member {
        &self.pool().members[self.member]
    }

    pub(super) fn live(&self) -> &LiveMember {
        &self.table.pools[self.pool].members[self.member]
    }

    pub(super) fn status(&self, observed: &ObservedState) -> Member {
        status::member(self.configured(), self.live(), &observed.monitors)
    }

    /// The number of members of its pool that take new requests.
    pub(super) fn members_in_service(&self) -> usize {
        let live = &self.table.pools[self.pool].members;
        let members = self.pool().members.iter().zip(live);
        members.filter(|(configured, live)| is_in_service(configured, live)).count()
    }
}

/// The index of a pool of the configuration.
pub(super) fn find_pool(table: &LiveTable, name: &str) -> Result<usize, Problem> {
    let pools = &table.snapshot.pools;
    let found = pools.iter().position(|pool| *pool.name == *name && name != snapshot::NOBODY);
    found.ok_or_else(|| {
        let what = format!("there is no pool `{}`", clip(name));
        let known = pools.iter().map(|pool| &*pool.name);
        Problem::unknown(what, name, known.filter(|name| *name != snapshot::NOBODY))
    })
}

/// The index of a member in its pool, by its address in any notation.
fn place_in(pool: &snapshot::Pool, member: &str) -> Option<usize> {
    let socket: Option<SocketAddr> = member.parse().ok();
    pool.members.iter().position(|candidate| {
        *candidate.label == *member
            || socket.is_some_and(|socket| candidate.address == Address::Socket(socket))
    })
}

/// The error for a member of no pool, which may be the name of a pool.
fn no_member_anywhere(pools: &[Arc<snapshot::Pool>], member: &str) -> Problem {
    let names = || pools.iter().map(|pool| &*pool.name).filter(|name| *name != snapshot::NOBODY);
    let pool =
        names().find(|name| *name == member).or_else(|| weir_config::nearest(member, names()));
    let problem = Problem::not_found(format_args!("no pool has a member `{}`", clip(member)));
    match pool {
        Some(pool) => problem.help(format!(
            "if you mean pool `{pool}`, name one of its members, too: weir member {pool} ADDRESS drain"
        )),
        None => problem.help("a member has an address and a port: weir status shows them"),
    }
}

/// The error names no similar members: the command stops traffic, and a wrong suggestion would stop it for another
/// server.
fn no_such_member(pools: &[Arc<snapshot::Pool>], pool: &snapshot::Pool, member: &str) -> Problem {
    let what = format!("pool `{}` has no member `{}`", pool.name, clip(member));
    // A host name in the file means a member for each of its addresses.
    let host = member.rsplit_once(':').map_or(member, |(host, _)| host);
    let named = pool.members.iter().filter(|candidate| {
        candidate.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(host))
    });
    if let Some(names) = listed(named.map(|candidate| &*candidate.label)) {
        let help = format!("`{}` stands for {names}", clip(host));
        return Problem::not_found(what).help(help);
    }
    let others = pools.iter().filter(|other| place_in(other, member).is_some());
    let help = match listed(others.map(|other| &*other.name)) {
        Some(others) => Some(format!("it is a member of {others}")),
        None => listed(pool.members.iter().map(|candidate| &*candidate.label))
            .map(|members| format!("its members: {members}")),
    };
    let problem = Problem::not_found(what);
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

pub(super) fn clip(name: &str) -> String {
    if name.chars().nth(NAME_TOLD_LENGTH_MAX).is_none() {
        return name.to_owned();
    }
    name.chars().take(NAME_TOLD_LENGTH_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
