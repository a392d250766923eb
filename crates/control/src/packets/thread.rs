//! The thread of the packet path. No other thread waits for maps.
//!
//! Every [`TICK`], the thread applies changes of members' health. At its [`Pace`], it ends idle flows and updates the
//! [`Board`]. Commands arrive over a bounded channel.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use weir_config::snapshot::packet::Delivery;
use weir_exchange::shared::live::LiveTable;
use weir_packet::plan::Plan;
use weir_packet::{
    Attachment, EndedFlow, Error, Flow, FlowFilter, Options, PacketPath, Resetter, RungsAllowed,
    Shortage, Sweep,
};

use super::host::ThisHost;
use super::interfaces::Interfaces;
use super::lock::Lock;
use super::pace::{Pace, Part};
use super::plan::{Difference, THIS_HOST, difference, plan};
use super::report::{Board, Report};
use crate::events::Events;

/// The interval between checks of the members.
const TICK: Duration = Duration::from_millis(100);

/// Maximum interval between updates of the board.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Ending a flow takes as long as reading this number of entries.
const ENTRIES_PER_END: f64 = 70.0;

/// The interval between queries of this host's addresses.
const ROUTES_INTERVAL: Duration = Duration::from_secs(10);

/// The interval between confirmations of stale neighbours.
const NEIGHBOURS_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of flows that one command ends.
pub(super) const ENDED_FLOWS_MAX: usize = 1 << 16;

/// Commands to the thread.
pub(super) enum Command {
    /// Opens the packet path on these interfaces.
    Open(PacketPathRequest, SyncSender<Result<OpenedPath, String>>),
    /// As [`Self::Open`], for a caller that must not block.
    OpenAhead(PacketPathRequest, oneshot::Sender<()>),
    /// Applies the newest table.
    InForce(Arc<Newest>),
    /// Detaches from interfaces that are not requested any more.
    LeaveOthers,
    /// Lists flows.
    Flows(FlowFilter, oneshot::Sender<Result<Vec<Flow>, String>>),
    /// Ends flows.
    End(FlowFilter, oneshot::Sender<Result<EndedFlows, String>>),
    /// Accepts no new flows. The thread ends after the last flow, at the latest at this time.
    Drain(Instant),
    /// Stops the thread.
    Stop(Exit),
}

/// The newest table, if the thread has not applied it yet. So at most one command to apply a table waits, however fast members
/// change.
#[derive(Debug, Default)]
pub(super) struct Newest(Mutex<Option<Arc<LiveTable>>>);

impl Newest {
    /// Replaces the table. Returns whether the thread must be told: no command for it waits.
    pub fn put(&self, table: Arc<LiveTable>) -> bool {
        self.lock().replace(table).is_none()
    }

    fn take(&self) -> Option<Arc<LiveTable>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<LiveTable>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The treatment of flows when the thread ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Flows end.
    Detach,
    /// Flows continue without weir.
    Keep,
    /// Flows continue if there were flows before this process, or if a configuration was active. Otherwise they end.
    Abandon,
}

/// The requested settings of the packet path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PacketPathRequest {
    pub options: Options,
    pub interfaces: Vec<String>,
    pub allowed: RungsAllowed,
}

/// The result of opening the packet path.
#[derive(Debug)]
pub(super) struct OpenedPath {
    pub attachments: Vec<Attachment>,
    /// Whether flows of a previous process were taken over.
    pub taken_over: bool,
}

/// The result of a command that ends flows.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndedFlows {
    /// The number of ended flows.
    pub flows: u64,
    /// The number of sent TCP resets.
    pub resets: u64,
}

/// An open and locked packet path.
struct Open {
    path: PacketPath,
    options: Options,
    resetter: Resetter,
    lock: Lock,
    /// The attached interfaces, including those of the active configuration while another one is being prepared.
    interfaces: Interfaces,
    /// The requested interfaces.
    wanted: Vec<String>,
}

/// The state of the thread.
pub(super) struct Keeper {
    events: Events,
    board: Board,
    open: Option<Open>,
    table: Option<Arc<LiveTable>>,
    plan: Option<Plan>,
    report: Report,
    /// The sum of the epochs of all pools. It changes when the state of a member changes.
    epochs: u64,
    pace: Pace,
    told_at: Instant,
    /// The number of flows in the current sweep, and of those followed in both directions.
    counted: u64,
    followed: u64,
    /// The number of flows that the current sweep has taken out of the flow table.
    freed: u64,
    /// The value of `followed` at the end of the last complete sweep.
    followed_before: u64,
    /// The number of packets without room for a flow, at the last check.
    shortage: Shortage,
    /// The number of flows that need weir's programs, at the last complete sweep; `None`: no complete sweep yet.
    flows: Option<u64>,
    planned_at: Instant,
    confirmed_at: Instant,
    told_of_neighbours: bool,
    told_of_routes: bool,
    drains_until: Option<Instant>,
}

impl Keeper {
    pub fn new(events: Events, board: Board) -> Self {
        let now = Instant::now();
        Self {
            events,
            board,
            open: None,
            table: None,
            plan: None,
            report: Report::default(),
            epochs: 0,
            pace: Pace::new(now),
            told_at: now,
            counted: 0,
            followed: 0,
            freed: 0,
            followed_before: 0,
            shortage: Shortage::default(),
            flows: None,
            planned_at: now,
            confirmed_at: now,
            told_of_neighbours: false,
            told_of_routes: false,
            drains_until: None,
        }
    }

    /// Executes commands and periodic work until the thread is stopped.
    pub fn run(mut self, commands: &Receiver<Command>) {
        loop {
            match commands.recv_timeout(self.rest()) {
                Ok(Command::Stop(exit)) => return self.stop(exit),
                Ok(command) => self.obey(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.stop(Exit::Abandon),
            }
            if self.tick() {
                return self.stop(Exit::Detach);
            }
        }
    }

    /// The time until the next periodic work.
    fn rest(&self) -> Duration {
        let is_at_work = self.open.is_some() && self.table.is_some();
        if is_at_work { TICK.min(self.pace.rests_for(Instant::now())) } else { TICK }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Open(wanted, answer) => {
                // If the receiver has given up, the path stays open.
                let _ = answer.send(self.open(wanted));
            }
            Command::OpenAhead(wanted, done) => {
                // The result reaches the next caller of `open`: an open path is not opened again, and a failure repeats.
                let _ = self.open(wanted);
                let _ = done.send(());
            }
            Command::InForce(newest) => {
                self.table = newest.take().or_else(|| self.table.take());
                self.put_in_force();
                self.leave_others();
                self.tell();
            }
            Command::LeaveOthers => self.leave_others(),
            Command::Flows(filter, answer) => {
                let _ = answer.send(self.flows(&filter));
            }
            Command::End(filter, answer) => {
                let _ = answer.send(self.end(&filter));
            }
            Command::Drain(until) => {
                self.drains_until = Some(until);
                self.put_in_force();
                // Existing flows are counted again before the count can end the drain.
                self.flows = None;
                self.pace.begin_anew(Instant::now());
                if let Some(open) = &mut self.open {
                    open.path.sweep_anew();
                }
            }
            Command::Stop(_) => {}
        }
    }

    /// Opens the packet path on these interfaces. After an error it is closed, unless it was attached before.
    fn open(&mut self, wanted: PacketPathRequest) -> Result<OpenedPath, String> {
        if self.open.as_ref().is_some_and(|open| open.options != wanted.options) {
            self.close(false);
        }
        if self.open.is_none() {
            let options = wanted.options;
            let name = &options.name;
            let before = Lock::take(name)?;
            // This comes first: if it fails, nothing has been pinned yet.
            let resetter = Resetter::open().map_err(|error| error.to_string())?;
            let path = PacketPath::open(&options).map_err(|error| error.to_string())?;
            let lock = match before {
                Some(lock) => lock,
                None => Lock::take(name)?.ok_or("no BPF file system is mounted at /sys/fs/bpf")?,
            };
            self.report = Report {
                name: name.clone(),
                taken_over: path.taken_over(),
                flows_max: options.flows_max,
                ..Report::default()
            };
            let interfaces = Interfaces::default();
            let wanted = Vec::new();
            self.open = Some(Open { path, options, resetter, lock, interfaces, wanted });
            // The active table is written into the new maps.
            self.plan = None;
            if self.table.is_some() {
                self.put_in_force();
            }
        }
        let Some(open) = &mut self.open else { return Err("it is not open".into()) };
        let mut names = wanted.interfaces.clone();
        if self.plan.is_some() {
            let others = open.interfaces.names.iter().filter(|name| !names.contains(name));
            names.extend(others.cloned().collect::<Vec<_>>());
        }
        // The interfaces are recorded before the programs are attached, so that an interface that appears meanwhile is
        // noticed.
        open.interfaces = Interfaces::look(names, wanted.allowed);
        open.wanted = wanted.interfaces;
        match open.path.attach(&open.interfaces.names, wanted.allowed) {
            Ok(attachments) => {
                self.report.attachments.clone_from(&attachments);
                let is_wanted = |it: &Attachment| open.wanted.contains(&it.interface);
                let attachments = attachments.into_iter().filter(is_wanted).collect();
                // Flows that were taken over may need interfaces that appear later.
                Ok(OpenedPath { attachments, taken_over: self.report.taken_over })
            }
            Err(error) => {
                let had_any = self.report.attachments.iter().any(|it| it.rung.is_some());
                if !had_any {
                    self.close(self.report.taken_over);
                }
                Err(error.to_string())
            }
        }
    }

    /// Detaches from interfaces that the active configuration does not need.
    fn leave_others(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.interfaces.names == open.wanted {
            return;
        }
        open.interfaces = Interfaces::look(open.wanted.clone(), open.interfaces.allowed);
        match open.path.attach(&open.interfaces.names, open.interfaces.allowed) {
            Ok(attachments) => self.report.attachments = attachments,
            Err(error) => self.fail("cannot leave interfaces", &error),
        }
    }

    /// Applies the table.
    fn put_in_force(&mut self) {
        let (Some(table), Some(open)) = (&self.table, &mut self.open) else { return };
        self.epochs = epochs(table);
        self.planned_at = Instant::now();
        let next = plan(table, &ThisHost::look(), self.drains_until.is_some());
        let done = match self.plan.as_ref().map_or(Difference::Whole, |it| difference(it, &next)) {
            Difference::None => Ok(()),
            Difference::States(states) => {
                states.iter().try_for_each(|(member, state)| open.path.set_member(member, *state))
            }
            Difference::Whole => open.path.apply(&next).map(|_| ()),
        };
        match done {
            Ok(()) => {
                if self.plan.as_ref() != Some(&next) {
                    // Members may be down, and virtual servers may have been removed, so their flows must end soon.
                    self.pace.hasten(Instant::now());
                }
                self.plan = Some(next);
                self.report.generation = table.generation;
            }
            Err(error) => {
                // It is unknown how much of the plan was written, so the next attempt writes all of it.
                self.plan = None;
                self.fail("does not do what the configuration says", &error);
            }
        }
    }

    /// Periodic work. Returns whether all flows have drained.
    fn tick(&mut self) -> bool {
        self.follow_interfaces();
        let Some(table) = self.table.clone() else { return false };
        let routes_may_differ = self.planned_at.elapsed() >= ROUTES_INTERVAL;
        if self.epochs != epochs(&table) || self.plan.is_none() || routes_may_differ {
            self.put_in_force();
        }
        self.confirm_neighbours();
        self.watch_routes();
        self.look_for_room();
        if self.open.is_some() && self.pace.is_due(Instant::now()) {
            self.sweep();
        }
        if self.told_at.elapsed() >= TELL_INTERVAL && self.open.is_some() {
            self.tell();
        }
        let Some(until) = self.drains_until else { return false };
        let packets = table.snapshot.packets.iter();
        // Flows with direct return are not followed to their end.
        let is_followed = packets
            .flat_map(|packets| &packets.servers)
            .all(|server| server.delivery != Delivery::DirectReturn);
        (is_followed && self.flows == Some(0)) || Instant::now() >= until
    }

    /// Attaches to interfaces that have appeared or been replaced.
    fn follow_interfaces(&mut self) {
        let Some(open) = &mut self.open else { return };
        if !open.interfaces.have_changed() {
            return;
        }
        let attached = open.path.attach(&open.interfaces.names, open.interfaces.allowed);
        match attached {
            Ok(attachments) => {
                for it in attachments.iter().filter(|it| !self.report.attachments.contains(it)) {
                    let subject = format_args!("interface {}", it.interface);
                    match it.rung {
                        Some(rung) => self
                            .events
                            .info(subject, format_args!("gives packets by {} now", rung.name())),
                        None => self.events.warning(subject, "no longer gives packets"),
                    }
                }
                self.report.attachments = attachments;
                self.tell();
            }
            Err(error) => self.fail("cannot attach to interfaces that came or went", &error),
        }
    }

    /// Makes the kernel confirm stale neighbours. By itself, the kernel confirms neighbours only for its own packets, not
    /// for packets that programs send.
    fn confirm_neighbours(&mut self) {
        let Some(open) = &self.open else { return };
        if self.confirmed_at.elapsed() < NEIGHBOURS_INTERVAL {
            return;
        }
        self.confirmed_at = Instant::now();
        if let Err(error) = open.path.confirm_neighbours() {
            // The warning is reported once, because the error would recur every time.
            if !std::mem::replace(&mut self.told_of_neighbours, true) {
                let what = format_args!("cannot have its neighbours confirmed: {error}");
                self.events.warning("packet path", what);
            }
        }
    }

    /// Checks whether programs may cache routes for a short time.
    fn watch_routes(&mut self) {
        let Some(open) = &mut self.open else { return };
        if let Err(error) = open.path.watch_routes(Instant::now()) {
            // The warning is reported once. Packets continue, each with its own route lookup.
            if !std::mem::replace(&mut self.told_of_routes, true) {
                let what = format_args!("cannot watch routes: {error}");
                self.events.warning("packet path", what);
            }
        }
    }

    /// Hastens the sweep if packets found no room for a flow, or no source port.
    fn look_for_room(&mut self) {
        let Some(open) = &self.open else { return };
        // An error here is reported when all counters are read.
        let Ok(shortage) = open.path.shortage() else { return };
        if shortage.room > self.shortage.room {
            self.pace.hasten_for_room(Instant::now());
        }
        if shortage.ports > self.shortage.ports {
            self.pace.hasten_for_ports(Instant::now());
        }
        self.shortage = shortage;
    }

    /// Executes a part of a sweep, which ends idle flows. Commands wait only for one part.
    fn sweep(&mut self) {
        let began = Instant::now();
        if self.pace.begin_part(began) {
            (self.counted, self.followed, self.freed) = (0, 0, 0);
        }
        let Some(open) = &mut self.open else { return };
        let (is_last, looking_share) = match open.path.sweep(weir_packet::now()) {
            Ok(sweep) => {
                self.counted += sweep.flows;
                self.followed += sweep.followed;
                self.freed += sweep.freed;
                if sweep.whole {
                    self.report.flows = self.counted;
                    self.followed_before = self.followed;
                    self.flows = Some(open.path.flows_to_members());
                }
                self.account(&sweep.ended);
                (sweep.whole, looking_share(&sweep))
            }
            Err(error) => {
                open.path.sweep_anew();
                self.fail("cannot look at its flows", &error);
                (true, 1.0)
            }
        };
        if self.drains_until.is_some() {
            self.pace.hasten(Instant::now());
        }
        let now = Instant::now();
        // Only the time for reading entries counts for the pace: ending flows cannot be postponed, because their number
        // would grow.
        let part = Part {
            took: (now - began).mul_f64(looking_share),
            is_last,
            flows: self.followed_before.max(self.followed),
            flows_max: u64::from(self.report.flows_max),
            freed: self.freed,
        };
        self.pace.end_part(now, &part);
        if is_last {
            self.tell();
        }
    }

    /// Counts ended flows, and sends their resets. Returns the number of sent resets.
    fn account(&mut self, ended: &[EndedFlow]) -> u64 {
        let mut resets = 0;
        for flow in ended {
            self.report.ended.count(flow.why);
            let Some(open) = &mut self.open else { continue };
            match open.resetter.reset(flow) {
                Ok(sent) => resets += u64::from(sent),
                // A peer that gets no reset ends the connection after its own timeout.
                Err(error) => self.report.failure = Some(format!("cannot send a reset: {error}")),
            }
        }
        self.report.resets += resets;
        resets
    }

    /// Updates the board.
    fn tell(&mut self) {
        self.told_at = Instant::now();
        let Some(open) = &self.open else { return self.board.tell(None) };
        let read = || -> Result<_, Error> {
            Ok((open.path.server_totals()?, open.path.member_totals()?, open.path.reasons()?))
        };
        match read() {
            Ok((mut servers, members, reasons)) => {
                servers.retain(|(name, _)| name != THIS_HOST);
                self.report.servers = servers;
                self.report.members = members;
                self.report.reasons = reasons;
                if self.plan.is_some() {
                    self.report.failure = None;
                }
            }
            Err(error) => self.fail("cannot read its counters", &error),
        }
        self.board.tell(Some(self.report.clone()));
    }

    fn fail(&mut self, what: &str, error: &Error) {
        let failure = format!("{what}: {error}");
        if self.report.failure.as_ref() != Some(&failure) {
            self.events.error("packet path", &failure);
        }
        self.report.failure = Some(failure);
        self.board.tell(Some(self.report.clone()));
    }

    fn flows(&mut self, filter: &FlowFilter) -> Result<Vec<Flow>, String> {
        let open = self.open.as_mut().ok_or(NOT_OPEN)?;
        open.path.flows(filter).map_err(|error| error.to_string())
    }

    fn end(&mut self, filter: &FlowFilter) -> Result<EndedFlows, String> {
        let open = self.open.as_mut().ok_or(NOT_OPEN)?;
        let flows = open.path.flows(filter).map_err(|error| error.to_string())?;
        let mut ended = Vec::with_capacity(flows.len());
        for flow in &flows {
            // `None`: the flow has ended in the meantime.
            ended.extend(open.path.end_flow(flow).map_err(|error| error.to_string())?);
        }
        let resets = self.account(&ended);
        Ok(EndedFlows { flows: ended.len() as u64, resets })
    }

    fn stop(mut self, exit: Exit) {
        let was_there = self.report.taken_over || self.plan.is_some();
        self.close(exit == Exit::Keep || exit == Exit::Abandon && was_there);
    }

    fn close(&mut self, is_kept: bool) {
        let Some(Open { path, lock, .. }) = self.open.take() else { return };
        self.board.tell(None);
        if is_kept {
            path.release();
            let what = "continues without weir until the next weir takes it over, or `weir l4 detach` ends it";
            self.events.info("packet path", what);
        } else if let Err(error) = path.detach() {
            let what = format_args!("is not removed: {error}; `weir l4 detach` does it");
            self.events.error("packet path", what);
        }
        drop(lock);
    }
}

/// The share of a sweep's time that was spent on reading entries.
fn looking_share(sweep: &Sweep) -> f64 {
    let (looked, ended) = (sweep.entries as f64, sweep.ended.len() as f64);
    looked / (looked + ended * ENTRIES_PER_END).max(1.0)
}

/// The error of commands without an open packet path.
const NOT_OPEN: &str = "no virtual server is served by packets";

fn epochs(table: &LiveTable) -> u64 {
    let epochs = table.pools.iter().map(|pool| u64::from(pool.pool.epoch.load(Relaxed)));
    epochs.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pool, snapshot};

    #[test]
    fn one_command_applies_the_newest_of_several_tables() {
        let table = |_| {
            let snapshot = snapshot(vec![pool("p", &[], &[])]);
            Arc::new(LiveTable::build(snapshot, None, 1, &weir_dataplane::outside()))
        };
        let (newest, tables) = (Newest::default(), [0, 1, 2].map(table));
        assert!(newest.put(Arc::clone(&tables[0])), "a command is sent");
        assert!(!newest.put(Arc::clone(&tables[1])), "one waits already");
        assert!(newest.take().is_some_and(|it| Arc::ptr_eq(&it, &tables[1])));
        assert!(newest.take().is_none());
        assert!(newest.put(Arc::clone(&tables[2])), "the thread has the others");
    }
}
