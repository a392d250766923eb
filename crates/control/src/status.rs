//! `/v1/status`: the current state of the process, as JSON for people and scripts.
//!
//! The numbers equal those of `/metrics`. They are arranged by object, with the reasons why members are down, and with
//! latency quantiles instead of buckets. Each part is also a separate resource. The types are those of [`weir_api`]; this
//! module fills them.

use std::sync::atomic::Ordering::Relaxed;

use weir_api::health::Health;
use weir_api::member::{FILE, Member, MemberCounts, Monitor, RUNTIME};
use weir_api::pool::Pool;
use weir_api::responses::{Classes, Latency};
use weir_api::status::Status;
use weir_api::virtual_server::{ClientCounts, Datagrams, Disabled, VirtualServer, WafCounts};
use weir_config::snapshot::{self, Balance, NOBODY, Waf, ranges};
use weir_core::admin_state::AdminState;
use weir_core::balance::Method;
use weir_exchange::parts::failure::Blame;
use weir_exchange::shared::counters::{HistogramTotals, VirtualServerTotals};
use weir_exchange::shared::live::{LiveMember, LiveTable};

use crate::figures::{quantile, round, shown_gauge};
use crate::health::{Judge, pools_in_order};
use crate::member_state::{MemberState, administrative_state};
use crate::monitors::{Board, MonitorReport};
use crate::observed_state::ObservedState;
use crate::rates::{CounterSource, Counts};
use crate::time::{monotonic_ms, rfc3339};

mod brief;
pub(crate) mod certificates;
pub(crate) mod files;
mod packets;
mod process;
mod relay_ends;

pub(crate) use brief::brief;
pub(crate) use certificates::{report_of, status as certificate};
pub(crate) use packets::packet_path;
pub(crate) use process::process;

/// The current status.
pub(crate) fn whole(observed: &ObservedState) -> Status {
    let judge = observed.judge();
    let table = judge.table();
    Status {
        process: process::judged(observed, &judge),
        files: files::of(&table.snapshot),
        virtual_servers: virtual_servers(&judge, observed),
        disabled_virtual_servers: disabled(table),
        packet_path: packet_path(&judge, observed),
        pools: pools(&judge, &observed.monitors),
    }
}

fn disabled(table: &LiveTable) -> Vec<Disabled> {
    let all = table.snapshot.disabled.iter();
    all.map(|server| Disabled {
        name: server.name.to_string(),
        r#type: server.kind.to_owned(),
        listen: server.listen.clone(),
    })
    .collect()
}

fn virtual_servers(judge: &Judge, observed: &ObservedState) -> Vec<VirtualServer> {
    let all = 0..judge.table().virtual_servers.len();
    all.map(|index| virtual_server(judge, index, observed)).collect()
}

/// The status of a virtual server. `index`: its position in the configuration.
pub(crate) fn virtual_server(
    judge: &Judge,
    index: usize,
    observed: &ObservedState,
) -> VirtualServer {
    let snapshot = &judge.table().snapshot;
    let live = &judge.table().virtual_servers[index];
    let configured = &snapshot.virtual_servers[index];
    let totals = live.counters.totals();
    let pools = pools_in_order(snapshot, index);
    let hands_over_to = configured.hands_over_to().into_iter();
    VirtualServer {
        name: configured.name.to_string(),
        r#type: configured.service.name().to_owned(),
        health: Health::from(&judge.server(index)),
        listen: ranges(&configured.listen),
        pool: snapshot.pools[configured.pool].name.to_string(),
        pools: pools
            .iter()
            .map(|pool| snapshot.pools[*pool].name.to_string())
            .filter(|name| name != NOBODY)
            .collect(),
        counts: client_counts(&totals, configured.limits.connections_max),
        relayed: configured.service.is_relay().then(|| relay_ends::of(&totals)),
        responses: Classes {
            informational: totals.responses_1xx,
            successful: totals.responses_2xx,
            redirection: totals.responses_3xx,
            client_error: totals.responses_4xx,
            server_error: totals.responses_5xx,
        },
        hands_over_to: hands_over_to
            .map(|other| snapshot.virtual_servers[other].name.to_string())
            .collect(),
        bytes_received: totals.bytes_received,
        bytes_sent: totals.bytes_sent,
        rates: observed.rates.of(CounterSource::Sockets, &live.name, &Counts::of_sockets(&totals)),
        datagrams: configured.service.sessions().map(|_| datagrams(&totals)),
        waf: configured.waf.as_ref().map(|waf| waf_counts(waf, &totals)),
        certificates: certificates::of(configured, &observed.obtained.acme),
        request_duration: latency(&totals.request_duration),
    }
}

fn client_counts(totals: &VirtualServerTotals, connections_max: Option<u32>) -> ClientCounts {
    ClientCounts {
        connections: totals.connections_accepted,
        connections_open: shown_gauge(totals.connections_open),
        connections_max,
        connections_refused: totals.connections_refused,
        requests: totals.requests,
        requests_active: shown_gauge(totals.requests_active),
        requests_malformed: totals.requests_malformed,
        requests_path_refused: totals.requests_path_refused,
        head_timeouts: totals.header_timeouts,
        body_timeouts: totals.body_timeouts,
        client_aborts: totals.client_aborts,
        tunnels: totals.tunnels,
    }
}

fn datagrams(totals: &VirtualServerTotals) -> Datagrams {
    Datagrams {
        received: totals.datagrams_received,
        sent: totals.datagrams_sent,
        refused: totals.datagrams_refused,
        answers_dropped: totals.answers_dropped,
    }
}

fn waf_counts(waf: &Waf, totals: &VirtualServerTotals) -> WafCounts {
    WafCounts {
        mode: waf.mode.name().to_owned(),
        inspected: totals.waf_inspected,
        blocked: totals.waf_blocked,
        detected: totals.waf_detected,
        unjudged: totals.waf_unjudged,
    }
}

/// The status of all pools, in the order of the file.
pub(crate) fn pools(judge: &Judge, board: &Board) -> Vec<Pool> {
    let pools = judge.table().snapshot.pools.iter().enumerate();
    let named = pools.filter(|(_, configured)| *configured.name != *NOBODY);
    named.map(|(index, _)| pool(judge, index, board)).collect()
}

/// The status of a pool. `index`: its position in the configuration.
pub(crate) fn pool(judge: &Judge, index: usize, board: &Board) -> Pool {
    let table = judge.table();
    let (configured, live) = (&table.snapshot.pools[index], &table.pools[index]);
    let totals = live.pool.counters.totals();
    let members = configured.members.iter().zip(&live.members);
    let counts = judge.members(index);
    Pool {
        name: configured.name.to_string(),
        health: Health::from(judge.pool(index)),
        balance: balance_name(&configured.balance).to_owned(),
        members_up: counts.up,
        members_in_service: counts.in_service,
        retries: totals.retries,
        no_member: totals.no_member,
        queue_requests: shown_gauge(totals.queue_length),
        queued: totals.queued,
        response_duration: latency(&totals.response_duration),
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
pub(crate) fn member(configured: &snapshot::Member, live: &LiveMember, board: &Board) -> Member {
    let totals = live.counters.totals();
    let now_ms = monotonic_ms();
    let administrative = administrative_state(configured, live);
    let occupancy = live.occupancy.load(Relaxed);
    let ejected_until_ms = live.ejected_until_ms(now_ms);
    let ejected_why = Blame::from_bits(live.ejected_for()).filter(|_| ejected_until_ms.is_some());
    Member {
        address: live.label.to_string(),
        name: configured.name.as_deref().map(str::to_owned),
        state: MemberState::of(live).as_str().to_owned(),
        administrative: administrative.as_str().to_owned(),
        administrative_source: source_of_state(live).to_owned(),
        draining_requests: (administrative != AdminState::Enabled).then_some(occupancy),
        ejected_for_ms: ejected_until_ms.map(|until_ms| until_ms.saturating_sub(now_ms)),
        ejected_why: ejected_why.map(|why| why.to_string()),
        monitors: board.of(&live.pool.name, &live.label).into_iter().map(monitor).collect(),
        weight: configured.weight,
        occupancy,
        connections_max: configured.connections_max,
        counts: MemberCounts {
            requests: totals.requests,
            requests_active: shown_gauge(totals.requests_active),
            connections: totals.connections_opened,
            connections_open: shown_gauge(totals.connections_open),
            connections_idle: shown_gauge(totals.connections_idle),
            connect_failures: totals.connect_failures,
            response_failures: totals.response_failures,
            ejections: totals.ejections,
        },
        responses: Classes {
            informational: totals.responses_1xx,
            successful: totals.responses_2xx,
            redirection: totals.responses_3xx,
            client_error: totals.responses_4xx,
            server_error: totals.responses_5xx,
        },
        bytes_received: totals.bytes_received,
        bytes_sent: totals.bytes_sent,
        response_duration: live.response_histogram().as_ref().map(latency),
    }
}

/// The source of the administrative state of a member.
pub(crate) fn source_of_state(live: &LiveMember) -> &'static str {
    match live.state_override() {
        None => FILE,
        Some(_) => RUNTIME,
    }
}

/// The status of a monitor.
pub(crate) fn monitor(report: MonitorReport) -> Monitor {
    Monitor {
        r#type: report.kind.to_owned(),
        state: report.health.as_str().to_owned(),
        passes: report.passes,
        failures: report.failures,
        last_probe: report.probed_unix_ms.map(rfc3339),
        last_failure: report.last_failure,
        held_up_for_ms: report
            .held_up_until_ms
            .map(|until_ms| until_ms.saturating_sub(monotonic_ms())),
    }
}

/// The mean and the quantiles of a histogram.
pub(crate) fn latency(totals: &HistogramTotals) -> Latency {
    let count = totals.count();
    let mean_ms = (count > 0).then(|| round(totals.sum_us as f64 / count as f64));
    Latency {
        count,
        mean_ms,
        p50_ms: quantile(totals, count, 50),
        p90_ms: quantile(totals, count, 90),
        p99_ms: quantile(totals, count, 99),
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
        let status = serde_json::to_value(whole(&observed)).unwrap();
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
        let status = serde_json::to_value(whole(&observed)).unwrap();
        let expected = serde_json::json!({
            "mode": "block", "inspected": 0, "blocked": 0, "detected": 2, "unjudged": 0,
        });
        assert_eq!(status["virtual_servers"][0]["waf"], expected);
        let without = whole(&observed_with(&[], 1));
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
        let status = serde_json::to_value(whole(&observed)).unwrap();
        let pool = &status["pools"][0];
        assert_eq!((&pool["members_up"], &pool["members_in_service"]), (&2.into(), &1.into()));
        let shown = &pool["members"][1];
        assert_eq!(shown["state"], "up");
        assert_eq!(shown["administrative"], "drain");
        assert_eq!(shown["administrative_source"], "runtime");
        assert_eq!(shown["draining_requests"], 3);
        member.set_state_override(Some(AdminState::Enabled));
        let status = serde_json::to_value(whole(&observed)).unwrap();
        let shown = &status["pools"][0]["members"][1];
        assert_eq!(shown["administrative"], "enabled");
        assert_eq!(shown["administrative_source"], "runtime");
        assert_eq!(shown["draining_requests"], serde_json::Value::Null);
    }
}
