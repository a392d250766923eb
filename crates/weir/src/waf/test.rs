//! `weir waf test`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use weir_cli::output;
use weir_config::rule_files::BUILTIN;
use weir_control::printable::printable;
use weir_waf::body::MultipartFlag;
use weir_waf::crs;
use weir_waf::inspection::{self, Inspection, Limit, Match, StoppedAt, Verdict};
use weir_waf::plan::{RuleSet, Settings};
use weir_waf::seclang::Variable;

use super::judge::{Judge, JudgedRequest};
use super::request::{RequestArguments, Trial};
use super::response::Answer;

/// Test rules on a request, and print the findings of each rule
///
/// Checks that need no rules run as well. With --config, the rules, settings, limits and checks of one virtual server
/// apply, but not its policies.
///
/// Exit status: 0 the request passes; 1 it is blocked, or could not be judged; 2 wrong usage, or invalid rules or
/// request.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir waf test --url 'https://shop.example/?id=1+or+1=1'\n  \
                        weir waf test --url shop.example/login --data 'user=a&password=b' --paranoia 2\n  \
                        weir waf test --rules ./coreruleset --request upload.http --json\n  \
                        weir waf test --config weir.yaml --virtual-server shop --request upload.http\n  \
                        weir waf test --request search.http --response error.http")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["url", "request"])))]
pub struct Arguments {
    /// The URL to request, as a browser would
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// A file with a request in HTTP/1 format; a body needs Content-Length or chunks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "header", "data"])]
    request: Option<PathBuf>,

    /// A file with its response, for rules that read responses
    #[arg(long, value_name = "FILE")]
    response: Option<PathBuf>,

    /// The method [default: GET, or POST with --data]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// A header such as 'Cookie: a=b'; it replaces a default header of the same name
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,

    /// The body; a form, unless a Content-Type is given
    #[arg(long, value_name = "TEXT")]
    data: Option<String>,

    /// Rule files, CRS folders, or `builtin`, in order
    #[arg(long, value_name = "PATH", default_value = BUILTIN)]
    rules: Vec<PathBuf>,

    /// Use this configuration instead of rules
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rules", "paranoia", "threshold", "set"])]
    config: Option<PathBuf>,

    /// The virtual server in the configuration [default: the only one with `waf`]
    #[arg(long, value_name = "NAME", requires = "config")]
    virtual_server: Option<String>,

    /// Skip the checks that need no rules
    #[arg(long)]
    no_checks: bool,

    /// Paranoia level, 1 to 4
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: Option<u8>,

    /// Score at which a request is blocked
    #[arg(long, value_name = "SCORE")]
    threshold: Option<u32>,

    /// A TX variable, for example arg_length=400
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// The client's address
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    client: IpAddr,

    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

/// The client's port.
const CLIENT_PORT: u16 = 40_000;

/// Exit status if the request could not be tested, as in clap for wrong usage.
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

/// The output, and whether the request passes.
fn judge(arguments: &Arguments) -> Result<(String, bool), String> {
    let judge = by(arguments)?.in_time();
    let trial = trial(arguments, &judge)?;
    let answer = arguments.response.as_ref().map(|file| Answer::of_file(file, &trial.method));
    let client = SocketAddr::new(arguments.client, CLIENT_PORT);
    let judged = judge.judge(&trial, client, answer.transpose()?.as_ref());
    let time_max_ms = judge.time_max_ms;
    let text = match arguments.json {
        true => format!("{:#}\n", as_json(&judged)),
        false => as_text(&judged, time_max_ms),
    };
    Ok((text, judged.verdict == Verdict::Pass))
}

fn by(arguments: &Arguments) -> Result<Judge, String> {
    let has_checks = !arguments.no_checks;
    match &arguments.config {
        Some(file) => Judge::of_config(file, arguments.virtual_server.as_deref(), has_checks),
        None => Judge::of_rules(&arguments.rules, &settings(arguments)?, has_checks),
    }
}

fn trial(arguments: &Arguments, judge: &Judge) -> Result<Trial, String> {
    match (&arguments.url, &arguments.request) {
        (Some(url), _) => {
            let (method, data) = (arguments.method.as_deref(), arguments.data.as_deref());
            let asked = RequestArguments { url, method, headers: &arguments.header, data };
            Trial::of_url(asked, judge.reading)
        }
        (None, Some(file)) => Trial::of_file(file, judge.reading),
        (None, None) => Err("name a request by --url or --request".into()),
    }
}

fn settings(arguments: &Arguments) -> Result<Settings, String> {
    let mut variables = Vec::new();
    let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
    if let Some(level) = arguments.paranoia {
        // CRS 3 uses `paranoia_level`.
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

fn as_json(JudgedRequest { inspection, verdict, unread }: &JudgedRequest) -> serde_json::Value {
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
                "hint": crs::known(rules_of(inspection), found.id).map(|it| it.hint()),
                "values": values,
            })
        })
        .collect();
    let checks: Vec<_> = inspection
        .findings()
        .iter()
        .map(|it| {
            json!({
                "name": it.check.name(),
                "action": it.action.name(),
                "place": it.place,
                "data": it.detail,
            })
        })
        .collect();
    json!({
        "verdict": told(verdict),
        "score": inspection.score(),
        "threshold": inspection.number("inbound_anomaly_score_threshold"),
        "stopped": inspection::stopped(inspection).map(|it| json!({ "phase": it.phase, "rule": it.rule })),
        "body": { "unread": unread, "failure": inspection.body_failure(), "multipart": strict(inspection) },
        "checks": checks,
        "rules": matches,
    })
}

/// The description of a verdict.
pub fn told(verdict: &Verdict) -> String {
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

/// The reasons why servers may read a multipart body differently (`MULTIPART_STRICT_ERROR`).
fn strict(inspection: &Inspection) -> Vec<&'static str> {
    let is_set = |name: &str| {
        let variable = Variable::from_name(name);
        variable.is_some_and(|variable| inspection.value(variable) == Some(b"1"))
    };
    if !is_set("MULTIPART_STRICT_ERROR") {
        return Vec::new();
    }
    let set = MultipartFlag::ALL.into_iter().filter(|flag| is_set(flag.variable()));
    let unmatched = is_set("MULTIPART_UNMATCHED_BOUNDARY");
    let other = unmatched.then_some("A line begins like the boundary, but is none.");
    set.map(MultipartFlag::sentence).chain(other).collect()
}

/// Where a limit ended the rules.
fn stopped(
    StoppedAt { phase, rule }: StoppedAt,
    (limit, time_max_ms): (Limit, u64),
    rules: &RuleSet,
) -> String {
    let what = match limit {
        Limit::Time => format!("`time_max` ({time_max_ms} ms of processor time)"),
        Limit::Work => "`work_max`".into(),
        _ => format!("the limit of {}", limit.name()),
    };
    let place = rules.rule(rule).map(|rule| format!(" ({})", rule.place)).unwrap_or_default();
    format!("\nThe rules ended in phase {phase}, behind rule {rule}{place}, at {what}.")
}

fn as_text(
    JudgedRequest { inspection, verdict, unread }: &JudgedRequest,
    time_max_ms: u64,
) -> String {
    let mut text = String::new();
    let threshold = inspection.number("inbound_anomaly_score_threshold");
    let _ = write!(text, "{}", told(verdict));
    if threshold > 0 {
        let _ = write!(text, ", score {} of {threshold}", inspection.score());
    }
    if let (Some(at), Verdict::Exceeded(limit)) = (inspection::stopped(inspection), verdict) {
        text += &stopped(at, (*limit, time_max_ms), inspection.view().rules());
    }
    if let Some(failure) = inspection.body_failure() {
        let _ = write!(text, "\nThe body: {failure}");
    }
    if let Some(reason) = unread {
        let _ = write!(text, "\nThe body was not read: {reason}.");
    }
    for reason in strict(inspection) {
        let _ = write!(text, "\nThe multipart body: {reason}");
    }
    text.push('\n');
    put_findings(&mut text, inspection);
    let logged = inspection.matches().iter().filter(|found| found.is_logged);
    let rules = &inspection.view().rules().rules;
    for found in logged {
        let rule = rules.iter().find(|rule| rule.id == found.id);
        let severity = rule.and_then(|rule| rule.severity).map_or("", |it| it.name());
        let message = printable(&String::from_utf8_lossy(&found.message));
        let _ = writeln!(text, "\n  {} {severity} {message}", found.id);
        if let Some(rule) = rule {
            let _ = writeln!(text, "    {}", rule.place);
        }
        let _ = write!(text, "{}", values(found));
        if let Some(known) = crs::known(rules_of(inspection), found.id) {
            let _ = writeln!(text, "    {}", known.hint());
        }
    }
    text
}

fn rules_of(inspection: &Inspection) -> &RuleSet {
    inspection.view().rules()
}

fn put_findings(text: &mut String, inspection: &Inspection) {
    for finding in inspection.findings() {
        let (name, action) = (finding.check.name(), finding.action.name());
        let _ = writeln!(text, "\n  check {name} ({action}): {}", finding.check.sentence());
        // Both quote the request.
        let _ =
            writeln!(text, "    {} = {}", printable(&finding.place), printable(&finding.detail));
    }
}

/// Maximum number of values shown per rule.
const VALUES_SHOWN_MAX: usize = 3;

fn values(found: &Match) -> String {
    let mut text = String::new();
    for value in found.values.iter().take(VALUES_SHOWN_MAX) {
        let shown: String = value.value.escape_ascii().to_string().chars().take(100).collect();
        let _ = writeln!(text, "    {} = {shown}", value.variable.escape_ascii());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waf::request::HeadSettings;

    /// The output for a request with this body.
    fn told(rules: &str, content_type: &str, body: &str) -> String {
        let settings = Settings::default();
        let judge = Judge::of_rules(&[rules.into()], &settings, false).expect("a judge");
        let headers = [format!("Content-Type: {content_type}")];
        let url = "http://shop.example/";
        let asked = RequestArguments { url, method: None, headers: &headers, data: Some(body) };
        let trial = Trial::of_url(asked, HeadSettings::default()).expect("a request");
        let client = SocketAddr::from(([127, 0, 0, 1], CLIENT_PORT));
        as_text(&judge.judge(&trial, client, None), judge.time_max_ms)
    }

    #[test]
    fn rules_that_take_too_long_are_named() {
        let settings = Settings::default();
        let mut judge = Judge::of_rules(&["builtin".into()], &settings, false).expect("a judge");
        judge.time_max_ms = 0;
        let judge = judge.in_time();
        let url = "http://shop.example/";
        let data = format!("a={}", "select ".repeat(50_000));
        let asked = RequestArguments { url, method: None, headers: &[], data: Some(&data) };
        let trial = Trial::of_url(asked, HeadSettings::default()).expect("a request");
        let client = SocketAddr::from(([127, 0, 0, 1], CLIENT_PORT));
        let judged = judge.judge(&trial, client, None);
        assert_eq!(judged.verdict, Verdict::Exceeded(Limit::Time));
        let text = as_text(&judged, judge.time_max_ms);
        assert!(text.contains("the limit of time was reached"), "{text}");
        assert!(text.contains("\nThe rules ended in phase 2, behind rule 1"), "{text}");
        let json = as_json(&judged);
        assert_eq!(json["stopped"]["phase"], 2, "{json}");
    }

    #[test]
    fn a_body_that_is_not_read_has_a_reason() {
        let archive = "PK\u{3}\u{4}\u{14}\0\0\0\u{8}\0 and more";
        let picture = "GIF89a\u{1}\0\u{1}\0\0\0\0 and more";
        let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--\r\n";
        let two_lines = part.replace("form-data;", "form-data;\r\n");
        for (rules, content_type, body, reason) in [
            ("builtin", "application/zip", archive, Some("its first bytes show a binary format")),
            ("builtin", "image/gif", picture, None),
            ("builtin", "image/gif", "a text", None),
            ("builtin", "text/plain", picture, None),
        ] {
            let told = told(rules, content_type, body);
            match reason {
                Some(reason) => {
                    assert!(told.contains(&format!("was not read: {reason}.")), "{told}")
                }
                None => assert!(!told.contains("was not read"), "{told}"),
            }
        }
        let multipart = "multipart/form-data; boundary=b";
        let strict = told("builtin", multipart, &two_lines);
        assert!(strict.contains("The multipart body: "), "{strict}");
        let plain = told("builtin", multipart, part);
        assert!(!plain.contains("The multipart body"), "{plain}");
    }
}
