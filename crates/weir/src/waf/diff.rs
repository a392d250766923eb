//! `weir waf diff`.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use weir_config::snapshot::Snapshot;
use weir_waf::inspection::Verdict;
use weir_waf::plan::Settings;

use super::judge::{Judge, JudgedRequest, load};
use weir_cli::output;
use weir_control::firewall::line::{Line, bytes};
use weir_control::printable::printable;

use super::test::told;
use super::{log, recorded_requests};

/// Judge recorded requests by old and new rules, and show different decisions
///
/// `log.waf.record` records requests, without their secrets. Rules are given as for `--rules` of `weir waf test`,
/// separated by commas. With configurations, each request is judged by the settings of its virtual server.
///
/// Exit status: 0 all decisions are equal; 1 some differ; 2 wrong usage, or invalid rules or logs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir waf diff builtin ./coreruleset waf.log\n  \
                        weir waf diff builtin tuned.conf,builtin waf.log waf.log.1\n  \
                        weir waf diff --config-old weir.yaml --config-new new.yaml waf.log")]
pub struct Arguments {
    /// OLD and NEW rules (unless configurations are given), then logs
    #[arg(required = true, value_name = "OLD NEW LOG")]
    paths: Vec<PathBuf>,

    /// A configuration instead of OLD
    #[arg(long, value_name = "FILE", requires = "config_new")]
    config_old: Option<PathBuf>,

    /// A configuration instead of NEW
    #[arg(long, value_name = "FILE", requires = "config_old")]
    config_new: Option<PathBuf>,

    /// Only requests of this virtual server
    #[arg(long, value_name = "NAME")]
    virtual_server: Option<String>,

    /// Skip the checks that need no rules
    #[arg(long)]
    no_checks: bool,
}

/// Exit status for wrong usage, as in clap.
const EXIT_UNUSABLE: u8 = 2;

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match compare(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            output::tell(format_args!("weir waf diff: {reason}\n"));
            ExitCode::from(EXIT_UNUSABLE)
        }
    }
}

/// The old or the new rules.
enum ComparedRules {
    Rules(Box<Judge>),
    Config { snapshot: Box<Snapshot>, judges: HashMap<String, Option<Judge>>, has_checks: bool },
}

impl ComparedRules {
    fn of_rules(paths: &Path, has_checks: bool) -> Result<Self, String> {
        let paths = paths.to_str().ok_or("names of rules have to be UTF-8")?;
        let paths: Vec<PathBuf> = paths.split(',').map(PathBuf::from).collect();
        Ok(Self::Rules(Box::new(Judge::of_rules(&paths, &Settings::default(), has_checks)?)))
    }

    fn of_config(file: &Path, has_checks: bool) -> Result<Self, String> {
        let snapshot = Box::new(load(file)?);
        Ok(Self::Config { snapshot, judges: HashMap::new(), has_checks })
    }

    /// The judge for a virtual server's requests; `None`: they are not inspected.
    fn judge(&mut self, server: &str) -> Option<&Judge> {
        match self {
            Self::Rules(judge) => Some(judge),
            Self::Config { snapshot, judges, has_checks } => {
                let of_server = || {
                    let mut servers = snapshot.virtual_servers.iter();
                    let server = servers.find(|it| &*it.name == server)?;
                    Judge::of_server(server, *has_checks)
                };
                judges.entry(server.to_owned()).or_insert_with(of_server).as_ref()
            }
        }
    }
}

/// Counts over all requests.
#[derive(Debug, Default)]
struct Sum {
    judged: u64,
    without_body: u64,
    unrecorded: u64,
    unknown_server: u64,
    passes_now: u64,
    blocked_now: u64,
    otherwise: u64,
}

impl Sum {
    fn differing(&self) -> u64 {
        self.passes_now + self.blocked_now + self.otherwise
    }

    fn note(&mut self, old: &Verdict, new: &Verdict) {
        match (decision(old), decision(new)) {
            (Decision::Blocked, Decision::Passes) => self.passes_now += 1,
            (Decision::Passes, Decision::Blocked) => self.blocked_now += 1,
            _ => self.otherwise += 1,
        }
    }

    fn told(&self, skipped: &str) -> String {
        let Self { judged, without_body, unrecorded, unknown_server, .. } = self;
        let Self { passes_now, blocked_now, otherwise, .. } = self;
        let mut text = format!(
            "{judged} requests judged, {} decided differently: {passes_now} pass now, {blocked_now} are blocked now, {otherwise} otherwise\n\
             {unrecorded} lines had no recorded request{skipped}\n",
            self.differing(),
        );
        if *without_body > 0 {
            let _ = writeln!(
                text,
                "{without_body} requests were judged without their body: it was left out"
            );
        }
        if *unknown_server > 0 {
            let _ = writeln!(
                text,
                "{unknown_server} requests are of virtual servers that have no `waf` in one of the configurations"
            );
        }
        text
    }
}

/// The verdict on a request, without its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Passes,
    Blocked,
    Unjudged,
}

fn decision(verdict: &Verdict) -> Decision {
    match verdict {
        Verdict::Pass => Decision::Passes,
        Verdict::Exceeded(_) => Decision::Unjudged,
        _ => Decision::Blocked,
    }
}

/// Returns whether all verdicts are equal.
fn compare(arguments: &Arguments) -> Result<bool, String> {
    let has_checks = !arguments.no_checks;
    let (mut sides, logs) = match (&arguments.config_old, &arguments.config_new, &*arguments.paths)
    {
        (Some(old), Some(new), logs) => (
            [
                ComparedRules::of_config(old, has_checks)?,
                ComparedRules::of_config(new, has_checks)?,
            ],
            logs,
        ),
        (_, _, [old, new, logs @ ..]) if !logs.is_empty() => (
            [ComparedRules::of_rules(old, has_checks)?, ComparedRules::of_rules(new, has_checks)?],
            logs,
        ),
        _ => {
            return Err(
                "name OLD, NEW and a log: as in weir waf diff builtin ./coreruleset waf.log".into(),
            );
        }
    };
    let mut sum = Sum::default();
    let count = log::each(logs, |line| {
        let is_other = |name: &String| *name != line.virtual_server;
        if arguments.virtual_server.as_ref().is_some_and(is_other) {
            return Ok(());
        }
        match one(&mut sides, line, &mut sum) {
            Some(text) => output::print(text).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    })?;
    output::print(sum.told(&count.told_skipped())).map_err(|error| error.to_string())?;
    Ok(sum.differing() == 0)
}

/// Judges a request with both sides; returns a text if the verdicts differ.
fn one([old, new]: &mut [ComparedRules; 2], line: &Line, sum: &mut Sum) -> Option<String> {
    let recorded = line.request.as_ref();
    let Some((recorded, trial)) = recorded.and_then(|it| Some((it, recorded_requests::trial(it)?)))
    else {
        sum.unrecorded += 1;
        return None;
    };
    let server = &line.virtual_server;
    let (Some(old), Some(new)) = (old.judge(server), new.judge(server)) else {
        sum.unknown_server += 1;
        return None;
    };
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let client = line.client.parse().unwrap_or(nobody);
    let (old, new) = (old.judge(&trial, client, None), new.judge(&trial, client, None));
    sum.judged += 1;
    sum.without_body += u64::from(recorded.body.is_none());
    if decision(&old.verdict) == decision(&new.verdict) {
        return None;
    }
    sum.note(&old.verdict, &new.verdict);
    Some(shown(line, &old, &new))
}

fn shown(line: &Line, old: &JudgedRequest, new: &JudgedRequest) -> String {
    let target = bytes(&line.target);
    let (id, method) = (printable(&line.request_id), printable(&line.method));
    let mut text = format!("{id} {method} {}\n", target.escape_ascii());
    for (name, judged) in [("old", old), ("new", new)] {
        let score = judged.inspection.score();
        let _ = writeln!(text, "  {name}: {}, score {score}", told(&judged.verdict));
    }
    let (before, now) = (found(old), found(new));
    for (name, changed) in [("added", &now - &before), ("gone", &before - &now)] {
        if !changed.is_empty() {
            let changed: Vec<String> = changed.into_iter().collect();
            let _ = writeln!(text, "  {name}: {}", changed.join(", "));
        }
    }
    text.push('\n');
    text
}

/// The rules and checks with findings.
fn found(judged: &JudgedRequest) -> BTreeSet<String> {
    let logged = judged.inspection.matches().iter().filter(|found| found.is_logged);
    let rules = logged.map(|found| found.id.to_string());
    rules.chain(judged.inspection.findings().iter().map(|it| it.check.name().to_owned())).collect()
}
