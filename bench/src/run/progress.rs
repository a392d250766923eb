//! Progress messages of a run.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::catalogue::Test;
use crate::record::{Absence, Product, TestRecord};

/// A progress message.
#[derive(Debug)]
pub enum Event<'a> {
    /// The bed exists; measurements have not begun yet.
    Began {
        /// The folder of the results.
        folder: &'a Path,
        /// The participants.
        products: &'a [Product],
        /// Missing products, with reasons.
        absent: &'a [Absence],
        /// The tests of the run.
        tests: &'a [&'static Test],
        /// The estimated time of the whole run.
        estimate: Duration,
    },
    /// A test begins.
    TestBegan {
        /// The test.
        test: &'static Test,
        /// The number of the test, from 1.
        number: usize,
        /// The number of tests.
        of: usize,
        /// The remaining time of the whole run.
        remaining: Duration,
    },
    /// A measurement of the current test begins.
    Step {
        /// The test.
        test: &'static str,
        /// The next measurement: `12,000 connections, round 2 of 3: nginx`.
        what: &'a str,
        /// The remaining time of the whole run.
        remaining: Duration,
    },
    /// A note for the reader: an omission, a discarded round, a product that died.
    Note {
        /// The test, if the note concerns one.
        test: Option<&'static str>,
        /// The text.
        text: &'a str,
    },
    /// A test ended; the run saves its results next.
    TestEnded {
        /// The test's results.
        record: &'a TestRecord,
    },
}

/// A listener for the progress of a run.
pub trait Progress {
    /// Handles an event.
    fn report(&mut self, event: &Event<'_>);
}

/// Lines of text, one per event.
#[derive(Debug)]
pub struct Lines<W> {
    out: W,
}

impl<W: Write> Lines<W> {
    /// Writes to `out`. The run ignores write errors and continues.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    fn line(&mut self, text: &str) {
        // A closed terminal must not end the run.
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }
}

impl<W: Write> Progress for Lines<W> {
    fn report(&mut self, event: &Event<'_>) {
        match event {
            Event::Began { folder, products, absent, tests, estimate } => {
                for product in *products {
                    self.line(&format!("{}: {}", product.name, product.version));
                }
                for absence in *absent {
                    self.line(&format!("{}: left out: {}", absence.product, absence.reason));
                }
                let count = tests.len();
                let plural = if count == 1 { "" } else { "s" };
                self.line(&format!(
                    "{count} test{plural}, about {}; results go to {}",
                    clock(*estimate),
                    folder.display()
                ));
            }
            Event::TestBegan { test, number, of, remaining } => {
                let left = clock(*remaining);
                self.line(&format!("[{number}/{of}] {}: {} ({left} left)", test.name, test.title));
            }
            Event::Step { what, remaining, .. } => {
                self.line(&format!("  {what} ({} left)", clock(*remaining)));
            }
            Event::Note { test, text } => {
                let of = test.map(|test| format!("{test}: ")).unwrap_or_default();
                self.line(&format!("  note: {of}{text}"));
            }
            Event::TestEnded { record } => {
                let count = record.points.len();
                let plural = if count == 1 { "" } else { "s" };
                self.line(&format!("  {}: {count} measurement{plural} kept", record.name));
            }
        }
    }
}

/// `4 min 05 s`.
pub fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    if seconds < 60 {
        return format!("{seconds} s");
    }
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks() {
        let check = |ms, text| assert_eq!(clock(Duration::from_millis(ms)), text);
        check(0, "0 s");
        check(59_400, "59 s");
        check(59_600, "1 min 00 s");
        check(245_000, "4 min 05 s");
        check(3_600_000, "60 min 00 s");
    }

    #[test]
    fn lines_say_what_is_left() {
        let mut lines = Lines::new(Vec::new());
        let remaining = Duration::from_secs(61);
        lines.report(&Event::Step { test: "ramp", what: "round 1 of 3: weir", remaining });
        lines.report(&Event::Note { test: Some("ramp"), text: "envoy died" });
        let text = String::from_utf8(lines.out).expect("text");
        assert_eq!(text, "  round 1 of 3: weir (1 min 01 s left)\n  note: ramp: envoy died\n");
    }
}
