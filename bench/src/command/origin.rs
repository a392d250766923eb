//! `weir bench origin`: the origin servers behind the products under test.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use weir_bench::origin::{Fault, Origin, SERVERS_MAX, Settings, UdpOrigin, UdpSettings};
use weir_cli::output;
use weir_cli::values::{parse_duration, parse_share};

use super::signals::Signals;

/// Exit status if the origin could not serve.
const EXIT_FAILED: u8 = 1;

/// Serve objects of any size from memory, with optional faults
///
/// The last segment of a path names the object: its size in bytes (k: 1024, m: 1048576), with an ending
/// that says its type: /128, /5k, /a/16k.png, /128k.html. A request can order a fault:
/// /128?delay_ms=20, /128?fault=reset (a status, reset, short, garbage, stall).
///
/// Prints a line of JSON with its addresses when it serves. Ends on SIGINT or SIGTERM, and prints a line of JSON with
/// its counters; until then they are at /_origin/counts, which does not count itself.
///
/// Exit status: 0 stopped by a signal, 1 could not serve, 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    weir bench origin --listen 127.0.0.1:9001\n  \
    weir bench origin --listen 127.0.1.1:9001 --servers 72\n  \
    weir bench origin --udp --listen 127.0.0.1:9053   # for weir bench load udp://127.0.0.1:9053\n  \
    weir bench origin --listen 127.0.0.1:9001 --delay 5ms --fault 503=1% --fault reset=0.1%")]
pub struct Arguments {
    /// Address of the first server; with port 0 the system chooses one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9001")]
    listen: SocketAddr,

    /// Number of servers, on addresses that follow each other, all on the same port
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=SERVERS_MAX as i64))]
    servers: u16,

    /// Threads
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// Cores to run the threads on, in turn (1,2,3) [default: any]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,

    /// Time before every answer
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,

    /// Make this fault (a status, reset, short, garbage, stall) in this share of the answers; may be
    /// given several times
    #[arg(long, value_name = "FAULT=SHARE", value_parser = parse_fault)]
    fault: Vec<Fault>,

    /// Answer queries over UDP instead, each with the number of bytes that it requests
    #[arg(long, conflicts_with_all = ["delay", "fault", "html_saving"])]
    udp: bool,

    /// How much shorter gzip makes .html objects
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "75%")]
    html_saving: f64,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("weir bench origin: {error}\n"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn serve(arguments: &Arguments) -> std::io::Result<()> {
    if arguments.udp {
        return serve_udp(arguments);
    }
    let mut signals = Signals::new()?;
    let origin = Origin::start(&Settings {
        listen: arguments.listen,
        servers: usize::from(arguments.servers),
        threads: usize::from(arguments.threads),
        cores: arguments.cores.clone(),
        delay: arguments.delay.unwrap_or_default(),
        faults: arguments.fault.clone(),
        html_saving: arguments.html_saving,
    })?;
    output::print(format_args!("{}\n", json!({ "listening": origin.addresses() })))?;
    signals.wait();
    let counts = serde_json::to_value(origin.counts())?;
    output::print(format_args!("{counts}\n"))
}

fn serve_udp(arguments: &Arguments) -> std::io::Result<()> {
    let mut signals = Signals::new()?;
    let origin = UdpOrigin::start(&UdpSettings {
        listen: arguments.listen,
        servers: usize::from(arguments.servers),
        threads: usize::from(arguments.threads),
        cores: arguments.cores.clone(),
    })?;
    output::print(format_args!("{}\n", json!({ "listening": origin.addresses() })))?;
    signals.wait();
    let counts = serde_json::to_value(origin.counts())?;
    output::print(format_args!("{counts}\n"))
}

fn parse_fault(text: &str) -> Result<Fault, String> {
    let (kind, share) = text.split_once('=').ok_or("a fault is written with its share: 503=1%")?;
    Ok(Fault { kind: kind.parse()?, share: parse_share(share)? })
}
