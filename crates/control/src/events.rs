//! Weir's own events: one readable line each on standard error.
//!
//! `2026-11-21T09:30:00.123Z warning member web/127.0.0.1:9001 is down: connection refused (3 of 3)`
//!
//! Subject and predicate form a sentence. There are few events, one destination and no filter to configure, so a bounded
//! channel to a writing thread replaces a logging framework. If standard error is a full pipe, lines are dropped and
//! counted, and the monitors do not stop. The count is reported as soon as possible.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::printable::characters;
use crate::requests::{EventLine, Requests};
use crate::time;

/// Maximum number of lines that wait to be written.
const LINES_WAITING_MAX: usize = 1_024;

/// Maximum number of characters in a line. The rest of a longer line is cut off.
const LINE_LENGTH_MAX: usize = 2_048;

/// So many bytes of lines that are reported together are written together.
const GROUP_BYTES_MIN: usize = LINE_LENGTH_MAX;

/// The severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A normal event.
    Info,
    /// Traffic is served, but the operator should check something.
    Warning,
    /// A requested action failed.
    Error,
}

impl Level {
    /// The name in the line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The sink of events. Clones share it.
#[derive(Debug, Clone)]
pub struct Events {
    lines: SyncSender<Line>,
    dropped: Arc<AtomicU64>,
    /// The followers, which also receive events.
    requests: Arc<OnceLock<Arc<Requests>>>,
}

/// Lines that are written together.
#[derive(Debug, Default)]
struct LineGroup {
    text: String,
    count: u64,
}

#[derive(Debug)]
enum Line {
    /// One line, or a few.
    Text(String),
    /// A request for an answer when all previous lines are written.
    Flush(SyncSender<()>),
}

impl Events {
    /// Writes events to standard error.
    pub fn to_stderr() -> std::io::Result<Self> {
        Self::to_writer(std::io::stderr())
    }

    /// Writes events to any writer, in a separate thread that ends with the last clone.
    pub fn to_writer(output: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel(LINES_WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        thread::Builder::new()
            .name("weir-events".into())
            .spawn(move || write_lines(output, &waiting, &counter))?;
        Ok(Self { lines, dropped, requests: Arc::default() })
    }

    /// Reports a normal event.
    pub fn info(&self, subject: impl fmt::Display, what: impl fmt::Display) {
        self.tell(Level::Info, &subject, &what);
    }

    /// Reports an event that the operator should check.
    pub fn warning(&self, subject: impl fmt::Display, what: impl fmt::Display) {
        self.tell(Level::Warning, &subject, &what);
    }

    /// Reports that an action failed.
    pub fn error(&self, subject: impl fmt::Display, what: impl fmt::Display) {
        self.tell(Level::Error, &subject, &what);
    }

    /// Reports an event. Never waits.
    pub fn tell(&self, level: Level, subject: &dyn fmt::Display, what: &dyn fmt::Display) {
        self.tell_stream(level, subject, what);
        self.tell_host(level, subject, what);
    }

    /// Reports normal events of one subject, which are written together.
    pub(crate) fn info_each(&self, subject: &dyn fmt::Display, all: &[impl fmt::Display]) {
        let mut lines = LineGroup::default();
        for what in all {
            self.tell_stream(Level::Info, subject, what);
            lines.text += &line_of(Level::Info, subject, what);
            lines.count += 1;
            if lines.text.len() >= GROUP_BYTES_MIN {
                self.send(std::mem::take(&mut lines));
            }
        }
        self.send(lines);
    }

    fn send(&self, lines: LineGroup) {
        let count = lines.count;
        if count > 0 && self.lines.try_send(Line::Text(lines.text)).is_err() {
            self.dropped.fetch_add(count, Relaxed);
        }
    }

    /// Reports to the followers alone.
    pub(crate) fn tell_stream(
        &self,
        level: Level,
        subject: &dyn fmt::Display,
        what: &dyn fmt::Display,
    ) {
        if let Some(requests) = self.requests.get().filter(|requests| requests.has_followers()) {
            let text = printable(&format!("{subject} {what}")).collect();
            requests.tell(EventLine { unix_ms: time::unix_ms(), level: level.as_str(), text });
        }
    }

    /// Reports on this host alone: for lines of the configuration, which is for the role `admin`.
    pub(crate) fn tell_host(
        &self,
        level: Level,
        subject: &dyn fmt::Display,
        what: &dyn fmt::Display,
    ) {
        self.send(LineGroup { text: line_of(level, subject, what), count: 1 });
    }

    /// Also sends later events to the followers of requests.
    pub fn tell_followers(&self, requests: &Arc<Requests>) {
        // In tests with two processes, the first call counts.
        let _ = self.requests.set(Arc::clone(requests));
    }

    /// Waits until all previous events are written, at most for `timeout`. Returns whether they were written.
    pub fn flush(&self, timeout: Duration) -> bool {
        let (done, wait) = sync_channel(1);
        self.lines.try_send(Line::Flush(done)).is_ok() && wait.recv_timeout(timeout).is_ok()
    }

    /// The number of lines dropped since the last written line.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

impl weir_acme::Events for Events {
    fn info(&self, subject: &dyn fmt::Display, what: &dyn fmt::Display) {
        self.tell(Level::Info, subject, what);
    }

    fn warning(&self, subject: &dyn fmt::Display, what: &dyn fmt::Display) {
        self.tell(Level::Warning, subject, what);
    }

    fn error(&self, subject: &dyn fmt::Display, what: &dyn fmt::Display) {
        self.tell(Level::Error, subject, what);
    }
}

/// A line with its line feed. Control and format characters, which may come from external error texts, are replaced, so that they can
/// neither start a new line nor control a terminal.
fn line_of(level: Level, subject: &dyn fmt::Display, what: &dyn fmt::Display) -> String {
    let now = time::rfc3339(time::unix_ms());
    let text = format!("{now} {} {subject} {what}", level.as_str());
    printable(&text).chain(['\n']).collect()
}

fn printable(text: &str) -> impl Iterator<Item = char> {
    characters(text).take(LINE_LENGTH_MAX)
}

fn write_lines(mut output: impl Write, waiting: &Receiver<Line>, dropped: &AtomicU64) {
    for line in waiting {
        // A failure to write to standard error cannot be reported. weir continues without it.
        match line {
            Line::Text(text) => {
                let _ = output.write_all(text.as_bytes());
            }
            Line::Flush(done) => {
                let _ = output.flush();
                let _ = done.try_send(());
            }
        }
        let lost = dropped.swap(0, Relaxed);
        if lost > 0 {
            let text =
                line_of(Level::Warning, &"events", &format_args!("{lost} lines were dropped"));
            let _ = output.write_all(text.as_bytes());
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::sync::Mutex;

    /// An output of events that a test can read.
    #[derive(Clone, Default)]
    pub struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Captured {
        pub fn new() -> (Events, Self) {
            let captured = Self::default();
            (Events::to_writer(captured.clone()).unwrap(), captured)
        }

        /// The lines so far, without the time.
        pub fn lines(&self, events: &Events) -> Vec<String> {
            assert!(events.flush(Duration::from_secs(5)));
            let bytes = self.0.lock().unwrap().clone();
            let text = String::from_utf8(bytes).unwrap();
            text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Captured;
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn events_that_are_told_together_have_a_line_each() {
        let (events, captured) = Captured::new();
        let all: Vec<String> =
            (0..100).map(|number| format!("{number}{}", "a".repeat(50))).collect();
        events.info_each(&"test", &all);
        events.info_each(&"test", &[] as &[String]);
        let expected = all.iter().map(|what| format!("info test {what}"));
        assert!(captured.lines(&events).into_iter().eq(expected));
    }

    #[test]
    fn one_line_per_event() {
        let (events, captured) = Captured::new();
        events.info("weir", "started");
        events.warning(
            format_args!("member {}/{}", "web", "127.0.0.1:9001"),
            "down\nforged \x1b[2J line",
        );
        events.error("admin", "a".repeat(3_000));
        let lines = captured.lines(&events);
        assert_eq!(lines[0], "info weir started");
        assert_eq!(
            lines[1],
            "warning member web/127.0.0.1:9001 down\u{fffd}forged \u{fffd}[2J line"
        );
        assert!(lines[2].chars().count() < LINE_LENGTH_MAX);
        assert_eq!(lines.len(), 3);
    }

    /// A writer that blocks while the lock is held.
    struct Stuck(Arc<Mutex<()>>, Captured);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _until_free = self.0.lock().unwrap();
            self.1.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_pipe_drops_and_counts() {
        let gate = Arc::new(Mutex::new(()));
        let captured = Captured::default();
        let shut = gate.lock().unwrap();
        let events = Events::to_writer(Stuck(Arc::clone(&gate), captured.clone())).unwrap();
        for number in 0..LINES_WAITING_MAX + 100 {
            events.info("test", number);
        }
        // The writing thread may hold one line already.
        let dropped = events.dropped();
        assert!((99..=100).contains(&dropped), "{dropped}");
        assert!(!events.flush(Duration::from_millis(10)));
        drop(shut);
        while events.dropped() != 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let lines = captured.lines(&events);
        assert!(
            lines.contains(&format!("warning weir dropped {dropped} lines of this log"))
                || lines.len() > 1_000
        );
    }
}
