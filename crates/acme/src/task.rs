//! The certificate for one set of names: ordered when it is due, stored, and then in use.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use weir_event_loop::wall_clock::Date;
use weir_tls::challenges::PendingChallenge;
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::ManagedCertificate;
use weir_tls::ocsp::{Staple, responder_url};

use super::board::{Board, Report, State};
use super::lock::OrderLock;
use super::order::{IssuedCertificate, OrderFailure, Orders, answering_all};
use super::plan::{self, Lifetime, WINDOW_PAUSES, WINDOW_RETRY, Window};
use super::store::Progress;
use super::{Events, now_unix_s, spread};

/// Timeout of an order. It is then tried again.
const ORDER_TIME_MAX: Duration = Duration::from_secs(10 * 60);
/// Maximum sleep, because the clock may be set, or the host may have been suspended.
const SLEEP_MAX: Duration = Duration::from_secs(60 * 60);
/// Interval between attempts to acquire the lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(100);
/// How often it is looked whether that process has got the certificate.
const KEPT_POLL: Duration = Duration::from_secs(30);

/// The state that the tasks of an authority share.
pub struct Common {
    /// The client for orders.
    pub orders: Orders,
    /// Limits the number of simultaneous orders.
    pub gate: Semaphore,
    /// Held by the process that orders.
    pub lock: Arc<OrderLock>,
    /// The reports.
    pub board: Board,
    /// The events.
    pub events: Arc<dyn Events>,
    /// Notified of each issued certificate.
    pub arrived: Arc<Notify>,
}

/// The state that a task and the active configuration share.
#[derive(Debug, Default)]
pub struct TaskState {
    places: Mutex<Places>,
    /// A reload requests a new attempt.
    pub hurry: Notify,
}

#[derive(Debug, Default)]
struct Places {
    all: Vec<Arc<ManagedCertificate>>,
    current: Option<Arc<Identity>>,
}

impl TaskState {
    /// Starts with the stored certificate, if there is one.
    pub fn new(current: Option<Arc<Identity>>) -> Self {
        let places = Mutex::new(Places { all: Vec::new(), current });
        Self { places, hurry: Notify::new() }
    }

    /// The authority's certificate.
    pub fn current(&self) -> Option<Arc<Identity>> {
        self.lock().current.clone()
    }

    /// Adds places for the certificate.
    pub fn show_in(&self, places: Vec<Arc<ManagedCertificate>>) {
        let mut own = self.lock();
        own.all = places;
        if let Some(current) = &own.current {
            own.all.iter().for_each(|place| place.set(fitted(current, place.fetches_ocsp())));
        }
    }

    /// Replaces the certificate in all places.
    fn set(&self, identity: &Arc<Identity>) {
        let mut own = self.lock();
        own.current = Some(Arc::clone(identity));
        own.all.iter().for_each(|place| place.set(fitted(identity, place.fetches_ocsp())));
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A certificate with a place for its OCSP response, if OCSP responses are fetched.
pub fn fitted(identity: &Arc<Identity>, fetches_ocsp: bool) -> Arc<Identity> {
    let [certificate, _issuer, ..] = &identity.certified.cert[..] else {
        return Arc::clone(identity);
    };
    let has_responder = responder_url(certificate).is_some_and(|url| url.starts_with("http://"));
    if !fetches_ocsp || !has_responder || identity.fetches_ocsp {
        return Arc::clone(identity);
    }
    let mut fitted = (**identity).clone();
    fitted.staple = Some(Arc::new(Staple::new(&fitted.certified)));
    fitted.fetches_ocsp = true;
    Arc::new(fitted)
}

/// The work for one set of names.
pub struct Certificate {
    /// The names in the order of the configuration.
    pub names: Vec<String>,
    /// The names, sorted.
    pub sorted: Vec<String>,
    /// The state that the tasks of an authority share.
    pub common: Arc<Common>,
    /// The places that use the certificate.
    pub shared: Arc<TaskState>,
    /// The certificate must be replaced, because its key has another type.
    pub is_due: bool,
    /// Answers to the challenges of an order that another process has begun, until this one goes on with it.
    pub answers: Vec<PendingChallenge>,
}

/// The authority's renewal window, and the time of the next query.
#[derive(Default)]
struct RenewalInfo {
    window: Option<Window>,
    next_unix_s: i64,
}

impl Certificate {
    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut progress = match self.common.orders.store.progress(&self.sorted) {
            Ok(progress) => progress,
            Err(error) => {
                self.common.events.warning(&self.subject(), &error);
                Progress::default()
            }
        };
        let mut asked = RenewalInfo::default();
        loop {
            let now = now_unix_s();
            progress.not_before_unix_s = plan::reachable(progress.not_before_unix_s, now);
            progress.last_order_unix_s = progress.last_order_unix_s.min(now);
            asked.next_unix_s = plan::reachable(asked.next_unix_s, now);
            if self.shared.current().is_some() && now >= asked.next_unix_s {
                self.ask_window(&mut asked).await;
            }
            let at = self.order_at(&progress, asked.window);
            if at <= now {
                self.order(&mut progress, asked.window).await;
                // An order that is kept may still be verified.
                let orders = &self.common.orders;
                self.answers =
                    answering_all(&orders.challenges, orders.settings.challenge, &progress);
                asked = RenewalInfo::default();
                continue;
            }
            let state = if progress.failures > 0 { State::Failing } else { State::Ready };
            self.report(state, &progress, asked.window);
            let wake = match self.shared.current() {
                Some(_) => at.min(asked.next_unix_s),
                None => at,
            };
            let pause = u64::try_from(wake.saturating_sub(now_unix_s())).unwrap_or(0).max(1);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(pause).min(SLEEP_MAX)) => {}
                () = self.shared.hurry.notified() => {
                    let not_before = progress.not_before_unix_s;
                    progress.not_before_unix_s = plan::by_hand(not_before, progress.last_order_unix_s);
                    asked.next_unix_s = 0;
                }
            }
        }
    }

    fn subject(&self) -> String {
        format!("certificate for {}", shown(&self.names))
    }

    /// The time of the next order.
    fn order_at(&self, progress: &Progress, window: Option<Window>) -> i64 {
        // Polling an accepted order does not count against limits.
        let not_before = if progress.order.is_some() && progress.reason.is_none() {
            0
        } else {
            progress.not_before_unix_s
        };
        self.due_at(progress, window).max(not_before)
    }

    /// The time from which another certificate is needed.
    fn due_at(&self, progress: &Progress, window: Option<Window>) -> i64 {
        if self.is_due || progress.order.is_some() {
            return 0;
        }
        self.renewal(window).map_or(0, |(at, _)| at)
    }

    fn renewal(&self, window: Option<Window>) -> Option<(i64, plan::Basis)> {
        let current = self.shared.current()?;
        Some(plan::renewal(lifetime(&current), window, spread(&current)))
    }

    async fn ask_window(&self, asked: &mut RenewalInfo) {
        let Some(current) = self.shared.current() else { return };
        let Some(certificate) = current.certified.cert.first() else { return };
        let pause = match self.common.orders.for_one().window(certificate).await {
            Ok(Some((window, pause))) => {
                asked.window = Some(window);
                pause.clamp(*WINDOW_PAUSES.start(), *WINDOW_PAUSES.end())
            }
            Ok(None) => {
                asked.window = None;
                *WINDOW_PAUSES.end()
            }
            // The last window stays in use. Without a window, the lifetime decides.
            Err(_) => WINDOW_RETRY,
        };
        let pause = i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
        asked.next_unix_s = now_unix_s().saturating_add(pause);
    }

    /// Orders a certificate, and puts it in use.
    async fn order(&mut self, progress: &mut Progress, window: Option<Window>) {
        let common = Arc::clone(&self.common);
        self.report(State::Waiting, progress, window);
        let mut next_look = Instant::now();
        while !common.lock.is_held() {
            if Instant::now() >= next_look {
                if self.is_done_by_another(progress, window) {
                    return;
                }
                next_look = Instant::now() + KEPT_POLL;
            }
            tokio::time::sleep(LOCK_POLL).await;
        }
        let Ok(_permit) = common.gate.acquire().await else { return };
        if self.is_done_by_another(progress, window) {
            return;
        }
        self.report(State::Ordering, progress, None);
        let result = match self.begin(progress) {
            Ok(()) => self.obtain(progress).await,
            Err(failed) => Err(failed),
        };
        match result.and_then(|issued| self.take(&issued)) {
            Ok(identity) => self.succeed(progress, &identity),
            Err(failed) => self.fail(progress, &failed),
        }
    }

    /// Stores the attempt before the order is sent. A process that crashes during orders cannot repeat them without a pause.
    fn begin(&self, progress: &mut Progress) -> Result<(), OrderFailure> {
        progress.failures = progress.failures.saturating_add(1);
        progress.last_order_unix_s = now_unix_s();
        progress.not_before_unix_s = later(plan::pause(progress.failures, None));
        progress.reason = None;
        self.common.orders.keep_progress(&self.sorted, progress)
    }

    async fn obtain(&self, progress: &mut Progress) -> Result<IssuedCertificate, OrderFailure> {
        let current = self.shared.current();
        let replaced = current.as_ref().and_then(|it| it.certified.cert.first());
        let orders = self.common.orders.for_one();
        let obtained = orders.obtain(&self.names, progress, replaced);
        let timed_out = |_| {
            OrderFailure::on_the_way(format_args!("the order was not done in {ORDER_TIME_MAX:?}"))
        };
        let obtained = tokio::time::timeout(ORDER_TIME_MAX, obtained).await;
        obtained.map_err(timed_out).flatten().map_err(|failed| OrderFailure {
            retry_after: failed.retry_after.or(orders.authority.take_retry_after()),
            ..failed
        })
    }

    /// Stores an issued certificate, and puts it in use.
    fn take(&mut self, issued: &IssuedCertificate) -> Result<Arc<Identity>, OrderFailure> {
        let unusable = |reason: String| OrderFailure::at_last(reason);
        let identity = super::keys::identity(&issued.chain, &issued.key)
            .map_err(|error| unusable(format!("the certificate cannot be used: {error}")))?;
        if let Some(name) = self.names.iter().find(|name| !identity.names.contains(name)) {
            return Err(unusable(format!("the certificate is not for {name}")));
        }
        if identity.not_after_unix_s <= now_unix_s() {
            return Err(unusable("the certificate has expired: look at this host's clock".into()));
        }
        let store = &self.common.orders.store;
        let kept = store.keep_certificate(&self.sorted, &issued.key, &issued.chain);
        if let Err(error) = kept {
            // The certificate is used, but it would be ordered again after a restart.
            let folder = store.folder().display();
            let what = format_args!("cannot be kept in {folder}: {error}");
            self.common.events.error(&self.subject(), &what);
        }
        let identity = Arc::new(identity);
        self.shared.set(&identity);
        self.is_due = false;
        self.common.arrived.notify_one();
        Ok(identity)
    }

    /// Takes what another process has got, and what it knows of its order. Whether no certificate is needed after that.
    fn is_done_by_another(&mut self, progress: &mut Progress, window: Option<Window>) -> bool {
        if let Ok(known) = self.common.orders.store.progress(&self.sorted) {
            *progress = known;
            let orders = &self.common.orders;
            let kind = orders.settings.challenge;
            self.answers = answering_all(&orders.challenges, kind, progress);
        }
        // The window is that of the certificate before.
        let window = if self.take_kept() { None } else { window };
        self.due_at(progress, window) > now_unix_s()
    }

    /// Reads a certificate that another process has stored. Returns whether it exists and is not due.
    fn take_kept(&mut self) -> bool {
        let orders = &self.common.orders;
        let Ok(Some(kept)) = orders.store.certificate(&self.sorted, orders.settings.key) else {
            return false;
        };
        let is_known = self
            .shared
            .current()
            .is_some_and(|it| it.certified.cert.first() == kept.identity.certified.cert.first());
        let lifetime = lifetime(&kept.identity);
        let (renewal, _) = plan::renewal(lifetime, None, spread(&kept.identity));
        if is_known || !kept.is_of_kind || renewal <= now_unix_s() {
            return false;
        }
        self.shared.set(&Arc::new(kept.identity));
        self.is_due = false;
        self.common.arrived.notify_one();
        true
    }

    fn succeed(&self, progress: &mut Progress, identity: &Identity) {
        self.common.board.counters.succeeded.fetch_add(1, Relaxed);
        let not_before_unix_s = plan::after_success(now_unix_s(), lifetime(identity));
        let last_order_unix_s = progress.last_order_unix_s;
        *progress = Progress { last_order_unix_s, not_before_unix_s, ..Progress::default() };
        self.keep(progress);
        let authority = &self.common.orders.settings.directory.host;
        let until = date(identity.not_after_unix_s);
        let what = format_args!("has come from {authority} and is in use; valid until {until}");
        self.common.events.info(&self.subject(), &what);
    }

    fn fail(&self, progress: &mut Progress, failed: &OrderFailure) {
        self.common.board.counters.failed.fetch_add(1, Relaxed);
        let pause = plan::pause(progress.failures.max(1), failed.retry_after);
        progress.not_before_unix_s = later(pause);
        progress.reason = Some(failed.reason.clone());
        if failed.is_final {
            progress.order = None;
        }
        self.keep(progress);
        let meanwhile = match self.shared.current() {
            Some(current) => {
                format!("the one in use stays, valid until {}", date(current.not_after_unix_s))
            }
            None => "clients get another certificate meanwhile".to_owned(),
        };
        let next = date(progress.not_before_unix_s);
        let what = format_args!("cannot be had: {failed}; {meanwhile}; next try at {next}");
        self.common.events.warning(&self.subject(), &what);
    }

    fn keep(&self, progress: &Progress) {
        if let Err(failed) = self.common.orders.keep_progress(&self.sorted, progress) {
            self.common.events.error(&self.subject(), &failed);
        }
    }

    fn report(&self, state: State, progress: &Progress, window: Option<Window>) {
        let is_ready = state == State::Ready;
        let report = Report {
            authority: self.common.orders.settings.directory.host.clone(),
            state,
            renewal: self.renewal(window),
            window,
            failures: if state == State::Ordering {
                progress.failures.saturating_sub(1)
            } else {
                progress.failures
            },
            reason: progress.reason.clone(),
            next_try_unix_s: (!is_ready).then_some(progress.not_before_unix_s),
        };
        self.common.board.set(&self.sorted, report);
    }
}

/// The validity of a certificate.
pub fn lifetime(identity: &Identity) -> Lifetime {
    Lifetime { from_unix_s: identity.not_before_unix_s, until_unix_s: identity.not_after_unix_s }
}

/// The names in an event: the first, and the number of the others.
fn shown(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    }
}

fn later(pause: Duration) -> i64 {
    now_unix_s().saturating_add(i64::try_from(pause.as_secs()).unwrap_or(i64::MAX))
}

fn date(unix_s: i64) -> String {
    format!("{}.000Z", Date::of(u64::try_from(unix_s).unwrap_or(0)).iso)
}
