//! Rules and settings for judging requests: from the command line or from a virtual server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use weir_config::snapshot::{Snapshot, VirtualServer};
use weir_config::{Colour, Resolutions, WAF_TIME_MAX_MS};
use weir_http::h1::HeadLimits;
use weir_waf::body::LOOK_BYTES;
use weir_waf::checks::Checks;
use weir_waf::inspection::{
    BodyLength, Inspection, Limit, Mode, Options, Request, Response, TimeLimit, Verdict,
};
use weir_waf::plan::{Settings, View};

use super::files;
use super::request::{HeadSettings, Trial};
use super::response::Answer;

/// The settings of a judge.
#[derive(Debug)]
pub struct Judge {
    view: Arc<View>,
    options: Options,
    body_bytes_max: u64,
    files_bytes_max: u64,
    /// `time_max`.
    pub time_max_ms: u64,
    /// Settings for parsing requests.
    pub reading: HeadSettings,
}

/// The judgement on a request.
pub struct JudgedRequest {
    pub inspection: Inspection,
    pub verdict: Verdict,
    /// Why the body was not read; `None`: it was, or there is none.
    pub unread: Option<&'static str>,
}

impl Judge {
    /// A judge with these rules; with `has_checks`, all checks with default settings.
    pub fn of_rules(
        rules: &[PathBuf],
        settings: &Settings,
        has_checks: bool,
    ) -> Result<Self, String> {
        let rules = Arc::new(files::compile(rules)?);
        let view = View::new(rules, settings).map_err(|problems| files::told(&problems))?;
        let limits = view.rules().settings.limits();
        let checks = has_checks.then(|| Arc::new(Checks::default()));
        let options = Options { limits, checks, ..Options::new(Mode::Detect) };
        let reading = HeadSettings::default();
        let (body_bytes_max, files_bytes_max) = (u64::MAX, u64::MAX);
        let time_max_ms = WAF_TIME_MAX_MS;
        let view = Arc::new(view);
        Ok(Self { view, options, body_bytes_max, files_bytes_max, time_max_ms, reading })
    }

    /// The same judge, which stops like a running weir when rules take longer than `time_max`.
    pub fn in_time(mut self) -> Self {
        let max_us = self.time_max_ms * 1_000;
        self.options.time = Some(TimeLimit { max_us, now_us: thread_cpu_us });
        self
    }

    /// The settings of a virtual server in a configuration; without a name, of the only one with `waf`.
    pub fn of_config(file: &Path, name: Option<&str>, has_checks: bool) -> Result<Self, String> {
        let snapshot = load(file)?;
        let server = find(&snapshot.virtual_servers, name)
            .map_err(|reason| format!("{}: {reason}", file.display()))?;
        Self::of_server(server, has_checks)
            .ok_or_else(|| format!("{}: `{}` has no `waf`", file.display(), server.name))
    }

    /// The settings of a virtual server; `None`: it does not inspect requests.
    pub fn of_server(server: &VirtualServer, has_checks: bool) -> Option<Self> {
        let (waf, http) = (server.waf.as_ref()?, &server.http);
        let options = Options {
            limits: waf.limits,
            inflated_bytes_max: waf.body_bytes_max,
            work_bytes_max: waf.work_bytes_max,
            checks: waf.checks.clone().filter(|_| has_checks),
            ..Options::new(Mode::Detect)
        };
        let head = HeadLimits { head_size_max: http.head_size_max, headers_max: http.headers_max };
        Some(Self {
            view: Arc::clone(waf.common.view()),
            options,
            body_bytes_max: waf.body_bytes_max,
            files_bytes_max: waf.files_bytes_max,
            time_max_ms: waf.time_max_ms,
            reading: HeadSettings { head, target: http.target },
        })
    }

    /// Judges a request, and its response if there is one. The inspection continues after a blocking rule, so that all
    /// findings are shown.
    pub fn judge(
        &self,
        trial: &Trial,
        client: SocketAddr,
        answer: Option<&Answer>,
    ) -> JudgedRequest {
        let headers = borrowed(&trial.headers);
        let request = Request {
            client: (client.ip(), client.port()),
            server: (IpAddr::V4(Ipv4Addr::LOCALHOST), 443),
            method: &trial.method,
            received_target: &trial.received_target,
            target: &trial.target,
            protocol: &trial.protocol,
            headers: &headers,
            body: trial.length,
            changed_cookies: &[],
            unique_id: b"weir-waf-test",
        };
        let mut inspection = Inspection::begin(Arc::clone(&self.view), &self.options, &request);
        let of_head = inspection.request_headers();
        let (of_body, unread) = self.body(&mut inspection, trial);
        let mut verdicts = vec![of_head, of_body];
        if let Some(answer) = answer {
            verdicts.extend(of_answer(&mut inspection, answer));
        }
        inspection.logging();
        // In mode `detect`, a verdict of the rules is `Pass` in any case.
        let unjudged = verdicts.into_iter().find(|verdict| *verdict != Verdict::Pass);
        let verdict = inspection.would_be().cloned().or(unjudged).unwrap_or(Verdict::Pass);
        JudgedRequest { inspection, verdict, unread }
    }

    /// Passes the body to the rules. Returns the verdict, and why the body was not read, if it was not.
    fn body(&self, inspection: &mut Inspection, trial: &Trial) -> (Verdict, Option<&'static str>) {
        let body = &trial.body[..];
        if body.is_empty() {
            return (inspection.request_body(), None);
        }
        if !inspection.needs_body() {
            let reason = match inspection.reads_body() {
                true => "no rule selects a parser for bodies of this type",
                false => "a rule has ended the inspection before, or switched it off for bodies",
            };
            return (inspection.request_body(), Some(reason));
        }
        if inspection.body_progress().is_open {
            let (look, rest) = body.split_at(body.len().min(LOOK_BYTES));
            inspection.body(look);
            if !inspection.needs_body() {
                inspection.end_body();
                return (inspection.request_body(), Some("its first bytes show a binary format"));
            }
            return self.rest_of_body(inspection, trial, (rest, look.len()));
        }
        self.rest_of_body(inspection, trial, (body, 0))
    }

    /// Passes the body behind the first `before` bytes to the rules.
    fn rest_of_body(
        &self,
        inspection: &mut Inspection,
        trial: &Trial,
        (body, before): (&[u8], usize),
    ) -> (Verdict, Option<&'static str>) {
        let may_have_files = inspection.body_progress().may_have_files;
        let files_bytes_max = if may_have_files { self.files_bytes_max } else { 0 };
        let bytes_max = self.body_bytes_max.saturating_add(files_bytes_max);
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX).saturating_sub(before);
        let mut unread = None;
        match (body.get(..bytes_max).filter(|part| part.len() < body.len()), trial.length) {
            (None, _) => {
                inspection.body(body);
                let files_bytes = inspection.body_progress().files_bytes;
                let others = ((before + body.len()) as u64).saturating_sub(files_bytes);
                if others > self.body_bytes_max || files_bytes > self.files_bytes_max {
                    unread = Some("it is longer than `body_size_max` or `files_size_max`");
                    inspection.cut_body(Limit::BodyLength);
                } else {
                    inspection.end_body();
                }
            }
            // A body above the limit would not be read at all.
            (Some(_), BodyLength::Known(_)) => {
                unread = Some("it is longer than `body_size_max`");
                inspection.cut_body(Limit::BodyLength);
            }
            (Some(part), _) => {
                unread = Some("it is longer than `body_size_max`; the rules read the part before");
                inspection.body(part);
                inspection.cut_body(Limit::BodyLength);
            }
        }
        let is_let_go = unread.is_none() && !inspection.needs_body();
        let verdict = inspection.request_body();
        (verdict, unread.or(is_let_go.then_some("its first bytes show a binary format")))
    }
}

/// CPU time of this thread, in microseconds.
fn thread_cpu_us() -> u64 {
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    ran.tv_sec as u64 * 1_000_000 + ran.tv_nsec as u64 / 1_000
}

fn of_answer(inspection: &mut Inspection, answer: &Answer) -> [Verdict; 2] {
    let headers = borrowed(&answer.headers);
    let (status, protocol) = (answer.status, &answer.protocol[..]);
    inspection.response(&Response { status, protocol, headers: &headers });
    let of_head = inspection.response_headers();
    inspection.response_content(&answer.body);
    [of_head, inspection.response_body()]
}

fn borrowed(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    fields.iter().map(|(name, value)| (&name[..], &value[..])).collect()
}

/// The snapshot of a configuration, without resolving names.
pub fn load(file: &Path) -> Result<Snapshot, String> {
    let loaded = weir_sources::load(file);
    let Some(config) = loaded.config else {
        let told = weir_config::render_text(&loaded.diagnostics, Colour::Never);
        return Err(format!("{} cannot be used\n{}", file.display(), told.trim_end()));
    };
    Ok(config.snapshot(&Resolutions::default()))
}

/// Finds the virtual server.
fn find<'a>(servers: &'a [VirtualServer], name: Option<&str>) -> Result<&'a VirtualServer, String> {
    if let Some(name) = name {
        let found = servers.iter().find(|server| &*server.name == name);
        return found.ok_or_else(|| format!("there is no virtual server `{name}`"));
    }
    let mut inspecting = servers.iter().filter(|server| server.waf.is_some());
    match (inspecting.next(), inspecting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err("no virtual server has a `waf`".into()),
        (Some(one), Some(other)) => Err(format!(
            "several virtual servers have a `waf`: name one, as in --virtual-server {} (or {})",
            one.name, other.name
        )),
    }
}
