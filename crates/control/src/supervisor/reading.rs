//! A configuration on its way: read or judged, its names resolved, its versions stored. Beside everything else, since each
//! may take long.
//!
//! | begins with | then |
//! |---|---|
//! | the files, read again under the newest overlay | names, what is new is bound |
//! | transactions, judged on top of the newest files | names, what is new is bound, versions are stored |
//! | a transaction that is only tried | what is new is bound, and let go |

use std::pin::Pin;
use std::sync::Arc;

use weir_config::snapshot::Snapshot;
use weir_config::{Config, Diagnostic};

use super::{Supervisor, defect};
use crate::logs::Logs;
use crate::overlay::judge::{Accepted, Configuration, Judged, check};
use crate::own_keys;

/// How far it is.
pub(super) enum Reading {
    /// The files are read and checked.
    Files(Task<Loaded>),
    /// Transactions with these numbers are judged.
    Transactions(Vec<u64>, Task<Option<Judged>>),
    /// Its names are being resolved.
    Names(Box<Candidate>, Task<()>),
    /// Its versions are being stored.
    Versions(Box<Stored>, Task<Result<(), String>>),
}

/// A configuration that is to be prepared.
pub(super) struct Candidate {
    configuration: Arc<Configuration>,
    /// Its versions, if it is of transactions.
    accepted: Option<Accepted>,
}

/// A configuration whose versions are being stored.
pub(super) struct Stored {
    configuration: Arc<Configuration>,
    snapshot: Snapshot,
    /// The first of its versions.
    first_version: u64,
}

pub(super) type Loaded = Result<Arc<Configuration>, Vec<Diagnostic>>;

type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// A step that has ended.
pub(super) enum Read {
    /// The files are read, or have errors.
    Files(Loaded),
    /// Transactions are judged; `None`: that failed.
    Transactions(Option<Judged>),
    /// Its names have answers, or their time is over.
    Names,
    /// Its versions are stored, or cannot be.
    Versions(Result<(), String>),
}

impl Reading {
    /// Returns when one of its parts has ended; never, if nothing is read. Nothing is lost when it is dropped.
    pub(super) async fn step(reading: &mut Option<Self>) -> Read {
        match reading {
            None => std::future::pending().await,
            Some(Self::Files(task)) => Read::Files(task.await),
            Some(Self::Transactions(_, task)) => Read::Transactions(task.await),
            Some(Self::Names(_, task)) => {
                task.await;
                Read::Names
            }
            Some(Self::Versions(_, task)) => Read::Versions(task.await),
        }
    }

    /// The configuration whose names are needed.
    pub(super) fn config(&self) -> Option<&Config> {
        match self {
            Self::Files(_) | Self::Transactions(..) => None,
            Self::Names(candidate, _) => Some(&candidate.configuration.config),
            Self::Versions(stored, _) => Some(&stored.configuration.config),
        }
    }
}

impl Supervisor {
    /// Begins to read the files again.
    pub(super) fn begin_reading(&mut self) {
        // A log file that was rotated is let go even when the configuration is bad.
        self.logs.reopen(&self.table.snapshot.log);
        self.observed.reloads.begin();
        self.manager.begin_reload();
        let (file, events) = (self.file.clone(), self.events.clone());
        let history = self.observed.changes.history();
        let before = Arc::clone(&self.configuration.files);
        let read = move || {
            let files = Arc::new(before.read_again(&file));
            check(&file, files, (history.overlay(), history.version()))
        };
        let task = tokio::task::spawn_blocking(read);
        let file = self.file.clone();
        self.reading = Some(Reading::Files(Box::pin(async move {
            let (configuration, diagnostics) = task.await.map_err(|it| defect(&file, &it))?;
            match configuration {
                Some(configuration) => {
                    events.report(&diagnostics);
                    Ok(Arc::new(configuration))
                }
                None => Err(diagnostics),
            }
        })));
    }

    /// Begins with the transactions that wait.
    pub(super) fn begin_transactions(&mut self) {
        let changes = Arc::clone(&self.observed.changes);
        let batch = changes.next_batch();
        if batch.is_empty() {
            return;
        }
        let numbers = batch.iter().map(|pending| pending.number).collect();
        let (file, newest) = (self.file.clone(), Arc::clone(self.newest()));
        let task = tokio::task::spawn_blocking(move || changes.judge(&file, &newest, batch));
        let task = Box::pin(async move { task.await.ok() });
        self.reading = Some(Reading::Transactions(numbers, task));
    }

    /// Reads the files again and prepares them, or reports the reason and changes nothing. Returns whether they are prepared.
    pub(super) async fn read_again(&mut self) -> bool {
        self.begin_reading();
        while self.reading.is_some() {
            let read = Reading::step(&mut self.reading).await;
            if let Some(is_prepared) = self.take_read(read) {
                return is_prepared;
            }
        }
        false
    }

    /// Continues with a step that has ended. Returns whether it is prepared; `None`: something is still under way.
    pub(super) fn take_read(&mut self, read: Read) -> Option<bool> {
        let reading = self.reading.take();
        if let Some(untold) = self.observed.changes.untold() {
            self.events.error("configuration", format_args!("{untold}"));
        }
        match (read, reading) {
            (Read::Files(Ok(configuration)), _) => {
                self.ask_for_names(Candidate { configuration, accepted: None });
                None
            }
            (Read::Files(Err(diagnostics)), _) => {
                self.events.report(&diagnostics);
                let reason = format!("{} has errors", self.file.display());
                Some(self.refuse(reason, &diagnostics))
            }
            (Read::Transactions(Some(Judged::Accepted(configuration, accepted))), _) => {
                let accepted = Some(accepted);
                self.ask_for_names(Candidate { configuration, accepted });
                None
            }
            (Read::Transactions(Some(Judged::Trial(trial))), _) => {
                let tried = bound(&trial.configuration, self).map(drop);
                unbind(self);
                trial.end(&self.observed.changes, tried);
                Some(false)
            }
            (Read::Transactions(Some(Judged::Nothing)), _) => Some(false),
            (Read::Transactions(None), Some(Reading::Transactions(numbers, _))) => {
                for number in numbers {
                    let reason = "weir failed to judge it, which is a defect of weir".to_owned();
                    self.observed.changes.refuse(number, reason, Vec::new());
                }
                Some(false)
            }
            (Read::Names, Some(Reading::Names(candidate, _))) => candidate.prepare(self),
            (Read::Versions(Ok(())), Some(Reading::Versions(stored, _))) => {
                Some(stored.prepare(self))
            }
            (Read::Versions(Err(_)), _) => {
                let_go(self);
                Some(false)
            }
            _ => Some(false),
        }
    }

    fn ask_for_names(&mut self, candidate: Candidate) {
        // Names of all configurations are followed until it is clear which one stays.
        let config = &candidate.configuration.config;
        let waiting = self.next.as_ref().and_then(|next| next.configuration.as_ref());
        let configs =
            [Some(&self.configuration.config), Some(config), waiting.map(|it| &it.config)];
        let names = configs.into_iter().flatten().flat_map(Config::host_names);
        let answers = self.names.begin(names.map(str::to_owned).collect());
        // Programs are loaded meanwhile.
        let opened = self.packets.begin(&config.snapshot(&self.names.resolutions()));
        let both = async move {
            answers.await;
            if let Some(opened) = opened {
                // In any case it is requested again.
                let _ = opened.await;
            }
        };
        self.reading = Some(Reading::Names(Box::new(candidate), Box::pin(both)));
    }
}

impl Candidate {
    /// Prepares it, or begins to store its versions. Whether it is prepared; `None`: something is still under way.
    fn prepare(self, at: &mut Supervisor) -> Option<bool> {
        let Self { configuration, accepted } = self;
        let snapshot = match (bound(&configuration, at), accepted.is_some()) {
            (Ok(snapshot), _) => snapshot,
            (Err(reason), false) => return Some(at.refuse(reason, &[])),
            (Err(reason), true) => {
                let_go(at);
                at.observed.changes.refuse_accepted(accepted?, &reason);
                return Some(false);
            }
        };
        let Some(accepted) = accepted else {
            return Some(match at.prepare_next(snapshot, Some(configuration)) {
                Ok(()) => {
                    at.observed.reloads.prepared();
                    true
                }
                Err(error) => at.refuse(error, &[]),
            });
        };
        let told: Vec<String> = accepted.told().collect();
        let (changes, events) = (Arc::clone(&at.observed.changes), at.events.clone());
        let first_version = accepted.first_version();
        let task = tokio::task::spawn_blocking(move || changes.keep(accepted));
        let task = Box::pin(async move {
            let kept = task.await.unwrap_or_else(|error| Err(error.to_string()));
            match &kept {
                Ok(()) => told.iter().for_each(|told| {
                    events.info("configuration", format_args!("gets version {told}"));
                }),
                Err(reason) => {
                    events.error("configuration", format_args!("was not changed: {reason}"));
                }
            }
            kept
        });
        let stored = Stored { configuration, snapshot, first_version };
        at.reading = Some(Reading::Versions(Box::new(stored), task));
        None
    }
}

impl Stored {
    /// Prepares it. Should that fail, though it did not a moment ago, the version before its own returns.
    fn prepare(self, at: &mut Supervisor) -> bool {
        let Self { configuration, snapshot, first_version } = self;
        let version = configuration.version;
        let Err(error) = at.prepare_next(snapshot, Some(configuration)) else { return true };
        let_go(at);
        let changes = &at.observed.changes;
        changes.refuse_from(first_version, &error.to_string());
        changes.take_back(version, first_version - 1, format!("could not be prepared: {error}"));
        at.events.error("configuration", format_args!("stays as it was: {error}"));
        false
    }
}

/// The snapshot of a configuration that can be put in force: its log can be opened, and its listeners are bound.
fn bound(configuration: &Configuration, at: &mut Supervisor) -> Result<Snapshot, String> {
    let mut snapshot = configuration.config.snapshot(&at.names.resolutions());
    Logs::check(&snapshot.log, &at.table.snapshot.log).map_err(|it| it.to_string())?;
    own_keys::provide(&mut snapshot).map_err(|it| it.to_string())?;
    at.upgrading.provide_keys(&mut snapshot);
    at.data_plane.prepare(&snapshot).map_err(|it| it.to_string())?;
    Ok(snapshot)
}

/// Lets go what was bound for a configuration that is not prepared after all.
fn unbind(at: &mut Supervisor) {
    let waiting = at.next.as_ref().map(|next| Arc::clone(&next.snapshot));
    // What waits is bound already, and stays so.
    if waiting.is_none_or(|waiting| at.data_plane.prepare(&waiting).is_err()) {
        at.data_plane.abandon();
    }
}

/// Lets go everything of transactions that are not prepared after all.
fn let_go(at: &mut Supervisor) {
    at.retain_names();
    at.packets.restore();
    unbind(at);
}
