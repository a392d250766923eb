//! Certificates by ACME (RFC 8555): ordered, renewed, kept in `state_dir`, and put in use without a reload.
//!
//! [`Acme::provide`] adds the known certificates to a snapshot before it is in force; [`Acme::apply`] starts the tasks for the
//! snapshot in force: one task per set of names ([`task`]) orders ([`order`]) when the plan ([`plan`]) says so. No order is made
//! for a snapshot that is not in force, or by a process that drains.
//!
//! | before the authority's certificate is there | clients get |
//! |---|---|
//! | `cert` and `key` beside `acme` | that certificate |
//! | a kept one has some of the names | that one |
//! | otherwise | a self-signed one |
//!
//! [`board`] shows the state of all certificates. What happens to them is told to [`Events`].
//!
//! **Architecture invariant:** one process at a time orders for a `state_dir`, and no order is made without a stored attempt.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::digest::{SHA256, digest};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use weir_config::snapshot::{Acme as Settings, Snapshot};
use weir_event_loop::error_text::io_error_text;
use weir_event_loop::wall_clock::unix_s;
use weir_tls::challenges::{Challenges, PendingChallenge};
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::ManagedCertificate;

use board::{Board, sorted};
use client::Authority;
use lock::OrderLock;
use order::{Orders, POLLS, answering_all};
use store::Store;
use task::{Certificate, Common, TaskState, fitted};

pub use events::Events;
pub use plan::{Basis, Window};

pub mod board;
mod client;
mod events;
mod keys;
mod lock;
mod order;
mod plan;
mod store;
mod task;
#[cfg(test)]
mod tests;

/// Maximum number of simultaneous orders.
const ORDERS_AT_ONCE: usize = 4;
/// The subject of events that concern all certificates.
const SUBJECT: &str = "certificates by ACME";

/// The reason why ACME cannot be used.
#[derive(Debug)]
pub enum AcmeError {
    /// The state directory cannot be written.
    Folder(PathBuf, io::Error),
    /// weir could not generate a temporary certificate.
    StandIn(String),
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path, error) => {
                let (path, why) = (path.display(), io_error_text(error));
                write!(
                    f,
                    "certificates by ACME cannot be kept in {path}: {why}; set `state_dir` to a directory \
                     that weir may write to"
                )
            }
            Self::StandIn(why) => write!(f, "no self-signed certificate can be made: {why}"),
        }
    }
}

impl std::error::Error for AcmeError {}

/// The certificates of the configuration in force.
#[derive(Debug)]
pub struct Acme {
    events: Arc<dyn Events>,
    challenges: Arc<Challenges>,
    board: Board,
    arrived: Arc<Notify>,
    running: Option<AuthorityTasks>,
    /// Answers to the challenges of orders that another process has begun, until the tasks begin.
    answers: Mutex<Answers>,
}

/// Answers to challenges, by sorted names.
#[derive(Default)]
struct Answers(BTreeMap<Vec<String>, Vec<PendingChallenge>>);

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answers").field(&self.0.len()).finish()
    }
}

/// The tasks for one authority.
struct AuthorityTasks {
    settings: Arc<Settings>,
    state_dir: PathBuf,
    common: Arc<Common>,
    /// The key is the sorted list of names.
    tasks: BTreeMap<Vec<String>, Task>,
}

impl fmt::Debug for AuthorityTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("names", &self.tasks.keys()).finish_non_exhaustive()
    }
}

/// A running task. It ends on drop.
struct Task {
    shared: Arc<TaskState>,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl Acme {
    /// Without certificates.
    pub fn new(events: Arc<dyn Events>) -> Self {
        Self {
            events,
            challenges: Arc::default(),
            board: Board::default(),
            arrived: Arc::default(),
            running: None,
            answers: Mutex::default(),
        }
    }

    /// The state of all certificates.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Adds the challenges to a snapshot, and the best known certificate to each place.
    pub fn provide(&self, snapshot: &mut Snapshot) -> Result<(), AcmeError> {
        let Some(acme) = &mut snapshot.acme else { return Ok(()) };
        acme.challenges = Some(Arc::clone(&self.challenges));
        let settings = Arc::clone(&acme.authority);
        let store = Store::of(&snapshot.state_dir, &settings.directory);
        let folder = |error| AcmeError::Folder(store.folder().to_owned(), error);
        store.prepare().map_err(folder)?;
        for place in snapshot.managed() {
            let identity = self.known(place, &store, &settings)?;
            place.set(fitted(&identity, place.fetches_ocsp()));
            if self.running.is_none() {
                self.answer_for(sorted(place.names()), &store, &settings);
            }
        }
        Ok(())
    }

    /// Answers the challenges of an order under way before the first request comes: the authority may ask at any time.
    fn answer_for(&self, names: Vec<String>, store: &Store, settings: &Settings) {
        // A damaged file is reported by the task.
        let progress = store.progress(&names).unwrap_or_default();
        let answered = answering_all(&self.challenges, settings.challenge, &progress);
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).0.insert(names, answered);
    }

    /// The best certificate for a place. A valid certificate is preferred to an expired one.
    fn known(
        &self,
        place: &ManagedCertificate,
        store: &Store,
        settings: &Settings,
    ) -> Result<Arc<Identity>, AcmeError> {
        let names = sorted(place.names());
        let now = now_unix_s();
        let is_good = |it: &Arc<Identity>| it.not_after_unix_s > now;
        let task = self.running.as_ref().and_then(|running| running.tasks.get(&names));
        let used = task.and_then(|task| task.shared.current());
        let kept = || match store.certificate(&names, settings.key) {
            Ok(kept) => kept.map(|kept| Arc::new(kept.identity)),
            Err(error) => {
                let folder = store.folder().display();
                let what = format_args!("in {folder} cannot be used: {error}");
                let subject = format!("certificate for {}", names.join(", "));
                self.events.warning(&subject, &what);
                None
            }
        };
        let own = used.filter(is_good).or_else(kept);
        let given = place.given().cloned();
        let nearest = || store.nearest(place.names(), now).map(Arc::new);
        let good = own.clone().filter(is_good).or_else(|| given.clone().filter(is_good));
        if let Some(found) = good.or_else(nearest).or(own).or(given) {
            return Ok(found);
        }
        let made = keys::stand_in(place.names(), SystemTime::now());
        made.map(Arc::new).map_err(AcmeError::StandIn)
    }

    /// Starts and ends tasks as this snapshot, which is in force, requires. `is_reload`: failed orders are tried again.
    pub fn apply(&mut self, snapshot: &Snapshot, is_reload: bool) {
        let Some(acme) = &snapshot.acme else { return self.stop() };
        let settings = &acme.authority;
        let is_same = |running: &AuthorityTasks| {
            running.settings == *settings && running.state_dir == snapshot.state_dir
        };
        if !self.running.as_ref().is_some_and(is_same) {
            self.stop();
            self.running = self.begin(settings, snapshot);
        }
        let Some(running) = &mut self.running else { return };
        let mut wanted: BTreeMap<Vec<String>, Vec<Arc<ManagedCertificate>>> = BTreeMap::new();
        for place in snapshot.managed() {
            let places = wanted.entry(sorted(place.names())).or_default();
            if !places.iter().any(|known| Arc::ptr_eq(known, place)) {
                places.push(Arc::clone(place));
            }
        }
        running.tasks.retain(|names, _| {
            let stays = wanted.contains_key(names);
            if !stays {
                self.board.forget(names);
            }
            stays
        });
        running.prune(wanted.keys().cloned().collect());
        let mut answers =
            std::mem::take(self.answers.get_mut().unwrap_or_else(PoisonError::into_inner));
        for (sorted, places) in wanted {
            let task = match running.tasks.entry(sorted) {
                Entry::Occupied(task) => {
                    let task = task.into_mut();
                    task.shared.show_in(places);
                    task
                }
                Entry::Vacant(free) => {
                    let answers = answers.0.remove(free.key()).unwrap_or_default();
                    let task = task(&running.common, free.key().clone(), places, answers);
                    free.insert(task)
                }
            };
            // Also a task that is made for other settings: these may be what was mended.
            if is_reload {
                task.shared.hurry.notify_one();
            }
        }
    }

    /// Prepares the state that the tasks of one authority share; `None`: an error, which was reported.
    fn begin(&self, settings: &Arc<Settings>, snapshot: &Snapshot) -> Option<AuthorityTasks> {
        let store = Store::of(&snapshot.state_dir, &settings.directory);
        let refused = |reason: &dyn fmt::Display| {
            let what = format_args!("are not ordered: {reason}");
            self.events.error(&SUBJECT, &what);
        };
        let lock = match store.prepare() {
            Ok(file) => Arc::new(OrderLock::new(file)),
            Err(error) => {
                refused(&AcmeError::Folder(store.folder().to_owned(), error));
                return None;
            }
        };
        let authority = Authority::new(settings).map_err(|reason| refused(&reason)).ok()?;
        let orders = Orders {
            settings: Arc::clone(settings),
            store,
            authority,
            challenges: Arc::clone(&self.challenges),
            polls: POLLS,
        };
        let common = Common {
            orders,
            gate: Semaphore::new(ORDERS_AT_ONCE),
            lock,
            board: self.board.clone(),
            events: Arc::clone(&self.events),
            arrived: Arc::clone(&self.arrived),
        };
        Some(AuthorityTasks {
            settings: Arc::clone(settings),
            state_dir: snapshot.state_dir.clone(),
            common: Arc::new(common),
            tasks: BTreeMap::new(),
        })
    }

    /// Leaves orders to another process. Connections that this one has accepted get answers to challenges to the end.
    pub fn hand_over(&mut self) {
        self.challenges.keep();
        self.stop();
    }

    /// Ends all tasks, and releases the lock for another process. Certificates stay in use.
    pub fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.tasks.keys().for_each(|names| self.board.forget(names));
    }

    /// Waits for the next issued certificate.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

impl AuthorityTasks {
    /// Removes, beside the work, kept files that are of no use: those of other names than these that expired long ago.
    fn prune(&self, configured: Vec<Vec<String>>) {
        let common = Arc::clone(&self.common);
        tokio::task::spawn_blocking(move || {
            let store = &common.orders.store;
            let folder = store.folder().display();
            match store.prune(&configured, now_unix_s()) {
                Ok(0) => {}
                Ok(removed) => common.events.info(
                    &SUBJECT,
                    &format_args!(
                        "{removed} expired files of removed names are deleted in {folder}"
                    ),
                ),
                Err(error) => common.events.warning(
                    &SUBJECT,
                    &format_args!("expired files stay in {folder}: {}", io_error_text(&error)),
                ),
            }
        });
    }
}

/// Begins the work for a set of names.
fn task(
    common: &Arc<Common>,
    sorted: Vec<String>,
    places: Vec<Arc<ManagedCertificate>>,
    answers: Vec<PendingChallenge>,
) -> Task {
    let orders = &common.orders;
    // An unreadable certificate was reported before.
    let kept = orders.store.certificate(&sorted, orders.settings.key).ok().flatten();
    let is_due = kept.as_ref().is_some_and(|kept| !kept.is_of_kind);
    let shared = Arc::new(TaskState::new(kept.map(|kept| Arc::new(kept.identity))));
    let names = places.first().map_or_else(Vec::new, |place| place.names().to_vec());
    shared.show_in(places);
    let (common, own) = (Arc::clone(common), Arc::clone(&shared));
    let certificate = Certificate { names, sorted, common, shared: own, is_due, answers };
    Task { shared, handle: tokio::spawn(certificate.run()) }
}

/// Seconds since 1970.
fn now_unix_s() -> i64 {
    i64::try_from(unix_s()).unwrap_or(i64::MAX)
}

/// A number derived from a certificate, which spreads the times of renewals.
fn spread(identity: &Identity) -> u32 {
    let der = identity.certified.cert.first().map_or(&[][..], |certificate| certificate);
    let found = digest(&SHA256, der);
    found.as_ref().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
