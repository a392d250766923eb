//! The latest lines of the firewall's log with findings, stored in memory for the admin API.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use super::line::Line;

/// Maximum number of lines.
pub const LINES_MAX: usize = 2_000;

/// Maximum size of all lines in bytes.
pub const BYTES_MAX: usize = 4 << 20;

/// The start of a recorded request, which is cut off. A client cannot send this text, because quotes are escaped.
const RECORDED: &[u8] = b",\"request\":{";

/// A part of every line without findings.
const PASSED: &[u8] = b"\"outcome\":\"passed\"";
const NO_RULES: &[u8] = b"\"rules\":[]";
const CHECKS: &[u8] = b"\"checks\":[";

/// The last lines.
#[derive(Debug, Default)]
pub struct RecentFindings(Mutex<RecentLines>);

#[derive(Debug, Default)]
struct RecentLines {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// The number of the next line.
    next: u64,
}

impl RecentFindings {
    /// Stores the lines of a batch that have findings.
    pub fn keep(&self, batch: &[u8]) {
        let mut kept = self.kept();
        for line in batch.split(|byte| *byte == b'\n').filter(|line| tells(line)) {
            kept.push(without_request(line));
        }
    }

    /// The lines with their numbers, newest first.
    pub fn lines(&self) -> Vec<(u64, Line)> {
        let (texts, next) = {
            let kept = self.kept();
            (kept.lines.clone(), kept.next)
        };
        let newest = texts.iter().rev().zip((0..next).rev());
        let line = |text: &[u8]| serde_json::from_slice::<Line>(text).ok();
        newest.filter_map(|(text, number)| Some((number, line(text)?))).collect()
    }

    /// The number of the next line.
    pub fn next(&self) -> u64 {
        self.kept().next
    }

    fn kept(&self) -> MutexGuard<'_, RecentLines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentLines {
    fn push(&mut self, line: Box<[u8]>) {
        self.bytes += line.len();
        self.lines.push_back(line);
        self.next += 1;
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

/// Whether a line has a finding or an incomplete inspection.
fn tells(line: &[u8]) -> bool {
    let has = |what: &[u8]| memmem::find(line, what).is_some();
    let is_without_findings = has(PASSED) && has(NO_RULES) && !has(CHECKS);
    !line.is_empty() && !is_without_findings
}

fn without_request(line: &[u8]) -> Box<[u8]> {
    match memmem::find(line, RECORDED) {
        Some(at) => [&line[..at], b"}"].concat().into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize, rest: &str) -> String {
        format!("{{\"type\":\"waf\",\"request_id\":\"{number}\",\"outcome\":\"detected\"{rest}}}\n")
    }

    #[test]
    fn the_last_findings_are_kept() {
        let recent = RecentFindings::default();
        let none = "{\"outcome\":\"passed\",\"rules\":[]}\n";
        let checked = "{\"outcome\":\"passed\",\"checks\":[{}],\"rules\":[]}\n";
        recent.keep([none, checked].concat().as_bytes());
        for number in 0..LINES_MAX + 5 {
            recent.keep(line(number, "").as_bytes());
        }
        let lines = recent.lines();
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!((lines[0].0, &*lines[0].1.request_id), (2_005, "2004"));
        assert_eq!(lines.last().unwrap().1.request_id, "5");
        assert_eq!(recent.next(), 2_006);
    }

    #[test]
    fn recorded_requests_are_left_out_and_texts_of_clients_are_not() {
        let recent = RecentFindings::default();
        let target = ",\"target\":\"/?a=,\\\"request\\\":{\"";
        let recorded = ",\"score\":7,\"request\":{\"head\":\"GET / HTTP/1.1\"}";
        recent.keep(line(1, &[target, recorded].concat()).as_bytes());
        let kept = recent.lines().remove(0).1;
        assert_eq!((&*kept.target, kept.score), ("/?a=,\"request\":{", 7));
        assert!(kept.request.is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let recent = RecentFindings::default();
        let long = format!(",\"target\":\"{}\"", "a".repeat(100_000));
        for number in 0..100 {
            recent.keep(line(number, &long).as_bytes());
        }
        assert!(recent.kept().bytes <= BYTES_MAX);
        assert_eq!(recent.lines().len(), BYTES_MAX / line(10, &long).len());
    }
}
