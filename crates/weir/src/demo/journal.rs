//! The latest events for the view: the lines that `weir run` writes to standard error.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of stored events.
const ENTRIES_MAX: usize = 64;

/// Maximum length of a line, in case a writer never ends it.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time since the beginning of the demo.
    pub at: Duration,
    /// `info`, `warning` or `error`.
    pub level: String,
    /// Subject and predicate.
    pub text: String,
}

/// The store of events. Clones share it.
#[derive(Debug, Clone)]
pub struct Journal {
    entries: Arc<Mutex<Entries>>,
    began: Instant,
    /// The demo's names of members, by their addresses in the configuration.
    names: Arc<[(String, &'static str)]>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<Entry>,
    /// The number of events so far.
    count: u64,
}

impl Journal {
    /// An empty store.
    pub fn new(began: Instant, names: Vec<(String, &'static str)>) -> Self {
        Self { entries: Arc::default(), began, names: names.into() }
    }

    /// A writer for the lines of `weir_control::events::Events`.
    pub fn writer(&self) -> impl Write + Send + 'static {
        Lines { journal: self.clone(), begun: Vec::new() }
    }

    /// Stores an event.
    pub fn push(&self, level: &str, text: &str) {
        let mut text = text.to_owned();
        for (label, role) in self.names.iter() {
            text = text.replace(label, role);
        }
        let entry = Entry { at: self.began.elapsed(), level: level.to_owned(), text };
        let mut entries = self.lock();
        if entries.kept.len() == ENTRIES_MAX {
            entries.kept.pop_front();
        }
        entries.kept.push_back(entry);
        entries.count += 1;
    }

    /// The latest events, oldest first.
    pub fn last(&self, count: usize) -> Vec<Entry> {
        let entries = self.lock();
        let skipped = entries.kept.len().saturating_sub(count);
        entries.kept.iter().skip(skipped).cloned().collect()
    }

    /// The events since `seen`, the number of events seen so far.
    pub fn since(&self, seen: &mut u64) -> Vec<Entry> {
        let entries = self.lock();
        let new = usize::try_from(entries.count - *seen).unwrap_or(usize::MAX);
        *seen = entries.count;
        let skipped = entries.kept.len().saturating_sub(new);
        entries.kept.iter().skip(skipped).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits written text into lines of time, level and text.
struct Lines {
    journal: Journal,
    begun: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            if byte != b'\n' && self.begun.len() < LINE_BYTES_MAX {
                self.begun.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.begun);
            let mut parts = line.splitn(3, ' ');
            if let (Some(_time), Some(level), Some(text)) =
                (parts.next(), parts.next(), parts.next())
            {
                self.journal.push(level, text);
            }
            self.begun.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(entries: &[Entry]) -> Vec<String> {
        let text = |entry: &Entry| format!("{} {}", entry.level, entry.text);
        entries.iter().map(text).collect()
    }

    #[test]
    fn lines_become_events_with_the_names_of_the_demo() {
        let names = vec![("web/127.0.0.1:9004".to_owned(), "flapping")];
        let journal = Journal::new(Instant::now(), names);
        let mut writer = journal.writer();
        writer.write_all(b"2026-11-21T09:30:00.123Z warning member web/127.0.0.1:9004 is").unwrap();
        assert_eq!(journal.last(9), []);
        writer.write_all(b" down: refused\n2026-11-21T09:30:01Z info weir ends\n").unwrap();
        let expected = ["warning member flapping is down: refused", "info weir ends"];
        assert_eq!(texts(&journal.last(9)), expected);
        assert_eq!(texts(&journal.last(1)), expected[1..]);
    }

    #[test]
    fn only_the_last_are_kept() {
        let journal = Journal::new(Instant::now(), Vec::new());
        let mut seen = 0;
        journal.push("info", "first");
        assert_eq!(journal.since(&mut seen).len(), 1);
        assert_eq!(journal.since(&mut seen).len(), 0);
        for number in 0..2 * ENTRIES_MAX {
            journal.push("info", &number.to_string());
        }
        assert_eq!(journal.since(&mut seen).len(), ENTRIES_MAX);
        let last = journal.last(ENTRIES_MAX + 1);
        assert_eq!(last.len(), ENTRIES_MAX);
        assert_eq!(last[0].text, ENTRIES_MAX.to_string());
    }
}
