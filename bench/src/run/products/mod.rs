//! The products: where each is found, how it is configured and started.
//!
//! One file per product; each ends in its [`Definition`]. The configurations are written from the templates
//! in `bench/peers`, which the report shows as used.

mod envoy;
mod firewall;
mod front;
mod haproxy;
mod hash;
mod layer;
mod nginx;
mod relay;
mod signatures;
mod weir;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use firewall::{FIREWALLS, Guard, InspectedRequests, find as find_firewall, takes_part};
pub use front::{Front, GzipClass};
pub use hash::of_process;
pub use layer::{Layer, Sessions};

use super::certificates::Certificate;
use super::crs::Crs;
use super::process::{DeathSignal, find_program, is_executable, output_of};
use super::template;
use crate::catalogue::{SECOND, is_yardstick};
use crate::record::Product;

/// Share of a process's descriptors reserved for members, listeners and the process itself.
const DESCRIPTORS_RESERVED_SHARE: f64 = 0.2;
/// No product gets a higher limit: some reserve memory for every descriptor.
const DESCRIPTORS_MAX: u64 = 1 << 20;
/// Limit of idle connections to members, per worker.
const KEPT_CONNECTIONS: usize = 2_048;
/// Spare connections beyond an even share of the clients: for members and an uneven spread.
const CONNECTIONS_SPARE: u64 = 4_096;

/// Space for the head of a response; the origin's heads use a fifth of it.
const HEAD_BYTES: u64 = 1_024;
/// Buffer sizes are multiples of a page.
const PAGE_BYTES: u64 = 4_096;

/// Concurrent requests per member in tests of queues.
pub const QUEUE_CONNECTIONS_MAX: usize = 4;

/// Weir's name.
pub const WEIR: &str = "weir";

/// The balancing of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// Members take turns.
    RoundRobin,
    /// The member with the fewest connections.
    LeastConnections,
}

/// Features of the products beyond balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// No feature.
    Plain,
    /// Requests for `.png` go to another pool.
    Uri,
    /// As `Uri`, and: half of the requests are rewritten, members get the client's address, and persistence by client
    /// address.
    Advanced,
    /// Persistence by a cookie that the product sets.
    Cookie,
    /// A member takes [`QUEUE_CONNECTIONS_MAX`] requests at a time; others wait in a queue.
    Queue,
    /// This many rules on hosts and path prefixes. No rule matches. Only for weir.
    Rules(usize),
    /// An access log, and an admin listener for observers; with `records`, records of all requests, too. Only for weir.
    Observed {
        /// Whether requests are recorded.
        records: bool,
    },
    /// A web application firewall; for weir and the firewall peers.
    Waf(InspectedRequests),
}

impl Feature {
    /// The features that all products support.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Uri, Self::Advanced, Self::Cookie];

    /// The feature's name in templates.
    fn word(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Uri => "URI",
            Self::Advanced => "ADVANCED",
            Self::Cookie => "COOKIE",
            Self::Queue => "QUEUE",
            Self::Rules(_) => "RULES",
            Self::Observed { records: false } => "OBSERVED",
            Self::Observed { records: true } => "RECORDED",
            Self::Waf(inspected) => inspected.word(),
        }
    }
}

/// The service of a product in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Addresses of the virtual servers.
    pub listen: Vec<SocketAddr>,
    /// Addresses of the pool's members.
    pub members: Vec<SocketAddr>,
    /// Worker threads or processes, all on the product's cores.
    pub workers: usize,
    /// Concurrent clients.
    pub clients: usize,
    /// Length of the objects. A fitted buffer holds an object and [`HEAD_BYTES`].
    pub object_bytes: u64,
    /// Limit of descriptors per process.
    pub descriptors_max: u64,
    /// The balancing of the pool.
    pub balance: Balance,
    /// The tested feature.
    pub feature: Feature,
    /// The layer.
    pub layer: Layer,
    /// The program's output about its version and build.
    pub said: String,
    /// The protocol toward clients.
    pub front: Front,
    /// The certificate, if the front uses TLS.
    pub certificate: Option<Certificate>,
    /// The firewall's rules, if the test needs any.
    pub crs: Option<Crs>,
}

impl Service {
    /// Number of workers for this many clients: one per core, or more if the descriptor limit requires it.
    pub fn workers_for(clients: usize, cores: usize, descriptors_max: u64) -> usize {
        clients.div_ceil(Self::clients_per_process(descriptors_max)).max(cores).max(1)
    }

    /// Largest number of clients per process.
    pub fn clients_per_process(descriptors_max: u64) -> usize {
        let share =
            descriptors_max.min(DESCRIPTORS_MAX) as f64 * (1.0 - DESCRIPTORS_RESERVED_SHARE);
        (share as usize).max(1)
    }

    /// Size of a buffer that holds a response and `spare` bytes, rounded up to whole pages.
    fn buffer_bytes(&self, spare: u64) -> u64 {
        (self.object_bytes + HEAD_BYTES + spare).next_multiple_of(PAGE_BYTES)
    }

    fn descriptors(&self) -> u64 {
        self.descriptors_max.min(DESCRIPTORS_MAX)
    }

    /// Connection limit for each of `processes`.
    fn connections(&self, processes: usize) -> u64 {
        let share = self.clients.div_ceil(processes) as u64;
        let spare = self.descriptors() / 40;
        (share + share / 8 + CONNECTIONS_SPARE)
            .min(self.descriptors().saturating_sub(spare))
            .max(64)
    }

    /// Fills a product's template; `balance`: its settings for round robin and for least connections.
    fn fill(
        &self,
        template: &str,
        processes: usize,
        [round_robin, least_connections]: [&str; 2],
        more: &[(&'static str, String)],
    ) -> String {
        let balance = match self.balance {
            Balance::RoundRobin => round_robin,
            Balance::LeastConnections => least_connections,
        };
        let mut words = vec![
            ("BALANCE", balance.to_owned()),
            ("WORKERS", self.workers.to_string()),
            ("CONNECTIONS", self.connections(processes).to_string()),
            ("DESCRIPTORS", self.descriptors().to_string()),
            ("KEEPALIVE", KEPT_CONNECTIONS.to_string()),
            ("PLACES", QUEUE_CONNECTIONS_MAX.to_string()),
        ];
        words.extend(self.front.words(self.certificate.as_ref()));
        words.extend_from_slice(more);
        let mut features = self.front.marks();
        features.push(self.feature.word());
        features.extend(self.layer.mark());
        let values = template::Values {
            words: &words,
            servers: &self.listen,
            members: &self.members,
            features: &features,
        };
        template::fill(template, &values)
    }
}

/// Paths of a product.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The program.
    pub program: &'a Path,
    /// The configuration; absolute.
    pub configuration: &'a Path,
    /// A folder for the product's own files; absolute.
    pub directory: &'a Path,
}

/// Properties of a product that the bed needs.
#[derive(Debug)]
pub struct Definition {
    /// The product's name on the command line and in the record.
    pub name: &'static str,
    /// Instructions for installing the product.
    pub install: &'static str,
    /// Arguments that print the product's version.
    version_arguments: &'static [&'static str],
    /// Extracts the version from that output.
    parse_version: fn(&str) -> Option<String>,
    /// Extracts the name and version of the TLS library from that output.
    parse_tls: fn(&str) -> Option<String>,
    /// Extracts the commit of the build from that output.
    parse_commit: fn(&str) -> Option<String>,
    /// Name of the configuration file, if the product has one.
    pub file: Option<&'static str>,
    /// Makes the configuration.
    pub configuration: fn(&Service) -> String,
    /// Makes the command.
    pub command: fn(Place<'_>, &Service) -> Vec<OsString>,
    /// Makes the command that only checks the configuration, if the product has one.
    pub check: Option<fn(Place<'_>) -> Vec<OsString>>,
    /// Whether all workers share one descriptor limit.
    pub is_one_process: bool,
    /// Largest number of virtual servers.
    pub virtual_servers_max: usize,
    /// Whether requests can wait for a busy member.
    pub has_queue: bool,
    /// Missing capabilities, with reasons.
    lacks: fn(&Service) -> Option<String>,
    /// The kernel's signal to the product when the run is killed.
    pub death_signal: DeathSignal,
}

/// The products, in the order of the report.
pub const ALL: [&Definition; 7] = [
    &weir::DEFINITION,
    &nginx::DEFINITION,
    &haproxy::DEFINITION,
    &envoy::DEFINITION,
    &relay::DEFINITION,
    &weir::PLAIN,
    &signatures::DEFINITION,
];

/// Names of the peers for `--peers`.
pub fn peer_names() -> Vec<&'static str> {
    let names = ALL.iter().chain(&FIREWALLS).map(|definition| definition.name);
    names.filter(|name| *name != WEIR && !is_yardstick(name)).collect()
}

/// The product with that name.
#[cfg(test)]
pub fn definition(name: &str) -> Option<&'static Definition> {
    ALL.into_iter().find(|definition| definition.name == name)
}

/// An installed product.
#[derive(Debug, Clone)]
pub struct InstalledProduct {
    /// The product's definition.
    pub definition: &'static Definition,
    /// Path of the program; absolute.
    pub program: PathBuf,
    /// The program's output about its version and build.
    pub said: String,
    /// The product in the record. Its name is the definition's; a second row has [`SECOND`] appended.
    pub record: Product,
}

impl InstalledProduct {
    /// The name of the product's row.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Turns the product into the second row of its definition.
    pub fn second(mut self) -> Self {
        self.record.name += SECOND;
        self
    }
}

impl Definition {
    /// Finds the program at `given` (a bare name is searched in PATH), or by the product's own name. The error has the
    /// reason why the product cannot take part, and a fix.
    pub fn find(&'static self, given: Option<&Path>) -> Result<InstalledProduct, String> {
        let program = match given {
            Some(path) if path.components().count() > 1 && is_executable(path) => path.to_owned(),
            Some(path) if path.components().count() > 1 => {
                return Err(format!("{} is no program", path.display()));
            }
            Some(name) => find_program(&name.to_string_lossy())
                .ok_or_else(|| format!("{} is not in PATH", name.display()))?,
            None => find_program(self.name).ok_or_else(|| {
                format!(
                    "not in PATH; install it ({}) or name it with --{} PATH",
                    self.install, self.name
                )
            })?,
        };
        let program = std::path::absolute(&program)
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let mut command = vec![program.clone().into_os_string()];
        command.extend(self.version_arguments.iter().map(OsString::from));
        let text = output_of(&command, Path::new("/"))?;
        let version = (self.parse_version)(&text).ok_or_else(|| {
            let said = text.lines().next().unwrap_or_default();
            format!("{} does not print a version but {said:?}", program.display())
        })?;
        let record = Product {
            name: self.name.into(),
            version,
            tls: (self.parse_tls)(&text),
            commit: (self.parse_commit)(&text),
            sha256: hash::of_program(&program)
                .map_err(|error| format!("{}: {error}", program.display()))?,
        };
        Ok(InstalledProduct { definition: self, program, said: text, record })
    }

    /// The reason why the product does not support that service; `None`: the product supports it.
    pub fn unable(&self, service: &Service) -> Option<String> {
        let clients_max = Service::clients_per_process(service.descriptors_max);
        if self.is_one_process && service.clients > clients_max {
            return Some(format!(
                "it is one process, which may have {} descriptors here (RLIMIT_NOFILE): too few for {} \
                 clients",
                service.descriptors_max, service.clients
            ));
        }
        if service.listen.len() > self.virtual_servers_max {
            return Some(format!("it cannot have {} virtual servers", service.listen.len()));
        }
        let is_plain = service.feature == Feature::Plain && !service.front.is_more();
        if self.file.is_none() && !is_plain {
            return Some("it knows no HTTP".into());
        }
        if service.feature == Feature::Queue && !self.has_queue {
            return Some("no request can wait in it for a member that is full".into());
        }
        (self.lacks)(service)
    }
}

/// A command from a program and its arguments.
fn words<const N: usize>(program: &Path, arguments: [&std::ffi::OsStr; N]) -> Vec<OsString> {
    std::iter::once(program.as_os_str()).chain(arguments).map(OsString::from).collect()
}

/// The text of the first line with `prefix`, from behind the prefix to `until` or the end.
fn after(text: &str, prefix: &str, until: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.split_once(prefix))?.1;
    let version = rest.split(until).next()?.trim();
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::PLAIN_WEIR;

    pub(super) fn service(virtual_servers: u16, members: u16, workers: usize) -> Service {
        let addresses = |net: u8, count: u16| -> Vec<SocketAddr> {
            (0..count)
                .map(|index| ([127, 0, net, index as u8 + 1], 18_000 + u16::from(net)).into())
                .collect()
        };
        Service {
            listen: addresses(2, virtual_servers),
            members: addresses(1, members),
            workers,
            clients: 1_000,
            object_bytes: 128,
            descriptors_max: 20_000,
            balance: Balance::RoundRobin,
            feature: Feature::Plain,
            layer: Layer::Http,
            said: NGINX_SAYS.into(),
            front: Front::default(),
            certificate: None,
            crs: None,
        }
    }

    #[test]
    fn versions() {
        let check = |name: &str, text: &str, expected: &str| {
            let definition = definition(name).expect("known");
            assert_eq!((definition.parse_version)(text).as_deref(), Some(expected));
            assert_eq!((definition.parse_version)("what?"), None, "{name}");
        };
        check("weir", WEIR_SAYS, "0.1.0");
        check("nginx", NGINX_SAYS, "1.22.1");
        check("haproxy", HAPROXY_SAYS, "2.6.12-1+deb12u4 2026/10/17");
        check("envoy", ENVOY_SAYS, "1.40.0");
    }

    const WEIR_SAYS: &str = "weir 0.1.0\ncommit: 0123abc\nTLS: rustls 0.23.1\n";
    const NGINX_SAYS: &str = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.15 3 Sep 2024 (running with \
                              OpenSSL 3.0.22 25 Aug 2026)\nTLS SNI support enabled\n";
    const HAPROXY_SAYS: &str = "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\nStatus: x\n\
                                Built with OpenSSL version : OpenSSL 3.0.15 3 Sep 2024\n\
                                Running on OpenSSL version : OpenSSL 3.0.22 25 Aug 2026\n";
    const ENVOY_SAYS: &str = "\nenvoy  version: 0123abc/1.40.0/Clean/RELEASE/BoringSSL\n";

    #[test]
    fn tls_libraries_and_commits() {
        let check = |name: &str, text: &str, tls: Option<&str>, commit: Option<&str>| {
            let definition = definition(name).expect("known");
            assert_eq!((definition.parse_tls)(text).as_deref(), tls, "{name}");
            assert_eq!((definition.parse_commit)(text).as_deref(), commit, "{name}");
        };
        check("weir", WEIR_SAYS, Some("rustls 0.23.1"), Some("0123abc"));
        check("weir", "weir 0.1.0\n", None, None);
        check("weir", "weir 0.1.0\ncommit: unknown\n", None, None);
        check("nginx", NGINX_SAYS, Some("OpenSSL 3.0.22 25 Aug 2026"), None);
        let as_built = "nginx version: nginx/1.31.4\nbuilt with OpenSSL 3.5.1 1 Jul 2025\n";
        check("nginx", as_built, Some("OpenSSL 3.5.1 1 Jul 2025"), None);
        check("nginx", "nginx version: nginx/1.22.1\n", None, None);
        check("haproxy", HAPROXY_SAYS, Some("OpenSSL 3.0.22 25 Aug 2026"), None);
        let awslc = "Running on SSL library version : OpenSSL 1.1.1 (compatible; AWS-LC 1.50.0)\n";
        check("haproxy", awslc, Some("OpenSSL 1.1.1 (compatible; AWS-LC 1.50.0)"), None);
        check("envoy", ENVOY_SAYS, Some("BoringSSL"), Some("0123abc"));
    }

    #[test]
    fn a_program_is_named_by_its_path_or_looked_for_by_its_name() {
        let nginx = definition("nginx").expect("known");
        let find = |given: &str| nginx.find(Some(Path::new(given)));
        assert!(find("/nonexistent/nginx").expect_err("absent").contains("is no program"));
        assert!(
            find("nginx-of-no-path")
                .expect_err("absent")
                .contains("nginx-of-no-path is not in PATH")
        );
        // A program that exists, and is not nginx.
        assert!(find("true").expect_err("another").contains("does not print a version"));
    }

    #[test]
    fn workers_follow_cores_and_descriptors() {
        let check = |clients, cores, limit, expected| {
            assert_eq!(Service::workers_for(clients, cores, limit), expected, "{clients}");
        };
        check(1_000, 1, 20_000, 1);
        check(12_000, 1, 20_000, 1);
        check(24_000, 1, 20_000, 2);
        check(192_000, 1, 20_000, 12);
        check(1_000, 4, 20_000, 4);
        check(192_000, 1, 1 << 30, 1);
        check(1, 1, 0, 1);
    }

    #[test]
    fn connections_fit_the_descriptors() {
        let check = |clients, workers, limit, expected| {
            let service =
                Service { clients, workers, descriptors_max: limit, ..service(1, 1, workers) };
            assert_eq!(service.connections(workers), expected);
        };
        check(1_000, 1, 20_000, 5_221);
        check(192_000, 12, 20_000, 19_500);
        check(192_000, 1, 1 << 30, 220_096);
    }

    #[test]
    fn every_configuration_is_filled() {
        for definition in ALL {
            for (servers, members) in [(1, 1), (24, 72)] {
                let service = service(servers, members, 3);
                let text = (definition.configuration)(&service);
                assert_eq!(template::unfilled(&text), None, "{}:\n{text}", definition.name);
                let least = Service { balance: Balance::LeastConnections, ..service };
                let is_same = (definition.configuration)(&least) == text;
                assert_eq!(is_same, definition.file.is_none(), "{}", definition.name);
                if definition.file.is_some() {
                    assert_eq!(text.matches("127.0.1.").count(), usize::from(members), "{text}");
                    assert_eq!(text.matches("127.0.2.").count(), usize::from(servers), "{text}");
                }
            }
        }
    }

    #[test]
    fn every_layer_has_its_configuration_or_a_reason() {
        let said = format!("{NGINX_SAYS}configure arguments: --with-stream\n");
        for definition in ALL.iter().filter(|definition| definition.file.is_some()) {
            let mut seen = Vec::new();
            let udp = [Sessions::OneShot, Sessions::Kept].map(Layer::Udp);
            for layer in [Layer::Http, Layer::Tcp, Layer::Packets].into_iter().chain(udp) {
                let service = Service { layer, said: said.clone(), ..service(2, 3, 1) };
                let text = (definition.configuration)(&service);
                assert_eq!(template::unfilled(&text), None, "{}:\n{text}", definition.name);
                let is_known = text.matches("127.0.1.").count() == 3;
                let reason = definition.unable(&service);
                assert!(is_known || reason.is_some(), "{} {layer:?}", definition.name);
                assert!(layer != Layer::Tcp || reason.is_none(), "{reason:?}");
                seen.push(text);
            }
            seen.dedup();
            // Only weir has a packet path, and HAProxy relays no datagrams.
            let expected = match definition.name {
                WEIR | PLAIN_WEIR => 5,
                "haproxy" => 3,
                _ => 4,
            };
            assert_eq!(seen.len(), expected, "{}", definition.name);
        }
    }

    #[test]
    fn features_are_configured_where_they_are_asked_for() {
        for definition in ALL.iter().filter(|definition| definition.file.is_some()) {
            let mut seen = Vec::new();
            for feature in Feature::ALL {
                let text = (definition.configuration)(&Service { feature, ..service(2, 3, 1) });
                assert_eq!(template::unfilled(&text), None, "{}:\n{text}", definition.name);
                seen.push(text);
            }
            seen.dedup();
            // Weir without the features has the same configuration for all features.
            let expected = if is_yardstick(definition.name) { 1 } else { Feature::ALL.len() };
            assert_eq!(seen.len(), expected, "{}", definition.name);
        }
        let asked = Service { feature: Feature::Uri, ..service(1, 1, 1) };
        let reason = definition("relay").expect("known").unable(&asked);
        assert_eq!(reason.as_deref(), Some("it knows no HTTP"));
        let queueing = Service { feature: Feature::Queue, ..service(1, 2, 1) };
        for (name, has_queue) in [("weir", true), ("haproxy", true), ("nginx", false)] {
            let definition = definition(name).expect("known");
            assert_eq!(definition.unable(&queueing).is_none(), has_queue, "{name}");
            let text = (definition.configuration)(&queueing);
            assert_eq!(template::unfilled(&text), None, "{name}:\n{text}");
        }
    }

    #[test]
    fn products_that_cannot_say_why() {
        let check = |name: &str, service: Service, part: Option<&str>| {
            let reason = definition(name).expect("known").unable(&service);
            assert_eq!(reason.is_some(), part.is_some(), "{name}: {reason:?}");
            assert!(reason.unwrap_or_default().contains(part.unwrap_or_default()));
        };
        let many = Service { clients: 24_000, workers: 2, ..service(24, 72, 2) };
        check("haproxy", many.clone(), Some("RLIMIT_NOFILE"));
        check("envoy", many.clone(), Some("20000 descriptors"));
        check("nginx", many.clone(), None);
        check("weir", many, None);
        check("relay", service(24, 72, 1), Some("24 virtual servers"));
        check("relay", service(1, 72, 1), None);
        let queries = Service { layer: Layer::Udp(Sessions::Kept), ..service(1, 2, 1) };
        check("relay", queries.clone(), None);
        check("haproxy", queries, Some("does not relay datagrams"));
    }

    #[test]
    fn missing_products_say_how_to_get_them() {
        let error = definition("envoy").expect("known").find(Some(Path::new("/nonexistent")));
        assert!(error.expect_err("absent").contains("/nonexistent is no program"));
        let names = ["nginx", "haproxy", "envoy", "nginx-modsecurity", "coraza"];
        assert_eq!(peer_names(), names);
    }

    /// Skips an absent product. With `WEIR_TEST_STRICT` an absent product is a failure, except Envoy, which has no
    /// Debian package.
    fn found(definition: &'static Definition) -> Option<InstalledProduct> {
        let given = std::env::var_os(format!("WEIR_BENCH_{}", definition.name.to_uppercase()));
        match definition.find(given.as_ref().map(Path::new)) {
            Ok(found) => Some(found),
            Err(reason) => {
                let is_strict = std::env::var_os("WEIR_TEST_STRICT").is_some();
                assert!(!is_strict || definition.name == "envoy", "{}: {reason}", definition.name);
                eprintln!("SKIPPED the check of {}: {reason}", definition.name);
                None
            }
        }
    }

    #[test]
    fn every_product_accepts_its_configuration() {
        for definition in ALL {
            // Weir's program is not built here; tests of the whole check weir's configuration.
            let (Some(file), Some(check)) = (definition.file, definition.check) else { continue };
            let is_own = definition.name == WEIR || is_yardstick(definition.name);
            if is_own && std::env::var_os("WEIR_BENCH_WEIR").is_none() {
                continue;
            }
            let Some(found) = found(definition) else { continue };
            let sizes = [(1, 1, 1), (24, 72, 1), (24, 72, 12)].map(|size| (size, Feature::Plain));
            let features = Feature::ALL.map(|feature| ((1, 2, 1), feature));
            for ((servers, members, workers), feature) in sizes.into_iter().chain(features) {
                let folder = std::env::temp_dir().join(format!(
                    "weir-bench-check-{}-{}",
                    definition.name,
                    std::process::id()
                ));
                std::fs::create_dir_all(&folder).expect("a folder");
                let path = folder.join(file);
                let gzip = Some(GzipClass::Level5);
                let front = Front { gzip, ..Front::default() };
                let service = Service {
                    feature,
                    front,
                    object_bytes: 32 * 1024,
                    ..service(servers, members, workers)
                };
                let text = (definition.configuration)(&service);
                std::fs::write(&path, text).expect("a file");
                let place =
                    Place { program: &found.program, configuration: &path, directory: &folder };
                let said = output_of(&check(place), &folder);
                said.unwrap_or_else(|said| panic!("{} refuses: {said}", definition.name));
                std::fs::remove_dir_all(&folder).expect("removing it");
            }
        }
    }
}
