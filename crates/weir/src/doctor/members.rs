//! Resolves names and probes members, once each.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir_cli::output;
use weir_config::snapshot::Snapshot;
use weir_config::{Config, Resolutions};
use weir_control::events::Events;
use weir_control::names::{Answer, Failure, NameServers, Names};
use weir_control::trial::{Trial, TrialResult, Trials};

use super::finding::{CheckResult, Finding};

/// Interval between progress messages; a shorter run prints none.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of detailed findings for the members of one pool.
const FINDINGS_PER_POOL_MAX: usize = 10;

/// Results of network checks.
pub struct NetworkChecks {
    /// The configuration with resolved names.
    pub snapshot: Snapshot,
    /// The checks of names and of members.
    pub checks: [CheckResult; 2],
}

/// Resolves the names and probes the members, for at most `limit`.
pub fn ask(config: &Config, limit: Duration) -> io::Result<NetworkChecks> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let began = Instant::now();
    let asked = runtime.block_on(async {
        let (names, resolutions) = resolve(config).await?;
        let snapshot = config.snapshot(&resolutions);
        let trials = Trials::of(&snapshot);
        let count = trials.len();
        let done = AtomicUsize::new(0);
        let limit = limit.saturating_sub(began.elapsed());
        let results = tokio::select! {
            results = trials.run(limit, &done) => results,
            never = progress(count, &done) => match never {},
        };
        let members = members(&results);
        Ok(NetworkChecks { snapshot, checks: [names, members] })
    });
    // A monitor script may still run.
    runtime.shutdown_background();
    asked
}

/// Prints progress at intervals.
async fn progress(count: usize, done: &AtomicUsize) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let done = done.load(Relaxed);
        output::tell(format_args!("weir doctor: probed {done} of {count} members\n"));
    }
}

async fn resolve(config: &Config) -> io::Result<(CheckResult, Resolutions)> {
    // The findings report name resolution, so its events are discarded.
    let mut names = Names::new(NameServers::System, Events::to_writer(io::sink())?);
    names.follow(config.host_names()).await;
    Ok((check_names(&names.answers()), names.resolutions()))
}

fn check_names(answers: &BTreeMap<String, Answer>) -> CheckResult {
    let mut checked = CheckResult::new("names");
    checked.fact(format!("{} names of members", answers.len()));
    for (name, answer) in answers {
        let why = match &answer.failure {
            Some(Failure::Whole(why)) => why.clone(),
            Some(Failure::Part(kind, why)) => format!("the {kind} query failed: {why}"),
            None if answer.addresses().is_empty() => "no answer in time".to_owned(),
            None => continue,
        };
        let mend = format!(
            "`getent ahosts {name}` and `dig {name}` show the answer; /etc/resolv.conf has the name servers, /etc/hosts takes an address"
        );
        let what = format!("the name {name} cannot be resolved: {why}");
        let place = format!("members `{name}:PORT`");
        checked.find(match answer.addresses().is_empty() {
            true => Finding::error(what, place, mend),
            false => Finding::warning(format!("the name {name}: {why}"), place, mend),
        });
    }
    checked
}

fn members(results: &[Trial]) -> CheckResult {
    let mut checked = CheckResult::new("members");
    let passed = results.iter().filter(|trial| trial.verdict == TrialResult::Passed).count();
    checked.fact(format!("{passed} of {} probes passed", results.len()));
    let mut by_pool: BTreeMap<&Arc<str>, Vec<&Trial>> = BTreeMap::new();
    for trial in results {
        by_pool.entry(&trial.pool).or_default().push(trial);
    }
    for (pool, trials) in by_pool {
        let bad: Vec<&&Trial> =
            trials.iter().filter(|trial| trial.verdict != TrialResult::Passed).collect();
        let is_out = bad.len() == trials.len();
        for trial in bad.iter().take(FINDINGS_PER_POOL_MAX) {
            checked.find(finding(trial, is_out));
        }
        if let Some(more) = bad.len().checked_sub(FINDINGS_PER_POOL_MAX).filter(|more| *more > 0) {
            let what = format!("{more} more probes of pool {pool} did not pass");
            checked.find(Finding::warning(
                what,
                format!("pools.{pool}"),
                format!("weir pool {pool}"),
            ));
        }
    }
    checked
}

/// The finding of a failed probe; an error if no probe of the pool passed.
fn finding(trial: &Trial, is_out: bool) -> Finding {
    let Trial { pool, member, name, kind, verdict } = trial;
    let shown = match name {
        Some(name) => format!("{member} ({name})"),
        None => member.to_string(),
    };
    let place = format!("pools.{pool}, member {shown}");
    match verdict {
        TrialResult::Local(why) => {
            let what = format!("{kind} of member {shown} cannot be tried from this host: {why}");
            let mend = "run it as weir's user (`sudo -u weir weir doctor`): monitors of type icmp and `source: client` need capabilities";
            Finding::warning(what, place, mend)
        }
        TrialResult::NotTried => {
            let what = format!("{kind} of member {shown} had no answer before the time was over");
            Finding::warning(what, place, "weir doctor --timeout 60s")
        }
        TrialResult::Failed(_) | TrialResult::Passed => {
            let why = match verdict {
                TrialResult::Failed(why) => why.as_str(),
                _ => "",
            };
            let what = format!("{kind} of member {shown} fails: {why}");
            let mend = mend(member, kind, why);
            match is_out {
                true => {
                    Finding::error(format!("{what}; no member of pool {pool} passes"), place, mend)
                }
                false => Finding::warning(what, place, mend),
            }
        }
    }
}

/// The remedy for a failure.
fn mend(member: &str, kind: &str, why: &str) -> String {
    let address = member.rsplit_once(':').map_or(member, |(address, _)| address);
    if why.contains("refused") {
        return format!(
            "start the service: on the member, `ss -ltn` shows where it listens; it must be {member}"
        );
    }
    if why.starts_with("no answer") {
        return format!(
            "`ping {address}`, `ip route get {address}`, the firewall between; or a longer `timeout` of the monitor"
        );
    }
    if why.starts_with("status ") || why.contains("body") {
        return format!(
            "`curl -i http://{member}/…` as the {kind} monitor asks; mend the service, or `expect` and `path` of the monitor"
        );
    }
    if why.starts_with("TLS") {
        return format!(
            "`openssl s_client -connect {member}` shows its certificate; `ca` or `verify` of the monitor"
        );
    }
    format!("compare the {kind} monitor of the pool with the service at {member}")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::finding::Severity;
    use super::*;

    fn trial(member: &str, verdict: TrialResult) -> Trial {
        Trial { pool: "web".into(), member: member.into(), name: None, kind: "http", verdict }
    }

    #[test]
    fn a_pool_without_a_good_member_is_an_error() {
        let failed = || TrialResult::Failed("connection refused".into());
        let some =
            members(&[trial("10.0.0.1:80", failed()), trial("10.0.0.2:80", TrialResult::Passed)]);
        assert_eq!(some.facts, ["1 of 2 probes passed"]);
        assert_eq!(some.findings[0].severity, Severity::Warning);
        let none = members(&[trial("10.0.0.1:80", failed())]);
        assert_eq!(none.findings[0].severity, Severity::Error);
        assert!(none.findings[0].what.ends_with("no member of pool web passes"));
    }

    #[test]
    fn many_failures_of_a_pool_are_summed_up() {
        let trials: Vec<Trial> =
            (0..50).map(|_| trial("10.0.0.1:80", TrialResult::NotTried)).collect();
        let checked = members(&trials);
        assert_eq!(checked.findings.len(), FINDINGS_PER_POOL_MAX + 1);
        assert!(checked.findings.last().unwrap().what.starts_with("40 more"));
    }

    #[test]
    fn each_failure_has_a_next_step() {
        for (why, expected) in [
            ("connection refused", "ss -ltn"),
            ("no answer in 1s (connecting)", "ip route get 10.0.0.1"),
            ("status 503", "curl"),
            ("TLS: bad certificate", "openssl s_client -connect 10.0.0.1:80"),
            ("connection closed", "compare"),
        ] {
            assert!(mend("10.0.0.1:80", "http", why).contains(expected), "{why}");
        }
    }

    #[test]
    fn names_and_members_are_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let text = format!(
            "virtual_servers: {{ shop: {{ listen: 127.0.0.1:1, pool: web }} }}\npools: {{ web: {{ members: [ {there}, \"localhost:{}\", nowhere.invalid:80 ] }} }}\n",
            there.port()
        );
        let config = weir_config::parse("test.yaml", &text).config.unwrap();
        let asked = ask(&config, Duration::from_secs(20)).unwrap();
        let [names, members] = asked.checks;
        assert_eq!(names.findings.len(), 1, "{names:?}");
        assert!(names.findings[0].what.contains("nowhere.invalid"), "{names:?}");
        assert!(members.facts[0].starts_with("1 of "), "{members:?}");
    }
}
