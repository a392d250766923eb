//! The systemd unit of the package. The documents quote it and describe its effect on scripts.

use std::collections::BTreeSet;
use std::process::Command;

use weir_testing::skip_though_strict;
use weir_tests::proxy::weir_binary;
use weir_tests::repository;
use weir_tests::temp::TempDir;
use weir_tests::tools;

const UNIT: &str = "packaging/debian/weir.service";
const DOCUMENT: &str = "docs/operating.md";
const SCRIPTS: &str = "docs/monitors.md";

/// Directives in `[Service]` that concern only weir itself: start, stop, folders and limits.
const OF_WEIR_ALONE: [&str; 13] = [
    "Type",
    "ExecStart",
    "ExecReload",
    "WatchdogSec",
    "KillMode",
    "TimeoutStopSec",
    "Restart",
    "RestartSec",
    "LogsDirectory",
    "RuntimeDirectory",
    "StateDirectory",
    "StateDirectoryMode",
    "LimitNOFILE",
];

fn unit() -> String {
    repository::read(UNIT)
}

#[test]
fn the_document_shows_the_unit_of_the_package() {
    let shown = format!("```ini\n{}```\n", unit());
    assert!(
        repository::read(DOCUMENT).contains(&shown),
        "{DOCUMENT} shows another unit than {UNIT}"
    );
}

/// The directives in the `[Service]` section of a unit.
fn directives(unit: &str) -> BTreeSet<&str> {
    let (_, service) = unit.split_once("[Service]\n").expect("a service");
    let service = service.split("\n[").next().unwrap_or_default();
    let lines = service.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect()
}

/// Each directive that restricts weir also restricts scripts, and the document has a row for it.
#[test]
fn scripts_are_told_what_the_unit_forbids() {
    let (unit, text) = (unit(), repository::read(SCRIPTS));
    let (_, section) = text.split_once("\n## Scripts\n").expect("a section on scripts");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let first_cells: String = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let told: BTreeSet<&str> = first_cells.split('`').skip(1).step_by(2).collect();
    let given: BTreeSet<&str> =
        directives(&unit).into_iter().filter(|name| !OF_WEIR_ALONE.contains(name)).collect();
    assert_eq!(told, given, "{SCRIPTS} and {UNIT}");
}

#[test]
fn what_the_document_says_of_scripts_is_in_the_unit() {
    let unit = unit();
    // The table's rows about files, capabilities, sockets and system calls are correct for these values.
    for line in [
        "User=weir",
        "Group=weir",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "LogsDirectory=weir",
        "RuntimeDirectory=weir",
        "StateDirectory=weir",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "SystemCallFilter=@system-service landlock_create_ruleset landlock_restrict_self",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}\n{unit}");
    }
}

/// systemd accepts each directive of the unit.
#[test]
fn systemd_takes_the_unit() {
    if tools::find("systemd-analyze").is_none() {
        return skip_though_strict("systemd-analyze is not installed");
    }
    let folder = TempDir::new("unit");
    let weir = weir_binary().display().to_string();
    let text = unit().replace("/usr/bin/weir", &weir);
    let path = folder.write("weir.service", &text);
    let verify = |path: &std::path::Path| {
        let mut command = Command::new("systemd-analyze");
        let output =
            command.args(["verify", "--man=no"]).arg(path).output().expect("systemd-analyze");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        // systemd may also report problems of other units on this machine.
        let of_ours = said.lines().filter(|line| line.contains("weir")).map(str::to_owned);
        of_ours.collect::<Vec<String>>()
    };
    assert_eq!(verify(&path), Vec::<String>::new());
    let broken = folder.write("weir-broken.service", text.replace("UMask=", "UMusk="));
    assert_ne!(verify(&broken), Vec::<String>::new(), "this test sees mistakes");
}
