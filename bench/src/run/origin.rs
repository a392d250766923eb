//! The origin: the server of `weir-bench`, run as a process on the load's cores.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use super::RunError;
use super::bed::Bed;
use super::process::{DeathSignal, Launch, Server};
use super::store::Store;

/// The origin's responses to requests or queries.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Http,
    Udp,
}

/// The servers behind the products.
#[derive(Debug)]
pub struct Origin {
    server: Server,
    /// Addresses of the servers.
    pub members: Vec<SocketAddr>,
}

impl Origin {
    /// Starts this many servers on the load's cores.
    pub fn start(
        laboratory: &Path,
        servers: usize,
        bed: &Bed,
        store: &Store,
    ) -> Result<Self, RunError> {
        Self::start_for(Kind::Http, laboratory, servers, bed, store)
    }

    /// Starts servers for queries over UDP.
    pub fn start_udp(
        laboratory: &Path,
        servers: usize,
        bed: &Bed,
        store: &Store,
    ) -> Result<Self, RunError> {
        Self::start_for(Kind::Udp, laboratory, servers, bed, store)
    }

    fn start_for(
        kind: Kind,
        laboratory: &Path,
        servers: usize,
        bed: &Bed,
        store: &Store,
    ) -> Result<Self, RunError> {
        let members = bed.servers(servers)?;
        let Some(first) = members.first() else {
            return Err(RunError::Bed("the bed has no address for the origin".into()));
        };
        let (listen, count) = (first.to_string(), members.len().to_string());
        let arguments = ["origin", "--listen", &listen, "--servers", &count];
        let mut command = vec![OsString::from(laboratory)];
        command.extend(arguments.map(OsString::from));
        let (flag, place) = match kind {
            Kind::Http => (None, "origin"),
            Kind::Udp => (Some("--udp"), "origin-udp"),
        };
        command.extend(flag.map(OsString::from));
        let working = store.working(place, &format!("{servers}-servers"))?;
        let mut server = Server::start(&Launch {
            name: "the origin",
            prefix: &bed.origin_prefix(),
            command: &command,
            directory: &working,
            log: &working.join("output.log"),
            death_signal: DeathSignal::Kill,
        })
        .map_err(RunError::Bed)?;
        // Checks from the product's namespace, because the products connect from there.
        bed.as_product(|| match kind {
            Kind::Http => server.wait_until_listening(&members),
            Kind::Udp => server.wait_until_answering(&members),
        })?
        .map_err(RunError::Bed)?;
        Ok(Self { server, members })
    }

    /// Process id of the origin.
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Fails with the end of the origin's log if the origin has ended.
    pub fn check(&mut self) -> Result<(), RunError> {
        self.server.check().map_err(RunError::Bed)
    }
}
