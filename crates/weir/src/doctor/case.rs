//! The input of all checks.

use weir_api::status::Status;
use weir_config::snapshot::{NOBODY, Pool, Snapshot};

use super::host::Host;

/// A host, a configuration, and a running weir if there is one.
pub struct Case<'c> {
    /// The host.
    pub host: &'c Host,
    /// The configuration; `None`: it is absent, or has errors.
    pub snapshot: Option<&'c Snapshot>,
    /// The running weir, if there is one.
    pub running: Option<&'c RunningStatus>,
}

/// A running weir.
pub struct RunningStatus {
    /// The status of the running weir.
    pub status: Status,
    /// Whether it runs on this host, so its process is visible.
    pub is_here: bool,
}

impl Case<'_> {
    /// The process whose limits apply: that of the running weir, else this one.
    pub fn process(&self) -> String {
        self.running_process().map_or("self".into(), |id| id.to_string())
    }

    /// The process of the running weir, if it is visible. An old version does not tell it.
    fn running_process(&self) -> Option<u32> {
        let here = self.running.filter(|running| running.is_here)?;
        Some(here.status.process.pid).filter(|id| *id != 0)
    }

    /// The name of that process in messages.
    pub fn process_name(&self) -> &'static str {
        match self.running_process().is_some() {
            true => "the running weir",
            false => "a weir started like this command",
        }
    }

    /// The number of workers.
    pub fn workers(&self) -> u64 {
        let of_running = self.running.map(|running| running.status.process.workers as u64);
        let of_file = self.snapshot.and_then(|snapshot| snapshot.data_plane.workers).map(u64::from);
        let of_host = || std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        of_running.or(of_file).unwrap_or_else(of_host).max(1)
    }

    /// The pools of the configuration.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        let pools = self.snapshot.iter().flat_map(|snapshot| &snapshot.pools);
        pools.map(|pool| &**pool).filter(|pool| *pool.name != *NOBODY)
    }

    /// Maximum number of concurrent clients that the configuration allows; `None`: unlimited.
    pub fn clients_max(&self) -> Option<u64> {
        let servers = &self.snapshot?.virtual_servers;
        servers.iter().map(|server| server.limits.connections_max.map(u64::from)).sum()
    }
}

/// Configurations for tests of checks.
#[cfg(test)]
pub mod tests {
    use weir_config::Resolutions;
    use weir_config::snapshot::Snapshot;

    /// The snapshot of a valid configuration.
    #[track_caller]
    pub fn snapshot(text: &str) -> Snapshot {
        let loaded = weir_config::parse("test.yaml", text);
        let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
        config.snapshot(&Resolutions::default())
    }
}
