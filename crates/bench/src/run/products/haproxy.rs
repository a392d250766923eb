//! HAProxy.

use super::{Definition, Place, Service, words};
use crate::run::process::DeathSignal;

const TEMPLATE: &str = include_str!("../../../../../bench/peers/haproxy.cfg");

fn configuration(service: &Service) -> String {
    let certificate = service.certificate.as_ref().map(|it| it.both.display());
    let spoken = match (certificate, service.front.http2) {
        (Some(both), true) => format!(" ssl crt {both} alpn h2"),
        (Some(both), false) => format!(" ssl crt {both}"),
        (None, true) => " proto h2".to_owned(),
        (None, false) => String::new(),
    };
    service.fill(TEMPLATE, 1, ["roundrobin", "leastconn"], &[("SPOKEN", spoken)])
}

fn command(place: Place<'_>, _: &Service) -> Vec<std::ffi::OsString> {
    words(place.program, ["-db".as_ref(), "-f".as_ref(), place.configuration.as_os_str()])
}

fn check(place: Place<'_>) -> Vec<std::ffi::OsString> {
    words(place.program, ["-c".as_ref(), "-f".as_ref(), place.configuration.as_os_str()])
}

fn version(text: &str) -> Option<String> {
    super::after(text, "HAProxy version ", " - ")
}

pub(super) const DEFINITION: Definition = Definition {
    name: "haproxy",
    install: "apt-get install haproxy",
    version_arguments: &["-v"],
    parse_version: version,
    file: Some("haproxy.cfg"),
    configuration,
    command,
    check: Some(check),
    is_one_process: true,
    virtual_servers_max: usize::MAX,
    has_queue: true,
    death_signal: DeathSignal::Kill,
};
