//! A trial of all members of a configuration without a running data path: probes of their monitors, or connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use weir_config::snapshot::{
    Address, Member, Monitor, MonitorKind, NOBODY, Pool, Snapshot, TcpProbe,
};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Schedule;
use weir_outgoing::tls::TlsClients;
use weir_probe::{Probe, Subject};

/// Maximum number of simultaneous probes.
const PROBES_MAX: usize = 64;

/// The type of a trial of a member without monitors.
pub const CONNECTION: &str = "connection";

/// The result of one probe of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The pool.
    pub pool: Arc<str>,
    /// The member's name in logs and metrics.
    pub member: Arc<str>,
    /// The member's host name in the file; `None`: an address.
    pub name: Option<Arc<str>>,
    /// The type of the monitor, or [`CONNECTION`].
    pub kind: &'static str,
    /// The outcome.
    pub verdict: TrialResult,
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialResult {
    /// The probe passed.
    Passed,
    /// The probe failed, for this reason.
    Failed(String),
    /// This host could not probe, for this reason.
    Local(String),
    /// The time limit for all trials passed before the probe ended.
    NotTried,
}

/// The trials for a snapshot.
#[derive(Debug)]
pub struct Trials(Vec<PlannedProbe>);

#[derive(Debug)]
struct PlannedProbe {
    trial: Trial,
    probe: Probe,
}

impl Trials {
    /// The trials of all enabled members: a probe for each monitor, or a connection to a member without monitors.
    pub fn of(snapshot: &Snapshot) -> Self {
        let datagrams = datagram_pools(snapshot);
        let pools = snapshot.pools.iter().enumerate();
        let pools = pools.filter(|(_, pool)| *pool.name != *NOBODY);
        let planned = pools.flat_map(|(index, pool)| {
            let takes_connections = !datagrams.contains(&index);
            let members = pool.members.iter();
            let members = members.filter(|member| member.state != AdminState::Disabled);
            members.flat_map(move |member| planned(pool, member, takes_connections))
        });
        Self(planned.collect())
    }

    /// The number of trials.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no trials.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs all trials, several at a time, within `limit`. `done` counts the results.
    pub async fn run(self, limit: Duration, done: &AtomicUsize) -> Vec<Trial> {
        let deadline = Instant::now() + limit;
        let clients = Arc::new(TlsClients::new());
        let turns = Arc::new(Semaphore::new(PROBES_MAX));
        let mut results: Vec<Trial> = self.0.iter().map(|planned| planned.trial.clone()).collect();
        let mut running = JoinSet::new();
        for (index, PlannedProbe { probe, .. }) in self.0.into_iter().enumerate() {
            let (clients, turns) = (Arc::clone(&clients), Arc::clone(&turns));
            running.spawn(async move {
                // This cannot fail, because the semaphore is never closed.
                let _turn = turns.acquire_owned().await;
                (index, verdict(&probe, &clients).await)
            });
        }
        // A trial whose task panicked keeps the outcome "not tried".
        while let Ok(Some(result)) = tokio::time::timeout_at(deadline, running.join_next()).await {
            if let Ok((index, verdict)) = result {
                results[index].verdict = verdict;
            }
            done.fetch_add(1, Relaxed);
        }
        results
    }
}

/// The pools of virtual servers that relay datagrams. Their members may not accept connections.
fn datagram_pools(snapshot: &Snapshot) -> Vec<usize> {
    let servers = snapshot.virtual_servers.iter();
    let sockets = servers.filter(|server| server.service.sessions().is_some());
    let packets = snapshot.packets.iter().flat_map(|packets| &packets.servers);
    sockets.flat_map(|server| server.pools()).chain(packets.filter_map(|it| it.pool)).collect()
}

fn planned(pool: &Pool, member: &Member, takes_connections: bool) -> Vec<PlannedProbe> {
    let monitors = member.monitors(&pool.monitors);
    let one = |monitor: &Monitor, kind: Option<&'static str>| {
        let subject = Subject { pool: Arc::clone(&pool.name), member: Arc::clone(&member.label) };
        let (address, name) = (&member.address, member.name.as_ref());
        let proxy = pool.proxy_protocol;
        let probe = Probe::new(address, name, &pool.source, subject, proxy, monitor);
        let trial = Trial {
            pool: Arc::clone(&pool.name),
            member: Arc::clone(&member.label),
            name: member.name.clone(),
            kind: kind.unwrap_or_else(|| probe.kind_name()),
            verdict: TrialResult::NotTried,
        };
        PlannedProbe { trial, probe }
    };
    if !monitors.is_empty() {
        return monitors.iter().map(|monitor| one(monitor, None)).collect();
    }
    let has_port = match &member.address {
        Address::Socket(address) => address.port() != 0,
        Address::Unix(_) => true,
        Address::Udp(_) => false,
    };
    match takes_connections && has_port {
        true => vec![one(&connection(pool), Some(CONNECTION))],
        false => Vec::new(),
    }
}

/// A monitor that only connects, for members without monitors.
fn connection(pool: &Pool) -> Monitor {
    let schedule = Schedule {
        interval_ms: pool.connect_timeout_ms,
        timeout_ms: pool.connect_timeout_ms,
        rise: 1,
        fall: 1,
        jitter_percent: 0,
        up_delay_ms: 0,
    };
    let kind = MonitorKind::Tcp(TcpProbe::default());
    Monitor { kind, schedule, port: None, is_reverse: false }
}

async fn verdict(probe: &Probe, clients: &TlsClients) -> TrialResult {
    match (probe.run(clients).await, probe.monitor.is_reverse) {
        (Ok(_), false) => TrialResult::Passed,
        (Ok(_), true) => TrialResult::Failed("the probe of a reverse monitor passed".into()),
        (Err(failure), _) if !failure.is_conclusive() => TrialResult::Local(failure.to_string()),
        (Err(_), true) => TrialResult::Passed,
        (Err(failure), false) => TrialResult::Failed(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;
    use crate::testing::{pool, snapshot};

    const LIMIT: Duration = Duration::from_secs(10);

    fn address(address: SocketAddr) -> Address {
        Address::Socket(address)
    }

    #[tokio::test]
    async fn members_without_monitors_are_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        // The socket is bound but does not listen, so connections are refused.
        let gone = tokio::net::TcpSocket::new_v4().unwrap();
        gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let members = [address(there), address(gone.local_addr().unwrap())];
        let trials = Trials::of(&snapshot(vec![pool("web", &members, &[])]));
        assert_eq!(trials.len(), 2);
        let done = AtomicUsize::new(0);
        let results = trials.run(LIMIT, &done).await;
        assert_eq!(done.load(Relaxed), 2);
        assert_eq!((&*results[0].member, results[0].kind), (&*there.to_string(), CONNECTION));
        assert_eq!(results[0].verdict, TrialResult::Passed);
        assert_eq!(results[1].verdict, TrialResult::Failed("connection refused".into()));
    }

    #[tokio::test]
    async fn trials_end_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let members = [address(listener.local_addr().unwrap())];
        let mut pool = pool("web", &members, &[]);
        // The listener accepts connections, but never sends the data that the monitor expects.
        let text = "virtual_servers: { s: { listen: 127.0.0.1:1, pool: p } }\npools: { p: { members: [ 127.0.0.1:2 ], \
                    monitors: [ { type: redis, timeout: 60s, interval: 60s } ] } }\n";
        let config = weir_config::parse("test.yaml", text).config.expect("a good configuration");
        pool.monitors.clone_from(&config.snapshot(&Default::default()).pools[0].monitors);
        let trials = Trials::of(&snapshot(vec![pool]));
        let results = trials.run(Duration::from_millis(50), &AtomicUsize::new(0)).await;
        assert_eq!((results[0].kind, &results[0].verdict), ("redis", &TrialResult::NotTried));
    }
}
