//! The audit log of the web application firewall: one JSON line for each request with findings.
//!
//! The log is independent of the access log's format. Secrets are masked ([`redaction`]). The search for them takes time in
//! proportion to the texts of the request, so the line of a request with long texts is written on another thread.

mod recorded_request;

use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;

use weir_core::clock::Clock;
use weir_event_loop::wall_clock::WallClock;
use weir_exchange::parts::inspection_report::{Cause, InspectionOutcome, InspectionReport};
use weir_exchange::shared::counters::WorkerCounters;
use weir_waf::checks::Finding;
use weir_waf::inspection::{Inspection, Match, MatchedValue, RecordedBody, stopped};
use weir_waf::plan::CompiledRule;
use weir_waf::seclang::Variable;

use crate::json::{put, put_number, put_text_key, put_whole_string};
use crate::log_batch::Batcher;
use crate::redaction::{self, Secrets};
use crate::reports::{Log, LogBatch};
use crate::waf_log::recorded_request::put_recorded;

/// Maximum size of a line in bytes with its line feed, without a recorded request.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The bytes of [`LINE_BYTES_MAX`] that are reserved for the text after the last rule.
const END_BYTES_MAX: usize = 64;
/// Maximum size of one text in a line in bytes, before escaping.
const TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of rules in a line.
const RULES_MAX: usize = 64;
/// Maximum number of tags of one rule.
const TAGS_MAX: usize = 32;
/// Maximum number of check findings in a line.
const FINDINGS_MAX: usize = 32;
/// Maximum size of all check findings in bytes, which leaves space for the rules.
const FINDINGS_BYTES_MAX: usize = 16 * 1024;
/// Maximum size of the place of a finding in bytes.
const PLACE_BYTES_MAX: usize = 256;
/// Maximum number of matched values of one rule.
const VALUES_MAX: usize = 32;
/// The line of a request with more bytes of texts is long.
const LONG_TEXT_BYTES: usize = 16 << 10;

/// The WAF log of one worker.
pub struct WafLog {
    batch: Batcher,
    wall: WallClock,
}

impl WafLog {
    /// Creates a log that sends batches to `sender`.
    pub fn new(sender: SyncSender<LogBatch>) -> Self {
        Self { batch: Batcher::new(Log::Waf, sender), wall: WallClock::default() }
    }

    /// The line of a request at the present time, which is not written yet.
    pub fn begin(&mut self, report: Box<InspectionReport>, clock: Clock) -> UnwrittenLine {
        let (date, millisecond) = self.wall.at(clock);
        let time = format!("{}.{millisecond:03}Z", date.iso);
        UnwrittenLine { time, report, sender: self.batch.sender() }
    }

    /// Writes a line.
    pub fn write(&mut self, line: &UnwrittenLine, clock: Clock, counters: &WorkerCounters) {
        line.put(self.batch.line(clock.now_ms()));
        self.batch.end_line(&counters.waf_log_lines_dropped);
    }

    /// Sends the batch if it is old enough. Returns the time of the next call; `None`: no line waits.
    #[inline]
    pub fn flush_if_due(&mut self, now_ms: u64, counters: &WorkerCounters) -> Option<u64> {
        self.batch.flush_if_due(now_ms, &counters.waf_log_lines_dropped)
    }

    /// Sends the batch; if the queue is full, drops and counts it.
    pub fn flush(&mut self, counters: &WorkerCounters) {
        self.batch.flush(&counters.waf_log_lines_dropped);
    }
}

/// A line that is not written yet. Any thread may write it.
#[derive(Debug)]
pub struct UnwrittenLine {
    /// The time as it is in the line.
    time: String,
    report: Box<InspectionReport>,
    sender: SyncSender<LogBatch>,
}

impl UnwrittenLine {
    /// Whether writing it takes longer than other connections of a worker should wait.
    pub fn is_long(&self) -> bool {
        self.report.inspection.as_ref().is_some_and(|inspection| {
            let recorded = match inspection.recorded_body() {
                RecordedBody::Whole(body) => body.len(),
                RecordedBody::LeftOut | RecordedBody::Off => 0,
            };
            inspection.counts().text_bytes + recorded > LONG_TEXT_BYTES
        })
    }

    /// Writes the line, and sends it to the log by itself. Returns whether the log's queue had a place for it.
    pub fn send(&self) -> bool {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        self.sender.try_send(LogBatch { log: Log::Waf, bytes, lines: 1 }).is_ok()
    }

    fn put(&self, out: &mut Vec<u8>) {
        let (start, report) = (out.len(), &*self.report);
        out.extend_from_slice(b"{\"type\":\"waf\",\"time\":\"");
        out.extend_from_slice(self.time.as_bytes());
        out.push(b'"');
        put_text_key(out, "request_id");
        put_whole_string(out, report.request_id.as_bytes());
        put_client(out, report.client);
        put_text(out, "virtual_server", report.virtual_server.as_bytes());
        match &report.inspection {
            Some(inspection) => put_inspection(out, start, report, inspection),
            None => {
                put_outcome(out, report);
                put_text_key(out, "lost");
                out.extend_from_slice(b"true");
            }
        }
        out.extend_from_slice(b"}\n");
    }
}

/// Writes the request, the result, and the findings.
fn put_inspection(
    out: &mut Vec<u8>,
    start: usize,
    report: &InspectionReport,
    inspection: &Inspection,
) {
    let secrets = Secrets::of(inspection, &report.credential_fields);
    put_request(out, inspection, &secrets);
    put_outcome(out, report);
    put_findings(out, inspection.findings(), &secrets);
    put_rules(out, start, (inspection, &secrets));
    put_recorded(out, inspection, &secrets);
}

fn put_client(out: &mut Vec<u8>, client: Option<SocketAddr>) {
    put_text_key(out, "client");
    match client {
        Some(client) => put(out, format_args!("\"{client}\"")),
        None => out.extend_from_slice(b"\"unix\""),
    }
}

fn put_request(out: &mut Vec<u8>, inspection: &Inspection, secrets: &Secrets<'_>) {
    let value = |variable| inspection.value(variable).unwrap_or_default();
    let host = inspection.header(b"host").unwrap_or_else(|| value(Variable::ServerName));
    let target = redaction::target(value(Variable::RequestUriRaw));
    let target = secrets.without(&target);
    put_text(out, "method", value(Variable::RequestMethod));
    put_text(out, "host", &secrets.shown_text(host));
    put_text(out, "target", &target);
    put_text(out, "version", value(Variable::RequestProtocol));
    let agent = inspection.header(b"user-agent").unwrap_or_default();
    put_text(out, "user_agent", &secrets.shown_text(agent));
}

/// Writes the result of the inspection, its findings and the action.
fn put_outcome(out: &mut Vec<u8>, report: &InspectionReport) {
    let InspectionReport { mode, outcome, status, ref inspection, .. } = *report;
    let inspection = inspection.as_ref();
    put_text(out, "mode", mode.name().as_bytes());
    put_text(out, "outcome", outcome.name().as_bytes());
    if status != 0 {
        put_text_key(out, "status");
        put_number(out, status.into());
    }
    match outcome {
        InspectionOutcome::Detected(cause) | InspectionOutcome::Blocked(cause) => {
            put_cause(out, cause)
        }
        InspectionOutcome::Unjudged { limit, .. } => {
            put_text(out, "limit", limit.name().as_bytes())
        }
        InspectionOutcome::Passed | InspectionOutcome::Unfinished => {}
    }
    if let Some(stopped) = inspection.and_then(stopped) {
        put_text_key(out, "stopped");
        put(out, format_args!("{{\"phase\":{},\"rule\":{}}}", stopped.phase, stopped.rule));
    }
    if let Some(reason) = inspection.and_then(Inspection::body_failure) {
        put_text(out, "reason", reason.as_bytes());
    }
    put_text_key(out, "blocked");
    put(out, format_args!("{}", outcome.is_blocked()));
    let Some(inspection) = inspection else { return };
    put_text_key(out, "score");
    put(out, format_args!("{}", inspection.score()));
    let threshold = inspection.number("inbound_anomaly_score_threshold");
    if threshold > 0 {
        put_text_key(out, "threshold");
        put(out, format_args!("{threshold}"));
    }
}

fn put_cause(out: &mut Vec<u8>, cause: Cause) {
    match cause {
        Cause::Rule(0) => {}
        Cause::Rule(rule) => {
            put_text_key(out, "rule");
            put_number(out, rule);
        }
        Cause::Check(check) => put_text(out, "check", check.name().as_bytes()),
    }
}

/// Writes the findings of checks.
fn put_findings(out: &mut Vec<u8>, findings: &[Finding], secrets: &Secrets<'_>) {
    if findings.is_empty() {
        return;
    }
    put_text_key(out, "checks");
    out.push(b'[');
    let start = out.len();
    let mut shown = 0;
    for finding in findings.iter().take(FINDINGS_MAX) {
        let before = out.len();
        if shown > 0 {
            out.push(b',');
        }
        put_finding(out, finding, secrets);
        if out.len() - start > FINDINGS_BYTES_MAX {
            out.truncate(before);
            break;
        }
        shown += 1;
    }
    out.push(b']');
    if shown < findings.len() {
        put_text_key(out, "checks_left_out");
        put_number(out, (findings.len() - shown) as u64);
    }
}

fn put_finding(out: &mut Vec<u8>, finding: &Finding, secrets: &Secrets<'_>) {
    out.extend_from_slice(b"{\"name\":");
    put_whole_string(out, finding.check.name().as_bytes());
    put_text(out, "action", finding.action.name().as_bytes());
    let place = redaction::place(&finding.place);
    put_text(out, "place", &place[..place.len().min(PLACE_BYTES_MAX)]);
    put_text(out, "data", &secrets.of_finding(&finding.place, finding.detail.as_bytes()));
    out.push(b'}');
}

/// Writes the logged rules that fit into the line. `start`: the start of the line in `out`.
fn put_rules(out: &mut Vec<u8>, start: usize, (inspection, secrets): (&Inspection, &Secrets<'_>)) {
    put_text_key(out, "rules");
    out.push(b'[');
    let logged = inspection.matches().iter().filter(|found| found.is_logged);
    let mut left_out = 0;
    for (index, found) in logged.enumerate() {
        if left_out > 0 || index >= RULES_MAX {
            left_out += 1;
            continue;
        }
        let before = out.len();
        let is_too_long = |out: &[u8]| out.len() - start > LINE_BYTES_MAX - END_BYTES_MAX;
        for is_brief in [false, true] {
            if index > 0 {
                out.push(b',');
            }
            put_rule(out, found, inspection, secrets, is_brief);
            if !is_too_long(out) {
                break;
            }
            out.truncate(before);
        }
        left_out += u64::from(out.len() == before);
    }
    out.push(b']');
    if left_out > 0 {
        put_text_key(out, "rules_left_out");
        put_number(out, left_out);
    }
}

/// Writes one rule. `is_brief`: only the id and the message, because the line has no space for more.
fn put_rule(
    out: &mut Vec<u8>,
    found: &Match,
    inspection: &Inspection,
    secrets: &Secrets<'_>,
    is_brief: bool,
) {
    put(out, format_args!("{{\"id\":{}", found.id));
    put_text(out, "message", &secrets.shown_text(clipped(&found.message)));
    if !is_brief {
        put_details(out, found, inspection.view().rules().rule(found.id), secrets);
    }
    out.push(b'}');
}

fn put_details(
    out: &mut Vec<u8>,
    found: &Match,
    rule: Option<&CompiledRule>,
    secrets: &Secrets<'_>,
) {
    let shown = secrets.shown(clipped(&found.log_data), &found.values);
    put_text(out, "data", &shown.data);
    if let Some(rule) = rule {
        if let Some(severity) = rule.severity {
            put_text(out, "severity", severity.name().as_bytes());
        }
        put_list(out, "tags", rule.tags.iter().take(TAGS_MAX), |out, tag| {
            put_whole_string(out, clipped(tag.as_bytes()));
        });
        put_text(out, "file", rule.place.file.as_bytes());
        put_text_key(out, "line");
        put_number(out, rule.place.line.into());
    }
    let values = found.values.iter().zip(&shown.values).take(VALUES_MAX);
    put_list(out, "values", values, |out, (MatchedValue { variable, .. }, value)| {
        out.extend_from_slice(b"{\"variable\":");
        put_whole_string(out, clipped(&redaction::variable(variable)));
        put_text(out, "value", value);
        out.push(b'}');
    });
}

fn put_list<T>(
    out: &mut Vec<u8>,
    key: &str,
    items: impl Iterator<Item = T>,
    put_item: impl Fn(&mut Vec<u8>, T),
) {
    put_text_key(out, key);
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_item(out, item);
    }
    out.push(b']');
}

fn put_text(out: &mut Vec<u8>, key: &str, text: &[u8]) {
    put_text_key(out, key);
    put_whole_string(out, clipped(text));
}

fn clipped(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests;
