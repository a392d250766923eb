//! The logs of requests: the access log, the log of the web application firewall, and the audit log of admin requests.
//!
//! Each log has its own writer, so a slow target does not delay other logs. If several logs have the same target, the writer
//! of the first opens it, and receives the lines of the others in whole batches.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use weir_config::snapshot::{LogSettings, LogTarget};
use weir_event_loop::error_text::io_error_text;
use weir_telemetry::reports::{LogBatch, LogSenders};

use crate::admin::audit;
use crate::events::Events;
use crate::firewall::recent::RecentFindings;
use crate::log_writer::{AllLogCounters, LogDestination, LogWriter, OpenError};
use crate::span_export::SpanExport;

/// The subject of events about the access log.
const ACCESS: &str = "access log";
/// The subject of events about the log of the web application firewall.
const WAF: &str = "WAF log";
/// The subject of events about the audit log.
const AUDIT: &str = "audit log";
/// The subject of events about spans.
const SPANS: &str = "traces";

/// The writers of all logs.
#[derive(Debug)]
pub struct Logs {
    access: LogWriter,
    waf: LogWriter,
    audit: LogWriter,
    spans: SpanExport,
    findings: Arc<RecentFindings>,
    events: Events,
}

/// The control plane's view of the logs.
#[derive(Debug, Clone, Default)]
pub struct LogsView {
    /// Counters of written and lost lines.
    pub counters: Arc<AllLogCounters>,
    /// The channel for lines of the audit log; `None`: there is no audit log.
    pub audit: Option<SyncSender<LogBatch>>,
    /// The latest findings of the web application firewall.
    pub findings: Arc<RecentFindings>,
}

/// The error of a log that could not be opened.
#[derive(Debug)]
pub struct LogError {
    name: &'static str,
    error: String,
}

impl LogError {
    fn of(name: &'static str, error: &OpenError) -> Self {
        Self { name, error: error.to_string() }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.error)
    }
}

impl std::error::Error for LogError {}

impl Logs {
    /// Opens all logs and starts their writers.
    pub fn start(settings: &LogSettings, events: Events) -> Result<Self, LogError> {
        let counters: Arc<AllLogCounters> = Arc::default();
        let start = |name, way: &LogDestination, recent| {
            LogWriter::start(name, way, Arc::clone(&counters), events.clone(), recent)
                .map_err(|error| LogError::of(name, &error))
        };
        let findings: Arc<RecentFindings> = Arc::default();
        let access = start(ACCESS, &LogDestination::To(settings.access_to.clone()), None)?;
        let waf = start(WAF, &way_of_waf(settings, &access), Some(Arc::clone(&findings)))?;
        let audit = start(AUDIT, &way_of_audit(settings, &access, &waf), None)?;
        let spans =
            SpanExport::start(settings.spans_to.clone(), Arc::clone(&counters), events.clone())
                .map_err(|error| LogError { name: SPANS, error: io_error_text(&error) })?;
        Ok(Self { access, waf, audit, spans, findings, events })
    }

    /// The channels through which workers send lines and spans.
    pub fn senders(&self) -> LogSenders {
        let (access, waf, spans) = (self.access.sender(), self.waf.sender(), self.spans.sender());
        LogSenders { access, waf, spans }
    }

    /// The view for the control plane.
    pub fn view(&self) -> LogsView {
        LogsView {
            counters: self.access.counters(),
            audit: Some(self.audit.sender()),
            findings: Arc::clone(&self.findings),
        }
    }

    /// Checks that the targets which are not in `before` can be opened, so that a reload can refuse invalid targets.
    pub fn check(settings: &LogSettings, before: &LogSettings) -> Result<(), LogError> {
        let open_before = [Some(&before.access_to), Some(&before.waf_to), before.audit_to.as_ref()];
        let check = |name, target: &LogTarget| match open_before.contains(&Some(target)) {
            true => Ok(()),
            false => LogWriter::check(target).map_err(|error| LogError::of(name, &error)),
        };
        check(ACCESS, &settings.access_to)?;
        check(WAF, &settings.waf_to)?;
        settings.audit_to.as_ref().map_or(Ok(()), |target| check(AUDIT, target))
    }

    /// Opens the targets in the settings, also unchanged ones, and sends later lines and spans there.
    pub fn reopen(&self, settings: &LogSettings) {
        self.replace(settings, settings, "");
    }

    /// As [`Self::reopen`], for settings that replace `before`. If the audit log moves, its old target gets a last line that
    /// says so, so that nobody can silence it unseen. `by`: what moves it, and who.
    pub fn replace(&self, settings: &LogSettings, before: &LogSettings, by: &str) {
        let is_moved = settings.audit_to != before.audit_to;
        let mut farewell = is_moved.then(|| audit::moved(by, before, settings));
        // The line goes through the writer that has the old target open.
        let mut of = |is_its: bool| if is_its { farewell.take() } else { None };
        let is_at = |target: &LogTarget| before.audit_to.as_ref() == Some(target);
        let of_access = of(is_at(&before.access_to));
        let of_waf = of(is_at(&before.waf_to));
        let of_audit = of(true);
        self.access.reopen_after(of_access, LogDestination::To(settings.access_to.clone()));
        self.waf.reopen_after(of_waf, way_of_waf(settings, &self.access));
        self.audit.reopen_after(of_audit, way_of_audit(settings, &self.access, &self.waf));
        self.spans.apply(settings.spans_to.as_ref());
    }

    /// Writes the waiting lines and ends, at most within `timeout`. Call this after the workers have ended.
    pub fn finish(self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let spans = self.spans.finish(deadline);
        // This order is required, because a writer may send lines to the writers after it.
        for (name, writer) in [(AUDIT, self.audit), (WAF, self.waf), (ACCESS, self.access)] {
            if !writer.finish(deadline.saturating_duration_since(Instant::now())) {
                self.events.warning(name, "is not written to its end: its reader is too slow");
            }
        }
        if !spans.wait() {
            self.events.warning(SPANS, "are not all sent: the collector is too slow");
        }
    }
}

fn way_of_waf(settings: &LogSettings, access: &LogWriter) -> LogDestination {
    match settings.waf_to == settings.access_to {
        true => LogDestination::Through(access.sender()),
        false => LogDestination::To(settings.waf_to.clone()),
    }
}

fn way_of_audit(settings: &LogSettings, access: &LogWriter, waf: &LogWriter) -> LogDestination {
    match &settings.audit_to {
        None => LogDestination::Events,
        Some(target) if *target == settings.access_to => LogDestination::Through(access.sender()),
        Some(target) if *target == settings.waf_to => LogDestination::Through(waf.sender()),
        Some(target) => LogDestination::To(target.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::Ordering::Relaxed;

    use weir_config::snapshot::AccessFormat;
    use weir_telemetry::reports::Log;

    use super::*;
    use crate::events::testing::Captured;
    use crate::testing::PATIENCE;

    /// A directory for the log files of a test, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn settings(&self, access: &str, waf: &str) -> LogSettings {
            let target = |name: &str| LogTarget::File(self.0.join(name));
            let (access_to, waf_to) = (target(access), target(waf));
            LogSettings {
                access_format: AccessFormat::Json,
                given_format: None,
                access_to,
                waf_to,
                audit_to: None,
                spans_to: None,
                recent_requests: None,
            }
        }

        fn lines(&self, name: &str) -> Vec<String> {
            let text = std::fs::read_to_string(self.0.join(name)).unwrap_or_default();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Sends a line to each log, and waits until both lines are written.
    fn write(logs: &Logs, number: u64) {
        let senders = logs.senders();
        for (log, sender) in [(Log::Access, senders.access), (Log::Waf, senders.waf)] {
            let bytes = format!("{log:?} {number}\n").into_bytes();
            sender.send(LogBatch { log, bytes, lines: 1 }).unwrap();
        }
        let (counters, begin) = (logs.view().counters, Instant::now());
        let written = || [&counters.access, &counters.waf].map(|it| it.lines_written.load(Relaxed));
        while written() != [number; 2] {
            assert!(begin.elapsed() < PATIENCE, "{:?}", written());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn each_goes_its_way_and_both_may_go_the_same() {
        let directory = Directory::new("logs-ways");
        let (events, captured) = Captured::new();
        let logs = Logs::start(&directory.settings("a", "a"), events.clone()).unwrap();
        write(&logs, 1);
        logs.reopen(&directory.settings("a", "b"));
        write(&logs, 2);
        logs.reopen(&directory.settings("b", "a"));
        write(&logs, 3);
        logs.reopen(&directory.settings("c", "c"));
        write(&logs, 4);
        let counters = logs.view().counters;
        logs.finish(PATIENCE);
        assert_eq!(directory.lines("a"), ["Access 1", "Access 2", "Waf 1", "Waf 3"]);
        assert_eq!(directory.lines("b"), ["Access 3", "Waf 2"]);
        assert_eq!(directory.lines("c"), ["Access 4", "Waf 4"]);
        assert_eq!(counters.waf.lines_lost.load(Relaxed), 0);
        assert!(captured.lines(&events).is_empty());
    }

    #[test]
    fn lines_of_the_audit_log_become_events_unless_it_has_a_target() {
        let directory = Directory::new("logs-audit");
        let (events, captured) = Captured::new();
        let settings = directory.settings("a", "w");
        let logs = Logs::start(&settings, events.clone()).unwrap();
        let view = logs.view();
        let write = |number: u64| {
            let bytes = format!("{{\"number\":{number}}}\n").into_bytes();
            let batch = LogBatch { log: Log::Audit, bytes, lines: 1 };
            view.audit.as_ref().unwrap().send(batch).unwrap();
            let begin = Instant::now();
            while view.counters.audit.lines_written.load(Relaxed) != number {
                assert!(begin.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        write(1);
        for (number, name) in [(2, "own"), (3, "a"), (4, "w")] {
            let audit_to = Some(LogTarget::File(directory.0.join(name)));
            logs.reopen(&LogSettings { audit_to, ..settings.clone() });
            write(number);
        }
        assert_eq!(captured.lines(&events), ["info audit {\"number\":1}"]);
        logs.finish(PATIENCE);
        for (number, name) in [(2, "own"), (3, "a"), (4, "w")] {
            assert_eq!(directory.lines(name), [format!("{{\"number\":{number}}}")]);
        }
        let unusable = directory.settings("a", "missing/b").waf_to;
        let bad = LogSettings { audit_to: Some(unusable), ..settings.clone() };
        assert!(Logs::check(&bad, &settings).is_err());
    }

    #[test]
    fn the_old_target_of_the_audit_log_is_told_that_it_moves() {
        let directory = Directory::new("logs-audit-moves");
        let settings = directory.settings("a", "w");
        let to = |name: Option<&str>| LogSettings {
            audit_to: name.map(|name| LogTarget::File(directory.0.join(name))),
            ..settings.clone()
        };
        for (before, after) in [
            (Some("own"), Some("other")),
            (Some("own"), None),
            (Some("a"), Some("other")),
            (Some("w"), None),
        ] {
            let (events, _) = Captured::new();
            let logs = Logs::start(&to(before), events).unwrap();
            logs.replace(&to(after), &to(before), "version 7 by ann");
            logs.finish(PATIENCE);
            let name = before.expect("a target");
            let lines = directory.lines(name);
            let line = lines.last().expect("a line");
            assert!(line.contains("version 7 by ann"), "{name}: {line}");
            assert!(line.contains(after.unwrap_or("events")), "{name}: {line}");
            std::fs::remove_file(directory.0.join(name)).unwrap();
        }
        let (events, captured) = Captured::new();
        let logs = Logs::start(&to(None), events.clone()).unwrap();
        logs.replace(&to(Some("own")), &to(None), "version 8 by ann");
        logs.replace(&to(Some("own")), &to(Some("own")), "version 9 by ann");
        logs.finish(PATIENCE);
        let lines = captured.lines(&events);
        assert!(lines.len() == 1 && lines[0].contains("version 8 by ann"), "{lines:?}");
    }

    #[test]
    fn a_file_that_was_moved_away_is_let_go_of_by_both() {
        let directory = Directory::new("logs-rotated");
        let (events, _) = Captured::new();
        let settings = directory.settings("a", "a");
        let logs = Logs::start(&settings, events).unwrap();
        write(&logs, 1);
        std::fs::rename(directory.0.join("a"), directory.0.join("a.1")).unwrap();
        logs.reopen(&settings);
        write(&logs, 2);
        logs.finish(PATIENCE);
        assert_eq!(directory.lines("a.1"), ["Access 1", "Waf 1"]);
        assert_eq!(directory.lines("a"), ["Access 2", "Waf 2"]);
    }

    #[test]
    fn what_waits_at_the_end_is_written() {
        let directory = Directory::new("logs-end");
        let (events, _) = Captured::new();
        let logs = Logs::start(&directory.settings("a", "a"), events).unwrap();
        for _ in 0..100 {
            let batch = LogBatch { log: Log::Waf, bytes: b"line\n".to_vec(), lines: 1 };
            logs.senders().waf.send(batch).unwrap();
        }
        logs.finish(PATIENCE);
        assert_eq!(directory.lines("a").len(), 100);
    }

    #[test]
    fn a_target_that_cannot_be_opened_is_refused() {
        let directory = Directory::new("logs-refused");
        let (events, _) = Captured::new();
        let (good, bad) = (directory.settings("a", "a"), directory.settings("a", "missing/b"));
        let error = Logs::start(&bad, events).unwrap_err().to_string();
        assert!(error.starts_with("WAF log: cannot open "), "{error}");
        assert!(error.ends_with("missing/b: no such file"), "{error}");
        assert!(Logs::check(&bad, &good).is_err());
        assert!(Logs::check(&good, &good).is_ok());
        assert!(Logs::check(&bad, &bad).is_ok(), "what is in force is told when it is opened anew");
    }
}
