//! nginx.

use super::{Definition, Place, Service, words};
use crate::run::process::DeathSignal;

const TEMPLATE: &str = include_str!("../../../../../bench/peers/nginx.conf");

/// Round robin has no word.
const BALANCE: [&str; 2] = ["# Members take turns.", "least_conn;"];

fn configuration(service: &Service) -> String {
    // As root it would give up its rights, and then not reach the folder of the run.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let spoken = match (service.front.key, service.front.http2) {
        (Some(_), true) => " ssl http2",
        (Some(_), false) => " ssl",
        (None, true) => " http2",
        (None, false) => "",
    };
    let more = [("USER", user.into()), ("SPOKEN", spoken.into())];
    service.fill(TEMPLATE, service.workers, BALANCE, &more)
}

fn command(place: Place<'_>, _: &Service) -> Vec<std::ffi::OsString> {
    let [prefix, log, file] = ["-p", "-e", "-c"].map(AsRef::as_ref);
    let directory = place.directory.as_os_str();
    words(
        place.program,
        [prefix, directory, log, "error.log".as_ref(), file, place.configuration.as_os_str()],
    )
}

fn check(place: Place<'_>) -> Vec<std::ffi::OsString> {
    let [prefix, log, file, test] = ["-p", "-e", "-c", "-t"].map(AsRef::as_ref);
    let (directory, configuration) = (place.directory.as_os_str(), place.configuration.as_os_str());
    words(place.program, [test, prefix, directory, log, "error.log".as_ref(), file, configuration])
}

fn version(text: &str) -> Option<String> {
    super::after(text, "nginx/", "\n")
}

pub(super) const DEFINITION: Definition = Definition {
    name: "nginx",
    install: "apt-get install nginx",
    version_arguments: &["-v"],
    parse_version: version,
    file: Some("nginx.conf"),
    configuration,
    command,
    check: Some(check),
    // A process per worker.
    is_one_process: false,
    virtual_servers_max: usize::MAX,
    has_queue: false,
    // The master ends its workers; killed, it would leave them.
    death_signal: DeathSignal::Term,
};
