//! HAProxy.

use super::layer::no_datagrams;
use super::{Definition, Layer, Place, Service, words};
use crate::run::process::DeathSignal;

/// HAProxy's defaults: the buffer size, and the part of a buffer reserved for rewriting.
const BUFFER_BYTES: u64 = 16_384;
const REWRITE_BYTES: u64 = 1_024;
/// Bodies of this size or more are spliced within the kernel: the cost of a copy grows with the length, the cost of
/// splicing does not.
const SPLICED_BYTES_MIN: u64 = 64 * 1024;
/// A pipe holds twice the object. The kernel rounds the size up to a power of two, and limits it for unprivileged
/// processes.
const PIPE_BYTES: std::ops::RangeInclusive<u64> = 256 * 1024..=1024 * 1024;

/// Templates for HTTP, TCP and UDP.
const TEMPLATES: [&str; 3] = [
    include_str!("../../../peers/haproxy.cfg"),
    include_str!("../../../peers/tcp/haproxy.cfg"),
    // HAProxy relays no datagrams.
    "",
];

fn configuration(service: &Service) -> String {
    let certificate = service.certificate.as_ref().map(|it| it.both.display());
    let spoken = match (certificate, service.front.http2) {
        (Some(both), true) => format!(" ssl crt {both} alpn h2"),
        (Some(both), false) => format!(" ssl crt {both}"),
        (None, true) => " proto h2".to_owned(),
        (None, false) => String::new(),
    };
    let more = [("SPOKEN", spoken), ("BUFFERS", buffers(service)), ("SPLICE", splice(service))];
    let template = service.layer.of_three(TEMPLATES);
    service.fill(template, 1, ["roundrobin", "leastconn"], &more)
}

/// A buffer size that fits the response, if the default does not. Large bodies skip the buffer, except with TLS or
/// compression.
fn buffers(service: &Service) -> String {
    let is_copied = service.front.key.is_some() || service.front.gzip.is_some();
    let fitted = service.buffer_bytes(REWRITE_BYTES);
    if fitted <= BUFFER_BYTES {
        "# A response fits the usual buffer.".to_owned()
    } else if is_copied || service.object_bytes < SPLICED_BYTES_MIN {
        format!("# A buffer holds a response.\n    tune.bufsize {fitted}")
    } else {
        let pipe = (service.object_bytes * 2).clamp(*PIPE_BYTES.start(), *PIPE_BYTES.end());
        format!("# A pipe holds a body that is spliced.\n    tune.pipesize {pipe}")
    }
}

/// With `splice`, HAProxy splices all data of TCP connections: a pipe for each small response costs more than the copy.
/// `splice-auto` does not help, since it never treats such responses as a stream.
fn splice(service: &Service) -> String {
    let is_large = matches!(service.layer, Layer::Tcp | Layer::Packets)
        && service.object_bytes >= SPLICED_BYTES_MIN;
    if is_large {
        "# Large answers pass from socket to socket within the kernel.\n    option splice-response"
    } else {
        "# Small answers are copied: a pipe costs more."
    }
    .to_owned()
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

/// Parses `Running on OpenSSL version : OpenSSL 3.0.22 25 Aug 2026`; newer versions print `SSL library version`.
fn tls(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("Running on ") && line.contains("SSL"))?;
    super::after(line, " version : ", "\n")
}

pub(super) const DEFINITION: Definition = Definition {
    name: "haproxy",
    install: "apt-get install haproxy",
    version_arguments: &["-vv"],
    parse_version: version,
    parse_tls: tls,
    parse_commit: |_| None,
    file: Some("haproxy.cfg"),
    configuration,
    command,
    check: Some(check),
    is_one_process: true,
    virtual_servers_max: usize::MAX,
    has_queue: true,
    lacks: no_datagrams,
    death_signal: DeathSignal::Kill,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::certificates::Key;
    use crate::run::products::tests::service;
    use crate::run::products::{Front, GzipClass};

    #[test]
    fn buffers_fit_the_objects() {
        let check = |object_bytes, front: Front, expected: Option<&str>| {
            let text = configuration(&Service { object_bytes, front, ..service(1, 1, 1) });
            let said = |word: &str| text.lines().map(str::trim).find(|line| line.starts_with(word));
            let found = said("tune.bufsize").or(said("tune.pipesize"));
            assert_eq!(found, expected, "{object_bytes} {front:?}");
        };
        let plain = Front::default();
        check(1, plain, None);
        check(8_192, plain, None);
        check(14_336, plain, None);
        check(14_337, plain, Some("tune.bufsize 20480"));
        check(32_768, plain, Some("tune.bufsize 36864"));
        check(65_535, plain, Some("tune.bufsize 69632"));
        check(65_536, plain, Some("tune.pipesize 262144"));
        check(131_072, plain, Some("tune.pipesize 262144"));
        check(131_072, Front::secure(Key::P256), Some("tune.bufsize 135168"));
        let gzip = Front { gzip: Some(GzipClass::Level5), ..plain };
        check(131_072, gzip, Some("tune.bufsize 135168"));
    }
}
