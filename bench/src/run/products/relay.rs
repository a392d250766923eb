//! A bare relay of bytes or datagrams: it does not parse HTTP and keeps no sessions, so its costs are those of the kernel's
//! sockets for any proxy.
//!
//! It has one thread and one listener.

use std::ffi::OsString;

use super::{Definition, Layer, Place, Service, words};
use crate::catalogue::RELAY;
use crate::run::process::DeathSignal;

fn command(place: Place<'_>, service: &Service) -> Vec<OsString> {
    // Connections have one member. Queries go to all members, so that their part of the work is the same for every product.
    let (members, flag) = match service.layer {
        Layer::Udp(_) => (service.members.len(), Some("--udp")),
        Layer::Http | Layer::Tcp | Layer::Packets => (1, None),
    };
    let mut command = words(place.program, ["relay"].map(AsRef::as_ref));
    let addresses = service.listen.iter().take(1).chain(service.members.iter().take(members));
    command.extend(addresses.map(|address| address.to_string().into()));
    command.extend(flag.map(OsString::from));
    command
}

pub(super) const DEFINITION: Definition = Definition {
    name: RELAY,
    install: "it is part of this program",
    version_arguments: &["--version"],
    parse_version: super::weir::laboratory_version,
    parse_tls: super::weir::tls,
    parse_commit: super::weir::commit,
    file: None,
    configuration: |_| String::new(),
    command,
    check: None,
    is_one_process: true,
    virtual_servers_max: 1,
    has_queue: false,
    lacks: |_| None,
    death_signal: DeathSignal::Kill,
};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::run::products::Sessions;
    use crate::run::products::tests::service;

    #[test]
    fn datagrams_are_relayed_where_the_test_has_datagrams() {
        let check = |layer: Layer, expected: &[&str]| {
            let service = Service { layer, ..service(1, 3, 1) };
            assert_eq!(DEFINITION.unable(&service), None, "{layer:?}");
            let [configuration, directory] = [Path::new("/c"), Path::new("/d")];
            let place = Place { program: Path::new("/weir-bench"), configuration, directory };
            assert_eq!(command(place, &service), expected, "{layer:?}");
        };
        let bytes = ["/weir-bench", "relay", "127.0.2.1:18002", "127.0.1.1:18001"];
        let members = ["127.0.1.2:18001", "127.0.1.3:18001", "--udp"];
        let datagrams = [&bytes[..], &members].concat();
        check(Layer::Http, &bytes);
        check(Layer::Tcp, &bytes);
        check(Layer::Packets, &bytes);
        check(Layer::Udp(Sessions::OneShot), &datagrams);
        check(Layer::Udp(Sessions::Kept), &datagrams);
    }
}
