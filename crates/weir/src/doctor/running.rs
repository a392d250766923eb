//! The running weir: its reported problems, and differences from its files.

use std::path::Path;

use weir_api::differences::Differences;
use weir_api::files::{ConfigurationFile, ConfigurationFiles};
use weir_api::health::Health;
use weir_api::status::Status;
use weir_config::LoadResult;
use weir_control::file_digests;
use weir_sources::Files;

use super::case::RunningStatus;
use super::finding::{CheckResult, Finding};
use crate::admin::client::Client;
use crate::admin::error::Error;
use crate::admin::text::counted;

/// Further answers of the running weir.
pub struct Answers {
    /// The files of the running configuration; `None`: weir's version is too old to report them.
    pub files: Option<ConfigurationFiles>,
    /// Changes made at run time; `None`: weir's version is too old to report them.
    pub differences: Option<Differences>,
    /// The files with these changes, if there are any and the caller may see them.
    pub merged: Option<String>,
}

impl Answers {
    /// Queries the running weir. Answers that an old version lacks are `None`.
    pub fn of(client: &Client) -> Result<Self, Error> {
        let differences: Option<Differences> = optional(client, "/v1/diff")?;
        let merged = match differences.as_ref().is_some_and(|it| effective(it) > 0) {
            true => merged(client)?,
            false => None,
        };
        Ok(Self { files: optional(client, "/v1/configuration/files")?, differences, merged })
    }

    /// The configuration in effect, if it is this file with changes made at run time.
    pub fn overlaid(&self, file: &Path) -> Option<LoadResult> {
        let main = &self.files.as_ref()?.items.first()?.path;
        let is_it = file_digests::of(&Files::read(file)).first().is_some_and(|it| it.path == *main);
        self.merged.as_ref().filter(|_| is_it).map(|text| weir_config::parse(main, text))
    }
}

/// Maximum number of virtual servers or pools that are listed by name.
const NAMES_TOLD_MAX: usize = 5;

/// Reports what serves, but not as it should. What does not serve is among the problems.
fn degraded(status: &Status, checked: &mut CheckResult) {
    let servers = status.virtual_servers.iter().map(|it| (&it.name, &it.health));
    let packets = status.packet_path.iter().flat_map(|path| &path.virtual_servers);
    let packets = packets.map(|it| (&it.name, &it.health));
    let pools = status.pools.iter().map(|it| (&it.name, &it.health));
    find_degraded("virtual server", servers.chain(packets), checked);
    find_degraded("pool", pools, checked);
}

fn find_degraded<'s>(
    kind: &str,
    all: impl Iterator<Item = (&'s String, &'s Health)>,
    checked: &mut CheckResult,
) {
    let found: Vec<_> = all.filter(|(_, health)| health.is_degraded()).collect();
    if found.is_empty() {
        return;
    }
    let told = found.iter().take(NAMES_TOLD_MAX).map(|(name, health)| {
        let why = health.why.as_deref().unwrap_or_default();
        format!("{name} ({why})")
    });
    let mut told = told.collect::<Vec<_>>().join(", ");
    if let Some(more) = found.len().checked_sub(NAMES_TOLD_MAX).filter(|more| *more > 0) {
        told += &format!(" and {more} more");
    }
    let count = counted(found.len() as u64, kind);
    checked.find(Finding::warning(
        format!("{count} degraded: {told}"),
        "the running weir",
        "weir status; weir pool POOL shows the members and why they are out",
    ));
}

fn optional<T: serde::de::DeserializeOwned>(
    client: &Client,
    path: &str,
) -> Result<Option<T>, Error> {
    match client.get(path) {
        Ok(document) => client.read(&document).map(Some),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The files with the changes, as one; `None`: it needs the role admin, which the caller does not have.
fn merged(client: &Client) -> Result<Option<String>, Error> {
    match client.get("/v1/configuration") {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(Error::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number of changes that have an effect.
fn effective(differences: &Differences) -> u64 {
    let is_effective = |effect: &str| !matches!(effect, "stale" | "redundant");
    differences.items.iter().filter(|item| is_effective(&item.effect)).count() as u64
}

/// Checks the problems of the process, its version, and its configuration.
pub fn check(running: &RunningStatus, answers: &Answers, file: Option<&Path>) -> CheckResult {
    let mut checked = CheckResult::new("running weir");
    let process = &running.status.process;
    checked.fact(format!("version {}", process.version));
    for problem in &process.problems {
        checked.find(Finding::error(
            problem.clone(),
            "the running weir",
            "weir status; its event log has the details",
        ));
    }
    degraded(&running.status, &mut checked);
    if let Some(sandbox) = &process.sandbox {
        checked.fact(if sandbox.is_on { "sandbox on" } else { "sandbox off" });
        if let Some(why) = &sandbox.why {
            let mend = "a filter of system calls with landlock_create_ruleset and landlock_restrict_self, and Linux 5.13 or newer with `landlock` in the `lsm=` list of the kernel; `data_plane.sandbox: \"off\"` says that it is not wanted";
            checked.find(Finding::note(
                format!("workers are not kept from files: {why}"),
                "data_plane.sandbox",
                mend,
            ));
        }
    }
    let own = env!("CARGO_PKG_VERSION");
    if process.version != own {
        let what = format!("version {} runs, and this program is version {own}", process.version);
        checked.find(Finding::warning(what, "the running weir", "weir upgrade"));
    }
    if running.is_here
        && let (Some(files), Some(file)) = (&answers.files, file)
    {
        unapplied(files, file, &mut checked);
    }
    if let Some(differences) = &answers.differences {
        changes(differences, &mut checked);
        if running.is_here && effective(differences) > 0 && answers.merged.is_none() {
            checked.find(Finding::note(
                "changes of the configuration are not checked: only the files are".into(),
                "the overlay",
                "run it as weir's user over the unix socket, or with a token of the role admin",
            ));
        }
    }
    checked
}

/// Reports files that changed after they were loaded.
fn unapplied(running: &ConfigurationFiles, file: &Path, checked: &mut CheckResult) {
    let now = file_digests::of(&Files::read(file));
    let main = |files: &[ConfigurationFile]| files.first().map(|file| file.path.clone());
    if main(&now) != main(&running.items) {
        let of_running = main(&running.items).unwrap_or_default();
        let what = format!(
            "{} is not the file of the running weir, which is {of_running}",
            file.display()
        );
        checked.find(Finding::note(
            what,
            file.display().to_string(),
            format!("weir doctor {of_running}"),
        ));
        return;
    }
    let changed: Vec<&str> = now
        .iter()
        .filter(|file| !running.items.contains(file))
        .map(|file| &*file.path)
        .chain(
            running
                .items
                .iter()
                .map(|file| &*file.path)
                .filter(|path| now.iter().all(|it| it.path != *path)),
        )
        .collect();
    if !changed.is_empty() {
        let what = format!("{} changed since the running weir has read it", changed.join(", "));
        let mend = format!("weir check {} && weir reload", file.display());
        checked.find(Finding::warning(what, changed.join(", "), mend));
    }
}

/// Reports changes made at run time that the files do not contain.
fn changes(differences: &Differences, checked: &mut CheckResult) {
    let stale: Vec<&str> = differences
        .items
        .iter()
        .filter(|item| item.effect == "stale")
        .map(|item| &*item.path)
        .collect();
    if !stale.is_empty() {
        let what = format!(
            "{} of the configuration without effect: what they name has gone from the files",
            counted(stale.len() as u64, "change")
        );
        checked.find(Finding::warning(what, stale.join(", "), format!("weir unset {}", stale[0])));
    }
    match effective(differences) {
        0 => {}
        count => {
            let what =
                format!("{} of the configuration not in the files", counted(count, "change"));
            checked.find(Finding::note(
                what,
                "the overlay",
                "weir diff shows them; weir save prints one file with them",
            ));
        }
    }
    if let Some(version) = differences.unconfirmed {
        let what = format!(
            "version {version} of the configuration is not confirmed: the one before returns by itself"
        );
        checked.find(Finding::warning(what, "the overlay", format!("weir confirm {version}")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;
    use crate::status;

    fn running(change: impl FnOnce(&mut serde_json::Value)) -> RunningStatus {
        let up = |status: &mut serde_json::Value| {
            for kind in ["virtual_servers", "pools"] {
                status[kind][0]["health"] = serde_json::json!({ "state": "up", "why": null });
            }
            change(status);
        };
        RunningStatus { status: status::tests::status(up), is_here: true }
    }

    fn answers() -> Answers {
        Answers { files: None, differences: None, merged: None }
    }

    #[test]
    fn problems_and_another_version() {
        let found = check(&running(|_| {}), &answers(), None).findings;
        assert_eq!(found, []);
        let found = check(
            &running(|status| {
                status["problems"] = serde_json::json!(["2 access log lines lost"]);
                status["version"] = "0.0.9".into();
            }),
            &answers(),
            None,
        );
        let [problem, version] = &found.findings[..] else { panic!("{found:?}") };
        assert_eq!(
            (problem.severity, &*problem.what),
            (Severity::Error, "2 access log lines lost")
        );
        assert!(version.what.starts_with("version 0.0.9 runs"), "{version:?}");
    }

    #[test]
    fn what_is_degraded_is_a_warning() {
        let degraded = RunningStatus { status: status::tests::status(|_| {}), is_here: true };
        let found = check(&degraded, &answers(), None).findings;
        let [servers, pools] = &found[..] else { panic!("{found:?}") };
        let why = "1 virtual server degraded: shop (pool web: 1 of 3 members in service)";
        assert_eq!((servers.severity, &*servers.what), (Severity::Warning, why));
        assert_eq!(pools.what, "1 pool degraded: web (1 of 3 members in service)");
    }

    #[test]
    fn a_sandbox_that_the_kernel_lacks() {
        let of = |why: serde_json::Value| {
            let change = |status: &mut serde_json::Value| {
                let is_on = why.is_null();
                status["sandbox"] = serde_json::json!({ "is_on": is_on, "why": why });
            };
            check(&running(change), &answers(), None)
        };
        assert_eq!(of(serde_json::Value::Null).findings, []);
        let found = of("the kernel has no Landlock".into());
        assert!(found.findings[0].what.contains("not kept from files"), "{found:?}");
    }

    #[test]
    fn files_that_have_changed() {
        let path =
            std::env::temp_dir().join(format!("weir-doctor-files-{}.yaml", std::process::id()));
        std::fs::write(&path, "a: 1\n").unwrap();
        let read = ConfigurationFiles { items: file_digests::of(&Files::read(&path)) };
        let found = |read: &ConfigurationFiles, path: &Path| {
            let mut checked = CheckResult::new("");
            unapplied(read, path, &mut checked);
            checked.findings
        };
        assert_eq!(found(&read, &path), []);
        std::fs::write(&path, "a: 2\n").unwrap();
        let changed = found(&read, &path);
        assert!(changed[0].what.contains("changed since"), "{changed:?}");
        let other = found(&read, Path::new("/nowhere/weir.yaml"));
        assert_eq!(other[0].severity, Severity::Note, "{other:?}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn changes_beside_the_files() {
        let differences: Differences = serde_json::from_value(serde_json::json!({
            "version": 7, "in_force": 7, "unconfirmed": 7, "items": [
                { "path": "/pools/old/balance", "effect": "stale", "file": null, "place": null, "overlay": "a", "reason": "gone" },
                { "path": "/pools/web/balance", "effect": "changed", "file": "a", "place": null, "overlay": "b", "reason": null },
            ],
        }))
        .unwrap();
        let found = check(
            &running(|_| {}),
            &Answers { files: None, differences: Some(differences), merged: Some(String::new()) },
            None,
        );
        let mends: Vec<&str> = found.findings.iter().map(|finding| &*finding.mend).collect();
        assert_eq!(mends[0], "weir unset /pools/old/balance");
        assert_eq!((mends.len(), mends[2]), (3, "weir confirm 7"));
    }
}
