//! The order and the limits of the queue of transactions.

use std::path::Path;

use serde_json::json;
use weir_sources::overlay::{Change, Pointer};

use super::*;

fn changes() -> Changes {
    Changes::open(Path::new("/nonexistent")).expect("there are no versions")
}

fn transaction(comment: &str) -> Transaction {
    Transaction {
        author: "alice".into(),
        comment: comment.into(),
        expected_version: None,
        wanted: RequestedChanges::RollBackTo(0),
        dry_run: false,
        takes_last: false,
        is_from_network: false,
        confirm_within_s: None,
    }
}

fn numbers(batch: &[PendingRequest]) -> Vec<u64> {
    batch.iter().map(|pending| pending.number).collect()
}

#[test]
fn what_belongs_together_is_done_together() {
    let changes = changes();
    let trial = Transaction { dry_run: true, ..transaction("") };
    for it in [transaction("1"), transaction("2"), trial.clone(), trial, transaction("5")] {
        changes.propose(it).unwrap();
    }
    assert_eq!(changes.confirm(1, "bob"), Ok(6), "it does not wait for the others");
    let batches: Vec<Vec<u64>> = (0..6).map(|_| numbers(&changes.next_batch())).collect();
    assert_eq!(batches, [vec![6], vec![1, 2], vec![3], vec![4], vec![5], vec![]]);
    // Requests that were put back are the first in the queue, one by one if required.
    for _ in 7..=9 {
        changes.propose(transaction("")).unwrap();
    }
    let mut batch = changes.next_batch();
    let rest = batch.split_off(1);
    changes.propose(transaction("")).unwrap();
    changes.put_back(rest.clone());
    assert_eq!(numbers(&changes.next_batch()), [8, 9, 10]);
    changes.propose(transaction("")).unwrap();
    changes.put_back_one_by_one(rest);
    let batches: Vec<Vec<u64>> = (0..3).map(|_| numbers(&changes.next_batch())).collect();
    assert_eq!(batches, [[8], [9], [11]]);
}

#[test]
fn what_waits_is_bounded() {
    let changes = changes();
    for number in 1..=QUEUE_MAX {
        assert_eq!(changes.propose(transaction("")), Ok(number as u64));
    }
    assert_eq!(changes.propose(transaction("")), Err(NotQueued::Full));
    assert!(changes.confirm(1, "bob").is_ok(), "there is always room for a confirmation");
    changes.next_batch();
    assert_eq!(changes.next_batch().len(), BATCH_MAX);
    assert!(changes.propose(transaction("")).is_ok());
    // The size of the queue is limited, too.
    let changes = self::changes();
    let value = json!("x".repeat(QUEUE_BYTES_MAX / 3));
    let large =
        RequestedChanges::Changes(vec![Change::Set { path: Pointer::parse("/a").unwrap(), value }]);
    let large = Transaction { wanted: large, ..transaction("") };
    for expected in [Ok(1), Ok(2), Err(NotQueued::Full)] {
        assert_eq!(changes.propose(large.clone()), expected);
    }
    assert_eq!(changes.propose(transaction("")), Ok(3));
    changes.next_batch();
    assert_eq!(changes.propose(large), Ok(4));
}

#[test]
fn what_cannot_be_is_not_queued() {
    let changes = changes();
    let check = |transaction: Transaction, told: &str| {
        let error = changes.propose(transaction).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    };
    check(Transaction { author: String::new(), ..transaction("") }, "an author has a name");
    check(Transaction { author: "weir".into(), ..transaction("") }, "other than `weir`");
    check(
        Transaction { author: "a\nb".into(), ..transaction("") },
        "the author has a control character",
    );
    check(transaction("a\u{1b}[2J"), "the comment has a control character");
    check(transaction(&"x".repeat(COMMENT_BYTES_MAX + 1)), "the comment has at most 4096 bytes");
    for seconds in [0, CONFIRM_S_MAX + 1] {
        let it = Transaction { confirm_within_s: Some(seconds), ..transaction("") };
        check(it, "the time for a confirmation is 1 s to 86400 s");
    }
    assert!(changes.next_batch().is_empty());
}

#[tokio::test]
async fn results_are_told_to_those_who_wait() {
    let changes = Arc::new(changes());
    let number = changes.propose(transaction("")).unwrap();
    let waiting = {
        let changes = Arc::clone(&changes);
        tokio::spawn(async move { changes.result(number).await })
    };
    changes.accepted(number, 3, &[], Vec::new());
    assert_eq!(changes.report(number).map(|it| it.state), Some(TransactionState::Waiting));
    changes.put_in_force(2);
    assert_eq!(changes.report(number).map(|it| it.state), Some(TransactionState::Waiting));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    changes.put_in_force(4);
    let report = waiting.await.unwrap().expect("a report");
    assert_eq!((report.state, report.version), (TransactionState::InForce, Some(3)));
    assert!(changes.result(number + 1).await.is_none(), "nobody has asked for it");
    // At the end of the process, every waiting request gets a result.
    let open = changes.propose(transaction("")).unwrap();
    changes.close();
    let report = changes.result(open).await.expect("a report");
    assert_eq!(
        (report.state, report.reason.as_deref()),
        (TransactionState::Refused, Some("weir ends"))
    );
    assert_eq!(changes.propose(transaction("")), Err(NotQueued::Ends));
    // A version was being stored when the queue was closed.
    changes.accepted(open, 5, &[], Vec::new());
    let report = changes.result(open).await.expect("a report");
    let reason = "weir ends; the version takes effect at the next start";
    assert_eq!((report.version, report.reason.as_deref()), (Some(5), Some(reason)));
}

/// The first transaction after a pause does not wait; those that come at short intervals form batches.
#[tokio::test(start_paused = true)]
async fn batches_begin_at_intervals() {
    let changes = changes();
    let begin = Instant::now();
    let next = async || {
        changes.wanted().await;
        (numbers(&changes.next_batch()), begin.elapsed())
    };
    changes.propose(transaction("1")).unwrap();
    assert_eq!(next().await, (vec![1], Duration::ZERO));
    changes.propose(transaction("2")).unwrap();
    let ((batch, at), _) = tokio::join!(next(), async {
        tokio::time::sleep(BATCH_INTERVAL / 2).await;
        changes.propose(transaction("3")).unwrap();
    });
    assert_eq!(batch, [2, 3]);
    assert!(at >= BATCH_INTERVAL && at < 2 * BATCH_INTERVAL, "{at:?}");
    // What is tried one by one does not wait.
    changes.propose(transaction("4")).unwrap();
    changes.propose(transaction("5")).unwrap();
    changes.put_back_one_by_one(changes.next_batch());
    let (_, from) = next().await;
    let (batch, to) = next().await;
    assert_eq!((batch, from), (vec![5], to));
}
