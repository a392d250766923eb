//! Three network namespaces, joined by veth pairs: client, product, origin.
//!
//! ```text
//!   client 198.18.0.2 ---- 198.18.0.1 product 198.18.64.1 ---- 198.18.64.2 origin
//!          + sources             + virtual servers                  + servers
//! ```
//!
//! Client and origin are also connected directly: requests to a server's own address bypass the product.
//!
//! RFC 2544 reserves the addresses for benchmarks.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::RunError;
use super::process::output_of;

/// Prefix of the names of a run's namespaces; the process id and the role follow.
const NAME_PREFIX: &str = "weir-bench-";
const FOLDER: &str = "/run/netns";
const CLIENT_FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const PRODUCT_FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 32, 1);
const ORIGIN_FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 2);

/// The role of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The load generator.
    Client,
    /// The product under test.
    Product,
    /// The servers behind the product.
    Origin,
}

impl Role {
    const ALL: [Self; 3] = [Self::Client, Self::Product, Self::Origin];

    fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Product => "product",
            Self::Origin => "origin",
        }
    }

    /// The first of the role's used addresses; the others follow it.
    pub fn first_address(self) -> Ipv4Addr {
        match self {
            Self::Client => CLIENT_FIRST,
            Self::Product => PRODUCT_FIRST,
            Self::Origin => ORIGIN_FIRST,
        }
    }
}

/// Number of addresses on each side.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Client addresses.
    pub sources: usize,
    /// Addresses of virtual servers.
    pub virtual_servers: usize,
    /// Addresses of the origin's servers.
    pub servers: usize,
}

/// The namespaces of a run. Dropping this removes them.
#[derive(Debug)]
pub struct Namespaces {
    process: u32,
}

impl Namespaces {
    /// Makes the namespaces. Namespaces left by killed runs are removed first.
    pub fn make(sizes: Sizes) -> Result<Self, RunError> {
        if !rustix::process::geteuid().is_root() {
            return Err(RunError::Input(
                "the namespaces bed needs root: run as root, or leave it out to use loopback"
                    .into(),
            ));
        }
        if super::process::find_program("ip").is_none() {
            return Err(RunError::Input(
                "the namespaces bed needs the program ip: install iproute2, or leave the bed out to \
                 use loopback"
                    .into(),
            ));
        }
        remove_abandoned();
        let namespaces = Self { process: std::process::id() };
        for role in Role::ALL {
            ip(&["netns", "add", &namespaces.name(role)])?;
        }
        for (role, batch) in namespaces.batches(sizes) {
            namespaces.batch(role, &batch)?;
        }
        Ok(namespaces)
    }

    /// The name of a role's namespace.
    pub fn name(&self, role: Role) -> String {
        name(self.process, role)
    }

    /// Command prefix that runs a program in the namespace.
    pub fn prefix(&self, role: Role) -> Vec<OsString> {
        ["ip", "netns", "exec", &self.name(role)].map(OsString::from).into()
    }

    /// The same, but with the host's /sys, which contains the BPF file system.
    pub fn entering(&self, role: Role) -> Vec<OsString> {
        let mut net = OsString::from("--net=");
        net.push(self.path(role));
        vec!["nsenter".into(), net]
    }

    /// The file that represents the namespace.
    pub fn path(&self, role: Role) -> PathBuf {
        Path::new(FOLDER).join(self.name(role))
    }

    /// Moves the calling thread into a namespace. Threads that it starts later inherit the namespace.
    pub fn enter(&self, role: Role) -> Result<(), RunError> {
        let path = self.path(role);
        enter_at(&path).map_err(RunError::io("enter", &path))
    }

    /// The input of `ip -batch` in each namespace, in order.
    fn batches(&self, sizes: Sizes) -> [(Role, String); 3] {
        let pair = |near: &str, far: &str, role: Role| {
            format!("link add {near} type veth peer name {far} netns {}\n", self.name(role))
        };
        let mut product = pair("clients", "product", Role::Client)
            + &pair("servers", "product", Role::Origin)
            + "addr add 198.18.0.1/18 dev clients\naddr add 198.18.64.1/18 dev servers\n";
        product += &addresses(PRODUCT_FIRST, sizes.virtual_servers, 32, "clients");
        product += "link set lo up\nlink set clients up\nlink set servers up\n";
        let end = "link set lo up\nlink set product up\n";
        let client = addresses(CLIENT_FIRST, sizes.sources.max(1), 18, "product")
            + end
            + &pair("direct", "direct", Role::Origin)
            + "link set direct up\nroute add 198.18.64.0/18 dev direct\n";
        let origin = addresses(ORIGIN_FIRST, sizes.servers.max(1), 18, "product")
            + end
            + "link set direct up\nroute add 198.18.0.0/18 dev direct\n";
        [(Role::Product, product), (Role::Client, client), (Role::Origin, origin)]
    }

    fn batch(&self, role: Role, text: &str) -> Result<(), RunError> {
        use std::io::Write;

        let failed = |what: &dyn std::fmt::Display| {
            RunError::Bed(format!("the namespace {} cannot be set up: {what}", self.name(role)))
        };
        let mut ip = Command::new("ip")
            .args(["-n", &self.name(role), "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        if let Some(mut input) = ip.stdin.take() {
            input.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
        }
        let output = ip.wait_with_output().map_err(|error| failed(&error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(&String::from_utf8_lossy(&output.stderr).trim_end()))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for role in Role::ALL {
            // The namespace may not exist; the next run removes any leftovers.
            let _ = ip(&["netns", "del", &self.name(role)]);
        }
    }
}

/// Moves the calling thread into the network namespace of that file.
pub fn enter_at(path: &Path) -> std::io::Result<()> {
    let namespace = File::open(path)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

fn name(process: u32, role: Role) -> String {
    format!("{NAME_PREFIX}{process}-{}", role.word())
}

/// The process that made the namespace with this name.
fn maker_of(name: &str) -> Option<u32> {
    let (process, role) = name.strip_prefix(NAME_PREFIX)?.split_once('-')?;
    Role::ALL.iter().any(|known| known.word() == role).then(|| process.parse().ok())?
}

/// Removes the namespaces of killed runs.
fn remove_abandoned() {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = maker_of(&name) else { continue };
        if !PathBuf::from(format!("/proc/{process}")).exists() {
            // Namespaces in use or already removed need no action.
            let _ = ip(&["netns", "del", &name]);
        }
    }
}

fn addresses(first: Ipv4Addr, count: usize, bits: u8, device: &str) -> String {
    let list = consecutive(first, count);
    list.into_iter().map(|address| format!("addr add {address}/{bits} dev {device}\n")).collect()
}

fn ip(arguments: &[&str]) -> Result<(), RunError> {
    let words: Vec<OsString> =
        std::iter::once(&"ip").chain(arguments).map(OsString::from).collect();
    output_of(&words, Path::new("/")).map(drop).map_err(RunError::Bed)
}

/// This many consecutive addresses.
pub fn consecutive(first: Ipv4Addr, count: usize) -> Vec<Ipv4Addr> {
    (first.to_bits()..).take(count).map(Ipv4Addr::from_bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for role in Role::ALL {
            assert_eq!(maker_of(&name(4711, role)), Some(4711));
            // The kernel limits the length of device and namespace names.
            assert!(name(u32::MAX, role).len() < 64);
        }
        let check = |text| assert_eq!(maker_of(text), None, "{text}");
        check("weir-bench-4711");
        check("weir-bench-4711-other");
        check("weir-bench-x-client");
        check("other-4711-client");
    }

    #[test]
    fn every_side_gets_its_addresses() {
        let namespaces = std::mem::ManuallyDrop::new(Namespaces { process: 7 });
        let sizes = Sizes { sources: 2, virtual_servers: 3, servers: 4 };
        let [(_, product), (_, client), (_, origin)] = namespaces.batches(sizes);
        assert!(
            product.contains(
                "link add clients type veth peer name product netns weir-bench-7-client\n"
            )
        );
        assert!(product.contains("addr add 198.18.32.3/32 dev clients\n"), "{product}");
        assert!(client.contains("addr add 198.18.0.3/18 dev product\n"), "{client}");
        assert!(origin.contains("addr add 198.18.64.5/18 dev product\n"), "{origin}");
        assert!(!origin.contains("198.18.64.6"), "{origin}");
        assert!(client.contains("peer name direct netns weir-bench-7-origin\n"), "{client}");
    }

    #[test]
    fn they_come_and_go() {
        if !rustix::process::geteuid().is_root()
            || super::super::process::find_program("ip").is_none()
        {
            return weir_testing::skip("namespaces need root and iproute2");
        }
        let sizes = Sizes { sources: 16, virtual_servers: 24, servers: 72 };
        let namespaces = match Namespaces::make(sizes) {
            Ok(namespaces) => namespaces,
            Err(error) => {
                // A container may forbid namespaces even to root.
                return weir_testing::skip(&error.to_string());
            }
        };
        let path = Path::new(FOLDER).join(namespaces.name(Role::Client));
        assert!(path.exists());
        // Packets pass from client to product, and through no other namespace.
        std::thread::scope(|scope| {
            let reached = scope.spawn(|| {
                namespaces.enter(Role::Product).expect("entering");
                let address = (Role::Product.first_address(), 0);
                let listener = std::net::TcpListener::bind(address).expect("its own address");
                let address = listener.local_addr().expect("an address");
                scope
                    .spawn(move || {
                        namespaces_connect(address);
                    })
                    .join()
            });
            assert!(reached.join().is_ok());
        });
        drop(namespaces);
        assert!(!path.exists());
    }

    fn namespaces_connect(address: std::net::SocketAddr) {
        let name = name(std::process::id(), Role::Client);
        let namespace = File::open(Path::new(FOLDER).join(name)).expect("the client's");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("entering");
        std::net::TcpStream::connect(address).expect("reaching the product");
    }
}
