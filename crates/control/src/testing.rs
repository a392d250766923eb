//! Common helpers for tests, with configurations in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weir_config::snapshot::{
    Address, Member, Monitor, Pool, Record, Snapshot, UnjudgedAction, Waf,
};
use weir_core::policy::WafMode;
use weir_dataplane::outside;
use weir_exchange::shared::counters::PerWorker;
use weir_exchange::shared::live::LiveTable;
use weir_waf::body::Limits;
use weir_waf::inspection::CommonTexts;
use weir_waf::plan::{Files, RuleSet, Settings, View};

use crate::logs::LogsView;
use crate::monitors::Board;
use crate::observed_state::ObservedState;
use crate::overlay::changes::Changes;

/// Maximum duration of a step; then the test fails. It is long, because a busy machine must not make it fail.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the condition holds.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A snapshot with one virtual server `shop`, which uses the first of these pools.
pub fn snapshot(pools: Vec<Pool>) -> Arc<Snapshot> {
    let mut snapshot = minimal();
    let empty = pools.iter().filter(|pool| pool.members.is_empty());
    snapshot.resolved.pools_to_be_filled = empty.map(|pool| Arc::clone(&pool.name)).collect();
    snapshot.pools = pools.into_iter().map(Arc::new).collect();
    Arc::new(snapshot)
}

/// A pool with these members.
pub fn pool(name: &str, members: &[Address], monitors: &[Monitor]) -> Pool {
    let pool = Pool::clone(&minimal().pools[0]);
    let model = pool.members[0].clone();
    let member = |address: &Address| Member {
        address: address.clone(),
        label: address.to_string().into(),
        ..model.clone()
    };
    Pool {
        name: name.into(),
        members: members.iter().map(member).collect(),
        monitors: monitors.to_vec(),
        monitors_min: monitors.len() as u8,
        ..pool
    }
}

fn minimal() -> Snapshot {
    let text = "data_plane: { workers: 1, drain_timeout: 1s }\nlog: { access: { format: \"off\" } }\n\
                virtual_servers: { shop: { listen: \"127.0.0.1:0\", pool: p } }\n\
                pools: { p: { members: [ 127.0.0.1:1 ], response_timeout: 1s, connect_timeout: 1s } }\n";
    let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
    config.snapshot(&weir_config::Resolutions::default())
}

/// The state of a process with a pool `web` of these members, without monitors.
pub fn observed_with(members: &[Address], workers: usize) -> ObservedState {
    observed_of(snapshot(vec![pool("web", members, &[])]), workers)
}

/// As [`observed_with`], with a web application firewall in mode block with these rules.
pub fn observed_with_waf(rules: &'static str) -> ObservedState {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut Rules(rules)).expect("good rules");
    let view = View::new(Arc::new(rules), &Settings::default()).expect("a good view");
    let mut snapshot = minimal();
    snapshot.virtual_servers[0].waf = Some(Arc::new(Waf {
        mode: WafMode::Block,
        checks: None,
        profile: None,
        exclusions: Vec::new(),
        common: Arc::new(CommonTexts::new(Arc::new(view))),
        limits: Limits::DEFAULT,
        body_bytes_max: 1 << 20,
        files_bytes_max: 1 << 20,
        body_timeout_ms: 1_000,
        cookies: None,
        responses: None,
        work_bytes_max: 1 << 20,
        time_max_ms: 1_000,
        unjudged: UnjudgedAction::Block,
        record: Record::Off,
    }));
    observed_of(Arc::new(snapshot), 1)
}

/// A rule file in memory.
struct Rules(&'static str);

impl Files for Rules {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.as_bytes().to_vec())
    }
}

/// The state of a process with the configuration of this text.
pub fn observed_by(text: &str, workers: usize) -> ObservedState {
    let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
    observed_of(Arc::new(config.snapshot(&weir_config::Resolutions::default())), workers)
}

/// The state of a process with this configuration.
pub fn observed_of(snapshot: Arc<Snapshot>, workers: usize) -> ObservedState {
    observed_with_logs(snapshot, workers, LogsView::default())
}

/// The state of a process with this configuration and these logs.
pub fn observed_with_logs(
    snapshot: Arc<Snapshot>,
    workers: usize,
    logs: LogsView,
) -> ObservedState {
    let table = LiveTable::build(snapshot, None, workers, &outside());
    let counters = Arc::new(PerWorker::new(workers));
    let board = Board::default();
    let packets = crate::packets::Board::default();
    let changes = Changes::open(std::path::Path::new("/nonexistent")).expect("no versions");
    let files = Arc::new(weir_sources::Files::of_text("test.yaml", ""));
    let of_files = (files, Arc::new(changes), Arc::default());
    let observed = ObservedState::new(
        Arc::new(table),
        counters,
        logs,
        board,
        Default::default(),
        packets,
        of_files,
    );
    observed.starting.store(false, Relaxed);
    observed
}
