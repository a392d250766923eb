//! nginx.

use std::path::Path;

use super::{Definition, Layer, Place, Service, words};
use crate::run::process::DeathSignal;

/// Templates for HTTP, TCP and UDP.
const TEMPLATES: [&str; 3] = [
    include_str!("../../../peers/nginx.conf"),
    include_str!("../../../peers/tcp/nginx.conf"),
    include_str!("../../../peers/udp/nginx.conf"),
];

/// Largest buffer of a relayed connection.
const STREAM_BUFFER_BYTES_MAX: u64 = 128 * 1024;

/// The module that relays TCP and UDP.
#[derive(Debug, PartialEq, Eq)]
enum StreamModule {
    BuiltIn,
    /// A dynamic module at this path.
    File(String),
}

/// Reads the output of `nginx -V`: `--with-stream`, or `--with-stream=dynamic` together with `--modules-path=FOLDER`.
fn stream_module(said: &str) -> Option<StreamModule> {
    let word =
        |prefix: &str| said.split_ascii_whitespace().find_map(|word| word.strip_prefix(prefix));
    match word("--with-stream=") {
        Some("dynamic") => {
            let folder = word("--modules-path=")?;
            Some(StreamModule::File(format!("{folder}/ngx_stream_module.so")))
        }
        _ => said
            .split_ascii_whitespace()
            .any(|word| word == "--with-stream")
            .then_some(StreamModule::BuiltIn),
    }
}

/// The reason why this nginx cannot relay TCP or UDP: it has no stream module, neither built in nor as an installed file.
fn lacks(service: &Service) -> Option<String> {
    if service.layer == Layer::Http {
        return None;
    }
    match stream_module(&service.said) {
        Some(StreamModule::BuiltIn) => None,
        Some(StreamModule::File(path)) if Path::new(&path).is_file() => None,
        Some(StreamModule::File(path)) => {
            Some(format!("its stream module is not at {path}: apt-get install libnginx-mod-stream"))
        }
        None => Some("it was built without the stream module (--with-stream)".into()),
    }
}

/// Round robin is the default and has no directive.
pub(super) const BALANCE: [&str; 2] = ["# Members take turns.", "least_conn;"];

fn configuration(service: &Service) -> String {
    let module = match stream_module(&service.said) {
        Some(StreamModule::File(path)) => format!("load_module {path};"),
        Some(StreamModule::BuiltIn) | None => "# The stream module is built in.".into(),
    };
    let template = service.layer.of_three(TEMPLATES);
    service.fill(template, service.workers, BALANCE, &words_of(service, module))
}

/// Template values of nginx.
pub(super) fn words_of(service: &Service, module: String) -> [(&'static str, String); 4] {
    // Started as root, nginx would drop its privileges and lose access to the run's folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let spoken = match (service.front.key, service.front.http2) {
        (Some(_), true) => " ssl http2",
        (Some(_), false) => " ssl",
        (None, true) => " http2",
        (None, false) => "",
    };
    let response_bytes = match service.layer {
        // A relay streams the body: a buffer need not hold a whole response.
        Layer::Tcp | Layer::Packets => service.buffer_bytes(0).min(STREAM_BUFFER_BYTES_MAX),
        Layer::Http | Layer::Udp(_) => service.buffer_bytes(0),
    };
    let response = format!("{}k", response_bytes / 1_024);
    [("USER", user.into()), ("SPOKEN", spoken.into()), ("RESPONSE", response), ("MODULE", module)]
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

/// Parses `built with OpenSSL 3.0.15 3 Sep 2024 (running with OpenSSL 3.0.22 25 Aug 2026)`. The parentheses appear only
/// if the versions differ.
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
    // Each worker is a process.
    is_one_process: false,
    virtual_servers_max: usize::MAX,
    has_queue: false,
    lacks,
    // The master ends its workers on SIGTERM; a killed master would leave them running.
    death_signal: DeathSignal::Term,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::products::tests::service;

    #[test]
    fn the_stream_module_is_where_the_build_says() {
        let check = |said: &str, expected| assert_eq!(stream_module(said), expected, "{said}");
        let file = StreamModule::File("/m/ngx_stream_module.so".into());
        check("--modules-path=/m --with-stream_ssl_module --with-stream=dynamic", Some(file));
        check("configure arguments: --with-stream --with-pcre", Some(StreamModule::BuiltIn));
        check("--with-stream_ssl_module", None);
        let said = "--modules-path=/nonexistent --with-stream=dynamic".to_owned();
        let asked = Service { said, layer: Layer::Tcp, ..service(1, 1, 1) };
        let reason = lacks(&asked).expect("it is not there");
        assert!(reason.ends_with("apt-get install libnginx-mod-stream"), "{reason}");
        assert_eq!(lacks(&Service { layer: Layer::Http, ..asked }), None);
    }

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
