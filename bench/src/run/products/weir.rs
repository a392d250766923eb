//! Weirgate: this very program.

use super::{Definition, Feature, Layer, Place, Service, WEIR, firewall, words};
use crate::catalogue::PLAIN_WEIR;
use crate::run::observers;
use crate::run::process::DeathSignal;

/// Templates for HTTP, TCP and UDP.
const TEMPLATES: [&str; 3] = [
    include_str!("../../../peers/weir.yaml"),
    include_str!("../../../peers/tcp/weir.yaml"),
    include_str!("../../../peers/udp/weir.yaml"),
];

/// Template for the packet path.
const PACKETS: &str = include_str!("../../../peers/packets/weir-tcp.yaml");

/// Template with the web application firewall.
const WAF: &str = include_str!("../../../peers/waf/weir.yaml");

fn configuration(service: &Service) -> String {
    let name = format!("weir-bench-{}", std::process::id());
    let mut more = vec![
        ("LIST", rules(service.feature)),
        ("NAME", name),
        ("ACCESS", access_log(service.feature)),
        ("ADMIN", observers::socket().display().to_string()),
    ];
    let template = match (service.layer, service.feature) {
        (_, Feature::Waf(_)) => {
            more.extend(firewall::filled_words(service));
            WAF
        }
        (Layer::Packets, _) => PACKETS,
        (layer, _) => layer.of_three(TEMPLATES),
    };
    service.fill(template, service.workers, ["round_robin", "least_connections"], &more)
}

/// The setting of the access log.
fn access_log(feature: Feature) -> String {
    match feature {
        Feature::Observed { .. } => {
            format!("{{ to: \"{}\", format: json }}", observers::access_log().display())
        }
        _ => "{ to: stdout, format: \"off\" }".to_owned(),
    }
}

/// Rules that match alternately on hosts and on path prefixes.
fn rules(feature: Feature) -> String {
    let Feature::Rules(count) = feature else { return String::new() };
    let rule = |number: usize| {
        let when = match number % 2 {
            0 => format!("request.host == \"host-{number}.example\""),
            _ => format!("request.path.startsWith(\"/path-{number}/\")"),
        };
        format!("      - {{ when: '{when}', then: [ {{ pool: members }} ] }}")
    };
    (0..count).map(rule).collect::<Vec<_>>().join("\n")
}

fn command(place: Place<'_>, _: &Service) -> Vec<std::ffi::OsString> {
    words(place.program, ["run".as_ref(), place.configuration.as_os_str()])
}

fn check(place: Place<'_>) -> Vec<std::ffi::OsString> {
    words(place.program, ["check".as_ref(), place.configuration.as_os_str()])
}

pub(super) fn version(text: &str) -> Option<String> {
    super::after(text, "weir ", "\n")
}

/// The version of `weir-bench`, whose other lines are those of weir.
pub(super) fn laboratory_version(text: &str) -> Option<String> {
    super::after(text, "weir-bench ", "\n")
}

/// Parses `TLS: rustls 0.23.42, aws-lc-rs 1.19.0`.
pub(super) fn tls(text: &str) -> Option<String> {
    super::after(text, "TLS: ", "\n")
}

/// Parses `commit: 0123abc…`; a development build prints that its commit is unknown.
pub(super) fn commit(text: &str) -> Option<String> {
    super::after(text, "commit: ", "\n").filter(|commit| !commit.starts_with("unknown"))
}

pub(super) const DEFINITION: Definition = Definition {
    name: WEIR,
    install: "cargo build --release -p weir",
    version_arguments: &["--version"],
    parse_version: version,
    parse_tls: tls,
    parse_commit: commit,
    file: Some("weir.yaml"),
    configuration,
    command,
    check: Some(check),
    // Each worker thread has a descriptor table of its own.
    is_one_process: false,
    virtual_servers_max: usize::MAX,
    has_queue: true,
    lacks: |_| None,
    death_signal: DeathSignal::Kill,
};

/// Weir without the tested features, as a yardstick.
pub(super) const PLAIN: Definition = Definition {
    name: PLAIN_WEIR,
    configuration: |service| configuration(&Service { feature: Feature::Plain, ..service.clone() }),
    ..DEFINITION
};
