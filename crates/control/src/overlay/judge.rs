//! Checks queued requests in order, each on top of the accepted ones before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_config::parts::Change;
use weir_config::{Config, Diagnostic, Severity};
use weir_sources::overlay::{self, Conflict, Overlay};
use weir_sources::{Files, Sources};

use super::changes::{Changes, NOT_CONFIRMED, PendingRequest, QueuedRequest, Transaction};
use super::history::{History, OWN_AUTHOR, RequestedChanges, Version};
use super::journal::{Entry, Journal, JournalError};
use crate::last_members::LeftAlone;
use crate::packets;
use crate::time::unix_ms;

/// Maximum duration of a batch. The requests checked so far are then put in force, and the others form the next batch.
const BATCH_TIME_MAX: Duration = Duration::from_secs(1);

/// Approximate maximum size of a batch that is checked on the thread that serves everything else of the control plane.
const QUICK_BYTES_MAX: usize = 8 << 10;
/// The time for that, which the supervisor does nothing else.
const QUICK_TIME_MAX: Duration = Duration::from_millis(1);

/// A checked configuration with its sources.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub config: Config,
    pub files: Arc<Files>,
    /// The version of the overlay.
    pub version: u64,
}

/// Accepted versions that are not stored yet.
#[derive(Debug)]
pub(crate) struct AcceptedVersions {
    entries: Vec<Entry>,
    history: History,
    verdicts: Vec<AcceptedRequest>,
}

/// An accepted request and its version.
#[derive(Debug)]
struct AcceptedRequest {
    pending: PendingRequest,
    version: u64,
    /// The request changes nothing, so the version is that of an earlier request.
    is_unchanged: bool,
    changes: Vec<Change>,
    warnings: Vec<Diagnostic>,
}

/// The result of judging a batch.
#[derive(Debug)]
pub(crate) enum BatchResult {
    /// There is nothing to put in force.
    Nothing,
    /// A dry run.
    Trial(Box<Trial>),
    /// The versions to store and put in force, with the resulting configuration.
    Accepted(Arc<Configuration>, Box<AcceptedVersions>),
}

/// A dry run with a valid configuration.
#[derive(Debug)]
pub(crate) struct Trial {
    number: u64,
    takes_last: bool,
    pub configuration: Configuration,
    changes: Vec<Change>,
    warnings: Vec<Diagnostic>,
}

/// Checks the files with an overlay. Returns the configuration if it is valid, and the diagnostics.
pub(crate) fn check(
    main: &Path,
    files: Arc<Files>,
    (overlay, version): (&Overlay, u64),
) -> (Option<Configuration>, Vec<Diagnostic>) {
    let (configuration, diagnostics, _) = check_after(main, files, (overlay, version), None);
    (configuration, diagnostics)
}

/// As [`check`]. `before`: the configuration that a user on the network changes, with the rights of such a user. Also returns the
/// keys of what such a user cannot introduce.
fn check_after(
    main: &Path,
    files: Arc<Files>,
    (overlay, version): (&Overlay, u64),
    before: Option<&Config>,
) -> (Option<Configuration>, Vec<Diagnostic>, Vec<String>) {
    let sources = Sources::new(&files, overlay);
    let loaded = match before {
        Some(before) => sources.check_from_network(before),
        None => sources.check(),
    };
    let mut diagnostics = loaded.diagnostics;
    let config = loaded.config.filter(|config| match packets::check(config, main) {
        Some(wrong) => {
            diagnostics.push(wrong);
            false
        }
        None => true,
    });
    let configuration = config.map(|config| Configuration { config, files, version });
    (configuration, diagnostics, loaded.introduced)
}

impl Changes {
    /// Reads the versions in this directory.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, JournalError> {
        let (journal, history) = Journal::open(state_dir)?;
        Ok(Self::new(journal, history))
    }

    /// Checks a batch on top of the newest files. Reports refused requests.
    pub(crate) fn judge(
        &self,
        main: &Path,
        newest: &Arc<Configuration>,
        batch: Vec<PendingRequest>,
    ) -> BatchResult {
        let begin = Instant::now();
        let mut judge = Judge::new(self, main, newest);
        let mut rest = batch.into_iter();
        for pending in rest.by_ref() {
            match &pending.asked {
                QueuedRequest::Confirm { version, author } => {
                    confirm(self, pending.number, *version, author);
                    return BatchResult::Nothing;
                }
                QueuedRequest::Transaction(transaction) if transaction.dry_run => {
                    return judge.trial(pending.number, transaction);
                }
                QueuedRequest::Transaction(_) | QueuedRequest::TakeBack { .. } => {
                    judge.request(pending)
                }
            }
            if begin.elapsed() >= BATCH_TIME_MAX {
                break;
            }
        }
        let rest: Vec<PendingRequest> = rest.collect();
        if !rest.is_empty() {
            self.put_back(rest);
        }
        judge.result()
    }

    /// Stores the accepted versions. Blocks on the disk.
    pub(crate) fn keep(&self, accepted: AcceptedVersions) -> Result<(), String> {
        let AcceptedVersions { entries, history, verdicts } = accepted;
        match self.store(&entries, history).map_err(|error| error.to_string()) {
            Ok(()) => {
                verdicts.into_iter().for_each(|it| it.tell(self));
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

    /// Handles an accepted configuration that cannot be prepared. A single request is refused. Several requests are tried
    /// again one by one, to find the cause.
    pub(crate) fn refuse_accepted(&self, accepted: AcceptedVersions, reason: &str) {
        let pending: Vec<PendingRequest> =
            accepted.verdicts.into_iter().map(|it| it.pending).collect();
        match &pending[..] {
            [only] => self.refuse(only.number, reason.to_owned(), Vec::new()),
            _ => self.put_back_one_by_one(pending),
        }
    }
}

/// As [`Changes::judge`], for a small batch of plain changes of members, whose check takes some microseconds each. Gives back any
/// other batch, and one that takes longer than [`QUICK_TIME_MAX`], as in large pools.
pub(crate) fn judge_members(
    changes: &Changes,
    main: &Path,
    newest: &Arc<Configuration>,
    batch: Vec<PendingRequest>,
) -> Result<BatchResult, Vec<PendingRequest>> {
    if batch.iter().map(PendingRequest::bytes).sum::<usize>() > QUICK_BYTES_MAX {
        return Err(batch);
    }
    let mut judge = Judge::new(changes, main, newest);
    let mut rest = batch.into_iter();
    let until = Instant::now() + QUICK_TIME_MAX;
    while let Some(pending) = rest.next() {
        match judge.members_alone(&pending) {
            Some(composed) if Instant::now() < until => judge.take(pending, composed),
            _ => {
                let judged = judge.accepted.verdicts.into_iter().map(|it| it.pending);
                return Err(judged.chain([pending]).chain(rest).collect());
            }
        }
    }
    Ok(judge.result())
}

/// Reverts a version whose time for a confirmation has passed.
pub(crate) fn take_back_overdue(changes: &Changes) -> Result<(), JournalError> {
    let mut history = History::clone(&changes.history());
    let overdue = history.unconfirmed().filter(|it| it.until_unix_ms <= unix_ms());
    let before = overdue.map(|it| it.version - 1);
    let Some((before, overlay)) = before.and_then(|it| Some((it, history.overlay_after(it)?)))
    else {
        return Ok(());
    };
    let wanted = RequestedChanges::RollBackTo(before);
    let version = own_version(&history, &overlay, wanted, NOT_CONFIRMED);
    // The version has the next number, so this cannot fail.
    let _ = history.push(Arc::clone(&version));
    let number = version.number;
    changes.store(&[Entry::Version(version)], history)?;
    changes.put_in_force(number);
    Ok(())
}

impl Trial {
    /// Reports the result of the dry run. `result`: what the configuration takes, if it can be prepared.
    pub(crate) fn end(self, changes: &Changes, result: Result<Option<LeftAlone>, String>) {
        match result.map(|pools| pools.filter(|_| !self.takes_last)) {
            Ok(None) => changes.finish(self.number, None, &self.changes, self.warnings),
            Ok(Some(pools)) => changes.update(self.number, |report| report.refuse_last(&pools)),
            Err(reason) => changes.refuse(self.number, reason, Vec::new()),
        }
    }
}

impl AcceptedRequest {
    /// Reports the request, whose version is stored.
    fn tell(self, changes: &Changes) {
        let (number, version) = (self.pending.number, self.version);
        match self.is_unchanged {
            true => unchanged(changes, number, version, self.warnings),
            false => changes.accepted(number, version, &self.changes, self.warnings),
        }
    }
}

/// Reports a request as one that changes nothing of this version.
fn unchanged(changes: &Changes, number: u64, version: u64, warnings: Vec<Diagnostic>) {
    // The version is read while the report is locked: if it takes effect later, that is reported.
    changes.update(number, |report| {
        report.keep(version, version <= changes.in_force(), warnings);
    });
}

impl AcceptedVersions {
    /// These changes, which take the last member of pools, if they may. A single request is refused unless it says that this
    /// is meant. Several requests are tried again one by one.
    pub(crate) fn checked(self, changes: &Changes, pools: &LeftAlone) -> Option<Self> {
        let pending: Vec<PendingRequest> = match &self.verdicts[..] {
            [only] if only.pending.takes_last() => return Some(self),
            _ => self.verdicts.into_iter().map(|it| it.pending).collect(),
        };
        match &pending[..] {
            [only] => changes.update(only.number, |report| report.refuse_last(pools)),
            _ => changes.put_back_one_by_one(pending),
        }
        None
    }

    /// The number of the first accepted version.
    pub fn first_version(&self) -> u64 {
        self.versions().next().map_or(0, |it| it.number)
    }

    fn versions(&self) -> impl Iterator<Item = &Arc<Version>> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Version(version) => Some(version),
            _ => None,
        })
    }

    /// Descriptions of the accepted versions, for events.
    pub fn told(&self) -> impl Iterator<Item = String> {
        self.versions().map(|it| match &*it.comment {
            "" => format!("{} by {}", it.number, it.author),
            comment => format!("{} by {}: {comment}", it.number, it.author),
        })
    }
}

/// The check of one batch.
struct Judge<'a> {
    changes: &'a Changes,
    main: PathBuf,
    newest: Arc<Configuration>,
    last: Option<Arc<Configuration>>,
    accepted: AcceptedVersions,
}

/// The result of a valid request.
enum ComposedVersion {
    /// A version, its overlay, its configuration, and the warnings about it.
    Version(Arc<Version>, Overlay, Arc<Configuration>, Vec<Diagnostic>),
    /// No version, since nothing changes. The warnings are about what the request says.
    Unchanged(Vec<Diagnostic>),
}

/// The overlay and the configuration that a transaction results in, and the warnings.
type ComposedOverlay = (Overlay, Configuration, Vec<Diagnostic>);

/// The reason for a refusal, and the diagnostics.
type RefusalReason = (String, Vec<Diagnostic>);

impl<'a> Judge<'a> {
    fn new(changes: &'a Changes, main: &Path, newest: &Arc<Configuration>) -> Self {
        let history = History::clone(&changes.history());
        let accepted = AcceptedVersions { entries: Vec::new(), history, verdicts: Vec::new() };
        let (main, newest) = (main.to_owned(), Arc::clone(newest));
        Self { changes, main, newest, last: None, accepted }
    }

    fn history(&self) -> &History {
        &self.accepted.history
    }

    fn result(self) -> BatchResult {
        match self.last {
            Some(last) => BatchResult::Accepted(last, Box::new(self.accepted)),
            None => {
                // No request has made a version: there is nothing to store.
                self.accepted.verdicts.into_iter().for_each(|it| it.tell(self.changes));
                BatchResult::Nothing
            }
        }
    }

    /// The configuration before the next request.
    fn before(&self) -> &Config {
        &self.last.as_ref().unwrap_or(&self.newest).config
    }

    /// The result of a transaction, if it can be found without a check of the whole configuration.
    fn members_alone(&self, pending: &PendingRequest) -> Option<ComposedVersion> {
        let QueuedRequest::Transaction(transaction) = &pending.asked else { return None };
        // What was before may be far back.
        if transaction.dry_run || !matches!(transaction.wanted, RequestedChanges::Changes(_)) {
            return None;
        }
        let overlay = self.overlay(transaction).ok()?;
        let configuration = self.check_members(&transaction.wanted, &overlay)?;
        Some(self.composed(transaction, (overlay, configuration, Vec::new())))
    }

    /// The overlay that a transaction results in.
    fn overlay(&self, transaction: &Transaction) -> Result<Overlay, RefusalReason> {
        let newest = self.history().version();
        if let Some(expected) = transaction.expected_version.filter(|it| *it != newest) {
            let reason = format!(
                "the newest version is {newest}, not {expected}: look at what has changed, and ask again"
            );
            return Err((reason, Vec::new()));
        }
        if let Some(unconfirmed) = self.history().unconfirmed()
            && !transaction.wanted.ends(unconfirmed.version)
        {
            let version = unconfirmed.version;
            let reason = format!(
                "version {version} waits for its confirmation: confirm it, or roll back to version {}",
                version - 1
            );
            return Err((reason, Vec::new()));
        }
        match &transaction.wanted {
            RequestedChanges::Changes(changes) => {
                let sources = Sources::new(&self.newest.files, self.history().overlay());
                sources
                    .compose(changes)
                    .map_err(|wrong| ("changes are not possible".to_owned(), wrong))
            }
            RequestedChanges::RollBackTo(version) => self.overlay_after(*version),
            RequestedChanges::Revert(version) => self.overlay_without(*version),
        }
    }

    /// The overlay and the configuration that a transaction results in, and the warnings.
    fn configuration(&self, transaction: &Transaction) -> Result<ComposedOverlay, RefusalReason> {
        let overlay = self.overlay(transaction)?;
        if let Some(configuration) = self.check_members(&transaction.wanted, &overlay) {
            return Ok((overlay, configuration, Vec::new()));
        }
        let before = transaction.is_from_network.then_some(self.before());
        let (configuration, warnings) = self.check(&overlay, before)?;
        let beyond = before.map(|before| configuration.config.beyond_network(before));
        if let Some(beyond) = beyond.filter(|beyond| !beyond.is_empty()) {
            let keys = beyond.join("` and `");
            let how = "use the unix socket of the admin listener, or the files";
            return Err((
                format!("only someone on this host may change `{keys}`: {how}"),
                Vec::new(),
            ));
        }
        Ok((overlay, configuration, warnings))
    }

    fn overlay_after(&self, version: u64) -> Result<Overlay, RefusalReason> {
        self.history().overlay_after(version).ok_or_else(|| {
            let (oldest, newest) = (self.history().oldest(), self.history().version());
            let zero = if oldest == 0 { "" } else { "0 and " };
            let kept = format!("there are versions {zero}{oldest} to {newest}");
            (format!("version {version} is not kept: {kept}"), Vec::new())
        })
    }

    /// The newest overlay without the changes of a version.
    fn overlay_without(&self, version: u64) -> Result<Overlay, RefusalReason> {
        let history = self.history();
        if version == 0 || version > history.version() {
            let newest = history.version();
            let reason = format!("there is no version {version} to undo: the newest is {newest}");
            return Err((reason, Vec::new()));
        }
        let (before, after) = (self.overlay_after(version - 1)?, self.overlay_after(version)?);
        match history.overlay().without(&before, &after) {
            Ok(overlay) if overlay == *history.overlay() => {
                let reason = format!("nothing of version {version} is left to undo");
                Err((reason, Vec::new()))
            }
            Ok(overlay) => Ok(overlay),
            Err(conflicts) => Err((told(history, version, &conflicts), Vec::new())),
        }
    }

    /// The configuration after changes of members alone, if that can be checked by itself.
    fn check_members(&self, wanted: &RequestedChanges, overlay: &Overlay) -> Option<Configuration> {
        let RequestedChanges::Changes(changes) = wanted else { return None };
        let (files, version) = (Arc::clone(&self.newest.files), self.history().version() + 1);
        let from = self.history().overlay();
        let sources = Sources::new(&files, overlay);
        let config = sources.check_members(from, changes, self.before())?;
        Some(Configuration { config, files, version })
    }

    fn check(
        &self,
        overlay: &Overlay,
        before: Option<&Config>,
    ) -> Result<(Configuration, Vec<Diagnostic>), RefusalReason> {
        let version = self.history().version() + 1;
        let files = Arc::clone(&self.newest.files);
        match check_after(&self.main, files, (overlay, version), before) {
            (Some(configuration), diagnostics, _) => {
                let of_overlay = diagnostics.into_iter().filter(|it| it.pointer.is_some());
                Ok((configuration, of_overlay.collect()))
            }
            (None, mut diagnostics, introduced) => {
                diagnostics.retain(|it| it.severity == Severity::Error);
                Err((reason(&diagnostics, &introduced), diagnostics))
            }
        }
    }

    fn trial(&self, number: u64, transaction: &Transaction) -> BatchResult {
        match self.configuration(transaction) {
            Ok((overlay, configuration, warnings)) => {
                let is_unchanged = self.is_unchanged(&transaction.wanted, &overlay, &configuration);
                let changes = configuration.config.changes_from(&self.newest.config);
                if is_unchanged {
                    unchanged(self.changes, number, self.history().version(), warnings);
                    return BatchResult::Nothing;
                }
                let takes_last = transaction.takes_last;
                let trial = Trial { number, takes_last, configuration, changes, warnings };
                BatchResult::Trial(Box::new(trial))
            }
            Err((reason, diagnostics)) => {
                self.changes.refuse(number, reason, diagnostics);
                BatchResult::Nothing
            }
        }
    }

    /// Checks a request for a new version, and accepts or refuses it.
    fn request(&mut self, pending: PendingRequest) {
        let judged = match &pending.asked {
            QueuedRequest::Transaction(transaction) => self.transaction(transaction),
            QueuedRequest::TakeBack { version, to, comment } => {
                self.taken_back(*version, *to, comment)
            }
            QueuedRequest::Confirm { .. } => return,
        };
        match judged {
            Ok(composed) => self.take(pending, composed),
            Err((reason, diagnostics)) => {
                if let QueuedRequest::TakeBack { version, to, .. } = &pending.asked {
                    self.changes.tell(format!(
                        "cannot return from version {version} to version {to}: {reason}: roll back to another one"
                    ));
                }
                self.changes.refuse(pending.number, reason, diagnostics);
            }
        }
    }

    /// Accepts a request with this result.
    fn take(&mut self, pending: PendingRequest, composed: ComposedVersion) {
        match composed {
            ComposedVersion::Version(version, overlay, configuration, warnings) => {
                self.accept(pending, (version, overlay), configuration, warnings);
            }
            ComposedVersion::Unchanged(warnings) => {
                let (version, changes) = (self.history().version(), Vec::new());
                let verdict =
                    AcceptedRequest { pending, version, is_unchanged: true, changes, warnings };
                self.accepted.verdicts.push(verdict);
            }
        }
    }

    fn transaction(&self, transaction: &Transaction) -> Result<ComposedVersion, RefusalReason> {
        Ok(self.composed(transaction, self.configuration(transaction)?))
    }

    /// The version of a transaction with this result.
    fn composed(
        &self,
        transaction: &Transaction,
        (overlay, configuration, warnings): ComposedOverlay,
    ) -> ComposedVersion {
        if self.is_unchanged(&transaction.wanted, &overlay, &configuration) {
            return ComposedVersion::Unchanged(warnings);
        }
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
        let (version, configuration) = (Arc::new(version), Arc::new(configuration));
        ComposedVersion::Version(version, overlay, configuration, warnings)
    }

    /// Whether a request changes nothing: the overlay stays the same, or values are set to what they are, perhaps at
    /// another place (a member as a whole). A default that is set explicitly is a change, since the value then no longer follows a profile. So is
    /// the removal of a change that has no effect at present, and the end of a version that nobody has confirmed.
    fn is_unchanged(
        &self,
        wanted: &RequestedChanges,
        overlay: &Overlay,
        after: &Configuration,
    ) -> bool {
        let only_sets = match wanted {
            RequestedChanges::Changes(changes) => {
                changes.iter().all(|it| matches!(it, overlay::Change::Set { .. }))
            }
            RequestedChanges::RollBackTo(_) | RequestedChanges::Revert(_) => false,
        };
        let is_same = || overlay == self.history().overlay();
        let says_the_same = || after.config.changes_from(self.before()).is_empty();
        self.history().unconfirmed().is_none() && (is_same() || only_sets && says_the_same())
    }

    /// The version that restores version `to` instead of `version`.
    fn taken_back(
        &self,
        version: u64,
        to: u64,
        comment: &str,
    ) -> Result<ComposedVersion, RefusalReason> {
        if self.history().version() != version {
            return Err((format!("version {version} is not the newest any more"), Vec::new()));
        }
        let overlay = self.overlay_after(to)?;
        let (configuration, warnings) = self.check(&overlay, None)?;
        let wanted = RequestedChanges::RollBackTo(to);
        let version = own_version(self.history(), &overlay, wanted, comment);
        Ok(ComposedVersion::Version(version, overlay, Arc::new(configuration), warnings))
    }

    fn accept(
        &mut self,
        pending: PendingRequest,
        (version, overlay): (Arc<Version>, Overlay),
        configuration: Arc<Configuration>,
        warnings: Vec<Diagnostic>,
    ) {
        let changes = configuration.config.changes_from(self.before());
        if self.accepted.history.push_with(Arc::clone(&version), overlay).is_err() {
            let reason = "its version does not come next, which is a defect of weir".to_owned();
            return self.changes.refuse(pending.number, reason, Vec::new());
        }
        let number = version.number;
        let verdict =
            AcceptedRequest { pending, version: number, is_unchanged: false, changes, warnings };
        self.accepted.verdicts.push(verdict);
        self.accepted.entries.push(Entry::Version(version));
        self.last = Some(configuration);
    }
}

/// Why an overlay is refused, without values: the role operate sees only this, and not the diagnostics, which quote them.
fn reason(diagnostics: &[Diagnostic], introduced: &[String]) -> String {
    let reason = "the configuration would have errors";
    if !introduced.is_empty() {
        let keys = introduced.join("` and `");
        return format!(
            "{reason}: it would name a program, a file or a socket of this host in `{keys}` that neither the files nor the \
             configuration in force name, which only someone on this host may do: use the unix socket of the admin listener"
        );
    }
    match diagnostics.first() {
        Some(Diagnostic { pointer: Some(at), .. }) => format!("{reason}, the first at {at}"),
        Some(Diagnostic { file, position: Some(at), .. }) => {
            format!("{reason}, the first at {file}:{}:{}", at.line, at.column)
        }
        _ => reason.to_owned(),
    }
}

/// Maximum number of conflicts, and of versions for each, in a refusal.
const CONFLICTS_TOLD_MAX: usize = 5;

/// Why a version cannot be undone by itself: what has changed again, and by which versions.
fn told(history: &History, version: u64, conflicts: &[Conflict]) -> String {
    let mut text = format!("version {version} cannot be undone by itself");
    for (index, path) in conflicts.iter().take(CONFLICTS_TOLD_MAX).enumerate() {
        let later = history.versions().filter(|later| later.number > version);
        let later = later.filter(|later| later.delta.touches(path));
        let mut later: Vec<String> = later.map(|later| later.number.to_string()).collect();
        let omitted = later.len().saturating_sub(CONFLICTS_TOLD_MAX);
        later.drain(..omitted);
        let plural = if later.len() == 1 { "" } else { "s" };
        let separator = if index == 0 { ":" } else { "," };
        let by = later.join(", ");
        text += &format!("{separator} {path} was changed again by version{plural} {by}");
    }
    match conflicts.len().saturating_sub(CONFLICTS_TOLD_MAX) {
        0 => {}
        more => text += &format!(" and {more} more"),
    }
    text + "; undo those first, or set what you want there"
}

/// Confirms a version.
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

/// A version that weir creates itself.
fn own_version(
    history: &History,
    overlay: &Overlay,
    wanted: RequestedChanges,
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
