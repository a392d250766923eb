//! `/v1/status`: the current state of the process, as JSON for people and scripts.
//!
//! The numbers equal those of `/metrics`. They are arranged by object, with the reasons why members are down, and with
//! latency quantiles instead of buckets. Each part is also a separate resource.

use std::sync::atomic::Ordering::Relaxed;

use schemars::JsonSchema;
use serde::Serialize;
use weir_config::snapshot::{Balance, NOBODY, Waf, ranges};
use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_exchange::parts::failure::Blame;
use weir_exchange::shared::counters::{HistogramTotals, VirtualServerTotals};
use weir_exchange::shared::live::{LiveMember, LiveTable};

use self::files::FileStatus;
use self::relayed::Relayed;
use crate::figures::{quantile, round, shown_gauge};
use crate::health::{Health, Judge, Serving, pools_in_order};
use crate::member_state::{MemberState, administrative_state};
use crate::monitors::{Board, MonitorReport, UnknownMembers};
use crate::observed::{Observed, Waiting};
use crate::problems::{problems, serving};
use crate::rates::{Counts, Rate, Way};
use crate::reloads::Failure;
use crate::sandbox::SandboxStatus;
use crate::time::{monotonic_ms, rfc3339, unix_ms};
use crate::upgrade::reports::Report;

mod brief;
pub(crate) mod certificates;
pub(crate) mod files;
mod packets;
mod relayed;

pub(crate) use brief::Brief;
pub(crate) use certificates::{CertificateStatus, report_of, status as certificate};
pub(crate) use packets::{PacketPathStatus, packet_path};

/// The whole status.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Status {
    #[serde(flatten)]
    process: ProcessStatus,
    /// The files of the configuration with contents that expire, except certificates for clients.
    files: Vec<FileStatus>,
    virtual_servers: Vec<VirtualServerStatus>,
    /// The virtual servers that the configuration disables.
    disabled_virtual_servers: Vec<DisabledStatus>,
    /// The packet path and the virtual servers of type fast_l4; `null`: there are none.
    packet_path: Option<PacketPathStatus>,
    pools: Vec<PoolStatus>,
}

/// The process, its configuration and its logs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Process")]
pub(crate) struct ProcessStatus {
    version: &'static str,
    /// The process id.
    pid: u32,
    started: String,
    uptime_seconds: u64,
    #[serde(flatten)]
    standing: Standing,
    starting: bool,
    draining: bool,
    workers: usize,
    /// Whether worker threads cannot open files; `null`: the workers have not started.
    sandbox: Option<SandboxStatus>,
    configuration: ConfigurationStatus,
    /// The last upgrade, which failed or started this process; `null`: no upgrade.
    upgrade: Option<Report>,
    /// The process id of the replaced process while it drains; `null`: no process drains.
    draining_process: Option<u32>,
    log: LogStatus,
    #[serde(flatten)]
    sockets: SocketsStatus,
    admin_connections_turned_away: u64,
    admin_connections_displaced: u64,
    admin_logins_failed: u64,
    worker_panics: u64,
    last_worker_panic: Option<PanicStatus>,
    workers_ended: u64,
}

/// The sockets of the workers.
#[derive(Debug, Serialize, JsonSchema)]
struct SocketsStatus {
    socket_failures: u64,
    /// Descriptors of UDP sessions; `null`: no virtual server has type udp.
    udp_sockets: Option<UdpSockets>,
}

/// Descriptors of UDP sessions, in all workers together.
#[derive(Debug, Serialize, JsonSchema)]
struct UdpSockets {
    /// Descriptors in use.
    open: u64,
    /// Descriptors that sessions may use.
    max: u64,
    /// Sessions refused because all of these were in use.
    sessions_refused: u64,
}

/// The health and the problems of the process.
#[derive(Debug, Serialize, JsonSchema)]
struct Standing {
    /// `serving` (without a problem), `degraded`, `down` (no virtual server serves), `starting` or `draining`.
    health: Serving,
    /// Problems, as sentences: virtual servers and pools that do not serve, and those of the process as a whole.
    problems: Vec<String>,
}

/// The state of configurations.
#[derive(Debug, Serialize, JsonSchema)]
struct ConfigurationStatus {
    /// The number of activations so far: by the start, reloads, changes, and changed addresses of names.
    generation: u64,
    /// The newest version of the overlay; 0: no versions.
    version: u64,
    /// The version of the overlay in force. A newer one may wait for first probes.
    version_in_force: u64,
    /// The version that weir reverts unless it is confirmed; `null`: no version waits for a confirmation.
    unconfirmed_version: Option<u64>,
    in_force_since: String,
    last_reload_successful: bool,
    reloads: u64,
    reloads_failed: u64,
    /// The last refused reload; `null`: no reload was refused.
    last_reload_failure: Option<Failure>,
    /// The configuration that waits for the first probes of its members; `null`: no configuration waits.
    waiting: Option<WaitingStatus>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WaitingStatus {
    /// The time until the configuration becomes active in any case, in milliseconds.
    left_ms: u64,
    pools: Vec<WaitingPool>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WaitingPool {
    name: String,
    /// The members whose first probes have no result.
    members: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PanicStatus {
    time: String,
    worker: usize,
    message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LogStatus {
    lines: u64,
    lines_dropped: u64,
    lines_not_written: u64,
    /// The number of lines of the web application firewall's log.
    waf_lines: u64,
    waf_lines_dropped: u64,
    waf_lines_not_written: u64,
    /// The number of lines of the audit log.
    audit_lines: u64,
    audit_lines_dropped: u64,
    audit_lines_not_written: u64,
}

/// A virtual server.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VirtualServer")]
pub(crate) struct VirtualServerStatus {
    #[serde(flatten)]
    named: Named,
    listen: Vec<String>,
    pool: String,
    /// All pools that requests can reach by host names, by rules or as fallbacks. `pool` is the first.
    pools: Vec<String>,
    connections: u64,
    connections_open: u64,
    connections_max: Option<u32>,
    connections_refused: u64,
    requests: u64,
    requests_active: u64,
    requests_malformed: u64,
    requests_path_refused: u64,
    head_timeouts: u64,
    body_timeouts: u64,
    client_aborts: u64,
    tunnels: u64,
    /// Relayed connections by their end; `null` for type http.
    relayed: Option<Relayed>,
    responses: Classes,
    #[serde(flatten)]
    traffic: Traffic,
    request_duration: Latency,
}

/// What a virtual server is, and how well it serves.
#[derive(Debug, Serialize, JsonSchema)]
struct Named {
    name: String,
    r#type: &'static str,
    health: Health,
}

/// A disabled virtual server.
#[derive(Debug, Serialize, JsonSchema)]
struct DisabledStatus {
    name: String,
    r#type: &'static str,
    /// The addresses that it listens on when it is enabled.
    listen: Vec<String>,
}

/// Results of the web application firewall.
#[derive(Debug, Serialize, JsonSchema)]
struct WafStatus {
    /// The mode of requests for which no policy sets another one: `off`, `detect` or `block`.
    mode: &'static str,
    inspected: u64,
    blocked: u64,
    detected: u64,
    unjudged: u64,
}

/// Traffic of a virtual server.
#[derive(Debug, Serialize, JsonSchema)]
struct Traffic {
    /// The virtual servers to which rules hand requests over.
    hands_over_to: Vec<String>,
    bytes_received: u64,
    bytes_sent: u64,
    /// Rates per second; `null` until they are known.
    rates: Option<Rate>,
    /// Counters of datagrams; `null` for other types than udp.
    datagrams: Option<Datagrams>,
    /// Results of the web application firewall; `null` without it.
    waf: Option<WafStatus>,
    /// The certificates for clients; empty without TLS.
    certificates: Vec<CertificateStatus>,
}

/// A pool and its members.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pool")]
pub(crate) struct PoolStatus {
    name: String,
    health: Health,
    balance: &'static str,
    members_up: usize,
    /// The number of members that accept new requests: up, enabled, and with a weight above 0.
    members_in_service: usize,
    retries: u64,
    no_member: u64,
    queue_requests: u64,
    queued: u64,
    /// From the request handed to a member's socket to the response head.
    response_duration: Latency,
    members: Vec<MemberStatus>,
}

/// A member and its monitors.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Member")]
pub(crate) struct MemberStatus {
    address: String,
    name: Option<String>,
    state: &'static str,
    /// The administrative state: `enabled`, `drain` or `disabled`.
    administrative: &'static str,
    /// The source of the administrative state: `file`, or `runtime`, which lasts until the process ends.
    administrative_source: &'static str,
    /// The number of requests in progress on a member that is drained or disabled; `null`: the member is enabled.
    draining_requests: Option<u32>,
    #[serde(flatten)]
    ejected: Ejected,
    monitors: Vec<MonitorStatus>,
    weight: u16,
    occupancy: u32,
    connections_max: Option<u32>,
    requests: u64,
    requests_active: u64,
    connections: u64,
    connections_open: u64,
    connections_idle: u64,
    connect_failures: u64,
    response_failures: u64,
    ejections: u64,
    responses: Classes,
    bytes_received: u64,
    bytes_sent: u64,
    /// As of the pool; `null`: not counted by member (`metrics.latency_histograms`).
    response_duration: Option<Latency>,
}

/// The ejection of a member by passive health checks.
#[derive(Debug, Serialize, JsonSchema)]
struct Ejected {
    /// The time until the member gets traffic again, in milliseconds; `null`: the member is not ejected.
    ejected_for_ms: Option<u64>,
    /// The failure that caused the ejection.
    ejected_why: Option<String>,
}

impl Ejected {
    fn of(live: &LiveMember, now_ms: u64) -> Self {
        let until_ms = live.ejected_until_ms(now_ms);
        let why = Blame::from_bits(live.ejected_for()).filter(|_| until_ms.is_some());
        Self {
            ejected_for_ms: until_ms.map(|until_ms| until_ms.saturating_sub(now_ms)),
            ejected_why: why.map(|why| why.to_string()),
        }
    }
}

/// Counters of datagrams of a virtual server of type udp.
#[derive(Debug, Serialize, JsonSchema)]
struct Datagrams {
    received: u64,
    sent: u64,
    /// Clients' datagrams without a session, because a limit was reached or no member was up.
    refused: u64,
    /// Responses dropped because of `amplification_max`.
    answers_dropped: u64,
}

/// The results of a monitor.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Monitor")]
pub(crate) struct MonitorStatus {
    r#type: &'static str,
    state: &'static str,
    passes: u64,
    failures: u64,
    last_probe: Option<String>,
    last_failure: Option<String>,
    /// The rest of `up_delay`, in milliseconds: the member is down although its probes pass; `null`: no delay.
    held_up_for_ms: Option<u64>,
}

/// Responses by class of status.
#[derive(Debug, Serialize, JsonSchema)]
struct Classes {
    #[serde(rename = "1xx")]
    informational: u64,
    #[serde(rename = "2xx")]
    successful: u64,
    #[serde(rename = "3xx")]
    redirection: u64,
    #[serde(rename = "4xx")]
    client_error: u64,
    #[serde(rename = "5xx")]
    server_error: u64,
}

/// A latency distribution since the start. Quantiles are `null` without any values.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Latency {
    count: u64,
    mean_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Status {
    /// The current status.
    pub fn of(observed: &Observed) -> Self {
        let judge = observed.judge();
        let table = judge.table();
        Self {
            process: judged_process(observed, &judge),
            files: files::of(&table.snapshot),
            virtual_servers: virtual_servers(&judge, observed),
            disabled_virtual_servers: disabled(table),
            packet_path: packet_path(&judge, observed),
            pools: pools(&judge, &observed.monitors),
        }
    }
}

/// The process as a whole.
pub(crate) fn process(observed: &Observed) -> ProcessStatus {
    judged_process(observed, &observed.judge())
}

fn judged_process(observed: &Observed, judge: &Judge) -> ProcessStatus {
    let table = judge.table();
    let workers = observed.workers.totals();
    let now = unix_ms();
    let reloads = &observed.reloads;
    let history = observed.changes.history();
    ProcessStatus {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        started: rfc3339(observed.started_unix_ms),
        uptime_seconds: now.saturating_sub(observed.started_unix_ms) / 1_000,
        standing: Standing {
            health: serving(observed, judge),
            problems: problems(observed, judge),
        },
        starting: observed.starting.load(Relaxed),
        draining: observed.draining.load(Relaxed),
        workers: table.workers(),
        sandbox: observed.sandbox(),
        configuration: ConfigurationStatus {
            generation: table.generation,
            version: history.version(),
            version_in_force: observed.changes.in_force(),
            unconfirmed_version: history.unconfirmed().map(|it| it.version),
            in_force_since: rfc3339(reloads.last_success_unix_ms.load(Relaxed)),
            last_reload_successful: reloads.last_succeeded.load(Relaxed),
            reloads: reloads.succeeded.load(Relaxed),
            reloads_failed: reloads.failed.load(Relaxed),
            last_reload_failure: reloads.last_failure(),
            waiting: observed.waiting().map(|waiting| WaitingStatus::of(&waiting, observed)),
        },
        upgrade: observed.upgrades.last(),
        draining_process: observed.upgrades.draining(),
        log: LogStatus {
            lines: observed.logs.access.lines_written.load(Relaxed),
            lines_dropped: workers.log_lines_dropped,
            lines_not_written: observed.logs.access.lines_lost.load(Relaxed),
            waf_lines: observed.logs.waf.lines_written.load(Relaxed),
            waf_lines_dropped: workers.waf_log_lines_dropped,
            waf_lines_not_written: observed.logs.waf.lines_lost.load(Relaxed),
            audit_lines: observed.logs.audit.lines_written.load(Relaxed),
            audit_lines_dropped: observed.admin.audit.dropped(),
            audit_lines_not_written: observed.logs.audit.lines_lost.load(Relaxed),
        },
        sockets: SocketsStatus {
            socket_failures: workers.socket_failures,
            udp_sockets: (workers.udp_sockets_max > 0).then_some(UdpSockets {
                open: workers.udp_sockets,
                max: workers.udp_sockets_max,
                sessions_refused: workers.udp_share_exceeded,
            }),
        },
        admin_connections_turned_away: observed.admin.turned_away.load(Relaxed),
        admin_connections_displaced: observed.admin.displaced.load(Relaxed),
        admin_logins_failed: observed.admin.logins_failed.load(Relaxed),
        worker_panics: workers.panics,
        last_worker_panic: observed.last_panic().map(|panic| PanicStatus {
            time: rfc3339(panic.unix_ms),
            worker: panic.worker,
            message: panic.message,
        }),
        workers_ended: observed.workers_ended.load(Relaxed),
    }
}

impl WaitingStatus {
    fn of(waiting: &Waiting, observed: &Observed) -> Self {
        let pools = observed.monitors.awaited(&waiting.snapshot).into_iter();
        let pool = |found: UnknownMembers| WaitingPool {
            name: found.pool.to_string(),
            members: found.members.iter().map(|member| member.to_string()).collect(),
        };
        Self {
            left_ms: waiting.until_ms.saturating_sub(monotonic_ms()),
            pools: pools.map(pool).collect(),
        }
    }
}

fn disabled(table: &LiveTable) -> Vec<DisabledStatus> {
    let all = table.snapshot.disabled.iter();
    all.map(|server| DisabledStatus {
        name: server.name.to_string(),
        r#type: server.kind,
        listen: server.listen.clone(),
    })
    .collect()
}

fn virtual_servers(judge: &Judge, observed: &Observed) -> Vec<VirtualServerStatus> {
    let all = 0..judge.table().virtual_servers.len();
    all.map(|index| virtual_server(judge, index, observed)).collect()
}

/// The status of a virtual server. `index`: its position in the configuration.
pub(crate) fn virtual_server(
    judge: &Judge,
    index: usize,
    observed: &Observed,
) -> VirtualServerStatus {
    let snapshot = &judge.table().snapshot;
    let live = &judge.table().virtual_servers[index];
    let configured = &snapshot.virtual_servers[index];
    let totals = live.counters.totals();
    let relayed = configured.service.is_relay().then(|| Relayed::of(&totals));
    let pools = pools_in_order(snapshot, index);
    VirtualServerStatus {
        named: Named::of(judge, index),
        listen: ranges(&configured.listen),
        pool: snapshot.pools[configured.pool].name.to_string(),
        pools: pools
            .iter()
            .map(|pool| snapshot.pools[*pool].name.to_string())
            .filter(|name| name != NOBODY)
            .collect(),
        connections: totals.connections_accepted,
        connections_open: shown_gauge(totals.connections_open),
        connections_max: configured.limits.connections_max,
        connections_refused: totals.connections_refused,
        requests: totals.requests,
        requests_active: shown_gauge(totals.requests_active),
        requests_malformed: totals.requests_malformed,
        requests_path_refused: totals.requests_path_refused,
        head_timeouts: totals.header_timeouts,
        body_timeouts: totals.body_timeouts,
        client_aborts: totals.client_aborts,
        tunnels: totals.tunnels,
        relayed,
        responses: Classes {
            informational: totals.responses_1xx,
            successful: totals.responses_2xx,
            redirection: totals.responses_3xx,
            client_error: totals.responses_4xx,
            server_error: totals.responses_5xx,
        },
        traffic: Traffic {
            hands_over_to: configured
                .hands_over_to()
                .into_iter()
                .map(|other| snapshot.virtual_servers[other].name.to_string())
                .collect(),
            bytes_received: totals.bytes_received,
            bytes_sent: totals.bytes_sent,
            rates: observed.rates.of(Way::Sockets, &live.name, &Counts::of_sockets(&totals)),
            datagrams: configured.service.sessions().map(|_| Datagrams::of(&totals)),
            waf: configured.waf.as_ref().map(|waf| WafStatus::of(waf, &totals)),
            certificates: certificates::of(configured, &observed.obtained.acme),
        },
        request_duration: Latency::of(&totals.request_duration),
    }
}

impl Named {
    fn of(judge: &Judge, index: usize) -> Self {
        let configured = &judge.table().snapshot.virtual_servers[index];
        Self {
            name: configured.name.to_string(),
            r#type: configured.service.name(),
            health: judge.server(index),
        }
    }
}

impl Datagrams {
    fn of(totals: &VirtualServerTotals) -> Self {
        Self {
            received: totals.datagrams_received,
            sent: totals.datagrams_sent,
            refused: totals.datagrams_refused,
            answers_dropped: totals.answers_dropped,
        }
    }
}

impl WafStatus {
    fn of(waf: &Waf, totals: &VirtualServerTotals) -> Self {
        Self {
            mode: waf.mode.name(),
            inspected: totals.waf_inspected,
            blocked: totals.waf_blocked,
            detected: totals.waf_detected,
            unjudged: totals.waf_unjudged,
        }
    }
}

/// The status of all pools, in the order of the file.
pub(crate) fn pools(judge: &Judge, board: &Board) -> Vec<PoolStatus> {
    let pools = judge.table().snapshot.pools.iter().enumerate();
    let named = pools.filter(|(_, configured)| *configured.name != *NOBODY);
    named.map(|(index, _)| pool(judge, index, board)).collect()
}

/// The status of a pool. `index`: its position in the configuration.
pub(crate) fn pool(judge: &Judge, index: usize, board: &Board) -> PoolStatus {
    let table = judge.table();
    let (configured, live) = (&table.snapshot.pools[index], &table.pools[index]);
    let totals = live.pool.counters.totals();
    let members = configured.members.iter().zip(&live.members);
    let counts = judge.members(index);
    PoolStatus {
        name: configured.name.to_string(),
        health: judge.pool(index).clone(),
        balance: balance_name(&configured.balance),
        members_up: counts.up,
        members_in_service: counts.in_service,
        retries: totals.retries,
        no_member: totals.no_member,
        queue_requests: shown_gauge(totals.queue_length),
        queued: totals.queued,
        response_duration: Latency::of(&totals.response_duration),
        members: members.map(|(configured, live)| member(configured, live, board)).collect(),
    }
}

/// The name of the balancing method in the configuration.
pub(crate) fn balance_name(balance: &Balance) -> &'static str {
    match balance {
        Balance::Method(Method::RoundRobin) => "round_robin",
        Balance::Method(Method::LeastConnections) => "least_connections",
        Balance::Method(Method::LeastResponseTime) => "least_response_time",
        Balance::Method(Method::RandomTwo) => "random_two",
        Balance::SourceAddress => "source_address",
        Balance::Hash(_) => "hash",
    }
}

/// The status of a member.
pub(crate) fn member(
    configured: &weir_config::snapshot::Member,
    live: &LiveMember,
    board: &Board,
) -> MemberStatus {
    let totals = live.counters.totals();
    let now_ms = monotonic_ms();
    let administrative = administrative_state(configured, live);
    let occupancy = live.occupancy.load(Relaxed);
    MemberStatus {
        address: live.label.to_string(),
        name: configured.name.as_deref().map(str::to_owned),
        state: MemberState::of(live).as_str(),
        administrative: administrative.as_str(),
        administrative_source: match live.state_override() {
            None => "file",
            Some(_) => "runtime",
        },
        draining_requests: (administrative != AdminState::Enabled).then_some(occupancy),
        ejected: Ejected::of(live, now_ms),
        monitors: board.of(&live.pool.name, &live.label).into_iter().map(monitor).collect(),
        weight: configured.weight,
        occupancy,
        connections_max: configured.connections_max,
        requests: totals.requests,
        requests_active: shown_gauge(totals.requests_active),
        connections: totals.connections_opened,
        connections_open: shown_gauge(totals.connections_open),
        connections_idle: shown_gauge(totals.connections_idle),
        connect_failures: totals.connect_failures,
        response_failures: totals.response_failures,
        ejections: totals.ejections,
        responses: Classes {
            informational: totals.responses_1xx,
            successful: totals.responses_2xx,
            redirection: totals.responses_3xx,
            client_error: totals.responses_4xx,
            server_error: totals.responses_5xx,
        },
        bytes_received: totals.bytes_received,
        bytes_sent: totals.bytes_sent,
        response_duration: live.response_histogram().as_ref().map(Latency::of),
    }
}

pub(crate) fn monitor(report: MonitorReport) -> MonitorStatus {
    MonitorStatus {
        r#type: report.kind,
        state: report.health.as_str(),
        passes: report.passes,
        failures: report.failures,
        last_probe: report.probed_unix_ms.map(rfc3339),
        last_failure: report.last_failure,
        held_up_for_ms: report
            .held_up_until_ms
            .map(|until_ms| until_ms.saturating_sub(monotonic_ms())),
    }
}

impl Latency {
    pub(crate) fn of(totals: &HistogramTotals) -> Self {
        let count = totals.count();
        let mean_ms = (count > 0).then(|| round(totals.sum_us as f64 / count as f64));
        Self {
            count,
            mean_ms,
            p50_ms: quantile(totals, count, 50),
            p90_ms: quantile(totals, count, 90),
            p99_ms: quantile(totals, count, 99),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_config::snapshot::Address;

    use super::*;
    use crate::testing::{observed_with, observed_with_waf};

    #[test]
    fn the_document() {
        let address = Address::Socket("127.0.0.1:9001".parse().unwrap());
        let observed = observed_with(&[address], 1);
        let table = observed.table();
        let counters = &table.virtual_servers[0].counters;
        counters.of(0).requests.add(7);
        counters.of(0).request_duration.record(1_000);
        let status = serde_json::to_value(Status::of(&observed)).unwrap();
        assert_eq!(status["virtual_servers"][0]["requests"], 7);
        assert_eq!(status["virtual_servers"][0]["pool"], "web");
        assert_eq!(status["virtual_servers"][0]["request_duration"]["mean_ms"], 1.0);
        assert_eq!(status["pools"][0]["members_up"], 1);
        assert_eq!(status["pools"][0]["members"][0]["state"], "up");
        assert_eq!(status["pools"][0]["members"][0]["address"], "127.0.0.1:9001");
        assert_eq!(status["pools"][0]["members"][0]["administrative"], "enabled");
        assert_eq!(status["pools"][0]["members"][0]["administrative_source"], "file");
        assert_eq!(status["pools"][0]["members"][0]["draining_requests"], serde_json::Value::Null);
        assert_eq!(status["configuration"]["generation"], 1);
        assert_eq!(status["pools"][0]["response_duration"]["count"], 0);
        assert!(status["pools"][0]["members"][0]["response_duration"].is_null());
    }

    #[test]
    fn what_the_firewall_did() {
        let observed = observed_with_waf("SecAction \"id:1,phase:1,pass\"");
        observed.table().virtual_servers[0].counters.of(0).waf_detected.add(2);
        let status = serde_json::to_value(Status::of(&observed)).unwrap();
        let expected = serde_json::json!({
            "mode": "block", "inspected": 0, "blocked": 0, "detected": 2, "unjudged": 0,
        });
        assert_eq!(status["virtual_servers"][0]["waf"], expected);
        let without = Status::of(&observed_with(&[], 1));
        let without = serde_json::to_value(without).unwrap();
        assert!(without["virtual_servers"][0]["waf"].is_null());
    }

    #[test]
    fn a_drained_member_is_up_and_not_in_service() {
        let addresses = [9_001, 9_002]
            .map(|port| Address::Socket(std::net::SocketAddr::from(([127, 0, 0, 1], port))));
        let observed = observed_with(&addresses, 1);
        let member = Arc::clone(&observed.table().pools[0].members[1]);
        member.set_state_override(Some(AdminState::Drain));
        member.occupancy.store(3, Relaxed);
        let status = serde_json::to_value(Status::of(&observed)).unwrap();
        let pool = &status["pools"][0];
        assert_eq!((&pool["members_up"], &pool["members_in_service"]), (&2.into(), &1.into()));
        let shown = &pool["members"][1];
        assert_eq!(shown["state"], "up");
        assert_eq!(shown["administrative"], "drain");
        assert_eq!(shown["administrative_source"], "runtime");
        assert_eq!(shown["draining_requests"], 3);
        member.set_state_override(Some(AdminState::Enabled));
        let status = serde_json::to_value(Status::of(&observed)).unwrap();
        let shown = &status["pools"][0]["members"][1];
        assert_eq!(shown["administrative"], "enabled");
        assert_eq!(shown["administrative_source"], "runtime");
        assert_eq!(shown["draining_requests"], serde_json::Value::Null);
    }
}
