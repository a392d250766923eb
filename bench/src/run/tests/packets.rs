//! Packets at a fixed rate through the product's namespace.
//!
//! The kernel forwards the packets; no process does. The cost is the busy time of the product's core, less its busy
//! time at rest.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{plain_scene, workload};
use crate::catalogue::{IP_FORWARD, NFTABLES, PACKET_CASES};
use crate::load::{LoadOutcome, Observer as _, Window};
use crate::packets::{FRAME_BYTES, INTERVAL_NS_MAX, Sender};
use crate::record::{Product, TestRecord};
use crate::run::extent::{Budget, Extent};
use crate::run::meter::Meter;
use crate::run::namespaces::Role;
use crate::run::packet_bed::{PacketBed, Path4, PathInputs};
use crate::run::process::output_of;
use crate::run::products::WEIR;
use crate::run::rotation::{Failure, Judge, Rounds, Sample, Setting, Stage, Stop, omit, rotate};
use crate::run::session::{Live, Session};
use crate::run::workload::Workload;

/// The test's name.
pub const PACKETS: &str = "l4-packets";

/// The kernel's own forwarding methods, as products of the record.
pub fn packet_products() -> Vec<Product> {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let nft = output_of(&["nft", "--version"].map(OsString::from), Path::new("/"));
    let nft = nft.unwrap_or_default().split_ascii_whitespace().nth(1).unwrap_or("?").to_owned();
    let product =
        |name: &str, version: String| Product { name: name.into(), version, ..Product::default() };
    vec![
        product(NFTABLES, format!("{nft}, Linux {kernel}")),
        product(IP_FORWARD, format!("Linux {kernel}")),
    ]
}

/// Number of flows and path of weir's program, in the order of [`PACKET_CASES`].
const CASES: [(u32, Path4); PACKET_CASES.len()] = [
    (1 << 10, Path4::WeirXdp),
    (1 << 16, Path4::WeirXdp),
    (1 << 20, Path4::WeirXdp),
    (1 << 10, Path4::WeirTcx),
    (1 << 16, Path4::WeirTcx),
];

fn paths(weir: Path4) -> [(&'static str, Path4); 3] {
    [(WEIR, weir), (NFTABLES, Path4::Nftables), (IP_FORWARD, Path4::Forwarding)]
}
/// Packets per flow in the warm-up. Flows are chosen at random, so about one flow in e⁴ (55) is still new afterwards.
const WARMING_PACKETS_PER_FLOW: u64 = 4;
/// Time limit of the warm-up.
const WARMING_MAX: Duration = Duration::from_secs(20);
/// Time limit for a sender's first packet.
const BEGINNING_MAX: Duration = Duration::from_secs(5);
/// Time between two packets of the measurement; every path keeps this rate. At a higher rate the kernel returns the
/// memory of dropped packets to the sender, and the two cores then wait for each other.
const INTERVAL_NS: u32 = 4_000;
const _: () = assert!(INTERVAL_NS <= INTERVAL_NS_MAX);
const LOOK: Duration = Duration::from_millis(10);
/// Entries in the kernel's connection table beyond the flows of a test.
const CONNTRACK_SPARE: u64 = 16_384;

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let scene = plain_scene(test, budget, 0);
    // The session starts no product: each measurement starts its own forwarding.
    let live = session.open_some(test, scene, &[], None, record)?;
    let mut stage = PacketStage { live, flows: 0, paths: paths(Path4::WeirXdp) };
    for &at in budget.settings {
        let (flows, weir) = CASES[at as usize];
        stage.flows = flows;
        stage.paths = paths(weir);
        let base = workload(budget, 0, stage.flows as usize);
        let judge = stage.live.session.judge(Judge::AnyRate);
        let mut workloads = Vec::new();
        for (name, path) in stage.paths {
            match unable(stage.live.session, path, stage.flows) {
                Some(reason) => omit(record, name, Some(at), reason),
                None => workloads.push((name.to_owned(), base.clone())),
            }
        }
        let label = PACKET_CASES[at as usize].to_owned();
        let mut setting = Setting { at, label, judge, workloads };
        let repeats_max = budget.rounds * stage.live.session.pace().repeats_per_round;
        let rounds = Rounds { first: 0, wanted: budget.rounds, of: budget.rounds, repeats_max };
        rotate(&mut stage, &mut setting, rounds, record)?;
    }
    Ok(())
}

/// The reason why this path cannot be measured on this machine.
fn unable(session: &Session<'_>, path: Path4, flows: u32) -> Option<String> {
    if let Err(reason) = PacketBed::make(&session.bed) {
        return Some(reason);
    }
    // A smoke ends before it fills the table.
    if path != Path4::Nftables || session.extent == Extent::Smoke {
        return None;
    }
    let file = "/proc/sys/net/netfilter/nf_conntrack_max";
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The file is absent until the module is loaded. The kernel then chooses a limit that fits the memory.
    let room: u64 = text.trim().parse().ok()?;
    let needed = u64::from(flows) + CONNTRACK_SPARE;
    (room < needed).then(|| {
        format!(
            "the kernel's table of connections has room for {room} and {needed} are needed: sysctl -w \
             net.netfilter.nf_conntrack_max={needed}"
        )
    })
}

struct PacketStage<'s, 'a> {
    live: Live<'s, 'a>,
    flows: u32,
    paths: [(&'static str, Path4); 3],
}

impl PacketStage<'_, '_> {
    fn sample(
        &mut self,
        path: Path4,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure> {
        let session = &mut *self.live.session;
        let unable = Failure::Unable;
        let bed = PacketBed::make(&session.bed).map_err(unable)?;
        let folder = session.store.working(PACKETS, "passing")?;
        let servers: Vec<Ipv4Addr> = session.origin.members.iter().filter_map(ipv4).collect();
        let weir = session.products.iter().find(|found| found.name() == WEIR);
        let means = PathInputs {
            servers: &servers,
            flows: self.flows,
            folder: &folder,
            weir: weir.map(|found| &*found.program),
        };
        let passing = bed.begin(path, &means).map_err(unable)?;
        let sampled = through(session, &bed, (path, self.flows), workload, resting_share);
        bed.end(path, passing).map_err(unable)?;
        sampled
    }
}

fn ipv4(address: &std::net::SocketAddr) -> Option<Ipv4Addr> {
    match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn through(
    session: &Session<'_>,
    bed: &PacketBed<'_>,
    (path, flows): (Path4, u32),
    workload: &Workload,
    resting_share: f64,
) -> Result<Sample, Failure> {
    let unable = Failure::Unable;
    let cannot = |error| unable(format!("packets cannot be sent: {error}"));
    let send = |interval_ns| {
        let enter = session.bed.entering(Role::Client);
        Sender::start(bed.sending(path, flows, interval_ns), enter).map_err(cannot)
    };
    let warming = send(0)?;
    warm_up(session, bed, &warming, flows, workload)?;
    warming.end().map_err(cannot)?;
    let before = bed.arrived().map_err(unable)?;
    let sender = send(INTERVAL_NS)?;
    wait_for_packets(session, bed, &sender, before)?;
    std::thread::sleep(workload.warm_up);
    let processes = (bed.worker(), session.origin.id());
    let mut meter = Meter::new(&session.bed.cores, processes, &session.energy);
    let (before, began) = (bed.arrived().map_err(unable)?, Instant::now());
    meter.measurement_began();
    std::thread::sleep(workload.measure);
    meter.measurement_ended();
    let (arrived, elapsed_s) = (bed.arrived().map_err(unable)?, began.elapsed().as_secs_f64());
    let arrived = arrived.saturating_sub(before);
    let sent_until_the_end = sender.is_sending();
    let ended = sender.end();
    session.check_interrupt()?;
    let sender_s = ended.map_err(cannot)?;
    if arrived == 0 || !sent_until_the_end {
        return Err(unable("not one packet arrived at the servers".into()));
    }
    let bytes = arrived * FRAME_BYTES as u64;
    let (cost, mut around) = meter.finish(resting_share)?;
    // The kernel's thread shares its core with softirqs, which are also part of the forwarding.
    (around.waited_share, around.foreign_share) = (0.0, 0.0);
    let load = LoadOutcome {
        requests: arrived,
        requests_per_second: arrived as f64 / elapsed_s,
        window: Some(Window { elapsed_s, requests: arrived, bytes }),
        bytes,
        elapsed_s,
        // Covers the whole load, warm-up included, so it is limited to the measured time.
        cpu_seconds: sender_s.min(elapsed_s),
        ..LoadOutcome::default()
    };
    Ok(Sample { load, cost, around })
}

/// Waits until packets arrive at the servers: on a busy machine the sender starts late.
fn wait_for_packets(
    session: &Session<'_>,
    bed: &PacketBed<'_>,
    sender: &Sender,
    arrived_before: u64,
) -> Result<(), Failure> {
    let began = Instant::now();
    while bed.arrived().map_err(Failure::Unable)? == arrived_before
        && began.elapsed() < BEGINNING_MAX
        && sender.is_sending()
    {
        session.check_interrupt()?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Waits until the path has seen the flows.
fn warm_up(
    session: &Session<'_>,
    bed: &PacketBed<'_>,
    sender: &Sender,
    flows: u32,
    workload: &Workload,
) -> Result<(), Failure> {
    let (began, before) = (Instant::now(), bed.arrived().map_err(Failure::Unable)?);
    let is_smoke = session.extent == Extent::Smoke;
    let wanted = if is_smoke { 0 } else { u64::from(flows) * WARMING_PACKETS_PER_FLOW };
    loop {
        session.check_interrupt()?;
        std::thread::sleep(LOOK);
        let arrived = bed.arrived().map_err(Failure::Unable)? - before;
        let is_warm = arrived >= wanted && began.elapsed() >= workload.warm_up;
        if is_warm || began.elapsed() > WARMING_MAX || !sender.is_sending() {
            return Ok(());
        }
    }
}

impl Stage for PacketStage<'_, '_> {
    fn rest(&mut self) -> Result<f64, Stop> {
        self.live.rest()
    }

    fn measure(
        &mut self,
        product: &str,
        workload: &Workload,
        resting_share: f64,
    ) -> Result<Sample, Failure> {
        self.live.session.check_interrupt()?;
        match self.paths.iter().find(|(name, _)| *name == product) {
            Some((_, path)) => self.sample(*path, workload, resting_share),
            None => Err(Failure::Unable("it passes no packets on".into())),
        }
    }

    fn may_repeat(&self) -> bool {
        self.live.may_repeat()
    }

    fn is_alive(&self, _: &str) -> bool {
        true
    }

    fn begin_step(&mut self, what: &str) {
        self.live.begin_step(what);
    }

    fn note(&mut self, text: &str) {
        self.live.note(text);
    }
}
