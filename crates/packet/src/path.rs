//! The handle of the packet path.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::programs::{ProgramError, TestRun as _, TestRunOptions};

use crate::apply::{Writer, write_ring};
use crate::attach::{self, Attacher, Links};
use crate::error::{Error, kernel};
use crate::layout::{self, FlowKey};
use crate::maps::{self, Maps, chain, map_error};
use crate::netlink;
use crate::options::{FLOWS_MAX, Options, RungsAllowed};
use crate::plan::{Delivery, MemberName, MemberState, Plan};
use crate::roster::{Roster, state_number};
use crate::routing::Routing;
use crate::sweep::{Progress, Rules, Walk};
use crate::{
    ApplyReport, Attachment, EndedFlow, Flow, FlowFilter, Reason, ReasonCount, Rung, Shortage,
    Sweep, Totals, check, pins,
};

/// Number of entries and buckets that one part of a sweep examines, in less than 10 ms. A flow has two entries, and the table
/// three buckets for eight flows.
pub const SWEEP_ENTRIES_MAX: u32 = 32_768;

/// The result of [`PacketPath::watch_routes`] is valid for this time: the watching process may have ended.
pub const ROUTES_HOLD: Duration = Duration::from_secs(1);

/// Number of complete sweeps without a flow before the number of a removed member is reused.
const EMPTY_SWEEPS_MIN: u32 = 3;

/// The packet path of one process. Dropped without [`PacketPath::detach`], it stays attached and pinned, as after a
/// crash.
pub struct PacketPath {
    object: Ebpf,
    maps: Maps,
    links: Links,
    folder: PathBuf,
    roster: Roster,
    plan: Plan,
    rules: HashMap<u32, Rules>,
    progress: Progress,
    routing: Routing,
    epoch: u32,
    /// Possible CPUs: the number of values in per-CPU maps.
    cpus: u32,
    taken_over: bool,
}

impl std::fmt::Debug for PacketPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PacketPath").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Options for running one packet through a program, by BPF_PROG_TEST_RUN.
#[derive(Debug, Clone)]
pub struct TrialOptions<'a> {
    /// The program.
    pub rung: Rung,
    /// The packet, from its Ethernet header on.
    pub packet: &'a [u8],
    /// The interface that it arrives at, in the network namespace of this thread; it must exist.
    pub interface: &'a str,
    /// The number of repetitions.
    pub repeat: u32,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The program's return value: XDP_* or TCX_*.
    pub verdict: u32,
    /// The packet afterwards.
    pub packet: Vec<u8>,
    /// Mean time of one run.
    pub time: Duration,
}

/// The verifier stops at a signal, even one for another thread; loading is retried this often (as libbpf does).
const LOAD_TRIES_MAX: u32 = 50;

fn load(
    name: &str,
    mut load: impl FnMut() -> Result<Result<(), ProgramError>, Error>,
) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        match load()? {
            Ok(()) => return Ok(()),
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.kind() == std::io::ErrorKind::WouldBlock && tries < LOAD_TRIES_MAX =>
            {
                tries += 1;
            }
            Err(error) => {
                return Err(kernel(&format!("loading the program {name}"), chain(&error)));
            }
        }
    }
}

/// The number of online cores: ports for source translation are divided among them.
fn cores_online() -> u32 {
    aya::util::online_cpus().map_or(1, |cores| cores.len().max(1) as u32)
}

/// The time of the clock for flows: CLOCK_MONOTONIC_COARSE.
pub fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl PacketPath {
    /// Loads the programs; creates the maps, or takes over those that a previous process left pinned.
    pub fn open(options: &Options) -> Result<Self, Error> {
        if !cfg!(target_arch = "x86_64") {
            let why = "the flow table needs a processor that keeps the order of loads: x86-64";
            return Err(kernel("opening the packet path", why.to_owned()));
        }
        let size = |what: &str, size: u32, min: u32| {
            let why = format!("{what} is {size}: it has to be {min} to {FLOWS_MAX}");
            if (min..=FLOWS_MAX).contains(&size) { Ok(()) } else { Err(Error::Name { what: why }) }
        };
        size("flows_max", options.flows_max, 1)?;
        size("remembered_max", options.remembered_max, 256)?;
        let folder = pins::prepare(options)?;
        let taken_over = pins::can_take_over(&folder, options)?;
        let mut object = maps::load(&folder, options)?;
        let (xdp, tcx) = (attach::xdp, attach::tcx);
        load(attach::XDP, || xdp(&mut object).map(|program| program.load()))?;
        load(attach::TCX, || tcx(&mut object).map(|program| program.load()))?;
        let maps = Maps::take(&mut object, options)?;
        let cpus =
            aya::util::nr_cpus().map_err(|(what, error)| kernel(what, error.to_string()))? as u32;
        let mut path = Self {
            object,
            maps,
            links: Links::default(),
            folder,
            roster: Roster::default(),
            plan: Plan::default(),
            rules: HashMap::new(),
            progress: Progress::default(),
            routing: Routing::default(),
            epoch: 0,
            cpus,
            taken_over,
        };
        if taken_over {
            path.adopt()?;
        }
        Ok(path)
    }

    /// Reads the numbers that a previous process has assigned.
    fn adopt(&mut self) -> Result<(), Error> {
        self.epoch =
            self.maps.active.get(&0, 0).map_err(map_error("reading the plan in effect"))? & 1;
        for number in 0..layout::SERVERS {
            let index = self.epoch * layout::SERVERS + number;
            let bytes =
                self.maps.servers.get(&index, 0).map_err(map_error("reading a virtual server"))?;
            match layout::Server::identity_of(&bytes) {
                0 => {}
                identity => self.roster.adopt_server(number, identity),
            }
        }
        for number in 0..crate::plan::MEMBERS_MAX as u32 {
            let bytes = self.maps.members.get(&number, 0).map_err(map_error("reading a member"))?;
            let member = layout::Member::decode(&bytes);
            if member.state != layout::MEMBER_FREE {
                self.roster.adopt(number, member);
            }
        }
        Ok(())
    }

    /// Whether maps of a previous process were taken over, with their flows.
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }

    /// Attaches to these interfaces, each in the best way that is permitted and supported by its driver, and detaches
    /// from all others. On an interface that is attached already, the programs are replaced in one step, without losing
    /// a packet. Interfaces belong to the network namespace of the calling thread, and a missing one is reported
    /// without a way; call this again when interfaces come or go.
    pub fn attach(
        &mut self,
        interfaces: &[String],
        allowed: RungsAllowed,
    ) -> Result<Vec<Attachment>, Error> {
        let mut attacher = Attacher {
            object: &mut self.object,
            maps: &mut self.maps,
            links: &mut self.links,
            folder: &self.folder,
        };
        attacher.attach(interfaces, allowed)
    }

    /// Activates a plan in one step, in place of the previous one.
    pub fn apply(&mut self, plan: &Plan) -> Result<ApplyReport, Error> {
        check::check(plan)?;
        let epoch = 1 - self.epoch;
        let mut writer =
            Writer { maps: &mut self.maps, roster: &mut self.roster, epoch, cpus: cores_online() };
        let applied = writer.apply(plan)?;
        self.epoch = epoch;
        self.plan = plan.clone();
        self.rules = plan
            .virtual_servers
            .iter()
            .filter_map(|server| Some((self.roster.server_number(server)?, Rules::of(server))))
            .collect();
        Ok(applied)
    }

    /// Sets whether a member gets flows, until the next plan.
    pub fn set_member(&mut self, member: &MemberName, state: MemberState) -> Result<(), Error> {
        let unknown = || Error::Unknown {
            what: format!("{} has no member {}", member.virtual_server, member.address),
        };
        let number = self.roster.number(member).ok_or_else(unknown)?;
        let known =
            self.roster.get_mut(number).filter(|known| known.is_planned).ok_or_else(unknown)?;
        known.entry.state = state_number(state);
        let entry = known.entry;
        self.maps.members.set(number, entry.encode(), 0).map_err(map_error("writing a member"))?;
        let plan = self.plan.virtual_servers.iter().find(|server| {
            server.name == member.virtual_server && server.is_v4() == member.address.is_ipv4()
        });
        let index = self.epoch * layout::SERVERS + entry.server;
        let has_ring = write_ring(&mut self.maps, &self.roster, plan.ok_or_else(unknown)?, index)?;
        let mut bytes =
            self.maps.servers.get(&index, 0).map_err(map_error("reading a virtual server"))?;
        if layout::Server::set_ring(&mut bytes, has_ring) {
            self.maps
                .servers
                .set(index, bytes, 0)
                .map_err(map_error("writing a virtual server"))?;
        }
        Ok(())
    }

    fn walk(&mut self, now: Duration) -> (Walk<'_>, &mut Progress) {
        let walk = Walk { maps: &mut self.maps, roster: &self.roster, rules: &self.rules, now };
        (walk, &mut self.progress)
    }

    /// Ends flows that have been idle for too long, flows of members that are down, and flows of removed virtual
    /// servers, in one part of the table; the next call continues behind it. `now` is [`now`].
    pub fn sweep(&mut self, now: Duration) -> Result<Sweep, Error> {
        let (mut walk, progress) = self.walk(now);
        let sweep = walk.sweep(progress, SWEEP_ENTRIES_MAX)?;
        if sweep.whole {
            self.forget_members()?;
        }
        Ok(sweep)
    }

    /// Restarts the sweep: the next call begins at the start of the table.
    pub fn sweep_anew(&mut self) {
        self.progress.begin_anew();
    }

    /// Frees the numbers of removed members without flows; their counts go to their virtual server.
    fn forget_members(&mut self) -> Result<(), Error> {
        let mut gone = Vec::new();
        for (number, known) in self.roster.all_mut().filter(|(_, known)| !known.is_planned) {
            let has_flows = self.progress.flows.of(number) > 0;
            known.empty_sweeps = if has_flows { 0 } else { known.empty_sweeps + 1 };
            if known.empty_sweeps >= EMPTY_SWEEPS_MIN {
                gone.push((number, known.entry.server));
            }
        }
        for (number, server) in gone {
            let counted = self.member_count(number)?;
            let before =
                self.maps.server_totals.get(&server, 0).map_err(map_error("reading totals"))?;
            let sum = layout::totals_of(&before).plus(&counted);
            self.maps
                .server_totals
                .set(server, layout::totals_bytes(&sum), 0)
                .map_err(map_error("writing totals"))?;
            let empty = aya::maps::PerCpuValues::try_from(vec![[0; 40]; self.cpus as usize])
                .map_err(|error| kernel("clearing totals", error.to_string()))?;
            self.maps.member_totals.set(number, empty, 0).map_err(map_error("clearing totals"))?;
            self.maps.members.set(number, [0; 32], 0).map_err(map_error("removing a member"))?;
            self.roster.forget(number);
        }
        let planned: HashSet<u32> = self.rules.keys().copied().collect();
        for server in self.roster.forget_servers(&planned) {
            self.maps
                .server_totals
                .set(server, [0; 40], 0)
                .map_err(map_error("clearing totals"))?;
        }
        Ok(())
    }

    /// Flows, unordered. Walks the whole table, which takes about a second with a million flows.
    pub fn flows(&mut self, filter: &FlowFilter) -> Result<Vec<Flow>, Error> {
        self.walk(now()).0.flows(filter)
    }

    /// Ends a flow; `None`: it no longer exists.
    pub fn end_flow(&mut self, flow: &Flow) -> Result<Option<EndedFlow>, Error> {
        let key = FlowKey {
            source: flow.client.address,
            target: flow.destination.address,
            source_port: flow.client.port,
            target_port: flow.destination.port,
            protocol: flow.protocol,
        };
        self.walk(now()).0.end_one(&key)
    }

    /// Ends all flows of a member.
    pub fn end_member_flows(&mut self, member: &MemberName) -> Result<Vec<EndedFlow>, Error> {
        let filter = FlowFilter {
            virtual_server: Some(member.virtual_server.clone()),
            member_address: Some(member.address),
            member_port: member.port,
            client: None,
            flows_max: usize::MAX,
        };
        self.walk(now()).0.end_all(&filter)
    }

    /// The counters of a member, summed over all CPUs.
    fn member_count(&self, number: u32) -> Result<Totals, Error> {
        let cores = self.maps.member_totals.get(&number, 0).map_err(map_error("reading totals"))?;
        Ok(cores.iter().fold(Totals::default(), |sum, core| sum.plus(&layout::totals_of(core))))
    }

    /// Counters per virtual server, in the order of the plan. They include the counters of removed members.
    pub fn server_totals(&self) -> Result<Vec<(String, Totals)>, Error> {
        let mut sums = HashMap::new();
        for (number, known) in self.roster.all() {
            let sum: &mut Totals = sums.entry(known.entry.server).or_default();
            *sum = sum.plus(&self.member_count(number)?);
        }
        let mut all: Vec<(String, Totals)> = Vec::new();
        for server in &self.plan.virtual_servers {
            let Some(number) = self.roster.server_number(server) else { continue };
            let gone =
                self.maps.server_totals.get(&number, 0).map_err(map_error("reading totals"))?;
            let sum = sums.get(&number).copied().unwrap_or_default();
            let sum = sum.plus(&layout::totals_of(&gone));
            // Both families of a virtual server count as one.
            match all.iter_mut().find(|(name, _)| *name == server.name) {
                Some((_, before)) => *before = before.plus(&sum),
                None => all.push((server.name.clone(), sum)),
            }
        }
        Ok(all)
    }

    /// Counters per member, in the order of the plan, with the number of its flows at the last whole sweep.
    pub fn member_totals(&self) -> Result<Vec<(MemberName, Totals, u64)>, Error> {
        let mut all = Vec::new();
        for server in &self.plan.virtual_servers {
            for member in &server.members {
                let name = MemberName {
                    virtual_server: server.name.clone(),
                    address: member.address,
                    port: member.port,
                };
                let Some(number) = self.roster.number(&name) else { continue };
                let flows = self.progress.flows.of(number);
                all.push((name, self.member_count(number)?, flows));
            }
        }
        Ok(all)
    }

    /// Flows at the last complete sweep that need these programs. Flows that follow the routing table do not, because
    /// the kernel forwards their packets too.
    pub fn flows_to_members(&self) -> u64 {
        let has_member =
            |number: u32| self.roster.get(number).is_none_or(|known| !known.is_route());
        let flows = self.progress.flows.all().filter(|(number, _)| has_member(*number));
        flows.map(|(_, flows)| flows).sum()
    }

    /// Packets that did not begin a flow because something was short.
    pub fn shortage(&self) -> Result<Shortage, Error> {
        Ok(Shortage {
            room: self.count_of(Reason::FlowsFull)?,
            ports: self.count_of(Reason::SourcePortsExhausted)?,
        })
    }

    /// Packets by the reason for which they were not forwarded; every reason, in order.
    pub fn reasons(&self) -> Result<Vec<ReasonCount>, Error> {
        let count =
            |reason: &Reason| Ok(ReasonCount { reason: *reason, packets: self.count_of(*reason)? });
        Reason::ALL.iter().map(count).collect()
    }

    /// Packets that were not forwarded for this reason, of all cores.
    fn count_of(&self, reason: Reason) -> Result<u64, Error> {
        // The programs count in the order of the reasons.
        let index = reason as u32;
        let cores = self.maps.reasons.get(&index, 0).map_err(map_error("reading reasons"))?;
        Ok(cores.iter().sum())
    }

    /// Makes the kernel confirm stale neighbours behind the interfaces with programs and behind those that lead to
    /// members; with flows that follow the routing table, behind all. Returns the number of neighbours.
    pub fn confirm_neighbours(&self) -> Result<usize, Error> {
        let servers = &self.plan.virtual_servers;
        if servers.iter().any(|server| server.delivery == Delivery::Route) {
            return netlink::confirm_neighbours(None);
        }
        let members = servers.iter().flat_map(|server| &server.members);
        let addresses = members.map(|member| member.address).collect();
        let mut devices = netlink::devices_toward(&addresses)?;
        devices.append(&mut self.links.interfaces());
        netlink::confirm_neighbours(Some(&devices))
    }

    /// Checks whether IPv4 routes depend only on the destination; if so, lets programs cache routes for 10 ms. Without
    /// another call within [`ROUTES_HOLD`], they look each packet up. Routes are those of the network namespace of the
    /// calling thread at the first call. Returns whether routes are cached.
    pub fn watch_routes(&mut self, now: Instant) -> Result<bool, Error> {
        let looked = self.routing.look(now);
        let until = match &looked {
            Ok(true) => (self::now() + ROUTES_HOLD).as_nanos() as u64,
            Ok(false) | Err(_) => 0,
        };
        self.maps.routes.set(0, until, 0).map_err(map_error("saying what routes depend on"))?;
        looked
    }

    /// Releases the packet path for a restart: programs stay attached, maps stay pinned, packets are still forwarded.
    pub fn release(self) {
        drop(self);
    }

    /// Detaches from all interfaces and removes all pins: nothing is left.
    pub fn detach(mut self) -> Result<(), Error> {
        let removed = pins::remove_all(&self.folder);
        self.links.close();
        removed
    }

    /// Runs a packet through a program without sending it anywhere.
    pub fn trial(&mut self, options: &TrialOptions<'_>) -> Result<Trial, Error> {
        trial(&mut self.object, options)
    }
}

fn trial(object: &mut Ebpf, options: &TrialOptions<'_>) -> Result<Trial, Error> {
    let index = attach::index_of(options.interface)?;
    let mut out = vec![0; options.packet.len() + TRIAL_HEADROOM];
    let (at, context_bytes) = match options.rung {
        Rung::Xdp => (&[12][..], XDP_CONTEXT_BYTES),
        Rung::Tcx => (&[36, 40][..], SKB_CONTEXT_BYTES),
    };
    let mut context = vec![0; context_bytes];
    for offset in at {
        context[*offset..offset + 4].copy_from_slice(&index.to_ne_bytes());
    }
    if options.rung == Rung::Xdp {
        context[4..8].copy_from_slice(&(options.packet.len() as u32).to_ne_bytes());
    }
    let run = TestRunOptions {
        data_in: Some(options.packet),
        data_out: Some(&mut out),
        ctx_in: Some(&context),
        repeat: options.repeat,
        ..TestRunOptions::new()
    };
    let result = match options.rung {
        Rung::Xdp => attach::xdp(object)?.test_run(run),
        Rung::Tcx => attach::tcx(object)?.test_run(run),
    };
    let result = result.map_err(|error| kernel("a trial", chain(&error)))?;
    out.truncate(result.data_size_out as usize);
    Ok(Trial { verdict: result.return_value, packet: out, time: result.duration })
}

/// The number of bytes by which a packet may grow.
const TRIAL_HEADROOM: usize = 256;

/// `struct xdp_md`.
const XDP_CONTEXT_BYTES: usize = 24;

/// `struct __sk_buff`.
const SKB_CONTEXT_BYTES: usize = 192;

#[cfg(test)]
mod tests;
