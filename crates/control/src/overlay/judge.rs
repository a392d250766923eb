//! Requests are judged one after the other: each against what those before it have made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_config::overlay::Overlay;
use weir_config::parts::Change;
use weir_config::{Config, Diagnostic, Files, Severity};

use super::changes::{Asked, Changes, NOT_CONFIRMED, Pending, Transaction};
use super::history::{History, OWN_AUTHOR, Version, Wanted};
use super::journal::{Entry, Journal, JournalError};
use crate::packets;
use crate::time::unix_ms;

/// Requests that were judged within this time are put in force; the others come next.
const BATCH_TIME_MAX: Duration = Duration::from_secs(1);

/// A checked configuration, and what it was made from.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub config: Config,
    pub files: Arc<Files>,
    /// The version of the overlay.
    pub version: u64,
}

/// Versions that were judged to be possible, and are not stored yet.
#[derive(Debug)]
pub(crate) struct Accepted {
    entries: Vec<Entry>,
    history: History,
    verdicts: Vec<Verdict>,
}

/// An accepted request, and the version that it made.
#[derive(Debug)]
struct Verdict {
    pending: Pending,
    version: u64,
    changes: Vec<Change>,
    warnings: Vec<Diagnostic>,
}

/// What came of a batch.
#[derive(Debug)]
pub(crate) enum Judged {
    /// Nothing is to be put in force.
    Nothing,
    /// A transaction that is only tried.
    Trial(Box<Trial>),
    /// Versions that are to be stored and put in force.
    Accepted(Arc<Configuration>, Accepted),
}

/// A transaction that is only tried, and its configuration without mistakes.
#[derive(Debug)]
pub(crate) struct Trial {
    number: u64,
    pub configuration: Configuration,
    changes: Vec<Change>,
    warnings: Vec<Diagnostic>,
}

/// Files with an overlay, checked; and all findings.
pub(crate) fn check(
    main: &Path,
    files: Arc<Files>,
    (overlay, version): (&Overlay, u64),
) -> (Option<Configuration>, Vec<Diagnostic>) {
    let loaded = files.check(overlay);
    let mut diagnostics = loaded.diagnostics;
    let config = loaded.config.filter(|config| match packets::check(config, main) {
        Some(wrong) => {
            diagnostics.push(wrong);
            false
        }
        None => true,
    });
    (config.map(|config| Configuration { config, files, version }), diagnostics)
}

impl Changes {
    /// Reads the versions in this folder.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, JournalError> {
        let (journal, history) = Journal::open(state_dir)?;
        Ok(Self::new(journal, history))
    }

    /// Takes back a version whose time for a confirmation is over.
    pub(crate) fn take_back_overdue(&self) -> Result<(), JournalError> {
        let mut history = History::clone(&self.history());
        let overdue = history.unconfirmed().filter(|it| it.until_unix_ms <= unix_ms());
        let before = overdue.map(|it| it.version - 1);
        let Some((before, overlay)) = before.and_then(|it| Some((it, history.overlay_after(it)?)))
        else {
            return Ok(());
        };
        let wanted = Wanted::RollBackTo(before);
        let version = own_version(&history, &overlay, wanted, NOT_CONFIRMED);
        // It is the next, so it fits.
        let _ = history.push(Arc::clone(&version));
        let number = version.number;
        self.store(&[Entry::Version(version)], history)?;
        self.put_in_force(number);
        Ok(())
    }

    /// Judges a batch, on top of the newest files. What is refused is reported.
    pub(crate) fn judge(
        &self,
        main: &Path,
        newest: &Arc<Configuration>,
        batch: Vec<Pending>,
    ) -> Judged {
        let begin = Instant::now();
        let mut judge = Judge::new(self, main, newest);
        let mut rest = batch.into_iter();
        for pending in rest.by_ref() {
            match &pending.asked {
                Asked::Confirm { version, author } => {
                    confirm(self, pending.number, *version, author);
                    return Judged::Nothing;
                }
                Asked::Transaction(transaction) if transaction.dry_run => {
                    return judge.trial(pending.number, transaction);
                }
                Asked::Transaction(_) | Asked::TakeBack { .. } => judge.request(pending),
            }
            if begin.elapsed() >= BATCH_TIME_MAX {
                break;
            }
        }
        let rest: Vec<Pending> = rest.collect();
        if !rest.is_empty() {
            self.put_back(rest);
        }
        match judge.last {
            Some(last) => Judged::Accepted(last, judge.accepted),
            None => Judged::Nothing,
        }
    }

    /// Stores what was accepted. For threads that may wait for a disk.
    pub(crate) fn keep(&self, accepted: Accepted) -> Result<(), String> {
        let Accepted { entries, history, verdicts } = accepted;
        match self.store(&entries, history).map_err(|error| error.to_string()) {
            Ok(()) => {
                for it in verdicts {
                    self.accepted(it.pending.number, it.version, &it.changes, it.warnings);
                }
                Ok(())
            }
            Err(reason) => {
                for it in verdicts {
                    self.refuse(it.pending.number, reason.clone(), Vec::new());
                }
                Err(reason)
            }
        }
    }

    /// What was accepted cannot be prepared. Of several requests each is tried by itself: one of them is to blame.
    pub(crate) fn refuse_accepted(&self, accepted: Accepted, reason: &str) {
        let pending: Vec<Pending> = accepted.verdicts.into_iter().map(|it| it.pending).collect();
        match &pending[..] {
            [only] => self.refuse(only.number, reason.to_owned(), Vec::new()),
            _ => self.put_back_one_by_one(pending),
        }
    }
}

impl Trial {
    /// Reports that it is possible; or why it cannot be prepared.
    pub(crate) fn end(self, changes: &Changes, result: Result<(), String>) {
        match result {
            Ok(()) => changes.finish(self.number, None, &self.changes, self.warnings),
            Err(reason) => changes.refuse(self.number, reason, Vec::new()),
        }
    }
}

impl Accepted {
    /// The first of its versions.
    pub fn first_version(&self) -> u64 {
        self.verdicts.first().map_or(0, |it| it.version)
    }

    /// Versions as an event names them.
    pub fn told(&self) -> impl Iterator<Item = String> {
        let versions = self.entries.iter().filter_map(|entry| match entry {
            Entry::Version(version) => Some(version),
            _ => None,
        });
        versions.map(|it| match &*it.comment {
            "" => format!("{} by {}", it.number, it.author),
            comment => format!("{} by {}: {comment}", it.number, it.author),
        })
    }
}

/// One batch under judgement.
struct Judge<'a> {
    changes: &'a Changes,
    main: PathBuf,
    newest: Arc<Configuration>,
    last: Option<Arc<Configuration>>,
    accepted: Accepted,
}

/// A version, its configuration, and warnings of it.
type Made = (Arc<Version>, Configuration, Vec<Diagnostic>);

/// Why a request is refused, and what is wrong in it.
type Refused = (String, Vec<Diagnostic>);

impl<'a> Judge<'a> {
    fn new(changes: &'a Changes, main: &Path, newest: &Arc<Configuration>) -> Self {
        let history = History::clone(&changes.history());
        let accepted = Accepted { entries: Vec::new(), history, verdicts: Vec::new() };
        let (main, newest) = (main.to_owned(), Arc::clone(newest));
        Self { changes, main, newest, last: None, accepted }
    }

    fn history(&self) -> &History {
        &self.accepted.history
    }

    /// The configuration with a transaction, and its warnings.
    fn configuration(
        &self,
        transaction: &Transaction,
    ) -> Result<(Overlay, Configuration, Vec<Diagnostic>), Refused> {
        let newest = self.history().version();
        if let Some(expected) = transaction.expected_version.filter(|it| *it != newest) {
            let reason = format!(
                "the newest version is {newest}, not {expected}: look at what has changed, and ask again"
            );
            return Err((reason, Vec::new()));
        }
        if let Some(unconfirmed) = self.history().unconfirmed()
            && matches!(transaction.wanted, Wanted::Changes(_))
        {
            let version = unconfirmed.version;
            let reason = format!(
                "version {version} waits for its confirmation: confirm it, or roll back to version {}",
                version - 1
            );
            return Err((reason, Vec::new()));
        }
        let overlay = match &transaction.wanted {
            Wanted::Changes(changes) => {
                let overlay = self.newest.files.compose(self.history().overlay(), changes);
                overlay.map_err(|wrong| ("changes are not possible".to_owned(), wrong))?
            }
            Wanted::RollBackTo(version) => self.overlay_after(*version)?,
        };
        let (configuration, warnings) = self.check(&overlay)?;
        Ok((overlay, configuration, warnings))
    }

    fn overlay_after(&self, version: u64) -> Result<Overlay, Refused> {
        self.history().overlay_after(version).ok_or_else(|| {
            let (oldest, newest) = (self.history().oldest(), self.history().version());
            let zero = if oldest == 0 { "" } else { "0 and " };
            let kept = format!("there are versions {zero}{oldest} to {newest}");
            (format!("version {version} is not kept: {kept}"), Vec::new())
        })
    }

    fn check(&self, overlay: &Overlay) -> Result<(Configuration, Vec<Diagnostic>), Refused> {
        let version = self.history().version() + 1;
        let files = Arc::clone(&self.newest.files);
        match check(&self.main, files, (overlay, version)) {
            (Some(configuration), diagnostics) => {
                let of_overlay = diagnostics.into_iter().filter(|it| it.pointer.is_some());
                Ok((configuration, of_overlay.collect()))
            }
            (None, mut diagnostics) => {
                diagnostics.retain(|it| it.severity == Severity::Error);
                Err(("the configuration would have errors".to_owned(), diagnostics))
            }
        }
    }

    fn trial(&self, number: u64, transaction: &Transaction) -> Judged {
        match self.configuration(transaction) {
            Ok((_, configuration, warnings)) => {
                let changes = configuration.config.changes_from(&self.newest.config);
                Judged::Trial(Box::new(Trial { number, configuration, changes, warnings }))
            }
            Err((reason, diagnostics)) => {
                self.changes.refuse(number, reason, diagnostics);
                Judged::Nothing
            }
        }
    }

    /// A request that makes a version, or is refused.
    fn request(&mut self, pending: Pending) {
        let judged = match &pending.asked {
            Asked::Transaction(transaction) => self.transaction(transaction),
            Asked::TakeBack { version, to, comment } => self.taken_back(*version, *to, comment),
            Asked::Confirm { .. } => return,
        };
        match judged {
            Ok((version, configuration, warnings)) => {
                self.accept(pending, version, configuration, warnings);
            }
            Err((reason, diagnostics)) => {
                if let Asked::TakeBack { version, to, .. } = &pending.asked {
                    self.changes.tell(format!(
                        "cannot return from version {version} to version {to}: {reason}: roll back to another one"
                    ));
                }
                self.changes.refuse(pending.number, reason, diagnostics);
            }
        }
    }

    fn transaction(&self, transaction: &Transaction) -> Result<Made, Refused> {
        let (overlay, configuration, warnings) = self.configuration(transaction)?;
        let now = unix_ms();
        let version = Version {
            number: configuration.version,
            unix_ms: now,
            author: transaction.author.clone(),
            comment: transaction.comment.clone(),
            wanted: transaction.wanted.clone(),
            confirm_until_unix_ms: transaction
                .confirm_within_s
                .map(|seconds| now.saturating_add(seconds.saturating_mul(1_000))),
            delta: self.history().overlay().delta(&overlay),
        };
        Ok((Arc::new(version), configuration, warnings))
    }

    /// An earlier version returns in place of this one.
    fn taken_back(&self, version: u64, to: u64, comment: &str) -> Result<Made, Refused> {
        if self.history().version() != version {
            return Err((format!("version {version} is not the newest any more"), Vec::new()));
        }
        let overlay = self.overlay_after(to)?;
        let (configuration, warnings) = self.check(&overlay)?;
        let wanted = Wanted::RollBackTo(to);
        Ok((own_version(self.history(), &overlay, wanted, comment), configuration, warnings))
    }

    fn accept(
        &mut self,
        pending: Pending,
        version: Arc<Version>,
        configuration: Configuration,
        warnings: Vec<Diagnostic>,
    ) {
        let before = self.last.as_ref().unwrap_or(&self.newest);
        let changes = configuration.config.changes_from(&before.config);
        if self.accepted.history.push(Arc::clone(&version)).is_err() {
            let reason = "its version does not come next, which is a defect of weir".to_owned();
            return self.changes.refuse(pending.number, reason, Vec::new());
        }
        let verdict = Verdict { pending, version: version.number, changes, warnings };
        self.accepted.verdicts.push(verdict);
        self.accepted.entries.push(Entry::Version(version));
        self.last = Some(Arc::new(configuration));
    }
}

/// A version stays.
fn confirm(changes: &Changes, number: u64, version: u64, author: &str) {
    let history = changes.history();
    if history.unconfirmed().is_none_or(|it| it.version != version) {
        let reason = format!("version {version} does not wait for a confirmation");
        return changes.refuse(number, reason, Vec::new());
    }
    let mut history = History::clone(&history);
    history.confirm(version);
    let entry = Entry::Confirmed { version, author: author.to_owned(), unix_ms: unix_ms() };
    match changes.store(&[entry], history) {
        Ok(()) => changes.finish(number, Some(version), &[], Vec::new()),
        Err(error) => changes.refuse(number, error.to_string(), Vec::new()),
    }
}

/// A version that weir makes by itself.
fn own_version(
    history: &History,
    overlay: &Overlay,
    wanted: Wanted,
    comment: &str,
) -> Arc<Version> {
    Arc::new(Version {
        number: history.version() + 1,
        unix_ms: unix_ms(),
        author: OWN_AUTHOR.to_owned(),
        comment: comment.to_owned(),
        wanted,
        confirm_until_unix_ms: None,
        delta: history.overlay().delta(overlay),
    })
}
