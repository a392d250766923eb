//! The process, its configuration and its logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reload::ReloadFailure;
use crate::upgrade::UpgradeReport;

/// The process, its configuration and its logs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Process {
    /// The version of weir.
    pub version: String,
    /// The process id.
    pub pid: u32,
    /// The time of the start.
    pub started: String,
    /// The time since the start, in seconds.
    pub uptime_seconds: u64,
    /// `serving` (without a problem), `degraded`, `down` (no virtual server serves), `starting` or `draining`.
    pub health: ProcessHealth,
    /// Problems, as sentences: virtual servers and pools that do not serve, and those of the process as a whole.
    pub problems: Vec<String>,
    /// Whether it waits for the first probes of members.
    pub starting: bool,
    /// Whether it shuts down, and accepts no new connections.
    pub draining: bool,
    /// The number of workers.
    pub workers: usize,
    /// Whether worker threads cannot open files; `null`: the workers have not started.
    pub sandbox: Option<Sandbox>,
    /// The configuration in effect, and reloads.
    pub configuration: Configuration,
    /// The last upgrade, which failed or started this process; `null`: no upgrade.
    pub upgrade: Option<UpgradeReport>,
    /// The process id of the replaced process while it drains; `null`: no process drains.
    pub draining_process: Option<u32>,
    /// Lines of the logs.
    pub log: LogCounts,
    /// Connections that this host could not accept or open, for lack of descriptors, ports or memory.
    pub socket_failures: u64,
    /// Descriptors of UDP sessions; `null`: no virtual server has type udp.
    pub udp_sockets: Option<UdpSockets>,
    /// Connections and logins of the admin listeners.
    #[serde(flatten)]
    pub admin: AdminCounts,
    /// Panics of workers. Each has closed the connections of its worker.
    pub worker_panics: u64,
    /// The last of them.
    pub last_worker_panic: Option<Panic>,
    /// Workers that ended unexpectedly.
    pub workers_ended: u64,
}

/// The state of the process as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessHealth {
    /// Shuts down, and accepts no new connections.
    Draining,
    /// Waits for the first probes of members.
    Starting,
    /// No virtual server serves.
    Down,
    /// It serves, and there are problems, or something is not up.
    Degraded,
    /// It serves, and there is no problem.
    Serving,
    /// An older weir has not said it, or a newer one has a state of its own. It is never sent.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ProcessHealth {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Starting => "starting",
            Self::Down => "down",
            Self::Degraded => "degraded",
            Self::Serving => "serving",
            Self::Unknown => "",
        }
    }
}

/// The sandbox of the worker threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// The setting at startup: `auto`, `on` or `off`.
    pub setting: String,
    /// Whether the workers cannot open files.
    pub is_on: bool,
    /// The version of the kernel's Landlock ABI; `null`: Landlock does not restrict the workers.
    pub landlock_version: Option<u32>,
    /// The reason why the sandbox is off, if the setting is `auto`.
    pub why: Option<String>,
}

/// The state of configurations.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ConfigurationStatus")]
pub struct Configuration {
    /// The number of activations so far: by the start, reloads, changes, and changed addresses of names.
    pub generation: u64,
    /// The newest version of the overlay; 0: no versions.
    pub version: u64,
    /// The version of the overlay in force. A newer one may wait for first probes.
    pub version_in_force: u64,
    /// The version that weir reverts unless it is confirmed; `null`: no version waits for a confirmation.
    pub unconfirmed_version: Option<u64>,
    /// The time of the last activation.
    pub in_force_since: String,
    /// Whether the last reload was successful.
    pub last_reload_successful: bool,
    /// Reloads that took effect.
    pub reloads: u64,
    /// Reloads that were refused.
    pub reloads_failed: u64,
    /// The last refused reload; `null`: no reload was refused.
    pub last_reload_failure: Option<ReloadFailure>,
    /// The configuration that waits for the first probes of its members; `null`: no configuration waits.
    pub waiting: Option<Waiting>,
}

/// A configuration that waits for the first probes of its members.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "WaitingStatus")]
pub struct Waiting {
    /// The time until the configuration becomes active in any case, in milliseconds.
    pub left_ms: u64,
    /// The pools with members that it waits for.
    pub pools: Vec<WaitingPool>,
}

/// A pool with members whose first probes have no result.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitingPool {
    /// The name.
    pub name: String,
    /// The members whose first probes have no result.
    pub members: Vec<String>,
}

/// Lines of the logs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "LogStatus")]
pub struct LogCounts {
    /// Lines of the access log.
    pub lines: u64,
    /// Lines that were dropped because the log was too slow.
    pub lines_dropped: u64,
    /// Lines that could not be written.
    pub lines_not_written: u64,
    /// The number of lines of the web application firewall's log.
    pub waf_lines: u64,
    /// Lines of it that were dropped because the log was too slow.
    pub waf_lines_dropped: u64,
    /// Lines of it that could not be written.
    pub waf_lines_not_written: u64,
    /// The number of lines of the audit log.
    pub audit_lines: u64,
    /// Lines of it that were dropped because the log was too slow.
    pub audit_lines_dropped: u64,
    /// Lines of it that could not be written.
    pub audit_lines_not_written: u64,
}

/// Descriptors of UDP sessions, in all workers together.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UdpSockets {
    /// Descriptors in use.
    pub open: u64,
    /// Descriptors that sessions may use.
    pub max: u64,
    /// Sessions refused because all of these were in use.
    pub sessions_refused: u64,
}

/// Connections and logins of the admin listeners.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AdminCounts {
    /// Connections that were closed at once because the maximum was reached.
    pub admin_connections_turned_away: u64,
    /// Connections that ended to make room for another one, while they waited for a request.
    pub admin_connections_displaced: u64,
    /// Requests with an unknown token or client certificate.
    pub admin_logins_failed: u64,
}

/// A panic of a worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "PanicStatus")]
pub struct Panic {
    /// The time.
    pub time: String,
    /// The number of the worker.
    pub worker: usize,
    /// The message, with the place in the code.
    pub message: String,
}

/// Whether weir serves.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HealthOfProcess {
    /// `serving` (without a problem), `degraded`, `down` (no virtual server serves), `starting` or `draining`.
    pub state: ProcessHealth,
    /// Problems, in sentences: of the process as a whole, then virtual servers and pools that do not serve.
    pub problems: Vec<String>,
}

/// The user of this request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Whoami {
    /// The user of the configuration; `null`: no credentials were sent.
    pub user: Option<String>,
    /// `read`, `operate` or `admin`.
    pub role: String,
    /// The peer of the connection.
    pub peer: String,
}
