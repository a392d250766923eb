//! What several tests need: configurations in memory.

use std::sync::Arc;

use weir_config::snapshot::{
    AccessFormat, Address, DataPlaneSettings, HttpSettings, LogSettings, LogTarget, Member,
    Monitor, Pool, ReuseSettings, Snapshot, VirtualServer,
};
use weir_core::balance::Method;
use weir_dataplane::counters::PerWorker;
use weir_dataplane::live::LiveTable;

use crate::monitors::Board;
use crate::observed::Observed;

/// A snapshot with one virtual server `shop` in front of the first of these pools.
pub fn snapshot(pools: Vec<Pool>) -> Arc<Snapshot> {
    let http = HttpSettings {
        head_size_max: 16_384,
        headers_max: 100,
        body_size_max: None,
        header_timeout_ms: 10_000,
        body_timeout_ms: 30_000,
        idle_timeout_ms: 60_000,
        tunnel_timeout_ms: 60_000,
    };
    let shop = VirtualServer {
        name: "shop".into(),
        listen: vec![Address::Socket("127.0.0.1:0".parse().unwrap())],
        pool: 0,
        http,
        connections_max: None,
    };
    Arc::new(Snapshot {
        admin_listen: None,
        data_plane: DataPlaneSettings { workers: Some(1), drain_timeout_ms: 1_000 },
        log: LogSettings { access_format: AccessFormat::Off, access_to: LogTarget::Stdout },
        virtual_servers: vec![shop],
        pools: pools.into_iter().map(Arc::new).collect(),
    })
}

/// A pool of these members.
pub fn pool(name: &str, members: &[Address], monitors: &[Monitor]) -> Pool {
    Pool {
        name: name.into(),
        balance: Method::RoundRobin,
        members: members.iter().map(member).collect(),
        monitors: monitors.to_vec(),
        passive: None,
        reuse: ReuseSettings { idle_per_worker: 1, idle_timeout_ms: 1_000, requests_max: 1 },
        retries: 1,
        connect_timeout_ms: 1_000,
        response_timeout_ms: 1_000,
        source: None,
    }
}

fn member(address: &Address) -> Member {
    Member {
        address: address.clone(),
        label: address.to_string().into(),
        name: None,
        weight: 1,
        connections_max: None,
    }
}

/// A view of a process with one pool `web` of these members, without monitors.
pub fn observed_with(members: &[Address], workers: usize) -> Observed {
    let table = LiveTable::build(snapshot(vec![pool("web", members, &[])]), None, workers);
    let counters = Arc::new(PerWorker::new(workers));
    Observed::new(Arc::new(table), counters, Arc::default(), Board::default())
}
