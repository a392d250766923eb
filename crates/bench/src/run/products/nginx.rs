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
    let response = format!("{}k", service.buffer_bytes(0) / 1_024);
    let more = [("USER", user.into()), ("SPOKEN", spoken.into()), ("RESPONSE", response)];
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

/// `built with OpenSSL 3.0.15 3 Sep 2024 (running with OpenSSL 3.0.22 25 Aug 2026)`; what is in parentheses is there
/// where the two differ.
fn tls(text: &str) -> Option<String> {
    super::after(text, "(running with ", ")").or_else(|| super::after(text, "built with ", "\n"))
}

pub(super) const DEFINITION: Definition = Definition {
    name: "nginx",
    install: "apt-get install nginx",
    version_arguments: &["-V"],
    parse_version: version,
    parse_tls: tls,
    parse_commit: |_| None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::products::tests::service;

    #[test]
    fn one_buffer_holds_a_response() {
        for (object_bytes, expected) in [
            (1, "4k"),
            (128, "4k"),
            (3_072, "4k"),
            (3_073, "8k"),
            (30_720, "32k"),
            (131_072, "132k"),
        ] {
            let text = configuration(&Service { object_bytes, ..service(1, 1, 1) });
            let expected = format!("proxy_buffer_size {expected};");
            assert!(text.contains(&expected), "{object_bytes}: no {expected} in\n{text}");
        }
    }
}
