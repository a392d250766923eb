//! Network namespaces for scenarios that need routing. They require root and the program `ip`.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::tools;

/// Three namespaces connected by veth pairs, removed on drop.
///
/// ```text
///   client 10.77.1.2 ---- 10.77.1.1 adc 10.77.2.1 ---- 10.77.2.2 server
///     link                   clients    servers            link
/// ```
#[derive(Debug)]
pub struct Namespaces {
    prefix: String,
}

const ROLES: [&str; 3] = ["client", "adc", "server"];

impl Namespaces {
    /// Creates the namespaces. If that is impossible, prints the reason and returns `None`.
    #[track_caller]
    pub fn make() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            tools::skip("network namespaces need root");
            return None;
        }
        if !tools::present("ip") {
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespaces = Self { prefix: format!("weir-test-{}-{number}", std::process::id()) };
        for role in ROLES {
            ip(&format!("netns add {}", namespaces.name(role)));
        }
        for (role, line) in [
            (
                "adc",
                format!(
                    "link add clients type veth peer name link netns {}",
                    namespaces.name("client")
                ),
            ),
            (
                "adc",
                format!(
                    "link add servers type veth peer name link netns {}",
                    namespaces.name("server")
                ),
            ),
            ("adc", "addr add 10.77.1.1/24 dev clients".into()),
            ("adc", "addr add 10.77.2.1/24 dev servers".into()),
            ("client", "addr add 10.77.1.2/24 dev link".into()),
            ("server", "addr add 10.77.2.2/24 dev link".into()),
            ("adc", "link set dev clients up".into()),
            ("adc", "link set dev servers up".into()),
            ("adc", "link set dev lo up".into()),
            ("client", "link set dev link up".into()),
            ("server", "link set dev link up".into()),
            ("client", "route add default via 10.77.1.1".into()),
            ("server", "route add default via 10.77.2.1".into()),
        ] {
            ip(&format!("-n {} {line}", namespaces.name(role)));
        }
        Some(namespaces)
    }

    /// The name of a role's namespace (`client`, `adc` or `server`) for `ip netns`.
    pub fn name(&self, role: &str) -> String {
        format!("{}-{role}", self.prefix)
    }

    /// Runs a shell command in a namespace.
    #[track_caller]
    pub fn shell(&self, role: &str, line: &str) {
        self.output(role, line);
    }

    /// Runs a shell command in a namespace and returns its output.
    #[track_caller]
    pub fn output(&self, role: &str, line: &str) -> String {
        tools::run(Command::new("ip").args(["netns", "exec", &self.name(role), "sh", "-ec", line]))
    }

    /// Calls `work` on a new thread in a namespace. Sockets created there stay there.
    pub fn within<T: Send>(&self, role: &str, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.name(role));
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let namespace = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), network)
                    .expect("entering a namespace");
                work()
            });
            worker.join().expect("the work in a namespace")
        })
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for role in ROLES {
            // The namespace may not exist.
            let _ = Command::new("ip").args(["netns", "del", &self.name(role)]).output();
        }
    }
}

#[track_caller]
fn ip(line: &str) {
    tools::run(Command::new("ip").args(line.split(' ')));
}
