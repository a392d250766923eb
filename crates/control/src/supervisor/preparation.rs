//! The preparation of a configuration: reads the files or judges transactions, resolves names, stores versions. It runs
//! alongside other work, because each step may take long.
//!
//! | first step | further steps |
//! |---|---|
//! | reads the files again, with the newest overlay | resolves names, binds new listeners |
//! | judges transactions on top of the newest files | resolves names, binds new listeners, stores versions |
//! | judges a transaction that is only validated | binds new listeners and releases them |

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use weir_config::snapshot::Snapshot;
use weir_config::{Config, Diagnostic, Severity};

use super::members::{self, OtherMembers};
use super::{Supervisor, defect};
use crate::last_members::LeftAlone;
use crate::logs::Logs;
use crate::overlay::judge::{AcceptedVersions, BatchResult, Configuration, check, judge_members};
use crate::{names, own_keys};

/// The current step of a preparation.
pub(super) enum PreparationStep {
    /// Reads and checks the files.
    Files(Task<LoadedConfiguration>),
    /// Judges the transactions with these numbers.
    Transactions(Vec<u64>, Task<Option<BatchResult>>),
    /// Resolves names.
    Names(Box<Candidate>, Task<()>),
    /// Stores versions.
    Versions(Box<VersionsInStoring>, Task<Result<(), String>>),
}

/// A configuration to prepare.
pub(super) struct Candidate {
    configuration: Arc<Configuration>,
    /// The versions, if the configuration comes from transactions.
    accepted: Option<AcceptedVersions>,
}

/// A configuration and its versions, which are being stored.
pub(super) struct VersionsInStoring {
    configuration: Arc<Configuration>,
    of: PreparedSnapshot,
    /// The first of the versions.
    first_version: u64,
}

/// The snapshot of a configuration whose versions are being stored.
enum PreparedSnapshot {
    /// It needs everything to be built anew.
    Whole(Box<Snapshot>),
    /// It changes members alone.
    Members(Box<OtherMembers>),
}

pub(super) type LoadedConfiguration = Result<Arc<Configuration>, Vec<Diagnostic>>;

type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// The result of a step.
pub(super) enum StepResult {
    /// The files were read, or have errors.
    Files(LoadedConfiguration),
    /// Transactions were judged; `None`: an internal error.
    Transactions(Option<BatchResult>),
    /// The names were resolved, or the timeout has passed.
    Names,
    /// The versions were stored, or the error.
    Versions(Result<(), String>),
}

impl PreparationStep {
    /// Returns the result of the current step; waits forever if there is no step. Dropping the future loses nothing.
    pub(super) async fn step(reading: &mut Option<Self>) -> StepResult {
        match reading {
            None => std::future::pending().await,
            Some(Self::Files(task)) => StepResult::Files(task.await),
            Some(Self::Transactions(_, task)) => StepResult::Transactions(task.await),
            Some(Self::Names(_, task)) => {
                task.await;
                StepResult::Names
            }
            Some(Self::Versions(_, task)) => StepResult::Versions(task.await),
        }
    }

    /// The configuration whose names must be resolved.
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
        // A rotated log file is closed even if the new configuration has errors.
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
        let (file, observed) = (self.file.clone(), Arc::clone(&self.observed));
        self.reading = Some(PreparationStep::Files(Box::pin(async move {
            let (configuration, diagnostics) = task.await.map_err(|it| defect(&file, &it))?;
            match configuration {
                Some(configuration) => {
                    events.report(&diagnostics);
                    observed.reloads.warn(&diagnostics);
                    Ok(Arc::new(configuration))
                }
                None => Err(diagnostics),
            }
        })));
    }

    /// Begins to judge the waiting transactions.
    pub(super) fn begin_transactions(&mut self) {
        let changes = Arc::clone(&self.observed.changes);
        let batch = changes.next_batch();
        if batch.is_empty() {
            return;
        }
        let numbers = batch.iter().map(|pending| pending.number).collect();
        let (file, newest) = (self.file.clone(), Arc::clone(self.newest()));
        // Few changes of members alone take less time than another thread needs to begin.
        let quickly = AssertUnwindSafe(|| judge_members(&changes, &file, &newest, batch));
        let task: Task<Option<BatchResult>> = match catch_unwind(quickly) {
            Ok(Ok(result)) => Box::pin(ready(Some(result))),
            Ok(Err(batch)) => {
                let changes = Arc::clone(&changes);
                let task =
                    tokio::task::spawn_blocking(move || changes.judge(&file, &newest, batch));
                Box::pin(async move { task.await.ok() })
            }
            Err(_) => Box::pin(ready(None)),
        };
        self.reading = Some(PreparationStep::Transactions(numbers, task));
    }

    /// Reads the files again and prepares the configuration. If that is impossible, reports the reason and changes nothing.
    /// Returns whether the configuration is prepared.
    pub(super) async fn read_again(&mut self) -> bool {
        self.begin_reading();
        while self.reading.is_some() {
            let read = PreparationStep::step(&mut self.reading).await;
            if let Some(is_prepared) = self.take_read(read) {
                return is_prepared;
            }
        }
        false
    }

    /// Continues after a step. Returns whether the configuration is prepared; `None`: another step is in progress.
    pub(super) fn take_read(&mut self, read: StepResult) -> Option<bool> {
        let reading = self.reading.take();
        if let Some(untold) = self.observed.changes.untold() {
            self.events.error("configuration", format_args!("{untold}"));
        }
        match (read, reading) {
            (StepResult::Files(Ok(configuration)), _) => {
                self.ask_for_names(Candidate { configuration, accepted: None });
                None
            }
            (StepResult::Files(Err(diagnostics)), _) => {
                self.events.report(&diagnostics);
                let reason = refusal(&self.file, &diagnostics);
                Some(self.refuse(reason, &diagnostics))
            }
            (StepResult::Transactions(Some(BatchResult::Accepted(configuration, accepted))), _) => {
                let accepted = *accepted;
                if let Some(found) = members::of(&configuration, self) {
                    let left_alone = members::left_alone(&found, self);
                    let members = PreparedSnapshot::Members(Box::new(found));
                    self.reading = store(self, (configuration, members), accepted, left_alone);
                    return self.reading.is_none().then_some(false);
                }
                let accepted = Some(accepted);
                self.ask_for_names(Candidate { configuration, accepted });
                None
            }
            (StepResult::Transactions(Some(BatchResult::Trial(trial))), _) => {
                let tried = bound(&trial.configuration, self);
                unbind(self);
                let tried = tried.map(|after| left_alone(&after, self));
                trial.end(&self.observed.changes, tried);
                Some(false)
            }
            (StepResult::Transactions(Some(BatchResult::Nothing)), _) => Some(false),
            (StepResult::Transactions(None), Some(PreparationStep::Transactions(numbers, _))) => {
                for number in numbers {
                    let reason = "weir failed to judge it, which is a defect of weir".to_owned();
                    self.observed.changes.refuse(number, reason, Vec::new());
                }
                Some(false)
            }
            (StepResult::Names, Some(PreparationStep::Names(candidate, _))) => {
                candidate.prepare(self)
            }
            (StepResult::Versions(Ok(())), Some(PreparationStep::Versions(stored, _))) => {
                Some(stored.prepare(self))
            }
            (StepResult::Versions(Err(_)), _) => {
                let_go(self);
                Some(false)
            }
            _ => Some(false),
        }
    }

    fn ask_for_names(&mut self, candidate: Candidate) {
        // Names of all configurations are followed until it is known which configuration stays.
        let config = &candidate.configuration.config;
        let waiting = self.next.as_ref().and_then(|next| next.configurations.newest());
        let configs =
            [Some(&self.configuration.config), Some(config), waiting.map(|it| &it.config)];
        let names = configs.into_iter().flatten().flat_map(Config::host_names);
        let answers = self.names.begin(names.map(str::to_owned).collect());
        // Programs are loaded in the meantime.
        let opened = self.packets.begin(&config.snapshot(&self.names.resolutions()));
        let both = async move {
            answers.await;
            if let Some(opened) = opened {
                // A failure is ignored: the packet path is requested again later.
                let _ = opened.await;
            }
        };
        self.reading = Some(PreparationStep::Names(Box::new(candidate), Box::pin(both)));
    }
}

/// Why files with errors are refused: the place of the first one. Everyone may read this, but messages quote values, so they
/// are only in the diagnostics.
fn refusal(main: &Path, diagnostics: &[Diagnostic]) -> String {
    let errors = || diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let Some(first) = errors().next() else { return format!("{} has errors", main.display()) };
    let place = first.place();
    match errors().count() - 1 {
        0 => format!("{place} has an error, which `weir check` shows"),
        more => format!("{place} has an error; `weir check` shows {more} more"),
    }
}

impl Candidate {
    /// Prepares the configuration, or begins to store its versions. Returns whether it is prepared; `None`: another
    /// step is in progress.
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
        let left_alone = left_alone(&snapshot, at);
        let whole = PreparedSnapshot::Whole(Box::new(snapshot));
        at.reading = store(at, (configuration, whole), accepted, left_alone);
        if at.reading.is_none() {
            let_go(at);
            return Some(false);
        }
        None
    }
}

/// Begins to store the versions of a configuration; `None`: it takes the last member of a pool, and must not.
fn store(
    at: &Supervisor,
    (configuration, of): (Arc<Configuration>, PreparedSnapshot),
    accepted: AcceptedVersions,
    left_alone: Option<LeftAlone>,
) -> Option<PreparationStep> {
    let accepted = match left_alone {
        None => accepted,
        Some(pools) => accepted.checked(&at.observed.changes, &pools)?,
    };
    let told: Vec<String> = accepted.told().map(|told| format!("gets version {told}")).collect();
    let (changes, events) = (Arc::clone(&at.observed.changes), at.events.clone());
    let first_version = accepted.first_version();
    let task = tokio::task::spawn_blocking(move || changes.keep(accepted));
    let task = Box::pin(async move {
        let kept = task.await.unwrap_or_else(|error| Err(error.to_string()));
        match &kept {
            Ok(()) => events.info_each(&"configuration", &told),
            Err(reason) => {
                events.error("configuration", format_args!("was not changed: {reason}"));
            }
        }
        kept
    });
    let stored = VersionsInStoring { configuration, of, first_version };
    Some(PreparationStep::Versions(Box::new(stored), task))
}

impl VersionsInStoring {
    /// Prepares the configuration. If this fails although the previous check succeeded, the previous version is restored.
    fn prepare(self, at: &mut Supervisor) -> bool {
        let Self { configuration, of, first_version } = self;
        let version = configuration.version;
        let prepared = match of {
            PreparedSnapshot::Whole(snapshot) => Ok(*snapshot),
            PreparedSnapshot::Members(found) => {
                // Names may have other addresses since then.
                let found = match found.are_for(at) {
                    true => Some(*found),
                    false => members::of(&configuration, at),
                };
                if let Some(found) = found {
                    at.prepare_members(found, Some(configuration));
                    return true;
                }
                bound(&configuration, at)
            }
        };
        let prepared = prepared.and_then(|snapshot| {
            let prepared = at.prepare_next(snapshot, Some(configuration));
            prepared.map_err(|error| error.to_string())
        });
        let Err(error) = prepared else { return true };
        let_go(at);
        let changes = &at.observed.changes;
        changes.refuse_from(first_version, &error);
        changes.take_back(version, first_version - 1, format!("could not be prepared: {error}"));
        at.events.error("configuration", format_args!("stays as it was: {error}"));
        false
    }
}

/// The pools that lose their last member for new requests with this configuration.
fn left_alone(after: &Snapshot, at: &Supervisor) -> Option<LeftAlone> {
    let waiting = at.next.as_ref().map(|next| &*next.snapshot);
    LeftAlone::by(after, waiting, &at.table)
}

/// Checks that the logs of a configuration can be opened and its listeners can be bound. Returns its snapshot.
fn bound(configuration: &Configuration, at: &mut Supervisor) -> Result<Snapshot, String> {
    let resolutions = at.names.resolutions();
    names::tell_of_own_doors(&configuration.config, &resolutions, &at.events);
    let mut snapshot = configuration.config.snapshot(&resolutions);
    Logs::check(&snapshot.log, &at.table.snapshot.log).map_err(|it| it.to_string())?;
    own_keys::provide(&mut snapshot).map_err(|it| it.to_string())?;
    at.acme.provide(&mut snapshot).map_err(|it| it.to_string())?;
    at.upgrading.provide_keys(&mut snapshot);
    at.data_plane.prepare(&snapshot).map_err(|it| it.to_string())?;
    Ok(snapshot)
}

/// Releases listeners that were bound for a configuration that was not prepared.
fn unbind(at: &mut Supervisor) {
    let waiting = at.next.as_ref().map(|next| Arc::clone(&next.snapshot));
    // The listeners of a waiting configuration stay bound.
    if waiting.is_none_or(|waiting| at.data_plane.prepare(&waiting).is_err()) {
        at.data_plane.abandon();
    }
}

/// Releases the resources of transactions that are not prepared.
fn let_go(at: &mut Supervisor) {
    at.retain_names();
    at.packets.restore();
    unbind(at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_first_place_and_no_value() {
        let finding = |severity| Diagnostic {
            position: Some(weir_config::Position { line: 3, column: 5 }),
            ..Diagnostic::of_file(severity, "no pool `secret`", "weir.yaml")
        };
        let check = |severities: &[Severity], expected| {
            let found: Vec<_> = severities.iter().copied().map(finding).collect();
            assert_eq!(refusal(Path::new("weir.yaml"), &found), expected);
        };
        let (error, warning) = (Severity::Error, Severity::Warning);
        check(&[warning, error], "weir.yaml:3:5 has an error, which `weir check` shows");
        check(&[error, error, error], "weir.yaml:3:5 has an error; `weir check` shows 2 more");
        check(&[], "weir.yaml has errors");
    }
}
