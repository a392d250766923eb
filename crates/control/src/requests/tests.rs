//! Records that are kept, and followers.

use weir_exchange::termination::Termination;
use weir_telemetry::records::record::{Amounts, Id};

use super::*;

fn settings(keep: u32) -> Option<RecentRequests> {
    Some(RecentRequests { keep, share: 100_000, slow_us: Some(1_000) })
}

fn record(number: u128, is_slow: bool) -> Record {
    Record {
        id: Id::Number(number),
        begun_unix_ms: number as u64,
        is_sampled: true,
        is_slow,
        client: None,
        peer: None,
        virtual_server: "shop".into(),
        entered_at: None,
        pool: None,
        member: None,
        tls: None,
        status: 200,
        amounts: Amounts::default(),
        marks: Vec::new(),
        rules: Vec::new(),
        persistence: None,
        user: Box::default(),
        termination: Termination::Complete,
        notes: None,
    }
}

fn ids(requests: &Requests, only_slow: bool) -> Vec<u128> {
    let number = |record: &Arc<Record>| match record.id {
        Id::Number(number) => number,
        Id::Taken(_) => 0,
    };
    requests.all(only_slow).iter().map(number).collect()
}

#[test]
fn the_last_ones_are_kept_and_slow_ones_longer() {
    let requests = Requests::new(settings(3));
    for number in 1..=10 {
        requests.add(Arc::new(record(number, number == 2)));
    }
    requests.add(Arc::new(Record { is_sampled: false, ..record(11, false) }));
    requests.add(Arc::new(Record { is_sampled: false, ..record(12, true) }));
    assert_eq!(ids(&requests, false), [12, 10, 9, 8, 2]);
    assert_eq!(ids(&requests, true), [12, 2]);
    assert!(requests.find(&format!("{:032x}", 9)).is_some());
    assert!(requests.find("9").is_none());
    requests.set(settings(1));
    assert_eq!(ids(&requests, false), [12, 10, 2]);
    requests.set(None);
    assert_eq!(ids(&requests, false), [0; 0]);
    requests.add(Arc::new(record(13, true)));
    assert_eq!(ids(&requests, false), [0; 0]);
}

#[test]
fn slow_ones_are_few_and_all_are_bounded_in_bytes() {
    let requests = Requests::new(settings(100_000));
    for number in 1..=2 * SLOW_MAX as u128 {
        requests.add(Arc::new(record(number, true)));
    }
    assert_eq!(ids(&requests, true).len(), SLOW_MAX);
    assert_eq!(ids(&requests, false).len(), 2 * SLOW_MAX);
    let large = vec![0_u8; RECORD_BYTES_MAX / 10];
    for number in 1_000..1_100 {
        let user = large.clone().into();
        requests.add(Arc::new(Record { user, ..record(number, number % 2 == 0) }));
    }
    let bytes: usize = requests.all(false).iter().map(|record| record.bytes()).sum();
    assert!(bytes <= RECORD_BYTES_MAX, "{bytes}");
    assert!(ids(&requests, false).contains(&1_099), "the newest is there");
}

#[tokio::test]
async fn workers_are_told_of_the_first_follower_and_of_the_last() {
    let requests = Arc::new(Requests::new(None));
    let mut first = requests.follow();
    assert!(requests.followed().await);
    let second = requests.follow();
    requests.add(Arc::new(record(1, false)));
    requests.tell(EventLine { unix_ms: 1, level: "info", text: "weir started".into() });
    let Some(NextForFollower::One(FollowerMessage::Request(got))) = first.next().await else {
        panic!()
    };
    assert_eq!(got.id, Id::Number(1));
    let Some(NextForFollower::One(FollowerMessage::Event(got))) = first.next().await else {
        panic!()
    };
    assert_eq!(got.text, "weir started");
    drop(first);
    drop(second);
    assert!(!requests.followed().await);
    assert!(!requests.has_followers());
}

#[tokio::test]
async fn what_a_slow_follower_misses_is_counted() {
    let requests = Arc::new(Requests::new(None));
    let mut follower = requests.follow();
    let more = 10;
    for number in 0..(FOLLOWED_WAITING_MAX + more) as u128 {
        requests.add(Arc::new(record(number, false)));
    }
    requests.dropped.fetch_add(7, Relaxed);
    let Some(NextForFollower::Missed(missed)) = follower.next().await else { panic!() };
    assert_eq!(missed, 7, "what workers have dropped");
    let Some(NextForFollower::Missed(missed)) = follower.next().await else { panic!() };
    assert_eq!(missed, more as u64);
    let Some(NextForFollower::One(FollowerMessage::Request(got))) = follower.next().await else {
        panic!()
    };
    assert_eq!(got.id, Id::Number(more as u128));
}
