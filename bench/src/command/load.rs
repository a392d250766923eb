//! `weir bench load`: the load generator.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use http::Uri;
use weir_bench::load::udp::UdpPlan;
use weir_bench::load::{
    self, Checksum, Expectation, Extent, Http2Plan, Observer, Plan, Progress, RequestSpec, Target,
    TlsOptions, TlsPlan,
};
use weir_bench::load::{LoadError, LoadOutcome};
use weir_cli::output;
use weir_cli::values::{parse_duration, parse_share, parse_size};
use weir_http::is_token;

mod udp;

use super::show;
use super::signals::stop_at_signal;

/// Exit status if no good response was received.
const EXIT_NOTHING_GOOD: u8 = 1;
/// Exit status if the load could not run.
const EXIT_FAILED: u8 = 2;
/// Exit status if the output cannot be written.
const EXIT_OUTPUT: u8 = 3;
/// The total weight of a URL's requests; shares are exact to 0.1 %.
const WEIGHT_ALL: u32 = 1_000;
/// Maximum number of source addresses in a range.
const SOURCES_MAX: u32 = 65_536;
/// Maximum size of a request body, which is kept in memory several times per URL.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// Maximum time to connect to one of several addresses of a name.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// Simulate many users of a server, and measure its responses
///
/// By default, the load is a closed loop: each connection sends its next request after the response. With --rate, it is
/// an open loop: requests are due at fixed times, independent of the server, and latency counts from the due time, so a
/// stall is not hidden. Every response is verified; an incomplete or unexpected response is an error, not a
/// transaction.
///
/// At the end, open requests are awaited and counted, so that the server counts the same number. Rate, goodput and CPU
/// time refer to good responses that were complete within the measurement: `window` in the JSON. Requests, errors and
/// latencies refer to requests that began within it (with --rate: were due within it).
///
/// With udp://HOST:PORT, it sends queries and expects the answers of `weir bench origin --udp`. Each connection is a
/// flow (a port) with one open query. A query without an answer within --timeout is an error.
///
/// Exit status: 0 there were good responses, 1 there were none, 2 wrong usage or the load could not run, 3 the result
/// could not be written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    weir bench load http://127.0.0.1:8080/ --connections 64 --duration 5s\n  \
    weir bench load http://127.0.0.1:8080/ --rate 20000 --duration 10s --json\n  \
    weir bench load http://shop:8080/ --requests-per-connection 1                   # a connection for every request\n  \
    weir bench load http://shop/a http://shop/b --post-share 20% --body-size 2KiB\n  \
    weir bench load udp://127.0.0.1:9053 --rate 20000 --requests-per-connection 1   # a flow for every query\n  \
    weir bench load https://shop/ --tls-version 1.3 --tls-resume off --requests-per-connection 1")]
pub struct Arguments {
    /// URLs to request; connections take turns over addresses, requests over paths
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Concurrent connections
    #[arg(short, long, value_name = "NUMBER", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    connections: u32,

    /// How long to measure (500ms, 30s, 5m) [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// End after this many requests instead of a time
    #[arg(short = 'n', long, value_name = "NUMBER", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Offer this many requests per second over all connections (open loop)
    #[arg(short, long, value_name = "NUMBER", value_parser = parse_rate)]
    rate: Option<f64>,

    /// Close a connection after this many requests [default: never]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    requests_per_connection: Option<u64>,

    /// Open the connections evenly over this time, before measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    ramp_up: Option<Duration>,

    /// Let the load run this long before measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    warm_up: Option<Duration>,

    /// Timeout of a connection attempt and of a response; also the extra time after the ramp to open all connections,
    /// before the load begins with the open ones
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    timeout: Duration,

    /// Threads; each gets its own core if there are enough
    #[arg(short, long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// Cores to run the threads on, in turn (1,2,3) [default: any]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,

    /// Address to connect from, or a range (127.0.1.1-127.0.1.50); may be given several times
    #[arg(long, value_name = "ADDRESS", value_parser = parse_sources)]
    source: Vec<Sources>,

    /// Method of the requests
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET", value_parser = parse_method)]
    method: String,

    /// Share of the requests that are POST, with a body of --body-size
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    post_share: Option<f64>,

    /// Size of request bodies, at most 64MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    body_size: u64,

    /// File to send as the body of requests, at most 64MiB
    #[arg(long, value_name = "FILE", conflicts_with = "body_size")]
    body: Option<PathBuf>,

    /// Further request field; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = parse_field)]
    headers: Vec<(String, String)>,

    /// Status of a good response [default: any 2xx or 3xx]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599))]
    expect_status: Option<u16>,

    /// Body length of a good response
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    expect_size: Option<u64>,

    /// CRC-32 of the body of a good response, in hexadecimal; or `first`: equal to the first response
    #[arg(long, value_name = "CRC32", value_parser = parse_checksum)]
    expect_crc32: Option<Checksum>,

    /// TLS version of https URLs [default: the highest that both sides support]
    #[arg(long, value_name = "VERSION", value_parser = ["1.2", "1.3"])]
    tls_version: Option<String>,

    /// Cipher suite of https URLs, by OpenSSL's name
    #[arg(long, value_name = "NAME")]
    tls_cipher: Option<String>,

    /// Group of the key exchange of https URLs (X25519, P-256, P-384, X25519MLKEM768) [default: all]
    #[arg(long, value_name = "NAME")]
    tls_curve: Option<String>,

    /// Resume TLS sessions, or make a full handshake for every connection
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = ["on", "off"])]
    tls_resume: String,

    /// Certificate authorities to verify the server with [default: it is not verified]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,

    #[command(flatten)]
    http2: Http2Options,

    #[command(flatten)]
    udp: udp::Options,

    /// Print the result as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// HTTP/2 of a load.
#[derive(Debug, Args)]
struct Http2Options {
    /// Speak HTTP/2: agreed on by ALPN for https URLs, with prior knowledge for http ones
    #[arg(long, conflicts_with_all = ["post_share", "body_size", "body"])]
    http2: bool,

    /// Open requests per connection
    #[arg(long, value_name = "NUMBER", default_value_t = 100, requires = "http2",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    streams: u16,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let load = match load_of(arguments) {
        Ok(load) => load,
        Err(message) => {
            output::tell(format_args!("weir bench load: {message}\n"));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    if let Err(error) = stop_at_signal(load.stop()) {
        output::tell(format_args!("weir bench load: cannot watch for signals: {error}\n"));
        return ExitCode::from(EXIT_FAILED);
    }
    let mut line = ProgressLine { shown: false, on_terminal: io::stderr().is_terminal() };
    let result = load.run(&mut line);
    line.clear();
    match result {
        Ok(outcome) => {
            let text = if arguments.json {
                serde_json::to_string(&outcome).unwrap_or_else(|error| error.to_string()) + "\n"
            } else {
                show::outcome(&outcome)
            };
            if let Err(error) = output::print(text) {
                output::tell(format_args!("weir bench load: cannot write the result: {error}\n"));
                return ExitCode::from(EXIT_OUTPUT);
            }
            if outcome.requests > 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOTHING_GOOD) }
        }
        Err(error) => {
            output::tell(format_args!("weir bench load: {error}\n"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The plan: HTTP, or UDP queries.
enum Load {
    Http(Box<Plan>),
    Udp(UdpPlan),
}

impl Load {
    fn stop(&self) -> &Arc<AtomicBool> {
        match self {
            Self::Http(plan) => &plan.stop,
            Self::Udp(plan) => &plan.stop,
        }
    }

    fn run(&self, observer: &mut dyn Observer) -> Result<LoadOutcome, LoadError> {
        match self {
            Self::Http(plan) => load::run(plan, observer),
            Self::Udp(plan) => load::udp::run(plan, observer),
        }
    }
}

fn load_of(arguments: &Arguments) -> Result<Load, String> {
    if arguments.urls.iter().any(|url| udp::is_udp(url)) {
        return udp::plan_of(arguments).map(Load::Udp);
    }
    if let Some(option) = arguments.udp.given() {
        return Err(format!("{option} is for udp:// addresses only"));
    }
    plan_of(arguments).map(|plan| Load::Http(Box::new(plan)))
}

/// A line on the terminal that shows the progress of the load.
struct ProgressLine {
    shown: bool,
    on_terminal: bool,
}

impl ProgressLine {
    fn clear(&mut self) {
        if self.shown {
            output::tell("\r\x1b[K");
            self.shown = false;
        }
    }
}

impl Observer for ProgressLine {
    fn progress(&mut self, progress: &Progress) {
        if self.on_terminal {
            self.shown = true;
            output::tell(format_args!("\r\x1b[K{}", show::progress(progress)));
        }
    }
}

// Conversion of arguments to a plan.

fn plan_of(arguments: &Arguments) -> Result<Plan, String> {
    let urls: Vec<Url> =
        arguments.urls.iter().map(|text| Url::parse(text)).collect::<Result<_, _>>()?;
    let targets = targets_of(arguments, &urls)?;
    let extent = match (arguments.requests, arguments.duration) {
        (Some(requests), _) => Extent::Requests(requests),
        (None, duration) => Extent::Time(duration.unwrap_or(Duration::from_secs(10))),
    };
    Ok(Plan {
        targets,
        connections: arguments.connections as usize,
        requests_per_connection: arguments.requests_per_connection,
        extent,
        rate: arguments.rate,
        ramp_up: arguments.ramp_up.unwrap_or_default(),
        one_at_a_time: false,
        warm_up: arguments.warm_up.unwrap_or_default(),
        timeout: arguments.timeout,
        sources: arguments.source.iter().flat_map(|sources| sources.0.iter().copied()).collect(),
        threads: usize::from(arguments.threads),
        cores: arguments.cores.clone(),
        network_namespace: None,
        expect: Expectation {
            status: arguments.expect_status,
            body_bytes: arguments.expect_size,
            checksum: arguments.expect_crc32.unwrap_or(Checksum::Ignored),
            gzip: None,
        },
        tls: tls_of(arguments, &urls)?,
        http2: arguments
            .http2
            .http2
            .then_some(Http2Plan { streams: usize::from(arguments.http2.streams) }),
        timeline_every: None,
        stop: Arc::new(AtomicBool::new(false)),
    })
}

fn targets_of(arguments: &Arguments, urls: &[Url]) -> Result<Vec<Target>, String> {
    let body = body_of(arguments)?;
    let post_share = (arguments.post_share.unwrap_or(0.0) * f64::from(WEIGHT_ALL)).round() as u32;
    let mut targets = Vec::new();
    for url in urls {
        let spec = |method: &str, body: &[u8]| RequestSpec {
            address: url.address,
            method: method.to_owned(),
            authority: url.authority.clone(),
            path: url.path.clone(),
            fields: arguments.headers.clone(),
            body: body.to_vec(),
        };
        // With --post-share, only POST requests have the body.
        let plain_body: &[u8] = if arguments.post_share.is_some() { b"" } else { &body };
        let shares = [
            (spec(&arguments.method, plain_body), WEIGHT_ALL - post_share),
            (spec("POST", &body), post_share),
        ];
        let wanted = shares.into_iter().filter(|(_, weight)| *weight > 0);
        targets.extend(wanted.map(|(spec, weight)| spec.into_target(weight)));
    }
    Ok(targets)
}

/// The body of requests: the content of a file, or the given number of bytes.
fn body_of(arguments: &Arguments) -> Result<Vec<u8>, String> {
    let too_large = || format!("a request body has at most {} MiB", BODY_BYTES_MAX >> 20);
    let Some(path) = &arguments.body else {
        return match usize::try_from(arguments.body_size) {
            Ok(bytes) if arguments.body_size <= BODY_BYTES_MAX => Ok(vec![b'x'; bytes]),
            _ => Err(format!("--body-size: {}", too_large())),
        };
    };
    let mut body = Vec::new();
    // One byte more shows that the file is too large, even if it is endless.
    File::open(path)
        .and_then(|file| file.take(BODY_BYTES_MAX + 1).read_to_end(&mut body))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    if body.len() as u64 > BODY_BYTES_MAX {
        return Err(format!("{}: {}", path.display(), too_large()));
    }
    Ok(body)
}

fn tls_of(arguments: &Arguments, urls: &[Url]) -> Result<Option<TlsPlan>, String> {
    let Some(first) = urls.iter().find(|url| url.is_tls) else {
        return Ok(None);
    };
    if urls.iter().any(|url| url.is_tls != first.is_tls || url.host != first.host) {
        return Err(
            "https URLs must all have the same host, and cannot be mixed with http URLs".to_owned()
        );
    }
    let options = TlsOptions {
        version: arguments.tls_version.clone(),
        cipher: arguments.tls_cipher.clone(),
        curve: arguments.tls_curve.clone(),
        protocol: arguments.http2.http2.then_some("h2"),
        authorities: arguments.tls_ca.clone(),
    };
    let bare = first.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = bare.clone().try_into();
    let name = name.map_err(|_| format!("{bare} is not a valid server name for TLS"))?;
    options.plan(name, arguments.tls_resume == "on").map(Some)
}

/// An `http` or `https` URL with the resolved address.
#[derive(Debug)]
struct Url {
    address: SocketAddr,
    host: String,
    authority: String,
    path: String,
    is_tls: bool,
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text}: {why} (as in http://127.0.0.1:8080/path)");
        let uri: Uri = text.parse().map_err(|error| wrong(&format!("not a URL: {error}")))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("a URL begins with http:// or https://")),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("no host"))?;
        let authority = uri.authority().map_or(host, |authority| authority.as_str());
        if authority.contains('@') {
            return Err(wrong("user names belong in a header"));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found: Vec<SocketAddr> = (bare, port)
            .to_socket_addrs()
            .map_err(|error| wrong(&format!("{host} cannot be looked up: {error}")))?
            .collect();
        let address = first_that_accepts(&found).ok_or_else(|| wrong("the host has no address"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            address,
            host: host.to_owned(),
            authority: authority.to_owned(),
            path: path.to_owned(),
            is_tls,
        })
    }
}

/// The first of a name's addresses that accepts a connection, as `localhost` may mean `::1` and `127.0.0.1` with a
/// server on one of them; otherwise the first.
fn first_that_accepts(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, LOOK_TIMEOUT).is_ok();
    match addresses {
        [] => None,
        [only] => Some(*only),
        [first, ..] => Some(*addresses.iter().find(accepts).unwrap_or(first)),
    }
}

/// The source addresses of an argument.
#[derive(Debug, Clone)]
struct Sources(Vec<IpAddr>);

fn parse_sources(text: &str) -> Result<Sources, String> {
    let wrong = "an address (127.0.1.1) or a range of IPv4 addresses (127.0.1.1-127.0.1.50)";
    let Some((first, last)) = text.split_once('-') else {
        return Ok(Sources(vec![text.parse().map_err(|_| wrong)?]));
    };
    let parse = |text: &str| text.parse::<std::net::Ipv4Addr>().map(u32::from).map_err(|_| wrong);
    let (first, last) = (parse(first)?, parse(last)?);
    match last.checked_sub(first) {
        Some(beyond) if beyond < SOURCES_MAX => {}
        _ => return Err(format!("a range has 1 to {SOURCES_MAX} addresses, the lowest first")),
    }
    Ok(Sources((first..=last).map(|address| IpAddr::V4(address.into())).collect()))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err("a rate is a number of requests per second: 20000".into()),
    }
}

fn parse_method(text: &str) -> Result<String, String> {
    match text {
        "CONNECT" => Err("CONNECT makes tunnels, which are not measured here".into()),
        _ if is_token(text.as_bytes()) => Ok(text.to_owned()),
        _ => Err("a method is a word, for example GET".into()),
    }
}

/// Parses `Name: value`. Rejects fields that frame the message or end the connection, because the load generator sets
/// them.
fn parse_field(text: &str) -> Result<(String, String), String> {
    const OURS: [&str; 6] =
        ["content-length", "transfer-encoding", "connection", "upgrade", "expect", "keep-alive"];
    let (name, value) = text.split_once(':').ok_or("a header is written Name: value")?;
    let value = value.trim();
    if !is_token(name.as_bytes()) {
        return Err(format!("{name:?} is not a header name"));
    }
    if value.bytes().any(|byte| byte != b'\t' && (byte < b' ' || byte == 0x7f)) {
        return Err(format!("{name} has a control character in its value"));
    }
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("{name} is written by the generator itself"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn parse_checksum(text: &str) -> Result<Checksum, String> {
    if text == "first" {
        return Ok(Checksum::AsFirst);
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16)
        .map(Checksum::Crc32)
        .map_err(|_| "a CRC-32 is up to eight hexadecimal digits, or the word first".into())
}
