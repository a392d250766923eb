//! The namespaces of a run, prepared for packets: cores and devices.
//!
//! Packets enter the product's namespace by its device `clients` and leave by `servers`. The kernel processes `clients`
//! in a thread of its own (threaded NAPI) on the product's core. An XDP program drops the packets on the servers'
//! device at once; this happens on the product's core and costs every product little. With a thread for that device on
//! another core, the test would measure the queue between the two cores instead.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use super::RunError;
use super::bed::Bed;
use super::devices::{DEVICE, DeviceThreads, FROM_CLIENTS, TO_SERVERS, read_in, run_in};
use super::namespaces::{Namespaces, Role};
use super::process::{DeathSignal, Launch, Server, find_program};
use crate::packets::{self, AttachedProgram, Mac, PacketStream};

/// Source addresses of the packets: the sending program counts the last byte up to 15. No host needs these addresses.
const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 16, 0);
/// Destination port of the packets.
const PORT: u16 = 5_353;

/// The forwarder of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path4 {
    /// The kernel's routing; packets carry a server's address.
    Forwarding,
    /// The kernel's address translation: from a virtual server to all servers in turn.
    Nftables,
    /// Weir's XDP program in the device's driver: from a virtual server to all servers.
    WeirXdp,
    /// Weir's tcx program, directly above the driver.
    WeirTcx,
}

impl Path4 {
    /// The rung's name in weir's configuration.
    fn rung(self) -> Option<&'static str> {
        match self {
            Self::Forwarding | Self::Nftables => None,
            Self::WeirXdp => Some("xdp"),
            Self::WeirTcx => Some("tcx"),
        }
    }
}

/// The forwarding process, if the kernel alone does not forward. Dropping this ends the process.
pub type ForwardingProcess = Option<Server>;

/// Inputs of a forwarding path.
#[derive(Debug)]
pub struct PathInputs<'a> {
    /// The servers that receive the packets.
    pub servers: &'a [Ipv4Addr],
    /// Concurrent flows.
    pub flows: u32,
    /// A folder for rules, configuration and log; absolute.
    pub folder: &'a Path,
    /// Weir's program.
    pub weir: Option<&'a Path>,
}

/// The prepared bed. Dropping it detaches the XDP program, ends the device's thread and switches offloads on again.
/// Forwarding stays enabled in the product's namespace, which ends with the run.
#[derive(Debug)]
pub struct PacketBed<'a> {
    bed: &'a Bed,
    namespaces: &'a Namespaces,
    _sink: AttachedProgram,
    threads: DeviceThreads,
    from: Mac,
    to: Mac,
    device: u32,
}

impl<'a> PacketBed<'a> {
    /// Prepares the bed; the error names the missing requirement.
    pub fn make(bed: &'a Bed) -> Result<Self, String> {
        let namespaces = bed
            .namespaces()
            .ok_or("packets need a network of their own: run as root with --network namespaces")?;
        if find_program("nft").is_none() {
            return Err("the program nft is needed: apt-get install nftables".into());
        }
        // Kernels without the file never time programs.
        if fs::read_to_string(PROGRAMS_TIMED).is_ok_and(|it| it.trim() != "0") {
            return Err("the kernel times all programs, which makes packets dearer: sysctl kernel.bpf_stats_enabled=0".into());
        }
        let told = |error: RunError| error.to_string();
        bed.as_product(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))
            .map_err(told)?
            .map_err(|error| format!("forwarding cannot be switched on: {error}"))?;
        let threads =
            DeviceThreads::make(namespaces, &[(Role::Product, FROM_CLIENTS, &bed.cores.product)])?;
        // Without offloads, outgoing packets leave frame by frame.
        run_in(namespaces, Role::Product, &["ethtool", "-K", TO_SERVERS, "tx", "off"])?;
        let index = |role| -> Result<u32, String> {
            let text = read_in(namespaces, role, &format!("/sys/class/net/{DEVICE}/ifindex"))?;
            text.parse().map_err(|_| format!("{text:?} is no number of a device"))
        };
        let at_origin = index(Role::Origin)?;
        let sink = bed.as_origin(|| packets::drop_all(at_origin)).map_err(told)?;
        let sink = sink.map_err(|error| format!("XDP cannot be used here: {error}"))?;
        let mac = |role, device: &str| {
            let path = format!("/sys/class/net/{device}/address");
            parse_mac(&read_in(namespaces, role, &path)?)
        };
        Ok(Self {
            bed,
            namespaces,
            _sink: sink,
            threads,
            from: mac(Role::Client, DEVICE)?,
            to: mac(Role::Product, FROM_CLIENTS)?,
            device: index(Role::Client)?,
        })
    }

    /// The packets to send for this path.
    pub fn sending(&self, path: Path4, flows: u32, interval_ns: u32) -> PacketStream {
        let destination = match path {
            Path4::Forwarding => Role::Origin.first_address(),
            Path4::Nftables | Path4::WeirXdp | Path4::WeirTcx => Role::Product.first_address(),
        };
        let frame = packets::frame((self.from, self.to), SOURCE, (destination, PORT));
        let core = self.bed.cores.load.last().copied().unwrap_or_default();
        PacketStream { frame, flows, interval_ns, device: self.device, core }
    }

    /// Starts forwarding.
    pub fn begin(&self, path: Path4, means: &PathInputs<'_>) -> Result<ForwardingProcess, String> {
        let write = |name: &str, text: String| {
            let file = means.folder.join(name);
            let written = fs::write(&file, text);
            written.map_err(|error| format!("{}: {error}", file.display())).map(|()| file)
        };
        let virtual_server = Role::Product.first_address();
        if let Some(rung) = path.rung() {
            let text = weir_for(virtual_server, means, rung);
            return self.begin_weir(&write(&format!("weir-{rung}.yaml"), text)?, means).map(Some);
        }
        if path == Path4::Nftables {
            let rules = write("nftables.nft", rules_for(virtual_server, means.servers))?;
            let words = ["nft", "-f", &rules.to_string_lossy()];
            run_in(self.namespaces, Role::Product, &words)?;
        }
        Ok(None)
    }

    fn begin_weir(&self, configuration: &Path, means: &PathInputs<'_>) -> Result<Server, String> {
        let weir = means.weir.ok_or("weir takes no part")?;
        let log = configuration.with_extension("log");
        // The log of an earlier start would look like readiness.
        let _ = fs::remove_file(&log);
        let launch = Launch {
            name: "weir",
            prefix: &self.namespaces.entering(Role::Product),
            command: &[weir.into(), "run".into(), configuration.into()],
            directory: means.folder,
            log: &log,
            death_signal: DeathSignal::Term,
        };
        let mut server = Server::start(&launch)?;
        server.wait_until_said(SERVED_BY_PACKETS)?;
        Ok(server)
    }

    /// Stops forwarding.
    pub fn end(&self, path: Path4, passing: ForwardingProcess) -> Result<(), String> {
        if let Some(weir) = passing {
            return weir.end(STOP_TIMEOUT);
        }
        match path {
            Path4::Nftables => {
                run_in(self.namespaces, Role::Product, &["nft", "delete", "table", "ip", TABLE])
            }
            _ => Ok(()),
        }
    }

    /// Id of the kernel's thread for packets from clients.
    pub fn worker(&self) -> u32 {
        self.threads.threads[0]
    }

    /// Number of packets that arrived on the servers' side.
    pub fn arrived(&self) -> Result<u64, String> {
        let read = self.bed.as_origin(|| packets::received(DEVICE));
        read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

impl Drop for PacketBed<'_> {
    fn drop(&mut self) {
        let _ = run_in(self.namespaces, Role::Product, &["ethtool", "-K", TO_SERVERS, "tx", "on"]);
    }
}

const TABLE: &str = "weir_bench";

/// The setting that makes the kernel time each BPF program.
const PROGRAMS_TIMED: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Weir's log message when packet forwarding works.
const SERVED_BY_PACKETS: &str = "is served by packets";
/// Removing tables with a million flows takes a while.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

fn weir_for(virtual_server: Ipv4Addr, means: &PathInputs<'_>, rung: &str) -> String {
    let servers: Vec<String> =
        means.servers.iter().map(|server| format!("{server}:{PORT}")).collect();
    include_str!("../../peers/packets/weir.yaml")
        .replace("@NAME@", &format!("weir-bench-{}", std::process::id()))
        .replace("@RUNG@", rung)
        .replace("@FLOWS@", &(u64::from(means.flows) + SPARE_FLOWS).to_string())
        .replace("@ADDRESS@", &format!("{virtual_server}:{PORT}"))
        .replace("@LIST@", &servers.join(", "))
}

/// Room in weir's table beyond the flows of a test.
const SPARE_FLOWS: u64 = 16_384;

/// The address translation rules, as in the template's comments.
fn rules_for(virtual_server: Ipv4Addr, servers: &[Ipv4Addr]) -> String {
    let places: Vec<String> =
        servers.iter().enumerate().map(|(place, server)| format!("{place} : {server}")).collect();
    include_str!("../../peers/packets/nftables.nft")
        .replace("@TABLE@", TABLE)
        .replace("@IP@", &virtual_server.to_string())
        .replace("@PORT@", &PORT.to_string())
        .replace("@COUNT@", &servers.len().to_string())
        .replace("@LIST@", &places.join(", "))
}

fn parse_mac(text: &str) -> Result<Mac, String> {
    let bytes: Option<Vec<u8>> =
        text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| format!("{text:?} is no address of Ethernet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_ethernet() {
        assert_eq!(parse_mac("02:00:0a:ff:10:01\n"), Ok([2, 0, 10, 255, 16, 1]));
        for text in ["", "02:00", "02:00:0a:ff:10:zz", "1:2:3:4:5:6:7"] {
            assert!(parse_mac(text).is_err(), "{text}");
        }
    }

    #[test]
    fn weir_has_every_server_and_its_rung() {
        let servers = [Ipv4Addr::new(198, 18, 64, 2), Ipv4Addr::new(198, 18, 64, 3)];
        let means = PathInputs { servers: &servers, flows: 4, folder: Path::new("/"), weir: None };
        let text = weir_for(Ipv4Addr::new(198, 18, 32, 1), &means, "tcx");
        assert!(text.contains("[ 198.18.64.2:5353, 198.18.64.3:5353 ]"), "{text}");
        assert!(text.contains("rungs: [ tcx ]") && !text.contains('@'), "{text}");
    }

    #[test]
    fn rules_have_every_server_once() {
        let servers = [Ipv4Addr::new(198, 18, 64, 2), Ipv4Addr::new(198, 18, 64, 3)];
        let text = rules_for(Ipv4Addr::new(198, 18, 32, 1), &servers);
        assert!(!text.contains('@'), "{text}");
        assert!(
            text.contains("numgen inc mod 2 map { 0 : 198.18.64.2, 1 : 198.18.64.3 }"),
            "{text}"
        );
        assert!(text.contains("ip daddr 198.18.32.1 udp dport 5353"), "{text}");
    }
}
