//! `weir waf test`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use weir_config::rule_files::BUILTIN;
use weir_waf::inspection::{Inspection, Limit, Match, Mode, Options, Request, Verdict};
use weir_waf::plan::{Settings, View};

use super::files;
use super::request::Trial;
use crate::output;

/// Try rules on a request, and say rule by rule what they find
///
/// Rules that look at responses are not tried. Exit status: 0 it passes; 1 it is blocked, or could not be judged; 2 wrong usage, or rules or a request that cannot be used.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir waf test --url 'https://shop.example/?id=1+or+1=1'\n  \
                        weir waf test --url shop.example/login --data 'user=a&password=b' --paranoia 2\n  \
                        weir waf test --rules ./coreruleset --request upload.http --json")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["url", "request"])))]
pub struct Arguments {
    /// A URL, asked for as a browser would
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// A file with a request as HTTP/1 sends it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "header", "data"])]
    request: Option<PathBuf>,

    /// The method [default: GET, or POST with --data]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// A header more, as in 'Cookie: a=b'
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,

    /// The body: that of a form, if no Content-Type is given
    #[arg(long, value_name = "TEXT")]
    data: Option<String>,

    /// Files of rules, folders of CRS, or `builtin`, in the order in which they are read
    #[arg(long, value_name = "PATH", default_value = BUILTIN)]
    rules: Vec<PathBuf>,

    /// Paranoia level, 1 to 4
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: Option<u8>,

    /// Score at which a request is blocked
    #[arg(long, value_name = "SCORE")]
    threshold: Option<u32>,

    /// A variable of TX, as in arg_length=400
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// The client's address
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    client: IpAddr,

    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

/// The exit status of clap for wrong usage stands for all that kept the request from being tried.
const EXIT_UNUSABLE: u8 = 2;

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match judge(arguments) {
        Ok((text, passes)) => match output::print(text) {
            Ok(()) if passes => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        },
        Err(reason) => {
            output::tell(format_args!("weir waf test: {reason}\n"));
            ExitCode::from(EXIT_UNUSABLE)
        }
    }
}

/// What is said, and whether the request passes.
fn judge(arguments: &Arguments) -> Result<(String, bool), String> {
    let trial = match (&arguments.url, &arguments.request) {
        (Some(url), _) => {
            let method = arguments.method.as_deref();
            Trial::of_url(url, method, &arguments.header, arguments.data.as_deref())?
        }
        (None, Some(file)) => Trial::of_file(file)?,
        (None, None) => return Err("name a request by --url or --request".into()),
    };
    let rules = Arc::new(files::compile(&arguments.rules)?);
    let view = View::new(rules, &settings(arguments)?).map_err(|it| files::told(&it))?;
    let (mut inspection, unjudged) = inspect(&Arc::new(view), &trial, arguments.client);
    inspection.logging();
    let verdict = inspection.would_be().cloned().or(unjudged).unwrap_or(Verdict::Pass);
    let passes = verdict == Verdict::Pass;
    let text = if arguments.json {
        format!("{:#}\n", as_json(&inspection, &verdict))
    } else {
        as_text(&inspection, &verdict)
    };
    Ok((text, passes))
}

fn settings(arguments: &Arguments) -> Result<Settings, String> {
    let mut variables = Vec::new();
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    if let Some(level) = arguments.paranoia {
        // `paranoia_level` is the name in CRS 3.
        for name in ["blocking_paranoia_level", "detection_paranoia_level", "paranoia_level"] {
            set(name, level.to_string());
        }
    }
    if let Some(score) = arguments.threshold {
        set("inbound_anomaly_score_threshold", score.to_string());
    }
    for pair in &arguments.set {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("--set {pair}: as in --set arg_length=400"))?;
        set(name, value.to_owned());
    }
    Ok(Settings { variables })
}

/// All phases of the request. Nothing stops at what would be blocked, so that all is told that rules find.
fn inspect(view: &Arc<View>, trial: &Trial, client: IpAddr) -> (Inspection, Option<Verdict>) {
    let headers: Vec<(&[u8], &[u8])> =
        trial.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let request = Request {
        client: (client, 40_000),
        server: (IpAddr::V4(Ipv4Addr::LOCALHOST), 443),
        method: trial.method.as_bytes(),
        received_target: trial.target.as_bytes(),
        target: trial.target.as_bytes(),
        protocol: trial.protocol.as_bytes(),
        headers: &headers,
        unique_id: b"weir-waf-test",
    };
    let limits = view.rules().settings.limits();
    let options = Options { limits, ..Options::new(Mode::Detect) };
    let mut inspection = Inspection::begin(Arc::clone(view), &options, &request);
    let of_head = inspection.request_headers();
    inspection.body(&trial.body);
    inspection.end_body();
    let of_body = inspection.request_body();
    // Where rules only detect, they pass whatever they judge.
    let unjudged = [of_head, of_body].into_iter().find(|verdict| *verdict != Verdict::Pass);
    (inspection, unjudged)
}

fn as_json(inspection: &Inspection, verdict: &Verdict) -> serde_json::Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rules = &inspection.view().rules().rules;
    let matches: Vec<_> = inspection
        .matches()
        .iter()
        .map(|found| {
            let rule = rules.iter().find(|rule| rule.id == found.id);
            let values: Vec<_> = found
                .values
                .iter()
                .map(|it| json!({ "variable": text(&it.variable), "value": text(&it.value) }))
                .collect();
            json!({
                "id": found.id,
                "message": text(&found.message),
                "data": text(&found.log_data),
                "severity": rule.and_then(|rule| rule.severity).map(|it| it.name()),
                "tags": rule.map(|rule| rule.tags.to_vec()),
                "file": rule.map(|rule| rule.place.file.to_string()),
                "line": rule.map(|rule| rule.place.line),
                "values": values,
            })
        })
        .collect();
    json!({
        "verdict": told(verdict),
        "score": inspection.score(),
        "threshold": inspection.number("inbound_anomaly_score_threshold"),
        "rules": matches,
    })
}

fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Pass => "passes".into(),
        Verdict::Deny { status, rule } => format!("blocked with {status} by rule {rule}"),
        Verdict::Refused { check, status } => {
            format!("blocked with {status} by the check {}", check.name())
        }
        Verdict::Drop { rule } => format!("connection closed by rule {rule}"),
        Verdict::Redirect { status, rule, .. } => {
            format!("redirected with {status} by rule {rule}")
        }
        Verdict::Exceeded(Limit::Body) => "not judged: the body cannot be read".into(),
        Verdict::Exceeded(limit) => {
            format!("not judged: the limit of {} was reached", limit.name())
        }
    }
}

fn as_text(inspection: &Inspection, verdict: &Verdict) -> String {
    let mut text = String::new();
    let threshold = inspection.number("inbound_anomaly_score_threshold");
    let _ = write!(text, "{}", told(verdict));
    if threshold > 0 {
        let _ = write!(text, ", score {} of {threshold}", inspection.score());
    }
    if let Some(failure) = inspection.body_failure() {
        let _ = write!(text, "\nThe body: {failure}");
    }
    text.push('\n');
    let logged = inspection.matches().iter().filter(|found| found.is_logged);
    let rules = &inspection.view().rules().rules;
    for found in logged {
        let rule = rules.iter().find(|rule| rule.id == found.id);
        let severity = rule.and_then(|rule| rule.severity).map_or("", |it| it.name());
        let message = String::from_utf8_lossy(&found.message);
        let _ = writeln!(text, "\n  {} {severity} {message}", found.id);
        if let Some(rule) = rule {
            let _ = writeln!(text, "    {}", rule.place);
        }
        let _ = write!(text, "{}", values(found));
    }
    text
}

/// Values that one rule shows.
const VALUES_SHOWN_MAX: usize = 3;

fn values(found: &Match) -> String {
    let mut text = String::new();
    for value in found.values.iter().take(VALUES_SHOWN_MAX) {
        let shown: String = value.value.escape_ascii().to_string().chars().take(100).collect();
        let _ = writeln!(text, "    {} = {shown}", value.variable.escape_ascii());
    }
    text
}
