//! Persistence: the members' availability, as the control plane sets it, and the member that weir must select for a client.
//!
//! A request is only checked against state that did not change since the client wrote the request: weir may select the
//! member before or after a change.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Moment;
use crate::place::{Place, Server, Version, origin};
use crate::plan::Plan;
use crate::tag::Id;
use crate::world::{Kind, Tally};

/// Names of the pools with persistence.
pub const POOLS: [&str; 3] = ["kept1", "kept2", "sourced"];
/// Length of a member's token in the cookie.
const TOKEN_BYTES: usize = 30;
/// Number of members of each of these pools.
pub const MEMBERS: usize = 2;
/// Number of the spare member in the fallback pool of the first of these pools. It serves only while no member of that pool
/// accepts all requests.
pub const SPARE: usize = 2;
/// Name of the cookie.
const COOKIE: &str = "WEIR";

fn pool_of(place: Place) -> Option<usize> {
    match (place.server, place.member) {
        (Server::Kept, Version::Http1) => Some(0),
        (Server::Kept, Version::Http2) => Some(1),
        (Server::Sourced, _) => Some(2),
        _ => None,
    }
}

/// Which requests a member accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Takes {
    /// None.
    Nothing,
    /// Only requests of clients with persistence to this member.
    Kept,
    /// All.
    #[default]
    All,
}

#[derive(Debug, Default)]
struct Member {
    takes: Takes,
    since: Moment,
}

impl Member {
    /// Whether the member has accepted at least these requests since before `then`.
    fn took(&self, takes: Takes, then: Moment) -> bool {
        self.takes >= takes && self.since < then
    }

    /// Whether the member has accepted at most these requests since before `then`.
    fn took_only(&self, takes: Takes, then: Moment) -> bool {
        self.takes <= takes && self.since < then
    }
}

/// A request in flight.
#[derive(Debug)]
struct Asked {
    begun: Moment,
    pool: usize,
    /// The member in the client's cookie, and whether the cookie also names the spare.
    cookie: Option<usize>,
    knows_spare: bool,
    /// The member that received the request last.
    came_to: Option<usize>,
    /// Whether a member has left the request unprocessed.
    is_unread: bool,
}

impl Asked {
    /// Checks a request at the spare: no member of the pool may accept all requests, and the client's member must not accept
    /// this one.
    fn check_spare(
        &self,
        is_first: bool,
        members: &[Member],
        had_nobody: Moment,
    ) -> Result<Option<String>, String> {
        let keeps = self.cookie.is_some_and(|home| members[home].took(Takes::Kept, self.begun));
        let had_nobody = has_nobody(members) || had_nobody >= self.begun;
        match (keeps && is_first, had_nobody) {
            (false, true) => Ok(None),
            _ => Err(format!("at the spare; its own member takes it: {keeps}")),
        }
    }
}

/// A client's cookie, and the members that it names.
#[derive(Debug, Clone)]
struct Cookie {
    value: String,
    member: Option<usize>,
    knows_spare: bool,
}

/// The member of a client by its address. Requests from before `since` prove nothing.
#[derive(Debug)]
struct Source {
    member: Option<usize>,
    since: Moment,
}

#[derive(Debug, Default)]
struct State {
    members: [[Member; MEMBERS]; POOLS.len()],
    /// The last time at which a pool had no member that accepts all requests.
    had_nobody: [Moment; POOLS.len()],
    asked: HashMap<Id, Asked>,
    /// The cookies by client and pool.
    cookies: HashMap<(usize, usize), Cookie>,
    sources: HashMap<usize, Source>,
    /// The last time at which a member in the pool with persistence by address stopped accepting requests.
    moved: Moment,
    /// The pool and member of each token. A token must stand for only one member.
    values: HashMap<String, (usize, usize)>,
}

/// The members and their clients; shared by all sessions.
#[derive(Debug, Default)]
pub struct Keeping(Mutex<State>);

impl Keeping {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which requests a member accepts, as was set last.
    pub fn takes(&self, pool: usize, member: usize) -> Takes {
        self.locked().members[pool][member].takes
    }

    /// Sets which requests a member accepts.
    pub fn set(&self, pool: usize, member: usize, takes: Takes, now: Moment) {
        let state = &mut *self.locked();
        if has_nobody(&state.members[pool]) {
            state.had_nobody[pool] = now;
        }
        state.members[pool][member] = Member { takes, since: now };
        if pool_of_sources(pool) && takes == Takes::Nothing {
            // A client whose member is unknown may have been at this one.
            let is_moved = |source: &&mut Source| source.member.is_none_or(|it| it == member);
            let moved = state.sources.values_mut().filter(is_moved);
            moved.for_each(|source| *source = Source { member: None, since: now });
            state.moved = now;
        }
    }

    /// Records that a client writes a request. Returns the client's Cookie value, if any.
    pub fn ask(&self, plan: &Plan, now: Moment) -> Option<String> {
        let pool = pool_of(plan.place)?;
        let state = &mut *self.locked();
        let cookie = state.cookies.get(&(origin(plan.id).0, pool)).cloned();
        let asked = Asked {
            begun: now,
            pool,
            cookie: cookie.as_ref().and_then(|cookie| cookie.member),
            knows_spare: cookie.as_ref().is_some_and(|cookie| cookie.knows_spare),
            came_to: None,
            is_unread: false,
        };
        state.asked.insert(plan.id, asked);
        cookie.map(|cookie| format!("{COOKIE}={}", cookie.value))
    }

    /// Checks the member that received a request. An error: the wrong member; a text: the wrong member unless the client's
    /// member has left the request unprocessed.
    pub fn arrived(
        &self,
        tally: &Tally,
        plan: &Plan,
        member: usize,
    ) -> Result<Option<String>, String> {
        let state = &mut *self.locked();
        let Some(asked) = state.asked.get_mut(&plan.id) else { return Ok(None) };
        let is_first = asked.came_to.replace(member).is_none();
        let (begun, members) = (asked.begun, &state.members[asked.pool]);
        if member == SPARE {
            tally.count(Kind::Spare);
            return asked.check_spare(is_first, members, state.had_nobody[asked.pool]);
        }
        let here = &members[member];
        let mut home = asked.cookie;
        if pool_of_sources(asked.pool) {
            let source = state.sources.entry(origin(plan.id).0);
            let source = source.or_insert(Source { member: None, since: state.moved });
            if source.since < begun {
                home = source.member;
                source.member = Some(member);
            }
        }
        if here.took_only(Takes::Nothing, begun) {
            return Err(format!("at member {member}, which takes nothing"));
        }
        // With persistence by address, a request that never arrived may have created the entry.
        let is_new = home.is_none() && !pool_of_sources(asked.pool);
        if here.took_only(Takes::Kept, begun) && (is_new || home.is_some_and(|it| it != member)) {
            return Err(format!("at member {member}, which takes nobody new"));
        }
        let Some(home) = home else { return Ok(None) };
        if home != member {
            tally.count(Kind::Moved);
            let is_over = !is_first || asked.is_unread;
            if is_over || !members[home].took(Takes::Kept, begun) {
                return Ok(None);
            }
            let what = format!("at member {member} instead of {home}");
            return if plan.place.member == Version::Http1 { Err(what) } else { Ok(Some(what)) };
        }
        tally.count(if pool_of_sources(asked.pool) { Kind::KeptSource } else { Kind::Kept });
        if here.took_only(Takes::Kept, begun) {
            tally.count(Kind::KeptDrained);
        }
        Ok(None)
    }

    /// Records that a member has left a request unprocessed after its GOAWAY. Another member may have received the request
    /// already.
    pub fn left_unread(&self, plan: &Plan) {
        let state = &mut *self.locked();
        if let Some(asked) = state.asked.get_mut(&plan.id) {
            asked.is_unread = true;
        }
    }

    /// Checks the cookie of weir in a member's response that the client received.
    pub fn answered(&self, plan: &Plan, field: Option<&str>) -> Result<(), String> {
        let Some(pool) = pool_of(plan.place) else { return Ok(()) };
        let state = &mut *self.locked();
        let Some(asked) = state.asked.remove(&plan.id) else { return Ok(()) };
        let Some(member) = asked.came_to else { return Err("of no member".to_owned()) };
        let is_known =
            if member == SPARE { asked.knows_spare } else { asked.cookie == Some(member) };
        let is_news = plan.place.server == Server::Kept && !is_known;
        let Some(field) = field.filter(|_| is_news) else {
            return match (is_news, field) {
                (false, None) => Ok(()),
                _ => Err(format!("{field:?} from {member} for a client of {:?}", asked.cookie)),
            };
        };
        let others =
            if member == SPARE { asked.cookie } else { asked.knows_spare.then_some(SPARE) };
        let value = state.check_value(field, pool, [Some(member), others])?;
        let is_spare = |it: &usize| *it == SPARE;
        let cookie = Cookie {
            value,
            member: if is_spare(&member) { asked.cookie } else { Some(member) },
            knows_spare: asked.knows_spare || is_spare(&member),
        };
        state.cookies.insert((origin(plan.id).0, pool), cookie);
        Ok(())
    }

    /// Checks a 503 of weir itself: no member must accept the request.
    pub fn refused(&self, tally: &Tally, plan: &Plan) -> Result<(), String> {
        let state = &mut *self.locked();
        let Some(asked) = state.asked.remove(&plan.id) else { return Ok(()) };
        let members = &state.members[asked.pool];
        if asked.cookie.is_some_and(|home| members[home].took(Takes::Kept, asked.begun)) {
            return Err(format!("503 though member {:?} takes it", asked.cookie));
        }
        tally.count(Kind::Nobody);
        if asked.pool == 0 {
            return Err("503 though there is a spare".to_owned());
        }
        match has_nobody(members) || state.had_nobody[asked.pool] >= asked.begun {
            true => Ok(()),
            false => Err("503 though there are members".to_owned()),
        }
    }
}

fn has_nobody(members: &[Member]) -> bool {
    members.iter().all(|member| member.takes != Takes::All)
}

impl State {
    /// Checks the value of a cookie that weir sets: one token for each of these members. The member that responded comes
    /// first.
    fn check_value(
        &mut self,
        field: &str,
        pool: usize,
        members: [Option<usize>; 2],
    ) -> Result<String, String> {
        let value =
            field.strip_prefix("WEIR=").and_then(|it| it.strip_suffix("; Path=/; HttpOnly"));
        let value = value.ok_or_else(|| format!("the cookie {field:?}"))?;
        let is_token =
            |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
        let mut tokens = value.split('.');
        for member in members.into_iter().flatten() {
            let token = tokens.next().filter(|it| it.len() == TOKEN_BYTES && is_token(it));
            let token = token.ok_or_else(|| format!("{field:?} for {members:?}"))?;
            let stands_for = *self.values.entry(token.to_owned()).or_insert((pool, member));
            if stands_for != (pool, member) {
                return Err(format!("{token} for {member} of {pool}, and {stands_for:?}"));
            }
        }
        match tokens.next() {
            None => Ok(value.to_owned()),
            Some(_) => Err(format!("{field:?} for {members:?} alone")),
        }
    }
}

/// Whether persistence in the pool is by the client's address.
fn pool_of_sources(pool: usize) -> bool {
    pool == 2
}

/// Removes weir's cookie from the headers of a response. Returns it.
pub fn take_cookie(fields: &mut crate::message::Fields) -> Option<String> {
    let is_own = |(name, value): &(crate::message::Name, String)| {
        name == "set-cookie" && value.starts_with("WEIR=")
    };
    let place = fields.iter().position(is_own)?;
    Some(fields.remove(place).1)
}
