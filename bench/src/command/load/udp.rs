//! A load of UDP queries, with the same arguments.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use weir_bench::load::Extent;
use weir_bench::load::udp::UdpPlan;

use super::Arguments;

const SCHEME: &str = "udp://";
const QUERY_BYTES: u16 = 48;
const ANSWER_BYTES: u16 = 128;

/// Options for queries only.
#[derive(Debug, Args)]
pub struct Options {
    /// Bytes of a query over UDP [default: 48]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(14..=1_452))]
    query_size: Option<u16>,

    /// Bytes of the requested answer [default: 128]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(14..=1_452))]
    answer_size: Option<u16>,
}

impl Options {
    /// The first given option of these.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.query_size.is_some(), "--query-size"),
            (self.answer_size.is_some(), "--answer-size"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}

/// Whether a URL has the scheme `udp`.
pub fn is_udp(url: &str) -> bool {
    url.starts_with(SCHEME)
}

/// The plan. Refuses options that have no meaning for queries.
pub fn plan_of(arguments: &Arguments) -> Result<UdpPlan, String> {
    if let Some(option) = of_http(arguments) {
        return Err(format!("{option} is for http:// and https:// only, not for udp:// addresses"));
    }
    let targets: Vec<SocketAddr> =
        arguments.urls.iter().map(|url| target(url)).collect::<Result<_, _>>()?;
    let extent = match (arguments.requests, arguments.duration) {
        (Some(requests), _) if arguments.warm_up.is_none() => Extent::Requests(requests),
        (Some(_), _) => return Err("--warm-up needs a --duration with udp:// addresses".into()),
        (None, duration) => Extent::Time(duration.unwrap_or(Duration::from_secs(10))),
    };
    Ok(UdpPlan {
        targets,
        flows: arguments.connections as usize,
        queries_per_flow: arguments.requests_per_connection,
        query_bytes: arguments.udp.query_size.unwrap_or(QUERY_BYTES),
        answer_bytes: arguments.udp.answer_size.unwrap_or(ANSWER_BYTES),
        extent,
        rate: arguments.rate,
        warm_up: arguments.warm_up.unwrap_or_default(),
        timeout: arguments.timeout,
        sources: arguments.source.iter().flat_map(|sources| sources.0.iter().copied()).collect(),
        threads: usize::from(arguments.threads),
        cores: arguments.cores.clone(),
        network_namespace: None,
        stop: Arc::new(AtomicBool::new(false)),
    })
}

/// The first given option that is only for HTTP.
fn of_http(arguments: &Arguments) -> Option<&'static str> {
    let given = [
        (arguments.method != "GET", "--method"),
        (arguments.post_share.is_some(), "--post-share"),
        (arguments.body_size > 0, "--body-size"),
        (arguments.body.is_some(), "--body"),
        (!arguments.headers.is_empty(), "--header"),
        (arguments.ramp_up.is_some(), "--ramp-up"),
        (arguments.expect_status.is_some(), "--expect-status"),
        (arguments.expect_size.is_some(), "--expect-size"),
        (arguments.expect_crc32.is_some(), "--expect-crc32"),
        (arguments.tls_version.is_some(), "--tls-version"),
        (arguments.tls_cipher.is_some(), "--tls-cipher"),
        (arguments.tls_curve.is_some(), "--tls-curve"),
        (arguments.tls_resume != "on", "--tls-resume"),
        (arguments.tls_ca.is_some(), "--tls-ca"),
        (arguments.http2.http2, "--http2"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}

/// Resolves `udp://HOST:PORT`.
fn target(url: &str) -> Result<SocketAddr, String> {
    let wrong = |why: &str| format!("{url}: {why} (as in udp://127.0.0.1:9053)");
    let place =
        url.strip_prefix(SCHEME).ok_or_else(|| wrong("udp:// and http:// cannot be mixed"))?;
    let mut found = place
        .to_socket_addrs()
        .map_err(|error| wrong(&format!("the host and port cannot be looked up: {error}")))?;
    found.next().ok_or_else(|| wrong("the host has no address"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(words: &[&str]) -> Result<UdpPlan, String> {
        let words = ["load"].iter().chain(words);
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        plan_of(&line.arguments)
    }

    #[test]
    fn a_plan_has_what_was_asked_for() {
        let words = ["udp://127.0.0.1:9053", "-c", "7", "-n", "50", "--answer-size", "14"];
        let plan = parsed(&words).expect("a plan");
        assert_eq!(plan.targets, ["127.0.0.1:9053".parse().expect("an address")]);
        assert_eq!((plan.flows, plan.query_bytes, plan.answer_bytes), (7, 48, 14));
        assert_eq!(plan.extent, Extent::Requests(50));
    }

    #[test]
    fn what_queries_do_not_have_is_refused() {
        let check = |words: &[&str], part: &str| {
            let error = parsed(words).expect_err("refused");
            assert!(error.contains(part), "{error}");
        };
        let address = "udp://127.0.0.1:9053";
        check(&[address, "--http2"], "--http2 is for http://");
        check(&[address, "-H", "A: b"], "--header is for http://");
        check(&[address, "http://127.0.0.1/"], "cannot be mixed");
        check(&["udp://127.0.0.1"], "as in udp://127.0.0.1:9053");
        check(&[address, "--answer-size", "1453"], "1453");
        check(&[address, "-n", "5", "--warm-up", "1s"], "--warm-up needs a --duration");
    }
}
