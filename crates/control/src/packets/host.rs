//! Facts about this host: interfaces, addresses, ports, capabilities. Nothing is changed here.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use weir_config::host_addresses;

use super::plan::Host;

/// `ARPHRD_ETHER`: the interface has hardware addresses.
const ETHERNET: &str = "1";

/// Lowest port for source translation: lower ones belong to services.
const PORT_MIN: u16 = 1_024;

/// The port range that Linux uses by default.
const PORTS_DEFAULT: (u16, u16) = (32_768, 60_999);

/// This host, as seen from the network namespace of the calling thread.
pub(super) struct ThisHost {
    own_ports: (u16, u16),
}

impl ThisHost {
    pub fn look() -> Self {
        let text = read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
        let own_ports = numbers.next().zip(numbers.next()).unwrap_or(PORTS_DEFAULT);
        Self { own_ports }
    }
}

impl Host for ThisHost {
    fn address_toward(&self, to: IpAddr) -> Option<IpAddr> {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Connecting a UDP socket sends nothing; it only looks up the route.
        const ANY_PORT: u16 = 9;
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.connect(SocketAddr::new(to, ANY_PORT)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        Some(own).filter(|own| !own.is_unspecified())
    }

    fn free_ports(&self) -> (u16, u16) {
        free_ports(self.own_ports)
    }

    fn own_addresses(&self) -> Vec<IpAddr> {
        host_addresses::all().into_iter().filter(|own| !own.is_loopback()).collect()
    }
}

/// The larger of the two port ranges outside the system's own range.
fn free_ports((lowest, highest): (u16, u16)) -> (u16, u16) {
    let below = (PORT_MIN, lowest.saturating_sub(1));
    let above = (highest.saturating_add(1).max(PORT_MIN), u16::MAX);
    let length = |(first, last): (u16, u16)| (u32::from(last) + 1).saturating_sub(u32::from(first));
    match (length(below), length(above)) {
        // The system uses all ports as ephemeral ports, so none is free.
        (0, above) if above <= 1 => (PORT_MIN, u16::MAX),
        (a, b) if a >= b => below,
        _ => above,
    }
}

/// The interfaces that are up and have an IP address and a hardware address.
pub(super) fn interfaces() -> Vec<String> {
    let mut names = BTreeSet::new();
    let routes = read_to_string("/proc/thread-self/net/route").unwrap_or_default();
    names.extend(routes.lines().skip(1).filter_map(|line| line.split_whitespace().next()));
    let addresses = read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    names.extend(addresses.lines().filter_map(|line| line.split_whitespace().last()));
    let has_hardware_address = |name: &str| {
        let kind = read_to_string(format!("/sys/class/net/{name}/type"));
        // The type is unknown in a network namespace other than that of /sys.
        kind.map_or(name != "lo", |kind| kind.trim() == ETHERNET)
    };
    names.into_iter().filter(|name| has_hardware_address(name)).map(str::to_owned).collect()
}

/// The capabilities that the packet path needs, with their numbers.
const CAPABILITIES: [(&str, u32); 4] =
    [("CAP_BPF", 39), ("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_PERFMON", 38)];

/// The first version of Linux with tcx.
const KERNEL_MIN: (u32, u32) = (6, 6);

/// The reason why this process cannot use the packet path, if one is known in advance.
pub fn obstacle() -> Option<String> {
    let status = read_to_string("/proc/thread-self/status").unwrap_or_default();
    let missing = missing_capabilities(&status);
    if !missing.is_empty() {
        return Some(format!("this process lacks {}", missing.join(", ")));
    }
    let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let found = version(&release)?;
    (found < KERNEL_MIN).then(|| {
        let (major, minor) = KERNEL_MIN;
        format!("it needs Linux {major}.{minor}, and this is {}", release.trim())
    })
}

/// The reason why not every SYN is answered with a cookie; `None`: every SYN is. The setting applies to IPv4 and IPv6.
pub fn cookies_obstacle() -> Option<String> {
    let setting = read_to_string("/proc/sys/net/ipv4/tcp_syncookies").unwrap_or_default();
    cookies_when(setting.trim())
}

fn cookies_when(setting: &str) -> Option<String> {
    let what = match setting {
        "2" => return None,
        "1" => "the kernel sends cookies only when a listener's queue is full",
        "0" => "the kernel sends none",
        _ => "it is unknown whether the kernel sends any",
    };
    Some(format!("{what}: set net.ipv4.tcp_syncookies to 2 (this applies to IPv6, too)"))
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    /// This capability implies `CAP_BPF` and `CAP_PERFMON`.
    const CAP_SYS_ADMIN: u32 = 21;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let has = |number: u32| mask >> number & 1 == 1;
    let by_admin = |name: &str| matches!(name, "CAP_BPF" | "CAP_PERFMON") && has(CAP_SYS_ADMIN);
    let missing = CAPABILITIES.iter().filter(|(name, number)| !has(*number) && !by_admin(name));
    missing.map(|(name, _)| *name).collect()
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-']).map(|number| number.trim().parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_beside_those_of_the_system() {
        assert_eq!(free_ports((32_768, 60_999)), (1_024, 32_767));
        assert_eq!(free_ports((1_024, 30_000)), (30_001, 65_535));
        assert_eq!(free_ports((1_024, 65_535)), (1_024, 65_535));
        assert_eq!(free_ports((40_000, 65_535)), (1_024, 39_999));
    }

    #[test]
    fn capabilities_and_versions() {
        assert_eq!(missing_capabilities("CapEff:\t000001ffffffffff\n"), [""; 0]);
        let all = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_PERFMON"];
        assert_eq!(missing_capabilities("CapEff:\t0000000000000000\n"), all);
        // The mask contains CAP_SYS_ADMIN and CAP_NET_ADMIN.
        assert_eq!(missing_capabilities("CapEff:\t0000000000201000\n"), ["CAP_NET_RAW"]);
        assert_eq!(missing_capabilities(""), all);
        assert_eq!(version("6.18.44-fc-v669\n"), Some((6, 18)));
        assert_eq!(version("6.6-rc1"), Some((6, 6)));
        assert_eq!(version("?"), None);
    }

    #[test]
    fn cookies_need_a_setting() {
        assert_eq!(cookies_when("2"), None);
        let queue = cookies_when("1").unwrap();
        assert!(queue.contains("queue is full") && queue.contains("tcp_syncookies"), "{queue}");
        assert!(cookies_when("0").unwrap().contains("none"));
        assert!(cookies_when("").is_some());
    }

    #[test]
    fn loopback_is_no_way_in() {
        assert!(!interfaces().iter().any(|name| name == "lo"));
    }
}
