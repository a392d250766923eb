//! The systemd unit in the documents, and the documents' statements about scripts that run under
//! it.

use std::collections::BTreeSet;
use std::process::Command;

use weir_testing::skip_without_data;
use weir_tests::proxy::weir_binary;
use weir_tests::repository;
use weir_tests::temp::TempDir;
use weir_tests::tools;

const UNIT: &str = "docs/operating.md";
const SCRIPTS: &str = "docs/monitors.md";

/// Directives of `[Service]` that concern weir alone: starting, stopping, folders and limits.
const OF_WEIR_ALONE: [&str; 11] = [
    "Type",
    "ExecStartPre",
    "ExecStart",
    "WatchdogSec",
    "KillMode",
    "TimeoutStopSec",
    "Restart",
    "LogsDirectory",
    "RuntimeDirectory",
    "StateDirectory",
    "LimitNOFILE",
];

/// The unit from the document.
fn unit() -> String {
    let text = repository::read(UNIT);
    let (_, unit) =
        text.split_once("```ini\n# /etc/systemd/system/weir.service\n").expect("the unit");
    unit.split_once("```").expect("its end").0.to_owned()
}

/// The directives of its `[Service]`.
fn directives(unit: &str) -> BTreeSet<&str> {
    let (_, service) = unit.split_once("[Service]\n").expect("a service");
    let service = service.split("\n[").next().unwrap_or_default();
    let lines = service.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect()
}

/// Each directive that restricts weir restricts scripts as well, and the document says how.
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
    assert_eq!(told, given, "{SCRIPTS} and the unit in {UNIT}");
}

#[test]
fn what_the_document_says_of_scripts_is_in_the_unit() {
    let unit = unit();
    // The table's rows on files, capabilities, sockets and calls hold for these values.
    for line in [
        "DynamicUser=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "LogsDirectory=weir",
        "RuntimeDirectory=weir",
        "StateDirectory=weir",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "SystemCallFilter=@system-service",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}\n{unit}");
    }
}

/// The version of systemd that knows `Type=notify-reload` first.
const NOTIFY_RELOAD_SINCE: u32 = 253;

/// `systemd 252 (252.39-1)`.
fn version_of_systemd() -> u32 {
    let said = tools::run(Command::new("systemd-analyze").arg("--version"));
    let number = said.split_whitespace().nth(1).unwrap_or_default();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("the version of systemd")
}

/// systemd knows each of its directives.
#[test]
fn systemd_takes_the_unit() {
    if tools::find("systemd-analyze").is_none() {
        return skip_without_data("systemd-analyze is not installed");
    }
    let folder = TempDir::new("unit");
    let weir = weir_binary().display().to_string();
    let mut text = unit().replace("/usr/local/bin/weir", &weir);
    if version_of_systemd() < NOTIFY_RELOAD_SINCE {
        // As the document says.
        text = text.replace("Type=notify-reload", "Type=notify");
    }
    let path = folder.write("weir.service", &text);
    let verify = |path: &std::path::Path| {
        let mut command = Command::new("systemd-analyze");
        let output =
            command.args(["verify", "--man=no"]).arg(path).output().expect("systemd-analyze");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        // systemd may also report on other units of this machine.
        let of_ours = said.lines().filter(|line| line.contains("weir")).map(str::to_owned);
        of_ours.collect::<Vec<String>>()
    };
    assert_eq!(verify(&path), Vec::<String>::new());
    let broken = folder.write("weir-broken.service", text.replace("UMask=", "UMusk="));
    assert_ne!(verify(&broken), Vec::<String>::new(), "this test sees mistakes");
}
