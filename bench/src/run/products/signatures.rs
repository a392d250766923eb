//! A row for the signatures of weir's TLS library alone. The bench measures a loop in its own process and starts no
//! program.

use super::Definition;
use crate::catalogue::SIGNATURES;
use crate::run::process::DeathSignal;

pub(super) const DEFINITION: Definition = Definition {
    name: SIGNATURES,
    install: "it is part of this program",
    version_arguments: &["--version"],
    parse_version: super::weir::laboratory_version,
    parse_tls: super::weir::tls,
    parse_commit: super::weir::commit,
    file: None,
    configuration: |_| String::new(),
    command: |_, _| Vec::new(),
    check: None,
    is_one_process: true,
    virtual_servers_max: 0,
    has_queue: false,
    lacks: |_| None,
    death_signal: DeathSignal::Kill,
};
