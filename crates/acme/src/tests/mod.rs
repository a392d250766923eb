//! Orders at an authority that misbehaves: the certificate in use stays, the reason says what happened, and weir does not ask
//! again and again.

mod authority;

use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use instant_acme::RetryPolicy;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};
use weir_config::snapshot::{Acme, AcmeChallenge, HttpUrl, KeyKind};
use weir_tls::challenges::Challenges;
use weir_tls::identity::Identity;

use self::authority::{Authority, Misdeed, Step};
use super::board::{Board, Report, State};
use super::lock::OrderLock;
use super::order::Orders;
use super::store::Store;
use super::task::{Certificate, Common, TaskState};
use super::{Events, client, keys, now_unix_s};

/// The name of the certificate.
const NAME: &str = "shop.example";

/// Maximum duration of a step. It is long, because a busy machine must not make a test fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polls go on for longer than any step of these tests takes.
const POLLS: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(20)).backoff(2.0).timeout(PATIENCE);

/// Polls of an authority that never decides: after 20, 60, 140, 300 and 620 milliseconds at the earliest.
const FEW_POLLS: RetryPolicy = POLLS.timeout(Duration::from_millis(500));

/// The shortest pause after a failure, in seconds, with its variation.
const PAUSE_MIN_S: i64 = 130;

/// More requests than any order needs, with all repetitions.
const REQUESTS_MAX: usize = 25;

struct Bed {
    authority: Authority,
    store: Store,
    common: Arc<Common>,
    shared: Arc<TaskState>,
    events: Arc<Captured>,
    _folder: TempDir,
}

/// The events so far.
#[derive(Debug, Default)]
struct Captured(Mutex<Vec<String>>);

impl Captured {
    fn keep(&self, level: &str, subject: &dyn Display, what: &dyn Display) {
        let line = format!("{level} {subject} {what}");
        self.0.lock().expect("no test has failed").push(line);
    }
}

impl Events for Captured {
    fn info(&self, subject: &dyn Display, what: &dyn Display) {
        self.keep("info", subject, what);
    }

    fn warning(&self, subject: &dyn Display, what: &dyn Display) {
        self.keep("warning", subject, what);
    }

    fn error(&self, subject: &dyn Display, what: &dyn Display) {
        self.keep("error", subject, what);
    }
}

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

impl Bed {
    /// An authority, and a certificate in use that must be replaced.
    async fn new() -> Self {
        Self::with(POLLS).await
    }

    async fn with(polls: RetryPolicy) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::start().await;
        let settings = Arc::new(Acme {
            directory: directory(authority.address.port()),
            email: None,
            authorities: Some(vec![authority.root.clone()]),
            challenge: AcmeChallenge::Http01,
            key: KeyKind::EcdsaP256,
            profile: None,
            external: None,
        });
        let store = Store::of(folder.path(), &settings.directory);
        authority.script.lock().expect("no test has failed").store = Some(store.clone());
        let lock = Arc::new(OrderLock::new(store.prepare().expect("a folder")));
        let events = Arc::<Captured>::default();
        let orders = Orders {
            authority: client::Authority::new(&settings).expect("roots"),
            settings,
            store: store.clone(),
            challenges: Arc::<Challenges>::default(),
            polls,
        };
        let common = Arc::new(Common {
            orders,
            gate: Semaphore::new(1),
            lock,
            board: Board::default(),
            events: Arc::clone(&events) as Arc<dyn Events>,
            arrived: Arc::<Notify>::default(),
        });
        let current = keys::stand_in(&names(), SystemTime::now()).expect("a certificate");
        let shared = Arc::new(TaskState::new(Some(Arc::new(current))));
        Self { authority, store, common, shared, events, _folder: folder }
    }

    /// Forgets orders and the account, as before the first order.
    fn begin_anew(&self) {
        if self.store.account::<serde_json::Value>().expect("it can be read").is_some() {
            self.store.forget_account().expect("it is forgotten");
        }
        self.store.keep_progress(&names(), &Default::default()).expect("it is kept");
    }

    /// Lets the task run until its order has succeeded or failed. Returns the report.
    async fn run(&self) -> Report {
        let certificate = Certificate {
            names: names(),
            sorted: names(),
            common: Arc::clone(&self.common),
            shared: Arc::clone(&self.shared),
            is_due: true,
            answers: Vec::new(),
        };
        self.common.board.forget(&names());
        let task = tokio::spawn(certificate.run());
        let report = loop {
            match self.common.board.report(&names()) {
                Some(report) if matches!(report.state, State::Ready | State::Failing) => {
                    break report;
                }
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        task.abort();
        report
    }

    fn current(&self) -> Arc<Identity> {
        self.shared.current().expect("a certificate is in use")
    }

    fn count(&self, step: Step) -> usize {
        self.authority.asked().iter().filter(|it| **it == step).count()
    }

    /// The order fails for a reason with this text; all else stays.
    async fn assert_fails(&self, (step, misdeed): (Step, Misdeed), why: &[&str]) {
        self.authority.behave(step, misdeed);
        let before = self.current();
        let report = self.run().await;
        let story = || format!("{misdeed:?} at {step:?}: {report:?}, {:?}", self.authority.asked());
        assert_eq!((report.state, report.failures), (State::Failing, 1), "{}", story());
        assert!(Arc::ptr_eq(&before, &self.current()), "the certificate stays: {}", story());
        let reason = report.reason.as_deref().unwrap_or_default();
        assert!(why.iter().any(|why| reason.contains(why)), "{}", story());
        assert!(!reason.contains('\n') && reason.len() < 700, "{}", story());
        let pause_s = report.next_try_unix_s.expect("a next try") - now_unix_s();
        assert!(pause_s >= PAUSE_MIN_S, "a pause of {pause_s} s: {}", story());
        assert!(self.authority.asked().len() <= REQUESTS_MAX, "{}", story());
        let lines = self.events.0.lock().expect("no test has failed");
        let line = lines.last().expect("an event");
        assert!(line.contains("cannot be had") && line.contains("the one in use stays"), "{line}");
    }
}

fn directory(port: u16) -> HttpUrl {
    HttpUrl {
        is_secure: true,
        authority: format!("127.0.0.1:{port}"),
        host: "127.0.0.1".into(),
        port,
        path: "/directory".into(),
    }
}

#[tokio::test]
async fn an_honest_authority_issues_a_certificate() {
    let bed = Bed::new().await;
    let before = bed.current();
    let report = bed.run().await;
    assert_eq!((report.state, report.failures), (State::Ready, 0), "{report:?}");
    assert!(!Arc::ptr_eq(&before, &bed.current()));
    assert_eq!(bed.current().names, names());
    for step in Step::ALL {
        assert!(bed.count(step) > 0, "{step:?} is not a step of an order");
    }
}

#[tokio::test]
async fn what_is_no_answer_of_acme_fails_at_each_step() {
    let bed = Bed::new().await;
    for step in Step::ALL {
        // A nonce and an account are fields of a response, and a chain is text.
        let has_json = !matches!(step, Step::Nonce | Step::Account | Step::Certificate);
        for (misdeed, why, is_possible) in [
            (Misdeed::Failure, "answers 500", true),
            (Misdeed::Redirect, "weir follows no redirects", true),
            (Misdeed::Hangup, "does not answer in HTTP", true),
            (Misdeed::Endless, "is longer than 1048576 bytes", step != Step::Nonce),
            (Misdeed::Garbage, "an answer that ACME does not have", has_json),
            (Misdeed::OtherJson, "an answer that ACME does not have", has_json),
        ] {
            if is_possible {
                bed.begin_anew();
                bed.assert_fails((step, misdeed), &[why]).await;
            }
        }
    }
    bed.authority.behave(Step::Directory, Misdeed::Nothing);
    bed.begin_anew();
    assert_eq!(bed.run().await.state, State::Ready, "all is well afterwards");
}

#[tokio::test]
async fn bad_nonces_are_not_followed_for_ever() {
    let bed = Bed::new().await;
    for step in Step::ALL.into_iter().filter(|it| !matches!(it, Step::Directory | Step::Nonce)) {
        bed.begin_anew();
        bed.assert_fails((step, Misdeed::BadNonce), &["this nonce is bad (badNonce)"]).await;
        assert_eq!(bed.count(step), 3, "{step:?}");
    }
}

#[tokio::test]
async fn an_order_that_stands_still_is_taken_up_again() {
    let bed = Bed::with(FEW_POLLS).await;
    for step in [Step::Challenge, Step::Finalize] {
        bed.begin_anew();
        let why = "the authority has not decided in time";
        bed.assert_fails((step, Misdeed::Processing), &[why]).await;
        let progress = bed.store.progress(&names()).expect("it is kept");
        assert!(progress.order.is_some(), "the order stays after {step:?}");
        assert!((1..=5).contains(&bed.count(Step::Poll)), "{:?}", bed.authority.asked());
    }
}

#[tokio::test]
async fn certificates_that_are_of_no_use_are_not_used() {
    let bed = Bed::new().await;
    for (misdeed, why) in [
        (Misdeed::OtherName, "the certificate is not for shop.example"),
        (Misdeed::OtherKey, "the certificate cannot be used"),
        (Misdeed::Expired, "the certificate has expired"),
        (Misdeed::Garbage, "the certificate cannot be used"),
    ] {
        bed.begin_anew();
        bed.assert_fails((Step::Certificate, misdeed), &[why]).await;
        let progress = bed.store.progress(&names()).expect("it is kept");
        assert!(progress.order.is_none(), "another order is needed after {misdeed:?}");
    }
}

#[tokio::test]
async fn a_deactivated_account_is_replaced_by_hand() {
    let bed = Bed::new().await;
    let report = bed.run().await;
    assert_eq!(report.state, State::Ready, "{report:?}");
    bed.store.keep_progress(&names(), &Default::default()).expect("it is kept");
    bed.assert_fails((Step::Order, Misdeed::Deactivated), &["deactivated", "unauthorized"]).await;
    assert_eq!(bed.count(Step::Account), 0, "weir registers no other account by itself");
    // As docs/tls.md says.
    std::fs::remove_file(bed.store.folder().join("account.json")).expect("the account's file");
    bed.store.keep_progress(&names(), &Default::default()).expect("it is kept");
    bed.authority.behave(Step::Directory, Misdeed::Nothing);
    assert_eq!(bed.run().await.state, State::Ready);
    assert_eq!(bed.count(Step::Account), 1);
}
