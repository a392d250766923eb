//! The test bed: cores and networks of the participants.

use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;

use super::RunError;
use super::idle::Idle;
use super::namespaces::{Namespaces, Role, Sizes, consecutive, enter_at};

/// Number of servers behind the products, as in F5's report.
pub const SERVERS: usize = 72;
/// Largest number of virtual servers in a test, as in the NetScaler report.
pub const VIRTUAL_SERVERS_MAX: usize = 24;
/// Number of client addresses. With one address, a test with a new connection per request would run out of ports.
const SOURCES: usize = 16;
/// On loopback, every role has its own addresses.
const LOOPBACK_ORIGIN_FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
const LOOPBACK_SERVER_FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 2, 1);
const LOOPBACK_SOURCE_FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 1);
/// The search for a free port begins here, below the ports that Linux gives to outgoing connections.
const PORT_FIRST: u16 = 18_000;
const PORT_LAST: u16 = 30_000;

/// The network between client, product and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// The loopback device.
    #[default]
    Loopback,
    /// One network namespace for each role, joined by veth pairs; needs root.
    Namespaces,
}

impl Network {
    /// The network's name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces => "namespaces",
        }
    }
}

/// The cores of the roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// The product under test.
    pub product: Vec<usize>,
    /// Load generator and origin.
    pub load: Vec<usize>,
}

impl Cores {
    /// Assigns those of `allowed` that the caller did not assign: the first core to the product; all others, except its
    /// siblings on the same physical core, to load and origin.
    pub fn assign(
        allowed: &[usize],
        siblings: &dyn Fn(usize) -> Vec<usize>,
        product: Option<&[usize]>,
        load: Option<&[usize]>,
    ) -> Result<Self, RunError> {
        if allowed.len() < 2 {
            return Err(RunError::Input(format!(
                "a comparison needs two cores, one for the product and one for load and origin, but this \
                 process may use {} only",
                allowed.len()
            )));
        }
        for (role, cores) in [("the product", product), ("the load", load)] {
            check_named(role, cores, allowed)?;
        }
        let taken = load.unwrap_or_default();
        let product = match product {
            Some(product) => product.to_vec(),
            None => {
                allowed.iter().copied().find(|core| !taken.contains(core)).into_iter().collect()
            }
        };
        let load = match load {
            Some(load) => load.to_vec(),
            None => rest(allowed, &product, siblings),
        };
        if product.is_empty() || load.is_empty() {
            return Err(RunError::Input(format!(
                "no core is left for {}: give it fewer of {allowed:?}",
                if load.is_empty() { "load and origin" } else { "the product" }
            )));
        }
        if let Some(core) = product.iter().find(|core| load.contains(core)) {
            return Err(RunError::Input(format!(
                "core {core} cannot be both the product's and the load's: the load would be measured, too"
            )));
        }
        Ok(Self { product, load })
    }
}

fn check_named(role: &str, cores: Option<&[usize]>, allowed: &[usize]) -> Result<(), RunError> {
    match cores.and_then(|cores| cores.iter().find(|core| !allowed.contains(core))) {
        Some(core) => Err(RunError::Input(format!(
            "core {core} for {role} does not exist or may not be used; there are {allowed:?}"
        ))),
        None => Ok(()),
    }
}

fn rest(
    allowed: &[usize],
    product: &[usize],
    siblings: &dyn Fn(usize) -> Vec<usize>,
) -> Vec<usize> {
    let others = || allowed.iter().copied().filter(|core| !product.contains(core));
    let near: Vec<usize> = product.iter().flat_map(|core| siblings(*core)).collect();
    let far: Vec<usize> = others().filter(|core| !near.contains(core)).collect();
    // Load on a sibling thread disturbs the product, but a single physical core leaves no choice.
    if far.is_empty() { others().collect() } else { far }
}

/// Whether the port is free at that address, for TCP and UDP.
fn is_free_at(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

/// Cores that this process may use.
pub fn allowed_cores() -> Result<Vec<usize>, RunError> {
    let set = rustix::thread::sched_getaffinity(None)
        .map_err(|error| RunError::Bed(format!("cannot read which cores are usable: {error}")))?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Cores (hardware threads) of the same physical core.
pub fn siblings(core: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    parse_core_list(&fs::read_to_string(path).unwrap_or_default())
}

/// Parses a list in the kernel's format: `0,4-6`. Parts that are not numbers are skipped.
pub fn parse_core_list(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// The bed of a run. Dropping the bed removes all that it created.
#[derive(Debug)]
pub struct Bed {
    /// The cores of the roles.
    pub cores: Cores,
    namespaces: Option<Namespaces>,
}

impl Bed {
    /// Makes the bed.
    pub fn make(network: Network, cores: Cores) -> Result<Self, RunError> {
        let sizes =
            Sizes { sources: SOURCES, virtual_servers: VIRTUAL_SERVERS_MAX, servers: SERVERS };
        let namespaces = match network {
            Network::Loopback => None,
            Network::Namespaces => Some(Namespaces::make(sizes)?),
        };
        Ok(Self { cores, namespaces })
    }

    /// The bed's entry in the record.
    pub fn record(&self, idle: Idle) -> crate::record::Bed {
        let network =
            if self.namespaces.is_some() { Network::Namespaces } else { Network::Loopback };
        crate::record::Bed {
            kind: network.name().into(),
            product_cores: self.cores.product.clone(),
            load_cores: self.cores.load.clone(),
            idle: idle.name().into(),
        }
    }

    /// Command prefix for a product.
    pub fn product_prefix(&self) -> Vec<OsString> {
        self.prefix(Role::Product, &self.cores.product)
    }

    /// Command prefix for the origin.
    pub fn origin_prefix(&self) -> Vec<OsString> {
        self.prefix(Role::Origin, &self.cores.load)
    }

    fn prefix(&self, role: Role, cores: &[usize]) -> Vec<OsString> {
        let list: Vec<String> = cores.iter().map(usize::to_string).collect();
        let mut words = self.namespaces.as_ref().map(|all| all.entering(role)).unwrap_or_default();
        words.extend(["taskset", "-c", &list.join(",")].map(OsString::from));
        words
    }

    /// Addresses of this many virtual servers, all on one free port.
    pub fn virtual_servers(
        &self,
        count: usize,
        taken: &[u16],
    ) -> Result<Vec<SocketAddr>, RunError> {
        self.addresses(Role::Product, LOOPBACK_SERVER_FIRST, count, taken)
    }

    /// Addresses of this many servers of the origin, all on one free port.
    pub fn servers(&self, count: usize) -> Result<Vec<SocketAddr>, RunError> {
        self.addresses(Role::Origin, LOOPBACK_ORIGIN_FIRST, count, &[])
    }

    fn addresses(
        &self,
        role: Role,
        loopback_first: Ipv4Addr,
        count: usize,
        taken: &[u16],
    ) -> Result<Vec<SocketAddr>, RunError> {
        let first = if self.namespaces.is_some() { role.first_address() } else { loopback_first };
        let addresses = consecutive(first, count);
        // In a new namespace every port is free.
        let is_free = |port: &u16| {
            !taken.contains(port)
                && (self.namespaces.is_some()
                    || addresses.iter().all(|address| is_free_at((*address, *port).into())))
        };
        let port = (PORT_FIRST..=PORT_LAST).find(is_free).ok_or_else(|| {
            RunError::Bed(format!("no port from {PORT_FIRST} to {PORT_LAST} is free on {first}"))
        })?;
        Ok(addresses.into_iter().map(|address| (address, port).into()).collect())
    }

    /// Client addresses.
    pub fn sources(&self) -> Vec<IpAddr> {
        let first = match self.namespaces {
            Some(_) => Role::Client.first_address(),
            None => LOOPBACK_SOURCE_FIRST,
        };
        consecutive(first, SOURCES).into_iter().map(IpAddr::V4).collect()
    }

    /// The network namespace of the clients; `None` if all roles share one.
    pub fn client_namespace(&self) -> Option<PathBuf> {
        self.namespaces.as_ref().map(|namespaces| namespaces.path(Role::Client))
    }

    /// Runs a function in the clients' namespace: its connections come from there.
    pub fn as_client<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        self.within(Role::Client, act)
    }

    /// The namespaces, if they join client, product and origin.
    pub fn namespaces(&self) -> Option<&Namespaces> {
        self.namespaces.as_ref()
    }

    /// Moves a thread permanently to the namespace of that role.
    pub fn entering(&self, role: Role) -> impl FnOnce() -> std::io::Result<()> + Send + 'static {
        let path = self.namespaces.as_ref().map(|namespaces| namespaces.path(role));
        move || path.map_or(Ok(()), |path| enter_at(&path))
    }

    /// Runs a function in the origin's namespace.
    pub fn as_origin<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        self.within(Role::Origin, act)
    }

    /// Runs a function in the product's namespace.
    pub fn as_product<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        self.within(Role::Product, act)
    }

    fn within<T: Send>(&self, role: Role, act: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        let Some(namespaces) = &self.namespaces else { return Ok(act()) };
        // A thread cannot leave the namespace again, so a new thread enters it.
        std::thread::scope(|scope| {
            let there = scope.spawn(|| namespaces.enter(role).map(|()| act()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(product: &[usize], load: &[usize]) -> Cores {
        Cores { product: product.into(), load: load.into() }
    }

    #[test]
    fn assignment() {
        let none = |_| Vec::new();
        let pairs = |core: usize| vec![core, core ^ 1];
        let check = |allowed: &[usize], siblings: &dyn Fn(usize) -> Vec<usize>, expected| {
            assert_eq!(Cores::assign(allowed, siblings, None, None).expect("enough"), expected);
        };
        check(&[0, 1], &none, cores(&[0], &[1]));
        check(&[0, 1], &pairs, cores(&[0], &[1]));
        check(&[2, 3, 5], &none, cores(&[2], &[3, 5]));
        check(&[0, 1, 2, 3], &pairs, cores(&[0], &[2, 3]));
    }

    #[test]
    fn assignment_by_hand() {
        let none = |_| Vec::new();
        let check = |product: Option<&[usize]>, load: Option<&[usize]>, expected| {
            let assigned = Cores::assign(&[0, 1, 2, 3], &none, product, load).expect("enough");
            assert_eq!(assigned, expected);
        };
        check(Some(&[2, 3]), None, cores(&[2, 3], &[0, 1]));
        check(None, Some(&[0]), cores(&[1], &[0]));
        check(Some(&[1]), Some(&[3]), cores(&[1], &[3]));
    }

    #[test]
    fn impossible_assignments_say_why() {
        let none = |_| Vec::new();
        let check = |allowed: &[usize], product: &[usize], load: &[usize], part: &str| {
            let given = |cores: &'static [usize]| (!cores.is_empty()).then_some(cores);
            let (product, load) = (product.to_vec().leak(), load.to_vec().leak());
            let error = Cores::assign(allowed, &none, given(product), given(load));
            let text = error.expect_err("impossible").to_string();
            assert!(text.contains(part), "{text}");
        };
        check(&[0], &[], &[], "two cores");
        check(&[0, 1], &[4], &[], "core 4 for the product");
        check(&[0, 1], &[], &[7], "core 7 for the load");
        check(&[0, 1], &[0, 1], &[], "no core is left for load and origin");
        check(&[0, 1], &[], &[0, 1], "no core is left for the product");
        check(&[0, 1, 2], &[0, 1], &[1, 2], "core 1 cannot be both");
    }

    #[test]
    fn core_lists() {
        let check =
            |text, expected: &[usize]| assert_eq!(parse_core_list(text), expected, "{text:?}");
        check("0\n", &[0]);
        check("0,4-6\n", &[0, 4, 5, 6]);
        check("", &[]);
        check("x,3", &[3]);
    }

    #[test]
    fn loopback_addresses() {
        let bed = Bed::make(Network::Loopback, cores(&[0], &[1])).expect("nothing to make");
        let servers = bed.servers(SERVERS).expect("a port");
        assert_eq!(servers.len(), SERVERS);
        assert_eq!(servers[71].ip(), IpAddr::from([127, 0, 1, 72]));
        let port = servers[0].port();
        let others = bed.virtual_servers(3, &[port]).expect("a port");
        assert!(others.iter().all(|address| address.port() != port));
        assert_eq!(bed.sources().len(), SOURCES);
        assert_eq!(bed.product_prefix(), ["taskset", "-c", "0"]);
        assert_eq!(bed.as_client(|| 7).expect("here"), 7);
    }

    #[test]
    fn a_port_that_is_in_use_is_left() {
        let bed = Bed::make(Network::Loopback, cores(&[0], &[1])).expect("nothing to make");
        let first = bed.virtual_servers(2, &[]).expect("a port");
        let _held = TcpListener::bind(first[1]).expect("free");
        assert_ne!(bed.virtual_servers(2, &[]).expect("a port")[0].port(), first[0].port());
    }
}
