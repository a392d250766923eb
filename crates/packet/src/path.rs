//! The handle of the packet path.

use std::path::PathBuf;
use std::time::Duration;

use crate::plan::{MemberName, MemberState, Plan};
use crate::{
    Applied, Attachment, Ended, Error, Flow, FlowFilter, ReasonCount, Rung, Sweep, Totals,
};

/// Entries of the flow table (two per flow) that one sweep looks at.
pub const SWEEP_ENTRIES_MAX: u32 = 262_144;

/// How the packet path is made. Tables keep the size that they were made with while they are pinned; with another size in the
/// options, [`PacketPath::open`] makes new ones and flows are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Tells several on one host apart: letters, digits, `-` and `_`, up to 64. Its maps are pinned in a folder of this name.
    pub name: String,
    /// Folder of all, on a BPF file system.
    pub pins: PathBuf,
    /// Flows in both directions that there may be, at most 16,777,216.
    pub flows_max: u32,
    /// Flows of [`crate::plan::Delivery::DirectReturn`], clients with persistence, sources with a rate, and fragmented packets, that are
    /// remembered of each; the oldest are forgotten.
    pub remembered_max: u32,
}

/// Which rungs may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RungsAllowed {
    /// Native XDP.
    pub xdp: bool,
    /// tcx.
    pub tcx: bool,
}

impl Options {
    /// A million flows, under `/sys/fs/bpf/weirgate`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pins: PathBuf::from("/sys/fs/bpf/weirgate"),
            flows_max: 1 << 20,
            remembered_max: 1 << 16,
        }
    }
}

/// The packet path of one process. Dropped without [`PacketPath::detach`], it stays attached and pinned, as after a crash.
#[derive(Debug)]
pub struct PacketPath {}

/// One packet through a program, by BPF_PROG_TEST_RUN.
#[derive(Debug, Clone)]
pub struct TrialOptions<'a> {
    /// Which program.
    pub rung: Rung,
    /// The packet, from its Ethernet header on.
    pub packet: &'a [u8],
    /// The interface that it comes by; it has to be there.
    pub interface: &'a str,
    /// So many times.
    pub repeat: u32,
}

/// What a trial gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// What the program returned: XDP_* or TCX_*.
    pub verdict: u32,
    /// The packet afterwards.
    pub packet: Vec<u8>,
    /// Mean time of one run.
    pub time: Duration,
}

/// Sends resets to both ends of flows that were ended.
#[derive(Debug)]
pub struct Resetter {}

/// The clock that flows are timed by: CLOCK_MONOTONIC_COARSE.
pub fn now() -> Duration {
    unreachable!()
}

/// Detaches and unpins what processes left under `pins`, that of `name` or all. Gives the names of what it removed. It must not run
/// beside a process that uses them.
pub fn detach_leftovers(pins: &std::path::Path, name: Option<&str>) -> Result<Vec<String>, Error> {
    let _ = (pins, name);
    unreachable!()
}

impl PacketPath {
    /// Loads the programs, and makes the maps or takes over those that a process left pinned.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let _ = options;
        unreachable!()
    }

    /// Whether maps of a former process were taken over, with their flows.
    pub fn taken_over(&self) -> bool {
        unreachable!()
    }

    /// Attaches to these interfaces, each at the best rung that is allowed and that its driver has, and detaches from all others. One
    /// that is attached already gets the programs of this process in one step, without a packet between.
    pub fn attach(
        &mut self,
        interfaces: &[String],
        allowed: RungsAllowed,
    ) -> Result<Vec<Attachment>, Error> {
        let _ = (interfaces, allowed);
        unreachable!()
    }

    /// Puts a plan in force in place of the one before, in one step.
    pub fn apply(&mut self, plan: &Plan) -> Result<Applied, Error> {
        let _ = plan;
        unreachable!()
    }

    /// Says whether a member gets flows, until the next plan says otherwise.
    pub fn set_member(&mut self, member: &MemberName, state: MemberState) -> Result<(), Error> {
        let _ = (member, state);
        unreachable!()
    }

    /// Ends flows that have rested too long, and those of members that are down and of virtual servers that are gone. Call it once
    /// a second; `now` is [`now`].
    pub fn sweep(&mut self, now: Duration) -> Result<Sweep, Error> {
        let _ = now;
        unreachable!()
    }

    /// Flows, in no order. Walks the whole table: a matter of a second with a million of them.
    pub fn flows(&self, filter: &FlowFilter) -> Result<Vec<Flow>, Error> {
        let _ = filter;
        unreachable!()
    }

    /// Ends a flow; `None` when it is gone already.
    pub fn end_flow(&mut self, flow: &Flow) -> Result<Option<Ended>, Error> {
        let _ = flow;
        unreachable!()
    }

    /// Ends all flows of a member.
    pub fn end_member_flows(&mut self, member: &MemberName) -> Result<Vec<Ended>, Error> {
        let _ = member;
        unreachable!()
    }

    /// Counters per virtual server, in the order of the plan.
    pub fn server_totals(&self) -> Result<Vec<(String, Totals)>, Error> {
        unreachable!()
    }

    /// Counters per member, in the order of the plan, with the number of its flows at the last whole sweep.
    pub fn member_totals(&self) -> Result<Vec<(MemberName, Totals, u64)>, Error> {
        unreachable!()
    }

    /// Packets by the reason for which they were not forwarded; every reason, in order.
    pub fn reasons(&self) -> Result<Vec<ReasonCount>, Error> {
        unreachable!()
    }

    /// Lets go of it for a restart: programs stay attached, maps stay pinned, packets go on.
    pub fn release(self) {
        unreachable!()
    }

    /// Detaches from all interfaces and removes all pins: nothing is left.
    pub fn detach(self) -> Result<(), Error> {
        unreachable!()
    }

    /// Runs a packet through a program without sending it anywhere.
    pub fn trial(&self, options: &TrialOptions<'_>) -> Result<Trial, Error> {
        let _ = options;
        unreachable!()
    }
}

impl Resetter {
    /// Opens the raw sockets; needs CAP_NET_RAW.
    pub fn open() -> Result<Self, Error> {
        unreachable!()
    }

    /// Sends a reset to both ends where the flow asks for it. Returns how many were sent.
    pub fn reset(&mut self, ended: &Ended) -> Result<u32, Error> {
        let _ = ended;
        unreachable!()
    }
}
