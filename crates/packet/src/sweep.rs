//! Enumeration and expiry of flows. Programs only begin flows; user space ends them.

use std::collections::HashMap;
use std::time::Duration;

use crate::batch::Place;
use crate::due::{Due, Dues, FlowCounts};
use crate::error::Error;
use crate::layout::{self, FlowEntry, FlowKey};
use crate::maps::{Maps, Table};
use crate::plan::{Delivery, Timeouts, VirtualServer};
use crate::roster::{KnownMember, Roster};
use crate::table::{DueFacts, Part, TagWithoutEntry};
use crate::{End, EndedFlow, EndedFor, Flow, FlowFilter, FlowState, Sweep};

/// Number of buckets of the flow table, or of entries of another, that are read in one go.
const PART_BUCKETS: u32 = 4_096;

/// Minimum time for which a place is seen half removed before it is freed. A program fills a place in less than a microsecond, or in
/// milliseconds if the host takes its core away.
const HALVED_AGE: Duration = Duration::from_secs(10);

/// Programs on two cores may see clocks that differ by one tick, at most 10 ms.
const CLOCKS_APART_NS: u64 = 10_000_000;

const TCP: u8 = libc::IPPROTO_TCP as u8;

/// Facts about a virtual server for the sweep.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub timeouts: Timeouts,
    pub reset_on_timeout: bool,
    pub reset_on_member_down: bool,
    pub is_translated: bool,
}

impl Rules {
    pub fn of(server: &VirtualServer) -> Self {
        Self {
            timeouts: server.timeouts,
            reset_on_timeout: server.reset_on_timeout,
            reset_on_member_down: server.reset_on_member_down,
            is_translated: matches!(server.delivery, Delivery::Translate | Delivery::Route),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            reset_on_timeout: true,
            reset_on_member_down: true,
            is_translated: true,
        }
    }
}

/// The data that a walk reads and changes.
pub struct Walk<'a> {
    pub maps: &'a mut Maps,
    pub roster: &'a Roster,
    /// Rules by the number of the virtual server.
    pub rules: &'a HashMap<u32, Rules>,
    pub now: Duration,
}

/// The progress of sweeps.
#[derive(Debug, Default)]
pub struct Progress {
    table: Table,
    at: Option<Place>,
    counting: FlowCounts,
    /// Places that this sweep found half removed.
    halved: Vec<TagWithoutEntry>,
    /// Places that all sweeps since this time found half removed.
    halved_since: (Duration, Vec<TagWithoutEntry>),
    /// Flows of each member at the last complete sweep.
    pub flows: FlowCounts,
}

impl Progress {
    /// Goes back to the beginning.
    pub fn begin_anew(&mut self) {
        (self.table, self.at) = (Table::Flows, None);
        self.counting.clear();
        self.halved.clear();
    }
}

/// Both directions of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    table: Table,
    key: FlowKey,
    forward: FlowEntry,
    reverse: Option<FlowEntry>,
}

impl Pair {
    fn state(&self) -> FlowState {
        let (forward, reverse) = (self.forward.state, self.reverse.map_or(0, |it| it.state));
        let is_closed = self.is_reset()
            || forward & reverse & layout::STATE_FIN != 0
            || (self.table == Table::Direct && forward != 0);
        if is_closed {
            FlowState::Closing
        } else if self.table == Table::Flows && self.is_unanswered() {
            FlowState::Opening
        } else {
            FlowState::Open
        }
    }

    /// A flow has ended by a reset if no packet of either side has come after it: a reset that its receiver ignores
    /// does not end a flow.
    fn is_reset(&self) -> bool {
        let reverse = self.reverse.map_or((0, 0), |it| (it.state, it.seen_ns));
        let forward = (self.forward.state, self.forward.seen_ns);
        let ends = |(state, seen_ns): (u8, u64), (_, other_seen_ns): (u8, u64)| {
            state & layout::STATE_RST != 0 && seen_ns + CLOCKS_APART_NS >= other_seen_ns
        };
        ends(forward, reverse) || ends(reverse, forward)
    }

    /// A member's answer to a SYN proves nothing about the client: the client must have acknowledged something itself.
    fn is_unanswered(&self) -> bool {
        if self.key.protocol == TCP {
            self.forward.acknowledged == 0
        } else {
            self.reverse.is_none_or(|it| it.packets == 0)
        }
    }

    /// The time of the last packet; for a handshake only of the client, because members repeat their answers.
    fn seen_ns(&self) -> u64 {
        if self.key.protocol == TCP && self.state() == FlowState::Opening {
            return self.forward.seen_ns;
        }
        self.forward.seen_ns.max(self.reverse.map_or(0, |it| it.seen_ns))
    }
}

fn count(member: u32, table: Table, progress: &mut Progress, sweep: &mut Sweep) {
    progress.counting.add(member);
    sweep.flows += 1;
    sweep.followed += u64::from(table == Table::Flows);
}

impl Walk<'_> {
    /// Continues the sweep for this many entries and buckets.
    pub fn sweep(&mut self, progress: &mut Progress, entries_max: u32) -> Result<Sweep, Error> {
        let (mut sweep, mut dues) = (Sweep::default(), Dues::default());
        while sweep.entries < u64::from(entries_max) {
            let table = progress.table;
            let part = match table {
                Table::Flows => self.look(progress, &mut dues, &mut sweep),
                Table::Direct => self.maps.read_flows(table, progress.at, PART_BUCKETS)?,
            };
            sweep.entries += u64::from(part.examined);
            progress.halved.extend(part.halved);
            for (key, entry) in part.entries {
                let before = sweep.ended.len();
                match table {
                    Table::Flows => self.judge(key, entry, &mut sweep.ended)?,
                    Table::Direct => self.judge_direct(key, entry, &mut sweep.ended)?,
                }
                let has_ended = sweep.ended.len() > before;
                sweep.freed += u64::from(has_ended && table == Table::Flows);
                if !entry.is_reverse() && !has_ended {
                    count(entry.member, table, progress, &mut sweep);
                }
            }
            progress.at = part.next;
            match (table, part.next) {
                (_, Some(_)) => {}
                (Table::Flows, None) => progress.table = Table::Direct,
                (Table::Direct, None) => {
                    progress.table = Table::Flows;
                    progress.flows = std::mem::take(&mut progress.counting);
                    self.free_halved(progress);
                    sweep.whole = true;
                    break;
                }
            }
        }
        Ok(sweep)
    }

    /// Reads the entries that may be due, and counts the others.
    fn look(&self, progress: &mut Progress, dues: &mut Dues, sweep: &mut Sweep) -> Part {
        self.maps.flows.read(progress.at, PART_BUCKETS, |entry| {
            let may_be_due = dues.of(entry.member, || self.due(entry.member)).may_be(entry);
            if !may_be_due && !entry.is_reverse() {
                count(entry.member, Table::Flows, progress, sweep);
            }
            may_be_due
        })
    }

    /// Frees places that stay half removed.
    fn free_halved(&self, progress: &mut Progress) {
        let seen = std::mem::take(&mut progress.halved);
        let (since, before) = &mut progress.halved_since;
        before.retain(|halved| seen.contains(halved));
        if before.is_empty() {
            (*since, *before) = (self.now, seen);
        } else if self.now.saturating_sub(*since) > HALVED_AGE {
            before.drain(..).for_each(|halved| self.maps.flows.free(halved));
        }
    }

    fn due(&self, member: u32) -> Due {
        Due::new(self.is_unserved(member).is_some(), &self.rules(member).timeouts, self.now)
    }

    /// Flows with direct return are removed by age; the state of members does not matter.
    fn judge_direct(
        &mut self,
        key: FlowKey,
        forward: FlowEntry,
        ended: &mut Vec<EndedFlow>,
    ) -> Result<(), Error> {
        let pair = Pair { table: Table::Direct, key, forward, reverse: None };
        let timeouts = self.rules(forward.member).timeouts;
        let is_closing = pair.state() == FlowState::Closing;
        let timeout = if is_closing { timeouts.closing } else { timeouts.idle };
        let is_idle = self.resting(forward.seen_ns) > timeout;
        match self.is_unserved(forward.member).or(is_idle.then_some(EndedFor::Idle)) {
            Some(why) => self.end(&pair, why, ended),
            None => Ok(()),
        }
    }

    fn resting(&self, seen_ns: u64) -> Duration {
        self.now.saturating_sub(Duration::from_nanos(seen_ns))
    }

    fn rules(&self, member: u32) -> Rules {
        let server = self.roster.get(member).map(|known| known.entry.server);
        server.and_then(|server| self.rules.get(&server)).copied().unwrap_or_default()
    }

    /// The reason why flows of a member are no longer served.
    fn is_unserved(&self, member: u32) -> Option<EndedFor> {
        let Some(known) = self.roster.get(member) else { return Some(EndedFor::Removed) };
        if !known.has_server {
            return Some(EndedFor::Removed);
        }
        (known.entry.state == layout::MEMBER_DOWN).then_some(EndedFor::MemberDown)
    }

    /// Ends the flow of an entry if it is due.
    pub fn judge(
        &mut self,
        key: FlowKey,
        entry: FlowEntry,
        ended: &mut Vec<EndedFlow>,
    ) -> Result<(), Error> {
        if !self.due(entry.member).may_be(&DueFacts::of(&key, &entry)) {
            return Ok(());
        }
        let Some(pair) = self.pair(key)? else { return Ok(()) };
        if let Some(why) = self.is_unserved(pair.forward.member) {
            return self.end(&pair, why, ended);
        }
        let rules = self.rules(pair.forward.member);
        let state = pair.state();
        let (timeout, why) = match state {
            FlowState::Closing => (rules.timeouts.closing, EndedFor::Closed),
            FlowState::Opening if key.protocol == TCP => (rules.timeouts.handshake, EndedFor::Idle),
            FlowState::Opening | FlowState::Open => (rules.timeouts.idle, EndedFor::Idle),
        };
        if self.resting(pair.seen_ns()) > timeout { self.end(&pair, why, ended) } else { Ok(()) }
    }

    /// Both directions in their current state; `None`: one is gone, so the other is removed too.
    fn pair(&mut self, key: FlowKey) -> Result<Option<Pair>, Error> {
        let Some(entry) = self.maps.flow(Table::Flows, &key)? else { return Ok(None) };
        let other_key = entry.other_key(key.protocol);
        let other = self.maps.flow(Table::Flows, &other_key)?;
        let pair = |key, forward, reverse| Pair {
            table: Table::Flows,
            key,
            forward,
            reverse: Some(reverse),
        };
        match other {
            Some(other) if entry.is_reverse() && !other.is_reverse() => {
                Ok(Some(pair(other_key, other, entry)))
            }
            Some(other) if !entry.is_reverse() && other.is_reverse() => {
                Ok(Some(pair(key, entry, other)))
            }
            // A flow that is being created or removed may have only one half.
            _ => {
                if self.resting(entry.created_ns) > ORPHAN_AGE {
                    self.maps.remove_flow(Table::Flows, &key, |it| it.is_same(&entry))?;
                }
                Ok(None)
            }
        }
    }

    fn end(&mut self, pair: &Pair, why: EndedFor, ended: &mut Vec<EndedFlow>) -> Result<(), Error> {
        let forward = &pair.forward;
        // Packets may have arrived since the decision.
        let rests = matches!(why, EndedFor::Idle | EndedFor::Closed);
        let is_it =
            |it: &FlowEntry| it.is_same(forward) && !(rests && it.seen_ns != forward.seen_ns);
        if !self.maps.remove_flow(pair.table, &pair.key, is_it)? {
            return Ok(());
        }
        if let Some(reverse) = &pair.reverse {
            let key = forward.other_key(pair.key.protocol);
            self.maps.remove_flow(Table::Flows, &key, |it| it.is_same(reverse))?;
        }
        ended.push(self.ended(pair, why));
        Ok(())
    }

    fn ended(&self, pair: &Pair, why: EndedFor) -> EndedFlow {
        let rules = self.rules(pair.forward.member);
        // Routed packets are still forwarded without weir.
        let is_routed = self.roster.get(pair.forward.member).is_some_and(KnownMember::is_route);
        let wanted = match why {
            EndedFor::Removed if is_routed => false,
            EndedFor::Idle => rules.reset_on_timeout,
            EndedFor::MemberDown => rules.reset_on_member_down,
            EndedFor::Removed | EndedFor::Command => true,
            EndedFor::Closed => false,
        };
        let is_open = pair.state() == FlowState::Open && pair.key.protocol == TCP;
        EndedFlow {
            flow: self.describe(pair),
            why,
            reset: wanted && is_open,
            client_expects: [
                pair.forward.acknowledged,
                pair.reverse.map_or(pair.forward.acknowledged, |it| it.sent),
            ],
            member_expects: pair
                .reverse
                .filter(|_| rules.is_translated)
                .map(|it| [it.acknowledged, pair.forward.sent]),
        }
    }

    /// A flow for a report.
    fn describe(&self, pair: &Pair) -> Flow {
        let known = self.roster.get(pair.forward.member);
        let name = known.and_then(|known| known.name.clone());
        let end = |address, port| End { address, port };
        let (packets_out, bytes_out) = pair.reverse.map_or((0, 0), |it| (it.packets, it.bytes));
        Flow {
            protocol: pair.key.protocol,
            client: end(pair.key.source, pair.key.source_port),
            destination: end(pair.key.target, pair.key.target_port),
            source: end(pair.forward.source, pair.forward.source_port),
            target: end(pair.forward.target, pair.forward.target_port),
            virtual_server: known
                .filter(|known| known.has_server)
                .and_then(|known| known.server_name.clone()),
            member: name,
            state: pair.state(),
            idle: self.resting(pair.seen_ns()),
            age: self.resting(pair.forward.created_ns),
            packets_in: pair.forward.packets,
            bytes_in: pair.forward.bytes,
            packets_out,
            bytes_out,
        }
    }

    /// The flows that match the filter.
    pub fn flows(&mut self, filter: &FlowFilter) -> Result<Vec<Flow>, Error> {
        let pairs = self.pairs(filter)?;
        Ok(pairs.iter().map(|pair| self.describe(pair)).collect())
    }

    fn pairs(&mut self, filter: &FlowFilter) -> Result<Vec<Pair>, Error> {
        let mut found = Vec::new();
        for table in [Table::Flows, Table::Direct] {
            let mut at = None;
            loop {
                let part = self.maps.read_flows(table, at, PART_BUCKETS)?;
                for (key, forward) in part.entries {
                    if found.len() >= filter.flows_max {
                        return Ok(found);
                    }
                    if forward.is_reverse() || !self.is_wanted(filter, &key, &forward) {
                        continue;
                    }
                    let reverse = match table {
                        Table::Flows => self.maps.flow(table, &forward.other_key(key.protocol))?,
                        Table::Direct => None,
                    };
                    found.push(Pair { table, key, forward, reverse });
                }
                at = part.next;
                if at.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn is_wanted(&self, filter: &FlowFilter, key: &FlowKey, forward: &FlowEntry) -> bool {
        let known = self.roster.get(forward.member);
        let name = known.and_then(|known| known.name.as_ref());
        let server = known.and_then(|known| known.server_name.as_ref());
        filter.client.is_none_or(|client| client == key.source)
            && filter.virtual_server.as_ref().is_none_or(|wanted| server == Some(wanted))
            && filter
                .member_address
                .is_none_or(|wanted| name.is_some_and(|name| name.address == wanted))
            && filter
                .member_port
                .is_none_or(|wanted| name.is_some_and(|name| name.port == Some(wanted)))
    }

    /// Ends a flow by its key.
    pub fn end_one(&mut self, key: &FlowKey) -> Result<Option<EndedFlow>, Error> {
        let mut ended = Vec::new();
        for table in [Table::Flows, Table::Direct] {
            let Some(forward) = self.maps.flow(table, key)? else { continue };
            let reverse = match table {
                Table::Flows => self.maps.flow(table, &forward.other_key(key.protocol))?,
                Table::Direct => None,
            };
            self.end(&Pair { table, key: *key, forward, reverse }, EndedFor::Command, &mut ended)?;
        }
        Ok(ended.pop())
    }

    /// Ends all flows that match the filter.
    pub fn end_all(&mut self, filter: &FlowFilter) -> Result<Vec<EndedFlow>, Error> {
        let mut ended = Vec::new();
        for pair in self.pairs(filter)? {
            self.end(&pair, EndedFor::Command, &mut ended)?;
        }
        Ok(ended)
    }
}

/// Minimum age at which half of a flow counts as orphaned, not as being created.
const ORPHAN_AGE: Duration = Duration::from_secs(2);
