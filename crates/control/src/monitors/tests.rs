//! Monitors of members whose answers a test controls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use weir_config::snapshot::{DrainAnswer, HttpProbe, Monitor, MonitorKind, ProbeMethod, TcpProbe};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Schedule;
use weir_dataplane::outside;

use super::*;
use crate::events::testing::Captured;
use crate::testing::{pool, snapshot};

/// A member that answers 200 or 503, and counts its probes.
#[derive(Clone)]
struct Member {
    address: Address,
    healthy: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Member {
    async fn start(healthy: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let member = Self {
            address: Address::Socket(listener.local_addr().unwrap()),
            healthy: Arc::new(AtomicBool::new(healthy)),
            asked: Arc::default(),
        };
        let state = member.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 1_024];
                if stream.read(&mut head).await.is_ok_and(|length| length > 0) {
                    state.asked.fetch_add(1, Relaxed);
                    let status = if state.healthy.load(Relaxed) { "200 OK" } else { "503 No" };
                    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        });
        member
    }
}

fn http(interval_ms: u64) -> Monitor {
    let probe = HttpProbe {
        method: ProbeMethod::Get,
        path: "/".into(),
        host: None,
        fields: Vec::new(),
        credentials: None,
        body: Arc::default(),
        tls: None,
        expect_status: vec![(200, 200)],
        expect_body: None,
        drain_on: None,
    };
    let schedule = Schedule {
        interval_ms,
        timeout_ms: 1_000,
        rise: 2,
        fall: 3,
        jitter_percent: 10,
        up_delay_ms: 0,
    };
    Monitor { kind: MonitorKind::Http(probe), schedule, port: None, is_reverse: false }
}

fn tcp(interval_ms: u64) -> Monitor {
    Monitor { kind: MonitorKind::Tcp(TcpProbe::default()), ..http(interval_ms) }
}

async fn eventually(condition: impl Fn() -> bool) {
    crate::testing::eventually("the condition holds", condition).await;
}

fn table(members: &[&Member], monitors: &[Monitor], previous: Option<&LiveTable>) -> LiveTable {
    let addresses: Vec<Address> = members.iter().map(|member| member.address.clone()).collect();
    LiveTable::build(snapshot(vec![pool("web", &addresses, monitors)]), previous, 1, &outside())
}

/// The end of a wait that exceeds every test.
fn late(_: &Pool) -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

/// Applies a table in the same way as the startup does.
fn apply(monitors: &mut Monitors, table: &LiveTable) {
    monitors.apply(table);
    monitors.prepare(&table.snapshot, late);
}

fn is_awaiting(monitors: &Monitors) -> bool {
    !monitors.awaited().is_empty()
}

#[tokio::test]
async fn a_member_comes_and_goes() {
    let (events, captured) = Captured::new();
    let member = Member::start(true).await;
    let table = table(&[&member], &[http(10)], None);
    let live = Arc::clone(&table.pools[0].members[0]);
    assert_eq!(live.health(), Health::Pending);
    let mut monitors = Monitors::new(events.clone());
    apply(&mut monitors, &table);
    eventually(|| live.health() == Health::Up).await;
    member.healthy.store(false, Relaxed);
    eventually(|| live.health() == Health::Down).await;
    let report = monitors.board().of(&live.pool.name, &live.label).remove(0);
    assert_eq!((report.kind, report.health), ("http", Health::Down));
    assert_eq!(report.last_failure.as_deref(), Some("status 503"));
    assert!(report.passes >= 1 && report.failures >= 3 && report.probed_unix_ms.is_some());
    member.healthy.store(true, Relaxed);
    eventually(|| live.health() == Health::Up).await;
    let name = format!("member web/{}", member.address);
    assert_eq!(
        captured.lines(&events),
        [
            format!("info {name} is up: passed"),
            format!("warning {name} is down: status 503 (3 of 3)"),
            format!("info {name} is up: passed (2 of 2)"),
        ]
    );
}

fn delayed(up_delay_ms: u64) -> Monitor {
    let monitor = http(10);
    Monitor { schedule: Schedule { up_delay_ms, ..monitor.schedule }, ..monitor }
}

/// A new member is up after the first passed probe. A member that was down needs `up_delay`.
#[tokio::test]
async fn a_member_that_was_down_comes_up_after_a_delay() {
    let (events, captured) = Captured::new();
    let member = Member::start(true).await;
    for (delay_ms, comes_up) in [(3_600_000, false), (50, true)] {
        let table = table(&[&member], &[delayed(delay_ms)], None);
        let live = Arc::clone(&table.pools[0].members[0]);
        let mut monitors = Monitors::new(events.clone());
        apply(&mut monitors, &table);
        let report = || monitors.board().of(&live.pool.name, &live.label).remove(0);
        member.healthy.store(true, Relaxed);
        eventually(|| live.health() == Health::Up).await;
        member.healthy.store(false, Relaxed);
        eventually(|| live.health() == Health::Down).await;
        let passes = report().passes;
        member.healthy.store(true, Relaxed);
        // Wait for more passes than `rise`.
        eventually(|| report().passes >= passes + 5).await;
        if comes_up {
            eventually(|| live.health() == Health::Up).await;
        }
        assert_eq!(report().held_up_until_ms.is_none(), comes_up);
        assert_eq!((live.health() == Health::Up, report().last_failure), (comes_up, None));
    }
    let told = captured.lines(&events);
    let delays = told.iter().filter(|line| line.ends_with("is up: passed for 50ms"));
    assert_eq!((told.len(), delays.count()), (5, 1), "{told:?}");
}

/// A member's own monitors replace those of the pool, which all fail here.
#[tokio::test]
async fn a_member_may_have_monitors_of_its_own() {
    let (events, _captured) = Captured::new();
    let members =
        [Member::start(false).await, Member::start(false).await, Member::start(false).await];
    let addresses: Vec<Address> = members.iter().map(|member| member.address.clone()).collect();
    let mut pool = pool("web", &addresses, &[http(10)]);
    pool.members[1].monitors = Some([tcp(10), tcp(20)].into());
    pool.members[2].monitors = Some([].into());
    let table = LiveTable::build(snapshot(vec![pool]), None, 1, &outside());
    let live = |index: usize| Arc::clone(&table.pools[0].members[index]);
    assert_eq!((live(1).health(), live(2).health()), (Health::Pending, Health::Up));
    let mut monitors = Monitors::new(events);
    apply(&mut monitors, &table);
    assert_eq!(monitors.running(), 3);
    eventually(|| live(0).health() == Health::Down && live(1).health() == Health::Up).await;
    let kinds = |index: usize| -> Vec<&str> {
        let reports = monitors.board().of(&live(index).pool.name, &live(index).label);
        reports.iter().map(|report| report.kind).collect()
    };
    assert_eq!([kinds(0), kinds(1), kinds(2)], [vec!["http"], vec!["tcp", "tcp"], vec![]]);
    assert_eq!(live(2).health(), Health::Up);
}

#[tokio::test]
async fn a_reverse_monitor_is_up_while_the_probe_fails() {
    let (events, captured) = Captured::new();
    let member = Member::start(false).await;
    let reverse = Monitor { is_reverse: true, ..http(10) };
    let table = table(&[&member], &[reverse], None);
    let live = Arc::clone(&table.pools[0].members[0]);
    let mut monitors = Monitors::new(events.clone());
    apply(&mut monitors, &table);
    eventually(|| live.health() == Health::Up).await;
    member.healthy.store(true, Relaxed);
    eventually(|| live.health() == Health::Down).await;
    let report = monitors.board().of(&live.pool.name, &live.label).remove(0);
    let reason = "the probe passed, and the monitor is a reverse one";
    assert_eq!(report.last_failure.as_deref(), Some(reason));
    let name = format!("member web/{}", member.address);
    assert_eq!(
        captured.lines(&events),
        [
            format!("info {name} is up: passed"),
            format!("warning {name} is down: {reason} (3 of 3)"),
        ]
    );
}

#[tokio::test]
async fn an_answer_drains_a_member_and_takes_it_back() {
    let (events, captured) = Captured::new();
    let member = Member::start(true).await;
    let mut asking = http(10);
    if let MonitorKind::Http(probe) = &mut asking.kind {
        probe.drain_on = Some(DrainAnswer { status: Some(vec![(503, 503)]), body: None });
    }
    let table = table(&[&member], &[asking], None);
    let live = Arc::clone(&table.pools[0].members[0]);
    let mut monitors = Monitors::new(events.clone());
    apply(&mut monitors, &table);
    eventually(|| live.health() == Health::Up).await;
    member.healthy.store(false, Relaxed);
    eventually(|| live.health() == Health::Draining).await;
    member.healthy.store(true, Relaxed);
    eventually(|| live.health() == Health::Up).await;
    let name = format!("member web/{}", member.address);
    assert_eq!(
        captured.lines(&events),
        [
            format!("info {name} is up: passed"),
            format!("warning {name} is draining: its answer asks for it"),
            format!("info {name} is up: passed"),
        ]
    );
}

#[tokio::test]
async fn all_monitors_must_pass() {
    let (events, captured) = Captured::new();
    let member = Member::start(false).await;
    let table = table(&[&member], &[tcp(10), http(10)], None);
    let live = Arc::clone(&table.pools[0].members[0]);
    let mut monitors = Monitors::new(events.clone());
    apply(&mut monitors, &table);
    assert_eq!(monitors.running(), 2);
    eventually(|| live.health() == Health::Down).await;
    member.healthy.store(true, Relaxed);
    eventually(|| live.health() == Health::Up).await;
    let name = format!("member web/{}", member.address);
    assert_eq!(
        captured.lines(&events),
        [
            format!("info {name} stays pending: tcp monitor is up: passed"),
            format!("warning {name} is down: http monitor is down: status 503 (3 of 3)"),
            format!("info {name} is up: http monitor is up: passed (2 of 2)"),
        ]
    );
}

#[tokio::test]
async fn a_reload_keeps_what_is_unchanged() {
    let (events, captured) = Captured::new();
    let (kept, removed, added) =
        (Member::start(true).await, Member::start(true).await, Member::start(true).await);
    let mut monitors = Monitors::new(events.clone());
    let first = table(&[&kept, &removed], &[http(20)], None);
    apply(&mut monitors, &first);
    let live = Arc::clone(&first.pools[0].members[0]);
    let gone = Arc::clone(&first.pools[0].members[1]);
    eventually(|| live.health() == Health::Up && gone.health() == Health::Up).await;

    let second = table(&[&kept, &added], &[http(20)], Some(&first));
    let passes = monitors.board().of(&live.pool.name, &live.label)[0].passes;
    apply(&mut monitors, &second);
    assert_eq!((monitors.running(), live.health()), (2, Health::Up));
    assert!(monitors.board().of(&live.pool.name, &live.label)[0].passes >= passes, "the same task");
    assert!(monitors.board().of(&gone.pool.name, &gone.label).is_empty());
    let new = Arc::clone(&second.pools[0].members[1]);
    eventually(|| new.health() == Health::Up).await;
    let asked = removed.asked.load(Relaxed);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(removed.asked.load(Relaxed), asked, "a removed member is not probed");

    // A new monitor of a healthy member does not take the member out of service, not even briefly.
    let epoch = live.pool.epoch.load(Relaxed);
    let third = table(&[&kept, &added], &[http(30), tcp(30)], Some(&second));
    apply(&mut monitors, &third);
    assert_eq!((monitors.running(), live.health(), new.health()), (4, Health::Up, Health::Up));
    assert_eq!(live.pool.epoch.load(Relaxed), epoch);
    // The results of the new monitors affect the member.
    kept.healthy.store(false, Relaxed);
    eventually(|| live.health() == Health::Down).await;

    // A member without monitors is up.
    let fourth = table(&[&kept, &added], &[], Some(&third));
    apply(&mut monitors, &fourth);
    assert_eq!((monitors.running(), live.health()), (0, Health::Up));
    assert_eq!(captured.lines(&events).iter().filter(|line| line.contains("down")).count(), 1);
}

/// The counters with a monitor's labels only grow, whatever a reload changes.
#[tokio::test]
async fn counts_stay_with_their_labels() {
    let (events, _) = Captured::new();
    let member = Member::start(true).await;
    let mut monitors = Monitors::new(events);
    let mut table = table(&[&member], &[http(10), http(3_600_000)], None);
    apply(&mut monitors, &table);
    let live = Arc::clone(&table.pools[0].members[0]);
    let board = monitors.board();
    let counts = |place: usize| {
        let reports = board.of(&live.pool.name, &live.label);
        reports.get(place).map(|report| (report.kind, report.passes, report.failures))
    };
    eventually(|| counts(0).is_some_and(|(_, passes, _)| passes >= 3)).await;
    member.healthy.store(false, Relaxed);
    eventually(|| counts(0).is_some_and(|(_, _, failures)| failures >= 3)).await;

    let seldom = || http(3_600_000);
    for (what, wanted) in [
        ("another interval", vec![http(20), seldom()]),
        ("the other order", vec![seldom(), http(20)]),
        ("one more in front", vec![http(1_800_000), seldom(), http(20)]),
        ("fewer", vec![seldom()]),
    ] {
        let before = counts(0).unwrap();
        table = self::table(&[&member], &wanted, Some(&table));
        apply(&mut monitors, &table);
        let after = counts(0).unwrap();
        assert!(after.1 >= before.1 && after.2 >= before.2, "{what}: {after:?} < {before:?}");
    }

    // A monitor of another type has other labels, so its counters start at 0.
    table = self::table(&[&member], &[tcp(3_600_000)], Some(&table));
    apply(&mut monitors, &table);
    assert!(matches!(counts(0), Some(("tcp", 0 | 1, 0))), "{:?}", counts(0));
}

/// A member that accepts connections and never answers.
async fn silent() -> Member {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Socket(listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    Member { address, healthy: Arc::default(), asked: Arc::default() }
}

/// A monitor like [`http`], with a timeout that exceeds the test.
fn patient(interval_ms: u64) -> Monitor {
    let monitor = http(interval_ms);
    Monitor { schedule: Schedule { timeout_ms: 3_600_000, ..monitor.schedule }, ..monitor }
}

#[tokio::test]
async fn what_is_put_in_force_next_is_probed_before() {
    let (events, captured) = Captured::new();
    let (old, new) = (Member::start(true).await, Member::start(true).await);
    let mut monitors = Monitors::new(events.clone());
    let first = table(&[&old], &[http(3_600_000)], None);
    apply(&mut monitors, &first);
    monitors.fewer_awaited_than(1).await;
    assert_eq!(first.pools[0].members[0].health(), Health::Up, "the result counts already");

    let second = table(&[&new], &[http(3_600_000)], Some(&first));
    monitors.prepare(&second.snapshot, late);
    assert!(is_awaiting(&monitors));
    let awaited = monitors.board().awaited(&second.snapshot);
    let label = Arc::clone(&second.pools[0].members[0].label);
    assert_eq!(awaited, [UnknownMembers { pool: "web".into(), of: 1, members: vec![label] }]);
    monitors.fewer_awaited_than(1).await;
    assert_eq!(monitors.board().awaited(&second.snapshot), []);
    assert_eq!((monitors.running(), new.asked.load(Relaxed)), (2, 1));
    assert_eq!(second.pools[0].members[0].health(), Health::Pending, "it is not in force");
    apply(&mut monitors, &second);
    assert_eq!(second.pools[0].members[0].health(), Health::Up);
    let live = &second.pools[0].members[0];
    assert_eq!(monitors.board().of(&live.pool.name, &live.label)[0].passes, 1);
    assert_eq!(monitors.running(), 1);
    assert_eq!(monitors.stop_waiting(&second, AfterFirstProbes::Serve, &HashSet::new()), []);
    let up = |member: &Member| format!("info member web/{} is up: passed", member.address);
    assert_eq!(captured.lines(&events), [up(&old), up(&new)]);
}

#[tokio::test]
async fn other_monitors_judge_a_member_when_they_are_in_force() {
    let (events, captured) = Captured::new();
    let member = Member::start(false).await;
    let mut monitors = Monitors::new(events.clone());
    let first = table(&[&member], &[http(10)], None);
    apply(&mut monitors, &first);
    let live = Arc::clone(&first.pools[0].members[0]);
    eventually(|| live.health() == Health::Down).await;
    let board = monitors.board();
    let kinds = || -> Vec<&str> {
        board.of(&live.pool.name, &live.label).iter().map(|report| report.kind).collect()
    };

    // The member accepts connections, although its answers are bad.
    let second = table(&[&member], &[tcp(10)], Some(&first));
    monitors.prepare(&second.snapshot, late);
    monitors.fewer_awaited_than(1).await;
    assert_eq!((live.health(), kinds()), (Health::Down, vec!["http"]));
    apply(&mut monitors, &second);
    assert_eq!((live.health(), kinds()), (Health::Up, vec!["tcp"]));
    let name = format!("member web/{}", member.address);
    assert_eq!(
        captured.lines(&events),
        [
            format!("warning {name} is down: status 503 (3 of 3)"),
            format!("info {name} is up: its monitors were changed"),
        ]
    );

    // A member in service is not awaited: it stays in service until its probes fail.
    let third = table(&[&member], &[http(10), tcp(10)], Some(&second));
    monitors.prepare(&third.snapshot, late);
    assert!(!is_awaiting(&monitors));
    apply(&mut monitors, &third);
    assert_eq!(live.health(), Health::Up);
    eventually(|| live.health() == Health::Down).await;
}

#[tokio::test]
async fn what_takes_the_place_of_what_waits_keeps_its_probes() {
    let (events, _) = Captured::new();
    let (old, new, other) =
        (Member::start(true).await, Member::start(true).await, Member::start(true).await);
    let mut monitors = Monitors::new(events);
    let first = table(&[&old], &[http(3_600_000)], None);
    apply(&mut monitors, &first);
    monitors.fewer_awaited_than(1).await;

    monitors.prepare(&table(&[&new, &other], &[http(3_600_000)], Some(&first)).snapshot, late);
    monitors.fewer_awaited_than(1).await;
    assert_eq!(monitors.running(), 3);
    let second = table(&[&new], &[http(3_600_000)], Some(&first));
    monitors.prepare(&second.snapshot, late);
    assert!(!is_awaiting(&monitors), "it is known from before");
    assert_eq!(monitors.running(), 2);
    // A return to the active configuration stops all other monitors.
    monitors.prepare(&first.snapshot, late);
    assert_eq!((monitors.running(), is_awaiting(&monitors)), (1, false));
    apply(&mut monitors, &first);
    assert_eq!(first.pools[0].members[0].health(), Health::Up);
    // A member that is removed during the wait is not awaited.
    let silent = silent().await;
    monitors.prepare(&table(&[&old, &silent], &[patient(3_600_000)], Some(&first)).snapshot, late);
    assert!(is_awaiting(&monitors));
    monitors.prepare(&first.snapshot, late);
    assert!(!is_awaiting(&monitors));
    monitors.fewer_awaited_than(1).await;
}

/// The situation of a start whose file is read again before the process serves.
#[tokio::test]
async fn what_is_in_force_and_unknown_is_waited_for_only_where_it_is_wanted() {
    let (events, _) = Captured::new();
    let (good, silent) = (Member::start(true).await, silent().await);
    let mut monitors = Monitors::new(events);
    let first = table(&[&silent], &[patient(3_600_000)], None);
    apply(&mut monitors, &first);
    assert!(is_awaiting(&monitors));
    let second = table(&[&good], &[patient(3_600_000)], Some(&first));
    monitors.prepare(&second.snapshot, late);
    monitors.fewer_awaited_than(1).await;
    // The member is awaited again if it is added again.
    let both = table(&[&good, &silent], &[patient(3_600_000)], Some(&first));
    monitors.prepare(&both.snapshot, late);
    assert_eq!(monitors.board().awaited(&both.snapshot)[0].members.len(), 1);
    monitors.prepare(&second.snapshot, late);
    apply(&mut monitors, &second);
    assert!(!is_awaiting(&monitors));
    assert_eq!(second.pools[0].members[0].health(), Health::Up);
}

#[tokio::test]
async fn members_that_do_not_answer_are_tried_where_there_is_no_other() {
    let (events, _) = Captured::new();
    let (good, silent) = (Member::start(true).await, silent().await);
    for (members, then, expected) in [
        (vec![&silent], AfterFirstProbes::Serve, vec![Health::Up]),
        (vec![&silent], AfterFirstProbes::Refuse, vec![Health::Pending]),
        (vec![&good, &silent], AfterFirstProbes::Serve, vec![Health::Up, Health::Pending]),
    ] {
        let mut monitors = Monitors::new(events.clone());
        let table = table(&members, &[patient(3_600_000)], None);
        apply(&mut monitors, &table);
        let of = |table: &LiveTable| -> Vec<Health> {
            table.pools[0].members.iter().map(|member| member.health()).collect()
        };
        let known = members.len() - 1;
        let is_up = |health: &&Health| **health == Health::Up;
        eventually(|| of(&table).iter().filter(is_up).count() == known).await;
        let stopped = monitors.stop_waiting(&table, then, &HashSet::new());
        let labels = vec![Arc::clone(&table.pools[0].members[known].label)];
        let unknown = UnknownMembers { pool: "web".into(), of: members.len(), members: labels };
        let told = if known == 0 { vec![unknown] } else { Vec::new() };
        assert_eq!(stopped, told);
        assert_eq!(of(&table), expected);
        assert!(!is_awaiting(&monitors));
        // The members are not awaited again in the active configuration.
        monitors.prepare(&table.snapshot, late);
        assert!(!is_awaiting(&monitors));
    }
}

#[tokio::test]
async fn members_that_get_nothing_are_not_waited_for() {
    let (events, _) = Captured::new();
    let silent = silent().await;
    let mut disabled = pool("web", &[silent.address], &[patient(3_600_000)]);
    disabled.members[0].state = AdminState::Disabled;
    let table = LiveTable::build(snapshot(vec![disabled]), None, 1, &outside());
    let mut monitors = Monitors::new(events);
    apply(&mut monitors, &table);
    assert_eq!((monitors.running(), is_awaiting(&monitors)), (1, false));
}

/// A pool without a usable member is awaited, and its failed probes are repeated despite their long interval.
#[tokio::test]
async fn a_first_probe_that_fails_is_repeated_where_no_member_is_usable() {
    let (events, captured) = Captured::new();
    let member = Member::start(false).await;
    let mut monitors = Monitors::new(events.clone());
    let table = table(&[&member], &[http(3_600_000)], None);
    monitors.prepare(&table.snapshot, late);
    // More failures than would take an active member down.
    eventually(|| member.asked.load(Relaxed) > 3).await;
    assert!(is_awaiting(&monitors));
    assert_eq!(monitors.board().awaited(&table.snapshot)[0].members.len(), 1);
    member.healthy.store(true, Relaxed);
    monitors.fewer_awaited_than(1).await;
    apply(&mut monitors, &table);
    assert_eq!(table.pools[0].members[0].health(), Health::Up, "one pass is enough");
    assert_eq!(monitors.stop_waiting(&table, AfterFirstProbes::Serve, &HashSet::new()), []);
    let line = format!("info member web/{} is up: passed", member.address);
    assert_eq!(captured.lines(&events), [line]);
}

#[tokio::test]
async fn a_first_probe_that_fails_is_not_repeated_where_another_member_is_usable() {
    let (events, _) = Captured::new();
    let (good, bad) = (Member::start(true).await, Member::start(false).await);
    let mut monitors = Monitors::new(events);
    let both = table(&[&good, &bad], &[http(3_600_000)], None);
    monitors.prepare(&both.snapshot, late);
    monitors.fewer_awaited_than(1).await;
    let asked = bad.asked.load(Relaxed);
    // The member is probed again at once if the next configuration has no other member.
    let alone = table(&[&bad], &[http(3_600_000)], None);
    monitors.prepare(&alone.snapshot, late);
    assert!(is_awaiting(&monitors));
    eventually(|| bad.asked.load(Relaxed) > asked + 1).await;
    bad.healthy.store(true, Relaxed);
    monitors.fewer_awaited_than(1).await;
}

/// The wait for a new member ends when another member of the pool becomes usable.
#[tokio::test]
async fn a_member_in_force_that_comes_up_ends_the_wait() {
    let (events, _) = Captured::new();
    let (old, new) = (Member::start(false).await, Member::start(false).await);
    let mut monitors = Monitors::new(events);
    let first = table(&[&old], &[http(10)], None);
    apply(&mut monitors, &first);
    eventually(|| first.pools[0].members[0].health() == Health::Down).await;
    assert_eq!(monitors.stop_waiting(&first, AfterFirstProbes::Serve, &HashSet::new()), []);
    monitors.prepare(&first.snapshot, late);
    assert!(!is_awaiting(&monitors), "what is in force is not waited for");
    let both = table(&[&old, &new], &[http(10)], Some(&first));
    monitors.prepare(&both.snapshot, late);
    eventually(|| new.asked.load(Relaxed) > 3).await;
    assert!(is_awaiting(&monitors));
    old.healthy.store(true, Relaxed);
    monitors.fewer_awaited_than(1).await;
}

/// A member without a result may be tried. A member whose probes have failed is not, however they did.
#[tokio::test]
async fn only_members_without_a_failed_probe_are_tried() {
    let (events, _) = Captured::new();
    let (silent, bad) = (silent().await, Member::start(false).await);
    let hasty = |interval_ms| {
        let monitor = http(interval_ms);
        Monitor { schedule: Schedule { timeout_ms: 50, ..monitor.schedule }, ..monitor }
    };
    for (member, interval_ms, expected) in [
        (&silent, 3_600_000, Health::Pending),
        (&bad, 3_600_000, Health::Pending),
        (&silent, 10, Health::Down),
        (&bad, 10, Health::Down),
    ] {
        let mut monitors = Monitors::new(events.clone());
        let table = table(&[member], &[hasty(interval_ms)], None);
        apply(&mut monitors, &table);
        let live = Arc::clone(&table.pools[0].members[0]);
        let board = monitors.board();
        let failures = || board.of(&live.pool.name, &live.label)[0].failures;
        eventually(|| failures() > 3).await;
        let stopped = monitors.stop_waiting(&table, AfterFirstProbes::Serve, &HashSet::new());
        assert_eq!((live.health(), stopped.len()), (expected, 0));
        assert_eq!(board.tried(&table.snapshot), []);
    }
}

/// A member whose only answer is kept back by a gate.
struct Gated {
    address: Address,
    is_open: Arc<AtomicBool>,
}

impl Gated {
    async fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Socket(listener.local_addr().unwrap());
        let is_open = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&is_open);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let gate = Arc::clone(&gate);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 1_024]).await;
                    eventually(|| gate.load(Relaxed)).await;
                    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { address, is_open }
    }
}

/// The probe that was under way when the wait ended counts.
#[tokio::test]
async fn the_first_result_judges_a_member_that_is_tried() {
    for (fall, status, expected, told) in [
        (1, "200 OK", Health::Up, "info member web/{} stays up: passed"),
        (1, "500 No", Health::Down, "warning member web/{} is down: status 500 (1 of 1)"),
        (
            3,
            "500 No",
            Health::Pending,
            "warning member web/{} is pending: status 500, and no probe has passed yet",
        ),
    ] {
        let (events, captured) = Captured::new();
        let member = Gated::start(status).await;
        let monitor = patient(3_600_000);
        let monitor = Monitor { schedule: Schedule { fall, ..monitor.schedule }, ..monitor };
        let pool = pool("web", std::slice::from_ref(&member.address), &[monitor]);
        let table = LiveTable::build(snapshot(vec![pool]), None, 1, &outside());
        let mut monitors = Monitors::new(events.clone());
        apply(&mut monitors, &table);
        monitors.stop_waiting(&table, AfterFirstProbes::Serve, &HashSet::new());
        let live = Arc::clone(&table.pools[0].members[0]);
        let board = monitors.board();
        let monitored = || board.of(&live.pool.name, &live.label)[0].health;
        assert_eq!((live.health(), monitored()), (Health::Up, Health::Pending));
        let tried = board.tried(&table.snapshot);
        assert_eq!((tried.len(), tried[0].members.len()), (1, 1));
        member.is_open.store(true, Relaxed);
        eventually(|| board.tried(&table.snapshot).is_empty()).await;
        assert_eq!((live.health(), monitored()), (expected, expected));
        assert_eq!(captured.lines(&events), [told.replace("{}", &live.label)]);
    }
}

/// With several monitors, one failure is enough, although another one has no result.
#[tokio::test]
async fn a_member_with_a_failed_probe_among_others_is_not_tried() {
    let (events, _) = Captured::new();
    let (failing, silent) = (Member::start(false).await, silent().await);
    let port = |member: &Member| match member.address {
        Address::Socket(address) => address.port(),
        _ => unreachable!("it has a port"),
    };
    let at = |port| Monitor { port: Some(port), ..patient(3_600_000) };
    let both = [at(port(&failing)), at(port(&silent))];
    for up_min in [1, 2] {
        let mut pool = pool("web", std::slice::from_ref(&silent.address), &both);
        pool.monitors_min = up_min;
        let table = LiveTable::build(snapshot(vec![pool]), None, 1, &outside());
        let mut monitors = Monitors::new(events.clone());
        apply(&mut monitors, &table);
        let board = monitors.board();
        let live = Arc::clone(&table.pools[0].members[0]);
        eventually(|| board.of(&live.pool.name, &live.label)[0].failures > 0).await;
        let stopped = monitors.stop_waiting(&table, AfterFirstProbes::Serve, &HashSet::new());
        assert_eq!((stopped, live.health()), (vec![], Health::Pending));
    }
}

#[tokio::test]
async fn pools_whose_members_are_drained_are_not_waited_for_when_they_fail() {
    let (events, _) = Captured::new();
    let bad = Member::start(false).await;
    let mut drained = pool("web", &[bad.address], &[http(3_600_000)]);
    drained.members[0].state = AdminState::Drain;
    let mut monitors = Monitors::new(events);
    monitors.prepare(&snapshot(vec![drained]), late);
    assert!(is_awaiting(&monitors));
    monitors.fewer_awaited_than(1).await;
    assert_eq!(bad.asked.load(Relaxed), 1);
}
