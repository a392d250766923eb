//! A bare byte relay: it does not parse HTTP, so its costs are those of the kernel's TCP for any proxy.
//!
//! It has one thread, one listener and one member.

use super::layer::no_datagrams;
use super::{Definition, Place, Service, words};
use crate::catalogue::RELAY;
use crate::run::process::DeathSignal;

fn command(place: Place<'_>, service: &Service) -> Vec<std::ffi::OsString> {
    let [listen, member] = [&service.listen, &service.members]
        .map(|addresses| addresses.first().map(ToString::to_string).unwrap_or_default());
    let [bench, relay] = ["bench", "relay"].map(AsRef::as_ref);
    words(place.program, [bench, relay, listen.as_ref(), member.as_ref()])
}

pub(super) const DEFINITION: Definition = Definition {
    name: RELAY,
    install: "it is part of this program",
    version_arguments: &["--version"],
    parse_version: super::weir::version,
    parse_tls: super::weir::tls,
    parse_commit: super::weir::commit,
    file: None,
    configuration: |_| String::new(),
    command,
    check: None,
    is_one_process: true,
    virtual_servers_max: 1,
    has_queue: false,
    lacks: no_datagrams,
    death_signal: DeathSignal::Kill,
};
